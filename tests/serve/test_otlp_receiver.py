"""OTLP profiles over HTTP: passed on with names added, answered as collectors expect."""

import base64
import gzip
import http.client
import io
import json
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus as Status
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.protobuf import json_format

from tests.support.fixture_files import FIXTURES
from tests.support.http_server import HttpServer, Request
from tests.support.needs import package
from tests.support.otlp_backend import PATH, PROTOBUF, Backend, http_backend
from tests.support.symbol_server import Answer, HttpClient, serving, settings

package("starlette")
package("uvicorn")
from symbolize.core.errors import UsageError
from symbolize.serve.metrics import ServerMetrics
from symbolize.serve.otlp import Deliveries, Forward
from symbolize.serve.otlp_answers import Passed, status_body
from symbolize.serve.request_bodies import decoded

service = package("opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2")

pytestmark = pytest.mark.process

MESSAGE = FIXTURES / "profiles" / "otlp" / "spectra-gcc-pie.otlp"
BINARIES = FIXTURES / "bin" / "gcc-pie"
JSON = "application/json"


@contextmanager
def proxied(folder: Path, **more: Any) -> Iterator[tuple[HttpClient, Backend]]:
    """A server in front of another one."""
    with http_backend() as (url, backend), serving(settings(folder, BINARIES, forward=url, **more)) as server:
        yield server, backend


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HttpClient, Backend]]:
    """A server in front of another one."""
    with proxied(tmp_path_factory.mktemp("otlp")) as both:
        yield both


def send(server: HttpClient, body: bytes, kind: str = PROTOBUF, **headers: str) -> Answer:
    """Send a request as a collector does."""
    return server.ask("POST", PATH, body, Content_Type=kind, **headers)


def begin(server: HttpClient, body: bytes) -> socket.socket:
    """Send a request whose answer may never be read."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    head = f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {PROTOBUF}\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


def wait_for(server: HttpClient, *lines: str) -> None:
    """Wait until the server has all of these metrics."""
    until, shown = time.monotonic() + 60, ""
    while not all(line in shown for line in lines) and time.monotonic() < until:
        time.sleep(0.02)
        shown = server.ask("GET", "/metrics").body.decode()


def as_json(data: bytes) -> bytes:
    """A request in JSON, where OTLP has ids in hexadecimal."""

    def hexadecimal(value: Any) -> Any:
        if isinstance(value, list):
            return [hexadecimal(each) for each in value]
        if isinstance(value, dict):
            ids = ("traceId", "spanId", "profileId")
            return {
                key: base64.b64decode(each).hex() if key in ids else hexadecimal(each) for key, each in value.items()
            }
        return value

    message = service.ExportProfilesServiceRequest.FromString(data)
    return json.dumps(hexadecimal(json_format.MessageToDict(message))).encode()


def without_names(data: bytes) -> Any:
    """A request without what names add: lines and functions, and the strings and flags that came with them."""
    message = service.ExportProfilesServiceRequest.FromString(data)
    tables = message.dictionary
    for location in tables.location_table:
        del location.lines[:]
        del location.attribute_indices[:]
    for mapping in tables.mapping_table:
        del mapping.attribute_indices[:]
    del tables.function_table[:]
    return message


def test_only_names_are_added(both: tuple[HttpClient, Backend]) -> None:
    """Everything else is what it was, as the protobuf library reads both."""
    server, backend = both
    sent = MESSAGE.read_bytes()
    assert send(server, sent).status == Status.OK
    received, headers = backend.received[-1]
    assert headers["content-type"] == PROTOBUF
    before, after = without_names(sent), without_names(received)
    for table in ("string_table", "attribute_table"):
        first, second = (getattr(each.dictionary, table) for each in (before, after))
        assert [*second][: len(first)] == [*first]
        del first[:], second[:]
    assert before == after
    named = service.ExportProfilesServiceRequest.FromString(received).dictionary
    texts = {named.string_table[each.name_strindex] for each in named.function_table}
    assert len(texts) > 10
    assert any("spectra" in each or "main" in each for each in texts)


def test_encodings(both: tuple[HttpClient, Backend]) -> None:
    """Compressed requests, and JSON, lead to the same message, which is compressed as they were."""
    import zstandard

    server, backend = both
    sent = MESSAGE.read_bytes()
    assert send(server, sent).status == Status.OK
    expected = backend.received[-1][0]
    assert "content-encoding" not in backend.received[-1][1]
    for encoding, name, compress, decompress in (
        ("gzip", "gzip", gzip.compress, gzip.decompress),
        ("X-GZIP", "gzip", gzip.compress, gzip.decompress),
        ("zstd", "zstd", zstandard.compress, zstandard.decompress),
    ):
        assert send(server, compress(sent), Content_Encoding=encoding).status == Status.OK
        received, headers = backend.received[-1]
        assert (headers["content-encoding"], decompress(received)) == (name, expected)
    answer = send(server, as_json(sent), JSON)
    assert (answer.status, answer.headers["content-type"], answer.json()) == (Status.OK, JSON, {})
    parsed = service.ExportProfilesServiceRequest.FromString(backend.received[-1][0])
    assert len(parsed.dictionary.function_table) > 10
    assert send(server, gzip.compress(bytes(1000)), Content_Encoding="gzip").status == Status.BAD_REQUEST
    assert send(server, sent, Content_Encoding="gzip").status == Status.BAD_REQUEST
    assert send(server, sent, Content_Encoding="br").status == Status.UNSUPPORTED_MEDIA_TYPE
    assert send(server, sent, "text/html").status == Status.BAD_REQUEST


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:40] + b"\xff" * 9 + data[49:]])
def test_damaged_bodies(damage: Callable[[bytes], bytes]) -> None:
    """A body is decoded whole, or not at all."""
    whole = random.Random(5).randbytes(2000)
    packed = gzip.compress(whole)
    assert decoded(io.BytesIO(packed), "gzip", 1 << 20) == whole
    with pytest.raises(UsageError, match="the body is no gzip"):
        decoded(io.BytesIO(damage(packed)), "gzip", 1 << 20)


def test_an_empty_request(both: tuple[HttpClient, Backend]) -> None:
    """Is a valid message."""
    server, backend = both
    assert send(server, b"").status == Status.OK
    assert backend.received[-1][0] == b""


def test_answers_are_passed_back(both: tuple[HttpClient, Backend]) -> None:
    """Status, body in the encoding of the request, and when to come again."""
    server, backend = both
    partial = service.ExportProfilesPartialSuccess(rejected_profiles=3, error_message="three were bad")
    backend.answer = service.ExportProfilesServiceResponse(partial_success=partial).SerializeToString()
    sent = MESSAGE.read_bytes()
    text = as_json(sent)
    assert service.ExportProfilesServiceResponse.FromString(send(server, sent).body).partial_success == partial
    expected = {"partialSuccess": {"rejectedProfiles": "3", "errorMessage": "three were bad"}}
    assert send(server, text, JSON).json() == expected
    backend.headers = {"Retry_After": "17"}
    backend.answer = b"\x08\x0e\x12\x04busy"  # google.rpc.Status
    try:
        for status in (429, 502, 503, 504, 500, 400, 401):
            backend.status = Status(status)
            answer = send(server, sent)
            assert (answer.status, answer.headers["retry-after"], answer.body) == (status, "17", backend.answer)
            assert send(server, text, JSON).json() == {"code": 14, "message": "busy"}
        backend.status, backend.answer = Status.OK, bytes(1 << 17)
        assert send(server, sent).status == Status.BAD_GATEWAY
        backend.status, backend.headers = Status.TEMPORARY_REDIRECT, {"Location": "http://127.0.0.1:1/"}
        backend.answer = b""
        assert send(server, sent).status == Status.BAD_GATEWAY
    finally:
        backend.status, backend.answer, backend.headers = Status.OK, b"", {}


@pytest.mark.parametrize("status", [101, 103, 199, 304, 600, 999])
def test_answers_that_are_none(both: tuple[HttpClient, Backend], status: int) -> None:
    """Statuses that end no answer, or have no name, are those of a bad gateway."""
    server, backend = both
    backend.status = status
    try:
        assert send(server, MESSAGE.read_bytes()).status == Status.BAD_GATEWAY
    finally:
        backend.status = Status.OK


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, 3), (401, 16), (403, 7), (404, 5), (408, 4), (413, 8), (415, 3), (422, 3), (429, 8), (500, 13), (503, 14)],
)
def test_codes_of_errors(status: int, code: int) -> None:
    """The codes of google.rpc (code.proto) for what HTTP says: as the mapping in its comments, and what is nearest."""
    assert json.loads(status_body(status, "no", as_json=True)) == {"code": code, "message": "no"}
    assert status_body(status, "no", as_json=False) == bytes([8, code, 0x12, 2]) + b"no"


def test_answers_without_a_body(both: tuple[HttpClient, Backend]) -> None:
    """Have none in JSON either, and the connection goes on."""
    server, backend = both
    backend.status = Status.NO_CONTENT
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        for body, kind in ((as_json(MESSAGE.read_bytes()), JSON), (MESSAGE.read_bytes(), PROTOBUF)):
            connection.request("POST", PATH, body, {"Content-Type": kind})
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (Status.NO_CONTENT, b"")
    finally:
        connection.close()
        backend.status = Status.OK


def test_answers_that_drip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server behind that sends byte by byte is one that does not answer, and holds no thread."""
    monkeypatch.setattr("symbolize.serve.otlp.SECONDS", 0.5)

    def behave(request: Request) -> None:
        request.body()
        request.head(Status.OK, Content_Type=PROTOBUF)
        request.drip(bytes(1 << 16), 0.01)

    with HttpServer(behave) as behind, serving(settings(tmp_path, BINARIES, forward=behind.url + PATH)) as server:
        assert send(server, MESSAGE.read_bytes()).status == Status.SERVICE_UNAVAILABLE


def test_clients_that_left(both: tuple[HttpClient, Backend]) -> None:
    """Before their messages were handed on: nobody gets them."""
    server, backend = both
    count = len(backend.received)
    for _ in range(10):
        begin(server, MESSAGE.read_bytes()).close()
    left = f'symbolize_http_requests_total{{path="{PATH}",status="499"}} 10.0'
    wait_for(server, left, 'symbolize_work{lane="profiles"} 0.0')
    assert left in server.ask("GET", "/metrics").body.decode()
    assert len(backend.received) == count


def test_clients_that_leave_meanwhile(tmp_path: Path) -> None:
    """What they send again is not handed on again once it was taken, not even while that is not known; afterwards the
    same message is another one."""
    sent = MESSAGE.read_bytes()
    with proxied(tmp_path) as (server, backend):
        backend.answer = service.ExportProfilesServiceResponse(
            partial_success=service.ExportProfilesPartialSuccess(rejected_profiles=2)
        ).SerializeToString()
        backend.may_answer.clear()
        with begin(server, sent):
            wait_for(server, 'symbolize_work{lane="forwarding"} 1.0')
        wait_for(server, f'symbolize_http_requests_total{{path="{PATH}",status="499"}} 1.0')
        with begin(server, sent) as again:
            wait_for(server, 'symbolize_work{lane="forwarding"} 2.0')
            backend.may_answer.set()
            answer = http.client.HTTPResponse(again)
            answer.begin()
            assert answer.read() == backend.answer
        assert len(backend.received) == 1
        assert send(server, sent).status == Status.OK
        assert len(backend.received) == 2
        wait_for(server, 'symbolize_forwarded_total{status="repeated"} 1.0')
    assert [*(tmp_path / "shared" / "delivered").iterdir()] == []


def test_answers_that_nobody_reads(tmp_path: Path) -> None:
    """As the client has just given up: it gets them when it sends the same again."""
    sent = MESSAGE.read_bytes()
    with proxied(tmp_path) as (server, backend):
        with begin(server, sent) as given_up:
            assert given_up.recv(1, socket.MSG_PEEK)
        kept = tmp_path / "shared" / "delivered"
        until = time.monotonic() + 60
        while not [*kept.iterdir()] and time.monotonic() < until:
            time.sleep(0.01)
        assert send(server, sent).status == Status.OK
        assert len(backend.received) == 1
        assert send(server, sent).status == Status.OK
        assert len(backend.received) == 2


def test_messages_that_were_not_taken(tmp_path: Path) -> None:
    """Are handed on again; and an answer for which nobody comes is forgotten after a while."""
    metrics, statuses, left = ServerMetrics(), [503, 200, 200], threading.Event()
    forward = SimpleNamespace(post=lambda *_: Passed(statuses.pop(0), b"", {}))
    deliveries = Deliveries(forward, str(tmp_path), metrics)  # type: ignore[arg-type]
    answers = [deliveries.hand_on(request, b"", "", "", left) for request in ("a", "a", "a", "b")]
    assert [each.status for each in answers] == [503, 200, 200, 200]
    assert statuses == []
    left.set()
    assert deliveries.hand_on("a", b"", "", "", left).status == 200
    with pytest.raises(TimeoutError):
        deliveries.hand_on("c", b"", "", "", left)
    (first, _) = sorted(tmp_path.iterdir())
    os.utime(first, (0, 0))
    deliveries.forget_old()
    assert len([*tmp_path.iterdir()]) == 1


def test_folders_that_are_cleaned(tmp_path: Path) -> None:
    """While no message came for days: the folder for answers is there again when the next one may come."""
    forward = SimpleNamespace(post=lambda *_: Passed(200, b"", {}))
    deliveries = Deliveries(forward, str(tmp_path / "delivered"), ServerMetrics())  # type: ignore[arg-type]
    (tmp_path / "delivered").rmdir()
    deliveries.forget_old()
    assert deliveries.hand_on("a", b"", "", "", threading.Event()).status == 200


def test_what_is_no_request(both: tuple[HttpClient, Backend]) -> None:
    """Is refused with a google.rpc.Status, and not passed on."""
    server, backend = both
    count = len(backend.received)
    pprof = FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof"
    for body in (b"nothing", pprof.read_bytes(), MESSAGE.read_bytes()[:-7]):
        answer = send(server, body)
        assert answer.status == Status.BAD_REQUEST
        assert answer.headers["content-type"] == PROTOBUF
        assert answer.body.startswith(b"\x08\x03\x12")  # INVALID_ARGUMENT, and a message
    untyped = server.ask("POST", PATH, MESSAGE.read_bytes())  # as pages of any origin can send it
    assert untyped.status == Status.BAD_REQUEST
    answer = send(server, b"{}[", JSON)
    assert answer.status == Status.BAD_REQUEST
    assert answer.json()["code"] == 3
    assert len(backend.received) == count


def test_authorization(tmp_path: Path) -> None:
    """That of the client is for this server, unless it is told to pass it on."""
    sent = MESSAGE.read_bytes()
    with proxied(tmp_path, token="a-token-of-the-tests") as (server, backend):
        assert send(server, sent).status == Status.UNAUTHORIZED
        assert send(server, sent, Authorization="Bearer a-token-of-the-tests").status == Status.OK
        assert "authorization" not in backend.received[-1][1]
    with proxied(tmp_path, authorizes=True) as (server, backend):
        assert send(server, sent, Authorization="Basic abc").status == Status.OK
        assert backend.received[-1][1]["authorization"] == "Basic abc"


def test_headers(tmp_path: Path) -> None:
    """Those of a file are sent too, but for what a client may set."""
    headers = tmp_path / "headers"
    headers.write_text("X-Scope-OrgID: shop\n\nauthorization: Bearer key:1\n")
    more = {"headers": str(headers)}
    with proxied(tmp_path, **more) as (server, backend):
        assert send(server, MESSAGE.read_bytes(), Authorization="Basic abc").status == Status.OK
        sent = backend.received[-1][1]
        assert (sent["x-scope-orgid"], sent["authorization"]) == ("shop", "Bearer key:1")
    with proxied(tmp_path, authorizes=True, **more) as (server, backend):
        assert send(server, MESSAGE.read_bytes(), Authorization="Basic abc").status == Status.OK
        assert backend.received[-1][1]["authorization"] == "Basic abc"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("X-Key secret", "line 1 is no header"),
        ("X-A: b\nX Key: secret", "line 2 is no header"),
        ("Content-Type: text/plain", "content-type is not for a user to set"),
        (None, "cannot be read"),
    ],
)
def test_headers_that_cannot_be(tmp_path: Path, text: str | None, said: str) -> None:
    """Are refused at the start, in words without their values."""
    path = tmp_path / "headers"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=said) as raised:
        Forward("http://localhost/", headers=str(path))
    assert str(raised.value).startswith(f"--forward-headers {path}")
    assert "secret" not in str(raised.value)


def test_nobody_behind(tmp_path: Path) -> None:
    """A server that does not answer may do so later; without one nothing is received."""
    with HttpServer(lambda request: None) as gone:
        url = gone.url
    with serving(settings(tmp_path, BINARIES, forward=url + PATH)) as server:
        answer = send(server, MESSAGE.read_bytes())
        assert (answer.status, answer.headers["retry-after"]) == (Status.SERVICE_UNAVAILABLE, "2")
        assert url.encode() not in answer.body
    with serving(settings(tmp_path, BINARIES)) as server:
        answer = send(server, json.dumps({}).encode(), JSON)
        assert answer.status == Status.NOT_FOUND
        assert "--forward" in answer.json()["message"]

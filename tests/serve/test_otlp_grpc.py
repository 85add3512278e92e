"""OTLP profiles over gRPC: the same as over HTTP, answered as the protocol has it."""

import gzip
import json
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from http import HTTPStatus as Status
from pathlib import Path
from typing import Any

import pytest

from tests.support.fixture_files import FIXTURES
from tests.support.http_server import made_certificate
from tests.support.needs import package
from tests.support.otlp_backend import (
    EXPORT,
    PATH,
    PROTOBUF,
    SERVICE,
    GrpcClient,
    Outcome,
    grpc_backend,
    http_backend,
)
from tests.support.symbol_server import HttpClient, build_id, free_port, serving, settings, symbol_server

package("starlette")
package("uvicorn")
grpc = package("grpc")
service = package("opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2")

from symbolize.cli import main
from symbolize.core.errors import SymbolizeError, UsageError
from symbolize.serve.app import ServerLimits
from symbolize.serve.otlp import Forward
from symbolize.serve.otlp_answers import MAX_TEXT, Passed, grpc_status, status_body
from symbolize.serve.otlp_grpc import BEYOND, MAX_MESSAGE, SERVER_OPTIONS
from symbolize.serve.worker_pools import WorkerPool

pytestmark = pytest.mark.process

MESSAGE = (FIXTURES / "profiles" / "otlp" / "spectra-gcc-pie.otlp").read_bytes()
BINARIES = FIXTURES / "bin" / "gcc-pie"
SPECTRA = BINARIES / "spectra"
RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
HEALTH = "/grpc.health.v1.Health/Check"


@contextmanager
def doors(folder: Path, forward: str, *binaries: Path, **more: Any) -> Iterator[tuple[HttpClient, GrpcClient]]:
    """A server with both doors."""
    port = free_port()
    made = settings(folder, *(binaries or [BINARIES]), forward=forward, otlp_grpc=f"127.0.0.1:{port}", **more)
    with serving(made) as server:
        yield server, GrpcClient(port)


@pytest.fixture(scope="module")
def all_of_it(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HttpClient, GrpcClient, Any]]:
    """A server with both doors, in front of one that speaks HTTP."""
    with http_backend() as (url, backend), doors(tmp_path_factory.mktemp("grpc"), url) as (server, client):
        yield server, client, backend


def variants() -> Iterator[bytes]:
    """Messages that differ: in their locations, their order, and in what nobody knows."""
    chosen = random.Random(3)
    for number in range(8):
        message = service.ExportProfilesServiceRequest.FromString(MESSAGE)
        for location in message.dictionary.location_table:
            if chosen.random() < 0.3:
                location.address += chosen.randrange(64)
            if chosen.random() < 0.2:
                location.lines.add(line=7)
        for resource in message.resource_profiles:
            resource.resource.attributes.add(key="number").value.int_value = number
        data = message.SerializeToString()
        yield data + b"\xfa\x3e\x03abc" if number % 2 else data
    yield b""


def test_both_doors_pass_on_the_same_bytes(all_of_it: tuple[HttpClient, GrpcClient, Any]) -> None:
    """Of any message, compressed or not; everything but names is what came, as the tests of HTTP show."""
    server, client, backend = all_of_it
    for sent in variants():
        assert server.ask("POST", PATH, sent, Content_Type=PROTOBUF).status == Status.OK
        assert client.send(sent) == ("OK", "", b"", b"")
        (first, _), (second, headers) = backend.received[-2:]
        assert first == second
        assert ("content-encoding" in headers) is False
        assert client.send(sent, "Gzip").code == "OK"
        received, headers = backend.received[-1]
        assert gzip.decompress(received) == first if sent else received == b""
        assert headers.get("content-encoding") == ("gzip" if sent else None)
    named = service.ExportProfilesServiceRequest.FromString(backend.received[0][0]).dictionary
    assert len(named.function_table) > 10


def test_partial_success(all_of_it: tuple[HttpClient, GrpcClient, Any]) -> None:
    """Is passed back; what no client of gRPC can read is not."""
    _, client, backend = all_of_it
    partial = service.ExportProfilesPartialSuccess(rejected_profiles=3, error_message="three were bad")
    backend.answer = service.ExportProfilesServiceResponse(partial_success=partial).SerializeToString()
    try:
        assert service.ExportProfilesServiceResponse.FromString(client.send(MESSAGE).answer).partial_success == partial
        backend.answer = b"{}"
        assert client.send(MESSAGE) == ("OK", "", b"", b"")
    finally:
        backend.answer = b""


def rpc_messages() -> tuple[Any, Any]:
    """google.rpc.Status and RetryInfo, of which no package of the tests has the classes."""
    from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, duration_pb2, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="r.proto", package="google.rpc", syntax="proto3")
    file.dependency.extend([any_pb2.DESCRIPTOR.name, duration_pb2.DESCRIPTOR.name])
    status, retry = file.message_type.add(name="Status"), file.message_type.add(name="RetryInfo")
    status.field.add(name="code", number=1, type=5, label=1)
    status.field.add(name="message", number=2, type=9, label=1)
    status.field.add(name="details", number=3, type=11, label=3, type_name=".google.protobuf.Any")
    retry.field.add(name="retry_delay", number=1, type=11, label=1, type_name=".google.protobuf.Duration")
    known = descriptor_pool.DescriptorPool()
    for each in (any_pb2, duration_pb2):
        known.AddSerializedFile(each.DESCRIPTOR.serialized_pb)
    known.Add(file)
    types = (known.FindMessageTypeByName(f"google.rpc.{name}") for name in ("Status", "RetryInfo"))
    first, second = map(message_factory.GetMessageClass, types)
    return first, second


RpcStatus, RetryInfo = rpc_messages()


def delay(details: bytes) -> int | None:
    """The seconds after which a client may come again, as protobuf reads the status; None if it may not."""
    found = [each for each in RpcStatus.FromString(details).details if each.type_url == RETRY_INFO]
    return RetryInfo.FromString(found[0].value).retry_delay.seconds if found else None


@pytest.mark.parametrize(
    ("status", "code", "again"),
    [
        (429, "RESOURCE_EXHAUSTED", 17),
        (503, "UNAVAILABLE", 17),
        (502, "UNAVAILABLE", 17),
        (504, "DEADLINE_EXCEEDED", 17),
        (413, "RESOURCE_EXHAUSTED", None),
        (400, "INVALID_ARGUMENT", None),
        (401, "UNAUTHENTICATED", None),
        (403, "PERMISSION_DENIED", None),
        (404, "NOT_FOUND", None),
        (500, "INTERNAL", None),
        (418, "INTERNAL", None),
        (307, "UNAVAILABLE", 2),
    ],
)
def test_errors(all_of_it: tuple[HttpClient, GrpcClient, Any], status: int, code: str, again: int | None) -> None:
    """R531, errors of gRPC: what may be sent again over HTTP may be here, after as long."""
    _, client, backend = all_of_it
    backend.status, backend.answer, backend.headers = status, b"\x08\x0e\x12\x04busy", {"Retry_After": "17"}
    try:
        found = client.send(MESSAGE)
    finally:
        backend.status, backend.answer, backend.headers = Status.OK, b"", {}
    assert (found.code, delay(found.details)) == (code, again)
    read = RpcStatus.FromString(found.details)
    assert (grpc.StatusCode[code].value[0], found.text) == (read.code, read.message)
    assert found.text == ("busy" if status != 307 else "the server that profiles are passed on to answers with 502")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *[("17", 17), ("0", 0), ("99999999999", 3600), ("soon", 2), ("-5", 2), ("", 2)],
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3600),
    ],
)
def test_when_to_come_again(text: str, seconds: int) -> None:
    """Seconds, or a date."""
    assert delay(grpc_status(Passed(429, b"", {"Retry-After": text}))[2]) == seconds


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Are no failures: RESOURCE_EXHAUSTED, and when to come again; HTTP's 503."""
    with http_backend() as (url, backend), doors(tmp_path, url) as (server, client):
        full = {"profiles"}
        was_full = WorkerPool.is_full.fget
        monkeypatch.setattr(WorkerPool, "is_full", property(lambda pool: pool.name in full or was_full(pool)))
        found = client.send(MESSAGE)
        assert (found.code, found.text, delay(found.details)) == (
            "RESOURCE_EXHAUSTED",
            "too many requests; ask again",
            2,
        )
        assert server.ask("POST", PATH, MESSAGE, Content_Type=PROTOBUF).status == Status.SERVICE_UNAVAILABLE
        assert backend.received == []
        full.clear()
        assert client.send(MESSAGE).code == "OK"
        shown = server.ask("GET", "/metrics").body.decode()
        for line in (
            f'symbolize_http_requests_total{{path="{EXPORT}",status="200"}} 1.0',
            f'symbolize_http_requests_total{{path="{EXPORT}",status="429"}} 1.0',
            "symbolize_http_in_flight 1.0",
        ):
            assert line in shown


def test_nobody_behind(tmp_path: Path) -> None:
    """Nothing is acknowledged, and no address given away."""
    gone = f"http://127.0.0.1:{free_port()}{PATH}"
    for number, url in enumerate((gone, f"grpc://127.0.0.1:{free_port()}")):
        (folder := tmp_path / str(number)).mkdir()
        with doors(folder, url) as (_, client):
            found = client.send(MESSAGE)
            assert (found.code, delay(found.details)) == ("UNAVAILABLE", 2)
            assert "127.0.0.1" not in found.text


def test_tokens(tmp_path: Path) -> None:
    """Are those of HTTP."""
    with http_backend() as (url, backend), doors(tmp_path, url, token="secret-secret") as (_, client):
        assert client.send(MESSAGE).code == "UNAUTHENTICATED"
        assert client.send(MESSAGE, authorization="Bearer secret-secreT").code == "UNAUTHENTICATED"
        assert backend.received == []
        assert client.send(MESSAGE, authorization="Bearer secret-secret").code == "OK"
        assert client.send(b"", method=HEALTH).answer == b"\x08\x01"


def test_health(all_of_it: tuple[HttpClient, GrpcClient, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The standard service of gRPC says what `/readyz` says."""
    server, client, _ = all_of_it
    assert client.send(b"\x0a\x03any", method=HEALTH).answer == b"\x08\x01"
    monkeypatch.setattr(WorkerPool, "is_full", True)
    assert server.ask("GET", "/readyz").status == Status.SERVICE_UNAVAILABLE
    assert client.send(b"", method=HEALTH).answer == b"\x08\x02"
    assert client.send(b"", method=f"/{SERVICE}/Import").code == "UNIMPLEMENTED"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HttpClient, GrpcClient, Any]]:
    """A server that takes messages of 1 MiB and has little patience, and is well afterwards."""
    with http_backend() as (url, backend):
        limits: dict[str, Any] = {"body_limit": 1 << 20, "body_seconds": 1}
        with doors(tmp_path_factory.mktemp("small"), url, **limits) as (server, client):
            yield server, client, backend
            assert client.send(MESSAGE).code == "OK"


@pytest.mark.parametrize(
    ("body", "encoding", "code"),
    [
        (os.urandom(3 << 20), "NoCompression", "RESOURCE_EXHAUSTED"),
        (os.urandom(3 << 20), "Gzip", "RESOURCE_EXHAUSTED"),
        (random.Random(1).randbytes(5000), "NoCompression", "INVALID_ARGUMENT"),
        (random.Random(1).randbytes(5000), "Gzip", "INVALID_ARGUMENT"),
        (MESSAGE[:-7], "NoCompression", "INVALID_ARGUMENT"),
        (b"{}", "NoCompression", "INVALID_ARGUMENT"),
        (gzip.compress(MESSAGE)[:-20], "NoCompression", "INVALID_ARGUMENT"),
        (b"\x0a\x00" * (4 << 20), "Gzip", "INVALID_ARGUMENT"),
        (MESSAGE, "Deflate", "UNIMPLEMENTED"),
    ],
    ids=range(9),
)
def test_messages_that_are_none(
    small: tuple[HttpClient, GrpcClient, Any], body: bytes, encoding: str, code: str
) -> None:
    """Have one clear status, and are not to be sent again. A compressed one is not inflated by gRPC (R530, compressed
    messages of gRPC)."""
    _, client, backend = small
    found = client.send(body, encoding)
    assert found.code == code
    assert delay(found.details) is None
    assert "Traceback" not in found.text
    assert backend.received == []


def test_messages_that_are_too_large(small: tuple[HttpClient, GrpcClient, Any]) -> None:
    """Count as what their clients get; of those that are far too large nothing is read."""
    server, client, _ = small
    found = client.send(bytes(2 << 20))
    assert (found.code, found.text) == ("RESOURCE_EXHAUSTED", "the body is larger than 1048576 bytes")
    assert client.send(bytes(BEYOND + (2 << 20))).code == "RESOURCE_EXHAUSTED"
    shown = server.ask("GET", "/metrics").body.decode()
    assert f'symbolize_http_requests_total{{path="{EXPORT}",status="413"}}' in shown


def test_long_texts_of_a_server_behind(all_of_it: tuple[HttpClient, GrpcClient, Any]) -> None:
    """Are cut, or clients refused the whole answer for its metadata."""
    _, client, backend = all_of_it
    backend.status, backend.answer = 400, status_body(400, "\U0001f525" * MAX_TEXT, as_json=False)
    try:
        found = client.send(MESSAGE)
    finally:
        backend.status, backend.answer = Status.OK, b""
    assert (found.code, found.text) == ("INVALID_ARGUMENT", "\U0001f525" * (MAX_TEXT // 4))


def read_until(connection: socket.socket, text: bytes) -> None:
    """Read what a connection has up to a text."""
    said = b""
    while text not in said:
        chunk = connection.recv(1 << 16)
        assert chunk
        said += chunk


def preface(*frames: bytes) -> bytes:
    """The beginning of a connection of HTTP/2."""
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]) + b"".join(frames)


def begun(path: str = EXPORT) -> bytes:
    """The head of a request whose message does not follow."""
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "a", "te": "trailers"}
    fields["content-type"] = "application/grpc"
    block = b"".join(
        b"\x00" + bytes([len(key)]) + key.encode() + bytes([len(value)]) + value.encode()
        for key, value in fields.items()
    )
    return len(block).to_bytes(3, "big") + b"\x01\x04" + (1).to_bytes(4, "big") + block


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 70_000, preface(b"\xff" * 9)], ids=range(4))
def test_connections_that_are_none(
    small: tuple[HttpClient, GrpcClient, Any], sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Do no harm."""
    _, client, _ = small
    with ExitStack() as held:
        for _ in range(50):
            hostile = held.enter_context(socket.create_connection(("127.0.0.1", client.port)))
            try:
                hostile.sendall(sent)
            except ConnectionError:
                pass
        assert client.send(b"", method=HEALTH).code == "OK"


def test_messages_that_do_not_come(small: tuple[HttpClient, GrpcClient, Any]) -> None:
    """Are waited for as long as a body of HTTP is; a client that leaves meanwhile is a client that left."""
    server, client, _ = small
    with socket.create_connection(("127.0.0.1", client.port), timeout=30) as slow:
        slow.sendall(preface(begun()))
        read_until(slow, b"took too long")
    with socket.create_connection(("127.0.0.1", client.port), timeout=30) as left:
        left.sendall(preface(begun()))
        assert left.recv(9)
    for line in (
        f'symbolize_http_requests_total{{path="{EXPORT}",status="408"}} 1.0',
        f'symbolize_http_requests_total{{path="{EXPORT}",status="499"}}',
        "symbolize_http_in_flight 1.0",
    ):
        until = time.monotonic() + 30
        while line not in server.ask("GET", "/metrics").body.decode():
            assert time.monotonic() < until
            time.sleep(0.02)


def test_requests_without_a_message(small: tuple[HttpClient, GrpcClient, Any]) -> None:
    """Are answered."""
    _, client, _ = small
    end = bytes(3) + b"\x00\x01" + (1).to_bytes(4, "big")
    with socket.create_connection(("127.0.0.1", client.port), timeout=30) as connection:
        connection.sendall(preface(begun(), end))
        read_until(connection, b"has no message")


def test_old_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """End when their messages are answered, for those that come next may go to another worker; and of a client that
    goes on for ever some time later."""
    for name in ("grpc.max_connection_age_ms", "grpc.max_connection_age_grace_ms"):
        monkeypatch.setitem(SERVER_OPTIONS, name, SERVER_OPTIONS[name] // 200)
    with http_backend() as (url, backend), doors(tmp_path, url) as (_, client):
        backend.may_answer.clear()
        with client.calling() as call, socket.create_connection(("127.0.0.1", client.port), timeout=30) as endless:
            began = time.monotonic()
            slow = call.future(MESSAGE, timeout=60)
            endless.sendall(preface(begun()))
            read_until(endless, b"max_age")
            backend.may_answer.set()
            assert slow.result() == b""
            with suppress(ConnectionError):
                while endless.recv(1 << 16):
                    pass
            assert time.monotonic() - began < 15  # gRPC itself waits 20 s for what answers no ping


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="the machine has no IPv6")
def test_clients_of_ipv6(tmp_path: Path) -> None:
    """Are in the log as those of HTTP are."""
    port = free_port()
    log = tmp_path / "log"
    more: dict[str, Any] = {"forward": "http://127.0.0.1:1", "otlp_grpc": f"[::1]:{port}", "access_log": str(log)}
    made = settings(tmp_path, BINARIES, **more)
    with serving(made), grpc.insecure_channel(f"[::1]:{port}") as channel, pytest.raises(grpc.RpcError):
        channel.unary_unary(EXPORT)(b"{}", timeout=60)
    assert json.loads(log.read_text().splitlines()[-1])["client"] == "::1"


def test_room_for_messages(tmp_path: Path) -> None:
    """Is there before they are read: others are told when to come again."""
    space = ServerLimits.bodies
    limits: dict[str, Any] = {"body_limit": space, "body_seconds": 20}
    with http_backend() as (url, _), doors(tmp_path, url, **limits) as (server, client), ExitStack() as held:
        fit = space // MAX_MESSAGE
        slow = [held.enter_context(socket.create_connection(("127.0.0.1", client.port))) for _ in range(fit)]
        for each in slow:
            each.sendall(preface(begun()))
        until = time.monotonic() + 30
        while f"symbolize_http_in_flight {fit + 1}.0" not in server.ask("GET", "/metrics").body.decode():
            assert time.monotonic() < until
            time.sleep(0.02)
        found = client.send(MESSAGE)
        assert (found.code, delay(found.details)) == ("RESOURCE_EXHAUSTED", 2)
        slow[0].close()
        while (found := client.send(MESSAGE)).code != "OK":
            assert time.monotonic() < until


def test_clients_that_leave_meanwhile(tmp_path: Path) -> None:
    """What they send again, by either door, is not handed on again once it was taken."""
    with http_backend() as (url, backend), doors(tmp_path, url) as (server, client):
        backend.answer = b"\x0a\x02\x08\x02"
        backend.may_answer.clear()
        with client.calling() as call:
            leaving = call.future(MESSAGE)
            until = time.monotonic() + 30
            while not backend.received:
                assert time.monotonic() < until
                time.sleep(0.01)
            leaving.cancel()
        sending = threading.Thread(target=lambda: answers.append(client.send(MESSAGE)))
        answers: list[Outcome] = []
        sending.start()
        backend.may_answer.set()
        sending.join()
        assert answers == [("OK", "", backend.answer, b"")]
        assert len(backend.received) == 1
        assert client.send(MESSAGE).code == "OK"
        assert len(backend.received) == 2
        kept = tmp_path / "shared" / "delivered"
        while [*kept.iterdir()]:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert 'symbolize_forwarded_total{status="repeated"} 1.0' in server.ask("GET", "/metrics").body.decode()


def test_clients_that_leave_while_the_same_message_is_handed_on(tmp_path: Path) -> None:
    """Do not keep others from the server behind, as slow as it is: a collector waits for 5 s and sends again."""
    with http_backend() as (url, backend), doors(tmp_path, url) as (server, client), client.calling() as call:
        backend.may_answer.clear()
        until = time.monotonic() + 50
        same = [call.future(MESSAGE) for _ in range(9)]
        while 'symbolize_work{lane="forwarding"} 9.0' not in server.ask("GET", "/metrics").body.decode():
            assert time.monotonic() < until
            time.sleep(0.01)
        for each in same:
            each.cancel()
        other = call.future(MESSAGE + b"\xfa\x3e\x03abc")
        while len(backend.received) < 2:
            assert time.monotonic() < until
            assert not other.done()
            time.sleep(0.01)
        backend.may_answer.set()
        assert other.result(60) == b""


def test_a_server_behind_that_speaks_grpc(tmp_path: Path) -> None:
    """Gets the same messages, compressed as they came; its answers come back by both doors."""
    headers = tmp_path / "headers"
    headers.write_text("X-Scope-OrgID: shop\n")
    more: dict[str, Any] = {"headers": str(headers), "authorizes": True}
    with http_backend() as (url, plain), doors(tmp_path, url) as (_, client):
        client.send(MESSAGE)
    with grpc_backend() as (url, backend), doors(tmp_path, url, **more) as (server, client):
        backend.answer = b"\x0a\x02\x08\x02"
        assert client.send(MESSAGE, "Gzip", authorization="Basic abc") == ("OK", "", backend.answer, b"")
        received, metadata = backend.received[-1]
        assert received == plain.received[0][0]
        assert (metadata["x-scope-orgid"], metadata["authorization"]) == ("shop", "Basic abc")
        assert server.ask("POST", PATH, MESSAGE, Content_Type=PROTOBUF).body == backend.answer
        assert backend.received[-1][0] == received
        backend.answer = bytes(1 << 17)
        assert client.send(MESSAGE).code == "UNAVAILABLE"


def status_details(code: int, seconds: int | None, nanoseconds: int = 0) -> bytes:
    """A google.rpc.Status, with a RetryInfo among its details."""
    made = RpcStatus(code=code, message="details")
    if seconds is not None:
        made.details.add(type_url="type.googleapis.com/google.rpc.DebugInfo", value=b"\x0a\x01x")
        info = RetryInfo()
        info.retry_delay.seconds, info.retry_delay.nanos = seconds, nanoseconds
        made.details.add(type_url=RETRY_INFO, value=info.SerializeToString())
        made.details.add(type_url="other")
    return bytes(made.SerializeToString())


@pytest.mark.parametrize(
    ("code", "details", "status", "again"),
    [
        ("RESOURCE_EXHAUSTED", status_details(8, 5), 429, "5"),
        ("RESOURCE_EXHAUSTED", status_details(8, 0, 1), 429, "1"),
        ("RESOURCE_EXHAUSTED", status_details(8, None), 413, None),
        ("RESOURCE_EXHAUSTED", b"", 413, None),
        ("RESOURCE_EXHAUSTED", b"\xff\xff", 413, None),
        ("UNAVAILABLE", status_details(14, 7), 503, "7"),
        ("UNAVAILABLE", status_details(14, 1 << 40), 503, "3600"),
        ("ABORTED", b"", 503, None),
        ("CANCELLED", b"", 503, None),
        ("DATA_LOSS", b"", 503, None),
        ("OUT_OF_RANGE", b"", 503, None),
        ("INVALID_ARGUMENT", b"", 400, None),
        ("UNAUTHENTICATED", b"", 401, None),
        ("PERMISSION_DENIED", b"", 403, None),
        ("UNIMPLEMENTED", b"", 500, None),
        ("UNKNOWN", b"", 500, None),
    ],
)
def test_errors_of_a_server_behind(code: str, details: bytes, status: int, again: str | None) -> None:
    """R531, errors of gRPC, the other way."""
    with grpc_backend() as (url, backend):
        backend.error = grpc.StatusCode[code], "said", details
        passed = Forward(url).post(MESSAGE, "", "")
        assert (passed.status, passed.headers.get("retry-after")) == (status, again)
        assert b"said" in passed.body
        backend.error = grpc.StatusCode.UNAVAILABLE, "said", b""
        with pytest.raises(SymbolizeError, match="does not answer"):
            Forward(url).post(MESSAGE, "", "")


def test_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Are for debuginfod; messages go where `--forward` says, by either protocol."""
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    for backend in (http_backend, grpc_backend):
        with backend() as (url, behind):
            assert Forward(url).post(MESSAGE, "", "").status == Status.OK
            assert len(behind.received) == 1


def test_headers_that_grpc_cannot_have(caplog: pytest.LogCaptureFixture) -> None:
    """Are an error, and no text of it or of the log."""
    with grpc_backend() as (url, backend):
        passed = Forward(url, authorizes=True).post(MESSAGE, "", "Basic s3cret\xe9\n")
        assert (passed.status, backend.received) == (500, [])
    assert "s3cret" not in caplog.text + passed.body.decode()


@pytest.mark.needs("openssl")
def test_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server behind may have it; it is trusted as servers of HTTP are."""
    both = (path := made_certificate(tmp_path)).read_bytes()
    with grpc_backend(grpc.ssl_server_credentials([(both, both)])) as (url, backend):
        with pytest.raises(SymbolizeError, match="does not answer"):
            Forward(url).post(MESSAGE, "", "")
        assert backend.received == []
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        assert Forward(url).post(MESSAGE, "", "").status == Status.OK


@pytest.mark.parametrize("url", ["grpc://host", "grpc://host:0", "grpc://host:1/path", "grpc://a:b@host:1"])
def test_urls_of_grpc(url: str) -> None:
    """Have a host and a port, and nothing else."""
    with pytest.raises(UsageError, match="--forward"):
        Forward(url)


@pytest.mark.parametrize("source", ["debuginfod", "uploads", "store"])
def test_sources(tmp_path: Path, source: str, request: pytest.FixtureRequest) -> None:
    """Names come from wherever the server has binaries from."""
    (empty := tmp_path / "empty").mkdir()
    (uploads := tmp_path / "uploads").mkdir()
    whole = SPECTRA.read_bytes()
    more: dict[str, Any] = {}
    roots: list[Any] = [empty]
    with ExitStack() as held:
        token = "secret-secret" if source == "uploads" else ""
        if source == "debuginfod":
            behind = held.enter_context(serving(settings(empty, BINARIES)))
            more["debuginfod"] = [behind.url]
        elif source == "store":
            bucket = request.getfixturevalue("bucket")
            folder = build_id(SPECTRA)
            bucket.put(f"symbols/{folder[:2]}/{folder[2:]}.debug", data=whole)
            bucket.put(f"symbols/.build-id/{folder[:2]}/{folder[2:]}.debug", data=whole)
            more["debuginfod"] = [f"{bucket.url}/symbols"]
        else:
            more |= {"uploads": str(uploads), "token": token}
        url, backend = held.enter_context(http_backend())
        (folder := tmp_path / "server").mkdir()
        server, client = held.enter_context(doors(folder, url, *roots, **more))
        if source == "uploads":
            path = f"/buildid/{build_id(SPECTRA)}/executable"
            assert server.ask("PUT", path, whole, Authorization=f"Bearer {token}").status == Status.CREATED
        assert client.send(MESSAGE, authorization=f"Bearer {token}").code == "OK"
        tables = service.ExportProfilesServiceRequest.FromString(backend.received[-1][0]).dictionary
        assert len({tables.string_table[each.name_strindex] for each in tables.function_table}) > 10


@pytest.mark.full
def test_workers_that_are_killed(tmp_path: Path) -> None:
    """Lose nothing: clients send again what was not answered, and get it delivered once but for what was in flight."""
    sent, kills, at_once = 60, 3, 3
    with http_backend() as (url, backend):
        port = free_port()
        options = ["--binaries", str(BINARIES), "--forward", url, "--otlp-grpc", f":{port}", "--workers", "2"]
        with symbol_server([*options, "--cache", str(tmp_path)]) as server:
            client, numbers = GrpcClient(port), iter(range(sent))
            lock = threading.Lock()

            def deliver() -> None:
                while True:
                    with lock:
                        number = next(numbers, None)
                    if number is None:
                        return
                    body = MESSAGE + b"\xfa\x3e\x04%04d" % number
                    while (code := client.send(body).code) != "OK":
                        assert code in ("UNAVAILABLE", "RESOURCE_EXHAUSTED"), code
                        time.sleep(0.1)

            threads = [threading.Thread(target=deliver) for _ in range(at_once)]
            for thread in threads:
                thread.start()
            for number in range(1, kills + 1):
                while len(backend.received) < number * sent // (kills + 1):
                    time.sleep(0.01)
                os.kill(server.workers()[0], signal.SIGKILL)
            for thread in threads:
                thread.join()
            assert server.ask("GET", "/healthz").status == Status.OK
            # In order, with what is in flight answered.
            backend.may_answer.clear()
            count = len(backend.received)
            with client.calling() as call:
                last = call.future(MESSAGE)
                while len(backend.received) == count:
                    time.sleep(0.01)
                server.process.terminate()
                time.sleep(0.3)
                backend.may_answer.set()
                assert last.result(60) == b""
            assert server.process.wait(60) == 0
    numbers_of = [body.rpartition(b"\xfa\x3e\x04")[2][:4] for body, _ in backend.received[:count]]
    assert len({*numbers_of}) == sent
    assert len(numbers_of) - sent <= kills * at_once


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--otlp-grpc", ":4317"], "--otlp-grpc needs --forward"),
        (["--otlp-grpc", ":4317x", "--forward", "http://a"], "'4317x' is not a whole number"),
        (["--otlp-grpc", ":0", "--forward", "http://a"], "--otlp-grpc 0: is not from 1 to 65535"),
        (["--otlp-grpc", "0.0.0.0:4317", "--forward", "http://a"], "--otlp-grpc 0.0.0.0: a server that others reach"),
        (["--otlp-grpc", "host:4317", "--forward", "http://a"], "--otlp-grpc host: is no IP address"),
    ],
)
def test_options_that_cannot_be(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, and exit code 2."""
    monkeypatch.delenv("SYMBOLIZE_TOKEN", raising=False)
    with suppress(SystemExit):  # of argparse
        assert main(["serve", "--binaries", str(tmp_path), *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--otlp-grpc", ":4317", "--forward", "http://a"], ["--forward", "grpc://localhost:4317"]]
)
def test_without_grpc(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that names the extra."""
    monkeypatch.setattr("symbolize.cli.serve.find_spec", lambda name: None)
    assert main(["serve", "--binaries", str(tmp_path), *arguments]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "needs the extra grpc" in said[0]


def test_an_address_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 1, and no word of serving: others of this user could listen there too."""
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as taken:
        port = taken.getsockname()[1]
        arguments = ["--binaries", str(tmp_path), "--port", str(free_port()), "--cache", str(tmp_path / "cache")]
        assert main(["serve", *arguments, "--forward", "http://a", "--otlp-grpc", f":{port}"]) == 1
    assert capsys.readouterr().err.splitlines()[-1].endswith(f"--otlp-grpc 127.0.0.1:{port}: Address already in use")

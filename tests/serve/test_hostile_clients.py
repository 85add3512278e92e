"""Clients that are slow, greedy or hostile, and others that they do not harm."""

import asyncio
import gzip
import json
import logging
import socket
import struct
import threading
from collections.abc import Iterator
from http import HTTPStatus as Status
from pathlib import Path
from typing import Any

import pytest

from tests.support.fixture_files import FIXTURES
from tests.support.needs import package
from tests.support.symbol_server import HttpClient, build_id, job, serving, settings

package("starlette")
package("uvicorn")

from starlette.exceptions import HTTPException
from starlette.requests import Request

from symbolize.serve import protocol, request_bodies, worker_pools
from symbolize.serve.app import CHUNK, ResponseBudget
from symbolize.serve.metrics import ServerMetrics

pytestmark = pytest.mark.process

BINARIES = FIXTURES / "bin" / "gcc-pie"
LEDGER = BINARIES / "ledger"
PROFILE = FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof"
HEAD = b"POST /symbolicate/v5 HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
PATIENCE = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpClient]:
    """A server whose patience is short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "HEAD_SECONDS", 0.5)
        patch.setattr(protocol, "LINGER_SECONDS", 0.5)
        patch.setattr(protocol, "STALL_SECONDS", 0.5)
        limits: dict[str, Any] = {"body_limit": 4 << 20, "body_seconds": 0.5, "hosts": []}
        with serving(settings(tmp_path_factory.mktemp("serve"), BINARIES, **limits)) as running:
            yield running
            # Nobody was harmed.
            assert running.symbolicate(job(LEDGER, [0x25D0])).json()["results"][0]["stacks"][0][0]["function"]


def connected(server: HttpClient) -> socket.socket:
    """A connection, on which nobody waits for ever."""
    connection = socket.create_connection(("127.0.0.1", server.port))
    connection.settimeout(PATIENCE)
    return connection


def rest(connection: socket.socket) -> bytes:
    """What comes until the connection ends."""
    data = b""
    try:
        while chunk := connection.recv(1 << 16):
            data += chunk
    except ConnectionError:
        pass
    return data


@pytest.mark.parametrize("begun", [b"", b"G", HEAD, HEAD + b"X-Header: 1", b"\r\n"])
def test_slow_heads(server: HttpClient, begun: bytes) -> None:
    """A connection without a head ends, whatever comes of it."""
    with connected(server) as slow:
        slow.sendall(begun)
        assert rest(slow) == b""


@pytest.mark.parametrize("at_once", [True, False])
def test_a_head_that_comes_after_another_request(server: HttpClient, at_once: bool) -> None:
    """Has to be there in time too, also if it begins after the answer."""
    begun = b"GET /heal"
    with connected(server) as slow:
        slow.sendall(GET + begun if at_once else GET)
        answer = slow.recv(1 << 16)
        if not at_once:
            slow.sendall(begun)
        assert (answer + rest(slow)).count(b"200 OK") == 1


def test_slow_bodies(server: HttpClient) -> None:
    """A body that does not arrive is a timeout, after which the connection ends."""
    with connected(server) as slow:
        slow.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
        assert b" 408 " in rest(slow)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (HEAD + b"X-Header: " + b"x" * (1 << 20), b" 431 "),
        (HEAD + b"X: 1\r\n" * 100_000, b" 431 "),
        (b"GET /" + b"x" * (1 << 20), b" 431 "),
        (HEAD + b"Content-Length: 2x\r\n\r\n{}", b" 400 "),
        (HEAD + b"Content-Length: -1\r\n\r\n{}", b" 400 "),
        (HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n{}", b" 400 "),
        (HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}", b" 400 "),
        (HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b" 400 "),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b" 400 "),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b" 400 "),
        (b"SSH-2.0-x\r\n\r\n", b" 400 "),
        (GET.replace(b"localhost", b"evil.example"), b" 421 "),
        (b"GET /healthz HTTP/1.1\r\n\r\n", b" 421 "),
    ],
    ids=range(13),
)
def test_heads_that_are_none(server: HttpClient, head: bytes, status: bytes) -> None:
    """Are refused, and cost nothing."""
    with connected(server) as hostile:
        try:
            hostile.sendall(head)
        except ConnectionError:
            return  # refused before all of it was sent
        assert status in rest(hostile)[:100] + b" 431 " * (len(head) > 1 << 18)


def test_trailers(server: HttpClient) -> None:
    """Fields behind a body count as those of the head."""
    with connected(server) as hostile:
        hostile.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")
        try:
            for _ in range(100):
                hostile.sendall(b"X: " + b"x" * 10_000 + b"\r\n")
        except ConnectionError:
            return
        assert b" 431 " in rest(hostile)


def test_pipelines(server: HttpClient) -> None:
    """A few requests may wait for the answers before them; many are refused."""
    with connected(server) as client:
        client.sendall(GET * 5)
        assert rest(client).count(b"200 OK") == 5
    with connected(server) as greedy:
        greedy.sendall(GET * 10_000)
        assert rest(greedy).count(b"200 OK") < 100


def test_answers_that_nobody_reads(server: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection ends, and what was to be sent is dropped."""
    ended = threading.Event()
    lost = protocol.GuardedProtocol.connection_lost

    def note(self: protocol.GuardedProtocol, error: Exception | None) -> None:
        lost(self, error)
        ended.set()

    body = json.dumps(job(LEDGER, [0x25D0] * 9000)).encode()
    with connected(server) as greedy:
        monkeypatch.setattr(protocol.GuardedProtocol, "connection_lost", note)
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        greedy.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        # A connection that is only closed would be held until all was read.
        assert ended.wait(PATIENCE)


def test_bodies_behind_a_refusal(server: HttpClient) -> None:
    """What was refused need not be sent to its end."""
    with connected(server) as client:
        client.sendall(b"POST /symbolize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999999\r\n\r\nx")
        assert b" 413 " in rest(client)
    with connected(server) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999999\r\n\r\nx")
        assert b" 200 " in rest(client)


def test_many_connections(server: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those above the limit get an answer, and the others theirs."""
    monkeypatch.setattr(protocol, "most_connections", lambda: 50)
    held = [connected(server) for _ in range(60)]
    try:
        answers = [b""] * 60
        for number, each in enumerate(held):
            try:
                each.sendall(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            except ConnectionError:
                pass
            answers[number] = rest(each)
        assert sum(b"200 OK" in each for each in answers) >= 50
        refused = [each for each in answers if b"200 OK" not in each]
        assert all(b" 503 " in each or not each for each in refused)
    finally:
        for each in held:
            each.close()


def test_requests_that_are_broken_off(server: HttpClient) -> None:
    """In the middle of heads and bodies, and before the answer."""
    body = json.dumps(job(LEDGER, [0x25D0] * 1000)).encode()
    whole = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    for size in (1, 20, len(HEAD) + 10, len(whole) - 1, len(whole)):
        with connected(server) as client:
            client.sendall(whole[:size])
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize(
    "path",
    [
        "/%00",
        "/..",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/buildid/%00/debuginfo",
        f"/buildid/{'ab' * 20}/section/%0d%0aX-Injected:%201",
        f"/buildid/{'ab' * 20}/source/%ff%fe",
        f"/buildid/{'ab' * 20}/source/{'a/' * 5000}",
        "/symbolize?emit=%0d%0aX-Injected:1",
        "/" + "a/" * 10_000,
    ],
)
def test_paths(server: HttpClient, path: str) -> None:
    """Lead to nothing."""
    answer = server.ask("GET", path)
    assert answer.status in (
        Status.NOT_FOUND,
        Status.BAD_REQUEST,
        Status.METHOD_NOT_ALLOWED,
    )
    assert "x-injected" not in answer.headers


def test_compressed_profiles(server: HttpClient) -> None:
    """A profile may be compressed; what expands to too much is refused, as are several in one."""
    plain = server.ask("POST", "/symbolize", PROFILE.read_bytes())
    packed = server.ask("POST", "/symbolize", gzip.compress(PROFILE.read_bytes()), Content_Encoding="gzip")
    assert packed.body == plain.body
    bomb = gzip.compress(gzip.compress(bytes(1 << 28)))
    assert server.ask("POST", "/symbolize", bomb).status == Status.UNPROCESSABLE_ENTITY
    for query, problem in (
        ("emit=html", "emit"),
        ("demangle=x", "demangle"),
        ("force=1", "force"),
        ("sample-type=x", "x"),
    ):
        refused = server.ask("POST", f"/symbolize?{query}", PROFILE.read_bytes())
        assert refused.status == Status.BAD_REQUEST
        assert problem in refused.json()["title"]
    bare = server.ask("POST", "/symbolize?demangle=none", PROFILE.read_bytes())
    assert bare.body != plain.body
    assert int(json.loads(plain.headers["x-symbolize-report"])["symbolized_locations"]) > 0
    assert len(plain.headers["x-symbolize-report"]) <= 8 << 10


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]:80", "localhost:8080", "a.localhost", "LOCALHOST."])
def test_hosts(server: HttpClient, host: str) -> None:
    """Names of this machine are let in."""
    assert server.ask("GET", "/healthz", Host=host).status == Status.OK


@pytest.mark.parametrize("host", ["evillocalhost", "localhost.evil.example", "127.0.0.1.evil.example", "127.1", "."])
def test_other_hosts(server: HttpClient, host: str) -> None:
    """Names that only look like those of this machine are not, since somebody else may have them lead here."""
    assert server.ask("GET", "/healthz", Host=host).status == Status.MISDIRECTED_REQUEST


def test_two_hosts(server: HttpClient) -> None:
    """A request that names two is none: somebody else may go by the other one."""
    with connected(server) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: a.example\r\nConnection: close\r\n\r\n")
        assert b" 400 " in rest(client)[:20]


PROFILER = "https://profiler.firefox.com"


@pytest.mark.parametrize(
    ("more", "origin", "allowed"),
    [
        ({}, PROFILER, PROFILER),
        ({}, "https://a.example", None),
        ({"origins": ["*"]}, "https://a.example", "*"),
        ({"origins": ["https://a.example"]}, "https://a.example", "https://a.example"),
        ({"origins": ["https://a.example"]}, PROFILER, None),
    ],
)
def test_origins(tmp_path: Path, more: dict[str, Any], origin: str, allowed: str | None) -> None:
    """Pages of other origins read only what they may, errors too, and the others ask for nothing."""
    with serving(settings(tmp_path, BINARIES, **more)) as running:
        for body in (b"{}", json.dumps(job(LEDGER, [1])).encode()):
            answer = running.ask("POST", "/symbolicate/v5", body, Origin=origin)
            assert answer.headers.get("access-control-allow-origin") == allowed
            assert (answer.headers.get("vary") == "Origin") == (allowed != "*")  # a cache has one answer for all else
            assert (answer.status == Status.FORBIDDEN) == (allowed is None)
        assert "access-control-allow-origin" not in running.ask("GET", "/metrics", Origin=origin).headers


@pytest.mark.parametrize(
    ("sent", "is_foreign"),
    [
        ({"Origin": "https://evil.example", "Content_Type": "text/plain"}, True),
        ({"Origin": "null"}, True),
        ({"Origin": "http://localhost:3000"}, True),
        ({"Origin": "http://symbols.localhost:8080"}, False),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"}, True),
        ({"Sec_Fetch_Site": "cross-site", "Origin": PROFILER}, False),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}, False),
        ({"Sec_Fetch_Site": "same-origin"}, False),
        ({}, False),
    ],
)
def test_pages(server: HttpClient, sent: dict[str, str], is_foreign: bool) -> None:
    """Of origins that may not ask get nothing done; links to the server are followed, and its own pages may ask."""
    profile, host = PROFILE.read_bytes(), "symbols.localhost:8080"
    posted = server.ask("POST", "/symbolize", profile, Host=host, **sent)
    is_link = sent.get("Sec_Fetch_Mode") == "navigate"  # with a form, which sends something
    assert posted.status == (Status.FORBIDDEN if is_foreign or is_link else Status.OK)
    assert server.ask("GET", "/", Host=host, **sent).status == (Status.FORBIDDEN if is_foreign else Status.OK)
    preflight = server.ask("OPTIONS", "/symbolicate/v5", Host=host, **sent)
    assert (preflight.status == Status.FORBIDDEN) == (is_foreign or is_link)


def test_tokens_in_paths(tmp_path: Path) -> None:
    """A page that cannot send a header has the token in the address, which no log shows."""
    token, log = "a-token-of-the-tests", tmp_path / "log"
    more = {"token": token, "access_log": str(log), "hosts": ["symbols.example"]}
    body = json.dumps(job(LEDGER, [0x25D0])).encode()
    with serving(settings(tmp_path, BINARIES, **more)) as running:
        assert running.ask("POST", "/symbolicate/v5", body).status == Status.UNAUTHORIZED
        assert running.ask("POST", "/another-token/symbolicate/v5", body).status == Status.NOT_FOUND
        assert running.ask("POST", f"/{token}/symbolicate/v5", body, Host="symbols.example").status == Status.OK
        assert running.ask("GET", f"/{token}").status == Status.OK
        preflight = running.ask("OPTIONS", f"/{token}/symbolicate/v5", Origin=PROFILER)
        assert preflight.status == Status.NO_CONTENT
        assert running.ask("POST", "/symbolicate/v5", body, Authorization=f"bearer {token}").status == Status.OK
        assert running.ask("GET", f"/buildid/{build_id(LEDGER)}/executable").status == Status.OK
        assert running.ask("GET", '/a"b%0a{').status == Status.NOT_FOUND
    text = log.read_text()
    assert token not in text
    lines = [json.loads(line) for line in text.splitlines()]
    # A line is written when all was sent, by when the client may have asked again.
    statuses = sorted(line["status"] for line in lines if line["path"] != "/healthz")
    assert statuses == [200, 200, 200, 200, 204, 401, 404, 404]
    assert {*lines[0]} == {"time", "client", "forwarded", "method", "path", "status", "bytes", "seconds"}


def test_status_page(server: HttpClient) -> None:
    """For people: one page that loads and runs nothing."""
    page = server.ask("GET", "/", Accept="text/html")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert b"<script" not in page.body
    assert b"src=" not in page.body
    assert server.ask("GET", "/").headers["content-type"].startswith("text/plain")


def test_readiness(server: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that takes no more bodies says so, and refuses the next one to be asked again."""
    monkeypatch.setattr(request_bodies.RequestBodies, "is_full", True)
    assert server.ask("GET", "/readyz").status == Status.SERVICE_UNAVAILABLE
    assert server.ask("GET", "/healthz").status == Status.OK
    answer = server.symbolicate(job(LEDGER, [1]))
    assert (answer.status, answer.headers["retry-after"]) == (Status.SERVICE_UNAVAILABLE, "2")


@pytest.mark.parametrize(
    ("busy", "status"), [("names", Status.SERVICE_UNAVAILABLE), ("profiles", Status.OK), ("forwarding", Status.OK)]
)
def test_readiness_by_kind(server: HttpClient, monkeypatch: pytest.MonkeyPatch, busy: str, status: int) -> None:
    """A process that refuses profiles for a while, as one is worked on, still answers for names."""
    monkeypatch.setattr(worker_pools.WorkerPool, "is_full", property(lambda pool: pool.name == busy))
    assert server.ask("GET", "/readyz").status == status


@pytest.mark.parametrize(("busy", "status"), [("profiles", b" 503 "), ("names", b" 200 ")])
def test_profiles_that_would_wait(
    server: HttpClient, monkeypatch: pytest.MonkeyPatch, busy: str, status: bytes
) -> None:
    """Are refused before they are sent, whatever requests for names wait for."""
    monkeypatch.setattr(worker_pools.WorkerPool, "is_full", property(lambda pool: pool.name == busy))
    with connected(server) as client:
        client.sendall(b"POST /symbolize HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n")
        client.sendall(b"Content-Length: %d\r\n\r\n" % PROFILE.stat().st_size)
        if busy == "names":
            client.sendall(PROFILE.read_bytes())
        assert status in rest(client)[:20]


def test_bodies_that_grow_together(tmp_path: Path) -> None:
    """None was refused when it began; what is too much in all is refused, and no more counts afterwards."""
    held = request_bodies.RequestBodies(9, 10, PATIENCE, ServerMetrics())

    def request(size: int) -> Request:
        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": bytes(size)}

        return Request({"type": "http", "headers": []}, receive)

    async def grow() -> None:
        async with held.received(request(6), 9) as first:
            with pytest.raises(HTTPException) as refused:
                async with held.received(request(6), 9):
                    pass
            assert refused.value.status_code == Status.SERVICE_UNAVAILABLE
            assert not held.is_full
            assert len(first.read()) == 6
        async with held.received(request(6), 9, str(tmp_path)) as again:
            assert len(again.read()) == 6

    asyncio.run(grow())


def test_answers_that_wait_together() -> None:
    """What clients have not taken counts until they do, or are gone; what is too much in all is refused."""
    outgoing = ResponseBudget(10, ServerMetrics())

    async def wait() -> None:
        taken, sent = asyncio.Event(), []

        async def send(message: Any) -> None:
            sent.append(message)
            await taken.wait()

        waiting = asyncio.create_task(outgoing.response(bytes(6), "text/plain")({}, None, send))  # type: ignore[arg-type]
        gone = asyncio.create_task(outgoing.response(bytes(4), "text/plain")({}, None, send))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        with pytest.raises(HTTPException) as refused:
            outgoing.check()
        assert refused.value.status_code == Status.SERVICE_UNAVAILABLE
        gone.cancel()
        await asyncio.wait([gone])
        outgoing.check()
        with pytest.raises(HTTPException):
            outgoing.response(bytes(5), "text/plain")
        taken.set()
        await waiting
        outgoing.response(bytes(10), "text/plain")
        assert [each.get("body", b"") for each in sent if each.get("body")] == [bytes(6)]

    asyncio.run(wait())


def test_large_answers(server: HttpClient) -> None:
    """Come whole, also if they are taken slowly."""
    body = json.dumps(job(LEDGER, [0x25D0] * 9000)).encode()
    whole = server.ask("POST", "/symbolicate/v5", body).body
    assert len(whole) > 4 * CHUNK
    assert len(json.loads(whole)["results"][0]["stacks"][0]) == 9000
    with connected(server) as slow:
        slow.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        data = b""
        while piece := slow.recv(1 << 12):
            data += piece
        assert data.endswith(whole)


def test_nothing_is_logged_for_bad_requests(server: HttpClient, caplog: pytest.LogCaptureFixture) -> None:
    """Otherwise hostile clients fill disks."""
    with caplog.at_level(logging.ERROR):
        server.ask("POST", "/symbolicate/v5", b"{")
        server.ask("POST", "/symbolize", b"nothing")
        server.ask("GET", "/buildid/zz/debuginfo")
    assert caplog.records == []

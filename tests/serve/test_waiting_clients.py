"""Clients that wait for an answer get it at once, and those that left are not worked for."""

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus as Status
from typing import Any

import pytest

from tests.support.fixture_files import FIXTURES
from tests.support.needs import package
from tests.support.symbol_server import Answer, HttpClient, as_told, serving, settings

package("starlette")
package("uvicorn")

from symbolize.serve import app, worker, worker_pools
from symbolize.serve.protocol import GuardedProtocol

pytestmark = pytest.mark.process

BINARIES = FIXTURES / "bin" / "gcc-pie"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpClient]:
    """A server, on a socket as uvicorn makes it for several workers; profiles come back from it as they were."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "symbolized", as_told)
        patch.setattr(worker_pools, "LINGER", 0.01)
        patch.setattr(worker_pools, "LOOKS", 0.05)
        patch.setattr(worker, "ServerLimits", partial(worker.ServerLimits, answer_seconds=1.0))
        with serving(settings(tmp_path_factory.mktemp("serve"), BINARIES, wait_seconds=0.3)) as running:
            until = time.monotonic() + 60  # its process for profiles may take a while to start
            while running.ask("POST", "/symbolize", b"begin").status != Status.OK and time.monotonic() < until:
                time.sleep(0.1)
            yield running


def begin(server: HttpClient, body: bytes = b"sleep", path: str = "/symbolize") -> socket.socket:
    """Send a profile, for whose answer nobody waits yet."""
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


def busy(server: HttpClient, number: int) -> None:
    """Wait until so many profiles are worked on or wait."""
    until = time.monotonic() + 30
    while f'symbolize_work{{lane="profiles"}} {number}.0' not in metrics(server) and time.monotonic() < until:
        time.sleep(0.01)


def metrics(server: HttpClient) -> str:
    """What the server counts."""
    return server.ask("GET", "/metrics").body.decode()


def test_small_answers_come_at_once(server: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second write of an answer does not wait for the acknowledgement of the first."""
    taken: list[socket.socket] = []
    made = GuardedProtocol.connection_made

    def take(self: GuardedProtocol, transport: Any) -> None:
        made(self, transport)
        taken.append(transport.get_extra_info("socket"))

    monkeypatch.setattr(GuardedProtocol, "connection_made", take)
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("GET", "/healthz")
    assert connection.getresponse().read() == b"ok\n"
    assert [each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for each in taken] == [1]
    connection.close()


def test_work_whose_client_left(server: HttpClient) -> None:
    """What runs is ended, what waits is dropped, and the next client is answered."""
    began = time.monotonic()
    left = [begin(server) for _ in range(3)]
    busy(server, 3)
    for each in left:
        each.close()
    busy(server, 0)
    answer = server.ask("POST", "/symbolize", b"a profile")
    assert (answer.status, answer.body) == (Status.OK, b"a profile")
    assert time.monotonic() - began < 30
    assert 'symbolize_http_requests_total{path="/symbolize",status="499"} 3.0' in metrics(server)


def test_work_that_takes_too_long(server: HttpClient) -> None:
    """Is given up, is refused to be sent again, and is in nobody's way; who waits for it is refused before that."""
    answers: list[Answer] = []
    asking = threading.Thread(target=lambda: answers.append(server.ask("POST", "/symbolize", b"sleep")))
    asking.start()
    busy(server, 1)
    waited = server.ask("POST", "/symbolize", b"a profile")
    asking.join()
    for answer, title in ((waited, "too many requests; ask again"), (answers[0], "the answer takes long; ask again")):
        assert (answer.status, answer.headers["retry-after"]) == (Status.SERVICE_UNAVAILABLE, "2")
        assert answer.json() == {"title": title}
    busy(server, 0)
    assert server.ask("POST", "/symbolize", b"a profile").status == Status.OK


def test_readiness(server: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose work on a profile does not end when it should is not ready."""
    monkeypatch.setattr(worker_pools, "LINGER", 60.0)
    assert server.ask("GET", "/readyz").status == Status.OK
    with begin(server) as waiting:
        assert b" 503 " in waiting.recv(100)
        until = time.monotonic() + 30
        while server.ask("GET", "/readyz").status == Status.OK and time.monotonic() < until:
            time.sleep(0.02)
        assert time.monotonic() < until
    monkeypatch.setattr(worker_pools, "LINGER", 0.01)


def test_large_profiles(server: HttpClient) -> None:
    """The process for profiles reads the file that the body is in, which has no name."""
    body = bytes(range(256)) * 4096
    assert server.ask("POST", "/symbolize", body).body == body

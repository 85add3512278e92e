"""Clients that wait for an answer get it at once, and those that left are not worked for."""

import http.client
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.fixture_files import FIXTURES
from tests.support.symbol_server import HttpClient, serving, settings

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from symbolize.serve.protocol import GuardedProtocol

BINARIES = FIXTURES / "bin" / "gcc-pie"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpClient]:
    """A server, on a socket as uvicorn makes it for several workers."""
    with serving(settings(tmp_path_factory.mktemp("serve"), BINARIES)) as running:
        yield running


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

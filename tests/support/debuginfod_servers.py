"""Debuginfod servers for tests: how they answer, and what a client gets from them."""

import socket
import time
from collections.abc import Callable
from pathlib import Path

from symbolize.binaries.debuginfod import Debuginfod, Fetched, FetchOptions, Limits
from tests.support.fixture_files import BINARIES
from tests.support.http_server import HttpServer, Request
from tests.support.tiny_elf import elf

FILE = (BINARIES / "gcc-pie" / "libresonance.so").read_bytes()
ID = "aa" * 20
OTHER = "bb" * 20
SMALL = elf(bytes.fromhex(ID))

FAST = Limits(
    connect_time=30.0,
    probe_time=30.0,
    answer_time=30.0,
    stall_time=30.0,
    total_time=60.0,
    retries=1,
    first_wait=0.01,
    longest_wait=0.2,
    patience=30.0,
)
"""Hardly a wait between two tries; so much time for what has to come that a busy machine does not run out of it."""


def sends(data: bytes = SMALL, **headers: str) -> Callable[[Request], None]:
    """A server that has the file."""
    return lambda request: request.reply(200, data, **headers)


def says(status: int, **headers: str) -> Callable[[Request], None]:
    """A server that answers with a status."""
    return lambda request: request.reply(status, b"no", **headers)


def in_turn(*behaviours: Callable[[Request], None]) -> Callable[[Request], None]:
    """A server that behaves otherwise each time; in the end as the last."""
    left = list(behaviours)
    return lambda request: (left.pop(0) if len(left) > 1 else left[0])(request)


def fetch(tmp_path: Path, *servers: HttpServer, limits: Limits = FAST, build_id: str = ID) -> Fetched:
    """What a client gets from the servers."""
    with Debuginfod(
        [server.url for server in servers], FetchOptions(cache=tmp_path / "cache", limits=limits)
    ) as client:
        return client.fetch(build_id, "debuginfo")


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something happened, but not for ever."""
    deadline = time.monotonic() + 30
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)


def left_behind(tmp_path: Path) -> list[str]:
    """The files of a build id in the folder, and locks."""
    cache = tmp_path / "cache"
    return sorted(path.name for part in (ID, "symbolize/locks") for path in (cache / part).glob("*"))


def outcome(fetched: Fetched) -> str:
    """What came of the last place that was asked."""
    return fetched.attempts[-1].outcome


def unreachable() -> str:
    """The URL of a port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        return f"http://127.0.0.1:{held.getsockname()[1]}"

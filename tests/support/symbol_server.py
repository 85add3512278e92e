"""A server of `symbolize serve` as a process, and requests to it."""

import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from elftools.elf.elffile import ELFFile

PATIENCE = 60.0
"""Seconds until a server answers that is all right."""


class Answer(NamedTuple):
    """An answer: status, headers with names in lower case, and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


@dataclass
class HttpClient:
    """Asks a server at a port of this machine."""

    port: int

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        """Send a request; `_` in the names of headers stands for `-`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def symbolicate(self, request: Any) -> Answer:
        """Ask for names."""
        return self.ask("POST", "/symbolicate/v5", json.dumps(request).encode())


@dataclass
class SymbolServer(HttpClient):
    """A running server of `symbolize serve`."""

    process: "subprocess.Popen[str]"

    def workers(self) -> list[int]:
        """The ids of its worker processes that hold its socket."""
        children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(children) as file:
            pids = [int(pid) for pid in file.read().split()]
        return [pid for pid in pids if b"spawn_main" in _command_line(pid)]


def _command_line(pid: int) -> bytes:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


def build_id(path: Path) -> str:
    """The build id of a file, as pyelftools reads it."""
    with path.open("rb") as file:
        (note,) = ELFFile(file).get_section_by_name(".note.gnu.build-id").iter_notes()
        return str(note["n_desc"])


def breakpad_id(path: Path) -> str:
    """The build id as Mozilla's clients have it."""
    return uuid.UUID(bytes_le=bytes.fromhex(build_id(path))[:16]).hex.upper() + "0"


def job(path: Path, offsets: list[int]) -> dict[str, Any]:
    """A request for the frames at some offsets of a file."""
    return {"memoryMap": [[path.name, breakpad_id(path)]], "stacks": [[[0, offset] for offset in offsets]]}


def free_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def symbol_server(options: Sequence[str], token: str = "") -> Iterator[SymbolServer]:
    """`symbolize serve` with `options` and one worker, if they name no other number, ended afterwards."""
    port = free_port()
    command = [sys.executable, "-m", "symbolize", "serve", "--port", str(port), "--workers", "1", *options]
    environment = os.environ | ({"SYMBOLIZE_TOKEN": token} if token else {})
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True)
    server = SymbolServer(port, process)
    try:
        wait_until_ready(server)
        yield server
    finally:
        process.terminate()
        process.communicate()


def settings(folder: Path, *binaries: Path, **more: Any) -> Any:
    """A server over some folders with binaries, with its cache in `folder`."""
    from symbolize.serve.worker import ServerSettings

    (folder / "shared").mkdir(exist_ok=True)
    roots = [str(path) for path in binaries]
    return ServerSettings(
        roots, cache=str(folder / "cache"), cache_limit=1 << 30, shared=str(folder / "shared"), **more
    )


@contextmanager
def serving(settings: Any) -> Iterator[HttpClient]:
    """A server with the settings of a worker in a thread of this process, where a test may change its limits."""
    import uvicorn

    from symbolize.serve.protocol import GuardedProtocol
    from symbolize.serve.worker import application

    with socket.create_server(("127.0.0.1", 0)) as listening:
        options: dict[str, Any] = {"ws": "none", "log_config": None, "proxy_headers": False, "timeout_keep_alive": 1}
        config = uvicorn.Config(application(settings), http=GuardedProtocol, **options)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            client = HttpClient(listening.getsockname()[1])
            client.ask("GET", "/healthz")
            yield client
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


def as_told(job: Any) -> Any:
    """In the place of `symbolized` in the process for profiles: `sleep` takes a minute, anything else comes back."""
    from symbolize.serve.profiles import Symbolized

    if job.body == b"sleep":
        time.sleep(60)
    return Symbolized(job.body if isinstance(job.body, bytes) else Path(job.body).read_bytes(), "text/plain", "{}")


def wait_until_ready(server: SymbolServer) -> None:
    """Wait until it answers."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        assert server.process.poll() is None, server.process.stderr and server.process.stderr.read()
        with suppress(OSError, http.client.HTTPException):
            if server.ask("GET", "/readyz").status == http.HTTPStatus.OK:
                return
        time.sleep(0.05)
    raise AssertionError("the server does not answer")

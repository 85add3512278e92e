"""A web server on a loopback port that misbehaves as a test wants, down to the bytes."""

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

HANG = 120.0
"""Seconds for which a server keeps silent: more than any client that works stays, and it ends one that does not."""


class Request(NamedTuple):
    """A request: its path, its headers with names in lower case, the connection to answer on, and what came of the body
    together with the head."""

    path: str
    headers: Mapping[str, str]
    connection: socket.socket
    begun: bytes = b""

    def body(self) -> bytes:
        """The body, as long as its head says."""
        data = self.begun
        while len(data) < int(self.headers["content-length"]) and (chunk := self.connection.recv(1 << 16)):
            data += chunk
        return data

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        """An orderly answer; `_` in the names of headers stands for `-`."""
        self.head(status, Content_Length=str(len(body)), **headers)
        self.send(body)

    def head(self, status: int, **headers: str) -> None:
        """The head of an answer, without a length if none is given."""
        lines = [f"HTTP/1.1 {status} Whatever", *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
        self.send(("\r\n".join([*lines, "Connection: close"]) + "\r\n\r\n").encode())

    def send(self, data: bytes) -> None:
        """Some bytes; whether anybody still reads them does not matter."""
        with suppress(OSError):
            self.connection.sendall(data)

    def hang(self) -> None:
        """Say nothing more until the client goes."""
        with suppress(OSError):
            self.connection.settimeout(HANG)
            self.connection.recv(1)

    def drip(self, data: bytes, pause: float) -> bool:
        """The bytes one by one; False if nobody reads them any more."""
        try:
            for byte in data:
                self.connection.sendall(bytes([byte]))
                time.sleep(pause)
        except OSError:
            return False
        return True


@dataclass(eq=False)
class HttpServer:
    """Answers `GET /` with 200 and everything else with `behave`; by TLS with a `certificate`.

    `requests` are those without `GET /`. At `port`, if that is given: that of a server that was closed, as if it came
    back.
    """

    behave: Callable[[Request], None]
    probe: Callable[[Request], None] = lambda request: request.reply(200)
    requests: list[Request] = field(default_factory=list)
    certificate: Path | None = None
    port: int = 0

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", self.port))
        if self.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.certificate)
            self._socket = context.wrap_socket(self._socket, server_side=True)
        self.port = self._socket.getsockname()[1]
        self._open: list[socket.socket] = [self._socket]
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http{'s' if self.certificate else ''}://127.0.0.1:{self.port}"

    @property
    def asked(self) -> list[str]:
        """The paths that were asked for."""
        return [request.path for request in self.requests]

    def _serve(self) -> None:
        while self._socket.fileno() >= 0:
            with suppress(OSError):  # closed, or a handshake that failed
                connection, _ = self._socket.accept()
                self._open.append(connection)
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        data = b""
        with suppress(OSError, ValueError), connection:
            while b"\r\n\r\n" not in data:
                chunk = connection.recv(65536)
                if not chunk:
                    return
                data += chunk
            head, _, begun = data.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            request = Request(first.split()[1], headers, connection, begun)
            if request.path == "/":
                self.probe(request)
            else:
                self.requests.append(request)
                self.behave(request)


def made_certificate(folder: Path) -> Path:
    """A certificate for localhost, with its key, that nobody signed."""
    path = folder / "certificate.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        "-",
        "-days",
        "2",
        "-subj",
        "/CN=x",
    ]
    made = subprocess.run([*command, "-addext", "subjectAltName=DNS:localhost"], capture_output=True, check=True)
    path.write_bytes(made.stdout)
    return path

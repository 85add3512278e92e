"""An S3 server on a loopback port that fails as a test wants, in front of one that does not."""

import http.client
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

ERROR = "<?xml version='1.0'?><Error><Code>{}</Code><Message>{}</Message><RequestId>1</RequestId></Error>"
CODES = {"denied": (403, "AccessDenied"), "no-bucket": (404, "NoSuchBucket"), "overloaded": (503, "SlowDown")}
FAILURES = ("denied", "no-bucket", "overloaded", "breaks", "hangs", "slow", "stops")
"""How requests may fail: three kinds of answers, a connection that is broken off, no answer, one byte at a time, and an
answer that ends half-way."""

Fails = Callable[[str, str], str]
"""How the request with a method and a path fails; empty if it does not."""


class StoreProxy:
    """Hands requests on to the server at `url`, but for those that fail as `fails` says. A context manager."""

    def __init__(self, url: str, fails: Fails) -> None:
        self.fails = fails
        self.failed: list[str] = []
        self.over = threading.Event()
        self.target = urlsplit(url).netloc
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    proxy: StoreProxy

    def handle_one_request(self) -> None:
        """Answer a request; that the other side has gone away does not matter."""
        with suppress(OSError):
            super().handle_one_request()
            return
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def answer(self) -> None:
        """Hand on a request, or fail."""
        how = self.proxy.fails(self.command, self.path)
        if how:
            self.proxy.failed.append(how)
            self.close_connection = True
        if how == "hangs":
            self.proxy.over.wait(30)
            return
        if how == "breaks":
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if how in CODES:
            status, code = CODES[how]
            self.reply(status, {}, ERROR.format(code, code).encode())
            return
        upstream = http.client.HTTPConnection(self.proxy.target, timeout=30)
        upstream.request(self.command, self.path, body, dict(self.headers))
        answer = upstream.getresponse()
        self.reply(answer.status, dict(answer.getheaders()), answer.read(), how)
        upstream.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer

    def reply(self, status: int, headers: dict[str, Any], body: bytes, how: str = "") -> None:
        """Send an answer, all of it, byte by byte, or the first half."""
        headers = {name.title(): value for name, value in headers.items()}
        headers.pop("Transfer-Encoding", None)
        headers.setdefault("Content-Length", str(len(body)))
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        data = b"".join(self._headers_buffer) + b"\r\n" + (b"" if self.command == "HEAD" else body)
        self._headers_buffer.clear()
        if how == "slow":
            for byte in data:
                if self.proxy.over.wait(0.05):
                    return
                self.wfile.write(bytes([byte]))
        self.wfile.write(data[: len(data) // 2] if how == "stops" else data)

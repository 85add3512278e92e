"""Where the figures of a batch are read: a file that is renewed, or a small web server."""

from __future__ import annotations

import io
import socket
import socketserver
import threading
import time
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from symbolize.batch.seen.metrics import CONTENT_TYPE, Metrics
from symbolize.batch.seen.watchers import Silent, Warn
from symbolize.errors import OutputError, UsageError
from symbolize.write.files import output_file

LOOPBACK: Final = "127.0.0.1"
EVERY: Final = 5.0
"""Seconds from one version of the file to the next."""

MAX_HEAD: Final = 8192
"""Bytes of a request; scrapers send a few hundred."""
MAX_SECONDS: Final = 5.0
"""How long a client may take for its request, and for each piece of the answer."""
MAX_CLIENTS: Final = 8
"""Clients at a time; more are turned away."""

TEXT: Final = "text/plain; charset=utf-8"


class MetricsFile(Silent):
    """Writes the figures of `metrics` to the file `name` every few seconds, and when closed; never half of them.

    Close it after `metrics`, so that the last version says that the batch is over. What cannot be written costs one
    warning; but a file that cannot be written to begin with raises OutputError.
    """

    def __init__(self, metrics: Metrics, name: str, warn: Warn, every: float = EVERY) -> None:
        self._metrics = metrics
        self._name = name
        self._warn = warn
        self._every = every
        self._has_warned = False
        self._over = threading.Event()
        self._write()
        self._thread = threading.Thread(target=self._run, name="metrics-file", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write the file a last time."""
        if not self._over.is_set():
            self._over.set()
            self._thread.join()
            self._try()

    def _run(self) -> None:
        while not self._over.wait(self._every):
            self._try()

    def _write(self) -> None:
        with output_file(self._name) as file:
            file.write(self._metrics.render())

    def _try(self) -> None:
        try:
            self._write()
        except OutputError as error:
            if not self._has_warned:
                self._has_warned = True
                self._warn(str(error))


class MetricsServer(Silent):
    """Serves the figures of `metrics` at `/metrics`, and `ok` at `/healthz`, to GET requests and nothing else.

    `port` 0 takes any free one. `port` is the one taken, and `url` where the figures are. Raises UsageError where it
    cannot listen.
    """

    def __init__(self, metrics: Metrics, port: int, address: str = LOOPBACK) -> None:
        try:
            self._server = _Server(metrics, address, port)
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"{address} port {port}: cannot listen there: {reason}") from error
        self.port = int(self._server.server_address[1])
        self.url = f"http://{f'[{address}]' if ':' in address else address}:{self.port}/metrics"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="metrics-server", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop to listen."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """A server with few clients at a time, none of which it tells anything about itself."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_port = False
    request_queue_size = 64

    def __init__(self, metrics: Metrics, address: str, port: int) -> None:
        self.metrics = metrics
        self._free = threading.BoundedSemaphore(MAX_CLIENTS)
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        """Bind without looking for the name of the host, which asks servers."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a request in a thread, if not too many are."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle a request in the thread for it."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nobody has to know of a client that went away."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one request. The connection is closed after it."""

    server: _Server
    server_version = "symbolize"
    sys_version = ""

    def setup(self) -> None:
        """Read the head of the request, of limited size in limited time."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BytesIO(_head(self.request))
        self.request.settimeout(MAX_SECONDS)

    def parse_request(self) -> bool:
        """Answer all but GET requests right away."""
        if not super().parse_request():
            return False
        if self.command != "GET":
            self.send_error(HTTPStatus.NOT_FOUND)
            return False
        return True

    def do_GET(self) -> None:
        """Answer a request."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(HTTPStatus.OK, CONTENT_TYPE, self.server.metrics.render())
        elif path == "/healthz":
            self._answer(HTTPStatus.OK, TEXT, b"ok\n")
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """An answer that does not repeat what was asked."""
        self._answer(HTTPStatus(code), TEXT, HTTPStatus(code).phrase.lower().encode() + b"\n")

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        if self.request_version == "HTTP/0.9":  # or a line that is no request at all
            self.request_version = self.protocol_version
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""


def _head(connection: socket.socket) -> bytes:
    """The head of a request, or nothing if it does not come as a whole."""
    end = time.monotonic() + MAX_SECONDS
    data = b""
    with suppress(OSError):
        while len(data) <= MAX_HEAD:
            connection.settimeout(max(end - time.monotonic(), 0.001))
            piece = connection.recv(MAX_HEAD)
            data += piece
            if b"\r\n\r\n" in data or b"\n\n" in data:
                return data if len(data) <= MAX_HEAD else b""
            if not piece:
                return b""
    return b""

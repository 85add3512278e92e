"""The metrics of a batch in a file, or served over HTTP."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import make_wsgi_app

from symbolize.batch.monitoring.metrics import Metrics
from symbolize.batch.monitoring.observers import Observer, Warn
from symbolize.core.errors import OutputError, UsageError
from symbolize.core.files import os_error_text
from symbolize.formats.files import output_file

LOOPBACK: Final = "127.0.0.1"
INTERVAL: Final = 5.0
"""Seconds between two versions of the file."""
MAX_SECONDS: Final = 5.0
"""Seconds that a client may be silent in a request; a request may take twice as long."""
MAX_CLIENTS: Final = 8
"""Requests at a time; further connections are closed."""


class MetricsFile(Observer):
    """Writes `metrics` to the file `name` every few seconds, and when closed; each version whole.

    Close it after `metrics`, so that the last version reports that the batch is over. Raises OutputError if the file
    cannot be written at first; later there is one warning.
    """

    def __init__(self, metrics: Metrics, name: str, warn: Warn, every: float = INTERVAL) -> None:
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


class MetricsServer(Observer):
    """Serves the metrics at `url`. Port 0 takes any free one. Raises UsageError if it cannot listen."""

    def __init__(self, metrics: Metrics, port: int, address: str = LOOPBACK) -> None:
        try:
            self._server = _Server(address, port)
        except (OSError, OverflowError, UnicodeError) as error:
            text = os_error_text(error) if isinstance(error, OSError) else "there is no such address or port"
            raise UsageError(f"{address} port {port}: cannot listen there: {text}") from error
        self._server.set_app(make_wsgi_app(metrics.registry))
        self.port = self._server.server_port
        self.url = f"http://{f'[{address}]' if ':' in address else address}:{self.port}/metrics"
        threading.Thread(target=self._server.serve_forever, args=(0.1,), name="metrics-server", daemon=True).start()

    def close(self) -> None:
        """Stop to listen."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(WSGIRequestHandler):
    """Answers one request, in limited time."""

    timeout = MAX_SECONDS

    def setup(self) -> None:
        """Limit the time of the whole request too, for a client that sends a byte now and then."""
        super().setup()
        self._timer = threading.Timer(2 * MAX_SECONDS, self._end)
        self._timer.daemon = True
        self._timer.start()

    def finish(self) -> None:
        """Stop the timer."""
        self._timer.cancel()
        super().finish()

    def _end(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""


class _Server(ThreadingMixIn, WSGIServer):
    """A server of few clients at a time."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_port = False
    request_queue_size = 64

    def __init__(self, address: str, port: int) -> None:
        self._free = threading.BoundedSemaphore(MAX_CLIENTS)
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        """Bind without looking up the name of the host, which could wait for DNS."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Handle a request in a thread, unless there are too many."""
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
        """Errors of clients are not reported."""

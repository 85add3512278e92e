"""HTTP connections whose peers may be slow or hostile: heads, idle time, unread answers and number have limits."""

import asyncio
import resource
import socket
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_CONNECTIONS: Final = 4096
"""Connections of one worker, if it may have so many descriptors."""
MAX_GRPC_CONNECTIONS: Final = 1024
"""Those of gRPC, which has a port of its own."""
DESCRIPTORS: Final = 1024 + MAX_GRPC_CONNECTIONS
"""Those that are kept for them, for binaries, their tables and the index."""
MAX_HEAD: Final = 32 << 10
"""Bytes of the head of a request, and of the fields behind its body."""
MAX_PIPELINED: Final = 8
"""Requests that wait for the answer to an earlier one of their connection."""
HEAD_SECONDS: Final = 10.0
"""From a connection, or the end of a request, until the next head is there, once it has begun."""
LINGER_SECONDS: Final = 5.0
MAX_UNREAD: Final = 64 << 20
"""Seconds and bytes for which the rest of a body is read that was answered already, so that the answer arrives."""
STALL_SECONDS: Final = 30.0
MIN_RATE: Final = 4096
"""Bytes of an answer that a client has to take in a second, over `STALL_SECONDS`."""

REFUSAL: Final = (
    b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
    b"Retry-After: 2\r\nConnection: close\r\n\r\n%s"
)
BUSY: Final = b'{"title":"too many connections; ask again"}'
TOO_LARGE: Final = b'{"title":"the head of the request is too large"}'


CONNECTION: Final = "symbolize.connection"
"""What requests have the protocol of their connection as."""


class HeadError(Exception):
    """A head or trailer that is too large, or too many requests at once."""


@cache
def most_connections() -> int:
    """How many connections a worker takes."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_CONNECTIONS if soft < 0 else max(min(MAX_CONNECTIONS, soft - DESCRIPTORS), soft // 2)


def allow_descriptors() -> None:
    """Let this process and those that it starts have as many descriptors as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + DESCRIPTORS
    if 0 <= soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard < 0 else min(wanted, hard), hard))


class GuardedProtocol(HttpToolsProtocol):
    """The protocol of uvicorn with limits that it lacks."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_in_head, self._is_in_body = True, False
        self._head = self._fields = self._unread = 0
        self._is_too_large = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self.if_unread: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, unless there are too many."""
        super().connection_made(transport)
        # asyncio does so only for listening sockets that name their protocol. Head and body are two writes, the second
        # of which would wait for the acknowledgement of the first, which clients delay by 40 ms.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > most_connections():
            self._refuse(b"503 Service Unavailable", BUSY)
            return
        self._arm("head", HEAD_SECONDS, self._end_slow_head)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget all timers; and call `if_unread` if the client cannot have read the last answer."""
        for name in [*self._timers]:
            self._disarm(name)
        super().connection_lost(exc)
        if exc is not None and self.if_unread is not None:
            self.if_unread()

    @property
    def has_ended(self) -> bool:
        """Whether the client has closed the connection, also if that is to be noticed yet."""
        if self.transport.is_closing():
            return True
        try:
            with self.transport.get_extra_info("socket").dup() as connection:
                return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def data_received(self, data: bytes) -> None:
        """Read on, as long as heads are not too large and come in time."""
        if self.transport.is_closing():
            return
        if self._is_in_head:
            self._head += len(data)
            if "head" not in self._timers:
                self._arm("head", HEAD_SECONDS, self._end_slow_head)
        super().data_received(data)
        if self._is_in_head and self._head > MAX_HEAD and not self.transport.is_closing():
            self._refuse(b"431 Request Header Fields Too Large", TOO_LARGE)

    def on_url(self, url: bytes) -> None:
        """Count what is in a head."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count what is in a head, or behind a body."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def _count(self, size: int) -> None:
        self._fields += size
        if self._fields > MAX_HEAD:
            self._is_too_large = True
            raise HeadError

    def on_headers_complete(self) -> None:
        """Begin with a request, unless too many wait."""
        if len(self.pipeline) >= MAX_PIPELINED:
            raise HeadError
        self._is_in_head, self._is_in_body, self._unread = False, True, 0
        self._disarm("head")
        self.scope[CONNECTION] = self  # type: ignore[typeddict-unknown-key]
        self.if_unread = None
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Drop what follows an answer, up to a number of bytes."""
        if self.cycle.response_complete:
            self._unread += len(body)
            if self._unread > MAX_UNREAD:
                self.transport.close()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect the next head."""
        self._is_in_head, self._is_in_body = True, False
        self._head = self._fields = 0
        self._disarm("linger")
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """A request that was answered before its end has a little time to end."""
        super().on_response_complete()
        if self._is_in_body and not self.transport.is_closing():
            self._arm("linger", LINGER_SECONDS, self.transport.close)

    def pause_writing(self) -> None:
        """The client does not take what it asked for: see how long."""
        super().pause_writing()
        self._watch(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """It took it."""
        self._disarm("stall")
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, or too much of it."""
        if self._is_too_large:
            self._refuse(b"431 Request Header Fields Too Large", TOO_LARGE)
        else:
            super().send_400_response(msg)

    def _watch(self, size: int) -> None:
        def look() -> None:
            now = self.transport.get_write_buffer_size()
            if size - now < MIN_RATE * STALL_SECONDS:
                self.transport.abort()
            else:
                self._watch(now)

        self._arm("stall", STALL_SECONDS, look)

    def _end_slow_head(self) -> None:
        self._timers.pop("head", None)
        if self.cycle is not None and not self.cycle.response_complete:
            self._arm("head", HEAD_SECONDS, self._end_slow_head)
        else:
            self.transport.abort()

    def _refuse(self, status: bytes, body: bytes) -> None:
        self.transport.write(REFUSAL % (status, len(body), body))
        self.transport.close()

    def _arm(self, name: str, seconds: float, action: Any) -> None:
        self._disarm(name)
        self._timers[name] = self.loop.call_later(seconds, action)

    def _disarm(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

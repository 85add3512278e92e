"""One HTTP request with everything bounded: redirects, waiting, bytes. The only module that knows urllib3."""

import re
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)

from symbolize.binaries.debuginfod.cache import FileTooLarge
from symbolize.binaries.debuginfod.server import DEFAULT_PORTS, Limits, Origin, Server, origin_of, url_of
from symbolize.binaries.unpack import LIMITS
from symbolize.core.compression import GZIP, CompressionError, Counted, CutShort, inflate
from symbolize.core.errors import UsageError, printable

MAX_REDIRECTS = 3
CHUNK = 1 << 16
FIRST_BYTES = 100_000
"""So many bytes, or all, have to come within the time in which a server has to answer."""
REDIRECTS = frozenset({301, 302, 303, 307, 308})


class NetworkFailure(Exception):
    """The server could not be reached, or the connection broke, stalled or took too long."""


class Refused(Exception):
    """The answer is none that we take."""


class Cancelled(Exception):
    """The call was ended from another thread."""


class Call:
    """A request that another thread can end, in whatever it waits for."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self.reason = ""

    def cancel(self, reason: str = "") -> None:
        """End the call. With a `reason` it counts as a network failure."""
        with self._lock:
            if self._ended.is_set():
                return
            self.reason = reason
            self._ended.set()
            for each in self._sockets:
                shut(each)

    def uses(self, used: Any) -> None:
        """Remember the socket that the call waits on."""
        with self._lock:
            if isinstance(used, socket.socket) and used not in self._sockets:
                self._sockets.append(used)
                if self._ended.is_set():
                    shut(used)

    def forget(self) -> None:
        """The sockets are not the call's any more."""
        with self._lock:
            self._sockets.clear()

    def set_timeout(self, seconds: float) -> None:
        """How long a single wait for bytes may take from now on."""
        with self._lock, suppress(OSError):
            for each in self._sockets:
                each.settimeout(seconds)

    def sleep(self, seconds: float) -> None:
        """Wait, unless the call is ended."""
        self._ended.wait(seconds)
        self.check()

    def check(self) -> None:
        """Raise if the call was ended: Cancelled, or NetworkFailure where that was for a reason."""
        if self._ended.is_set():
            raise NetworkFailure(self.reason) if self.reason else Cancelled


def shut(used: socket.socket) -> None:
    """Wake who waits on a socket. That of TLS is not to say goodbye first, its other thread is in the middle of it."""
    with suppress(OSError):
        socket.socket.shutdown(used, socket.SHUT_RDWR)


_thread = threading.local()
"""`call`: the call that the thread is in."""


class _Noted:
    """A connection that notes its socket for the call of its thread, when it connects and when it is reused."""

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]
        note_socket(self)

    def request(self, *args: Any, **options: Any) -> None:
        note_socket(self)
        super().request(*args, **options)  # type: ignore[misc]


class _Connection(_Noted, HTTPConnection):
    pass


class _SecureConnection(_Noted, HTTPSConnection):
    pass


def note_socket(connection: Any) -> None:
    """Tell the call of this thread which socket a connection uses."""
    call = getattr(_thread, "call", None)
    if call is not None:
        call.uses(connection.sock)


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class HttpAnswer:
    """The head of an HTTP answer. `body` reads the rest; `close` has to follow."""

    def __init__(self, response: Any, call: Call) -> None:
        self._response = response
        self._call = call
        self._done = False
        self.status = int(response.status)

    def header(self, name: str) -> str:
        """A header, without control characters; empty if there is none."""
        return printable(str(self._response.headers.get(name, "")))[:1000]

    def number(self, name: str) -> int | None:
        """A header that is a number, None if it is none."""
        text = self.header(name).strip()
        return int(text) if re.fullmatch(r"[0-9]{1,19}", text) else None

    @property
    def encoding(self) -> str:
        """How the body is encoded, "" for not at all."""
        text = self.header("Content-Encoding").strip().lower()
        return "" if text == "identity" else text

    @property
    def validator(self) -> str:
        """What identifies the file as it is, for If-Range: a strong ETag, else Last-Modified; empty for none, and for
        what comes encoded, of which a part is no part of the file."""
        tag = self.header("ETag").strip()
        return "" if self.encoding else tag if tag.startswith('"') else self.header("Last-Modified").strip()

    @property
    def begin(self) -> int | None:
        """Where the part that comes begins in the file, which is 0 for a whole file; None for a part that is none."""
        if self.status != HTTPStatus.PARTIAL_CONTENT:
            return 0
        match = re.fullmatch(
            r"bytes ([0-9]{1,19})-[0-9]{1,19}/(?:[0-9]{1,19}|\*)", self.header("Content-Range").strip()
        )
        return int(match[1]) if match and not self.encoding else None

    @property
    def announced(self) -> int | None:
        """Bytes that the file has, if the server says so; the larger number if it says two."""
        length = None if self.encoding else self.number("Content-Length")
        sizes = [self.number("X-DEBUGINFOD-SIZE"), None if length is None else length + (self.begin or 0)]
        known = [size for size in sizes if size is not None]
        return max(known) if known else None

    def body(self, limit: int, limits: Limits) -> Iterator[bytes]:
        """The file, decoded, at most `limit` bytes of it.

        A body with a content encoding may expand to 64 times what came, and 16 MiB in addition (R282, checked
        downloads).

        Raises NetworkFailure if it comes too slowly for `limits`, or the connection breaks; FileTooLarge; Refused.
        """
        if self.encoding not in ("", "gzip", "x-gzip"):
            raise Refused(f"content encoding {self.encoding!r} was not asked for")
        announced = self.announced
        if announced is not None and announced > limit:
            raise FileTooLarge(f"{announced:,} bytes announced, {limit:,} allowed")
        # Encoded content may be a little longer than the file.
        raw = self._raw(limit + (limit >> 8) + CHUNK, limits)
        came = Counted(raw)
        count = self.begin or 0
        for data in _inflated(came) if self.encoding else raw:
            count += len(data)
            if count > limit:
                raise FileTooLarge(f"more than the {limit:,} bytes allowed")
            yield data
        if not count and self.number("Content-Length") is None:
            raise NetworkFailure("nothing came")
        size = self.number("X-DEBUGINFOD-SIZE")
        if size is not None and size != count:
            raise NetworkFailure(f"cut off: {count:,} of {size:,} bytes")
        self._done = True

    def _raw(self, limit: int, limits: Limits) -> Iterator[bytes]:
        length, count, stall_time, total = self.number("Content-Length"), 0, limits.stall_time, limits.total_time
        began = since = time.monotonic()
        at = 0
        self._call.set_timeout(stall_time)
        while True:
            try:
                data = self._response.read1(CHUNK, decode_content=False)
            except (HTTPError, OSError, ValueError, AttributeError) as error:
                self._call.check()
                if isinstance(error, ReadTimeoutError | TimeoutError):
                    raise NetworkFailure(f"stalled: nothing came for {stall_time:g} s") from None
                if length is not None:
                    raise NetworkFailure(f"cut off: {count:,} of {length:,} bytes") from None
                raise NetworkFailure(f"cut off after {count:,} bytes: {explain(error, stall_time)}") from None
            self._call.check()
            if not data:
                break
            count += len(data)
            if count > limit:
                raise FileTooLarge(f"more than {limit:,} bytes")
            yield data
            now = time.monotonic()
            if now - since >= stall_time:
                if count - at < limits.min_rate * (now - since):
                    raise NetworkFailure(f"stalled: {count - at:,} bytes in {now - since:.0f} s")
                since, at = now, count
            if now - began > total:
                raise NetworkFailure(f"not done after {total:g} s, {count:,} bytes came")
            if count < FIRST_BYTES and now - began > limits.answer_time:
                raise NetworkFailure(f"stalled: only {count:,} bytes in {limits.answer_time:g} s")
        if length is not None and count != length:
            raise NetworkFailure(f"cut off: {count:,} of {length:,} bytes")

    def close(self) -> None:
        """Give the connection back, or close it if the body was not read to its end."""
        self._call.forget()
        with suppress(HTTPError, OSError, ValueError, AttributeError):
            if self._done:
                self._response.release_conn()
            else:
                self._response.close()


class Transport:
    """Sends requests to `servers`, and follows redirects among their hosts only."""

    def __init__(
        self,
        servers: Iterable[Server],
        headers: Mapping[str, str],
        connect_time: float,
        proxies: Mapping[str, str] | None = None,
    ) -> None:
        """`proxies` has URLs for `http`, `https` and `all`, and in `no` the hosts that need none.

        Raises UsageError for a proxy that is none.
        """
        self._origins = {server.origin for server in servers}
        self._headers = dict(headers)
        self._connect_time = connect_time
        self._lock = threading.Lock()
        self._calls: set[Call] = set()
        self.closed = False
        self._without = (proxies or {}).get("no", "")
        self._direct = with_our_pools(urllib3.PoolManager(num_pools=16, maxsize=8, retries=False))
        self._proxied = {
            scheme: through(text)
            for scheme in DEFAULT_PORTS
            if (text := (proxies or {}).get(scheme) or (proxies or {}).get("all", ""))
        }

    def new_call(self) -> Call:
        """A call that `cancel_all` ends."""
        call = Call()
        with self._lock:
            self._calls.add(call)
            if self.closed:
                call.cancel()
        return call

    def end_call(self, call: Call) -> None:
        """The call is over."""
        with self._lock:
            self._calls.discard(call)

    def cancel_all(self) -> None:
        """End all calls, now and in the future."""
        with self._lock:
            self.closed = True
            calls = list(self._calls)
        for call in calls:
            call.cancel()

    def close(self) -> None:
        """End all calls and close idle connections."""
        self.cancel_all()
        for pools in (self._direct, *self._proxied.values()):
            pools.clear()

    def get(self, server: Server, path: str, call: Call, answer_time: float, headers: Mapping[str, str]) -> HttpAnswer:
        """The answer to a GET of `path` below the URL of the server.

        Raises NetworkFailure, Refused for a redirect that is not followed, Cancelled.
        """
        url = server.url + path
        for _ in range(MAX_REDIRECTS + 1):
            response = self._send(server, url, call, answer_time, headers)
            if response.status not in REDIRECTS:
                return HttpAnswer(response, call)
            target = str(response.headers.get("Location", ""))
            HttpAnswer(response, call).close()
            url = self._redirected(url, target)
        raise Refused(f"more than {MAX_REDIRECTS} redirects")

    def _redirected(self, url: str, target: str) -> str:
        """The URL that a redirect leads to. Raises Refused if that is none to go to."""
        try:
            parts = urlsplit(urljoin(url, target))
            origin = origin_of(parts)
            came_from = origin_of(urlsplit(url))
        except ValueError:
            origin = came_from = None
        if not target or origin is None or came_from is None or not re.fullmatch(r"[\x21-\x7e]+", target):
            raise Refused(f"redirect to {printable(target)[:80]!r}, which is no http URL")
        if not self._may_go_to(origin):
            raise Refused(f"redirect to {url_of(origin)}, which is none of the servers given")
        if came_from[0] == "https" and origin[0] == "http":
            raise Refused(f"redirect from https to {url_of(origin)}")
        query = f"?{parts.query}" if parts.query else ""
        return url_of(origin) + (parts.path or "/") + query

    def _may_go_to(self, origin: Origin) -> bool:
        """Whether the host is one of the servers', and the port one of its or the usual one of the scheme."""
        ports = {port for _, host, port in self._origins if host == origin[1]}
        return bool(ports) and (origin[2] in ports or origin[2] == DEFAULT_PORTS[origin[0]])

    def route(self, server: Server) -> str:
        """What distinguishes the routes to a server: its URL and the proxy's, without passwords."""
        pools = self._pools(urlsplit(server.url))
        return server.url if pools is self._direct else f"{server.url} {pools.connection_pool_kw['_proxy']}"

    def _pools(self, parts: SplitResult) -> urllib3.PoolManager:
        """The connections that lead to a URL, directly or through a proxy."""
        if self._without and proxy_bypass_environment(parts.netloc, {"no": self._without}):
            return self._direct
        return self._proxied.get(parts.scheme, self._direct)

    def _send(self, server: Server, url: str, call: Call, answer_time: float, headers: Mapping[str, str]) -> Any:
        parts = urlsplit(url)
        sent = {"User-Agent": "symbolize", "Accept-Encoding": "gzip", **headers}
        if origin_of(parts) == server.origin:
            # What identifies us goes to those that it was given for, never to where they send us.
            sent |= self._headers
            if server.authorization:
                sent["Authorization"] = server.authorization
        timeout = urllib3.Timeout(connect=self._connect_time, read=answer_time)
        call.check()
        _thread.call = call
        try:
            return self._pools(parts).urlopen(
                "GET",
                url,
                headers=sent,
                retries=False,
                redirect=False,
                preload_content=False,
                decode_content=False,
                timeout=timeout,
            )
        # urllib3 and http.client meet garbage with exceptions of many kinds, and so do sockets shut under them.
        except Exception as error:
            call.check()
            raise NetworkFailure(explain(error, answer_time)) from None
        finally:
            _thread.call = None


def with_our_pools(manager: urllib3.PoolManager) -> urllib3.PoolManager:
    """The same, with connections that tell which socket they use."""
    manager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
    return manager


def through(proxy: str) -> urllib3.PoolManager:
    """Connections through a proxy. Raises UsageError, which does not show its password."""
    try:
        parsed = Server.parse(proxy if "://" in proxy else f"http://{proxy}")
    except UsageError:
        raise UsageError("the URL of a proxy cannot be read, or is none of http or https") from None
    headers = {"Proxy-Authorization": parsed.authorization} if parsed.authorization else {}
    return with_our_pools(
        urllib3.ProxyManager(parsed.url, num_pools=16, proxy_headers=headers, maxsize=8, retries=False)
    )


def explain(error: BaseException, patience: float) -> str:
    """What went wrong, briefly and without URLs; `patience` is the time in seconds that a wait for bytes may take."""
    if isinstance(error, ProxyError):
        return f"proxy: {explain(error.original_error, patience)}"
    if isinstance(error, NameResolutionError):
        return "the name of the host cannot be resolved"
    if isinstance(error, ConnectTimeoutError) and not isinstance(error, NewConnectionError):
        return "no connection in time"
    if isinstance(error, ReadTimeoutError):
        return f"no answer in {patience:g} s"
    if isinstance(error, SSLError):
        return printable(f"TLS: {error}")[:200]
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return f"the connection broke or the answer is no HTTP ({type(error).__name__})"


def _inflated(came: Counted) -> Iterator[bytes]:
    """A body that is compressed with gzip, decompressed. Raises Refused, NetworkFailure."""
    try:
        yield from inflate(came, GZIP, "", LIMITS._replace(size=sys.maxsize))
    except CutShort:
        raise NetworkFailure("cut off: the compressed data has no end") from None
    except CompressionError as error:
        raise Refused(f"bad content encoding: {error.problem}") from None
    if not came.size:
        raise NetworkFailure("cut off: the compressed data has no end")

"""What all requests pass: which hosts and tokens are let in, what browsers may read, counting, and the access log."""

import hmac
import ipaddress
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from symbolize.serve.answers import failure
from symbolize.serve.metrics import ServerMetrics

ROUTE: Final = "symbolize.route"
IS_ALLOWED: Final = "symbolize.is_allowed"
FOR_BROWSERS: Final = ("/symbolicate/", "/source/", "/asm/")
"""What pages of other origins may read."""
MAX_LOGGED: Final = 500


PROFILER: Final = "https://profiler.firefox.com"
"""The origin of the pages that may ask by default."""


class AccessLog:
    """A JSON object a line for each request, appended to a file; `-` is standard error."""

    def __init__(self, path: str) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = 2 if path == "-" else os.open(path, flags, 0o640)

    def write(
        self, client: str, forwarded: str, method: str, path: str, status: int, size: int, seconds: float
    ) -> None:
        """Log a request; one write, so that lines of several workers do not mix. A full disk costs lines."""
        facts = {
            "time": round(time.time(), 3),
            "client": client,
            "forwarded": forwarded[:MAX_LOGGED],
            "method": method,
            "path": path[:MAX_LOGGED],
            "status": status,
            "bytes": size,
            "seconds": round(seconds, 6),
        }
        with suppress(OSError):
            os.write(self._descriptor, json.dumps(facts).encode() + b"\n")


class RequestFilter:
    """The application `app` behind checks: requests to a server on a loopback address have to name it, or one of
    `hosts`, so that no page gets at it by a name of its own (R417, names of the server). Of the pages of other origins
    those of `origins`, `*` for all, may ask, and read names and sources (R430, pages of other origins). A first part of
    the path that is the `token` is as good as the header."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: ServerMetrics,
        *,
        token: str,
        hosts: Sequence[str] | None,
        origins: Sequence[str],
        log: AccessLog | None,
    ) -> None:
        self._app, self._metrics = app, metrics
        self._token = token.encode()
        self._hosts = hosts
        self._origins = origins
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        self._metrics.began()
        headers = Headers(scope=scope)
        self._take_token(scope, headers)
        is_for_browsers = scope["path"].startswith(FOR_BROWSERS)
        status, size, seconds = 0, 0, 0.0

        async def answer(message: Message) -> None:
            nonlocal status, size, seconds
            if message["type"] == "http.response.start":
                status, seconds = message["status"], time.perf_counter() - began
                if is_for_browsers:
                    self._allow_origin(headers, MutableHeaders(scope=message))
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            refusal = self._refusal(scope["method"], headers)
            await (self._app if refusal is None else refusal)(scope, receive, answer)
        finally:
            self._metrics.answered(scope.get(ROUTE, "other"), status, size, seconds)
            if self._log is not None:
                client, forwarded = (scope.get("client") or ("",))[0], headers.get("x-forwarded-for", "")
                self._log.write(client, forwarded, scope["method"], scope["path"], status, size, seconds)

    def _take_token(self, scope: Scope, headers: Headers) -> None:
        """Note whether a request may do what needs the token, and take it off its path."""
        first, _, rest = scope["path"].lstrip("/").partition("/")
        is_in_path = bool(self._token) and hmac.compare_digest(first.encode(errors="replace"), self._token)
        if is_in_path:
            scope["path"] = "/" + rest
            scope["raw_path"] = scope["path"].encode(errors="replace")
        scope[IS_ALLOWED] = is_in_path or has_token(headers.get("authorization", ""), self._token)

    def _refusal(self, method: str, headers: Headers) -> Response | None:
        """The answer to a request that is not let in."""
        hosts = headers.getlist("host")
        if len(hosts) > 1:
            return failure(400, "the request names more than one host")
        if not self._is_named(host := "".join(hosts)):
            self._metrics.refused("host")
            return failure(421, "the server is not known by this name; it can be given one")
        if self._is_foreign(method, host, headers):
            self._metrics.refused("origin")
            return failure(403, "pages of this origin may not ask; the server can be told to allow them")
        return None

    def _is_foreign(self, method: str, host: str, headers: Headers) -> bool:
        """Whether a page that may not ask sent a request (R430, pages of other origins).

        Such a request has the page's Origin, or none and a Sec-Fetch-Site that tells of another site or origin; one
        that leads there from a link, which no page can read, is answered.
        """
        origin = headers.get("origin", "")
        if "*" in self._origins or origin in self._origins:
            return False
        if origin:
            return origin.partition("://")[2] != host
        is_visit = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
        return headers.get("sec-fetch-site") in ("cross-site", "same-site") and not is_visit

    def _is_named(self, host: str) -> bool:
        """Whether a Host is one under which a server on a loopback address may be asked: an address cannot be made to
        lead elsewhere."""
        if self._hosts is None:
            return True
        name = host.rpartition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
        name = name.lower().rstrip(".")
        with suppress(ValueError):
            return bool(ipaddress.ip_address(name))
        return name == "localhost" or name.endswith(".localhost") or name in self._hosts

    def _allow_origin(self, request: Headers, answer: MutableHeaders) -> None:
        if "*" in self._origins:
            answer["Access-Control-Allow-Origin"] = "*"
            return
        answer["Vary"] = "Origin"
        if (origin := request.get("origin", "")) in self._origins:
            answer["Access-Control-Allow-Origin"] = origin


def has_token(authorization: str, token: bytes) -> bool:
    """Whether an Authorization has the token, if there is one."""
    scheme, _, given = authorization.partition(" ")
    is_given = scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(errors="replace"), token)
    return not token or is_given


def is_allowed(request: Request) -> bool:
    """Whether a request has the token, if there is one."""
    return bool(request.scope.get(IS_ALLOWED))

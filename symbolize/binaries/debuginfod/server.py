"""A debuginfod server: where it is, what may be sent to it, and whether it is worth asking at the moment."""

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from symbolize.core.errors import UsageError, printable
from symbolize.core.failure_gate import FailureGate

MAX_FAILURES = 5
"""So many network failures in a row, and a server is not asked for a while."""
PAUSE = 60.0
"""Seconds for which it is not asked then."""
LONGEST_PAUSE = 600.0
"""Seconds that a server may ask us to wait for."""

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

HEADER_VALUE = re.compile(r"[ -~]*")

DEFAULT_PORTS = {"http": 80, "https": 443}

ENFORCING = "ima:enforcing"
"""The policy that files without a valid signature are refused."""
DEMANDS_SIGNATURES = f"demands signatures ({ENFORCING}), which cannot be checked"

Origin = tuple[str, str, int]
"""Scheme, host and port."""


@dataclass(eq=False)
class Server:
    """A server, and how it did lately. `url` has no credentials and no slash at the end; safe to show.

    `refusal` is why it is never asked, empty if it may be.
    """

    url: str
    origin: Origin
    path: str
    authorization: str = field(default="", repr=False)
    refusal: str = ""
    _gate: FailureGate = field(default_factory=lambda: FailureGate(MAX_FAILURES, PAUSE), repr=False)
    _last_failure: str = ""

    @classmethod
    def parse(cls, text: str, refusal: str = "") -> "Server":
        """The server at a URL, which may carry a user and a password. Raises UsageError, which shows neither."""
        if not re.fullmatch(r"[\x21-\x7e]+", text):
            raise UsageError("the URL of a debuginfod server has blanks or characters that are not ASCII")
        try:
            parts = urlsplit(text)
            origin = origin_of(parts)
        except ValueError:
            raise UsageError("the URL of a debuginfod server cannot be read") from None
        if origin is None:
            raise UsageError("the URL of a debuginfod server has to begin with http:// or https:// and a host")
        if parts.query or parts.fragment:
            raise UsageError(f"the URL of the debuginfod server at {origin[1]} has a query or a fragment")
        path = parts.path.rstrip("/")
        authorization = ""
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            authorization = "Basic " + base64.b64encode(pair.encode()).decode()
        return cls(url_of(origin) + path, origin, path, authorization, refusal)

    def answered(self) -> None:
        """The server gave an HTTP answer, of whatever kind."""
        self._gate.answered()

    def failed(self, why: str) -> None:
        """The server could not be reached, or the connection broke."""
        self._last_failure = why
        self._gate.failed()

    def pause(self, seconds: float) -> None:
        """The server asked not to be asked for a while."""
        self._gate.close(min(seconds, LONGEST_PAUSE))

    def closed(self) -> str:
        """Why the server is not to be asked now; empty if it may be."""
        left = self._gate.seconds_left
        failures = f"{self._gate.failures} network failures in a row, the last: {self._last_failure}"
        why = "it asked to wait" if self._gate.is_asked else failures
        return f"not asked for {left:.0f} s more: {why}" if left > 0 else ""


def origin_of(parts: SplitResult) -> Origin | None:
    """Scheme, host and port of an http or https URL, None of any other. Raises ValueError for an absurd port."""
    scheme, host = parts.scheme.lower(), (parts.hostname or "").rstrip(".")
    if scheme not in DEFAULT_PORTS or not re.fullmatch(r"[a-z0-9._-]+|[0-9a-f:.]+", host):
        return None
    return scheme, host, parts.port if parts.port is not None else DEFAULT_PORTS[scheme]


def url_of(origin: Origin) -> str:
    """The URL of an origin, without its port if that is the usual one."""
    scheme, host, port = origin
    name = f"[{host}]" if ":" in host else host
    return f"{scheme}://{name}" + ("" if port == DEFAULT_PORTS[scheme] else f":{port}")


def parse_servers(words: Iterable[str]) -> tuple[list[Server], list[str]]:
    """The servers that a list like DEBUGINFOD_URLS names, each once, and what is wrong with others, a sentence each.

    A tag `ima:...` holds for the URLs after it. One that is not known counts as `ima:enforcing`. What is no URL is a
    server that cannot be asked: it may have what others miss.
    """
    servers: dict[tuple[str, str], Server] = {}
    problems: list[str] = []
    refusal, count = "", 0
    for word in words:
        if word.startswith("ima:"):
            if word not in ("ima:ignore", ENFORCING):
                problems.append(f"{printable(word)} is no policy that is known; taken for {ENFORCING}")
            refusal = "" if word == "ima:ignore" else DEMANDS_SIGNATURES
            continue
        count += 1
        try:
            server = Server.parse(word, refusal)
        except UsageError as error:
            problems.append(str(error))
            server = Server(f"URL {count} of DEBUGINFOD_URLS", ("", "", 0), "", refusal=str(error))
        servers.setdefault((server.url, server.authorization), server)
    return list(servers.values()), problems


def check_header(name: str, value: str) -> None:
    """Raise UsageError if a request header would break the request. Its value may be a secret and is not shown."""
    if not HEADER_NAME.fullmatch(name) or not HEADER_VALUE.fullmatch(value):
        raise UsageError(f"the request header {printable(name)!r} has characters that are not allowed")

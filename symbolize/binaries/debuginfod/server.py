"""What a client of debuginfod servers is given, by a caller or by the variables that elfutils documents: servers,
limits, options; and a request to them."""

import base64
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from symbolize.binaries.links import default_folder
from symbolize.binaries.remote import Status
from symbolize.core.errors import UsageError, printable
from symbolize.core.failure_gate import FailureGate
from symbolize.core.files import os_error_text

MAX_FAILURES = 5
"""So many network failures in a row, and a server is not asked for a while."""
PAUSE = 60.0
"""Seconds for which it is not asked then."""
LONGEST_PAUSE = 600.0
"""Seconds that a server may ask us to wait for."""

MAX_HEADERS_FILE = 1 << 16
FOREVER = 2e6
"""Seconds that mean no limit; sockets take no more."""

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
HEADER_VALUE = re.compile(r"[ -~]*")
DEFAULT_PORTS = {"http": 80, "https": 443}

ENFORCING = "ima:enforcing"
"""The policy that files without a valid signature are refused."""
DEMANDS_SIGNATURES = f"demands signatures ({ENFORCING}), which cannot be checked"

Origin = tuple[str, str, int]
"""Scheme, host and port."""


@dataclass(frozen=True)
class Limits:
    """Times in seconds, sizes in bytes.

    `connect_time` to connect, `answer_time` until an answer begins, `stall_time` over which `min_rate` bytes a second
    have to come, `total_time` for a file, `probe_time` for the answer of a server that is tried out. `max_size` of a
    file; a debug file above `sections_above` is fetched by sections. `retries` after network failures, 429 and 5xx,
    waiting at most `longest_wait` before each. `patience` with another process that is fetching the same file.
    """

    connect_time: float = 3.0
    probe_time: float = 5.0
    answer_time: float = 90.0
    stall_time: float = 30.0
    min_rate: float = 1024.0
    total_time: float = 3600.0
    max_size: int = 8 << 30
    sections_above: int = 256 << 20
    retries: int = 2
    first_wait: float = 0.5
    longest_wait: float = 10.0
    patience: float = 600.0
    workers: int = 4


class Progress(NamedTuple):
    """How far a download is; `total` is None where the server does not say."""

    build_id: str
    kind: str
    server: str
    done: int
    total: int | None


@dataclass(frozen=True)
class FetchOptions:
    """How a client fetches files.

    `cache` is the folder of what was fetched, None for the user's, and `limits` are None for the usual ones. `headers`
    go with each request; `proxies` are for `http`, `https` or `all`, and `no` is as in no_proxy. `refresh_misses` asks
    again for what was missing before the client was made, `refresh_servers` servers that did not answer before.
    `tell` is called with a line for a person: verdicts on servers and what is wrong with the configuration. `progress`
    is called while bytes come, from several threads.
    """

    cache: str | os.PathLike[str] | None = None
    limits: Limits | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    proxies: Mapping[str, str] = field(default_factory=dict)
    refresh_misses: bool = False
    refresh_servers: bool = False
    tell: Callable[[str], None] = lambda line: None
    progress: Callable[[Progress], None] | None = None


@dataclass(eq=False)
class Server:
    """A server, and how it did lately. `url` has no credentials and no slash at the end; safe to show.

    `refusal` is why it is never asked, empty if it may be.
    """

    url: str
    origin: Origin
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
        authorization = ""
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            authorization = "Basic " + base64.b64encode(pair.encode()).decode()
        return cls(url_of(origin) + parts.path.rstrip("/"), origin, authorization, refusal)

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


class ServerAnswer(NamedTuple):
    """What came of asking one server."""

    status: Status
    text: str


@dataclass(eq=False)
class Request:
    """A file to fetch from whichever server has it, and the outcome.

    `path` is what follows the build id in the URL, `entry` the name in the folder, `limit` the bytes allowed.
    A file announced to be larger than `sections_above` is not sent, and the server becomes `large`. `claimed` is the
    server that is sending, `won` the path of the file once it has its name, `origin` what the server calls it.
    `forwarded` are the clients that the request is passed on for, as X-Forwarded-For has them.
    """

    build_id: str
    kind: str
    path: str
    entry: str
    limit: int
    sections_above: int | None
    is_elf: bool = True
    forwarded: str = ""
    outcomes: dict[Server, ServerAnswer] = field(default_factory=dict)
    won: str = ""
    claimed: Server | None = None
    large: Server | None = None
    origin: str = ""
    mutex: threading.Lock = field(default_factory=threading.Lock)


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
            server = Server(f"URL {count} of DEBUGINFOD_URLS", ("", "", 0), refusal=str(error))
        servers.setdefault((server.url, server.authorization), server)
    return list(servers.values()), problems


def check_header(name: str, value: str) -> None:
    """Raise UsageError if a request header would break the request. Its value may be a secret and is not shown."""
    if not HEADER_NAME.fullmatch(name) or not HEADER_VALUE.fullmatch(value):
        raise UsageError(f"the request header {printable(name)!r} has characters that are not allowed")


class Environment(NamedTuple):
    """What the variables set; `problems` says what was left out, a sentence each."""

    servers: list[Server]
    options: FetchOptions
    wants_progress: bool
    problems: list[str]


def read_environment(variables: Mapping[str, str], options: FetchOptions) -> Environment:
    """What the variables set, read only when a user asks for it: the limits, headers, proxies and, where `options`
    have none, the folder."""
    servers, problems = parse_servers(variables.get("DEBUGINFOD_URLS", "").split())
    refusals = {server.refusal for server in servers}  # which the client reports with their servers
    problems = [problem for problem in problems if problem not in refusals]
    if not servers:
        problems.append("DEBUGINFOD_URLS names no server")
    limits = Limits()
    if (number := read_number(variables, "DEBUGINFOD_TIMEOUT", problems)) is not None:
        # Zero or less is no limit; a stalled download still ends by its rate.
        limits = replace(limits, answer_time=float(number) if number > 0 else FOREVER)
    if (number := read_number(variables, "DEBUGINFOD_MAXTIME", problems)) is not None:
        limits = replace(limits, total_time=float(number) if number > 0 else FOREVER)
    if (number := read_number(variables, "DEBUGINFOD_MAXSIZE", problems)) is not None and number > 0:
        limits = replace(limits, max_size=number)
    if (number := read_number(variables, "DEBUGINFOD_RETRY_LIMIT", problems)) is not None:
        limits = replace(limits, retries=max(0, min(number, 10)))
    headers = {}
    if path := variables.get("DEBUGINFOD_HEADERS_FILE"):
        headers = read_headers(path, "DEBUGINFOD_HEADERS_FILE", problems)
    options = replace(
        options,
        cache=variables.get("DEBUGINFOD_CACHE_PATH") or default_folder(variables)
        if options.cache is None
        else options.cache,
        limits=limits,
        headers=headers,
        proxies=read_proxies(variables),
    )
    wants_progress = bool(variables.get("DEBUGINFOD_PROGRESS") or variables.get("DEBUGINFOD_VERBOSE"))
    return Environment(servers, options, wants_progress, problems)


def read_number(variables: Mapping[str, str], name: str, problems: list[str]) -> int | None:
    """The whole number in a variable, None if it is not set or none."""
    text = variables.get(name, "").strip()
    if not text:
        return None
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        problems.append(f"{name} is no whole number and was ignored")
        return None
    return int(text)


def read_proxies(variables: Mapping[str, str]) -> dict[str, str]:
    """Proxies by scheme, as curl reads them: HTTP_PROXY is not one of them, a web server may set it for its guests."""
    found = {}
    for key, names in {
        "http": ("http_proxy",),
        "https": ("https_proxy", "HTTPS_PROXY"),
        "all": ("all_proxy", "ALL_PROXY"),
        "no": ("no_proxy", "NO_PROXY"),
    }.items():
        if text := next(filter(None, (variables.get(name, "").strip() for name in names)), ""):
            found[key] = text
    return found


def read_headers(path: str, name: str, problems: list[str]) -> dict[str, str]:
    """Request headers, one a line, of the file at `path`, which is what `name` says. Their values may be secrets, so
    that no problem shows one."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_HEADERS_FILE)
    except (OSError, ValueError) as error:
        problems.append(f"{name} {path} cannot be read ({os_error_text(error)})")
        return {}
    headers = {}
    for number, line in enumerate(text.splitlines(), 1):
        field, colon, value = line.partition(":")
        if not line.strip():
            continue
        try:
            if not colon or not value.strip():
                raise UsageError("no header")
            check_header(field, value.strip())
        except UsageError:
            problems.append(f"{name} {path}: line {number} is no header, NAME: VALUE")
            continue
        headers[field] = value.strip()
    return headers

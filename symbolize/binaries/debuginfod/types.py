"""What the parts of the client hand to each other."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from symbolize.binaries.debuginfod.server import Server
from symbolize.binaries.remote import Attempt

Status = Literal["found", "missing", "denied", "too-large", "wrong", "failed", "skipped", "invalid"]
"""How a fetch ended: there it is; all servers say that they have no such file; access was denied; the file is too
large; a server sent another file; network, overload or disk failed; a server that may have it was not asked; that is
no build id."""

WORST_FIRST: tuple[Status, ...] = ("denied", "too-large", "wrong", "failed", "skipped", "missing")

FAILURES: frozenset[Status] = frozenset({"denied", "wrong", "failed", "skipped"})
"""Outcomes after which nobody knows whether the server has the file; asked again it may hand it out."""


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


@dataclass
class Settings:
    """Of a client: its servers, the folder of its cache, limits, request headers, and proxies by scheme."""

    servers: list[Server]
    cache: str
    limits: Limits
    headers: Mapping[str, str]
    proxies: Mapping[str, str]
    wants_progress: bool = False
    problems: list[str] = field(default_factory=list)


class Progress(NamedTuple):
    """How far a download is; `total` is None where the server does not say."""

    build_id: str
    kind: str
    server: str
    done: int
    total: int | None


@dataclass(frozen=True)
class Fetched:
    """A file, or why there is none: `attempts` has each server or folder that was asked.

    `is_composed` marks a debug file with only the sections that lookups need. `failures` are those of the attempts
    after which nobody knows whether there is such a file; none if it was found.
    """

    path: str | None
    status: Status
    attempts: list[Attempt] = field(default_factory=list)
    is_composed: bool = False
    failures: list[Attempt] = field(default_factory=list)


class Outcome(NamedTuple):
    """What came of asking one server."""

    status: Status
    text: str


@dataclass(eq=False)
class Request:
    """A file to fetch from whichever server has it, and what came of that.

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
    outcomes: dict[Server, Outcome] = field(default_factory=dict)
    won: str = ""
    claimed: Server | None = None
    large: Server | None = None
    origin: str = ""
    mutex: threading.Lock = field(default_factory=threading.Lock)

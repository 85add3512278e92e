"""What servers of binaries add to the files that were found below the roots."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from symbolize.binaries.build_id import is_build_id, plain_build_id
from symbolize.elf import ElfError, identify
from symbolize.elf.probe import CODE

Kind = Literal["debuginfo", "executable"]


class Attempt(NamedTuple):
    """A place that was tried and its outcome."""

    place: str
    outcome: str


class FetchResult(Protocol):
    """The result of a request: a file, or the answer of each cache and server."""

    @property
    def path(self) -> str | None:
        """The file, if there is one."""

    @property
    def attempts(self) -> Sequence[Attempt]:
        """Each place that was asked, and its outcome."""

    @property
    def failures(self) -> Sequence[Attempt]:
        """Those of the attempts that failed, so that nobody knows whether the file is there; none if it was found."""


class Servers(Protocol):
    """Hands out files by build id; see `symbolize.binaries.debuginfod.Debuginfod`."""

    def fetch(self, build_id: str, kind: Kind) -> FetchResult:
        """The file with this build id, or why there is none. Never raises for a miss."""

    def prefetch(self, wanted: Iterable[tuple[str, Sequence[Kind], float]]) -> Any:
        """Begin to fetch files, the heaviest first, those of one build as `fetch_in_turn` does."""


class Listener:
    """Servers, and what failed of them since `failures` was emptied last, each once."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self.failures: list[Attempt] = []

    def fetch(self, build_id: str, kind: Kind) -> FetchResult:
        """The answer of the servers."""
        answer = self._servers.fetch(build_id, kind)
        self.failures += [failure for failure in answer.failures if failure not in self.failures]
        return answer

    def prefetch(self, wanted: Iterable[tuple[str, Sequence[Kind], float]]) -> Any:
        """Have the servers do it."""
        return self._servers.prefetch(wanted)


Status = Literal["found", "missing", "denied", "too-large", "wrong", "failed", "skipped", "invalid"]
"""How a fetch ended: there it is; all servers say that they have no such file; access was denied; the file is too
large; a server sent another file; network, overload or disk failed; a server that may have it was not asked; that is
no build id."""

WORST_FIRST: tuple[Status, ...] = ("denied", "too-large", "wrong", "failed", "skipped", "missing")

FAILURES: frozenset[Status] = frozenset({"denied", "wrong", "failed", "skipped"})
"""Outcomes after which nobody knows whether the server has the file; asked again it may hand it out."""


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


def missed(outcomes: Sequence[tuple[Status, Attempt]], notes: Sequence[Attempt] = ()) -> Fetched:
    """The answer where no place has the file: the worst status of any counts. `notes` are what was tried before."""
    seen = {status for status, _ in outcomes} or {"skipped"}
    attempts = [*notes, *(attempt for _, attempt in outcomes)]
    failures = [attempt for status, attempt in outcomes if status in FAILURES]
    return Fetched(None, next(status for status in WORST_FIRST if status in seen), attempts, failures=failures)


class Unasked:
    """Replaces servers that are not to be asked: each file stays wanted, and the attempts name the servers."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def fetch(self, build_id: str, kind: Kind) -> Fetched:
        """No file."""
        attempts = [Attempt(name, f"would be asked for the {kind} of {build_id}") for name in self._names]
        return Fetched(None, "skipped", attempts)

    def prefetch(self, wanted: Iterable[tuple[str, Sequence[Kind], float]]) -> None:
        """Do nothing."""


def missing_kinds(build_id: str, has_code: bool, has_dwarf: bool) -> list[Kind]:
    """What would make the files of a binary complete: its debug information, and its code, which has the
    segments. Nothing without a build id to ask for."""
    if not is_build_id(plain_build_id(build_id)):
        return []
    kinds: list[Kind] = []
    if not has_dwarf:
        kinds.append("debuginfo")
    if not has_code:
        kinds.append("executable")
    return kinds


A = TypeVar("A", bound=FetchResult)


def fetch_in_turn(fetch: Callable[[str, Kind], A], build_id: str, kinds: Sequence[Kind]) -> dict[Kind, A]:
    """The answers for files of one build, as `missing_kinds` orders them.

    Of a binary that was never stripped the file is served as both kinds: if the debug file has code, it is all.
    """
    answers: dict[Kind, A] = {}
    for kind in kinds:
        debug = answers.get("debuginfo") if kind == "executable" else None
        if debug is None or debug.path is None or not offers(debug.path) & CODE:
            answers[kind] = fetch(build_id, kind)
    return answers


def offers(path: str) -> int:
    """What a file has, as the bits of `elf.ident`; 0 if it cannot be read."""
    try:
        ident = identify(path)
    except (ElfError, OSError):
        return 0
    return ident.offers if ident is not None else 0

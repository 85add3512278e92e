"""What servers of binaries add to the files that were found below the roots."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from symbolize.binaries.build_id import is_build_id, plain_build_id

Kind = Literal["debuginfo", "executable"]


class Attempt(NamedTuple):
    """A place that was tried and what came of it."""

    place: str
    outcome: str


class Answer(Protocol):
    """What came of a request: a file, or what each place said."""

    @property
    def path(self) -> str | None:
        """The file, if there is one."""

    @property
    def attempts(self) -> Sequence[Attempt]:
        """Each place that was asked, and what came of it."""


class Servers(Protocol):
    """Hands out files by build id; see `symbolize.binaries.debuginfod.Debuginfod`."""

    def fetch(self, build_id: str, kind: Kind) -> Answer:
        """The file with this build id, or why there is none. Never raises for a miss."""

    def prefetch(self, wanted: Iterable[tuple[str, Kind, float]]) -> Any:
        """Begin to fetch files, the heaviest first."""


class Unasked:
    """Stands for servers that are not asked: each file stays wanted, and the attempts say of whom."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def fetch(self, build_id: str, kind: Kind) -> "Unasked.Nothing":
        """No file."""
        return Unasked.Nothing([Attempt(name, f"would be asked for the {kind} of {build_id}") for name in self._names])

    def prefetch(self, wanted: Iterable[tuple[str, Kind, float]]) -> None:
        """Do nothing."""

    class Nothing:
        """The answer of a server that was not asked."""

        path = None

        def __init__(self, attempts: Sequence[Attempt]) -> None:
            self.attempts = attempts


def missing_kinds(build_id: str, has_code: bool, has_dwarf: bool) -> list[Kind]:
    """What would make the files of a binary complete: its code, which tells where segments lie, and its debug
    information. Nothing without a build id to ask for."""
    if not is_build_id(plain_build_id(build_id)):
        return []
    kinds: list[Kind] = []
    if not has_code:
        kinds.append("executable")
    if not has_dwarf:
        kinds.append("debuginfo")
    return kinds

"""What loaders are asked for, and what they give."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, Literal, NoReturn

if TYPE_CHECKING:
    from symbolize.formats.firefox.tables import Document
    from symbolize.formats.otlp.build import OtlpGroup
    from symbolize.formats.otlp.containers import Container
    from symbolize.profile.model import Profile

OffCpuMode = Literal["on-cpu", "off-cpu", "on-off-cpu", "mixed-on-off-cpu"]
"""Samples of simpleperf: those on the processor, those off it, both apart, or both in one (the default)."""


@dataclass(frozen=True)
class Choice:
    """Which profiles of a trace are wanted. Empty: all.

    `processes` are names, or patterns of the shell, of which one matches the whole name of the process or the last
    part of its path. `merge` may have "processes", which puts the profiles of all processes into one of each kind, and
    "dumps", which leaves the last dump of each heap: its totals hold those of the dumps before.
    """

    pids: Sequence[int] = ()
    processes: Sequence[str] = ()
    heaps: Sequence[str] = ()
    kinds: Sequence[str] = ()
    merge: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Whether anything is left out or merged."""
        return self.selects or bool(self.merge)

    @property
    def selects(self) -> bool:
        """Whether anything is left out."""
        return any((self.pids, self.processes, self.heaps, self.kinds))

    def takes(self, kind: str, pid: int | None, process: bytes, heap: str = "") -> bool:
        """Whether a profile is wanted; a pid or name that the trace does not give (None, empty) is not one of those."""
        name = process.decode("utf-8", "backslashreplace")
        names = (name, name.rpartition("/")[2])
        return (
            (not self.kinds or kind in self.kinds)
            and (not self.pids or pid in self.pids)
            and (not self.processes or any(fnmatchcase(each, p) for each in names for p in self.processes))
            and (not self.heaps or (kind == "heap" and any(fnmatchcase(heap, pattern) for pattern in self.heaps)))
        )


ALL: Final = Choice()


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """How an input is read: the profiles of a trace that are wanted, and options of single formats, which
    `symbolize.formats.load` explains. With `timestamps` None, times are kept of an input that is small."""

    choice: Choice = ALL
    keep_trampolines: bool = False
    trace_offcpu: "OffCpuMode | None" = None
    show_art_frames: bool = False
    sample_labels: Sequence[str] | None = None
    timestamps: bool | None = False

    def __post_init__(self) -> None:
        if isinstance(self.sample_labels, str):
            raise TypeError("sample_labels: expected a sequence of names, not str")


DEFAULTS: Final = LoadOptions()


@dataclass(eq=False)
class LoadedProfile:
    """One of the profiles in an input, made when it is asked for.

    `name` is a file name without ending. `source`, the path of the input (empty if it has none), and `format`, what it
    was recognized as, are set by the front end. Of a profile in a trace, `kind` is "heap", "cpu" or "chromium",
    `detail` the heap and which dump of it; `pid` and `process` (its name) are None and empty where unknown or where
    `is_merged` says that the profile is of all processes. One of an OTLP input has its `container`, and is the profile
    of a `group` there. One of the Firefox Profiler that was processed has the `document`.
    """

    name: str
    make: "Callable[[], Profile]"
    warnings: list[str] = field(default_factory=list)
    source: str = ""
    format: str = ""
    kind: str = ""
    detail: str = ""
    pid: int | None = None
    process: str = ""
    is_merged: bool = False
    container: "Container | None" = None
    group: "OtlpGroup | None" = None
    document: "Document | None" = None

    def __reduce__(self) -> NoReturn:
        raise TypeError("a LoadedProfile reads its input when it is asked, and cannot be pickled: pickle its `profile`")

    @property
    def profile(self) -> "Profile":
        """The profile, made anew each time."""
        profile = self.make()
        profile.warnings += self.warnings
        profile.source = self.source
        return profile

    @property
    def subject(self) -> str:
        """Whose profile of a trace it is, for a person; empty for other inputs."""
        if not self.kind:
            return ""
        if self.is_merged:
            return "all processes"
        if self.pid is None:
            return self.process or "unknown process"
        return f"{self.process} (pid {self.pid})" if self.process else f"pid {self.pid}"

    @property
    def what(self) -> str:
        """Its kind with the heap: `heap libc.malloc, dump 2 of 3`."""
        return f"{self.kind} {self.detail}".strip()

    @property
    def title(self) -> str:
        """What it is of in a trace: `com.example.app (pid 812) heap libc.malloc`; empty for other inputs."""
        return f"{self.subject} {self.what}".strip()


def only(profile: "Profile") -> list[LoadedProfile]:
    """The profile of an input that has one, which has no name there."""
    return [LoadedProfile("", lambda: profile)]


def another_profile(at: int) -> str:
    """What is said of a second profile in one file, at an offset."""
    return f"Another profile begins at offset {at:#x}: it was left out, with all behind it; split the file there."

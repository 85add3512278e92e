"""What a person can do about what reports miss: each hint once, the most valuable first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from symbolize.core.mapped_names import Mapped, is_no_file, mapped_by
from symbolize.core.reasons import TEXTS, Reason
from symbolize.core.terminal import Style, wrapped
from symbolize.core.verdict import Verdict
from symbolize.report.model import MappingRow, Report

Hints = Mapping[Reason | str, str]
"""What to do about each reason that something helps against, and about kinds of mappings."""

KERNEL: Final = "kernel"
COMPILED: Final = "code compiled at run time"
"""Kinds of mappings whose names are in lists, which other hints are for."""

HINTS: Final[Hints] = {
    Reason.NOT_ASKED: "give folders with binaries",
    Reason.NO_MAPPING: "JIT code needs its perf-PID.map or jitdump among the binaries; stack noise has no names",
    Reason.NO_IDENTITY: "record the profile with its memory map",
    Reason.NOT_A_FILE: (
        "add kallsyms or vmlinux (kernel), vdso.so, perf-PID.map or a jitdump (JIT) to the folders with binaries"
    ),
    Reason.BAD_BUILD_ID: "a build id is an even number of hex digits, 4 to 128",
    Reason.NOT_FOUND: "add it, or its debug file, to the folders with binaries",
    Reason.BUILD_ID_DIFFERS: "get the binary with the mapping's build id",
    Reason.AMBIGUOUS: "leave the right one in the folders with binaries",
    Reason.MISFIT: "get the file that ran; a debug file may need its binary too",
    Reason.UNREADABLE: "let it be read, or copy it again if it is damaged",
    Reason.NO_SYMBOLS: "add its debug file to the folders with binaries",
    Reason.CORRUPT_DEBUG_INFO: "rebuild or copy the debug file again",
    Reason.RESTRICTED: "copy /proc/kallsyms as root (kernel.kptr_restrict below 2), or add vmlinux",
    Reason.NO_ADDRESS: (
        "nothing can be looked up; names of the kernel need kallsyms while recording (kernel.kptr_restrict below 2)"
    ),
    Reason.SERVER_FAILED: "run again when the server answers",
    Reason.CHANGED: "run again when nothing writes to it",
    Reason.READ_FAILED: "run again; the detail says what failed",
    Reason.UNCONFIRMED: "record build ids, or more samples with call stacks; `accept` says how sure a file has to be",
    Reason.REUSED_ADDRESS: "have a jitdump written, which has times, and record with perf record -k CLOCK_MONOTONIC",
    Reason.NOT_ELF: "add its Breakpad symbol file (dump_syms): only ELF files are read",
    KERNEL: "add /proc/kallsyms of the recording machine, as root reads it, or vmlinux to the folders with binaries",
    COMPILED: ("add its perf-PID.map or jitdump, which the program writes on request, to the folders with binaries"),
}
"""The hints of the library. The command has its own, with names of options."""


NAMES_ONLY: Final = (
    "names only, no lines",
    "the binary has no debug information: add its debug file, or build with -g, for lines and inlined functions",
)
UNVERIFIED: Final = (
    "unverified: too little speaks for the file",
    "record build ids (perf record --buildid-mmap), or keep the build that ran, and no other, in the folders",
)
"""What is said of mappings whose frames have names, and what helps."""

EARLY_ENDS: Final = (
    "stacks that end early, in code without frame pointers",
    "record with --call-graph dwarf, or build with -fno-omit-frame-pointer",
)
"""What is said of stacks that lack callers, and what helps."""

NO_MEMORY_MAP: Final = (
    "the profile has no memory map: give the one binary that it is of as a file, if that is not position-independent"
)
"""What helps where no address is in a mapping, because the profile has none."""
INDENT: Final = "    "
MIN_EARLY: Final = 0.1
"""Of the samples: some stacks end early in every recording, in code that is just called or about to return."""
NO_LIST: Final = (Reason.NOT_FOUND, Reason.NOT_A_FILE)
"""Why a mapping has no names whose names are in a list."""


@dataclass(slots=True)
class AdviceSums:
    """Shares of reports that a hint may help with, of the samples by their leaf and of the frames; in how many
    mappings."""

    leaves: float = 0.0
    frames: float = 0.0
    mappings: int = 0

    def add(self, leaves: float, frames: float, mappings: int) -> None:
        """Add those of some mappings."""
        self.leaves += leaves
        self.frames += frames
        self.mappings += mappings


class Advice:
    """The hints for some reports. `nouns` are what one and several of the things that miss names are called."""

    def __init__(self, hints: Hints = HINTS, nouns: tuple[str, str] = ("mapping", "mappings")) -> None:
        self._hints = hints
        self._nouns = nouns
        self._reports = 0
        self._sums: dict[tuple[str, str], AdviceSums] = {}
        self._not_asked = False

    @property
    def first(self) -> list[str]:
        """What is printed above a report, because nothing else helps."""
        if not self._not_asked:
            return []
        hint = self._hints.get(Reason.NOT_ASKED)
        return [TEXTS[Reason.NOT_ASKED] + (f": {hint}" if hint else "")]

    def add(self, report: Report) -> None:
        """Add the hints for a report."""
        self._reports += 1
        leaves, frames = report.sample_value or 1.0, report.value or 1.0
        has_map = any(row.name or row.build_id for row in report.mappings)
        for row in report.mappings:
            for reason, _, value in row.misses:
                if reason is Reason.NO_MAPPING and not has_map:
                    self._add(TEXTS[reason], NO_MEMORY_MAP, row.missed_flat[reason] / leaves, value / frames)
                else:
                    self.add_miss(reason, row.name, row.missed_flat[reason] / leaves, value / frames)
            if is_bare(row):
                self._add(*NAMES_ONLY, row.without_lines_flat / leaves, row.without_lines_value / frames)
            is_doubtful = row.symbolized_locations and row.verdict is Verdict.UNVERIFIED
            if row.files and is_doubtful and not is_no_file(row.name):  # lists of symbols have no build ids
                self._add(*UNVERIFIED, row.symbolized_flat / leaves, row.symbolized_value / frames)
        if report.early_value >= MIN_EARLY * leaves:
            self._add(*EARLY_ENDS, report.early_value / leaves, 0.0, mappings=0)

    def add_miss(self, reason: Reason, name: str, leaves: float, frames: float) -> None:
        """Add the hint for what a mapping of this name misses for a reason."""
        if reason is Reason.NOT_ASKED:
            self._not_asked = True
        elif found := hint_of(reason, name, self._hints):
            self._add(*found, leaves, frames)

    def _add(self, what: str, hint: str, leaves: float, frames: float, mappings: int = 1) -> None:
        self._sums.setdefault((what, hint), AdviceSums()).add(leaves, frames, mappings)

    def items(self) -> list[tuple[str, str, AdviceSums]]:
        """What is missing, what to do, and how much it is, the most valuable first; what has names comes last."""
        sums = sorted(
            self._sums.items(),
            key=lambda item: (
                item[0] in (EARLY_ENDS, NAMES_ONLY, UNVERIFIED),
                -item[1].leaves,
                -item[1].frames,
                item[0],
            ),
        )
        return [(what, hint, each) for (what, hint), each in sums]

    def sentences(self) -> list[tuple[str, str]]:
        """What is missing with how much it is, and what to do about it, the most valuable first."""
        return [(f"{what} ({self._share(each)})", hint) for what, hint, each in self.items()]

    def _share(self, sums: AdviceSums) -> str:
        """How much something is: of the samples, and in how many mappings, if it is of mappings."""
        share, count = f"{self.percent(sums):.1f} %", sums.mappings
        return f"{share}, {count} {self._nouns[count != 1]}" if count else share

    def percent(self, sums: AdviceSums) -> float:
        """The mean share of the samples of a report."""
        return 100 * sums.leaves / max(self._reports, 1)

    def lines(self, style: Style, width: int) -> Iterator[str]:
        """The hints below a report."""
        sentences = self.sentences()
        if sentences:
            yield ""
            yield style.bold("what to do")
        for what, hint in sentences:
            yield from wrapped(f"{what}: {hint}", width, 2 * INDENT, INDENT)


def hint_of(reason: Reason, name: str, hints: Hints) -> tuple[str, str] | None:
    """What a mapping of this name misses for a reason, and what helps; None if `hints` have nothing against it."""
    kind = kind_of(name) if reason in NO_LIST else ""
    if kind in hints:
        return kind, hints[kind]
    return (TEXTS[reason], hints[reason]) if reason in hints else None


def kind_of(name: str) -> str:
    """The kind of a mapping whose names are in a list: that of the kernel, or of code that was compiled at run time;
    empty for others."""
    if name.startswith(("[kernel", "[guest.kernel")):
        return KERNEL
    return COMPILED if mapped_by(name) in (Mapped.LISTED, Mapped.CODE_CACHE) else ""


def is_bare(row: MappingRow) -> bool:
    """Whether most names of a mapping came without lines, as those of a binary without debug information do."""
    return 2 * row.without_lines_value > row.symbolized_value > 0

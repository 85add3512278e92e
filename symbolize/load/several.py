"""Inputs with several profiles, and all others."""

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, BinaryIO, Final

from symbolize.errors import InputError
from symbolize.load.perfetto.wire import BYTES, FIXED32, FIXED64, VARINT, Damaged, varint
from symbolize.load.streams import HEAD, STANDARD_INPUT, Counted, Replayed, beginning, chunks, decompressed, source_name

if TYPE_CHECKING:
    from symbolize.load.sniff import Options
    from symbolize.profile.model import Profile

KINDS: Final = ("heap", "cpu", "chromium")
MERGES: Final = ("processes", "dumps")

PACKET: Final = 0x0A
KNOWN_WIRE: Final = {
    8: 0, 58: 0, 3: 0, 79: 0, 10: 0, 13: 0, 41: 0, 42: 0, 87: 0, 98: 0,
    1: 2, 2: 2, 4: 2, 5: 2, 6: 2, 7: 2, 9: 2, 11: 2, 12: 2, 33: 2, 34: 2, 35: 2, 36: 2, 37: 2, 38: 2, 39: 2, 40: 2,
    43: 2, 44: 2, 45: 2, 46: 2, 47: 2, 48: 2, 49: 2, 50: 2, 51: 2, 54: 2, 56: 2, 59: 2, 60: 2, 61: 2, 62: 2, 63: 2,
    64: 2, 65: 2, 66: 2, 67: 2, 68: 2, 69: 2, 70: 2, 71: 2, 72: 2, 73: 2, 74: 2, 75: 2, 77: 2, 78: 2, 82: 2, 83: 2,
    84: 2, 86: 2, 89: 2, 90: 2, 91: 2, 107: 2, 109: 2, 123: 2, 124: 2, 131: 2, 133: 2, 135: 2,
}  # fmt: skip
"""Wire types of the fields of TracePacket that a trace may begin with."""

SNIFFED_PACKETS: Final = 16


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


@dataclass(eq=False)
class LoadedProfile:
    """One of the profiles in an input, made when it is asked for. `name` is a file name without ending, `source` the
    path of the input, empty if it has none."""

    name: str
    make: "Callable[[], Profile]"
    warnings: list[str] = field(default_factory=list)
    source: str = ""

    @property
    def profile(self) -> "Profile":
        """The profile, made anew each time."""
        profile = self.make()
        profile.warnings += self.warnings
        profile.source = self.source
        return profile


def is_trace(head: bytes) -> bool:
    """Whether what begins with `head` is a trace: packets, and not the small messages that a pprof profile begins with,
    whose fields have the numbers of others here (rule R220). The first packet with content decides."""
    at = packets = 0
    try:
        while at < len(head) and packets < SNIFFED_PACKETS:
            if head[at] != PACKET:
                return False
            size, at = varint(head, at + 1)
            if size:
                return _is_packet(head, at, at + size)
            packets += 1
    except Damaged:
        pass
    return False


def _is_packet(head: bytes, at: int, end: int) -> bool:
    """Whether the message from `at` to `end` has fields of a packet and none that contradict it."""
    known = 0
    if end > len(head) and len(head) < HEAD:
        return False
    while at < min(end, len(head)):
        try:
            tag, at = varint(head, at)
            wire = tag & 7
            if tag < 8 or wire not in (VARINT, FIXED64, BYTES, FIXED32) or KNOWN_WIRE.get(tag >> 3, wire) != wire:
                return False
            known += tag >> 3 in KNOWN_WIRE
            if wire in (VARINT, BYTES):
                value, at = varint(head, at)
                at += value if wire == BYTES else 0
            else:
                at += 8 if wire == FIXED64 else 4
        except Damaged:
            return known > 0 and end > len(head)
        if at > end:
            return False
    return known > 0


def load_all(
    source: str | os.PathLike[str] | BinaryIO, choice: Choice = ALL, options: "Options | None" = None
) -> list[LoadedProfile]:
    """The profiles of an input, as `symbolize.load.load_all` says."""
    found = _load_all(source, choice, options)
    if isinstance(source, str | os.PathLike) and source != STANDARD_INPUT:
        path = os.path.abspath(source)
        for each in found:
            each.source = path
    return found


def _load_all(
    source: str | os.PathLike[str] | BinaryIO, choice: Choice, options: "Options | None"
) -> list[LoadedProfile]:
    name = source_name(source)
    unread = chunks(source, name)
    head = b""
    while len(head) < HEAD and (piece := next(unread, b"")):
        head += piece
    pieces = Counted(itertools.chain([head], unread))
    if is_trace(beginning(head, name)):
        from symbolize.load.perfetto.load import load

        return load(decompressed(pieces, name), name, choice, lambda: pieces.size)
    from symbolize.load import sniff

    profile = sniff.load(Replayed(pieces, name), options or sniff.DEFAULTS)  # type: ignore[arg-type]
    return [LoadedProfile("", lambda: profile)]


def load_one(source: str | os.PathLike[str] | BinaryIO, options: "Options") -> "Profile":
    """The profile of an input that has only one."""
    found = load_all(source, ALL, options)
    if len(found) > 1:
        names = ", ".join(each.name for each in found[:10]) + (", ..." if len(found) > 10 else "")
        raise InputError(source_name(source), f"holds {len(found)} profiles: {names}")
    return found[0].profile

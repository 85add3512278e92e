"""Addresses and symbols of one binary as people write them, and the frames there."""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from symbolize.core.arrays import TOP
from symbolize.core.errors import UsageError
from symbolize.core.reasons import Reason
from symbolize.drop_in.binaries import Binaries, Wanted
from symbolize.drop_in.llvm import symbol_and_offset
from symbolize.names import Mode
from symbolize.resolve.module import Module

BUILD_ID: Final = "BUILDID:"
ADDRESS: Final = re.compile(r"(?:0[xX])?[0-9a-fA-F]{1,16}")
MAX_SHOWN: Final = 80
ONLY_ITS_PLACE: Final = "unverified: the files have no build id, only the place of one that has"


def wanted_binary(name: str) -> Wanted:
    """The binary that has the path or, behind `BUILDID:`, the build id `name`."""
    return Wanted(name.removeprefix(BUILD_ID), name.startswith(BUILD_ID))


class ShownFrame(NamedTuple):
    """A frame: names as they are shown and as they are linked, path, line and column (empty and 0: unknown).
    `is_folded`: the function shares its code with others, and may be any of them."""

    function: str
    linked: str
    path: str
    line: int
    column: int
    is_folded: bool

    @property
    def shown(self) -> str:
        """The name, with a mark if it may be that of another function."""
        return (self.function or "??") + (" [folded]" if self.is_folded else "")

    @property
    def where(self) -> str:
        """Path, line and column as far as they are known; a column without a line would be taken for one."""
        numbers = (self.line, self.column) if self.column else (self.line,)
        return ":".join([self.path, *map(str, numbers if self.line else ())])


class Place(NamedTuple):
    """What is known of an address: its frames, innermost first, or the reason why there are none."""

    address: int
    frames: list[ShownFrame]
    reason: Reason


class Addresses:
    """The addresses of one binary."""

    def __init__(self, binaries: Binaries, wanted: Wanted, mode: Mode) -> None:
        """Open the binary. Raises InputError."""
        self._binaries, self._wanted, self._mode = binaries, wanted, mode
        self.module()

    def module(self) -> Module:
        """The binary, opened. Raises InputError if that failed, since it changed."""
        return self._binaries.module_again(self._wanted)

    @property
    def doubt(self) -> str:
        """Why the files may be of another build than the one that was asked for, empty if they are of that. Raises as
        `module`."""
        return "" if self.module().is_verified else ONLY_ITS_PLACE

    def address_of(self, text: str) -> int:
        """The vaddr that a text denotes: hexadecimal digits with or without 0x, or a symbol with or without `+OFFSET`,
        which is decimal or has a prefix. Raises UsageError for anything else, and for a symbol that several functions
        have."""
        text = text.strip()
        if ADDRESS.fullmatch(text):
            return int(text, 16)
        shown = text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"
        if not text or text[:1].isdigit():
            raise UsageError(f"{shown}: is neither an address, in hexadecimal digits, nor SYMBOL+OFFSET")
        symbol, offset = symbol_and_offset(text)
        begins = [begin for begin, _ in self.module().symbol_bounds(symbol.encode(errors="surrogateescape"))]
        if len(begins) != 1:
            problem = f"{len(begins)} functions have this name" if begins else "no function has this name"
            raise UsageError(f"{shown}: {problem}")
        if begins[0] + offset > TOP:
            raise UsageError(f"{shown}: leads to no address of 64 bits")
        return begins[0] + offset

    def places(self, addresses: Sequence[int]) -> list[Place]:
        """What is known of some vaddrs, all asked at once. Raises InputError."""
        answer = self.module().answer(addresses)
        frames = answer.frames
        shown = answer.shown(frames.function.astype(np.int64), self._mode)
        paths = [frames.files[row] if row >= 0 else b"" for row in frames.file.tolist()]
        has_frames = np.diff(frames.offsets) > 0
        is_folded = np.zeros(len(frames.function), np.bool_)
        is_folded[frames.offsets[1:][has_frames] - 1] = frames.folded[has_frames]
        lines = zip(frames.line.tolist(), frames.column.tolist(), is_folded.tolist(), strict=True)
        every = [
            ShownFrame(text_of(name), text_of(link), text_of(path), *line)
            for name, link, path, line in zip(shown.names, shown.system_names, paths, lines, strict=True)
        ]
        offsets = frames.offsets.tolist()
        return [
            Place(address, every[offsets[row] : offsets[row + 1]], Reason(reason))
            for row, (address, reason) in enumerate(zip(addresses, answer.reasons.tolist(), strict=True))
        ]


def text_of(name: bytes) -> str:
    """A name as text."""
    return name.decode(errors="replace")


def as_data(place: Place) -> dict[str, Any]:
    """A place as JSON has it."""
    if not place.frames:
        return {"address": hex(place.address), "frames": [], "reason": place.reason.code}
    frames: list[dict[str, Any]] = []
    for number, frame in enumerate(place.frames):
        one: dict[str, Any] = {"function": frame.function, "system_name": frame.linked}
        if frame.path:
            one["file"] = frame.path
        one |= {name: value for name, value in (("line", frame.line), ("column", frame.column)) if value}
        one |= {"folded": True} if frame.is_folded else {}
        frames.append(one | {"inlined": number + 1 < len(place.frames)})
    return {"address": hex(place.address), "frames": frames}


def lines_of(place: Place, reason: str) -> list[str]:
    """A place as lines of text; callers that the first function was inlined into are indented."""
    if not place.frames:
        return [f"{place.address:#x}: no name: {reason}"]
    lines = []
    for number, frame in enumerate(place.frames):
        start = f"{place.address:#x}: " if not number else "    inlined into "
        lines.append(f"{start}{frame.shown}{f'  {frame.where}' if frame.path else ''}")
    return lines

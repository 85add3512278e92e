"""Puts names into the stack traces of a text, and leaves everything else as it is."""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from symbolize.binaries import is_build_id
from symbolize.core.arrays import TOP
from symbolize.core.errors import SymbolizeError, printable
from symbolize.drop_in.addresses import Addresses, Frame, Place
from symbolize.drop_in.binaries import Binaries, Wanted
from symbolize.drop_in.trace_lines import TraceLine, trace_line
from symbolize.elf import ElfImage, inside_calls
from symbolize.names import Mode
from symbolize.resolve.module import Module

MAX_PADDING: Final = 64
"""Bytes between functions, which the kernel counts to the size of the first."""
PAGE: Final = 0xFFF
ONLY_ITS_NAME: Final = "unverified: found by its name only, the text has no build id of it"
MAX_FILES: Final = 1 << 10
"""Names of files of which it is remembered what they lead to."""


class Log:
    """Names for the frames in a text, from `binaries`; what could not be used is a line that `tell` gets, once."""

    def __init__(self, binaries: Binaries, mode: Mode, tell: Callable[[str], None]) -> None:
        self._binaries, self._mode, self._tell = binaries, mode, tell
        self._known: dict[tuple[str, str], Addresses | None] = {}
        self._doubts: dict[tuple[str, str], str] = {}

    def named(self, lines: Sequence[bytes]) -> list[bytes]:
        """The lines with names, each with its end; each file is asked once for all of them."""
        result = list(lines)
        groups: dict[tuple[str, str], list[tuple[int, TraceLine]]] = {}
        for number, line in enumerate(lines):
            found = trace_line(line)
            if found is not None:
                groups.setdefault((found.file, found.build_id), []).append((number, found))
        for key, frames in groups.items():
            try:
                self._fill(key, frames, result)
            except SymbolizeError as error:
                self._tell(str(error))
                self._known[key] = None
        return result

    def _fill(self, key: tuple[str, str], frames: list[tuple[int, TraceLine]], result: list[bytes]) -> None:
        """Put names into the lines with frames of one file. Raises SymbolizeError."""
        addresses = self._addresses(*key)
        if addresses is None:
            return
        module = addresses.module()
        asked = [(number, frame, vaddr_of(frame, module)) for number, frame in frames]
        asked = [each for each in asked if each[2] is not None and (key[1] or is_likely(*each[1:], module.binary.code))]
        places = addresses.places([vaddr for _, _, vaddr in asked if vaddr is not None])
        for (number, frame, _), place in zip(asked, places, strict=True):
            line = result[number]
            result[number] = with_names(line, frame, place)
            if result[number] != line and key in self._doubts:
                self._tell(self._doubts.pop(key))

    def _addresses(self, file: str, build_id: str) -> Addresses | None:
        """The binary with a build id or, if a text has none, the one that is called `file`; None if there is none."""
        key = file, build_id
        if key not in self._known:
            if len(self._known) >= MAX_FILES:
                self._known.clear()
                self._doubts.clear()
            self._known[key] = None
            name: str | None = build_id
            if not build_id:
                name = next(filter(None, map(self._binaries.called, spellings(file))), None)
            if name is not None and (not build_id or is_build_id(build_id)):
                found = self._known[key] = Addresses(self._binaries, Wanted(name, bool(build_id)), self._mode)
                if doubt := found.doubt if build_id else ONLY_ITS_NAME:
                    self._doubts[key] = f"{printable(name)}: {doubt}"
        return self._known[key]


def spellings(file: str) -> list[str]:
    """The names that a file may have: modules of the kernel have `_` in traces for `-`, and have debug files."""
    names = [file, *([file.replace("_", "-")] if file.endswith(".ko") and "_" in file else [])]
    return [*names, *(f"{name}.debug" for name in names if name == "vmlinux" or name.endswith(".ko"))] if file else []


def vaddr_of(frame: TraceLine, module: Module) -> int | None:
    """The vaddr of a frame; None if its symbol is not there, or is there more than once, or if the frame was at another
    offset in a page of memory, in which files are mapped."""
    vaddr = frame.offset
    if frame.symbol:
        found = module.symbol_bounds(frame.symbol)
        if frame.size:
            found = [(begin, end) for begin, end in found if 0 <= frame.size - (end - begin) < MAX_PADDING]
        if len(found) != 1:
            return None
        begin, end = found[0]
        vaddr += begin
        if vaddr >= max(end, begin + frame.size):
            return None
    return vaddr if frame.address is None or not (vaddr ^ frame.address) & PAGE else None


def is_likely(frame: TraceLine, vaddr: int | None, code: ElfImage | None) -> bool:
    """Whether a file that only has the right name, with this `code`, can be the one that ran (R386, files of texts): a
    symbol was found by its name and size, or the address is one of a call. A sanitizer's first frame need not be
    one."""
    if frame.symbol or code is None:
        return bool(frame.symbol)
    if vaddr is None or vaddr >= TOP:
        return False
    calls = inside_calls(code, np.array([vaddr, vaddr + 1], np.uint64))  # its last byte, and the one behind it
    return calls is not None and bool(calls.all())


def with_names(line: bytes, frame: TraceLine, place: Place) -> bytes:
    """A line with the names of a place, unchanged if these say no more than it does."""
    if not place.frames or (frame.has_name and not any(each.path for each in place.frames)):
        return line
    if frame.kind == "sanitizer":
        if not place.frames[-1].path:  # as the runtime prints a function of which only the name is known
            start = line[: frame.start]
            return start + b"in %b (" % encoded(place.frames[-1].shown) + line[frame.start :].lstrip(b" (")
        rest = line[frame.end :]
        between = b"" if rest.endswith(b"\n") else b"\n"
        return between.join(line[: frame.start] + b"in " + shown(each, b" ") + rest for each in place.frames)
    names = b" (inlined by) ".join(shown(each, b" at ") for each in place.frames)
    return line[: frame.end] + b" " + names + line[frame.end :]


def shown(frame: Frame, before_path: bytes) -> bytes:
    """A frame in a line."""
    return encoded(frame.shown) + (before_path + encoded(frame.where) if frame.path else b"")


def encoded(text: str) -> bytes:
    """Text for the output, without control characters that a file could steer a terminal with."""
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text).encode(errors="replace")

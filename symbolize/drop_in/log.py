"""Puts names into the stack traces of a text, and leaves everything else as it is.

R385, addresses in texts: sanitizers print addresses that are inside of the call, glibc and the kernel return addresses.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from symbolize.binaries import is_build_id
from symbolize.core.arrays import TOP
from symbolize.core.errors import SymbolizeError, printable
from symbolize.drop_in.addresses import Addresses, Place, ShownFrame
from symbolize.drop_in.binaries import Binaries, Wanted
from symbolize.elf import ElfImage, inside_calls
from symbolize.names import Mode
from symbolize.resolve.module import Module

Kind = Literal["sanitizer", "glibc", "kernel"]

LONGEST: Final = 4096
"""Bytes of a line that is looked at; longer ones are no frames."""

SANITIZER: Final = re.compile(
    rb"(?P<start>\s*#\d{1,4} 0x[0-9a-fA-F]{1,16} ) ?(?:in (?P<known>[^\n]+?) )?"
    rb"\((?P<module>[^()\n]{1,1024})\+0x(?P<offset>[0-9a-fA-F]{1,16})\)"
    rb"(?: \(BuildId: (?P<id>[0-9a-fA-F]{4,128})\))?(?P<end>\s*)"
)
GLIBC: Final = re.compile(
    rb"(?<=[^()\s])\((?P<symbol>[^()+\s]{0,512})\+0x(?P<offset>[0-9a-fA-F]{1,16})\)"
    rb" ?\[0x(?P<address>[0-9a-fA-F]{1,16})\]"
)
"""What follows the path of the file, which is looked for backwards: from each byte on, a long line takes too long."""
BORDER: Final = re.compile(rb"[()\s]")
MAX_PATH: Final = 1024
KERNEL: Final = re.compile(
    rb"(?<![\w.$+])(?P<symbol>[A-Za-z_][\w.$]{0,255})\+0x(?P<offset>[0-9a-fA-F]{1,8})/0x(?P<size>[0-9a-fA-F]{1,8})"
    rb"(?: \[(?P<module>[\w-]{1,64})(?: (?P<id>[0-9a-f]{4,128}))?\])?(?![\w+/])"
)
EXACT: Final = re.compile(rb"(?:RIP|EIP|NIP)\b|\bpc : |PC is at ")
"""What the kernel prints before the address at which it stopped, which is none to return to."""


class TraceLine(NamedTuple):
    """A frame in a line: the file by the base name of its recorded path and by its build id (each may be empty), and a
    vaddr, as it is to be looked up, or a symbol with an offset and maybe a size.

    The line up to `start` stays before the names, what is behind `end` stays behind them. `has_name` says that the line
    names the function already. `address` is where the frame was in memory, None if the line does not say it.
    """

    kind: Kind
    file: str
    build_id: str
    symbol: bytes
    offset: int
    size: int
    start: int
    end: int
    has_name: bool
    address: int | None = None


def trace_line(line: bytes) -> TraceLine | None:
    """The frame in a line; None if there is none whose file and address are certain.

    Sanitizers print the address of a frame less 1, also of the first one (`GetPreviousInstructionPc` in
    `sanitizer_stacktrace.cpp`), and it is looked up as it is. `backtrace` of glibc gives return addresses; the kernel
    prints them with the offset that they have and the name of the function that has the byte before (`sprint_backtrace`
    in `kernel/kallsyms.c`): these lose 1, once. Where the kernel stopped (`RIP:`, `EIP:`, `NIP`, `pc :`, `PC is at`)
    the address is exact (R385, addresses in texts).
    """
    if len(line) > LONGEST or b"0x" not in line:
        return None
    return sanitizer_line(line) or glibc_line(line) or kernel_line(line)


def sanitizer_line(line: bytes) -> TraceLine | None:
    """A frame that a sanitizer's runtime printed; the address is in the call already."""
    match = SANITIZER.fullmatch(line)
    if match is None:
        return None
    build_id = (match["id"] or b"").decode()
    file, offset, has_name = base_name(match["module"]), int(match["offset"], 16), match["known"] is not None
    return TraceLine("sanitizer", file, build_id, b"", offset, 0, match.end("start"), match.start("end"), has_name)


def glibc_line(line: bytes) -> TraceLine | None:
    """A frame of glibc's `backtrace_symbols`: a return address."""
    match = GLIBC.search(line)
    if match is None:
        return None
    offset, address, symbol = int(match["offset"], 16), int(match["address"], 16), match["symbol"]
    if not offset or not address:
        return None
    before = line[max(match.start() - MAX_PATH, 0) : match.start()]
    file, end = base_name(BORDER.split(before)[-1]), match.end()
    return TraceLine("glibc", file, "", symbol, offset - 1, 0, end, end, bool(symbol), address - 1)


def kernel_line(line: bytes) -> TraceLine | None:
    """A frame of the kernel's stack traces: a return address, but where it stopped."""
    match = KERNEL.search(line)
    if match is None:
        return None
    offset, size = int(match["offset"], 16), int(match["size"], 16)
    offset -= EXACT.search(line, 0, match.start()) is None
    if not 0 <= offset < size:
        return None
    module = (match["module"] or b"").decode()
    build_id = (match["id"] or b"").decode()
    file = f"{module}.ko" if module else "vmlinux"
    return TraceLine("kernel", file, build_id, match["symbol"], offset, size, match.end(), match.end(), True)


def base_name(path: bytes) -> str:
    """The last part of a recorded path, which is never opened by itself."""
    return path.rpartition(b"/")[2].decode(errors="surrogateescape")


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
    one.

    A symbol counts that the file has once, in the kernel's traces with a size that agrees up to padding of 64 bytes; an
    address whose byte is the last one of a call.
    """
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


def shown(frame: ShownFrame, before_path: bytes) -> bytes:
    """A frame in a line."""
    return encoded(frame.shown) + (before_path + encoded(frame.where) if frame.path else b"")


def encoded(text: str) -> bytes:
    """Text for the output, without control characters that a file could steer a terminal with."""
    return "".join(each if each.isprintable() else f"\\x{ord(each):02x}" for each in text).encode(errors="replace")

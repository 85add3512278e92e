"""Traces over the committed binaries, with addresses that their DWARF has, as the producers write them."""

import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from elftools.elf.elffile import ELFFile

from symbolize.elf import read_build_id
from tests.support import perfetto_writer as w
from tests.support.fixture_files import BINARIES, segments

PAGE = 4096
BASE = 0x7A00_0000_0000
MEMBER_OFFSET = 0x3000
MAX_VADDRS = 160


@dataclass(frozen=True)
class Subject:
    """A binary in a trace: `loaded` is what ran, `debug` has its DWARF, and `offered` is given to the command.

    With `cut` each executable segment is mapped page by page, as after mprotect. With `member` the library lies in an
    archive at `MEMBER_OFFSET`.
    """

    name: str
    loaded: Path
    debug: Path
    offered: tuple[Path, ...]
    cut: bool = False
    member: bool = False

    @property
    def path(self) -> str:
        """The recorded path."""
        return "data/app/base.apk!libresonance.so" if self.member else f"opt/{self.loaded.name}"

    @property
    def base(self) -> int:
        """Where vaddr 0 lies in memory."""
        with self.loaded.open("rb") as file:
            return 0 if ELFFile(file).header["e_type"] == "ET_EXEC" else BASE


def whole(folder: str, name: str, **more: bool) -> Subject:
    """A binary with its DWARF in it."""
    path = BINARIES / folder / name
    return Subject(f"{folder}/{name}" + "".join(f" {each}" for each in more), path, path, (path,), **more)


def split(folder: str, name: str, *offered: str) -> Subject:
    """A stripped binary and its debug file, of which one or both are offered."""
    here = BINARIES / folder
    return Subject(
        f"{folder}/{name} {'+'.join(offered)}",
        here / "stripped" / name,
        here / "debug" / f"{name}.debug",
        tuple(here / part for part in offered),
    )


SUBJECTS = (
    whole("gcc-pie", "ledger"),
    whole("gcc-pie", "ledger", cut=True),
    whole("gcc-pie", "libresonance.so"),
    whole("gcc-nopie-dwarf4", "spectra"),  # ET_EXEC
    whole("clang-nopie-dwarf4-lld", "ledger"),  # ET_EXEC, p_vaddr != p_offset
    whole("clang-nopie-dwarf4-lld", "libresonance.so"),  # p_vaddr != p_offset
    whole("clang-nopie-dwarf4-lld", "libresonance.so", member=True),
    whole("aarch64", "spectra"),
    split("gcc-split", "ledger", "stripped", "debug"),
    split("gcc-split", "libresonance.so", "debug"),
    split("segments", "libresonance.so", "stripped", "debug"),  # two executable segments
)


@cache
def vaddrs(subject: Subject) -> tuple[int, ...]:
    """Some addresses of rows of the line tables in executable segments, and the bytes before such addresses."""
    places = segments(subject.loaded)
    found: set[int] = set()
    with subject.debug.open("rb") as file:
        dwarf = ELFFile(file).get_dwarf_info()
        for unit in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            last = 0
            for entry in program.get_entries() if program is not None else ():
                state = entry.state
                if state is None:
                    continue
                if last:
                    found |= {last, max(last, state.address - 1)}
                last = 0 if state.end_sequence else state.address
    inside = sorted(v for v in found if any(begin <= v < begin + size for _, begin, size in places))
    chosen = inside[:: -(-len(inside) // MAX_VADDRS)]
    return tuple(chosen)


def placed(subject: Subject) -> Iterator[tuple[int, int, int, list[int]]]:
    """The mappings of a subject: start, end, offset in the ELF file, and the vaddrs in it."""
    for offset, vaddr, size in segments(subject.loaded):
        low, high = vaddr // PAGE * PAGE, -(-(vaddr + size) // PAGE) * PAGE
        for begin in range(low, high, PAGE if subject.cut else high - low):
            end = min(high, begin + PAGE) if subject.cut else high
            here = [each for each in vaddrs(subject) if begin <= each < end]
            yield subject.base + begin, subject.base + end, offset + begin - vaddr, here


def state(subject: Subject) -> tuple[bytes, int]:
    """Interned data as libunwindstack makes it, each address a callstack of its own, and how many there are.

    Its load bias is that of the first executable segment, for all segments.
    """
    offset, vaddr, _ = segments(subject.loaded)[0]
    bias = vaddr - offset
    inside = MEMBER_OFFSET if subject.member else 0
    mappings: list[bytes] = []
    frames: list[bytes] = []
    for start, end, in_file, here in placed(subject):
        iid = len(mappings) + 1
        mappings.append(w.mapping(iid, 1, start, end, in_file + inside, inside, bias, [1]))
        for each in here:
            rel_pc = subject.base + each - start + in_file + bias
            frames.append(w.frame(len(frames) + 1, 0, iid, rel_pc))
    count = len(frames)
    stacks = [w.callstack(number, [number]) for number in range(1, count + 1)]
    build_id = bytes.fromhex(read_build_id(str(subject.loaded)) or "")
    return w.interned({}, {1: build_id}, {1: subject.path}, {}, mappings, frames, stacks), count


def module_id(build_id: str) -> bytes:
    """The id of a module as Chromium writes it: pairs of digits in the order of a GUID, and a zero."""
    text = build_id[:32].ljust(32, "0").upper()
    swapped = [text[6:8], text[4:6], text[2:4], text[0:2], text[10:12], text[8:10], text[14:16], text[12:14]]
    return ("".join(swapped) + text[16:] + "0").encode()


def chromium_state(subject: Subject) -> tuple[bytes, int]:
    """Interned data as Chromium makes it: a module without a range, and stacks of a call and what it called, whose
    address lies behind that of the call."""
    build_id = read_build_id(str(subject.loaded)) or ""
    here = vaddrs(subject)
    frames = [w.frame(2 * n + 1, 0, 1, each) for n, each in enumerate(here)]
    frames += [w.frame(2 * n + 2, 0, 1, each + 1) for n, each in enumerate(here)]
    stacks = [w.callstack(n + 1, [2 * n + 2, 2 * n + 1]) for n in range(len(here))]
    mapping = w.mapping(1, 1, path=[1], exact_offset=None)
    return w.interned({}, {1: module_id(build_id)}, {1: subject.path}, {}, [mapping], frames, stacks), len(here)


def archive(subject: Subject, path: Path) -> None:
    """Make a zip file that stores a library at `MEMBER_OFFSET`, as Android packs them."""
    info = zipfile.ZipInfo("lib/x86_64/libresonance.so")
    padding = MEMBER_OFFSET - 30 - len(info.filename) - 4
    info.extra = struct.pack("<HH", 0xD935, padding) + bytes(padding)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        file.writestr(info, subject.loaded.read_bytes())

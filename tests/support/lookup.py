"""Short ways from the bytes of a test to frames."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from symbolize.binaries import BinaryIndex, Companions
from symbolize.elf import ElfImage
from symbolize.symbols import build_table
from symbolize.symbols.table import SymbolTable
from tests.support.dwarf_writer import Unit, dwarf_sections
from tests.support.elf_writer import Section, Symbol, elf_file, text

TEXT = text()


class Frame(NamedTuple):
    """A frame as a test wants it: the linked name, else the qualified one."""

    name: str
    file: str = ""
    line: int = 0
    column: int = 0
    start_line: int = 0


def image_of(
    units: Sequence[Unit] = (),
    sections: Sequence[Section] = (TEXT,),
    symbols: Sequence[Symbol] = (),
    dynamic: Sequence[Symbol] = (),
    **options: object,
) -> ElfImage:
    """An ELF file with these units, opened."""
    if units:
        options = {"big_endian": units[0].format.big_endian, "is_64": units[0].format.address_size == 8} | options
    data = elf_file([*sections, *dwarf_sections(units)], symbols=symbols, dynamic=dynamic, **options)  # type: ignore[arg-type]
    return ElfImage.parse(memoryview(data), "test")


def vaddr_in(image: ElfImage, section: str, offset: int = 0) -> int:
    """The vaddr of an offset into the first section with a name (rule R94)."""
    found = image.find(section)
    assert found is not None
    return found.vaddr + offset


def frames_of(table: SymbolTable, vaddrs: Iterable[int]) -> list[list[Frame]]:
    """The frames at each of the ascending addresses, innermost first."""
    found = table.lookup(np.array(list(vaddrs), np.uint64))
    functions, result = found.functions, []
    for first, last in zip(found.offsets[:-1].tolist(), found.offsets[1:].tolist(), strict=True):
        frames = []
        for k in range(first, last):
            function, file = int(found.function[k]), int(found.file[k])
            name = functions.linkage[function] or functions.name[function]
            path = found.files[file].decode(errors="replace") if file >= 0 else ""
            line, column = int(found.line[k]), int(found.column[k])
            start = int(functions.decl_line[function])
            frames.append(Frame(name.decode(errors="replace"), path, line, column, start))
        result.append(frames)
    return result


def finder_of(path: Path, *roots: Path) -> Companions:
    """What finds the companions of the binary `path` below some roots, or beside it if none are given."""
    return Companions(BinaryIndex([str(root) for root in roots or (path.parent,)]), [str(path)])


def names_at(image: ElfImage, *vaddrs: int, finder: Companions | None = None) -> list[list[str]]:
    """The names at each of the ascending addresses, innermost first; built for them and for all, which must agree."""
    whole, some = (build_table([image], asked, finder) for asked in (None, np.array(vaddrs, np.uint64)))
    names = [[frame.name for frame in frames] for frames in frames_of(whole, vaddrs)]
    assert names == [[frame.name for frame in frames] for frames in frames_of(some, vaddrs)]
    return names


def frames_at(image: ElfImage, *vaddrs: int) -> list[list[Frame]]:
    """The frames at each of the ascending addresses, innermost first."""
    return frames_of(build_table([image], np.array(vaddrs, np.uint64)), vaddrs)


def places_at(image: ElfImage, *vaddrs: int) -> list[tuple[str, int, int]]:
    """File, line and column of the innermost frame at each of the ascending addresses."""
    return [tuple(frames[0][1:4]) if frames else ("", -1, -1) for frames in frames_at(image, *vaddrs)]  # type: ignore[misc]

"""One opened ELF image: segments, sections, build id, symbol tables. Knows no profiles and no DWARF."""

from symbolize.elf.call_sites import code_around, inside_calls, jumps_through_tables
from symbolize.elf.image import ElfError, ElfImage, Section, Segment, loaded_base
from symbolize.elf.plt import read_plt
from symbolize.elf.probe import Ident, identify, read_build_id
from symbolize.elf.symbols import Symbols, read_symbols, without_tag

__all__ = [
    "ElfError",
    "ElfImage",
    "Ident",
    "Section",
    "Segment",
    "Symbols",
    "code_around",
    "identify",
    "inside_calls",
    "jumps_through_tables",
    "loaded_base",
    "read_build_id",
    "read_plt",
    "read_symbols",
    "without_tag",
]

"""One opened ELF image: segments, sections, build id, symbol tables. Knows no profiles and no DWARF."""

from symbolize.elf.calls import inside_calls
from symbolize.elf.ident import read_build_id
from symbolize.elf.image import ElfError, ElfImage, Section, Segment
from symbolize.elf.minidebug import mini_image
from symbolize.elf.relocate import section_reader
from symbolize.elf.symbols import Symbols, read_symbols, without_tag
from symbolize.elf.unwind import frame_ranges

__all__ = [
    "ElfError",
    "ElfImage",
    "Section",
    "Segment",
    "Symbols",
    "frame_ranges",
    "inside_calls",
    "mini_image",
    "read_build_id",
    "read_symbols",
    "section_reader",
    "without_tag",
]

"""The symbol table of a binary in the formats of other tools."""

import os
from collections.abc import Iterator
from typing import Final

from symbolize.elf import ElfImage
from symbolize.symbol_files import debug_id
from symbolize.symbol_files.breakpad import Module
from symbolize.symbol_files.breakpad_write import write_breakpad
from symbolize.symbol_files.gsym_write import write_gsym
from symbolize.symbols.binary import Binary
from symbolize.symbols.listing import listing_of

PAGE: Final = 4096
GSYM, BREAKPAD = "gsym", "breakpad"
ENDINGS: Final = {".gsym": GSYM, ".sym": BREAKPAD, ".breakpad": BREAKPAD}
"""The formats by the endings of their files."""

CPUS: Final = {
    "EM_386": "x86",
    "EM_X86_64": "x86_64",
    "EM_ARM": "arm",
    "EM_AARCH64": "arm64",
    "EM_MIPS": "mips",
    "EM_PPC": "ppc",
    "EM_PPC64": "ppc64",
    "EM_S390": "s390",
    "EM_RISCV": "riscv",
    "EM_LOONGARCH": "loongarch64",
}
"""What Breakpad calls a processor."""


def export(binary: Binary, format: str, *, merged: bool = False) -> Iterator[bytes]:
    """The whole table of `binary` as a file of `format`, in pieces; with `merged` GSYM has all names of shared code.

    Raises ValueError for what the format cannot hold, and as `Binary.table` does.
    """
    table = binary.table()
    listing = listing_of(table)
    image = binary.loaded
    base = base_of(binary)
    build_id = next((each.build_id for each in binary.files if each.build_id), "")
    if format == GSYM:
        yield write_gsym(listing, bytes.fromhex(build_id), base, merged=merged)
    else:
        module = Module(debug_id(build_id) + "0", build_id, os.path.basename(name_of(binary)))
        yield from write_breakpad(listing, module, CPUS.get(image.machine, "unknown"), base)
    table.check()


def base_of(binary: Binary) -> int:
    """The vaddr, as the table has them, from which addresses of a loaded file count: the page of its first segment."""
    segments = next((image.segments for image in (binary.loaded, *binary.images) if image.segments), ())
    low = min((segment.vaddr for segment in segments), default=0)
    return (low + binary.shift) % (1 << 64) // PAGE * PAGE


def name_of(binary: Binary) -> str:
    """The path of the file with the code, else of the first."""
    image: ElfImage = binary.code or binary.images[0]
    return image.path

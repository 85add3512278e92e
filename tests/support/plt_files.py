"""Files with procedure linkage tables of linkers."""

import json
import struct
from typing import Any

from symbolize.elf import ElfImage
from tests.support.elf_writer import (
    AARCH64,
    ALLOC,
    ARM,
    EXEC,
    GNU_IFUNC,
    I386,
    NOBITS,
    PPC64,
    REL,
    RELA,
    RISCV,
    S390,
    UNDEF,
    X86_64,
    Section,
    Symbol,
    elf_file,
)
from tools.make_plt_layouts import LAYOUTS as FILE

LAYOUTS: dict[str, dict[str, Any]] = json.loads(FILE.read_text())


MACHINES = {"EM_X86_64": X86_64, "EM_386": I386, "EM_AARCH64": AARCH64, "EM_ARM": ARM}


MACHINES |= {"EM_RISCV": RISCV, "EM_PPC64": PPC64, "EM_S390": S390}


def relocations(layout: dict[str, Any], names: list[str]) -> Section:
    """The section of the relocations of a layout."""
    order, is_64 = ">" if layout["big_endian"] else "<", layout["is_64"]
    has_addend = layout["machine"] not in ("EM_386", "EM_ARM")
    data = bytearray()
    for word, number, name, addend in layout["words"]:
        symbol = names.index(name) + 1 if name else 0
        data += struct.pack(order + ("QQ" if is_64 else "II"), word, symbol << (32 if is_64 else 8) | number)
        if has_addend:
            data += struct.pack(order + ("q" if is_64 else "i"), addend)
    return Section(".rela.plt", bytes(data), RELA if has_addend else REL, ALLOC, link=".dynsym")


def file_of(
    layout: dict[str, Any], symbols: list[Symbol] | None = None, nobits: bool = False, table_size: int = 0x100
) -> ElfImage:
    """A file with a layout; one without contents, as a debug file has it, if `nobits`."""
    names = list(dict.fromkeys(row[2] for row in layout["words"] if row[2]))
    code = [Section(name, bytes.fromhex(data), 1, ALLOC | EXEC, at) for name, at, data in layout["code"]]
    first = code[0].name
    if nobits:
        code = [section._replace(type=NOBITS, data=b"", size=len(section.data)) for section in code]
    dynamic = [Symbol(name, section=UNDEF) for name in names]
    dynamic += [Symbol(name, at, 4, GNU_IFUNC, bind, section=first) for at, name, bind in layout.get("resolvers", [])]
    tables = [Section(name, type=NOBITS, flags=ALLOC | 1, address=at, size=table_size) for name, at in layout["tables"]]
    data = elf_file(
        [*code, *tables, relocations(layout, names)],
        symbols=symbols or (),
        dynamic=dynamic,
        is_64=layout["is_64"],
        big_endian=layout["big_endian"],
        machine=MACHINES[layout["machine"]],
    )
    return ElfImage.parse(memoryview(data), "test")

"""Virtual bases for the sections of relocatable files, in which nothing has an address yet (R94, sections of object
files)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from symbolize.elf.headers import SHF_ALLOC

if TYPE_CHECKING:
    from symbolize.elf.image import Section

ALIGNMENT = 16
MAX_ALIGNMENT = 1 << 16
SHORT_ADDRESSES = frozenset({"EM_AVR", "EM_MSP430"})
"""Machines whose DWARF may have addresses of 16 bits."""


def lay_out(sections: Sequence["Section"], is_64: bool, machine: str) -> list["Section"]:
    """The sections with virtual bases as vaddrs: those that are loaded behind one another, all others at 0.

    A file and its debug file get the same bases. The lowest base exceeds every offset into a section, so that an
    unrelocated address is in none (R56, discarded code near zero), and no two sections touch. A section that does not
    fit into the address space is not loaded.
    """
    if machine in SHORT_ADDRESSES:
        result = placed(sections, 1 << 16, ALIGNMENT)
        if all(new.flags == old.flags for new, old in zip(result, sections, strict=True)):
            return result
    return placed(sections, 1 << (63 if is_64 else 31), MAX_ALIGNMENT)


def placed(sections: Sequence["Section"], limit: int, first_alignment: int) -> list["Section"]:
    """The sections with bases below `limit`, the lowest of which has the alignment `first_alignment`."""
    loaded = [section.size for section in sections if section.flags & SHF_ALLOC and section.size < limit // 2]
    base = aligned(max(loaded, default=0) + 1, first_alignment)
    result = []
    for section in sections:
        vaddr, flags = 0, section.flags
        if flags & SHF_ALLOC:
            vaddr = aligned(base, min(max(section.alignment, ALIGNMENT), MAX_ALIGNMENT))
            if vaddr + section.size < limit:
                base = vaddr + section.size + 1
            else:
                vaddr, flags = 0, flags & ~SHF_ALLOC
        result.append(section._replace(vaddr=vaddr, flags=flags))
    return result


def aligned(value: int, alignment: int) -> int:
    """`value` rounded up to a multiple."""
    return -(-value // alignment) * alignment

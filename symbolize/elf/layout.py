"""Virtual bases for the sections of relocatable files, in which nothing has an address yet (R94, sections of object
files)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from symbolize.elf.headers import SHF_ALLOC

if TYPE_CHECKING:
    from symbolize.elf.image import Section

ALIGNMENT = 16
MAX_ALIGNMENT = 1 << 16


def lay_out(sections: Sequence["Section"], is_64: bool) -> list["Section"]:
    """The sections with virtual bases as vaddrs: those that are loaded behind one another, all others at 0.

    A file and its debug file get the same bases. The lowest base exceeds every offset into a section, so that an
    unrelocated address is in none (R56, discarded code near zero), and no two sections touch. A section that does not
    fit into the address space is not loaded.
    """
    limit = 1 << (63 if is_64 else 31)
    loaded = [section.size for section in sections if section.flags & SHF_ALLOC and section.size < limit // 4]
    base = aligned(max(loaded, default=0) + 1, MAX_ALIGNMENT)
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

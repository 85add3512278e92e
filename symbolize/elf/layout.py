"""Virtual bases for the sections of relocatable files, in which nothing has an address yet (rule R94)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from symbolize.elf.headers import SHF_ALLOC

if TYPE_CHECKING:
    from symbolize.elf.image import Section

ALIGNMENT = 16
MAX_ALIGNMENT = 1 << 16


def lay_out(sections: Sequence["Section"], is_64: bool) -> list["Section"]:
    """The sections with virtual bases as their vaddrs: those that are loaded one behind the other, all others at 0.

    A file and its debug file, which have the same sections, get the same bases. The lowest base lies above every
    offset into a section, so that an address which no relocation filled in lies in none (rule R56), and no two
    sections touch. A section that finds no place in the address space is no longer one that is loaded.
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

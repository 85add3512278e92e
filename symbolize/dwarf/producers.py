"""Which compilers made units, and how far their lists of functions and calls are complete."""

from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import Bool, Int32, Int64, UInt32, distinct_inverse, is_among
from symbolize.dwarf.constants import NOWHERE, DW_AT_producer
from symbolize.dwarf.names import read_die
from symbolize.dwarf.qualify import UNSCOPED_LANGUAGES
from symbolize.dwarf.sources import DwarfSources, Source


class ListedCalls(NamedTuple):
    """What is known of units whose functions say that their lists of calls are complete: of which that holds for all
    calls, and of which for tail calls where no jump goes through a table at a fixed address."""

    all_calls: Bool
    tail_calls: Bool


def producers_of(sources: DwarfSources, source: Source, units: Int64) -> list[bytes]:
    """The compiler of each of `units` of a source, as it calls itself; empty if that is not known."""
    roots = (read_die(source.reader, die) for die in np.asarray(source.reader.units.first_die)[units].tolist())
    names = (root[1].get(DW_AT_producer, NOWHERE) if root is not None else NOWHERE for root in roots)
    return [sources.string(source.tagged_one(name)) if name != NOWHERE else b"" for name in names]


def unpacked_discriminators(sources: DwarfSources, packed: UInt32, unit: Int32 | Int64) -> tuple[UInt32, UInt32]:
    """What tells code on one line apart, and how often the compiler duplicated the code (0: not at all), of the
    discriminators of code in units of the binary (R493, discriminators for columns). Those of gcc, which counts
    otherwise, are 0: no compiler but its own finds what it counted."""
    of_code, which = distinct_inverse(unit.astype(np.int64))
    is_gnu = np.array([name.startswith(b"GNU ") for name in producers_of(sources, sources.main, of_code)], np.bool_)
    packed = np.where(is_gnu[which], np.uint32(0), packed)
    base = _first_number(packed)
    return base, _first_number(np.where(packed & 1, packed >> 1, packed >> np.where(packed & 0x40, 14, 7)))


def _first_number(packed: UInt32) -> UInt32:
    """The first of the numbers that LLVM packs into a discriminator: after a bit that is set where it is absent 5 bits,
    or 12 around one that says so."""
    found = np.where(packed & 0x40, (packed >> 2 & 0xFE0) | (packed >> 1 & 0x1F), packed >> 1 & 0x1F)
    return np.where(packed & 1, 0, found).astype(np.uint32)


def listed_calls(sources: DwarfSources, source: Source, units: Int64) -> ListedCalls:
    """How far the lists of calls in `units` of a source are complete (R371, lists of calls).

    LLVM puts DW_AT_call_all_calls on functions although it leaves out the calls of what it has no DIE of. gcc says that
    a function lists all its calls where that is so. LLVM says it of all functions, and leaves out calls of members of
    classes that other files define, of functions of other crates, and of those that it knows itself, such as `memcpy`;
    on x86 also jumps through tables at fixed addresses, which code that may be loaded anywhere has none of. So of other
    compilers than GNU's a function may have a call where it lists none, and all its tail calls are known only in C, if
    its code has no such jump. As evidence for builds (R370, builds by their callers) all lists count, but a caller does
    not disagree if the next function may be a member of a class.
    """
    is_gnu = np.array([name.startswith(b"GNU ") for name in producers_of(sources, source, units)], np.bool_)
    is_c = is_among(np.asarray(source.reader.units.language)[units], UNSCOPED_LANGUAGES)
    return ListedCalls(is_gnu, is_gnu | is_c)

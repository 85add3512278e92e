"""From runtime addresses to vaddrs: pure functions over segments."""

from mmap import PAGESIZE
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.elf import Section, Segment
from symbolize.elf.headers import SHT_PROGBITS
from symbolize.profile import NONE, Locations, Mappings, Profile, assign_mappings
from symbolize.profile.model import covers_everything
from symbolize.resolve.addresses import (
    candidate_bases,
    differs_in_length,
    fits,
    in_code,
    load_segments,
    map_module_addresses,
    to_vaddrs,
    true_offset,
)

TOP = (1 << 64) - 1

PIE = [
    Segment(0x0, 0x0, 0x800, 0x800, 0x1000, False),
    Segment(0x1000, 0x1000, 0x2345, 0x2345, 0x1000, True),
    Segment(0x4000, 0x4000, 0x500, 0x500, 0x1000, False),
    Segment(0x4DE0, 0x5DE0, 0x300, 0x400, 0x1000, False),
]
"""GNU ld: a segment begins on its page, vaddr and file offset agree but in the data."""

LLD = [
    Segment(0x0, 0x200000, 0x900, 0x900, 0x1000, False),
    Segment(0x900, 0x201900, 0x1700, 0x1700, 0x1000, True),
    Segment(0x2000, 0x204000, 0x200, 0x200, 0x1000, False),
]
"""lld: segments lie close in the file, and the page where two meet is mapped twice."""

GO = [
    Segment(0x0, 0x400000, 0xAC0CA, 0xAC0CA, 0x1000, True),
    Segment(0xAD000, 0x4AD000, 0xB20D8, 0xB20D8, 0x1000, False),
]
"""Code and headers in one segment."""

FIRST = [
    Segment(0x0, 0x0, 0x14EC, 0x14EC, 0x1000, True),
    Segment(0x1DD0, 0x2DD0, 0x2A4, 0x7110, 0x1000, False),
]
"""A PIE with code and headers in one segment, and with much memory that the file does not have."""

HUGE = [
    Segment(0x0, 0x0, 0x1000, 0x1000, 0x200000, False),
    Segment(0x200000, 0x200000, 0x900000, 0x900000, 0x200000, True),
]
"""Aligned for huge pages."""


SHARED = [
    Segment(0x1000, 0x21000, 0x1000, 0x1000, 0x1000, False),
    Segment(0x1000, 0x11000, 0x1000, 0x1000, 0x1000, True),
    Segment(0x1000, 0x31000, 0x1000, 0x1000, 0x1000, False),
]
"""The same bytes of the file at several addresses."""


class Case(NamedTuple):
    """An address in a mapping, and its vaddr (None: in no segment)."""

    desc: str
    segments: list[Segment]
    address: int
    start: int
    limit: int
    offset: int
    vaddr: int | None
    relocatable: bool = True


BASE = 0x5555_5555_0000

CASES = [
    Case("PIE, first byte of code", PIE, BASE + 0x1000, BASE + 0x1000, BASE + 0x4000, 0x1000, 0x1000),
    Case("PIE, inside the code", PIE, BASE + 0x1ABC, BASE + 0x1000, BASE + 0x4000, 0x1000, 0x1ABC),
    Case("PIE, last byte of code", PIE, BASE + 0x3344, BASE + 0x1000, BASE + 0x4000, 0x1000, 0x3344),
    Case("PIE, padding behind the code", PIE, BASE + 0x3345, BASE + 0x1000, BASE + 0x4000, 0x1000, None),
    Case("PIE, mapped as a whole", PIE, BASE + 0x1ABC, BASE, BASE + 0x6000, 0, 0x1ABC),
    Case("PIE, data with another shift", PIE, BASE + 0x5E00, BASE + 0x5000, BASE + 0x6000, 0x4000, 0x5E00),
    Case("address below its mapping", PIE, BASE + 0xFFF, BASE + 0x1000, BASE + 0x4000, 0x1000, None),
    Case("address at the limit of its mapping", PIE, BASE + 0x2000, BASE + 0x1000, BASE + 0x2000, 0x1000, None),
    Case("mprotect cut the code, first part", PIE, BASE + 0x1FFF, BASE + 0x1000, BASE + 0x2000, 0x1000, 0x1FFF),
    Case("mprotect cut the code, last part", PIE, BASE + 0x2001, BASE + 0x2000, BASE + 0x4000, 0x2000, 0x2001),
    Case(
        "huge pages, head of small pages", HUGE, BASE + 0x200010, BASE + 0x200000, BASE + 0x400000, 0x200000, 0x200010
    ),
    Case("huge pages, middle", HUGE, BASE + 0x654321, BASE + 0x400000, BASE + 0xA00000, 0x400000, 0x654321),
    Case("huge pages, tail", HUGE, BASE + 0xAFFFFF, BASE + 0xA00000, BASE + 0xB00000, 0xA00000, 0xAFFFFF),
    Case("lld, code in the page it shares with what is before", LLD, BASE + 0x901, BASE, BASE + 0x2000, 0, 0x201901),
    Case("lld, code beyond that page", LLD, BASE + 0x1800, BASE, BASE + 0x2000, 0, 0x202800),
    Case("lld, read-only data in the page it shares with code", LLD, BASE + 0x2010, BASE, BASE + 0x3000, 0, 0x204010),
    Case("fixed address", LLD, 0x201A00, 0x201000, 0x203000, 0x0, 0x201A00, False),
    Case("fixed address, mapping without its offset", GO, 0x401234, 0x401000, 0x4AD000, 0, 0x401234, False),
    Case("fixed address, file moved by a loader", GO, BASE + 0x1234, BASE, BASE + 0xAD000, 0, 0x401234, False),
    Case("Go, code from the first byte of the file on", GO, 0x400FFF, 0x400000, 0x4AD000, 0, 0x400FFF, False),
    Case("fixed address, last byte of code", GO, 0x4AC0C9, 0x400000, 0x600000, 0x900000, 0x4AC0C9, False),
    Case("fixed address, behind the code", GO, 0x4AC0CA, 0x400000, 0x600000, 0x900000, None, False),
    Case("fixed address, data that lost its offset", GO, 0x4AD010, 0x400000, 0x600000, 0x900000, None, False),
    Case("shared object high in memory", PIE, TOP - 0x1000, TOP - 0x1FFF, TOP, 0x1000, 0x1FFF),
    Case("file offset at the end of 64 bits", PIE, BASE + 0x1000, BASE, BASE + 0x2000, TOP, None),
    Case(
        "bytes that code and data share are code", SHARED, BASE + 0x1800, BASE + 0x1000, BASE + 0x3000, 0x1000, 0x11800
    ),
    Case("no segments", [], BASE + 0x1000, BASE, BASE + 0x2000, 0, None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.desc)
def test_vaddr(case: Case) -> None:
    """An address becomes a vaddr through the segment that holds its file offset (rules R125–R127)."""
    vaddr, found = to_vaddrs(
        np.array([case.address], np.uint64), case.start, case.limit, case.offset, case.segments, case.relocatable
    )
    assert (int(vaddr[0]) if found[0] else None) == case.vaddr


def test_addresses_go_each_their_own_way() -> None:
    """One address outside its mapping spoils none of the others."""
    addresses = np.array([7, BASE + 0x1000, BASE + 0x3900, BASE + 0x2000, TOP], np.uint64)
    vaddr, found = to_vaddrs(addresses, BASE + 0x1000, BASE + 0x4000, 0x1000, PIE, True)
    assert found.tolist() == [False, True, False, True, False]
    assert vaddr[found].tolist() == [0x1000, 0x2000]


def stripped_of_bytes(segments: list[Segment]) -> list[Segment]:
    """The segments as `objcopy --only-keep-debug` leaves them."""
    return [segment._replace(file_offset=0, file_size=0) for segment in segments]


class DebugCase(NamedTuple):
    """A mapping, and the vaddr at which its first byte lies (None: cannot be told)."""

    desc: str
    segments: list[Segment]
    start: int
    limit: int
    offset: int
    vaddr: int | None


DEBUG_CASES = [
    DebugCase("the whole code of a PIE", PIE, BASE + 0x1000, BASE + 0x4000, 0x1000, 0x1000),
    DebugCase("the whole code by lld, its file offset far from its vaddr", LLD, 0x201000, 0x203000, 0, 0x201000),
    DebugCase("a part cut off by mprotect", PIE, BASE + 0x2000, BASE + 0x3000, 0x2000, 0x2000),
    DebugCase("longer than the code", PIE, BASE + 0x1000, BASE + 0x9000, 0x1000, None),
    DebugCase("a part of lld's code, which could be anywhere in it", LLD, 0x202000, 0x203000, 0x1000, None),
    DebugCase("its last page, whose place in the file the vaddr does not tell", LLD, 0x202000, 0x203000, 0x2000, None),
    DebugCase("file offset at the end of 64 bits", LLD, 0x201000, 0x203000, TOP - 0x10, None),
    DebugCase("all of the memory, the code first", FIRST, BASE, BASE + 0xA000, 0, 0),
    DebugCase("a page more than all of the memory", FIRST, BASE, BASE + 0xB000, 0, None),
    DebugCase("no code at all", [PIE[0]], BASE, BASE + 0x1000, 0, None),
]


@pytest.mark.parametrize("case", DEBUG_CASES, ids=lambda case: case.desc)
def test_segments_without_file_bytes(case: DebugCase) -> None:
    """A debug file is placed by the length of the mapping, or where file offsets must run like vaddrs."""
    found = load_segments(stripped_of_bytes(case.segments), case.start, case.limit, case.offset)
    if case.vaddr is None:
        assert found is None
        return
    assert found is not None
    code = next(segment for segment in case.segments if segment.executable)
    first = max(case.start, case.start + code.vaddr - case.vaddr)
    vaddr, inside = to_vaddrs(np.array([first], np.uint64), case.start, case.limit, case.offset, found, True)
    assert inside.tolist() == [True]
    assert int(vaddr[0]) == case.vaddr + first - case.start


@pytest.mark.parametrize(
    ("desc", "segments", "size", "offset", "expected"),
    [
        ("an offset that is there stays", PIE, 0x3000, 0x1000, 0x1000),
        ("lost, as long as the code", PIE, 0x3000, 0, 0x1000),
        ("lost, as long as lld's code", [LLD[0], LLD[1]._replace(file_offset=0x1900)], 0x2000, 0, 0x1000),
        ("the whole file from its beginning", PIE, 0x6000, 0, 0),
        ("a part of the code, which could be any", PIE, 0x1000, 0, None),
        ("lost, as long as both of two", [PIE[0], PIE[1], PIE[1]._replace(file_offset=0x9000)], 0x3000, 0, None),
        ("reaches behind the code", PIE, 0x3345, 0, 0),
        ("ends with the code", [PIE[0], PIE[1], PIE[1]._replace(file_offset=0x9000)], 0xB345, 0, 0),
        ("ends before the code does", [PIE[0], PIE[1], PIE[1]._replace(file_offset=0x9000)], 0xB344, 0, None),
        ("a segment without bytes is none", [PIE[1], PIE[1]._replace(file_size=0)], 0x3000, 0, 0x1000),
        ("code begins with the file", GO, 0x1000, 0, 0),
        ("no code", [PIE[0]], 0x1000, 0, 0),
    ],
)
def test_lost_offset(desc: str, segments: list[Segment], size: int, offset: int, expected: int | None) -> None:
    """An offset that the memory map left out is told from the length of the mapping, and otherwise not guessed
    (rule R147). What is recorded of a proven file counts."""
    assert true_offset(segments, BASE, BASE + size, offset, verified=False) == expected
    assert true_offset(segments, BASE, BASE + size, offset, verified=True) == (offset if expected is None else expected)
    assert true_offset(PIE, BASE, TOP, 0, verified=True) is None


@pytest.mark.parametrize(
    ("desc", "limit", "offset", "fitting"),
    [
        ("the code", 0x4000, 0x1000, True),
        ("the whole file, rounded to pages", 0x6000, 0, True),
        ("a page more than the file has", 0x7000, 0, False),
        ("an offset behind the end of the file", 0x4000, 0x4000, False),
    ],
)
def test_fits(desc: str, limit: int, offset: int, fitting: bool) -> None:
    """A file that is shorter than what was mapped of it is another file."""
    start = BASE + (0x1000 if offset == 0x1000 else 0)
    assert fits(PIE, start, BASE + limit, offset) is fitting


@pytest.mark.parametrize(
    ("segments", "size", "offset", "fitting"),
    [
        (FIRST, 0xA000, 0, True),
        (FIRST, 0x9000, 0, False),
        (FIRST, 0xB000, 0, False),
        (FIRST, 0xA000, 0x1000, False),
        ([FIRST[0]._replace(executable=False), FIRST[1]], 0xA000, 0, False),
    ],
)
def test_code_that_is_mapped_with_room_for_all(segments: list[Segment], size: int, offset: int, fitting: bool) -> None:
    """The mapping of the first segment of a PIE is as long as all of its memory when it is made, and recorded so."""
    assert fits(segments, BASE, BASE + size, offset) is fitting


U64 = st.one_of(st.integers(0, TOP), st.sampled_from([0, 1, 0xFFF, 0x1000, 1 << 63, TOP - 1, TOP]))
SEGMENTS = st.lists(st.builds(Segment, U64, U64, U64, U64, U64, st.booleans()), max_size=4)


def code_at(offset: int, pages: int) -> list[Segment]:
    """Code at an offset of a file, in so many pages of this machine, the last of which has one byte."""
    size = (pages - 1) * PAGESIZE + 1
    return [Segment(offset, offset, size, size, PAGESIZE, True), Segment(1 << 30, 1 << 30, 1, 1, PAGESIZE, False)]


@pytest.mark.parametrize(
    ("segments", "pages", "offset", "expected"),
    [
        (code_at(PAGESIZE, 16), 16, PAGESIZE, False),
        (code_at(PAGESIZE, 16), 15, PAGESIZE, True),
        (code_at(PAGESIZE, 16), 17, PAGESIZE, True),
        (code_at(PAGESIZE, 16), 17, 2 * PAGESIZE, False),
        (code_at(0, 16), 40, 0, False),  # mapped whole at first
        (code_at(PAGESIZE, 16) * 2, 17, PAGESIZE, False),
        ([], 1, 0, False),
    ],
)
def test_length_of_code(segments: list[Segment], pages: int, offset: int, expected: bool) -> None:
    """Code that begins on a page of its own is as long as its mapping, in pages."""
    assert differs_in_length(segments, 1 << 32, (1 << 32) + pages * PAGESIZE, offset) is expected
    for start, limit in ((0, TOP), (1 << 32, 0), (1 << 32, TOP)):
        assert not differs_in_length(segments, start, limit, offset)


def test_a_debug_file_of_segments_moved_apart() -> None:
    """Large pages move code from 0x1000 in the file to 0x200000 in memory. A part of it that is mapped overlaps where
    the vaddr would have it, and is not there (rule R103)."""
    code = Segment(0x1000, 0x200000, 0x300000, 0x300000, 0x200000, True)
    header = Segment(0, 0, 0x800, 0x800, 0x200000, False)
    assert load_segments(stripped_of_bytes([header, code]), BASE, BASE + 0x280000, 0x1000) is None


@given(st.lists(U64, max_size=5), U64, U64, U64, SEGMENTS, st.booleans())
def test_any_numbers(
    addresses: list[int], start: int, limit: int, offset: int, segments: list[Segment], relocatable: bool
) -> None:
    """No numbers of a profile or a file make the arithmetic fail, and what is found lies in a segment."""
    fits(segments, start, limit, offset)
    true_offset(segments, start, limit, offset, verified=relocatable)
    for each in (segments, load_segments(stripped_of_bytes(segments), start, limit, offset)):
        if each is not None:
            vaddrs, found = to_vaddrs(np.array(addresses, np.uint64), start, limit, offset, each, relocatable)
            for vaddr in vaddrs[found].tolist():
                assert any((vaddr - s.vaddr) % (TOP + 1) < max(s.file_size, s.memory_size) for s in each)


MODULE_TEXT = Section(".text", SHT_PROGBITS, 6, 0x10000, 0x40, 0x1234, 0)


@pytest.mark.parametrize(
    ("address", "vaddr"),
    [(BASE, 0x10000), (BASE + 0x1233, 0x11233), (BASE + 0x1234, None), (BASE - 1, None), (0, None), (TOP, None)],
)
def test_module(address: int, vaddr: int | None) -> None:
    """An address in a kernel module lies in .text, which begins with the mapping, or nowhere (rule R96)."""
    for limit in (0, BASE + 0x2000):
        placed = map_module_addresses(np.array([address], np.uint64), BASE, limit, 0, MODULE_TEXT, verified=False)
        assert placed is not None
        assert (int(placed[0][0]) if placed[1][0] else None) == vaddr


def test_part_of_a_module() -> None:
    """A mapping shorter than the code is one of a proven module only, and what it does not have is in no section. None
    begins at address 0."""
    for start, size, is_one in ((BASE, 0x1234, True), (BASE, 0x1233, False), (0, 0x2000, False)):
        placed = map_module_addresses(np.zeros(0, np.uint64), start, start + size, 0, MODULE_TEXT, verified=False)
        assert (placed is not None) == is_one
    addresses, limit = np.array([BASE + 0xFFF, BASE + 0x1000], np.uint64), BASE + 0x1000
    placed = map_module_addresses(addresses, BASE, limit, 0, MODULE_TEXT, verified=True)
    assert placed is not None
    assert placed[1].tolist() == [True, False]
    assert map_module_addresses(addresses, BASE, limit, 0, MODULE_TEXT, verified=False) is None


@given(U64, U64, U64, U64)
def test_module_of_any_numbers(address: int, start: int, limit: int, offset: int) -> None:
    """No numbers make the arithmetic fail, and what is found lies in .text."""
    placed = map_module_addresses(np.array([address], np.uint64), start, limit, offset, MODULE_TEXT, verified=True)
    if placed is not None and placed[1][0]:
        assert 0 <= int(placed[0][0]) - MODULE_TEXT.vaddr < MODULE_TEXT.size
    assert map_module_addresses(np.array([address], np.uint64), start, limit, offset, None, verified=True) is None


def profile(mappings: list[tuple[int, int]], addresses: list[int], owners: list[int]) -> Profile:
    """A profile of mappings and locations."""
    table = Mappings.zeros(len(mappings))
    table.start = np.array([start for start, _ in mappings], np.uint64)
    table.limit = np.array([limit for _, limit in mappings], np.uint64)
    locations = Locations(
        address=np.array(addresses, np.uint64),
        mapping=np.array(owners, np.int32),
        is_folded=np.zeros(len(addresses), np.bool_),
        line_offsets=np.zeros(len(addresses) + 1, np.int64),
    )
    return Profile(mappings=table, locations=locations)


@pytest.mark.parametrize(
    ("desc", "mappings", "address", "owner", "expected"),
    [
        ("in the second", [(0x1000, 0x2000), (0x2000, 0x3000)], 0x2000, NONE, 1),
        ("at the limit of the last", [(0x1000, 0x2000)], 0x2000, NONE, NONE),
        ("in two, the first wins", [(0x1000, 0x3000), (0x2000, 0x3000)], 0x2800, NONE, 0),
        ("in overlapping ones, at the beginning", [(0x2000, 0x3000), (0x1000, 0x3000)], 0x1000, NONE, 1),
        ("in overlapping ones, at the end", [(0x2000, 0x3000), (0x1000, 0x3000)], 0x2FFF, NONE, 0),
        ("behind overlapping ones", [(0x2000, 0x3000), (0x1000, 0x3000)], 0x3000, NONE, NONE),
        ("before overlapping ones", [(0x2000, 0x3000), (0x1000, 0x3000)], 0xFFF, NONE, NONE),
        ("at the first address of the first", [(0x1000, 0x2000), (0x2000, 0x3000)], 0x1000, NONE, 0),
        ("before the first", [(0x1000, 0x2000), (0x2000, 0x3000)], 0xFFF, NONE, NONE),
        ("between two", [(0x1000, 0x2000), (0x3000, 0x4000)], 0x2000, NONE, NONE),
        ("in the second of unordered ones", [(0x3000, 0x4000), (0x1000, 0x2000)], 0x1800, NONE, 1),
        ("from 0 on", [(0, 0x1000)], 0x800, NONE, 0),
        ("without an end", [(0x1000, 0)], 0x1800, NONE, NONE),
        ("in the one it names, though another holds it", [(0x1000, 0x2000), (0x2000, 0x3000)], 0x2800, 0, 0),
        ("at address 0", [(0, 0x1000)], 0, NONE, NONE),
        ("only in a mapping of everything", [(0, TOP)], 0x2000, NONE, NONE),
        ("only in a mapping of nothing", [(0, 0)], 0x2000, NONE, NONE),
        ("at the top", [(1 << 63, TOP)], TOP - 1, NONE, 0),
        ("without any mappings", [], 0x2000, NONE, NONE),
    ],
)
def test_assign_mappings(desc: str, mappings: list[tuple[int, int]], address: int, owner: int, expected: int) -> None:
    """A location without a mapping gets the first that holds its address."""
    made = profile(mappings, [address], [owner])
    count = assign_mappings(made)
    assert made.locations.mapping.tolist() == [expected]
    assert count == (owner == NONE != expected)


def test_covers_everything() -> None:
    """A mapping from 0 to 0 or to the end stands for no mapping; any other is one."""
    assert covers_everything(np.uint64(0), np.uint64(0))
    assert covers_everything(np.uint64(0), np.uint64(TOP))
    assert not covers_everything(np.uint64(0), np.uint64(TOP - 1))
    assert not covers_everything(np.uint64(0x1000), np.uint64(TOP))


@pytest.mark.parametrize(
    ("offset", "size", "is_placed"),
    [
        (0x1000, 0x1000, False),
        (0x2000, 0x1000, True),
        (0x4000, 0x1000, True),
        (0x4000, 0x2000, False),
        (0x5000, 0x1000, False),
        (0x2000, 0x4000, False),
        (0x2000, 0x2000, True),
        (0x3000, 0x2000, True),
    ],
)
@pytest.mark.parametrize("first", [0, 0x400000])
def test_parts_of_the_code_of_a_debug_file(first: int, offset: int, size: int, is_placed: bool) -> None:
    """A part of a segment is placed by its file offset if it lies in the pages of the segment (rule R103)."""
    segments = [
        Segment(0x0, first, 0, 0x800, 0x1000, False),
        Segment(0x0, first + 0x2000, 0, 0x2801, 0x1000, True),
        Segment(0x0, first + 0x8000, 0, 0x100, 0x1000, False),
    ]
    placed = load_segments(segments, BASE, BASE + size, offset)
    assert placed == ([segments[1]._replace(file_offset=0x2000, file_size=0x2801)] if is_placed else None)


EMPTY = Segment(0, 0x1000, 0, 0, 0x1000, True)


FIRST_BYTE = TOP + 1 - 0x900


@pytest.mark.parametrize(
    ("segments", "is_offset", "distances", "unproven"),
    [
        (PIE, False, [0, 0x1000], 2),
        (PIE, True, [0, 0x1000], 1),
        (LLD, False, [0, 0x201000, FIRST_BYTE], 2),
        (LLD, True, [0, 0x200000, 0x201000, FIRST_BYTE], 2),
        ([EMPTY, *LLD], False, [0, 0x201000, FIRST_BYTE], 2),  # which is in no memory
        ([EMPTY, *LLD], True, [0, 0x200000, 0x201000, FIRST_BYTE], 2),
        ([PIE[0], PIE[2]], True, [], 0),
        ([], True, [], 0),
    ],
)
def test_what_addresses_count_from(
    segments: list[Segment], is_offset: bool, distances: list[int], unproven: int
) -> None:
    """Vaddrs first, then where the file is loaded, if they may be offsets, its code, and the first byte of that; each
    distance once, the last ones with proof only (rule R163)."""
    bases = candidate_bases(segments, is_offset=is_offset)
    assert [each.distance for each in bases] == distances
    assert [each.needs_proof for each in bases] == [row >= unproven for row in range(len(bases))]


def test_ends_of_code() -> None:
    """An address is in code up to the last byte that a segment has in memory."""
    vaddrs = np.array([0xFFF, 0x1000, 0x3344, 0x3345, 0x4000, TOP], np.uint64)
    assert in_code(vaddrs, PIE).tolist() == [False, True, True, False, False, False]
    assert in_code(vaddrs, [Segment(0, TOP - 0xFFF, 0, 0x2000, 0x1000, True)]).tolist() == [False] * 6


def test_code_without_bytes_begins_nowhere() -> None:
    """A segment of code that the file has no bytes of does not say where the others begin (rule R147)."""
    empty = Segment(0, 0, 0, 0x1000, 0x1000, True)
    for segments in (PIE, [empty, *PIE]):
        assert true_offset(segments, BASE + 0x1000, BASE + 0x4000, 0, verified=False) == 0x1000

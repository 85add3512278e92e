"""Memory maps of legacy profiles: lines, merging, main binary, owners of addresses."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.core.arrays import NONE
from symbolize.core.errors import InputError
from symbolize.formats import memory_map
from symbolize.formats.memory_map import MAX_ADDRESS, MapRow, arrange, assign, attach, parse
from symbolize.profile.model import Locations, Profile

LINES = {
    "a line of /proc/PID/maps": (
        b"00400000-0040b000 r-xp 00002000 08:01 1234       /bin/cat",
        MapRow(0x400000, 0x40B000, 0x2000, b"/bin/cat"),
    ),
    "an anonymous mapping": (b"7f00000000-7f00001000 r-xp 00000000 00:00 0 ", MapRow(0x7F00000000, 0x7F00001000)),
    "a pseudo file": (b"7ffe1000-7ffe3000 r-xp 00000000 00:00 0 [vdso]", MapRow(0x7FFE1000, 0x7FFE3000, 0, b"[vdso]")),
    "a path with blanks": (
        b"00400000-0040b000 r-xp 00000000 08:01 12 /opt/my own app/bin x",
        MapRow(0x400000, 0x40B000, 0, b"/opt/my own app/bin x"),
    ),
    "a deleted file": (
        b"00400000-0040b000 r-xp 00000000 08:01 12 /bin/my cat (deleted)",
        MapRow(0x400000, 0x40B000, 0, b"/bin/my cat"),
    ),
    "a shared executable mapping": (
        b"00400000-0040b000 r-xs 00003000 08:01 12 /dev/shm/code",
        MapRow(0x400000, 0x40B000, 0x3000, b"/dev/shm/code"),
    ),
    "a DOS line end": (
        b"00400000-0040b000 r-xp 00001000 08:01 12 /bin/cat\r",
        MapRow(0x400000, 0x40B000, 0x1000, b"/bin/cat"),
    ),
    "a line without permissions": (
        b"00400000-0040b000 00001000 08:01 12 /bin/cat",
        MapRow(0x400000, 0x40B000, 0x1000, b"/bin/cat"),
    ),
    "a line without permissions and offset": (
        b"00400000-0040b000 08:01 12 /bin/cat",
        MapRow(0x400000, 0x40B000, 0, b"/bin/cat"),
    ),
    "a range with a blank and a colon": (
        b"  0x400000 0x40b000: r-xp 00001000 fd:a1 12 /bin/cat",
        MapRow(0x400000, 0x40B000, 0x1000, b"/bin/cat"),
    ),
    "a brief line": (
        b"0x40000-0x80000 /path/to/binary    (@FF00)    abc123456",
        MapRow(0x40000, 0x80000, 0xFF00, b"/path/to/binary", b"abc123456"),
    ),
    "a brief line with only a file": (b"02e00000-02e8a000: /foo/bin", MapRow(0x2E00000, 0x2E8A000, 0, b"/foo/bin")),
    "a brief line with only an offset": (b"02e00000-02e8a000 (@2000)", MapRow(0x2E00000, 0x2E8A000, 0x2000)),
    "a brief line with permissions": (b"400000-500000 r-xp main", MapRow(0x400000, 0x500000, 0, b"main")),
    "a brief line with only a range": (b"400000-500000", MapRow(0x400000, 0x500000)),
    "a brief line with a build id and no offset": (
        b"400000-500000 /foo/bin deadbeef01",
        MapRow(0x400000, 0x500000, 0, b"/foo/bin", b"deadbeef01"),
    ),
    "a range of two words of full length": (b"00400000 0040b000 main", MapRow(0x400000, 0x40B000, 0, b"main")),
    "a brief line with the shortest build id": (
        b"400000-500000 /opt/My App 12345678",
        MapRow(0x400000, 0x500000, 0, b"/opt/My App", b"12345678"),
    ),
    "a brief path that ends with the longest word that is none": (
        b"400000-500000 /opt/My App 1234567",
        MapRow(0x400000, 0x500000, 0, b"/opt/My App 1234567"),
    ),
    "a brief path that ends with a short hex word": (
        b"400000-500000 /opt/My App 2",
        MapRow(0x400000, 0x500000, 0, b"/opt/My App 2"),
    ),
    "a brief path with blanks, deleted, offset and build id": (
        b"400000-500000 /opt/my app (deleted) (@1000) 0123abcd",
        MapRow(0x400000, 0x500000, 0x1000, b"/opt/my app", b"0123abcd"),
    ),
    "a log prefix": (
        b"I0101 10:00:00.1 77 dump.cc:123] 00400000-0040b000 r-xp 00000000 08:01 12 /bin/cat",
        MapRow(0x400000, 0x40B000, 0, b"/bin/cat"),
    ),
    "the highest address": (
        b"ffffffffff600000-ffffffffffffffff r-xp 00000000 00:00 0 [vsyscall]",
        MapRow(0xFFFFFFFFFF600000, MAX_ADDRESS, 0, b"[vsyscall]"),
    ),
    "a name that is not UTF-8": (
        b"00400000-0040b000 r-xp 00000000 08:01 12 /bin/\xff\xfe",
        MapRow(0x400000, 0x40B000, 0, b"/bin/\xff\xfe"),
    ),
    "a very long path": (
        b"00400000-0040b000 r-xp 00000000 08:01 12 /" + b"x" * 100_000,
        MapRow(0x400000, 0x40B000, 0, b"/" + b"x" * 100_000),
    ),
}


@pytest.mark.parametrize(("line", "row"), LINES.values(), ids=LINES)
def test_line(line: bytes, row: MapRow) -> None:
    """Every form of line gives its mapping."""
    assert parse(line + b"\n") == memory_map.MemoryMap([row], [])


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"base=/usr",
        b"added a mapping",
        b"dead beef is what we call it",
        b"a bad thing",
        b"a-b test",
        b"dad-faced person",
        b"10-20 items",
        b"1984 2001 are books",
        b"0400000 040b000 are numbers",
        b"00400000 040b000 are too",
        b"1000-2000 people",
        b"01-05 10:15 3 users logged in",
        b"2024-01-01 12:00:00 started",
        b"--- Memory map: ---",
    ],
)
def test_prose_is_no_mapping(line: bytes) -> None:
    """Prose and attributes that start with hex letters or numbers give no mapping and no warning."""
    assert parse(line) == memory_map.MemoryMap()


@pytest.mark.parametrize("permissions", [b"r--p", b"rw-p", b"---p", b"rw-s"])
def test_not_executable(permissions: bytes) -> None:
    """A mapping known not to be executable is left out without a word."""
    assert parse(b"00400000-0040b000 %b 00000000 08:01 12 /bin/cat" % permissions) == memory_map.MemoryMap()


@pytest.mark.parametrize(
    "line",
    [
        b"00400000-1ffffffffffffffff r-xp 00000000 08:01 12 /bin/cat",
        b"00400000-0040b000 r-xp 1ffffffffffffffff 08:01 12 /bin/cat",
        b"0040b000-00400000 r-xp 00000000 08:01 12 /bin/cat",
        b"00400000-00400000 r-xp 00000000 08:01 12 /bin/cat",
        b"00400000-0040b00x r-xp 00000000 08:01 12 /bin/cat",
    ],
)
def test_unreadable_lines_are_counted(line: bytes) -> None:
    """A line that looks like a mapping but cannot be read is ignored, and a warning says so."""
    profile = Profile()
    attach(profile, b"\n" + line + b"\n00500000-0060b000 r-xp 00000000 08:01 12 /bin/cat\n")
    assert profile.mappings.start.tolist() == [0x500000]
    assert profile.warnings == [
        "Lines of the memory map that look like mappings but cannot be read: 1 (the first is line 2); they are ignored."
    ]


def test_variables() -> None:
    """`$name` stands for what an earlier line gave, the first value wins, and values may use earlier names."""
    text = b"$build\nbuild = /usr/bin\nbuild=/other\nsource=$build/x\n400000-500000: $source/$build $none\n"
    assert [row.file for row in parse(text).rows] == [b"/usr/bin/x//usr/bin $none"]


def test_variables_do_not_explode() -> None:
    """Values that double each other stop growing."""
    text = b"v00=xxxxxxxx\n" + b"".join(b"v%02d=$v%02d$v%02d\n" % (i + 1, i, i) for i in range(60))
    (row,) = parse(text + b"400000-500000: /$v09\n").rows
    assert row.file == b"/" + b"x" * memory_map.MAX_VALUE
    (row,) = parse(text + b"400000-500000: /" + b"$v09" * 1000).rows
    assert len(row.file) < memory_map.MAX_VALUE * (memory_map.MAX_EXPANSIONS + 1)
    # As many variables as a limit says are known, and so many in a line.
    text = b"".join(b"v%03d=x\n" % i for i in range(memory_map.MAX_VARIABLES + 1))
    (row,) = parse(text + b"400000-500000: /$v254$v255$v256\n").rows
    assert row.file == b"/xx$v256"
    (row,) = parse(text + b"400000-500000: /" + b"$v001" * 17).rows
    assert row.file == b"/" + b"x" * 16 + b"$v001"


def test_variables_are_bounded_together() -> None:
    """R276: many lines that each use a long value, which packs to nothing."""
    text = b"v=/" + b"x" * 4000 + b"\n" + b"400000-500000: $v$v$v$v\n" * 5000
    with pytest.raises(InputError, match=r"heap: would take 1[0-9]{2} times its size in memory, as only a bomb does"):
        parse(text, "heap")
    (row, *rows) = parse(text[:20_000]).rows
    assert all(each.file is row.file for each in rows[:-1])


@pytest.mark.parametrize(
    ("second", "is_joined"),
    [
        (MapRow(0x2000, 0x3000, 0x1000, b"a", b"id"), True),
        (MapRow(0x2000, 0x3000, 0, b"a", b"id"), True),
        (MapRow(0x2000, 0x3000, 0x1000, b"a"), True),
        (MapRow(0x2000, 0x3000, 0x1000), False),
        (MapRow(0x2001, 0x3000, 0x1000, b"a", b"id"), False),
        (MapRow(0x2000, 0x3000, 0x1000, b"b", b"id"), False),
        (MapRow(0x2000, 0x3000, 0x1000, b"a", b"other"), False),
    ],
)
def test_joining(second: MapRow, is_joined: bool) -> None:
    """Neighbours join when what both know about file, build id and offset agrees."""
    rows = arrange([MapRow(0x1000, 0x2000, 0, b"a", b"id"), second])
    assert len(rows) == (1 if is_joined else 2)
    if is_joined:
        assert rows == [MapRow(0x1000, 0x3000, 0, b"a", b"id")]


def test_joining_checks_offsets() -> None:
    """Two offsets that are not zero must follow each other."""
    assert len(arrange([MapRow(0x1000, 0x2000, 0x5000, b"a"), MapRow(0x2000, 0x3000, 0x6000, b"a")])) == 1
    assert len(arrange([MapRow(0x1000, 0x2000, 0x5000, b"a"), MapRow(0x2000, 0x3000, 0x7000, b"a")])) == 2


def test_joining_takes_the_later_build_id() -> None:
    """A piece without build id takes that of the next; one without a file stays one, as it may be JIT code."""
    pieces = [MapRow(0x1000, 0x2000, 0, b"b"), MapRow(0x2000, 0x3000, 0, b"b", b"id")]
    assert arrange(pieces) == [MapRow(0x1000, 0x3000, 0, b"b", b"id")]
    apart = [MapRow(0x2000, 0x3000, 0, b"b"), MapRow(0x3000, 0x4000), MapRow(0x4000, 0x5000, 0x2000, b"b")]
    assert arrange([*apart]) == apart
    assert arrange([MapRow(0x1000, 0x2000), MapRow(0x2000, 0x3000)]) == [MapRow(0x1000, 0x3000)]


@pytest.mark.parametrize(
    ("files", "arranged"),
    [
        ([b"/lib/a.so", b"", b"[vdso]", b"/bin/x", b"/bin/y"], [b"/bin/x", b"", b"[vdso]", b"/lib/a.so", b"/bin/y"]),
        ([b"/lib/a.so.6", b"/lib/b.so_1", b"x"], [b"x", b"/lib/b.so_1", b"/lib/a.so.6"]),
        ([b"/lib/a.so", b"/lib/b.so"], [b"/lib/a.so", b"/lib/b.so"]),
        ([b"/lib/a.so", b"/lib/b.sort"], [b"/lib/b.sort", b"/lib/a.so"]),
    ],
)
def test_main_binary(files: list[bytes], arranged: list[bytes]) -> None:
    """The first mapping of a file that is no shared library changes places with the first."""
    rows = [MapRow(0x10000 * i, 0x10000 * i + 0x1000, 0, file) for i, file in enumerate(files, 1)]
    assert [row.file for row in arrange(rows)] == arranged


def test_huge_page_piece() -> None:
    """Anonymous huge pages stay a mapping of their own, and nothing is extended over them."""
    piece, rest = MapRow(0x400000, 0x800000, 0, b"/anon_hugepage"), MapRow(0x800000, 0x900000, 0x400000, b"/bin/x")
    assert arrange([piece, rest]) == [piece, rest]
    rows = arrange([MapRow(0x400000, 0x800000), MapRow(0x800000, 0x900000, 0x400000, b"/bin/x")])
    assert rows == [MapRow(0x800000, 0x900000, 0x400000, b"/bin/x"), MapRow(0x400000, 0x800000)]


def test_usual_start() -> None:
    """A main binary whose file would start at 0x400000 does."""
    assert arrange([MapRow(0x401000, 0x500000, 0x1000, b"x")]) == [MapRow(0x400000, 0x500000, 0, b"x")]
    assert arrange([MapRow(0x402000, 0x500000, 0x1000, b"x")]) == [MapRow(0x402000, 0x500000, 0x1000, b"x")]


def owners(rows: list[MapRow], addresses: list[int]) -> list[int]:
    """The index of each address' row; may add a row."""
    return [int(index) for index in assign(rows, np.array(addresses, np.uint64))]


def test_bounds() -> None:
    """A mapping holds its start and not its limit."""
    rows = [MapRow(0x1000, 0x2000), MapRow(0x3000, 0x4000)]
    assert owners(rows, [0xFFF, 0x1000, 0x1FFF, 0x2000, 0x3000, 0x3FFF, 0x4000]) == [2, 0, 0, 2, 1, 1, 2]


def test_overlap() -> None:
    """Of overlapping mappings the first in order counts."""
    rows = [MapRow(0x3000, 0x4000), MapRow(0x1000, 0x8000), MapRow(0x2000, 0x9000)]
    assert owners(rows, [0x1000, 0x2000, 0x3000, 0x4000, 0x8000]) == [1, 1, 0, 1, 2]
    assert len(rows) == 3


def test_extension_down() -> None:
    """An address between the start of a file and its mapping extends the mapping, and only then."""
    rows = [MapRow(0x5000, 0x6000, 0x1000), MapRow(0x9000, 0xA000, 0x2000), MapRow(0xF000, 0x10000, 0xE0000)]
    assert owners(rows, [0x8000, 0x7000, 0x5000, 0x3000]) == [1, 1, 0, 3]
    assert rows[:3] == [MapRow(0x5000, 0x6000, 0x1000), MapRow(0x7000, 0xA000), MapRow(0xF000, 0x10000, 0xE0000)]


def test_fake_mapping() -> None:
    """Addresses outside all mappings share one mapping of everything, which comes last and only if needed."""
    rows = [MapRow(0x1000, 0x2000)]
    assert owners(rows, [0x9000, 0x1000, MAX_ADDRESS]) == [1, 0, 1]
    assert rows == [MapRow(0x1000, 0x2000), MapRow(0, MAX_ADDRESS)]
    rows = []
    assert owners(rows, [0x9000]) == [0]
    assert rows == [MapRow(0, MAX_ADDRESS)]


def test_address_zero_has_no_mapping() -> None:
    """Address 0 belongs to nothing, and needs no mapping of everything."""
    rows = [MapRow(0, 0x2000)]
    assert owners(rows, [0, 1]) == [NONE, 0]
    assert len(rows) == 1
    rows = [MapRow(0x1000, 0x2000, 0x1000)]
    assert owners(rows, [0, 0x1000]) == [NONE, 0]
    assert rows == [MapRow(0x1000, 0x2000, 0x1000)]
    assert owners(rows, [0, 1]) == [NONE, 0]
    assert rows == [MapRow(0, 0x2000)]


def test_nothing() -> None:
    """No lines and no addresses give empty columns."""
    profile = Profile()
    attach(profile, b"")
    assert (len(profile.mappings), len(profile.locations.mapping), profile.warnings) == (0, 0, [])


ranges = st.tuples(st.integers(0, 40), st.integers(1, 20), st.integers(0, 8))


@given(st.lists(ranges, max_size=8), st.lists(st.integers(1, 70), max_size=30))
def test_assign_agrees_with_linear_search(spans: list[tuple[int, int, int]], addresses: list[int]) -> None:
    """The bulk search gives what a search through the list gives."""
    rows = [MapRow(start, start + size, offset) for start, size, offset in spans]
    expected = []
    for address in addresses:
        inside = [i for i, row in enumerate(rows) if row.start <= address < row.limit]
        above = [i for i, row in enumerate(rows) if 0 < row.file_offset <= row.start]
        near = [i for i in above if rows[i].start - rows[i].file_offset <= address < rows[i].start]
        expected.append(next(iter(inside + near), len(rows)))
    assert owners(rows, addresses) == expected


def test_mappings_are_interned() -> None:
    """Mappings of one file share its name, and claim no symbols."""
    profile = Profile(locations=Locations(address=np.array([0x401000], np.uint64)))
    attach(profile, b"400000-500000: /x (@1000) ab12\n600000-700000: /x\n")
    assert profile.strings.text(int(profile.mappings.filename[0])) == "/x"
    assert profile.mappings.filename[0] == profile.mappings.filename[1]
    assert profile.strings.text(int(profile.mappings.build_id[0])) == "ab12"
    assert not profile.mappings.has_functions.any()
    assert profile.locations.mapping.tolist() == [0]


def test_many_addresses_take_no_time() -> None:
    """A million addresses find their mapping among thousands in well under a second of processor time."""
    rows = [MapRow(0x10000 * i, 0x10000 * i + 0xF000) for i in range(1, 5001)]
    addresses = np.random.default_rng(0).integers(1, 0x10000 * 5000, 1_000_000).astype(np.uint64)
    begin = time.process_time()
    assign(rows, addresses)
    assert time.process_time() - begin < 2


@pytest.mark.parametrize(
    "line",
    [
        b"0" * 500_000,
        b" " * 500_000 + b"x",
        b"00400000-00500000 x" + b" " * 500_000 + b"y",
        b"1:" * 250_000,
        b"$" * 500_000,
    ],
)
def test_hostile_lines_take_no_time(line: bytes) -> None:
    """No line makes the patterns backtrack without end."""
    begin = time.process_time()
    parse(b"a=b\n" + line)
    assert time.process_time() - begin < 2


@pytest.mark.parametrize(
    ("start", "limit", "is_free"),
    [
        (0x3FF000, 0x400000, True),
        (0x3FF000, 0x400001, False),
        (0x400800, 0x400900, False),
        (0x400FFF, 0x600000, False),
        (0x401000, 0x600000, True),
        (0x7F0000000000, 0x7F0000001000, True),
    ],
)
def test_usual_start_beside_others(start: int, limit: int, is_free: bool) -> None:
    """A main binary begins at 0x400000 if no other mapping is between that and where it was mapped."""
    far, other = MapRow(0x7E0000000000, 0x7E0000001000, 0, b"a.so"), MapRow(start, limit, 0, b"b.so")
    rows = arrange([MapRow(0x401000, 0x402000, 0x1000, b"x"), far, other])
    assert rows[0] == (MapRow(0x400000, 0x402000, 0, b"x") if is_free else MapRow(0x401000, 0x402000, 0x1000, b"x"))
    assert rows[1:] == [far, other]

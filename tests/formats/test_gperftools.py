"""gperftools CPU profiles: header, records, heuristics, and agreement with pprof."""

import gzip
import re
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from symbolize.core.arrays import NONE
from symbolize.core.errors import InputError
from symbolize.formats.gperftools import reader as gperftools
from symbolize.formats.gperftools import records as gperftools_records
from symbolize.profile.model import Profile
from tests.support import gperftools_writer as writer
from tests.support.gperftools_writer import LAYOUTS, Record

MAPS = b"""\
00400000-00500000 r-xp 00000000 08:01 11 /bin/main
7f0000000000-7f0000100000 r-xp 00001000 08:01 12 /lib/libc.so.6
"""
SMALL: list[Record] = [(2, [0x401000, 0x402001]), (1, [0x401010, 0x402001, 0x403001]), (3, [0x401000])]


def load(data: bytes, keep_trampolines: bool = False) -> Profile:
    """Load bytes as the file `cpu.prof`."""
    return gperftools.load(memoryview(data), "cpu.prof", keep_trampolines)


def stacks(profile: Profile) -> list[tuple[int, list[int]]]:
    """The samples as counts and addresses."""
    samples = profile.samples
    addresses = profile.locations.address[samples.locations].tolist()
    bounds = samples.location_offsets.tolist()
    counts = samples.values[:, 0].tolist()
    return [(count, addresses[bounds[i] : bounds[i + 1]]) for i, count in enumerate(counts)]


def adjusted(records: list[Record]) -> list[tuple[int, list[int]]]:
    """What the records mean: every address but the leaf lies inside its call."""
    return [(count, [*stack[:1], *((a - 1) % 2**64 for a in stack[1:])]) for count, stack in records]


def problem(data: bytes) -> str:
    """The one line with which the bytes are refused."""
    with pytest.raises(InputError) as caught:
        load(data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str) -> None:
    """Words of either size and byte order are read, and the memory map behind them."""
    data = writer.profile(SMALL, MAPS, layout)
    assert gperftools.matches(memoryview(data))
    profile = load(data)
    assert stacks(profile) == adjusted(SMALL)
    assert [profile.strings[i] for i in profile.mappings.filename] == [b"/bin/main", b"/lib/libc.so.6"]
    assert profile.warnings == []


def test_profile_fields() -> None:
    """Types, period, values and the frames to drop are pprof's; everything else stays unset."""
    profile = load(writer.profile(SMALL, MAPS, period=2500))
    text = profile.strings.text
    assert [(text(t.type), text(t.unit)) for t in profile.sample_types] == [
        ("samples", "count"),
        ("cpu", "nanoseconds"),
    ]
    assert (text(profile.period_type.type), text(profile.period_type.unit)) == ("cpu", "nanoseconds")
    assert profile.period == 2_500_000
    assert profile.samples.values.tolist() == [[2, 5_000_000], [1, 2_500_000], [3, 7_500_000]]
    assert (profile.time_nanos, profile.duration_nanos, profile.default_sample_type, profile.comments) == (0, 0, 0, [])
    assert profile.keep_frames == 0
    drop = re.compile(profile.strings[profile.drop_frames])
    assert drop.fullmatch(b"ProfileData::prof_handler")
    assert all(map(drop.fullmatch, [b"ProfileData::Add", b"CpuProfiler::prof_handler", b"__pthread_sighandler"]))
    assert drop.fullmatch(b"__restore") and not drop.fullmatch(b"__restore_rt") and not drop.fullmatch(b"Add")


def test_columns_have_their_lengths_and_types() -> None:
    """Every column is as long as its table and of the model's type."""
    profile = load(writer.profile(SMALL, MAPS))
    count = len(profile.locations)
    assert count == 4
    locations, empty = profile.locations, Profile()
    assert len(locations.mapping) == len(locations.is_folded) == count
    assert len(locations.line_offsets) == count + 1
    assert len(profile.samples.label_offsets) == len(profile.samples) + 1
    for name in ("address", "mapping", "is_folded", "line_offsets"):
        assert getattr(locations, name).dtype == getattr(empty.locations, name).dtype
    for name in ("location_offsets", "locations", "values", "label_offsets"):
        assert getattr(profile.samples, name).dtype == getattr(empty.samples, name).dtype


def test_locations_are_unique_in_order_of_first_use() -> None:
    """A leaf and a return address behind it share a location."""
    profile = load(writer.profile([(1, [0x30, 0x21, 0x10]), (1, [0x20, 0x31])]))
    assert profile.locations.address.tolist() == [0x30, 0x20, 0xF]
    assert profile.samples.locations.tolist() == [0, 1, 2, 1, 0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_longer_headers(layout: str) -> None:
    """A header of more than three words is skipped as a whole."""
    data = writer.header(layout, extra=[7, 0, 9]) + writer.body(SMALL, layout) + writer.end(layout)
    assert gperftools.matches(memoryview(data))
    assert stacks(load(data)) == adjusted(SMALL)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "header",
    [(1, 3, 0, 10, 0), (0, 2, 0, 10, 0), (0, 3, 2, 10, 0), (0, 3, 0, 0, 0), (0, 3, 0, 10, 1), (0, 1 << 24, 0, 10, 0)],
)
def test_other_headers(layout: str, header: tuple[int, ...]) -> None:
    """A header with any word out of place is not one."""
    data = writer.words(layout, *header) + writer.body(SMALL, layout) + writer.end(layout)
    assert not gperftools.matches(memoryview(data))
    assert problem(data) == "cpu.prof: not a gperftools CPU profile"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 64,
        b"heap profile: 1: 2 [ 3: 4 ] @ heap_v2/524288\n",
        b"--- contentionz 1 ---\n" * 3,
        gzip.compress(writer.profile(SMALL, MAPS)),
        b"\x0a\x04\x08\x01\x10\x02\x12\x04\x0a\x00\x12\x00" * 4,
        b"\x7fELF" + b"\0" * 60,
    ],
)
def test_other_content(data: bytes) -> None:
    """Nothing else is taken for a CPU profile."""
    assert not gperftools.matches(memoryview(data))


@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    """Any bytes are either read or refused with one line."""
    try:
        load(data)
    except InputError as error:
        assert "\n" not in str(error)


@given(st.sampled_from(LAYOUTS), st.binary(max_size=200))
def test_any_bytes_behind_a_header(layout: str, data: bytes) -> None:
    """Any bytes behind a header are either read or refused with one line."""
    try:
        load(writer.header(layout) + data)
    except InputError as error:
        assert "\n" not in str(error)


def test_odd_records() -> None:
    """Records without count or without stack, and repeated stacks, are kept as they are."""
    records: list[Record] = [(0, [0x10, 0x21]), (5, []), (0, []), (1, [0x10]), (1, [0x10]), (0, [0x10]), (1, [0])]
    assert stacks(load(writer.profile(records))) == adjusted(records)


def test_zero_addresses() -> None:
    """A zero leaf has no mapping; a zero return address becomes the highest address, also in 32-bit words."""
    for layout in LAYOUTS:
        profile = load(writer.profile([(1, [0, 0])], layout=layout))
        # 0 == 0xffff...ffff + 1: the second is the doubled leaf of the first.
        assert stacks(profile) == [(1, [0])]
        assert profile.locations.mapping.tolist() == [NONE]
        profile = load(writer.profile([(1, [5, 0])], layout=layout))
        assert profile.locations.address.tolist() == [5, 2**64 - 1]
        assert profile.mappings.limit.tolist() == [2**64 - 1]


def test_no_records() -> None:
    """A profile without records is empty."""
    profile = load(writer.profile([], MAPS))
    assert (len(profile.samples), len(profile.locations), profile.samples.values.shape) == (0, 0, (0, 2))
    assert profile.warnings == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_truncation_at_every_byte(layout: str) -> None:
    """A file cut anywhere is refused, or keeps its whole records and says so."""
    start, whole = len(writer.header(layout)), writer.profile(SMALL, b"", layout)
    ends = np.cumsum([len(writer.body([record], layout)) for record in SMALL]) + start
    for size in range(len(whole)):
        data = whole[:size]
        if size < start:
            assert "not a gperftools CPU profile" in problem(data)
            continue
        profile = load(data)
        kept = int((ends <= size).sum())
        assert stacks(profile) == adjusted(SMALL[:kept])
        assert len(profile.warnings) == 1
        last = ends[kept - 1] if kept else start
        assert f"offset {last:#x}: {kept} whole records" in profile.warnings[0]


def test_cut_header() -> None:
    """A header that announces more words than there are is refused."""
    assert "the header announces 9 words but the file ends before" in problem(writer.words("<Q", 0, 9, 0, 10, 0))


def test_cut_memory_map() -> None:
    """A memory map that ends within a line is used with a warning."""
    profile = load(writer.profile(SMALL, MAPS[:-3]))
    assert profile.warnings == ["The memory map ends within a line: its last mapping may be incomplete."]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_map_without_end_marker(layout: str) -> None:
    """Text with mappings right behind the records is the memory map; other text is an error."""
    records = writer.header(layout) + writer.body(SMALL, layout)
    profile = load(records + MAPS)
    assert stacks(profile) == adjusted(SMALL)
    assert len(profile.mappings) == 2
    assert profile.warnings == [f"There is no end marker before the memory map at offset {len(records):#x}."]
    for rest in (b"this is not a memory map, is it?\n" * 2, MAPS + b"\x01"):
        assert (
            f"record 3 has an impossible depth of {struct.unpack_from(layout, rest, struct.calcsize(layout))[0]}"
            in (problem(records + rest))
        )


def test_nonsense_depth() -> None:
    """A depth that no stack has is an error that names its offset."""
    data = writer.header() + writer.body(SMALL) + writer.words("<Q", 1, 1 << 40, 5)
    assert problem(data) == f"cpu.prof: record 3 has an impossible depth of {1 << 40} at offset 0x88"


def test_values_beyond_64_bits() -> None:
    """Values that do not fit into 64 bits are errors; the largest that fit are read."""
    largest = (2**63 - 1) // 10_000_000
    assert load(writer.profile([(largest, [1])])).samples.values[0, 1] == largest * 10_000_000
    data = writer.profile([*SMALL, (largest + 1, [1])])
    assert problem(data).endswith(f"a count of {largest + 1} samples of 10000000 ns is too large at offset 0x88")
    assert "is too large at offset 0x0" not in problem(writer.profile([(2**64 - 1, [1])]))
    assert "sampling period" in problem(writer.profile([], period=2**62))


def trampolines(total: int, leaves: int, odd: int = 0) -> list[Record]:
    """Records with one address, 0x9001, below all leaves but those of the last `odd` records."""
    return [(1, [0x1000 + i % leaves * 2, 0x9001 if i < total - odd else 0x7001, 0x5001 + i * 4]) for i in range(total)]


@pytest.mark.parametrize(
    ("total", "leaves", "odd", "is_removed"),
    [
        (32, 2, 0, True),
        (31, 2, 0, False),
        (64, 1, 0, False),
        (64, 2, 2, True),
        (64, 2, 3, False),
        (63, 2, 1, True),
        (63, 2, 2, False),
    ],
)
def test_trampolines(total: int, leaves: int, odd: int, is_removed: bool) -> None:
    """A caller in all records but one in 32 is removed if there are 32 records and two leaves."""
    records = trampolines(total, leaves, odd)
    profile = load(writer.profile(records))
    kept = adjusted(records)
    if is_removed:
        kept = [(count, [stack[0], *(a for a in stack[1:] if a != 0x9000)]) for count, stack in kept]
        assert profile.warnings == [
            f"Address 0x9000, the caller in {total - odd} of {total} records, was taken for the trampoline of the "
            "profiler's signal handler and removed."
        ]
        assert 0x9000 not in profile.locations.address
    else:
        assert profile.warnings == []
    assert stacks(profile) == kept
    assert stacks(load(writer.profile(records), keep_trampolines=True)) == adjusted(records)


def test_two_trampolines() -> None:
    """Two layers are removed and a third stays."""
    records = [(1, [0x1000 + i % 2 * 2, 0x9001, 0xA001, 0xB001, 0x5001]) for i in range(40)]
    profile = load(writer.profile(records))
    assert {tuple(stack[1:]) for _, stack in stacks(profile)} == {(0xB000, 0x5000)}
    assert len(profile.warnings) == 2


def test_short_stacks_count_as_records() -> None:
    """Records of a single frame keep a caller from being a trampoline."""
    records = [*trampolines(40, 2), *[(1, [0x10])] * 2]
    assert stacks(load(writer.profile(records))) == adjusted(records)


def test_doubled_leaf() -> None:
    """A leaf that is there once more as a return address is removed once; its location goes if nothing else uses it."""
    profile = load(writer.profile([(1, [0x1000, 0x1000, 0x1000, 0x2001]), (1, [0x3000, 0x3000])]))
    assert stacks(profile) == [(1, [0x1000, 0xFFF, 0x2000]), (1, [0x3000])]
    assert profile.locations.address.tolist() == [0x1000, 0xFFF, 0x2000, 0x3000]


counts32, addresses32 = st.integers(0, 2**20), st.integers(1, 2**32 - 1)
records32 = st.lists(st.tuples(counts32, st.lists(addresses32, max_size=6)), max_size=20)


@given(records32, st.sampled_from(LAYOUTS), st.integers(1, 10**6))
def test_round_trip(records: list[Record], layout: str, period: int) -> None:
    """What was written is read."""
    profile = load(writer.profile(records, MAPS, layout, period), keep_trampolines=True)
    expected = [
        (count, [stack[0], *stack[2:]] if len(stack) > 1 and stack[0] == stack[1] + 1 else stack)
        for count, stack in adjusted(records)
    ]
    assert stacks(profile) == expected
    assert profile.samples.values[:, 1].tolist() == [count * period * 1000 for count, _ in records]
    assert len(set(profile.locations.address.tolist())) == len(profile.locations)
    assert set(profile.samples.locations.tolist()) == set(range(len(profile.locations)))


@given(st.lists(st.integers(0, 2**64 - 1), max_size=50), st.integers(1, 5))
def test_numbering(values: list[int], repeat: int) -> None:
    """Numbering agrees with a dictionary."""
    values *= repeat
    distinct, indices = gperftools_records.number(np.array(values, np.uint64))
    assert distinct.tolist() == list(dict.fromkeys(values))
    assert distinct[indices].tolist() == values


def test_numbering_grows() -> None:
    """Many addresses are numbered across every growth of the table."""
    values = np.random.default_rng(0).permutation(np.arange(40_000, dtype=np.uint64) * np.uint64(4096))
    values = np.concatenate([values, values[::-1]])
    distinct, indices = gperftools_records.number(values)
    assert (distinct == values[:40_000]).all()
    assert (indices == np.concatenate([np.arange(40_000), np.arange(40_000)[::-1]])).all()


@pytest.mark.parametrize("lead", [1, 4])
def test_data_at_any_address(lead: int) -> None:
    """The bytes may begin anywhere in memory."""
    data = memoryview(b"x" * lead + writer.profile(SMALL, MAPS))[lead:]
    assert stacks(gperftools.load(data, "cpu.prof")) == adjusted(SMALL)


Mapping = tuple[int, int, int, str, str]
Weights = dict[tuple[tuple[int, Mapping | None], ...], list[int]]


def pprof_weights(path: Path) -> tuple[int, Weights]:
    """The period, and the values of each distinct stack of (address, mapping), as `go tool pprof -raw` prints them."""
    command = ["go", "tool", "pprof", "-raw", "-symbolize=none", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    head, rest = text.split("\nLocations\n")
    locations, mappings = rest.split("\nMappings\n")
    ranges: dict[int, Mapping | None] = {0: None}
    for number, start, limit, offset, file, build_id in re.findall(
        r"^(\d+): 0x(\w+)/0x(\w+)/0x(\w+) (\S*) (\S*)", mappings, re.MULTILINE
    ):
        ranges[int(number)] = int(start, 16), int(limit, 16), int(offset, 16), file, build_id
    frames = {
        int(number): (int(address, 16), ranges[int(mapping or 0)])
        for number, address, mapping in re.findall(r"^ *(\d+): 0x(\w+) (?:M=(\d+))?", locations, re.MULTILINE)
    }
    weights: Weights = {}
    for count, nanoseconds, stack in re.findall(r"^ +(\d+) +(\d+): ([\d ]+)$", head, re.MULTILINE):
        weights[tuple(frames[int(number)] for number in stack.split())] = [int(count), int(nanoseconds)]
    return int(re.findall(r"^Period: (\d+)", head, re.MULTILINE)[0]), weights


def our_weights(profile: Profile) -> tuple[int, Weights]:
    """The same of our profile: pprof leaves out empty stacks and zero values, and adds up equal stacks."""
    maps, strings = profile.mappings, [string.decode() for string in profile.strings]
    columns: list[NDArray[Any]] = [maps.start, maps.limit, maps.file_offset, maps.filename, maps.build_id]
    ranges: list[Mapping | None] = [
        (start, limit, offset, strings[file], strings[build_id])
        for start, limit, offset, file, build_id in zip(*(column.tolist() for column in columns), strict=True)
    ]
    ranges.append(None)
    addresses, owners = profile.locations.address.tolist(), profile.locations.mapping.tolist()
    bounds, weights = profile.samples.location_offsets.tolist(), Weights()
    for i, values in enumerate(profile.samples.values.tolist()):
        stack = profile.samples.locations[bounds[i] : bounds[i + 1]].tolist()
        if stack and any(values):
            frames = tuple((addresses[frame], ranges[owners[frame]]) for frame in stack)
            known = weights.setdefault(frames, [0, 0])
            known[:] = [known[0] + values[0], known[1] + values[1]]
    return profile.period, weights


PPROF_MAPS = {
    "none": b"",
    "/proc/PID/maps": MAPS + b"7ffff000-80000000 r-xp 00000000 00:00 0 [vdso]\r\n",
    "brief": b"build=/usr/local\n0x400000-0x500000: $build/bin (@1000) abc123456\n0x500000-0x600000 $build/bin\n",
    "main binary last": b"10000000-20000000 r-xp 00002000 0:0 1 /lib/x.so\n00401000-00500000 r-xp 00001000 0:0 2 /m\n",
    "overlapping": b"00400000-00500000 r-xp 00000000 0:0 1 /a\n00000000-ffffffff r-xp 00000000 0:0 2 /b.so\n",
    "extended": b"00480000-00500000 r-xp 00080000 08:01 11 /bin/main\n00501000-ffffffffffff0000 r-xp 0 0:0 0\n",
    "prefixed": b"I1 a.cc:12] 00400000-00500000 rwxp 00000000 08:01 11 /bin/main (deleted)\nnothing else\n",
}


@pytest.mark.needs("go")
@pytest.mark.parametrize("maps", PPROF_MAPS.values(), ids=PPROF_MAPS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_agrees_with_pprof(tmp_path: Path, maps: bytes, layout: str) -> None:
    """pprof reads the same stacks, values, mappings and period."""
    random = np.random.default_rng(len(maps))
    pool = [*random.integers(0x400001, 0x600000, 60).tolist(), *random.integers(0x600000, 2**32, 10).tolist(), 0, 1]
    records = [
        (int(random.integers(0, 9)), random.choice(pool, int(random.integers(0, 9))).tolist()) for _ in range(80)
    ]
    records += [(1, [0x401000, 0x401000, 0x402001])]
    path = tmp_path / "cpu.prof"
    path.write_bytes(writer.profile([r for r in records if r != (0, [0])], maps, layout, 4000))
    profile = load(path.read_bytes())
    assert profile.warnings == []
    assert len(our_weights(profile)[1]) > 50
    assert our_weights(profile) == pprof_weights(path)


@pytest.mark.needs("go")
def test_agrees_with_pprof_about_trampolines(tmp_path: Path) -> None:
    """Where we take a caller for a trampoline, so does pprof."""
    path = tmp_path / "cpu.prof"
    path.write_bytes(writer.profile(trampolines(64, 5, 2), MAPS))
    profile = load(path.read_bytes())
    assert len(profile.warnings) == 1
    assert our_weights(profile) == pprof_weights(path)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("maps", [b"", MAPS], ids=["bare", "maps"])
def test_two_profiles_in_one_file(layout: str, maps: bytes) -> None:
    """The first one is read as if it were alone, and the other one is named with its offset."""
    one = writer.profile([(5, [0x400100, 0x400200])], maps, layout)
    alone, both = load(one), load(one * 2)
    assert both.samples.values.tolist() == alone.samples.values.tolist() == [[5, 50_000_000]]
    assert len(both.mappings) == len(alone.mappings)
    assert [f" {len(one):#x}:" in each for each in both.warnings[len(alone.warnings) :]] == [True]

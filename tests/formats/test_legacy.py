"""Text profiles: rows, headers, and where pprof reads the same."""

import gzip
import io
import re
import subprocess
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.core.errors import InputError
from symbolize.formats import load as load_any
from symbolize.formats.legacy import reader as legacy
from symbolize.formats.legacy import rows
from symbolize.formats.legacy.reader import labels_of
from symbolize.formats.legacy.text import integer
from symbolize.profile.model import Profile
from tests.support import gperftools_writer as words
from tests.support.contents import read_pieces
from tests.support.interpreted import load_source
from tests.support.messages import profile_pb2
from tests.support.pprof_text import Raw, of_profile, parse, run_pprof
from tests.support.times import is_linear

MAPS = b"""
MAPPED_LIBRARIES:
00400000-00500000 r-xp 00000000 08:01 11 /bin/main
7f0000000000-7f0000100000 r-xp 00001000 08:01 12 /lib/libc.so.6
"""
INTERPRETED = load_source("formats/legacy/rows")

HEAP = b"heap profile: 3: 30 [ 3: 30] @ heap_v2/1000\n"


def load(text: bytes) -> Profile:
    """Read a text as the file `x`."""
    return read_pieces(legacy.read, [text])


def problem(text: bytes) -> str:
    """The one line with which a text is refused."""
    with pytest.raises(InputError) as caught:
        load(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def stacks(profile: Profile) -> list[list[int]]:
    """The addresses of each sample."""
    addresses = profile.locations.address[profile.samples.locations].tolist()
    bounds = profile.samples.location_offsets.tolist()
    return [addresses[a:b] for a, b in pairwise(bounds)]


def values(profile: Profile) -> list[list[int]]:
    """The values of each sample."""
    return profile.samples.values.tolist()


def types(profile: Profile) -> list[str]:
    """The sample types with their units, and the type of the period."""
    text = profile.strings.text
    return [f"{text(each.type)}/{text(each.unit)}" for each in (*profile.sample_types, profile.period_type)]


def labels(profile: Profile) -> list[dict[str, object]]:
    """The labels of each sample."""
    table, at, text = profile.samples.labels, profile.samples.label_offsets.tolist(), profile.strings.text
    return [
        {
            text(int(table.key[i])): text(int(table.text[i])) if table.text[i] else int(table.number[i])
            for i in range(a, b)
        }
        for a, b in pairwise(at)
    ]


# Rows


@pytest.mark.parametrize(
    ("row", "stack"),
    [
        (b"1:2[3:4]@0x10 0x20", [0xF, 0x1F]),
        (b"  1: 2 [ 3: 4 ] @ 0x10\t0x20\r", [0xF, 0x1F]),
        (b"1: 2 [3: 4] @ 0xABCDEF 0Xabcdef0123456789", [0xABCDEE, 0xABCDEF0123456788]),
        (b"1: 2 [3: 4] @", []),
        (b"1: 2 [3: 4] @ 0x0", [(1 << 64) - 1]),
        (b"1: 2 [3: 4] @ 0x000000000000000000010", [0xF]),
    ],
)
def test_rows(row: bytes, stack: list[int]) -> None:
    """Blanks, tabs, capitals and leading zeros are read (R330, rows of samples)."""
    profile = load(HEAP + row + b"\n")
    assert stacks(profile) == [stack]
    assert profile.warnings == []
    assert labels(profile) == [{"bytes": 2}]


@pytest.mark.parametrize(
    "row",
    [
        b"1: 2 [3: 4] 0x10",
        b"1: 2 [3: 4",
        b"1: 2 3: 4] @ 0x10",
        b"x: 2 [3: 4] @ 0x10",
        b"1: -[3: 4] @ 0x10",
        b"9223372036854775808: 2 [3: 4] @ 0x10",
        b"1: 2 [3: 4] @ 0x10000000000000000",
        b"1: 2 [3: 4] @ " + b"0x1 " * ((1 << 16) + 1),
        b"\xff\x00",
    ],
    ids=range(9),
)
def test_lines_that_are_no_rows(row: bytes) -> None:
    """They are left out with a warning; where there is nothing else the text is refused (R330, rows of samples)."""
    good = b"1: 2 [3: 4] @ 0x10\n"
    profile = load(HEAP + good + row + b"\n" + good + row + MAPS)
    assert stacks(profile) == [[0xF]] * 2
    offset = len(HEAP + good)
    assert profile.warnings == [f"Lines that are no samples: 2 (the first at offset {offset:#x}); they are left out."]
    assert problem(HEAP + row + b"\n") == f"x: has a line that is no sample at offset {len(HEAP):#x}"


def test_cut_stacks() -> None:
    """A stack ends at what is no address, and a warning counts that (R330, rows of samples)."""
    rows = b"1: 2 [3: 4] @ 0x10 0x20 main 0x30\n1: 2 [3: 4] @ 0x10, 0x20\n1: 2 [3: 4] @ 0x10x\n1: 2 [3: 4] @ 0x10\n"
    profile = load(HEAP + rows)
    assert stacks(profile) == [[0xF, 0x1F], [0xF], [0xF], [0xF]]
    assert profile.warnings == ["Stacks that end in something else than an address: 3; the rest of them is lost."]


def test_long_lines() -> None:
    """A stack may be longer than the 64 KiB that pprof reads of a line."""
    deep = b"".join(b" %#x" % (0x401000 + each) for each in range(1 << 16))
    assert len(stacks(load(HEAP + b"1: 2 [3: 4] @" + deep + b"\n"))[0]) == 1 << 16


@pytest.mark.parametrize(
    "title",
    [HEAP, b"heap_v2/4\n", b"--- mutex:\n", b"--- threadz 1 ---\n--- Thread 1\n", b"--- heapz 1 ---\n",
     b"x profile: total 1\n", b"--- symbol\n", b"--- heapz 1 ---\nresolution = b\n1 2 @ 0x1\n"],
    ids=range(8),
)  # fmt: skip
@pytest.mark.full
def test_time_is_linear(title: bytes) -> None:
    """Bad lines, comments, one line without end: each takes as long as it is."""
    units = (
        b"x\n",
        b"# a\n",
        b"1: ",
        b"%warn a\n",
        b"0x1 ",
        b"a",
        b"0x1 a (b:1) ",
        b"0x1 a--",
        b"=",
        b" ",
        b"#\t0x1\ta+0x1",
    )

    def loaded(size: int, unit: bytes) -> None:
        with suppress(InputError):
            load(title + unit * (size // len(unit)))

    assert [unit for unit in units if not is_linear(partial(loaded, unit=unit), 50_000)] == []


row_numbers = st.integers(-(2**63) + 1, 2**63 - 1)
addresses = st.lists(st.integers(0, 2**64 - 1), max_size=5)


@given(st.lists(st.tuples(row_numbers, row_numbers, row_numbers, row_numbers, addresses), max_size=8))
def test_round_trip(rows: list[tuple[int, int, int, int, list[int]]]) -> None:
    """What was written is read."""
    text = b"heap profile: 1: 2 [ 3: 4] @ heapprofile\n"
    for *numbers, stack in rows:
        text += b"%d: %d [%d: %d] @" % tuple(numbers) + b"".join(b" %#x" % each for each in stack) + b"\n"
    profile = load(text)
    assert values(profile) == [[c, d, a, b] for a, b, c, d, _ in rows]
    assert stacks(profile) == [[(each - 1) % 2**64 for each in stack] for *_, stack in rows]


@given(st.sampled_from([HEAP, b"heap_v2/4\n", b"--- mutex:\n", b"--- threadz 1 ---\n", b"--- heapz 1 ---\n",
                        b"goroutine profile: total 1\n", b"--- symbol\n", b"--- contentionz 1 ---\nformat = java\n"]),
       st.binary(max_size=120) | st.text("0x19a @:[]#=-\n\tt*", max_size=120).map(str.encode))  # fmt: skip
def test_any_text(title: bytes, rest: bytes) -> None:
    """Any text behind a title is read or refused with one line."""
    try:
        load(title + rest)
    except InputError as error:
        assert "\n" not in str(error)


ROWS = [b"1: 2 [3: 4] @ 0x10 0xfF", b"7 8 @ 0x1", b"-9 @", b"@ 0x3\n t*: 1: 2 [3: 4]", b"# a", b"", b"0x", b"\t"]


@given(st.sampled_from([b"n:n[n:n]@a", b"nn@a", b"n@a", b"@a\nt*:n:n[n:n]"]), st.lists(st.sampled_from(ROWS)))
def test_interpreted(shape: bytes, lines: list[bytes]) -> None:
    """The same rows are read interpreted and compiled."""
    text = b"\n".join(lines)
    found = []
    for module in (rows, INTERPRETED):
        sizes = (4 * 32, np.int64), (33, np.int64), (32, np.int64), (99, np.uint64), (32, np.uint8)
        arrays = [np.zeros(size, kind) for size, kind in sizes]
        columns = module.RowColumns(*[each.data for each in arrays])
        end = module.read(memoryview(text), 0, memoryview(shape), ord("#"), columns, 0)
        found.append((end, [each[: end[0]].tolist() for each in arrays[1:]]))
    assert found[0] == found[1]


# Heaps


KINDS = [
    b"heap_v2/524288", b"heapz_v2/1000", b"heap/1048576", b"heapprofile", b"growth", b"growthz", b"fragmentation",
    b"fragmentationz", b"heap_v2/1", b"heap_v2/0", b"heap/1", b"heap_v2", b"heap_v2/",
]  # fmt: skip


def made_heap(kind: bytes, seed: int, is_negative: bool = False) -> bytes:
    """A heap profile of a kind with random rows."""
    random = np.random.default_rng(seed)
    text = b"heap profile: 1: 2 [ 3: 4] @ " + kind + b"\n# a comment\n\n"
    for _ in range(60):
        count, more = (int(random.integers(1, 1000)) for _ in range(2))
        size, size_of_more = (int(each) for each in random.integers(1, 10**6, 2))
        if is_negative:
            count, size = -count, -size
        stack = random.choice([0x401000, 0x402345, 0x7F0000001234, 0x10, 1], int(random.integers(1, 5)))
        frames = b"".join(b" %#x" % int(each) for each in stack)
        text += b"  %d: %d [ %d: %d] @%b\n" % (count, size, more, size_of_more, frames)
    return text + b"0: 0 [0: 0] @ 0x401000\n" + MAPS


@pytest.mark.needs("go")
@pytest.mark.parametrize("kind", KINDS, ids=bytes.decode)
def test_heaps_equal_pprof(tmp_path: Path, kind: bytes) -> None:
    """All kinds, with the same rounding (R331, sampled heaps; R332, columns of heaps)."""
    for is_negative in (False, True):
        path = tmp_path / "x"
        path.write_bytes(made_heap(kind, 5, is_negative))
        assert of_profile(load_any(path)) == parse(run_pprof(path))


@pytest.mark.needs("go")
@pytest.mark.parametrize(
    "pairs", [b"1: 2 [1: 2]", b"1: 2 [0: 0]", b"1: 2 [1: 0]", b"1: 2 [0: 2]", b"1: 2 [01: 2]", b"0: 0 [0: 5]"]
)
def test_columns_equal_pprof(tmp_path: Path, pairs: bytes) -> None:
    """Whether there are columns of what was allocated follows from the header's texts (R332, columns of heaps)."""
    path = tmp_path / "x"
    path.write_bytes(b"heap profile: " + pairs + b" @ heap_v2/9000\n3: 300 [4: 401] @ 0x401000 0x402000\n" + MAPS)
    assert of_profile(load_any(path)) == parse(run_pprof(path))


def test_unsampled() -> None:
    """A probability of 1 - 1/e at a size equal to the rate (R331, sampled heaps)."""
    profile = load(b"heap profile: 1: 1 [0: 0] @ heap_v2/1000\n10: 10000 [0: 0] @ 0x10\n")
    assert values(profile) == [[15, 15819]]
    assert types(profile) == ["objects/count", "space/bytes", "space/bytes"]
    assert profile.period == 1000


def test_headers_without_a_kind() -> None:
    """Old ones are sampled every 128 KiB if both pairs are equal, else not at all (R331, sampled heaps)."""
    row = b"2: 20 [4: 50] @ 0x10\n"
    sampled = load(b"heap profile: 1: 2 [1: 2]\n" + row)
    assert sampled.period == 131072
    assert values(sampled) == [[26215, 262154]]
    assert values(load(b"heap profile: 1: 2 [3: 4] @\n" + row)) == [[4, 50, 2, 20]]


def test_heap_warnings() -> None:
    """Rates that are missing, kinds that are unknown, headers that are damaged."""
    profile = load(b"heap profile: 1: 2 [1: 2] @ heap_v2\n2: 20 [4: 50] @ 0x10\n")
    assert profile.warnings[0].startswith("The header has no sampling rate")
    assert values(profile) == [[2, 20]]
    assert "of an unknown kind, heap_v3 at offset 0x0" in problem(b"heap profile: 1: 2 [1: 2] @ heap_v3/5\n")
    assert "damaged header" in problem(b"heap profile: 1: 2 [1] @ heap_v2/5\n")


def test_sizes_without_objects() -> None:
    """They are kept, with a warning (R333, sizes without objects)."""
    profile = load(b"heap profile: 1: 2 [1: 2] @ heap_v2/1000\n0: 4096 [0: 0] @ 0x10\n5: 0 [0: 0] @ 0x10\n")
    assert values(profile) == [[0, 4096], [0, 0]]
    assert profile.warnings == ["Sizes of no objects: 1; they are kept as they are."]
    assert values(load(b"heap profile: 1: 2 [1: 2] @ heapprofile\n5: 0 [0: 0] @ 0x10\n")) == [[5, 0]]


def test_values_beyond_64_bits() -> None:
    """Such samples are left out with a warning."""
    largest = b"%d" % (2**63 - 1)
    profile = load(HEAP + largest + b": " + largest + b" [0: 0] @ 0x10\n1: 5000 [0: 0] @ 0x20\n")
    assert stacks(profile) == [[0x1F]]
    assert profile.warnings == ["Samples whose values exceed 64 bits: 1; they are left out."]


@pytest.mark.parametrize("warned", [b"%warn sampling is off\n", b"\n%warn sampling is off\n# x\n"])
def test_warnings_of_the_profiler(warned: bytes) -> None:
    """Lines of `%warn` before and among samples become warnings (R329, kinds of text profiles)."""
    good = b"1: 2 [3: 4] @ 0x10\n"
    assert load_any(io.BytesIO(warned + HEAP + good)).warnings == ["The profiler warns: sampling is off"]
    assert load(HEAP + good + warned + good).warnings == ["The profiler warns: sampling is off"]


@pytest.mark.parametrize("title", [b"--- Memory map: ---\n", b"I0101 12:00 x.cc:9] MAPPED_LIBRARIES: \n", b""])
def test_memory_maps(title: bytes) -> None:
    """With and without a title (R340, where the memory map begins)."""
    map_lines = MAPS.partition(b":\n")[2]
    profile = load(HEAP + b"1: 2 [3: 4] @ 0x401000\n" + title + map_lines)
    assert [profile.strings[each] for each in profile.mappings.filename] == [b"/bin/main", b"/lib/libc.so.6"]
    assert profile.locations.mapping.tolist() == [0]
    assert profile.warnings == []


# jemalloc

JEMALLOC = b"""heap_v2/1000
  t*: 3: 3000 [0: 0]
  t0: 3: 3000 [0: 0] main
  t1: 0: 0 [0: 0]
@ 0x401000 0x402000
  t*: 1: 1000 [0: 0]
  t0: 1: 1000 [0: 0] main
@ 0x401010
  t*: 2: 2000 [0: 0]
  t0: 2: 2000 [0: 0]
"""


def test_jemalloc() -> None:
    """Sums over threads, multiplied; all addresses are return addresses (R338, rows of jemalloc)."""
    profile = load_any(io.BytesIO(JEMALLOC + MAPS))
    assert stacks(profile) == [[0x400FFF, 0x401FFF], [0x40100F]]
    assert values(profile) == [[1, 1581], [3, 3163]]
    assert types(profile) == ["objects/count", "space/bytes", "space/bytes"]
    assert labels(profile) == [{"bytes": 1000}, {"bytes": 1000}]
    assert (profile.period, len(profile.mappings), profile.warnings) == (1000, 2, [])


def test_jemalloc_with_totals() -> None:
    """What was allocated is there if any row has it (R338, rows of jemalloc)."""
    profile = load(JEMALLOC.replace(b"2: 2000 [0: 0]", b"0: 0 [5: 500]"))
    assert types(profile)[0] == "alloc_objects/count"
    assert values(profile)[1] == [52, 5254, 0, 0]
    old = load(b"heap profile: 1: 2 [1: 2] @ heap_v2/1000\n  1: 1000 [0: 0] @ 0x10\n")
    assert values(old) == [[1, 1581]]


def test_damaged_jemalloc() -> None:
    """A stack without its sum is left out."""
    profile = load(JEMALLOC.replace(b"  t*: 2:", b"  x*: 2:"))
    assert stacks(profile) == [[0x400FFF, 0x401FFF]]
    assert profile.warnings[0].startswith("Lines that are no samples: 2 ")


# Contention

CONTENTION = b"--- contentionz 1 ---\ncycles/second = 3201000000\nsampling period = 100\nms since reset = 16502830\n"
CONTENTION_ROWS = (
    b"discarded samples = 0\n  19490304 27 @ 0x401000 0x402000\n768 1 @ 0x403000\n# x\n5 0 @ 0x7f0000000123\n"
)


@pytest.mark.needs("go")
@pytest.mark.parametrize(
    "change",
    [
        (b"", b""),
        (b"contentionz 1 ---", b"mutex:"),
        (b"contentionz 1 ---", b"contention:"),
        (b"sampling period = 100\n", b""),
        (b"sampling period = 100", b"sampling period=0x10"),
        (b"sampling period = 100", b"sampling period = 010"),
        (b"cycles/second = 3201000000\n", b""),
        (b"sampling period = 100", b"sampling period = 0"),
        (b"ms since reset = 16502830\n", b""),
    ],
)
def test_contention_equals_pprof(tmp_path: Path, change: tuple[bytes, bytes]) -> None:
    """Both counted values, with the same rounding, whatever attributes there are (R334, contention)."""
    path = tmp_path / "x"
    path.write_bytes((CONTENTION + CONTENTION_ROWS + b"--- Memory map: ---\n" + MAPS).replace(*change))
    theirs, ours = parse(run_pprof(path)), of_profile(load_any(path))
    assert ours == theirs


def test_contention_of_others() -> None:
    """Attributes that are not known are ignored; a clock that is not known is a warning (R334, contention)."""
    profile = load_any(io.BytesIO(b"--- contention\ncolour = red\n12 3 @ 0x10\n" + MAPS.partition(b":\n")[2]))
    assert values(profile) == [[3, 12]]
    assert len(profile.mappings) == 3
    assert profile.warnings == ["The speed of the clock is not known: delays are in its cycles, not in nanoseconds."]
    assert "has no number as sampling period" in problem(b"--- mutex:\nsampling period = x\n12 3 @ 0x10\n")
    assert (
        load(b"--- mutex:\ncycles/second=9\n123 @ 0x1\n12 3 @ 0x10\n").warnings[0].startswith("Lines that are no sam")
    )


@pytest.mark.parametrize(
    ("text", "number"),
    [(b"010", 8), (b"0x10", 16), (b"-5", -5), (b"0", 0), (b"", None), (b"x", None), (b"9223372036854775808", None)],
)
def test_numbers_of_go(text: bytes, number: int | None) -> None:
    """As ParseInt with base 0 reads them."""
    assert integer(text) == number


# Go


@pytest.mark.needs("go")
@pytest.mark.parametrize("name", [b"goroutine", b"threadcreate", b"my/own"])
def test_counts_equal_pprof(tmp_path: Path, name: bytes) -> None:
    """Counts by any name."""
    path = tmp_path / "x"
    path.write_bytes(
        b"\n# x\n"
        + name
        + b" profile: total 11\n3 @ 0x10 0x20\n# labels: {}\n#\t0xf\tf+0x1\ta.go:3\n\n8 @ 0x20\n--- Memory map: ---\n"
        + MAPS
    )
    assert of_profile(load_any(path)) == parse(run_pprof(path))


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (b'{"a":"b", "c":"d"}', [(b"a", b"b"), (b"c", b"d")]),
        (rb'{"a\"b":"\\x41\a\v\x7f\U0001f600"}', [(b'a"b', b"\\x41\a\v\x7f\xf0\x9f\x98\x80")]),
        (rb'{"a":"\xff\xfe"}', [(b"a", b"\xff\xfe")]),
        (rb'{"a":"\ud800"}', None),
        (b"{", None),
        (b'{"a":1}', None),
        (b"[]", None),
        (b'{"a":' + b"[" * 5000 + b"}", None),
    ],
    ids=range(8),
)
def test_labels_of_go(written: bytes, found: list[tuple[bytes, bytes]] | None) -> None:
    """Strings as Go quotes them (R335, comments of Go)."""
    assert labels_of(written) == found


def test_labels_that_cannot_be_read() -> None:
    """They are left out with a warning."""
    above = b'# labels: {"of":"no sample"}\n'
    profile = load(
        b"goroutine profile: total 2\n" + above + b'1 @ 0x10\n# labels: {oops}\n1 @ 0x20\n# labels: {"a":"b"}\n'
    )
    assert labels(profile) == [{}, {"a": "b"}]
    assert profile.warnings == ["Labels that cannot be read: 1; they are left out."]


# Threads

THREADS = b"""--- threadz 1 ---

--- Thread 7f0000000910 (name: main/14748) stack: ---
  PC: 0x00401f1c: helper(arg *, 0x999)
  0x0040be31: main
  creator: 0x40d1f2 0x40d1f3
--- Thread 7f0000001910 (name: worker/0/14749) stack: ---
    [same as previous thread]
--- Thread 7f0000002910 (name: idle/14750) stack: ---
  0x401f1c
  0x401f1c
  0x402000
"""


def test_threads() -> None:
    """A sample a thread, with name and tid, without numbers that are in names (R336, threads)."""
    profile = load_any(io.BytesIO(THREADS))
    assert stacks(profile) == [[0x401F1C, 0x40BE30, 0x40D1F1, 0x40D1F2]] * 2 + [[0x401F1C, 0x401FFF]]
    assert labels(profile) == [
        {"thread": "main", "tid": 14748},
        {"thread": "worker/0", "tid": 14749},
        {"thread": "idle", "tid": 14750},
    ]
    assert types(profile) == ["thread/count"] * 2
    assert values(profile) == [[1]] * 3


@pytest.mark.needs("go")
@pytest.mark.parametrize("end", [b"--- Memory map: ---\n", b"---- no stack trace for 12\n"])
def test_threads_equal_pprof(tmp_path: Path, end: bytes) -> None:
    """Where no name has a number, pprof reads the same."""
    path = tmp_path / "x"
    path.write_bytes(THREADS.replace(b", 0x999", b"") + end + MAPS)
    assert of_profile(load_any(path)) == parse(run_pprof(path))


def test_threads_without_stack() -> None:
    """A thread without addresses has an empty stack, one with both has its own (R336, threads)."""
    profile = load(
        b"--- Thread 1 (name: a/1) stack: ---\n  (gone)\n--- Thread 2 (name: /2) stack: ---\n 0x10\n"
        b" same as previous thread\n--- Thread 3\n 0x5\n"
    )
    assert stacks(profile) == [[], [0x10], [5]]
    assert labels(profile) == [{"thread": "a", "tid": 1}, {"tid": 2}, {}]


# Java

TABLE = b"""\
 0x5 com.example.A.run (A.java:12)
 0x6 com.example.B.run (B.java:-1)
 0x7 libjvm_call (/usr/lib/jvm/libjvm.so)
 0x8 generated stub/JIT 0x99
 0x9 GC
 0xa com.example.A.run (Other.java:3)
 0x5 com.example.A.run (A.java:13)
 0xffff unused (A.java:1)
"""
NAMED = {
    5: ("com.example.A.run", "A.java", 13),
    6: ("com.example.B.run", "B.java", 0),
    7: ("libjvm_call", "libjvm.so", 0),
    8: ("STUB", "", 0),
    9: ("GC", "", 0),
    10: ("com.example.A.run", "Other.java", 3),
}
JAVA_HEAP = (
    b"--- heapz 1 ---\nformat = java\nresolution = bytes\n\n 7048 1 @ 0x5 0x6 0xa\n  100 20 @ 0x7 0xbb\n" + TABLE
)
JAVA_CONTENTION = (
    b"--- contentionz 1 ---\nformat = java\nresolution = microseconds\nsampling period = 100\n"
    b"ms since reset = 6019923\n 1 1 @ 0x5 0x8\n14 1 @ 0x9\n" + TABLE
)


def frames(profile: Profile) -> list[list[tuple[str, str, int]]]:
    """Function, file and line of each frame, or its address."""
    return [[each[:3] if each.function else ("", "", each.address) for each in stack] for stack in profile.stacks()]


def test_java_heap() -> None:
    """Ids become functions; sizes come before counts (R337, ids of Java)."""
    profile = load_any(io.BytesIO(JAVA_HEAP))
    assert frames(profile) == [[NAMED[5], NAMED[6], NAMED[10]], [NAMED[7], ("", "", 0xBB)]]
    assert types(profile) == ["inuse_objects/count", "inuse_space/bytes", "/"]
    assert values(profile) == [[74, 527819], [2097162, 10485810]]
    assert labels(profile) == [{"bytes": 7048}, {"bytes": 5}]
    assert values(load(JAVA_HEAP.replace(b"7048 1 @", b"7048 0 @")))[0] == [0, 7048]


def test_java_contention() -> None:
    """Both values are multiplied (R337, ids of Java)."""
    profile = load_any(io.BytesIO(JAVA_CONTENTION))
    assert frames(profile) == [[NAMED[5], NAMED[8]], [NAMED[9]]]
    assert types(profile) == ["contentions/count", "delay/microseconds", "contentions/count"]
    assert values(profile) == [[100, 100], [100, 1400]]
    assert (profile.period, profile.duration_nanos) == (100, 6019923000000)
    for row in (b"14 %d @", b"%d 1 @"):  # a hundred times 2^62 is too much
        profile = load(JAVA_CONTENTION.replace(b"14 1 @", row % (1 << 62)))
        assert values(profile) == [[100, 100]]
        assert profile.warnings == ["Samples whose values exceed 64 bits: 1; they are left out."]
    assert load(CONTENTION + CONTENTION_ROWS).duration_nanos == 16502830000000


def test_java_errors() -> None:
    """Another format, and no resolution."""
    assert "another format than java" in problem(JAVA_HEAP.replace(b"= java", b"= perl"))
    assert "without a resolution" in problem(JAVA_HEAP.replace(b"resolution", b"revolution"))


@pytest.mark.parametrize("layout", words.LAYOUTS)
def test_java_cpu(layout: str) -> None:
    """Records with ids, of which none is adjusted (R337, ids of Java)."""
    data = words.header(layout, kind=1) + words.body([(2, [5, 6]), (1, [7, 9, 0xBB])], layout) + words.end(layout)
    profile = load_any(io.BytesIO(data + TABLE))
    assert frames(profile) == [[NAMED[5], NAMED[6]], [NAMED[7], NAMED[9], ("", "", 0xBB)]]
    assert values(profile) == [[2, 20_000_000], [1, 10_000_000]]
    assert profile.warnings == []


def names_only(raw: Raw) -> dict[tuple[str, ...], list[int]]:
    """Values by names of functions."""
    return {tuple(name for _, _, name in stack): each for (stack, _), each in raw.weights.items()}


@pytest.mark.needs("go")
@pytest.mark.parametrize("text", [JAVA_HEAP, JAVA_CONTENTION])
def test_java_equals_pprof(tmp_path: Path, text: bytes) -> None:
    """Functions and values."""
    path = tmp_path / "x"
    path.write_bytes(text.replace(b" 0xbb", b""))
    theirs, ours = parse(run_pprof(path)), of_profile(load_any(path), with_names=True)
    assert names_only(ours) == names_only(theirs)
    assert (ours.types, ours.period_type, ours.period) == (theirs.types, theirs.period_type, theirs.period)


# Names before a profile

SYMBOLS = b"--- symbol\nbinary=/bin/main\n0x0000000000401000 leaf\n0x401fff main--inlined--innermost\n---\n"


@pytest.mark.parametrize(
    "section",
    [
        b"--- profile\n" + words.header(period=1) + words.body([(3, [0x401000, 0x401FFF])]),
        b"--- heap\nheap profile: 1: 2 [1: 2] @ heapprofile\n3: 2 [1: 2] @ 0x401000 0x402000\n",
        b"--- growth\nheap profile: 1: 2 [1: 2] @ growth\n3: 2 [1: 2] @ 0x401000 0x402000\n",
        b"heap_v2/1\n@ 0x401000 0x402000\n t*: 3: 2 [0: 0]\n",
        b"--- contention\n--- contentionz 1 ---\ncycles/second = 1\n2 3 @ 0x401000 0x402000\n",
        b"--- contention\ncycles/second = 1\n2 3 @ 0x401000 0x402000\n",
    ],
    ids=range(6),
)
def test_names_before_a_profile(section: bytes) -> None:
    """Names come with the profile, inlined ones too, whatever kind it is of (R339, symbolized profiles)."""
    profile = load_any(io.BytesIO(SYMBOLS + section))
    assert [[each.function for each in stack] for stack in profile.stacks()] == [
        ["leaf", "innermost", "inlined", "main"]
    ]
    assert values(profile)[0][0] == 3
    assert [profile.strings[each] for each in profile.mappings.filename] == [b"/bin/main"]


def test_names_before_nothing() -> None:
    """A list of names with no profile behind it is refused."""
    for rest in (b"", b"--- profile\nhello\n", SYMBOLS, b"--- heap\n" + SYMBOLS):
        assert "has no profile of a known kind behind its list of names" in problem(SYMBOLS + rest)


# Frames to leave out


@pytest.mark.needs("go")
@pytest.mark.parametrize(
    "text", [made_heap(b"heapprofile", 1), CONTENTION + CONTENTION_ROWS, b"x profile: total 1\n1 @ 0x1\n"]
)
def test_frames_to_leave_out(tmp_path: Path, text: bytes) -> None:
    """Our expressions match what pprof's match (R343, frames to leave out)."""
    (tmp_path / "x").write_bytes(text)
    command = ["go", "tool", "pprof", "-proto", "-symbolize=none", "-output", str(tmp_path / "y"), str(tmp_path / "x")]
    subprocess.run(command, capture_output=True, check=True)
    theirs = profile_pb2.Profile.FromString(gzip.decompress((tmp_path / "y").read_bytes()))
    ours = load(text)
    for pattern, other in ((ours.drop_frames, theirs.drop_frames), (ours.keep_frames, theirs.keep_frames)):
        known = re.compile(theirs.string_table[other].decode())
        own = re.compile(ours.strings[pattern].decode())
        for name in candidates(theirs.string_table[other].decode()):
            assert bool(own.fullmatch(name)) == bool(known.fullmatch(name)), name


def candidates(pattern: str) -> list[str]:
    """Names that each alternative of an expression matches, and some that it does not."""
    names = []
    for part in pattern.split("|"):
        for optional in ("", r"\1"):
            plain = re.sub(r"\(([^()]*)\)\?", optional, part.replace(r"\(", "").replace(r"\[\]", "[]"))
            plain = plain.replace(".*", "x").replace("[0-9]*", "32").replace("\\", "")
            names += [plain, "x" + plain, plain + "x", plain.replace("::", ""), "tc_" + plain, "tc_c" + plain[2:]]
    return names


def test_formats_by_content() -> None:
    """Titles within a text are none."""
    for text in (
        b"a\nheap profile: 1: 2 [1: 2] @ heap\n",
        b"# " * 5000 + b"\n" + HEAP,
        b"profile: total 5\n",
        b"--- x\n",
    ):
        assert not legacy.matches(text)


ONES = {
    "heap": HEAP + b"1: 8 [1: 8] @ 0x400100\n",
    "jemalloc": b"heap_v2/524288\n  t*: 1: 8 [0: 0]\n@ 0x400100\n  t*: 1: 8 [0: 0]\n",
    "contention": b"--- contentionz 1 ---\n--- contention:\ncycles/second = 1000000000\n5 1 @ 0x400100\n",
    "counts": b'goroutine profile: total 1\n1 @ 0x400100\n# labels: {"a":"b"}\n',
    "threads": b"--- threadz 1 ---\n\n--- Thread 7f (name: a/1) stack: ---\n  0x400100\n"
    b"--- Thread 8f (name: b/2) stack: ---\n  0x400200\n",
    "names": b"--- symbol\nbinary=/bin/main\n0x00400100 f\n---\n--- heap\n" + HEAP + b"1: 8 [1: 8] @ 0x400101\n",
}
"""Profiles of all kinds that tell where another begins, without memory maps."""


@pytest.mark.parametrize("kind", ONES)
@pytest.mark.parametrize("maps", [b"", MAPS], ids=["bare", "maps"])
def test_two_profiles_in_one_file(kind: str, maps: bytes) -> None:
    """The first one is read as if it were alone, and the other one is named with its offset."""
    one = ONES[kind] + maps
    if kind == "threads" and not maps:
        one = b"--- threadz 1 ---\n" + one  # titles of threads are no other profile
        assert not any("Another" in each for each in load(one).warnings)
        return
    other = one.replace(b"0x4001", b"0x4003").replace(b'"b"', b'"c"')
    alone, both = load(one), load(one + other)
    assert (stacks(both), values(both), labels(both)) == (stacks(alone), values(alone), labels(alone))
    assert not any("Another" in each for each in alone.warnings)
    said = [each for each in both.warnings if each not in alone.warnings]
    assert [f" {len(one):#x}:" in each for each in said] == [True]

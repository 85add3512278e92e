"""The output of perf script and folded stacks: names that come along, and what can be looked up."""

import io
import re
import subprocess
import time
from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize import Symbolizer
from symbolize.core.arrays import NONE
from symbolize.core.errors import InputError
from symbolize.formats import load as load_any
from symbolize.formats import perf_script, samples
from symbolize.formats.content import without_mark
from symbolize.formats.folded import reader as folded
from symbolize.formats.folded import scan as folded_scan
from symbolize.profile.model import AddressKind, Profile
from tests.support import dump_profiles, interpreted
from tests.support.contents import read_pieces
from tests.support.times import is_linear

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "fixtures" / "legacy"
BINARIES = ROOT / "fixtures" / "bin" / "gcc-pie"


def load(text: bytes) -> Profile:
    """Read a text, whose content decides the format."""
    return load_any(io.BytesIO(text))


def names(profile: Profile) -> list[list[str]]:
    """The functions of each stack, from leaf to root."""
    return [[frame.function for frame in stack] for stack in profile.stacks()]


def types(profile: Profile) -> list[str]:
    """The sample types with their units."""
    return [f"{profile.strings.text(each.type)}/{profile.strings.text(each.unit)}" for each in profile.sample_types]


def labels(profile: Profile) -> list[dict[str, object]]:
    """The labels of each sample."""
    table, at, text = profile.samples.labels, profile.samples.label_offsets.tolist(), profile.strings.text
    return [
        {
            text(int(table.key[i])): text(int(table.text[i])) if table.text[i] else int(table.number[i])
            for i in range(*ends)
        }
        for ends in pairwise(at)
    ]


def mappings(profile: Profile) -> list[tuple[str, int, int, int, AddressKind]]:
    """File, bounds, offset and kind of each mapping."""
    table, text = profile.mappings, profile.strings.text
    return [
        (text(int(table.filename[i])), int(table.start[i]), int(table.limit[i]), int(table.file_offset[i]),
         profile.address_kind(i))
        for i in range(len(table))
    ]  # fmt: skip


# perf script

MAPS = b"""\
app 7/7 1.0: PERF_RECORD_MMAP2 7/7: [0x555000001000(0x2000) @ 0x1000 fe:00 12 3]: r-xp /bin/app
app 7/7 1.0: PERF_RECORD_MMAP2 7/7: [0x7f0000000000(0x9000) @ 0 fe:00 12 3]: rw-p /lib/data.so
"""
SAMPLE = b"""\
app 7/8 [001] 1.5:    1000 cycles:u:
\t555000001234 leaf(int)+0x4 (/bin/app)
\t    555000001345 main+0x5 (/bin/app)

"""
TOP = (1 << 64) - 1


def test_offsets_behind_a_mapping() -> None:
    """An offset in a file is in the mapping that has it, and in none behind its end (R341, text of perf)."""
    lines = [
        b"app 7/8 1.5: 1 cycles:\n\t%x f%x (/bin/app)\n\n" % (offset, offset) for offset in (0x1000, 0x2FFF, 0x3000)
    ]
    profile = load_any(io.BytesIO(MAPS + b"".join(lines)))
    starts = [int(profile.mappings.start[row]) for row in profile.locations.mapping.tolist()]
    assert [start == 0x555000001000 for start in starts] == [True, True, False]
    assert profile.locations.address[:2].tolist() == [0x555000001000, 0x555000002FFF]


@pytest.mark.parametrize("name", ["plain", "maps", "fields"])
def test_recorded(name: str) -> None:
    """Samples, periods, threads and names are those in the text (R341, text of perf)."""
    path = FOLDER / f"{name}.perf-script"
    text = path.read_text()
    profile = load_any(path)
    assert profile.warnings == []
    assert types(profile) == ["cpu-clock_sample/count", "cpu-clock_event/nanoseconds", "task-clock_sample/count",
                              "task-clock_event/nanoseconds"]  # fmt: skip
    heads = [line.split() for line in text.splitlines() if "-clock:" in line]
    assert profile.samples.values.sum(axis=0).tolist() == [
        total
        for event in ("cpu-clock:", "task-clock:")
        for total in (
            sum(each[-1] == event for each in heads),
            sum(int(each[-2]) for each in heads if each[-1] == event),
        )
    ]
    assert Counter(each["tid"] for each in labels(profile)).keys() == {int(each[1].split("/")[-1]) for each in heads}
    first = text[text.index("-clock: \n") :].split("\n\n")[0].splitlines()[1:]
    own = [line.split(maxsplit=1)[1].split("+0x")[0] for line in first if line.startswith("\t")]
    assert names(profile)[0] == ["" if name.startswith("[unknown]") else name for name in own]


def test_the_first_event_with_values_is_shown() -> None:
    """Tracepoints are printed without periods: their values are 0."""
    switch = SAMPLE.replace(b"   1000 cycles:u", b"sched:sched_switch")
    profile = load_any(io.BytesIO(switch + SAMPLE + switch))
    assert profile.samples.values.sum(axis=0).tolist() == [2, 0, 1, 1000]
    assert types(profile)[profile.weight_column()] == "cycles:u_event/count"
    profile = load_any(io.BytesIO((switch + switch.replace(b"switch", b"wakeup") * 2).replace(b"    : ", b": ")))
    assert types(profile)[profile.weight_column()] == "sched:sched_switch_sample/count"


def test_recorded_lines() -> None:
    """Source lines that perf prints belong to the frame before."""
    stacks = list(load_any(FOLDER / "fields.perf-script").stacks())
    assert {frame.file for stack in stacks for frame in stack} >= {"main.cc", "formula.cc"}
    assert all(frame.line for stack in stacks for frame in stack if frame.file)


@pytest.mark.parametrize("name", ["plain", "maps"])
def test_looked_up(name: str) -> None:
    """Frames with names get lines and inlined functions, where perf printed mappings or offsets in files."""
    profile = load_any(FOLDER / f"{name}.perf-script")
    before = names(profile)
    with Symbolizer([str(BINARIES)]) as symbolizer:
        result = symbolizer.symbolize(profile)
    row = next(each for each in result.report.mappings if each.name == "/opt/ledger/bin/ledger")
    assert row.symbolized_locations == row.locations > 20
    assert row.verified == (name == "plain")
    if row.verified:
        assert sum(frame.is_inlined for stack in result.profile.stacks() for frame in stack)
    assert len(before) == len(profile.samples)


def test_mappings() -> None:
    """Addresses are located by the executable mappings of their process; callers are moved into the call (R341)."""
    profile = load(MAPS + SAMPLE)
    assert mappings(profile) == [("/bin/app", 0x555000001000, 0x555000003000, 0x1000, AddressKind.PROCESS)]
    assert profile.locations.address.tolist() == [0x555000001234, 0x555000001344]
    assert names(profile) == [["leaf(int)", "main"]]
    assert labels(profile) == [{"comm": "app", "tid": 8, "pid": 7}]
    assert types(profile) == ["cycles:u_sample/count", "cycles:u_event/count"]
    assert profile.samples.values.tolist() == [[1, 1000]]
    assert profile.warnings == []


def test_offsets_in_files() -> None:
    """Some versions of perf print these for processes: they are addresses if mappings tell (R341, text of perf)."""
    text = SAMPLE.replace(b"555000001234", b"1234").replace(b"555000001345", b"1345")
    profile = load(MAPS + text)
    assert profile.locations.address.tolist() == [0x555000001234, 0x555000001344]
    profile = load(text)
    assert mappings(profile) == [("/bin/app", 0, TOP, 0, AddressKind.OFFSET)]
    assert profile.locations.address.tolist() == [0x1234, 0x1344]
    newer = load(SAMPLE.replace(b"(/bin/app)", b"(/bin/app+0x1999)"))
    ((file, start, limit, offset, kind),) = mappings(newer)
    assert (file, offset, limit - start, kind) == ("/bin/app", 0x1000, 0x1000, AddressKind.PROCESS)
    assert [address - start + offset for address in newer.locations.address.tolist()] == [0x1999, 0x1998]


@pytest.mark.parametrize("spelling", ["script", "folded"])
def test_offsets_that_count_bytes_of_a_file(spelling: str) -> None:
    """They are no vaddrs, from which they differ in files of lld, and a caller at the end of a page is in it (R341)."""
    leaf, caller = 0x1B00, 0x2000  # `main` is from 0x202b00 on, in a segment from 0x1860 on, which is at 0x202860
    lines = f"\t202b00 [unknown] (/x/ledger+{leaf:#x})\n\t203000 [unknown] (/x/ledger+{caller:#x})\n\n"
    text = f"app 7 1.5: 1 cycles: \n{lines}"
    if spelling == "folded":
        text = f"unknown (/x/ledger) <{caller:#x}>;unknown (/x/ledger) <{leaf:#x}> 3\n"
    profile = load(text.encode())
    with Symbolizer([str(ROOT / "fixtures" / "bin" / "clang-nopie-dwarf4-lld")]) as symbolizer:
        (stack,) = names(symbolizer.symbolize(profile).profile)
    assert (stack[0], stack[-1]) == ("main", "std::vector::~vector")


def test_addresses_without_mappings() -> None:
    """They keep their names, and a warning says what to print (R341, text of perf)."""
    profile = load(SAMPLE)
    assert mappings(profile) == [("/bin/app", 0, TOP, 0, AddressKind.NO_BINARY)]
    assert names(profile) == [["leaf(int)", "main"]]
    assert profile.warnings[0].startswith("2 addresses cannot be looked up")
    assert "--show-mmap-events" in profile.warnings[0]


def test_kernel() -> None:
    """Its addresses need no mapping; the frame that entered it is none in a call (R341, text of perf)."""
    frames = (
        b"\tffffffff81000e46 a+0x1 ([kernel.kallsyms])\n\tffffffff81000e99 b+0x1 ([kernel.kallsyms])\n"
        b"\t1234 c+0x1 (/a)\n\t1299 [unknown] (/a)\n"
    )
    text = b"app 7 1.5: 1 cycles: \n" + frames
    profile = load(text)
    assert mappings(profile)[0] == ("[kernel.kallsyms]", 0, TOP, 0, AddressKind.KERNEL)
    assert profile.locations.address.tolist() == [0xFFFFFFFF81000E46, 0xFFFFFFFF81000E98, 0x1234, 0x1298]
    assert names(profile) == [["a", "b", "c", ""]]
    kernel = b"swapper 0 0.0: PERF_RECORD_MMAP -1/0: [0xffffffff81000000(0x1000000) @ 0xffffffff81000000]: x "
    kernel += b"[kernel.kallsyms]_text\n"
    profile = load(kernel + text)
    assert mappings(profile)[0][1:4] == (0xFFFFFFFF81000000, 0xFFFFFFFF82000000, 0xFFFFFFFF81000000)


def test_build_ids() -> None:
    """A mapping has the build id that is printed with it (R341, text of perf)."""
    profile = load(MAPS.replace(b"fe:00 12 3", b"<EC42c29192df>".lower()) + SAMPLE)
    assert [profile.strings[each] for each in profile.mappings.build_id.tolist()] == [b"ec42c29192df"]
    assert mappings(profile)[0][:3] == ("/bin/app", 0x555000001000, 0x555000003000)
    assert [profile.strings[each] for each in load(MAPS + SAMPLE).mappings.build_id.tolist()] == [b""]


def test_no_kernel_below_a_process() -> None:
    """An address of the kernel's half among the callers of a process is none of the kernel."""
    garbage = b"\tffffffffffffffff [unknown] ([unknown])\n"
    kernel = b"\tffffffff81000e46 a+0x1 ([kernel.kallsyms])\n"
    text = b"app 7 1.5: 1 cycles: \n" + kernel + b"\t1234 c+0x1 (/a)\n" + garbage + b"\n"
    text += b"app 7 1.6: 1 cycles: \n" + garbage + b"\t1234 c+0x1 (/a)\n\n"
    profile = load(text + b"app 7 1.7: 1 cycles: \n" + kernel + garbage)
    assert [each[0] for each in mappings(profile)] == ["[kernel.kallsyms]", "/a"]
    assert profile.locations.mapping[profile.samples.locations].tolist() == [0, 1, NONE, 0, 1, 0, 0]


def test_stand_ins() -> None:
    """What simpleperf's scripts print for a function without a name is an offset in the file, or an address of the
    kernel (R452, stand-ins)."""
    profile = load(
        b"app 7 1.5: 1 cycles:\n\tffffff9300001000 [kernel.kallsyms][+ffffff9300001000] ([kernel.kallsyms])\n"
        b"\t74938fb3f0 libadreno.so[+29c3f0] (/vendor/libadreno.so)\n"
        b"\t7493743bf0 glTexSubImage2D (/vendor/libadreno.so)\n"
    )
    assert names(profile) == [["", "", "glTexSubImage2D"]]
    rows = [mappings(profile)[row] for row in profile.locations.mapping.tolist()]
    assert [(row[0], row[4]) for row in rows] == [
        ("[kernel.kallsyms]", AddressKind.KERNEL),
        ("/vendor/libadreno.so", AddressKind.OFFSET),
        ("/vendor/libadreno.so", AddressKind.NO_BINARY),
    ]
    assert profile.locations.address.tolist()[:2] == [0xFFFFFF9300001000, 0x29C3F0]


def test_main_binary() -> None:
    """The file that a thread is called after comes first (pprof schema)."""
    profile = load(b"app 7 1.5: 1 cycles:\n\t1234 a (/lib/x.so)\n\t1300 main (/bin/app)\n\t1 [unknown] ([unknown])\n")
    assert [each[0] for each in mappings(profile)] == ["/bin/app", "/lib/x.so"]
    assert profile.locations.mapping.tolist() == [1, 0, -1]


def test_inlined() -> None:
    """Inlined functions are frames of the location that follows them (R341, text of perf)."""
    text = b"app 7 1.5: 1 cycles:\n\t1234 inner (inlined)\n  a.c:3\n\t1234 outer+0x4 (/bin/app)\n  b.c:9\n"
    text += b"\t1300 main+0x1 (/bin/app)\n"
    profile = load(text)
    assert [(each.function, each.file, each.line, each.is_inlined) for each in next(iter(profile.stacks()))] == [
        ("inner", "a.c", 3, True),
        ("outer", "b.c", 9, False),
        ("main", "", 0, False),
    ]


@pytest.mark.parametrize(
    ("line", "comm", "tid"),
    [
        (b"app 8 1.5: 1000 cycles:", "app", 8),
        (b"          perf   812 [003] 11.5:          1 cycles:ppp:", "perf", 812),
        (b"Web Content 7/8 1.5: 1000 cycles:", "Web Content", 8),
        (b"kworker/0:1-eve 8 [000] d..2. 1.5: 1000 cycles:", "kworker/0:1-eve", 8),
        (b"app 8 1.5: sched:sched_switch: prev_comm=app prev_pid=8 ==> next_comm=b", "app", 8),
        (b":-1 -1 1.5: 1000 cycles:", ":-1", -1),
    ],
)
def test_headers(line: bytes, comm: str, tid: int) -> None:
    """Commands with blanks, with and without process, CPU, flags and period."""
    profile = load(line + b"\n\t1234 f+0x1 (/bin/app)\n\n")
    assert (labels(profile)[0]["comm"], labels(profile)[0]["tid"]) == (comm, tid)
    assert names(profile) == [["f"]]
    assert len(profile.sample_types) == (1 if b"sched" in line else 2)


COLUMNS = ["comm,pid,tid,time,event,period,ip,sym,dso", "+misc", "-event", "tid,time,period,event,ip,sym,dso"]
COUNTED = ["event,ip,sym,dso", "comm,event,ip,sym,dso", "tid,event,ip,sym,dso", "comm,time,event,ip,sym,dso"]


@pytest.mark.needs("perf")
@pytest.mark.parametrize("columns", [*COLUMNS, *COUNTED, "comm,tid,time,ip,sym,dso", "comm,pid,event,ip,sym,dso"])
def test_columns_of_perf(columns: str) -> None:
    """Whatever columns perf prints, the stacks are those of the recording, and the periods where they are printed."""
    recording = ROOT / "fixtures" / "profiles" / "perf_data" / "threads.data"
    expected = load_any(str(recording))
    command = ["perf", "script", "--no-inline", "--no-demangle", "-i", str(recording), "-F", columns]
    text = subprocess.run(command, capture_output=True, check=True).stdout
    found = load(text)
    assert not [each for each in found.warnings if "left out" in each]
    assert len(found.sample_types) == (2 if columns in COLUMNS else 1)
    sums = [each.samples.values.sum(axis=0).tolist() for each in (found, expected)]
    assert sums[0] == sums[1][: len(sums[0])]
    printed = Counter(block.count(b"\n\t") for block in text.split(b"\n\n") if block.strip())
    depths: Counter[int] = Counter()
    for depth, value in zip(np.diff(found.samples.location_offsets), found.samples.values[:, 0], strict=True):
        depths[int(depth)] += int(value)
    assert depths == printed


@pytest.mark.parametrize(
    ("text", "stacks", "value"),
    [
        ("app 8 1.000001: 7 mem:            0\n\t401000 f (/a)\n\t402000 g (/a)\n", [["f", "g"]], 7),
        ("app 8 1.000001: 7 mem: ffff8880   401000 f (/a)\n", [["f"]], 7),
        ("app 8 1.000001: 7 mem: ffff8880   3  401000 f(int) (/a)\n", [["f(int)"]], 7),
        ("app 8 1.000001: 7 mem: f0 1 |OP LOAD|LVL L1 hit|BLK  N/A  3\n\t401000 f (/a)\n", [["f"]], 7),
        ("app 8 U  1.000001: 7 cycles:\n\t401000 f (/a)\n", [["f"]], 7),
        ("app 8 1.000001: 7\n\t401000 f (/a)\n", [["f"]], 7),
        ("w 12 345 1.000001: 7 cycles:\n\t401000 f (/a)\n", [["f"]], 7),
        ("Warning:\nProcessed 12 events and lost 1 chunks!\n\napp 8 1.5: 7 cycles:\n\t401000 f (/a)\n", [["f"]], 7),
        ("app 8 1.5: 7 cycles:\n401000 f (/a)\n402000 g::h (/a)\n\n", [["f", "g::h"]], 7),
        ("app 8 [001] 1.000001: kfree: call_site=ffffffff81092295 ptr=(nil)\n", [[]], 1),
        ("app 8 1.5: 7 cycles:\n\t401000 f (/a)\n\tffffffffffffffff [unknown] ([unknown])\n", [["f", ""]], 7),
    ],
)
def test_columns(text: str, stacks: list[list[str]], value: int) -> None:
    """Columns before the frames are no frames, and what is around samples refuses none."""
    profile = load(text.encode())
    assert names(profile) == stacks
    assert profile.samples.values[0, -1] == value
    assert "[kernel.kallsyms]" not in [each[0] for each in mappings(profile)]


def test_columns_that_cannot_be_told_apart() -> None:
    """What perf prints of an access has blanks within, so that a frame behind it in one line is not guessed."""
    line = b"app 8 1.000001: 7 mem: f0 1 |OP LOAD|LVL L1 hit|BLK  N/A  3  401000 f (/a)\n"
    profile = load(line + b"app 8 1.000002: 7 mem: 401000 f (/a)\n")
    assert names(profile) == [["f"]]
    assert "cannot be told apart: 1; they are left out: print them with `perf script -F comm," in profile.warnings[0]


@pytest.mark.parametrize("rest", ["250000 401136 f (/a)", "250000 401136", "401136", "0 401136 f (/a)"])
def test_numbers_that_may_be_periods(rest: str) -> None:
    """Without the column of the event, a number may be a period, the address of data, or that of code."""
    profile = load(
        f"app 8 1.000001: {rest}\napp 8 1.000002: 401136 g (/a)\napp 8 1.000003: 7\n\t401000 h (/a)\n".encode()
    )
    assert names(profile) == [["g"], ["h"]]
    assert profile.samples.values[:, -1].tolist() == [0, 7]
    assert "cannot be told apart: 1" in profile.warnings[0]


@pytest.mark.parametrize(
    "line",
    [
        b"app 8 1.000001: 7 mem: " + b"(" * 20_000 + b")" * 20_000 + b" x",
        b"app 8 1.000001: 7 mem: abcd " + b"(" * 40_000 + b")",
        b"app 8 1.000001: 7 mem: " + b"a " * 20_000 + b"x",
        b"app 8 1.000001: 7 mem: a" + b" " * 40_000 + b"x)",
        b"x" * 40_000 + b":",
        b"1 " * 20_000 + b":",
    ],
)
def test_no_line_takes_long(line: bytes) -> None:
    """What is tried for a line grows with its length, and no faster."""
    began = time.process_time()
    load(b"app 8 1.000001: 7 mem: 401000 f (/a)\n" + line + b"\nabcd " + b"(" * 20_000 + b" x\n")
    assert time.process_time() - began < 1


def test_modules_of_the_kernel() -> None:
    """Frames of modules, and of programs for the kernel, are in what perf says that they are in."""
    text = b"app 8 1.5: 7 cycles:\n\tffffffffc0001000 nf_hook ([nf_tables])\n\tffffffffc0002000 prog ([bpf])\n"
    profile = load(text + b"\tffffffff81002000 entry ([kernel.kallsyms])\n\n")
    assert [each[0] for each in mappings(profile)] == ["[nf_tables]", "[bpf]", "[kernel.kallsyms]"]
    assert {each[4] for each in mappings(profile)} == {AddressKind.KERNEL}


@pytest.mark.parametrize(
    ("text", "expected", "warning"),
    [
        ("main;a 3\nNot a stack\nmain;b 4\n", {"a main": 3, "b main": 4}, "no folded stacks: 1, the first is line 2;"),
        ("# x\n\nmain;a 3\nmain;a 1 x\n", {"a main": 3}, "no folded stacks: 1, the first is line 4;"),
        ("main;a 1.5\nmain;b 2.25\nmain;a 1.25\n", {"a main": 3, "b main": 2}, "that 5.00 in all became 5."),
        ("main;a 12.00\nmain;b 3.\nmain;f@GLIBC_2.2.5 3\n", {"a main": 12, "b main": 3, "f@GLIBC_2.2.5 main": 3}, ""),
        ("main;a 3\n 7\n4\n", {"a main": 3, "": 11}, ""),
        ("main;a -3\nmain;b 4\n", {"b main": 4}, "no folded stacks: 1, the first is line 1;"),
        ("unix`trap+0x2c7;ntdll!F+0x21;main+0x1a 5\n", {"main+0x1a ntdll!F+0x21 unix`trap+0x2c7": 5}, ""),
        ("main;prog+0x1a40 5\n", {" main": 5}, ""),
    ],
)
def test_folded_as_its_tools_read_it(text: str, expected: dict[str, int], warning: str) -> None:
    """Lines of another form are left out and counted, a count may have a fraction, and a count alone is of no stack. A
    place in a function is a name, one in a file is an address."""
    for encoded in (
        text.encode(),
        text.replace("\n", "\r\n").encode(),
        text.encode("utf-8-sig"),
        text.encode("utf-16"),
    ):
        profile = load(encoded)
        rows = zip(names(profile), profile.samples.values[:, 0].tolist(), strict=True)
        assert {" ".join(stack): value for stack, value in rows} == expected
        assert [warning in each for each in profile.warnings] == [True] * bool(warning)


def test_marks_of_encodings() -> None:
    """A text with a byte order mark is read as one without, in pieces of any size; what is none is an error."""
    text = "main;größe 3\nmain;b 4\n"
    marked = [
        text.encode("utf-8-sig"),
        *(mark + text.encode(name) for mark, name in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))),
    ]
    for data in marked:
        for size in (1, 2, 3, 64):
            pieces = iter([data[at : at + size] for at in range(0, len(data), size)])
            assert b"".join(without_mark(pieces, "x")) == text.encode()
    with pytest.raises(InputError, match="x: begins as UTF-16-LE text does, and is none"):
        b"".join(without_mark(iter([b"\xff\xfea\0b"]), "x"))
    assert b"".join(without_mark(iter([]), "x")) == b""
    heap = "heap profile: 1: 100 [ 1: 100] @ heapprofile\n1: 100 [1: 100] @ 0x401142\n"
    assert load(heap.encode("utf-16")).samples.values.tolist() == load(heap.encode()).samples.values.tolist()


def test_one_line_samples() -> None:
    """Without callchains the frame is in the line of the sample."""
    line = b"app 8 1.5: 1000 cycles:  1234 f(int, void (*)(int))+0x1 (/bin/app (deleted))\n"
    profile = load(line * 3 + b"  b 9 1.6: 5 cycles: 1234 [unknown] ([unknown])\n")
    assert names(profile) == [["f(int, void (*)(int))"], [""]]
    assert profile.samples.values.tolist() == [[3, 3000], [1, 5]]


def test_processes() -> None:
    """A forked process has the mappings of its parent, an executed program none; a later mapping hides an earlier."""
    forked = b"app 7/7 1.1: PERF_RECORD_FORK(20:20):(7:7)\napp 7/7 1.1: PERF_RECORD_FORK(7:8):(7:7)\n"
    profile = load(MAPS + forked + SAMPLE.replace(b"7/8", b"20/20") + SAMPLE.replace(b"7/8", b"8"))
    assert {each[4] for each in mappings(profile)} == {AddressKind.PROCESS}
    run = b"app 20/20 1.1: PERF_RECORD_COMM exec: b c:20/20\n"
    profile = load(MAPS + forked + run + SAMPLE.replace(b"7/8", b"20/20"))
    assert mappings(profile) == [("/bin/app", 0, TOP, 0, AddressKind.NO_BINARY)]
    later = MAPS.replace(b"/bin/app", b"/bin/other").splitlines(keepends=True)[0]
    profile = load(MAPS + SAMPLE + later + SAMPLE)
    assert [each[0] for each in mappings(profile)] == ["/bin/app", "/bin/other"]
    # One that has the number of another process has nothing of that, nor where its addresses were.
    first, at = later.replace(b"7/7", b"20/20"), SAMPLE.replace(b"7/8", b"20/20").replace(b" (/bin/app)", b"")
    profile = load(MAPS + first + at + forked + at)
    assert [each[0] for each in mappings(profile)] == ["/bin/app", "/bin/other"]
    profile = load(first + at + b"x 9/9 1.1: PERF_RECORD_FORK(20:20):(9:9)\n" + at)
    assert [each[0] for each in mappings(profile)] == ["/bin/other"]
    assert profile.locations.mapping.tolist() == [0, 0, NONE, NONE]


def test_what_is_mapped_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is beyond a limit has no file, not even the only one that is known, and none that was there before."""
    monkeypatch.setattr(perf_script, "MAX_PROCESSES", 1)
    others = MAPS.replace(b"7/7", b"9/9") + b"app 9/9 1.1: PERF_RECORD_FORK(10:10):(9:9)\n"
    samples = [SAMPLE.replace(b" (/bin/app)", b"").replace(b"7/8", tid) for tid in (b"7/8", b"9/9", b"10/10", b"11")]
    profile = load(MAPS + others + b"".join(samples))
    assert profile.locations.mapping.tolist() == [0, 0, NONE, NONE]
    assert profile.samples.locations.tolist() == [0, 1, 2, 3, 2, 3, 2, 3]
    assert profile.warnings == ["2 processes are too many: what is mapped in them was left out."]
    monkeypatch.setattr(perf_script, "MAX_MAPPINGS", 2)
    line = MAPS.splitlines(keepends=True)[0]
    over = b"".join(line.replace(b"/bin/app", file).replace(b"555", start) for file, start in (
        (b"/bin/b", b"777"), (b"/bin/c", b"555"), (b"/bin/d", b"888")
    ))  # fmt: skip
    places = [SAMPLE.replace(b" (/bin/app)", b"").replace(b"555", start) for start in (b"555", b"777", b"888")]
    profile = load(line + over + b"".join(places))
    assert sorted(each[0] for each in mappings(profile)) == ["/bin/c", "/bin/d"]
    assert profile.locations.mapping.tolist().count(NONE) == 2
    assert profile.warnings == ["2 mappings were left out: processes have more than 2."]


def test_lines_that_are_no_samples() -> None:
    """They are counted, and hide nothing."""
    profile = load(SAMPLE + b"Warning:\nsome thing\n" + SAMPLE)
    assert profile.samples.values.tolist() == [[2, 2000]]
    assert profile.warnings[-1] == "Lines that are no samples of perf: 2; they are left out."


# Folded stacks


def test_folded() -> None:
    """From the root to the leaf; equal stacks are sums (R342, folded stacks)."""
    profile = load(b"# made by hand\nmain;run;leaf one 12\nmain;run 3\nmain;run;leaf one 1\n")
    assert names(profile) == [["leaf one", "run", "main"], ["run", "main"]]
    assert profile.samples.values.tolist() == [[13], [3]]
    assert types(profile) == ["samples/count"]


FOLDED_LINE = re.compile(rb"(?:([^\n]*\S)[ \t]+|[ \t]*)([0-9]{1,18})\s*\Z")


def folded_by_pattern(text: bytes) -> tuple[Counter[tuple[bytes, ...]], int, int]:
    """The count of each stack from leaf to root, how many lines are no stacks, and the number of the first."""
    counts: Counter[tuple[bytes, ...]] = Counter()
    skipped = first = 0
    for number, line in enumerate(text.split(b"\n"), 1):
        found = FOLDED_LINE.match(line)
        if found and not line.startswith(b"#"):
            frames = found[1].split(b";") if found[1] is not None else []
            counts[tuple(frame.strip() for frame in reversed(frames))] += int(found[2])
        elif line.strip() and not line.startswith(b"#"):
            skipped += 1
            first = first or number
    return counts, skipped, first


PARTS = st.sampled_from(
    [*[bytes([each]) for each in b"abc;;;;  \t\r\v\f\n\n0123#x"], b" 12\n", b"12\n", b"9" * 18, b"9" * 19, b";a b;"]
)


@given(st.lists(PARTS, max_size=60).map(b"".join), st.integers(1, 20), st.sampled_from([1, 3, 1 << 16]))
def test_folded_by_pattern(text: bytes, size: int, most: int) -> None:
    """Lines are those of a regular expression, whatever the pieces are, and however many frames are recognized."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folded_scan, "MAX_FRAMES", most)
        profile = read_pieces(folded.read, pieces)
    counts, skipped, first = folded_by_pattern(text)
    found = [tuple(each.encode() for each in stack) for stack in names(profile)]
    assert dict(zip(found, profile.samples.values[:, 0].tolist(), strict=True)) == counts
    message = f"Lines that are no folded stacks: {skipped}, the first is line {first}; they are left out."
    assert profile.warnings == ([message] if skipped else [])


def test_folded_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums beyond 64 bits are the largest number, too many frames are refused, and lines that are too long left out."""
    profile = load(b"a;b 999999999999999999\n" * 10 + b"c;d 1\n")
    assert profile.samples.values.tolist() == [[(1 << 63) - 1], [1]]
    assert profile.warnings == ["Sums of values that exceed 64 bits: 1; they are the largest number."]
    profile = load(b"a;b 1\n" + b"a;" * samples.MAX_LINE + b"b 1\n")
    assert profile.samples.values.tolist() == [[1]]
    assert profile.warnings == ["Lines that are no folded stacks: 1, the first is line 2; they are left out."]
    monkeypatch.setattr(samples, "MAX_FRAMES", 3)
    load(b"a;b;c 1\n" * 9)
    with pytest.raises(InputError, match="has stacks with more than 3 frames"):
        load(b"a;b;c 1\nb;c 1\n")


@pytest.mark.process
def test_interpreted(tmp_path: Path) -> None:
    """Uncompiled, text profiles and stacks give the same profiles."""
    made = tmp_path / "made.folded"
    lines = b"main;run;leaf one 12\n;x 5 \r\n# no\nmain;libx.so+0x17 3\n"
    made.write_bytes(lines + b"a;b 999999999999999999\n" * 99 + b"none\n")
    paths = [made, *sorted(FOLDER.glob("*.heap")), FOLDER / "plain.perf-script", FOLDER / "jemalloc.dump"]
    printed = interpreted.run(tmp_path, Path(dump_profiles.__file__), *map(str, paths)).split()
    assert printed == ["False", *map(dump_profiles.digest, paths)]


def test_folded_modules() -> None:
    """Offsets in modules, modules, and what is not known (R342, folded stacks)."""
    profile = load(b"app;ledger+0x1500;/lib/libc.so.6+0x99;[libm.so.6];[unknown];f<int>+0x5;a::b+0x6 1\n")
    assert mappings(profile) == [
        ("libm.so.6", 0, 0, 0, AddressKind.PROCESS),
        ("/lib/libc.so.6", 0, TOP, 0, AddressKind.OFFSET),
        ("ledger", 0, TOP, 0, AddressKind.OFFSET),
    ]
    assert names(profile) == [["a::b+0x6", "f<int>+0x5", "", "", "", "", "app"]]
    stack = next(iter(profile.stacks()))
    assert [each.address for each in stack] == [0, 0, 0, 0, 0x98, 0x14FF, 0]


def test_folded_symbolized() -> None:
    """Offsets in a module are looked up with its binary."""
    from symbolize.elf import ElfImage

    with ElfImage.open(str(BINARIES / "ledger")) as image:
        begin = int(image.code_ranges[0][0])
    text = b"".join(b"app;ledger+0x%x 1\n" % (begin + 0x400 + each * 16) for each in range(8))
    with Symbolizer([str(BINARIES)]) as symbolizer:
        found = symbolizer.symbolize(load(text)).profile
    assert all(stack[0].function and stack[0].line for stack in found.stacks())


@pytest.mark.parametrize(
    "text",
    [
        b"a;b 1 2\nc;d 3 4\n",
        b"a b 1\n",
        b"a;b\n",
        b"a;b 1\nno count\nnone\n",
        b"a;b 1\n\0\n",
        b"a;b 1.5.5\n",
        b"x = 1;\ny = 2;\n",
    ],
)
def test_what_is_not_folded(text: bytes) -> None:
    """Two counts, no stacks, lines without counts."""
    with pytest.raises(InputError):
        load(text)


def test_lines_of_pieces() -> None:
    """Lines are put together; of those that are too long only the beginning."""
    assert list(samples.lines_of(iter([b"a\nb", b"c", b"", b"d\n", b"\ne"]))) == [b"a", b"bcd", b"", b"e"]
    long = [b"x" * 1000] * 3000 + [b"\ny"]
    assert [len(each) for each in samples.lines_of(iter(long))] == [samples.MAX_LINE, 1]


@given(st.text("ab;:+0x1 2()[]\n\t/", max_size=200) | st.binary(max_size=200))
def test_any_text(text: str | bytes) -> None:
    """Any text is read or refused."""
    data = text.encode() if isinstance(text, str) else text
    for module in (perf_script, folded):
        module.matches(data)
        try:
            read_pieces(module.read, [SAMPLE + data, data])  # type: ignore[attr-defined]
        except InputError as error:
            assert "\n" not in str(error)


@pytest.mark.full
def test_time_is_linear() -> None:
    """Long and odd lines take as long as they are."""
    lines = (
        (b"", b"1 "),
        (b"", b"a:"),
        (b"\t12 ", b"("),
        (b"\t12 ", b" (a"),
        (b"", b"PERF_RECORD_"),
        (b"a", b"\r"),
        (b"\t12 a", b" "),
        (b"[", b".so"),
        (b"", b"a" + (b" " * 64 + b"1") * 4 + b" " * 60 + b"\n"),
    )

    def loaded(size: int, begin: bytes, unit: bytes) -> None:
        line = begin + unit * (size // len(unit))
        read_pieces(perf_script.read, [SAMPLE + line + b"\n" + line])
        read_pieces(folded.read, [line + b"\n" + line])

    assert [line for line in lines if not is_linear(partial(loaded, begin=line[0], unit=line[1]), 100_000)] == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"feed 8 1.000001: 7 cycles:  401000 f (/a)\nfeed 8 1.000002: 7 cycles:  401004 g (/a)\n", ["f", "g"]),
        (b"app 8 1.000001: 7 cycles:  401000 feed (/a)\n", ["feed"]),
        (b"app 8 1.000001: 7 cycles:  7fff10 401000 feed (/a)\n", ["feed"]),
        (b"1234 567 1.000001: 7 cycles:\n\t401000 f (/a)\n\n", ["f"]),
        (b"2 worker 567 1.000001: 7 cycles:\n\t401000 f (/a)\n\n", ["f"]),
    ],
)
def test_names_that_look_like_numbers(text: bytes, expected: list[str]) -> None:
    """Commands and functions whose names are hexadecimal digits are neither frames nor addresses."""
    profile = read_pieces(perf_script.read, [text])
    assert [profile.strings.text(row) for row in profile.functions.name.tolist()] == expected
    assert profile.locations.address.tolist() == [0x401000 + 4 * row for row in range(len(expected))]

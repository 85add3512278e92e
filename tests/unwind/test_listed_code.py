"""Stacks through code that was compiled at run time, whose jitdump has call frame information."""

import io
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symbolize
from symbolize import Symbolizer
from symbolize.core.arrays import UInt64
from symbolize.elf.call_frames import FramesAt
from symbolize.profile import Profile
from symbolize.resolve.providers import jit
from symbolize.unwind import ListedCode, unwind
from symbolize.unwind import constants as c
from tests.support import perf_writer as w
from tests.support.jitdump_writer import dump, function_frames, load, move, record, unwinding
from tests.support.made_stacks import BASE, FILE, LEAF, ROOT, STACK, program_file, registers, returns, words
from tests.support.needs import LIBRARIES
from tests.support.perf_writer import LITTLE, Event
from tests.support.stack_dumps import Dump, Mapped, profile_of, stacks

START = 0x7F12_3400_0000
MEMORY = Mapped("/tmp/perf-77.map", START, START + 0x10000)
CPYTHON = bytes.fromhex(
    "1400000000000000017a5200017810011b0c070890010000140000001c000000d0ffffff0b00000000440e10460e0800"
    "011b033bccffffff01000000c0ffffffe8ffffff"
)
"""What CPython 3.13.0 writes for each of its trampolines, .eh_frame and .eh_frame_hdr: `sub $8, %rsp` of 4 bytes,
`call *%rcx` of 2, `add $8, %rsp` of 4, `ret`."""
TRAMPOLINE = unwinding(CPYTHON[:-20]), load(START, 11, 1, b"py::f")
UNDEFINED = bytes([c.DW_CFA_undefined, 16])


def unwound(folder: Path, data: bytes, dumps: Sequence[Dump]) -> Profile:
    """The profile of dumps with the callers that are found with the made program and a jitdump."""
    (folder / "prog").write_bytes(program_file())
    (folder / "jit-77.dump").write_bytes(data)
    profile = profile_of("x86-64", dumps, [FILE, MEMORY])
    with Symbolizer(folder) as symbolizer:
        symbolizer.match(profile)
    return profile


@pytest.mark.parametrize(("offset", "pushed"), [(0, 0), (4, 1), (6, 1), (10, 0)])
def test_each_instruction(tmp_path: Path, offset: int, pushed: int) -> None:
    """The caller of a function is found at each of its instructions, without a frame pointer (rule R467)."""
    stack = words(*[1] * pushed, returns(ROOT), 0)
    profile = unwound(tmp_path, dump(*TRAMPOLINE), [Dump(registers(pc=START + offset), stack)])
    assert stacks(profile) == [[START + offset, returns(ROOT) - 1]]
    assert profile.warnings == []


@pytest.mark.parametrize("machine", [0, 62])
def test_callers(tmp_path: Path, machine: int) -> None:
    """A function between two of a binary, that is on no stack as the leaf; CPython leaves the machine out."""
    stack = words(START + 6, 1, returns(ROOT), 0)
    profile = unwound(tmp_path, dump(*TRAMPOLINE, machine=machine), [Dump(registers(), stack)])
    assert stacks(profile) == [[BASE + LEAF + 4, START + 5, returns(ROOT) - 1]]
    assert profile.warnings == []


def test_size_that_is_no_multiple_of_eight(tmp_path: Path) -> None:
    """The .eh_frame is at the next multiple of 8 bytes behind the code, whatever its size, and moves with it."""
    for size in range(8, 25):
        records = [unwinding(function_frames(size, b"")), load(START, size, 1, b"f")]
        moved = [*records, move(1, START + 0x800, size)]
        for at, data in ((START, records), (START + 0x800, moved)):
            profile = unwound(tmp_path, dump(*data), [Dump(registers(pc=at + size - 1), words(returns(ROOT), 0))])
            assert stacks(profile) == [[at + size - 1, returns(ROOT) - 1]], size


NOPS = bytes([c.DW_CFA_nop] * (c.MORE_INSTRUCTIONS + 1))
UNREAD = {
    "none": (dump(load(START, 16, 1, b"f")), "in code without a file"),
    "that of a function before": (dump(*TRAMPOLINE, load(START + 0x20, 16, 2, b"f")), "in code without a file"),
    "that of code that cannot be read": (
        dump(unwinding(CPYTHON), record(0, b""), load(START, 16, 1, b"f")),
        "in code without a file",
    ),
    "that before one that cannot be read": (
        dump(unwinding(CPYTHON), record(4, b""), load(START, 16, 1, b"f")),
        "in code without a file",
    ),
    "absolute": (dump(unwinding(b"\1\x0c\xff\xff" + bytes(60)), load(START, 16, 1, b"f")), "frame information"),
    "another machine": (dump(*TRAMPOLINE, machine=183), "in files of another machine"),
    "another byte order": (
        dump(unwinding(CPYTHON[:-20], ">"), load(START, 16, 1, b"f", ">"), order=">"),
        "in code without a file",
    ),
    "instructions without end": (
        dump(unwinding(function_frames(16, NOPS)), load(START, 16, 1, b"f")),
        "call frame information is damaged",
    ),
    "too large": (
        dump(unwinding(function_frames(16, b"") + bytes(1 << 16)), load(START, 16, 1, b"f")),
        "in code without a file",
    ),
}


@pytest.mark.parametrize("case", UNREAD)
def test_unread(tmp_path: Path, case: str) -> None:
    """Without call frame information that can be read the stack ends there, and its other frames stay."""
    data, text = UNREAD[case]
    at = START + (0x22 if "before" in case else 6)
    profile = unwound(tmp_path, data, [Dump(registers(x6=1), words(at, 1, returns(ROOT), 0))])
    assert stacks(profile) == [[BASE + LEAF + 4, at - 1]]
    assert text in "".join(profile.warnings)


def test_entries_are_looked_at_within_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list in which very many entries have one address does not cost more than one of few."""
    elsewhere = (load(START + 0x100 + 16 * i, 16, 2 + i, b"g") for i in range(200))
    data = dump(*elsewhere, *TRAMPOLINE, *(move(1, START, 11) for _ in range(200)))
    stack = Dump(registers(), words(START + 6, 1, returns(ROOT), 0))
    assert len(stacks(unwound(tmp_path, data, [stack]))[0]) == 3
    monkeypatch.setattr(jit, "MAX_LOOKED_AT", 3 * 402)
    assert len(stacks(unwound(tmp_path, data, [stack]))[0]) == 3
    monkeypatch.setattr(jit, "MAX_LOOKED_AT", 401)
    assert len(stacks(unwound(tmp_path, data, [stack]))[0]) == 2
    with Symbolizer(tmp_path) as symbolizer:
        report = symbolizer.symbolize(profile_of("x86-64", [stack], [FILE, MEMORY])).report
    assert any("jit-77.dump: so many functions had the same addresses" in warning for warning in report.warnings)


STALE = unwinding(function_frames(0x40, bytes([c.DW_CFA_def_cfa_offset, 24]))), load(START - 8, 0x40, 1, b"stale")
TWO_DUMPS = {
    "of another run": (dump(*STALE), "of two runs: 2 addresses have other code", 2),
    "of another run, without rules": (dump(STALE[1]), "of two runs: 2 addresses have other code", 2),
    "the same": (dump(*TRAMPOLINE), "", 3),
    "without the function": (dump(unwinding(function_frames(8, b"")), load(START + 0x100, 8, 1, b"g")), "", 2),
    "without rules": (dump(load(START, 11, 1, b"py::f")), "", 3),
    "of other memory": (dump(load(START - 0x100, 8, 1, b"g"), unwinding(CPYTHON)), "", 3),
}


@pytest.mark.parametrize("case", TWO_DUMPS)
def test_two_dumps_of_a_process_number(tmp_path: Path, case: str) -> None:
    """A process may have had the number of another: where their dumps differ nobody knows which code ran, and what
    called it; callers count only where all dumps of the memory agree on all of it (rules R460, R467)."""
    other, reason, depth = TWO_DUMPS[case]
    (tmp_path / "before").mkdir()
    (tmp_path / "before" / "jit-77.dump").write_bytes(other)
    stack = Dump(registers(pc=START + 6), words(1, returns(ROOT), 0))
    profile = unwound(tmp_path, dump(*TRAMPOLINE), [Dump(registers(), words(START + 6, 1, returns(ROOT), 0)), stack])
    assert [len(each) for each in stacks(profile)] == [depth, depth - 1]
    with Symbolizer(tmp_path) as symbolizer:
        result = symbolizer.symbolize(profile)
    assert {stack[-1 if depth == 2 else -2].function for stack in result.profile.stacks()} == {
        "" if reason else "py::f"
    }
    assert reason in "".join(problem for mapping in result.report.mappings for problem in mapping.problems)


def named(folder: Path, data: bytes, event: Event, times: Sequence[int]) -> tuple[Counter[tuple[str, ...]], str]:
    """How many stacks have these names, and the warnings, of a process that was at one address again and again: above
    it on the stack are returns to `a` at first and to `b` two words further on."""
    form = LITTLE
    records = [
        form.comm(event, 77, "app", w.EXEC),
        form.mmap2(event, 77, START, 0x10000, "//anon"),
        form.mmap2(event, 77, 0x5000_0000, 0x1000, "/x/jit-77.dump"),
    ]
    values = [{6: 1, 8: START + 4}.get(bit, STACK) for bit in range(20)]
    stack = words(START + 0x108, 0, START + 0x208, 0, 0, 0, 0, 0)
    for time in times:
        records.append(form.sample(event, pid=77, time=time, ip=START + 4, registers=values, stack=stack))
    (folder / "jit-77.dump").write_bytes(data)
    with Symbolizer([folder]) as symbolizer:
        result = symbolizer.symbolize(symbolize.load(io.BytesIO(form.file([event], records))))
    found = Counter[tuple[str, ...]]()
    counts = result.profile.samples.values[:, 0].tolist()
    for stack_, count in zip(result.profile.stacks(), counts, strict=True):
        found[tuple(frame.function for frame in stack_)] += count
    return found, "".join(result.profile.warnings)


ROOTS = (
    unwinding(function_frames(0x40, UNDEFINED)), load(START + 0x100, 0x40, 8, b"a"),
    unwinding(function_frames(0x40, UNDEFINED)), load(START + 0x200, 0x40, 9, b"b"),
)  # fmt: skip
SMALL, LARGE = (unwinding(function_frames(0x40, program)) for program in (b"", bytes([c.DW_CFA_def_cfa_offset, 24])))
TIMES = (50, 100, 150, 199, 200, 250)


def event_of(clock: int | None) -> Event:
    """Samples with copies of their stacks, whose times are of a clock."""
    kind = w.IP | w.TID | w.TIME | w.USER_REGISTERS | w.USER_STACK
    return Event(clock=clock, sample_type=kind, registers=w.X86_64, stack=64)


class TestTimes:
    """Functions that had one address one after another (rules R460, R467)."""

    @pytest.mark.parametrize("second", [LARGE, b""])
    def test_by_time(self, tmp_path: Path, second: bytes) -> None:
        """Each stack is unwound by the rules of the function that was there when it was copied."""
        data = dump(*ROOTS, SMALL, load(START, 0x40, 1, b"old"), second, load(START, 0x40, 2, b"new", time=200))
        found, warnings = named(tmp_path, data, event_of(1), TIMES)
        assert found == {("old", "a"): 4, (("new", "b") if second else ("new",)): 2}
        assert ("2 of 6 stacks end in code without a file" in warnings) == (not second)

    def test_time_that_is_not_known(self, tmp_path: Path) -> None:
        """Without a time only rules count that all functions at the address have."""
        for second, wanted in ((LARGE, 1), (SMALL, 2)):
            data = dump(*ROOTS, SMALL, load(START, 0x40, 1, b"f"), second, load(START, 0x40, 2, b"f", time=200))
            found, warnings = named(tmp_path, data, event_of(None), TIMES)
            assert found == {("f", "a")[:wanted]: 6}
            assert ("6 of 6 stacks end in code without a file" in warnings) == (wanted == 1)

    def test_times_of_another_clock(self, tmp_path: Path) -> None:
        """Where the times of the dump say nothing of those of the stacks, it is as if there were none."""
        data = dump(*ROOTS, SMALL, load(START, 0x40, 1, b"f"), LARGE, load(START, 0x40, 2, b"f", time=200), flags=1)
        found, warnings = named(tmp_path, data, event_of(1), TIMES)
        assert found == {("f",): 6}
        assert "6 of 6 stacks end in code without a file" in warnings


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 51), st.integers(0, 255)), max_size=6), st.binary(max_size=100))
def test_any_frames(changes: list[tuple[int, int]], stack: bytes) -> None:
    """Whatever call frame information says, frames are in executable mappings, and go up."""
    frames = bytearray(CPYTHON[:-20])
    for at, value in changes:
        if at < len(frames):
            frames[at] = value

    def find(addresses: UInt64, times: UInt64) -> FramesAt:
        none = np.zeros(len(addresses), np.int64)
        return FramesAt("EM_X86_64", [(bytes(frames), 16)], none, addresses - np.uint64(START), none != 0)

    profile = profile_of("x86-64", [Dump(registers(pc=START + 4), stack)], [MEMORY])
    result = unwind(profile, lambda mapping: ListedCode(find)).profile
    assert all(START <= address < START + 0x10000 for address in stacks(result)[0])


def perf(folder: Path, *arguments: str) -> str:
    """What perf prints, whose cache is in a folder."""
    command = ["perf", "--buildid-dir", str(folder / "cache"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


PROGRAM = """
import time
def leaf(n):
    return sorted(range(n), key=lambda x: str(x))
def middle(n):
    return [leaf(n) for _ in range(3)]
end = time.process_time() + 0.7
while time.process_time() < end:
    middle(50)
"""


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Path]:
    """A folder with a recording of Python, and its jitdump, which Python always writes to /tmp."""
    (tmp_path / "w.py").write_text(PROGRAM)
    python = [sys.executable, "-IS", "-X", "perf_jit", "w.py"]
    record = ["record", "-e", "cpu-clock:u", "-F", "199", "-k", "mono", "--call-graph", "dwarf,16384", "-o", "j.data"]
    try:
        perf(tmp_path, *record, *python)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"perf cannot record here: {error.stderr[-200:]}")
    process = perf(tmp_path, "script", "-i", "j.data", "-F", "pid").split()[0]
    written = Path(f"/tmp/jit-{process}.dump")
    if not written.exists():
        pytest.skip("this Python writes no jitdump")
    (tmp_path / "dumps").mkdir()
    shutil.copy(written, tmp_path / "dumps")
    yield tmp_path
    for path in (written, *Path("/tmp").glob(f"jitted-{process}-*.so")):
        path.unlink(missing_ok=True)


@pytest.mark.full
@pytest.mark.process
@pytest.mark.needs("perf")
@pytest.mark.skipif(not sysconfig.get_config_var("PY_HAVE_PERF_TRAMPOLINE"), reason="needs a Python with trampolines")
@pytest.mark.skipif(sys.version_info < (3, 13), reason="needs Python 3.13 or later")
def test_python_as_perf(recorded: Path) -> None:
    """The stacks of `python -X perf_jit` are those that `perf inject --jit` and `perf script` give: the same names of
    Python, and the same places in pages of files."""
    roots = [recorded / "dumps", Path(sys.base_prefix) / "bin", Path(sys.base_prefix) / "lib", LIBRARIES]
    with Symbolizer(roots) as symbolizer:
        profile = symbolizer.symbolize(symbolize.load(recorded / "j.data")).profile
    found = Counter[tuple[str, ...]]()
    frames_of, counts = profile.stacks(), profile.samples.values[:, 0].tolist()
    for stack, frames, count in zip(stacks(profile), frames_of, counts, strict=True):
        names = {frame.address: frame.function for frame in frames}
        places = (names[at] if names[at].startswith("py::") else f"{at & 0xFFF:x}" for at in stack if at < 1 << 63)
        found[tuple(places)] += count
    perf(recorded, "inject", "--jit", "-i", "j.data", "-o", "j.inj")
    text = perf(recorded, "script", "-i", "j.inj", "--no-inline", "-F", "ip,sym,dso")
    expected = Counter[tuple[str, ...]]()
    for block in filter(str.strip, text.split("\n\n")):
        if "([vdso])" in block:  # perf has that of this machine, which is no file
            continue
        lines = (line.rpartition(" (")[0].split(maxsplit=1) for line in block.splitlines() if line.strip())
        expected[tuple(name if name.startswith("py::") else f"{int(at, 16) & 0xFFF:x}" for at, name in lines)] += 1
    # Before Python code runs perf may end in the dynamic linker.
    compared = {stack for stack in found | expected if any(place.startswith("py::") for place in stack)}
    assert {stack: found[stack] for stack in compared} == {stack: expected[stack] for stack in compared}
    assert sum(found[stack] for stack in compared if any("py::middle:" in place for place in stack)) > 20

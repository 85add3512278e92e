"""The command with Perfetto traces: which files it writes, and what addresses of a trace lead to."""

import os
import re
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from symbolize.cli import main
from symbolize.cli.selection import FILTERS
from symbolize.formats import load
from symbolize.profile import Profile
from tests.support import perfetto_writer as w
from tests.support.fixture_files import BINARIES, segments

LEDGER = BINARIES / "gcc-pie" / "ledger"
TREE = w.process_tree({7: ["/bin/seven"], 8: ["/bin/eight"]})
STATE = w.interned({1: "main"}, {}, {1: "app"}, frames=[w.frame(1, 1)], callstacks=[w.callstack(1, [1])])


def dump(*pids: int) -> bytes:
    """A trace with a heap dump of each process."""
    dumps = [w.heap_dump(pid, [w.heap_sample(1, 8, 0, 1)]) for pid in pids]
    return TREE + w.packet(1, w.CLEARED, STATE) + w.heap_packet(dumps)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in an empty folder with two traces."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")
    Path("two.pftrace").write_bytes(dump(7, 8))
    Path("one.perfetto-trace").write_bytes(dump(7))


def files(folder: str) -> list[str]:
    """What is in a folder."""
    return sorted(os.listdir(folder))


TWO = ["heap_dump.1.7.libc.malloc.pb.gz", "heap_dump.2.8.libc.malloc.pb.gz"]


def test_default_output(capsys: pytest.CaptureFixture[str]) -> None:
    """One profile is a file with a report, several are a folder; each has a row in one table."""
    assert main(["two.pftrace", "one.perfetto-trace"]) == 0
    assert {*os.listdir()} >= {"two.symbolized", "one.symbolized.pb.gz"}
    assert files("two.symbolized") == TWO
    out = capsys.readouterr().out
    assert re.search(r"two.pftrace: /bin/seven \(pid 7\) +heap libc.malloc", out)
    assert "two.symbolized/heap_dump.2.8.libc.malloc.pb.gz\n" in out
    assert "one.perfetto-trace: /bin/seven (pid 7)" in out
    assert "wrote 3 profiles\n" in out


def test_folders() -> None:
    """A folder gets the profiles of one trace under their names; of several traces each has a folder in it."""
    assert main(["two.pftrace", "-q", "-o", "new/"]) == 2
    os.mkdir("out")
    assert main(["two.pftrace", "-q", "-o", "out"]) == 0
    assert files("out") == TWO
    os.mkdir("single")
    assert main(["one.perfetto-trace", "-q", "-o", "single/"]) == 0
    assert files("single") == TWO[:1]
    os.mkdir("both")
    assert main(["two.pftrace", "one.perfetto-trace", "-q", "-o", "both/"]) == 0
    assert files("both") == ["one.symbolized.pb.gz", "two.symbolized"]


def test_one_file(capsys: pytest.CaptureFixture[str]) -> None:
    """A file takes one profile; several are an error that names them and the options that choose."""
    assert main(["two.pftrace", "-q", "-o", "x.pb.gz"]) == 2
    err = capsys.readouterr().err
    assert (
        "is one file for 2 profiles (/bin/seven (pid 7) heap libc.malloc, /bin/eight (pid 8) heap libc.malloc)" in err
    )
    assert "--pid" in err
    assert not Path("x.pb.gz").exists()
    for count, end in ((10, ")"), (11, ", ...)")):
        Path("many.pftrace").write_bytes(dump(*range(1, count + 1)))
        assert main(["many.pftrace", "-q", "-o", "x.pb.gz"]) == 2
        assert f"pid 10 heap libc.malloc{end}; name a folder" in capsys.readouterr().err
    for choice in (["--pid", "8"], ["--process", "eight"], ["--merge", "processes"]):
        assert main(["two.pftrace", "-q", "-o", "x.pb.gz", *choice]) == 0
        assert len(load("x.pb.gz").samples) == 1 + ("--merge" in choice)
    assert main(["two.pftrace", "-q", "--kind", "cpu"]) == 1
    assert "has no such profile; it has heap_dump.1.7.libc.malloc" in capsys.readouterr().err


def test_options_leave_other_formats_alone() -> None:
    """Inputs with one profile are not chosen from."""
    assert main(["one.perfetto-trace", "-q", "-o", "x.pb.gz"]) == 0
    assert main(["x.pb.gz", "-q", "--pid", "99", "-o", "y.pb.gz"]) == 0


def names(profile: Profile) -> list[str]:
    """The outermost function of each location."""
    lines, offsets = profile.locations.lines, profile.locations.line_offsets
    last = offsets[1:] - 1
    return [profile.strings.text(profile.functions.system_name[lines.function[row]]) for row in last.tolist()]


def test_kernel_frames(capsys: pytest.CaptureFixture[str]) -> None:
    """Frames of the kernel come without addresses, named or not. They take nothing of other mappings, keep their names,
    and the report does not ask for a binary (rule R242)."""
    Path("kallsyms").write_text("0000000000000000 T zero\nffffffff81000000 T _stext\n")
    state = w.interned(
        {1: "schedule"}, {}, {1: "kernel", 2: "app"},
        mappings=[w.mapping(1, path=[1]), w.mapping(2, 0, 0, 0x20000, path=[2])],
        frames=[w.frame(1, 1, 1), w.frame(2, 0, 1), w.frame(3, 0, 2, 0x2500)],
        callstacks=[w.callstack(1, [3, 1]), w.callstack(2, [3, 2])],
    )  # fmt: skip
    Path("k.pftrace").write_bytes(w.packet(1, w.CLEARED, state) + w.perf_sample(1) + w.perf_sample(2))
    assert main(["k.pftrace", "-b", ".", "--no-cache", "-o", "k.pb.gz"]) == 0
    profile = load("k.pb.gz")
    frames = [*zip(profile.locations.address.tolist(), profile.locations.mapping.tolist(), strict=True)]
    files = [profile.strings.text(row) for row in profile.mappings.filename]
    wanted = [(0, "[kernel]"), (0, "[kernel]"), (0x2500, "/app")]
    assert sorted((address, files[row]) for address, row in frames) == wanted
    names = [profile.strings.text(row) for row in profile.functions.name]
    assert names == ["schedule"]
    report = capsys.readouterr().out
    assert "    1 location, 50.0 % flat: recorded without an address" in report
    # Only the program is not found: its row, and what to do.
    assert report.count("binary not found") == 2


def test_names_of_the_device() -> None:
    """Names that were found on the device stay where no binary knows more; the linked name stays beside the readable
    one. Bytecode keeps its names though a file of its name is there."""
    Path("framework.vdex").write_bytes(LEDGER.read_bytes())
    state = w.interned(
        {1: "_ZN1a1fEi", 2: "android.app.Main.run"}, {}, {1: "framework.vdex", 2: "gone.so"},
        mappings=[w.mapping(1, 0, 0x10000, 0x90000, 0, path=[1]), w.mapping(2, 0, 0x100000, 0x190000, 0, path=[2])],
        frames=[w.frame(1, 1, 2, 0x2200), w.frame(2, 2, 1, 0x2200)],
        callstacks=[w.callstack(1, [2, 1])],
    )  # fmt: skip
    Path("n.pftrace").write_bytes(w.packet(1, w.CLEARED, state) + w.perf_sample(1))
    assert main(["n.pftrace", "-b", ".", "--no-cache", "-q", "-o", "n.pb.gz"]) == 0
    profile = load("n.pb.gz")
    functions, text = profile.functions, profile.strings.text
    found = {(text(a), text(b)) for a, b in zip(functions.name.tolist(), functions.system_name.tolist(), strict=True)}
    assert found == {("a::f", "_ZN1a1fEi"), ("android.app.Main.run", "android.app.Main.run")}


@pytest.mark.parametrize("how", ["perf", "heap", "wrong bias", "archive", "android 10", "chromium"])
def test_addresses_lead_to_functions(how: str) -> None:
    """The addresses of functions, as each producer writes them, are those functions (rule R221)."""
    with LEDGER.open("rb") as file:
        elf = ELFFile(file)
        table = [*elf.get_section_by_name(".symtab").iter_symbols()]
        code = [
            symbol
            for symbol in table
            if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_size"] > 30 and symbol["st_shndx"] != "SHN_UNDEF"
        ]
        notes = elf.get_section_by_name(".note.gnu.build-id")
        build_id = b"" if notes is None else bytes.fromhex(next(notes.iter_notes())["n_desc"])
    ((offset, vaddr, size),) = segments(LEDGER)
    here = (symbol for symbol in code if vaddr <= symbol["st_value"] < vaddr + size)
    code = [*{symbol["st_value"]: symbol for symbol in here}.values()][:40]
    bias = vaddr - offset + (0x7000 if how == "wrong bias" else 0)
    page = offset // 4096 * 4096
    start = 0x7F0000000000 + page
    inside = 0x20000 if how == "archive" else 0
    mapping = w.mapping(
        1,
        int(bool(build_id)),
        start,
        start + 0x100000,
        None if how == "android 10" else page + inside,
        inside,
        bias,
        [1],
    )
    if how == "chromium":
        mapping, bias, offset = w.mapping(1, int(bool(build_id)), path=[1], exact_offset=None), 0, vaddr
    # A callstack each, its only frame some bytes behind the beginning of the function.
    rel_pcs = [symbol["st_value"] + 5 - vaddr + offset + bias for symbol in code]
    state = w.interned(
        builds={1: build_id},
        paths={1: "ledger"},
        mappings=[mapping],
        frames=[w.frame(number, 0, 1, rel_pc) for number, rel_pc in enumerate(rel_pcs, 1)],
        callstacks=[w.callstack(number, [number]) for number in range(1, len(code) + 1)],
    )
    trace = w.packet(1, w.CLEARED, state)
    numbers = range(1, len(code) + 1)
    if how == "heap":
        trace += w.heap_packet([w.heap_dump(7, [w.heap_sample(number, 8, 0, 1) for number in numbers])])
    elif how == "chromium":
        trace += w.packet(1, rest={44: w.message({1: 5, 2: 5, 6: 5})})
        trace += w.packet(1, rest={54: w.message({1: list(numbers), 2: [1] * len(code)})})
    else:
        trace += b"".join(map(w.perf_sample, numbers))
    Path("t.pftrace").write_bytes(trace)
    assert main(["t.pftrace", "-q", "-b", str(LEDGER), "--no-cache", "-o", "t.pb.gz"]) == 0
    found = names(load("t.pb.gz"))
    wanted = [{each.name for each in table if each["st_value"] == s["st_value"]} for s in code]
    assert len(found) == len(code) > 10
    assert [name for name, some in zip(found, wanted, strict=True) if name not in some] == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--annotate", "java"], "changes displayed names"),
        (["--merge", "all"], "makes one profile"),
        *(([f"--{name}", "x"], f"--{name} has no effect") for name in (*FILTERS, "drop", "prune-from", "path-prefix")),
    ],
    ids=str,
)
def test_options_without_effect_on_symbols(options: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What would change only profiles is refused where the symbols of a trace are written, before it is read."""
    assert main(["no such trace", "-b", ".", "--emit", "module-symbols", *options]) == 2
    assert why in capsys.readouterr().err

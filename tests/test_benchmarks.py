"""What the benchmarks count on: costs of processes, answers of other engines in one form, the vote, fleets."""

import struct
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symbolize
from tests.support.fixture_files import BINARIES

NAMES = "ledger", "libresonance.so"


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The scripts import each other by their bare names."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    yield
    for name in set(sys.modules) - before:
        if "benchmarks" in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def module(name: str) -> Any:
    """A script of the benchmarks."""
    return import_module(name)


@pytest.mark.process
@pytest.mark.full
def test_a_failing_contender_is_out() -> None:
    """Who fails or takes too long has a reason instead of runs, and stops nobody."""
    measure = module("measure")
    commands = {
        "good": "import sys; print('seen', sys.stdin.read())",
        "bad": "raise ValueError('no')",
        "late": "import time; time.sleep(600)",
    }
    stdin = Path(__file__)
    contenders = {
        name: measure.Contender(name, [sys.executable, "-I", "-S", "-c", code], stdin, keep_output=True)
        for name, code in commands.items()
    }
    missing = measure.Contender("missing", ["/nowhere/at/all"])
    results = measure.race([contenders["bad"], contenders["good"]], 2, 60)
    results |= measure.race([contenders["late"], missing], 2, 1)
    assert [len(results[name].runs) for name in ("good", "bad", "late", "missing")] == [2, 0, 0, 0]
    assert results["good"].runs[0].output == f"seen {stdin.read_text()}\n"
    assert results["bad"].trouble == "exit code 1: ValueError: no"
    assert results["late"].trouble == "more than 1 s"
    assert "nowhere" in results["missing"].trouble


@pytest.mark.process
def test_peak_is_that_of_the_command() -> None:
    """The memory of who measures is not counted."""
    measure = module("measure")
    ballast = bytearray(200 << 20)
    run = measure.run_once(measure.Contender("small", [sys.executable, "-I", "-S", "-c", "pass"]), 60)
    assert 0 < run.memory < 100 < len(ballast) >> 20


@pytest.mark.process
def test_what_a_command_leaves_behind_counts() -> None:
    """A process that goes on after the command returned is waited for, and its CPU counts."""
    measure = module("measure")
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    start = f"import subprocess, sys; subprocess.Popen([sys.executable, '-S', '-c', {busy!r}], start_new_session=True)"
    run = measure.run_once(measure.Contender("short", [sys.executable, "-I", "-S", "-c", start]), 60)
    assert run.cpu > 0.3
    assert run.ended > run.wall + 0.1


@pytest.mark.process
def test_the_decoder_is_measured() -> None:
    """Each phase of a small binary takes some time."""
    phases = module("decoder").measure(BINARIES / "gcc-pie" / "ledger", 1)
    assert {"DIE walk", "line programs", "segments", "lookup"} <= phases.keys()
    assert all(seconds > 0 for seconds, _, _ in phases.values())


def test_answers_of_addr2line() -> None:
    """Frames of addr2line and eu-addr2line, with what they put behind functions and lines; unknown ones are none."""
    answers = module("answers")
    text = """\
0x0000000000001000
inner inlined at /src/a.c:7:3 in outer.cold
/src/b.h:3:5
outer
/src/a.c:7 (discriminator 2)
0x0000000000001001
??
??:0
0x0000000000001002
f
/src/c.c:?
"""
    assert list(answers.of_addr2line(text.splitlines())) == [
        (("inner", "/src/b.h", 3), ("outer", "/src/a.c", 7)),
        (),
        (("f", "/src/c.c", 0),),
    ]


def test_names_and_paths_are_compared_by_what_they_mean() -> None:
    """Clone suffixes, versions, mangling and missing scopes make no difference; other scopes and folders do."""
    answers = module("answers")
    assert answers.same_function("_ZN1a1bEv.cold", "b")
    assert answers.same_function("f@@V1", "f.constprop.0")
    assert not answers.same_function("_ZN1a1bEv", "_ZN1c1bEv")
    assert answers.same_file("./obj/../src/./x.c", "/build/src/x.c")
    assert not answers.same_file("/a/x.c", "/b/x.c")
    assert not answers.same_file("", "x.c")


def test_instructions_count_where_they_are() -> None:
    """What a called function takes counts in its own library alone; names are written out once."""
    lines = """ob=(1) /a.so
fn=(1) first
5 100
cob=(2) /b.so
cfn=(2) second
calls=1 9
+2 40
fe=(3) x.h
* 7

ob=(2)
fn=(2)
9 40
"""
    assert module("instructions").by_object(lines.split("\n")) == {"/a.so": 107, "/b.so": 40}


def test_drift_of_instructions() -> None:
    """More and less than the limit is told, with both counts; so is a task that only one side has. Less is no harm."""
    changes = module("instructions").changes
    old = {"same": 1000, "slower": 1000, "faster": 1000, "gone": 1000}
    new = {"same": 1029, "slower": 1031, "faster": 969, "new": 5}
    lines, is_more = changes(old, new)
    assert lines == [
        "slower: 1,000 instructions recorded, 1,031 now (+3.1%)",
        "faster: 1,000 instructions recorded, 969 now (-3.1%)",
        "gone: 1,000 instructions recorded, 0 now (-100.0%)",
        "new: 0 instructions recorded, 5 now (no record)",
    ]
    assert is_more
    assert changes(old, {**old, "faster": 969}) == (lines[1:2], False)
    assert changes(old, old) == ([], False)


def test_the_vote() -> None:
    """Two engines make a reference, one does not; two pairs make two."""
    reference = module("agreement").reference
    assert reference(["a", "b", "a", "c"]) == {"a"}
    assert reference(["a", "b"]) == set()
    assert reference(["a", "b", "b", "a"]) == {"a", "b"}
    assert reference([]) == set()


def test_only_its_section_is_replaced() -> None:
    """The section of a page is replaced, or comes at the end; the others stay."""
    replace = module("page").replace_section
    section = "## Against five engines\n\nnew\n"
    assert replace("# Page\n\ntext\n", section) == f"# Page\n\ntext\n\n{section}"
    old = "# Page\n\n## Against five engines\n\nold\n\n## Other\n\nrest\n"
    assert replace(old, section) == f"# Page\n\n{section}\n## Other\n\nrest\n"


def test_sources_of_builds_differ() -> None:
    """Each change makes another source of each of our programs, and none of them is left a comment."""
    builds = module("evidence_builds")
    own = [path for path in builds.OWN.iterdir() if path.suffix in builds.LANGUAGES]
    assert {builds.LANGUAGES[path.suffix] for path in own} == {"C", "C++", "Go", "Rust"}
    for path in own:
        text = path.read_text()
        made = {builds.edited(text, variant) for variant in (*builds.EDITS, "constant")}
        assert len(made | {text}) == 5, path


def test_bounds_of_shares() -> None:
    """Wilson's bounds; of none, and of all, three of the total."""
    bounds = module("evidence").bounds
    assert bounds(0, 60) == (0.0, 0.05)
    assert bounds(60, 60) == (0.95, 1.0)
    assert bounds(5, 50) == pytest.approx((0.0435, 0.2136), abs=1e-3)


def test_profiles_are_cut_to_leaves() -> None:
    """So many leaves of the program, the same ones for one seed, with all their samples, and stacks or none."""
    evidence = module("evidence")
    path = Path(__file__).parents[1] / "fixtures" / "profiles" / "gperftools" / "ledger-gcc-pie.prof"
    whole = evidence.load(path, "gperftools")
    values = evidence.values_of(whole, "ledger")
    stacks, leaves = evidence.Kind("", "gperftools"), evidence.Kind("", "gperftools", stacks=False)
    for size in (5, 20):
        cut = evidence.cut(whole, "ledger", stacks, size, (1,))
        found = evidence.values_of(cut, "ledger")
        assert len(found) == size
        assert all(values[leaf] == value for leaf, value in found.items())
        flat = evidence.cut(whole, "ledger", leaves, size, (1,))
        assert evidence.values_of(flat, "ledger") == found
        assert len(flat.locations) == size < len(cut.locations)
    assert evidence.values_of(evidence.cut(whole, "ledger", leaves, 0, (1,)), "ledger") == values


def make_fleet(folder: Path) -> tuple[list[Any], dict[str, list[Any]]]:
    """Write profiles of a service in all formats; what they were made of, and the locations of each by binary."""
    fleet = module("fleet")
    codes = [fleet.read_code(BINARIES / "gcc-pie" / name, BINARIES / "gcc-pie" / name) for name in NAMES]
    fleet.place_binaries(folder / "binaries", codes)
    service = fleet.make_service(codes[0], codes[1:], [], np.random.default_rng(1))
    drawn = fleet.draw(service, np.random.default_rng(2), 1_790_000_000)
    process = fleet.make_process(service, "host-00", np.random.default_rng(3))
    locations = {}
    for ending, make in fleet.FORMATS.items():
        path = folder / f"ledger{ending}"
        path.write_bytes(make(service, process, drawn))
        profile = symbolize.load(str(path))
        names = [profile.strings.text(int(row)).rpartition("/")[2] for row in profile.mappings.filename]
        starts = profile.mappings.start[profile.locations.mapping]
        places = (profile.locations.address - starts).tolist()
        locations[ending] = sorted(zip((names[row] for row in profile.locations.mapping), places, strict=True))
    return codes, locations


def test_all_formats_of_a_fleet_say_the_same(tmp_path: Path) -> None:
    """The profiles that can name build ids are named by them, the others by paths, and all have the same locations."""
    codes, locations = make_fleet(tmp_path)
    wanted = set(locations[".pb.gz"])
    assert all(set(each) == wanted for each in locations.values())
    assert {name for name, _ in wanted} == set(NAMES)
    symbolizer = symbolize.Symbolizer([tmp_path / "binaries"])
    for ending in locations:
        report = symbolizer.symbolize(symbolize.load(str(tmp_path / f"ledger{ending}"))).report
        assert report.percent > 99, ending
        assert [row.verified for row in report.mappings] == [ending != ".prof"] * len(codes)


def test_a_fleet_is_made_alike_again(tmp_path: Path) -> None:
    """Equal seeds give equal files."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        make_fleet(tmp_path / name)
    files = [path for path in (tmp_path / "one").iterdir() if path.is_file()]
    assert len(files) == 5
    assert all(path.read_bytes() == (tmp_path / "two" / path.name).read_bytes() for path in files)


@pytest.mark.process
@pytest.mark.full
def test_jobs_are_watched_and_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory of a job and its workers is seen; a killed job leaves none of them behind."""
    batch, seen, large = module("batch"), tmp_path / "seen", Counter[int]()
    code = """if True:
        import os, sys, time
        os.fork()
        kept = bytearray(b"x" * (64 << 20))
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.01)
        """

    def memory_of(pid: int) -> tuple[float, float]:
        found: tuple[float, float] = measured(pid)
        large[pid] += found[1] > 64
        if min(large.values()) >= 2 and len(large) == 2:  # both were in one look at all, so that they may end
            seen.touch()
        return found

    measured = batch.memory_of
    monkeypatch.setattr(batch, "memory_of", memory_of)
    cost = batch.watched([sys.executable, "-I", "-S", "-c", code, seen], 60, with_memory=True)
    assert 64 < cost.private <= cost.resident < 200
    assert cost.all_private > 128
    assert cost.wall > 0 and 0 < cost.cpu < 10
    assert not batch.ends_before([sys.executable, "-I", "-S", "-c", code, tmp_path / "never"], 0.5)
    assert batch.ends_before([sys.executable, "-I", "-S", "-c", "pass"], 60)
    with pytest.raises(module("measure").Failed):
        batch.ends_before([sys.executable, "-I", "-S", "-c", "raise SystemExit(3)"], 60)


def test_perf_data(tmp_path: Path) -> None:
    """Recordings have as many samples as wanted, the same if compressed, in mappings of the processes they name."""
    import zstandard

    perf_data = module("perf_data")
    names = BINARIES / "gcc-pie" / "spectra", BINARIES / "gcc-pie" / "libresonance.so", Path("/nowhere")
    kinds: dict[str, list[bytes]] = {}
    for make in (perf_data.write_frames, perf_data.write_zstd):
        path = tmp_path / make.__name__
        make(path, 25, names)
        data = path.read_bytes()
        magic, size, _, _, _, begin, length, _, _, _ = perf_data.HEADER_TYPE.unpack_from(data)
        assert (magic, size) == (b"PERFILE2", perf_data.HEADER_SIZE)
        rest, packed = data[begin : begin + length], zstandard.ZstdDecompressor().decompressobj()
        records = kinds.setdefault(path.name, [])
        while rest:
            kind, _, size = struct.unpack_from("<IHH", rest)
            if kind == perf_data.COMPRESSED:
                rest = packed.decompress(rest[8:size]) + rest[size:]
            else:
                records.append(rest[:size])
                rest = rest[size:]
    assert kinds["write_frames"] == kinds["write_zstd"]
    numbers = [struct.unpack_from("<I", each)[0] for each in kinds["write_frames"]]
    assert Counter(numbers) == {
        perf_data.COMM: perf_data.THREADS,
        perf_data.MMAP2: perf_data.PROCESSES * 2,
        perf_data.SAMPLE: 25,
        perf_data.FINISHED_ROUND: 1,
    }
    mapped = np.array(
        [struct.unpack_from("<II2Q", each, 8) for each in kinds["write_frames"] if each[0] == perf_data.MMAP2], object
    )
    for each in kinds["write_frames"]:
        if each[0] == perf_data.SAMPLE:
            sample = np.frombuffer(each, perf_data.RECORD)[0]
            own = [(start, start + size) for pid, _, start, size in mapped if pid == sample["pid"]]
            assert all(any(start <= ip < limit for start, limit in own) for ip in sample["ips"][1:].tolist())

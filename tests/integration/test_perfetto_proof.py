"""Perfetto traces over the committed binaries, against what llvm-symbolizer and pprof say."""

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from symbolize.cli import main
from symbolize.elf import ElfImage, read_build_id
from tests.support import fixture_files as fixtures
from tests.support import perfetto_subjects as made
from tests.support import perfetto_writer as w
from tests.support.fixture_files import segments
from tests.support.lookup import Frame
from tests.support.perfetto_subjects import SUBJECTS, Subject
from tools.llvm.compare_llvm import NEEDED, ask_llvm
from tools.llvm.judge import Judge

ALLOWED = {"equal", "padding", "alias", "qualified", "local", "symbol", "path", "folded"}
"""Classes of differences in the spelling of a name, or in which of several right names is shown."""

PIE = [subject for subject in SUBJECTS if subject.base and not (subject.cut or subject.member)]


def symbolized(trace: bytes, subject: Subject, folder: Path) -> Any:
    """The decoded profile that the command makes of a trace with one profile."""
    (folder / "t.pftrace").write_bytes(trace)
    offered = subject.offered
    if subject.member:
        made.archive(subject, folder / "base.apk")
        offered = (folder / "base.apk",)
    roots = [argument for path in offered for argument in ("-b", str(path))]
    output = folder / "t.pb.gz"
    assert main([str(folder / "t.pftrace"), *roots, "--no-cache", "-q", "-o", str(output)]) == 0
    return fixtures.read_pprof(output)


def compare(profile: Any, subject: Subject) -> None:
    """Every address of the subject is in the profile, and has the frames of llvm-symbolizer but for what a rule
    explains (docs/correctness.md)."""
    mappings = {mapping.id: mapping for mapping in profile.mapping}
    functions = {function.id: function for function in profile.function}
    text = [value.decode() for value in profile.string_table]
    places: dict[int, Any] = {}
    for location in profile.location:
        mapping = mappings[location.mapping_id]
        covers_all = mapping.memory_limit == (1 << 64) - 1  # Chromium's, whose addresses are vaddrs
        vaddr = location.address if covers_all else fixtures.vaddr_of(location.address, mapping, subject.loaded)
        known = places.setdefault(vaddr, location)
        assert [*known.line] == [*location.line]
    assert sorted(places) == [*made.vaddrs(subject)]
    assert len(places) > 50
    with ElfImage.open(subject.debug) as image:
        judge = Judge(image, of_profile=True)
    unexplained = {}
    classes: Counter[str] = Counter()
    inlined = 0
    vaddrs = sorted(places)
    for vaddr, theirs in zip(vaddrs, ask_llvm(subject.debug, vaddrs), strict=True):
        location = places[vaddr]
        ours = [
            Frame(text[(f := functions[line.function_id]).system_name], text[f.filename], line.line, line.column,
                  f.start_line)
            for line in location.line
        ]  # fmt: skip
        # Where the line is of another file than the function, the profile leaves the line of the declaration open.
        if len(ours) == len(theirs):
            theirs = [
                their._replace(start_line=our.start_line and their.start_line)
                for our, their in zip(ours, theirs, strict=True)
            ]
        kind = judge.classify(vaddr, ours, theirs, location.is_folded)
        if kind is None:
            unexplained[hex(vaddr)] = ours, theirs
        classes[kind or "unexplained"] += 1
        inlined += len(ours) > 1
    assert unexplained == {}
    assert set(classes) <= ALLOWED
    assert classes["equal"] > 0.6 * len(places), classes
    assert inlined > 10


@pytest.mark.needs(*NEEDED)
class TestAgainstLlvm:
    """Names, files, lines, columns and inlined frames of all addresses are those of llvm-symbolizer (rules R125, R126,
    R221)."""

    @pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
    @pytest.mark.full
    def test_samples(self, subject: Subject, tmp_path: Path) -> None:
        """Addresses as the unwinder of Android writes them, whose load bias is that of the first executable segment."""
        state, count = made.state(subject)
        samples = b"".join(w.perf_sample(number) for number in range(1, count + 1))
        compare(symbolized(w.packet(1, w.CLEARED, state) + samples, subject, tmp_path), subject)

    @pytest.mark.parametrize("subject", PIE, ids=lambda subject: subject.name)
    @pytest.mark.full
    def test_chromium(self, subject: Subject, tmp_path: Path) -> None:
        """Addresses as Chromium writes them, calls by what is behind them. The mapping gets the build id of the file
        whose first 16 bytes the trace has (rules R131, R240)."""
        state, count = made.chromium_state(subject)
        trace = w.packet(1, w.CLEARED, state) + w.packet(1, rest={44: w.message({1: 5, 2: 5, 6: 5})})
        trace += w.packet(1, rest={54: w.message({1: [*range(1, count + 1)], 2: [1] * count})})
        profile = symbolized(trace, subject, tmp_path)
        compare(profile, subject)
        (mapping,) = profile.mapping
        assert profile.string_table[mapping.build_id].decode() == read_build_id(str(subject.loaded))

    def test_debug_file_alone(self, tmp_path: Path) -> None:
        """Of two segments of a page each a debug file, which has no file offsets, does not tell which a mapping is, and
        nothing is guessed (rule R103)."""
        subject = made.split("segments", "libresonance.so", "debug")
        state, count = made.state(subject)
        samples = b"".join(w.perf_sample(number) for number in range(1, count + 1))
        profile = symbolized(w.packet(1, w.CLEARED, state) + samples, subject, tmp_path)
        (near, _, _), (far, _, _) = segments(subject.loaded)
        offsets = {mapping.id: mapping.file_offset for mapping in profile.mapping}
        named = {bool(each.line) for each in profile.location if offsets[each.mapping_id] == far}
        assert named == {False}
        assert any(each.line for each in profile.location if offsets[each.mapping_id] == near)

    @pytest.mark.parametrize("kind", ["heap", "other", "art", "stack"])
    @pytest.mark.full
    def test_other_kinds(self, kind: str, tmp_path: Path) -> None:
        """Heap dumps and StackSamples have the same frames."""
        subject = SUBJECTS[-1]
        state, count = made.state(subject)
        start = w.packet(1, w.CLEARED, state)
        numbers = range(1, count + 1)
        if kind == "stack":
            task = w.message({2: 7, 3: 7})
            trace = start + b"".join(w.packet(1, rest={135: w.message({1: task, 6: n})}) for n in numbers)
        else:
            heap = {"heap": "libc.malloc", "other": "custom", "art": "com.android.art"}[kind]
            samples = [w.heap_sample(number, 8, 0, 1) for number in numbers]
            trace = start + w.heap_packet([w.heap_dump(7, samples, heap=heap)])
        compare(symbolized(trace, subject, tmp_path), subject)


def several() -> tuple[bytes, dict[str, list[tuple[str, int]]]]:
    """A trace with a profile of each kind, and sample types and totals of each, the default one last (R274)."""
    state, count = made.state(SUBJECTS[0])
    module, calls = made.chromium_state(SUBJECTS[2])
    numbers = [*range(1, count + 1)]
    clocks = w.packet(None, rest={6: w.message({1: [w.message({1: 1, 2: 10**18}), w.message({1: 5, 2: 1})]})})
    tree = w.process_tree({7: ["/bin/seven"], 8: ["/bin/eight"]}, {71: ("worker", 7)})
    pieces = [clocks, tree, w.packet(1, w.CLEARED, state)]
    totals: dict[str, list[tuple[str, int]]] = {}
    for index, (name, pid) in enumerate((("libc.malloc", 7), ("custom", 7), ("com.android.art", 8))):
        samples = [w.heap_sample(number, 100 + number, number, 3, 1) for number in numbers]
        pieces.append(w.heap_packet([w.heap_dump(pid, samples, heap=name)], index=index))
        size = 100 * count + sum(numbers)
        word = "malloc " if name == "libc.malloc" else ""
        values = [(f"Total {word}count", 3 * count), (f"Total {word}size", size)]
        values += [(f"Unreleased {word}count", 2 * count), (f"Unreleased {word}size", size - sum(numbers))]
        if name == "com.android.art":
            values = [("Total allocation count", 3 * count), ("Total allocation size", size)]
        totals[f"heap_dump.{index + 1}.{pid}.{name}"] = values
    followers = [w.message({1: 11}), w.message({2: w.message({1: "sched:sched_switch"})})]
    defaults = w.perf_defaults({1: 1000, 4: 10}, followers)
    pieces.append(w.packet(2, w.CLEARED, state, defaults, rest={87: 1}))
    for place, number in enumerate(numbers):
        total, others = 1000 * (place // 2 + 1), [10 * (place // 2 + 1), place // 2 + 1]
        pieces.append(w.perf_sample(number, 7, 71, place % 2, 2, total, others, seq=2, time=10**9 + place, f16=3))
    weight = sum(10 * ((count + 1 - cpu) // 2) for cpu in (0, 1))
    totals["profile.1.pid.7"] = [
        ("samples", count),
        ("instructions", weight),
        ("sched:sched_switch", weight // 10),
        ("cpu-cycles", 1000 * count),
    ]
    descriptor = w.message({2: "retired", 3: 3})
    pieces.append(w.packet(3, w.CLEARED, state))
    for number in numbers:
        task, place = w.message({2: 8, 3: 8}), w.message({2: 1, 3: 2})
        sample = w.message({1: task, 3: place, 6: number, 9: descriptor, 11: number})
        pieces.append(w.packet(3, time=10**9, rest={135: sample}))
    totals["profile.2.pid.8"] = [("samples", count), ("retired", sum(numbers))]
    pieces.append(w.packet(4, w.CLEARED, module, rest={44: w.message({1: 7, 2: 7, 5: "CrBrowserMain", 6: 5})}))
    pieces.append(w.packet(4, rest={54: w.message({1: [*range(1, calls + 1)], 2: [2] * calls})}))
    totals["chromium_profile.1.pid.7"] = [("samples", calls), ("wall", 2000 * calls)]
    return b"".join(pieces), totals


Outputs = tuple[Path, dict[str, list[tuple[str, int]]]]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    """A folder with the profiles of a trace, separate and merged, and the totals of the former."""
    folder = tmp_path_factory.mktemp("pprof")
    trace, totals = several()
    (folder / "t.pftrace").write_bytes(trace)
    roots = [argument for subject in (SUBJECTS[0], SUBJECTS[2]) for argument in ("-b", str(subject.loaded))]
    shared = [str(folder / "t.pftrace"), *roots, "--no-cache", "-q"]
    for name, options in (("out", []), ("merged", ["--merge", "processes"])):
        (folder / name).mkdir()
        assert main([*shared, *options, "-o", str(folder / name)]) == 0
    return folder, totals


@pytest.fixture(scope="module")
def tool() -> str:
    """The path of pprof, which `go tool` would look for each time."""
    return subprocess.run(["go", "tool", "-n", "pprof"], capture_output=True, text=True, check=True).stdout.strip()


def pprof(tool: str, folder: Path, *arguments: str) -> str:
    """What pprof prints, which finds no binaries."""
    home = {"HOME": str(folder), "PPROF_TMPDIR": str(folder), "PPROF_BINARY_PATH": str(folder)}
    run = subprocess.run([tool, *arguments], capture_output=True, text=True, check=True, env={**os.environ, **home})
    return run.stdout


def files(outputs: Outputs) -> Iterator[tuple[str, Path]]:
    """Names and paths of the separate profiles."""
    folder, totals = outputs
    assert sorted(os.listdir(folder / "out")) == sorted(f"{name}.pb.gz" for name in totals)
    for name in totals:
        yield name, folder / "out" / f"{name}.pb.gz"


@pytest.mark.needs("go")
class TestPprofReadsIt:
    """`go tool pprof` opens every kind of profile and shows what the trace has."""

    def test_totals(self, outputs: Outputs, tool: str) -> None:
        """Each sample type has the total of the trace, and functions that were inlined are shown."""
        folder, totals = outputs
        for name, path in files(outputs):
            for number, (kind, total) in enumerate(totals[name]):
                text = pprof(tool, folder, "-top", f"-unit={unit_of(kind)}", f"-sample_index={number}", str(path))
                assert f"Type: {kind}\n" in text
                shown = re.search(r" of (\d+)(?:B|ns|\s*[a-z]*)? total", text)
                assert shown, text[:300]
                assert int(shown[1]) == total, (name, kind)
                assert "(inline)" in text

    def test_merged(self, outputs: Outputs, tool: str) -> None:
        """Profiles of all processes have the totals of those that they are made of; labels tell the processes apart."""
        folder, totals = outputs
        names = sorted(os.listdir(folder / "merged"))
        assert names == sorted(re.sub(r"(pid\.)?\b[78]\b", "all", name) + ".pb.gz" for name in totals)
        text = pprof(tool, folder, "-raw", str(folder / "merged" / "profile.1.all.pb.gz"))
        assert sum_of_raw(text) == [total for _, total in totals["profile.1.pid.7"]]
        text = pprof(tool, folder, "-tags", str(folder / "merged" / "heap_dump.3.all.com.android.art.pb.gz"))
        assert "/bin/eight" in text

    def test_addresses(self, outputs: Outputs, tool: str) -> None:
        """address - start + offset is the offset in the file (rule R221); Chromium's addresses are vaddrs."""
        folder, totals = outputs
        for name, path in files(outputs):
            text = pprof(tool, folder, "-raw", str(path))
            assert sum_of_raw(text) == [total for _, total in totals[name]]
            subject = SUBJECTS[2 if "chromium" in name else 0]
            ((offset, vaddr, _),) = segments(subject.loaded)
            mappings = {
                row[0]: (int(row[1], 16), int(row[2], 16), int(row[3], 16), row[4], row[5])
                for row in re.findall(
                    r"^(\d+): 0x(\w+)/0x(\w+)/0x(\w+) (\S+) (\w+)\s+\[FN\]\[FL\]\[LN\]\[IN\]$", text, re.MULTILINE
                )
            }
            places = re.findall(r"^ +\d+: 0x(\w+) M=(\d+) ", text, re.MULTILINE)
            found = set()
            for address, number in places:
                start, limit, begin, file, build_id = mappings[number]
                assert start <= int(address, 16) < limit
                assert file == f"/opt/{subject.loaded.name}"
                assert build_id == read_build_id(str(subject.loaded))
                place = int(address, 16) - start + begin
                found.add(place if "chromium" in name else place - offset + vaddr)
            assert sorted(found) == [*made.vaddrs(subject)]

    def test_tags(self, outputs: Outputs, tool: str) -> None:
        """Labels say of which process, thread and processor a sample is."""
        folder, _ = outputs
        text = {name: pprof(tool, folder, "-tags", "-sample_index=0", str(path)) for name, path in files(outputs)}
        tags = {name: set(re.findall(r"^ *(\w+): Total ", each, re.MULTILINE)) for name, each in text.items()}
        assert tags["heap_dump.1.7.libc.malloc"] == {"pid", "process"}
        assert tags["profile.1.pid.7"] == {"pid", "process", "tid", "thread", "cpu", "mode", "unwind_error"}
        assert tags["profile.2.pid.8"] == {"pid", "process", "tid", "thread", "cpu", "mode"}
        assert tags["chromium_profile.1.pid.7"] == {"pid", "process", "tid", "thread"}
        for part in ("/bin/seven", "worker", "user", "unwind_info"):
            assert part in text["profile.1.pid.7"]
        assert "kernel" in text["profile.2.pid.8"]
        assert "CrBrowserMain" in text["chromium_profile.1.pid.7"]


def sum_of_raw(text: str) -> list[int]:
    """The sums of the values of all samples in pprof's raw listing."""
    rows = re.findall(r"^ +([\d ]+?): [\d ]+$", text.partition("\nLocations\n")[0], re.MULTILINE)
    values = [[int(each) for each in row.split()] for row in rows]
    return [sum(column) for column in zip(*values, strict=True)]


def unit_of(kind: str) -> str:
    """The unit in which pprof shows a sample type to the last digit."""
    return "bytes" if kind.endswith("size") else "nanoseconds" if kind == "wall" else "minimum"

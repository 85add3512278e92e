"""Text profiles that real producers wrote, against what pprof and jeprof read in them."""

import gzip
import re
from pathlib import Path

import pytest

from symbolize import Symbolizer
from symbolize.formats import load
from tests.support.pprof_text import of_profile, parse, run_pprof

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "fixtures" / "legacy"
READ_BY_PPROF = sorted(FOLDER.glob("*.raw"))


def recording(raw: Path) -> Path:
    """The recording that pprof read."""
    return next(path for path in (raw.with_suffix(".heap"), raw.with_suffix(".txt")) if path.exists())


@pytest.mark.parametrize("raw", READ_BY_PPROF, ids=lambda path: path.stem)
def test_equals_pprof(raw: Path) -> None:
    """Types, period, stacks, mappings, values and sizes are those that `go tool pprof -raw` has."""
    profile = load(recording(raw))
    assert profile.warnings == []
    assert of_profile(profile) == parse(raw.read_text())
    assert len(profile.samples)


@pytest.mark.needs("go")
def test_written_profiles_are_read_by_pprof(tmp_path: Path) -> None:
    """pprof reads the same in what we write as in what was recorded."""
    from symbolize.formats import write

    for raw in READ_BY_PPROF:
        write(load(recording(raw)), tmp_path / "x.pb.gz")
        ours, theirs = parse(run_pprof(tmp_path / "x.pb.gz")), parse(raw.read_text())
        assert ours[:3] == theirs[:3]
        assert sorted(map(sum, zip(*ours.weights.values(), strict=True))) == sorted(
            map(sum, zip(*theirs.weights.values(), strict=True))
        )


def test_equals_jeprof() -> None:
    """The totals of a dump of jemalloc are those that jeprof estimates, which truncates sums instead of samples."""
    profile = load(FOLDER / "jemalloc.dump")
    known = dict(re.findall(r"(\w+) Total: (\d+)", (FOLDER / "jemalloc.jeprof").read_text()))
    sums = dict(
        zip(
            (profile.strings.text(each.type) for each in profile.sample_types),
            profile.samples.values.sum(0),
            strict=True,
        )
    )
    assert sums.keys() == known.keys()
    for name, total in sums.items():
        assert 0 <= int(known[name]) - total <= len(profile.samples)
    assert profile.warnings == []
    assert profile.period == 512
    assert b"/opt/ledger/bin/ledger" in list(profile.strings)


def test_names_of_go() -> None:
    """Comments give names to the frames that Go shows, and labels to the goroutines (R335, comments of Go)."""
    profile = load(FOLDER / "goroutine.txt")
    stacks = list(profile.stacks())
    assert [(each.function, each.file, each.line) for each in stacks[0] if each.function] == [
        ("main.wait", "./counts.go", 30),
        ("main.main.func2", "./counts.go", 65),
        ("runtime/pprof.Do", "runtime/pprof/runtime.go", 40),
    ]
    labels = profile.samples.labels
    keys, texts = ([profile.strings[i] for i in column.tolist()] for column in (labels.key, labels.text))
    assert keys == [b'query "\\x41"', b"shard"] * 3
    assert texts == [text for shard in (b"a", b"b", b"c") for text in (b"tab\there\xff\xe2\x80\xa8", shard)]
    assert profile.samples.label_offsets.tolist() == [0, 2, 4, 6, 6, 6]
    heap = load(FOLDER / "heap.txt")
    assert {"main.grow", "main.spend", "main.main"} <= {each.function for stack in heap.stacks() for each in stack}


def test_threads_of_unknown_origin() -> None:
    """Go counts threads with an empty stack, which pprof refuses."""
    profile = load(FOLDER / "threadcreate.txt")
    assert profile.samples.values.tolist() == [[5]]
    assert profile.samples.location_offsets.tolist() == [0, 0]


def test_symbolized_profile() -> None:
    """What the Perl pprof writes has the stacks and names of the profile that it was made of (R339)."""
    profile = load(FOLDER / "symbolized.gz")
    origin = load(ROOT / "fixtures" / "profiles" / "gperftools" / "ledger-gcc-pie.prof")
    counts = {stack: values[:1] for (stack, _), values in addresses_only(of_profile(profile)).items()}
    assert counts == {stack: values[:1] for (stack, _), values in addresses_only(of_profile(origin)).items()}
    text = gzip.decompress((FOLDER / "symbolized.gz").read_bytes())
    address, names = re.findall(rb"\n0x(\w+) (take_orders--[^\n]*)", text)[0]
    row = profile.locations.address.tolist().index(int(address, 16))
    lines = profile.locations.lines.function[
        profile.locations.line_offsets[row] : profile.locations.line_offsets[row + 1]
    ]
    shown = [profile.strings[profile.functions.name[each]] for each in lines.tolist()]
    assert shown == names.split(b"--")[::-1]
    assert profile.mappings.has_inline_frames.tolist() == [True]


def addresses_only(raw: object) -> dict[object, list[int]]:
    """Weights by addresses alone."""
    from tests.support.pprof_text import Raw

    assert isinstance(raw, Raw)
    return {
        (tuple(address for address, _, _ in stack), labels): values for (stack, labels), values in raw.weights.items()
    }


@pytest.mark.parametrize(("name", "function"), [("profiler.heap", "main"), ("jemalloc.dump", "main")])
def test_symbolized_with_binaries(name: str, function: str) -> None:
    """The frames of the program get their names from its binary."""
    profile = load(FOLDER / name)
    with Symbolizer([ROOT / "fixtures" / "bin" / "gcc-pie"]) as symbolizer:
        named = symbolizer.symbolize(profile).profile
    assert function in {each.function for stack in named.stacks() for each in stack if each.line}

"""R370: where a file only has the right name, callers on the stacks tell which build ran."""

import io
import re
import subprocess
from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest

import symbolize
from symbolize import Profile, Symbolizer, load
from symbolize.core.reasons import Reason
from symbolize.core.verdict import Verdict
from symbolize.evidence import judge
from symbolize.report import MappingRow
from symbolize.resolve.mapping_record import records_of
from tests.support.called import Program
from tests.support.pprof_writer import Mapping, Place, profile

FIXTURES = Path(__file__).parents[2] / "fixtures"
BUILDS = [("gcc-mold", "clang-gold"), ("clang-mold", "clang-gold"), ("clang-lld", "gcc-mold")]
"""The build that ran, and another one."""


def debug_file(folder: Path, build: str) -> Path:
    """A folder with the debug file of a build, which has no code: its call sites cannot be looked at."""
    folder.mkdir(parents=True)
    source = FIXTURES / "bin" / "callers" / build / "callers"
    subprocess.run(["objcopy", "--only-keep-debug", source, folder / "callers"], check=True)
    return folder


def recorded(build: str) -> Profile:
    """The profile that a build recorded of itself, which has no build ids."""
    return load(FIXTURES / "profiles" / "callers" / f"{build}.prof")


def row_of(profile: Profile, *folders: Path) -> MappingRow:
    """What is reported of the program."""
    result = symbolize.symbolize(profile, [str(folder) for folder in folders], cache=None)
    (row,) = (row for row in result.report.mappings if row.name.endswith("/callers"))
    return row


@pytest.mark.needs("objcopy")
@pytest.mark.parametrize(("build", "other"), BUILDS)
def test_the_build_that_ran_is_taken(build: str, other: str, tmp_path: Path) -> None:
    """Whichever is found first; the report says why."""
    right, wrong = debug_file(tmp_path / "a", build), debug_file(tmp_path / "b", other)
    for folders in permutations((right, wrong)):
        row = row_of(recorded(build), *folders)
        assert [Path(file).parent for file in row.files] == [right]
        agreeing, judged = map(int, re.findall(r"\d+", row.evidence))
        assert agreeing == judged > 30
        assert row.verdict is Verdict.SUPPORTED


@pytest.mark.needs("objcopy")
@pytest.mark.parametrize(("build", "other"), BUILDS)
def test_another_build_is_refused(build: str, other: str, tmp_path: Path) -> None:
    """Where it is alone: no name is better than a wrong one."""
    row = row_of(recorded(build), debug_file(tmp_path / "b", other))
    assert row.files == [] and [reason for reason, *_ in row.misses] == [Reason.MISFIT]
    assert "callers" in row.detail and "call the next function on their stacks" in row.detail


@pytest.mark.needs("objcopy")
def test_the_right_build_is_never_refused(tmp_path: Path) -> None:
    """However few of the stacks there are."""
    whole = recorded("gcc-mold")
    choose = np.random.default_rng(5)
    with Symbolizer([str(debug_file(tmp_path / "a", "gcc-mold"))]) as symbolizer:
        for _ in range(40):
            kept = np.zeros(len(whole.samples), np.bool_)
            kept[choose.integers(0, len(kept), choose.integers(1, 12))] = True
            profile = whole.copy()
            profile.samples = whole.samples.taken(kept)
            (row,) = (row for row in symbolizer.symbolize(profile).report.mappings if row.name.endswith("/callers"))
            assert row.files, row.detail


@pytest.mark.needs("objcopy")
def test_several_processes(tmp_path: Path) -> None:
    """Each is judged by its own callers, which are the same in all of them."""
    whole = recorded("gcc-mold")
    samples, addresses = whole.samples, whole.locations.address
    names = [whole.strings.text(each) for each in whole.mappings.filename.tolist()]
    (row,) = (number for number, name in enumerate(names) if name.endswith("/callers"))
    bounds = (int(column[row]) for column in (whole.mappings.start, whole.mappings.limit, whole.mappings.file_offset))
    mapping = Mapping(*bounds, names[row])
    stacks = [addresses[each].tolist() for each in np.split(samples.locations, samples.location_offsets[1:-1])]
    places = [([Place(each, number) for each in stack], [1]) for number in (1, 2) for stack in stacks[:4]]
    made = load(io.BytesIO(profile([mapping] * 2, places)))
    result = symbolize.symbolize(made, [str(debug_file(tmp_path / "a", "gcc-mold"))], cache=None)
    one, other = [(row.verdict, row.evidence) for row in result.report.mappings]
    assert one == other == (Verdict.UNVERIFIED, "5 of 5 callers call the next function on their stacks")


@pytest.mark.needs("gcc", "objcopy")
def test_a_build_without_calls_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that ran has no debug information; of another one half of the callers agree, because the code before what
    was changed is where it was. Nothing tells which of them ran."""
    apart, numbers = "__attribute__((noinline)) int", range(10)
    lines = ["volatile int sink;", f"{apart} leaf(int n) {{ sink += n; return n; }}"]
    lines += [
        f"{apart} f{i}(int n) {{ n += leaf(n);{' sink ^= n;' * i} n *= leaf(n); return leaf(n) + n; }}" for i in numbers
    ]
    lines += [f"int main(int c, char **v) {{ return {' + '.join(f'f{i}(c)' for i in numbers)}; }}"]
    changed = [*lines[:7], f"{apart} added(int n) {{{' sink *= n;' * 20} return n; }}", *lines[7:]]
    options = ("gcc", "-O2", "-fno-toplevel-reorder", "-fno-ipa-icf", "-Wl,--build-id=none")
    ran = Program(tmp_path / "a", options, one_c="\n".join(lines))
    other = Program(tmp_path / "b", (*options, "-g"), one_c="\n".join(changed))
    assert ran.begin["f4"] == other.begin["f4"] and ran.begin["f5"] != other.begin["f5"]
    profile = ran.recorded(*([ran.begin["leaf"], ran.call(f"f{i}", "leaf", 1)] for i in numbers))
    for program in (ran, other):
        subprocess.run(["objcopy", "--only-keep-debug", program.path, program.path.with_suffix(".debug")], check=True)
        program.path.with_suffix(".debug").replace(program.path)
    for folders in permutations((ran.path.parent, other.path.parent)):
        (row,) = symbolize.symbolize(profile, [*map(str, folders)], cache=None).report.mappings
        assert row.files == [] and [reason for reason, *_ in row.misses] == [Reason.AMBIGUOUS]
    # Of more callers than are looked at these are from all of the code, not those at its begin.
    for limit in (judge.MAX_PAIRS, 5):
        monkeypatch.setattr(judge, "MAX_PAIRS", limit)
        (row,) = symbolize.symbolize(profile, [str(other.path.parent)], cache=None).report.mappings
        agreeing, judged = map(int, re.findall(r"\d+", row.evidence or row.detail))
        assert 0 < agreeing < judged


def test_pairs_of_each_mapping() -> None:
    """Neighbours on a stack in one mapping, the caller second."""
    profile = load(FIXTURES / "profiles" / "gperftools" / "spectra-gcc-pie.prof")
    samples, mapping = profile.samples, profile.locations.mapping
    expected: dict[int, set[tuple[int, int]]] = {}
    for stack in np.split(samples.locations, samples.location_offsets[1:-1]):
        for callee, caller in pairwise(stack.tolist()):
            if mapping[callee] == mapping[caller]:
                expected.setdefault(int(mapping[caller]), set()).add((callee, caller))
    records = records_of(profile, with_names=False)
    found = {each.mapping: {*zip(*map(np.ndarray.tolist, each.pairs()), strict=True)} for each in records if each.pairs}
    assert {number: pairs for number, pairs in found.items() if pairs} == expected and len(expected) > 2

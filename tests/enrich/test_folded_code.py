"""Code that several functions share gets the name of the one that was called, stack by stack, against programs in which
nothing is folded."""

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from symbolize import Options, Profile, Result, Symbolizer, load
from symbolize.cli import main
from symbolize.core.arrays import offsets_of
from symbolize.core.folded_code import FoldedCode, FoldedFunction, FoldingEvidence
from symbolize.evidence.folded_callers import functions_called
from symbolize.formats import encode
from symbolize.names import MODES, Mode
from symbolize.profile import Samples
from symbolize.symbols import binary
from symbolize.symbols.build import Builder
from symbolize.symbols.functions import Calls, Function, Namesakes
from tests.support.profile_frames import frames_of

FIXTURES = Path(__file__).parents[2] / "fixtures"
GROUPS = ("read_", "load_", "::put", "shapes::", "helper", "sweep", "scrub", "polish", "rinse")
LINKERS = ["lld", "gold", "mold"]
BY_POINTER = "by_pointer"
METHODS = "draw"
"""Calls methods that another file defines. clang says nothing of such calls."""


def symbolized(variant: str) -> Result:
    """The profile that a variant of the program recorded of itself."""
    with Symbolizer(FIXTURES / "bin" / "callers" / variant, Options(demangle="templates")) as symbolizer:
        return symbolizer.symbolize(load(FIXTURES / "profiles" / "callers" / f"{variant}.prof"))


def stacks(profile: Profile) -> Counter[tuple[str, ...]]:
    """The value of each stack below `main`, by the names of its functions."""
    found: Counter[tuple[str, ...]] = Counter()
    for stack, values in zip(profile.stacks(), profile.samples.values[:, 0].tolist(), strict=True):
        names = [frame.function for frame in stack]
        found[tuple(names[: names.index("main")])] += values
    return found


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_as_if_nothing_was_folded(compiler: str, linker: str) -> None:
    """Each of 31 functions in five groups has its stacks and values, those that shared code calls too; what was called
    by a pointer stays as it was, marked as folded."""
    whole, result = stacks(symbolized(f"{compiler}-none").profile), symbolized(f"{compiler}-{linker}")
    found = stacks(result.profile)
    assert sum(found.values()) == sum(whole.values())
    assert len({stack[0] for stack in whole if any(group in stack[0] for group in GROUPS)}) == 24
    undecided = found - whole
    assert all(stack[-1] in (BY_POINTER, METHODS) for stack in undecided)
    if compiler == "gcc":
        assert all(stack[-1] == BY_POINTER for stack in undecided)
    assert all(stack[-1] in (BY_POINTER, METHODS) for stack in whole - found)
    report = result.report
    assert report.decided_value / report.shared_value > (0.97 if compiler == "gcc" else 0.8)
    profile = result.profile
    outermost = profile.locations.line_offsets[1:][profile.locations.is_folded] - 1
    assert len(set(profile.functions.name[profile.locations.lines.function[outermost]].tolist())) > 20


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_wrong_name(compiler: str, linker: str) -> None:
    """Code in stacks that nothing of the kind was in has the names that it has without callers: what was decided is
    right."""
    made = load(FIXTURES / "profiles" / "callers" / f"{compiler}-{linker}.prof")
    frames = len(made.samples.locations)
    made.leaf_kinds = np.zeros(0, np.uint8)  # which will be callers too
    made.samples = Samples(
        location_offsets=np.arange(frames + 1),
        locations=made.samples.locations,
        values=np.ones((frames, made.samples.values.shape[1]), np.int64),
        label_offsets=np.zeros(frames + 1, np.int64),
    )
    with Symbolizer(FIXTURES / "bin" / "callers" / f"{compiler}-{linker}", Options(demangle="templates")) as symbolizer:
        without = {frame.function for stack in symbolizer.symbolize(made).profile.stacks() for frame in stack}
    undecided = stacks(symbolized(f"{compiler}-{linker}").profile) - stacks(symbolized(f"{compiler}-none").profile)
    assert undecided
    assert all(name in without for stack in undecided for name in stack)


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_share_with_call_sites(compiler: str, linker: str) -> None:
    """Where the debug information, as pyelftools reads it, has a call with a function, nearly all is decided."""
    result = symbolized(f"{compiler}-{linker}")
    samples, locations = result.profile.samples, result.profile.locations
    is_last = np.zeros(len(samples.locations), np.bool_)
    is_last[samples.location_offsets[1:] - 1] = True
    called = np.flatnonzero(locations.is_folded[samples.locations] & ~is_last)
    returns = locations.address[samples.locations[called + 1]] + np.uint64(1)
    value = np.repeat(samples.values[:, result.profile.weight_column()], np.diff(samples.location_offsets))
    described = np.isin(returns, described_returns(f"{compiler}-{linker}"))
    assert described.any()
    assert result.report.decided_value / value[called][described].sum() > 0.98


@pytest.mark.parametrize("mode", MODES)
def test_functions_that_are_not_linked(mode: Mode) -> None:
    """What callers name, and gold leaves no symbols of, is shown as a function without a linked name: with its scopes,
    and as linked without them (rule R18)."""

    def local(variant: str) -> set[tuple[str, str]]:
        with Symbolizer(FIXTURES / "bin" / "callers" / variant, Options(demangle=mode)) as symbolizer:
            made = load(FIXTURES / "profiles" / "callers" / f"{variant}.prof")
            frames = frames_of(symbolizer.symbolize(made).profile)
        return {frame[:2] for chain in frames for frame in chain if re.search("helper|sweep|scrub|polish", frame[0])}

    folded, whole = local("gcc-gold"), local("gcc-none")
    assert folded and not any("::" in linked for _, linked in folded)
    if mode == "none":
        assert all(shown == linked for shown, linked in folded)
    else:
        assert {shown for shown, _ in folded} == {shown.removesuffix("(int)") for shown, _ in whole}


def described_returns(variant: str) -> list[int]:
    """Where calls return of which a function is known."""
    with (FIXTURES / "bin" / "callers" / variant / "callers").open("rb") as file:
        units = ELFFile(file).get_dwarf_info().iter_CUs()
        calls = [entry.attributes for unit in units for entry in unit.iter_DIEs() if entry.tag == "DW_TAG_call_site"]
    known = [call for call in calls if {"DW_AT_call_origin", "DW_AT_call_return_pc"} <= call.keys()]
    return [call["DW_AT_call_return_pc"].value for call in known]


def test_declaration() -> None:
    """A function that is not the one whose code was kept has the file and line of its declaration."""
    profile = symbolized("gcc-lld").profile
    columns = {
        (frame.function, frame.file, frame.line): frame.column
        for stack in profile.stacks()
        for frame in stack
        if frame.function in ("read_users", "(anonymous namespace)::polish", "(anonymous namespace)::helper")
    }
    lines = columns.keys()
    assert columns["read_users", "/src/callers/alike.cc", 3] == 0
    assert {line for line in lines if "polish" in line[0]} == {
        ("(anonymous namespace)::polish", "/src/callers/main.cc", 4)
    }
    files = {file for name, file, _ in lines if "helper" in name}
    assert files == {"/src/callers/main.cc", "/src/callers/other.cc"}


@pytest.mark.parametrize("variant", ["gcc-lld", "clang-gold"])
def test_samples_are_apart(variant: str) -> None:
    """A frame without a caller is not called by the leaf of the next sample: in stacks that were cut, the order of the
    samples changes nothing."""
    made = load(FIXTURES / "profiles" / "callers" / f"{variant}.prof")
    samples = made.samples
    begins = samples.location_offsets[:-1]
    values = np.repeat(samples.values, 2, axis=0)
    cut = replace(
        made,
        samples=replace(
            samples,
            location_offsets=np.sort(np.concatenate((samples.location_offsets, begins + 1))),
            values=values,
            label_offsets=np.zeros(len(values) + 1, np.int64),
        ),
        leaf_kinds=np.zeros(0, np.uint8),  # the leaf of what was cut off is a caller
    )
    order = np.arange(len(values))[::-1]
    stacks = [cut.samples.locations[first:last] for first, last in pairwise(cut.samples.location_offsets.tolist())]
    backwards = replace(
        cut,
        samples=replace(
            cut.samples,
            location_offsets=offsets_of([len(stacks[row]) for row in order]),
            locations=np.concatenate([stacks[row] for row in order]),
            values=values[order],
        ),
    )
    with Symbolizer(FIXTURES / "bin" / "callers" / variant) as symbolizer:
        found = [list(symbolizer.symbolize(each).profile.stacks()) for each in (cut, backwards)]
    assert len(found[0]) == len(values) and found[0][0][0].function
    assert found[0] == found[1][::-1]


def test_same_answers_with_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept table and one for the addresses of the profile give the same bytes."""
    made = load(FIXTURES / "profiles" / "callers" / "gcc-gold.prof")
    expected = encode(symbolized("gcc-gold").profile)
    for is_kept in (False, True):
        if is_kept:  # the calls are in the table
            monkeypatch.setattr(Builder, "__init__", lambda *_: pytest.fail("debug information was read again"))
        with Symbolizer(
            FIXTURES / "bin" / "callers" / "gcc-gold", Options(demangle="templates"), cache=tmp_path
        ) as symbolizer:
            assert encode(symbolizer.symbolize(made).profile) == expected


def test_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """So does debug information that is looked up in portions."""
    expected = encode(symbolized("clang-lld").profile)
    monkeypatch.setattr(binary, "MAX_AT_ONCE", 2)
    assert encode(symbolized("clang-lld").profile) == expected


@pytest.mark.parametrize("distance", [0, 1])
def test_return_addresses(distance: int) -> None:
    """Callers of which the profile has the return address itself are found too."""
    made = load(FIXTURES / "profiles" / "callers" / "gcc-mold.prof")
    callers = np.ones(len(made.locations), np.bool_)
    callers[made.samples.locations[made.samples.location_offsets[:-1]]] = False
    address = made.locations.address + np.where(callers, 1 - distance, 0).astype(np.uint64)
    made.locations = replace(made.locations, address=address)
    with Symbolizer(FIXTURES / "bin" / "callers" / "gcc-mold") as symbolizer:
        report = symbolizer.symbolize(made).report
    assert report.decided_value / report.shared_value > 0.97


def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report says how much of the time in shared code was decided."""
    folder, profile = FIXTURES / "bin" / "callers" / "gcc-lld", FIXTURES / "profiles" / "callers" / "gcc-lld.prof"
    assert main([str(profile), "-b", str(folder), "-o", str(tmp_path / "out.pb.gz"), "--no-cache"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "of the frames are in code that functions share; the callers name 9" in text


CALLEES = ("a", "b")
CALLERS = ("f", "g")
MADE: dict[str, tuple[list[tuple[str, str | None]], list[tuple[str, str | None]], list[str | None]]] = {
    "one call": ([("main", "a")], [], ["a"]),
    "the same call twice": ([("main", "b"), ("main", "b")], [], ["b"]),
    "calls of two": ([("main", "a"), ("main", "b")], [], [None]),
    "one by a pointer": ([("main", None)], [], [None]),
    "another one by a pointer": ([("main", "a"), ("main", None)], [], [None]),
    "of a function that is none of them": ([("main", "c")], [], [None]),
    "by the caller that was called": ([("f", "a"), ("g", "b")], [("main", "g")], ["b", "g"]),
    "by a caller that nobody knows": ([("f", "a"), ("g", "b")], [("main", None)], [None, None]),
    "by a function that is no caller": ([("h", "a")], [("main", None)], [None, None]),
    "by one of them": ([("f", "a"), ("h", "b")], [("main", "f")], ["a", "f"]),
}


@pytest.mark.parametrize("case", MADE)
def test_which_function_was_called(case: str) -> None:
    """What all calls at a site say that are made by the function that the caller is known to be; else none."""
    first, second, expected = MADE[case]
    names = sorted({name for pair in (*first, *second) for name in pair if name})
    sites = [(0x110 + 0x100 * depth, *pair) for depth, made in enumerate((first, second)) for pair in made]
    calls = Calls(
        np.array([site for site, _, _ in sites], np.uint64),
        np.array([names.index(by) for _, by, _ in sites], np.int64),
        np.array([names.index(to) if to else -1 for _, _, to in sites], np.int64),
        [Function(name.encode(), b"", b"", 0) for name in names],
    )
    vaddrs = np.array([0x10F, 0x20F], np.uint64)
    answer: Any = SimpleNamespace(calls=calls, vaddrs=vaddrs, machine="EM_X86_64")
    folded = [
        FoldedCode(0, 1, FoldingEvidence.DEFINITIONS, [FoldedFunction(name.encode()) for name in functions])
        for functions in (CALLEES, CALLERS)
    ]
    group = np.array([0, 1 if second else -1, -1], np.int64)
    stack, at = np.arange(3, dtype=np.int32), np.flatnonzero(group >= 0)
    answers = [(np.array([1, 2], np.int64), answer)]
    chosen = functions_called(stack, np.array([0, 3], np.int64), Namesakes(folded), answers, group, at)
    functions = (CALLEES, CALLERS)
    assert [functions[i][row] if row >= 0 else None for i, row in enumerate(chosen.tolist())] == expected

"""Frames that tail calls took off the stacks are put back, against a program that was compiled without tail calls."""

from pathlib import Path

import pytest

from symbolize import Options, Result, Symbolizer, load
from symbolize.cli import main
from symbolize.evidence.stacks import Chain, between
from symbolize.formats import encode
from symbolize.symbols.call_sites import UNKNOWN

FIXTURES = Path(__file__).parents[2] / "fixtures"
MARK = " [tail call]"
AMBIGUOUS = {"towards", "by_pointer", "either", "again"}
"""What leads to the leaf in several ways, or by a pointer, or was made a loop."""


def symbolized(variant: str, tail_calls: bool = True) -> Result:
    """The profile that a variant of the program recorded of itself."""
    with Symbolizer(FIXTURES / "bin" / "tails" / variant, Options(tail_calls=tail_calls)) as symbolizer:
        return symbolizer.symbolize(load(FIXTURES / "profiles" / "tails" / f"{variant}.prof"))


def stacks(result: Result) -> list[list[str]]:
    """The functions on each stack below `main`, in the order in which they were recorded."""
    found = []
    for stack in result.profile.stacks():
        names = [frame.function for frame in stack]
        found.append(names[: names.index("main")])
    return found


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_as_without_tail_calls(compiler: str) -> None:
    """Where one chain of tail calls leads from the function that was called to the next frame, all of it is put back;
    of several ways what they share; nothing where a pointer was called."""
    truth, found = stacks(symbolized(f"{compiler}-calls")), stacks(symbolized(f"{compiler}-tails"))
    assert len(truth) == len(found) == 35
    exact = 0
    for whole, names in zip(truth, found, strict=True):
        bare = [name.removesuffix(MARK) for name in names]
        exact += bare == whole
        assert bare == whole or AMBIGUOUS & set(whole), (bare, whole)
        rest = iter(whole)
        assert all(name in rest for name in bare), (bare, whole)  # nothing that was not there, in this order
    assert exact >= 15
    assert [name for name in found[0] if name.endswith(MARK)] == ["middle" + MARK, "outer" + MARK]
    assert found[1] == ["leaf", "towards" + MARK]
    assert found[2] == ["leaf"]
    assert found[3][1:] == [name + MARK for name in ("middle", "hidden", "inlined", "with_inlined")]


def test_nothing_is_inserted_without_need() -> None:
    """Without the option, and without tail calls, stacks stay as they are; linked names have no mark."""
    assert not any(name.endswith(MARK) for stack in stacks(symbolized("gcc-tails", tail_calls=False)) for name in stack)
    assert encode(symbolized("gcc-calls").profile) == encode(symbolized("gcc-calls", tail_calls=False).profile)
    profile = symbolized("gcc-tails").profile
    assert not any(profile.strings[number].endswith(MARK.encode()) for number in profile.functions.system_name.tolist())
    assert profile.samples.values.sum() == symbolized("gcc-tails", tail_calls=False).profile.samples.values.sum()


def test_option(tmp_path: Path) -> None:
    """The command does the same."""
    folder, recorded = FIXTURES / "bin" / "tails" / "gcc-tails", FIXTURES / "profiles" / "tails" / "gcc-tails.prof"
    output = tmp_path / "out.folded"
    assert main([str(recorded), "-b", str(folder), "-o", str(output), "--no-cache", "--tail-calls"]) == 0
    assert "main;outer [tail call];middle [tail call];leaf 350000000" in output.read_text()


def test_otlp_from_otlp(tmp_path: Path) -> None:
    """A message that came has no place for frames that were not there: it is made anew."""
    folder, recorded = FIXTURES / "bin" / "tails" / "gcc-tails", FIXTURES / "profiles" / "tails" / "gcc-tails.prof"
    message, output = tmp_path / "in.otlp", tmp_path / "out.otlp"
    assert main([str(recorded), "-q", "-o", str(message)]) == 0
    assert main([str(message), "-q", "-b", str(folder), "-o", str(output), "--no-cache", "--tail-calls"]) == 0
    names = [[frame.function for frame in stack] for stack in load(output).stacks()]
    assert [stack[: stack.index("main")] for stack in names] == stacks(symbolized("gcc-tails"))


@pytest.mark.parametrize(
    ("chains", "vaddrs"),
    [
        ([((1, 0x10), (2, 0x20))], [0x10, 0x20]),
        ([((1, 0x10), (2, UNKNOWN))], []),
        ([((1, UNKNOWN), (2, 0x20))], []),
        ([((1, 0x10), (2, 0x20), (3, 0x30)), ((1, 0x10), (4, 0x40), (3, 0x30))], [0x10, 0x30]),
        ([((1, 0x10), (2, UNKNOWN), (3, 0x30)), ((1, 0x10), (4, 0x40), (3, 0x30))], [0x10, 0x30]),
        ([((1, 0x10), (3, UNKNOWN)), ((1, 0x10), (4, 0x40))], [0x10]),
        ([((1, 0x10), (3, 0x30)), ((2, 0x20), (4, 0x40))], []),
    ],
)
def test_what_all_chains_share(chains: list[Chain], vaddrs: list[int]) -> None:
    """The links with which all chains begin and end; none if it is not known where one of these calls is made."""
    assert [*between(chains)] == vaddrs

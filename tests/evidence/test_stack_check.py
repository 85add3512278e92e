"""Stacks are checked against the calls that the debug information has."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from symbolize import Options, Profile, Symbolizer, load
from symbolize.cli import main
from symbolize.core.outcome import StackCheck
from symbolize.elf import ElfImage
from symbolize.profile import NONE, Locations
from tests.support.called import Program
from tests.support.gperftools_writer import profile as gperftools_profile

FIXTURES = Path(__file__).parents[2] / "fixtures"
RIGHT = [
    *(f"callers/{compiler}-{linker}" for compiler in ("gcc", "clang") for linker in ("lld", "gold", "mold", "none")),
    *(f"tails/{compiler}-{kind}" for compiler in ("gcc", "clang") for kind in ("tails", "calls")),
]


def check(profile: Profile, variant: str) -> StackCheck:
    """What is found of the callers in the program."""
    with Symbolizer(FIXTURES / "bin" / variant, Options(check_stacks=True)) as symbolizer:
        rows = symbolizer.symbolize(profile).report.mappings
    (found,) = [row.outcome.stack_check for row in rows if row.outcome.stack_check is not None]
    return found


def recorded(variant: str) -> Profile:
    """The profile that a variant of a program recorded of itself."""
    return load(FIXTURES / "profiles" / f"{variant}.prof")


@pytest.mark.parametrize("variant", RIGHT)
def test_right_binary(variant: str) -> None:
    """Everything that is judged agrees, some of it by tail calls where there are some."""
    found = check(recorded(variant), variant)
    assert found.contradicted == 0
    assert found.judged > 0
    assert (found.explained > 0) == variant.endswith("-tails")


@pytest.mark.parametrize(
    ("variant", "other"),
    [
        ("callers/gcc-lld", "callers/gcc-gold"),
        ("callers/clang-gold", "callers/gcc-lld"),
        ("callers/clang-none", "callers/gcc-none"),
        ("tails/gcc-tails", "tails/gcc-calls"),
        ("tails/gcc-calls", "tails/gcc-tails"),
    ],
)
def test_wrong_build(variant: str, other: str) -> None:
    """Hardly anything agrees with another build of the program, here with its build id on the mapping."""
    profile, name = recorded(variant), other.partition("/")[0]
    with ElfImage.open(FIXTURES / "bin" / other / name) as image:
        build_id = (image.build_id or "").encode()
    paths = [profile.strings.text(number) for number in profile.mappings.filename.tolist()]
    rows = np.array([path.startswith("/opt/") for path in paths])
    profile.mappings.build_id = np.where(rows, profile.strings.add(build_id), profile.mappings.build_id).astype(
        np.int32
    )
    assert check(profile, other).share < 0.1


def test_missing_callers() -> None:
    """Stacks that lack callers, as without frame pointers, contradict."""
    profile = recorded("tails/gcc-calls")
    stacks = np.split(profile.samples.locations, profile.samples.location_offsets[1:-1])
    without: Sequence[np.ndarray] = [np.delete(stack, 1) for stack in stacks]
    profile.samples.location_offsets = np.cumsum([0, *map(len, without)])
    profile.samples.locations = np.concatenate(without)
    assert check(profile, "tails/gcc-calls").share < 0.8


@pytest.mark.needs("gcc")
def test_functions_at_one_place_of_two_binaries(tmp_path: Path) -> None:
    """A function is none of another binary that begins where that has it."""
    source = (
        "volatile int sink; __attribute__((noinline)) int {0}(int n) {{ sink += n; return n; }}"
        "int main(int c, char **v) {{ return {0}(c) + 1; }}"
    )
    command, shift = ["gcc", "-O2", "-g"], 1 << 30
    one, other = (Program(tmp_path / name, command, one_c=source.format(name)) for name in ("right", "twin"))
    assert one.begin["right"] == other.begin["twin"]
    other.path.rename(tmp_path / "twin" / "lib")
    caller, maps = one.call("main", "right"), one.maps() + other.maps("/opt/lib", shift)
    for callee, share in ((one.begin["right"], 1), (other.begin["twin"] + shift, 0)):
        with Symbolizer(tmp_path, Options(check_stacks=True)) as symbolizer:
            result = symbolizer.symbolize(load(io.BytesIO(gperftools_profile([(1, [callee, caller])], maps.encode()))))
        (found,) = [row.outcome.stack_check for row in result.report.mappings if row.outcome.stack_check is not None]
        assert found.judged > 0 and found.share == share


def test_kernel() -> None:
    """Where the kernel was entered nothing is judged: a page fault or an interrupt is no call."""
    profile, variant = recorded("callers/gcc-none"), "callers/gcc-none"
    profile.leaf_kinds = np.zeros(0, np.uint8)  # those below are inside of calls
    stacks = [stack[1:] for stack in np.split(profile.samples.locations, profile.samples.location_offsets[1:-1])]
    leaves = np.array([stack[0] for stack in stacks], np.int64)
    count = len(profile.locations)
    interrupted = profile.locations.take(leaves)
    interrupted = replace(interrupted, address=interrupted.address - np.uint64(1))
    kernel = replace(
        profile.locations.take(leaves[:1]),
        address=np.full(1, 0xFFFFFFFF81000000, np.uint64),
        mapping=np.full(1, NONE, np.int32),
    )
    profile.locations = Locations.joined([profile.locations, interrupted, kernel])

    def checked(below: list[int]) -> StackCheck:
        changed = [[*below, count + i, *stack[1:].tolist()] for i, stack in enumerate(stacks)]
        profile.samples.location_offsets = np.cumsum([0, *map(len, changed)])
        profile.samples.locations = np.array([row for stack in changed for row in stack], np.int32)
        return check(profile, variant)

    assert checked([count + len(stacks)]) == checked([])


def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report has a line, and in JSON the values; without the option neither."""
    folder, profile = FIXTURES / "bin" / "tails" / "gcc-tails", FIXTURES / "profiles" / "tails" / "gcc-tails.prof"
    command = [str(profile), "-b", str(folder), "-o", str(tmp_path / "out.pb.gz"), "--no-cache"]
    assert main([*command, "--check-stacks"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "calls: 100.0 % of the judged callers agree with the debug information (" in text
    assert main([*command, "--check-stacks", "--report", "json"]) == 0
    mappings = json.loads(capsys.readouterr().out)["mappings"]
    assert [row["calls"]["contradicted"] for row in mappings if row["calls"]] == [0.0]
    assert main(command) == 0
    assert "calls:" not in capsys.readouterr().out

"""R492, functions without names: shown by where they begin, and unnamed all the same."""

import re
import subprocess
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

import symbolize
from symbolize import Edits, Options, Profile, Reason, Symbolizer
from symbolize.analysis import FrameFlag, stacks_of
from symbolize.formats import encode
from symbolize.options import DEFAULTS
from tests.support.pprof_writer import Mapping, Place, profile
from tests.support.spectra import BASE, DEBUG, SPLIT_ID, STRIPPED
from tests.support.tool_folders import function_bounds

CODE: Final = Mapping(BASE + 0x2000, BASE + 0x4000, 0x2000, "/opt/spectra/bin/spectra", SPLIT_ID)
STEP: Final = 7
FIRST_PLT: Final = 0x2020
SHOWN: Final = re.compile(r"spectra!sub_[0-9a-f]+")


def described() -> list[tuple[int, int]]:
    """The bounds of the functions that readelf finds in .eh_frame; the first two are procedure linkage tables."""
    run = subprocess.run(["readelf", "--debug-dump=frames", STRIPPED], capture_output=True, text=True, check=True)
    found = re.findall(r" FDE .* pc=(\w+)\.\.(\w+)", run.stdout)
    bounds = sorted((int(begin, 16), int(end, 16)) for begin, end in found)
    assert [begin for begin, _ in bounds[:2]] == [FIRST_PLT, 0x2170]
    return bounds[2:]


def recorded(vaddrs: Sequence[int], mapping: Mapping = CODE) -> Profile:
    """A profile with a stack at each vaddr, which calls itself."""
    stacks = [([Place(BASE + vaddr, 1)] * 2, [1]) for vaddr in vaddrs]
    return symbolize.load(BytesIO(profile([mapping], stacks)))


def symbolized(made: Profile, root: Path, options: Options = DEFAULTS) -> symbolize.Result:
    """The profile with the files below `root`."""
    with Symbolizer(root, options) as symbolizer:
        return symbolizer.symbolize(made)


def rows(made: Profile) -> dict[str, float]:
    """The functions of a profile, with their values."""
    return {row.name: row.flat for row in made.top(1000)}


@pytest.mark.needs("readelf")
def test_one_row_a_function() -> None:
    """Stripped code has one row for each function of the program, with the value that this has, and no more names."""
    bounds = described()
    vaddrs = [vaddr for begin, end in bounds for vaddr in range(begin, end, STEP)]
    result = symbolized(recorded(vaddrs), STRIPPED.parent)
    expected = {f"spectra!sub_{begin:x}": len(range(begin, end, STEP)) for begin, end in bounds}
    assert rows(result.profile) == expected
    begins = {begin: name for name, (begin, _) in function_bounds(DEBUG).items() if begin in dict(bounds)}
    assert len(begins) == len(expected) > 20
    assert (result.report.percent, result.report.mappings[0].misses[0][0]) == (0, Reason.NO_SYMBOLS)
    assert all(stacks_of(result.profile).flags & FrameFlag.UNSYMBOLIZED)
    assert not result.profile.locations.has_lines().any()
    again = symbolize.load(BytesIO(encode(result.profile)))
    assert rows(again) == {"[spectra]": len(vaddrs)}


@pytest.mark.needs("readelf")
def test_what_is_no_function() -> None:
    """Procedure linkage tables, code without call frame information and what is between functions stay the module's; so
    does all code of a file that is not accepted."""
    bounds = described()
    gaps = [end for (_, end), (begin, _) in pairwise(bounds) if end < begin]
    assert len(gaps) > 5
    made = recorded([FIRST_PLT, 0x2000, *gaps])
    assert list(rows(symbolized(made, STRIPPED.parent).profile)) == ["[spectra]"]
    made = recorded([bounds[-1][0]], CODE._replace(build_id=""))
    assert list(rows(symbolized(made, STRIPPED.parent, Options(accept="proved")).profile)) == ["[spectra]"]
    assert list(rows(symbolized(made, STRIPPED.parent, Options(accept="unverified")).profile)) != ["[spectra]"]


@pytest.mark.needs("readelf")
@pytest.mark.parametrize("ending", ["pb.gz", "folded"])
def test_round_trip(tmp_path: Path, ending: str) -> None:
    """Where the stand-ins are written they are read as such: shown alike, unnamed, and no addresses."""
    bounds = described()
    path = str(tmp_path / f"x.{ending}")
    vaddrs = [begin + 1 for begin, end in bounds if end > begin + 1]
    result = symbolized(recorded(vaddrs), STRIPPED.parent, Options(edits=Edits(synthesize=True)))
    assert result.profile.locations.has_lines().all()
    result.write(path)
    again = symbolize.load(path)
    assert rows(again) == rows(result.profile)
    assert rows(symbolize.merge([again, again])) == {name: 2 * value for name, value in rows(again).items()}
    assert not again.locations.has_lines().any()
    found = symbolized(again, DEBUG.parent)
    if ending == "folded":
        assert not again.locations.address.any()
        assert (found.report.percent, rows(found.profile)) == (0, rows(again))
    else:
        assert found.report.percent == 100
        assert not [name for name in rows(found.profile) if SHOWN.fullmatch(name)]

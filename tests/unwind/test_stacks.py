"""Stacks of real programs, which noted themselves where they were called from."""

from pathlib import Path

import pytest

from symbolize import Symbolizer
from tests.support.stack_dumps import FIXTURES, fixture_profile, stacks

MACHINES = ("x86-64", "aarch64")


def folder_of(machine: str, folder: Path) -> Path:
    """A folder with the program of a machine alone."""
    (folder / machine).write_bytes((FIXTURES / machine).read_bytes())
    return folder


@pytest.mark.parametrize("machine", MACHINES)
def test_noted_stacks(machine: str, tmp_path: Path) -> None:
    """Frames with arrays, of other alignment, with arguments on the stack, called through pointers, 40 deep, and below
    a signal: all callers are those that the functions noted (R307, rules of frames; R313, signal frames)."""
    profile, expected = fixture_profile(machine)
    assert len(expected) == 3
    assert max(map(len, expected)) > 40
    with Symbolizer(folder_of(machine, tmp_path)) as symbolizer:
        result = symbolizer.symbolize(profile)
    assert stacks(result.profile) == expected
    assert result.profile.stack_dumps is None
    assert profile.stack_dumps is not None
    assert not [warning for warning in result.profile.warnings if "stacks" in warning]
    names = [frame.function for frame in next(iter(result.profile.stacks()))]
    assert names[:2] == ["leaf", "last"]
    assert names[-2:] == ["start", "_start"]

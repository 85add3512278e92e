"""Recorded names that try to lead somewhere."""

from pathlib import Path

import pytest

from tests.support.hostile_names import HOSTILE
from tests.support.pprof_writer import Mapping, Place
from tests.support.whole_runs import run


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("build_id", ["", "00" * 20, "../secret", "ab" * 20])
def test_names(tmp_path: Path, name: str, build_id: str) -> None:
    """Whatever a name says, nothing outside of the roots is opened, and the mapping gets a reason."""
    for folder in (tmp_path, tmp_path / "root"):
        folder.mkdir(exist_ok=True)
    for file in ("secret", "vmlinux-secret", "kallsyms"):
        (tmp_path / file).write_bytes(b"ffffffff81000000 T secret\n")
    mapping = Mapping(0xFFFF_FFFF_8100_0000, 0xFFFF_FFFF_9000_0000, 0, name, build_id)
    names, report = run([mapping], [Place(0xFFFF_FFFF_8100_0000, 1)], tmp_path / "root")
    assert names == [""]
    assert report.mappings[0].misses
    assert report.mappings[0].files == []

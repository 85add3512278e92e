"""Recorded names that try to lead somewhere."""

from pathlib import Path

import pytest

from tests.support.pprof_writer import Mapping, Place
from tests.support.whole_runs import run

HOSTILE = [
    "../../secret", "/../secret", "~/secret", "file:///secret", "http://host/secret", "secret\0", "\n", "x" * 10_000,
    "/" * 10_000, "/newroot" * 1000, "/tmp/perf-" + "9" * 5000 + ".map", "jit-" + "1" * 5000 + ".dump",
    "base.apk!" * 1000, "base.apk!/../../secret", "../base.apk!/../secret", "[kernel.kallsyms]" + "_" * 5000,
    "/lib/modules/../secret/x.ko", "/lib/modules/" + "6" * 5000 + "/x.ko.xz", "vmlinux-../../secret",
    "[kernel.kallsyms]../secret", "/memfd:../secret (deleted)", "//deleted/../secret", "/proc/1/root/../secret",
    "/overlay/x/diff/../secret", "[" + "vdso" * 2000 + "]", "/a" * 5000 + ";abcdef12",
]  # fmt: skip


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

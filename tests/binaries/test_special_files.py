"""Files that are known by their names."""

import os
from pathlib import Path

from symbolize.binaries import SpecialFiles


def test_kinds(tmp_path: Path) -> None:
    """Each kind of file is found, wherever it lies, and told apart by its name."""
    for name in (
        "boot/vmlinux-6.1", "proc/kallsyms", "boot/System.map-6.1", "tmp/perf-1.map", "tmp/jit-1.dump", "a/base.apk",
        "lib/x.ko.xz", "s/x.sym", "perf-x.map", "x.ko", "kallsymsx",
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    files = SpecialFiles([str(tmp_path)])
    found = {kind: [file.relative for file in files.of_kind(kind)] for kind in (
        "kernel", "kallsyms", "system-map", "perf-map", "jitdump", "archive", "module", "breakpad"
    )}  # fmt: skip
    assert found == {
        "kernel": ["boot/vmlinux-6.1"], "kallsyms": ["proc/kallsyms"], "system-map": ["boot/System.map-6.1"],
        "perf-map": ["tmp/perf-1.map"], "jitdump": ["tmp/jit-1.dump"], "archive": ["a/base.apk"],
        "module": ["lib/x.ko.xz"], "breakpad": ["s/x.sym"],
    }  # fmt: skip


def test_links_loops_and_what_is_no_file(tmp_path: Path) -> None:
    """Links inside the roots are followed, loops end, links out of them and FIFOs are passed over."""
    root = tmp_path / "root"
    (root / "real").mkdir(parents=True)
    (root / "real" / "kallsyms").write_text("x")
    (root / "real" / "loop").symlink_to(root)
    (root / "a-link").symlink_to(root / "real")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kallsyms").write_text("x")
    (root / "out").symlink_to(tmp_path / "outside")
    os.mkfifo(root / "perf-1.map")
    files = SpecialFiles([str(root)])
    assert [file.relative for file in files.of_kind("kallsyms")] == ["real/kallsyms"]
    assert files.of_kind("perf-map") == []


def test_reading_is_bounded(tmp_path: Path) -> None:
    """A file is read up to a limit; one that became a FIFO does not block; each is told."""
    (tmp_path / "kallsyms").write_text("12345")
    os.mkfifo(tmp_path / "fifo")
    files = SpecialFiles([str(tmp_path)])
    path = str(tmp_path / "kallsyms")
    assert files.read(path, 5) == b"12345"
    assert files.head(path, 3) == b"123"
    assert files.read(path, 4) is None
    assert files.read(str(tmp_path / "fifo"), 4) is None
    assert files.read(str(tmp_path / "gone"), 4) is None
    assert len(files.problems) == 3


def test_root_that_is_a_file(tmp_path: Path) -> None:
    """A root may be the file itself."""
    (tmp_path / "perf-9.map").write_text("x")
    (file,) = SpecialFiles([str(tmp_path / "perf-9.map")]).of_kind("perf-map")
    assert (file.name, file.path) == ("perf-9.map", str(tmp_path / "perf-9.map"))

"""Files that are known by their names."""

import os
from pathlib import Path

import pytest

from symbolize.binaries import BinaryIndex, SpecialFiles


def test_kinds(tmp_path: Path) -> None:
    """Each kind of file is found, wherever it lies, and told apart by its name."""
    for name in (
        "boot/vmlinux-6.1", "proc/kallsyms", "boot/System.map-6.1", "tmp/perf-1.map", "tmp/jit-1.dump", "a/base.apk",
        "lib/x.ko.xz", "s/x.sym", "perf-x.map", "x.ko", "kallsymsx",
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    files = SpecialFiles(BinaryIndex([str(tmp_path)]))
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
    files = SpecialFiles(BinaryIndex([str(root)]))
    assert [file.relative for file in files.of_kind("kallsyms")] == ["real/kallsyms"]
    assert files.of_kind("perf-map") == []


def test_reading_is_bounded(tmp_path: Path) -> None:
    """A file is read up to a limit; one that became a FIFO does not block; each is told."""
    (tmp_path / "kallsyms").write_text("12345")
    os.mkfifo(tmp_path / "fifo")
    files = SpecialFiles(BinaryIndex([str(tmp_path)]))
    path = str(tmp_path / "kallsyms")
    assert files.read(path, 5) == b"12345"
    assert files.head(path, 3) == b"123"
    assert files.read(path, 4) is None
    assert files.read(str(tmp_path / "fifo"), 4) is None
    assert files.read(str(tmp_path / "gone"), 4) is None
    assert len(files.problems) == 3


def test_a_limit_costs_no_memory(tmp_path: Path) -> None:
    """What a file may have is not allocated for one that has less; files of /proc have more than their size, 0."""
    (tmp_path / "x.sym").write_text("12345")
    files = SpecialFiles(BinaryIndex([str(tmp_path)]))
    assert files.read(str(tmp_path / "x.sym"), 1 << 50) == b"12345"
    assert len(files.read("/proc/self/maps", 1 << 50) or b"") > 100
    assert files.read("/proc/self/maps", 10) is None


def test_root_that_is_a_file(tmp_path: Path) -> None:
    """A root may be the file itself."""
    (tmp_path / "perf-9.map").write_text("x")
    (file,) = SpecialFiles(BinaryIndex([str(tmp_path / "perf-9.map")])).of_kind("perf-map")
    assert (file.name, file.path) == ("perf-9.map", str(tmp_path / "perf-9.map"))


def test_order_of_a_walk(tmp_path: Path) -> None:
    """Files of a folder come before those of its folders, linked ones last, hard links under their first name."""
    root = tmp_path / "root"
    for name in ("b/x.sym", "b-c/x.sym", "z.sym", "b/a/x.sym"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    os.link(root / "b/x.sym", root / "b/a/again.sym")
    other = tmp_path / "other"
    other.mkdir()
    (other / "y.sym").write_text("y")
    (root / "a-link").symlink_to(other)
    found = SpecialFiles(BinaryIndex([str(root), str(other)])).of_kind("breakpad")
    expected = ["z.sym", "b/x.sym", "b/a/x.sym", "b-c/x.sym", "a-link/y.sym"]
    assert [file.relative for file in found] == expected


def test_file_that_cannot_be_read_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wants its contents says why they cannot be had; it is looked at again by the next walk."""
    (tmp_path / "top").mkdir()
    (tmp_path / "top/kallsyms").write_text("12345")

    def refuse(path: str) -> int:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patched:
        patched.setattr("symbolize.binaries.index_update.open_regular", refuse)
        index = BinaryIndex([str(tmp_path / "top")], tmp_path / "cache")
        assert [file.name for file in SpecialFiles(index).of_kind("kallsyms")] == ["kallsyms"]
        assert index.problems == [f"{tmp_path}/top/kallsyms: Permission denied"]
    again = BinaryIndex([str(tmp_path / "top")], tmp_path / "cache")
    assert [file.name for file in SpecialFiles(again).of_kind("kallsyms")] == ["kallsyms"]
    assert again.problems == []

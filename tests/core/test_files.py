"""Files that processes share: locks, and folders that are bounded."""

import os
import time
from pathlib import Path

from symbolize.core.files import CacheFolder, file_lock


def test_a_lock_that_was_left_looks_new_to_cleaners(tmp_path: Path) -> None:
    """The file that a killed process left is used again, and its time says so."""
    path = tmp_path / "lock"
    path.write_bytes(b"")
    os.utime(path, (1, 1))
    with file_lock(str(path), 0) as first:
        assert first
        assert time.time() - path.stat().st_mtime < 60
        with file_lock(str(path), 0) as second:
            assert not second
    assert not path.exists()


def test_a_lock_removes_no_file_of_another_holder(tmp_path: Path) -> None:
    """Where somebody removed the file, the next holder has one of its own, which stays."""
    path = tmp_path / "lock"
    with file_lock(str(path), 0) as first:
        path.unlink()
        with file_lock(str(path), 0) as second:
            assert first and second
            status = path.stat()
        path.write_bytes(b"")
        assert status.st_nlink == 1
    assert path.exists()


def test_files_with_times_ahead_are_evicted(tmp_path: Path) -> None:
    """The limit holds also where a clock was set back."""
    for name in "abc":
        (tmp_path / f"{name}.table").write_bytes(bytes(1000))
        os.utime(tmp_path / f"{name}.table", (time.time() + 600,) * 2)
    assert CacheFolder(tmp_path, limit=1000).evict(".table") == 2

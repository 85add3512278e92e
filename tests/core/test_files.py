"""Files that processes share: locks, and folders that are bounded; and what is said of errors."""

import errno
import io
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from symbolize.core.files import CacheFolder, file_lock, open_regular, os_error_text


def closed(stream: io.IOBase) -> io.IOBase:
    """The stream, closed."""
    stream.close()
    return stream


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: os.stat("a\0b"), "its name has a NUL"),
        (lambda: Path("a\0b").read_bytes(), "its name has a NUL"),
        (lambda: os.scandir("a\0b"), "its name has a NUL"),
        (lambda: os.stat("\ud800"), "its name has a character that no name can have"),
        (lambda: b"\xff".decode(), "it is not UTF-8"),
        (lambda: json.loads(b'"\xff"'), "it is not UTF-8"),
        (lambda: json.loads("[" * 200_000), "it is nested too deep"),
        (lambda: int("1" * (sys.get_int_max_str_digits() + 1)), "a number in it has too many digits"),
        (lambda: closed(io.BytesIO()).readline(), "it is closed"),
        (lambda: closed(io.FileIO(os.devnull)).readline(), "it is closed"),
        (lambda: closed(io.StringIO()).readline(), "it is closed"),
        (lambda: io.FileIO(os.devnull, "wb").read(1), "it is not open for that"),
        (lambda: os.stat("/dev/null/x"), os.strerror(20)),
        (lambda: os.stat({}), None),  # type: ignore[call-overload]
    ],
)
def test_errors_in_our_words(call: Callable[[], object], text: str | None) -> None:
    """What Python says of names, streams and text depends on its version; what we say does not."""
    with pytest.raises((OSError, ValueError, RecursionError, TypeError)) as raised:
        call()
    assert os_error_text(raised.value) == (text or str(raised.value))


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


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="the system has no O_PATH")
def test_only_regular_files_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no regular file is not even opened, whatever a path leads to by now: a device may do something then."""
    opened: list[tuple[str, int]] = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, flags: opened.append((os.fspath(path), flags)) or real(path, flags))
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/dev/null")
    (tmp_path / "file").write_text("text")
    for path in (tmp_path / "fifo", tmp_path / "link", tmp_path, Path("/dev/zero")):
        with pytest.raises(OSError, match="is no regular file"):
            open_regular(path)
    assert opened and all(flags & os.O_PATH for _, flags in opened)
    with open(open_regular(tmp_path / "file")) as file:
        assert file.read() == "text"
    with pytest.raises(FileNotFoundError, match="nothing"):
        open_regular(tmp_path / "nothing")


def test_without_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where /proc is not mounted files are opened all the same; an error has the path that was asked for."""
    (tmp_path / "file").write_text("text")
    real = os.open

    def refuse(error: type[OSError], path: str, flags: int) -> int:
        if str(path).startswith("/proc/"):
            raise error(errno.EACCES, "refused", path)
        return real(path, flags)

    monkeypatch.setattr(os, "open", partial(refuse, FileNotFoundError))
    with open(open_regular(tmp_path / "file")) as file:
        assert file.read() == "text"

    def swap(path: str, flags: int) -> int:
        if str(path).startswith("/proc/"):
            os.replace(tmp_path / "fifo", tmp_path / "file")
        return refuse(FileNotFoundError, path, flags)

    os.mkfifo(tmp_path / "fifo")
    monkeypatch.setattr(os, "open", swap)
    with pytest.raises(OSError, match="is no regular file"):
        open_regular(tmp_path / "file")
    (tmp_path / "file").unlink()
    (tmp_path / "file").write_text("text")
    monkeypatch.setattr(os, "open", partial(refuse, PermissionError))
    with pytest.raises(PermissionError) as caught:
        open_regular(tmp_path / "file")
    assert caught.value.filename == str(tmp_path / "file")

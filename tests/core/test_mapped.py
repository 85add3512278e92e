"""Files that are truncated, rewritten, replaced or removed while they are mapped (R280)."""

import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from symbolize.core import mapped
from symbolize.core.errors import ChangedFile
from symbolize.core.mapped import CHANGED, UNREADABLE, MappedFile, let_go
from tests.support.needs import needs_compiled

SIZE = 64 * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of some pages, which was written a while ago."""
    result = tmp_path / "lib.so"
    result.write_bytes(b"\x55" * SIZE)
    os.utime(result, ns=(10**18, 10**18))
    return result


def rewrite(path: Path) -> None:
    """Other bytes in place."""
    with path.open("r+b") as file:
        file.write(b"\xaa" * SIZE)


def replace(path: Path) -> None:
    """Another file under the same name."""
    other = path.with_suffix(".new")
    other.write_bytes(b"\xaa" * SIZE)
    other.rename(path)


HARM = {
    "to nothing": lambda path: os.truncate(path, 0),
    "to a page": lambda path: os.truncate(path, SIZE // 64),
    "within the last page": lambda path: os.truncate(path, SIZE - 1),
    "rewritten": rewrite,
    "longer": lambda path: os.truncate(path, SIZE + 1),
}
HARMLESS = {"removed": os.unlink, "replaced": replace, "linked": lambda path: os.link(path, f"{path}.other")}


@needs_compiled
@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_harm_is_found(path: Path, harm: Callable[[Path], object]) -> None:
    """Reading goes on, also of pages that were not read before, and what was read does not count."""
    file = MappedFile(path)
    assert file.data[0] == 0x55
    file.check()
    harm(path)
    np.frombuffer(file.data, np.uint8).sum()
    with pytest.raises(ChangedFile, match=f"lib.so: {CHANGED}"):
        file.check()
    file.close()
    assert file.problem == CHANGED


@pytest.mark.parametrize("change", HARMLESS.values(), ids=HARMLESS)
def test_other_names_do_no_harm(path: Path, change: Callable[[Path], object]) -> None:
    """A file that is open stays what it was, whatever becomes of its name."""
    file = MappedFile(path)
    change(path)
    assert bytes(file.data) == b"\x55" * SIZE
    file.check()
    file.close()
    file.check()


def test_without_mapping(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing protects a mapping the file is read: what becomes of it later does no harm, what does meanwhile is
    found."""
    monkeypatch.setattr(mapped.page_faults, "COMPILED", False)
    file = MappedFile(path)
    os.truncate(path, 0)
    assert bytes(file.data) == b"\x55" * SIZE
    let_go(file.data, 0, SIZE)
    file.check()
    file.close()
    assert bytes(MappedFile(path).data) == b""
    path.write_bytes(b"\x55" * SIZE)

    def cut(descriptor: int, size: int) -> bytes:
        os.truncate(path, SIZE // 2)
        return mapped_read(descriptor, size)

    mapped_read = mapped.read_all
    monkeypatch.setattr(mapped, "read_all", cut)
    with pytest.raises(ChangedFile):
        MappedFile(path)


@needs_compiled
def test_more_files_than_the_handler_knows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file more than there are ranges is read; a range is free again when the last view has gone."""

    def full(descriptor: int, size: int) -> None:
        raise mapped.page_faults.NoRange

    monkeypatch.setattr(mapped.page_faults, "GuardedMapping", full)
    file = MappedFile(path)
    os.truncate(path, 0)
    assert file.data[SIZE - 1] == 0x55
    file.check()
    monkeypatch.undo()
    path.write_bytes(b"\x55" * SIZE)
    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    for _ in range(5000):
        file = MappedFile(path)
        assert file.data[0] == 0x55
        file.close()
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/fd")) == before


@needs_compiled
def test_views_keep_the_protection(path: Path) -> None:
    """A view that is left when the file was closed can be read as before."""
    file = MappedFile(path)
    view = file.data[SIZE // 2 :]
    column = np.frombuffer(view, np.uint8)
    file.close()
    del file
    os.truncate(path, 0)
    assert int(column.max()) == 0
    others = [MappedFile(__file__) for _ in range(8)]  # whose ranges are their own
    assert [other.problem for other in others] == [""] * 8


@needs_compiled
def test_read_while_another_thread_truncates(path: Path) -> None:
    """Loops that have released the GIL go on."""
    for _ in range(20):
        path.write_bytes(b"\x55" * SIZE)
        file = MappedFile(path)
        began, sums = threading.Event(), []

        def read(file: MappedFile = file, began: threading.Event = began, sums: list[int] = sums) -> None:
            began.set()
            while not file.problem:
                sums.append(zlib.crc32(file.data))

        reader = threading.Thread(target=read)
        reader.start()
        began.wait()
        time.sleep(0.001)
        os.truncate(path, 0)
        reader.join(timeout=30)
        assert not reader.is_alive()
        assert file.problem == CHANGED
        assert zlib.crc32(file.data) == zlib.crc32(bytes(SIZE))


@needs_compiled
def test_pages_are_given_back(path: Path) -> None:
    """What is not needed in memory is read again when it is asked for."""
    file = MappedFile(path)
    for begin, size in ((0, SIZE), (1, SIZE - 1), (SIZE, 1), (SIZE - 1, 1), (0, SIZE + 1), (-5000, 10000)):
        let_go(file.data, begin, size)
    assert bytes(file.data) == b"\x55" * SIZE


def run(code: str, path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: `m` is a file that is mapped; `theirs` one mapped by somebody else."""
    head = (
        "import faulthandler, mmap, os, resource, signal, sys\n"
        "from symbolize.core.mapped import MappedFile\n"
        "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
        "path = sys.argv[1]\n"
        "def theirs():\n"
        "    with open(path, 'rb') as file:\n"
        "        found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)\n"
        "    os.truncate(path, 0)\n"
        "    return found[5000]\n"
    )
    return subprocess.run(
        [sys.executable, *options, "-c", head + code, str(path)], capture_output=True, text=True, timeout=60
    )


ENABLE = "faulthandler.enable()\n"
OPEN = "m = MappedFile(path)\n"
CUT = "os.truncate(path, 0)\nprint(sum(m.data[::4096]), m.problem)\n"
SEND = "os.kill(os.getpid(), signal.SIGBUS)\n"


@pytest.mark.process
@needs_compiled
@pytest.mark.parametrize(
    ("code", "options"),
    [
        (OPEN + CUT, []),
        (ENABLE + OPEN + CUT, []),
        (OPEN + CUT, ["-X", "faulthandler"]),
        (OPEN + ENABLE + "other = MappedFile(sys.executable)\n" + CUT, []),
        (OPEN + "signal.signal(signal.SIGBUS, print)\nother = MappedFile(sys.executable)\n" + CUT, []),
        (OPEN + "if os.fork(): sys.exit(os.waitpid(-1, 0)[1])\n" + CUT, []),
    ],
    ids=["alone", "after faulthandler", "with -X faulthandler", "before faulthandler", "before a handler", "forked"],
)
def test_other_handlers(path: Path, code: str, options: list[str]) -> None:
    """The handler is there from the first mapping on, and comes back with each one if another took its place."""
    ended = run(code, path, *options)
    assert (ended.stdout, ended.stderr, ended.returncode) == (f"0 {CHANGED}\n", "", 0)


@pytest.mark.process
@needs_compiled
@pytest.mark.parametrize(
    ("code", "said"),
    [
        (OPEN + "theirs()", 0),
        (ENABLE + OPEN + "theirs()", 1),
        (OPEN + ENABLE + "theirs()", 1),
        (OPEN + ENABLE + "n = MappedFile(path)\ntheirs()", 1),
        (OPEN + SEND, 0),
        (ENABLE + OPEN + SEND, 1),
        (OPEN + ENABLE + "n = MappedFile(path)\n" + SEND, 1),
        (OPEN + "signal.signal(signal.SIGBUS, signal.SIG_IGN)\nn = MappedFile(path)\n" + SEND + "theirs()", 0),
    ],
    ids=[
        *("fault", "faulthandler before", "faulthandler after", "faulthandler between"),
        *("sent", "sent, faulthandler before", "sent, faulthandler between", "ignored"),
    ],
)
def test_faults_of_others(path: Path, code: str, said: int) -> None:
    """What is no fault of a mapping of ours ends the process as ever, and faulthandler says where."""
    ended = run(code, path)
    assert ended.returncode == -signal.SIGBUS
    assert ended.stderr.count("Fatal Python error: Bus error") == said


@pytest.mark.process
@needs_compiled
def test_ignored_signals_are_ignored(path: Path) -> None:
    """Who ignores the signal is not ended by one that is sent."""
    ended = run("signal.signal(signal.SIGBUS, signal.SIG_IGN)\n" + OPEN + SEND + "print(m.data[0])", path)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("85\n", "", 0)


@pytest.mark.process
def test_nothing_is_installed_by_importing() -> None:
    """The handler is there from the first mapping on, not before."""
    code = "import signal, symbolize.pipeline; print(signal.getsignal(signal.SIGBUS) is signal.SIG_DFL)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "True\n"


@needs_compiled
def test_disks_that_fail(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that cannot be had of a file that is as it was is an error of its disk."""
    file = MappedFile(path)
    os.truncate(path, 0)
    assert file.data[0] == 0
    monkeypatch.setattr(mapped, "is_other", lambda before, after: False)
    with pytest.raises(ChangedFile, match=UNREADABLE):
        file.check()

"""The answer comes first: tables that pay are made after it, in a process for which nobody waits."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from symbolize.cli import main
from symbolize.symbols import TableCache
from tests.support.fixture_files import BINARIES, FIXTURES

PROFILE = str(FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof")
BINARY = str(BINARIES / "gcc-pie" / "ledger")
HELD = """
import os, pathlib, sys, time
from symbolize.cli import main
from symbolize.symbols import Binary, later_tables
later_tables.QUICK = -1
def prepare(binary, prepare=Binary.prepare):
    pathlib.Path("made").open("a").write(f"{os.getpid()}\\n")
    while os.path.exists("held"):
        time.sleep(0.01)
    return prepare(binary)
Binary.prepare = prepare
"""
"""The command, which takes small binaries for large ones. What it makes after the answer waits while `held` is there,
and is listed in `made`."""
COMMAND = HELD + "sys.exit(main())"
PATIENCE = 60


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With the answer without a cache. What still waits ends."""
    monkeypatch.chdir(tmp_path)
    Path("held").touch()
    assert main([PROFILE, "-b", BINARY, "-q", "--no-cache", "-o", "expected.pb"]) == 0
    yield
    Path("held").unlink(missing_ok=True)


def run(*options: str, program: str = COMMAND) -> bytes:
    """The result of the command, which has ended: also its standard output, and another pipe that it inherited."""
    reader, writer = os.pipe()
    arguments = [sys.executable, "-c", program, PROFILE, "-b", BINARY, "--cache", "cache", "-q", "-o", "out.pb"]
    with open(writer, "wb") as pipe:
        subprocess.run(
            [*arguments, *options], check=True, capture_output=True, timeout=PATIENCE, pass_fds=[pipe.fileno()]
        )
    with open(reader, "rb") as pipe:
        assert pipe.read() == b""
    return Path("out.pb").read_bytes()


def tables() -> list[bytes]:
    """The tables in the cache."""
    return [path.read_bytes() for path in Path(TableCache("cache").folder).glob("*.symtab")]


def wait_for(what: Callable[[], object]) -> None:
    """Wait until `what` holds."""
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def makers() -> list[int]:
    """The processes that began to make tables after the answer."""
    return [int(line) for line in Path("made").read_text().split()] if Path("made").exists() else []


def is_gone(process: int) -> bool:
    """Whether a process has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


@pytest.mark.process
def test_answer_comes_before_the_table() -> None:
    """Nobody waits for it, nor has a pipe open for it, and it is the one that is made at once elsewhere; what comes
    meanwhile is answered without it, and does not make it again."""
    expected = Path("expected.pb").read_bytes()
    assert run() == expected
    wait_for(makers)
    assert tables() == []
    assert os.getpriority(os.PRIO_PROCESS, makers()[0]) == 19
    assert run() == expected
    assert tables() == []
    Path("held").unlink()
    wait_for(tables)
    wait_for(lambda: is_gone(makers()[0]))
    assert len(makers()) == 1
    assert run() == expected
    assert main([PROFILE, "-b", BINARY, "--cache", "other", "-q", "-o", "other.pb"]) == 0
    (made,) = tables()
    assert [path.read_bytes() for path in Path(TableCache("other").folder).iterdir()] == [made]


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_killed_before_the_table_is_there(number: signal.Signals) -> None:
    """Nothing half is left, and the next run makes the table before its answer, as in a new container."""
    run()
    wait_for(makers)
    os.kill(makers()[0], number)
    wait_for(lambda: is_gone(makers()[0]))
    left = {path.suffix for path in Path(TableCache("cache").folder).iterdir()}
    assert left == {".seen", ".lock"} if number == signal.SIGKILL else {".seen"}
    assert run() == Path("expected.pb").read_bytes()
    assert len(tables()) == len(makers()) == 1


@pytest.mark.process
def test_cache_that_is_removed_meanwhile() -> None:
    """It does not come back."""
    run()
    wait_for(makers)
    for path in Path(TableCache("cache").folder).iterdir():
        path.unlink()
    Path(TableCache("cache").folder).rmdir()
    Path("held").unlink()
    wait_for(lambda: is_gone(makers()[0]))
    assert not Path(TableCache("cache").folder).exists()


@pytest.mark.process
@pytest.mark.parametrize(
    ("program", "options"),
    [
        (COMMAND, ["--foreground"]),
        (HELD + "os.getppid = lambda: 1; sys.exit(main())", []),
        (HELD + "os.getpid = lambda: 1; sys.exit(main())", []),
        (HELD + "sys.exit(main(sys.argv[1:]))", []),
        (COMMAND, ["--merge", "all", PROFILE]),
        ("import sys; from symbolize.cli import main; sys.exit(main())", []),
    ],
    ids=["asked for", "of a container", "first of a container", "in a program", "several profiles", "small"],
)
def test_tables_that_are_made_before_the_answer(program: str, options: list[str]) -> None:
    """Where a process would not outlive the command, belongs to others, or is not worth it."""
    run(*options, program=program)
    assert len(tables()) == 1
    assert makers() == []


@pytest.mark.process
def test_on_a_terminal_that_ends() -> None:
    """Neither the bar that was shown there nor the end of the terminal, with the command, keeps the table from being
    made."""
    process, terminal = pty.fork()
    if process == 0:
        arguments = [sys.executable, "-c", COMMAND, PROFILE, "-b", BINARY, "--cache", "cache", "-o", "out.pb"]
        os.execv(sys.executable, arguments)
    shown = b""
    with suppress(OSError):  # it has ended
        while part := os.read(terminal, 1 << 16):
            shown += part
    os.close(terminal)
    assert os.waitpid(process, 0)[1] == 0
    assert b"mapping" in shown
    Path("held").unlink()
    wait_for(tables)


@pytest.mark.process
def test_readers_of_pipes_do_not_wait_for_the_processor() -> None:
    """At the lowest priority, a process on a busy machine may not come to let go of anything."""
    waiting = """
def nice(by, nice=os.nice):
    while os.path.exists("held"):
        time.sleep(0.01)
    return nice(by)
os.nice = nice
"""
    assert run(program=f"{HELD}{waiting}sys.exit(main())") == Path("expected.pb").read_bytes()


@pytest.mark.process
@pytest.mark.parametrize("is_link", [True, False], ids=["link", "FIFO"])
def test_note_that_cannot_be_written(is_link: bool) -> None:
    """As that of another user of the folder: the table is made all the same, and nothing is written elsewhere."""
    Path("held").unlink()
    run("--foreground")
    (table,) = Path(TableCache("cache").folder).glob("*.symtab")
    note = table.with_suffix(".seen")
    table.unlink()
    note.symlink_to(Path("elsewhere").absolute()) if is_link else os.mkfifo(note)
    run()
    wait_for(tables)
    assert len(makers()) == 1
    assert not Path("elsewhere").exists()


@pytest.mark.process
def test_addresses_come_before_the_table() -> None:
    """So with `symbolize addr`, also when it meets a binary again."""
    for _ in range(2):
        arguments = [sys.executable, "-c", COMMAND, "addr", BINARY, "--cache", "cache", "main"]
        printed = subprocess.run(arguments, check=True, capture_output=True, timeout=PATIENCE).stdout
        assert printed.startswith(b"0x") and b": main " in printed
        assert tables() == []
    wait_for(makers)
    Path("held").unlink()
    wait_for(tables)


@pytest.mark.process
def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """No process is started for what cannot be kept."""
    Path("cache").write_bytes(b"")
    assert run() == Path("expected.pb").read_bytes()
    time.sleep(0.1)
    assert makers() == []

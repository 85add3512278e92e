"""Standard streams of `symbolize addr`, `as` and `log` that are closed, or do not wait, or whose reader goes."""

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from symbolize.cli import main
from symbolize.cli.drop_in import batches
from symbolize.core.errors import InputError
from tests.support.drop_ins import SPECTRA

COMMANDS = {
    "addr": ["addr", "--no-cache", str(SPECTRA)],
    "llvm-symbolizer": ["as", "llvm-symbolizer", f"--obj={SPECTRA}"],
    "addr2line": ["as", "addr2line", "-e", str(SPECTRA)],
    "log": ["log", "--no-cache"],
}


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tables are kept."""
    monkeypatch.setenv("SYMBOLIZE_NO_CACHE", "1")


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_closed_input(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Standard input that is closed is an error of one line."""
    monkeypatch.setattr("sys.stdin", None)
    assert main(words) == 1
    found = capfdbinary.readouterr()
    assert (found.out, found.err) == (b"", b"symbolize: standard input: cannot be read: it is closed\n")


@pytest.mark.process
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.full
def test_reader_that_goes(words: list[str]) -> None:
    """When nobody reads the answers any more the command ends, though more lines may come."""
    code = "import sys; from symbolize.cli import main; sys.exit(main())"
    read, written = os.pipe()
    os.close(read)
    with subprocess.Popen(
        [sys.executable, "-c", code, *words], stdin=subprocess.PIPE, stdout=written, stderr=subprocess.PIPE
    ) as process:
        os.close(written)
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(b"2340\n")
        process.stdin.flush()
        try:
            assert process.wait(60) == 0
        finally:
            process.kill()
        assert process.stderr.read() == b""


def test_input_that_does_not_wait() -> None:
    """Lines are waited for also where reading does not, as of a pipe whose other users set it so."""
    read, written = os.pipe()
    fcntl.fcntl(read, fcntl.F_SETFL, os.O_NONBLOCK)
    found = batches(read, 10)
    later = threading.Timer(0.05, os.write, (written, b"late\n"))
    later.start()
    assert next(found) == [b"late\n"]
    later.join()
    os.close(written)
    assert list(found) == []
    os.close(read)


def test_unreadable_input(tmp_path: Path) -> None:
    """What cannot be read is an error that names it."""
    descriptor = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(InputError, match="the log: cannot be read: Is a directory"):
        next(batches(descriptor, 10, "the log"))
    os.close(descriptor)

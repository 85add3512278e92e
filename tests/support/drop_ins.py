"""Runs of the tools that `symbolize as` stands in for, and of `symbolize as` in this process."""

import os
import subprocess
from pathlib import Path

import pytest

from symbolize.cli import main

SPECTRA = Path(__file__).parent.parent.parent / "fixtures" / "bin" / "clang-pie" / "spectra"


class Output:
    """What a run wrote to standard output and error, and its exit code."""

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code, self.out, self.err = code, out, err


def own(
    words: list[str], lines: bytes | None, capfdbinary: pytest.CaptureFixture[bytes], patch: pytest.MonkeyPatch
) -> Output:
    """Run `symbolize` with these words, and with `lines` as standard input."""
    read, written = os.pipe()
    with os.fdopen(read) as file, os.fdopen(written, "wb") as other:
        if lines is not None:  # fits in a pipe
            other.write(lines)
        other.close()
        patch.setattr("sys.stdin", file)
        capfdbinary.readouterr()
        code = main(words)
    found = capfdbinary.readouterr()
    return Output(code, found.out, found.err)


def other(words: list[str], lines: bytes | None = None) -> Output:
    """Run another tool."""
    run = subprocess.run(words, input=lines or b"", capture_output=True, check=False, timeout=120)
    return Output(run.returncode, run.stdout, run.stderr)

"""Memory that was freed is given back."""

import ctypes
import platform
from pathlib import Path

import pytest

from symbolize.core.mapped import give_back

NUMBER, SIZE = 50_000, 2000


def resident() -> int:
    """Bytes of memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of the C library of GNU")
def test_what_lies_between() -> None:
    """Memory in use does not hold what is free below it."""
    held = [bytearray(SIZE) for _ in range(NUMBER)]
    last = bytearray(SIZE)
    del held
    before = resident()
    give_back()
    assert resident() < before - NUMBER * SIZE // 2 or before < NUMBER * SIZE // 2
    assert len(last) == SIZE


def test_other_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do without."""
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    give_back()

"""The program `spectra` of the fixtures: its files, and the mapping of its code."""

from pathlib import Path

from tests.support import fixture_files as fixtures
from tests.support.fixture_files import BINARIES
from tests.support.pprof_writer import Mapping
from tests.support.tool_folders import function_bounds

PIE = BINARIES / "gcc-pie" / "spectra"
PIE_ID = "cb96b8d25342c1f32e87dde7772ea78c32607ad4"
FIXED = BINARIES / "clang-nopie-dwarf4-lld" / "spectra"
STRIPPED, DEBUG = (BINARIES / "gcc-split" / name for name in ("stripped/spectra", "debug/spectra.debug"))
SPLIT_ID = "af378328040b5c601337f2a6b48ca78874340d8b"
BASE = 0x5555_5555_4000


def code_of(path: Path) -> tuple[int, int, int]:
    """File offset, vaddr and size of the code of a binary."""
    (segment,) = fixtures.segments(path)
    return segment


def main_of(path: Path) -> int:
    """The vaddr of the first byte of `main`, as pyelftools reads it."""
    return function_bounds(path)["main"][0]


MAIN = main_of(PIE)
CODE = code_of(PIE)
WHOLE = Mapping(BASE + 0x2000, BASE + 0x4000, 0x2000, "/opt/spectra/bin/spectra", PIE_ID)
"""The code of `PIE`, mapped as the loader does it."""


def load_headers(data: bytes) -> list[int]:
    """Where the PT_LOAD program headers of a 64-bit file are."""
    table, count = int.from_bytes(data[32:40], "little"), int.from_bytes(data[56:58], "little")
    return [table + 56 * i for i in range(count) if data[table + 56 * i : table + 56 * i + 4] == b"\1\0\0\0"]


def shifted(data: bytes, distance: int) -> bytes:
    """A binary whose segments lie higher, as prelink leaves it."""
    result = bytearray(data)
    for place in load_headers(data):
        vaddr = int.from_bytes(data[place + 16 : place + 24], "little")
        result[place + 16 : place + 24] = (vaddr + distance).to_bytes(8, "little")
    return bytes(result)

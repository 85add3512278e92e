"""The compiled modules and their sources, run as Python, give the same answers."""

from pathlib import Path

import pytest

from tests.support import dump_tables
from tests.support.dwarf_corpus import FORMATS, small_file
from tests.support.fixture_files import BINARIES, PARTS
from tests.support.interpreted import run
from tests.support.needs import needs_compiled

pytestmark = [pytest.mark.process, needs_compiled]

CHOSEN = ["gcc-pie/ledger", "gcc-nopie-dwarf4/libresonance.so", "clang-pie/spectra", "clang-nopie-dwarf4-lld/ledger"]
CHOSEN += ["objects/x86_64-crel.o", "objects/riscv64.o"]
CHOSEN += ["twins/lld-all/twins", "twins/gold-all/twins"]
IN_PARTS = ["clang-dwarf5", "gcc-dwarf4", "dwz"]


@pytest.mark.full
def test_compiled_equals_interpreted(tmp_path: Path) -> None:
    """Every column and name that is decoded of real and of made files is the same in both modes."""
    paths = [str(BINARIES / name) for name in CHOSEN] + [str(PARTS / name / "ledger.debug") for name in IN_PARTS]
    for number, fmt in enumerate(FORMATS):
        paths.append(str(tmp_path / f"made-{number}"))
        Path(paths[-1]).write_bytes(small_file(fmt))
    printed = run(tmp_path, Path(dump_tables.__file__), *paths).splitlines()
    assert printed[0] == "False"
    assert printed[1:] == [f"{dump_tables.digest(dump_tables.table_of(path))} {path}" for path in paths]

"""Tables that the workers of a batch leave for one another: one that does not fit is not used."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symbolize.batch import tasks
from symbolize.batch.tasks import ADDRESSES, FOLDER, TABLE, WHOLE, RunTables
from symbolize.binaries import BinaryIndex, Companions
from symbolize.elf import ElfImage
from symbolize.storage.backend import LocalStorage
from symbolize.symbols import Binary, read_table
from tests.support.fixture_files import BINARIES, FIXTURES

LEDGER = BINARIES / "gcc-pie" / "ledger"
SPECTRA = BINARIES / "gcc-pie" / "spectra"


def opened(path: Path) -> Binary:
    """A binary of one file."""
    return Binary([ElfImage.open(str(path))], Companions(BinaryIndex([str(path.parent)]), [str(path)]))


class Interrupted(LocalStorage):
    """A place to which nothing more is written after `left` files."""

    left = 99

    def write(self, name: str) -> Any:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return super().write(name)


def found(place: LocalStorage, binary: Binary, vaddrs: Any, *, whole_only: bool = False) -> bool:
    """Whether there is a table of `binary` that answers for `vaddrs`."""
    return RunTables(place, whole_only).find(binary, vaddrs) is not None


@pytest.fixture
def place(tmp_path: Path) -> Interrupted:
    """Where tables are exchanged."""
    return Interrupted(str(tmp_path / "work"))


def test_a_table_answers_for_what_it_was_made_for(place: Interrupted) -> None:
    """For some of its addresses, and for no others; a whole one for all."""
    binary, both = opened(LEDGER), np.array([0x1000, 0x2000], np.uint64)
    RunTables(place, False).write(binary, binary.table(both), both)
    assert found(place, opened(LEDGER), both)
    assert found(place, opened(LEDGER), both[1:])
    assert not found(place, opened(LEDGER), both + np.uint64(1))
    assert not found(place, opened(LEDGER), np.array([0x1000, 0x2001], np.uint64))
    assert not found(place, opened(LEDGER), both, whole_only=True)
    RunTables(place, False).write(binary, binary.table(both[:0]), both[:0])
    assert not found(place, opened(LEDGER), both)
    RunTables(place, False).write(binary, binary.table(), None)
    assert found(place, opened(LEDGER), both + np.uint64(1), whole_only=True)
    # One for some addresses that is made after that is not taken for a whole one.
    RunTables(place, False).write(binary, opened(LEDGER).table(both), both)
    assert found(place, opened(LEDGER), both)
    assert not found(place, opened(LEDGER), both + np.uint64(1))
    assert sorted(place.names()) == [f"{FOLDER}/{binary.key}{ending}" for ending in (TABLE, ADDRESSES)]


@pytest.mark.parametrize("whole", [False, True])
def test_a_table_that_is_half_replaced(whole: bool, place: Interrupted) -> None:
    """One for more addresses, of which only the list could be written: the table before does not answer for them."""
    binary, few = opened(LEDGER), np.array([0x1000], np.uint64)
    more = np.array([0x1000, 0x2000], np.uint64)
    RunTables(place, False).write(binary, binary.table(few), few)
    place.left = 1
    with pytest.raises(KeyboardInterrupt):
        RunTables(place, False).write(binary, binary.table(more), None if whole else more)
    assert any(name.endswith(WHOLE if whole else ADDRESSES) for name in place.names())
    assert not found(place, opened(LEDGER), more)


def test_a_table_of_other_files(place: Interrupted) -> None:
    """A file that goes by the name of another binary is not used."""
    ledger, spectra, vaddrs = opened(LEDGER), opened(SPECTRA), np.array([0x1000], np.uint64)
    RunTables(place, False).write(ledger, ledger.table(vaddrs), vaddrs)
    for ending in (TABLE, ADDRESSES):
        os.rename(f"{place.url}/{FOLDER}/{ledger.key}{ending}", f"{place.url}/{FOLDER}/{spectra.key}{ending}")
    assert not found(place, spectra, vaddrs)


def test_a_table_of_which_a_further_file_has_changed(place: Interrupted, tmp_path: Path) -> None:
    """What a run that was interrupted left is not used if a .dwo file was replaced meanwhile."""
    folder = Path(shutil.copytree(FIXTURES / "parts" / "gcc-dwarf5", tmp_path / "bin"))
    binary = opened(folder / "ledger.debug")
    vaddrs = binary.images[0].code_ranges[0][-1:]
    RunTables(place, False).write(binary, binary.table(vaddrs), vaddrs)
    assert found(place, opened(folder / "ledger.debug"), vaddrs)
    for path in folder.rglob("*.dwo"):
        os.utime(path, (1, 1))
    assert not found(place, opened(folder / "ledger.debug"), vaddrs)


def test_tables_are_read_once_an_epoch(place: Interrupted, monkeypatch: pytest.MonkeyPatch) -> None:
    """For all tasks of it; in the next one what has come and changed meanwhile is seen."""
    binary, vaddrs = opened(LEDGER), np.array([0x1000], np.uint64)
    read: list[str] = []
    monkeypatch.setattr(tasks, "read_table", lambda path: (read.append(path), read_table(path))[1])
    tables = RunTables(place, False)
    for epoch, is_there in ((1, False), (1, False), (2, True), (2, True), (3, True)):
        tables.begin(epoch)
        assert (tables.find(opened(LEDGER), vaddrs) is not None) == is_there
        RunTables(place, False).write(binary, binary.table(vaddrs), vaddrs)
    assert len(read) == 2

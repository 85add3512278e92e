"""Breakpad symbol files that are written: our reader and Sentry's find in them what the table says."""

import posixpath
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from symbolize.elf import ElfImage
from symbolize.symbol_files import SymbolList, read_breakpad, read_module
from symbolize.symbol_files.breakpad import Module
from symbolize.symbol_files.breakpad_write import write_breakpad
from symbolize.symbols import Binary, SymbolListBinary
from symbolize.symbols.export import BREAKPAD, base_of, export
from tests.support.fixture_files import BINARIES
from tests.support.gsymutil import Frame, frames_of

PROGRAMS = ["aarch64/ledger", "clang-pie/ledger", "clang-nopie-dwarf4-lld/spectra", "gcc-o0/ledger", "gcc-pie/spectra"]


@pytest.fixture(params=PROGRAMS)
def written(request: pytest.FixtureRequest) -> tuple[bytes, list[int], list[list[Frame]]]:
    """A symbol file, addresses in it, and what the table says there."""
    with ElfImage.open(BINARIES / request.param) as image:
        binary = Binary([image])
        data = b"".join(export(binary, BREAKPAD))
        assert data == b"".join(export(binary, BREAKPAD))
        base, starts = base_of(binary), binary.table().starts()
        asked = np.unique(np.concatenate((starts, starts + np.uint64(1)))).tolist()
        return data, [vaddr - base for vaddr in asked], frames_of(binary.table(), asked)


def test_read_back(written: tuple[bytes, list[int], list[list[Frame]]]) -> None:
    """All frames at all borders of ranges (R392, Breakpad output)."""
    data, asked, expected = written
    listing = read_breakpad(data)
    assert listing.problems == []
    assert frames_of(SymbolListBinary("x", listing).table(), asked) == expected


def test_symbolic(written: tuple[bytes, list[int], list[list[Frame]]], tmp_path: Path) -> None:
    """Sentry's symbolic reads the same; it simplifies paths."""
    debuginfo = pytest.importorskip("symbolic.debuginfo")
    data, asked, expected = written
    (tmp_path / "x.sym").write_bytes(data)
    module = next(debuginfo.Archive.open(str(tmp_path / "x.sym")).iter_objects())
    cache = module.make_symcache()
    found = [[(each.symbol, each.full_path or "", each.line) for each in cache.lookup(address)] for address in asked]
    assert found == [[(name, simple(path), line) for name, path, line in frames] for frames in expected]
    about = read_module(data)
    assert about is not None
    assert module.code_id == about.build_id
    assert str(module.debug_id).replace("-", "").upper() + "0" == about.debug_id


def simple(path: str) -> str:
    """A path without steps up."""
    return posixpath.normpath(path) if path else ""


def test_names_cannot_make_records() -> None:
    """A line break in a name or path does not end its record."""
    begin, end = np.array([0x1000], np.uint64), np.array([0x1010], np.uint64)
    listing = SymbolList.of_functions(begin, end, [b"a\nFUNC 2000 10 0 b\r\0"])
    text = joined(write_breakpad(listing, Module("0" * 33, "", "x\ny"), "x86_64", 0x1000))
    assert text == ["MODULE Linux x86_64 000000000000000000000000000000000 x?y", "FUNC 0 10 0 a?FUNC 2000 10 0 b??"]


def joined(pieces: Sequence[bytes] | object) -> list[str]:
    """The lines of a file in pieces."""
    return b"".join(pieces).decode().splitlines()  # type: ignore[arg-type]

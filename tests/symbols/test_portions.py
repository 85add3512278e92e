"""Debug information that is walked in parts by several threads, and looked up in portions, gives the same answers."""

import random
from pathlib import Path

import numpy as np
import pytest

from symbolize import Symbolizer
from symbolize.core import parallel
from symbolize.core.arrays import UInt64
from symbolize.dwarf import decode
from symbolize.elf import ElfImage
from symbolize.formats import encode
from symbolize.formats.pprof import reader as loader
from symbolize.symbols import Frames, TableCache, binary, lookup
from symbolize.symbols.build import Builder
from tests.support.pprof_writer import Mapping, Place, profile

FIXTURES = Path(__file__).parents[2] / "fixtures"
PROGRAMS = ["gcc-pie/ledger", "twins/lld-all/twins", "clang-pie/spectra"]


def some_of(path: Path, count: int) -> UInt64:
    """Random addresses of the code, ascending."""
    with ElfImage.open(path) as image:
        begin, end = image.code_ranges
        every = np.concatenate([np.arange(*each, dtype=np.uint64) for each in zip(begin, end, strict=True)])
    return np.sort(np.random.default_rng(1).choice(every, min(count, len(every)), replace=False))


def told(frames: Frames) -> list[tuple[object, ...]]:
    """All that is said of each frame, and of each address."""
    names = list(zip(frames.functions.linkage, frames.functions.name, frames.functions.decl_line, strict=True))
    files = [*frames.files, b""]
    declared = [files[row] for row in frames.functions.decl_file]
    rows = zip(frames.function, frames.file, frames.line, frames.column, strict=True)
    found = [(*names[f], declared[f], files[file], line, column) for f, file, line, column in rows]
    return [
        (found[begin:end], folded)
        for begin, end, folded in zip(frames.offsets, frames.offsets[1:], frames.folded, strict=False)
    ]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.full
def test_portions(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Large debug information is looked up a few units at a time, also with a cache, in which no whole table is put."""
    path = FIXTURES / "bin" / name
    vaddrs = some_of(path, 60)
    expected = told(lookup(path, vaddrs))
    assert any(frames for frames, _ in expected)
    counted: list[int] = []
    monkeypatch.setattr(binary, "MAX_AT_ONCE", 2)
    build = Builder.build
    monkeypatch.setattr(Builder, "build", lambda self, asked, callers: counted.append(len(asked)) or build(self, asked))
    cache = TableCache(tmp_path)
    for _ in range(2):
        assert told(lookup(path, vaddrs, cache=cache)) == expected
    assert len(counted) > 2 * 2
    shuffled = vaddrs.copy()
    random.Random(1).shuffle(shuffled)
    of = dict(zip(vaddrs.tolist(), expected, strict=True))
    assert told(lookup(path, shuffled)) == [of[vaddr] for vaddr in shuffled.tolist()]


def test_profile_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile is symbolized to the same bytes, and code that was folded is reported once."""
    folder = FIXTURES / "bin" / "twins" / "lld-all"
    with ElfImage.open(folder / "twins") as image:
        build_id = image.build_id or ""
    places = [Place(vaddr, 1) for vaddr in some_of(folder / "twins", 100).tolist()]
    made = loader.load(memoryview(profile([Mapping(0, 1 << 63, 0, "/twins", build_id)], [(places, [1])])), "test")
    results = []
    for size in (1 << 29, 2):
        monkeypatch.setattr(binary, "MAX_AT_ONCE", size)
        with Symbolizer(folder) as symbolizer:
            results.append(symbolizer.symbolize(made))
    whole, parts = results
    assert encode(parts.profile) == encode(whole.profile)
    assert len(whole.report.folded) > 2
    folded = [
        [(row.code, row.names, row.shown, row.value, row.rows.tolist()) for row in each.report.folded]
        for each in results
    ]
    assert folded[0] == folded[1]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_threads(name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decoded does not depend on the number of threads, nor on the size of the parts that they walk."""

    def columns() -> list[object]:
        with ElfImage.open(FIXTURES / "bin" / name) as image:
            builder = Builder([image], None)
            assert builder.dwarf is not None
            decoded = builder.dwarf.decode()
            builder.close()
            return [np.asarray(column).tolist() for column in vars(decoded).values()]

    expected = columns()
    monkeypatch.setattr(parallel.os, "sched_getaffinity", lambda _: range(threads))
    monkeypatch.setattr(decode, "PART_SIZE", 1)
    assert columns() == expected

"""The tables on disk: found again, shared, bounded, and never believed when damaged."""

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import numpy as np
import pytest

from symbolize.elf import ElfImage
from symbolize.symbols import Binary, TableCache, build_table
from symbolize.symbols.answer import Answer
from symbolize.symbols.cache import SEEN, facts_of, source_of, table_name
from symbolize.symbols.table import Frames, SymbolTable
from symbolize.symbols.table_file import FORMAT, PREFIX, DamagedTable, TableFacts, crc32, is_sound, read_table
from tests.support.dump_tables import digest, table_of
from tests.support.elf_writer import ALLOC, NOTE, Section, Symbol, build_id_note, elf_file, text
from tests.support.fixture_files import BINARIES
from tests.support.lookup import frames_of
from tests.support.tables import write_table_at

LEDGER = BINARIES / "gcc-pie" / "ledger"


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    """A binary of the test's own."""
    return Path(shutil.copy(LEDGER, tmp_path / "ledger"))


@pytest.fixture
def cache(tmp_path: Path) -> TableCache:
    """An empty cache."""
    return TableCache(tmp_path / "cache")


def vaddrs_of(image: ElfImage) -> list[int]:
    """Addresses all over the code of a file."""
    begin, end = image.code_ranges
    return list(range(int(begin[0]), int(end[-1]), 7))


def ask(path: Path, cache: TableCache | None, vaddrs: list[int]) -> object:
    """The frames at addresses of the file `path`."""
    with ElfImage.open(path) as image:
        return frames_of(Binary([image], None, cache).table(np.array(vaddrs, np.uint64)), vaddrs)


def tables(cache: TableCache) -> list[Path]:
    """The table files of a cache."""
    return sorted(Path(cache.folder).glob("*.symtab"))


def told(answer: Answer) -> tuple[list[int], list[bytes], list[int]]:
    """How many frames there are up to each address, and their names and lines."""
    frames = answer.frames
    return frames.offsets.tolist(), [frames.functions.linkage[f] for f in frames.function], frames.line.tolist()


def test_second_visit_builds_the_table_and_the_third_reads_it(
    binary: Path, cache: TableCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few addresses are looked up alone at first; the answers never differ."""
    with ElfImage.open(binary) as image:
        vaddrs = vaddrs_of(image)[:3]
    monkeypatch.setattr("symbolize.symbols.binary.WHOLE_SHARE", 1.1)
    expected = ask(binary, None, vaddrs)
    assert ask(binary, cache, vaddrs) == expected
    assert not tables(cache)
    assert ask(binary, cache, vaddrs) == expected
    assert len(tables(cache)) == 1
    assert not list(Path(cache.folder).glob("*" + SEEN))
    monkeypatch.setattr("symbolize.symbols.build.Builder", None)  # decoding would fail
    assert ask(binary, cache, vaddrs) == expected
    assert cache.problems == []


def test_addresses_all_over_build_the_table_at_once(binary: Path, cache: TableCache) -> None:
    """What needs most of the debug information anyway is kept."""
    with ElfImage.open(binary) as image:
        vaddrs = vaddrs_of(image)
    expected = ask(binary, None, vaddrs)
    assert ask(binary, cache, vaddrs) == expected
    assert len(tables(cache)) == 1
    assert ask(binary, cache, vaddrs) == expected


def test_prepared_tables_are_mapped(binary: Path, cache: TableCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stays is the file that all processes share, also in the one that made it; else what was made."""
    with ElfImage.open(binary) as image:
        made = Binary([image], None, cache)
        assert made.prepare()
        (path,) = tables(cache)
        assert made.table().file is not None
        monkeypatch.setattr(TableCache, "load", lambda *_: None)  # another process made room
        path.unlink()
        again = Binary([image], None, cache)
        assert again.prepare()
        assert again.table().file is None


def test_written_table_is_the_same(binary: Path, cache: TableCache) -> None:
    """Every column, name and problem comes out of the file as it went in."""
    with ElfImage.open(binary) as image:
        table = build_table([image])
        table.problems = ["a problem with a strange name: \udcff\n"]
        facts = facts_of([image])
    cache.store(table, facts)
    found = cache.load(facts)
    assert found is not None
    for name, value in vars(table).items():
        if isinstance(value, np.ndarray):
            assert getattr(found, name).tolist() == value.tolist(), name
        elif name != "file":
            assert getattr(found, name) == value
    (path,) = tables(cache)
    assert facts.build_id in path.name
    assert path.stat().st_size < 2 * binary.stat().st_size


def test_other_contents_are_another_table(binary: Path, cache: TableCache) -> None:
    """A file that was changed in place, or has the build id only, is not answered from the table of another."""
    with ElfImage.open(binary) as image:
        facts = facts_of([image])
        cache.store(build_table([image]), facts)
    data = bytearray(binary.read_bytes())
    data[len(data) // 2] ^= 0xFF
    binary.write_bytes(data)
    with ElfImage.open(binary) as image:
        assert facts_of([image]) != facts
        assert cache.load(facts_of([image])) is None


@pytest.mark.parametrize("has_build_id", [True, False])
def test_other_build_of_equal_size_and_time(has_build_id: bool, tmp_path: Path, cache: TableCache) -> None:
    """Packers give all files one time; two builds then differ where nobody looks, unless a build id tells them."""

    def build(name: str) -> bytes:
        note = [Section(".note", build_id_note(name.encode() * 20), NOTE, ALLOC)] if has_build_id else []
        front = Section(".front", bytes(200_001))
        return elf_file([text(), *note, front, Section(".rear", bytes(200_003))], symbols=[Symbol(name, 0x1000, 16)])

    answers = []
    for name in "fg":
        # Moved into its place, as installers do it.
        (tmp_path / "new").write_bytes(build(name))
        os.utime(tmp_path / "new", (0, 0))
        os.replace(tmp_path / "new", tmp_path / "app")
        with ElfImage.open(tmp_path / "app") as image:
            table = Binary([image], None, cache).table()
            answers.append(frames_of(table, [0x1000])[0][0].name)
    assert answers == ["f", "g"]
    with ElfImage.open(shutil.copy2(tmp_path / "app", tmp_path / "copy")) as image:
        assert (cache.load(facts_of([image])) is not None) == has_build_id


def test_problems_name_the_file_as_it_is_called_now(binary: Path, cache: TableCache) -> None:
    """A table is kept for contents, whatever their path; what it complains of lies where the file is now."""
    with ElfImage.open(binary) as image:
        image.note("something is wrong")
        Binary([image], None, cache).table()
    moved = binary.rename(binary.with_name("moved"))
    with ElfImage.open(moved) as image:
        again = Binary([image], None, cache)
        assert again.is_cached()
        assert again.table().problems == [f"{moved}: something is wrong"]


@pytest.mark.parametrize("place", [0, 9, 13, 17, 25, 40, 300, -1, -500])
def test_damaged_table_is_removed_and_made_anew(place: int, binary: Path, cache: TableCache) -> None:
    """A flipped bit anywhere is noticed."""
    with ElfImage.open(binary) as image:
        vaddrs = vaddrs_of(image)
    expected = ask(binary, cache, vaddrs)
    (path,) = tables(cache)
    sound = path.read_bytes()
    damaged = bytearray(sound)
    damaged[place] ^= 0x10
    path.write_bytes(damaged)
    assert ask(binary, cache, vaddrs) == expected
    assert any("removed" in problem for problem in cache.problems)
    assert path.stat().st_size == len(sound)
    read_table(str(path))


@pytest.mark.parametrize("keep", [0, 5, PREFIX.size, 200, -1])
def test_cut_off_table_is_noticed(keep: int, binary: Path, cache: TableCache) -> None:
    """So is a file that ends early."""
    with ElfImage.open(binary) as image:
        facts = facts_of([image])
        cache.store(build_table([image]), facts)
    (path,) = tables(cache)
    path.write_bytes(path.read_bytes()[:keep])
    assert cache.load(facts) is None
    assert not path.exists()


def test_least_recently_used_goes_first(tmp_path: Path, binary: Path) -> None:
    """Above its limit the cache drops what was not used for longest, never what it has just written."""
    variants = sorted(BINARIES.glob("*/ledger"))[:4]
    cache = TableCache(tmp_path / "cache")
    facts = []
    for age, path in enumerate(variants):
        with ElfImage.open(path) as image:
            facts.append(facts_of([image]))
            cache.store(build_table([image]), facts[-1])
        (newest,) = [path for path in tables(cache) if path.stat().st_mtime > time.time() - 50]
        os.utime(newest, (0, 10_000 * (age + 1)))
    assert cache.load(facts[0]) is not None  # was the oldest, now the most recently used
    sizes = {path: path.stat().st_size for path in tables(cache)}
    small = TableCache(tmp_path / "cache", sum(sizes.values()) - 1)
    assert small.evict() == 1
    assert [small.load(fact) is not None for fact in facts] == [True, False, True, True]
    tiny = TableCache(tmp_path / "cache", 1)
    with ElfImage.open(binary) as image:
        tiny.store(build_table([image]), facts_of([image]))
        assert len(tables(tiny)) == 1
        assert tiny.load(facts_of([image])) is not None


def test_unusable_folder_costs_nothing_but_time(binary: Path, tmp_path: Path) -> None:
    """Where nothing can be written the answers are the same, and the reason is told."""
    (tmp_path / "cache").write_text("a file where the folder should be")
    cache = TableCache(tmp_path / "cache")
    with ElfImage.open(binary) as image:
        vaddrs = vaddrs_of(image)
    assert ask(binary, cache, vaddrs) == ask(binary, None, vaddrs)
    assert [problem.partition(" (")[0] for problem in cache.problems] == [
        f"{cache.folder}: cannot be written, tables are not kept"
    ]
    assert ask(binary, TableCache(tmp_path / "cache"), vaddrs[:1]) == ask(binary, None, vaddrs[:1])


def test_unusable_folder_is_told_at_the_first_visit(binary: Path, tmp_path: Path) -> None:
    """Also where no table is made yet: without a note that the binary was seen, none ever would be."""
    (tmp_path / "cache").write_text("a file where the folder should be")
    cache = TableCache(tmp_path / "cache")
    with ElfImage.open(binary) as image:
        assert not cache.was_seen(facts_of([image]))
    assert len(cache.problems) == 1


def test_folder_of_somebody_else_is_read(binary: Path, cache: TableCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table whose last use cannot be noted is used all the same."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with ElfImage.open(binary) as image:
        facts = facts_of([image])
        assert cache.store(build_table([image]), facts)
    (path,) = tables(cache)
    os.utime(path, (0, 0))
    monkeypatch.setattr("os.utime", refuse)
    assert cache.load(facts) is not None
    assert cache.problems == []


def test_use_is_no_change(binary: Path, cache: TableCache) -> None:
    """That a table was used is noted such that nobody who has it mapped takes it for changed (R280)."""
    with ElfImage.open(binary) as image:
        facts = facts_of([image])
        assert cache.store(build_table([image]), facts)
    (path,) = tables(cache)
    os.utime(path, (0, 0))
    table = cache.load(facts)
    assert table is not None
    assert not table.has_changed
    assert path.stat().st_mtime == 0
    assert path.stat().st_atime > 0


def broken(vaddrs: object) -> Frames:
    """What looking up in a file that changes meanwhile may come to."""
    raise IndexError(vaddrs)


def test_ready_table_whose_file_changes(tmp_path: Path) -> None:
    """A table that was made ahead answers, and if its file changes a new one is made of the binary, whatever came of
    reading the old one (R280)."""
    with ElfImage.open(LEDGER) as image, ElfImage.open(BINARIES / "gcc-o0" / "ledger") as other:
        vaddrs = np.array(vaddrs_of(image)[:200], np.uint64)
        write_table_at(build_table([other]), facts_of([other]), str(tmp_path / "ready"))
        ready, _ = read_table(str(tmp_path / "ready"))
        ahead = SimpleNamespace(find=lambda binary, vaddrs: ready)
        binaries = [Binary([image]) for _ in range(4)]
        expected = told(binaries[0].answer(vaddrs))
        assert told(binaries[1].answer(vaddrs, tables=ahead)) != expected
        os.utime(tmp_path / "ready", (1, 1))
        assert told(binaries[2].answer(vaddrs, tables=ahead)) == expected
        ready.lookup = broken  # type: ignore[method-assign]
        assert told(binaries[3].answer(vaddrs, tables=ahead)) == expected


def test_order_of_the_files_counts(cache: TableCache) -> None:
    """Of several files with DWARF the first is read, so the table of one order is not that of the other."""
    with ElfImage.open(LEDGER) as first, ElfImage.open(BINARIES / "gcc-o0" / "ledger") as second:
        facts = facts_of([first, second])
        cache.store(build_table([first, second]), facts)
        assert cache.load(facts) is not None
        assert cache.load(facts._replace(sources=facts.sources[::-1])) is None


def test_table_of_other_files_is_not_believed(binary: Path, cache: TableCache) -> None:
    """A sound table under the name of another binary, as a copy or a colliding name leaves it, answers nothing."""
    other = BINARIES / "gcc-o0" / "ledger"
    with ElfImage.open(other) as image:
        vaddrs = vaddrs_of(image)
    ask(other, cache, vaddrs)
    (path,) = tables(cache)
    with ElfImage.open(binary) as image:
        ask(binary, cache, vaddrs_of(image))
    (wrong,) = (each for each in tables(cache) if each != path)
    shutil.copy(wrong, path)
    assert ask(other, cache, vaddrs) == ask(other, None, vaddrs)
    assert any("was made from other files" in problem for problem in cache.problems)


@pytest.mark.parametrize("size", [100, 4096, 5000, 1 << 20])
def test_files_that_differ_anywhere_at_their_ends(size: int) -> None:
    """Of a file without a build id the first and the last bytes are part of its identity, also of a large one."""
    data = bytearray(elf_file([Section("x", bytes(size))]))
    checks = {source_of(ElfImage.parse(memoryview(bytes(data)), "x"))["check"]}
    for at in (9, len(data) - 1, len(data) - 50):
        data[at] ^= 1
        checks.add(source_of(ElfImage.parse(memoryview(bytes(data)), "x"))["check"])
    assert len(checks) == 4


MADE_UP = {
    "a function is its own caller": ("node_parent", 0, 0),
    "a function calls an earlier one": ("node_parent", 1, 2),
    "an unknown function": ("node_function", 0, 1 << 20),
    "a negative function": ("node_function", 0, -1),
    "an unknown file of a call": ("node_call_file", 0, 1 << 20),
    "an unknown file of a declaration": ("function_decl_file", 0, 1 << 20),
    "a file below none": ("function_decl_file", 0, -2),
    "an unknown linked name": ("function_linkage", 0, 1 << 20),
    "an unknown name": ("function_name", 0, 1 << 20),
    "an unknown path": ("file_path", 0, 1 << 20),
    "an unknown name of shared code": ("folded_name", 0, 1 << 20),
    "an unknown path of shared code": ("folded_path", 0, 1 << 20),
    "unknown evidence of shared code": ("folded_evidence", 0, 4),
    "blocks in disorder": ("block_start", 0, (1 << 64) - 1),
    "blocks that overlap": ("block_offset", 1, (1 << 32) - 1),
    "blocks that leave something out": ("block_offset", 0, 1),
    "blocks beyond the ranges": ("block_offset", -1, (1 << 32) - 1),
    "a call by no function": ("call_caller", 0, -1),
    "a call by an unknown function": ("call_caller", 0, 1 << 20),
    "a call of a function below none": ("call_callee", 0, -2),
    "a call of an unknown function": ("call_callee", 0, 1 << 20),
    "calls in disorder": ("call_return", 0, (1 << 64) - 1),
    "texts beyond the end": ("text_offset", -1, (1 << 32) - 1),
    "names of shared code beyond the end": ("folded_offset", -1, (1 << 20)),
}


@pytest.mark.parametrize("case", MADE_UP)
def test_made_up_table_is_damaged(case: str, tmp_path: Path) -> None:
    """A table whose rows lead out of a column, or in a circle, is refused before anything is looked up."""
    name, row, value = MADE_UP[case]
    with ElfImage.open(BINARIES / "callers" / "gcc-lld" / "callers") as image:
        table, facts = build_table([image]), facts_of([image])
    column = getattr(table, name).copy()
    column[row] = value
    write_table_at(replace(table, **{name: column}), facts, str(tmp_path / "table"))
    with pytest.raises(DamagedTable, match="do not agree"):
        read_table(str(tmp_path / "table"))


SHORTER = [
    "block_start",
    "block_offset",
    "node_function",
    "node_call_file",
    "node_call_line",
    "node_call_column",
    "function_name",
    "function_linkage",
    "function_decl_file",
    "function_decl_line",
    "folded_begin",
    "folded_end",
    "folded_offset",
    "folded_evidence",
    "folded_name",
    "folded_path",
    "folded_line",
    "doubtful_begin",
]


def test_columns_of_other_lengths_are_damage() -> None:
    """Columns of one thing have one length."""
    with ElfImage.open(BINARIES / "twins" / "gcc-icf" / "twins") as image:
        table = build_table([image])
    table = replace(table, doubtful_begin=np.zeros(2, np.uint64), doubtful_end=np.zeros(2, np.uint64))
    assert is_sound(table)
    assert [name for name in SHORTER if is_sound(replace(table, **{name: getattr(table, name)[:-1]}))] == []


def test_table_that_cannot_be_read(binary: Path, cache: TableCache) -> None:
    """What stands under the name of a table and cannot be opened is reported, stays, and costs time alone."""
    with ElfImage.open(binary) as image:
        vaddrs, name = vaddrs_of(image), table_name(facts_of([image]))
    folder = Path(cache.folder) / f"{name}.symtab"
    folder.mkdir(parents=True)
    assert ask(binary, cache, vaddrs) == ask(binary, None, vaddrs)
    assert cache.problems[0].startswith(f"{folder}: ")
    assert folder.is_dir()


def test_full_disk_leaves_nothing_behind(binary: Path, cache: TableCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that cannot be written to its end leaves no file, and the answers are the same."""

    def fill(file: BinaryIO, table: SymbolTable, facts: TableFacts) -> int:
        file.write(b"a part")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("symbolize.symbols.cache.write_table", fill)
    with ElfImage.open(binary) as image:
        vaddrs = vaddrs_of(image)
        assert not cache.store(build_table([image]), facts_of([image]))
    assert list(Path(cache.folder).iterdir()) == []
    assert "No space left on device" in cache.problems[0]
    assert ask(binary, cache, vaddrs) == ask(binary, None, vaddrs)


@pytest.mark.parametrize("strings", [0, 1])
def test_table_without_strings_is_damaged(strings: int, binary: Path, tmp_path: Path) -> None:
    """String 0 is always there; a file that somebody made up without it is refused."""
    with ElfImage.open(binary) as image:
        table, facts = build_table([image]), facts_of([image])
    made_up = replace(table, text=np.zeros(0, np.uint8), text_offset=np.zeros(strings, np.uint32))
    write_table_at(made_up, facts, str(tmp_path / "table"))
    with pytest.raises(DamagedTable):
        read_table(str(tmp_path / "table"))


def test_columns_at_odd_offsets_are_damage(binary: Path, tmp_path: Path) -> None:
    """A load of a number that is not aligned is undefined, so a table with a column at an odd offset is none."""
    with ElfImage.open(binary) as image:
        write_table_at(build_table([image]), facts_of([image]), str(tmp_path / "table"))
    data = (tmp_path / "table").read_bytes()
    magic, version, header_size, size, _ = PREFIX.unpack(data[: PREFIX.size])
    header = json.loads(data[PREFIX.size : PREFIX.size + header_size])
    kind, offset, count = header["columns"]["node_parent"]
    header["columns"]["node_parent"] = kind, offset + 1, count
    body = json.dumps(header).encode().ljust(header_size) + data[PREFIX.size + header_size :]
    prefix = PREFIX.pack(magic, version, header_size, size, crc32(body))
    (tmp_path / "table").write_bytes(prefix + body)
    with pytest.raises(DamagedTable, match="is not aligned"):
        read_table(str(tmp_path / "table"))


def test_collect_removes_what_was_left_behind(cache: TableCache) -> None:
    """Unfinished files and tables of older versions go, what is in use stays."""
    folder = Path(cache.folder)
    old = folder.parent / "tables-0"
    old.mkdir(parents=True)
    (old / "x.symtab").write_bytes(b"old")
    folder.mkdir()
    unfinished, fresh = folder / ".a.symtab.123", folder / ".b.symtab.456"
    for path in (unfinished, fresh):
        path.write_bytes(b"part")
    os.utime(unfinished, (0, 0))
    assert cache.collect() == 2
    assert not unfinished.exists()
    assert fresh.exists()
    assert not (old / "x.symtab").exists()


def test_writing_a_table_removes_what_dead_processes_left(binary: Path, cache: TableCache) -> None:
    """Unfinished tables do not pile up beside the limit."""
    folder = Path(cache.folder)
    folder.mkdir(parents=True)
    unfinished, fresh = folder / ".a.symtab.123", folder / ".b.symtab.456"
    for path in (unfinished, fresh):
        path.write_bytes(b"part")
    os.utime(unfinished, (0, 0))
    with ElfImage.open(binary) as image:
        cache.store(build_table([image]), facts_of([image]))
    assert not unfinished.exists()
    assert fresh.exists()


PINNED = {
    3: "bf7d5d4a",
    4: "6e353161",
    5: "6e353161",
}
"""For each FORMAT a digest of what the tables of some fixtures hold."""


def test_format_is_raised_when_tables_change() -> None:
    """Kept tables of an older version are not read by one that would make other ones of the same files."""
    files = ["gcc-pie/ledger", "clang-nopie-dwarf4-lld/spectra", "gcc-o0/ledger", "twins/lld-all/twins"]
    digests = [digest(table_of(str(BINARIES / name))) for name in files]
    told = "what is decoded has changed: raise FORMAT in symbols/table_file.py, and pin the new digest here"
    assert PINNED.get(FORMAT) == f"{crc32(''.join(digests).encode()):08x}", told


def test_verify_finds_the_damaged(binary: Path, cache: TableCache) -> None:
    """Every table is read; a damaged one is told and removed."""
    for path in (binary, BINARIES / "gcc-o0" / "ledger"):
        with ElfImage.open(path) as image:
            cache.store(build_table([image]), facts_of([image]))
    damaged = tables(cache)[0]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\x01")
    assert sorted(problem != "" for _, problem in cache.verify()) == [False, True]
    assert not damaged.exists()


def test_verify_finds_what_goes_by_another_name(binary: Path, cache: TableCache) -> None:
    """A table that was renamed, or copied over another, would answer for the wrong binary."""
    with ElfImage.open(binary) as image:
        cache.store(build_table([image]), facts_of([image]))
    (table,) = tables(cache)
    renamed = Path(shutil.copy(table, table.with_name("no-build-id-0000000000000000.symtab")))
    assert dict(cache.verify()) == {str(table): "", str(renamed): "goes by the name of another table; removed"}
    assert tables(cache) == [table]


def test_what_is_at_hand(binary: Path, cache: TableCache) -> None:
    """A whole table is at hand once it was made or is in the cache; that of some addresses is not."""
    with ElfImage.open(binary) as image:
        vaddrs = np.array(vaddrs_of(image)[:1], np.uint64)
        for given in (None, cache):
            asked = Binary([image], None, given)
            assert not asked.is_cached()
            asked.table(vaddrs)
            assert not asked.is_cached()
            asked.prepare()
            assert asked.is_cached()
        assert Binary([image], None, cache).is_cached()
        assert not Binary([image], None, None).is_cached()

"""Symbol tables that machines share through an object store."""

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symbolize.cli import main
from symbolize.core.errors import UsageError
from symbolize.elf import ElfImage
from symbolize.storage.backend import LocalStorage, ObjectStorage
from symbolize.storage.shared_cache import MAX_FAILURES, SharedCache, open_shared_cache, open_tables
from symbolize.symbols import Binary, build_table
from symbolize.symbols.cache import SAMPLE_SIZE, SAMPLES, content_of, facts_of
from symbolize.symbols.table import SymbolTable
from symbolize.symbols.table_file import PREFIX, TableFacts, crc32
from tests.support.buckets import Bucket, impatient
from tests.support.fixture_files import BINARIES, FIXTURES, PARTS
from tests.support.lookup import finder_of, frames_of
from tests.support.tables import write_table_at

LEDGER = BINARIES / "gcc-pie" / "ledger"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A binary with a build id."""
    return Path(shutil.copy2(LEDGER, tmp_path / "ledger"))


@pytest.fixture
def machine(bucket: Bucket, tmp_path: Path) -> Callable[[str], SharedCache]:
    """Makes the cache of a machine, by its name."""

    def make(name: str) -> SharedCache:
        cache = open_shared_cache(f"{bucket.url}/tables", str(tmp_path / name))
        assert isinstance(cache, SharedCache) and isinstance(cache.storage, ObjectStorage)
        return cache

    return make


def ask(path: Path, cache: SharedCache | None) -> object:
    """The frames at addresses all over a file."""
    with ElfImage.open(path) as image:
        begin, end = image.code_ranges
        vaddrs = list(range(int(begin[0]), int(end[-1]), 7))
        return frames_of(Binary([image], None, cache).table(np.array(vaddrs, np.uint64)), vaddrs)


def table_key(bucket: Bucket) -> str:
    """The one object in the bucket."""
    [key] = bucket.keys()
    return f"{bucket.url}/{key}"


def replace_table(path: Path, bucket: Bucket, tmp_path: Path, change: Callable[[Any, TableFacts], TableFacts]) -> None:
    """Put a table in place of the shared one that has a right checksum and was changed before."""
    with ElfImage.open(path) as image:
        table, facts = build_table([image]), facts_of([image])
        facts = facts._replace(content=content_of([image]))
    (tmp_path / "made-up").unlink(missing_ok=True)
    write_table_at(table, change(table, facts), str(tmp_path / "made-up"))
    bucket.system.pipe_file(table_key(bucket), (tmp_path / "made-up").read_bytes())


def test_second_machine_does_not_build(
    ledger: Path, machine: Callable[[str], SharedCache], bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one machine has built, another reads; once it is there, the store is not asked again."""
    first, second = machine("a"), machine("b")
    expected = ask(ledger, None)
    assert ask(ledger, first) == expected
    assert table_key(bucket).startswith(f"{bucket.url}/tables/tables-")
    monkeypatch.setattr("symbolize.symbols.build.Builder", None)  # decoding would fail
    assert ask(ledger, pickle.loads(pickle.dumps(second))) == expected
    assert [file.name[-7:] for file in Path(second.folder).iterdir()] == [".symtab"]
    monkeypatch.setattr(second, "storage", None)
    assert ask(ledger, second) == expected
    assert first.problems == second.problems == []


def test_copy_with_another_time(
    ledger: Path, machine: Callable[[str], SharedCache], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of the file has the table, wherever it is and whenever it was modified (R393, shared tables)."""
    expected = ask(ledger, machine("a"))
    other = tmp_path / "elsewhere" / "renamed"
    other.parent.mkdir()
    other.write_bytes(ledger.read_bytes())
    os.utime(other, (1, 1))
    monkeypatch.setattr("symbolize.symbols.build.Builder", None)
    cache = machine("b")
    assert ask(other, cache) == expected
    monkeypatch.setattr(cache, "storage", None)  # from now on its own folder has it
    assert ask(other, cache) == expected and cache.problems == []


def test_other_companions(
    machine: Callable[[str], SharedCache], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that was made with another supplementary file than there is beside the binary is not used (R393, shared
    tables)."""
    path = Path(shutil.copytree(PARTS / "dwz", tmp_path / "dwz")) / "ledger.debug"

    def table(cache: SharedCache) -> SymbolTable:
        with ElfImage.open(path) as image:
            return Binary([image], finder_of(path), cache).table()

    assert table(machine("a")).problems == []
    with monkeypatch.context() as patch:
        patch.setattr("symbolize.symbols.build.Builder", None)
        assert table(machine("b")).problems == []  # that of the first
    (path.parent / "common.dwz").unlink()
    for name in ("b", "c"):  # one has the table in its own folder
        assert any("common.dwz" in problem for problem in table(machine(name)).problems)


def test_one_other_byte(ledger: Path, machine: Callable[[str], SharedCache], bucket: Bucket, tmp_path: Path) -> None:
    """A file with the build id, the size and the samples of another is not taken for it."""
    ask(ledger, machine("a"))
    data = bytearray(ledger.read_bytes())
    data[(len(data) - SAMPLE_SIZE) * (SAMPLES - 2) // (SAMPLES - 1) + SAMPLE_SIZE + 100] ^= 1  # between two samples
    other = tmp_path / "other"
    other.write_bytes(data)
    with ElfImage.open(ledger) as one, ElfImage.open(other) as another:
        first, second = facts_of([one]), facts_of([another])
        assert (first.build_id, first.sources[0]["check"]) == (second.build_id, second.sources[0]["check"])
    ask(other, machine("b"))
    assert len(bucket.keys()) == 2


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.full
def test_commands(
    bucket: Bucket, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, jobs: str
) -> None:
    """`index` on one machine publishes the tables that others use, with the URL from the command line, the environment
    or the user's settings."""
    url, profile = f"{bucket.url}/tables", str(FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof")
    shutil.copytree(BINARIES / "gcc-pie", tmp_path / "bin", copy_function=shutil.copyfile)
    folders = [(BINARIES / "gcc-pie", "builder", "3 tables made"), (tmp_path / "bin", "other", "3 were there")]
    for folder, name, said in folders:
        # Not in this process: workers have the environment of its first ones, with another store.
        command = [sys.executable, "-m", "symbolize", "index", folder, "--cache", url, "-j", jobs]
        environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / name)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert (done.returncode, len(bucket.keys())) == (0, 3), done.stderr
        assert said in done.stderr
    monkeypatch.setattr("symbolize.symbols.build.Builder", None)  # decoding would fail
    arguments = [profile, "-q", "-b", str(tmp_path / "bin")]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "third"))
    assert main([*arguments, "-o", str(tmp_path / "1.gz"), "--cache", url, "--fail-under", "20"]) == 0
    monkeypatch.delenv("SYMBOLIZE_NO_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fourth"))
    (tmp_path / "config" / "symbolize").mkdir(parents=True)
    (tmp_path / "config" / "symbolize" / "symbolize.toml").write_text(f'cache = "{url}"\n')
    assert main(["view", *arguments, "-o", str(tmp_path / "2.html")]) == 0
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fifth"))
    monkeypatch.setenv("SYMBOLIZE_CACHE", url)
    assert main([*arguments, "-o", str(tmp_path / "3.gz"), "--fail-under", "20"]) == 0
    assert capsys.readouterr().err == ""


def test_location(machine: Callable[[str], SharedCache], tmp_path: Path) -> None:
    """What another process opens the same tables by, as the workers of `serve` do."""
    cache = machine("a")
    again = open_tables(cache.location, 5)
    assert isinstance(again, SharedCache) and (again.storage.url, again.limit) == (cache.storage.url, 5)
    shared = open_shared_cache(f"file://{tmp_path}/shared", str(tmp_path / "own"))
    folder = open_tables(shared.location)
    assert isinstance(folder, SharedCache) and folder.storage.url == str(tmp_path / "shared")
    assert open_tables(str(tmp_path / "x")).location == str(tmp_path / "x")


def test_missing_table_is_asked_for_once(ledger: Path, machine: Callable[[str], SharedCache]) -> None:
    """A table that is not there is not asked for again, until misses are forgotten."""
    cache = machine("a")
    with ElfImage.open(ledger) as image:
        facts = facts_of([image])
    assert cache.load(facts, lambda: "ab" * 32) is None
    asked: list[str] = []
    cache.storage.size = asked.append  # type: ignore[assignment, method-assign]
    assert cache.load(facts, lambda: "ab" * 32) is None and asked == [] and cache.problems == []
    cache.forget_misses()
    assert cache.load(facts, lambda: "ab" * 32) is None and len(asked) == 1


def damage_cut(data: bytes) -> bytes:
    """Half of a table."""
    return data[: len(data) // 2]


def damage_bit(data: bytes) -> bytes:
    """A table with another bit somewhere."""
    return data[:5000] + bytes([data[5000] ^ 1]) + data[5001:]


def damage_empty(data: bytes) -> bytes:
    """Nothing."""
    return b""


def damage_header(data: bytes) -> bytes:
    """A header that says something else, under a right checksum."""
    body = data[PREFIX.size :].replace(b'"has_names"', b'"has_lames"', 1)
    fields = PREFIX.unpack(data[: PREFIX.size])
    return PREFIX.pack(*fields[:4], crc32(body)) + body


@pytest.mark.parametrize("damage", [damage_cut, damage_bit, damage_empty, damage_header])
def test_damaged_table_is_not_used(
    ledger: Path, machine: Callable[[str], SharedCache], bucket: Bucket, damage: Callable[[bytes], bytes]
) -> None:
    """A damaged table is a problem, the answers are right, and a sound one takes its place."""
    expected = ask(ledger, machine("a"))
    key = table_key(bucket)
    sound = bucket.system.cat_file(key)
    bucket.system.pipe_file(key, damage(sound))
    cache = machine("b")
    assert ask(ledger, cache) == expected
    [problem] = cache.problems
    assert problem.startswith(f"{key}: ") and problem.endswith("; it is not used")
    assert bucket.system.cat_file(key) == sound
    assert [file.name[-7:] for file in Path(cache.folder).iterdir()] == [".symtab"]


def test_table_of_another_binary_is_not_used(
    ledger: Path, machine: Callable[[str], SharedCache], bucket: Bucket, tmp_path: Path
) -> None:
    """A sound table under the name of another is refused."""
    expected = ask(ledger, machine("a"))
    for number, changed in enumerate(({"build_id": "ab" * 20}, {"content": "ab" * 32}, {"sources": []})):
        replace_table(ledger, bucket, tmp_path, lambda table, facts, changed=changed: facts._replace(**changed))
        cache = machine(f"b{number}")
        assert ask(ledger, cache) == expected
        assert [problem.split(": ")[-1] for problem in cache.problems] == ["was made from other files; it is not used"]


def test_table_that_leads_out_of_itself_is_not_used(
    ledger: Path, machine: Callable[[str], SharedCache], bucket: Bucket, tmp_path: Path
) -> None:
    """A table that somebody made up with rows beyond its columns is refused."""

    def change(table: Any, facts: TableFacts) -> TableFacts:
        table.node_function = table.node_function + np.int32(1 << 30)
        return facts

    expected = ask(ledger, machine("a"))
    replace_table(ledger, bucket, tmp_path, change)
    cache = machine("b")
    assert ask(ledger, cache) == expected
    assert "columns that do not agree" in cache.problems[0]


def test_table_larger_than_the_cache_is_not_fetched(ledger: Path, bucket: Bucket, tmp_path: Path) -> None:
    """The store does not fill the disk."""
    expected = ask(ledger, None)
    ask(ledger, SharedCache(ObjectStorage(bucket.url, None), str(tmp_path / "a")))
    cache = SharedCache(ObjectStorage(bucket.url, None), str(tmp_path / "b"), 1000)
    assert ask(ledger, cache) == expected
    assert "more than all tables here may have" in cache.problems[0]


def test_store_that_fails_is_left_alone(
    ledger: Path, machine: Callable[[str], SharedCache], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that cannot be reached costs no answers, and is not asked for ever."""
    expected = ask(ledger, None)
    cache = machine("a")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    impatient(monkeypatch)
    assert ask(ledger, cache) == expected
    with ElfImage.open(ledger) as image:
        table, facts = build_table([image]), facts_of([image])
    for number in range(4):
        other = facts._replace(build_id=f"{number:040x}1")
        assert cache.load(other, lambda: "ab" * 32) is None
        assert cache.store(table, other, lambda: "ab" * 32) and cache.load(other) is not None
    assert len(cache.problems) == 2
    assert cache.problems[0].startswith(f"shared tables: {cache.storage.url}/tables-")
    assert cache.problems[1].endswith(f"is not used any more after {MAX_FAILURES} failures")


def test_binary_without_build_id_is_not_shared(
    ledger: Path, machine: Callable[[str], SharedCache], bucket: Bucket
) -> None:
    """Files that no build id tells apart stay on their machine."""
    cache = machine("a")
    with ElfImage.open(ledger) as image:
        table, facts = build_table([image]), facts_of([image])
    for build_id in ("", "0" * 40):
        assert cache.store(table, facts._replace(build_id=build_id), lambda: "ab" * 32)
    assert bucket.keys() == []


def test_shared_folder(ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, as of a network file system, can be what is shared; but not the machine's own."""
    expected = ask(ledger, None)
    shared = f"file://{tmp_path}/shared"
    first, second = (open_shared_cache(shared, str(tmp_path / name)) for name in "ab")
    assert isinstance(first, SharedCache) and isinstance(second, SharedCache)
    assert isinstance(first.storage, LocalStorage)
    assert ask(ledger, first) == expected
    monkeypatch.setattr("symbolize.symbols.build.Builder", None)
    assert ask(ledger, second) == expected
    with pytest.raises(UsageError):
        open_shared_cache(shared, str(tmp_path / "shared"))


def test_own_folder_that_cannot_be_written(
    ledger: Path, machine: Callable[[str], SharedCache], bucket: Bucket, tmp_path: Path
) -> None:
    """Without a folder of its own a machine answers, too."""
    expected = ask(ledger, machine("a"))
    (tmp_path / "b").write_bytes(b"")
    cache = machine("b")
    assert ask(ledger, cache) == expected
    assert len(cache.problems) == 1 and "cannot be written" in cache.problems[0]
    assert os.path.isfile(tmp_path / "b")


def test_tables_of_a_part_of_a_file(ledger: Path, machine: Callable[[str], SharedCache], bucket: Bucket) -> None:
    """A table whose file nobody can read whole stays in the own folder."""
    cache = machine("a")
    with ElfImage.open(ledger) as image:
        table, facts = build_table([image]), facts_of([image])
        assert cache.store(table, facts)
        assert bucket.keys() == []
        assert cache.store(table, facts, lambda: content_of([image]))
    assert len(bucket.keys()) == 1

"""`symbolize index` and `symbolize cache`."""

import gc
import gzip
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from symbolize.batch.prebuild import Built, build_one, index_binaries, prebuild
from symbolize.binaries import BinaryIndex
from symbolize.binaries.store import VERSION
from symbolize.cli import main
from symbolize.cli.cache import size_text
from symbolize.cli.options import byte_size
from symbolize.elf import read_build_id
from symbolize.symbols import TableCache
from tests.support.fixture_files import BINARIES, FIXTURES

PROF = FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof"


@pytest.mark.process
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_index_makes_what_profiles_then_use(
    jobs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All tables are made once; a profile then gets the same result from them, and nothing else, as without."""
    folder = str(tmp_path / "cache")
    binaries = str(BINARIES / "gcc-pie")
    assert main(["index", binaries, "--cache", folder, "--jobs", jobs]) == 0
    assert "3 binaries: 3 tables made, 0 were there, 0 failed" in capsys.readouterr().err
    assert main(["index", binaries, "--cache", folder, "--jobs", jobs, "-v"]) == 0
    printed = capsys.readouterr().err
    assert "0 tables made, 3 were there" in printed
    assert printed.count(": was there, ") == 3
    outputs = [tmp_path / "with.gz", tmp_path / "without.gz"]
    with monkeypatch.context() as patched:
        patched.setattr("symbolize.symbols.build.Builder", None)  # decoding would fail
        assert main([str(PROF), "-q", "-b", binaries, "-o", str(outputs[0]), "--cache", folder]) == 0
    assert main([str(PROF), "-q", "-b", binaries, "-o", str(outputs[1]), "--no-cache"]) == 0
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_files_of_one_build_are_one_binary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A stripped binary and its debug file make one table."""
    folder = str(tmp_path / "cache")
    assert main(["index", str(BINARIES / "gcc-split"), "--cache", folder, "-v", "-j", "1"]) == 0
    err = capsys.readouterr().err
    assert "3 binaries: 3 tables made" in err
    assert main(["cache", "stats", "--cache", folder]) == 0
    assert "3 tables" in capsys.readouterr().out


def test_files_that_change_while_they_are_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost what needs them, and stay open in no case."""
    (tmp_path / "bin").mkdir()
    for name in ("gcc-split/stripped/ledger", "gcc-split/debug/ledger.debug", "gcc-pie/spectra"):
        shutil.copyfile(BINARIES / name, tmp_path / "bin" / Path(name).name)
    shutil.copyfile(next((FIXTURES / "parts" / "gcc-dwarf5" / "dwo").glob("*.dwo")), tmp_path / "bin" / "x.dwo")
    paths = {path.name: str(path) for path in (tmp_path / "bin").iterdir()}
    ids = {name: str(read_build_id(path) or "") for name, path in paths.items()}
    cache = TableCache(str(tmp_path / "cache"))
    index = index_binaries([str(tmp_path / "bin")])

    def built(*names: str) -> Built:
        return build_one([(paths.get(name, name), ids.get(name, "")) for name in names], index, cache)

    assert built("nowhere").failure == "nowhere: No such file or directory"
    (tmp_path / "bin" / "text").write_text("text")
    paths["text"] = str(tmp_path / "bin" / "text")
    assert built("text", "nowhere").failure.startswith(f"{paths['text']}: ")
    assert built("x.dwo")[1:4] == Built([])[1:4]
    whole = built("ledger", "ledger.debug")
    assert (whole.is_new, whole.is_stored, whole.has_names, whole.failure, whole.problems) == (True, True, True, "", ())
    assert whole.size > 0 and 0 < whole.seconds < 60
    again = built("ledger", "ledger.debug")
    assert (again.is_new, again.is_stored) == (False, True)
    shutil.copyfile(paths["spectra"], paths["ledger.debug"])
    changed = built("ledger", "ledger.debug")
    problem = f"{paths['ledger.debug']}: has changed, its build id is now {ids['spectra']}"
    assert (changed.failure, changed.problems) == ("", (problem,))
    for error, told in ((MemoryError(), "out of memory"), (ValueError("bad"), "ValueError: bad")):
        with monkeypatch.context() as patched:
            patched.setattr("symbolize.batch.prebuild.make_table", lambda *_, error=error: (_ for _ in ()).throw(error))
            assert built("spectra").failure == f"{paths['spectra']}: {told}"
    gc.collect()
    assert not [line for line in Path("/proc/self/maps").read_text().splitlines() if f"{tmp_path}/bin/" in line]


def test_bad_files_do_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is no ELF file after all is told, and the rest is indexed."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    shutil.copy(BINARIES / "gcc-pie" / "ledger", binaries / "good")
    data = bytearray((BINARIES / "gcc-pie" / "spectra").read_bytes())
    data[4] = 9  # no such class
    (binaries / "bad").write_bytes(data)
    assert main(["index", str(binaries), "--cache", str(tmp_path / "cache"), "-j", "1"]) == 4
    err = capsys.readouterr().err
    assert "1 tables made" in err
    assert f"{binaries}/bad: " in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["index", "/no/such/folder"],
        ["index"],
        ["cache", "drop"],
        ["cache"],
        ["index", ".", "--jobs", "0"],
        ["index", ".", "--cache", ""],
        ["profile", "--folded-report", "-"],
        ["profile", "--folded-report", ""],
    ],
)
def test_usage_errors(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong arguments are told, with exit code 2."""
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = int(stop.code or 0)
    assert code == 2
    assert capsys.readouterr().err


def test_cache_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """path, stats, verify and gc tell what they found and did."""
    folder = tmp_path / "cache"
    assert main(["index", str(BINARIES / "gcc-pie"), "--cache", str(folder), "-q", "-j", "1"]) == 0
    assert main(["cache", "path", "--cache", str(folder)]) == 0
    tables = Path(capsys.readouterr().out.strip())
    assert len(list(tables.iterdir())) == 3
    assert main(["cache", "verify", "--cache", str(folder)]) == 0
    assert "3 sound tables" in capsys.readouterr().out
    damaged = next(tables.iterdir())
    damaged.write_bytes(b"nothing")
    assert main(["cache", "verify", "--cache", str(folder)]) == 1
    assert "removed" in capsys.readouterr().out
    assert main(["cache", "gc", "--cache", str(folder), "--cache-limit", "1"]) == 0
    assert "2 files removed; 0 tables" in capsys.readouterr().out


def test_other_things_that_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The index and decompressed files are counted, and what nobody used for months goes."""
    folder, store = tmp_path / "cache", tmp_path / "store" / "ab" / ("cd" * 19)
    assert main(["cache", "gc", "--cache", str(folder)]) == 0
    assert not folder.exists()
    store.mkdir(parents=True)
    packed = store / "debuginfo"
    packed.write_bytes(gzip.compress((BINARIES / "gcc-pie" / "ledger").read_bytes()))
    index = BinaryIndex([str(tmp_path / "store")], folder)
    (entry,) = index.with_build_id_in_path("ab" + "cd" * 19)
    path = Path(index.unpacked(entry)[0].path)  # type: ignore[union-attr]
    index.close()
    capsys.readouterr()
    assert main(["cache", "stats", "--cache", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "index: 1 file," in out
    assert f"decompressed: 1 file, {size_text(path.stat().st_size)}" in out
    assert main(["cache", "gc", "--cache", str(folder)]) == 0
    assert path.exists()
    os.utime(path, (0, 0))
    connection = sqlite3.connect(folder / f"binaries-{VERSION}.sqlite")
    connection.execute("UPDATE root SET used = 0")
    connection.commit()
    connection.close()
    assert main(["cache", "gc", "--cache", str(folder)]) == 0
    assert "1 file removed" in capsys.readouterr().out
    assert main(["cache", "stats", "--cache", str(folder)]) == 0
    assert "index: 0 files" in capsys.readouterr().out
    assert not path.exists()
    for each in folder.glob(f"binaries-{VERSION}.sqlite*"):
        each.write_bytes(b"damaged" * 1000)
    assert main(["cache", "gc", "--cache", str(folder)]) == 1
    assert f"binaries-{VERSION}.sqlite: " in capsys.readouterr().out


def test_failures_have_their_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """4 if some binaries failed, 1 if all did."""

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("symbolize.batch.prebuild.Binary.table", fail)
    arguments = ["index", str(BINARIES / "gcc-pie"), "-j", "1", "--cache", str(tmp_path / "cache")]
    assert main(arguments) == 1
    assert "ledger: out of memory" in capsys.readouterr().err


def test_a_damaged_binary_has_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is counted, and the exit code is that of some that failed."""
    (tmp_path / "libx.so").write_bytes(b"\x7fELF\2\1\1junk")
    arguments = ["index", str(tmp_path / "libx.so"), "--cache", str(tmp_path / "cache")]
    assert main([*arguments, str(BINARIES / "gcc-pie")]) == 4
    assert "\n4 binaries: 3 tables made, 0 were there, 1 failed; " in capsys.readouterr().err
    assert main(arguments) == 1


def test_folder_that_cannot_be_written_is_told_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before hours of work come to nothing."""
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert main(["index", str(BINARIES / "gcc-pie"), "-q", "--cache", str(tmp_path / "cache")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"symbolize: {tmp_path}/cache/tables-")
    assert line.endswith("; name another folder for the cache")


def test_table_that_cannot_be_written_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full leaves nothing for profiles to find, so the command has failed."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("symbolize.symbols.cache.write_table", fail)
    arguments = ["index", str(BINARIES / "gcc-pie"), "-q", "-j", "1", "--cache", str(tmp_path / "cache")]
    assert main(arguments) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all("No space left on device" in line for line in lines)


def test_table_with_missing_parts_is_not_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without its split units a binary has no table to keep; which are missing is told with the binary."""
    binary = str(shutil.copy(FIXTURES / "parts" / "gcc-dwarf5" / "ledger.debug", tmp_path / "ledger.debug"))
    assert main(["index", binary, "-j", "1", "--cache", str(tmp_path / "cache")]) == 0
    *missing, summary, stats = capsys.readouterr().err.splitlines()
    assert missing
    assert all(line.startswith(f"symbolize: {binary}: split unit ") for line in missing)
    assert summary.startswith("1 binary: 0 tables made, 0 were there, 0 failed; 1 not stored, files are missing; ")
    assert ": 0 tables" in stats


def test_folder_that_cannot_be_read_is_a_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The binaries in it have no tables, so the work is not done: 4, and 1 if there is nothing else."""
    shutil.copytree(BINARIES / "gcc-pie", tmp_path / "bin" / "open")
    (tmp_path / "bin" / "closed").mkdir()
    scandir = os.scandir

    def refuse(folder: str) -> object:
        if str(folder).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr("symbolize.binaries.index.os.scandir", refuse)
    arguments = ["-q", "-j", "1", "--cache", str(tmp_path / "cache")]
    assert main(["index", str(tmp_path / "bin"), *arguments]) == 4
    assert capsys.readouterr().err == f"symbolize: {tmp_path}/bin/closed: Permission denied\n"
    assert main(["index", str(tmp_path / "bin" / "closed"), *arguments]) == 1


def test_limit_that_is_too_small_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables that make room for one another are made in vain; the size that is named is enough."""
    arguments = ["index", str(BINARIES / "gcc-o0"), str(BINARIES / "gcc-pie"), "-j", "1"]
    assert main([*arguments, "--cache", str(tmp_path / "small"), "--cache-limit", "50K"]) == 0
    (told,) = (line for line in capsys.readouterr().err.splitlines() if "so some were removed" in line)
    limit = told.rpartition(" ")[2]
    assert "more than the limit of 50.0 KiB, " in told
    for _ in range(2):
        assert main([*arguments, "--cache", str(tmp_path / "large"), "--cache-limit", limit]) == 0
        assert "so some were removed" not in capsys.readouterr().err
    made, kept = (TableCache(tmp_path / name).stats().tables for name in ("small", "large"))
    assert made < kept == len(index_binaries(arguments[1:3]).binaries())


@pytest.mark.process
def test_interrupted_run_stops(tmp_path: Path) -> None:
    """Whoever stops listening does not wait for the binaries that are left."""
    index, cache = index_binaries([str(BINARIES)]), TableCache(tmp_path / "cache")
    run = prebuild(index, cache, 2)
    next(run)
    run.close()  # type: ignore[attr-defined]
    assert 1 <= cache.stats().tables < len(index.binaries()) // 2


def test_sizes() -> None:
    """Sizes are numbers with a unit."""
    assert [byte_size(text) for text in ("0", "12", "3K", "5m", "2G", "8GB", "8GiB", "1 kib")] == [
        *(0, 12, 3 << 10, 5 << 20, 2 << 30, 8 << 30, 8 << 30, 1 << 10),
    ]

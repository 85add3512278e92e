"""Manifests that are damaged (rule R283)."""

import sqlite3
from pathlib import Path

import pytest

from symbolize.batch.manifest import CONTINUED, LAYOUT, InputResult, Manifest, ProfileRow, State
from symbolize.core.errors import OutputError, UsageError
from symbolize.storage.inputs import Input
from tests.support.batch_engines import plan, run_plan
from tests.support.batch_runs import BINS


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A manifest with an input that is done."""
    path = str(tmp_path / "state" / "manifest.sqlite")
    with Manifest(path) as manifest:
        manifest.add([Input("a.prof", "a", 5, "v")], "options", retry=False, again=False)
        manifest.record([InputResult(1, State.DONE, (ProfileRow("a.pb.gz", 7, {"percent": 1.0}),))])
    return path


def test_a_sound_one(path: str) -> None:
    """What was written is read again."""
    with Manifest(path) as manifest:
        assert [row.uri for row in manifest.rows()] == ["a.prof"]
        assert manifest.profiles(1) == [ProfileRow("a.pb.gz", 7, {"percent": 1.0})]


def test_an_interrupt_is_no_damage(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while SQLite asks for the checksum of a row ends the batch as anywhere else."""

    def interrupt(values: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("symbolize.batch.manifest.seal", interrupt)
        with pytest.raises(KeyboardInterrupt):
            Manifest(path)
    with Manifest(path) as manifest, monkeypatch.context() as patched:
        patched.setattr("symbolize.batch.manifest.seal", interrupt)
        with pytest.raises(KeyboardInterrupt):
            manifest.add([Input("b.prof", "b", 5, "v")], "options", retry=False, again=False)
    with Manifest(path) as manifest:
        assert [row.uri for row in manifest.rows()] == ["a.prof"]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE inputs SET state = 9",
        "UPDATE inputs SET state = 'done'",
        "UPDATE inputs SET uri = CAST(x'ff' AS TEXT)",
        "UPDATE inputs SET uri = x'61'",
        "UPDATE profiles SET coverage = '{'",
        "UPDATE profiles SET size = 8",
        "UPDATE inputs SET seal = NULL",
    ],
)
def test_rows_that_were_not_written(path: str, statement: str) -> None:
    """One sentence names the file; it is not made anew."""
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    before = Path(path).read_bytes()
    with pytest.raises(OutputError, match=r"manifest\.sqlite: is damaged .*remove it to start from the beginning"):
        Manifest(path)
    assert Path(path).read_bytes() == before


def test_one_of_an_earlier_layout(path: str) -> None:
    """It is continued, and gets the tables that it lacks."""
    connection = sqlite3.connect(path)
    for table in ("wants", "wanted", "notes"):
        connection.execute(f"DROP TABLE {table}")
    connection.execute(f"PRAGMA user_version = {CONTINUED[-1]}")
    connection.close()
    with Manifest(path) as manifest:
        assert [row.uri for row in manifest.rows()] == ["a.prof"]
        assert manifest.read("PRAGMA user_version") == [(LAYOUT,)]
        manifest.record([InputResult(1, State.DONE, wants=(("key", "found"),))])
    with Manifest(path) as manifest:
        assert manifest.read("SELECT key, found FROM wanted") == [("key", "found")]


@pytest.mark.parametrize("layout", [1, LAYOUT + 1, -1])
def test_one_of_another_version(path: str, layout: int) -> None:
    """It is not continued and not changed."""
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {layout}")
    connection.close()
    before = Path(path).read_bytes()
    with pytest.raises(UsageError, match=r"manifest\.sqlite: is of another version .*remove it to start"):
        Manifest(path)
    assert Path(path).read_bytes() == before


def test_all_or_nothing(path: str) -> None:
    """What fails in the midst of a transaction leaves nothing of it, and the next one works."""
    rows = [ProfileRow("a.pb.gz", 8, {}), ProfileRow("b.pb.gz", 9, {})]
    with Manifest(path) as manifest:
        with pytest.raises(OutputError, match=r"manifest\.sqlite: .*UNIQUE"):
            manifest.record([InputResult(1, State.DONE, (*rows, rows[0]))])
        assert manifest.profiles(1) == [ProfileRow("a.pb.gz", 7, {"percent": 1.0})]
        with pytest.raises(KeyError), manifest.writing() as base:
            raise KeyError(base.execute("DELETE FROM profiles"))
        manifest.record([InputResult(1, State.DONE, (rows[1],))])
    with Manifest(path) as manifest:
        assert manifest.profiles(1) == [rows[1]]


@pytest.mark.full
def test_two_at_once(path: str) -> None:
    """The second is told to wait, and does no harm."""
    with Manifest(path) as manifest:
        with pytest.raises(UsageError, match=r"another batch is writing to this folder"):
            Manifest(path)
        assert manifest.profiles(1)


def test_what_goes_wrong_while_it_is_open(path: str) -> None:
    """It is one sentence, and the file is closed."""
    with pytest.raises(OutputError, match=r"manifest\.sqlite: .*no more"), Manifest(path):
        raise sqlite3.OperationalError("no more")
    with pytest.raises(KeyError), Manifest(path):
        raise KeyError
    with Manifest(path) as manifest:
        assert (manifest.count_reasons("x"), manifest.count_reasons("x", "")) == (0, 1)
        manifest.generation += 1
        assert manifest.count_reasons("") == 0


def test_no_folder_for_it(tmp_path: Path) -> None:
    """Nor a file where a folder is."""
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"manifest\.sqlite: cannot be created: "):
        Manifest(str(tmp_path / "file" / "manifest.sqlite"))


def test_a_damaged_manifest(some: Path, tmp_path: Path) -> None:
    """A sentence says which file it is."""
    given = plan(some, tmp_path / "out", BINS)
    run_plan(given)
    path = Path(given.state) / "manifest.sqlite"
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"?" * (len(data) - 4096))
    with pytest.raises(OutputError, match=r"manifest\.sqlite: is damaged .*remove it to start from the beginning"):
        run_plan(given)
    path.write_bytes(b"?" * 4096)
    with pytest.raises(OutputError, match=r"manifest\.sqlite: is damaged \(file is not a database\)"):
        run_plan(given)

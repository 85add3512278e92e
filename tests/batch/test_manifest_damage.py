"""Manifests that are damaged (rule R283)."""

import sqlite3
from pathlib import Path

import pytest

from symbolize.batch.manifest import Handled, Manifest, ProfileRow, State
from symbolize.batch.storage.inputs import Input
from symbolize.errors import OutputError


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A manifest with an input that is done."""
    path = str(tmp_path / "state" / "manifest.sqlite")
    with Manifest(path) as manifest:
        manifest.add([Input("a.prof", "a", 5, "v")], "options", 1, retry=False, again=False)
        manifest.record([Handled(1, State.DONE, (ProfileRow("a.pb.gz", 7, {"percent": 1.0}),))])
    return path


def test_a_sound_one(path: str) -> None:
    """What was written is read again."""
    with Manifest(path) as manifest:
        assert [row.uri for row in manifest.rows(1)] == ["a.prof"]
        assert manifest.profiles(1) == [ProfileRow("a.pb.gz", 7, {"percent": 1.0})]


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
    with pytest.raises(OutputError, match=r"manifest\.sqlite: is damaged .*remove it to begin anew"):
        Manifest(path)
    assert Path(path).read_bytes() == before

"""Where source files are looked for, and what never is."""

import os
from pathlib import Path

import pytest

from symbolize.analysis import Sources
from symbolize.core.errors import UsageError


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Folders with sources, and a file outside of them."""
    for name in ("src/lib/a.c", "src/a.c", "other/b.c", "secret.c"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(f"// {name}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("recorded", "found"),
    [
        ("/build/lib/a.c", "src/lib/a.c"),
        ("/build/x/a.c", "src/a.c"),
        ("a.c", "src/a.c"),
        ("C:\\build\\lib\\a.c", "src/lib/a.c"),
        ("/build/../src/lib/a.c", "src/lib/a.c"),
        ("/build/c.c", None),
        ("", None),
        ("/", None),
        ("lib", None),
        ("../secret.c", None),
        ("x/../../secret.c", None),
        ("a\0.c", None),
        ("/" * 100_000 + "a.c", "src/a.c"),
    ],
)
def test_folders(tree: Path, recorded: str, found: str | None) -> None:
    """The longest end of the recorded path that is a file below the folder; nothing outside of it."""
    sources = Sources([str(tree / "src")])
    assert sources.read(recorded) == (None if found is None else f"// {found}\n")


def test_recorded_path_is_not_opened(tree: Path) -> None:
    """A path of the profiled host is not opened here, even where there is such a file."""
    assert Sources([str(tree / "src")]).read(str(tree / "secret.c")) is None
    assert Sources([]).read(str(tree / "src" / "a.c")) is None


def test_links(tree: Path) -> None:
    """Links are followed inside of the folder only, and circles end."""
    os.symlink("../secret.c", tree / "src" / "out.c")
    os.symlink("a.c", tree / "src" / "in.c")
    os.symlink("round.c", tree / "src" / "round.c")
    sources = Sources([str(tree / "src")])
    assert [sources.read(name) for name in ("out.c", "in.c", "round.c")] == [None, "// src/a.c\n", None]


def test_path_map(tree: Path) -> None:
    """What begins with one folder is taken from another, before all others, and not from outside of it."""
    sources = Sources([str(tree / "src")], [("/build/", str(tree / "other"))])
    assert sources.read("/build/b.c") == "// other/b.c\n"
    assert sources.read("/build/a.c") == "// src/a.c\n"
    assert sources.read("/builds/b.c") is None
    assert sources.read("/build/../secret.c") is None


def test_unusable(tree: Path) -> None:
    """What is no text is shown as far as it is, what is too large or cannot be read is not; a folder has to be one."""
    (tree / "src" / "latin.c").write_bytes(b"\xe9t\xe9\n")
    with open(tree / "src" / "large.c", "wb") as file:
        file.truncate(9 << 20)
    sources = Sources([str(tree / "src")])
    assert sources.read("latin.c") == "�t�\n"
    assert sources.read("large.c") is None
    assert sources.read_all(["a.c", "large.c", "none.c"]) == {"a.c": "// src/a.c\n"}
    with pytest.raises(UsageError, match="no such folder"):
        Sources([str(tree / "none")])


def test_texts_are_bounded_together(tree: Path) -> None:
    """The first ones are taken, and those behind them that still fit."""
    (tree / "src" / "long.c").write_text("long" * 10)
    sources = Sources([str(tree / "src")])
    assert [*sources.read_all(["long.c", "a.c"])] == ["long.c", "a.c"]
    assert [*sources.read_all(["long.c", "a.c"], len("// src/a.c\n"))] == ["a.c"]


def test_long_paths(tree: Path) -> None:
    """What is longer than any path is not looked for, folder by folder."""
    sources = Sources([str(tree / "src")], [("/build", str(tree / "other"))])
    assert sources.read("/build" + "/x" * 500_000 + "/b.c") is None
    assert sources.read("/build/" + "y/" * 63 + "z" * 500_000) is None

"""What arguments of a job mean, and how outputs are named."""

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from symbolize.formats.files import without_endings
from symbolize.storage.inputs import (
    MAX_COMPONENT,
    MAX_NAME,
    STATE_FOLDER,
    Input,
    Pattern,
    Problem,
    alternative_names,
    depth_below,
    find_inputs,
    open_input,
    output_name,
    roots_of,
    split_pattern,
)


def tree(root: Path, *names: str) -> Path:
    """A folder with files of these names."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"profile")
    return root


def found(*arguments: str | Path, listing: str | None = None) -> list[Input | Problem]:
    """All that is found."""
    return list(find_inputs([str(each) for each in arguments], None if listing is None else io.StringIO(listing)))


def names(results: Sequence[Input | Problem]) -> list[str]:
    """The names of what was found, all of it inputs."""
    assert all(isinstance(each, Input) for each in results), results
    return [each.name for each in results if isinstance(each, Input)]


def problems(results: Sequence[Input | Problem]) -> list[tuple[str, str]]:
    """The problems of what was found: what it is about, and the sentence."""
    return [each for each in results if isinstance(each, Problem)]


def test_one_file(tmp_path: Path) -> None:
    """A file is an input by its own name; size and version come along, and a change changes the version."""
    path = tree(tmp_path, "deep/a.pb.gz") / "deep/a.pb.gz"
    [one] = found(path)
    assert isinstance(one, Input)
    assert (one.uri, one.name, one.size) == (str(path), "a", 7)
    os.utime(path, ns=(1, 1))
    [again] = found(path)
    assert isinstance(again, Input) and again.version != one.version
    with open_input(one.uri) as source:
        assert source == str(path)


def test_folder(tmp_path: Path) -> None:
    """All files of a folder in order, but not hidden ones, the run's own and those that are still written."""
    tree(tmp_path, "b/x.pb", "a.prof", "b/c/y.pprof", "b.bin", ".git/z", ".hidden", "b/u.tmp", "v.part")
    tree(tmp_path, f"{STATE_FOLDER}/state.pb", "b/.symbolize/tmp/q")
    results = found(tmp_path)
    assert names(results) == ["a", "b.bin", "b/x", "b/c/y"]


def test_links(tmp_path: Path) -> None:
    """Links inside a folder add what is not found without them, once; those out of it are not followed."""
    root = tree(tmp_path / "root", "..2026/p.pb", "a/q.pb", "a/b/r.pb")
    tree(tmp_path, "outside/secret.pb")
    (root / "..data").symlink_to("..2026")
    (root / "p.pb").symlink_to("..data/p.pb")
    (root / "hidden").symlink_to("..2026")
    (root / "again").symlink_to("..2026")
    (root / "a/b/up").symlink_to("../..")
    (root / "latest.pb").symlink_to("a/q.pb")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "nowhere").symlink_to("gone")
    results = found(root)
    assert names([each for each in results if isinstance(each, Input)]) == ["p", "a/q", "a/b/r", "again/p"]
    assert [sentence for _, sentence in problems(results)] == [
        "holds a link to files outside of it, not followed; name their targets"
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.pb", ["x"]),
        ("h?/*.pb", ["h1/a", "h2/a"]),
        ("**/a.pb", ["h1/a", "h2/a", "h2/deep/a"]),
        ("h[2]/**", ["h2/a", "h2/deep/a"]),
        ("h*", ["h1/a", "h2/a", "h2/deep/a"]),
        ("**/deep/**/*.pb", ["h2/deep/a"]),
        (".h*/*", [".hid/a"]),
        ("h2/*/a.pb", ["deep/a"]),
    ],
)
def test_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, expected: list[str]) -> None:
    """Patterns find files and folders; outputs are named from where the pattern begins."""
    tree(tmp_path, "x.pb", "h1/a.pb", "h2/a.pb", "h2/deep/a.pb", ".hid/a.pb")
    assert sorted(names(found(tmp_path / pattern))) == expected
    monkeypatch.chdir(tmp_path)
    assert sorted(names(found(pattern))) == expected


def test_spellings_of_one_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are one input, by its real folder; a link at the end stays one."""
    tree(tmp_path, "real/deep/a.pb")
    (tmp_path / "link").symlink_to("real/deep")
    (tmp_path / "real" / "b.pb").symlink_to("deep/a.pb")
    monkeypatch.chdir(tmp_path / "real")
    root = str(tmp_path / "real")
    for path, expected in {
        "deep/..": [f"{root}/deep/a.pb"],
        "../link/..": [f"{root}/deep/a.pb"],
        "../link/../deep/": [f"{root}/deep/a.pb"],
        "../link/../b.pb": [f"{root}/b.pb"],
        "../link/./a.pb": [f"{root}/deep/a.pb"],
        "../real/b.pb": [f"{root}/b.pb"],
        "deep/./../deep/.": [f"{root}/deep/a.pb"],
    }.items():
        assert sorted(each.uri for each in found(path) if isinstance(each, Input)) == expected, path


def test_lists_that_are_none(tmp_path: Path) -> None:
    """Standard input without end in one name, or that breaks off."""

    class Broken(io.StringIO):
        def read(self, size: int | None = -1) -> str:
            raise OSError(5, "Input/output error")

    tree(tmp_path, "a.pb")
    named = f"{tmp_path}/a.pb\n"
    for listing, count, told in (
        (io.StringIO(named + "x" * (3 << 20)), 1, "cannot be read as a list of names: a name is too long"),
        (Broken(), 0, "cannot be read as a list of names: Input/output error"),
    ):
        *inputs, problem = find_inputs(["-"], listing)
        assert (problem.uri, problem.sentence) == ("-", told)  # type: ignore[union-attr]
        assert len(inputs) == count


def test_folders_that_go_while_they_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is gone is none of the inputs; what cannot be read is told."""
    tree(tmp_path, "a.pb", "gone/b.pb", "locked/c.pb", "d.pb", "e.pb")
    scandir, lstat = os.scandir, os.lstat

    def failing(path: Any) -> None:
        name = os.path.basename(path)
        if name in ("gone", "d.pb"):
            raise FileNotFoundError(2, "No such file or directory")
        if name in ("locked", "e.pb"):
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", lambda path: (failing(path), scandir(path))[1])
    monkeypatch.setattr(os, "lstat", lambda path: (os.path.isfile(path) and failing(path), lstat(path))[1])
    results = found(tmp_path)
    assert names([each for each in results if isinstance(each, Input)]) == ["a"]
    assert problems(results) == [
        (f"{tmp_path}/e.pb", "cannot be read: Permission denied"),
        (f"{tmp_path}/locked", "cannot be read: Permission denied"),
    ]
    monkeypatch.setattr(os, "scandir", lambda path: (_ for _ in ()).throw(FileNotFoundError(2, "No such file")))
    assert problems(found(tmp_path)) == [(str(tmp_path), "is missing")]


def test_bytes_that_are_no_text() -> None:
    """They are hexadecimal in names, as are other characters that no file of another system may have."""
    assert output_name(["\udc80\udcff", "\udc7f\udd00\ud800\udfff?\x00"]) == (
        "%80%ff/%ed%b1%bf%ed%b4%80%ed%a0%80%ed%bf%bf%3f%00"
    )


@pytest.mark.parametrize(
    ("path", "root", "parts"),
    [
        ("/*/a", "/", ("*", "a")),
        ("/a/b*", "/a", ("b*",)),
        ("*.pb", "", ("*.pb",)),
        ("./x/../y/**//z", "./x/../y", ("**", "z")),
        ("s3://b/a?/c", "s3://b", ("a?", "c")),
    ],
)
def test_where_a_pattern_begins(path: str, root: str, parts: tuple[str, ...]) -> None:
    """In the last folder that has a plain name, which of an absolute path may be that of the whole system."""
    assert split_pattern(path) == (root, Pattern(parts))


def test_file_whose_name_is_a_pattern(tmp_path: Path) -> None:
    """A file of the very name is meant before what the pattern would match."""
    tree(tmp_path, "a[1].pb", "a1.pb")
    assert names(found(tmp_path / "a[1].pb")) == ["a[1]"]


@pytest.mark.parametrize("divider", ["\n", "\0", "\r\n"])
def test_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, divider: str) -> None:
    """A list names files and folders; outputs keep their folders, so that equal names stay apart."""
    monkeypatch.chdir(tree(tmp_path, "h1/p.pb", "h2/p.pb", "d/e/p.pb"))
    listing = divider.join(["h1/p.pb", "./h2/p.pb", "", "d", "*.pb", str(tmp_path / "h1/p.pb"), "-"]) + divider
    results = found("-", listing=listing)
    assert names([each for each in results if isinstance(each, Input)]) == ["h1/p", "h2/p", "d/e/p"]
    assert [uri for uri, _ in problems(results)] == ["*.pb", "-"]


def test_list_longer_than_a_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are whole where the pieces of a list meet."""
    monkeypatch.chdir(tree(tmp_path, *(f"{i:04}-{'x' * 90}.pb" for i in range(1500))))
    listing = "\n".join(sorted(os.listdir()))
    assert names(found("-", listing=listing)) == [f"{i:04}-{'x' * 90}" for i in range(1500)]


def test_list_without_text(tmp_path: Path) -> None:
    """Names that are no text come through a list, and are URIs that can be stored."""
    path = os.fsencode(tmp_path) + b"/\xff\n.pb"
    Path(os.fsdecode(path)).write_bytes(b"1")
    listing = io.TextIOWrapper(io.BytesIO(path + b"\0"), encoding="ascii")
    [one] = find_inputs(["-"], listing)
    assert isinstance(one, Input)
    assert one.uri.encode().endswith(b"%FF%0A.pb")
    with open_input(one.uri) as source:
        assert source == os.fsdecode(path)
    assert found(tmp_path) == [one._replace(name="%ff%0a")]


def test_what_is_no_input(tmp_path: Path) -> None:
    """What is named and no file is told in a sentence; the rest is found."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling").symlink_to("gone")
    file = tree(tmp_path / "files", "a.pb") / "a.pb"
    arguments = ["gone", "gone/*.pb", "pipe", "empty", "dangling", "files/a.pb/b", "x" * 300, "a\0b"]
    results = found(*(f"{tmp_path}/{each}" for each in arguments), "/dev/null", "-", file)
    assert names(results[-1:]) == ["a"]
    assert [sentence for _, sentence in problems(results)] == [
        "is missing",
        "is missing, and as a pattern matches no file",
        "is a pipe, device or socket, not a file",
        "holds no files",
        "is a link that leads nowhere",
        "is missing",
        "cannot be read: File name too long",
        "cannot be read: its name has a NUL",
        "is a pipe, device or socket, not a file",
        "is standard input, which is closed",
    ]
    assert names([each for each in found(tmp_path) if isinstance(each, Input)]) == ["files/a"]


def test_folder_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without permission costs what is in it only."""
    tree(tmp_path, "a/x.pb", "b/y.pb")
    scandir = os.scandir

    def guarded(path: str) -> Any:
        if path == str(tmp_path / "a"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    results = found(tmp_path)
    assert problems(results) == [(str(tmp_path / "a"), "cannot be read: Permission denied")]
    assert names(results[1:]) == ["b/y"]


def test_found_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What several arguments name is one input."""
    monkeypatch.chdir(tree(tmp_path, "d/a.pb", "d/b.pb"))
    results = found("d/a.pb", "./d", "d/../d/a.pb", "d/*.pb", f"file://{tmp_path}/d/b.pb")
    assert names(results) == ["a", "b"]


def test_alternative_names(tmp_path: Path) -> None:
    """Inputs whose outputs would have one name get others, which do not depend on the order."""
    tree(tmp_path, "r1/h/x.pb", "r1/h/x.pb.gz", "r2/h/x.pb")
    first, packed, other = results = found(tmp_path / "r1", tmp_path / "r2")
    assert names(results) == ["h/x", "h/x", "h/x"]
    offers = [list(alternative_names(each)) for each in results if isinstance(each, Input)]
    assert [each[:2] for each in offers] == [["h/x", "h/x.pb"], ["h/x", "h/x.pb.gz"], ["h/x", "h/x.pb"]]
    assert offers[2][2].startswith("h/x.pb-") and offers[0][2] != offers[2][2]
    assert offers == [list(alternative_names(each)) for each in (first, packed, other) if isinstance(each, Input)]


def test_deep_path(tmp_path: Path) -> None:
    """The name for a file in a very deep tree is not longer than stores allow."""
    path = tmp_path / "/".join(["d"] * 500)
    path.mkdir(parents=True)
    (path / "x.pb").write_bytes(b"")
    [one] = found(tmp_path)
    assert isinstance(one, Input)
    assert len(one.name.encode()) <= MAX_NAME and one.name.endswith("/x")


@example(["..", ".", "..", "etc", ".."])
@example([".symbolize", "tmp", "x.pb"])
@example(["", "", "."])
@example(["a?b", "\udcff", "x" * 300 + ".pb.gz"])
@given(st.lists(st.text(st.characters(exclude_categories=[])), min_size=1, max_size=8))
def test_names_are_safe(parts: list[str]) -> None:
    """Whatever a path holds, the name of the output is relative, text, and fits."""
    name = output_name(parts)
    assert 0 < len(name.encode()) <= MAX_NAME
    assert "?" not in name and not any(ord(each) < 32 or 127 <= ord(each) < 160 for each in name)
    for part in name.split("/"):
        assert part not in ("", ".", "..", STATE_FOLDER)
        assert len(part.encode()) <= MAX_COMPONENT


@given(st.text(st.characters(exclude_categories=[], exclude_characters="/\0"), min_size=1), st.binary(min_size=1))
def test_alternatives_end_in_names_of_their_own(text: str, raw: bytes) -> None:
    """The last name is told apart by the URI, and is safe as well."""
    one, two = (Input(f"/{root}/{text}", output_name([text]), 0, "") for root in ("a", "b"))
    names_one, names_two = list(alternative_names(one)), list(alternative_names(two))
    assert names_one[:-2] == names_two[:-2] and names_one[-1] != names_two[-1]
    for name in names_one:
        assert all(part not in ("", ".", "..") for part in name.split("/"))
        assert max(len(part.encode()) for part in name.split("/")) <= MAX_COMPONENT
    assert os.fsencode(os.fsdecode(raw)) == raw and output_name([os.fsdecode(raw)])


def test_endings() -> None:
    """Endings of packing and of formats go, a name that is nothing else stays."""
    given = ["a.pb.gz", "a.prof", "a.b.perfetto-trace.zst", ".gz", "a"]
    assert [without_endings(each) for each in given] == ["a", "a", "a.b", ".gz", "a"]


def test_what_arguments_cover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that is below a folder, or below that before the first wildcard, and a file itself; of a list nothing."""
    monkeypatch.chdir(tmp_path)
    arguments = ["in", "day-*/*.prof", "a.prof", "s3://b/p/", "gs://b/x/*/y", "-", "file:///data"]
    roots = roots_of(arguments)
    here = str(tmp_path)
    assert roots == [f"{here}/in", here, f"{here}/a.prof", "s3://b/p", "gs://b/x", "/data"]
    for uri, depths in {
        f"{here}/in/h/a": [2, 3],
        f"{here}/a.prof": [1, 1],
        "/data/x": [1],
        "file:///data/%ff": [1],
        "s3a://b/p/x/y": [2],
        "gs://b/x/1/y": [2],
        "gs://b/other": [],
        "/database": [],
    }.items():
        assert [depth for root in roots if (depth := depth_below(uri, root))] == depths

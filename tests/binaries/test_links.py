"""The debug file that a stripped binary names in `.gnu_debuglink`."""

import itertools
import os
import struct
import zlib
from pathlib import Path

import pytest

from symbolize.batch.prebuild import prebuild
from symbolize.binaries import BinaryIndex, BinaryMatch, find_binary, index_update
from symbolize.binaries import index as index_module
from symbolize.elf import identify
from symbolize.symbols import TableCache
from tests.support.elf_writer import NOBITS, NOTE, Section, build_id_note, elf_file, text

ID = "ab" * 20
DEBUG_INFO = Section(".debug_info", bytes(12))


def link_to(name: str | bytes, data: bytes) -> Section:
    """A `.gnu_debuglink` to a file called `name` with the contents `data`."""
    raw = name.encode() if isinstance(name, str) else name
    padded = raw + b"\0" + bytes(-(len(raw) + 1) % 4)
    return Section(".gnu_debuglink", padded + struct.pack("<I", zlib.crc32(data)))


def debug_file(*more: Section, tag: bytes = b"") -> bytes:
    """A file with debug information; `tag` makes it another one."""
    return elf_file([text(), DEBUG_INFO, Section(".tag", tag), *more])


def note(build_id: str) -> Section:
    """A section with a build id."""
    return Section(".note.gnu.build-id", build_id_note(bytes.fromhex(build_id)), NOTE)


def put(path: Path, data: bytes) -> Path:
    """Write a file, with all folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def find(root: Path, filename: str = "/opt/app/server") -> BinaryMatch:
    """What is found for a name, by a new index."""
    return find_binary(BinaryIndex([str(root)]), "", filename)


RIGHT, WRONG = debug_file(tag=b"right"), debug_file(tag=b"wrong")
PLACES = [
    "opt/app/server.debug",
    "opt/app/.debug/server.debug",
    "usr/lib/debug/opt/app/server.debug",
    "somewhere/else/server.debug",
]


@pytest.mark.parametrize("place", PLACES)
def test_places(place: str, tmp_path: Path) -> None:
    """The debug file is found beside the binary, in `.debug`, under `usr/lib/debug` and elsewhere (rule R141)."""
    binary = put(tmp_path / "opt/app/server", elf_file([link_to("server.debug", RIGHT)]))
    debug = put(tmp_path / place, RIGHT)
    found = find(tmp_path)
    assert found.paths == [str(binary), str(debug)]
    assert f"found {debug}, its checksum agrees" in found.tried[-1].outcome


@pytest.mark.parametrize(("wrong", "right"), list(itertools.permutations(PLACES, 2)))
def test_wrong_files_are_passed_over(wrong: str, right: str, tmp_path: Path) -> None:
    """A file whose checksum differs is a reason with both checksums, and the next place is tried (rule R143)."""
    put(tmp_path / "opt/app/server", elf_file([link_to("server.debug", RIGHT)]))
    bad, good = put(tmp_path / wrong, WRONG), put(tmp_path / right, RIGHT)
    found = find(tmp_path)
    assert found.paths[1:] == [str(good)]
    said = f"{bad} has the checksum {zlib.crc32(WRONG):08x}, wanted {zlib.crc32(RIGHT):08x}"
    if PLACES.index(wrong) < PLACES.index(right):
        assert said in [attempt.outcome for attempt in found.tried]


def test_in_another_root(tmp_path: Path) -> None:
    """A folder of debug files beside the one of binaries will do, also by the folder that was recorded (rule R141)."""
    put(tmp_path / "bin/server", elf_file([link_to("server.debug", RIGHT)]))
    debug = put(tmp_path / "debug/usr/lib/debug/opt/app/server.debug", RIGHT)
    put(tmp_path / "debug/a/server.debug", WRONG)
    index = BinaryIndex([str(tmp_path / "bin"), str(tmp_path / "debug")])
    found = find_binary(index, "", "/opt/app/server")
    assert found.paths[1:] == [str(debug)]
    assert not any("wanted" in attempt.outcome for attempt in found.tried)


def test_nothing_there(tmp_path: Path) -> None:
    """That a debug file is wanted and nowhere to be found is told."""
    put(tmp_path / "opt/app/server", elf_file([link_to("server.debug", RIGHT)]))
    found = find(tmp_path)
    assert len(found.paths) == 1
    assert "no file of that name" in found.tried[-1].outcome


def test_another_build_id(tmp_path: Path) -> None:
    """A file with another build id does not belong, whatever its checksum (rule R143)."""
    other = debug_file(note("cd" * 20))
    put(tmp_path / "server", elf_file([note(ID), link_to("server.debug", other)]))
    put(tmp_path / "server.debug", other)
    found = find_binary(BinaryIndex([str(tmp_path)]), ID, "")
    assert found.verified
    assert len(found.paths) == 1
    assert f"has the build id {'cd' * 20}, wanted {ID}" in found.tried[-1].outcome


def test_debug_file_without_a_build_id(tmp_path: Path) -> None:
    """A debug file that lost its build id is known by its checksum, and expected without one (rule R141)."""
    put(tmp_path / "server", elf_file([note(ID), link_to("x.debug", RIGHT)]))
    debug = put(tmp_path / "x.debug", RIGHT)
    found = find_binary(BinaryIndex([str(tmp_path)]), ID, "")
    assert found.verified
    assert found.paths[1:] == [str(debug)]
    assert [found.expects(path) for path in found.paths] == [ID, ""]


def test_self_link(tmp_path: Path) -> None:
    """A link that names its own file ends there (rule R146)."""
    put(tmp_path / "server", elf_file([link_to("server", b"")]))
    found = find(tmp_path)
    assert len(found.paths) == 1
    assert "is the file itself" in found.tried[-1].outcome


def test_chains_and_circles(tmp_path: Path) -> None:
    """Links are followed from file to file, each file once (rule R146)."""
    last = debug_file()
    middle = elf_file([Section(".tag", b"middle"), link_to("last.debug", last)])
    put(tmp_path / "server", elf_file([link_to("middle.debug", middle)]))
    put(tmp_path / "middle.debug", middle)
    put(tmp_path / "last.debug", last)
    assert [Path(path).name for path in find(tmp_path).paths] == ["server", "middle.debug", "last.debug"]
    # The same file by another name.
    twice = elf_file([Section(".tag", b"twice"), link_to("again.debug", b"x")])
    put(tmp_path / "server", elf_file([link_to("twice.debug", twice)]))
    os.link(put(tmp_path / "twice.debug", twice), tmp_path / "again.debug")
    found = find(tmp_path)
    assert len(found.paths) == 2
    assert "visited already" in found.tried[-1].outcome
    # A checksum cannot be its own, but a file may lead back to where the search came from.
    back = elf_file([Section(".tag", b"back"), link_to("server", b"x")])
    put(tmp_path / "server", elf_file([link_to("back.debug", back)]))
    put(tmp_path / "back.debug", back)
    found = find(tmp_path)
    assert [Path(path).name for path in found.paths] == ["server", "back.debug"]
    assert "visited" in found.tried[-1].outcome


def test_not_asked_where_debug_information_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A binary with debug information of its own needs no other file (rule R139)."""
    monkeypatch.setattr(index_module, "file_checksum", None)
    put(tmp_path / "server", debug_file(link_to("server.debug", RIGHT)))
    put(tmp_path / "server.debug", RIGHT)
    assert len(find(tmp_path).paths) == 1


def test_checksum_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read for its checksum once, and again after it changed (rules R140, R141)."""
    root, cache = tmp_path / "root", str(tmp_path / "cache")
    put(root / "server", elf_file([link_to("server.debug", RIGHT)]))
    debug = put(root / "server.debug", RIGHT)
    os.utime(debug, ns=(1, 1))
    calls: list[str] = []
    original = index_module.file_checksum
    monkeypatch.setattr(index_update, "SETTLED_NS", 0)
    monkeypatch.setattr(index_module, "file_checksum", lambda entry: calls.append(entry.path) or original(entry))
    for _ in range(3):
        assert len(find_binary(BinaryIndex([str(root)], cache), "", "/server").paths) == 2
    assert calls == [str(debug)]
    debug.write_bytes(WRONG)
    assert len(find_binary(BinaryIndex([str(root)], cache), "", "/server").paths) == 1
    assert len(calls) == 2


@pytest.mark.parametrize("target", ["/dev/zero", "../outside"])
def test_file_that_changed_since_the_walk(target: str, tmp_path: Path) -> None:
    """A link that took the place of a file after the walk leads nowhere (rule R143)."""
    put(tmp_path / "root/server", elf_file([link_to("server.debug", RIGHT)]))
    debug = put(tmp_path / "root/server.debug", RIGHT)
    put(tmp_path / "outside", RIGHT)
    index = BinaryIndex([str(tmp_path / "root")])
    index.with_name("server")
    debug.unlink()
    debug.symlink_to(target)
    found = find_binary(index, "", "/server")
    assert len(found.paths) == 1
    assert "cannot be checked" in found.tried[-1].outcome


def test_debug_file_that_only_the_name_connects(tmp_path: Path) -> None:
    """Beside a binary without build id and link, a debug file is told and not used (rule R143)."""
    put(tmp_path / "server", elf_file([text()]))
    debug = put(tmp_path / "server.debug", RIGHT)
    found = find(tmp_path)
    assert len(found.paths) == 1
    assert found.tried[-1] == (str(debug), "neither a build id nor a checksum says that it belongs to the binary")


@pytest.mark.parametrize(
    "name", ["/dev/zero", "../../x", "..", ".", "/", "a/b", "x" * 300, b"\xff\xfe", "new\nline"], ids=repr
)
def test_hostile_names(name: str | bytes, tmp_path: Path) -> None:
    """A link that is a path leads nowhere, also if there is such a file below the root (rule R141)."""
    put(tmp_path / "root/server", elf_file([link_to(name, RIGHT)]))
    put(tmp_path / "x", RIGHT)
    put(tmp_path / "root/a/b", RIGHT)
    put(tmp_path / "root/dev/zero", RIGHT)
    found = find(tmp_path / "root")
    assert len(found.paths) == 1
    assert len(found.tried) > 1


@pytest.mark.parametrize(
    "data", [b"", b"\0" * 8, b"abc", b"abc\0", b"abc\0\1\2\3", b"x" * 5000 + b"\0\0\0\0\1\2\3\4"], ids=len
)
def test_corrupt_links(data: bytes, tmp_path: Path) -> None:
    """A link without a name, without a checksum or of absurd length is none."""
    path = put(tmp_path / "server", elf_file([Section(".gnu_debuglink", data)]))
    ident = identify(str(path))
    assert ident is not None
    assert (ident.link, ident.link_check) == (b"", 0)


def test_link_without_contents(tmp_path: Path) -> None:
    """In a debug file the section has no bytes."""
    path = put(tmp_path / "x", elf_file([Section(".gnu_debuglink", type=NOBITS, size=16)]))
    ident = identify(str(path))
    assert ident is not None
    assert ident.link == b""


def test_many_candidates(tmp_path: Path) -> None:
    """Of hundreds of files of the name only some are read whole."""
    put(tmp_path / "opt/app/server", elf_file([link_to("server.debug", RIGHT)]))
    for number in range(40):
        put(tmp_path / f"{number}/server.debug", debug_file(tag=b"%d" % number))
    found = find(tmp_path)
    assert len(found.paths) == 1
    assert sum("has the checksum" in attempt.outcome for attempt in found.tried) == 16


def test_tables_made_ahead_take_the_debug_file(tmp_path: Path) -> None:
    """`symbolize index` makes one table of a binary and its linked debug file (rule R141)."""
    debug = debug_file()
    put(tmp_path / "root/server", elf_file([text(), link_to("server.debug", debug)]))
    put(tmp_path / "root/server.debug", debug)
    cache = TableCache(tmp_path / "cache")
    built = list(prebuild(BinaryIndex([str(tmp_path / "root")], cache.base), cache, 1))
    assert sorted(len(each.paths) for each in built) == [1, 2]
    assert not any(each.failure for each in built)

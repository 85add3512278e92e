"""R321: files by the build id of Go's linker, and by the hash that the eBPF profiler of OpenTelemetry has of them."""

import hashlib
import random
import struct
from pathlib import Path

import pytest

from symbolize.binaries import BinaryIndex, find_binary
from symbolize.core.reasons import Reason
from tests.support.elf_writer import ALLOC, EXEC, NOTE, Section, build_id_note, elf_file

GO_ID = "abc/def/ghi_1/jkl-2"
GNU_ID = bytes(range(20))


def hash_of(path: Path) -> str:
    """The id of a file, as a profile has it."""
    data = path.read_bytes()
    return "htlhash:" + hashlib.sha256(data[:4096] + data[-4096:] + struct.pack(">Q", len(data))).hexdigest()[:32]


def write(path: Path, *, go: str = "", gnu: bytes = b"", size: int = 64) -> Path:
    """An ELF file with some ids."""
    sections = [Section(".text", random.Random(path.name).randbytes(size), flags=ALLOC | EXEC, address=0x1000)]
    if go:
        text = go.encode()
        note = struct.pack("<III", 4, len(text), 4) + b"Go\0\0" + text + bytes(-len(text) % 4)
        sections.append(Section(".note.go.buildid", note, NOTE, ALLOC, address=0x4000))
    if gnu:
        sections.append(Section(".note.gnu.build-id", build_id_note(gnu), NOTE, ALLOC, address=0x5000))
    path.write_bytes(elf_file(sections))
    return path


@pytest.mark.parametrize("size", [64, 5000, 20_000])
def test_by_hash(tmp_path: Path, size: int) -> None:
    """The first and last 4096 bytes and the length identify a file, whatever its name; hashes may be in capitals."""
    wanted = write(tmp_path / "a", size=size)
    write(tmp_path / "b", size=size)
    index = BinaryIndex([str(tmp_path)])
    for text in (hash_of(wanted), hash_of(wanted).replace("htlhash:", "HASH").upper().replace("HASH", "htlhash:")):
        found = find_binary(index, text, "other")
        assert (list(found.paths), found.verified) == ([str(wanted)], True)
    assert find_binary(index, "htlhash:" + "00" * 16, "a").reason == Reason.NOT_FOUND


def test_by_go_build_id(tmp_path: Path) -> None:
    """The whole text counts, as it is or in hex (R451, spellings of build ids)."""
    wanted = write(tmp_path / "a", go=GO_ID)
    index = BinaryIndex([str(tmp_path)])
    for text in (GO_ID, GO_ID.encode().hex(), GO_ID.encode().hex().upper()):  # Parca has it in hex
        found = find_binary(index, text, "other")
        assert (list(found.paths), found.verified) == ([str(wanted)], True)
    assert find_binary(index, GO_ID + "x", "a").reason == Reason.NOT_FOUND


def test_other_files_of_the_build(tmp_path: Path) -> None:
    """Files that share the GNU build id of the one that was found belong to it."""
    wanted = write(tmp_path / "a", go=GO_ID, gnu=GNU_ID)
    other = write(tmp_path / "a.debug", gnu=GNU_ID)
    index = BinaryIndex([str(tmp_path)])
    for text in (GO_ID, hash_of(wanted)):
        found = find_binary(index, text, "a")
        assert sorted(found.paths) == [str(wanted), str(other)]
        assert found.build_id == GNU_ID.hex()
        assert found.tried[0].outcome == f"found {wanted}"


def test_several_builds(tmp_path: Path) -> None:
    """An id that files of several builds have is of none."""
    write(tmp_path / "a", go=GO_ID, gnu=GNU_ID)
    write(tmp_path / "b", go=GO_ID, gnu=GNU_ID[::-1])
    assert find_binary(BinaryIndex([str(tmp_path)]), GO_ID, "a").reason == Reason.AMBIGUOUS


def test_hashes_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are hashed when a hash is asked for, once, and again when they change."""
    from symbolize.binaries import index as module
    from symbolize.binaries import index_update

    monkeypatch.setattr(index_update, "SETTLED_NS", 0)
    hashed: list[str] = []
    real = module.file_hash
    monkeypatch.setattr(module, "file_hash", lambda entry: hashed.append(entry.path) or real(entry))
    folder, cache = tmp_path / "bin", tmp_path / "cache"
    folder.mkdir()
    first, second = write(folder / "a"), write(folder / "b", go=GO_ID)
    assert find_binary(BinaryIndex([str(folder)], cache), GO_ID, "").paths
    assert hashed == []
    for _ in range(2):
        assert find_binary(BinaryIndex([str(folder)], cache), hash_of(first), "").paths
    assert sorted(hashed) == [str(first), str(second)]
    second = write(second)
    assert list(find_binary(BinaryIndex([str(folder)], cache), hash_of(second), "").paths) == [str(second)]
    assert hashed[2:] == [str(second)]


def test_a_file_that_vanishes(tmp_path: Path) -> None:
    """A file that is gone when it is to be hashed is passed over."""
    gone, wanted = write(tmp_path / "a"), write(tmp_path / "b")
    index = BinaryIndex([str(tmp_path)])
    assert index.binaries()
    gone.unlink()
    assert list(find_binary(index, hash_of(wanted), "").paths) == [str(wanted)]
    assert any(str(gone) in problem for problem in index.problems)

"""Every layout of docs/finding-binaries.md, built from real files, and found by build id."""

import gzip
import os
from pathlib import Path

import pytest
import zstandard

from symbolize.binaries import BinaryIndex, BinaryMatch, find_binary
from symbolize.binaries.layouts import listed, path_build_id_key
from symbolize.binaries.unpack import Unpacked
from symbolize.core.reasons import Reason
from symbolize.elf import ElfImage, read_build_id
from tests.support.binary_layouts import (
    DEBUG,
    ID,
    LAYOUTS,
    PADDED,
    RECORDED,
    STRIPPED,
    Build,
    unified_gzip,
    unified_zstd,
)
from tests.support.tiny_elf import elf, write


def open_build_ids(found: BinaryMatch) -> set[str]:
    """The build ids in the files that were found."""
    return {read_build_id(path) or "" for path in found.paths}


@pytest.mark.parametrize("build", LAYOUTS, ids=lambda build: build.__name__)
@pytest.mark.parametrize("build_id", [ID, PADDED.upper(), "0x" + PADDED], ids=["plain", "padded upper", "0x"])
def test_layout(build: Build, build_id: str, tmp_path: Path) -> None:
    """In every layout the binary and its debug file are found by build id, verified (rules R138, R139)."""
    build(tmp_path / "root")
    index = BinaryIndex([str(tmp_path / "root")], str(tmp_path / "cache"))
    found = find_binary(index, build_id, RECORDED)
    assert found.verified
    assert len(found.paths) == 2
    assert open_build_ids(found) == {ID}
    kinds = []
    for path in found.paths:
        with ElfImage.open(path) as image:
            kinds.append(image.find(".debug_info") is not None)
    assert sorted(kinds) == [False, True]
    assert index.problems == []


NAMELESS: dict[str, str] = {
    "bare tree": "aa/{rest}.debug",
    "gdb": "usr/lib/debug/.build-id/aa/{rest}.debug",
    "without suffix": "aa/{rest}",
    "client cache": "{id}/debuginfo",
    "unified": "aa/{rest}/executable",
    "symstore": "libx.so/elf-buildid-{id}/libx.so",
    "symstore symbols": "_.debug/elf-buildid-sym-{id}/_.debug",
    "binary_cache": "{padded}/libx.so",
    "binary_cache of 2023": "{padded}-libx.so",
    "perf": "usr/lib/libx.so/{id}/elf",
}


@pytest.mark.parametrize("place", NAMELESS.values(), ids=NAMELESS.keys())
@pytest.mark.parametrize("size", [2, 8, 16, 20])
def test_files_without_a_build_id(place: str, size: int, tmp_path: Path) -> None:
    """The layout vouches for a file without a build id, which stays unverified (rule R138). Ids have any length."""
    build_id = ("aa" + "bc" * 19)[: 2 * size]
    names = {"id": build_id, "rest": build_id[2:], "padded": build_id.ljust(40, "0")}
    path = write(tmp_path / "root" / place.format(**names))
    index = BinaryIndex([str(tmp_path / "root")], str(tmp_path / "cache"))
    for _ in range(2):  # walked, and remembered
        found = find_binary(index, build_id.upper(), "")
        assert found.paths == [str(path)]
        assert not found.verified
        assert found.expects(str(path)) == ""
        assert "by the layout of the folder" in found.tried[-1].outcome
        index = BinaryIndex([str(tmp_path / "root")], str(tmp_path / "cache"))


def test_listed_file_without_a_build_id(tmp_path: Path) -> None:
    """An entry of a build_id_list counts for a file that has no id, and for no other build (rule R138)."""
    path = write(tmp_path / "root/cache/data/app/libx.so")
    other = write(tmp_path / "root/cache/data/app/liby.so", "cd" * 20)
    listing = tmp_path / "root/cache/build_id_list"
    listing.write_text(f"0x{'ab' * 20}=/data/app/libx.so\n0x{'ef' * 20}=data/app/liby.so\n")
    cache = str(tmp_path / "cache")
    assert find_binary(BinaryIndex([str(tmp_path / "root")], cache), "ab" * 20, "").paths == [str(path)]
    wrong = find_binary(BinaryIndex([str(tmp_path / "root")], cache), "ef" * 20, "")
    assert wrong.reason is Reason.BUILD_ID_DIFFERS
    assert (str(other), f"is where {'ef' * 20} belongs, and has {'cd' * 20}") in wrong.tried
    listing.unlink()
    assert find_binary(BinaryIndex([str(tmp_path / "root")], cache), "ab" * 20, "").paths == []


@pytest.mark.parametrize("place", NAMELESS.values(), ids=NAMELESS.keys())
def test_another_build_in_the_place(place: str, tmp_path: Path) -> None:
    """A file with another build id is refused wherever it lies, and both ids are told (rule R143)."""
    build_id = "aa" + "bc" * 19
    names = {"id": build_id, "rest": build_id[2:], "padded": build_id}
    path = write(tmp_path / "root" / place.format(**names), "cd" * 20)
    found = find_binary(BinaryIndex([str(tmp_path / "root")]), build_id, "")
    assert found.paths == []
    assert found.reason is Reason.BUILD_ID_DIFFERS
    assert (str(path), f"is where {build_id} belongs, and has {'cd' * 20}") in found.tried


def test_own_build_id_beats_the_layout(tmp_path: Path) -> None:
    """A file that has the id is taken, and one whose folder only says so is not (rule R138)."""
    build_id = "aa" + "bc" * 19
    write(tmp_path / f"root/{build_id}/libx.so")
    path = write(tmp_path / "root/elsewhere", build_id)
    found = find_binary(BinaryIndex([str(tmp_path / "root")]), build_id, "")
    assert found.paths == [str(path)]
    assert found.verified


def test_cached_miss(tmp_path: Path) -> None:
    """An empty file in the cache of a debuginfod client is a miss that was remembered there."""
    (tmp_path / "root" / ID).mkdir(parents=True)
    (tmp_path / "root" / ID / "debuginfo").touch()
    found = find_binary(BinaryIndex([str(tmp_path / "root")]), ID, "")
    assert found.reason is Reason.NOT_FOUND
    assert "is empty" in found.tried[-1].outcome


def test_folder_called_by_a_build_id_as_root(tmp_path: Path) -> None:
    """The layout is known also where the root lies in the middle of it."""
    path = write(tmp_path / ".build-id/ab/cdef0123.debug")
    for root in (tmp_path, tmp_path / ".build-id", tmp_path / ".build-id/ab", path):
        assert find_binary(BinaryIndex([str(root)]), "abcdef0123", "").paths == [str(path)]


def test_list_in_folders_that_are_no_text(tmp_path: Path) -> None:
    """Paths in a list, and above it, are bytes (rule R138)."""
    folder = os.path.join(os.fsencode(tmp_path), b"root", b"\xff\xfe")
    os.makedirs(folder)
    with open(os.path.join(folder, b"\xe9.so"), "wb") as file:
        file.write(elf())
    with open(os.path.join(folder, b"build_id_list"), "wb") as file:
        file.write(b"0xabcd=\xe9.so\n0xabcd=nowhere\n")
    found = find_binary(BinaryIndex([str(tmp_path / "root")]), "abcd", "")
    assert [os.fsencode(path) for path in found.paths] == [os.path.join(folder, b"\xe9.so")]


@pytest.mark.parametrize(
    "path",
    ["/a", "/a/b", "/ab/c", "/zz/cdef", "/ab/..", "/../ab", "/ab/cde", "/00/0000.debug", "/elf-buildid-/x", "/0x/abcd"],
)
def test_what_is_no_layout(path: str) -> None:
    """Odd numbers of digits, single ones, zeros and dots are no build id."""
    assert path_build_id_key(path) == ""


def test_list_that_leads_astray() -> None:
    """Entries of a list that lead out of its folder, or are no entries, are passed over."""
    lines = b"0xabcd=../x\n0xabcd=a/../../x\n=x\n0xabcd=\n0xabcd=/a/./b\n\xff\xfe=\xff\n0xabcd=..x\n"
    assert list(listed(lines)) == [("abcd", "a/b"), ("abcd", "..x")]


def test_compressed_file_of_another_build(tmp_path: Path) -> None:
    """What comes out of a compressed file has to have the build id, or none (rule R143)."""
    other = elf(bytes.fromhex("cd" * 20))
    target = tmp_path / "root/aa/bcbcbc/debuginfo"
    target.parent.mkdir(parents=True)
    target.write_bytes(zstandard.compress(other))
    found = find_binary(BinaryIndex([str(tmp_path / "root")], str(tmp_path / "cache")), "aabcbcbc", "")
    assert found.paths == []
    assert f"is compressed and has {'cd' * 20}, wanted aabcbcbc" in found.tried[-1].outcome
    target.write_bytes(zstandard.compress(elf()))
    found = find_binary(BinaryIndex([str(tmp_path / "root")], str(tmp_path / "cache")), "aabcbcbc", "")
    assert len(found.paths) == 1
    assert not found.verified


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (zstandard.compress(b"\x7fELF" + bytes(1 << 27)), "as only a bomb does"),
        (gzip.compress(b"\x7fELF" + bytes(1 << 25), mtime=0), "as only a bomb does"),
        (zstandard.compress(STRIPPED.read_bytes())[:-100], "zstd stream is cut short"),
        (gzip.compress(STRIPPED.read_bytes(), mtime=0)[:-100], "cut short"),
        (gzip.compress(STRIPPED.read_bytes(), mtime=0)[:-8] + bytes(8), "gzip stream is damaged"),
        (zstandard.compress(STRIPPED.read_bytes()) + b"garbage", "something else after its zstd stream"),
        (zstandard.compress(b"hello"), "no ELF file"),
        (zstandard.compress(b""), "no ELF file"),
    ],
    ids=["bomb", "gzip bomb", "cut zstd", "cut gzip", "corrupt", "garbage", "text", "nothing"],
)
def test_compressed_files_that_are_refused(data: bytes, said: str, tmp_path: Path) -> None:
    """A bomb, a cut-off stream and what is no ELF file are reasons, and leave nothing behind."""
    target = tmp_path / "root/aa/bcbcbc/debuginfo"
    target.parent.mkdir(parents=True)
    target.write_bytes(data)
    found = find_binary(BinaryIndex([str(tmp_path / "root")], str(tmp_path / "cache")), "aabcbcbc", "")
    assert found.paths == []
    assert said in found.tried[-1].outcome
    left = [path for path in (tmp_path / "cache/unpacked-1").iterdir() if path.stat().st_size]
    assert left == []


def test_decompressed_once(tmp_path: Path) -> None:
    """What was decompressed is used again, until the compressed file changes."""
    unified_zstd(tmp_path / "root")
    index = BinaryIndex([str(tmp_path / "root")], str(tmp_path / "cache"))
    first = find_binary(index, ID, "")
    times = [os.stat(path).st_mtime_ns for path in first.paths]
    again = find_binary(BinaryIndex([str(tmp_path / "root")], str(tmp_path / "cache")), ID, "")
    assert again.paths == first.paths
    assert [os.stat(path).st_mtime_ns for path in again.paths] == times
    assert all(path.startswith(str(tmp_path / "cache")) for path in first.paths)


def test_decompressed_without_a_cache(tmp_path: Path) -> None:
    """Without a cache folder the decompressed files are temporary."""
    unified_gzip(tmp_path / "root")
    unpacked = Unpacked(None)
    (path,) = [unpacked.path_of(str(each), "aa") for each in (tmp_path / "root").rglob("debuginfo")]
    assert Path(path).read_bytes() == DEBUG.read_bytes()
    del unpacked
    assert not Path(path).exists()


def test_decompressed_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was decompressed and not used for long, or is too much, goes."""
    unified_gzip(tmp_path / "root")
    files = sorted(str(path) for path in (tmp_path / "root").rglob("*") if path.is_file())
    unpacked = Unpacked(str(tmp_path / "cache"))
    first = unpacked.path_of(files[0], "aa")
    os.utime(first, (1, 1))
    second = unpacked.path_of(files[1], "bb")
    assert not os.path.exists(first)
    monkeypatch.setattr("symbolize.binaries.unpack.MAX_ALL", 100)
    third = unpacked.path_of(files[0], "cc")
    assert os.path.exists(third)
    assert not os.path.exists(second)


@pytest.mark.parametrize(
    ("plain", "unpacks"), [([], True), ([STRIPPED], True), ([DEBUG], True), ([STRIPPED, DEBUG], False)]
)
def test_what_is_decompressed(tmp_path: Path, plain: list[Path], unpacks: bool) -> None:
    """The compressed files of a build count where its code or its debug information is missing, and else stay as they
    are (rule R143)."""
    unified_zstd(tmp_path / "root")
    for number, path in enumerate(plain):
        (tmp_path / "root" / f"plain{number}").write_bytes(path.read_bytes())
    found = find_binary(BinaryIndex([str(tmp_path / "root")], str(tmp_path / "cache")), ID, RECORDED)
    assert (found.has_code, found.has_dwarf) == (True, True)
    assert any("decompressed as" in attempt.outcome for attempt in found.tried) == unpacks

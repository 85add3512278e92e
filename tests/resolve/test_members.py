"""Libraries in archives."""

import shutil
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest

from symbolize import Reason
from symbolize.binaries import inflate, read_member, read_members
from symbolize.core.errors import InputError
from tests.support.archives import MEMBER, archive
from tests.support.pprof_writer import Mapping, Place
from tests.support.spectra import DEBUG, FIXED, MAIN, PIE, PIE_ID, SPLIT_ID, STRIPPED, shifted
from tests.support.whole_runs import run

CODE = 0x2000
BASE = 0x7A12_3400_0000


def mapping(name: str, offset: int, build_id: str = "") -> Mapping:
    """The mapping of the code of the library."""
    return Mapping(BASE + CODE, BASE + CODE + 0x2000, offset, name, build_id)


@pytest.mark.parametrize("name", ["base.apk", f"base.apk!/{MEMBER}", "base.apk!libspectra.so"])
@pytest.mark.parametrize("build_id", [PIE_ID, ""])
def test_stored_library(tmp_path: Path, name: str, build_id: str) -> None:
    """A library that is mapped out of an archive is found there by the name of the member, or by the offset."""
    begin = archive(tmp_path / "data" / "app" / "base.apk", PIE)
    recorded = mapping(f"/data/app/{name}", begin + CODE, build_id)
    names, report = run([recorded], [Place(BASE + MAIN, 1)], tmp_path)
    assert names == ["main"]
    assert report.mappings[0].verified == bool(build_id)
    assert report.mappings[0].files == [f"{tmp_path}/data/app/base.apk!/{MEMBER}"]


def test_list_of_an_archive(tmp_path: Path) -> None:
    """Libraries that are stored or deflated are listed with the place of their bytes; none that is empty, encrypted,
    packed otherwise, or not where the list says."""
    path = tmp_path / "base.apk"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("lib/a.so", b"stored")
        made.writestr("lib/b.so.dbg", b"deflated" * 10, zipfile.ZIP_DEFLATED)
        made.writestr("lib/empty.so", b"")
        made.writestr("lib/one.so", b"1")
        made.writestr("lib/c.so", b"packed" * 10, zipfile.ZIP_BZIP2)
        made.writestr("lib/so.txt", b"text")
        made.writestr("lib/secret.so", b"encrypted")
        made.writestr("lib/gone.so", b"nowhere")
    data = bytearray(path.read_bytes())
    entries = data.index(b"PK\x01\x02")
    secret, gone = (data.index(name, entries) - 46 for name in (b"lib/secret.so", b"lib/gone.so"))
    data[secret + 8] |= 1
    data[gone + 42 : gone + 46] = (3).to_bytes(4, "little")
    path.write_bytes(data)
    found = {member.name: member for member in read_members(str(path), (".so",))}
    (tmp_path / "damaged").write_bytes(data[:entries] + b"PK\1\3" + data[entries + 4 :])
    with pytest.raises(ValueError, match="is a corrupt archive"):
        read_members(str(tmp_path / "damaged"), (".so",))
    assert {name: (member.size, member.is_stored) for name, member in found.items()} == {
        "lib/a.so": (6, True),
        "lib/b.so.dbg": (80, False),
        "lib/one.so": (1, True),
    }
    assert read_member(str(path), found["lib/a.so"], 6) == b"stored"
    packed = read_member(str(path), found["lib/b.so.dbg"], 100)
    assert inflate(packed, 80, 1000, "x") == b"deflated" * 10
    with pytest.raises(ValueError, match="larger than 5 bytes"):
        read_member(str(path), found["lib/a.so"], 5)
    for size, limit in ((79, 1000), (81, 1000), (80, 79)):
        with pytest.raises(InputError, match="expand"):
            inflate(packed, size, limit, "x")
    with pytest.raises(InputError, match="x: deflate stream is damaged"):
        inflate(b"\xff" * 50, 80, 1000, "x")


def test_offset_in_the_library(tmp_path: Path) -> None:
    """Some recorders give the offset in the member."""
    archive(tmp_path / "base.apk", PIE)
    assert run([mapping("/base.apk!/" + MEMBER, CODE)], [Place(BASE + MAIN, 1)], tmp_path)[0] == ["main"]


@pytest.mark.parametrize("build_id", [SPLIT_ID, ""])
def test_stripped_library_and_debug_file(tmp_path: Path, build_id: str) -> None:
    """The debug file of the member is found by build id, which the member tells if the profile does not."""
    begin = archive(tmp_path / "base.apk", STRIPPED)
    shutil.copy(DEBUG, tmp_path / "symbols.debug")
    names, report = run([mapping("/x/base.apk", begin + CODE, build_id)], [Place(BASE + 0x345D, 1)], tmp_path)
    assert names != [""]
    assert report.mappings[0].files == [str(tmp_path / "symbols.debug"), f"{tmp_path}/base.apk!/{MEMBER}"]


def test_debug_file_at_other_addresses(tmp_path: Path) -> None:
    """The debug file of a member whose segments were moved answers for the addresses that it has itself (rule R145)."""
    for path, data in (("plain", STRIPPED.read_bytes()), ("moved", shifted(STRIPPED.read_bytes(), 0x10_0000))):
        (tmp_path / path).mkdir()
        (tmp_path / "library").write_bytes(data)
        begin = archive(tmp_path / path / "base.apk", tmp_path / "library")
        (tmp_path / "library").unlink()
        shutil.copy(DEBUG, tmp_path / path / "symbols.debug")
        names, report = run([mapping("/x/base.apk", begin + CODE)], [Place(BASE + 0x345D, 1)], tmp_path / path)
        assert names == ["std::thread::_State_impl::_M_run"]
        assert len(report.mappings[0].files) == 2


def test_symbols_in_an_archive(tmp_path: Path) -> None:
    """`native-debug-symbols.zip` has the debug files deflated."""
    begin = archive(tmp_path / "base.apk", STRIPPED)
    archive(tmp_path / "native-debug-symbols.zip", DEBUG, "x86_64/libspectra.so.dbg", deflated=True)
    names, _ = run([mapping("/x/base.apk", begin + CODE)], [Place(BASE + 0x345D, 1)], tmp_path)
    assert names != [""]


@pytest.mark.parametrize("offset", [CODE, 0x123000 + CODE])
def test_library_beside_no_archive(tmp_path: Path, offset: int) -> None:
    """Without the archive the unpacked library has to do: its length tells the segment if the offset does not."""
    shutil.copy(PIE, tmp_path / "libspectra.so")
    for build_id in (PIE_ID, ""):
        recorded = mapping("/data/base.apk!/" + MEMBER, offset, build_id)
        names, report = run([recorded], [Place(BASE + MAIN, 1)], tmp_path)
        assert names == ["main"]
        assert report.mappings[0].verified == bool(build_id)


@pytest.mark.parametrize("offset", [CODE, 0x123000 + CODE])
def test_no_segment_of_that_length(tmp_path: Path, offset: int) -> None:
    """Without the archive nothing is named where neither the offset nor the length tells the segment, which the whole
    mapping has to be in."""
    shutil.copy(PIE, tmp_path / "libspectra.so")
    for build_id in (PIE_ID, ""):
        name = "/data/base.apk!/" + MEMBER
        recorded = Mapping(BASE + CODE, BASE + CODE + 0x9000, offset, name, build_id)
        names, report = run([recorded], [Place(BASE + MAIN, 1)], tmp_path)
        assert names == [""]
        assert report.mappings[0].misses[0][0] == Reason.MISFIT


def test_another_version_of_the_archive(tmp_path: Path) -> None:
    """An archive whose library has another build id names nothing."""
    begin = archive(tmp_path / "base.apk", PIE)
    names, report = run([mapping("/base.apk", begin + CODE, "ee" * 20)], [Place(BASE + MAIN, 1)], tmp_path)
    assert names == [""]
    assert report.mappings[0].misses[0][0] == Reason.NOT_FOUND


def test_offsets_in_another_version_of_the_archive(tmp_path: Path) -> None:
    """Where a library begins in the archive of another version says nothing of the recorded offset."""
    begin = archive(tmp_path / "base.apk", FIXED, before=1 << 20)
    (tmp_path / "lib").mkdir()
    shutil.copy(PIE, tmp_path / "lib" / "libspectra.so")
    part = Mapping(BASE + CODE, BASE + CODE + 0x1000, begin + CODE, "/base.apk", PIE_ID)
    names, report = run([part], [Place(BASE + MAIN, 1)], tmp_path)
    assert names == [""]
    assert report.mappings[0].misses[0][0] == Reason.MISFIT


def test_archives_of_several_versions(tmp_path: Path) -> None:
    """Of two archives of one name with other libraries at the offset none is taken, unless the path or a build id tells
    which."""
    begin = archive(tmp_path / "1" / "base.apk", PIE)
    assert archive(tmp_path / "2" / "base.apk", FIXED) == begin
    for path, build_id, wanted in (("/x", "", ""), ("/1", "", "main"), ("/x", PIE_ID, "main")):
        recorded = mapping(f"{path}/base.apk", begin + CODE, build_id)
        assert run([recorded], [Place(BASE + MAIN, 1)], tmp_path)[0] == [wanted]


def test_outside_of_all_members(tmp_path: Path) -> None:
    """A mapping of a part of the archive without a library is not named."""
    archive(tmp_path / "base.apk", PIE)
    names, report = run([mapping("/base.apk", 0)], [Place(BASE + MAIN, 1)], tmp_path)
    assert names == [""]
    assert report.mappings[0].misses[0][0] == Reason.NOT_FOUND


def test_archives_that_lie(tmp_path: Path) -> None:
    """Damaged archives, and those whose lists are absurd, are told; nothing is read for them."""
    begin = archive(tmp_path / "good.apk", PIE)
    data = (tmp_path / "good.apk").read_bytes()
    end = data.rfind(b"PK\x05\x06")
    recorded = mapping("/base.apk", begin + CODE)
    for bad in (
        b"", b"PK", data[: len(data) // 2], data[:end] + data[end:].replace(b"\0\0", b"\xff\xff"),
        data[: end + 12] + b"\xff\xff\xff\x7f" + data[end + 16 :],
        data[: end + 12] + b"\0\0\0\x03" + data[end + 16 :], data[: end + 16] + b"\xff\xff\0\0" + data[end + 20 :],
    ):  # fmt: skip
        (tmp_path / "base.apk").write_bytes(bad)
        names, report = run([recorded], [Place(BASE + MAIN, 1)], tmp_path)
        assert names == [""]
        assert any("base.apk" in warning for warning in report.warnings)


def test_bomb(tmp_path: Path) -> None:
    """A deflated member that does not expand to what the list tells is refused."""
    path = tmp_path / "symbols.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("x/libspectra.so", bytes(1 << 24))
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<I", 1 << 24), struct.pack("<I", 1 << 16)))
    names, report = run([mapping("/base.apk!/" + MEMBER, CODE, PIE_ID)], [Place(BASE + MAIN, 1)], tmp_path)
    assert names == [""]
    assert any("does not expand" in warning for warning in report.warnings)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("x/libspectra.so", bytes(1 << 26))
    _, report = run([mapping("/base.apk!/" + MEMBER, CODE, PIE_ID)], [Place(BASE + MAIN, 1)], tmp_path)
    assert any("out of all proportion" in warning for warning in report.warnings)


@pytest.mark.needs("zip")
def test_archive_by_another_tool(tmp_path: Path) -> None:
    """Archives of other writers are read."""
    shutil.copy(PIE, tmp_path / "libspectra.so")
    subprocess.run(["zip", "-q", "-0", "base.apk", "libspectra.so"], cwd=tmp_path, check=True)
    (tmp_path / "libspectra.so").unlink()
    recorded = mapping("/base.apk!/libspectra.so", CODE)
    assert run([recorded], [Place(BASE + MAIN, 1)], tmp_path)[0] == ["main"]

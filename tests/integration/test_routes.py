"""The same binary, found by every route: the whole command gives the same frames, location by location."""

import gzip
import lzma
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import zstandard
from elftools.elf.elffile import ELFFile

from symbolize.cli import main
from symbolize.elf import read_build_id
from tests.support import fixture_files as fixtures
from tests.support.fixture_files import BINARIES, PARTS, Frame
from tests.support.http_server import HttpServer, Request
from tests.support.pprof_writer import Mapping, Place, profile

BASE = 0x5555_5555_4000
GNU, CLANG = BINARIES / "gcc-pie" / "ledger", BINARIES / "clang-pie" / "ledger"
GNU_ID = str(read_build_id(str(GNU)))
RECORDED = "/opt/ledger/bin/ledger"
STEP = 4
"""Bytes from one location to the next, over all of the code."""

Route = Callable[[Path], list[str]]
"""Lays a binary out below a folder; the arguments of the command by which it is found there."""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in an empty folder, as if the compiled core were there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("symbolize.core.cursor.COMPILED", True)


def places(path: Path) -> tuple[Mapping, list[Place]]:
    """The mapping of the code of a binary without its build id, and locations all over its `.text`."""
    ((offset, vaddr, size),) = fixtures.segments(path)
    with path.open("rb") as file:
        text = ELFFile(file).get_section_by_name(".text")
        begin, end = text["sh_addr"], text["sh_addr"] + text["sh_size"]
    start = BASE + vaddr
    mapping = Mapping(start, start + (size + 4095) // 4096 * 4096, offset, RECORDED)
    return mapping, [Place(BASE + vaddr, 1) for vaddr in range(begin, end, STEP)]


def chains(
    whole: Path, arguments: list[str], build_id: str, name: str = RECORDED, inside: int = 0
) -> list[list[Frame]]:
    """The frames of each location of a profile of the binary `whole` that was mapped from the file `name`.

    `inside` is where the binary lies within that file.
    """
    mapping, locations = places(whole)
    mapping = mapping._replace(build_id=build_id, file=name, offset=mapping.offset + inside)
    Path("in.pb").write_bytes(profile([mapping], [([place], [1]) for place in locations]))
    assert main(["in.pb", *arguments, "-o", "out.pb.gz", "-q"]) == 0
    message = fixtures.read_pprof(Path("out.pb.gz"))
    by_address = {location.address: location for location in message.location}
    return [fixtures.frames_of(message, by_address[place.address]) for place in locations]


@cache
def expected(program: Path, whole: Path | None = None) -> list[list[Frame]]:
    """The frames that the whole binary gives, or `whole`, a debug file of another build with the same code."""
    whole = whole or program
    frames = chains(program, ["--binaries", str(whole)], str(read_build_id(str(whole))))
    assert sum(len(chain) > 1 for chain in frames) > 100
    assert sum(bool(chain) and chain[0][2] > 0 for chain in frames) > 0.8 * len(frames)
    return frames


def objcopy(*arguments: str | Path) -> None:
    """Run objcopy."""
    subprocess.run(["objcopy", *arguments], check=True)


def stripped(folder: Path, name: str = "ledger") -> Path:
    """The binary without symbols and debug information."""
    objcopy("--strip-all", GNU, folder / name)
    return folder / name


def debug_file(path: Path) -> Path:
    """The debug file of the binary, at `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    objcopy("--only-keep-debug", GNU, path)
    return path


def by_name_only(folder: Path) -> list[str]:
    """The whole binary under its recorded path, below a folder that stands for the root of a host."""
    target = folder / RECORDED.lstrip("/")
    target.parent.mkdir(parents=True)
    shutil.copy(GNU, target)
    return ["--binaries", str(folder)]


def debug_link(folder: Path) -> list[str]:
    """A stripped binary without a build id to share, and the debug file that it names in `.debug` beside it."""
    bare, debug = folder / "ledger", debug_file(folder / ".debug" / "ledger.debug")
    objcopy("--strip-all", "--remove-section=.note.gnu.build-id", f"--add-gnu-debuglink={debug}", GNU, bare)
    return ["--binaries", str(folder)]


def build_id_tree(folder: Path) -> list[str]:
    """A stripped binary in one root, the debug file in the build id tree of another."""
    debug_file(folder / "debug" / ".build-id" / GNU_ID[:2] / f"{GNU_ID[2:]}.debug")
    (folder / "bin").mkdir()
    stripped(folder / "bin")
    return ["--binaries", str(folder / "bin"), "--binaries", str(folder / "debug")]


def debug_file_alone(folder: Path) -> list[str]:
    """Only the debug file, whose segments have no bytes, under a name that says nothing."""
    debug_file(folder / "blob")
    return ["--binaries", str(folder)]


def supplementary(name: str) -> Route:
    """A debug file that dwz took the common parts out of, in `name` of the fixtures."""

    def lay_out(folder: Path) -> list[str]:
        stripped(folder)
        shutil.copy(PARTS / name / "ledger.debug", folder)
        shutil.copy(PARTS / name / "common.dwz", folder)
        return ["--binaries", str(folder)]

    lay_out.__doc__ = f"{name}: the debug file and its supplementary file."
    return lay_out


def compressed(ending: str, compress: Callable[[bytes], bytes]) -> Route:
    """The debug file, compressed, in a symbol store; the stripped binary beside."""

    def lay_out(folder: Path) -> list[str]:
        stripped(folder)
        debug = debug_file(folder / "store" / GNU_ID[:2] / GNU_ID[2:] / "debuginfo")
        debug.write_bytes(compress(debug.read_bytes()))
        return ["--binaries", str(folder)]

    lay_out.__doc__ = f"Compressed with {ending}."
    return lay_out


ROUTES: dict[str, Route] = {
    "recorded path": by_name_only,
    "debug link": debug_link,
    "build id tree": build_id_tree,
    "debug file alone": debug_file_alone,
    "dwz": supplementary("dwz"),
    "dwz, DWARF 5": supplementary("dwz-dwarf5"),
    "gzip in a store": compressed("gzip", gzip.compress),
    "zstd in a store": compressed("zstd", zstandard.compress),
    "xz in a store": compressed("xz", lzma.compress),
}


BY_BUILD_ID = ROUTES.keys() - {"debug link"}
BY_NAME = ("recorded path", "debug link", "build id tree", "dwz", "dwz, DWARF 5")


@pytest.mark.needs("objcopy")
@pytest.mark.parametrize(
    ("route", "has_id"), [*((route, True) for route in sorted(BY_BUILD_ID)), *((route, False) for route in BY_NAME)]
)
@pytest.mark.full
def test_route(route: str, has_id: bool, tmp_path: Path) -> None:
    """What is laid out gives the frames of the whole binary; where its name is enough also without a build id in the
    profile."""
    whole = expected(GNU)
    folder = tmp_path / "binaries"
    folder.mkdir()
    assert chains(GNU, ROUTES[route](folder), GNU_ID if has_id else "") == whole


def one_of(name: str) -> str:
    """A linked name; the variants of a constructor or destructor, which often share their code, are one."""
    return re.sub(r"(?<=[CD])[0-4](?=E)", "", name)


@pytest.mark.needs("objcopy")
def test_mini_debug_info(tmp_path: Path) -> None:
    """A stripped binary with `.gnu_debugdata` alone names the functions, and knows no lines and no inlined calls."""
    whole = expected(GNU)
    mini, folder = tmp_path / "mini", tmp_path / "binaries"
    folder.mkdir()
    objcopy("--strip-debug", GNU, mini)
    objcopy("--only-keep-debug", mini)
    Path("packed.xz").write_bytes(lzma.compress(mini.read_bytes()))
    objcopy("--strip-all", "--add-section=.gnu_debugdata=packed.xz", GNU, folder / "ledger")
    named = chains(GNU, ["--binaries", str(folder)], GNU_ID)
    compared = 0
    for ours, full in zip(named, whole, strict=True):
        if ours and full:
            assert [frame[1:] for frame in ours] == [("", 0, 0)]
            assert one_of(ours[0][0]) == one_of(full[-1][0])
            compared += 1
    assert compared > 0.95 * len(whole)


def serving(files: dict[str, Path]) -> HttpServer:
    """A debuginfod server of one build that has what is in `files` by kind of request."""

    def answer(request: Request) -> None:
        _, word, build_id, kind, *_ = [*request.path.split("/"), "", ""]
        path = files.get(kind) if (word, build_id) == ("buildid", GNU_ID) else None
        if path is None:
            request.reply(404)
        else:
            request.reply(200, path.read_bytes())

    return HttpServer(answer)


@pytest.mark.process
@pytest.mark.needs("objcopy")
@pytest.mark.parametrize("local", [True, False], ids=["stripped here", "nothing here"])
def test_server(local: bool, tmp_path: Path) -> None:
    """The debug file of a server, with the stripped binary of a folder or of that server, too."""
    whole = expected(GNU)
    folder = tmp_path / "binaries"
    folder.mkdir()
    bare, debug = stripped(tmp_path), debug_file(tmp_path / "served.debug")
    with serving({"executable": bare, "debuginfo": debug}) as server:
        if local:
            stripped(folder)
        assert chains(GNU, ["--binaries", str(folder), "--debuginfod", server.url], GNU_ID) == whole


@pytest.mark.process
def test_server_without_code(tmp_path: Path) -> None:
    """The debug file is enough where the server does not have the executable."""
    whole = expected(GNU)
    with serving({"debuginfo": GNU}) as server:
        assert chains(GNU, ["--debuginfod", server.url], GNU_ID) == whole


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_archive(how: int, tmp_path: Path) -> None:
    """A member of an archive, mapped where it lies, or deflated in an archive of symbols."""
    whole = expected(GNU)
    folder, member = tmp_path / "binaries", "lib/x86_64/libledger.so"
    folder.mkdir()
    with zipfile.ZipFile(folder / "base.apk", "w", how) as archive:
        entry = zipfile.ZipInfo(member)
        entry.compress_type = how
        entry.extra = b"\xfe\xca" + (padding := 4096 - 30 - len(member) - 4).to_bytes(2, "little") + bytes(padding)
        archive.writestr(entry, GNU.read_bytes())
    recorded = f"/data/app/base.apk!/{member}"
    inside = 4096 if how == zipfile.ZIP_STORED else 0
    assert chains(GNU, ["--binaries", str(folder)], GNU_ID, recorded, inside) == whole


@pytest.mark.parametrize(
    ("parts", "kind", "program", "whole"),
    [
        ("gcc-dwarf4", "dwp", GNU, PARTS / "types" / "ledger.debug"),
        ("clang-dwarf5", "dwo", CLANG, CLANG),
        ("clang-dwarf5", "dwp", CLANG, CLANG),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.full
def test_split_units(parts: str, kind: str, program: Path, whole: Path, tmp_path: Path) -> None:
    """Split units, as files and in a package, give what the same compilation with all debug information gives."""
    frames = expected(program, whole)
    folder = tmp_path / "binaries"
    shutil.copytree(PARTS / parts / kind, folder)
    debug = shutil.copy(PARTS / parts / "ledger.debug", folder)
    assert chains(program, ["--binaries", str(folder)], str(read_build_id(str(debug)))) == frames

"""What the repository holds names no machine that it was made on."""

import gzip
import re
import struct
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from symbolize.elf import ElfImage
from tests.support.elf_writer import COMPRESSED, Section, elf_file
from tests.support.fixture_files import FIXTURES

ROOT = FIXTURES.parent
ELFCOMPRESS_ZLIB = 1

PATH = re.compile(rb"(?<![\w./-])/([A-Za-z][\w.+-]*)/[\w.+-]+")
"""An absolute path of at least two parts."""
NEUTRAL = {b"bin", b"etc", b"lib", b"lib64", b"opt", b"proc", b"src", b"usr"}
"""First parts of paths that are the same on all machines, or that programs are compiled or installed under here."""

MACHINE = re.compile(rb"/(?:work|root|farm|home|Users|mnt|tmp|var|builds?|builddir|runner|workspace)/[\w.+-]+/[\w.+-]+")
"""Folders of machines, also behind bytes that look like a part of the path: a length, an abbreviation code."""

PRIVATE = re.compile(rb"(?<![\w./-])/(?:work|root|farm|Users/\w+|home/(?!x/|user/)\w+)/")
"""Folders of a person or of one machine, in texts; those give many other paths as examples."""


def contents(path: Path) -> Iterator[bytes]:
    """The bytes of a file, and those that are compressed in it: of a gzip file, of the sections of an ELF file."""
    raw = path.read_bytes()
    yield raw
    if raw[:2] == b"\x1f\x8b":
        yield gzip.decompress(raw)
    if raw[:4] == b"\x7fELF":
        with ElfImage.open(path) as image:
            yield from (bytes(image.section_contents(section) or b"") for section in image.sections)


def foreign_paths(path: Path) -> set[bytes]:
    """Paths in a file that are not neutral."""
    found: set[bytes] = set()
    for content in contents(path):
        found |= {each[0] for each in PATH.finditer(content) if each[1] not in NEUTRAL}
        found |= {each[0] for each in MACHINE.finditer(content)}
    return found


def fixture_files() -> list[Path]:
    """All files of the fixtures that are committed: not the Go program, which has paths of its runtime."""
    files = (path for path in FIXTURES.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path for path in files if not path.is_relative_to(FIXTURES / "bin" / "go"))


def test_fixtures_name_no_machine() -> None:
    """Nothing in a fixture, compressed or not, tells where it was built."""
    found = {str(path.relative_to(FIXTURES)): foreign_paths(path) for path in fixture_files()}
    assert len(found) > 100
    assert {name: paths for name, paths in found.items() if paths} == {}


@pytest.mark.parametrize("folder", ["work/x/src", "root/src", "home/someone/src", "farm/7/src", "tmp/build", "data/x"])
def test_paths_are_found_wherever_they_are(tmp_path: Path, folder: str) -> None:
    """A path of another machine is found in plain bytes, in gzip files and in compressed sections."""
    line = f"\0/usr/include/x.h\0/{folder}/main.c\0".encode()
    header = struct.pack("<IIQQ", ELFCOMPRESS_ZLIB, 0, len(line), 1)
    squeezed = Section(".debug_line_str", header + zlib.compress(line), flags=COMPRESSED)
    legacy = Section(".zdebug_str", b"ZLIB" + struct.pack(">Q", len(line)) + zlib.compress(line))
    path = tmp_path / "file"
    for content in (line, gzip.compress(line), elf_file([squeezed]), elf_file([legacy])):
        path.write_bytes(content)
        assert any(f"/{folder}/main.c".encode().startswith(each) for each in foreign_paths(path))
    path.write_bytes(b"\0/usr/include/x.h\0../src/a.c\0a/b/c\0/src/mixer/main.cc\0")
    assert not foreign_paths(path)


def test_paths_are_found_behind_any_byte(tmp_path: Path) -> None:
    """A folder of a machine is found where the byte before it looks like a part of the path."""
    path = tmp_path / "file"
    path.write_bytes(b"a" + b"/".join((b"", b"work", b"x", b"main.c")))
    assert foreign_paths(path)


@pytest.mark.needs("git")
def test_texts_name_no_machine() -> None:
    """No source or page has a path of one machine or person."""
    if not (ROOT / ".git").exists():
        pytest.skip("what belongs to the repository is not known: run it in a clone of it")
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True)
    found = {
        name.decode(): PRIVATE.findall(content)
        for name in listed.stdout.split(b"\0")
        if name and (path := ROOT / name.decode()).is_file() and b"\0" not in (content := path.read_bytes())
    }
    assert len(found) > 200
    assert {name: paths for name, paths in found.items() if paths} == {}

"""What files say of the kernel that they are, or are a module of."""

from pathlib import Path

import pytest

from symbolize.elf import ElfImage
from symbolize.evidence.kernels import own_release
from tests.support.elf_writer import ALLOC, ET_EXEC, ET_REL, Section, elf_file


@pytest.mark.parametrize(
    ("kind", "name", "contents", "release"),
    [
        (ET_REL, ".modinfo", b"license=GPL\0vermagic=6.1.0-56-cloud-amd64 SMP mod_unload \0", "6.1.0-56-cloud-amd64"),
        (ET_EXEC, ".rodata", b"\0Linux version 6.12.117+deb12 (a@b.c) (gcc) #1 SMP\n\0", "6.12.117+deb12"),
        (ET_EXEC, ".rodata", b"%s version %s (a@b.c)\0Linux version \0", ""),
        (ET_EXEC, ".data", b"Linux version 6.1 (a@b.c)", ""),
    ],
)
def test_own_release(kind: int, name: str, contents: bytes, release: str, tmp_path: Path) -> None:
    """A module has it in its information, a kernel in its banner (R465, other kernels)."""
    path = tmp_path / "file"
    path.write_bytes(elf_file([Section(name, contents, flags=ALLOC)], kind=kind))
    with ElfImage.open(path) as image:
        assert own_release([image]) == release

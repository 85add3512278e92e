"""The binaries that are measured: where they come from, their addresses and sizes."""

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from profiles import random_profile, text_vaddrs

import symbolize
from symbolize.elf import ElfImage, read_build_id
from symbolize.elf.image import Section

HERE = Path(__file__).resolve().parent
DEBUG_FILES = Path("/usr/lib/debug/.build-id")
NEEDED = ("info", "abbrev", "str", "line", "line_str", "ranges", "rnglists", "addr", "str_offsets")
"""The debug sections that a lookup of functions and lines can need (rule R100)."""


@dataclass(frozen=True)
class Sizes:
    """Bytes: `.text`, all debug sections inflated, those of NEEDED inflated, the latter as they are in the file."""

    text: int
    dwarf: int
    needed: int
    stored: int


@dataclass
class Subject:
    """A binary, its debug file if that is another, and what it is."""

    key: str
    what: str
    binary: Path
    debug: Path

    @property
    def files(self) -> list[Path]:
        """The files that symbolize is given."""
        return [self.binary] if self.debug == self.binary else [self.binary, self.debug]

    @cached_property
    def base(self) -> int:
        """The vaddr that tables of symbolic count from, that of the first segment (rule R128)."""
        with ElfImage.open(self.binary) as image:
            return image.segments[0].vaddr

    @cached_property
    def sizes(self) -> Sizes:
        """What is in the debug file, by its headers."""
        with ElfImage.open(self.debug) as image:
            text = image.find(".text")
            dwarf = needed = stored = 0
            for section in image.sections:
                name = section.name.removeprefix(".z").removeprefix(".")
                if section.type == "SHT_NOBITS" or not name.startswith("debug_") or name == "debug_gdb_scripts":
                    continue
                size = inflated_size(image, section)
                dwarf += size
                if name.removeprefix("debug_") in NEEDED:
                    needed += size
                    stored += section.size
            return Sizes(text.size if text else 0, dwarf, needed, stored)

    def is_compressed(self) -> bool:
        """Whether debug sections have to be inflated."""
        return self.sizes.stored < self.sizes.needed

    def inputs(self, folder: Path, count: int) -> tuple[Path, Path, int]:
        """A profile and a list of the same `count` random addresses of `.text`, and how many they are."""
        profile, addresses = folder / f"{self.key}-{count}.pb.gz", folder / f"{self.key}-{count}.txt"
        with ElfImage.open(self.binary) as image:
            vaddrs = text_vaddrs(image, count)
            if not profile.exists():
                symbolize.write(random_profile(image, vaddrs), profile)
                addresses.write_text("".join(f"{vaddr:#x}\n" for vaddr in vaddrs))
        return profile, addresses, len(vaddrs)


def inflated_size(image: ElfImage, section: Section) -> int:
    """The size of a debug section when inflated, from its compression header."""
    data, order = image.raw(section), "big" if image.big_endian else "little"
    if data is None:
        return 0
    if section.name.startswith(".z"):
        return int.from_bytes(data[4:12], "big")
    if section.flags & 0x800:
        return int.from_bytes(data[8:16] if image.is_64 else data[4:8], order)
    return section.size


def debug_file(binary: Path) -> Path:
    """The installed debug file of a binary, or the binary itself."""
    build_id = read_build_id(str(binary)) or "none"
    installed = DEBUG_FILES / build_id[:2] / f"{build_id[2:]}.debug"
    return installed if installed.exists() else binary


def built(target: Path, program: str, *arguments: str) -> list[Path]:
    """`target`, made by a compiler if it is not there and the compiler is."""
    compiler = shutil.which(program) or shutil.which(program, path=str(Path.home() / ".cargo" / "bin"))
    if not target.exists() and compiler:
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([compiler, *arguments], check=False, capture_output=True)
    return [target] if target.exists() else []


def glob(pattern: str) -> Callable[[Path], list[Path]]:
    """Finds installed files."""
    return lambda work: sorted(Path("/").glob(pattern))


def rust(work: Path) -> list[Path]:
    """The Rust program of this folder."""
    target = work / "words"
    return built(target, "rustc", "-O", "-g", "-o", str(target), str(HERE / "programs" / "words.rs"))


def go(work: Path) -> list[Path]:
    """Go's own compiler, which distributions ship without debug information."""
    target = work / "compile"
    return built(target, "go", "build", "-o", str(target), "cmd/compile")


KNOWN: Mapping[str, tuple[str, str, Callable[[Path], Sequence[Path]]]] = {
    "vmlinux": (
        "Linux kernel, C, DWARF 5, not compressed",
        "linux-image-6.1.0-*-cloud-amd64-dbg",
        glob("usr/lib/debug/boot/vmlinux-*"),
    ),
    "ceph-mon": ("C++, DWARF 5, zlib", "ceph-mon, ceph-mon-dbg", glob("usr/bin/ceph-mon")),
    "libpython": (
        "C with LTO, DWARF 5, zlib",
        "libpython3.11, python3.11-dbg",
        glob("usr/lib/*/libpython3.11.so.1.0"),
    ),
    "words": ("Rust, small, `benchmarks/programs/words.rs` built with `-O -g`", "rustc", rust),
    "go-compile": ("Go's compiler, built with `go build cmd/compile`, zlib", "golang-go", go),
}
"""What each binary is, the Debian packages it comes from, how it is found."""


def find_subjects(work: Path, given: Mapping[str, Sequence[Path]]) -> tuple[list[Subject], dict[str, str]]:
    """The binaries that are there, and why others are not; `given` are files by name, instead of those of KNOWN."""
    subjects, missing = [], {}
    for key in {**KNOWN, **given}:
        what, package, find = KNOWN.get(key, ("", "", glob("nothing")))
        paths = [path.resolve() for path in given.get(key) or find(work)[-1:]]
        if not paths or not all(path.exists() for path in paths):
            missing[key] = f"not there; Debian: {package}" if package else "no such file"
            continue
        debug = paths[1] if len(paths) > 1 else debug_file(paths[0])
        subjects.append(Subject(key, what, paths[0], debug))
    return subjects, missing

"""The binaries that are measured: where they come from, their addresses, and recordings of some of them."""

import os
import random
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

import symbolize
from symbolize.core.arrays import Bool, Int64, UInt64
from symbolize.elf import ElfImage, read_build_id, read_symbols
from symbolize.elf.image import Section
from symbolize.profile import Locations, Mappings, Profile, Samples, ValueType
from symbolize.resolve.addresses import to_vaddrs

HERE = Path(__file__).resolve().parent
DEBUG_FILES = Path("/usr/lib/debug/.build-id")
LIBJVM = "usr/lib/jvm/java-17-openjdk-*/lib/server/libjvm.so"
CALLS = "--call-graph=dwarf,16384"
LARGE_UNITS = 4_130
"""Units of `large_program`, of 1 MiB each."""


@dataclass
class Subject:
    """A binary, its debug file if that is another, and what it is."""

    key: str
    what: str
    binary: Path
    debug: Path

    def __post_init__(self) -> None:
        for path in self.files:
            read_again(path)

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
    def debug_bytes(self) -> int:
        """The size of all debug sections, inflated."""
        with ElfImage.open(self.debug) as image:
            return sum(
                inflated_size(image, section)
                for section in image.sections
                if section.name.startswith((".debug_", ".zdebug_")) and section.type != "SHT_NOBITS"
            )

    def inputs(self, folder: Path, count: int) -> tuple[Path, Path, int]:
        """A profile and a list of the same `count` random addresses of `.text`, and how many they are."""
        with ElfImage.open(self.binary) as image:
            vaddrs = text_vaddrs(image, count)
            rows = np.arange(count + 1)
            return *written(folder / f"{self.key}-{count}", image, np.array(vaddrs, np.uint64), rows, rows[:-1]), count


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


def text_vaddrs(image: ElfImage, count: int, seed: int = 1) -> list[int]:
    """`count` distinct random vaddrs of `.text`, ascending; all of it if it is smaller."""
    section = image.find(".text")
    if section is None:
        raise SystemExit(f"{image.path}: no .text")
    chosen = random.Random(seed).sample(range(section.vaddr, section.vaddr + section.size), min(count, section.size))
    return sorted(chosen)


def written(target: Path, image: ElfImage, vaddrs: UInt64, offsets: Int64, rows: Int64) -> tuple[Path, Path]:
    """A profile without names and a list of its addresses.

    Stacks are `rows` of `vaddrs` between `offsets`. The mapping is that of everything, whose addresses are vaddrs; it
    has the build id of `image`.
    """
    profile = Profile()
    add = profile.strings.add
    profile.sample_types = [ValueType(add(b"samples"), add(b"count"))]
    mappings = Mappings.zeros(1)
    mappings.limit[0] = (1 << 64) - 1
    mappings.filename[0] = add(b"/opt/" + image.path.rpartition("/")[2].encode())
    mappings.build_id[0] = add((image.build_id or "").encode())
    profile.mappings = mappings
    count = len(vaddrs)
    profile.locations = Locations(
        vaddrs, np.zeros(count, np.int32), np.zeros(count, np.bool_), np.zeros(count + 1, np.int64)
    )
    stacks = len(offsets) - 1
    profile.samples = Samples(
        offsets, rows.astype(np.int32), np.ones((stacks, 1), np.int64), np.zeros(stacks + 1, np.int64)
    )
    paths = target.with_suffix(".pb.gz"), target.with_suffix(".txt")
    symbolize.write(profile, paths[0])
    paths[1].write_text("".join(f"{vaddr:#x}\n" for vaddr in np.unique(vaddrs).tolist()))
    return paths


def read_again(path: Path) -> None:
    """Have the file in the page cache as reading brings it there.

    What was just written stands there in large pieces, and each that a process touches counts into its peak as a whole.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        while os.read(descriptor, 1 << 20):
            pass
    finally:
        os.close(descriptor)


def debug_file(binary: Path) -> Path:
    """The installed debug file of a binary, or the binary itself."""
    build_id = read_build_id(str(binary)) or "none"
    installed = DEBUG_FILES / build_id[:2] / f"{build_id[2:]}.debug"
    return installed if installed.exists() else binary


def built(target: Path, program: str, *arguments: str) -> list[Path]:
    """`target`, made by a program if it is not there and the program is."""
    command = shutil.which(program) or shutil.which(program, path=str(Path.home() / ".cargo" / "bin"))
    if not target.exists() and command:
        target.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([command, *arguments], check=False, capture_output=True)
    return [target] if target.exists() else []


def glob(pattern: str) -> Callable[[Path], list[Path]]:
    """Finds the last of installed files."""
    return lambda work: sorted(Path("/").glob(pattern))[-1:]


def plain_libjvm(work: Path) -> list[Path]:
    """libjvm and its debug file with sections that are not compressed."""
    for binary in glob(LIBJVM)(work):
        if (debug := debug_file(binary)) != binary:
            target = work / "libjvm.debug"
            plain = built(target, "objcopy", "--decompress-debug-sections", str(debug), str(target))
            return [binary, *plain] if plain else []
    return []


def rust(work: Path) -> list[Path]:
    """The Rust program of this folder."""
    target = work / "words"
    return built(target, "rustc", "-O", "-g", "-o", str(target), str(HERE / "programs" / "words.rs"))


def go(work: Path) -> list[Path]:
    """Go's own compiler, which distributions ship without debug information."""
    target = work / "compile"
    return built(target, "go", "build", "-o", str(target), "cmd/compile")


KNOWN: Mapping[str, tuple[str, str, Callable[[Path], Sequence[Path]]]] = {
    "libjvm": ("C++, DWARF 5, not compressed", "openjdk-17-jre-headless, openjdk-17-dbg, binutils", plain_libjvm),
    "libjvm-zlib": ("the same, zlib", "openjdk-17-jre-headless, openjdk-17-dbg", glob(LIBJVM)),
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
    "perl": ("C, stripped, without debug information", "perl-base", glob("usr/bin/perl")),
}
"""What each binary is, the Debian packages it comes from, how it is found."""


def find_subjects(work: Path, given: Mapping[str, Sequence[Path]]) -> tuple[list[Subject], dict[str, str]]:
    """The binaries that are there, and why others are not; `given` are files by name, instead of those of KNOWN."""
    subjects, missing = [], {}
    for key in {**KNOWN, **given}:
        what, package, find = KNOWN.get(key, ("", "", glob("nothing")))
        paths = [path.resolve() for path in given.get(key) or find(work)]
        if not paths or not all(path.exists() for path in paths):
            missing[key] = f"not there; Debian: {package}" if package else "no such file"
            continue
        debug = paths[1] if len(paths) > 1 else debug_file(paths[0])
        subjects.append(Subject(key, what, paths[0], debug))
    return subjects, missing


def large_program(work: Path) -> Subject | None:
    """A library with 4 GiB of debug sections: a unit of 200 functions with 20 types each, linked so many times."""
    target, source, units = work / "large.so", work / "large.c", work / "large.units"
    if not target.exists():
        lines = ["typedef unsigned long word;", "static word mix(word a, word b) { return (a * 31 + b) ^ b >> 7; }"]
        members = " ".join(f"word member_{number};" for number in range(16))
        for each in range(200):
            lines += [f"struct part_{each}_{number} {{ {members} }};" for number in range(20)]
            lines.append(
                f"struct record_{each} {{ word key; int count; struct record_{each} *next; }};\n"
                f"static __attribute__((used, noinline)) word visit_{each}(struct record_{each} *each, word seed)\n"
                f"{{\n  for (; each; each = each->next)\n    if (each->count > {each})\n"
                f"      seed = mix(mix(each->key, seed), each->count);\n  return mix(seed, {each});\n}}"
            )
        work.mkdir(parents=True, exist_ok=True)
        source.write_text("\n".join(lines) + "\n")
        options = ["-O2", "-g", "-fPIC", "-fno-eliminate-unused-debug-types", "-c", "-o"]
        object_file = built(work / "large.o", "gcc", *options, str(work / "large.o"), str(source))
        units.write_text("\n".join(map(str, object_file * LARGE_UNITS)))
        built(target, "mold", "-shared", "-o", str(target), f"@{units}")
    return Subject("large", "C, DWARF 5, made for this", target, target) if target.exists() else None


class Recording(NamedTuple):
    """What is recorded of a binary: how perf finds callers, and a command of the shell in a folder of its own."""

    callers: str
    command: str


RECORDINGS: Mapping[str, Recording] = {
    "libjvm": Recording(CALLS, "javac -d . Words.java && java -cp . Words"),
    "vmlinux": Recording("-g", "tar -cf - /usr/share/doc /usr/lib/python3 | gzip -1 > archive; find /usr > names"),
    "ceph-mon": Recording(
        CALLS,
        "mkdir data; for i in $(seq 20); do rm -rf data/*; ceph-mon --mkfs -i a --mon-data data --mon-host 127.0.0.1 "
        "--keyring keyring --fsid 4a1e2f60-0000-4000-8000-000000000001; done",
    ),
    "words": Recording(CALLS, "cat /usr/share/doc/*/copyright | {work}/words || true"),
    "go-compile": Recording(
        "-g",
        "cd $(go env GOROOT)/src/go/types; for i in 1 2 3; do {work}/compile -o /dev/null -p go/types "
        "$(go list -f '{{{{range .GoFiles}}}}{{{{.}}}} {{{{end}}}}' go/types); done",
    ),
    "perl": Recording(CALLS, "for i in $(seq 10); do pod2text $(perldoc -l perlfunc || which pod2text); done"),
}
WORDS = """import java.util.*;
public class Words {
  public static void main(String[] arguments) {
    Map<String, List<Integer>> found = new TreeMap<>();
    for (int i = 0; i < 400000; i++) found.computeIfAbsent("word" + i % 997, word -> new ArrayList<>()).add(i);
    System.out.println(found.size());
  }
}
"""
KEYRING = '[mon.]\n\tkey = AQBhjFxlAAAAABAAcUrm1zXIe3YL2jHnQk0YZA==\n\tcaps mon = "allow *"\n'


def recorded(subject: Subject, folder: Path, work: Path) -> tuple[Path, Path, int, int] | str:
    """A profile of real stacks in a binary without their other frames, the list of its addresses, and how many stacks
    and addresses they are; or why there is none."""
    recording = RECORDINGS[subject.key]
    place = folder / f"recording-{subject.key}"
    place.mkdir()
    (place / "Words.java").write_text(WORDS)
    (place / "keyring").write_text(KEYRING)
    perf = ["perf", "record", "-q", "-F", "3000", recording.callers, "-o", "perf.data", "--", "sh", "-c"]
    done = subprocess.run([*perf, recording.command.format(work=work)], cwd=place, capture_output=True, check=False)
    if done.returncode:
        return f"cannot be recorded: {done.stderr.decode(errors='replace').strip()[-200:]}"
    profile = symbolize.symbolize(place / "perf.data", options=symbolize.Options(local=True)).profile
    with ElfImage.open(subject.binary) as image:
        vaddrs, found = (kernel_vaddrs if subject.key == "vmlinux" else own_vaddrs)(profile, image)
        samples = profile.samples.taken(np.ones(len(profile.samples), np.bool_), found)
        samples = samples.taken(np.diff(samples.location_offsets) > 0)
        if not len(samples):
            return "nothing of it was recorded"
        rows = (np.cumsum(found) - 1)[samples.locations]
        paths = written(folder / f"stacks-{subject.key}", image, vaddrs[found], samples.location_offsets, rows)
    return *paths, len(samples), len(np.unique(vaddrs[found]))


def own_vaddrs(profile: Profile, image: ElfImage) -> tuple[UInt64, Bool]:
    """The vaddrs of the locations that are in a binary, and which are."""
    locations, mappings = profile.locations, profile.mappings
    vaddrs, found = np.zeros(len(locations), np.uint64), np.zeros(len(locations), np.bool_)
    for row in range(len(mappings)):
        if os.path.realpath(profile.strings.text(int(mappings.filename[row]))) == image.path:
            start, limit, offset = (int(each[row]) for each in (mappings.start, mappings.limit, mappings.file_offset))
            here = np.flatnonzero(locations.mapping == row)
            addresses = locations.address[here]
            vaddrs[here], found[here] = to_vaddrs(
                addresses, start, limit, offset, image.segments, relocatable=image.kind != "ET_EXEC"
            )
    return vaddrs, found


def kernel_vaddrs(profile: Profile, image: ElfImage) -> tuple[UInt64, Bool]:
    """The vaddrs of the places in another kernel that correspond: in the functions of the same names, as far behind
    their begin, or at their last byte."""
    running = dict[str, int]()
    for line in Path("/proc/kallsyms").read_text().splitlines():
        start, _, name = line.split()[:3]
        running.setdefault(name, int(start, 16))
    symbols = read_symbols(image, ".symtab")
    assert symbols is not None
    names = (symbols.text(int(name)).decode(errors="replace") for name in symbols.name)
    here = dict(zip(names, zip(symbols.vaddr.tolist(), symbols.size.tolist(), strict=True), strict=True))
    locations, functions = profile.locations, profile.functions
    vaddrs, found = np.zeros(len(locations), np.uint64), locations.has_lines()
    for row in np.flatnonzero(found).tolist():
        function = int(locations.lines.function[locations.line_offsets[row + 1] - 1])
        name = profile.strings.text(int(functions.system_name[function]))
        begin, size = here.get(name, (0, 0))
        found[row] = name in running and size > 0
        if found[row]:
            vaddrs[row] = begin + min(max(int(locations.address[row]) - running[name], 0), size - 1)
    return vaddrs, found

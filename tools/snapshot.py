"""Record everything that symbolize writes for many inputs, and list what differs from another record.

    python tools/snapshot.py take FOLDER [BINARY...] [--debug DIR]
    python tools/snapshot.py compare OLD NEW

`take` symbolizes the profiles of fixtures/, and random addresses of the fixtures and of each BINARY, and keeps below
FOLDER outputs, reports as text and JSON, plans, lists of folded code, and kept tables. It runs the command alone, so
that it works the same before and after a change of the code. Take both records in one checkout, because messages name
paths, and with the same FOLDER, moved away in between.
"""

import argparse
import filecmp
import gzip
import os
import random
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).parent.parent
FIXTURES = ROOT / "fixtures"
ADDRESSES = 5_000
BIAS = 0x5555_0000_0000


def random_profile(binary: Path, target: Path) -> None:
    """Write a gperftools profile of one-frame stacks at random addresses of the code of `binary`."""
    with open(binary, "rb") as file:
        header = next(s.header for s in ELFFile(file).iter_segments("PT_LOAD") if s.header.p_flags & 1)
    begin = (BIAS + header.p_vaddr) & -4096
    end = (BIAS + header.p_vaddr + header.p_memsz + 4095) & -4096
    choose = random.Random(binary.name)
    words = [0, 3, 0, 10_000, 0]
    for _ in range(ADDRESSES):
        words += [1, 1, BIAS + header.p_vaddr + choose.randrange(header.p_memsz)]
    words += [0, 1, 0]
    line = f"{begin:x}-{end:x} r-xp {header.p_offset & -4096:08x} 08:01 1 {binary}\n"
    target.write_bytes(struct.pack(f"<{len(words)}Q", *words) + line.encode())


def run(folder: Path, name: str, arguments: list[str]) -> None:
    """Run the command and keep what it prints, and its exit code, below `folder`."""
    done = subprocess.run(
        [sys.executable, "-m", "symbolize", *arguments], cwd=ROOT, capture_output=True, check=False, timeout=600
    )
    printed = done.stdout + b"\n--\n" + done.stderr + f"\n-- exit code {done.returncode}\n".encode()
    (folder / f"{name}.txt").write_bytes(printed.replace(os.fsencode(folder), b"FOLDER"))


def symbolize(folder: Path, name: str, profile: Path, binaries: list[Path]) -> None:
    """Keep all that comes of one profile."""
    here = folder / name
    here.mkdir(parents=True)
    common = [str(profile), "--no-cache", *(word for each in binaries for word in ("--binaries", str(each)))]
    for mode in ("default", "templates", "full", "none"):
        output = here / f"{mode}.pb.gz"
        run(here, mode, [*common, "--demangle", mode, "-v", "-o", str(output)])
        if output.is_file():
            (here / f"{mode}.pb").write_bytes(gzip.decompress(output.read_bytes()))
            output.unlink()
    folded = ["--folded-report", str(here / "folded.json"), "--missing", str(here / "missing.txt")]
    run(here, "json", [*common, "--report", "json", "-v", "--nearest-line", "--annotate", *folded, "-o", os.devnull])
    run(here, "plan", ["plan", *common[:1], *common[2:]])


def take(folder: Path, subjects: list[Path], debug: Path) -> int:
    """Write a record below `folder`."""
    folder.mkdir(parents=True)
    jobs: list[tuple[str, Path, list[Path]]] = []
    for profile in sorted((FIXTURES / "profiles").rglob("*.*")):
        jobs.append((f"profiles/{profile.name}", profile, [FIXTURES / "bin"]))
    for profile in sorted((FIXTURES / "simpleperf").glob("*.proto")):
        jobs.append((f"simpleperf/{profile.name}", profile, [FIXTURES / "simpleperf/binaries"]))
        jobs.append((f"simpleperf/wrong-{profile.name}", profile, [FIXTURES / "simpleperf/wrong_build"]))
    binaries = sorted(path for path in (FIXTURES / "bin").rglob("*") if is_executable(path))
    for binary in [*binaries, *subjects]:
        name = str(binary.relative_to(FIXTURES) if binary in binaries else binary).strip("/").replace("/", "-")
        profile = folder / f"{name}.prof"
        random_profile(binary, profile)
        jobs.append((f"random/{name}", profile, [binary, debug] if binary in subjects else [binary.parent]))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in [pool.submit(symbolize, folder, *job) for job in jobs]:
            done.result()
    kept = folder / "tables"
    given = [str(path) for path in (FIXTURES / "bin", FIXTURES / "simpleperf/binaries", *subjects)]
    run(folder, "index", ["index", *given, "--cache", str(kept), "-v"])
    for database in kept.rglob("*.sqlite*"):  # holds times and inodes
        database.unlink()
    print(f"{len(jobs)} profiles, {sum(path.is_file() for path in folder.rglob('*'))} files")
    return 0


def is_executable(path: Path) -> bool:
    """Whether a file is an ELF file with code that is loaded."""
    if not path.is_file() or path.is_symlink():
        return False
    with open(path, "rb") as file:
        if file.read(4) != b"\x7fELF":
            return False
        segments = ELFFile(file).iter_segments("PT_LOAD")
        return any(segment.header.p_flags & 1 and segment.header.p_filesz for segment in segments)


def compare(old: Path, new: Path) -> int:
    """List the files that differ or are in one record only; 1 if there are any."""
    names = {path.relative_to(top) for top in (old, new) for path in top.rglob("*") if path.is_file()}
    differing = [
        name
        for name in sorted(names)
        if not (old / name).is_file()
        or not (new / name).is_file()
        or not filecmp.cmp(old / name, new / name, shallow=False)
    ]
    for name in differing:
        print(name)
    print(f"{len(differing)} of {len(names)} files differ")
    return 1 if differing else 0


def main() -> int:
    """Take a record or compare two."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    taking = commands.add_parser("take")
    taking.add_argument("folder", type=Path)
    taking.add_argument("binaries", type=Path, nargs="*")
    taking.add_argument(
        "--debug", type=Path, default=Path("/usr/lib/debug"), help="with their debug files (%(default)s)"
    )
    comparing = commands.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    options = parser.parse_args()
    if options.command == "take":
        return take(options.folder.resolve(), [path.resolve() for path in options.binaries], options.debug)
    return compare(options.old, options.new)


if __name__ == "__main__":
    sys.exit(main())

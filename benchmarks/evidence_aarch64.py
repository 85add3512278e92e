"""Recordings of AArch64 programs on another machine: what qemu runs is followed, block by block, and sampled."""

import subprocess
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import evidence_builds as b
import numpy as np

import symbolize
from symbolize.core.arrays import offsets_of
from symbolize.elf import ElfImage
from symbolize.profile import Locations, Mappings, Profile, Samples, ValueType

EMULATOR = "qemu-aarch64-static"
FLAGS = {"gcc": "-O2", "O0": "-O0", "Os": "-Os", "O3": "-O3"}
VARIANTS = (*FLAGS, *b.EDITS, "constant")
COMPILERS = {"C": "aarch64-linux-gnu-gcc", "C++": "aarch64-linux-gnu-g++"}
MAX_BLOCKS = 2_000_000
SAMPLE = 199
"""Of so many blocks one is sampled."""
OPS = (("call", 0xFC000000, 0x94000000), ("call", 0xFFFFFC1F, 0xD63F0000), ("return", 0xFFFFFC1F, 0xD65F0000))
"""`bl`, `blr`, `ret`."""
BRANCHES = (
    (0x7C000000, 0x14000000),  # b, bl
    (0xFE000000, 0xD6000000),  # br, blr, ret
    (0xFF000010, 0x54000000),  # b.cond
    (0x7E000000, 0x34000000),  # cbz, cbnz
    (0x7E000000, 0x36000000),  # tbz, tbnz
    (0xFF000000, 0xD4000000),  # svc
)


def programs(folder: Path) -> list[b.Program]:
    """Our own in C and C++."""
    return [each for each in b.programs(folder) if each.root == b.OWN and each.language in COMPILERS]


def builds(program: b.Program, folder: Path) -> Iterator[b.Build]:
    """The builds of a program, statically linked, so that addresses are vaddrs; raises Missing."""
    for variant in VARIANTS:
        made = b.Build(program, variant, folder / "aarch64" / program.name / variant)
        if not made.file.exists():
            made.folder.mkdir(parents=True, exist_ok=True)
            source = made.folder / program.sources[0]
            source.write_text(b.edited((b.OWN / program.sources[0]).read_text(), variant))
            options = [FLAGS.get(variant, "-O2"), "-w", "-static", "-no-pie", "-Wl,--build-id=sha1"]
            b.run([COMPILERS[program.language], *options, "-o", made.folder / "made", source, "-lm"])
            source.unlink()
            (made.folder / "made").rename(made.file)
        yield made


class Code:
    """The branches of a program: where the block that begins at an address ends, and how."""

    def __init__(self, path: Path) -> None:
        with ElfImage.open(str(path)) as image:
            (segment,) = (each for each in image.segments if each.executable)
            data = bytes(image.data[segment.file_offset : segment.file_offset + segment.file_size])
            self.begin, self.file_offset = segment.vaddr, segment.file_offset
        words = np.frombuffer(data[: len(data) & ~3], "<u4")
        self.end = self.begin + 4 * len(words)
        self.kinds = {
            self.begin + 4 * int(at): kind for kind, mask, bits in OPS for at in np.flatnonzero(words & mask == bits)
        }
        is_branch = np.zeros(len(words), np.bool_)
        for mask, bits in BRANCHES:
            is_branch |= words & mask == bits
        self.branches = (self.begin + 4 * np.flatnonzero(is_branch)).tolist()

    def last(self, vaddr: int) -> int:
        """The branch that ends the block at a vaddr."""
        at = bisect_right(self.branches, vaddr - 1)
        return int(self.branches[at]) if at < len(self.branches) else vaddr


def record(made: b.Build, folder: Path) -> dict[str, Path]:
    """The recording of a build in FOLDER/recordings, made unless it is there; raises Missing."""
    path = folder / "recordings" / "aarch64" / f"{made.subject.name}-{made.variant}.pb.gz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        symbolize.write(follow(made), str(path))
    return {"qemu": path}


def follow(made: b.Build) -> Profile:
    """The stacks of some of the instructions that a program runs in one round: exact leaves, and callers by the calls
    and returns before. Raises Missing."""
    code = Code(made.file)
    command = [EMULATOR, "-d", "exec,nochain", str(made.file), "0"]
    try:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError as error:
        raise b.Missing(f"{EMULATOR} is not installed") from error
    assert child.stderr is not None
    draw = np.random.default_rng(b.SEED)
    ends: dict[int, int] = {}
    stack: list[int] = []
    stacks: Counter[tuple[int, ...]] = Counter()
    before = 0
    for number, line in enumerate(child.stderr):
        if number > MAX_BLOCKS:
            child.kill()
            break
        if not line.startswith("Trace"):
            continue
        vaddr = int(line.split("/", 2)[1], 16)
        if before:
            end = ends[before] if before in ends else ends.setdefault(before, code.last(before))
            kind = code.kinds.get(end)
            if kind == "call" and vaddr != end + 4 and not before < vaddr <= end:
                stack.append(end + 4)
            elif kind == "return" and vaddr in stack[-4:]:
                while stack.pop() != vaddr:
                    pass
        before = vaddr
        if number % SAMPLE == 0 and code.begin <= vaddr < code.end:
            leaf = vaddr + 4 * int(draw.integers(0, (code.last(vaddr) - vaddr) // 4 + 1))
            stacks[(leaf, *(each - 1 for each in reversed(stack[-60:])))] += 1
    child.wait()
    return profile_of(stacks, code, f"/srv/{made.subject.file}")


def profile_of(stacks: Counter[tuple[int, ...]], code: Code, path: str) -> Profile:
    """A profile of stacks of vaddrs."""
    profile = Profile()
    profile.sample_types = [ValueType(profile.strings.add(b"samples"), profile.strings.add(b"count"))]
    profile.mappings = Mappings.zeros(1)
    profile.mappings.start[0], profile.mappings.limit[0] = code.begin, code.end
    profile.mappings.file_offset[0] = code.file_offset
    profile.mappings.filename[0] = profile.strings.add(path.encode())
    frames = np.array([vaddr for stack in stacks for vaddr in stack], np.uint64)
    addresses, rows = np.unique(frames, return_inverse=True)
    count = len(addresses)
    profile.locations = Locations(
        addresses, np.zeros(count, np.int32), np.zeros(count, np.bool_), np.zeros(count + 1, np.int64)
    )
    profile.samples = Samples(
        offsets_of(np.array([len(stack) for stack in stacks], np.int64)),
        rows.astype(np.int32),
        np.array([*stacks.values()], np.int64)[:, None],
        np.zeros(len(stacks) + 1, np.int64),
    )
    return profile

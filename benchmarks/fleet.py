"""Makes the profiles of a fleet: `python benchmarks/fleet.py FOLDER [--profiles N] [--binaries N] [--seed N]`.

FOLDER/profiles/host-XX/ gets profiles of services that run on many hosts, FOLDER/binaries/ the binaries of this
machine that they run, as BUILD-ID/NAME, and the debug files below .build-id, all as hard links or copies. Addresses are
those of real functions, those of callers real call sites. The stacks of a service are shared by all its processes and
drawn by Zipf's law; of the locations of a profile a fifth is its own. Most profiles are gzipped pprof; some are pprof
in zstd or not compressed, CPU profiles of gperftools, which know no build ids, and Perfetto traces. Equal options on
one machine give equal files.
"""

import argparse
import gzip
import os
import shutil
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import capstone
import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "benchmarks"
sys.path.append(str(ROOT))

from subjects import debug_file, find_subjects, glob  # noqa: E402

from symbolize.elf import ElfError, ElfImage, Segment, read_symbols  # noqa: E402
from symbolize.elf.call_frames import frame_ranges  # noqa: E402
from symbolize.elf.symbols import STT_FUNC  # noqa: E402
from symbolize.formats import encode  # noqa: E402
from symbolize.profile import Labels, Locations, Mappings, Profile, Samples, ValueType  # noqa: E402

PAGE = 0x1000
PER_HOST = 50
PROCESSES = 5
"""Processes that a service has on a host, one after the other; each lies elsewhere."""
MIN_SAMPLES, MAX_SAMPLES = 200, 2000
STACKS = 6000
HOT = 4000
"""Addresses of a binary that stacks prefer, most of all the first ones."""
OWN_SHARE = 0.2
"""The share of a profile's locations that no other profile has."""
PERIOD = 10_000_000
MAX_DECODED = 1 << 12
"""Bytes of a function from which leaves are drawn."""
DECODER = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
START_OF_TIME = 1_790_000_000
KERNEL = "[kernel.kallsyms]_text"
KERNEL_SHARE = 0.15
PROGRAM_WEIGHT = 8.0
"""How often calls from one binary to another end in the program, where it is 2 for a library with symbols."""
LIBRARIES = 10
PROGRAMS = (
    *("bin/python3.*d", "bin/ceph-monstore-tool", "bin/python3.1?", "bin/node", "bin/git", "bin/perl", "bin/gdb"),
    *("lib/go-*/pkg/tool/*/pprof", "bin/radosgw-admin", "bin/cmake"),
)
"""Programs of services below /usr, beside those that are measured one by one."""

COMMON = ("debug/libstdc++.so.6.0.*[0-9]", "libc.so.6", "ld-linux-x86-64.so.2", "libm.so.6")
"""Libraries that every program has, if not linked statically."""

OTHER = (
    *("libcrypto.so.3", "libssl.so.3", "libgcc_s.so.1", "libz.so.1.*", "libzstd.so.1.*", "librados.so.2.*"),
    *("libpython3.*d.so.1.0", "libglib-2.0.so.0.*", "libsqlite3.so.0.*", "libxml2.so.2.*", "libcurl.so.4.*"),
    *("liblzma.so.5.*", "libgnutls.so.30.*", "libtcmalloc.so.4.*", "libexpat.so.1.*", "libuv.so.1.*"),
    *("libperl.so.5.*", "librbd.so.1.*", "libprotobuf.so.*", "libicuuc.so.*", "libunwind.so.8.*"),
)

FIXTURES = (
    *("fixtures/bin/gcc-pie/ledger", "fixtures/bin/gcc-pie/libresonance.so", "fixtures/bin/clang-pie/spectra"),
    *("fixtures/bin/gcc-gz-zlib/ledger", "fixtures/bin/go/census"),
)

UInt64 = NDArray[np.uint64]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


@dataclass
class Code:
    """A binary: where hosts have it, its functions (vaddr and size), the segment they are in.

    `vaddr`, `file_offset` and `size` are of the mapping of that segment, in whole pages. `moves` says whether it is
    loaded anywhere.
    """

    path: str
    build_id: str
    files: list[Path]
    starts: UInt64
    sizes: UInt64
    vaddr: int
    file_offset: int
    size: int
    moves: bool
    is_static: bool
    has_symbols: bool
    calls: UInt64
    """The last bytes of its direct calls."""
    text: bytes
    text_vaddr: int
    """The code of the segment, and where it begins."""

    @property
    def is_kernel(self) -> bool:
        """Whether this is a kernel."""
        return self.path == KERNEL

    def leaves(self, choose: np.random.Generator, count: int) -> UInt64:
        """Random instructions of random functions, behind the first one: what no sampled address is refutes a build."""
        rows = choose.integers(len(self.starts), size=count)
        found = [self.instructions(row) for row in rows.tolist()]
        shares = zip(found, choose.random(count).tolist(), strict=True)
        return np.array([begins[int(share * len(begins))] for begins, share in shares], np.uint64)

    def instructions(self, row: int) -> list[int]:
        """The vaddrs of the instructions of a function behind the first one, if it has others."""
        start, size = int(self.starts[row]), min(int(self.sizes[row]), MAX_DECODED)
        at = start - self.text_vaddr
        begins = [vaddr for vaddr, *_ in DECODER.disasm_lite(self.text[at : at + size], start)]
        return begins[1:] or [start]

    def callers(self, choose: np.random.Generator, count: int) -> UInt64:
        """Random vaddrs inside calls, or anywhere in functions where no call is known."""
        if not len(self.calls):
            return self.leaves(choose, count)
        return self.calls[choose.integers(len(self.calls), size=count)]


class Service(NamedTuple):
    """A program with its libraries. Stack `i` is the frames `frames[offsets[i]:offsets[i + 1]]`, leaf first.

    A frame is an index of `code` (a row of `codes`) and of `vaddr`, whose two rows are addresses as a caller and as a
    leaf. `kernel` is the row of the kernel, or -1.
    """

    name: str
    codes: list[Code]
    kernel: int
    code: Int32
    vaddr: UInt64
    offsets: Int64
    frames: Int64
    log_weights: NDArray[np.float64]


class Process(NamedTuple):
    """A process of a service: who it is and where the mappings of its binaries start."""

    host: str
    pid: int
    starts: list[int]


class Drawn(NamedTuple):
    """What a profile says: locations (as the frames of a Service), stacks as CSR of them, counts, threads, seconds."""

    code: Int32
    vaddr: UInt64
    offsets: Int64
    locations: Int32
    counts: Int64
    threads: Int64
    time: int


def read_code(binary: Path, debug: Path) -> Code | None:
    """What a binary has to be known for, None if it is no program or has no functions."""
    try:
        with ElfImage.open(binary) as image, ElfImage.open(debug) as debug_image:
            starts, sizes = functions(debug_image)
            has_symbols = debug_image.find(".symtab") is not None
            if not len(starts):
                starts, sizes = functions(image)
            text = image.find(".text")
            segments = [each for each in image.segments if each.executable]
            if not segments or text is None or image.machine != "EM_X86_64":
                return None
            if not len(starts):
                starts = np.arange(text.vaddr, text.vaddr + text.size - 64, 64, dtype=np.uint64)
                sizes = np.full(len(starts), 64, np.uint64)
            segment = next(each for each in segments if 0 <= text.vaddr - each.vaddr < each.memory_size)
            is_static = not image.find(".interp") and ".so" not in binary.name
            calls = direct_calls(image, segment)
            code = bytes(image.data[segment.file_offset : segment.file_offset + segment.file_size])
            build_id, lowest = image.build_id or "", min(each.vaddr for each in image.segments)
    except (ElfError, StopIteration):
        return None
    inside = (starts >= segment.vaddr) & (starts + sizes <= segment.vaddr + segment.file_size) & (sizes > 1)
    is_kernel = binary.name.startswith("vmlinux")
    starts, sizes = starts[inside], sizes[inside]
    if not len(starts):
        return None
    before = np.searchsorted(starts, calls, side="right") - 1
    return Code(
        KERNEL if is_kernel else f"/opt/{binary.name}" if binary.is_relative_to(ROOT) else str(binary),
        build_id,
        [binary] if debug == binary else [binary, debug],
        starts,
        sizes,
        segment.vaddr // PAGE * PAGE,
        segment.file_offset // PAGE * PAGE,
        -(-(segment.vaddr % PAGE + segment.file_size) // PAGE) * PAGE,
        lowest == 0 and not is_kernel,
        is_static,
        has_symbols,
        calls[(before >= 0) & (calls < (starts + sizes)[before])],
        code,
        segment.vaddr,
    )


def direct_calls(image: ElfImage, segment: Segment) -> UInt64:
    """The vaddrs of the last bytes of what looks like a direct call to a place in the segment (Intel SDM, CALL)."""
    code = np.frombuffer(image.data, np.uint8, segment.file_size, segment.file_offset)
    at = np.flatnonzero(code[:-4] == 0xE8)
    distance = np.ascontiguousarray(code[at[:, None] + np.arange(1, 5)]).view("<i4")[:, 0]
    target = at + 5 + distance
    ends: UInt64 = at[(target >= 0) & (target < len(code))].astype(np.uint64)
    return ends + np.uint64(segment.vaddr + 4)


def functions(image: ElfImage) -> tuple[UInt64, UInt64]:
    """Start and size of the functions by the symbol table, else by the tables for unwinding."""
    symbols = read_symbols(image, ".symtab")
    if symbols is not None and (symbols.type == STT_FUNC).any():
        symbols = symbols.take(symbols.type == STT_FUNC)
        starts, first = np.unique(symbols.vaddr, return_index=True)
        return starts, symbols.size[first]
    begin, end = frame_ranges(image)
    return begin, end - begin


def find_codes(work: Path, count: int) -> tuple[list[Code], list[Code], list[Code]]:
    """Programs, libraries and kernels, `count` at most together."""
    subjects, missing = find_subjects(work, {})
    for key, why in missing.items():
        print(f"{key}: {why}", file=sys.stderr)
    found = {subject.binary: subject.debug for subject in subjects}
    patterns = [f"usr/lib/*/{name}" for name in COMMON]
    patterns += [f"{ROOT.relative_to('/')}/{name}" for name in FIXTURES]
    patterns += [f"usr/{name}" for name in PROGRAMS] + [f"usr/lib/*/{name}" for name in OTHER]
    for pattern in patterns:
        for path in (path.resolve() for path in glob(pattern)(work)[:1]):
            if not any(path.name == known.name for known in found):
                found[path] = debug_file(path)
    codes: list[Code] = []
    for path, debug in found.items():
        if len(codes) < count and (code := read_code(path, debug)):
            codes.append(code)
    kernels = [code for code in codes if code.is_kernel]
    libraries = [code for code in codes if ".so" in code.files[0].name]
    return [code for code in codes if code not in kernels + libraries], libraries, kernels


def make_service(
    program: Code, libraries: Sequence[Code], kernels: Sequence[Code], choose: np.random.Generator
) -> Service:
    """A program, the libraries it has and the stacks that its processes share: a tree, in which stacks are paths.

    Callees are mostly in the binary of their caller; the kernel calls nothing but itself.
    """
    codes = [program]
    if not program.is_static:
        common = [each for each in libraries if each.files[0].match("libc.so.*") or each.files[0].match("ld-linux*")]
        rest = [each for each in libraries if each not in common]
        chosen = choose.permutation(len(rest))[: int(choose.integers(2, LIBRARIES))]
        codes += common + [rest[row] for row in chosen]
    user = len(codes)
    codes += kernels[:1]
    kernel = user if len(codes) > user else -1
    parents = (np.arange(STACKS) * choose.uniform(0.4, 1, STACKS)).astype(np.int64).tolist()
    weights = np.array([PROGRAM_WEIGHT] + [2.0 if code.has_symbols else 0.5 for code in codes[1:user]])
    targets = choose.choice(user, STACKS, p=weights / weights.sum()).tolist()
    moves = choose.random(STACKS).tolist()
    enters = ((choose.random(STACKS) < KERNEL_SHARE) & (np.arange(STACKS) > STACKS * 0.7)).tolist()
    code, paths = [0], [[0]]
    for node in range(1, STACKS):
        here = code[parents[node]]
        if here != kernel:
            here = kernel if enters[node] and kernel >= 0 else targets[node] if moves[node] < 0.3 else here
        code.append(here)
        paths.append([node, *paths[parents[node]]])
    hot = (choose.random(STACKS) ** 3 * HOT).astype(np.int64)
    row_of = np.array(code, np.int32)
    vaddr = np.zeros((2, STACKS), np.uint64)
    for row, each in enumerate(codes):
        same = np.random.default_rng(len(each.starts))  # the same hot places for all services
        for kind, places in enumerate((each.callers(same, HOT), each.leaves(same, HOT))):
            vaddr[kind, row_of == row] = places[hot[row_of == row]]
    offsets = np.cumsum([0, *map(len, paths)])
    frames = np.array([frame for path in paths for frame in path])
    log_weights = -np.log(1.0 + choose.permutation(STACKS))
    return Service(program.files[0].name, codes, kernel, row_of, vaddr, offsets, frames, log_weights)


def make_process(service: Service, host: str, choose: np.random.Generator) -> Process:
    """A process whose binaries are where address space layout randomisation puts them, the libraries side by side."""
    place = 0x7F00_0000_0000 + int(choose.integers(1 << 27)) * PAGE
    starts = []
    for row, code in enumerate(service.codes):
        if not code.moves:
            start = code.vaddr
        elif row == 0:
            start = 0x5500_0000_0000 + int(choose.integers(1 << 27)) * PAGE + code.vaddr
        else:
            start = place + code.vaddr
            place = start + code.size + int(choose.integers(64, 4096)) * PAGE
        starts.append(start)
    return Process(host, int(choose.integers(300, 1 << 22)), starts)


def draw(service: Service, choose: np.random.Generator, time: int) -> Drawn:
    """Stacks of a service by their weights, with locations that are this profile's own in random places."""
    count = int(np.exp(choose.uniform(np.log(MIN_SAMPLES), np.log(MAX_SAMPLES))))
    order = np.argpartition(-(service.log_weights + choose.gumbel(size=STACKS)), count)[:count]
    stacks = np.sort(order)
    lengths = np.diff(service.offsets)[stacks]
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    entries = np.arange(offsets[-1]) + np.repeat(service.offsets[stacks] - offsets[:-1], lengths)
    in_kernel = service.code[service.frames[entries]] == service.kernel
    is_leaf = np.zeros(len(entries), np.bool_)
    is_leaf[1:] = in_kernel[:-1] & ~in_kernel[1:]  # where the kernel was entered
    is_leaf[offsets[:-1]] = True
    keys, locations = np.unique(2 * service.frames[entries] + is_leaf, return_inverse=True)
    code, vaddr = service.code[keys // 2], service.vaddr[keys % 2, keys // 2]
    places = choose.choice(len(entries), int(len(keys) * OWN_SHARE / (1 - OWN_SHARE)), replace=False)
    own = code[locations[places]]
    fresh = np.zeros(len(places), np.uint64)
    for row, each in enumerate(service.codes):
        for here, some in ((is_leaf[places], each.leaves), (~is_leaf[places], each.callers)):
            fresh[here & (own == row)] = some(choose, int((here & (own == row)).sum()))
    locations[places] = len(keys) + np.arange(len(places))
    used, locations = np.unique(locations, return_inverse=True)
    return Drawn(
        np.concatenate((code, own))[used],
        np.concatenate((vaddr, fresh))[used],
        offsets,
        locations.astype(np.int32),
        choose.zipf(1.8, count).clip(1, 10_000),
        choose.integers(16, size=count),
        time,
    )


def addresses(service: Service, process: Process, drawn: Drawn) -> UInt64:
    """The runtime addresses of the locations."""
    bias = [
        (start - code.vaddr) & 0xFFFFFFFFFFFFFFFF for start, code in zip(process.starts, service.codes, strict=True)
    ]
    return drawn.vaddr + np.array(bias, np.uint64)[drawn.code]


def as_profile(service: Service, process: Process, drawn: Drawn) -> Profile:
    """The columns of a pprof profile, with labels for thread and host."""
    profile = Profile()
    add, count = profile.strings.add, len(drawn.counts)
    profile.sample_types = [ValueType(add(b"samples"), add(b"count")), ValueType(add(b"cpu"), add(b"nanoseconds"))]
    profile.period_type, profile.period = profile.sample_types[1], PERIOD
    profile.time_nanos, profile.duration_nanos = drawn.time * 10**9, 10 * 10**9
    mappings = Mappings.zeros(len(service.codes))
    for row, (start, code) in enumerate(zip(process.starts, service.codes, strict=True)):
        mappings.start[row], mappings.limit[row] = start, start + code.size
        mappings.file_offset[row] = start if code.is_kernel else code.file_offset
        mappings.filename[row], mappings.build_id[row] = add(code.path.encode()), add(code.build_id.encode())
    profile.mappings = mappings
    places = len(drawn.code)
    profile.locations = Locations(
        addresses(service, process, drawn), drawn.code, np.zeros(places, np.bool_), np.zeros(places + 1, np.int64)
    )
    labels = Labels.zeros(2 * count)
    threads = np.array([add(f"worker-{number}".encode()) for number in range(16)], np.int32)
    labels.key[::2], labels.text[::2] = add(b"thread"), threads[drawn.threads]
    labels.key[1::2], labels.text[1::2] = add(b"host"), add(process.host.encode())
    values = np.stack((drawn.counts, drawn.counts * PERIOD), axis=1)
    profile.samples = Samples(drawn.offsets, drawn.locations, values, np.arange(count + 1) * 2, labels)
    return profile


def gperftools(service: Service, process: Process, drawn: Drawn) -> bytes:
    """A CPU profile of gperftools: words, then the memory map. Callers are return addresses; the kernel is not there.

    Stacks that would be empty go.
    """
    starts = drawn.offsets[:-1]
    user = drawn.code[drawn.locations] != service.kernel
    frames = addresses(service, process, drawn)[drawn.locations] + 1
    lengths = np.add.reduceat(user, starts)
    first = starts + np.diff(drawn.offsets) - lengths  # the kernel is at the leaf end of stacks
    frames[first[lengths > 0]] -= np.uint64(1)
    frames, counts, lengths = frames[user], drawn.counts[lengths > 0], lengths[lengths > 0]
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    words = np.empty(2 * len(lengths) + len(frames), np.uint64)
    heads = offsets[:-1] + 2 * np.arange(len(lengths))
    words[heads], words[heads + 1] = counts, lengths
    words[np.arange(len(frames)) + 2 * (np.repeat(np.arange(len(lengths)), lengths) + 1)] = frames
    lines = [
        f"{start:08x}-{start + code.size:08x} r-xp {code.file_offset:08x} 08:01 {row + 1000}      {code.path}\n"
        for row, (start, code) in enumerate(zip(process.starts, service.codes, strict=True))
        if not code.is_kernel
    ]
    header = struct.pack("<5Q", 0, 3, 0, PERIOD // 1000, 0)
    return header + words.astype("<u8").tobytes() + struct.pack("<3Q", 0, 1, 0) + "".join(lines).encode()


def perfetto(service: Service, process: Process, drawn: Drawn) -> bytes:
    """A Perfetto trace of PerfSamples, one for each count up to a few. Frames and callstacks have ids from 1 here."""
    from tests.support import perfetto_writer as writer

    builds = {row: bytes.fromhex(code.build_id) for row, code in enumerate(service.codes, 1) if code.build_id}
    stacks = np.split(drawn.locations, drawn.offsets[1:-1])
    interned = writer.interned(
        functions={0: ""},
        builds=builds,
        paths={row: code.path.lstrip("/") for row, code in enumerate(service.codes, 1)},
        mappings=[
            writer.mapping(row, row if row in builds else 0, start, start + code.size, *perfetto_place(code), [row])
            for row, (start, code) in enumerate(zip(process.starts, service.codes, strict=True), 1)
        ],
        frames=[
            writer.frame(number, 0, code + 1, vaddr)
            for number, (code, vaddr) in enumerate(zip(drawn.code.tolist(), drawn.vaddr.tolist(), strict=True), 1)
        ],
        callstacks=[writer.callstack(number, (stack[::-1] + 1).tolist()) for number, stack in enumerate(stacks, 1)],
    )
    pieces = [writer.packet(1, writer.CLEARED, interned, writer.perf_defaults({1: PERIOD, 4: 10}))]
    total = 0
    for number, count in enumerate(drawn.counts.clip(1, 5).tolist()):
        tid = process.pid + int(drawn.threads[number])
        for _ in range(count):
            total += PERIOD
            when = drawn.time * 10**9 + total
            pieces.append(writer.perf_sample(number + 1, process.pid, tid, 0, 2, total, flags=2, time=when))
    return b"".join(pieces)


def perfetto_place(code: Code) -> tuple[int, int, int]:
    """Exact offset, start offset and load bias of a mapping."""
    return code.file_offset, 0, code.vaddr - code.file_offset


def zstd(data: bytes) -> bytes:
    """Compressed by zstd."""
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


FORMATS: Mapping[str, Callable[[Service, Process, Drawn], bytes]] = {
    ".pb.gz": lambda *of: gzip.compress(encode(as_profile(*of)), 6, mtime=0),
    ".pb.zst": lambda *of: zstd(encode(as_profile(*of))),
    ".pb": lambda *of: encode(as_profile(*of)),
    ".prof": gperftools,
    ".perfetto-trace": perfetto,
}
"""How profiles are made, by their endings."""

SHARES = (0.82, 0.05, 0.05, 0.05, 0.03)
"""The share of each of FORMATS."""


def write_profiles(folder: Path, count: int, services: Sequence[Service], seed: int) -> None:
    """Write `count` profiles, PER_HOST a host; each is made by a generator of its own, from `seed` and its number."""
    hosts = -(-count // PER_HOST)
    popularity = 1 / np.arange(1, len(services) + 1)
    for number in range(count):
        choose = np.random.default_rng((seed, 1, number))
        host, turn = f"host-{number % hosts:02d}", number // hosts
        row = int(choose.choice(len(services), p=popularity / popularity.sum()))
        epoch = turn * PROCESSES // PER_HOST
        process = make_process(services[row], host, np.random.default_rng((seed, 2, number % hosts, row, epoch)))
        time = START_OF_TIME + turn * 60 + number % hosts
        drawn = draw(services[row], choose, time)
        ending = str(choose.choice(list(FORMATS), p=SHARES))
        path = folder / host / f"{services[row].name}-{process.pid}-{time}{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(FORMATS[ending](services[row], process, drawn))


def place_binaries(folder: Path, codes: Sequence[Code]) -> None:
    """Hard links to the binaries, or copies, where pprof and symbolize find them."""
    for code in codes:
        binary, *debug = code.files
        place(binary, folder / (code.build_id or "none") / binary.name)
        for path in debug:
            place(path, folder / ".build-id" / code.build_id[:2] / f"{code.build_id[2:]}.debug")


def place(source: Path, target: Path) -> None:
    """A hard link, or a copy on another file system."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def make_fleet(folder: Path, profiles: int, binaries: int = 30, seed: int = 1, work: Path | None = None) -> None:
    """Make all of it in `folder`; `work` has programs that are built."""
    choose = np.random.default_rng((seed, 0))
    programs, libraries, kernels = find_codes((work or WORK).resolve(), binaries)
    if not programs:
        raise SystemExit("no programs found")
    place_binaries(folder / "binaries", [*programs, *libraries, *kernels])
    services = [make_service(program, libraries, kernels, choose) for program in programs]
    write_profiles(folder / "profiles", profiles, services, seed)


def main() -> None:
    """Read the options and make a fleet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--profiles", type=int, default=2000)
    parser.add_argument("--binaries", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, default=WORK, help="folder for programs that are built")
    options = parser.parse_args()
    make_fleet(options.folder, options.profiles, options.binaries, options.seed, options.work)


if __name__ == "__main__":
    main()

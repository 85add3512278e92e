"""Time and memory of perf.data files beside perf's own: `python benchmarks/perf_data.py [FOLDER] [--samples N]`.

Writes into FOLDER (default: a temporary one) unless they are there:

- `frames`: a million samples of 30 frames, as `perf record -g` writes them, in libraries of this machine;
- `zstd`: the same records compressed, as `perf record -z` writes them;
- `dwarf`: a recording with `--call-graph dwarf,8192` of a Python program, its samples repeated until there are a
  fiftieth as many. It is recorded because only real stacks can be unwound.

Then runs `symbolize`, `perf report` and `perf script` with each in turn. Their output is thrown away.
"""

import argparse
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SAMPLES = 1_000_000
DEPTH, STACKS, ADDRESSES = 30, 20_000, 20_000
"""Frames of a stack, distinct stacks, and distinct addresses in each library."""
PROCESSES, THREADS, PROCESSORS = 5, 40, 8
PERIOD = 1_000_000
PAGE = 4096
DWARF_SHARE = 50
FOLDER = Path("/usr/lib/x86_64-linux-gnu")
LIBRARIES = tuple((FOLDER / name).resolve() for name in ("libstdc++.so.6", "libcrypto.so.3", "libc.so.6"))
PYTHON = Path("/usr/bin/python3").resolve()
RECORDED = (
    "import json, re\n"
    "for n in range(60):\n"
    "    text = json.dumps([{'a%d' % i: [i, str(i)]} for i in range(2000)])\n"
    "    json.loads(text); re.findall(r'\\w+', text); sorted(text)\n"
)

# linux/perf_event.h and tools/lib/perf/include/perf/event.h
MMAP2, COMM, SAMPLE, FINISHED_ROUND, COMPRESSED = 10, 3, 9, 68, 81
USER, HAS_BUILD_ID = 2, 1 << 14
CONTEXT_USER = 0xFFFF_FFFF_FFFF_FE00
IP, TID, TIME, CALLCHAIN, CPU, SAMPLE_PERIOD = 1 << 0, 1 << 1, 1 << 2, 1 << 5, 1 << 7, 1 << 8
IS_MMAP, IS_COMM, IS_FREQUENCY, IS_TASK, HAS_SAMPLE_ID, IS_MMAP2 = 1 << 8, 1 << 9, 1 << 10, 1 << 13, 1 << 18, 1 << 23
ATTRIBUTE_SIZE, HEADER_SIZE, HEADER_TYPE = 128, 104, struct.Struct("<8sQQQQQQQQ32s")
FEATURE_ARCHITECTURE, FEATURE_COMPRESSED, ZSTD = 6, 27, 1
CHUNK, BUFFER = 48 << 10, 528 << 10
"""Bytes of records in one compressed record, and what perf says that it needs for them."""
ROUND = 10_000

RECORD = np.dtype(
    [
        ("type", "<u4"), ("misc", "<u2"), ("size", "<u2"), ("ip", "<u8"), ("pid", "<u4"), ("tid", "<u4"),
        ("time", "<u8"), ("cpu", "<u4"), ("reserved", "<u4"), ("period", "<u8"), ("count", "<u8"),
        ("ips", "<u8", DEPTH + 1),
    ]
)  # fmt: skip


class Library(NamedTuple):
    """A file that is mapped in all processes: its executable segment, rounded to pages, and addresses in its code."""

    path: Path
    build_id: bytes
    vaddr: int
    file_offset: int
    size: int
    vaddrs: NDArray[np.uint64]


def libraries(paths: Sequence[Path]) -> list[Library]:
    """Those of the files that are there and can be loaded anywhere."""
    from symbolize.elf import ElfImage

    found = []
    for path in filter(Path.is_file, paths):
        with ElfImage.open(str(path)) as image:
            text = image.find(".text")
            if image.kind == "ET_EXEC" or text is None:
                continue
            offsets = np.random.default_rng(1).choice(text.size, min(ADDRESSES, text.size), replace=False)
            vaddrs = np.sort(offsets).astype(np.uint64) + np.uint64(text.vaddr)
            code = next(each for each in image.segments if each.executable and each.vaddr <= text.vaddr)
            start = code.vaddr // PAGE * PAGE
            size = -(-(code.vaddr + code.file_size - start) // PAGE) * PAGE
            build_id = bytes.fromhex(image.build_id or "")
            found.append(Library(path, build_id, start, code.file_offset // PAGE * PAGE, size, vaddrs))
    return found


def base_of(process: int, library: int) -> int:
    """Where vaddr 0 of a library is in a process."""
    return 0x7F00_0000_0000 + (process << 36) + (library << 30)


def record(kind: int, misc: int, body: bytes) -> bytes:
    """A record with its header."""
    body += bytes(-len(body) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def process_records(found: Sequence[Library]) -> bytes:
    """Names of all threads and mappings of all processes, at time 0."""
    pieces = []
    for thread in range(THREADS):
        process = thread % PROCESSES
        pid, tid = 1000 + process, 1000 + thread
        own = struct.pack("<IIQII", pid, tid, 0, 0, 0)  # sample_id: TID, TIME, CPU
        pieces.append(record(COMM, 0, struct.pack("<II16s", pid, tid, b"worker-%d" % thread) + own))
        if pid != tid:
            continue
        for number, library in enumerate(found):
            start = base_of(process, number) + library.vaddr
            body = struct.pack("<IIQQQ", pid, tid, start, library.size, library.file_offset)
            body += struct.pack("<B3x20sII", len(library.build_id), library.build_id, 5, 2)
            name = str(library.path).encode() + b"\0"
            name += bytes(-len(name) % 8)
            pieces.append(record(MMAP2, USER | HAS_BUILD_ID, body + name + own))
    return b"".join(pieces)


def sample_blocks(found: Sequence[Library], count: int) -> Iterator[bytes]:
    """The samples, ROUND at a time, ascending by time."""
    random = np.random.default_rng(17)
    # Stacks keep to a library for some frames, as calls do.
    library = np.repeat(random.integers(0, len(found), (STACKS, -(-DEPTH // 6))), 6, axis=1)[:, :DEPTH]
    vaddrs = np.stack([each.vaddrs[random.integers(0, len(each.vaddrs), (STACKS, DEPTH))] for each in found])
    chosen = np.take_along_axis(vaddrs, library[None], 0)[0]
    bases = np.array([[base_of(p, number) for number in range(len(found))] for p in range(PROCESSES)], np.uint64)
    for begin in range(0, count, ROUND):
        size = min(ROUND, count - begin)
        stack = np.minimum(random.pareto(0.8, size).astype(np.int64), STACKS - 1)
        thread = random.integers(0, THREADS, size)
        process = thread % PROCESSES
        ips = chosen[stack] + bases[process[:, None], library[stack]]
        block = np.zeros(size, RECORD)
        block["type"], block["misc"], block["size"] = SAMPLE, USER, RECORD.itemsize
        block["ip"], block["pid"], block["tid"] = ips[:, 0], 1000 + process, 1000 + thread
        block["time"] = 10**9 + (begin + np.arange(size)) * 10_000
        block["cpu"], block["period"] = thread % PROCESSORS, PERIOD
        block["count"], block["ips"][:, 0], block["ips"][:, 1:] = DEPTH + 1, CONTEXT_USER, ips
        yield block.tobytes()


def attribute() -> bytes:
    """The perf_event_attr of the event, cycles."""
    sample_type = IP | TID | TIME | CALLCHAIN | CPU | SAMPLE_PERIOD
    flags = IS_MMAP | IS_COMM | IS_FREQUENCY | IS_TASK | HAS_SAMPLE_ID | IS_MMAP2
    head = struct.pack("<IIQQQQQ", 0, ATTRIBUTE_SIZE, 0, 4000, sample_type, 0, flags)
    return head.ljust(ATTRIBUTE_SIZE, b"\0")


def write_file(file: BinaryIO, blocks: Iterator[bytes], features: dict[int, bytes]) -> None:
    """A perf.data file of the records in `blocks`."""
    attributes = attribute() + struct.pack("<QQ", 0, 0)
    data_begin = HEADER_SIZE + len(attributes)
    file.seek(data_begin)
    for block in blocks:
        file.write(block)
    data_end = at = file.tell()
    at += 16 * len(features)
    for content in features.values():
        file.write(struct.pack("<QQ", at, len(content)))
        at += len(content)
    file.write(b"".join(features.values()))
    bits = sum(1 << bit for bit in features).to_bytes(32, "little")
    file.seek(0)
    sections = HEADER_SIZE, len(attributes), data_begin, data_end - data_begin, 0, 0
    file.write(HEADER_TYPE.pack(b"PERFILE2", HEADER_SIZE, ATTRIBUTE_SIZE + 16, *sections, bits))
    file.write(attributes)


def plain_blocks(found: Sequence[Library], count: int) -> Iterator[bytes]:
    """The records as they are."""
    yield process_records(found)
    for block in sample_blocks(found, count):
        yield block + record(FINISHED_ROUND, 0, b"")


def compressed_blocks(found: Sequence[Library], count: int) -> Iterator[bytes]:
    """The records in one stream of zstd, all but the ends of rounds."""
    import zstandard

    stream = zstandard.ZstdCompressor(level=1).compressobj()
    yield process_records(found)
    for block in sample_blocks(found, count):
        for begin in range(0, len(block), CHUNK):
            packed = stream.compress(block[begin : begin + CHUNK]) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
            yield struct.pack("<IHH", COMPRESSED, 0, 8 + len(packed)) + packed
        yield record(FINISHED_ROUND, 0, b"")


def write_frames(path: Path, count: int, paths: Sequence[Path] = LIBRARIES) -> None:
    """A recording with frame pointers."""
    with path.open("wb") as file:
        write_file(file, plain_blocks(libraries(paths), count), {FEATURE_ARCHITECTURE: text_feature("x86_64")})


def write_zstd(path: Path, count: int, paths: Sequence[Path] = LIBRARIES) -> None:
    """The same compressed."""
    compressed = struct.pack("<IIIII", 1, ZSTD, 1, 4, BUFFER)
    features = {FEATURE_ARCHITECTURE: text_feature("x86_64"), FEATURE_COMPRESSED: compressed}
    with path.open("wb") as file:
        write_file(file, compressed_blocks(libraries(paths), count), features)


def text_feature(text: str) -> bytes:
    """A string as features have it."""
    size = len(text) // 8 * 8 + 8
    return struct.pack("<I", size) + text.encode().ljust(size, b"\0")


def write_dwarf(path: Path, count: int) -> None:
    """A recording of this machine with copies of stacks, whose samples are repeated at later times."""
    recorded = path.with_suffix(".recorded")
    command = ["perf", "record", "-q", "-e", "cpu-clock:u", "-F", "999", "--call-graph", "dwarf,8192", "-o", recorded]
    subprocess.run([*command, "--", PYTHON, "-c", RECORDED], check=True)
    data = recorded.read_bytes()
    recorded.unlink()
    begin, size = struct.unpack_from("<QQ", data, 40)
    records, others, at = [], [], begin
    while at < begin + size:
        kind, _, length = struct.unpack_from("<IHH", data, at)
        (records if kind == SAMPLE else others).append(data[at : at + length])
        at += length
    # IDENTIFIER is not among the fields of a recording of one event: IP, TID and TIME come first.
    first, last = (struct.unpack_from("<Q", each, 24)[0] for each in (records[0], records[-1]))
    after = data[begin + size :]
    others = [each for each in others if struct.unpack_from("<I", each)[0] != FINISHED_ROUND]
    total = 0
    with path.open("wb") as file:
        file.seek(begin)
        file.write(b"".join(others))
        for turn in range(-(-count // len(records))):
            for each in records[: count - turn * len(records)]:
                (time,) = struct.unpack_from("<Q", each, 24)
                moved = struct.pack("<Q", time + turn * (last - first + 1))
                file.write(each[:24] + moved + each[32:])
            file.write(record(FINISHED_ROUND, 0, b""))
        total = file.tell() - begin
        # Sections of features are behind the data, and their offsets in the table count from the start of the file.
        bits = int.from_bytes(data[72:104], "little").bit_count()
        table = [list(struct.unpack_from("<QQ", after, 16 * row)) for row in range(bits)]
        file.write(b"".join(struct.pack("<QQ", offset + total - size, length) for offset, length in table))
        file.write(after[16 * bits :])
        file.seek(0)
        file.write(data[:48] + struct.pack("<Q", total) + data[56:begin])


FILES = {"frames": (write_frames, 1), "zstd": (write_zstd, 1), "dwarf": (write_dwarf, DWARF_SHARE)}


def main() -> None:
    """Write what is missing, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--only", nargs="+", choices=FILES, default=list(FILES), help="these files only")
    parser.add_argument("--runs", type=int, default=3, help="runs of each command")
    parser.add_argument("--limit", type=int, default=900, help="seconds that a command may take")
    parser.add_argument("--write", action="store_true", help="write the files and measure nothing")
    options = parser.parse_args()
    if shutil.which("perf") is None:
        parser.error("perf is not here")
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        for name in options.only:
            make, share = FILES[name]
            path = folder / f"{name}-{options.samples // share}.data"
            if not path.exists():
                make(path, options.samples // share)
            if not options.write:
                compare(path, options.samples // share, options.runs, options.limit)


def compare(path: Path, count: int, runs: int, limit: int) -> None:
    """Run the commands with a file, and print a table."""
    from measure import Contender, race

    roots = [argument for each in (*LIBRARIES, PYTHON) if each.is_file() for argument in ("-b", each)]
    ours = [sys.executable, "-m", "symbolize", path, *roots, "-q", "-o", path.with_suffix(".pb.gz"), "--no-cache"]
    contenders = [
        Contender("symbolize", ours),
        Contender("perf report", ["perf", "report", "-i", path, "--stdio", "--no-inline", "-g", "none"]),
        Contender("perf script", ["perf", "script", "-i", path, "--no-inline"]),
    ]
    results = race(contenders, runs, limit)
    print(f"\n{path.name}: {count:,} samples, {path.stat().st_size / 1e6:.0f} MB\n")
    print("| command | wall | CPU | samples a second | peak |\n| --- | ---: | ---: | ---: | ---: |")
    for name, result in results.items():
        if result.trouble:
            print(f"| {name} | {result.trouble} | | | |")
            continue
        wall, cpu, memory = (result.median(figure) for figure in ("wall", "cpu", "memory"))
        print(f"| {name} | {wall:.1f} s | {cpu:.1f} s | {count / wall:,.0f} | {memory:,.0f} MiB |", flush=True)


if __name__ == "__main__":
    main()

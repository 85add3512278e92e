"""Time and memory of Perfetto traces: `python benchmarks/perfetto.py [FOLDER] [--small] [--only read|symbolize]`.

`read` writes two traces into FOLDER (default: a temporary one) unless they are there: heap dumps of five processes with
40 mappings and 20,000 frames, 200 MB before compression; and two million PerfSamples. Reads each in a process of its
own.

`symbolize` writes a trace of 17,500 distinct frames in large binaries of this machine (those of `run.py`, and two
libraries), and measures the whole command with it in turn with llvm-symbolizer, which is asked for the same addresses
by the lines `"PATH" 0xADDRESS` that Perfetto's symbolizer sends it: all at once, and each after the answer to the one
before, as Perfetto does.
"""

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from subjects import Subject

ASKED = 17_500
"""Distinct frames of the trace that is symbolized."""
TARGET = 0.2
PAGE = 4096

PROCESSES, MAPPINGS, FRAMES, STACKS = 5, 40, 20_000, 20_000


def state(choose: random.Random, frames: int = FRAMES) -> bytes:
    """What a sequence interns: mappings, frames, callstacks of 5 to 40 frames."""
    from tests.support import perfetto_writer as writer

    return writer.interned(
        functions={0: ""},
        builds={number: choose.randbytes(20) for number in range(1, MAPPINGS + 1)},
        paths={number: f"lib{number}.so" for number in range(1, MAPPINGS + 1)},
        mappings=[
            writer.mapping(number, number, number << 32, (number << 32) + (1 << 24), 0x1000, 0, 0x1000, [number])
            for number in range(1, MAPPINGS + 1)
        ],
        frames=[
            writer.frame(number, 0, choose.randrange(MAPPINGS) + 1, choose.randrange(1 << 24))
            for number in range(1, frames + 1)
        ],
        callstacks=[
            writer.callstack(number, [choose.randrange(frames) + 1 for _ in range(choose.randrange(5, 40))])
            for number in range(1, STACKS + 1)
        ],
    )


def write_heap(path: Path, size: int) -> None:
    """Heap dumps until there are `size` bytes of packets, compressed by about 500 KB."""
    from tests.support import perfetto_writer as writer

    choose = random.Random(1)
    waiting = bytearray()
    done = 0
    totals: dict[tuple[int, int], list[int]] = {}
    with path.open("wb") as file:

        def put(packet: bytes) -> None:
            nonlocal done
            waiting.extend(packet)
            done += len(packet)
            if len(waiting) > 500_000:
                file.write(writer.compressed(bytes(waiting)))
                waiting.clear()

        put(writer.packet(1, writer.CLEARED))
        put(writer.packet(1, interned=state(choose)))
        index = 0
        for dump in range(1, 10_000):
            for pid in range(1, PROCESSES + 1):
                samples: list[bytes] = []
                for stack in range(1, STACKS + 1):
                    total = totals.setdefault((pid, stack), [choose.randrange(1 << 24), 0, 900, 0])
                    if choose.random() < 0.2:
                        total[0] += choose.randrange(1 << 16)
                        total[1] += choose.randrange(1 << 12)
                        total[2] += 1
                        total[3] += 1
                    samples.append(writer.heap_sample(stack, *total))
                    if len(samples) == 16_000:
                        put(writer.heap_packet([writer.heap_dump(pid, samples, dump * 10**9)], True, index))
                        index += 1
                        samples = []
                put(writer.heap_packet([writer.heap_dump(pid, samples, dump * 10**9)], False, index))
                index += 1
                if done >= size:
                    file.write(writer.compressed(bytes(waiting)))
                    return


def write_perf(path: Path, count: int) -> None:
    """PerfSamples of 8 processors and 40 threads."""
    from tests.support import perfetto_writer as writer

    choose = random.Random(2)
    defaults = writer.perf_defaults({1: 1_000_000, 4: 10})
    totals = [0] * 8
    pieces = [writer.packet(1, writer.CLEARED, state(choose), defaults)]
    with path.open("wb") as file:
        for number in range(count):
            cpu = number & 7
            totals[cpu] += 1_000_000 + choose.randrange(1000)
            thread = choose.randrange(40)
            stack = min(int(choose.paretovariate(0.8)), STACKS)
            pieces.append(
                writer.perf_sample(
                    stack, 1000 + thread // 8, 1000 + thread, cpu, 2, totals[cpu], flags=2, time=10**9 + number * 10**5
                )
            )
            if len(pieces) == 4096:
                file.write(b"".join(pieces))
                pieces = []
        file.write(b"".join(pieces))


def measure(path: str) -> None:
    """Read one trace in this process and print what it cost."""
    from symbolize.formats.open import load_all
    from symbolize.formats.perfetto.trace import Trace

    Trace()
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    found = load_all(path)
    read = time.perf_counter() - start
    samples = sum(int(each.profile.samples.values[:, 0].sum()) for each in found[:20])
    total = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([len(found), samples, read, total, peak / 1024, base / 1024]))


def user_subjects(work: Path) -> "list[Subject]":
    """The large binaries of this machine that may be mapped in a process."""
    from subjects import Subject, debug_file, find_subjects

    found = [each for each in find_subjects(work, {})[0] if each.key != "vmlinux"]
    for key, pattern in (("libstdc++", "debug/libstdc++.so.6.*[0-9]"), ("libc", "libc.so.6")):
        for path in sorted(Path("/usr/lib/x86_64-linux-gnu").glob(pattern))[:1]:
            found.append(Subject(key, "", path.resolve(), debug_file(path.resolve())))
    return found


def write_frames(subjects: "Sequence[Subject]", trace: Path, requests: Path, count: int) -> None:
    """PerfSamples whose callstacks have `count` distinct frames, equally many of each subject, at random addresses of
    its `.text`; and the lines that ask llvm-symbolizer for the same."""
    from subjects import text_vaddrs

    from symbolize.elf import ElfImage
    from tests.support import perfetto_writer as writer

    choose = random.Random(3)
    mappings: list[bytes] = []
    frames: list[bytes] = []
    lines: list[str] = []
    builds: dict[int, bytes] = {}
    for number, subject in enumerate(subjects, 1):
        with ElfImage.open(subject.binary) as image:
            builds[number] = bytes.fromhex(image.build_id or "")
            vaddrs = text_vaddrs(image, -(-(count - len(frames)) // (len(subjects) - number + 1)))
            code = next(
                each
                for each in image.segments
                if each.executable and each.vaddr <= vaddrs[0] and vaddrs[-1] < each.vaddr + each.file_size
            )
            base = number << 40 if image.kind != "ET_EXEC" else 0
        start = base + code.vaddr // PAGE * PAGE
        end = base + -(-(code.vaddr + code.file_size) // PAGE) * PAGE
        mappings.append(
            writer.mapping(
                number, number, start, end, code.file_offset // PAGE * PAGE, 0, code.vaddr - code.file_offset, [number]
            )
        )
        frames += [writer.frame(len(frames) + row, 0, number, vaddr) for row, vaddr in enumerate(vaddrs, 1)]
        lines += [f'"{subject.debug}" {vaddr:#x}\n' for vaddr in vaddrs]
    order = choose.sample(range(1, len(frames) + 1), len(frames))
    stacks = [order[begin : begin + 25] for begin in range(0, len(order), 25)]
    state = writer.interned(
        functions={0: ""},
        builds=builds,
        paths={number: subject.binary.name for number, subject in enumerate(subjects, 1)},
        mappings=mappings,
        frames=frames,
        callstacks=[writer.callstack(number, stack) for number, stack in enumerate(stacks, 1)],
    )
    samples = [writer.perf_sample(choose.randrange(len(stacks)) + 1, flags=2) for _ in range(10_000)]
    samples += [writer.perf_sample(number, flags=2) for number in range(1, len(stacks) + 1)]
    trace.write_bytes(writer.packet(1, writer.CLEARED, state) + b"".join(samples))
    requests.write_text("".join(lines))


def ask(llvm: str, requests: str) -> None:
    """Send each request when the one before is answered."""
    command = [llvm, "--output-style=JSON"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        with Path(requests).open("rb") as lines, open(child.stdout.fileno(), "rb", closefd=False) as answers:
            for line in lines:
                child.stdin.write(line)
                if not answers.readline():
                    raise SystemExit("llvm-symbolizer ended")
        child.stdin.close()


def symbolize_frames(folder: Path, work: Path, count: int, runs: int) -> None:
    """The whole command against llvm-symbolizer."""
    from measure import Contender, race

    llvm = shutil.which("llvm-symbolizer-19") or shutil.which("llvm-symbolizer")
    subjects = user_subjects(work)
    if not subjects or llvm is None:
        raise SystemExit("there are no large binaries here, or no llvm-symbolizer")
    trace, requests, output = folder / f"frames-{count}.pftrace", folder / f"frames-{count}.txt", folder / "out.pb.gz"
    write_frames(subjects, trace, requests, count)
    roots = [argument for subject in subjects for path in subject.files for argument in ("-b", path)]
    command = [sys.executable, "-m", "symbolize", trace, *roots, "-q", "-o", output]
    cache = folder / "cache"
    files = [path for subject in subjects for path in subject.files]
    index = [sys.executable, "-m", "symbolize", "index", *files, "--cache", cache]
    race([Contender("index", index)], 1, 600)
    print(f"{count:,} frames in {len(subjects)} binaries: {', '.join(subject.key for subject in subjects)}")
    contenders = [
        Contender("symbolize, cold", [*command, "--no-cache"]),
        Contender("symbolize, warm", [*command, "--cache", cache]),
        Contender("llvm-symbolizer, all at once", [llvm, "--output-style=JSON"], requests),
        Contender("llvm-symbolizer, one by one", [sys.executable, __file__, "--ask", llvm, requests]),
    ]
    results = race(contenders, runs, 600)
    troubles = [f"{name}: {result.trouble}" for name, result in results.items() if result.trouble]
    if troubles:
        raise SystemExit("\n".join(troubles))
    ours, theirs = ([each.name for each in part] for part in (contenders[:2], contenders[2:]))
    print("| | wall | CPU | peak | of all at once | of one by one |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, result in results.items():
        ratios = [f"{result.median() / results[other].median():.2f}" if name in ours else "" for other in theirs]
        costs = f"{result.median():.1f} s | {result.median('cpu'):.1f} s | {result.median('memory'):,.0f} MiB"
        print(f"| {name} | {costs} | {' | '.join(ratios)} |")
    for name in ours:
        shares = {other: results[name].median() / results[other].median() for other in theirs}
        verdicts = [f"{other} {'met' if share <= TARGET else 'missed'}" for other, share in shares.items()]
        print(f"{name}, at most {TARGET} of the wall time wanted: {', '.join(verdicts)}")


def main() -> None:
    """Write what is missing, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--small", action="store_true", help="a hundredth of the size")
    parser.add_argument("--only", choices=["read", "symbolize"], help="this part only")
    parser.add_argument("--runs", type=int, default=3, help="runs of each command of `symbolize`")
    parser.add_argument(
        "--work", type=Path, default=ROOT / "build" / "benchmarks", help="folder for programs that are built"
    )
    parser.add_argument("--measure", metavar="TRACE", help=argparse.SUPPRESS)
    parser.add_argument("--ask", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    if options.ask:
        ask(*options.ask)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary)
        divisor = 100 if options.small else 1
        if options.only != "read":
            symbolize_frames(folder.resolve(), options.work.resolve(), ASKED // divisor, options.runs)
        if options.only == "symbolize":
            return
        size, count = 200_000_000 // divisor, 2_000_000 // divisor
        for name, make, amount in (("heap", write_heap, size), ("perf", write_perf, count)):
            path = folder / f"{name}-{amount}.pftrace"
            if not path.exists():
                make(path, amount)
            command = [sys.executable, __file__, "--measure", str(path)]
            runs = [json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(3)]
            read, total, peak = (min(run[column] for run in runs) for column in (2, 3, 4))
            rate = f"{amount / read / 1e6:.0f} MB/s" if name == "heap" else f"{amount / read:,.0f} samples/s"
            print(
                f"{name}: {path.stat().st_size / 1e6:.0f} MB file, {runs[0][0]} profiles, read in {read:.2f} s "
                f"({rate}), with up to 20 profiles {total:.2f} s, peak {peak:.0f} MiB"
            )


if __name__ == "__main__":
    main()

"""Time and memory of reading Perfetto traces: `python benchmarks/perfetto.py [FOLDER] [--small]`.

Writes two traces into FOLDER (default: a temporary one) unless they are there: heap dumps of five processes with 40
mappings and 20,000 frames, 200 MB before compression; and two million PerfSamples. Reads each in a process of its own.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

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
    from symbolize.load.perfetto.trace import Trace
    from symbolize.load.several import load_all

    Trace()
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    found = load_all(path)
    read = time.perf_counter() - start
    samples = sum(int(each.profile.samples.values[:, 0].sum()) for each in found[:20])
    total = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([len(found), samples, read, total, peak / 1024, base / 1024]))


def main() -> None:
    """Write what is missing, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--small", action="store_true", help="a hundredth of the size")
    parser.add_argument("--measure", metavar="TRACE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary)
        divisor = 100 if options.small else 1
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

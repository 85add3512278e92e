"""Runs damaged input in worker processes and tells what crashed, hung, raised, or took too much memory.

python -m tools.fuzz.run TARGET[=N]... [--count N] [--first SEED] [--workers N] [--keep FOLDER]

Targets are those of `tools.fuzz.targets`, or all of them; N inputs are run of each, --count where none is given. A seed
is an input; the same seed is the same input as long as the corpus is the same. Workers run with limits of memory and
time. What was found is printed with its seed, and a table at the end; with --keep, damaged files are written to a
folder, minimised.
"""

import argparse
import gc
import mmap
import os
import resource
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tools.fuzz.targets import TARGETS, damaged_file, look_up, samples

MEMORY = 3 << 30
"""Address space that a worker may take."""
SECONDS = 10.0
"""Processor time that an input may take before it counts as a hang."""
WAITED = 300.0
"""Wall time before it does, for one that waits: other work of the machine may hold an input up for long."""
SLOW = 1.5
"""Processor time above which an input is told as slow."""
LARGE = 64 << 20
"""Memory above which an input is told as large."""
STATE = struct.Struct("<QddQQdQdQQ")
"""Seed, since when in wall and processor time, runs, most memory, its multiple, seed, most seconds, seed, and the most
memory of the whole worker."""


class Totals(NamedTuple):
    """What came of a target: inputs, findings, the most memory that one took above the start, its largest multiple of
    the input, the most that the worker had, and the most seconds that one took."""

    target: str
    runs: int
    findings: list[str]
    memory: int
    multiple: float
    resident: int
    seconds: float


def peak() -> int:
    """The most memory that was resident since `reset_peak`, in bytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))


def processor_time(process: int) -> float:
    """Seconds of processor time that another process has taken (Linux numbers its clock so)."""
    return time.clock_gettime(~process << 3 | 2)


def limit_memory() -> None:
    """Let this process have no more than `MEMORY` beyond the address space that it has. The address sanitizer reserves
    far more than that."""
    if "asan" not in os.environ.get("LD_PRELOAD", ""):
        with open("/proc/self/statm") as file:
            limit = int(file.read().split()[0]) * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def reset_peak() -> None:
    """Start the measurement of `peak` anew."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def work(target: Callable[[int], int], seeds: range, state: mmap.mmap, place: int, report: int) -> None:
    """Run the inputs of some seeds; what is wrong is written to the file descriptor `report`."""
    limit_memory()
    gc.freeze()  # the command looks for cycles after each profile, and what is here before it takes most of that
    runs, most, multiple, large, longest, slow, resident = 0, 0, 0.0, 0, 0.0, 0, 0

    def tell(text: str) -> None:
        os.write(report, (text + "\n").encode())

    for seed in seeds:
        STATE.pack_into(
            *(state, place, seed, time.monotonic(), time.process_time()),
            *(runs, most, multiple, large, longest, slow, resident),
        )
        reset_peak()
        before, start = peak(), time.thread_time()
        size = 1
        try:
            size = target(seed)
        except BaseException as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            tell(f"{seed} {type(error).__name__}: {error} at {where.filename.rpartition('/')[2]}:{where.lineno}")
        seconds, resident = time.thread_time() - start, max(resident, peak())
        memory = peak() - before
        runs += 1
        if memory > most:
            most, large = memory, seed
        multiple = max(multiple, memory / size if memory > 16 << 20 else 0.0)
        if seconds > longest:
            longest, slow = seconds, seed
        if seconds > SLOW:
            tell(f"{seed} slow: {seconds:.1f} s for {size} bytes")
        if memory > LARGE:
            tell(f"{seed} large: {memory >> 20} MiB for {size} bytes")
    STATE.pack_into(state, place, 0, 0.0, 0.0, runs, most, multiple, large, longest, slow, resident)


def run(name: str, first: int, count: int, workers: int) -> Totals:
    """Run `count` inputs from seed `first` on."""
    state = mmap.mmap(-1, workers * STATE.size)
    source, report = os.pipe()
    os.set_blocking(source, False)
    found: list[str] = []
    target = TARGETS[name]
    target(first)  # what is read once is read before the workers part
    running: dict[int, tuple[int, range]] = {}
    suspects: dict[int, int | None] = {}
    totals = [0, 0, 0.0, 0, 0.0, 0, 0]

    def start(number: int, seeds: range) -> None:
        sys.stdout.flush()
        STATE.pack_into(state, number * STATE.size, seeds.start, time.monotonic(), 0.0, 0, 0, 0.0, 0, 0.0, 0, 0)
        child = os.fork()
        if child == 0:
            os.close(source)
            try:
                work(target, seeds, state, number * STATE.size, report)
            finally:
                os._exit(0)
        running[child] = number, seeds

    def collect(number: int) -> None:
        _, _, _, runs, most, multiple, large, longest, slow, resident = STATE.unpack_from(state, number * STATE.size)
        totals[0] += runs
        if most > totals[1]:
            totals[1], totals[3] = most, large
        totals[2], totals[6] = max(totals[2], multiple), max(totals[6], resident)
        if longest > totals[4]:
            totals[4], totals[5] = longest, slow

    def read() -> None:
        try:
            while chunk := os.read(source, 1 << 16):
                for line in chunk.decode(errors="replace").splitlines():
                    found.append(line)
                    print(line, flush=True)
        except BlockingIOError:
            pass

    for number in range(workers):
        start(number, range(first + number, first + count, workers))
    while running:
        child, status = os.waitpid(-1, os.WNOHANG)
        read()
        if child:
            number, seeds = running.pop(child)
            seed = STATE.unpack_from(state, number * STATE.size)[0]
            collect(number)
            if status != 0:
                found.append(f"{seed} crash: the worker ended with status {status}")
                print(found[-1], flush=True)
                start(number, range(seed + workers, seeds.stop, workers))
            continue
        for child, (number, _) in running.items():
            seed, since, spent = STATE.unpack_from(state, number * STATE.size)[:3]
            late = since and (processor_time(child) - spent > SECONDS or time.monotonic() - since > WAITED)
            # What the worker is writing just now may be half of it, so it has to be so twice.
            late, suspects[child] = late and suspects.get(child) == seed, seed if late else None
            if late:
                print(f"{seed} hangs", flush=True)
                os.kill(child, signal.SIGKILL)
                os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        time.sleep(0.1)
    read()
    print(
        f"{name}: {totals[0]} runs, {len(found)} findings; most memory {totals[1] >> 20} MiB (seed {totals[3]}), "
        f"largest multiple {totals[2]:.0f}; longest {totals[4]:.2f} s (seed {totals[5]})",
        flush=True,
    )
    return Totals(name, int(totals[0]), found, int(totals[1]), totals[2], int(totals[6]), totals[4])


def fails(data: bytes, seed: int) -> bool:
    """Whether the file still does what is wrong, in a process of its own."""
    child = os.fork()
    if child == 0:
        limit_memory()
        signal.alarm(int(SECONDS))
        try:
            look_up(damaged_file(seed)._replace(data=data))
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] != 0


def minimise(seed: int) -> bytes:
    """A file that does what the one of `seed` does, with as many bytes as possible as they were, or zero."""
    sample = damaged_file(seed)
    data = bytearray(sample.data)
    sound = next(known.data for known in samples() if known.name == sample.name and known.kind == sample.kind)
    for filler in (sound, b""):
        size = len(data) // 2
        while size:
            for place in range(0, len(data), size):
                trial = bytearray(data)
                trial[place : place + size] = filler[place : place + size].ljust(min(size, len(data) - place), b"\0")
                if trial != data and fails(bytes(trial), seed):
                    data = trial
            size = size // 2 if size > 16 else 0
    return bytes(data)


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("targets", nargs="*", metavar="TARGET[=N]", help=", ".join(TARGETS))
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    chosen = [each.partition("=") for each in arguments.targets or TARGETS]
    if unknown := [name for name, _, _ in chosen if name not in TARGETS]:
        parser.error(f"no target: {', '.join(unknown)}")
    results = [
        run(name, arguments.first, int(count or arguments.count), arguments.workers) for name, _, count in chosen
    ]
    print("\n| target | inputs | findings | most memory above the start | worker | longest |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for each in results:
        memory, resident = each.memory >> 20, each.resident >> 20
        row = f"| {each.target} | {each.runs:,} | {len(each.findings)} | {memory} MiB | {resident} MiB |"
        print(f"{row} {each.seconds:.2f} s |")
    found = [line for each in results if each.target == "files" for line in each.findings]
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        for seed in {int(line.split()[0]) for line in found}:
            (arguments.keep / f"seed-{seed}").write_bytes(minimise(seed))
    sys.exit(any(each.findings for each in results))


if __name__ == "__main__":
    main()

"""A symbol server under load: `python benchmarks/serve.py BINARY [--seconds N]`.

A process of its own holds 500 connections to a server of two workers and asks `/symbolicate/v5` for 1,000 frames at
random offsets of a binary, with 1 to 500 requests in flight; a refused one is asked again after as long as the answer
says. Then 1 and 16 clients, each on its own connection, ask small questions: 100 frames, a section, a file that is not
there. Of each number it prints answers a second and their times, statuses and the memory of the workers.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from symbolize.elf import ElfImage

FRAMES, FEW = 1000, 100
CONNECTIONS = 500
IN_FLIGHT = (1, 2, 4, 8, 50, 500)
SMALL_IN_FLIGHT = (1, 16)
PORT = 18_923
BODIES = 50
"""Different requests, which are sent in turn."""


class Load(NamedTuple):
    """What came of some seconds of requests: milliseconds of those that were not refused, statuses, and MiB of memory
    that the workers had, from the first second to the last."""

    milliseconds: list[float]
    statuses: Counter[int]
    memory: list[float]


def requests_for(path: Path) -> dict[str, list[bytes]]:
    """Requests by what they ask for: frames at random offsets of the code of a binary, a section, a file."""
    chosen = random.Random(1)
    with ElfImage.open(path) as image:
        base = min(segment.vaddr for segment in image.segments) & ~0xFFF
        text = image.find(".text")
        assert text is not None and image.build_id is not None
        first, build_id = text.vaddr - base, image.build_id

    def names(frames: int) -> bytes:
        stack = [[0, first + chosen.randrange(text.size)] for _ in range(frames)]
        body = json.dumps({"memoryMap": [[path.name, build_id]], "stacks": [stack]}).encode()
        head = f"POST /symbolicate/v5 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def get(path: str) -> bytes:
        return f"GET /buildid/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()

    return {
        f"{FRAMES:,} frames": [names(FRAMES) for _ in range(BODIES)],
        f"{FEW} frames": [names(FEW) for _ in range(BODIES)],
        "a section": [get(f"{build_id}/section/.comment")],
        "a missing file": [get(f"{'ab' * 20}/debuginfo")],
    }


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> tuple[int, float]:
    """Send a request and read its answer: the status, and the seconds after which to ask again."""
    writer.write(request)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    fields = dict(line.split(b": ", 1) for line in head.splitlines()[1:-1])
    await reader.readexactly(int(fields[b"content-length"]))
    return int(head.split()[1]), float(fields.get(b"retry-after", 0))


async def load(
    requests: Sequence[bytes], in_flight: int, seconds: float, workers: Sequence[int], held: int = CONNECTIONS
) -> Load:
    """Hold so many connections for some seconds, with so many requests in flight."""
    connections: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    for _ in range(held):
        connections.put_nowait(await asyncio.open_connection("127.0.0.1", PORT, limit=1 << 22))
    times: list[float] = []
    statuses: Counter[int] = Counter()
    until = time.monotonic() + seconds
    memory: list[float] = []

    async def client(number: int) -> None:
        while time.monotonic() < until:
            reader, writer = await connections.get()
            began = time.perf_counter()
            try:
                status, pause = await ask(reader, writer, requests[number % len(requests)])
            except (OSError, asyncio.IncompleteReadError):  # idle connections end after a while
                writer.close()
                reader, writer = await asyncio.open_connection("127.0.0.1", PORT, limit=1 << 22)
                began = time.perf_counter()
                status, pause = await ask(reader, writer, requests[number % len(requests)])
            statuses[status] += 1
            if status != HTTPStatus.SERVICE_UNAVAILABLE:
                times.append(1000 * (time.perf_counter() - began))
            connections.put_nowait((reader, writer))
            number += 1
            await asyncio.sleep(pause)

    async def watch() -> None:
        while time.monotonic() < until:
            memory.append(sum(map(private, workers)))
            await asyncio.sleep(1)

    await asyncio.gather(watch(), *(client(number) for number in range(in_flight)))
    while not connections.empty():
        connections.get_nowait()[1].close()
    return Load(sorted(times), statuses, memory)


def private(pid: int) -> float:
    """MiB of a process that it shares with no other."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


def workers_of(pid: int) -> list[int]:
    """The processes of a server."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def main() -> None:
    """Start a server, load it, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary", type=Path)
    parser.add_argument("--seconds", type=float, default=20, help="for each number of requests in flight")
    parser.add_argument("--in-flight", type=int, nargs="+", default=IN_FLIGHT, help="numbers of requests in flight")
    parser.add_argument("--max-wait", default="5", help="of the server")
    options = parser.parse_args()
    requests = requests_for(options.binary)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "symbolize", "serve", "--binaries", str(options.binary), "--port", str(PORT)]
        command += ["--max-wait", options.max_wait]
        with subprocess.Popen([*command, "--cache", folder]) as server:
            try:
                asyncio.run(table(requests, options.in_flight, options.seconds, server.pid))
            finally:
                server.terminate()


async def table(requests: Mapping[str, Sequence[bytes]], numbers: Sequence[int], seconds: float, pid: int) -> None:
    """Print what came of each kind of request and number of them in flight."""
    while True:
        try:
            await asyncio.open_connection("127.0.0.1", PORT)
            break
        except OSError:
            await asyncio.sleep(0.2)
    large, *small = requests
    await load(requests[large], 4, 5, workers_of(pid))  # opens the binary in both workers
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors, {CONNECTIONS} connections")
    print("| asked for | in flight | answers/s | median ms | p99 ms | statuses | private MiB |")
    print("| --- | ---: | ---: | ---: | ---: | --- | --- |")
    rows = [(large, number, CONNECTIONS) for number in numbers]
    rows += [(what, number, number) for what in small for number in SMALL_IN_FLIGHT]
    for what, in_flight, held in rows:
        found = await load(requests[what], in_flight, seconds, workers_of(pid), held)
        times = found.milliseconds
        p99 = times[int(len(times) * 0.99)] if len(times) > 1 else times[0]
        shown = ", ".join(f"{status}: {count}" for status, count in sorted(found.statuses.items()))
        rate, median = len(times) / seconds, statistics.median(times)
        tenths = found.memory[:: max(1, len(found.memory) // 10)]
        memory = " ".join(f"{each:.0f}" for each in tenths)
        print(f"| {what} | {in_flight} | {rate:.0f} | {median:.1f} | {p99:.1f} | {shown} | {memory} |", flush=True)


if __name__ == "__main__":
    main()

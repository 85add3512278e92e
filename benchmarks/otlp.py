"""OTLP profiles over gRPC, under load and under faults: `python benchmarks/otlp.py BINARY [--messages N] [--faults]`.

Processes of clients send messages of 1,000 stacks at random addresses of a binary, made with opentelemetry-proto, to
a server of two workers with a backend of gRPC behind it, each message again after as long as the answer says until it
is taken. It prints stacks a second, the processor time of the server for 1,000 stacks, and the times of messages. With
`--faults` the backend is away, slow, or rejects, in turn, and workers are killed: it prints how many messages were
lost, and how often one arrived twice.
"""

import argparse
import asyncio
import multiprocessing
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from itertools import pairwise
from multiprocessing.pool import AsyncResult
from pathlib import Path
from typing import Any, Final

import grpc
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service

sys.path.append(str(Path(__file__).parents[1]))

from benchmarks.serve import workers_of
from symbolize.elf import ElfImage

FRAMES: Final = 16
LOCATIONS: Final = 4
"""Different addresses of a message for each of its stacks: what is sampled is nearly always the same code."""
TEMPLATES: Final = 8
IN_FLIGHT: Final = 4
"""Messages of each client at a time."""
CLIENTS: Final = 2
LATE: Final = 0.1
"""Seconds until the backend notes a message that was on its way at a kill."""
HTTP, GRPC, BACKEND = 18_924, 18_925, 18_926
EXPORT: Final = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
WELL, SLOW, REJECTS, AWAY = range(4)
"""Moods of the backend."""
RETRYABLE: Final = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED}
UNLIMITED: Final = [("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)]


def templates(path: Path, stacks: int) -> list[Any]:
    """Messages that differ in their stacks."""
    chosen = random.Random(1)
    with ElfImage.open(path) as image:
        (segment, *_) = [each for each in image.segments if each.executable]
        build_id = image.build_id or ""
    addresses = [segment.vaddr + chosen.randrange(segment.memory_size) for _ in range(LOCATIONS * stacks)]
    return [template(path.name, build_id, segment, addresses, stacks) for _ in range(TEMPLATES)]


def template(name: str, build_id: str, segment: Any, addresses: list[int], stacks: int) -> Any:
    """A message of one process."""
    request = service.ExportProfilesServiceRequest()
    tables = request.dictionary
    tables.string_table.extend(["", name, "process.executable.build_id.gnu", "samples", "count"])
    tables.link_table.add(trace_id=bytes(16), span_id=bytes(8))
    for table in (tables.mapping_table, tables.location_table, tables.function_table, tables.stack_table):
        table.add()
    tables.attribute_table.add()
    tables.attribute_table.add(key_strindex=2).value.string_value = build_id
    start = segment.vaddr & ~0xFFF
    tables.mapping_table.add(
        memory_start=start,
        memory_limit=segment.vaddr + segment.memory_size,
        file_offset=segment.file_offset & ~0xFFF,
        filename_strindex=1,
        attribute_indices=[1],
    )
    for address in addresses:
        tables.location_table.add(mapping_index=1, address=address)
    profile = request.resource_profiles.add().scope_profiles.add().profiles.add()
    profile.sample_type.type_strindex, profile.sample_type.unit_strindex = 3, 4
    for number in range(stacks):
        stack = [1 + random.randrange(len(addresses)) for _ in range(FRAMES)]
        tables.stack_table.add(location_indices=stack)
        profile.samples.add(stack_index=1 + number, values=[1])
    return request


def sent(options: argparse.Namespace, client: int, messages: int) -> list[float]:
    """Send so many messages, several at a time, until they are taken: the seconds of each."""
    return asyncio.run(send_all(options, client, messages))


async def send_all(options: argparse.Namespace, client: int, messages: int) -> list[float]:
    """The same."""
    made = templates(options.binary, options.stacks)
    compression = grpc.Compression.Gzip if options.gzip else grpc.Compression.NoCompression
    seconds: list[float] = []
    numbers = iter(range(messages))

    async def send(lane: int) -> None:
        # A connection of its own: the system chooses a worker for each.
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{GRPC}", [("grpc.use_local_subchannel_pool", 1)])
        async with channel:
            call = channel.unary_unary(EXPORT)
            for number in numbers:
                request = made[number % len(made)]
                request.resource_profiles[0].scope_profiles[0].profiles[0].profile_id = b"%8d%8d" % (client, number)
                body, began = request.SerializeToString(), time.perf_counter()
                while True:
                    try:
                        await call(body, timeout=60, compression=compression)
                        break
                    except grpc.aio.AioRpcError as error:
                        assert error.code() in RETRYABLE, (error.code(), error.details())
                        await asyncio.sleep(0.2 + random.random() / 5)
                seconds.append(time.perf_counter() - began)

    await asyncio.gather(*(send(lane) for lane in range(IN_FLIGHT)))
    return seconds


def backend(log: str, mood: Any) -> None:
    """Answer on BACKEND as `mood` says, and append the id of each message that is taken."""
    asyncio.run(serve_backend(log, mood))


async def serve_backend(log: str, mood: Any) -> None:
    """The same."""
    with open(log, "ab", buffering=0) as taken:

        async def export(body: bytes, context: Any) -> bytes:
            began = time.time()
            if mood.value == REJECTS and random.random() < 0.5:
                await context.abort(grpc.StatusCode.UNAVAILABLE, "busy")
            if mood.value == SLOW:
                await asyncio.sleep(random.random() / 10)
            profile = service.ExportProfilesServiceRequest.FromString(body).resource_profiles[0].scope_profiles[0]
            taken.write(profile.profiles[0].profile_id + b"%f\n" % began)
            return b""

        server = grpc.aio.server(options=UNLIMITED)
        method = {"Export": grpc.unary_unary_rpc_method_handler(export)}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(EXPORT.split("/")[1], method)])
        server.add_insecure_port(f"127.0.0.1:{BACKEND}")
        await server.start()
        await server.wait_for_termination()


def seconds_of(pid: int) -> float:
    """Processor time of a process, and of all that it started and that run."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for task in os.listdir(f"/proc/{pid}/task"):
            if task != str(pid):
                children += Path(f"/proc/{pid}/task/{task}/children").read_text().split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") + sum(
            seconds_of(int(c)) for c in children
        )
    return 0.0


def backend_process(log: str, mood: Any) -> Any:
    """A backend that runs."""
    process = multiprocessing.get_context("spawn").Process(target=backend, args=(log, mood), daemon=True)
    process.start()
    return process


def disturb(server: int, log: str, mood: Any, results: list[AsyncResult[list[float]]]) -> list[float]:
    """Kill workers, and have the backend be away, slow, or reject, until all messages are sent; when a worker or a
    backend was killed."""
    kills, behind = list[float](), backend_process(log, mood)
    chosen = random.Random(2)
    while not all(each.ready() for each in results):
        time.sleep(1 + chosen.random())
        mood.value = chosen.choice((WELL, SLOW, REJECTS, AWAY))
        if mood.value == AWAY:
            kills.append(time.time())
            behind.kill()
            behind.join()
            time.sleep(0.5)
            behind = backend_process(log, mood)
        elif workers := workers_of(server):
            kills.append(time.time())
            os.kill(chosen.choice(workers), signal.SIGKILL)
    behind.kill()
    return kills


def loaded(server: int, options: argparse.Namespace, log: str) -> None:
    """Send the messages, and print what came of them."""
    context = multiprocessing.get_context("spawn")
    mood = context.Value("i", WELL)
    each = options.messages // CLIENTS
    with context.Pool(CLIENTS) as pool:
        behind = None if options.faults else backend_process(log, mood)
        if behind is not None:  # opens the binary in both workers
            pool.starmap(sent, [(options, CLIENTS + client, 40) for client in range(CLIENTS)])
            Path(log).write_bytes(b"")
        spent, began = seconds_of(server), time.monotonic()
        results = [pool.apply_async(sent, (options, client, each)) for client in range(CLIENTS)]
        kills = disturb(server, log, mood, results) if options.faults else []
        times = sorted(seconds for result in results for seconds in result.get())
        took, spent = time.monotonic() - began, seconds_of(server) - spent
        if behind is not None:
            behind.kill()
    stacks = len(times) * options.stacks
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    print(f"{len(times):,} messages of {options.stacks:,} stacks of {FRAMES} frames in {took:.1f} s")
    if not options.faults:
        print(f"{stacks / took:,.0f} stacks a second; {1e6 * spent / stacks:.2f} ms of processor time for 1,000 stacks")
    print(f"median {1000 * statistics.median(times):.0f} ms, p99 {1000 * times[int(len(times) * 0.99)]:.0f} ms")
    arrived: dict[bytes, list[float]] = {}
    for line in Path(log).read_bytes().splitlines():
        arrived.setdefault(line[:16], []).append(float(line[16:]))
    lost = sum(b"%8d%8d" % (client, number) not in arrived for client in range(CLIENTS) for number in range(each))
    again = [pair for found in arrived.values() for pair in pairwise(found)]
    without = sum(not any(first - LATE <= kill <= second for kill in kills) for first, second in again)
    print(f"{lost} lost, {len(again)} arrived again, {without} of them without one of {len(kills)} kills meanwhile")


def main() -> None:
    """Start a server, load it, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("binary", type=Path)
    parser.add_argument("--messages", type=int, default=3000)
    parser.add_argument("--stacks", type=int, default=1000, help="of each message")
    parser.add_argument("--gzip", action="store_true", help="compress messages")
    parser.add_argument("--faults", action="store_true", help="kill workers, and have the backend fail")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "symbolize", "serve", "--binaries", str(options.binary), "--cache", folder]
        command += ["--port", str(HTTP), "--otlp-grpc", f":{GRPC}", "--forward", f"grpc://127.0.0.1:{BACKEND}"]
        quiet = subprocess.DEVNULL if options.faults else None  # each failure is a line
        with subprocess.Popen(command, stderr=quiet) as server:
            try:
                channel = grpc.insecure_channel(f"127.0.0.1:{GRPC}")
                grpc.channel_ready_future(channel).result(60)
                channel.close()
                loaded(server.pid, options, os.path.join(folder, "log"))
            finally:
                server.terminate()


if __name__ == "__main__":
    main()

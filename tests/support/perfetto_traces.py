"""Made Perfetto traces that several tests read."""

from pathlib import Path
from typing import Any

from symbolize.formats import load_all
from symbolize.profile import Profile
from tests.support import perfetto_writer as w
from tests.support.perfetto_profiles import only, stacks

BUILD_ID = bytes(range(20))
BASE, END = 0x10000, 0x30000
APP = w.mapping(1, 1, BASE, END, 0x1000, 0, 0x1000, [1, 2, 3])
NAMES: dict[str, Any] = {
    "functions": {1: "main", 2: "alloc", 3: "other"},
    "builds": {1: BUILD_ID},
    "paths": {1: "usr", 2: "bin", 3: "app"},
    "mappings": [APP],
    "frames": [w.frame(1, 1, 1, 0x2100), w.frame(2, 2, 1, 0x2200), w.frame(3, 3, 1, 0x2300)],
    "callstacks": [w.callstack(1, [1]), w.callstack(2, [1, 2]), w.callstack(3, [1, 3])],
}
STATE = w.interned(**NAMES)
CLEAR = w.packet(1, w.CLEARED)
SOUND = w.packet(1, w.CLEARED, STATE) + w.perf_sample(2)
CUT_HEAP = w.heap_packet([w.heap_dump(7, [w.heap_sample(2, 100, 40, 3, 1), w.heap_sample(3, 50, 0, 1)])], True)
HEAP = CLEAR + CUT_HEAP + w.packet(1, interned=STATE) + w.heap_packet([], index=1)


def sampled(*packets: bytes) -> dict[tuple[str, ...], list[int]]:
    """The stacks of the samples in packets."""
    return stacks(only(b"".join(packets)))


def heap(*dumps: tuple[int, list[bytes]], **more: Any) -> bytes:
    """A trace with dumps at times."""
    packets = [
        w.heap_packet([w.heap_dump(7, samples, time, **more)], index=i) for i, (time, samples) in enumerate(dumps)
    ]
    return CLEAR + w.packet(1, interned=STATE) + b"".join(packets)


CLOCKS = w.packet(None, rest={6: w.message({1: [w.message({1: 3, 2: 10**9}), w.message({1: 6, 2: 10**12})]})})
SECOND = 10**9


def born(pid: int, name: str, start: int, machine: int | None = None) -> bytes:
    """A packet with a ProcessTree of one process and its start, in seconds since boot."""
    process = w.message({1: pid, 2: 1, 3: name, 7: start * SECOND})
    return w.packet(None, rest={98: machine, 2: w.message({1: process})})


def dumped(pid: int, bytes_: int, time: int, machine: int | None = None) -> bytes:
    """A packet with a heap dump at so many seconds of the monotonic clock; the boot clock is 999 s ahead."""
    dump = w.heap_dump(pid, [w.heap_sample(2, bytes_, 0, 1)], time * SECOND)
    return w.packet(1, rest={98: machine, 37: w.message({5: dump})})


CYCLES = w.perf_defaults({1: 1000, 4: 10}, [w.message({1: 11}), w.message({2: w.message({1: "sched:x"})})])
MODULE = "67452301AB89EFCD0123456789ABCDEF0"
CHROMIUM = w.interned(
    functions={1: "named"},
    builds={1: MODULE.encode()},
    paths={1: "/opt/chrome/chrome"},
    mappings=[w.mapping(1, 1, path=[1], exact_offset=None)],
    frames=[w.frame(1, 0, 1, 0x5000), w.frame(2, 0, 1, 0x6000), w.frame(3, 1, 1)],
    callstacks=[w.callstack(1, [1, 2]), w.callstack(2, [2, 3, 1])],
)


def stream(stacks: list[int], deltas: list[int]) -> bytes:
    """A packet with a StreamingProfilePacket."""
    return w.packet(1, rest={54: w.message({1: stacks, 2: deltas})})


THREAD = w.packet(1, rest={44: w.message({1: 50, 2: 51, 5: "CrBrowserMain", 6: 5})})


def warned(trace: bytes, what: str) -> Profile:
    """The one profile of a trace, which has a warning with `what`."""
    profile = only(trace)
    assert any(what in warning for warning in profile.warnings), profile.warnings
    return profile


def only_of(path: Path) -> Profile:
    """The one profile of a file."""
    (found,) = load_all(path)
    return found.profile

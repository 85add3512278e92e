"""Random traces against what Perfetto's own messages say of them.

    python -m tests.load.test_perfetto_reference [COUNT [FIRST]]

compares so many traces and prints the first that differs by its seed.
"""

import io
import random
import sys
from typing import Any

import pytest

from symbolize.core.errors import InputError
from symbolize.formats import load_all
from tests.support import perfetto_writer as w
from tests.support.needs import package
from tests.support.perfetto_profiles import labels
from tests.support.perfetto_reference import MASK64, Contents, Frame, Reference

messages = package("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

COUNTED = {
    "losses": "times packets of a sequence were lost",
    "invalid": "packets were left out because what they refer to was lost",
    "kernel": "samples were lost in the kernel",
    "skipped": "samples have no stack: skipped when they were read",
    "counter only": "samples count events and have no stack",
    "timeless": "samples were left out because their time is not known",
}
"""How what the reference counts begins in the warnings."""


class Maker:
    """Makes a random trace of few ids, so that they are used again in many combinations."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.time = 1000
        self.totals: dict[int, int] = {}
        self.began: dict[int, int] = {}

    def some(self, most: int, least: int = 0) -> range:
        """So many times."""
        return range(self.random.randint(least, most))

    def iid(self) -> int:
        """An id."""
        return self.random.choice((1, 2, 3, 4, 1 << 35, MASK64))

    def maybe(self, value: Any, chance: float = 0.8) -> Any:
        """A value, or nothing."""
        return value if self.random.random() < chance else None

    def tables(self) -> tuple[list[bytes], list[bytes], list[bytes], list[bytes]]:
        """Strings, mappings, frames and callstacks, of which parts may be missing."""
        pick = self.random
        texts = [w.string(self.iid(), pick.choice("abcdefgh") + pick.choice(("", "x", "y"))) for _ in self.some(6)]
        mappings = []
        for _ in self.some(3):
            start = pick.choice((0, 0x10000, 0x50000))
            mappings.append(
                w.mapping(
                    self.iid(), pick.choice((0, self.iid())), start, start + 0x40000 if start else 0,
                    pick.choice((0, 0x1000, None)), 0, pick.choice((0, 0x1000)), [self.iid() for _ in self.some(2)],
                )
            )  # fmt: skip
        frames = [
            w.frame(
                self.iid(), pick.choice((0, self.iid())), pick.choice((0, self.iid())), pick.randrange(0x2000, 0x2008)
            )
            for _ in self.some(6)
        ]
        stacks = [w.callstack(self.iid(), [self.iid() for _ in self.some(3)]) for _ in self.some(5)]
        return texts, mappings, frames, stacks

    def whole(self) -> tuple[list[bytes], list[bytes], list[bytes], list[bytes]]:
        """Tables with an entry for most ids."""
        ids = (1, 2, 3, 4)
        pick = self.random
        return (
            [w.string(iid, pick.choice("abcdefgh")) for iid in ids],
            [
                w.mapping(iid, pick.choice(ids), 0x10000 * iid, 0x10000 * iid + 0x8000, 0, 0, 0, [iid])
                for iid in ids[:2]
            ],
            [w.frame(iid, pick.choice(ids), pick.choice((0, 1, 2)), 0x2000 + pick.randrange(4)) for iid in ids],
            [w.callstack(iid, [pick.choice(ids) for _ in self.some(3, 1)]) for iid in ids],
        )

    def state(self) -> bytes | None:
        """An InternedData."""
        if self.random.random() < 0.3:
            return None
        texts, mappings, frames, stacks = self.whole() if self.random.random() < 0.6 else self.tables()
        task = {1: self.iid(), 2: self.maybe(self.pid()), 3: self.maybe(self.pid())}
        execution = {1: self.iid(), 2: self.maybe(self.random.randrange(3)), 3: self.random.randrange(6)}
        return w.message(
            {5: texts, 16: texts, 17: texts, 19: mappings, 6: frames, 7: stacks, 48: w.message(task),
             49: w.message(execution)}
        )  # fmt: skip

    def pid(self) -> int:
        """A pid or tid."""
        return self.random.choice((0, 7, 8, (1 << 31) - 1))

    def packet(self) -> bytes:
        """A random packet."""
        pick = self.random
        flags = pick.choices((None, 1, 2, 3), (8, 2, 3, 1))[0]
        dropped = pick.choices((None, 0, 1), (16, 1, 2))[0]
        seq = pick.choice((1, 2, 3))
        make = pick.choices(
            (self.nothing, self.heap, self.perf, self.stack_sample, self.thread, self.stream), (3, 8, 6, 3, 1, 3)
        )[0]
        self.time += pick.randrange(2)
        fields = make(seq)
        if make == self.heap and flags:
            flags &= w.CLEARED
        first = self.maybe(1, 0.05)
        defaults = self.defaults() if (flags and flags & w.CLEARED) or pick.random() < 0.1 else None
        return w.packet(seq, flags, self.state(), defaults, self.time, dropped, {87: first} | fields)

    def defaults(self) -> bytes:
        """TracePacketDefaults; a period, so that no sample is without a weight."""
        return w.perf_defaults(
            {1: self.random.choice((10, 100)), 4: 10}, [w.message({1: 11})] * self.random.randrange(2)
        )

    def nothing(self, seq: int) -> dict[int, Any]:
        """A packet that only has state."""
        return {}

    def heap(self, seq: int) -> dict[int, Any]:
        """A ProfilePacket, with tables of its own or not; times stay or go on."""
        pick = self.random
        time = self.began.setdefault(seq, self.time)
        dumps = []
        for _ in self.some(2):
            samples = [w.heap_sample(self.iid(), *(pick.randrange(1, 100) for _ in range(4))) for _ in self.some(4, 1)]
            fields = {1: self.maybe(self.pid(), 0.95), 2: samples, 9: self.maybe(time), 11: pick.choice("ab")}
            dumps.append(w.message(fields))
        content: dict[int, Any] = {5: dumps, 6: self.maybe(1, 0.3)}
        if content[6] is None:
            del self.began[seq]
        if pick.random() < 0.5:
            content[1], content[4], content[2], content[3] = self.whole() if pick.random() < 0.7 else self.tables()
        return {37: w.message(content)}

    def perf(self, seq: int) -> dict[int, Any]:
        """A PerfSample."""
        pick = self.random
        cpu = self.maybe(pick.randrange(2))
        self.totals[seq] = max(self.totals.get(seq, 0) + pick.randrange(-5, 50), 0)
        fields = {
            1: cpu, 2: self.maybe(self.pid()), 3: self.maybe(self.pid()), 4: self.maybe(self.iid(), 0.9),
            5: pick.randrange(6), 6: self.totals[seq], 18: self.maybe(1, 0.1), 17: self.maybe(3, 0.05),
        }  # fmt: skip
        return {66: w.message(fields)}

    def stack_sample(self, seq: int) -> dict[int, Any]:
        """A StackSample."""
        pick = self.random
        fields: dict[int, Any] = {6: self.maybe(self.iid(), 0.9), 11: self.maybe(pick.randrange(1, 9))}
        if pick.random() < 0.4:
            fields[1] = w.message({2: self.maybe(self.pid()), 3: self.maybe(self.pid())})
        elif pick.random() < 0.7:
            fields[2] = self.iid()
        if pick.random() < 0.4:
            fields[3] = w.message({2: self.maybe(pick.randrange(3)), 3: pick.randrange(6)})
        elif pick.random() < 0.5:
            fields[4] = self.iid()
        return {135: w.message(fields)}

    def thread(self, seq: int) -> dict[int, Any]:
        """A ThreadDescriptor."""
        fields = {1: self.maybe(self.pid()), 2: self.maybe(self.pid()), 6: self.random.randrange(100, 200)}
        return {44: w.message(fields)}

    def stream(self, seq: int) -> dict[int, Any]:
        """A StreamingProfilePacket."""
        stacks = [self.iid() for _ in self.some(4)]
        return {54: w.message({1: stacks, 2: [self.random.randrange(-3, 90) for _ in stacks]})}

    def trace(self) -> bytes:
        """A random trace; every sequence has defaults before samples need them."""
        start = [w.packet(seq, 0, None, self.defaults(), self.time, self.maybe(1, 0.5)) for seq in (1, 2, 3)]
        return b"".join(start + [self.packet() for _ in self.some(40, 5)])


def contents(profile: Any) -> Contents:
    """What a profile holds, as the reference says it."""
    text, locations, samples = profile.strings.text, profile.locations, profile.samples
    frames: list[Frame] = []
    for row, mapping in enumerate(locations.mapping.tolist()):
        begin, end = locations.line_offsets[row], locations.line_offsets[row + 1]
        names = [text(profile.functions.name[line]) for line in locations.lines.function[begin:end].tolist()]
        offset, module = 0, ""
        if mapping >= 0:
            start, begins = int(profile.mappings.start[mapping]), int(profile.mappings.file_offset[mapping])
            offset = int(locations.address[row]) - start + begins & MASK64
            module = f"{text(profile.mappings.filename[mapping])}@{text(profile.mappings.build_id[mapping])}"
        frames.append(("".join(names), module, offset))
    found: Contents = {}
    edges = samples.location_offsets.tolist()
    for row, each in enumerate(labels(profile)):
        stack = tuple(frames[each] for each in samples.locations[edges[row] : edges[row + 1]].tolist())
        key = stack, frozenset(each.items())
        values = samples.values[row].tolist()
        found[key] = tuple(a + b for a, b in zip(found.get(key, [0] * len(values)), values, strict=True))
    return found


def compare(seed: int) -> int:
    """Compare a random trace; the number of its profiles."""
    content = Maker(seed).trace()
    trace = messages.Trace.FromString(content)
    reference = Reference(trace)
    expected = reference.profiles()
    try:
        loaded = load_all(io.BytesIO(content))
    except InputError as error:
        assert not expected, f"seed {seed}: {error}"
        return 0
    assert {each.name: contents(each.profile) for each in loaded} == expected, f"seed {seed}"
    warnings = loaded[0].warnings
    for what, text in COUNTED.items():
        reported = [warning.split()[0] for warning in warnings if text in warning]
        assert reported == [str(reference.counts[what])] * (reference.counts[what] > 0), f"seed {seed}: {warnings}"
    return len(expected)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_traces(first: int) -> None:
    """Redefined ids, clears, losses, several sequences, dumps of one time, unknown tasks: profiles, labels, values and
    what is reported as lost are those that Perfetto's own messages say (rules R222 to R229, R269 to R273)."""
    assert sum(map(compare, range(first, first + 50))) > 100


if __name__ == "__main__":
    count, first = [*map(int, sys.argv[1:]), 2000, 0][:2] if len(sys.argv) < 3 else map(int, sys.argv[1:3])
    print(sum(map(compare, range(first, first + count))), "profiles are equal")

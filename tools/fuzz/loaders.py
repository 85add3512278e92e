"""Damaged perf.data files, OTLP messages and legacy profiles, loaded in this process, what comes out of it checked."""

import io
import random
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

import symbolize
from symbolize.core.errors import InputError, UsageError
from symbolize.formats import encode, write
from symbolize.formats.content import Content
from symbolize.profile import Profile
from tests.support import perfetto_writer as writer
from tests.support.messages import profile_pb2
from tests.support.perf_recordings import made_recordings
from tools.fuzz.mutate import HOW_MANY, INTERESTING, mutate_text
from tools.fuzz.profiles import mutate_bytes, mutate_message

ROOT = Path(__file__).parents[2]
MAX_SAMPLE = 256 << 10
"""Bytes of the largest file of the fixtures that is damaged."""
MAX_PROFILES = 4
WRITTEN = 0.1
"""The share of inputs that are written as pprof too."""
CONTROLS = bytes([*range(9), *range(14, 32)])
MAGICS = (b"PERFILE2", b"2ELIFREP")
FILE_HEADER, PIPE_HEADER = 104, 16
MAX_RECORDS = 4000
MAX_REPEATED, REPEATS = 1000, 50
"""How often a short text is sound before it is damaged: more lines than decide what it is."""


class Sample(NamedTuple):
    """A sound input, not compressed."""

    name: str
    data: bytes


OTLP_JSON = b"""{"resourceProfiles":[{"resource":{"attributes":[{"key":"process.pid","value":{"intValue":"12"}}]},
"scopeProfiles":[{"scope":{"name":"x"},"profiles":[{"sampleType":{"typeStrindex":1,"unitStrindex":2},"samples":
[{"stackIndex":1,"attributeIndices":[1],"values":["3"],"timestampsUnixNano":["1000000000000000000"]}],
"timeUnixNano":"1000000000000000000","durationNano":"1000","periodType":{"typeStrindex":1,"unitStrindex":2},
"period":"100","profileId":"000102030405060708090a0b0c0d0e0f"}]}]}],"dictionary":{"mappingTable":[{},
{"memoryStart":"4194304","memoryLimit":"5242880","filenameStrindex":3}],"locationTable":[{},{"mappingIndex":1,
"address":"4194368","lines":[{"functionIndex":1,"line":"3"}]},{"mappingIndex":1,"address":"4194400"}],
"functionTable":[{},{"nameStrindex":4}],"linkTable":[{}],"stringTable":["","samples","count","/bin/app","f","k","v"],
"attributeTable":[{},{"keyStrindex":5,"value":{"stringValue":"v"}}],"stackTable":[{},{"locationIndices":[1,2]}]}}
"""

LEGACY = {
    "contention": b"--- contention:\ncycles/second = 3201000000\nsampling period = 100\nms since reset = 16502830\n"
    b"discarded samples = 0\n  19490304       27 @ 0xbccc97 0xc61202 0x42ed5f 0x42edc1 0x42e15a\n"
    b"        768        1 @ 0xbccc97 0xa42dc7 0xa456e4 0x7fcdc2ff214e\n\n--- Memory map: ---\n"
    b"00400000-00fcb000: /bin/contention\n7fcdc2ff1000-7fcdc3000000: /lib/libc.so.6\n",
    "threadz": b"--- threadz 1 ---\n\n--- Thread 7eff063d9940 (name: main/25376) stack: ---\n  PC: 0x40bc38 0x40b999\n"
    b"  [0x42ed5f] [0x42edc1]\n--- Thread 7eff00000000 (name: other/1) stack: ---\n  [same as previous thread]\n"
    b"--- Memory map: ---\n00400000-00fcb000: /bin/threads\n",
    "heap": b"heap profile:      5:     200 [    9:     900] @ heapprofile\n"
    b"     3:   120 [  5:  500] @ 0x40bc38 0x40b999\n     2:   80 [  4:  400] @ 0x40bc38\n"
    b"MAPPED_LIBRARIES:\n00400000-00fcb000 r-xp 00000000 08:01 12 /bin/heap\n",
    "jemalloc": b"heap_v2/524288\n  t*: 28106: 56637512 [0: 0]\n  t0: 352: 16777344 [0: 0]\n@ 0x5f40 0x5f41\n"
    b"  t*: 3: 120 [0: 0]\n  t0: 3: 120 [0: 0]\nMAPPED_LIBRARIES:\n00400000-00fcb000 r-xp 00000000 08:01 12 /bin/h\n",
    "java heap": b"--- heapz 1 ---\nformat = java\nresolution = bytes\n"
    b"    7048     1 @ 0x00000003 0x00000004\n    4752     9 @ 0x00000004\n"
    b"   0x00000003 com.a.B (B.java:12)\n   0x00000004 com.a.C (C.java)\n",
    "java contention": b"--- contentionz 1 ---\nformat = java\nresolution = microseconds\nsampling period = 100\n"
    b"ms since reset = 6019923\n            1     1 @ 0x00000003 0x00000004\n           14     1 @ 0x00000004\n"
    b"   0x00000003 com.a.B (B.java:12)\n   0x00000004 libfoo.so\n",
    "counts": b"goroutine profile: total 4\n3 @ 0x40bc38 0x40b999\n#\t0x40bc38\tmain.f+0x8\t/a/b.go:12\n\n"
    b"1 @ 0x40b999\n",
    "perl": b"--- symbol\nbinary=/bin/app\n0x000000000040bc38 main--f\n0x000000000040b999 g\n---\n--- profile\n"
    + struct.pack("<5Q", 0, 3, 0, 10000, 0)
    + struct.pack("<4Q", 2, 2, 0x40BC38, 0x40B999)
    + struct.pack("<3Q", 0, 1, 0),
    "perf script": b"app  1031 [007]     1.000000:    1000000 cycles:u: \n\t           cf7d1 f+0x81 (/lib/libc.so.6)\n"
    b"\t           f63bc [unknown] (/lib/libc.so.6)\n\nother 12/13 2.5: 1 task-clock: \n"
    b"\t  401000 main+0x0 (/bin/a b)\n\n",
    "perf mappings": b"app 7/7 1.0: PERF_RECORD_MMAP2 7/7: [0x555000001000(0x2000) @ 0x1000 fe:00 12 3]: r-xp /b/app\n"
    b"app 7/7 1.1: PERF_RECORD_FORK(20:21):(7:7)\napp 20/20 1.2: PERF_RECORD_COMM exec: app:20/20\n"
    b"app 7/8 [001] 1.5:    1000 cycles:u:\n\tffffffff81000e46 a+0x1 ([kernel.kallsyms])\n\t555000001234 b (inlined)\n"
    b"  a.c:3\n\t555000001234 outer(int)+0x4 (/bin/app)\n  b.c:9\n\t    1345 main+0x5 (/bin/app+0x345)\n\n",
    "perf lines": b"app 8 1.5: 1000 cycles:  1234 f(int)+0x1 (/bin/app (deleted))\n  b 9 1.6: 5 cycles: 1234 [??]\n",
    "folded modules": b"# made\nmain;[libm.so.6];[unknown];f<int>+0x5;/lib/x.so+0x9 999999999999999999\n;a b;;c 12 \r\n"
    b"main;[libm.so.6];[unknown];f<int>+0x5;/lib/x.so+0x9 999999999999999999\n",
    "folded": b"app;main;f 12\napp;main;libc.so.6+0x1234 3\nother;[kernel] 1\n",
}
"""Legacy kinds by hand, each as small as it can be."""


MAX_RECORDING = 12 << 10
"""Bytes of recordings that are damaged: in larger ones a change seldom hits anything."""


def recordings() -> Iterator[Sample]:
    """Files of perf as the benchmarks and the tests write them, and recorded ones."""
    yield from (Sample(f"made {i}", data) for i, data in enumerate(made_recordings()))
    for path in sorted((ROOT / "fixtures" / "profiles" / "perf_data").glob("*.data")):
        if path.is_file() and path.stat().st_size < MAX_RECORDING:
            yield Sample(path.stem, path.read_bytes())
    with patch.object(sys, "path", [str(ROOT / "benchmarks"), *sys.path]):
        import perf_data
    libraries = [ROOT / "fixtures" / "bin" / "gcc-pie" / name for name in ("spectra", "libresonance.so")]
    with tempfile.TemporaryDirectory() as folder:
        for make in (perf_data.write_frames, perf_data.write_zstd):
            path = Path(folder, make.__name__)
            make(path, 40, libraries)
            yield Sample(path.name, path.read_bytes())


def otlp() -> Iterator[Sample]:
    """Messages of two resources, as the profiler of OpenTelemetry sends them, in each form; and fixtures written so."""
    message, packed = writer.message, writer.packed
    texts = [b"", *b"samples count cpu nanoseconds thread.name main process.executable.build_id.gnu ab12".split()]
    texts += b"/bin/app f a.cc profile.frame.type native kernel thread.id B".split()
    attributes = [b""] + [
        message({1: key, 2: message({1: texts[value]} if value else {3: 7})})
        for key, value in ((5, 6), (7, 8), (12, 13), (12, 14))
    ]
    attributes.append(message({1: 15, 2: message({3: 42}), 3: 16}))
    dictionary = message(
        {
            1: [b"", message({1: 0x400000, 2: 0x500000, 3: 0x1000, 4: 9, 5: packed([2])})],
            2: [b""] + [
                message({1: 1, 2: 0x400000 + 64 * each, 4: packed([3 + each % 2]),
                         **({3: message({1: 1, 2: 12, 3: 4})} if each == 3 else {})})
                for each in range(1, 12)
            ],
            3: [b"", message({1: 10, 2: 10, 3: 11, 4: 5})],
            4: [b"", message({1: bytes(16), 2: b"12345678"})],
            5: texts,
            6: attributes,
            7: [b"", *(message({1: packed(range(1, each))}) for each in range(2, 12))],
        }
    )  # fmt: skip
    samples = [
        message(
            {
                1: each,
                2: packed([1, 5]),
                3: each % 2,
                4: packed([each, 3]),
                5: struct.pack("<2Q", 10**18, 10**18 + each),
            }
        )
        for each in range(1, 11)
    ]
    value_type = message({1: 1, 2: 2})
    profile = message({1: value_type, 2: samples, 4: 10**9, 5: message({1: 3, 2: 4}), 6: 10**7, 7: bytes(range(16))})
    pid = message({1: message({1: "process.pid", 2: message({3: 12})})})
    scope = message({1: message({1: "go.opentelemetry.io/ebpf-profiler", 2: "v1"}), 2: [profile, profile]})
    resource = message({1: pid, 2: scope, 3: "https://opentelemetry.io/schemas/1.37.0"})
    data = message({1: [resource, message({2: scope})], 2: dictionary})
    yield Sample("message", data)
    yield Sample("delimited", writer.varint(len(data)) + data)
    yield Sample("sized", struct.pack(">I", len(data)) + data)
    yield Sample("json", OTLP_JSON)
    for path in sorted((ROOT / "fixtures" / "profiles").rglob("*.pb.gz")):
        made = io.BytesIO()
        try:
            write(symbolize.load(path), made, emit="otlp")
        except UsageError:
            continue
        yield Sample(path.name, made.getvalue())


GIVEN: dict[str, Callable[[], Iterator[Sample]]] = {
    "perf": recordings,
    "otlp": otlp,
    "legacy": lambda: (Sample(*each) for each in LEGACY.items()),
}
"""What is damaged besides the fixtures in the folder of that name."""


@cache
def samples(family: str) -> list[Sample]:
    """The sound inputs: those that can be loaded."""
    found = [*GIVEN[family]()]
    for path in sorted((ROOT / "fixtures" / family).rglob("*")):
        if (
            path.is_file()
            and path.stat().st_size <= MAX_SAMPLE
            and path.suffix not in (".py", ".c", ".go", ".cc", ".md")
        ):
            try:
                found.append(Sample(path.name, bytes(Content(path).whole())))
            except InputError:
                continue
    return [each for each in found if is_loaded(each.data)]


@cache
def weights(family: str) -> list[float]:
    """How often each is damaged: the larger, the rarer, as more of them can be tried in the same time."""
    return [1 / (1000 + len(each.data)) for each in samples(family)]


def is_loaded(data: bytes) -> bool:
    """Whether there is a loader for it."""
    try:
        symbolize.load_all(io.BytesIO(data))
    except InputError:
        return False
    return True


def is_text(data: bytes) -> bool:
    """Whether an input is lines of text."""
    head = data[:4096]
    return len(head.translate(None, CONTROLS)) * 50 > 49 * len(head)


def mutate_records(chance: random.Random, sound: bytes) -> bytes:
    """A perf.data file with records or fields of them damaged, left out, repeated or moved."""
    order = "<" if sound.startswith(MAGICS[0]) else ">"
    (size,) = struct.unpack_from(order + "Q", sound, 8)
    begin, end = PIPE_HEADER, len(sound)
    if size == FILE_HEADER:
        begin, length = struct.unpack_from(order + "QQ", sound, 40)
        end = min(begin + length, end)
    records, at = [], begin
    while at + 8 <= end and len(records) < MAX_RECORDS:
        (length,) = struct.unpack_from(order + "H", sound, at + 6)
        if length < 8:
            break
        records.append(bytearray(sound[at : min(at + length, end)]))
        at += length
    if not records:
        return mutate_bytes(chance, sound)
    for _ in range(chance.choice(HOW_MANY)):
        row = chance.randrange(len(records))
        chosen = records[row]
        way = chance.randrange(8)
        if way == 0 and len(records) > 1:
            del records[row]
        elif way == 1:
            records[row:row] = [bytearray(chosen) for _ in range(chance.choice((1, 2, 50)))]
        elif way == 2:
            records.insert(chance.randrange(len(records)), records.pop(row))
        elif way == 3:
            struct.pack_into(order + "I", chosen, 0, chance.choice((*range(1, 23), *range(64, 85), 32768, 1 << 31)))
        elif way == 4:
            struct.pack_into(order + "H", chosen, chance.choice((4, 6)), chance.choice((chance.getrandbits(16), 8, 16)))
        elif len(chosen) > 8:
            width, code = chance.choice(((4, "I"), (8, "Q"), (8, "Q")))
            place = 8 + chance.randrange(len(chosen) - 8) // width * width
            if place + width <= len(chosen):
                value = chance.choice(
                    (chance.choice(INTERESTING), chance.getrandbits(64), len(chosen), chance.randrange(64))
                )
                struct.pack_into(order + code, chosen, place, value % (1 << 8 * width))
    data = b"".join(records)
    head = bytearray(sound[:begin])
    if size == FILE_HEADER and chance.random() < 0.8:  # otherwise the size of the data is wrong
        struct.pack_into(order + "Q", head, 48, len(data))
    return bytes(head) + data + sound[end:]


def damaged(family: str, seed: int) -> bytes:
    """The input of a seed."""
    chance = random.Random(seed)
    data = chance.choices(samples(family), weights(family))[0].data
    way = chance.random()
    if way < 0.02:
        return data
    if data.startswith(MAGICS) and way < 0.6:
        return mutate_records(chance, data)
    if data.startswith(MAGICS) and way < 0.7:  # the headers alone
        return mutate_bytes(chance, data[: FILE_HEADER + 152]) + data[FILE_HEADER + 152 :]
    if is_text(data):
        if way < 0.2 and len(data) < MAX_REPEATED:  # the format is recognized by what is sound
            return data * REPEATS + mutate_text(chance, data)
        return mutate_text(chance, data) if way < 0.8 else mutate_bytes(chance, data)
    if family == "otlp" and way < 0.8:
        for _ in range(chance.choice((1, 1, 2, 4))):
            data = mutate_message(chance, data)
        return data
    return mutate_bytes(chance, data)


def check(profile: Profile) -> None:
    """That columns fit together: offsets ascend, rows and strings exist."""
    samples, locations, mappings, functions = profile.samples, profile.locations, profile.mappings, profile.functions
    strings = len(profile.strings)
    for offsets, size in (
        (samples.location_offsets, len(samples.locations)),
        (samples.label_offsets, len(samples.labels)),
        (locations.line_offsets, len(locations.lines)),
    ):
        assert offsets[0] == 0
        assert offsets[-1] == size
        assert (np.diff(offsets) >= 0).all()
    assert samples.values.shape == (len(samples), len(profile.sample_types)), samples.values.shape
    assert len(locations.mapping) == len(locations.is_folded) == len(locations.line_offsets) - 1 == len(locations)
    within = [
        (samples.locations, 0, len(locations)),
        (locations.mapping, -1, len(mappings)),
        (locations.lines.function, -1, len(functions)),
        *((column, 0, strings) for column in (mappings.filename, mappings.build_id)),
        *((column, 0, strings) for column in (functions.name, functions.system_name, functions.filename)),
        *((column, 0, strings) for column in (samples.labels.key, samples.labels.text, samples.labels.unit)),
    ]
    dumps = getattr(profile, "stack_dumps", None)
    if dumps is not None:
        assert (np.diff(dumps.sample) > 0).all()
        assert (dumps.offset >= 0).all()
        assert (dumps.size >= 0).all()
        assert (dumps.offset + dumps.size <= len(dumps.data)).all()
        within += [
            (dumps.sample, 0, len(samples)),
            (dumps.space, 0, len(dumps.space_offsets) - 1),
            (dumps.space_mappings, 0, len(mappings)),
        ]
    for column, least, count in within:
        assert not len(column) or (column.min() >= least and column.max() < count), (least, count)


def loader_target(family: str, seed: int) -> int:
    """A damaged input is loaded and consistent, or refused with one line."""
    if not samples(family):
        return 1
    data = damaged(family, seed)
    try:
        found = symbolize.load_all(io.BytesIO(data))
        for each in found[:MAX_PROFILES]:
            profile = each.profile
            check(profile)
            assert all(text and "\n" not in text for text in profile.warnings), profile.warnings
            if random.Random(~seed).random() < WRITTEN:
                profile_pb2.Profile.FromString(encode(profile))
    except InputError as error:
        assert str(error)
        assert "\n" not in str(error)
    return len(data)


TARGETS: dict[str, Callable[[int], int]] = {f"load-{family}": partial(loader_target, family) for family in GIVEN}

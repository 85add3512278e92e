"""Damaged profiles of all formats and containers, through the whole command: loaded, symbolized, written."""

import gzip
import io
import json
import os
import random
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from symbolize import Edits, Filters, load_all
from symbolize.analysis.filters import selected
from symbolize.cli.main import main
from symbolize.core.arrays import UInt64, offsets_of
from symbolize.core.errors import InputError
from symbolize.elf import ElfImage
from symbolize.formats import encode
from symbolize.formats.firefox.lines import FirefoxLines
from symbolize.formats.otlp import writer as otlp
from symbolize.formats.otlp.lines import OtlpLines
from symbolize.profile import combine, compact, merged
from symbolize.profile.model import Functions, Lines, Profile
from tests.support import gperftools_writer as gperftools
from tests.support import perfetto_traces as given
from tests.support import perfetto_writer as traces
from tests.support.bombs import BASE
from tests.support.messages import profile_pb2
from tests.support.perfetto_writer import varint
from tools.fuzz.mutate import ANY, HOW_MANY, INTERESTING, cut

ROOT = Path(__file__).parents[2]
FOLDER = Path("/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp")
BINARIES = (ROOT / "fixtures" / "bin" / "gcc-pie", ROOT / "fixtures" / "simpleperf" / "binaries")
MAX_FIELDS = 2000
"""Fields of a message that a change is made to one of."""
NESTED = 6
MAX_PROFILES = 8
"""Profiles of a damaged input that are made."""
GOOD_EXITS = (0, 1)


class Sample(NamedTuple):
    """A sound profile, not compressed; `is_protobuf` from `start` on."""

    name: str
    data: bytes
    start: int = 0
    is_protobuf: bool = True


def trace() -> bytes:
    """A Perfetto trace with heap dumps, CPU samples, Java names and symbols, of a program of the fixtures."""
    with ElfImage.open(str(BINARIES[0] / "ledger")) as image:
        build_id = bytes.fromhex(image.build_id or "")
        begin = int(image.code_ranges[0][0])
    app = traces.mapping(1, 1, 0x10000, 0x60000, 0, 0, 0, [1, 2])
    java = traces.mapping(2, 0, 0x90000, 0xA0000, 0, 0, 0, [3, 4])
    state = traces.interned(
        {1: "main", 2: "a.b", 3: ""},
        {1: build_id},
        {1: "bin", 2: "ledger", 3: "data", 4: "base.vdex"},
        {1: "a.c"},
        [app, java],
        [traces.frame(each, each % 4, 1 + each % 5 // 4, begin + 64 * each) for each in range(1, 9)],
        [traces.callstack(each, range(1, each + 1)) for each in range(1, 9)],
    )
    dumps = [traces.heap_dump(7, [traces.heap_sample(each, 100, 40, 3, 1) for each in range(1, 9)])]
    names = traces.java_class("a", "com.app.A", [("b", "run", [1, 2, 3, 4])])
    return b"".join(
        (
            traces.process_tree({7: ["app", "-x"], 10: ["other"]}, {11: ("worker", 10)}),
            traces.users({7: 10001}),
            traces.packages([("com.app", 10001)]),
            traces.packet(1, traces.CLEARED, state, traces.perf_defaults({2: 100, 4: 1})),
            *(traces.perf_sample(each, time=1000 + each) for each in range(1, 9)),
            traces.heap_packet(dumps),
            traces.deobfuscation([names], "com.app"),
            traces.module_symbols("/bin/ledger", build_id, {begin + 64: [("f", "a.c", 3)]}),
            traces.compressed(traces.perf_sample(3)),
            traces.zstd(traces.perf_sample(4)),
        )
    )


def further_traces() -> Iterator[Sample]:
    """Traces with what `trace` has not: samples of CPUs with counters and clocks, StackSamples, those of Chromium."""
    clocked = [given.CLOCKS, traces.packet(1, traces.CLEARED, given.STATE, given.CYCLES)]
    clocked += [given.born(7, "old", 1000), given.born(7, "new", 1100, machine=3), given.dumped(7, 5, 3, machine=3)]
    clocked += [
        traces.perf_sample(2, cpu=cpu, total=total, followers=more, time=time, mode=1, f16=cpu, f17=7)
        for cpu, total, more, time in ((0, 5000, [10, 1], 9), (1, 9000, [7, 0], 8), (0, 6400, [15, 3], 10))
    ]
    track = traces.packet(1, rest={11: traces.message({55: traces.message({1: traces.message({1: "f"})})})})
    yield Sample("perfetto cpu", b"".join([*clocked, track]))
    message = traces.message
    more = message(
        {
            48: message({1: 1, 2: 10, 3: 12}),
            49: message({1: 1, 2: 3, 3: 1}),
            50: [message({1: 1, 2: "cycles", 3: 2, 5: 1000}), message({1: 2, 2: "misses", 4: "events"})],
        }
    )
    by_id = message({2: 1, 4: 1, 6: 2, 10: 1, 11: 500, 13: traces.packed([2]), 14: traces.packed([4])})
    inline = message(
        {1: message({2: 10, 3: 12}), 3: message({2: 3, 3: 1}), 9: message({2: "cycles", 3: 2}), 11: 30,
         5: message({1: [message({1: "main"}), message({1: "leaf", 2: "a.c", 3: 9})]}),
         12: message({2: "misses", 4: "events"}), 14: 1}
    )  # fmt: skip
    defaults = message({100: message({2: message({2: "wall", 3: 1}), 3: message({2: "misses", 5: 64})})})
    left = traces.packet(1, defaults=defaults) + traces.packet(
        1, rest={135: message({1: message({2: 5}), 6: 2, 11: 8})}
    )
    stacks = [traces.packet(1, rest={135: each}) for each in (by_id, inline)]
    yield Sample("perfetto stacks", traces.packet(1, traces.CLEARED, given.STATE + more) + b"".join(stacks) + left)
    start = traces.packet(1, traces.CLEARED, given.CHROMIUM) + given.THREAD
    dump = traces.heap_packet([traces.heap_dump(7, [traces.heap_sample(1, 8, 0, 1)])], True)
    end = dump + traces.heap_packet([], index=1)
    yield Sample("chromium", start + given.stream([1, 2], [20, 5]) + given.stream([1], [100]) + end)


def otlp_samples(message: bytes) -> Iterator[Sample]:
    """A message of OTLP profiles alone and with lengths, one with a row of each kind, and one as JSON."""
    yield Sample("otlp", message)
    lengths = b"".join(len(each).to_bytes(4, "big") + each for each in (message, message))
    yield Sample("otlp lengths", lengths, is_protobuf=False)
    array = traces.message({5: traces.message({1: [b"\x18\x05", b"\x0a\x01x", b"\x21" + bytes(8)]})})
    named = traces.message({1: "k", 2: array})
    tables: dict[int, traces.Value] = {
        1: [b"", b"\x10\x80\x20"],
        2: [b"", b"\x08\x01\x10\x80\x04\x1a\x04\x08\x01\x10\x07"],
        3: [b"", b"\x08\x01"],
        4: [b"", traces.message({1: bytes(range(16)), 2: bytes(range(8))})],
        5: [b"", b"k", b"samples"],
        6: [b"", traces.message({1: 1, 2: array, 3: 2})],
        7: [b"", b"\x0a\x01\x01"],
    }
    sample = b"\x08\x01\x12\x01\x01\x18\x01\x22\x02\x03\x04\x2a\x10" + bytes(range(16))
    profile = traces.message({1: b"\x08\x02", 2: [sample] * 3, 5: b"", 7: bytes(range(16)), 10: b"x", 11: 1})
    scope = traces.message({1: traces.message({1: "s", 3: named}), 2: [profile, profile]})
    resource = traces.message({1: traces.message({1: named}), 2: scope})
    small = traces.message({1: resource, 2: traces.message(tables)})
    yield Sample("otlp small", small)
    yield Sample("otlp magic", b"OTLP\x01\0\0\0" + varint(len(small)) + small, is_protobuf=False)
    text = (
        b'{"resourceProfiles":[{"resource":{"attributes":[{"key":"process.pid","value":{"intValue":"7"}}]},'
        b'"scopeProfiles":[{"profiles":[{"sampleType":{"typeStrindex":1},"samples":[{"stackIndex":1,"values":["5"]}]}]}]}'
        b'],"dictionary":{"stringTable":["","n"],"stackTable":[{},{"locationIndices":[1]}],'
        b'"locationTable":[{},{"address":"4"}]}}'
    )
    yield Sample("otlp json", text, is_protobuf=False)


@cache
def samples() -> list[Sample]:
    """The sound profiles."""
    found = [Sample("pprof", BASE), Sample("perfetto", trace()), *further_traces()]
    for layout in gperftools.LAYOUTS:
        records = [(each, [0x400100 + 16 * each, 0x400210, 0x7F10]) for each in range(1, 20)]
        text = b"00400000-00490000 r-xp 00000000 08:01 1234 /opt/app\n"
        found.append(Sample(f"gperftools {layout}", gperftools.profile(records, text, layout), is_protobuf=False))
    profiles = ROOT / "fixtures" / "profiles"
    for path in (profiles / "perf" / "spectra-gcc-pie.pb.gz", profiles / "go" / "census.pb.gz"):
        found.append(Sample(path.name, zlib.decompress(path.read_bytes(), 47)))
    for name in ("ledger-gcc-pie.prof", "spectra-gcc-pie.prof"):
        found.append(Sample(name, (profiles / "gperftools" / name).read_bytes(), is_protobuf=False))
    for version in (36, 75):
        data = zlib.decompress((profiles / f"firefox/v{version}.json.gz").read_bytes(), 47)
        found.append(Sample(f"firefox v{version}", data, is_protobuf=False))
    found += otlp_samples((profiles / "otlp" / "spectra-gcc-pie.otlp").read_bytes())
    for name in ("profiler.heap", "jemalloc.dump", "goroutine.txt", "mutex.txt", "plain.perf-script"):
        found.append(Sample(name, (ROOT / "fixtures" / "legacy" / name).read_bytes(), is_protobuf=False))
    for name in ("mixer.proto", "mixer_named.proto"):
        found.append(Sample(name, (ROOT / "fixtures" / "simpleperf" / name).read_bytes(), 12))
    return found


class Field(NamedTuple):
    """A field of a message: where it begins, where its value does, where it ends, and its wire type."""

    start: int
    value: int
    end: int
    wire: int


def fields(data: bytes, at: int, end: int) -> Iterator[Field]:
    """The fields of a message, up to the first that is none."""
    while at < end:
        start, tag, shift = at, 0, 0
        while at < end and shift < 35:
            tag |= (data[at] & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 0x80:
                break
        value, size = at, 0
        if tag & 7 == 0:
            while at < end and data[at] >= 0x80:
                at += 1
            at += 1
        elif tag & 7 == 2:
            shift = 0
            while at < end and shift < 35:
                size |= (data[at] & 0x7F) << shift
                shift, at = shift + 7, at + 1
                if data[at - 1] < 0x80:
                    break
            value = at
            at += size
        else:
            at += {1: 8, 5: 4}.get(tag & 7, 0)
        if tag < 8 or tag & 7 in (3, 4, 6, 7) or at > end:
            return
        yield Field(start, value, at, tag & 7)


def mutate_message(chance: random.Random, data: bytes, depth: int = 0) -> bytes:
    """A message with a field changed: its number, wire type or value, or it is left out, repeated or moved."""
    found = []
    for each in fields(data, 0, len(data)):
        found.append(each)
        if len(found) >= MAX_FIELDS:
            break
    if not found:
        return mutate_bytes(chance, data)
    field = chance.choice(found)
    raw, inner = data[field.start : field.end], data[field.value : field.end]
    way = chance.random()
    if field.wire == 2 and inner and depth < NESTED and way < 0.6:
        tag = data[field.start : field.value]
        changed = mutate_message(chance, inner, depth + 1)
        key = next(end for end in range(1, len(tag) + 1) if tag[end - 1] < 0x80)
        new = tag[:key] + varint(len(changed)) + changed
    elif way < 0.7:
        number = chance.choice((raw[0] >> 3, chance.randrange(1, 16), chance.randrange(1, 200)))
        new = random_field(chance, number)
    elif way < 0.8:
        new = b""
    elif way < 0.9:
        new = raw * chance.choice((2, 3, 100, 1000) if len(raw) < 200 else (2, 3))
    elif way < 0.95:
        other = chance.choice(found)
        new = data[other.start : other.end] + raw
    else:
        new = mutate_bytes(chance, raw)
    return data[: field.start] + new + data[field.end :]


def random_field(chance: random.Random, number: int) -> bytes:
    """A field of any wire type, groups included."""
    wire = chance.choice((0, 0, 0, 1, 2, 2, 3, 5))
    value = chance.choice((chance.choice(INTERESTING), chance.randrange(64), chance.getrandbits(64)))
    if wire == 0:
        content = varint(value)
    elif wire == 2:
        size = chance.choice((0, 1, 2, 5, 40))
        content = varint(size if chance.random() < 0.9 else value % (1 << 40)) + chance.randbytes(size)
    else:
        content = chance.randbytes({1: 8, 5: 4}.get(wire, 0))
    return varint(number << 3 | wire) + content


def mutate_bytes(chance: random.Random, sound: bytes) -> bytes:
    """Any bytes damaged."""
    data = bytearray(sound)
    for _ in range(chance.choice(HOW_MANY)):
        if data:
            chance.choice((*ANY, cut) if chance.random() < 0.1 else ANY)(chance, data)
    return bytes(data)


def mutate(chance: random.Random, sample: Sample) -> bytes:
    """A profile, damaged somehow."""
    if not sample.is_protobuf or chance.random() < 0.25:
        return mutate_bytes(chance, sample.data)
    head, data = sample.data[: sample.start], sample.data[sample.start :]
    if not head:
        for _ in range(chance.choice((1, 1, 2, 4))):
            data = mutate_message(chance, data)
        return data
    # A simpleperf report: records with their size before them.
    records, at = [], 0
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        records.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(records))
        records[at] = mutate_message(chance, records[at])
    return head + b"".join(len(each).to_bytes(4, "little") + each for each in records)


def _zstd(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=1).compress(data)


def _lz4(data: bytes) -> bytes:
    import lz4.frame

    return bytes(lz4.frame.compress(data))


CONTAINERS: tuple[Callable[[bytes], bytes], ...] = (
    bytes,
    bytes,
    lambda data: gzip.compress(data, 1),
    lambda data: gzip.compress(data[: len(data) // 2], 1) + gzip.compress(data[len(data) // 2 :], 1),
    _zstd,
    _lz4,
    lambda data: gzip.compress(_zstd(data), 1),
    lambda data: _lz4(gzip.compress(data, 1)),
)


def damaged_profile(seed: int) -> bytes:
    """The input of a seed."""
    chance = random.Random(seed)
    sample = chance.choice(samples())
    data = mutate(chance, sample) if chance.random() < 0.97 else sample.data
    packed = chance.choice(CONTAINERS)(data)
    if packed != data and chance.random() < 0.1:
        packed = mutate_bytes(chance, packed)
    return packed


def profile_target(seed: int) -> int:
    """A damaged profile through the command: it ends with 0 or 1, one line says why, and outputs are profiles that
    protobuf reads."""
    data = damaged_profile(seed)
    chance = random.Random(~seed)
    folder = FOLDER / f"fuzz-profiles-{os.getpid()}"
    out = folder / "out"
    out.mkdir(parents=True, exist_ok=True)
    (folder / "input").write_bytes(data)
    said = io.StringIO()
    arguments = [str(folder / "input"), "-o", f"{out}/", *(f"--binaries={each}" for each in BINARIES)]
    arguments += chance.choice(
        ([], [], ["--timestamps"], ["--annotate"], ["--demangle=full"], ["--show-art-frames"], ["--no-cache"])
    )
    try:
        with redirect_stderr(said), patch.dict(os.environ, {"XDG_CACHE_HOME": str(FOLDER / "fuzz-profiles-cache")}):
            code = main(arguments)
        assert code in GOOD_EXITS, f"exit code {code}"
        text = said.getvalue()
        if code:
            assert text.startswith("symbolize: "), text[:200]
            assert len(text.splitlines()) == 1, text[:400]
            assert "out of memory" not in text
        for path in out.rglob("*"):
            if path.is_file():
                profile_pb2.Profile.FromString(gzip.decompress(path.read_bytes()))
                assert path.name.endswith(".pb.gz")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return len(data)


FILTERS = (
    Filters(focus="main|a", tagfocus="bytes=1kb:"),
    Filters(hide="a", tagignore="pid=7,8", taghide="t"),
    Filters(show="[a-m]", tagfocus=":64mb", tagshow="p"),
)
EDITS = (
    Edits(prune=True, synthesize=True, path_prefixes=[("/", "x")]),
    Edits(drop="[[:alpha:]]+.*", keep="main", trim_paths=["/src:/usr"]),
    Edits(prune_from="a", synthesize=True),
)


def merged_target(seed: int) -> int:
    """Damaged profiles merged, with edits and filters: what is written is read by protobuf, and values are not lost."""
    chance = random.Random(seed)
    data = [damaged_profile(chance.getrandbits(40)) for _ in range(2)]
    found = []
    for each in data:
        with suppress(InputError), redirect_stderr(io.StringIO()):
            found += [loaded.profile for loaded in load_all(io.BytesIO(each))[:3]]
    if not found:
        return sum(map(len, data))
    found.append(chance.choice(found))
    sizes = [len(profile.samples) for profile in found]
    whole = merged(found, side_by_side=True)
    assert len(whole.samples) <= sum(sizes) == sum(len(profile.samples) for profile in found)
    edited = chance.choice(EDITS).apply(whole)
    chosen = combine(selected(edited, chance.choice(FILTERS)))
    for profile in (whole, edited, compact(chosen)):
        profile_pb2.Profile.FromString(encode(profile))
    again = merged([whole])
    assert encode(again) == encode(merged([again]))
    return sum(map(len, data))


def otlp_target(seed: int) -> int:
    """A damaged OTLP input: it is read or refused with one line, and what was read is written again, as a message of
    its own and into the messages that came, where every location gets a line."""
    chance = random.Random(seed)
    sample = chance.choice([each for each in samples() if each.name.startswith("otlp")])
    data = mutate(chance, sample)
    try:
        found = load_all(io.BytesIO(data), timestamps=chance.random() < 0.3)
        if found[0].container is None:
            return len(data)
        lines = OtlpLines(found[0].container)
        for each in found[:MAX_PROFILES]:
            profile = each.profile
            for piece in otlp.pieces(profile):
                assert isinstance(piece, bytes)
            count = len(profile.locations)
            profile.functions = Functions.zeros(1)
            profile.locations.lines = Lines.zeros(count)
            profile.locations.line_offsets = np.arange(count + 1)
            lines.add(profile, np.ones(count, np.bool_))
        written = b"".join(lines.pieces())
    except InputError as error:
        assert len(str(error).splitlines()) == 1
        return len(data)
    again = load_all(io.BytesIO(written))
    assert len(again) == len(found)
    return len(data)


ODD = (None, True, -1, 0, 1.5, 7, 1 << 31, 1 << 53, 1 << 64, 1e300, "", "0x10", "a (b:1:2)", "\ud800", [], [None], {})
"""Values that are put in place of others."""


def mutate_json(chance: random.Random, value: Any) -> Any:
    """A JSON value, of which one that it holds is another, missing, or there twice."""
    holder, key, child = value, None, value
    while isinstance(child, dict | list) and child and (key is None or chance.random() < 0.9):
        holder, key = child, chance.choice([*child] if isinstance(child, dict) else range(len(child)))
        child = holder[key]
    kind = chance.random()
    if key is None or kind < 0.6:
        new = chance.choice(ODD)
        if key is None:
            return new
        holder[key] = new
    elif kind < 0.8 or isinstance(holder, dict):
        del holder[key]
    else:
        holder.append(holder[key])
    return value


def firefox_target(seed: int) -> int:
    """A damaged profile of the Firefox Profiler: it is read or refused with one line, and with names, some of inlined
    frames, it is JSON if it was, and is read again."""
    chance = random.Random(seed)
    data = chance.choice([each for each in samples() if each.name.startswith("firefox")]).data
    is_json = chance.random() < 0.7
    if is_json:
        value = json.loads(data)
        for _ in range(chance.choice((1, 1, 2, 3))):
            value = mutate_json(chance, value)
        data = json.dumps(value, indent=chance.choice((None, 1))).encode()
    else:
        data = mutate_bytes(chance, data)
    try:
        (found,) = load_all(io.BytesIO(data), timestamps=chance.random() < 0.3)
        if found.document is None:
            return len(data)
        lines = FirefoxLines(found.document, no_symbols, replaces=chance.random() < 0.5)
        profile = found.profile
        counts = np.arange(len(profile.locations)) % 3 + 1
        profile.functions = Functions.zeros(1)
        profile.locations.lines = Lines.zeros(int(counts.sum()))
        profile.locations.line_offsets = offsets_of(counts)
        lines.add(profile, np.ones(len(counts), np.bool_))
        written = b"".join(lines.pieces())
    except InputError as error:
        assert len(str(error).splitlines()) == 1
        return len(data)
    if is_json:
        json.loads(written)
        assert load_all(io.BytesIO(written))[0].profile is not None
    return len(data)


def no_symbols(profile: Profile) -> tuple[UInt64, UInt64]:
    """Symbols that begin where the locations are, of no known size."""
    return np.zeros(len(profile.locations), np.uint64), np.zeros(len(profile.locations), np.uint64)

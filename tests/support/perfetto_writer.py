"""Writes Perfetto traces for tests, field by field (Perfetto wire format)."""

import zlib
from collections.abc import Iterable, Mapping, Sequence

MASK64 = (1 << 64) - 1

Value = int | bytes | str | None | Sequence["int | bytes | str"]


def varint(value: int) -> bytes:
    """A number as protobuf writes it; negative ones in two's complement."""
    value &= MASK64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, value: Value) -> bytes:
    """A field, repeated for each item of a list; nothing for None."""
    if value is None:
        return b""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return b"".join(field(number, each) for each in value)


def message(fields: Mapping[int, Value]) -> bytes:
    """A message of fields by number."""
    return b"".join(field(number, value) for number, value in fields.items())


def packed(values: Iterable[int]) -> bytes:
    """Numbers as the content of a packed field."""
    return b"".join(map(varint, values))


CLEARED, NEEDS_STATE = 1, 2


def packet(
    seq: int | None = 1,
    flags: int | None = None,
    interned: bytes | None = None,
    defaults: bytes | None = None,
    time: int | None = None,
    dropped: int | None = None,
    rest: Mapping[int, Value] | None = None,
) -> bytes:
    """A packet with its header in a trace; `rest` has the fields of its content."""
    fields: dict[int, Value] = {8: time, 10: seq, 13: flags, 42: dropped, 59: defaults, 12: interned}
    return field(1, message(fields | dict(rest or {})))


def compressed(packets: bytes) -> bytes:
    """A packet that holds packets, in zlib."""
    return field(1, field(50, zlib.compress(packets)))


def zstd(packets: bytes) -> bytes:
    """A packet that holds packets, in zstd."""
    import zstandard

    return field(1, field(133, zstandard.ZstdCompressor().compress(packets)))


def string(iid: int, text: str | bytes) -> bytes:
    """An InternedString."""
    return message({1: iid, 2: text})


def mapping(
    iid: int,
    build_id: int = 0,
    start: int = 0,
    end: int = 0,
    exact_offset: int | None = 0,
    start_offset: int = 0,
    load_bias: int = 0,
    path: Sequence[int] = (),
) -> bytes:
    """A Mapping; ids in place of strings."""
    return message(
        {1: iid, 2: build_id, 3: start_offset, 4: start, 5: end, 6: load_bias, 7: list(path), 8: exact_offset}
    )


def frame(
    iid: int, function: int = 0, mapping: int = 0, rel_pc: int = 0, source: int | None = None, line: int | None = None
) -> bytes:
    """A Frame."""
    return message({1: iid, 2: function, 3: mapping, 4: rel_pc, 5: source, 6: line})


def callstack(iid: int, frames: Sequence[int]) -> bytes:
    """A Callstack, its frames outermost first."""
    return message({1: iid, 2: list(frames)})


def interned(
    functions: Mapping[int, str | bytes] | None = None,
    builds: Mapping[int, bytes] | None = None,
    paths: Mapping[int, str] | None = None,
    sources: Mapping[int, str] | None = None,
    mappings: Sequence[bytes] = (),
    frames: Sequence[bytes] = (),
    callstacks: Sequence[bytes] = (),
) -> bytes:
    """An InternedData; callstacks stand first, so that nothing depends on the order."""
    return message(
        {
            7: list(callstacks),
            6: list(frames),
            19: list(mappings),
            5: [string(iid, text) for iid, text in (functions or {}).items()],
            16: [string(iid, text) for iid, text in (builds or {}).items()],
            17: [string(iid, text) for iid, text in (paths or {}).items()],
            18: [string(iid, text) for iid, text in (sources or {}).items()],
        }
    )


def heap_sample(
    stack: int,
    size: int = 0,
    freed: int = 0,
    count: int = 0,
    frees: int = 0,
    top: int | None = None,
    top_count: int | None = None,
) -> bytes:
    """A HeapSample."""
    return message({1: stack, 2: size, 3: freed, 5: count, 6: frees, 8: top, 9: top_count})


def heap_dump(
    pid: int, samples: Sequence[bytes], time: int = 1000, heap: str | None = "libc.malloc", **more: Value
) -> bytes:
    """A ProcessHeapSamples; `more` are fields by number, as in `f7=1`."""
    fields: dict[int, Value] = {1: pid, 2: list(samples), 9: time, 11: heap}
    return message(fields | {int(name[1:]): value for name, value in more.items()})


def heap_packet(
    dumps: Sequence[bytes], continued: bool = False, index: int = 0, seq: int | None = 1, **more: Value
) -> bytes:
    """A packet with a ProfilePacket; `more` are its fields by number."""
    fields: dict[int, Value] = {5: list(dumps), 6: int(continued) or None, 7: index}
    fields |= {int(name[1:]): value for name, value in more.items()}
    return packet(seq, rest={37: message(fields)})


def perf_sample(
    stack: int | None = None,
    pid: int = 10,
    tid: int = 11,
    cpu: int = 0,
    mode: int = 2,
    total: int | None = None,
    followers: Sequence[int] = (),
    seq: int | None = 1,
    flags: int | None = None,
    time: int | None = None,
    state: bytes | None = None,
    **more: Value,
) -> bytes:
    """A packet with a PerfSample; `more` are its fields by number."""
    fields: dict[int, Value] = {1: cpu, 2: pid, 3: tid, 4: stack, 5: mode, 6: total, 7: list(followers)}
    fields |= {int(name[1:]): value for name, value in more.items()}
    return packet(seq, flags, interned=state, time=time, rest={66: message(fields)})


def perf_defaults(timebase: Mapping[int, Value], followers: Sequence[bytes] = (), clock: int = 5) -> bytes:
    """TracePacketDefaults with PerfSampleDefaults."""
    return message({58: clock, 12: message({1: message(timebase), 4: list(followers)})})


def module_symbols(path: str, build_id: bytes, lines: Mapping[int, Sequence[tuple[str, str, int]]]) -> bytes:
    """A packet with symbols of addresses, innermost line first."""
    symbols = [
        message({1: address, 2: [message({1: name, 2: file, 3: line}) for name, file, line in each]})
        for address, each in lines.items()
    ]
    return packet(None, rest={61: message({1: path, 2: build_id, 3: symbols})})


def process_tree(processes: Mapping[int, Sequence[str]], threads: Mapping[int, tuple[str, int]] | None = None) -> bytes:
    """A packet with command lines by pid, and names and processes by tid."""
    return packet(
        None,
        rest={
            2: message(
                {
                    1: [message({1: pid, 2: 1, 3: list(command)}) for pid, command in processes.items()],
                    2: [message({1: tid, 2: name, 3: pid}) for tid, (name, pid) in (threads or {}).items()],
                }
            )
        },
    )


def java_class(obfuscated: str, name: str, methods: Sequence[tuple[str, str, Sequence[int | None]]] = ()) -> bytes:
    """An ObfuscatedClass; methods are obfuscated name, name, and lines: first, last, then those of the source."""
    members = [
        message({1: short, 2: method, **dict(zip((3, 4, 5, 6), lines, strict=False))})
        for short, method, lines in methods
    ]
    return message({1: obfuscated, 2: name, 4: members})


def deobfuscation(classes: Sequence[bytes], package: str | None = None) -> bytes:
    """A packet with names for obfuscated Java code."""
    return packet(None, rest={64: message({1: package, 2: 1, 3: list(classes)})})


def packages(apps: Iterable[tuple[str, int]]) -> bytes:
    """A packet with packages and the users that they have."""
    return packet(None, rest={47: message({1: [message({1: name, 2: user}) for name, user in apps]})})


def users(processes: Mapping[int, int]) -> bytes:
    """A packet with the users of processes."""
    return packet(None, rest={2: message({1: [message({1: pid, 5: user}) for pid, user in processes.items()]})})

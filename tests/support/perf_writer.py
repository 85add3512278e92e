"""Makes perf.data, as perf writes it in files and to pipes, in both byte orders (linux/perf_event.h)."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import zstandard

(IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID, RAW, BRANCHES, USER_REGISTERS, USER_STACK) = (
    1 << bit for bit in range(14)
)
WEIGHT, DATA_SRC, IDENTIFIER, TRANSACTION, INTR_REGISTERS, PHYS_ADDR, AUX, CGROUP, DATA_PAGE, CODE_PAGE = (
    1 << bit for bit in range(14, 24)
)
MMAP, LOST, COMM, EXIT, FORK, SAMPLE, MMAP2, LOST_SAMPLES, NAMESPACES, KSYMBOL, CGROUP_RECORD, DEFERRED = (
    *(1, 2, 3, 4, 7, 9, 10, 13, 16, 17, 19, 22),
)
HEADER_ATTR, TRACING_DATA, BUILD_ID, FINISHED_ROUND, AUXTRACE, EVENT_UPDATE, FEATURE, COMPRESSED, COMPRESSED2 = (
    *(64, 66, 67, 68, 71, 78, 80, 81, 83),
)
KERNEL, USER, HYPERVISOR, GUEST_KERNEL, GUEST_USER = 1, 2, 3, 4, 5
EXEC = DATA = 1 << 13
HAS_BUILD_ID, HAS_SIZE = 1 << 14, 1 << 15

USER_CHAIN, KERNEL_CHAIN, DEFERRED_CHAIN, GUEST_CHAIN, HYPERVISOR_CHAIN = (
    (1 << 64) - each for each in (512, 128, 640, 2560, 32)
)
X86_64 = 0xFF0FFF
"""The registers that perf asks for on x86-64."""

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Event:
    """A perf_event_attr."""

    type: int = 1
    config: int = 0
    period: int = 1
    is_frequency: bool = False
    sample_type: int = IP | TID | TIME | PERIOD | CALLCHAIN
    read_format: int = 0
    branches: int = 0
    registers: int = 0
    stack: int = 0
    has_trailer: bool = True
    ids: Sequence[int] = ()
    name: str = ""
    size: int = 128
    clock: int | None = None
    is_inherited: bool = False


@dataclass(frozen=True)
class Format:
    """A byte order; `e` is that of `struct`."""

    e: str = "<"

    def pack(self, codes: str, *values: int) -> bytes:
        """Integers."""
        return struct.pack(self.e + codes, *values)

    def words(self, values: Iterable[int]) -> bytes:
        """Integers of 64 bits, with a count before them."""
        values = list(values)
        return self.pack(f"Q{len(values)}Q", len(values), *values)

    def text(self, value: str) -> bytes:
        """A string of a feature section."""
        raw = value.encode() + b"\0"
        raw += b"\0" * (-len(raw) % 64)
        return self.pack("I", len(raw)) + raw

    def record(self, kind: int, body: bytes = b"", misc: int = USER) -> bytes:
        """A record, padded to eight bytes."""
        body += b"\0" * (-len(body) % 8)
        return self.pack("IHH", kind, misc, 8 + len(body)) + body

    def attr(self, event: Event) -> bytes:
        """The attributes of an event, of `event.size` bytes."""
        bits = {
            1: event.is_inherited,
            10: event.is_frequency,
            18: event.has_trailer,
            8: True,
            9: True,
            23: True,
            25: event.clock is not None,
        }
        flags = sum(1 << (bit if self.e == "<" else 63 - bit) for bit, on in bits.items() if on)
        raw = self.pack("IIQQQQQ", event.type, event.size, event.config, event.period, event.sample_type,
                        event.read_format, flags)  # fmt: skip
        raw += self.pack("IIQQQQIiQ", 0, 0, 0, 0, event.branches, event.registers, event.stack,
                         event.clock or 0, 0)  # fmt: skip
        return raw.ljust(event.size, b"\0")[: event.size]

    def trailer(self, event: Event, fields: Fields) -> bytes:
        """What records other than samples end with."""
        if not event.has_trailer:
            return b""
        has, get = event.sample_type, lambda name: fields.get(name, 0)
        return b"".join(
            (
                self.pack("II", get("pid"), get("tid") or get("pid")) if has & TID else b"",
                self.pack("Q", get("time")) if has & TIME else b"",
                self.pack("Q", get("id")) if has & ID else b"",
                self.pack("Q", 0) if has & STREAM_ID else b"",
                self.pack("II", get("cpu"), 0) if has & CPU else b"",
                self.pack("Q", get("id")) if has & IDENTIFIER else b"",
            )
        )

    def side(self, event: Event, kind: int, body: bytes, misc: int = USER, **fields: int) -> bytes:
        """A record of the kernel that is no sample."""
        body += b"\0" * (-len(body) % 8)
        return self.record(kind, body + self.trailer(event, fields), misc)

    def comm(self, event: Event, pid: int, name: str, misc: int = 0, tid: int = 0, time: int = 0, **rest: int) -> bytes:
        """A name for a thread."""
        body = self.pack("II", pid, tid or pid) + name.encode() + b"\0"
        return self.side(event, COMM, body, misc, pid=pid, tid=tid, time=time, **rest)

    def fork(self, event: Event, pid: int, parent: int, tid: int = 0, time: int = 0, kind: int = FORK) -> bytes:
        """A new thread or process, or the end of one."""
        body = self.pack("IIIIQ", pid, parent, tid or pid, parent, time)
        return self.side(event, kind, body, 0, pid=pid, time=time)

    def mmap(self, event: Event, pid: int, start: int, size: int, name: str, offset: int = 0, misc: int = USER,
             time: int = 0, **rest: int) -> bytes:  # fmt: skip
        """A mapping in the first form."""
        body = self.pack("IIQQQ", pid & 0xFFFFFFFF, 0, start, size, offset) + name.encode() + b"\0"
        return self.side(event, MMAP, body, misc, pid=pid & 0xFFFFFFFF, time=time, **rest)

    def mmap2(self, event: Event, pid: int, start: int, size: int, name: str, offset: int = 0, build_id: bytes = b"",
              protection: int = 5, misc: int = USER, time: int = 0, file: Sequence[int] = (8, 1, 99, 0),
              **rest: int) -> bytes:  # fmt: skip
        """A mapping in the second form; `file` is its device, inode and generation."""
        inode = self.pack("IIQQ", *file)
        if build_id:
            misc |= HAS_BUILD_ID
            inode = (bytes([len(build_id), 0, 0, 0]) + build_id).ljust(24, b"\0")
        body = self.pack("IIQQQ", pid, pid, start, size, offset) + inode + self.pack("II", protection, 2)
        return self.side(event, MMAP2, body + name.encode() + b"\0", misc, pid=pid, time=time, **rest)

    def namespaces(self, event: Event, pid: int, mount: int, tid: int = 0, count: int = 7, time: int = 0) -> bytes:
        """The namespaces of a thread, the sixth of which is that of its mounts."""
        spaces = [4, 1, 4, 2, 4, 3, 4, 4, 4, 5, 4, mount, 4, 6][: 2 * count]
        body = self.pack(f"IIQ{len(spaces)}Q", pid, tid or pid, count, *spaces)
        return self.side(event, NAMESPACES, body, pid=pid, time=time)

    def sample(self, event: Event, misc: int = USER, **fields: Any) -> bytes:
        """A sample; `fields` are by the names of their bits, those that are left out are 0."""
        has, get = event.sample_type, lambda name: fields.get(name, 0)
        q = lambda value: self.pack("Q", value & (1 << 64) - 1)  # noqa: E731
        parts = [
            q(get("id")) if has & IDENTIFIER else b"",
            q(get("ip")) if has & IP else b"",
            self.pack("II", get("pid"), get("tid") or get("pid")) if has & TID else b"",
            q(get("time")) if has & TIME else b"",
            q(0xADD) if has & ADDR else b"",
            q(get("id")) if has & ID else b"",
            q(7) if has & STREAM_ID else b"",
            self.pack("II", get("cpu"), 0) if has & CPU else b"",
            q(fields.get("period", 1)) if has & PERIOD else b"",
            fields.get("read", b"") if has & READ else b"",
            self.words(fields.get("chain", ())) if has & CALLCHAIN else b"",
            self.pack("I", len(get("raw") or b"") + 4) + (get("raw") or b"") + b"\0" * 4 if has & RAW else b"",
            fields.get("branches", q(0)) if has & BRANCHES else b"",
        ]
        if has & USER_REGISTERS:
            abi = fields.get("abi", 2 if "registers" in fields else 0)
            parts.append(q(abi) + b"".join(map(q, fields.get("registers", ())) if abi else ()))
        if has & USER_STACK:
            stack = fields.get("stack", b"")
            parts.append(q(len(stack)) + stack + (q(fields.get("valid", len(stack))) if stack else b""))
        parts += [q(1) for bit in (WEIGHT, DATA_SRC, TRANSACTION) if has & bit]
        parts += [q(0) if has & INTR_REGISTERS else b""]
        parts += [q(1) if has & PHYS_ADDR else b"", q(get("cgroup")) if has & CGROUP else b""]
        parts += [q(4096) for bit in (DATA_PAGE, CODE_PAGE) if has & bit]
        parts += [q(8) + b"auxbytes" if has & AUX else b""]
        return self.record(SAMPLE, b"".join(parts), misc)

    def build_id(self, name: str, build_id: bytes, misc: int = USER, pid: int = -1) -> bytes:
        """An entry of the table of build ids."""
        size = len(build_id) if misc & HAS_SIZE else 0
        body = self.pack("i", pid) + build_id.ljust(20, b"\0") + bytes([size, 0, 0, 0]) + name.encode() + b"\0"
        return self.record(BUILD_ID, body, misc)

    def compressed(self, pieces: Sequence[bytes], kind: int = COMPRESSED) -> list[bytes]:
        """Records that hold pieces of one compressed stream."""
        stream = zstandard.ZstdCompressor(level=1).compressobj()
        flush = zstandard.COMPRESSOBJ_FLUSH_BLOCK
        packed = [stream.compress(piece) + stream.flush(flush) for piece in pieces]
        if kind == COMPRESSED:
            return [self.pack("IHH", kind, 0, 8 + len(each)) + each for each in packed]
        return [self.record(kind, self.pack("Q", len(each)) + each, 0) for each in packed]

    def names(self, events: Sequence[Event]) -> bytes:
        """The feature section with the names of events."""
        raw = self.pack("II", len(events), 128)
        for event in events:
            raw += self.attr(event).ljust(128, b"\0")[:128] + self.pack("I", len(event.ids)) + self.text(event.name)
            raw += self.pack(f"{len(event.ids)}Q", *event.ids)
        return raw

    def file(self, events: Sequence[Event], records: Sequence[bytes], features: Mapping[int, bytes] | None = None,
             word: int = 8, is_killed: bool = False) -> bytes:  # fmt: skip
        """A recording in a file, its bitmap of features in words of `word` bytes."""
        step = (events[0].size if events else 128) + 16
        ids, attrs = b"", b""
        begin = 104 + step * len(events)
        for event in events:
            raw = self.pack(f"{len(event.ids)}Q", *event.ids)
            attrs += self.attr(event) + self.pack("QQ", begin + len(ids), len(raw))
            ids += raw
        data = b"".join(records)
        at = begin + len(ids)
        sections = dict(sorted((features or {}).items()))
        table, contents = b"", b""
        first = at + len(data) + 16 * len(sections)
        for content in sections.values():
            table += self.pack("QQ", first + len(contents), len(content))
            contents += content
        bitmap = bytearray(32)
        for bit in sections:
            byte = bit >> 3
            bitmap[byte if self.e == "<" else byte // word * word + word - 1 - byte % word] |= 1 << (bit & 7)
        head = (b"PERFILE2" if self.e == "<" else b"2ELIFREP") + self.pack("QQQQ", 104, step, 104, len(attrs))
        head += self.pack("QQQQ", at, 0 if is_killed else len(data), 0, 0) + bytes(bitmap)
        return head + attrs + ids + data + (b"" if is_killed else table + contents)

    def pipe(self, events: Sequence[Event], records: Sequence[bytes], features: Mapping[int, bytes] | None = None
             ) -> bytes:  # fmt: skip
        """A recording that was written to a pipe."""
        head = [(b"PERFILE2" if self.e == "<" else b"2ELIFREP") + self.pack("Q", 16)]
        for event in events:
            ids = self.pack(f"{len(event.ids)}Q", *event.ids)
            head.append(self.record(HEADER_ATTR, self.attr(event) + ids, 0))
            if event.name and event.ids:
                name = event.name.encode() + b"\0"
                head.append(self.record(EVENT_UPDATE, self.pack("QQ", 2, event.ids[0]) + name, 0))
        head += [self.record(FEATURE, self.pack("Q", bit) + raw, 0) for bit, raw in (features or {}).items()]
        return b"".join([*head, *records])


LITTLE, BIG = Format("<"), Format(">")


@dataclass
class Simple:
    """A recording of one process with a mapping, for tests of something else."""

    form: Format = LITTLE
    event: Event = field(default_factory=Event)

    def start(self, pid: int = 7, comm: str = "app") -> list[bytes]:
        """The process."""
        made = self.form.comm(self.event, pid, comm, EXEC)
        return [made, self.form.mmap2(self.event, pid, 0x400000, 0x10000, "/bin/app", 0x1000)]

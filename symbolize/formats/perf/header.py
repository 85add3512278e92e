"""What a perf.data file says of itself: header, events and where their fields are, features. Contents of a pipe's
records are the same."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import NONE, Int32, UInt64
from symbolize.core.errors import InputError
from symbolize.formats.perf import BIG
from symbolize.formats.perf import numbers as n
from symbolize.profile.attachments import TimeConversion

FILE_HEADER: Final = 104
PIPE_HEADER: Final = 16
MIN_ATTR: Final = 64
"""Bytes of the first version of perf_event_attr, which a size of 0 means."""
MAX_ATTR: Final = 1 << 12
PAIR: Final = 16
"""Bytes of an offset and a size."""

MAX_EVENTS: Final = 1 << 14
MAX_IDS: Final = 1 << 22
MAX_TEXT: Final = 1 << 20
MAX_FEATURE: Final = 1 << 26
"""Bytes of a feature section that are read."""

FEATURE_BITS: Final = 256
BUILD_IDS, HOSTNAME, RELEASE, VERSION, ARCH, COMMAND, EVENTS = 2, 3, 4, 5, 6, 11, 12
AUX_TRACE, SAMPLE_TIME, DIRECTORY, COMPRESSION, CLOCK = 18, 21, 24, 27, 29
SIMPLEPERF: Final = frozenset(range(128, 133))
"""Feature sections that simpleperf adds."""

ZSTD_TYPE: Final = 1
CONVERSION_TAIL: Final = 24
"""Bytes that newer versions of a TIME_CONV record have in addition."""
BUILD_ID_ROOM: Final = 20
"""Bytes that a build id may have here."""
INHERIT, FREQUENCY, SAMPLE_ID_ALL, USE_CLOCK = 1, 10, 18, 25
"""Bits of the flags of an event."""
MONOTONIC: Final = 1
"""The number of CLOCK_MONOTONIC."""

HARDWARE: Final = (
    *(b"cycles", b"instructions", b"cache-references", b"cache-misses", b"branches", b"branch-misses", b"bus-cycles"),
    *(b"stalled-cycles-frontend", b"stalled-cycles-backend", b"ref-cycles"),
)
SOFTWARE: Final = (
    *(b"cpu-clock", b"task-clock", b"page-faults", b"context-switches", b"cpu-migrations", b"minor-faults"),
    *(b"major-faults", b"alignment-faults", b"emulation-faults", b"dummy", b"bpf-output", b"cgroup-switches"),
)
DUMMY: Final = 9
"""Among the software events that which only carries side-band records."""

X86_64: Final = {
    0: 0,
    1: 3,
    2: 2,
    3: 1,
    4: 4,
    5: 5,
    6: 6,
    7: 7,
    8: 16,
    16: 8,
    17: 9,
    18: 10,
    19: 11,
    20: 12,
    21: 13,
    22: 14,
    23: 15,
}
"""DWARF numbers of the registers by the bits of perf (arch/x86/include/uapi/asm/perf_regs.h)."""
AARCH64: Final = {bit: bit for bit in range(33)}
NUMBERS: Final = {"x86-64": X86_64, "aarch64": AARCH64}
STACK_POINTER: Final = {"x86-64": 7, "aarch64": 31}
PC: Final = {"x86-64": 8, "aarch64": 32}
"""Bits of perf."""
MACHINES: Final = {b"x86_64": "x86-64", b"aarch64": "aarch64", b"arm64": "aarch64"}
X86_BITS: Final = 0xFF0FFF
ARM_BITS: Final = (1 << 33) - 1
"""The registers that perf asks for by default."""

REGISTER_BITS: Final = 64

CLOCKS: Final = re.compile(rb"(?:cpu|task)-clock(?:\Z|:)")
"""Events that count nanoseconds."""
HYBRID: Final = re.compile(rb"cpu_(?:core|atom|lowpower)/(.*)")
"""The events of one kind of the cores of a processor."""


class Bytes:
    """Integers and strings at a position in `data`, in the byte order of the file; beyond the end they are 0, empty."""

    def __init__(self, data: bytes | memoryview, is_big: bool) -> None:
        self.data = bytes(data)
        self.at = 0
        self._order: Final = "big" if is_big else "little"

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return max(len(self.data) - self.at, 0)

    def number(self, size: int) -> int:
        """An unsigned integer of `size` bytes."""
        return int.from_bytes(self.take(size), "big" if self._order == "big" else "little")

    def take(self, size: int) -> bytes:
        """The next bytes, as many as there are."""
        self.at += size
        return self.data[self.at - size : self.at]

    def text(self) -> bytes:
        """A string of perf: its size with the padding, and a NUL inside."""
        return self.take(min(self.number(4), self.left)).partition(b"\0")[0]


@dataclass(eq=False)
class Event:
    """What was recorded: a perf_event_attr with its ids and its name."""

    type: int = 0
    config: int = 0
    period: int = 0
    is_frequency: bool = False
    is_inherited: bool = False
    sample_type: int = 0
    read_format: int = 0
    has_sample_id: bool = False
    branch_type: int = 0
    user_registers: int = 0
    stack_size: int = 0
    intr_registers: int = 0
    is_monotonic: bool = False
    ids: list[int] = field(default_factory=list)
    name: bytes = b""

    @property
    def is_dummy(self) -> bool:
        """Whether no samples are meant to be counted under it."""
        return self.type == 1 and self.config == DUMMY

    @property
    def title(self) -> bytes:
        """The name it was recorded with, else the one that perf has for such an event."""
        if self.name:
            return self.name
        names = {0: HARDWARE, 1: SOFTWARE}.get(self.type, ())
        config = self.config & 0xFFFFFFFF if self.type == 0 else self.config
        return names[config] if config < len(names) else b"%d:%#x" % (self.type, self.config)


class RecordedBuildId(NamedTuple):
    """An entry of the table of build ids."""

    name: bytes
    build_id: bytes
    is_kernel: bool
    is_guest: bool


def read_event(data: bytes | memoryview, is_big: bool) -> Event:
    """A perf_event_attr of any version; what it is too short for is 0."""
    source = Bytes(data, is_big)
    event = Event(type=source.number(4))
    size = source.number(4) or MIN_ATTR
    source.data = source.data[:size]
    event.config, event.period, event.sample_type, event.read_format, flags = (source.number(8) for _ in range(5))
    source.number(8), source.number(8), source.number(8)
    event.branch_type, event.user_registers = source.number(8), source.number(8)
    event.stack_size, clock, event.intr_registers = source.number(4), source.number(4), source.number(8)

    def flag(bit: int) -> bool:
        # Bit fields begin at the lowest bit on little-endian machines, at the highest on others.
        return bool(flags >> (63 - bit if is_big else bit) & 1)

    event.is_frequency, event.has_sample_id = flag(FREQUENCY), flag(SAMPLE_ID_ALL)
    event.is_inherited = flag(INHERIT)
    event.is_monotonic = flag(USE_CLOCK) and clock == MONOTONIC
    return event


@dataclass(eq=False)
class RecordingFacts:
    """What the feature sections say. `is_big` is the byte order of the file."""

    is_big: bool = False
    build_ids: list[RecordedBuildId] = field(default_factory=list)
    hostname: bytes = b""
    release: bytes = b""
    version: bytes = b""
    arch: bytes = b""
    command: list[bytes] = field(default_factory=list)
    names: list[tuple[Event, bytes]] = field(default_factory=list)
    has_trace_data: bool = False
    first_time: int = 0
    last_time: int = 0
    clock: tuple[int, int] | None = None
    conversion: TimeConversion | None = None
    is_directory: bool = False
    warnings: list[str] = field(default_factory=list)

    def read(self, feature: int, data: bytes | memoryview, source: str) -> None:
        """Take in the content of a feature section; unknown ones have no effect. Raises InputError."""
        content = Bytes(data[:MAX_FEATURE], self.is_big)
        if feature in SIMPLEPERF:
            raise InputError(source, SIMPLEPERF_FILE)
        if feature == BUILD_IDS:
            self._read_build_ids(content)
        elif feature == HOSTNAME:
            self.hostname = content.text()
        elif feature == RELEASE:
            self.release = content.text()
        elif feature == VERSION:
            self.version = content.text()
        elif feature == ARCH:
            self.arch = content.text()
        elif feature == COMMAND:
            count = content.number(4)
            while count and content.left:
                self.command.append(content.text())
                count -= 1
        elif feature == EVENTS:
            self._read_events(content)
        elif feature == AUX_TRACE:
            self.has_trace_data = True
        elif feature == SAMPLE_TIME:
            self.first_time, self.last_time = content.number(8), content.number(8)
        elif feature == DIRECTORY:
            self.is_directory = True
        elif feature == COMPRESSION:
            _, kind = content.number(4), content.number(4)
            if kind not in (0, ZSTD_TYPE):
                raise InputError(source, f"has records compressed with method {kind}; only zstd (1) is read")
        elif feature == CLOCK:
            content.number(8)
            wall, at = content.number(8), content.number(8)
            self.clock = wall, at

    def _read_build_ids(self, content: Bytes) -> None:
        while content.left >= n.RECORD_HEADER:
            _, misc, size = content.number(4), content.number(2), content.number(2)
            if size < n.RECORD_HEADER or size - n.RECORD_HEADER > content.left:
                self.warnings.append("The table of build ids is damaged: its end was left out.")
                return
            self.build_ids.append(read_build_id(misc, content.take(size - n.RECORD_HEADER)))

    def _read_events(self, content: Bytes) -> None:
        count, size = content.number(4), content.number(4)
        while count and content.left and len(self.names) < MAX_EVENTS:
            event = read_event(content.take(min(size, MAX_ATTR)), self.is_big)
            ids = content.number(4)
            name = content.text()
            event.ids = [content.number(8) for _ in range(min(ids, content.left // 8))]
            self.names.append((event, name))
            count -= 1


SIMPLEPERF_FILE: Final = (
    "is the perf.data of simpleperf, which is not read; convert it with "
    "`simpleperf report-sample --protobuf --show-callchain -i perf.data -o report.proto`"
)


def read_build_id(misc: int, body: bytes) -> RecordedBuildId:
    """An entry of the table of build ids, from the bytes behind its header (R289, sizes of build ids).

    The byte behind the id is its size if `misc` says so. Else zeros at its end, four at a time, are padding.
    """
    build_id = body[4 : 4 + BUILD_ID_ROOM]
    size = body[4 + BUILD_ID_ROOM] if len(body) > 4 + BUILD_ID_ROOM else 0
    if misc & n.MISC_BUILD_ID_SIZE and size <= BUILD_ID_ROOM:
        build_id = build_id[:size]
    else:
        while build_id.endswith(b"\0\0\0\0"):
            build_id = build_id[:-4]
    if not any(build_id):
        build_id = b""
    mode = misc & n.MODE_MASK
    name = body[8 + BUILD_ID_ROOM :].partition(b"\0")[0]
    return RecordedBuildId(name, build_id, mode in (n.KERNEL_MODE, n.GUEST_KERNEL_MODE), mode >= n.GUEST_KERNEL_MODE)


def read_conversion(record: Bytes) -> TimeConversion | None:
    """How the counter of the processor becomes the times of the recording, None if it does not: from a TIME_CONV record
    behind its header, which is shorter in older versions."""
    shift, multiplier, zero = (record.number(8) for _ in range(3))
    has_more = record.left >= CONVERSION_TAIL
    cycles, mask = record.number(8), record.number(8)
    has_zero, is_short = record.number(1), record.number(1)
    if not multiplier or (has_more and not has_zero):
        return None
    return TimeConversion(shift, multiplier, zero, *((cycles, mask) if is_short else ()))


class FileHeader(NamedTuple):
    """The header of a file: sections are pairs of offset and size, `features` those in the file by number."""

    is_big: bool
    attr_size: int
    attrs: tuple[int, int]
    data: tuple[int, int]
    features: dict[int, tuple[int, int]]
    is_cut: bool


def is_pipe(head: bytes) -> bool:
    """Whether the records follow the magic number at once."""
    return Bytes(head[8:PIPE_HEADER], head.startswith(BIG)).number(8) == PIPE_HEADER


def read_header(data: memoryview, source: str) -> FileHeader:
    """The header of a file in file mode. Raises InputError."""
    is_big = bytes(data[:8]) == BIG
    head = Bytes(data[:FILE_HEADER], is_big)
    if head.left < FILE_HEADER:
        raise InputError(source, "is a perf.data file that ends in its header")
    head.at = PIPE_HEADER
    attr_size = head.number(8)
    attrs, section = (head.number(8), head.number(8)), (head.number(8), head.number(8))
    head.at += PAIR
    if section[0] > len(data):
        raise InputError(source, "is a perf.data file that ends before its records", len(data))
    is_cut = section[1] == 0 or section[0] + section[1] > len(data)
    if is_cut:
        section = section[0], max(len(data) - section[0], 0)
    features: dict[int, tuple[int, int]] = {}
    if not is_cut:
        table = Bytes(data[sum(section) : sum(section) + FEATURE_BITS * PAIR], is_big)
        for bit in feature_bits(bytes(data[FILE_HEADER - FEATURE_BITS // 8 : FILE_HEADER]), is_big):
            if table.left < PAIR:
                break
            features[bit] = table.number(8), table.number(8)
    return FileHeader(is_big, attr_size, attrs, section, features, is_cut)


def feature_bits(bitmap: bytes, is_big: bool) -> list[int]:
    """The numbers of the features in a file, ascending (R290, the bitmap of features).

    The bitmap is made of the machine's `unsigned long`s: of eight bytes, or of four, where the hostname, which every
    file has, is not a feature otherwise.
    """
    for size in (8, 4):
        words = (bitmap[at : at + size] for at in range(0, len(bitmap), size))
        ordered = b"".join(word[::-1] for word in words) if is_big else bitmap
        bits = [bit for bit in range(FEATURE_BITS) if ordered[bit >> 3] >> (bit & 7) & 1]
        if HOSTNAME in bits or not is_big:
            return bits
    return bits


def read_attrs(data: memoryview, header: FileHeader, source: str) -> Iterator[Event]:
    """The events in the attrs section of a file. Raises InputError."""
    offset, size = header.attrs
    step = header.attr_size
    if not MIN_ATTR + PAIR <= step <= MAX_ATTR or offset + size > len(data) or size // step > MAX_EVENTS:
        raise InputError(source, "is a perf.data file with a damaged list of events", offset)
    total = 0
    for at in range(offset, offset + size // step * step, step):
        event = read_event(data[at : at + step - PAIR], header.is_big)
        section = Bytes(data[at + step - PAIR : at + step], header.is_big)
        begin, length = section.number(8), section.number(8)
        total += length // 8
        if begin + length > len(data) or total > MAX_IDS:
            raise InputError(source, "is a perf.data file with a damaged list of event ids", at)
        ids = Bytes(data[begin : begin + length], header.is_big)
        event.ids = [ids.number(8) for _ in range(length // 8)]
        yield event


class EventLayout(NamedTuple):
    """What a `perf.scan.Scan` is given: a row of words for each event, the DWARF number of each recorded
    register (-1: none), and where ids are."""

    table: UInt64
    register_columns: Int32
    sample_id_at: int
    trailer_id_at: int


def machine_of(arch: bytes, events: Sequence[Event]) -> str:
    """The machine whose registers were recorded, empty if it is none that is known."""
    if arch:
        return MACHINES.get(arch, "")
    masks = {event.user_registers for event in events} - {0}
    return {X86_BITS: "x86-64", ARM_BITS: "aarch64"}.get(masks.pop() if len(masks) == 1 else 0, "")


def layout_of(events: Sequence[Event], machine: str) -> EventLayout:
    """Where the fields of samples of the events are (R291, ids of events).

    With one event all records are of it. The id is the first word of a sample and the last of any other record if all
    events have `PERF_SAMPLE_IDENTIFIER`; else it is where the fields of the first event put it. A side-band record of
    no known event is read as of the first one; such a sample is left out, with a warning.
    """
    table = np.zeros((len(events), n.EVENT_WORDS), np.uint64)
    columns = np.full((len(events), REGISTER_BITS), NONE, np.int32)
    for row, event in enumerate(events):
        bits = [bit for bit in range(REGISTER_BITS) if event.user_registers >> bit & 1]
        table[row, n.SAMPLE_TYPE] = event.sample_type
        table[row, n.READ_FORMAT] = event.read_format
        table[row, n.BRANCH_TYPE] = event.branch_type
        table[row, n.USER_REGISTERS] = len(bits)
        table[row, n.INTR_REGISTERS] = event.intr_registers.bit_count()
        table[row, n.FIXED_PERIOD] = 1 if event.is_frequency else event.period or 1
        table[row, n.PER_THREAD] = event.is_inherited and bool(event.sample_type & n.HAS_TID)
        if event.sample_type & n.HAS_TIME:
            before = event.sample_type & (n.HAS_IDENTIFIER | n.HAS_IP | n.HAS_TID)
            behind = n.HAS_TIME | n.HAS_ID | n.HAS_STREAM_ID | n.HAS_CPU | n.HAS_IDENTIFIER
            table[row, n.TIME_AT] = n.RECORD_HEADER + 8 * before.bit_count()
            if event.has_sample_id:
                table[row, n.TRAILER_TIME] = 8 * (event.sample_type & behind).bit_count()
        if machine and PC[machine] in bits and STACK_POINTER[machine] in bits:
            table[row, n.IP_REGISTER] = bits.index(PC[machine]) + 1
            for i, bit in enumerate(bits):
                columns[row, i] = NUMBERS[machine].get(bit, NONE)
    return EventLayout(table, columns, *_id_positions(events))


def _id_positions(events: Sequence[Event]) -> tuple[int, int]:
    """How far behind the begin of samples, and before the end of other records, the id of the event is; 0: nowhere."""
    if not events:
        return 0, 0
    first = events[0]
    kind = first.sample_type
    if all(event.sample_type & n.HAS_IDENTIFIER for event in events):
        return n.RECORD_HEADER, 8 if first.has_sample_id else 0
    if not kind & n.HAS_ID:
        return 0, 0
    before = (kind & (n.HAS_IP | n.HAS_TID | n.HAS_TIME | n.HAS_ADDR)).bit_count()
    behind = (kind & (n.HAS_ID | n.HAS_STREAM_ID | n.HAS_CPU)).bit_count()
    return n.RECORD_HEADER + 8 * before, 8 * behind if first.has_sample_id else 0


class EventColumns(NamedTuple):
    """What samples are counted under: name and unit of each pair of values, and which of them each event has."""

    names: list[bytes]
    units: list[bytes]
    of_event: Int32


def columns_of(events: Sequence[Event], used: set[int]) -> EventColumns:
    """The sample types. Events of the same name are one, and so are those that differ in the kind of core only (R292,
    events of hybrid processors). The events that carry side-band records only have none, unless they are `used` or
    all."""
    titles = [event.title for event in events]
    plain = [match[1] if (match := HYBRID.fullmatch(title)) else b"" for title in titles]
    kinds = {each: {title for title, name in zip(titles, plain, strict=True) if name == each} for each in plain}
    names: dict[bytes, int] = {}
    of_event = np.full(len(events), NONE, np.int32)
    all_are_dummies = all(event.is_dummy for event in events)
    for row, event in enumerate(events):
        if event.is_dummy and row not in used and not all_are_dummies:
            continue
        title = titles[row]
        if plain[row] and len(kinds[plain[row]]) > 1:
            event_name, _, modifiers = plain[row].partition(b"/")
            title = event_name + (b":" + modifiers if modifiers else b"")
        of_event[row] = names.setdefault(title, len(names))
    units = [b"nanoseconds" if CLOCKS.match(name) else b"count" for name in names]
    return EventColumns(list(names), units, of_event)

"""The records of a simpleperf report: samples into the tables of the scan, all others as messages."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from symbolize.core.arrays import Int64
from symbolize.core.compression import CutShort
from symbolize.core.errors import InputError
from symbolize.core.interning import random_mixer
from symbolize.core.protobuf import NUMBER
from symbolize.formats.perfetto.wire import message, spans
from symbolize.formats.simpleperf import MAGIC
from symbolize.formats.simpleperf import scan as scanning
from symbolize.formats.simpleperf.numbers import BAD, ENDED, MAX_RECORD, MORE, OTHER, SIZE_BYTES, TOO_LARGE
from symbolize.proto import report_sample_tags as tags

VERSION: Final = 1
HEADER_SIZE: Final = len(MAGIC) + 2
READ_AHEAD: Final = 1 << 18


def _bits(*fields: int) -> int:
    """A number with the bits of the field numbers of some tags."""
    return sum(1 << (tag >> NUMBER) for tag in fields)


SHAPES: Final = {
    tags.RECORD_LOST: (_bits(tags.LOST_SITUATION_SAMPLE_COUNT, tags.LOST_SITUATION_LOST_COUNT), 0, 0),
    tags.RECORD_FILE: (
        _bits(tags.FILE_ID),
        _bits(tags.FILE_PATH, tags.FILE_SYMBOL, tags.FILE_MANGLED_SYMBOL),
        _bits(tags.FILE_SYMBOL, tags.FILE_MANGLED_SYMBOL),
    ),
    tags.RECORD_THREAD: (
        _bits(tags.THREAD_THREAD_ID, tags.THREAD_PROCESS_ID),
        _bits(tags.THREAD_THREAD_NAME),
        0,
    ),
    tags.RECORD_META_INFO: (
        _bits(tags.META_INFO_TRACE_OFFCPU),
        _bits(
            tags.META_INFO_EVENT_TYPE,
            tags.META_INFO_APP_PACKAGE_NAME,
            tags.META_INFO_APP_TYPE,
            tags.META_INFO_ANDROID_SDK_VERSION,
            tags.META_INFO_ANDROID_BUILD_TYPE,
        ),
        _bits(tags.META_INFO_EVENT_TYPE),
    ),
}
"""Which fields of each record are integers, which bytes, and which repeated, as `scanning.count_entries` reads it."""

MAX_FILES: Final = 1 << 17
"""Files, of which each is an object. Those above are left out with a warning, as with threads."""
MAX_SYMBOLS: Final = 1 << 22
"""Names of functions in all files together, linked and readable: an empty one is larger in memory than in the file."""
MASK32: Final = (1 << 32) - 1
"""What is kept of the numbers of files, threads and processes."""
MAX_THREADS: Final = 1 << 19
"""Eight times the threads that a Linux kernel has at one time unless it is configured to have more."""
MAX_EVENTS: Final = 1 << 12


@dataclass(frozen=True, slots=True)
class Names:
    """Names of functions by number; they stay in the record, with where each begins and ends in turn."""

    record: bytes
    places: Int64

    def __len__(self) -> int:
        return len(self.places) // 2

    def __getitem__(self, number: int) -> bytes:
        return self.record[self.places[2 * number] : self.places[2 * number + 1]]


NO_NAMES: Final = Names(b"", np.zeros(0, np.int64))


@dataclass(frozen=True, slots=True)
class File:
    """A file that frames are in, with the names of its functions, readable and linked."""

    path: bytes
    symbol: Names = NO_NAMES
    mangled_symbol: Names = NO_NAMES


@dataclass(frozen=True, slots=True)
class MetaInfo:
    """What is known about the recording; empty where the report does not say it."""

    event_type: list[bytes]
    app_package_name: bytes
    app_type: bytes
    android_sdk_version: bytes
    android_build_type: bytes
    trace_offcpu: bool


@dataclass(frozen=True, slots=True)
class LostSituation:
    """How many samples the report has, and how many were lost."""

    sample_count: int
    lost_count: int


@dataclass(eq=False)
class Report:
    """What was read of a file: the tables of the scan, and the records around the samples."""

    source: str
    warnings: list[str] = field(default_factory=list)
    meta: MetaInfo | None = None
    lost: LostSituation | None = None
    files: dict[int, File] = field(default_factory=dict)
    threads: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    """Process and name by thread; both ids as unsigned numbers."""
    scan: Any = field(default_factory=lambda: scanning.Scan(random_mixer()))
    records: int = 0
    """Records read other than samples."""
    symbols: int = 0
    """Names in all files."""
    too_many: dict[int, int] = field(default_factory=dict)
    """Records that were left out because there are too many of their kind."""

    def read(self, pieces: Iterator[bytes | memoryview]) -> None:
        """Read all records of the stream."""
        scan, stream = self.scan, Stream(pieces, self.warnings)
        stream.fill(HEADER_SIZE)
        if len(stream.data) < HEADER_SIZE:
            raise InputError(self.source, "is cut off within its header", len(stream.data))
        version = int.from_bytes(stream.data[len(MAGIC) : HEADER_SIZE], "little")
        if bytes(stream.data[: len(MAGIC)]) != MAGIC or version != VERSION:
            raise InputError(self.source, f"is a simpleperf report of version {version}; version {VERSION} is read")
        scan.pos = HEADER_SIZE
        damaged, first, last, resumed = 0, 0, 0, 0
        while True:
            status = scanning.scan(scan, stream.data)
            if status == OTHER:
                self._keep(scan.kind, stream.data[scan.begin : scan.end])
            elif status == BAD and stream.base + scan.pos != resumed:
                last = stream.base + scan.pos
                first = last if not damaged else first
                damaged += 1
                scan.pos = scan.end
                resumed = stream.base + scan.pos
            elif status != MORE or not stream.more(scan):
                break
        at = stream.base + scan.pos
        if damaged and at == resumed and status != ENDED:
            # Where consecutive records are damaged, their sizes are not to be trusted either.
            damaged, at, status = damaged - 1, last, BAD
        self._warn_of_end(status, at, stream.left(scan))
        if damaged or scan.left_out:
            where = f", the first at offset {first:#x}" if damaged else ""
            self.warnings.append(f"{damaged + scan.left_out} damaged records were left out{where}.")
        for kind, count in self.too_many.items():
            what = "files" if kind == tags.RECORD_FILE else "threads"
            self.warnings.append(f"{count} records of {what} were left out: no recording has as many.")
        if scan.overflow:
            raise InputError(self.source, "has event counts whose sum does not fit into 64 bits")

    def _warn_of_end(self, status: int, at: int, left: int) -> None:
        """Report how the records ended, unless it was with their end mark."""
        if status == ENDED:
            if left > SIZE_BYTES:
                self.warnings.append(f"Data behind the end mark at offset {at:#x} was not read.")
            return
        if status == BAD:
            problem = f"is damaged at offset {at:#x}"
        elif status == TOO_LARGE:
            problem = f"is damaged at offset {at:#x}, where a record would have more than {MAX_RECORD} bytes"
        elif left:
            problem = f"is cut off at offset {at:#x}"
        else:
            problem = f"ends without an end mark at offset {at:#x}, perhaps cut off"
        count = self.scan.samples
        if not (count or self.records):
            raise InputError(self.source, problem.replace(f" at offset {at:#x}", "", 1) + ": no record is whole", at)
        self.warnings.append(
            f"The report {problem}: the {count} samples before were read; names of files, functions and threads "
            "stand at the end and may be missing."
        )

    def _keep(self, kind: int, content: bytes | memoryview) -> None:
        """Read a record other than a sample."""
        raw = bytes(content)
        entries = scanning.count_entries(raw, *SHAPES[kind])
        if entries < 0:
            self.scan.left_out += 1
            return
        if kind == tags.RECORD_META_INFO and entries > MAX_EVENTS:
            raise InputError(self.source, f"has {entries} kinds of events; {MAX_EVENTS} is the limit")
        self.symbols += entries if kind == tags.RECORD_FILE else 0
        if self.symbols > MAX_SYMBOLS:
            raise InputError(self.source, f"has more than {MAX_SYMBOLS} names of functions")
        if kind == tags.RECORD_LOST:
            self.lost = read_lost(raw)
        elif kind == tags.RECORD_FILE:
            number, file = read_file(raw, entries)
            if len(self.files) < MAX_FILES or number in self.files:
                self.files[number] = file
            else:
                self.too_many[kind] = self.too_many.get(kind, 0) + 1
        elif kind == tags.RECORD_THREAD:
            values = message(raw)
            thread = values.get(tags.THREAD_THREAD_ID, 0) & MASK32
            if len(self.threads) < MAX_THREADS or thread in self.threads:
                process = values.get(tags.THREAD_PROCESS_ID, 0) & MASK32
                self.threads[thread] = process, values.get(tags.THREAD_THREAD_NAME, b"")
            else:
                self.too_many[kind] = self.too_many.get(kind, 0) + 1
        elif kind == tags.RECORD_META_INFO and self.meta is None:
            self.meta = read_meta(raw)
            if not self.meta.trace_offcpu:
                self.scan.merge_samples()
        elif kind == tags.RECORD_META_INFO:
            self.warnings.append("There are several records of meta information; the first one counts.")
        self.records += 1

    @property
    def has_offcpu(self) -> bool:
        """Whether the time off the processor was recorded."""
        return self.meta is not None and self.meta.trace_offcpu


def read_lost(raw: bytes) -> LostSituation:
    """The content of a sound record; a count that is not there is 0."""
    values = message(raw)
    return LostSituation(values.get(tags.LOST_SITUATION_SAMPLE_COUNT, 0), values.get(tags.LOST_SITUATION_LOST_COUNT, 0))


def read_meta(raw: bytes) -> MetaInfo:
    """The content of a sound record."""
    values = message(raw)
    return MetaInfo(
        [raw[begin:end] for tag, begin, end in spans(raw) if tag == tags.META_INFO_EVENT_TYPE],
        values.get(tags.META_INFO_APP_PACKAGE_NAME, b""),
        values.get(tags.META_INFO_APP_TYPE, b""),
        values.get(tags.META_INFO_ANDROID_SDK_VERSION, b""),
        values.get(tags.META_INFO_ANDROID_BUILD_TYPE, b""),
        bool(values.get(tags.META_INFO_TRACE_OFFCPU, 0)),
    )


def read_file(raw: bytes, entries: int) -> tuple[int, File]:
    """The number and the content of a sound record with so many names."""
    places = np.empty((2, 2 * entries), np.int64)
    number, begin, end, *used = scanning.read_file(raw, places[0].data, places[1].data)
    if not entries:
        return number, File(raw[begin:end])
    names = (Names(raw, each[:size].copy()) for each, size in zip(places, used, strict=True))
    return number, File(raw[begin:end], *names)


class Stream:
    """The piece of a stream that is being read, and what follows; `base` is where `data` begins in the file."""

    def __init__(self, pieces: Iterator[bytes | memoryview], warnings: list[str]) -> None:
        self.data: bytes | memoryview = b""
        self.base = 0
        self._pieces = pieces
        self._warnings = warnings

    def fill(self, size: int) -> None:
        """Read on until `data` has at least `size` bytes, if there are as many."""
        parts, have = [self.data], len(self.data)
        try:
            while have < size and (piece := next(self._pieces, None)) is not None:
                if len(piece):
                    parts.append(piece)
                    have += len(piece)
        except CutShort as error:
            self._warnings.append(f"The {error.problem}.")
        parts = [part for part in parts if len(part)]
        self.data = parts[0] if len(parts) == 1 else b"".join(parts)

    def more(self, scan: Any) -> bool:
        """Drop what was read and get the rest of the next record; false if there is nothing more."""
        rest = self.data[scan.pos :]
        size = SIZE_BYTES + int.from_bytes(rest[:SIZE_BYTES], "little") if len(rest) >= SIZE_BYTES else SIZE_BYTES
        self.base += scan.pos
        scan.pos = 0
        self.data = bytes(rest)
        self.fill(max(size, READ_AHEAD))
        return len(self.data) > len(rest)

    def left(self, scan: Any) -> int:
        """Bytes that were not read, not counting those after the next piece."""
        rest = len(self.data) - scan.pos
        if rest <= SIZE_BYTES:
            self.fill(len(self.data) + 1)
        position: int = scan.pos
        return len(self.data) - position

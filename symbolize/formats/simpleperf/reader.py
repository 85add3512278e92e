"""What `simpleperf report-sample --protobuf` writes.

Samples refer to files and threads whose records come later, so the samples go into tables of what is distinct
first and get their names last.

A file is ten bytes of magic number, a version, which is 1, and records, each after its size in four bytes; the size 0
ends them. Records may be in any order. Fields and records that are not known are skipped, absent ones have protobuf's
defaults. Two invalid records in a row show that the sizes are wrong, and end the reading. Callers are adjusted already,
and `unknown` is neither a file nor a function. The file does not define what `vaddr_in_file` counts from (R163, base of
file addresses), so it is kept as it is, with the kind of its mapping.

A thread is compared as 32 bits, signed in samples and unsigned elsewhere. Threads, processes and errors are part of
what makes samples equal. Samples with incomplete stacks are written late: for the time off the processor the samples
and switches of a thread are sorted by time, stably; a sample off the processor lasts until the next of them, at least
1.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import (
    NONE,
    TOP,
    Bool,
    Int32,
    Int64,
    UInt8,
    UInt32,
    UInt64,
    distinct,
    distinct_inverse,
    offsets_of,
    pair,
    unpair,
)
from symbolize.core.budget import Budget
from symbolize.core.compression import CutShort
from symbolize.core.errors import InputError
from symbolize.core.interning import random_mixer
from symbolize.core.mapped_names import RUN_TIME, Mapped, mapped_by
from symbolize.core.protobuf import NUMBER
from symbolize.formats.content import Content
from symbolize.formats.model import LoadedProfile, LoadOptions, OffCpuMode, only
from symbolize.formats.perfetto.wire import message, spans
from symbolize.formats.products import VALUES
from symbolize.formats.simpleperf import MAGIC, numbers
from symbolize.formats.simpleperf import scan as scanning
from symbolize.formats.simpleperf.numbers import BAD, ENDED, MAX_RECORD, MORE, OTHER, SIZE_BYTES, TOO_LARGE
from symbolize.profile.model import (
    AddressKind,
    Functions,
    Labels,
    Lines,
    Locations,
    Mappings,
    Profile,
    Samples,
    StackSource,
    ValueType,
)
from symbolize.profile.sample_types import show_first_event
from symbolize.proto import report_sample_tags as tags

VERSION: Final = 1
HEADER_SIZE: Final = len(MAGIC) + 2
READ_AHEAD: Final = 1 << 18
__all__ = ["load", "read"]

DEFAULT_MODE: Final = "mixed-on-off-cpu"

INT64_MAX: Final = (1 << 63) - 1

UNITS: Final = {
    b"cpu-clock": b"nanoseconds",
    b"task-clock": b"nanoseconds",
    b"cpu-cycles": b"cpu-cycles",
    b"instructions": b"instructions",
}
"""Units by the name of the event without modifiers; all others are counts."""

MODIFIERS: Final = re.compile(rb"(?::[ukhIGHpPSDWe]*)+\Z")
"""What may follow the name of an event: user, kernel, guest and the like."""

LINUX_EVENT: Final = re.compile(rb"cycles(?:\Z|:)|[\w-]+/|.*:[a-zA-Z]*[pP][a-zA-Z]*\Z")
"""Events as perf of Linux spells them and simpleperf does not."""

SWITCH_EVENT: Final = b"sched_switch"

EXECUTION: Final = (b"native", b"interpreted", b"jit", b"art")
"""Execution types of frames, by number."""

ERRORS: Final = (
    b"NONE",
    b"UNKNOWN",
    b"NOT_ENOUGH_STACK",
    b"MEMORY_INVALID",
    b"UNWIND_INFO",
    b"INVALID_MAP",
    b"MAX_FRAME_EXCEEDED",
    b"REPEATED_FRAME",
    b"INVALID_ELF",
)
"""Why a stack could not be unwound to its end."""

COMMAND_SIZE: Final = 15
"""How much of a name the kernel keeps for a thread."""

LABELS: Final = ("thread", "tid", "pid", "process", "execution_type", "unwinding_error")

UNKNOWN: Final = b"unknown"
"""The path of frames outside all mappings."""

KERNEL: Final = b"[kernel.kallsyms]"
BYTECODE: Final = re.compile(rb".*(?:\.dex|\.vdex|\.jar|(?:\A|/)dexfile_in_memory[^/]*)\Z", re.DOTALL)
ART_LIBRARY: Final = re.compile(rb"(?:.*/)?libartd?\.so\Z", re.DOTALL)
TRAMPOLINE: Final = b"jni_trampoline"

LINKER_PREFIX: Final = b"__dl_"
"""What the symbols of Android's dynamic linker begin with."""


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
class ReportedFile:
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
class SimpleperfReport:
    """What was read of a file: the tables of the scan, and the records around the samples."""

    source: str
    warnings: list[str] = field(default_factory=list)
    meta: MetaInfo | None = None
    lost: LostSituation | None = None
    files: dict[int, ReportedFile] = field(default_factory=dict)
    threads: dict[int, tuple[int, bytes]] = field(default_factory=dict)
    """Process and name by thread; both ids as unsigned numbers."""
    scan: Any = field(default_factory=lambda: scanning.SimpleperfScan(random_mixer()))
    records: int = 0
    """Records read other than samples."""
    symbols: int = 0
    """Names in all files."""
    too_many: dict[int, int] = field(default_factory=dict)
    """Records that were left out because there are too many of their kind."""

    def read(self, pieces: Iterator[bytes | memoryview]) -> None:
        """Read all records of the stream."""
        scan, stream = self.scan, RecordStream(pieces, self.warnings)
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


def read_file(raw: bytes, entries: int) -> tuple[int, ReportedFile]:
    """The number and the content of a sound record with so many names."""
    places = np.empty((2, 2 * entries), np.int64)
    number, begin, end, *used = scanning.read_file(raw, places[0].data, places[1].data)
    if not entries:
        return number, ReportedFile(raw[begin:end])
    names = (Names(raw, each[:size].copy()) for each, size in zip(places, used, strict=True))
    return number, ReportedFile(raw[begin:end], *names)


class RecordStream:
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


def read(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    """The profile of a content. Raises InputError."""
    mode, art = options.trace_offcpu, options.show_art_frames
    return only(load(content.pieces(), content.name, trace_offcpu=mode, show_art_frames=art))


def load(
    data: bytes | memoryview | Iterable[bytes | memoryview],
    source: str,
    *,
    trace_offcpu: OffCpuMode | None = None,
    show_art_frames: bool = False,
) -> Profile:
    """Read a report, whole or as the pieces of a stream, of which no more than a record is retained.

    Addresses come as the file has them: `Profile.address_kinds` says where their meaning is open. Those of callers are
    inside the call already, so nothing is subtracted. `trace_offcpu` chooses what becomes of the samples of a
    recording with the time off the processor, `show_art_frames` keeps the frames of Android's runtime next to Java.

    A file that is cut off keeps its whole records, and a damaged record is left out; both are reported in
    `Profile.warnings`. Raises InputError where the file is of another version, and where a sum is beyond 64 bits.
    """
    report = SimpleperfReport(source)
    report.read(iter([data]) if isinstance(data, bytes | memoryview) else iter(data))
    return build(report, trace_offcpu, show_art_frames)


def build(report: SimpleperfReport, mode: OffCpuMode | None, show_art_frames: bool) -> Profile:
    """The profile of what was read."""
    scan = report.scan
    profile = Profile(warnings=report.warnings)
    comments = _comments(report)
    rows = _rows(report, comments)
    events = _events(report, rows, mode)
    frames = _frames(report)
    hidden = np.zeros(len(scan.stacks.arrays()[1]), np.uint8)
    if not show_art_frames:
        _hide_art(report, frames, hidden)
        if hidden.any():
            comments.append("Frames of Android's runtime next to Java frames are hidden.")
    leaves = np.empty(scan.stacks.count, np.int32)
    scanning.leaves(scan, hidden.data, leaves.data)
    leaf_types = np.full(len(leaves), numbers.NO_EXECUTION, np.uint8)
    leaf_types[leaves != NONE] = frames.execution[leaves[leaves != NONE]]
    rows = rows._replace(leaf_type=leaf_types[rows.stack])
    locations = _locate(report, profile, frames, hidden)
    stacks = np.empty(len(leaves), np.int32)
    scanning.renumber(scan, locations.data, hidden.data, stacks.data)
    _fill_samples(report, profile, rows._replace(stack=stacks[rows.stack]), events)
    profile.stack_source = StackSource.RECORDER
    if scan.last_time > scan.first_time:
        profile.duration_nanos = min(scan.last_time - scan.first_time, INT64_MAX)
    profile.comments = [profile.strings.add(comment.encode(errors="surrogateescape")) for comment in comments]
    return profile


class RecordRows(NamedTuple):
    """Samples as parallel columns; `event` is an event id until `_events` made it an index."""

    stack: Int32
    thread: UInt32
    event: NDArray[Any]
    error: UInt8
    samples: Int64
    value: Int64
    leaf_type: UInt8


class Events(NamedTuple):
    """The events that samples are counted under, and for each row the index of its event, or NONE."""

    names: list[bytes]
    units: list[bytes]
    of_row: Int32


class ReportedFrames(NamedTuple):
    """The distinct frames as columns, `file` being an index into the lists of their files."""

    vaddr: UInt64
    file: Int64
    symbol: Int32
    execution: UInt8
    files: list[ReportedFile | None]
    file_ids: list[int]
    kinds: list[AddressKind]


def _rows(report: SimpleperfReport, comments: list[str]) -> RecordRows:
    """The samples of the scan; of recordings with the time off the processor with that time as value."""
    scan = report.scan
    stack, thread, event, error, samples, value, time = scan.take_rows()
    is_sample = stack != NONE
    if report.has_offcpu:
        # By thread, in it by time, and in the order of the file where that is equal.
        order = np.lexsort((time, thread))
        followed = np.zeros(len(order), np.bool_)
        followed[:-1] = thread[order[1:]] == thread[order[:-1]]
        duration = np.ones(len(order), np.uint64)
        duration[:-1][followed[:-1]] = (time[order[1:]] - time[order[:-1]])[followed[:-1]]
        is_off = is_sample & _is_switch(report, event)
        ends = np.zeros(len(order), np.bool_)
        ends[order] = followed
        lasted = np.empty(len(order), np.uint64)
        lasted[order] = np.maximum(duration, np.uint64(1))
        if lasted[is_off & ends].astype(np.float64).sum() + float(scan.total) >= INT64_MAX:
            raise InputError(report.source, "has times off the processor whose sum does not fit into 64 bits")
        value = np.where(is_off, lasted.astype(np.int64), value)
        if unfinished := int((is_off & ~ends).sum()):
            comments.append(f"Samples off the processor left out because they do not end: {unfinished}")
        is_sample &= ~is_off | ends
    if is_sample.all():
        return RecordRows(stack, thread, event, error, samples, value, error)
    columns = (column[is_sample] for column in (stack, thread, event, error, samples, value, error))
    return RecordRows(*columns)


def _is_switch(report: SimpleperfReport, event: NDArray[Any]) -> Bool:
    """Which event ids, in a recording with the time off the processor, are switches of threads."""
    assert report.meta is not None
    first = report.meta.event_type[:1]
    found: Bool = (event > 0) | any(SWITCH_EVENT in name for name in first)
    return found


def _events(report: SimpleperfReport, rows: RecordRows, mode: OffCpuMode | None) -> Events:
    """The events by which samples are counted."""
    names = list(report.meta.event_type) if report.meta is not None else []
    ids, of_row = distinct_inverse(rows.event)
    unnamed = [each for each in ids.tolist() if each >= len(names)]
    if len(unnamed) > MAX_EVENTS:
        raise InputError(report.source, f"has {len(unnamed)} kinds of events without a name")
    if unnamed and names:
        report.warnings.append(f"{len(unnamed)} kinds of events have no name.")
    number = {each: len(names) + i for i, each in enumerate(unnamed)}
    names += [b"event %d" % each if each else b"event" for each in unnamed]
    is_off = [False] * len(names)
    if report.has_offcpu:
        is_off = _is_switch(report, np.arange(len(names))).tolist()
        mode = mode or DEFAULT_MODE
    elif mode is not None:
        report.warnings.append("The time off the processor was not recorded, so the option about it has no effect.")
        mode = None
    target = list(range(len(names)))
    if mode == "mixed-on-off-cpu":
        target = [0 if off else i for i, off in enumerate(is_off)]
    elif mode in ("on-cpu", "off-cpu"):
        target = [i if off == (mode == "off-cpu") else NONE for i, off in enumerate(is_off)]
    units = [b"nanoseconds" if off else unit_of(name) for name, off in zip(names, is_off, strict=True)]
    kept = sorted({each for each in target if each != NONE})
    column_of = {each: i for i, each in enumerate(kept)}
    table = np.array([column_of.get(target[number.get(each, each)], NONE) for each in ids.tolist()], np.int32)
    return Events(
        [names[i] for i in kept], [units[i] for i in kept], table[of_row] if len(ids) else of_row.astype(np.int32)
    )


def unit_of(event: bytes) -> bytes:
    """The unit of what an event counts, whatever modifiers its name has."""
    return UNITS.get(MODIFIERS.sub(b"", event), b"count")


def kind_of(path: bytes) -> AddressKind:
    """What the addresses in a file are, by the path that simpleperf gives it."""
    if path == KERNEL:
        return AddressKind.KERNEL
    if path == UNKNOWN or BYTECODE.match(path) or mapped_by(path) in (*RUN_TIME, Mapped.DEVICE):
        return AddressKind.NO_BINARY
    return AddressKind.IN_FILE


def _frames(report: SimpleperfReport) -> ReportedFrames:
    """The frames of all samples, and the files they belong to."""
    vaddr, file, symbol, execution = report.scan.frame_columns()
    ids, of_frame = distinct_inverse(file)
    if len(ids) > MAX_FILES:
        raise InputError(report.source, f"has frames in {len(ids)} files; {MAX_FILES} is the limit")
    files = [report.files.get(each) for each in ids.tolist()]
    if missing := sum(file is None for file in files):
        report.warnings.append(f"{missing} files that frames lie in have no record: their frames keep addresses only.")
    kinds = [AddressKind.NO_BINARY if file is None else kind_of(file.path) for file in files]
    return ReportedFrames(vaddr, of_frame, symbol, execution, files, ids.tolist(), kinds)


def _hide_art(report: SimpleperfReport, frames: ReportedFrames, hidden: UInt8) -> None:
    """Mark the frames of Android's runtime next to Java frames.

    Where frames have execution types, these tell. Elsewhere the converter has hidden such frames already, unless it was
    asked not to, and then there are more of them than those it leaves. Frames of type ART are those that the converter
    was asked to keep. Without types it has removed them, unless it was asked not to; then several of them, or a
    trampoline, are next to a Java frame. Only in such a report frames are judged by their path and name.
    """
    scan = report.scan
    execution = frames.execution
    of_file = np.array([_runtime_kind(file) for file in frames.files], np.uint8)
    if not len(of_file):
        return
    kinds = np.where(execution == numbers.NO_EXECUTION, of_file[frames.file], np.uint8(numbers.NATIVE))
    kinds[(execution == tags.INTERPRETED_JVM_METHOD) | (execution == tags.JIT_JVM_METHOD)] = numbers.JAVA
    symbols, of_frame = distinct_inverse(pair(frames.file, np.maximum(frames.symbol, NONE)))
    trampolines = np.array([_is_trampoline(frames, *each) for each in zip(*unpair(symbols), strict=True)], np.bool_)
    is_trampoline = trampolines[of_frame]
    kinds[is_trampoline & (execution == numbers.NO_EXECUTION)] = numbers.TRAMPOLINE
    if (kinds >= numbers.ART).any():
        marked = np.zeros_like(hidden)
        if scanning.mark_art(scan, kinds.data, marked.data):
            hidden |= marked
    if (execution == tags.ART_METHOD).any():
        scanning.mark_frames(scan, (execution == tags.ART_METHOD).view(np.uint8).data, hidden.data)


def _is_trampoline(frames: ReportedFrames, file: int, symbol: int) -> bool:
    """Whether the function with this number in one of the files leads from Java to a native method."""
    record = frames.files[file]
    return record is not None and 0 <= symbol < len(record.symbol) and record.symbol[symbol].endswith(TRAMPOLINE)


def _runtime_kind(file: ReportedFile | None) -> int:
    """What the frames of a file are, if they have no execution type."""
    path = b"" if file is None else file.path
    if BYTECODE.match(path) or mapped_by(path) is Mapped.CODE_CACHE:
        return numbers.JAVA
    return numbers.ART if ART_LIBRARY.match(path) else numbers.NATIVE


def _locate(report: SimpleperfReport, profile: Profile, frames: ReportedFrames, hidden: UInt8) -> Int32:
    """Make mappings, functions and locations of the frames in use; the location of each frame."""
    scan = report.scan
    marked = np.zeros(len(frames.vaddr), np.uint8)
    scanning.mark_used(scan, hidden.data, marked.data)
    used = np.flatnonzero(marked)
    vaddr, file, symbol = frames.vaddr[used], frames.file[used], frames.symbol[used]
    mapping = _mappings(report, profile, frames, distinct(file))[file]
    function = _functions(report, profile, frames, file, symbol)
    order = np.lexsort((vaddr, function, mapping))
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for column in (vaddr, function, mapping):
        new[1:] |= column[order[1:]] != column[order[:-1]]
    # The sort is stable, so each location is numbered by its first frame.
    first = order[new]
    rank = np.empty(len(first), np.int32)
    by_first = np.argsort(first)
    rank[by_first] = np.arange(len(first), dtype=np.int32)
    kept = first[by_first]
    locations = np.full(len(marked), NONE, np.int32)
    locations[used[order]] = rank[np.cumsum(new) - 1]
    named = function[kept] != NONE
    line_offsets = offsets_of(named)
    count = int(line_offsets[-1])
    profile.locations = Locations(
        address=vaddr[kept],
        mapping=mapping[kept],
        is_folded=np.zeros(len(kept), np.bool_),
        line_offsets=line_offsets,
        lines=Lines(function[kept][named], np.zeros(count, np.int64), np.zeros(count, np.int64)),
    )
    profile.mappings.has_functions[mapping[kept][named]] = True
    return locations


def _mappings(report: SimpleperfReport, profile: Profile, frames: ReportedFrames, used: Int64) -> Int32:
    """One mapping for each path, or each file of compiled code; the mapping of each file.

    A mapping of everything holds addresses that are relative to the file already (pprof's base 0).
    """
    strings = profile.strings
    rows: dict[tuple[bytes, int], int] = {}
    of_file = np.full(len(frames.files), NONE, np.int32)
    kinds: list[AddressKind] = []
    filenames: list[int] = []
    commands = {name for thread, (process, name) in report.threads.items() if thread == process and name}

    def rank(file: int) -> int:
        # Row 0 is the main binary (pprof schema): the file that a process is called after, never one without code.
        record = frames.files[file]
        if record is None or frames.kinds[file] != AddressKind.IN_FILE:
            return 2
        return 0 if record.path.rpartition(b"/")[2][:COMMAND_SIZE] in commands else 1

    for file in sorted(used.tolist(), key=rank):
        record, kind = frames.files[file], frames.kinds[file]
        path = b"" if record is None or record.path == UNKNOWN else record.path
        own = record is None or (kind == AddressKind.NO_BINARY and not BYTECODE.match(path) and path != b"")
        key = path, frames.file_ids[file] if own else NONE
        if key not in rows:
            rows[key] = len(rows)
            kinds.append(kind)
            filenames.append(strings.add(path))
        of_file[file] = rows[key]
    mappings = Mappings.zeros(len(rows))
    mappings.limit[:] = TOP
    mappings.filename = np.array(filenames, np.int32)
    profile.mappings = mappings
    profile.address_kinds = np.array(kinds, np.uint8)
    return of_file


def _functions(report: SimpleperfReport, profile: Profile, frames: ReportedFrames, file: Int64, symbol: Int32) -> Int32:
    """The functions of the symbols that frames have; the function of each frame, or NONE."""
    strings = profile.strings
    keys, of_frame = distinct_inverse(pair(file, np.maximum(symbol, NONE)))
    files, symbols = unpair(keys)
    rows: dict[tuple[int, int], int] = {}
    functions = np.full(len(keys), NONE, np.int32)
    outside = 0
    uneven: set[int] = set()
    for i, (row, index) in enumerate(zip(files.tolist(), symbols.tolist(), strict=True)):
        record = frames.files[row]
        if index < 0 or record is None or record.path == UNKNOWN:
            continue
        if index >= len(record.symbol):
            outside += index > 0
            continue
        has_mangled = len(record.mangled_symbol) == len(record.symbol)
        if record.mangled_symbol and not has_mangled:
            uneven.add(row)
        mangled = record.mangled_symbol[index] if has_mangled else b""
        name = record.symbol[index] or mangled
        if not name:
            continue
        if name.startswith(LINKER_PREFIX):
            mangled = mangled or name
            name = b"[linker]" + name.removeprefix(LINKER_PREFIX)
        key = strings.add(name), strings.add(mangled)
        functions[i] = rows.setdefault(key, len(rows))
    if outside:
        report.warnings.append(f"{outside} functions are not in the list of their file: the frames have no name.")
    if uneven:
        report.warnings.append(f"{len(uneven)} files have more or fewer mangled names than names: these are not used.")
    names = np.array(list(rows), np.int32).reshape(len(rows), 2)
    profile.functions = Functions.zeros(len(rows))
    profile.functions.name, profile.functions.system_name = names[:, 0].copy(), names[:, 1].copy()
    return functions[of_frame] if len(keys) else np.zeros(0, np.int32)


def _fill_samples(report: SimpleperfReport, profile: Profile, rows: RecordRows, events: Events) -> None:
    """Make the sample types, and a sample of each stack with equal labels."""
    strings = profile.strings
    for name, unit in zip(events.names, events.units, strict=True):
        profile.sample_types.append(ValueType(strings.add(name + b"_samples"), strings.add(b"count")))
        profile.sample_types.append(ValueType(strings.add(name), strings.add(unit)))
    width = len(profile.sample_types)
    counted = events.of_row != NONE
    if not counted.all():
        rows, events = RecordRows(*(column[counted] for column in rows)), events._replace(of_row=events.of_row[counted])
    described = pair(rows.thread, rows.error.astype(np.int64) << 8 | rows.leaf_type)
    descriptions, label_set = distinct_inverse(described)
    keys, sample = distinct_inverse(pair(rows.stack, label_set))
    Budget(report.source, int(rows.samples.sum()), *VALUES).spend(len(keys) * width)
    stacks, label_sets = unpair(keys)
    values = np.zeros((len(keys), width), np.int64)
    column = 2 * events.of_row.astype(np.int64)
    np.add.at(values, (sample, column), rows.samples)
    np.add.at(values, (sample, column + 1), rows.value)
    offsets, locations = _stacks_of(report.scan, stacks)
    label_offsets, labels = _labels(report, profile, descriptions, label_sets)
    profile.samples = Samples(offsets, locations, values, label_offsets, labels)
    show_first_event(profile)


def _stacks_of(scan: Any, stacks: Int32) -> tuple[Int64, Int32]:
    """The locations of the given stacks, one after another, with their offsets."""
    begins, items = scan.stacks.arrays()
    sizes = np.diff(begins)
    offsets = offsets_of(sizes[stacks])
    if len(stacks) == scan.stacks.count and bool((stacks[1:] > stacks[:-1]).all()):
        return offsets, items
    locations = np.empty(int(offsets[-1]), np.int32)
    scanning.copy_stacks(scan, stacks.data, offsets.data, locations.data)
    return offsets, locations


def _labels(report: SimpleperfReport, profile: Profile, descriptions: Int64, label_sets: Int32) -> tuple[Int64, Labels]:
    """The labels of samples that have the descriptions `label_sets`."""
    strings = profile.strings
    names = {each: strings.add(each.encode()) for each in LABELS}
    keys: list[int] = []
    texts: list[int] = []
    ends = [0]
    threads, rest = unpair(descriptions)
    for thread, which in zip(threads.tolist(), rest.tolist(), strict=True):
        known = report.threads.get(thread & 0xFFFFFFFF)
        process = report.threads.get(known[0]) if known is not None else None
        error, leaf_type = which >> 8, which & 0xFF
        for label, text in (
            ("thread", known[1] if known is not None else b""),
            ("tid", b"%d" % thread),
            ("pid", b"%d" % known[0] if known is not None else b""),
            ("process", process[1] if process is not None else b""),
            ("execution_type", EXECUTION[leaf_type] if leaf_type < len(EXECUTION) else b""),
            ("unwinding_error", _error_name(error) if error else b""),
        ):
            if text:
                keys.append(names[label])
                texts.append(strings.add(text))
        ends.append(len(keys))
    starts = np.array(ends, np.int64)
    sizes = np.diff(starts)[label_sets]
    offsets = offsets_of(sizes)
    count = int(offsets[-1])
    # Each label is as far after the first of its sample as in the set that is copied.
    source = np.arange(count, dtype=np.int32)
    source += np.repeat((starts[:-1][label_sets] - offsets[:-1]).astype(np.int32), sizes)
    labels = Labels(
        np.array(keys, np.int32)[source],
        np.array(texts, np.int32)[source],
        np.zeros(count, np.int64),
        np.zeros(count, np.int32),
    )
    return offsets, labels


def _error_name(error: int) -> bytes:
    return ERRORS[error] if error < len(ERRORS) else b"error %d" % error


def _comments(report: SimpleperfReport) -> list[str]:
    """What is known about the recording as a whole; what was lost is a warning too."""
    comments: list[str] = []
    meta, lost, scan = report.meta, report.lost, report.scan
    if meta is not None:
        for what, text in (
            ("App", meta.app_package_name),
            ("App type", meta.app_type),
            ("Android SDK version", meta.android_sdk_version),
            ("Android build type", meta.android_build_type),
        ):
            if text:
                comments.append(f"{what}: {text.decode(errors='surrogateescape')}")
        if not meta.android_sdk_version and any(LINUX_EVENT.match(each) for each in meta.event_type):
            comments.append(
                "The events are spelled as perf of Linux does. If it made the recording, the addresses of callers lie "
                "behind their calls, and lines of callers may be those of the next statement."
            )
    if lost is not None and lost.lost_count:
        comments.append(f"Lost samples: {lost.lost_count}")
        report.warnings.append(f"{lost.lost_count} samples were lost while recording; {lost.sample_count} are there.")
    if lost is not None and lost.sample_count > scan.samples:
        report.warnings.append(f"The report announces {lost.sample_count} samples; {scan.samples} were read.")
    if scan.failed:
        comments.append(f"Samples whose stack could not be unwound to its end: {scan.failed}")
    return comments

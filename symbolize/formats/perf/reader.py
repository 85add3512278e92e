"""perf.data of Linux perf: from the content of an input to the profile."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from symbolize.core.arrays import (
    NONE,
    Int32,
    Int64,
    distinct,
    distinct_inverse,
    gather_lists,
    offsets_of,
    pair,
    ranges,
    views,
)
from symbolize.core.budget import Budget
from symbolize.core.errors import InputError
from symbolize.core.files import names_in
from symbolize.core.interning import add_up
from symbolize.formats.content import CHUNK, Content, chunks
from symbolize.formats.model import LoadedProfile, LoadOptions, another_profile, only
from symbolize.formats.perf import BIG, LITTLE, OLD
from symbolize.formats.perf import numbers as n
from symbolize.formats.perf.header import (
    PAIR,
    PIPE_HEADER,
    Event,
    EventColumns,
    columns_of,
    is_pipe,
    machine_of,
    read_attrs,
    read_header,
)
from symbolize.formats.perf.processes import BuildIds, RecordedMapping
from symbolize.formats.perf.recording import Recording, Stream
from symbolize.formats.products import VALUES
from symbolize.profile.attachments import SampleTimes, StackDumps
from symbolize.profile.combine import TOO_LARGE
from symbolize.profile.facts import set_leaves
from symbolize.profile.model import (
    AddressKind,
    Functions,
    IdOrigin,
    Labels,
    LeafKind,
    Lines,
    Locations,
    Mappings,
    Profile,
    Samples,
    StackSource,
    ValueType,
)
from symbolize.profile.sample_labels import TIMES
from symbolize.profile.sample_types import show_first_event

if TYPE_CHECKING:
    from symbolize.formats.perf.recording import Recording

MAX_LABELS: Final = 1 << 28
MAX_INT64: Final = (1 << 63) - 1

MODES: Final = {
    n.KERNEL_MODE: b"Host Kernel",
    n.USER_MODE: b"Host User",
    n.HYPERVISOR_MODE: b"Hypervisor",
    n.GUEST_KERNEL_MODE: b"Guest Kernel",
    n.GUEST_USER_MODE: b"Guest User",
}
MODE_BITS: Final = 8
UNKNOWN: Final = 0xFFFFFFFF
"""A pid, tid or cpu that is not known."""

KINDS: Final = {
    n.UNKNOWN_MAPPING: AddressKind.NO_BINARY,
    n.GUEST_MAPPING: AddressKind.NO_BINARY,
    n.HYPERVISOR_MAPPING: AddressKind.NO_BINARY,
}
SIBLING: Final = re.compile(r"data\.\d+")
"""What the files of the threads of perf are called, in the folder of a recording."""


class SampleRows(NamedTuple):
    """The samples of the scan as columns; `column` is the pair of values that a sample is counted under."""

    column: Int32
    context: Int64
    stack: Int64
    samples: Int64
    value: Int64


def build(recording: "Recording") -> Profile:
    """The profile of what was read. Raises InputError if its samples have too many values."""
    profile = Profile(strings=recording.strings, warnings=recording.warnings())
    rows, columns = _rows(recording)
    _sample_types(profile, columns)
    set_leaves(profile, LeafKind.EXACT, _stack_source(recording.events))
    mapping_rows = _mappings(profile, recording)
    _locations(profile, recording, mapping_rows)
    sample_of_row = _samples(profile, recording, rows, len(columns.names))
    show_first_event(profile)
    _period(profile, recording, columns)
    _dumps(profile, recording, sample_of_row, mapping_rows)
    _sample_times(profile, recording, rows, sample_of_row)
    _times(profile, recording)
    profile.machine = recording.facts.arch.decode(errors="replace")
    profile.kernel_release = recording.facts.release.decode(errors="replace")
    comments = []
    if recording.facts.version:
        comments.append(b"perf-version:" + recording.facts.version)
    if recording.facts.command:
        comments.append(b"perf-command:" + b" ".join(recording.facts.command))
    profile.comments = profile.strings.add_all(comments).tolist()
    return profile


def _rows(recording: "Recording") -> tuple[SampleRows, EventColumns]:
    """The samples, and what they are counted under."""
    table = recording.samples.rows.array()
    event = table[:, n.ROW_EVENT].astype(np.int64)
    columns = columns_of(recording.events, set(distinct(event).tolist()))
    values = Budget(recording.name, int(table[:, n.ROW_COUNT].sum()), *VALUES)
    values.spend(len(table) * 2 * len(columns.names))
    others = (table[:, word].astype(np.int64) for word in (n.ROW_CONTEXT, n.ROW_STACK, n.ROW_COUNT, n.ROW_VALUE))
    return SampleRows(columns.of_event[event], *others), columns


def _sample_types(profile: Profile, columns: EventColumns) -> None:
    """Two for each event: how often it was sampled, and how often it happened by that."""
    add = profile.strings.add
    for name, unit in zip(columns.names, columns.units, strict=True):
        profile.sample_types.append(ValueType(add(name + b"_sample"), add(b"count")))
        profile.sample_types.append(ValueType(add(name + b"_event"), add(unit)))


def _period(profile: Profile, recording: "Recording", columns: EventColumns) -> None:
    """The period of the event that is shown first, if that is a number."""
    add, shown = profile.strings.add, profile.weight_column() // 2
    for event, column in zip(recording.events, columns.of_event.tolist(), strict=True):
        if column == shown and not event.is_frequency and event.period < 1 << 63:
            profile.period_type = ValueType(add(columns.names[column]), add(columns.units[column]))
            profile.period = event.period


def _mappings(profile: Profile, recording: "Recording") -> Int32:
    """Fill in the mappings in use, that of the main program first; the row of each mapping of the recording."""
    known, strings = recording.processes.mappings, profile.strings
    used = np.zeros(len(known), np.bool_)
    frames_of = np.bincount(recording.samples.frames.array()[:, 1].astype(np.int64), minlength=len(known))
    used[frames_of > 0] = True
    used[recording.samples.spaces.arrays()[1]] = True
    used[recording.processes.neighbours(used)] = True
    order = np.flatnonzero(used)
    main = recording.processes.main_program(frames_of)
    if main >= n.STAND_INS and used[main]:
        order = np.concatenate(([main], order[order != main]))
    ids = TableIds(recording)
    table = Mappings.zeros(len(order))
    kinds, origins = np.full(len(order), AddressKind.PROCESS, np.uint8), np.zeros(len(order), np.uint8)
    for row, number in enumerate(order.tolist()):
        mapping = known[number]
        table.start[row], table.limit[row], table.file_offset[row] = mapping.start, mapping.limit, mapping.offset
        table.filename[row] = mapping.name
        build_id, origins[row] = (mapping.build_id, IdOrigin.RECORDED) if mapping.build_id else ids.find(mapping)
        table.build_id[row] = strings.add(build_id.hex().encode())
        kinds[row] = AddressKind.NO_BINARY if mapping.symbol else KINDS.get(number, AddressKind.PROCESS)
    profile.mappings = table
    profile.warnings.extend(ids.warnings())
    if origins.any():
        profile.id_origins = origins
    if kinds.any():
        profile.address_kinds = kinds
    rows = np.full(len(known), NONE, np.int32)
    rows[order] = np.arange(len(order), dtype=np.int32)
    return rows


class TableIds:
    """The build ids that mappings without one have from the table of the recording; void ones are counted by path
    (R293, names in the table of build ids)."""

    def __init__(self, recording: "Recording") -> None:
        self._ids = BuildIds(recording.facts.build_ids)
        self._files = recording.processes.files
        self._strings = recording.strings
        self._several: dict[int, None] = {}
        self._elsewhere: dict[int, None] = {}

    def find(self, mapping: RecordedMapping) -> tuple[bytes, IdOrigin]:
        """The build id of a mapping, empty if it is not known, and where it was recorded."""
        build_id, origin = self._ids.find(self._strings[mapping.name])
        if origin == IdOrigin.READ_LATER and self._files.are_several(mapping.name):
            self._several[mapping.name] = None
        elif origin == IdOrigin.READ_LATER and mapping.elsewhere:
            self._elsewhere[mapping.name] = None
        elif build_id:
            return build_id, origin
        return b"", IdOrigin.UNKNOWN

    def warnings(self) -> list[str]:
        """A sentence for each reason for which ids are void."""
        return [
            f"The build ids of {len(names):,} paths, the first of which is {self._strings.text(next(iter(names)))}, "
            f"were read when perf stopped, but {why}: they were left out."
            for names, why in (
                (self._several, "each was of several files while it recorded"),
                (self._elsewhere, "processes in other mount namespaces had files of these paths"),
            )
            if names
        ]


def _stack_source(events: Sequence[Event]) -> StackSource:
    """Who found the callers that the recording has; unknown if it has none in user code, but copies of stacks."""
    found = {StackSource.UNKNOWN}
    for event in (each for each in events if not each.is_dummy):
        if event.sample_type & n.HAS_BRANCH_STACK and event.branch_type & n.BRANCH_CALL_STACK:
            found.add(StackSource.RECORDER)
        elif event.sample_type & n.HAS_CALLCHAIN and not event.sample_type & n.HAS_STACK_USER:
            found.add(StackSource.FRAME_POINTERS)
    return max(found)


def _locations(profile: Profile, recording: "Recording", mapping_rows: Int32) -> None:
    """Fill in the locations, which are the frames, and the functions of those that are in no file."""
    frames = recording.samples.frames.array()
    mapping = frames[:, 1].astype(np.int64)
    symbol_of = np.array([each.symbol for each in recording.processes.mappings], np.int32)
    names, which = distinct_inverse(symbol_of[mapping])
    is_named = symbol_of[mapping] != 0
    first = int(len(names) > 0 and names[0] == 0)  # those without a symbol come first
    profile.functions = Functions.zeros(len(names) - first)
    profile.functions.name = profile.functions.system_name = names[first:].copy()
    count = int(is_named.sum())
    lines = Lines((which[is_named] - first).astype(np.int32), np.zeros(count, np.int64), np.zeros(count, np.int64))
    profile.locations = Locations(
        address=np.ascontiguousarray(frames[:, 0]),
        mapping=mapping_rows[mapping],
        is_folded=np.zeros(len(frames), np.bool_),
        line_offsets=offsets_of(is_named),
        lines=lines,
    )


def _samples(profile: Profile, recording: "Recording", rows: SampleRows, width: int) -> Int64:
    """Fill in the samples: one for each stack and its labels, but one for each stack dump; the sample of each row."""
    dump_of_row = np.full(len(rows.stack), NONE, np.int64)
    dumps, counts = recording.samples.dump_array().astype(np.int64)[:, [n.DUMP_ROW, n.DUMP_ROWS]].T
    dump_of_row[ranges(dumps, counts)] = np.repeat(np.arange(len(dumps)), counts)
    first, sample_of_row = _merged(pair(rows.context, rows.stack), dump_of_row, len(recording.events))
    values = np.zeros((len(first), 2 * width), np.int64)
    counted = rows.column != NONE
    at = (2 * (sample_of_row * width + rows.column))[counted].astype(np.int32)  # of VALUES
    exceeded = 0
    for column, added in enumerate((rows.samples, rows.value)):
        exceeded += add_up(*views(added[counted].reshape(-1, 1), at + np.int32(column), values.reshape(-1, 1)))
    if exceeded:
        profile.warnings.append(f"{exceeded} {TOO_LARGE}")
    begins, items = recording.samples.stacks.arrays()
    stack = rows.stack[first]
    offsets = offsets_of(np.diff(begins)[stack])
    label_offsets, labels = _labels(profile, recording, rows.context[first])
    profile.samples = Samples(
        location_offsets=offsets,
        locations=gather_lists(items, begins[:-1][stack], offsets),
        values=values,
        label_offsets=label_offsets,
        labels=labels,
    )
    return sample_of_row


def _merged(keys: Int64, dump_of_row: Int64, events: int) -> tuple[Int64, Int64]:
    """The first row of each sample, ascending, and the sample of each row. Each dump is of a sample of its own."""
    count = len(keys)
    if events < 2:  # rows of one event are different
        return np.arange(count), np.arange(count)
    merged = np.flatnonzero(dump_of_row == NONE)
    known, which = distinct_inverse(keys[merged])
    group = len(known) + dump_of_row
    group[merged] = which
    first = np.full(len(known) + int(dump_of_row.max(initial=NONE)) + 1, count, np.int64)
    np.minimum.at(first, group, np.arange(count))
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return first[order], rank[group]


def _labels(profile: Profile, recording: "Recording", contexts: Int64) -> tuple[Int64, Labels]:
    """The labels of samples in these contexts."""
    add = profile.strings.add
    words = recording.samples.contexts.array()
    thread, comms, cpu, time = (words[:, i] for i in range(n.CONTEXT_WORDS))
    low = np.uint64(UNKNOWN)
    cgroups = np.array([0, *recording.cgroups], np.int32)
    modes = np.array([add(MODES.get(mode, b"")) for mode in range(n.MODE_MASK + 1)], np.int32)
    numbers = [(b"pid", thread >> np.uint64(32)), (b"tid", thread & low), (b"cpu", cpu >> np.uint64(32))]
    texts = [
        (b"comm", (comms >> np.uint64(32)).astype(np.int32)),
        (b"thread_comm", (comms & low).astype(np.int32)),
        (b"cgroup", cgroups[((cpu & low) >> np.uint64(MODE_BITS)).astype(np.int64)]),
        (b"execution_mode", modes[(cpu & np.uint64(n.MODE_MASK)).astype(np.int64)]),
    ]
    zero = np.zeros(len(words), np.int64)
    wall, at = recording.facts.clock or (0, 0)
    moment = (time + np.uint64((wall - at) % (1 << 64))).view(np.int64)  # of the wall clock, if it is known
    parts = [
        *((add(key), zero, number.astype(np.int64), number != low) for key, number in numbers),
        *((add(key), text, zero, text != 0) for key, text in texts),
        (add(TIMES[0]), zero, moment, time != 0),
    ]
    has = np.stack([each[3] for each in parts], axis=1)
    table = Labels(
        key=np.broadcast_to(np.array([each[0] for each in parts], np.int32), has.shape)[has],
        text=np.stack([each[1].astype(np.int32) for each in parts], axis=1)[has],
        number=np.stack([each[2] for each in parts], axis=1)[has],
        unit=np.where(np.nonzero(has)[1] == len(parts) - 1, np.int32(add(b"nanoseconds")), np.int32(0)),
    )
    counts = has.sum(axis=1)
    offsets = offsets_of(counts[contexts])
    if int(offsets[-1]) > MAX_LABELS:
        raise InputError(recording.name, f"has {int(offsets[-1])} labels in its samples, which is too much")
    return offsets, table.take(ranges(offsets_of(counts)[:-1][contexts], counts[contexts]))


def _dumps(profile: Profile, recording: "Recording", sample_of_row: Int64, mapping_rows: Int32) -> None:
    """Fill in the stack dumps."""
    table = recording.samples.dump_array()
    if not len(table):
        return
    machine = machine_of(recording.facts.arch, recording.events)
    offsets, items = recording.samples.spaces.arrays()
    columns = [np.ascontiguousarray(table[:, word]) for word in range(n.DUMP_WORDS)]
    flags = columns[n.DUMP_FLAGS]
    profile.stack_dumps = StackDumps(
        machine=machine,
        data=recording.dump_data(),
        sample=sample_of_row[columns[n.DUMP_ROW].astype(np.int64)],
        offset=columns[n.DUMP_OFFSET].astype(np.int64),
        size=columns[n.DUMP_SIZE].astype(np.int64),
        registers=np.ascontiguousarray(table[:, n.DUMP_WORDS :]),
        is_32bit=(flags & np.uint64(n.DUMP_32BIT)) != 0,
        is_full=(flags & np.uint64(n.DUMP_FULL)) != 0,
        space=columns[n.DUMP_SPACE].astype(np.int32),
        space_offsets=offsets.copy(),
        space_mappings=mapping_rows[items],
    )
    profile.warnings.append(profile.stack_dumps.warning)


def _sample_times(profile: Profile, recording: "Recording", rows: SampleRows, sample_of_row: Int64) -> None:
    """Fill in when samples were taken, of processes that list code with times."""
    table = recording.samples.time_array()
    row = table[:, n.TIMED_ROW].astype(np.int64)
    kept = rows.column[row] != NONE
    if kept.any():
        profile.sample_times = SampleTimes(
            sample=sample_of_row[row[kept]],
            time=table[kept, n.TIMED_AT],
            column=2 * rows.column[row[kept]],
            value=table[kept, n.TIMED_VALUE].astype(np.int64),
            is_monotonic=recording.is_monotonic,
            conversion=recording.facts.conversion,
        )


def _times(profile: Profile, recording: "Recording") -> None:
    """When the recording began, if its clock is known, and how long it took."""
    facts, scan = recording.facts, recording.scan
    first, last = facts.first_time, facts.last_time
    if not 0 < first <= last:
        first, last = (scan.first_sample, scan.last_sample) if scan.last_sample else (0, 0)
    profile.duration_nanos = min(last - first, MAX_INT64)
    if facts.clock is not None and first:
        wall, at = facts.clock
        profile.time_nanos = max(min(first - at + wall, MAX_INT64), 0)


def read(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    """The profile of a recording. Raises InputError."""
    if content.head.startswith(OLD):
        what = "is a perf.data of perf before 3.4 (PERFFILE), which is not read; record it with a newer perf"
        raise InputError(content.name, what)
    recording = Recording(content.name, content.head.startswith(BIG), options)
    mapped = None
    if is_pipe(content.head):
        read_streams(recording, [without_header(content.pieces(is_recording=True))])
    else:
        mapped = content.mapped()
        read_file(recording, mapped.data if mapped is not None else content.whole(), content.path)
    recording.finish()
    profile = build(recording)
    if mapped is not None:
        mapped.check()
        if profile.stack_dumps is not None and profile.stack_dumps.data is mapped.data:
            profile.stack_dumps.check = mapped.check
    return only(profile)


def read_file(recording: Recording, data: memoryview, path: str) -> None:
    """Read a recording in file mode, with the files beside it if it is a folder."""
    header = read_header(data, recording.name)
    for event in read_attrs(data, header, recording.name):
        recording.add_event(event)
    recording.is_cut = header.is_cut
    for feature, (offset, size) in header.features.items():
        if offset + size <= len(data):
            recording.facts.read(feature, data[offset : offset + size], recording.name)
        else:
            recording.is_cut = True
    begin, size = header.data
    end = min(begin + size, len(data))
    behind = max(sum(section) for section in (*header.features.values(), (end, PAIR * len(header.features))))
    if bytes(data[behind : behind + len(LITTLE)]) in (LITTLE, BIG):
        recording.facts.warnings.append(another_profile(behind))
    if recording.facts.is_directory:
        read_streams(recording, [pieces_of(data, begin, end), *siblings(recording, path)])
        return
    at = recording.read(data, begin, end)
    if recording.has_compressed:
        recording.flush(None)
        read_streams(recording, [pieces_of(data, at, end)])
    elif at < end and not recording.is_damaged:
        recording.is_cut = True


def siblings(recording: Recording, path: str) -> list[Iterator[bytes]]:
    """The contents of what the threads of perf wrote into the folder of a recording, beside its file `data`."""
    folder = os.path.dirname(path)
    names = sorted(name for name in names_in(folder or ".") if SIBLING.fullmatch(name)) if path else []
    if not names:
        recording.facts.warnings.append("The recording is a folder, of which only one file was read.")
    return [chunks(os.path.join(folder, name), name, is_named=False) for name in names]


def read_streams(recording: Recording, contents: Sequence[Iterable[bytes | memoryview]]) -> None:
    """Read the records in some files or pipes, of which some may be compressed."""
    streams = [Stream(pieces, recording.facts.is_big, recording.name) for pieces in contents]
    recording.read_pieces(chain.from_iterable(streams))
    for stream in streams:
        recording.facts.has_trace_data |= stream.has_trace_data
        recording.facts.warnings += stream.problems


def pieces_of(data: memoryview, begin: int, end: int) -> Iterator[memoryview]:
    """A part of a file in pieces."""
    return (data[at : min(at + CHUNK, end)] for at in range(begin, end, CHUNK))


def without_header(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The content of a pipe behind its header."""
    left = PIPE_HEADER
    for piece in pieces:
        if len(piece) > left:
            yield piece[left:]
        left = max(left - len(piece), 0)

"""Profiles of the Firefox Profiler in: the samples of threads, of which equal ones are one unless times are kept."""

from functools import partial
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import NONE, Bool, Float64, Int64, distinct_inverse, offsets_of, pair, ranges, unpair
from symbolize.formats.content import Content
from symbolize.formats.firefox import SLABS
from symbolize.formats.firefox.document import JsonText, Members
from symbolize.formats.firefox.forest import Forest, encoded
from symbolize.formats.firefox.gecko import GeckoRecording
from symbolize.formats.firefox.slabs import Slabs
from symbolize.formats.firefox.tables import IN_CALLS, LARGEST, Document, Thread, number_of
from symbolize.formats.model import LoadedProfile, LoadOptions
from symbolize.formats.samples import value_type
from symbolize.profile.model import Labels, LeafKind, Profile, StackSource

MILLISECOND: Final = 1e6
"""Nanoseconds."""
CPU_UNITS: Final = {"ns": 1.0, "µs": 1e3, "us": 1e3}
"""Nanoseconds of a unit of CPU time; Windows counts cycles, which are none."""
SAMPLES: Final = b"samples", b"count"
CPU: Final = b"cpu", b"nanoseconds"
WEIGHTS: Final = {
    "samples": (SAMPLES, 1.0),
    "tracing-ms": ((b"time", b"nanoseconds"), MILLISECOND),
    "bytes": ((b"size", b"bytes"), 1.0),
}
"""The sample type of weights, and how many of its unit a weight of 1 is."""
ALLOCATIONS: Final = {
    "nativeAllocations": (b"native_allocations", b"bytes"),
    "jsAllocations": (b"js_allocations", b"bytes"),
}
EXACT: Final = (SAMPLES, CPU, WEIGHTS["tracing-ms"][0])
"""The types whose leaves were sampled; what is allocated is in a call."""
TIMESTAMP: Final = b"timestamp_ns"
MAX_DIGITS: Final = 19
"""Of a number of 63 bits."""

Recording = Document | GeckoRecording
SampleType = tuple[bytes, bytes]


class ThreadSamples(NamedTuple):
    """Samples of a thread: the nodes of their stacks, when they were taken in milliseconds from the beginning, their
    values by sample type, and whether their leaves are calls, as of what was allocated."""

    node: Int64
    time: Float64
    values: dict[SampleType, Int64]
    is_call: bool = False


def read(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    """The profile of a content, with its `document` if it is a processed one. Raises InputError."""
    data = content.whole()
    if bytes(data[: len(SLABS)]) == SLABS:
        data = memoryview(Slabs(data, content.name).text())
    text = JsonText(data, content.name)
    members = text.members(text.root())
    meta = text.members(members["meta"]) if "meta" in members else {}
    if "preprocessedProfileVersion" in meta:
        document = Document(text)
        loaded = LoadedProfile("", partial(profile_of, document, bool(options.timestamps)))
        loaded.document = document
        return [loaded]
    return [LoadedProfile("", partial(profile_of, GeckoRecording(text), bool(options.timestamps)))]


def forest_of(recording: Recording) -> Forest:
    """The stacks of all threads."""
    is_in_calls = isinstance(recording, Document) and recording.version >= IN_CALLS
    return Forest(recording.tables, recording.libraries, is_in_calls, recording.text)


def profile_of(recording: Recording, with_times: bool) -> Profile:
    """The profile of all threads. Raises InputError."""
    forest, profile = forest_of(recording), Profile()
    of_tables = {id(each): row for row, each in enumerate(recording.tables)}
    nodes, threads, calls, times, values = [], [], [], [], []
    lost = 0
    for number, thread in enumerate(recording.threads):
        first = forest.first_node[of_tables[id(thread.tables)]]
        for rows in rows_of(recording, thread):
            has_stack = rows.node != NONE
            lost += int((~has_stack).sum())
            nodes.append(rows.node[has_stack] + first)
            threads.append(np.full(len(nodes[-1]), number))
            calls.append(np.full(len(nodes[-1]), rows.is_call))
            times.append(rows.time[has_stack])
            values.append({key: value[has_stack] for key, value in rows.values.items()})
    types = list(dict.fromkeys(key for each in values for key in each)) or [SAMPLES]
    table = np.concatenate(
        [np.zeros((0, len(types)), np.int64)]
        + [
            np.stack([each.get(key, np.zeros(len(node), np.int64)) for key in types], axis=1)
            for each, node in zip(values, nodes, strict=True)
        ]
    )
    node, thread_of, time = (np.concatenate([np.zeros(0, np.int64), *each]) for each in (nodes, threads, times))
    node, thread_of = node.astype(np.int64), thread_of.astype(np.int64)
    is_call: Bool = np.concatenate([np.zeros(0, np.bool_), *calls])
    if not with_times:
        keys, which = distinct_inverse(pair(2 * thread_of + is_call, node))
        sums = np.zeros((len(keys), len(types)), np.int64)
        np.add.at(sums, which, table)
        (thread_of, node), table = (each.astype(np.int64) for each in unpair(keys)), sums
        thread_of, is_call = thread_of // 2, thread_of % 2 != 0
    if isinstance(recording, Document) and recording.has_all_frames and recording.threads:
        others = uncovered(forest, node)
        node, thread_of = np.append(node, others), np.append(thread_of, np.zeros(len(others), np.int64))
        is_call = np.append(is_call, np.ones(len(others), np.bool_))
        time = np.append(time, np.zeros(len(others)))
        table = np.concatenate((table, np.zeros((len(others), len(types)), np.int64)))
    if lost:
        profile.warnings.append(f"Samples without a stack: {lost:,}; they were left out.")
    forest.fill(profile, node, is_call)
    profile.sample_types = [value_type(profile, *each) for each in types]
    profile.default_sample_type = profile.sample_types[0].type
    profile.leaf_kinds = np.array([LeafKind.EXACT if key in EXACT else LeafKind.CALL_SITE for key in types], np.uint8)
    profile.stack_source = StackSource.RECORDER
    profile.samples.values = table
    started = number_of(recording.meta.get("startTime"))
    # A double does not hold the nanoseconds of today.
    began = int(started) * int(MILLISECOND) + round(started % 1 * MILLISECOND) if 0 <= started < 1e12 * 8 else 0
    profile.time_nanos = began
    interval = number_of(recording.meta.get("interval"))
    if 0 < interval < 1e12:
        profile.period, profile.period_type = int(interval * MILLISECOND), value_type(profile, b"wall", b"nanoseconds")
    clock = began + integers(time, MILLISECOND) if with_times else None
    set_labels(profile, recording, thread_of, forest.category[node], clock)
    return profile


def uncovered(forest: Forest, node: Int64) -> Int64:
    """The nodes of the stacks that none of the samples has: those of markers, which are calls."""
    is_covered = np.zeros(len(forest.frame), np.bool_)
    is_covered[forest.prefix[forest.prefix != NONE]] = True
    is_covered[node] = True
    return np.flatnonzero(~is_covered)


def rows_of(recording: Recording, thread: Thread) -> list[ThreadSamples]:
    """The samples of a thread, and what it allocated."""
    unit = recording.meta.get("sampleUnits")
    factor = CPU_UNITS.get(str(unit.get("threadCPUDelta")), 0.0) if isinstance(unit, dict) else 0.0
    if isinstance(recording, GeckoRecording):
        node, time, cpu = recording.samples(thread)
        return [
            ThreadSamples(
                node, time, {SAMPLES: np.ones(len(node), np.int64)} | ({CPU: integers(cpu, factor)} if factor else {})
            )
        ]
    text, members, found = recording.text, thread.members, []
    for name in ("samples", *ALLOCATIONS):
        if not text.has(members, name):
            continue
        table = text.members(members[name])
        count = recording.count(table, "stack")
        node = recording.rows(table, "stack", count, len(thread.tables.frame))
        kind, factors = weights_of(recording, table, name)
        values = {kind: weight_column(recording, table, count, factors)}
        if name == "samples" and factor and text.has(table, "threadCPUDelta"):
            values[CPU] = integers(numbers_of(recording, table, "threadCPUDelta", count), factor)
        found.append(ThreadSamples(node, times_of(recording, table, count), values, name in ALLOCATIONS))
    return found


def weights_of(recording: Document, table: Members, name: str) -> tuple[SampleType, float]:
    """The sample type of the weights of a table, and the factor to its unit."""
    if name in ALLOCATIONS:
        return ALLOCATIONS[name], 1.0
    kind = recording.text.value(table["weightType"]) if "weightType" in table else "samples"
    return WEIGHTS.get(str(kind), WEIGHTS["samples"])


def weight_column(recording: Document, table: Members, count: int, factor: float) -> Int64:
    """The weights of a table, 1 where it has none. Before version 29 they are called durations."""
    name = "weight" if "weight" in table else "duration"
    if not recording.text.has(table, name):
        return np.ones(count, np.int64)
    return integers(numbers_of(recording, table, name, count), factor)


def numbers_of(recording: Document, table: Members, name: str, count: int) -> Float64:
    """A column of numbers, 0 for null."""
    found = recording.text.numbers(table[name])
    if len(found) != count:
        raise recording.text.problem(table[name].begin, f"the column {name} has {len(found)} rows, and not {count}")
    return np.nan_to_num(found, nan=0.0, posinf=LARGEST, neginf=-LARGEST)


def times_of(recording: Document, table: Members, count: int) -> Float64:
    """When samples were taken, in milliseconds from the beginning; some profiles say how much later than the one
    before."""
    has = recording.text.has
    if has(table, "timeDeltas"):
        return np.cumsum(numbers_of(recording, table, "timeDeltas", count))
    return numbers_of(recording, table, "time", count) if has(table, "time") else np.zeros(count)


def integers(values: Float64, factor: float) -> Int64:
    """Values times a factor as integers."""
    return np.rint(np.clip(values, -LARGEST / factor, LARGEST / factor) * factor).astype(np.int64)


def set_labels(profile: Profile, recording: Recording, thread: Int64, category: Int64, time: Int64 | None) -> None:
    """Give samples the labels of their threads and categories, and their times in nanoseconds."""
    add = profile.strings.add
    own = [thread_labels(recording, each) for each in recording.threads]
    names = [encoded(name) for name in recording.categories]
    category = np.where(category < len(names), category, NONE)
    pairs, which = distinct_inverse(pair(thread, category))
    table = []
    for of, row in zip(*(each.tolist() for each in unpair(pairs)), strict=True):
        labels = own[of] | ({b"category": names[row]} if 0 <= row < len(names) else {})
        table.append([(key, value) for key, value in labels.items() if value != b""])
    counts = np.array([len(each) for each in table], np.int64)
    flat = [
        (add(key), add(value), 0) if isinstance(value, bytes) else (add(key), 0, value)
        for each in table
        for key, value in each
    ]
    columns = np.array(flat, np.int64).reshape(len(flat), 3).T
    templates = Labels.zeros(len(flat))
    templates.key[:], templates.text[:], templates.number[:] = columns
    mine = counts[which] if len(which) else np.zeros(0, np.int64)
    rows = ranges(offsets_of(counts)[:-1][which], mine)
    if time is None:
        profile.samples.labels, profile.samples.label_offsets = templates.take(rows), offsets_of(mine)
        return
    offsets = offsets_of(mine + 1)
    labels = Labels.zeros(int(offsets[-1]))
    is_time = np.zeros(len(labels), np.bool_)
    is_time[offsets[1:] - 1] = True
    for name in ("key", "text", "number"):
        getattr(labels, name)[~is_time] = getattr(templates, name)[rows]
    labels.key[is_time], labels.number[is_time] = add(TIMESTAMP), time
    profile.samples.labels, profile.samples.label_offsets = labels, offsets


def thread_labels(recording: Recording, thread: Thread) -> dict[bytes, bytes | int]:
    """What labels say of a thread: the ids and names of it and its process."""
    found: dict[bytes, bytes | int] = {}
    for key, label in (("pid", b"pid"), ("tid", b"tid"), ("processName", b"process"), ("name", b"thread")):
        value = recording.text.value(thread.members[key]) if key in thread.members else None
        if type(value) is int or (isinstance(value, str) and label in (b"pid", b"tid") and value.isdecimal()):
            number = int(value) if len(str(value)) <= MAX_DIGITS else NONE
            found[label] = number if 0 <= number < 1 << 63 else encoded(str(value))
        elif isinstance(value, str):
            found[label] = encoded(value)
    return found

"""Stacks as the processed format of the Firefox Profiler, with their names: nothing is left to symbolize.

The tables are those of version 48, which later versions of the viewer convert.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

import numpy as np

from symbolize.analysis import CallTree, FrameFlag, FrameNames, Stacks, call_tree
from symbolize.analysis.stacks import CELLS, LETTERS
from symbolize.core.arrays import Int32, Int64, UInt64, distinct_inverse, pair, rows_by_number, unpair
from symbolize.core.mapped_names import module_name
from symbolize.profile import NONE, AddressKind, Profile
from symbolize.profile.sample_labels import SampledThread, sample_time, sampled_threads
from symbolize.profile.sample_types import unit_of
from symbolize.symbol_files.breakpad import debug_id

VERSION: Final = 48
GECKO_VERSION: Final = 29
LIBRARY: Final = 1
"""The type of a resource that is a library."""
CATEGORIES: Final = (("Named", "blue"), ("Inlined", "lightblue"), ("Folded", "orange"), ("Unsymbolized", "grey"))
NANOSECONDS: Final = 1e6
"""Of a millisecond."""
MAX_THREADS: Final = 1000
"""Threads that are shown apart: the viewer makes a track of each."""
UNKNOWN: Final = "unknown"
PLAIN: Final = re.compile("0|[1-9][0-9]{0,14}")
"""Ids that are numbers in JavaScript too."""

Table = dict[str, Any]
"""Columns by name, and their `length`."""


def pieces(stacks: Stacks, title: str, caveats: Sequence[str] = ()) -> Iterator[bytes]:
    """The file, which has the default sample type: a thread for each one that labels of samples tell apart, the
    heaviest first, or one for all (R475, threads of samples). Raises InputError for what is too large."""
    threads, thread_of = sampled_threads(stacks.profile, np.abs(stacks.values[:, stacks.default]))
    notes = [("Binaries", each) for each in caveats]
    lightest = len(threads) - MAX_THREADS + 1
    if lightest > 1:
        pool = f"the {lightest:,} lightest threads"
        threads[-lightest:] = [SampledThread("others", "others", "others", pool)]
        thread_of = np.minimum(thread_of, MAX_THREADS - 1)
        notes.append(("Threads", f"{pool} are shown as one"))
    times = sample_time(stacks.profile)
    began = times.min() if times is not None else np.uint64(max(stacks.profile.time_nanos, 0))
    head = {"meta": meta(stacks.profile, title, int(began)) | extra(notes), "libs": libraries(stacks.profile)}
    yield (json.dumps(head | {"pages": []}).removesuffix("}") + ', "threads": [').encode()
    writer = ThreadWriter(stacks, times - began if times is not None else None)
    for number, (thread, rows) in enumerate(zip(threads, rows_by_number(thread_of, len(threads)), strict=True)):
        separator = ", {" if number else "{"
        fields = chain(about(thread, stacks.types[stacks.default][0], title), writer.tables(rows))
        for name, value in fields:  # one table at a time: their texts are large
            yield f"{separator}{json.dumps(name)}: {json.dumps(value)}".encode()
            separator = ", "
        yield b"}"
    yield b"]}\n"


def meta(profile: Profile, title: str, began: int) -> Table:
    """What the viewer has to know of the recording, which `began` so many nanoseconds after 1970 (0: unknown)."""
    return {
        "interval": profile.period / NANOSECONDS if profile.period > 0 else 1,
        "startTime": began / NANOSECONDS,
        "processType": 0,
        "product": title,
        "importedFrom": "symbolize",
        "stackwalk": 1,
        "debug": 0,
        "version": GECKO_VERSION,
        "preprocessedProfileVersion": VERSION,
        "symbolicated": True,
        "markerSchema": [],
        "categories": [{"name": name, "color": colour, "subcategories": ["Other"]} for name, colour in CATEGORIES],
    }


def extra(notes: Sequence[tuple[str, str]]) -> Table:
    """What the viewer lists among the facts of the recording: titles and texts."""
    entries = [{"label": label, "format": "string", "value": text} for label, text in notes]
    return {"extra": [{"label": "Symbols", "entries": entries}]} if entries else {}


def libraries(profile: Profile) -> list[Table]:
    """The mapped files, a row a mapping."""
    strings, mappings, found = profile.strings, profile.mappings, []
    for filename, build_id in zip(mappings.filename.tolist(), mappings.build_id.tolist(), strict=True):
        path, code_id = strings.text(filename), strings.text(build_id)
        name = module_name(path)
        try:
            breakpad_id = debug_id(code_id) + "0"
        except ValueError:
            breakpad_id = debug_id("") + "0"
        found.append(
            {
                "arch": "",
                "name": name,
                "path": path,
                "debugName": name,
                "debugPath": path,
                "breakpadId": breakpad_id,
                "codeId": code_id or None,
            }
        )
    return found


def about(thread: SampledThread, kind: str, title: str) -> Iterator[tuple[str, Any]]:
    """What a thread is, field by field. One whose labels say nothing is called after its values, and its process after
    the profile."""
    process = thread.process_name or (f"process {thread.process}" if thread.process else title)
    own = process if thread.process else kind
    if thread.name or (thread.thread and not thread.is_main):
        own = thread.name or f"thread {thread.thread}"
    yield from {
        "processType": "default",
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "name": own,
        "processName": process,
        "isMainThread": thread.is_main,
        "pid": thread.process or UNKNOWN,
        "tid": int(thread.thread) if PLAIN.fullmatch(thread.thread) else thread.thread or UNKNOWN,
    }.items()


class ThreadWriter:
    """The tables of threads, each of which has the frames, functions and texts of its own samples. `times` are those of
    the samples, in nanoseconds from the beginning, if they are known."""

    def __init__(self, stacks: Stacks, times: UInt64 | None) -> None:
        profile = stacks.profile
        self._stacks, self._times = stacks, times
        self._addresses = library_addresses(profile)
        self._mappings = np.append(profile.locations.mapping, np.int32(NONE))
        self._library_of: dict[str, int] = {}
        for row, filename in enumerate(profile.mappings.filename.tolist()):
            self._library_of.setdefault(module_name(profile.strings.text(filename)), row)
        self._lengths = stacks.names.names.lengths() + stacks.names.files.lengths()
        self._cells, self._letters = stacks.budget(CELLS), stacks.budget(LETTERS)

    def tables(self, rows: Int64) -> Iterator[tuple[str, Table | list[str]]]:
        """The tables of a thread with the samples at `rows`, by name. Frames are those of the locations, so that each
        keeps its address."""
        stacks, used = self._stacks.taken(rows)
        functions, function_of = distinct_inverse(stacks.frames)
        names = stacks.names.taken(functions)
        stacks = replace(stacks, names=names, frames=function_of.astype(np.int32))
        tree = call_tree(stacks, np.arange(len(stacks.frames), dtype=np.int32))
        self._cells.spend(len(tree))
        self._letters.spend(int(self._lengths[functions].sum()))
        parents, frames = tree.parent[1:], tree.frame[1:]
        category = categories(stacks)
        addresses = self._addresses[used]
        symbols, symbol_of = native_symbols(stacks, self._mappings[used], addresses)
        modules = [module for module in dict.fromkeys(names.modules) if module and module in self._library_of]
        yield "samples", samples(stacks, tree, self._times[rows] if self._times is not None else None)
        yield "markers", table(data=[], name=[], startTime=[], endTime=[], phase=[], category=[])
        columns = {"frame": frames.tolist(), "prefix": optional(parents - 1), "category": category[frames].tolist()}
        yield "stackTable", table(**columns, subcategory=[0] * len(frames))
        yield "frameTable", frame_table(stacks, addresses, category, symbol_of)
        yield "funcTable", function_table(names, modules)
        yield "resourceTable", resource_table(2 * len(names), [self._library_of[module] for module in modules])
        yield "nativeSymbols", symbols
        yield "stringArray", [*names.names, *names.files, *modules]


def table(**columns: list[Any]) -> Table:
    """Columns of one length, and the length."""
    return {**columns, "length": len(next(iter(columns.values())))}


def optional(rows: Any) -> list[int | None]:
    """Rows of another table, None for those below 0."""
    return [row if row >= 0 else None for row in rows.tolist()]


def samples(stacks: Stacks, tree: CallTree, times: UInt64 | None) -> Table:
    """The samples by their `times`, or one sample for each distinct stack: its time is the sum of all before it, or its
    number."""
    column = stacks.default
    if times is not None:
        order = np.argsort(times, kind="stable")
        order = order[stacks.values[order, column] != 0]
        nodes, values = tree.ends[order], stacks.values[order, column]
    else:
        nodes = tree.leaves()
        values = tree.values[nodes, column]
    known = unit_of(stacks.types[column][1])
    if known is not None and known.kind == "time":
        kind, weights = "tracing-ms", values * (known.factor / NANOSECONDS)
        at = np.cumsum(np.abs(weights)) - np.abs(weights)
    else:
        size = known.factor if known is not None and known.kind == "size" else None
        kind, weights = ("samples", values) if size is None else ("bytes", values * size)
        at = np.arange(len(values))
    at = times[order] / NANOSECONDS if times is not None else at
    return table(stack=(nodes - 1).tolist(), time=at.tolist(), weight=weights.tolist()) | {"weightType": kind}


def categories(stacks: Stacks) -> Int64:
    """The row of `CATEGORIES` of each frame."""
    found = np.zeros(len(stacks.flags), np.int64)
    for row, flag in enumerate((FrameFlag.INLINED, FrameFlag.FOLDED, FrameFlag.UNSYMBOLIZED), start=1):
        found[(stacks.flags & np.uint8(flag)) != 0] = row
    return found


def frame_table(stacks: Stacks, addresses: Int64, category: Int64, symbol: Int64) -> Table:
    """A row for each frame of each location. Addresses are those in the mapped file, inside the call (R131, one
    adjustment), and the same for all frames of a location."""
    count = len(stacks.frames)
    location = stacks.location_of_frames()
    return table(
        address=addresses[location].tolist(),
        inlineDepth=(stacks.frame_offsets[location + 1] - 1 - np.arange(count)).tolist(),
        category=category.tolist(),
        subcategory=[0] * count,
        func=stacks.frames.tolist(),
        nativeSymbol=optional(symbol),
        innerWindowID=[None] * count,
        implementation=[None] * count,
        line=[line or None for line in stacks.lines.tolist()],
        column=[None] * count,
    )


def library_addresses(profile: Profile) -> Int64:
    """The address of each location in its mapped file, -1 for those in none, and for samples without a stack, which
    come last: int64[n + 1]."""
    mappings, locations = profile.mappings, profile.locations
    in_process = [profile.address_kind(row) == AddressKind.PROCESS for row in range(len(mappings.start))]
    base = np.where(in_process, mappings.start - mappings.file_offset, np.uint64(0))
    found = np.full(len(locations) + 1, NONE, np.int64)
    mapped = np.flatnonzero(locations.mapping != NONE)
    found[mapped] = (locations.address[mapped] - base[locations.mapping[mapped]]).view(np.int64)
    return np.maximum(found, NONE)


def native_symbols(stacks: Stacks, mappings: Int32, addresses: Int64) -> tuple[Table, Int64]:
    """The outermost functions by mapping, each with the first address that was seen of it, and the one of each frame.

    Frames that are inlined into a function have its symbol; unnamed code has none.
    """
    location = stacks.location_of_frames()
    outermost = stacks.frame_offsets[location + 1] - 1
    mapping, address = mappings[location], addresses[location]
    is_known = (mapping != NONE) & ((stacks.flags[outermost] & np.uint8(FrameFlag.UNSYMBOLIZED)) == 0)
    rows = np.flatnonzero(is_known)
    keys, number = distinct_inverse(pair(mapping[rows], stacks.frames[outermost[rows]]))
    first = np.full(len(keys), np.iinfo(np.int64).max)
    np.minimum.at(first, number, address[rows])
    library, function = unpair(keys)
    symbol_of = np.full(len(location), NONE, np.int64)
    symbol_of[rows] = number
    names = function.tolist()
    symbols = table(libIndex=library.tolist(), address=first.tolist(), name=names, functionSize=[None] * len(names))
    return symbols, symbol_of


def function_table(names: FrameNames, modules: Sequence[str]) -> Table:
    """A row for each of the names; resources are those of `modules`, in their order."""
    count = len(names)
    resource_of = {module: row for row, module in enumerate(modules)}
    no, nothing = [False] * count, [None] * count
    return table(
        name=list(range(count)),
        isJS=no,
        relevantForJS=no,
        resource=[resource_of.get(module, NONE) for module in names.modules],
        fileName=[count + row if file else None for row, file in enumerate(names.files)],
        lineNumber=nothing,
        columnNumber=nothing,
    )


def resource_table(first_name: int, rows: list[int]) -> Table:
    """A row for each of the mapped files at `rows`, whose names begin at `first_name` in the texts."""
    count = len(rows)
    names = [first_name + row for row in range(count)]
    return table(lib=rows, name=names, host=[None] * count, type=[LIBRARY] * count)

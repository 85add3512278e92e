"""Stacks as the processed format of the Firefox Profiler, with their names: nothing is left to symbolize.

The tables are those of version 48, which later versions of the viewer convert.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from symbolize.analysis import FrameFlag, Stacks, call_tree
from symbolize.core.arrays import Float64, Int64, distinct_inverse, pair, unpair
from symbolize.core.mapped_names import base_name
from symbolize.profile import NONE, AddressKind, Profile
from symbolize.profile.units import unit_of
from symbolize.symbol_files.breakpad import debug_id

VERSION: Final = 48
GECKO_VERSION: Final = 29
LIBRARY: Final = 1
"""The type of a resource that is a library."""
CATEGORIES: Final = (("Named", "blue"), ("Inlined", "lightblue"), ("Folded", "orange"), ("Unsymbolized", "grey"))
NANOSECONDS: Final = 1e6
"""Of a millisecond."""

Table = dict[str, Any]
"""Columns by name, and their `length`."""


def pieces(stacks: Stacks, profile: Profile, title: str, caveats: Sequence[str] = ()) -> Iterator[bytes]:
    """The file, with one thread, which has the default sample type. `stacks` are those of `profile`."""
    head = {"meta": meta(profile, title) | extra(caveats), "libs": libraries(profile), "pages": []}
    yield (json.dumps(head).removesuffix("}") + ', "threads": [{').encode()
    separator = ""
    for name, value in thread(stacks, profile, title):  # one table at a time: their texts are large
        yield f"{separator}{json.dumps(name)}: {json.dumps(value)}".encode()
        separator = ", "
    yield b"}]}\n"


def meta(profile: Profile, title: str) -> Table:
    """What the viewer has to know of the recording."""
    return {
        "interval": profile.period / NANOSECONDS if profile.period > 0 else 1,
        "startTime": max(profile.time_nanos, 0) / NANOSECONDS,
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


def extra(caveats: Sequence[str]) -> Table:
    """What the viewer lists among the facts of the recording."""
    entries = [{"label": "Binaries", "format": "string", "value": each} for each in caveats]
    return {"extra": [{"label": "Symbols", "entries": entries}]} if entries else {}


def libraries(profile: Profile) -> list[Table]:
    """The mapped files, a row a mapping."""
    strings, mappings, found = profile.strings, profile.mappings, []
    for filename, build_id in zip(mappings.filename.tolist(), mappings.build_id.tolist(), strict=True):
        path, code_id = strings.text(filename), strings.text(build_id)
        name = base_name(path)
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


def thread(stacks: Stacks, profile: Profile, title: str) -> Iterator[tuple[str, Any]]:
    """The thread that has all samples, field by field. Frames are those of the locations, so that each keeps its
    address."""
    kind, unit = stacks.types[stacks.default]
    tree = call_tree(stacks, np.arange(len(stacks.frames), dtype=np.int32))
    parents, frames, leaves = tree.parent[1:], tree.frame[1:], tree.leaves()
    category = categories(stacks)
    symbols, symbol_of = native_symbols(stacks, profile)
    yield from {
        "processType": "default",
        "processStartupTime": 0,
        "processShutdownTime": None,
        "registerTime": 0,
        "unregisterTime": None,
        "pausedRanges": [],
        "name": kind,
        "processName": title,
        "isMainThread": True,
        "pid": "0",
        "tid": 0,
    }.items()
    yield "samples", samples(leaves - 1, tree.values[leaves, stacks.default], unit)
    yield "markers", table(data=[], name=[], startTime=[], endTime=[], phase=[], category=[])
    columns = {"frame": frames.tolist(), "prefix": optional(parents - 1), "category": category[frames].tolist()}
    yield "stackTable", table(**columns, subcategory=[0] * len(frames))
    yield "frameTable", frame_table(stacks, profile, category, symbol_of)
    yield "funcTable", function_table(stacks, profile)
    yield "resourceTable", resource_table(2 * len(stacks.names), len(profile.mappings.start))
    yield "nativeSymbols", symbols
    yield "stringArray", string_array(stacks, profile)


def table(**columns: list[Any]) -> Table:
    """Columns of one length, and the length."""
    return {**columns, "length": len(next(iter(columns.values())))}


def optional(rows: Any) -> list[int | None]:
    """Rows of another table, None for those below 0."""
    return [row if row >= 0 else None for row in rows.tolist()]


def samples(stacks: Int64, values: Float64, unit: str) -> Table:
    """One sample for each distinct stack. Its time is the sum of all before it, or its number."""
    known = unit_of(unit)
    if known is not None and known.kind == "time":
        kind, weights = "tracing-ms", values * (known.factor / NANOSECONDS)
        times = np.cumsum(np.abs(weights)) - np.abs(weights)
    else:
        size = known.factor if known is not None and known.kind == "size" else None
        kind, weights = ("samples", values) if size is None else ("bytes", values * size)
        times = np.arange(len(values))
    return table(stack=stacks.tolist(), time=times.tolist(), weight=weights.tolist()) | {"weightType": kind}


def categories(stacks: Stacks) -> Int64:
    """The row of `CATEGORIES` of each frame."""
    found = np.zeros(len(stacks.flags), np.int64)
    for row, flag in enumerate((FrameFlag.INLINED, FrameFlag.FOLDED, FrameFlag.UNSYMBOLIZED), start=1):
        found[(stacks.flags & np.uint8(flag)) != 0] = row
    return found


def frame_table(stacks: Stacks, profile: Profile, category: Int64, symbol: Int64) -> Table:
    """A row for each frame of each location. Addresses are those in the mapped file, inside the call (R131, one
    adjustment), and the same for all frames of a location."""
    count = len(stacks.frames)
    location = stacks.location_of_frames()
    return table(
        address=library_addresses(profile)[location].tolist(),
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


def native_symbols(stacks: Stacks, profile: Profile) -> tuple[Table, Int64]:
    """The outermost functions by mapping, each with the first address that was seen of it, and the one of each frame.

    Frames that are inlined into a function have its symbol; unnamed code has none.
    """
    location = stacks.location_of_frames()
    outermost = stacks.frame_offsets[location + 1] - 1
    mapping, address = (
        np.append(profile.locations.mapping, np.int32(NONE))[location],
        library_addresses(profile)[location],
    )
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


def string_array(stacks: Stacks, profile: Profile) -> list[str]:
    """The texts of a thread: names of functions, their files, and names of mapped files, each table in its order."""
    libraries = (base_name(profile.strings.text(row)) for row in profile.mappings.filename.tolist())
    return [*stacks.names.names, *stacks.names.files, *libraries]


def function_table(stacks: Stacks, profile: Profile) -> Table:
    """A row for each of the names of `stacks`."""
    names, strings = stacks.names, profile.strings
    count = len(names)
    mapping_of: dict[str, int] = {}
    for row, filename in enumerate(profile.mappings.filename.tolist()):
        mapping_of.setdefault(base_name(strings.text(filename)), row)
    no, nothing = [False] * count, [None] * count
    return table(
        name=list(range(count)),
        isJS=no,
        relevantForJS=no,
        resource=[mapping_of.get(module, NONE) if module else NONE for module in names.modules],
        fileName=[count + row if file else None for row, file in enumerate(names.files)],
        lineNumber=nothing,
        columnNumber=nothing,
    )


def resource_table(first_name: int, count: int) -> Table:
    """A row for each of `count` mapped files, whose names begin at `first_name` in the texts."""
    names = [first_name + row for row in range(count)]
    return table(lib=list(range(count)), name=names, host=[None] * count, type=[LIBRARY] * count)

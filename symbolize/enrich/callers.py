"""What callers tell, stack by stack: the names of code that several functions share (R357, shared code by callers), and
the frames that tail calls took off the stacks (R360, frames of tail calls)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import (
    Bool,
    Float64,
    Int32,
    Int64,
    UInt64,
    distinct_inverse,
    offsets_of,
    pair,
    ranges,
    unpair,
)
from symbolize.core.folded_code import FoldedCode
from symbolize.enrich.frames import shown_functions
from symbolize.names import Mode, own_name
from symbolize.profile import NONE, Functions, Lines, Locations, Profile, Samples
from symbolize.symbols import UNDECIDED, Function, Namesakes

Decide = Callable[[Int64, Int64], Int32]
"""Which function of its folded code each frame at some places of the stacks is, UNDECIDED where nothing says it; given
the number of the code of each location, and the places."""
TAIL_CALL_MARK: Final = b" [tail call]"
MASK64: Final = (1 << 64) - 1


class DecidedCode(NamedTuple):
    """What callers decided: the locations in each shared code, those that were added too, and the value of the frames
    in it that have a name now; and which location each of the added ones was."""

    rows: list[Int64]
    value: Float64
    origin: Int64


def name_by_callers(
    profile: Profile, folded: Sequence[tuple[FoldedCode, Int64]], namesakes: Namesakes, mode: Mode, decide: Decide
) -> DecidedCode:
    """Give the `folded` code at some locations the name of the function that was called, as `mode` shows it.

    A location that is another function than the one that is shown gets a location of its own, behind all others, with
    the name and the declaration of that function.

    If the caller's code is shared too, it is decided first. What was called by a pointer, by code without call
    sites, or as a function that is none of them, keeps the name that is shown without callers. `is_folded` stays
    true (R357, shared code by callers).
    """
    samples, count = profile.samples, len(profile.locations)
    group = np.full(count, -1, np.int64)
    for number, (_, rows) in enumerate(folded):
        group[rows] = number
    at = np.flatnonzero(group[samples.locations] >= 0)
    chosen = decide(group, at)
    decided = chosen != UNDECIDED
    value = values_of(profile, at, group[samples.locations[at]], decided, len(folded))
    at, chosen = at[decided], chosen[decided]
    location = samples.locations[at]
    other = chosen != functions_there(profile, namesakes, group)[location]
    at, keys = at[other], pair(location[other], chosen[other])
    distinct_keys, which = distinct_inverse(keys)
    origin, function = (column.astype(np.int64) for column in unpair(distinct_keys))
    moved = samples.locations.copy()
    moved[at] = count + which
    profile.samples = replace(samples, locations=moved)
    profile.locations = with_functions(profile, origin, add_functions(profile, folded, mode, group[origin], function))
    if raw := profile.unknown.get("location"):
        profile.unknown = profile.unknown | {"location": raw.taken(np.concatenate((np.arange(count), origin)))}
    added = (count + np.flatnonzero(group[origin] == number) for number in range(len(folded)))
    every = [np.concatenate((rows, new)) for (_, rows), new in zip(folded, added, strict=True)]
    return DecidedCode(every, value, origin)


def values_of(profile: Profile, at: Int64, group: Int64, decided: Bool, count: int) -> Float64:
    """The sample value of the frames `at` places of the stacks that are `decided`, by their shared code: float64."""
    column = profile.weight_column()
    if column < 0:
        return np.zeros(count)
    sample = np.searchsorted(profile.samples.location_offsets, at[decided], side="right") - 1
    weights = np.abs(profile.samples.values[sample, column].astype(np.float64))
    return np.bincount(group[decided], weights, minlength=count).astype(np.float64)


def functions_there(profile: Profile, namesakes: Namesakes, group: Int64) -> Int32:
    """Which function of its shared code each location shows: int32[locations], UNDECIDED without any."""
    locations, functions, strings = profile.locations, profile.functions, profile.strings
    shown = np.full(len(locations), UNDECIDED, np.int32)
    rows = np.flatnonzero((group >= 0) & locations.has_lines())
    function = locations.lines.function[locations.line_offsets[rows + 1] - 1]
    keys, which = distinct_inverse(pair(group[rows], function))
    found = [
        namesakes.find(Function(strings[int(functions.system_name[row])], b"", b"", 0), code)
        for code, row in zip(*(column.tolist() for column in unpair(keys)), strict=True)
    ]
    shown[rows] = np.array(found, np.int32)[which]
    return shown


def add_functions(
    profile: Profile, folded: Sequence[tuple[FoldedCode, Int64]], mode: Mode, group: Int64, function: Int64
) -> Int64:
    """Add functions of folded code to the profile; the row of each."""
    keys, which = distinct_inverse(pair(group, function))
    add = profile.strings.add
    functions = [
        folded[code][0].functions[row] for code, row in zip(*(part.tolist() for part in unpair(keys)), strict=True)
    ]
    rows = [
        (add(shown), add(own_name(name)), add(path), line)
        for shown, (name, path, line) in zip(shown_functions(functions, mode), functions, strict=True)
    ]
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    name, system_name, filename = (column.astype(np.int32) for column in columns[:3])
    added = Functions(name, system_name, filename, columns[3])
    first = len(profile.functions)
    profile.functions = Functions.joined([profile.functions, added])
    return first + which


def with_functions(profile: Profile, origin: Int64, function: Int64) -> Locations:
    """The locations of the profile, and behind them those at `origin` again with another outermost function, whose line
    is that of its declaration: the code has only lines of the function that is shown."""
    added = profile.locations.take(origin)
    outermost = added.line_offsets[1:] - 1
    added.lines.function[outermost] = function
    added.lines.line[outermost] = profile.functions.start_line[function]
    added.lines.column[outermost] = 0
    return Locations.joined([profile.locations, added])


def insert_tail_callers(
    profile: Profile, caller: Int64, which: Int64, vaddrs: UInt64, lost: Sequence[Sequence[int]]
) -> UInt64:
    """Insert the callers that tail calls took off the stacks, as locations behind the others; the vaddr of each.

    Pairs of locations have a `caller` and, from its side on, the vaddrs of calls that were `lost`; `which` is for each
    frame of the stacks its pair as the called one. `vaddrs` are those of all locations.

    Where the caller calls X, the next frame is another function F, and all chains from X to F are known, the
    functions that these have in common at their begin and at their end are put between, at their calls, as gdb
    does. They are marked `[tail call]`, their linked names are not (R360, frames of tail calls).
    """
    locations = profile.locations
    added: dict[tuple[int, int, int], int] = {}
    inserted: list[list[int]] = [[]] * len(lost)
    for number in [number for number, calls in enumerate(lost) if calls]:
        row = int(caller[number])
        rows: list[int] = []
        for vaddr in lost[number]:
            address = (int(locations.address[row]) + vaddr - int(vaddrs[row])) & MASK64
            key = int(locations.mapping[row]), address, vaddr
            rows.append(added.setdefault(key, len(locations) + len(added)))
        inserted[number] = rows[::-1]  # from the leaf on
    if not added:
        return np.zeros(0, np.uint64)
    count = len(added)
    mappings, addresses, found = (np.array(column, np.uint64) for column in zip(*added, strict=True))
    new = Locations(
        addresses,
        mappings.astype(np.int32),
        np.zeros(count, np.bool_),
        np.zeros(count + 1, np.int64),
        Lines(),
        np.zeros(count if len(locations.rel_pc) else 0, np.uint64),
        np.full(count if len(locations.source_row) else 0, -1, np.int64),
    )
    profile.locations = Locations.joined([locations, new])
    profile.samples = with_inserted(profile.samples, which, inserted)
    return found


def with_inserted(samples: Samples, which: Int64, inserted: list[list[int]]) -> Samples:
    """The samples with the locations `inserted` behind the called frame of each pair; `which` is that of each frame."""
    first = offsets_of([len(rows) for rows in inserted])
    more = np.append(np.diff(first), 0)[which]
    offsets = offsets_of(more + 1)
    locations = np.empty(int(offsets[-1]), np.int32)
    locations[offsets[:-1]] = samples.locations
    at = np.flatnonzero(more)
    rows = np.array([row for rows in inserted for row in rows], np.int32)
    locations[ranges(offsets[at] + 1, more[at])] = rows[ranges(first[which[at]], more[at])]
    return replace(samples, locations=locations, location_offsets=offsets[samples.location_offsets])


def mark_tail_callers(profile: Profile, rows: Int64) -> None:
    """Append TAIL_CALL_MARK to the names of the functions of the locations `rows`; linked names stay."""
    locations, functions = profile.locations, profile.functions
    counts = np.diff(locations.line_offsets)[rows]
    lines = ranges(locations.line_offsets[:-1][rows], counts)
    lines = lines[locations.lines.function[lines] != NONE]
    used, which = distinct_inverse(locations.lines.function[lines])
    marked = functions.take(used)
    named = np.flatnonzero(marked.name)
    texts = [profile.strings[number] + TAIL_CALL_MARK for number in marked.name[named].tolist()]
    marked.name[named] = profile.strings.add_all(texts)
    profile.functions = Functions.joined([functions, marked])
    locations.lines.function[lines] = len(functions) + which

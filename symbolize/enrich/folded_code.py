"""Names code that several functions share by who called it, stack by stack (R357, shared code by callers)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import Bool, Float64, Int32, Int64, distinct_inverse, pair, unpair
from symbolize.core.folded_code import FoldedCode
from symbolize.enrich.frames import shown_functions
from symbolize.names import Mode, own_name
from symbolize.profile import Functions, Locations, Profile
from symbolize.symbols import UNDECIDED, Function, Namesakes

Decide = Callable[[Int64, Int64], Int32]
"""Which function of its folded code each frame at some places of the stacks is, UNDECIDED where nothing says it; given
the number of the code of each location, and the places."""


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

"""Names code that several functions share by who called it: the caller's call site says which function was meant (R355,
described calls; R357, shared code by callers)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from posixpath import basename
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import Bool, Float64, Int32, Int64, distinct_inverse, is_among, pair, unpair
from symbolize.enrich.frames import LookupResult
from symbolize.names import own_name
from symbolize.profile import Functions, Locations, Profile
from symbolize.symbols import Function, name_key, spellings_of

Call = tuple[Function, Function | None]
"""A function that makes a call and the one that is called, None by a pointer."""

UNDECIDED: Final = -1

MAX_ROUNDS: Final = 64
"""How many functions with shared code may call one another in a stack; those below them stay undecided."""


class SharedCode(NamedTuple):
    """Code that several functions share: the locations in it, and readable name, linked name, path and line of each."""

    rows: Int64
    functions: Sequence[tuple[str, str, str, int]]


class Namesakes:
    """Finds functions among those that share code, by their names."""

    def __init__(self, shared: Sequence[SharedCode]) -> None:
        self._shared = shared
        self._by_name: dict[bytes, list[tuple[int, int]]] = {}
        self._found: dict[tuple[Function, int], int] = {}
        linked = [function[1].encode() for code in shared for function in code.functions]
        places = ((number, row) for number, code in enumerate(shared) for row in range(len(code.functions)))
        for spellings, place in zip(spellings_of(linked), places, strict=True):
            for each in spellings:
                self._by_name.setdefault(each, []).append(place)

    def find(self, function: Function, number: int) -> int:
        """Which function of the shared code `number` it is: by its name, and where several are called the same, by its
        declaration; UNDECIDED if it is none of them."""
        key = function, number
        if key not in self._found:
            same = [row for code, row in self._by_name.get(name_key(function), []) if code == number]
            if len(same) > 1:
                functions = self._shared[number].functions
                name, line = function.declared
                declared = name.decode(errors="replace"), line
                same = [row for row in same if (basename(functions[row][2]), functions[row][3]) == declared]
            self._found[key] = same[0] if len(same) == 1 else UNDECIDED
        return self._found[key]


class Decided(NamedTuple):
    """What callers decided: the locations in each shared code, those that were added too, and the value of the frames
    in it that have a name now; and which location each of the added ones was."""

    rows: list[Int64]
    value: Float64
    origin: Int64


def name_by_callers(profile: Profile, shared: Sequence[SharedCode], lookups: Sequence[LookupResult]) -> Decided:
    """Give shared code the name of the function that was called, stack by stack.

    A location that is another function than the one that is shown gets a location of its own, behind all others, with
    the name and the declaration of that function.
    """
    samples, count = profile.samples, len(profile.locations)
    group = np.full(count, -1, np.int64)
    for number, code in enumerate(shared):
        group[code.rows] = number
    at = np.flatnonzero(group[samples.locations] >= 0)
    namesakes = Namesakes(shared)
    chosen = functions_called(profile, namesakes, group, at, lookups)
    decided = chosen != UNDECIDED
    value = values_of(profile, at, group[samples.locations[at]], decided, len(shared))
    at, chosen = at[decided], chosen[decided]
    location = samples.locations[at]
    other = chosen != shown_functions(profile, namesakes, group)[location]
    at, keys = at[other], pair(location[other], chosen[other])
    distinct_keys, which = distinct_inverse(keys)
    origin, function = (column.astype(np.int64) for column in unpair(distinct_keys))
    moved = samples.locations.copy()
    moved[at] = count + which
    profile.samples = replace(samples, locations=moved)
    profile.locations = with_functions(profile, origin, add_functions(profile, shared, group[origin], function))
    if raw := profile.unknown.get("location"):
        profile.unknown = profile.unknown | {"location": raw.taken(np.concatenate((np.arange(count), origin)))}
    added = (count + np.flatnonzero(group[origin] == number) for number in range(len(shared)))
    rows = [np.concatenate((code.rows, new)) for code, new in zip(shared, added, strict=True)]
    return Decided(rows, value, origin)


def functions_called(
    profile: Profile,
    namesakes: Namesakes,
    group: Int64,
    at: Int64,
    lookups: Sequence[LookupResult],
) -> Int32:
    """Which function of its shared code each frame `at` a place of the stacks is, by its caller: int32, UNDECIDED where
    that says nothing. `group` is the shared code of each location.

    A caller whose own code is shared has to be decided first, because each function there has other calls.
    """
    samples = profile.samples
    is_last = np.zeros(len(samples.locations) + 1, np.bool_)
    is_last[samples.location_offsets[1:] - 1] = True  # of empty stacks that is the one before, or behind all
    called = np.flatnonzero(~is_last[at])
    callers, caller = distinct_inverse(samples.locations[at[called] + 1])
    calls = calls_at(lookups, callers.astype(np.int64))
    above = np.searchsorted(at, at[called] + 1)
    above[np.append(at, -1)[above] != at[called] + 1] = len(at)
    chosen = np.full(len(at) + 1, UNDECIDED, np.int32)  # the last is for callers whose code is not shared
    callee = group[samples.locations[at[called]]]

    @cache
    def decide(callee: int, caller: int, choice: int) -> int:
        """The function of shared code `callee` that the one `choice` of a caller calls."""
        own = int(group[callers[caller]])
        if own >= 0 and choice == UNDECIDED:
            return UNDECIDED
        found = set()
        for made_by, to in calls[caller]:
            if own < 0 or namesakes.find(made_by, own) == choice:
                found.add(namesakes.find(to, callee) if to is not None else UNDECIDED)
        return found.pop() if len(found) == 1 else UNDECIDED

    pairs, of_pair = distinct_inverse(pair(callee, caller))
    of_pairs = [column.tolist() for column in unpair(pairs)]
    for _ in range(MAX_ROUNDS):
        keys, which = distinct_inverse(pair(of_pair, chosen[above] + 1))
        asked = zip(*(column.tolist() for column in unpair(keys)), strict=True)
        answers = [decide(of_pairs[0][row], of_pairs[1][row], choice - 1) for row, choice in asked]
        found = np.array(answers, np.int32)[which]
        if np.array_equal(found, chosen[called]):
            break
        chosen[called] = found
    return chosen[:-1]


def calls_at(lookups: Sequence[LookupResult], locations: Int64) -> list[list[Call]]:
    """The calls at each of `locations` (ascending), which are those of callers, by the lookups of their binaries."""
    found: list[list[Call]] = [[] for _ in locations]
    for lookup in lookups:
        calls, here = lookup.answer.calls, np.flatnonzero(is_among(lookup.rows, locations))
        numbers = np.searchsorted(locations, lookup.rows[here])
        bounds = calls.at(lookup.answer.vaddrs[here], lookup.answer.machine)
        for number, first, last in zip(*(column.tolist() for column in (numbers, *bounds)), strict=True):
            made = zip(calls.caller[first:last].tolist(), calls.callee[first:last].tolist(), strict=True)
            found[number] += [(calls.functions[by], calls.functions[to] if to >= 0 else None) for by, to in made]
    return found


def values_of(profile: Profile, at: Int64, group: Int64, decided: Bool, count: int) -> Float64:
    """The sample value of the frames `at` places of the stacks that are `decided`, by their shared code: float64."""
    column = profile.weight_column()
    if column < 0:
        return np.zeros(count)
    sample = np.searchsorted(profile.samples.location_offsets, at[decided], side="right") - 1
    weights = np.abs(profile.samples.values[sample, column].astype(np.float64))
    return np.bincount(group[decided], weights, minlength=count).astype(np.float64)


def shown_functions(profile: Profile, namesakes: Namesakes, group: Int64) -> Int32:
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


def add_functions(profile: Profile, shared: Sequence[SharedCode], group: Int64, function: Int64) -> Int64:
    """Add functions of shared code to the profile; the row of each."""
    keys, which = distinct_inverse(pair(group, function))
    add = profile.strings.add
    rows = []
    for code, row in zip(*(column.tolist() for column in unpair(keys)), strict=True):
        shown, linked, path, line = shared[code].functions[row]
        rows.append((add(shown.encode()), add(own_name(linked.encode())), add(path.encode()), line))
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

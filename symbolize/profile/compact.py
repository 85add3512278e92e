"""Compaction: rows that nothing refers to are dropped, equal functions merged."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import NONE, Bool, Int32, marked, taken
from symbolize.core.grouping import first_of_numbers, number_tuples
from symbolize.profile.model import Lines, Profile, RawFields


def compact(profile: Profile) -> Profile:
    """A profile without the locations no sample uses and the functions no line uses, each function once.

    Functions are the same if name, system name, file and start line are, and neither has unknown fields. What is kept
    stays in its order, of equal functions the first; mappings all stay, because row 0 is the main binary (pprof
    schema). The given profile is not changed; the two share the columns that are the same.
    """
    unknown = dict(profile.unknown)
    samples, locations = profile.samples, profile.locations
    used = used_locations(profile)
    if not used.all():
        samples = replace(samples, locations=taken(_ranks(used), samples.locations))
        locations = locations.take(np.flatnonzero(used))
        _keep_unknown(unknown, "location", used)
    lines = locations.lines
    kept, rows = _distinct_functions(profile, lines.function)
    functions = profile.functions
    if not kept.all():
        named = lines.function != NONE
        renumbered = np.full(len(lines), NONE, np.int32)
        renumbered[named] = rows[lines.function[named]]
        locations = replace(locations, lines=Lines(renumbered, lines.line, lines.column))
        functions = functions.take(kept)
        _keep_unknown(unknown, "function", kept)
    return replace(profile, samples=samples, locations=locations, functions=functions, unknown=unknown)


def used_locations(profile: Profile) -> Bool:
    """Which locations are on a stack, and so in the compact profile: bool[n]."""
    return marked(profile.samples.locations, len(profile.locations))


def _ranks(kept: Bool) -> Int32:
    """For each kept row its number among the kept."""
    return (np.cumsum(kept) - 1).astype(np.int32)


def _distinct_functions(profile: Profile, references: Int32) -> tuple[Bool, Int32]:
    """Which functions are kept, and for each one in use the number of its equal among the kept."""
    functions = profile.functions
    used = np.flatnonzero(marked(references, len(functions), references != NONE))
    keys: list[NDArray[Any]] = [functions.start_line, functions.filename, functions.system_name, functions.name]
    if raw := profile.unknown.get("function"):
        # Fields of a newer schema may tell functions apart.
        extra = np.zeros(len(functions), np.int32)
        extra[raw.rows] = raw.rows + 1
        keys.append(extra)
    numbers = number_tuples(np.stack([key[used].astype(np.uint64) for key in keys], axis=1).data)
    kept = marked(used[first_of_numbers(numbers)], len(functions))
    rows = np.full(len(functions), NONE, np.int32)
    rows[used] = numbers
    return kept, rows


def _keep_unknown(unknown: dict[str, RawFields], table: str, kept: Bool) -> None:
    """Renumber the unknown fields of a table whose rows were dropped."""
    if raw := unknown.get(table):
        unknown[table] = raw.taken(np.flatnonzero(kept))

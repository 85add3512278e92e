"""Compaction of a profile, whose unused rows go; equal samples become one; and which rows of a table are equal."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import NONE, Bool, Int32, marked, taken, views
from symbolize.core.interning import add_up, first_of_numbers, number_lists, number_tuples
from symbolize.profile.model import Lines, Profile, RawFields, Samples

TOO_LARGE = "sums of values were too large and are the largest number instead"


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


def calling_locations(profile: Profile, called: Bool) -> Bool:
    """Which locations are above one that is `called` on a stack: bool[n]."""
    samples = profile.samples
    is_above = np.zeros(len(samples.locations), np.bool_)
    is_above[1:] = taken(called, samples.locations[:-1])
    is_above[samples.location_offsets[:-1][np.diff(samples.location_offsets) > 0]] = False
    return marked(samples.locations, len(profile.locations), is_above)


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


def combine(profile: Profile) -> Profile:
    """A profile in which samples with equal stacks, labels and unknown fields are one, with the sums of their values.

    Samples are in the order of the first of each; the order of labels with different keys makes no difference. A sum
    that exceeds 64 bits is the largest number, and a warning counts these. Samples whose stack is still to be unwound
    stay apart. The given profile is not changed; the two share the columns that are the same.
    """
    samples = profile.samples
    numbers = number_samples(profile)
    is_first = first_of_numbers(numbers)
    if is_first.all():
        return profile
    sums = np.zeros((int(is_first.sum()), samples.values.shape[1]), np.int64)
    exceeded = add_up(*views(samples.values, numbers, sums))
    unknown, warnings = dict(profile.unknown), profile.warnings
    if raw := unknown.get("sample"):
        unknown["sample"] = raw.taken(np.flatnonzero(is_first))
    if exceeded:
        warnings = [*warnings, f"{exceeded} {TOO_LARGE}"]
    samples, dumps = replace(samples.taken(is_first), values=sums), profile.stack_dumps
    if dumps is not None:
        dumps = replace(dumps, sample=numbers[dumps.sample].astype(np.int64))
    times = profile.sample_times
    if times is not None:
        times = replace(times, sample=numbers[times.sample].astype(np.int64))
    return replace(profile, samples=samples, unknown=unknown, warnings=warnings, stack_dumps=dumps, sample_times=times)


def number_samples(profile: Profile) -> Int32:
    """For each sample the number of its equals, counted from 0 in the order of the first of each: int32[n]."""
    samples = profile.samples
    stacks = number_lists(*views(samples.location_offsets, samples.locations))
    labels = [number_labels(samples)] if len(samples.labels) else []
    columns = [stacks, *labels, *number_fields(profile, "sample", len(samples))]
    if profile.stack_dumps is not None:  # callers that are not known yet may differ
        own = np.zeros(len(samples), np.int32)
        own[profile.stack_dumps.sample] = np.arange(1, len(profile.stack_dumps) + 1)
        columns.append(own)
    return number_rows(*columns) if len(columns) > 1 else stacks


def number_fields(profile: Profile, table: str, count: int) -> list[Int32]:
    """For each of the `count` rows of a table the number of those with the same unknown fields, 0 without any: a column
    for `number_rows`, or none if no row has any."""
    raw = profile.unknown.get(table)
    if raw is None:
        return []
    texts: dict[bytes, int] = {}
    numbers = np.zeros(count, np.int32)
    numbers[raw.rows] = [texts.setdefault(raw[entry], len(texts) + 1) for entry in range(len(raw))]
    return [numbers]


def number_labels(samples: Samples) -> Int32:
    """For each sample the number of those with the same labels: int32[n]."""
    labels = samples.labels
    numbers = number_rows(labels.key, labels.text, labels.number, labels.unit)
    counts = np.diff(samples.label_offsets)
    if counts.max(initial=0) > 1:
        # Several values of one key are a list, whose order matters.
        numbers = numbers[np.lexsort((labels.key, np.repeat(np.arange(len(samples)), counts)))]
    found: Int32 = number_lists(*views(samples.label_offsets, numbers))
    return found


def number_rows(*columns: NDArray[Any]) -> Int32:
    """For each row of some columns the number of its equals: int32[n]."""
    table = np.empty((len(columns[0]), len(columns)), np.uint64)
    for row, column in enumerate(columns):
        table[:, row] = column  # negative numbers wrap around
    numbers: Int32 = number_tuples(table.data)
    return numbers

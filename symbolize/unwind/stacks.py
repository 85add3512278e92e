"""Replaces the copies of stacks of a profile by the frames that are found in them."""

from collections import Counter
from collections.abc import Set
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Bool, Int32, Int64, first_of_runs, marked, offsets_of, ranges
from symbolize.core.errors import printable
from symbolize.core.mapped_names import base_name
from symbolize.profile import Labels, Locations, Profile, Samples, StackDumps, StackSource, combine
from symbolize.profile.sample_times import first_times
from symbolize.unwind.unwinder import END_TEXTS, CodeFinder, End, Unwinder, Unwound, is_sound

LABEL, CUT = b"unwind_error", b"memory_invalid"
"""The label of samples whose stacks were cut, as it is in profiles of Perfetto."""
MAX_FILES = 5
"""Files that are named in a warning."""
NAMED_ENDS = (End.NO_BINARY, End.NO_FRAME_INFO, End.BAD_FRAME_INFO, End.NO_FILE, End.OTHER_MACHINE)
"""Ends for which the file explains something."""


class Callers(NamedTuple):
    """A profile whose stacks are unwound, the mappings that they `reached`, and which locations are no evidence for
    binaries, see `Unwound`."""

    profile: Profile
    reached: Set[int]
    no_evidence: Bool


def unwind(profile: Profile, find: CodeFinder) -> Callers:
    """A profile with the callers that are found in its stack dumps, which it has no more.

    `find` gives the code of a mapping. Warnings say how many stacks end early, and why; samples whose stacks are cut at
    the end of the copy have a label (R311, cut stacks). Callers that came along are of whoever found them; else all are
    own ones. The given profile is not changed. Raises ReadFailure if the file with the stack dumps has changed.
    """
    dumps = profile.stack_dumps
    if dumps is None:
        return Callers(profile, set(), np.zeros(len(profile.locations), np.bool_))
    before = [warning for warning in profile.warnings if warning != dumps.warning]
    if not is_sound(dumps):
        text = (
            f"{len(dumps):,} stacks of {printable(dumps.machine)} lack their callers: only x86-64 and aarch64 are read"
        )
        profile = replace(profile, stack_dumps=None, warnings=[*before, text])
        return Callers(profile, set(), np.zeros(len(profile.locations), np.bool_))
    unwinder = Unwinder(dumps, first_times(profile)[dumps.sample], profile.mappings, find)
    found = unwinder.run()
    dumps.check()
    profile = replace(profile, strings=profile.strings.copy(), stack_dumps=None)
    locations, rows = _with_locations(profile.locations, found)
    samples = _with_callers(profile.samples, dumps, found, rows)
    cut = dumps.sample[found.ends == End.TRUNCATED]
    label = Labels.zeros(1)
    label.key[0], label.text[0] = profile.strings.add_all([LABEL, CUT])
    samples = _with_label(samples, cut, label)
    warnings = [*before, *_warnings(profile, dumps, found)]
    source = profile.stack_source or StackSource.OWN_UNWINDING
    profile = replace(profile, locations=locations, samples=samples, warnings=warnings, stack_source=source)
    return Callers(combine(profile), unwinder.reached, marked(rows[found.no_evidence], len(locations)))


def _with_locations(locations: Locations, found: Unwound) -> tuple[Locations, NDArray[np.int64]]:
    """The locations with those of all sites, and the row of each; one that is there without lines is used."""
    free = np.flatnonzero(~locations.has_lines())
    mapping = np.concatenate((locations.mapping[free], found.mapping))
    address = np.concatenate((locations.address[free], found.address))
    order = np.lexsort((address, mapping))  # stable: what is there comes first
    new = first_of_runs(mapping[order]) | first_of_runs(address[order])
    first = np.empty(len(order), np.int64)
    first[order] = order[new][np.cumsum(new) - 1]
    added = np.flatnonzero(first[len(free) :] == np.arange(len(free), len(first)))
    count = len(added)
    row = np.concatenate((free, np.zeros(len(found.mapping), np.int64)))
    row[len(free) + added] = len(locations) + np.arange(count)
    rows = row[first[len(free) :]]
    behind = np.full(count, locations.line_offsets[-1])
    return Locations(
        np.concatenate((locations.address, found.address[added])),
        np.concatenate((locations.mapping, found.mapping[added])),
        np.concatenate((locations.is_folded, np.zeros(count, np.bool_))),
        np.concatenate((locations.line_offsets, behind)),
        locations.lines,
        np.concatenate((locations.rel_pc, np.zeros(count, np.uint64))) if len(locations.rel_pc) else locations.rel_pc,
    ), rows


def _with_callers(samples: Samples, dumps: StackDumps, found: Unwound, rows: NDArray[np.int64]) -> Samples:
    """The samples with the callers behind their stacks; the leaf is there."""
    callers = np.maximum(np.diff(found.offsets) - 1, 0)
    counts = np.diff(samples.location_offsets)
    more = np.zeros(len(samples), np.int64)
    more[dumps.sample] = callers
    offsets = offsets_of(counts + more)
    stacks = np.empty(offsets[-1], np.int32)
    stacks[ranges(offsets[:-1], counts)] = samples.locations
    behind = offsets[dumps.sample] + counts[dumps.sample]
    stacks[ranges(behind, callers)] = rows[found.sites[ranges(found.offsets[:-1] + 1, callers)]]
    return replace(samples, location_offsets=offsets, locations=stacks)


def _with_label(samples: Samples, rows: Int64, label: Labels) -> Samples:
    """The samples, those at `rows` with one more label."""
    if not len(rows):
        return samples
    more = np.zeros(len(samples), np.int64)
    more[rows] = 1
    counts = np.diff(samples.label_offsets)
    offsets = offsets_of(counts + more)
    source = np.full(offsets[-1], len(samples.labels), np.int64)
    source[ranges(offsets[:-1], counts)] = np.arange(len(samples.labels))
    labels = Labels.joined([samples.labels, label]).take(source)
    return replace(samples, label_offsets=offsets, labels=labels)


def _warnings(profile: Profile, dumps: StackDumps, found: Unwound) -> list[str]:
    """How many stacks end early, by reason, those with the highest value first (R309, ends of stacks)."""
    column = profile.weight_column()
    values = np.ones(len(dumps))
    if column >= 0:
        values = np.abs(profile.samples.values[dumps.sample, column].astype(np.float64))
    weights = {end: float(values[found.ends == end].sum()) for end in END_TEXTS}
    sentences = []
    for end in sorted(END_TEXTS, key=lambda end: (-weights[end], end)):
        rows = np.flatnonzero(found.ends == end)
        if len(rows):
            files = _files(profile, found, rows) if end in NAMED_ENDS else ""
            sentences.append(f"{len(rows):,} of {len(dumps):,} stacks end {END_TEXTS[end]}{files}")
    return sentences


def _files(profile: Profile, found: Unwound, rows: Int64) -> str:
    """Where stacks end, by file, in brackets."""
    last: Int32 = found.sites[found.offsets[rows + 1] - 1]
    names: Counter[str] = Counter()
    for mapping, count in enumerate(np.bincount(found.mapping[last], minlength=len(profile.mappings)).tolist()):
        if count:
            name = base_name(profile.strings.text(profile.mappings.filename[mapping]))
            names[printable(name) or "without a name"] += count
    parts = [f"{name} {count:,}" for name, count in sorted(names.items(), key=lambda item: (-item[1], item[0]))]
    more = f", and {len(parts) - MAX_FILES} more files" if len(parts) > MAX_FILES else ""
    return f": {', '.join(parts[:MAX_FILES])}{more}"

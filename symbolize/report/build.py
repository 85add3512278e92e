"""From the outcomes of all locations to the report: one pass over the stacks, then sums by mapping and reason, and how
much is in stacks that end early."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from symbolize.analysis import FrameFlag, Stacks, stacks_of
from symbolize.analysis.frames import Texts
from symbolize.analysis.totals import FunctionTotals, sums
from symbolize.core.arrays import AT_ONCE, Bool, Float64, Int32, Int64, UInt8, distinct, marked
from symbolize.core.outcome import MappingOutcome
from symbolize.core.reasons import Reason
from symbolize.profile import NONE, Profile, StackSource
from symbolize.profile.sample_types import with_types
from symbolize.report.model import FoldedRow, MappingRow, Report

KERNEL: Final = 1 << 63
"""Addresses of the kernel begin here."""

MAX_NOISE: Final = 8
"""Frames that are looked behind for code, from the root."""

# fmt: off
ENTRIES: Final = {
    "start", "start_c", "start_main", "libc_start_main", "libc_start_main_impl", "libc_start_call_main",
    "libc_init", "dl_start", "dl_start_user", "main", "clone", "clone2", "clone3", "start_thread",
    "thread_start", "pthread_start", "ret_from_fork", "rt0_amd64", "rt0_amd64_linux", "runtime.goexit",
    "runtime.mstart", "runtime.rt0_go", "runtime.mcall", "runtime.systemstack", "runtime.morestack",
}
# fmt: on
"""Functions that begin a program, a thread or a goroutine, without the underscores in front."""


def early_value(stacks: Stacks, values: Float64, keys: Int32, names: Texts) -> float:
    """The value of the stacks that end early in user code, though another frame was looked for along frame pointers
    (R481, stacks that end early). `values` are those of the stacks, `keys` the rows of the frames in `names`.

    The last mapped frame of such a stack is in user code and has a name, which is not that of a function that begins a
    program, a thread or a goroutine. But where other stacks lead to a function from one that it called, and none to who
    called it, nobody did. The report has a hint if they are a tenth of the samples.
    """
    profile, begin, end = stacks.profile, stacks.location_offsets[:-1], stacks.location_offsets[1:]
    outer = stacks.frame_offsets[1:] - 1
    is_user = np.zeros(len(outer), np.bool_)  # those behind are of samples without a stack
    is_user[: len(profile.locations)] = profile.locations.address < KERNEL
    is_named = (stacks.flags[outer] & FrameFlag.UNSYMBOLIZED) == 0
    is_code = is_user & is_named
    is_code[: len(profile.locations)] |= is_user[: len(profile.locations)] & _is_mapped(profile)

    rows = np.flatnonzero(end > begin)
    rows = rows[is_user[stacks.locations[end[rows] - 1]]]
    last = end[rows] - 1
    for _ in range(MAX_NOISE):
        last -= ~is_code[stacks.locations[last]] & (last > begin[rows])
    location = stacks.locations[last]
    key, is_noise = keys[outer[location]], ~is_code[location]
    is_alone = (last == begin[rows]) | ~is_code[stacks.locations[last - 1]]

    is_inner = np.ones(len(stacks.locations), np.bool_)
    is_inner[last] = False
    is_called = is_code & marked(stacks.locations, len(outer), is_inner)
    has_callers = marked(keys[outer[is_called]], len(names))
    is_entry = marked(key[~is_noise & ~is_alone], len(names)) & ~has_callers
    for row in np.flatnonzero(marked(key[~is_noise], len(names))).tolist():
        is_entry[row] |= names[row].lstrip("_").removeprefix("GI_").lstrip("_").removesuffix(".abi0") in ENTRIES
    return float(values[rows[is_noise | (is_named[location] & ~is_entry[key])]].sum())


def _is_mapped(profile: Profile) -> Bool:
    """Which locations are in what was mapped: others are what else the register of the frame pointer led to."""
    mapping, filename = profile.locations.mapping, np.append(profile.mappings.filename, 0)
    found: Bool = (mapping != NONE) & ~np.isin(filename[mapping], (0, profile.strings.find(b"[unknown]")))
    return found


TOP_FUNCTIONS = 10
NOTHING: Final = 0.0
NONE_MISSED: Final[Mapping[Reason, float]] = {}
"""Shared by all rows of mappings without samples, of which a profile may have very many."""


class Weights(NamedTuple):
    """Sums of the values of the default sample type, without their signs: the value of all frames of each location, the
    value of the samples whose leaf is each location, and that of those with each mapping on their stack (the last for
    no mapping). `samples` is the sum over all samples, `least` the smallest of them, `early` that of stacks that end
    early; `functions` are the totals by name, with signs."""

    samples: float
    least: float
    locations: Float64
    leaves: Float64
    mappings: Float64
    early: float
    functions: FunctionTotals


def weights_of(profile: Profile) -> Weights:
    """Sum the values of `profile` in one pass over its stacks, two if some are below 0."""
    stacks, mappings = stacks_of(with_default_type(profile), has_lines=False), len(profile.mappings)
    values = stacks.values[:, 0] if stacks.types else np.zeros(len(stacks))
    names, name_of = stacks.names.names.distinct()
    keys = name_of[stacks.frames]
    locations = len(profile.locations)
    mapping_of = np.full(len(stacks.frame_offsets) - 1, mappings + 1, np.int32)  # of samples without a stack
    mapping_of[:locations] = np.where(profile.locations.mapping == NONE, mappings, profile.locations.mapping)
    found = sums(stacks, keys, len(names), values, mapping_of)
    flat, cumulative = found.flat, found.cumulative
    if len(values) and values.min() < 0:
        values = np.abs(values)
        found = sums(stacks, keys, len(names), values, mapping_of)
    by_mapping = np.zeros(mappings + 2)
    by_mapping[: len(found.groups)] = found.groups
    return Weights(
        float(values.sum()),
        float(values.min()) if len(values) else 0.0,
        found.locations[:locations],
        leaf_values(stacks, values)[:locations],
        by_mapping[:-1],
        early_value(stacks, values, keys, names) if profile.stack_source is StackSource.FRAME_POINTERS else 0.0,
        FunctionTotals(names, np.zeros(len(names), np.uint8), flat[:, None], cumulative[:, None]),
    )


def with_default_type(profile: Profile) -> Profile:
    """The profile with its default sample type alone: no memory for values that nobody asks for."""
    column = profile.weight_column()
    return with_types(profile, [column]) if column >= 0 else profile


def leaf_values(stacks: Stacks, values: Float64) -> Float64:
    """The value of the stacks whose leaf is each location."""
    begin, end = stacks.location_offsets[:-1], stacks.location_offsets[1:]
    found = np.zeros(len(stacks.frame_offsets) - 1)
    for first in range(0, len(values), AT_ONCE):
        piece = slice(first, first + AT_ONCE)
        is_stack = end[piece] > begin[piece]
        leaves = stacks.locations[begin[piece][is_stack]]
        found += np.bincount(leaves, values[piece][is_stack], minlength=len(found))
    return found


def used_locations(profile: Profile, weights: Weights) -> Bool:
    """The locations that samples use: bool[n]."""
    if weights.least > 0:  # all have a value then
        return np.asarray(weights.locations > 0)
    return marked(profile.samples.locations, len(profile.locations))


def build_report(
    profile: Profile,
    reasons: UInt8,
    outcomes: Sequence[MappingOutcome],
    warnings: Sequence[str],
    problems: Sequence[str] = (),
    folded: Sequence[FoldedRow] = (),
    approximate: Bool | None = None,
) -> Report:
    """Group the outcomes of all locations that samples use by mapping and reason, weighted by sample value.

    `warnings` are on the profile, `problems` of the run; `approximate` marks the locations whose line is not their own.
    """
    strings, locations = profile.strings, profile.locations
    weights = weights_of(profile)
    used = used_locations(profile, weights)
    named = reasons <= Reason.HAD_NAMES
    if approximate is None:
        approximate = np.zeros(len(locations), np.bool_)
    folded = [with_weight(row, profile, weights) for row in folded]
    column = profile.weight_column()
    kind = profile.sample_types[column] if column >= 0 else None
    return Report(
        mapping_rows(profile, reasons, outcomes, np.flatnonzero(used), weights, approximate),
        samples=len(profile.samples),
        locations=int(used.sum()),
        symbolized_locations=int((used & named).sum()),
        value=float(weights.locations.sum()),
        symbolized_value=float(weights.locations[named].sum()),
        sample_value=weights.samples,
        sample_type=strings.text(kind.type) if kind else "",
        unit=strings.text(kind.unit) if kind else "",
        top=weights.functions.heaviest(0, TOP_FUNCTIONS),
        own_warnings=list(warnings),
        problems=list(problems),
        folded=sorted(folded, key=lambda row: (-row.value, row.binary, row.code.begin)),
        leaf_value=float(weights.leaves.sum()),
        symbolized_leaf_value=float(weights.leaves[named].sum()),
        sample_count=sample_count(profile),
        early_value=weights.early,
    )


def sample_count(profile: Profile) -> int | None:
    """How many samples were taken, where a sample type counts them."""
    text = profile.strings.text
    for column, kind in enumerate(profile.sample_types):
        if (text(kind.type), text(kind.unit)) == ("samples", "count"):
            return int(profile.samples.values[:, column].sum())
    return None


def mapping_rows(
    profile: Profile,
    reasons: UInt8,
    outcomes: Sequence[MappingOutcome],
    counted: Int64,
    weights: Weights,
    approximate: Bool,
) -> list[MappingRow]:
    """A row for each of `outcomes`, over the locations `counted`; none for those in no mapping if there are none."""
    strings, mappings, by_location, leaves = profile.strings, profile.mappings, weights.locations, weights.leaves
    named = reasons <= Reason.HAD_NAMES
    nameless_lines = (reasons == Reason.SYMBOLIZED) & without_lines(profile)
    mapping_of = profile.locations.mapping
    counted = counted[np.argsort(mapping_of[counted], kind="stable")]
    edges = np.searchsorted(mapping_of[counted], np.arange(NONE, len(mappings) + 1))
    # Rows share what mappings share: an input may have very many with one long name. The last is that of no mapping.
    names, build_ids = ([*strings.texts(each.tolist()), ""] for each in (mappings.filename, mappings.build_id))
    rows = []
    for outcome in outcomes:
        mapping = outcome.mapping
        here = counted[edges[mapping + 1] : edges[mapping + 2]]
        if mapping == NONE and not len(here):
            continue
        misses: list[tuple[Reason, int, float]] = []
        missed_flat: dict[Reason, float] = {}
        for code in distinct(reasons[here[~named[here]]]).tolist():
            missed = here[reasons[here] == code]
            misses.append((Reason(code), len(missed), float(by_location[missed].sum())))
            missed_flat[Reason(code)] = float(leaves[missed].sum())
        inexact, bare = here[approximate[here]], here[nameless_lines[here]]
        rows.append(
            MappingRow(
                names[mapping],
                build_ids[mapping],
                outcome.alone(),
                locations=len(here),
                symbolized_locations=int(named[here].sum()),
                value=float(by_location[here].sum()) or NOTHING,
                symbolized_value=float(by_location[here[named[here]]].sum()) or NOTHING,
                misses=sorted(misses, key=lambda miss: -miss[2]),
                approximate_lines=len(inexact),
                approximate_value=float(by_location[inexact].sum()) or NOTHING,
                flat=float(leaves[here].sum()) or NOTHING,
                symbolized_flat=float(leaves[here[named[here]]].sum()) or NOTHING,
                cumulative=float(weights.mappings[mapping]) or NOTHING,  # that of no mapping is the last
                missed_flat=missed_flat or NONE_MISSED,
                had_names=int((reasons[here] == Reason.HAD_NAMES).sum()),
                without_lines=len(bare),
                without_lines_value=float(by_location[bare].sum()) or NOTHING,
                without_lines_flat=float(leaves[bare].sum()) or NOTHING,
            )
        )
    return rows


def without_lines(profile: Profile) -> Bool:
    """Which locations have names, but no line and no file in any of their frames: bool[n]."""
    locations, lines = profile.locations, profile.locations.lines
    has_source = (lines.line != 0) | (profile.functions.filename[lines.function] != 0)
    before = np.concatenate(([0], np.cumsum(has_source)))
    without: Bool = before[locations.line_offsets[1:]] == before[locations.line_offsets[:-1]]
    return without & locations.has_lines()


def with_weight(row: FoldedRow, profile: Profile, weights: Weights) -> FoldedRow:
    """Folded code with the name that its first location got, and its sample value."""
    begin, end = profile.locations.line_offsets[row.rows[0] : row.rows[0] + 2].tolist()
    function = int(profile.locations.lines.function[end - 1]) if begin < end else NONE
    shown = profile.strings.text(int(profile.functions.name[function])) if function != NONE else ""
    return replace(row, shown=shown, value=float(weights.locations[row.rows].sum()))

"""Removes frames below certain functions, such as those of an allocator, as pprof does (R347, pruned frames)."""

import re
from dataclasses import replace
from typing import Final

import numpy as np

from symbolize.core.arrays import NONE, Bool, Int64, offsets_of, ranges
from symbolize.core.errors import UsageError
from symbolize.core.expressions import Matches, compiled
from symbolize.profile import Profile

NO_ARGUMENTS: Final = re.compile(r"\(anonymous namespace\)|operator\(\)|(\()")
"""Parentheses in names, of which only the last kind begins a list of arguments."""


def prune(profile: Profile, drop: str = "", keep: str = "", *, own: bool = False) -> Profile:
    """A profile without the frames below those that match `drop` and not `keep`, and without these; it is not changed.

    Both match a whole name of a function, which counts without its arguments. With `own` the expressions of the profile
    itself do so too. A stack keeps all up to its first frame that does not match, from the root on, so that none is
    pruned away altogether. An expression of the profile that is invalid is a warning. Raises UsageError for an invalid
    one of the caller.
    """
    hits = np.zeros(len(profile.functions), np.bool_)
    warnings = profile.warnings
    kept = [compiled("keep", keep, whole=True)] if keep else []
    if drop:
        hits |= functions_matching(profile, dropping(compiled("drop", drop, whole=True), *kept))
    if own and profile.drop_frames:
        own_drop, own_keep = (profile.strings.text(row) for row in (profile.drop_frames, profile.keep_frames))
        try:
            spared = [compiled("keep", own_keep, whole=True), *kept] if own_keep else kept
            hits |= functions_matching(profile, dropping(compiled("drop", own_drop, whole=True), *spared))
        except UsageError as error:
            warnings = [*warnings, f"nothing is dropped as the profile asks for: {error}"]
    return replace(pruned(profile, hits) if hits.any() else profile, warnings=warnings)


def prune_from(profile: Profile, pattern: str) -> Profile:
    """A profile without the frames below the innermost one that matches, which stays; it is not changed. Raises
    UsageError for an invalid expression."""
    hits = functions_matching(profile, compiled("prune_from", pattern))
    locations, samples = profile.locations, profile.samples
    hit_lines = np.append(hits, False)[locations.lines.function]
    begin, end = locations.line_offsets[:-1], locations.line_offsets[1:]
    rows = np.flatnonzero(hit_lines)
    first = np.append(rows, len(hit_lines))[np.searchsorted(rows, begin)]
    is_hit = first < end
    profile = with_lines(profile, np.where(is_hit, first, begin), end)
    at = np.flatnonzero(is_hit[samples.locations])
    starts = samples.location_offsets[:-1]
    lowest = np.append(at, len(samples.locations))[np.searchsorted(at, starts)]
    return with_stacks(profile, np.where(lowest < samples.location_offsets[1:], lowest, starts))


def check_expressions(drop: str, keep: str, prune_from: str) -> None:
    """Raise UsageError if an expression of the caller is invalid."""
    for name, pattern in (("drop", drop), ("keep", keep), ("prune_from", prune_from)):
        compiled(name, pattern)


def pruned(profile: Profile, hits: Bool) -> Profile:
    """A profile pruned at the functions that are `hits`."""
    locations, samples = profile.locations, profile.samples
    hit_lines = np.append(hits, False)[locations.lines.function]
    begin, end = locations.line_offsets[:-1], locations.line_offsets[1:]
    # The outermost line that is hit.
    rows = np.flatnonzero(hit_lines)
    last = np.concatenate((np.array([NONE]), rows))[np.searchsorted(rows, end)]
    is_hit = last >= begin
    is_whole = is_hit & (last == end - 1)
    profile = with_lines(profile, np.where(is_hit & ~is_whole, last + 1, begin), end)
    # From the root on: behind the first location that is not hit, the first that is.
    stack = samples.locations
    first, behind = samples.location_offsets[:-1], samples.location_offsets[1:]
    plain = np.flatnonzero(~is_hit[stack])
    user = np.concatenate((np.array([NONE]), plain))[np.searchsorted(plain, behind)]
    found = np.flatnonzero(is_hit[stack])
    cut = np.concatenate((np.array([NONE]), found))[np.searchsorted(found, np.maximum(user, 0))]
    is_cut = (user >= first) & (cut >= first)
    kept_there = np.append(~is_whole[stack], False)[cut]  # a location that is hit within keeps its outer lines
    return with_stacks(profile, np.where(is_cut, np.where(kept_there, cut, cut + 1), first))


def with_lines(profile: Profile, begin: Int64, end: Int64) -> Profile:
    """A profile whose locations have the lines from `begin` to `end`."""
    locations = profile.locations
    counts = end - begin
    lines = locations.lines.take(ranges(begin, counts))
    return replace(profile, locations=replace(locations, lines=lines, line_offsets=offsets_of(counts)))


def with_stacks(profile: Profile, begin: Int64) -> Profile:
    """A profile whose stacks begin at `begin` in the column of their locations; their leaves are callers then."""
    samples = profile.samples
    counts = samples.location_offsets[1:] - begin
    stacks = samples.locations[ranges(begin, counts)]
    samples = replace(samples, locations=stacks, location_offsets=offsets_of(counts))
    return replace(profile, samples=samples, leaf_kinds=np.zeros(0, np.uint8))


def functions_matching(profile: Profile, matches: Matches) -> Bool:
    """Which functions have a name that matches, without its arguments: bool[n]."""
    known: dict[int, bool] = {0: False}
    found = np.zeros(len(profile.functions), np.bool_)
    for row, name in enumerate(profile.functions.name.tolist()):
        if name not in known:
            known[name] = matches(without_arguments(profile.strings.text(name)))
        found[row] = known[name]
    return found


def dropping(drop: Matches, *keep: Matches) -> Matches:
    """Whether a name matches `drop` and none of `keep`."""
    return lambda name: drop(name) and not any(kept(name) for kept in keep)


def without_arguments(name: str) -> str:
    """The name of a function without the dot that PowerPC has before it, and without its arguments."""
    name = name.removeprefix(".")
    first = next((match.start() for match in NO_ARGUMENTS.finditer(name) if match[1]), len(name))
    return name[:first]

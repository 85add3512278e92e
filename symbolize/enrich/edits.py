"""What is changed in a profile when its names are known: frames that are left out, paths, stand-ins for names."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from symbolize.core.arrays import NONE, Bool, Int64, distinct, offsets_of, ranges
from symbolize.core.errors import UsageError, check_flags, check_type
from symbolize.core.expressions import Matches, compiled
from symbolize.names.stand_ins import of_function
from symbolize.profile import AddressKind, Functions, Lines, Profile

NO_ARGUMENTS: Final = re.compile(r"\(anonymous namespace\)|operator\(\)|(\()")
"""Parentheses in names, of which only the last kind begins a list of arguments."""
ALWAYS_TRIMMED: Final = (b"/proc/self/cwd/./", b"/proc/self/cwd/")
"""Folders that pprof trims besides those that it is given: the sandboxes of builds have them."""


def synthesize(profile: Profile) -> Profile:
    """A profile whose locations without lines have one in a function `module!sub_START` where the begin of that is
    known, else `[module+0xoffset]`; it is not changed.

    The offset is that in the file of the mapping, or behind the start of one without a file; code in no mapping, and in
    one without a name, is `0xaddress`. No flag of a mapping claims these names, and no reader takes them for those of
    functions (R452, stand-ins).
    """
    locations, mappings, strings = profile.locations, profile.mappings, profile.strings.copy()
    rows = np.flatnonzero(~locations.has_lines() & ((locations.mapping != NONE) | (locations.address != 0)))
    if not len(rows):
        return profile
    modules = [strings[row].rpartition(b"/")[2] or strings[row] for row in mappings.filename.tolist()]
    names = []
    places = locations.mapping[rows], locations.address[rows], locations.function_starts()[rows]
    for mapping, address, start in zip(*(column.tolist() for column in places), strict=True):
        module = modules[mapping] if mapping != NONE else b""
        place = b"%s+%#x" % (module, offset_in(profile, mapping, address)) if module else b"%#x" % address
        place = b"[%s]" % place if module and not module.startswith(b"[") else place
        names.append(of_function(module, start) if module and start else place)
    name = strings.add_all(names).astype(np.int32)
    count = len(profile.functions)
    added = Functions.zeros(len(rows))
    added.name = added.system_name = name
    sizes = np.diff(locations.line_offsets)
    sizes[rows] = 1
    offsets = offsets_of(sizes)
    lines = Lines.zeros(int(offsets[-1]))
    is_new = np.zeros(len(lines), np.bool_)
    is_new[offsets[:-1][rows]] = True
    for column in ("function", "line", "column"):
        getattr(lines, column)[~is_new] = getattr(locations.lines, column)
    lines.function[is_new] = np.arange(count, count + len(rows))
    return replace(
        profile,
        strings=strings,
        functions=Functions.joined((profile.functions, added)),
        locations=replace(locations, lines=lines, line_offsets=offsets),
    )


def offset_in(profile: Profile, mapping: int, address: int) -> int:
    """Where an address is in what was mapped: in its file, or behind its start where it has none."""
    kinds = AddressKind.IN_FILE, AddressKind.OFFSET, AddressKind.LOADED, AddressKind.NO_BINARY
    if profile.address_kind(mapping) in kinds:
        return address
    start, file = int(profile.mappings.start[mapping]), profile.strings[profile.mappings.filename[mapping]]
    if address < start:
        return address
    return address - start + (int(profile.mappings.file_offset[mapping]) if file.startswith(b"/") else 0)


def prune(profile: Profile, drop: str = "", keep: str = "", *, own: bool = False) -> Profile:
    """A profile without the frames below those that match `drop` and not `keep`, and without these; it is not changed.

    A name counts without a first dot, and without all from the first parenthesis on that is part of neither `(anonymous
    namespace)` nor `operator()`. A location whose outermost line is dropped goes, one with another such line loses that
    and the lines inlined into it, on all stacks (R347, pruned frames).

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


@dataclass(frozen=True)
class Edits:
    """Changes to a symbolized profile. Empty: none.

    `path_prefixes` are pairs of folders: source files below the first get the path below the second, the longest first
    that matches. `trim_paths` are folders that are removed from the beginnings of paths, as pprof's trim_path.

    `prune` drops the frames that the profile itself asks to drop (drop_frames and keep_frames), with all below them, as
    pprof does; `drop` and `keep` are regular expressions for whole names of functions that do so too. `prune_from`
    drops all below the innermost frame that matches.

    `synthesize` gives code without names a function `module!sub_START` or `[module+0xoffset]`. Raises TypeError for an
    argument of another type, UsageError for `keep` alone, and for an invalid expression.
    """

    path_prefixes: Sequence[tuple[str, str]] = ()
    trim_paths: Sequence[str] = ()
    prune: bool = False
    drop: str = ""
    keep: str = ""
    prune_from: str = ""
    synthesize: bool = False

    def __post_init__(self) -> None:
        check_type("path_prefixes", self.path_prefixes, "a list of pairs of folders", list, tuple)
        check_type("trim_paths", self.trim_paths, "a list of folders", list, tuple)
        for pair in self.path_prefixes:
            check_type("path_prefixes", pair, "pairs of folders in the list", list, tuple)
            if [type(folder) for folder in pair] != [str, str]:
                raise TypeError(f"path_prefixes: expected two texts in a pair, not {pair!r}")
        for folder in self.trim_paths:
            check_type("trim_paths", folder, "folders in the list", str)
        # So that edits can be compared, and what is made by them told apart.
        object.__setattr__(self, "path_prefixes", tuple(map(tuple, self.path_prefixes)))
        object.__setattr__(self, "trim_paths", tuple(self.trim_paths))
        check_flags(prune=self.prune, synthesize=self.synthesize)
        for name in ("drop", "keep", "prune_from"):
            check_type(name, getattr(self, name), "text", str)
        if self.keep and not (self.prune or self.drop):
            raise UsageError("keep has an effect only with drop or prune")
        if self.drop or self.keep or self.prune_from:
            check_expressions(self.drop, self.keep, self.prune_from)

    def __bool__(self) -> bool:
        return bool(
            self.path_prefixes or self.trim_paths or self.prune or self.drop or self.prune_from or self.synthesize
        )

    def apply(self, profile: Profile) -> Profile:
        """The changed profile; the given one is not changed. Locations stay, but for their lines."""
        profile = Profile.of(profile, "profile")
        if self.path_prefixes or self.trim_paths:
            profile = rewrite_paths(profile, self.path_prefixes, self.trim_paths)
        if self.prune or self.drop:
            profile = prune(profile, self.drop, self.keep, own=self.prune)
        if self.prune_from:
            profile = prune_from(profile, self.prune_from)
        if self.synthesize:
            profile = synthesize(profile)
        return profile


def rewrite_paths(profile: Profile, prefixes: Sequence[tuple[str, str]] = (), trimmed: Sequence[str] = ()) -> Profile:
    """A profile whose source files have other paths; it is not changed.

    Of `prefixes`, pairs of folders, the longest first one that a path begins with is replaced by the second. Then the
    first of `trimmed` that it begins with is removed; each may be several folders, separated as in PATH. Folders match
    whole names.
    """
    pairs = [(folder(old), folder(new) if new else b"") for old, new in prefixes]
    replaced = sorted(pairs, key=lambda each: -len(each[0]))
    removed = [folder(each) for text in trimmed for each in text.split(os.pathsep) if each]
    removed += ALWAYS_TRIMMED if removed else ()
    functions, strings = profile.functions, profile.strings
    number = np.arange(len(strings), dtype=np.int32)
    added = strings.copy()
    for row in distinct(functions.filename).tolist():
        path = strings[row]
        path = next((new + path[len(old) :] for old, new in replaced if path.startswith(old)), path)
        path = next((path[len(old) :] for old in removed if path.startswith(old)), path)
        number[row] = added.add(path)
    filenames = number[functions.filename]
    return replace(profile, strings=added, functions=replace(functions, filename=filenames))


def folder(path: str) -> bytes:
    """A folder as the beginning of paths in it."""
    return os.fsencode(path.rstrip("/") + "/")


def pairs_of(name: str, texts: Iterable[str], *, may_be_empty: bool = True) -> list[tuple[str, str]]:
    """The pairs that texts of the form OLD=NEW denote, NEW perhaps empty; OLD has none of the equals signs. Raises
    UsageError, which names the parameter."""
    found = [each.partition("=") for each in texts]
    for old, equals, new in found:
        if not (old and equals and (new or may_be_empty)):
            raise UsageError(f"{name} {old}{equals}{new}: has to be OLD=NEW")
    return [(old, new) for old, _, new in found]

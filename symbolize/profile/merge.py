"""Many profiles become one, by the rules of pprof as far as these make no wrong names (R345, merged mappings)."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import numpy as np

from symbolize.core.arrays import (
    NONE,
    TOP,
    Int32,
    Int64,
    UInt8,
    UInt64,
    distinct,
    distinct_inverse,
    marked,
    taken,
    views,
)
from symbolize.core.errors import UsageError, check_flags, check_type
from symbolize.core.interning import first_of_numbers, number_lists
from symbolize.core.mapped_names import FILES, mapped_by
from symbolize.profile.attachments import Obfuscation
from symbolize.profile.combine import TOO_LARGE, combine, compact, number_fields, number_rows
from symbolize.profile.model import (
    AddressKind,
    Functions,
    HasProfile,
    IdOrigin,
    Labels,
    Lines,
    Locations,
    Mappings,
    Profile,
    RawFields,
    Samples,
    StackSource,
    ValueType,
    assign_mappings,
    owners,
)
from symbolize.profile.sample_types import (
    LARGEST,
    Alignment,
    aligned,
    common_kinds,
    factors,
    joined_leaf_kinds,
    kind_of,
    kinds_of,
    text_of,
    values_of,
)

PAGE: Final = 4096
FLAGS: Final = ("has_functions", "has_filenames", "has_line_numbers", "has_inline_frames")
MAX_BUILDS: Final = 16
"""Builds of one path that are distinguished; mappings of further ones stay separate."""


def merged(profiles: Iterable[Profile | HasProfile], *, side_by_side: bool = False) -> Profile:
    """One profile of all `profiles`, which are taken one at a time and not changed; see `symbolize.merge`."""
    check_type("profiles", profiles, "several Profiles", Iterable)
    check_flags(side_by_side=side_by_side)
    merger = Merger(side_by_side=side_by_side)
    for profile in profiles:
        merger.add(Profile.of(profile, "profiles"))
    return merger.result()


class Merger:
    """Merges profiles as they come.

    What was added is kept as a few profiles, each merged from at least twice as many as the next one. So of K profiles
    each is copied about log2(K) times, and all take little more memory than the result.
    """

    def __init__(self, *, side_by_side: bool = False) -> None:
        self.count = 0
        self._side_by_side = side_by_side
        self._parts: list[tuple[int, Profile]] = []
        self._first: tuple[Profile, str] | None = None
        self._left_out: dict[str, None] = {}
        self._known_warnings: set[str] = set()

    def add(self, profile: Profile, name: str = "") -> None:
        """Add a profile, which messages call `name`. Raises UsageError if it has no sample type that all before have,
        or counts by another kind of period than the first."""
        self.count += 1
        self._known_warnings.update(profile.warnings)
        name = name or profile.source or f"profile {self.count}"
        if self._first is None:
            empty = replace(profile, samples=Samples(), locations=Locations(), mappings=Mappings())
            self._first = replace(empty, functions=Functions(), unknown={}), name
        elif not self._side_by_side:
            self._keep_common(profile, name)
        self._parts.append((1, prepared(profile)))
        while len(self._parts) > 1 and self._parts[-1][0] >= self._parts[-2][0]:
            self._merge_last()

    def result(self) -> Profile:
        """All that was added as one profile. Raises UsageError if nothing was."""
        if not self._parts:
            raise UsageError("there are no profiles to merge")
        while len(self._parts) > 1:
            self._merge_last()
        whole = self._parts[0][1]
        warnings = [*whole.warnings]
        if self._left_out:
            some = ", ".join(self._left_out)
            warnings.append(f"sample types that not all of the merged profiles have are left out: {some}")
        return replace(whole, inputs=inputs_of(whole), source="", warnings=warnings)

    def warnings_of(self, whole: Profile) -> list[str]:
        """The warnings of the result that no profile came with."""
        return [each for each in whole.warnings if each not in self._known_warnings]

    def _keep_common(self, profile: Profile, name: str) -> None:
        """Note which of the sample types that all profiles had until now are left with this one."""
        assert self._first is not None
        before, first_name = self._first
        found = common_kinds(before, profile, (first_name, name))
        kept = [column.row for column in found.common().columns[0]]
        self._first = replace(before, sample_types=[before.sample_types[row] for row in kept]), first_name
        self._left_out.update((text_of(kind), None) for kind in found.not_common())

    def _merge_last(self) -> None:
        (count, first), (more, second) = self._parts[-2:]
        self._parts[-2:] = [(count + more, unified(joined(first, second, self._side_by_side)))]


def prepared(profile: Profile) -> Profile:
    """A profile whose locations have their mappings, and whose equal rows are one. Copies of stacks are for the
    addresses of their own process, rows of a message for itself, times for their own clock, and are left out."""
    locations = replace(profile.locations, source_row=np.zeros(0, np.int64))
    profile = replace(profile, locations=locations, sample_times=None)
    if (dumps := profile.stack_dumps) is not None:
        note = f"{len(dumps):,} stacks were not unwound before they were merged: they keep their leaf only"
        before = [each for each in profile.warnings if each != dumps.warning]
        profile = replace(profile, stack_dumps=None, warnings=[*before, note])
    assign_mappings(profile)
    return unified(profile)


def unified(profile: Profile) -> Profile:
    """A profile in which equal mappings, locations, functions and samples are one row each, in the order of the first;
    mappings without locations are dropped but for the main binary."""
    locations = profile.locations
    target = without_conflicts(profile, equal_mappings(profile))
    address = moved_addresses(profile, target)
    mapping = np.append(target, np.int32(NONE))[locations.mapping]
    mappings = with_facts_of_equals(profile.mappings, target)
    locations, origins = replace(locations, address=address, mapping=mapping), profile.id_origins
    if len(origins):
        origins = weakest_origins(origins, target)
    profile = replace(profile, mappings=mappings, locations=locations, id_origins=origins)
    numbers = number_locations(profile)
    first = np.flatnonzero(first_of_numbers(numbers)).astype(np.int32)
    samples = replace(profile.samples, locations=taken(first[numbers], profile.samples.locations))
    return only_used_mappings(compact(combine(replace(profile, samples=samples))))


def number_locations(profile: Profile) -> Int32:
    """For each location the number of its equals: int32[n]."""
    locations, functions = profile.locations, profile.functions
    lines = locations.lines
    names = number_rows(
        functions.name,
        functions.system_name,
        functions.filename,
        functions.start_line,
        *number_fields(profile, "function", len(functions)),
    )
    function = np.append(names, np.int32(NONE))[lines.function]
    chains = number_lists(*views(locations.line_offsets, number_rows(function, lines.line, lines.column)))
    return number_rows(
        locations.mapping,
        locations.address,
        locations.is_folded,
        chains,
        *([locations.rel_pc] if len(locations.rel_pc) else []),
        *([locations.function_start] if len(locations.function_start) else []),
        *number_fields(profile, "location", len(locations)),
    )


# Mappings


def equal_mappings(profile: Profile) -> Int32:
    """For each mapping the first that is the same.

    Mappings are the same if size, file offset and build id are, or without build ids the paths (R345, merged mappings).
    pprof moves the addresses of the second to those of the first. Here they are moved only where the code is certain to
    be the same wherever it is mapped: runtime addresses in a mapping with a build id or with the path of a file. Memory
    without a file (`//anon`, `/memfd:`, `[vdso]`), kernels without a build id, addresses in files and code without a
    binary are one only at the same address. Sizes are rounded up to pages; the mapping is as long as the longest.
    """
    mappings, strings = profile.mappings, profile.strings
    target = np.arange(len(mappings), dtype=np.int32)
    extra = [each.tolist() for each in number_fields(profile, "mapping", len(mappings))]
    applies = profile.obfuscation.applies if profile.obfuscation is not None else ()
    known: dict[Any, int] = {}
    columns = (mappings.start, mappings.limit, mappings.file_offset, mappings.filename, mappings.build_id)
    for row, (start, limit, offset, file, build_id) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        kind = profile.address_kind(row)
        moves = kind == AddressKind.PROCESS and (build_id != 0 or is_shared_file(strings[file]))
        key = (
            kind,
            -(-(limit - start) // PAGE),
            offset,
            (build_id,) if build_id else (0, file),
            start % PAGE if moves else (start, limit),
            profile.modules[row] if profile.modules else None,
            applies[row] if applies else None,
            *(each[row] for each in extra),
        )
        first = known.setdefault(key, row)
        target[row] = first
    return target


def moved_addresses(profile: Profile, target: Int32) -> UInt64:
    """The addresses of all locations, where each mapping is at the start of its `target`."""
    locations, mappings = profile.locations, profile.mappings
    shift = np.append(mappings.start[target] - mappings.start, np.uint64(0))
    moved: UInt64 = np.where(locations.address != 0, locations.address + shift[locations.mapping], np.uint64(0))
    return moved


def without_conflicts(profile: Profile, target: Int32) -> Int32:
    """For each mapping its `target`, unless names show that it is of another build (R349, builds of one path): mappings
    without a build id that came with different names for one address stay apart.

    Else code without a name in one would get that of the other in a later run. Names are those of outer functions;
    names of one profile count for all that are merged with it.
    """
    locations, mappings = profile.locations, profile.mappings
    has_lines = locations.has_lines()
    outermost = np.full(len(locations), NONE, np.int32)
    outermost[has_lines] = locations.lines.function[locations.line_offsets[1:][has_lines] - 1]
    name = np.append(profile.functions.name, np.int32(0))[outermost]
    is_moot = np.append((mappings.build_id != 0), True)[locations.mapping]
    rows = np.flatnonzero((name != 0) & ~is_moot & (locations.address != 0))
    target, left = target.copy(), np.flatnonzero(target != np.arange(len(target)))
    for _ in range(MAX_BUILDS):
        if not len(rows) or not len(left):
            return target
        numbers = number_rows(target[locations.mapping[rows]], moved_addresses(profile, target)[rows])
        first = rows[np.flatnonzero(first_of_numbers(numbers))][numbers]
        differs = (name[rows] != name[first]) & (locations.mapping[rows] != locations.mapping[first])
        left = distinct(locations.mapping[rows[differs]])
        # The first of each group of those that differ is the first of another build.
        groups, which = distinct_inverse(target[left])
        leaders = np.full(len(groups), len(target), np.int32)
        np.minimum.at(leaders, which, left.astype(np.int32))
        target[left] = leaders[which]
    target[left] = left
    return target


def with_facts_of_equals(mappings: Mappings, target: Int32) -> Mappings:
    """The mappings, each with the flags of all whose `target` it is, and as long as the longest of them."""
    size = mappings.limit - mappings.start
    longest = size.copy()
    np.maximum.at(longest, target, size)
    result = replace(mappings, limit=mappings.start + longest)
    for flag in FLAGS:
        setattr(result, flag, marked(target, len(target), getattr(mappings, flag)))
    return result


def weakest_origins(origins: UInt8, target: Int32) -> UInt8:
    """For each mapping where its build id was recorded, the least of what all say whose `target` it is."""
    doubts = np.array([1, 0, 2], np.uint8)  # of unknown, recorded, read later; and the other way round
    found = doubts[origins]
    np.maximum.at(found, target, found.copy())
    weakest: UInt8 = doubts[found]
    return weakest


def is_shared_file(name: bytes) -> bool:
    """Whether a recorded name is that of a file, which is the same wherever it is mapped."""
    return name.startswith(b"/") and mapped_by(name) in FILES


def only_used_mappings(profile: Profile) -> Profile:
    """The profile without the mappings that no location is in, but for the first, the main binary."""
    mapping = profile.locations.mapping
    kept = marked(mapping, len(profile.mappings), mapping != NONE)
    kept[:1] = True
    if kept.all():
        return profile
    rows = np.append((np.cumsum(kept) - 1).astype(np.int32), np.int32(NONE))
    obfuscation, unknown = profile.obfuscation, dict(profile.unknown)
    if obfuscation is not None:
        applies = [obfuscation.applies[row] for row in np.flatnonzero(kept).tolist()]
        obfuscation = replace(obfuscation, applies=[*applies, obfuscation.applies[-1]])
    if raw := unknown.get("mapping"):
        unknown["mapping"] = raw.taken(np.flatnonzero(kept))
    return replace(
        profile,
        mappings=profile.mappings.take(kept),
        locations=replace(profile.locations, mapping=rows[mapping]),
        address_kinds=profile.address_kinds[kept] if len(profile.address_kinds) else profile.address_kinds,
        id_origins=profile.id_origins[kept] if len(profile.id_origins) else profile.id_origins,
        modules=[profile.modules[row] for row in np.flatnonzero(kept).tolist()] if profile.modules else [],
        obfuscation=obfuscation,
        unknown=unknown,
    )


# Two profiles behind one another


def joined(first: Profile, second: Profile, side_by_side: bool) -> Profile:
    """The rows of two profiles behind one another, with the strings of both and the sample types that both have, or
    with `side_by_side` either."""
    first, second = apart(first, second), apart(second, first)
    strings = first.strings.copy()
    string = strings.add_all(second.strings.array()).astype(np.int32)
    second = renamed(second, string)
    alignment = aligned(kinds_of(first), kinds_of(replace(second, strings=strings)))
    if not side_by_side:
        alignment = alignment.common()
    samples, exceeded = joined_samples(first, second, alignment)
    types = [ValueType(*strings.add_all(kind).tolist()) for kind in alignment.kinds]
    warnings = list(dict.fromkeys((*first.warnings, *second.warnings)))
    if exceeded:
        warnings.append(f"{exceeded} {TOO_LARGE}")
    result = replace(
        first,
        strings=strings,
        sample_types=types,
        samples=samples,
        mappings=Mappings.joined((first.mappings, second.mappings)),
        locations=joined_locations(first, second),
        functions=Functions.joined((first.functions, second.functions)),
        warnings=warnings,
        unknown=joined_fields(first, second),
        leaf_kinds=joined_leaf_kinds(first, second, alignment),
        machine=first.machine if first.machine == second.machine else "",
        kernel_release=first.kernel_release if first.kernel_release == second.kernel_release else "",
        stack_source=StackSource.of_all({first.stack_source, second.stack_source}),
        inputs=tuple(dict.fromkeys((*inputs_of(first), *inputs_of(second)))),
        **joined_origins(first, second),
    )
    own = types[: len(first.sample_types)] if side_by_side else []
    return with_header(result, first, second, own[-1] if own else None)


def inputs_of(profile: Profile) -> tuple[str, ...]:
    """The paths that a profile was read or merged from."""
    return profile.inputs or tuple(filter(None, [profile.source]))


def apart(profile: Profile, other: Profile) -> Profile:
    """The profile with addresses outside its mappings in one of their own, the stand-in for those, if a mapping of
    `other` would hold them: they have nothing to do with that (R346, addresses without a mapping)."""
    locations, mappings = profile.locations, profile.mappings
    rows = np.flatnonzero((locations.mapping == NONE) & (locations.address != 0))
    rows = rows[owners(other.mappings, locations.address[rows]) != NONE]
    if not len(rows):
        return profile
    stand_in = Mappings.zeros(1)
    stand_in.limit = np.array([TOP], np.uint64)
    mapping = locations.mapping.copy()
    mapping[rows] = len(mappings)
    kinds, origins, obfuscation = profile.address_kinds, profile.id_origins, profile.obfuscation
    if obfuscation is not None:
        obfuscation = replace(obfuscation, applies=[*obfuscation.applies, obfuscation.applies[-1]])
    return replace(
        profile,
        mappings=Mappings.joined((mappings, stand_in)),
        locations=replace(locations, mapping=mapping),
        address_kinds=np.append(kinds, np.uint8(AddressKind.PROCESS)) if len(kinds) else kinds,
        id_origins=np.append(origins, np.uint8(IdOrigin.UNKNOWN)) if len(origins) else origins,
        modules=[*profile.modules, (b"", b"")] if profile.modules else [],
        obfuscation=obfuscation,
    )


def renamed(profile: Profile, string: Int32) -> Profile:
    """The profile with other numbers for its strings."""
    mappings, functions, labels = profile.mappings, profile.functions, profile.samples.labels
    return replace(
        profile,
        sample_types=[ValueType(*string[[*each]].tolist()) for each in profile.sample_types],
        period_type=ValueType(*string[[*profile.period_type]].tolist()),
        samples=replace(
            profile.samples,
            labels=Labels(string[labels.key], string[labels.text], labels.number, string[labels.unit]),
        ),
        mappings=replace(mappings, filename=string[mappings.filename], build_id=string[mappings.build_id]),
        functions=Functions(
            string[functions.name], string[functions.system_name], string[functions.filename], functions.start_line
        ),
        comments=string[profile.comments].tolist() if profile.comments else [],
        drop_frames=int(string[profile.drop_frames]),
        keep_frames=int(string[profile.keep_frames]),
        default_sample_type=int(string[profile.default_sample_type]),
        doc_url=int(string[profile.doc_url]),
    )


def joined_samples(first: Profile, second: Profile, alignment: Alignment) -> tuple[Samples, int]:
    """The samples of both, with the columns of both; how many values exceeded 64 bits in the other unit."""
    a, b = first.samples, second.samples
    (own, cut), (others, more) = (
        values_of(profile, columns) for profile, columns in zip((first, second), alignment.columns, strict=True)
    )
    samples = Samples(
        behind(a.location_offsets, b.location_offsets),
        np.concatenate((a.locations, b.locations + np.int32(len(first.locations)))),
        np.concatenate((own, others)),
        behind(a.label_offsets, b.label_offsets),
        Labels.joined((a.labels, b.labels)),
    )
    return samples, cut + more


def joined_locations(first: Profile, second: Profile) -> Locations:
    """The locations of both."""
    a, b = first.locations, second.locations
    lines = b.lines
    has_rel_pc = len(a.rel_pc) == len(a) and len(b.rel_pc) == len(b)
    return Locations(
        address=np.concatenate((a.address, b.address)),
        mapping=np.concatenate((a.mapping, shifted(b.mapping, len(first.mappings)))),
        is_folded=np.concatenate((a.is_folded, b.is_folded)),
        line_offsets=behind(a.line_offsets, b.line_offsets),
        lines=Lines.joined((a.lines, Lines(shifted(lines.function, len(first.functions)), lines.line, lines.column))),
        rel_pc=np.concatenate((a.rel_pc, b.rel_pc)) if has_rel_pc else np.zeros(0, np.uint64),
        function_start=np.concatenate((a.function_starts(), b.function_starts())),
    )


def behind(first: Int64, second: Int64) -> Int64:
    """The offsets of two CSR tables behind one another."""
    return np.concatenate((first[:-1], first[-1] + second))


def shifted(rows: Int32, count: int) -> Int32:
    """Rows of a table that comes behind `count` others; NONE stays."""
    result: Int32 = np.where(rows == NONE, np.int32(NONE), rows + np.int32(count))
    return result


def joined_fields(first: Profile, second: Profile) -> dict[str, RawFields]:
    """The unknown fields of both; those of the profile as protobuf merges messages, equal ones once."""
    counts = {
        "sample": len(first.samples),
        "mapping": len(first.mappings),
        "location": len(first.locations),
        "function": len(first.functions),
    }
    found = dict(first.unknown)
    for table, raw in second.unknown.items():
        known = found.get(table, RawFields())
        if table not in counts:
            data = known.data if known.data.tobytes() == raw.data.tobytes() else np.concatenate((known.data, raw.data))
            found[table] = RawFields(np.zeros(1, np.int32), np.array([0, len(data)]), data)
        else:
            rows = np.concatenate((known.rows, raw.rows + np.int32(counts[table])))
            found[table] = RawFields(rows, behind(known.offsets, raw.offsets), np.concatenate((known.data, raw.data)))
    return found


def joined_origins(first: Profile, second: Profile) -> dict[str, Any]:
    """What is known of the mappings of both beside their columns: kinds of addresses, origins of build ids, modules,
    obfuscated names."""
    both = first, second
    has_modules = all(len(each.modules) == len(each.mappings) for each in both)
    return {
        "address_kinds": joined_column("address_kinds", both),
        "id_origins": joined_column("id_origins", both),
        "modules": [*first.modules, *second.modules] if has_modules else [],
        "obfuscation": joined_obfuscation(first, second),
    }


def joined_column(name: str, profiles: tuple[Profile, Profile]) -> UInt8:
    """A number for each mapping of both; a profile may have none, which are zeros."""
    columns = [getattr(each, name) for each in profiles]
    if not any(map(len, columns)):
        return np.zeros(0, np.uint8)
    counts = [len(each.mappings) for each in profiles]
    full = [each if len(each) else np.zeros(n, np.uint8) for each, n in zip(columns, counts, strict=True)]
    return np.concatenate(full)


def joined_obfuscation(first: Profile, second: Profile) -> Obfuscation | None:
    """The names for obfuscated code of both, each for its own mappings. Code in no mapping, where both have such, gets
    none: it cannot be distinguished."""
    a, b = (each.obfuscation or Obfuscation((), [()] * (len(each.mappings) + 1)) for each in (first, second))
    if not (a.maps or b.maps):
        return None
    moved = [tuple(row + len(a.maps) for row in rows) for rows in b.applies]
    has_a, has_b = (bool((each.locations.mapping == NONE).any()) for each in (first, second))
    outside = () if has_a and has_b else moved[-1] if has_b else a.applies[-1]
    return Obfuscation([*a.maps, *b.maps], [*a.applies[:-1], *moved[:-1], outside])


def with_header(result: Profile, first: Profile, second: Profile, last: ValueType | None) -> Profile:
    """The merged profile with the header of both: `second` has the strings of the result. `last` is the last sample
    type of `first`, which it is shown by unless it has a default."""
    times = [each.time_nanos for each in (first, second) if each.time_nanos]
    names = {each.type for each in result.sample_types}
    default = next((row for row in (first.default_sample_type, second.default_sample_type) if row in names), 0)
    if not default and last is not None and len(result.sample_types) > len(first.sample_types):
        default = last.type
    period_type, period = joined_period(result, first, second)
    return replace(
        result,
        time_nanos=min(times, default=0),
        duration_nanos=limited(first.duration_nanos + second.duration_nanos),
        period_type=period_type,
        period=period,
        comments=list(dict.fromkeys((*first.comments, *second.comments))),
        default_sample_type=default,
        doc_url=first.doc_url or second.doc_url,
    )


def joined_period(result: Profile, first: Profile, second: Profile) -> tuple[ValueType, int]:
    """The type of the period, in the finer unit, and the longer period; those of `first` if they are not alike."""
    if not any(first.period_type):
        return second.period_type, second.period
    if not any(second.period_type):
        return first.period_type, first.period
    found = factors(*(kind_of(replace(each, strings=result.strings), each.period_type) for each in (first, second)))
    if found is None:
        return first.period_type, first.period
    kind, own, others = found
    return ValueType(*result.strings.add_all(kind).tolist()), limited(max(first.period * own, second.period * others))


def limited(number: int) -> int:
    """A number of the header, or the largest or smallest that fits into 64 bits."""
    return min(max(number, -LARGEST - 1), LARGEST)

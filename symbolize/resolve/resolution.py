"""What a mapping is resolved to: the binary, where the addresses are in it, the evidence, or why there is none; and
what the debug information of all these binaries says of the stacks of a profile."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from symbolize.core.arrays import Int32, Int64, UInt8, UInt64, distinct, distinct_inverse, is_among, pair, unpair
from symbolize.core.errors import ChangedFile, ReadFailure
from symbolize.core.mapped import CHANGED
from symbolize.core.outcome import MappingOutcome
from symbolize.core.reasons import Failure, Reason, reason_of
from symbolize.profile import NONE, Profile
from symbolize.resolve.addresses import MappedAddresses
from symbolize.resolve.mapping_record import NO_ROWS, caller_mask
from symbolize.resolve.name_agreement import ExistingNames
from symbolize.symbols import Binary, SymbolListBinary

if TYPE_CHECKING:
    from symbolize.evidence.stacks import PairReader, StackPairs

NO_VADDRS = np.zeros(0, np.uint64)

INDEPENDENT = np.array([Reason.OUTSIDE_SEGMENTS, Reason.NO_ADDRESS, Reason.CHANGED, Reason.READ_FAILED], np.uint8)
"""Reasons of misses that are the same whatever the servers have. That an address is no code of the file that was found
is so with every file of the build."""

AddressMap = Callable[[UInt64], MappedAddresses | None]
"""From recorded addresses to vaddrs, of a `Binary` those of its `loaded` file; None if the binary does not fit."""


@dataclass(frozen=True, eq=False, slots=True)
class Resolution(MappingOutcome):
    """The outcome for a mapping, or for what is in none (NONE), with what leads to names.

    `binary` answers for it, if there is one, and consists of `files`; `address_map` leads to its vaddrs (None: its
    segments do). `is_by_id` says that a build id agreed. If there is no binary, `reason` explains why.

    `locations` are all rows of the mapping; `rows` those that are code of the binary, `vaddrs` theirs, and `names` the
    functions they came with, if these are to be compared with what is found. `reused` are those at whose address
    several functions were, of which nothing says which ran. Of addresses in a file `load_bias` is what
    makes them vaddrs, modulo 2⁶⁴; `build_id` is that of the file, whole, where the profile has none and it is proven.

    `transient_failure` is what failed first and then did not: it is to blame for what is missed all the same (R285,
    names missed by failures).
    """

    binary: Binary | SymbolListBinary | None = None
    address_map: AddressMap | None = None
    is_by_id: bool = False
    reason: Reason = Reason.SYMBOLIZED
    locations: Int64 = field(default_factory=lambda: NO_ROWS)
    rows: Int64 = field(default_factory=lambda: NO_ROWS)
    vaddrs: UInt64 = field(default_factory=lambda: NO_VADDRS)
    names: ExistingNames | None = None
    reused: Int64 = field(default_factory=lambda: NO_ROWS)
    load_bias: int = 0
    build_id: str = ""
    transient_failure: Failure | None = None

    @property
    def is_whole(self) -> bool:
        """Whether no other file of the build would add anything."""
        return isinstance(self.binary, Binary) and self.binary.rank == 0 and self.binary.code is not None

    def with_failure(self, failure: ReadFailure) -> "Resolution":
        """The same, of which something that may have its names could not be read."""
        return replace(self, failures=(*self.failures, Failure.of(failure)), detail=str(failure))

    def refused(self, reason: Reason, **changes: Any) -> "Resolution":
        """The same without the binary."""
        return replace(self, binary=None, reason=reason, **changes)


class MappingAttempt(NamedTuple):
    """What a mapping was resolved to once, what failed meanwhile, and a file that was opened anew since it had changed
    after an earlier question."""

    result: Resolution
    failure: ReadFailure | None = None
    reopened: ReadFailure | None = None


def settle(attempts: Sequence[MappingAttempt]) -> Resolution:
    """The resolution by all attempts at a mapping, of which each but the last failed: the result of the last one, and
    what is to blame for what it misses (R284, files that are replaced; R285, names missed by failures).

    | the last attempt failed  | the first failed | the binary of the last        | the resolution              |
    | ------------------------ | ---------------- | ----------------------------- | --------------------------- |
    | a file changed           | yes              | any, none                     | refused, with that failure  |
    | otherwise                | yes              | none                          | refused, with that failure  |
    | otherwise                | yes              | any                           | kept, with that failure     |
    | no                       | yes              | none                          | refused, with the first     |
    | no                       | yes              | lacks files, the failed too   | kept, with the first        |
    | no                       | yes              | is whole, or of the failed    | kept, the first transient   |
    | no, a file was reopened  | no               | any, none                     | as it is, that is transient |
    | no                       | no               | any, none                     | as it is                    |
    """
    result, last, reopened = attempts[-1]
    first = attempts[0].failure
    if first is None:
        return result if reopened is None else replace(result, transient_failure=Failure.of(reopened))
    if last is None and result.binary is not None and (result.is_whole or first.source in result.files):
        return replace(result, transient_failure=Failure.of(first))
    failure = last or first
    result = result.with_failure(failure)
    return result.refused(reason_of(failure)) if isinstance(last, ChangedFile) or result.binary is None else result


def by_symbol_list(binary: SymbolListBinary, address_map: AddressMap) -> Resolution:
    """A list of functions as the answer; nothing in it proves that it belongs to the mapping."""
    return Resolution(binary, address_map, files=[binary.path], tried=[(binary.path, "used, unverified")])


def as_they_are(addresses: UInt64) -> MappedAddresses:
    """The map for lists of recorded addresses."""
    return addresses, np.ones(len(addresses), np.bool_)


class Resolutions:
    """The resolutions of the mappings of a profile, the last one of what is in none, and the reason of each location:
    `reasons` is uint8[locations]."""

    def __init__(self, resolutions: Iterable[Resolution], locations: int) -> None:
        self._all = list(resolutions)
        self.inserted = NO_ROWS
        self.reasons: UInt8 = np.full(locations, Reason.NO_MAPPING, np.uint8)
        for each in self._all:
            if each.binary is not None:
                self.reasons[each.locations] = Reason.OUTSIDE_SEGMENTS
                self.reasons[each.reused] = Reason.REUSED_ADDRESS
            if each.reason.is_miss:
                self.reasons[each.locations] = each.reason

    @property
    def all(self) -> Sequence[Resolution]:
        """The resolutions of all mappings."""
        return self._all

    def add_locations(self, origin: Int64) -> None:
        """Let there be locations behind the others, with the reasons of those at `origin`."""
        self.reasons = np.concatenate((self.reasons, self.reasons[origin]))

    def insert(self, rows: Int64, mappings: Int32, vaddrs: UInt64) -> None:
        """Let there be locations behind the others that were inserted into stacks, at `vaddrs` of the binaries that
        answer for their mappings."""
        self.inserted = rows
        self.reasons = np.concatenate((self.reasons, np.full(len(rows), Reason.OUTSIDE_SEGMENTS, np.uint8)))
        for mapping in distinct(mappings).tolist():
            before, here = self._all[mapping], mappings == mapping
            names = before.names and before.names.with_unnamed(int(here.sum()))
            self._all[mapping] = replace(
                before,
                locations=np.concatenate((before.locations, rows[here])),
                rows=np.concatenate((before.rows, rows[here])),
                vaddrs=np.concatenate((before.vaddrs, vaddrs[here])),
                names=names,
            )

    def by_binary(self) -> list[tuple[Binary | SymbolListBinary, list[Resolution]]]:
        """The binaries, each once, with the mappings that it answers for."""
        groups: dict[int, tuple[Binary | SymbolListBinary, list[Resolution]]] = {}
        for each in self._all:
            if each.binary is not None:
                groups.setdefault(id(each.binary), (each.binary, []))[1].append(each)
        return list(groups.values())

    def note(self, mapping: int, problems: Sequence[str] = (), **changes: Any) -> None:
        """Add what a later stage found out of a mapping."""
        before = self._all[mapping]
        self._all[mapping] = replace(before, problems=(*before.problems, *problems), **changes)

    def refuse(self, mapping: int, refusal: Resolution) -> None:
        """Let a mapping have no binary, as more evidence said."""
        locations = self._all[mapping].locations
        self._all[mapping] = replace(refusal, mapping=mapping, locations=locations)
        self.reasons[locations] = refusal.reason

    def note_name_conflicts(self, mapping: int, count: int) -> None:
        """At so many addresses of a mapping the names that came with the profile stay (R164, name agreement)."""
        if count:
            text = f"at {count} addresses the profile has a name that the debug information does not confirm; it stays"
            self.note(mapping, [text])

    def fail(self, resolutions: Sequence[Resolution], failure: ReadFailure) -> None:
        """Let a failure be the reason of the locations that one binary was asked for."""
        for each in resolutions:
            self._all[each.mapping] = self._all[each.mapping].with_failure(failure)
            self.reasons[each.rows] = reason_of(failure)

    def mark_changed_files(self, earlier: Mapping[int, tuple[str, str]]) -> None:
        """Let it be a failure if a mapping lacks names and its binary is not the one that it asked before: `earlier`
        has path and key of that (R284, files that are replaced)."""
        for mapping, (path, key) in earlier.items():
            binary = self._all[mapping].binary
            if not isinstance(binary, Binary) or binary.key != key:
                self.note(mapping, transient_failure=Failure.of(ChangedFile(path, CHANGED)))

    def blame_failures(self) -> None:
        """Where a file changed, or servers failed, that may have what the locations of a mapping miss, let that be the
        reason (R285, names missed by failures).

        A failure is the reason too of every miss in a mapping of which a file could not be asked for, but for addresses
        outside the code and those never recorded.
        """
        for each in self._all:
            if each.mapping == NONE or not (each.failures or each.transient_failure):
                continue
            reasons = self.reasons[each.locations]
            missed = each.locations[(reasons > Reason.HAD_NAMES) & ~is_among(reasons, INDEPENDENT)]
            if not len(missed):
                continue
            servers = [failure for failure in each.failures if failure.reason is Reason.SERVER_FAILED]
            if each.transient_failure is not None:
                self.reasons[missed] = each.transient_failure.reason
                self.note(
                    each.mapping,
                    failures=(*each.failures, each.transient_failure),
                    detail=each.transient_failure.sentence,
                )
            elif servers:
                self.reasons[missed] = Reason.SERVER_FAILED
                what = "; ".join(f"{failure.place}: {failure.text}" for failure in servers)
                self.note(each.mapping, detail=f"{what}; {each.detail}" if each.detail else what)

    def write(self, profile: Profile) -> None:
        """Make addresses in files vaddrs, and give mappings the build ids of proven files.

        A mapping without a build id gets one only if names prove its file (R166, build id by proof).
        """
        locations, mappings = profile.locations, profile.mappings
        settled = [each for each in self._all if each.binary is not None and (each.load_bias or each.build_id)]
        if settled:
            locations.address, mappings.build_id = locations.address.copy(), mappings.build_id.copy()
        for each in settled:
            locations.address[each.locations] += np.uint64(each.load_bias)
            if each.build_id:
                mappings.build_id[each.mapping] = profile.strings.add(each.build_id.encode())


def reader_of(profile: Profile, resolutions: Resolutions) -> "PairReader":
    """What is known of the pairs on all stacks of a profile."""
    from symbolize.evidence.stacks import PairReader

    answered = [
        (binary, np.concatenate([each.rows for each in parts]), np.concatenate([each.vaddrs for each in parts]))
        for binary, parts in resolutions.by_binary()
        if isinstance(binary, Binary)
    ]
    return PairReader(pairs_of(profile), answered, len(profile.locations))


def pairs_of(profile: Profile) -> "StackPairs":
    """The pairs on the stacks of a profile."""
    from symbolize.evidence.stacks import StackPairs

    samples = profile.samples
    at = np.flatnonzero(caller_mask(profile)[1:])
    keys, number = distinct_inverse(pair(samples.locations[at], samples.locations[at + 1]))
    which = np.full(len(samples.locations), -1, np.int64)
    which[at] = number
    callee, caller = (column.astype(np.int64) for column in unpair(keys))
    return StackPairs(callee, caller, which)


def check_stacks(profile: Profile, resolutions: Resolutions, reader: "PairReader") -> None:
    """Judge all pairs of neighbours on the stacks of a profile (R361, stacks against call sites); `resolutions` get
    what was found, by the mapping of the caller.

    A caller agrees if it calls the next function on the stack there, or one that leads to it by tail calls. It
    contradicts if it calls another function, all of whose tail calls are known, or if its function lists all its
    calls (R371, lists of calls) and has none there. Calls by a pointer, of functions that are defined elsewhere,
    and in functions that do not list their calls are not judged, nor is where the kernel was entered: a page fault
    is no call. The entry of a function in a linkage table is that function (R361, stacks against call sites).
    """
    column = profile.weight_column()
    if not len(reader.pairs.callee) or column < 0:
        return
    weights = np.abs(profile.samples.values[:, column].astype(np.float64))
    of_frame = np.repeat(weights, np.diff(profile.samples.location_offsets))
    for mapping, found in reader.check(of_frame, profile.locations.mapping).items():
        resolutions.note(mapping, stack_check=found)

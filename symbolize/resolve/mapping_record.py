"""What a profile records of its mappings: the question that a `Resolution` answers."""

from collections.abc import Callable
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from symbolize.binaries import plain_build_id
from symbolize.core.arrays import Bool, Int64, UInt64, distinct, is_among, marked, pair, unpair
from symbolize.core.mapped_names import plain_spelling
from symbolize.evidence.judge import Observed
from symbolize.profile import NONE, AddressKind, IdOrigin, LeafKind, Profile, Samples, StackSource
from symbolize.profile.attachments import SampleTimes
from symbolize.profile.sample_labels import PROCESS_IDS
from symbolize.profile.sample_times import location_times
from symbolize.resolve.name_agreement import ExistingNames, existing_names

MAX_PROCESS_DIGITS = 19
KERNEL_HALF = 1 << 63
"""Addresses from here on are those of the kernel."""

NO_ROWS, NO_ADDRESSES, NO_CALLS = np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.bool_)
"""What mappings without locations share: profiles of a fleet have many."""


MAX_FRAMES = 1 << 16
"""Frames whose callers are looked for."""

Pairs = tuple[Int64, Int64]
"""Locations, and one next to each on a stack that called it."""


class LocationTimes(NamedTuple):
    """When locations were on stacks: the first time of each, 0 where it is not known, by a clock."""

    at: UInt64
    clock: SampleTimes


class MappingRecord(NamedTuple):
    """A mapping as the profile records it: its name and build id (each in one spelling; either may be empty), bounds,
    and file offset.

    `mapping` is its row, NONE for what is in no mapping, and `kind` what its addresses are. `rows` are its locations,
    `addresses` theirs; `is_call` says which are call sites that count as evidence, `is_leaf` which are exact addresses
    of instructions. `is_sound`: the stacks were unwound by call frame information, `by_pointers`: along frame pointers.
    `names` are the functions that they came with, where those are evidence: of addresses in a file, and of a kernel.
    `pairs` finds pairs of locations next to each other on stacks, see `PairsByMapping`. `is_claim`: the build id was
    read later, by path.
    """

    mapping: int
    kind: AddressKind
    filename: str
    build_id: str
    start: int
    limit: int
    file_offset: int
    rows: Int64
    addresses: UInt64
    is_call: Bool
    names: ExistingNames | None
    pairs: Callable[[], Pairs] | None = None
    is_leaf: Bool = NO_CALLS
    is_sound: bool = False
    by_pointers: bool = False
    is_claim: bool = False
    times: LocationTimes | None = None

    def without_locations(self) -> Self:
        """What outlives the profile: the mapping itself."""
        return self._replace(
            rows=NO_ROWS, addresses=NO_ADDRESSES, is_call=NO_CALLS, is_leaf=NO_CALLS, names=None, pairs=None, times=None
        )

    def observed(self, mapped: tuple[UInt64, Bool]) -> Observed:
        """What was seen of the mapping, for the judge of builds, were its addresses where `mapped` says."""
        is_leaf = self.is_leaf if len(self.is_leaf) else np.zeros(len(self.rows), np.bool_)
        return Observed(*mapped, is_leaf, self.is_call, self.is_sound, self.indexed_pairs, self.by_pointers)

    def indexed_pairs(self) -> Pairs:
        """What was called, and its callers, as indices of the locations."""
        if self.pairs is None:
            return NO_ROWS, NO_ROWS
        callee, caller = self.pairs()
        known = np.flatnonzero(is_among(callee, self.rows) & is_among(caller, self.rows))
        order = np.argsort(self.rows)
        callee, caller = (order[np.searchsorted(self.rows, each[known], sorter=order)] for each in (callee, caller))
        return callee, caller

    @property
    def is_proof(self) -> bool:
        """Whether a file that has the build id is proved to be what ran."""
        return bool(self.build_id) and not self.is_claim

    @property
    def linked_names(self) -> list[tuple[int, bytes]]:
        """The addresses of a kernel that came with a name, and the linked one, if it is known, else that for people."""
        if self.names is None or self.kind != AddressKind.KERNEL:
            return []
        names, of_location = self.names
        named = np.flatnonzero(of_location != NONE)
        linked = [names[i].linked or names[i].shown for i in of_location[named].tolist()]
        return list(zip(self.addresses[named].tolist(), linked, strict=True))


def records_of(profile: Profile, *, with_names: bool, no_evidence: Bool | None = None) -> list[MappingRecord]:
    """All mappings of a profile, and behind them what is in none. Locations of `no_evidence` count as no call sites."""
    mappings, text = profile.mappings, profile.strings.text
    is_sound = profile.stack_source is StackSource.OWN_UNWINDING
    callers = call_site_mask(profile, is_sound=is_sound)
    if no_evidence is not None:
        callers &= ~no_evidence
    leaves = exact_leaves(profile)
    pairs = PairsByMapping(profile, callers)
    origins = profile.id_origins
    clock = profile.sample_times
    times = location_times(profile) if clock is not None else NO_ADDRESSES

    def record(mapping: int, rows: Int64) -> MappingRecord:
        is_mapping = mapping != NONE
        kind = profile.address_kind(mapping) if is_mapping else AddressKind.PROCESS
        is_evidence = with_names and len(rows) and kind in (AddressKind.IN_FILE, AddressKind.OFFSET, AddressKind.KERNEL)
        return MappingRecord(
            mapping,
            kind,
            plain_spelling(text(mappings.filename[mapping])) if is_mapping else "",
            plain_build_id(text(mappings.build_id[mapping])) if is_mapping else "",
            int(mappings.start[mapping]) if is_mapping else 0,
            int(mappings.limit[mapping]) if is_mapping else 0,
            int(mappings.file_offset[mapping]) if is_mapping else 0,
            rows,
            profile.locations.address[rows] if len(rows) else NO_ADDRESSES,
            callers[rows] if len(rows) else NO_CALLS,
            existing_names(profile, rows) if is_evidence else None,
            partial(pairs.within, mapping) if is_mapping and len(rows) else None,
            leaves[rows] if len(rows) else NO_CALLS,
            is_sound,
            profile.stack_source is StackSource.FRAME_POINTERS,
            is_mapping and len(origins) > 0 and origins[mapping] == IdOrigin.READ_LATER,
            LocationTimes(times[rows], clock) if clock is not None and len(rows) else None,
        )

    records = [record(mapping, rows) for mapping, rows in enumerate(rows_by_mapping(profile))]
    return [*records, record(NONE, unmapped_locations(profile))]


class PairsByMapping:
    """Pairs of locations next to each other on the stacks of a profile and in one mapping, of which the second, a call
    site, is the caller of the first. All frames are looked at once, when the first pairs are asked for."""

    def __init__(self, profile: Profile, is_call: Bool) -> None:
        self._profile = profile
        self._is_call = is_call

    def within(self, mapping: int) -> Pairs:
        """The distinct pairs in a mapping: of very many frames those of an evenly spaced part."""
        frames, edges = self._frames
        at = frames[edges[mapping] : edges[mapping + 1]]
        at = at[:: len(at) // MAX_FRAMES + 1]
        locations = self._profile.samples.locations
        callee, caller = unpair(distinct(pair(locations[at], locations[at + 1])))
        return callee.astype(np.int64), caller.astype(np.int64)

    @cached_property
    def _frames(self) -> tuple[Int64, Int64]:
        """The frames with such a caller, by mapping: those of each are a slice between two edges."""
        samples = self._profile.samples
        mapping = self._profile.locations.mapping[samples.locations]
        is_pair = (mapping[:-1] == mapping[1:]) & self._is_call[samples.locations[1:]]
        begins = samples.location_offsets[1:-1]
        is_pair[begins[(begins > 0) & (begins < len(samples.locations))] - 1] = False  # a leaf calls nothing
        at = np.flatnonzero(is_pair)
        at = at[np.argsort(mapping[at], kind="stable")]
        return at, np.searchsorted(mapping[at], np.arange(len(self._profile.mappings) + 1))


def rows_by_mapping(profile: Profile) -> list[Int64]:
    """The locations of each mapping."""
    order = np.argsort(profile.locations.mapping, kind="stable")
    edges = np.searchsorted(profile.locations.mapping[order], np.arange(len(profile.mappings) + 1))
    return [order[begin:end] if begin < end else NO_ROWS for begin, end in pairwise(edges.tolist())]


def unmapped_locations(profile: Profile) -> Int64:
    """The locations with an address that is in no mapping."""
    return np.flatnonzero((profile.locations.mapping == NONE) & (profile.locations.address != 0))


def call_site_mask(profile: Profile, *, is_sound: bool) -> Bool:
    """Which locations are on some stack above the leaf, and called what is below: bool[n].

    On stacks that are not `is_sound` only behind frames in mappings: what a walk finds behind others may be any data. A
    frame that called into the kernel, or was interrupted by it, is no call site, and no call is where a function
    begins: there stacks of goroutines end. On stacks that were not unwound by call frame information one also has to be
    in a function, and not to return to the begin of one: a walk along frame pointers reads any data and tables of
    virtual functions as frames (R148, the score of evidence).
    """
    is_caller = caller_mask(profile)
    if not is_sound:
        samples = profile.samples
        # The last is for no mapping.
        is_mapped = np.append(np.ones(len(profile.mappings), np.bool_), not has_map(profile))
        if len(profile.address_kinds):
            is_mapped[:-1] = profile.address_kinds != AddressKind.NO_BINARY
        is_known = is_mapped[profile.locations.mapping][samples.locations] | kernel_frames(profile)
        is_caller &= unbroken(samples, is_known)
    return marked(profile.samples.locations, len(profile.locations), is_caller)


def has_map(profile: Profile) -> bool:
    """Whether a profile says of any address which file it is in."""
    return bool(len(profile.mappings) and (profile.mappings.filename | profile.mappings.build_id).any())


def exact_leaves(profile: Profile) -> Bool:
    """Which locations are addresses of instructions, as they were sampled: leaves, where the sample type has exact
    ones, and where the kernel was entered: bool[n].

    While the kernel replaces a program the address is still that of the old one. Then the stack has nothing above it.
    """
    samples, kinds = profile.samples, profile.leaf_kinds
    is_exact = np.flatnonzero(kinds == LeafKind.EXACT)
    counts = np.diff(samples.location_offsets)
    has_value = (samples.values[:, is_exact] != 0).any(axis=1) & (counts > 0)
    frames = np.zeros(len(samples.locations), np.bool_)
    in_kernel = kernel_frames(profile)
    frames[1:] = in_kernel[:-1] & ~in_kernel[1:] & np.repeat(has_value, counts)[1:]
    frames[samples.location_offsets[1:][counts > 0] - 1] = False
    frames[samples.location_offsets[:-1][has_value]] = True
    return marked(samples.locations, len(profile.locations), frames)


def caller_mask(profile: Profile) -> Bool:
    """Which frames of the stacks called the frame below: bool[frames].

    Where the kernel was entered the process may have been at any instruction, so that is no call.
    """
    samples = profile.samples
    above = np.ones(len(samples.locations), np.bool_)
    above[samples.location_offsets[:-1][np.diff(samples.location_offsets) > 0]] = False
    in_kernel = kernel_frames(profile)
    above[1:] &= in_kernel[1:] | ~in_kernel[:-1]
    return above


def kernel_frames(profile: Profile) -> Bool:
    """Which frames of the stacks are those of the kernel, which come before all others: bool[frames]. Such an address
    behind them is none: a walk along frame pointers may read any number."""
    samples = profile.samples
    in_kernel = profile.locations.address >= np.uint64(KERNEL_HALF)
    frames = in_kernel[samples.locations]
    return unbroken(samples, frames) if in_kernel.any() else frames


def unbroken(samples: Samples, frames: Bool) -> Bool:
    """Which of some `frames` have only such frames below them on their stacks: bool[frames]."""
    others = np.zeros(len(frames) + 1, np.int32)
    np.cumsum(~frames, dtype=np.int32, out=others[1:])
    first = np.repeat(others[samples.location_offsets[:-1]], np.diff(samples.location_offsets))
    result: Bool = frames & (others[:-1] == first)
    return result


def processes(profile: Profile) -> set[int]:
    """The processes that the labels of the samples name."""
    labels = profile.samples.labels
    used = np.flatnonzero(marked(labels.key, len(profile.strings)))
    keys = [key for key in used.tolist() if profile.strings[key].lower() in PROCESS_IDS]
    here = is_among(labels.key, np.array(keys, labels.key.dtype))
    found = set(distinct(labels.number[here & (labels.text == 0)]).tolist())
    texts = map(profile.strings.text, distinct(labels.text[here]).tolist())
    named = (text for text in texts if text.isascii() and text.isdigit() and len(text) <= MAX_PROCESS_DIGITS)
    return (found | set(map(int, named))) - {0}


def weight_of_mappings(profile: Profile) -> NDArray[np.float64]:
    """The sample value of the frames in each mapping."""
    samples, column = profile.samples, profile.weight_column()
    values = np.abs(samples.values[:, column].astype(np.float64)) if column >= 0 else np.ones(len(samples))
    mapping = profile.locations.mapping[samples.locations]
    value = np.repeat(values, np.diff(samples.location_offsets))
    inside = mapping != NONE
    return np.bincount(mapping[inside], value[inside], len(profile.mappings)).astype(np.float64)

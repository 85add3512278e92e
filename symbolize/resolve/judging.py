"""What a profile saw of a mapping, for the judge of builds."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from symbolize.core.arrays import Int64, is_among, marked
from symbolize.elf import without_tag
from symbolize.evidence.judge import Judge, Judgement, Observed
from symbolize.evidence.score import Count, Evidence
from symbolize.resolve.addresses import MappedAddresses
from symbolize.resolve.mapping_record import MappingRecord
from symbolize.symbols import Binary

MAX_PAIRS = 512
"""Pairs of a caller and what it called that are judged by lists of calls; of more an evenly spaced part, the same for
all builds."""


def observe(record: MappingRecord, mapped: MappedAddresses) -> Observed:
    """What was seen of a mapping, were its addresses where `mapped` says."""
    vaddrs, inside = mapped
    is_leaf = record.is_leaf if len(record.is_leaf) else np.zeros(len(record.rows), np.bool_)
    return Observed(vaddrs, inside, is_leaf, record.is_call, record.is_sound, partial(called_pairs, record))


def called_pairs(record: MappingRecord) -> tuple[Int64, Int64]:
    """The pairs by which the targets of calls are judged. Along frame pointers code at a leaf that has not made its
    frame yet lacks its caller, so that what is next to it says nothing."""
    callee, caller = indexed_pairs(record)
    is_known = record.is_call[callee] if record.by_pointers else np.ones(len(callee), np.bool_)
    return callee[is_known], caller[is_known]


def indexed_pairs(record: MappingRecord) -> tuple[Int64, Int64]:
    """What was called, and its callers, as indices of the locations of a mapping."""
    if record.pairs is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    callee, caller = record.pairs()
    known = np.flatnonzero(is_among(callee, record.rows) & is_among(caller, record.rows))
    order = np.argsort(record.rows)
    indices = (order[np.searchsorted(record.rows, each[known], sorter=order)] for each in (callee, caller))
    return next(indices), next(indices)


def judge_mapping(
    judge: Judge, record: MappingRecord, binary: Binary, mapped: MappedAddresses, claim: int = 0
) -> Judgement:
    """Whether a binary is the build that a mapping was of, were its addresses where `mapped` says."""
    observed = observe(record, mapped)
    more = [listed_callers(record, binary, observed)] if binary.code is None else []
    return judge.judge(binary, observed, claim=claim, more=more)


def listed_callers(record: MappingRecord, binary: Binary, observed: Observed) -> Count:
    """How many callers call what is next to them on a stack of theirs, by the debug information of a binary without
    code (R370, builds by their callers).

    That one calls another function than the leaf speaks against no binary: code that has not made its frame yet lacks
    its caller.
    """
    callee, caller = indexed_pairs(record)
    known = np.flatnonzero(observed.inside[callee] & observed.inside[caller])
    known = known[:: len(known) // MAX_PAIRS + 1]
    if not len(known):
        return Count(Evidence.LISTED, 0, 0)
    from symbolize.evidence.stacks import PairVerdict, StackPairs, StackReader

    count = len(observed.vaddrs)
    there = without_tag(binary.images[0], observed.vaddrs + np.uint64(binary.shift))
    rows = np.flatnonzero(observed.inside)
    pairs = StackPairs(callee[known], caller[known], np.zeros(0, np.int64))
    reader = StackReader(pairs, [(binary, rows, there[rows])], count, believes_all=True)
    verdicts = reader.verdicts
    agrees = (verdicts == PairVerdict.CONFIRMED) | (verdicts == PairVerdict.EXPLAINED)
    counts = (record.is_call[callee[known]] | reader.has_no_call) & ~reader.may_be_unlisted
    agreeing = marked(caller[known], count, agrees)
    judged = agreeing | marked(caller[known], count, (verdicts == PairVerdict.CONTRADICTED) & counts)
    return Count(Evidence.LISTED, int(judged.sum()), int((judged & ~agreeing).sum()))


def same_names(record: MappingRecord, binaries: Sequence[tuple[Binary, MappedAddresses]]) -> bool:
    """Whether binaries give the same names for all locations of a mapping, inlined functions too."""
    first = None
    for binary, (vaddrs, inside) in binaries:
        there = without_tag(binary.images[0], vaddrs[inside] + np.uint64(binary.shift))
        frames = binary.answer(there).frames
        names = [linked or name for linked, name in zip(frames.functions.linkage, frames.functions.name, strict=True)]
        found = inside, frames.offsets, [names[i] for i in frames.function.tolist()]
        first = first or found
        if not all(np.array_equal(*each) for each in zip(first[:2], found[:2], strict=True)) or first[2] != found[2]:
            return False
    return True

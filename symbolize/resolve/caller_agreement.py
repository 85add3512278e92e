"""Whether callers call what is next to them on the stacks: evidence for a binary that only has the right name (R370,
builds by their callers)."""

import numpy as np

from symbolize.core.arrays import distinct, is_among, marked
from symbolize.core.stack_check import CallerAgreement
from symbolize.elf import without_tag
from symbolize.resolve.addresses import CHANCE_SHARE, MIN_LIKELIHOOD, MappedAddresses, at_most
from symbolize.resolve.mapping_record import MappingRecord
from symbolize.symbols import Binary

MIN_CALLERS = 2
"""Fewer callers decide nothing, whatever they call."""
MAX_PAIRS = 512
"""Pairs of a caller and what it called that are judged; of more an evenly spaced part, the same for all builds."""
MIN_AGREEING = 1 / 4
"""Where so many of the callers agree the binary is not refuted. Of those of other builds hardly one in twenty does, of
sound stacks nearly all: what is between has stacks that lack callers."""
SOUND_SHARE = 1 / 3
"""In the right binary so many agree at least, if every other frame is missing on the stacks."""


def is_contradiction(callers: CallerAgreement | None) -> bool:
    """Whether hardly any right binary has so few callers that agree."""
    if callers is None or callers.agreeing >= MIN_AGREEING * callers.judged:
        return False
    return at_most(callers.agreeing, callers.judged, SOUND_SHARE) < MIN_LIKELIHOOD


def is_confirmation(callers: CallerAgreement | None) -> bool:
    """Whether hardly any other binary has so many callers that agree."""
    if callers is None or not callers.agreeing or is_contradiction(callers):
        return False
    return 1 - at_most(callers.agreeing - 1, callers.judged, CHANCE_SHARE) < MIN_LIKELIHOOD


def caller_mismatch(callers: CallerAgreement | None) -> str:
    """Why a file that only has the right name cannot be what ran, empty if it can."""
    return f"another build: {callers.text} there" if callers is not None and is_contradiction(callers) else ""


def callers_of(record: MappingRecord, binary: Binary, mapped: MappedAddresses) -> CallerAgreement | None:
    """How the callers of a mapping agree with a binary, were its addresses where `mapped` says; None if there are too
    few, or the debug information says nothing of them.

    A caller agrees if it does so on one stack. That one calls another function than the leaf speaks against no binary:
    code that has not made its frame yet lacks its caller.
    """
    if record.pairs is None:
        return None
    vaddrs, inside = mapped
    rows = record.rows[inside]
    callee, caller = record.pairs()
    known = np.flatnonzero(is_among(callee, rows) & is_among(caller, rows))
    known = known[:: len(known) // MAX_PAIRS + 1]
    if len(distinct(caller[known])) < MIN_CALLERS:
        return None
    from symbolize.resolve.stack_pairs import StackPairs, StackReader, Verdict

    order = np.argsort(rows)
    callee, caller = (order[np.searchsorted(rows, each[known], sorter=order)] for each in (callee, caller))
    there = without_tag(binary.images[0], vaddrs[inside] + np.uint64(binary.shift))
    pairs = StackPairs(callee, caller, np.zeros(0, np.int64))
    reader = StackReader(pairs, [(binary, np.arange(len(rows)), there)], len(rows), believes_all=True)
    verdicts = reader.verdicts
    agrees = (verdicts == Verdict.CONFIRMED) | (verdicts == Verdict.EXPLAINED)
    counts = (record.is_call[inside][callee] | reader.has_no_call) & ~reader.may_be_unlisted
    agreeing = marked(caller, len(rows), agrees)
    judged = agreeing | marked(caller, len(rows), (verdicts == Verdict.CONTRADICTED) & counts)
    return CallerAgreement(int(agreeing.sum()), int(judged.sum())) if judged.any() else None

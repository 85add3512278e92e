"""Which of several functions with the same code was called: the caller's call site says it (R357, shared code by
callers)."""

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np

from symbolize.core.arrays import Int32, Int64, distinct_inverse, is_among, pair, unpair
from symbolize.symbols import UNDECIDED, Answer, Function, Namesakes

Call = tuple[Function, Function | None]
"""A function that makes a call and the one that is called, None by a pointer."""

MAX_ROUNDS: Final = 64
"""How many functions with shared code may call one another in a stack; those below them stay undecided."""


def functions_called(
    locations: Int32,
    offsets: Int64,
    namesakes: Namesakes,
    answers: Sequence[tuple[Int64, Answer]],
    group: Int64,
    at: Int64,
) -> Int32:
    """Which function of its shared code each frame `at` a place of the stacks is, by its caller: int32, UNDECIDED where
    that says nothing. The stacks are `locations`, each from one of `offsets` on; `answers` are those of binaries for
    some locations, and `group` is the shared code of each location.

    A caller whose own code is shared has to be decided first, because each function there has other calls.
    """
    is_last = np.zeros(len(locations) + 1, np.bool_)
    is_last[offsets[1:] - 1] = True  # of empty stacks that is the one before, or behind all
    called = np.flatnonzero(~is_last[at])
    callers, caller = distinct_inverse(locations[at[called] + 1])
    calls = calls_at(answers, callers.astype(np.int64))
    above = np.searchsorted(at, at[called] + 1)
    above[np.append(at, -1)[above] != at[called] + 1] = len(at)
    chosen = np.full(len(at) + 1, UNDECIDED, np.int32)  # the last is for callers whose code is not shared
    callee = group[locations[at[called]]]

    @cache
    def decide(callee: int, caller: int, choice: int) -> int:
        """The function of shared code `callee` that the one `choice` of a caller calls."""
        own = int(group[callers[caller]])
        if own >= 0 and choice == UNDECIDED:
            return UNDECIDED
        found = set()
        for made_by, to in calls[caller]:
            if own < 0 or namesakes.find(made_by, own) == choice:
                found.add(namesakes.find(to, callee) if to is not None else UNDECIDED)
        return found.pop() if len(found) == 1 else UNDECIDED

    pairs, of_pair = distinct_inverse(pair(callee, caller))
    of_pairs = [column.tolist() for column in unpair(pairs)]
    for _ in range(MAX_ROUNDS):
        keys, which = distinct_inverse(pair(of_pair, chosen[above] + 1))
        asked = zip(*(column.tolist() for column in unpair(keys)), strict=True)
        chosen_now = [decide(of_pairs[0][row], of_pairs[1][row], choice - 1) for row, choice in asked]
        found = np.array(chosen_now, np.int32)[which]
        if np.array_equal(found, chosen[called]):
            break
        chosen[called] = found
    return chosen[:-1]


def calls_at(answers: Sequence[tuple[Int64, Answer]], locations: Int64) -> list[list[Call]]:
    """The calls at each of `locations` (ascending), which are those of callers, by the answers of their binaries."""
    found: list[list[Call]] = [[] for _ in locations]
    for rows, answer in answers:
        calls, here = answer.calls, np.flatnonzero(is_among(rows, locations))
        numbers = np.searchsorted(locations, rows[here])
        bounds = calls.at(answer.vaddrs[here], answer.machine)
        for number, first, last in zip(*(column.tolist() for column in (numbers, *bounds)), strict=True):
            made = zip(calls.caller[first:last].tolist(), calls.callee[first:last].tolist(), strict=True)
            found[number] += [(calls.functions[by], calls.functions[to] if to >= 0 else None) for by, to in made]
    return found

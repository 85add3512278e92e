"""Callers and what they called, next to each other on the stacks of a profile, as the debug information has them, and
how tail calls lead from one function to another (R359, chains of tail calls)."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import IntEnum
from functools import cached_property
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import (
    Bool,
    Float64,
    Int32,
    Int64,
    UInt8,
    UInt64,
    distinct_inverse,
    marked,
    offsets_of,
    pair,
    unpair,
)
from symbolize.core.errors import ReadFailure
from symbolize.core.outcome import StackCheck
from symbolize.core.records import record
from symbolize.symbols import Binary, spellings_of
from symbolize.symbols.call_sites import UNKNOWN, CallSites

MAX_DEPTH: Final = 5
"""Tail calls behind each other that are followed."""
MAX_CHAINS: Final = 64
"""Chains from one function to another that are looked at; with more nothing is common to all."""
MAX_STEPS: Final = 1024
"""Functions and calls on the way that are looked at; with more it is not known where they lead."""

Chain = tuple[tuple[int, int], ...]
"""Functions that called each other by tail calls, the first one first, each with the vaddr of its call."""
Answered = tuple[Binary, Int64, UInt64]
"""A binary, locations in it, and their vaddrs."""


class Reach(NamedTuple):
    """Where the tail calls of a function may lead: the keys of the names and the entries of the functions, and whether
    these are all."""

    keys: frozenset[bytes]
    entries: frozenset[int]
    is_whole: bool


class TailCalls:
    """The tail calls of the functions that `sites` has."""

    def __init__(self, sites: CallSites) -> None:
        self.sites = sites
        self._reaches: dict[int, Reach] = {}

    def chains(self, first: int, is_last: Callable[[int], bool]) -> tuple[list[Chain], bool]:
        """The chains of tail calls from `first` to a function that `is_last`, which is not part of them, and whether
        these are all: every function on the way vouches for its tail calls, and none is made by a pointer.

        A chain has at most five tail calls. Functions vouch by `DW_AT_call_all_calls`, `DW_AT_call_all_tail_calls` or
        the older forms, as far as that is believed (R371, lists of calls); clang gives a tail call `DW_AT_call_pc` only
        (R359, chains of tail calls).
        """
        found: list[Chain] = []
        is_whole = True
        waiting: list[tuple[int, Chain]] = [(first, ())]
        steps = 0
        while waiting:
            function, links = waiting.pop()
            definition = self.sites.definition(function)
            if definition is None or not definition.vouches or len(found) > MAX_CHAINS:
                is_whole = False
                continue
            steps += 1 + len(definition.tail_calls)
            if steps > MAX_STEPS:
                return found, False
            for pc, callee in definition.tail_calls:
                chain = (*links, (definition.die, pc))
                if callee == UNKNOWN:
                    is_whole = False
                elif is_last(callee):
                    found.append(chain)
                elif len(chain) >= MAX_DEPTH or not self.sites.key(callee):
                    is_whole = False
                elif all(self.sites.own(callee) != each for each, _ in chain):
                    waiting.append((callee, chain))
        return found, is_whole

    def reach(self, function: int) -> Reach:
        """Where the tail calls of a function may lead: nothing else can be the end of `chains`."""
        if function not in self._reaches:
            met: set[int] = set()

            def is_last(callee: int) -> bool:
                met.add(callee)
                return False

            _, is_whole = self.chains(function, is_last)
            entries = frozenset(entry for each in met if (entry := self.sites.entry(each)) != UNKNOWN)
            self._reaches[function] = Reach(frozenset(map(self.sites.key, met)), entries, is_whole)
        return self._reaches[function]

    def prepare(self, functions: Iterable[int]) -> None:
        """Find the definitions of many functions at once, and of those that their tail calls lead to."""
        waiting = set(functions)
        for _ in range(MAX_DEPTH + 1):
            definitions = self.sites.define(waiting)
            waiting = {call.callee for each in definitions for call in each.tail_calls} - {UNKNOWN}


def between(chains: list[Chain]) -> Sequence[int]:
    """Where the functions between two locations that are next to each other made their calls, the caller's side first:
    those that all chains of tail calls have in common at their begin, and, if that is not all of one, at their end;
    none if it is not known where one of the calls is."""
    first = chains[0]
    shared = first
    if any(chain != first for chain in chains):
        begin = shared_begin(chains)
        end = shared_begin([chain[len(begin) :][::-1] for chain in chains])[::-1]
        shared = (*begin, *end)
    vaddrs = [vaddr for _, vaddr in shared]
    return vaddrs if UNKNOWN not in vaddrs else ()


def shared_begin(chains: list[Chain]) -> Chain:
    """The links with which all of `chains` begin."""
    shared: list[tuple[int, int]] = []
    for links in zip(*chains, strict=False):
        if any(link != links[0] for link in links):
            break
        shared.append(links[0])
    return tuple(shared)


class PairVerdict(IntEnum):
    """What call sites say of a caller and the next function on the stack."""

    OPEN = 0
    CONFIRMED = 1
    EXPLAINED = 2
    CONTRADICTED = 3


class NextFunction(NamedTuple):
    """A function that was called: the spellings of its names, and where it begins in the binary with a number."""

    spellings: frozenset[bytes]
    begin: int
    binary: int

    @property
    def may_be_member(self) -> bool:
        """Whether it may be a member of a class."""
        return any(b"::" in name for name in self.spellings)


@record
class StackPairs:
    """The distinct pairs of locations of which one is the caller of the other: int64[n] each; `which` for each frame of
    the stacks its pair as the called one, -1 without a caller."""

    callee: Int64
    caller: Int64
    which: Int64


class _Called(NamedTuple):
    """A function that a caller in binary `binary` calls, and the one that is next on the stack."""

    binary: int
    function: int
    symbol: int


class PairReader:
    """Reads what is known of pairs of locations: which function the caller calls there, and which the other one is.

    `answered` are the binaries of the locations, which are less than `count`. `vaddrs` are those of all locations.
    `believes_all` is that of `CallSites`.
    """

    def __init__(
        self, pairs: StackPairs, answered: Sequence[Answered], count: int, *, believes_all: bool = False
    ) -> None:
        self.pairs = pairs
        self._believes_all = believes_all
        self.vaddrs = np.zeros(count, np.uint64)
        self._callee = np.full(count, UNKNOWN, np.uint64)
        self._has_no_call = np.zeros(count, np.bool_)
        self._binary_of = np.full(count, -1, np.int64)
        self._symbol_of = np.full(count, -1, np.int64)
        self._calls: list[TailCalls] = []
        self._symbols: list[NextFunction] = []
        is_caller = marked(pairs.caller, count)
        for each in answered:
            with suppress(ReadFailure):  # what cannot be read says nothing
                self._read_callers(*each, is_caller)
        is_judged = self._has_no_call | (self._callee != np.uint64(UNKNOWN))
        is_callee = marked(pairs.callee, count, is_judged[pairs.caller])
        for each in answered:
            with suppress(ReadFailure):
                self._read_callees(*each, is_callee)

    @property
    def has_no_call(self) -> Bool:
        """Which of the pairs have a caller whose function lists all its calls, and has none there: bool[n]."""
        return self._has_no_call[self.pairs.caller]

    @property
    def may_be_unlisted(self) -> Bool:
        """Which of the pairs have a next function that may be called although no list of calls has it: bool[n] (R371,
        lists of calls)."""
        may_be = any(calls.sites.may_lack_calls for calls in self._calls)
        is_member = np.array([*(may_be and symbol.may_be_member for symbol in self._symbols), may_be])
        return is_member[self._symbol_of[self.pairs.callee]]

    @cached_property
    def verdicts(self) -> UInt8:
        """Whether the code at a location can have been called by the one next to it, for each pair a `PairVerdict`."""
        called, which = self._called
        of_called = np.array([*map(self._judge, called), PairVerdict.OPEN], np.uint8)
        return np.where(self.has_no_call, np.uint8(PairVerdict.CONTRADICTED), of_called[which])

    def check(self, value: Float64, mapping: Int32) -> dict[int, StackCheck]:
        """How well callers agree with the calls (R361, stacks against call sites), by their mapping: `value` is that of
        each frame of the stacks, `mapping` that of each location, -1: none."""
        has_caller = self.pairs.which >= 0
        values = np.bincount(self.pairs.which[has_caller], value[has_caller], minlength=len(self.pairs.callee))
        row = (mapping[self.pairs.caller] + 1) * len(PairVerdict) + self.verdicts
        sums = np.bincount(row, values, minlength=(int(mapping.max(initial=0)) + 2) * len(PairVerdict))
        judged = sums.reshape(-1, len(PairVerdict))[1:, PairVerdict.CONFIRMED :]
        return {number: StackCheck(*judged[number].tolist()) for number in np.flatnonzero(judged.any(axis=1)).tolist()}

    def lost_callers(self) -> list[Sequence[int]]:
        """For each pair the vaddrs of the calls of functions between the two, in the binary of the caller and from its
        side on, which tail calls took off the stack; none unless all chains of tail calls are known."""
        called, which = self._called
        found = (self._chains(each) for each in called)
        lost = [between(chains) if chains and is_whole else () for chains, is_whole in found]
        return [lost[number] if number >= 0 else () for number in which.tolist()]

    @cached_property
    def _called(self) -> tuple[list[_Called], Int64]:
        """What is called in the pairs, each once, and which of these each pair has; -1: not known."""
        which = np.full(len(self.pairs.caller), -1, np.int64)
        called: list[_Called] = []
        function, symbol = self._callee[self.pairs.caller], self._symbol_of[self.pairs.callee]
        is_known = (function != np.uint64(UNKNOWN)) & (symbol >= 0)
        for number, calls in enumerate(self._calls):
            here = np.flatnonzero(is_known & (self._binary_of[self.pairs.caller] == number))
            functions, numbers = distinct_inverse(function[here])
            keys, which_key = distinct_inverse(pair(numbers, symbol[here]))
            which[here] = which_key + len(called)
            calls.sites.name(functions.tolist())
            own, symbols = unpair(keys)
            new = [_Called(number, *each) for each in zip(functions[own].tolist(), symbols.tolist(), strict=True)]
            calls.prepare(each.function for each in new if not self._is_named(each))
            called += new
        return called, which

    def _is_named(self, called: _Called) -> bool:
        return self._calls[called.binary].sites.key(called.function) in self._symbols[called.symbol].spellings

    def _is_last(self, called: _Called) -> Callable[[int], bool]:
        """Whether a function is the one that is next on the stack."""
        sites, symbol = self._calls[called.binary].sites, self._symbols[called.symbol]
        begin = symbol.begin if symbol.binary == called.binary else UNKNOWN

        def is_last(function: int) -> bool:
            return sites.key(function) in symbol.spellings or sites.entry(function) == begin != UNKNOWN

        return is_last

    def _chains(self, called: _Called) -> tuple[list[Chain], bool]:
        """The chains of tail calls to the next function, and whether these are all; none where it is called itself."""
        calls, symbol, is_last = self._calls[called.binary], self._symbols[called.symbol], self._is_last(called)
        if is_last(called.function):
            return [], False
        reach = calls.reach(called.function)
        if reach.keys.isdisjoint(symbol.spellings) and symbol.begin not in reach.entries:
            return [], reach.is_whole
        return calls.chains(called.function, is_last)

    def _judge(self, called: _Called) -> PairVerdict:
        if self._is_last(called)(called.function):
            return PairVerdict.CONFIRMED
        if not self._calls[called.binary].sites.key(called.function):
            return PairVerdict.OPEN
        chains, is_whole = self._chains(called)
        if chains:
            return PairVerdict.EXPLAINED
        return PairVerdict.CONTRADICTED if is_whole else PairVerdict.OPEN

    def _read_callers(self, binary: Binary, rows: Int64, vaddrs: UInt64, is_caller: Bool) -> None:
        self.vaddrs[rows] = vaddrs
        sites = binary.call_sites(believes_all=self._believes_all)
        if sites is None:
            return
        self._binary_of[rows] = len(self._calls)
        self._calls.append(TailCalls(sites))
        chosen = is_caller[rows]
        asked, inverse = distinct_inverse(vaddrs[chosen])
        found = sites.at(asked)
        self._callee[rows[chosen]] = found.callee[inverse]
        self._has_no_call[rows[chosen]] = found.is_none[inverse]

    def _read_callees(self, binary: Binary, rows: Int64, vaddrs: UInt64, is_callee: Bool) -> None:
        chosen = rows[is_callee[rows]]
        if not len(chosen):
            return
        there, inverse = distinct_inverse(vaddrs[is_callee[rows]])
        number, names = binary.functions_at(there)
        begin = np.full(len(names), UNKNOWN, np.uint64)
        begin[number[number >= 0]] = binary.function_bounds(there)[0][number >= 0]
        spelled = spellings_of([*chain.from_iterable(names)])
        ends = offsets_of([*map(len, names)]).tolist()
        number = np.where(number >= 0, number + len(self._symbols), -1)
        self._symbol_of[chosen] = number[inverse]
        own = int(self._binary_of[chosen[0]])
        self._symbols += [
            NextFunction(frozenset(chain.from_iterable(spelled[first:last])), vaddr, own)
            for first, last, vaddr in zip(ends[:-1], ends[1:], begin.tolist(), strict=True)
        ]

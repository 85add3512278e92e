"""How tail calls lead from one function to another (R359, chains of tail calls)."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from symbolize.symbols.call_sites import UNKNOWN, CallSites

MAX_DEPTH: Final = 5
"""Tail calls behind each other that are followed."""
MAX_CHAINS: Final = 64
"""Chains from one function to another that are looked at; with more nothing is common to all."""
MAX_STEPS: Final = 1024
"""Functions and calls on the way that are looked at; with more it is not known where they lead."""

Chain = tuple[tuple[int, int], ...]
"""Functions that called each other by tail calls, the first one first, each with the vaddr of its call."""


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

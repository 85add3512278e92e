"""What lists of calls say of return addresses, and the chains of tail calls in them."""

import numpy as np
import pytest

from symbolize.symbols import Binary
from symbolize.symbols.call_graph import MAX_STEPS, UNKNOWN, CallGraph, Chain, Definition, TailCall
from tests.support.dwarf_writer import As, Die, Ref, die, function
from tests.support.elf_writer import FUNC, Symbol
from tests.support.lookup import image_of
from tests.support.programs import unit

WIDTH = 5000


class Wide(CallGraph):
    """Functions of which each calls very many others, and the last of these calls one more."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.asked = 0
        self._reaches = {}

    def _definition(self, function: int) -> Definition | None:
        calls = range(function * self.width, (function + 1) * self.width)
        return Definition(function, True, UNKNOWN, [TailCall(each, each) for each in calls])

    def key(self, function: int) -> bytes:
        self.asked += 1
        return b"f%d" % function


def found(graph: Wide, last: int) -> tuple[list[Chain], bool]:
    """The chains that lead from function 1 to the function `last`."""
    return graph.chains(1, lambda function: function == last)


def test_of_few_all_are_found() -> None:
    """Two functions call three others each, and so on: one chain leads to each, and not all are followed to the end."""
    assert found(Wide(3), 14) == ([((1, 4), (4, 14))], False)


def test_of_very_many_few_are_looked_at() -> None:
    """Whatever a file says of calls, the work is bounded, and what was not looked at is not known."""
    graph = Wide(WIDTH)
    assert found(graph, WIDTH + 1) == ([], False)
    assert not graph.reach(1).is_whole
    assert graph.asked <= 2 * MAX_STEPS


RETURN = 0x1110
LISTED = {"call_all_calls": As("flag_present", True)}


def call(callee: str, vaddr: int | None) -> Die:
    """A call that returns to a vaddr, or nowhere."""
    return die("call_site", call_origin=Ref(callee), **({} if vaddr is None else {"call_return_pc": As("addr", vaddr)}))


def tail_call(callee: str, vaddr: int | None) -> Die:
    """A tail call at a vaddr, or nowhere."""
    place = {} if vaddr is None else {"call_pc": As("addr", vaddr)}
    return die("call_site", call_origin=Ref(callee), call_tail_call=As("flag_present", True), **place)


def graph_of(*functions: Die) -> CallGraph:
    """The calls of a program with these functions, and `last`."""
    symbols = [Symbol("main", 0x1100, 0x80, FUNC)]
    units = [
        unit(
            *functions,
            function("last", 0x1400, 0x40, label="last", **LISTED),
            low_pc=0x1100,
            high_pc=0x400,
            producer="GNU C++17 12.2.0",
        )
    ]
    graph = Binary([image_of(units, symbols=symbols)]).call_graph()
    assert graph is not None
    return graph


def test_a_tail_call_without_a_vaddr_counts() -> None:
    """As clang up to release 10 writes them: the function that makes it leads there in this way too."""
    graph = graph_of(
        function("main", 0x1100, 0x80, call("first", RETURN), **LISTED),
        function("first", 0x1200, 0x40, tail_call("second", 0x1210), tail_call("last", None), label="first", **LISTED),
        function("second", 0x1300, 0x40, tail_call("last", 0x1310), label="second", **LISTED),
    )
    first = int(graph.sites(np.array([RETURN - 1], np.uint64)).callee[0])
    chains, is_whole = graph.chains(first, lambda callee: graph.key(callee) == b"last")
    assert is_whole and sorted([pc for _, pc in chain] for chain in chains) == [[0x1210, 0x1310], [UNKNOWN]]


@pytest.mark.parametrize("vaddr", [None, RETURN + 0x10])
def test_a_call_without_a_vaddr_may_be_anywhere(vaddr: int | None) -> None:
    """Between two calls there is no other only if it is known where all are."""
    calls = [call("last", each) for each in (RETURN, vaddr, RETURN + 0x20)]
    sites = graph_of(function("main", 0x1100, 0x80, *calls, **LISTED)).sites(np.array([RETURN + 8], np.uint64))
    assert not sites.is_call.any() and sites.is_none.tolist() == [vaddr is not None]

"""What lists of calls say of return addresses, and the chains of tail calls in them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symbolize.core.folded_code import FoldedCode, FoldedFunction, FoldingEvidence
from symbolize.evidence.stacks import MAX_CHAINS, MAX_DEPTH, MAX_STEPS, Chain, TailCalls
from symbolize.symbols import Binary
from symbolize.symbols.call_sites import UNITS_AT_ONCE, UNKNOWN, CallSites, Definition, TailCall
from symbolize.symbols.functions import DISTANCES
from tests.support.dwarf_writer import As, C, Die, Index, Ref, Unit, die, function
from tests.support.elf_writer import FUNC, LOCAL, Symbol
from tests.support.lookup import finder_of, image_of
from tests.support.programs import unit
from tests.support.split_writer import at, skeleton, split_file, split_unit

WIDTH = 5000
F_AND_G = [FoldedCode(0x1200, 0x1240, FoldingEvidence.DEFINITIONS, [FoldedFunction(b"f"), FoldedFunction(b"g")])]


class Wide(CallSites):
    """Functions of which each calls very many others, and the last of these calls one more."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.asked = 0

    def definition(self, function: int) -> Definition | None:
        calls = range(function * self.width, (function + 1) * self.width)
        return Definition(function, True, UNKNOWN, [TailCall(each, each) for each in calls])

    def key(self, function: int) -> bytes:
        self.asked += 1
        return b"f%d" % function


def chains_of(sites: Wide, last: int) -> tuple[list[Chain], bool]:
    """The chains that lead from function 1 to the function `last`."""
    return TailCalls(sites).chains(1, lambda function: function == last)


def test_of_few_all_are_found() -> None:
    """Two functions call three others each, and so on: one chain leads to each, and not all are followed to the end."""
    assert chains_of(Wide(3), 14) == ([((1, 4), (4, 14))], False)


def test_of_very_many_few_are_looked_at() -> None:
    """Whatever a file says of calls, the work is bounded, and what was not looked at is not known."""
    sites = Wide(WIDTH)
    assert chains_of(sites, WIDTH + 1) == ([], False)
    assert not TailCalls(sites).reach(1).is_whole
    assert sites.asked <= 2 * MAX_STEPS


class Long(CallSites):
    """Functions of which each calls the next one."""

    def __init__(self) -> None:
        pass

    def definition(self, function: int) -> Definition | None:
        return Definition(function, True, UNKNOWN, [TailCall(function, function + 1)])

    def key(self, function: int) -> bytes:
        return b"f%d" % function


@pytest.mark.parametrize(("links", "is_found"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
def test_longest_chain(links: int, is_found: bool) -> None:
    """Longer chains are not followed, and it is said that these are not all."""
    chains, is_whole = TailCalls(Long()).chains(1, lambda function: function == 1 + links)
    whole = [tuple((each, each) for each in range(1, links + 1))]
    assert (chains, is_whole) == ((whole, True) if is_found else ([], False))


RETURN = 0x1110
LISTED: dict[str, Any] = {"call_all_calls": As("flag_present", True)}


def call(callee: str, vaddr: int | None) -> Die:
    """A call that returns to a vaddr, or nowhere."""
    return die("call_site", call_origin=Ref(callee), **({} if vaddr is None else {"call_return_pc": As("addr", vaddr)}))


def tail_call(callee: str, vaddr: int | None) -> Die:
    """A tail call at a vaddr, or nowhere."""
    place = {} if vaddr is None else {"call_pc": As("addr", vaddr)}
    return die("call_site", call_origin=Ref(callee), call_tail_call=As("flag_present", True), **place)


def calls_of(*functions: Die, more: Sequence[Symbol] = ()) -> CallSites:
    """The calls of a program with these functions, and `last`."""
    symbols = [Symbol("main", 0x1100, 0x80, FUNC), *more]
    units = [
        unit(
            *functions,
            function("last", 0x1400, 0x40, label="last", **LISTED),
            low_pc=0x1100,
            high_pc=0x400,
            producer="GNU C++17 12.2.0",
        )
    ]
    sites = Binary([image_of(units, symbols=symbols)]).call_sites()
    assert sites is not None
    return sites


def test_a_tail_call_without_a_vaddr_counts() -> None:
    """As clang up to release 10 writes them: the function that makes it leads there in this way too."""
    sites = calls_of(
        function("main", 0x1100, 0x80, call("first", RETURN), **LISTED),
        function("first", 0x1200, 0x40, tail_call("second", 0x1210), tail_call("last", None), label="first", **LISTED),
        function("second", 0x1300, 0x40, tail_call("last", 0x1310), label="second", **LISTED),
    )
    first = int(sites.at(np.array([RETURN - 1], np.uint64)).callee[0])
    chains, is_whole = TailCalls(sites).chains(first, lambda callee: sites.key(callee) == b"last")
    assert is_whole and sorted([pc for _, pc in chain] for chain in chains) == [[0x1210, 0x1310], [UNKNOWN]]


@pytest.mark.parametrize("vaddr", [None, RETURN + 0x10])
def test_a_call_without_a_vaddr_may_be_anywhere(vaddr: int | None) -> None:
    """Between two calls there is no other only if it is known where all are."""
    calls = [call("last", each) for each in (RETURN, vaddr, RETURN + 0x20)]
    found = calls_of(function("main", 0x1100, 0x80, *calls, **LISTED)).at(np.array([RETURN + 8], np.uint64))
    assert not found.is_call.any() and found.is_none.tolist() == [vaddr is not None]


def chains_to_last(sites: CallSites) -> tuple[list[list[int]], bool]:
    """Where the functions made their calls between the call in `main` and `last`, and whether these are all."""
    first = int(sites.at(np.array([RETURN - 1], np.uint64)).callee[0])
    chains, is_whole = TailCalls(sites).chains(first, lambda callee: sites.key(callee) == b"last")
    return [[pc for _, pc in chain] for chain in chains], is_whole


@pytest.mark.parametrize("completes", ["", "specification", "abstract_origin"])
@pytest.mark.parametrize("count", [1, 2])
def test_functions_of_one_name(count: int, completes: str) -> None:
    """Where a call names a declaration, its function is the only one of that name, or without a symbol the only one
    that completes it; of several it is none."""
    places = (0x1200, 0x1300)[:count]
    sites = calls_of(
        function("main", 0x1100, 0x80, call("declared", RETURN), **LISTED),
        die("subprogram", name="helper", declaration=True, decl_file=1, decl_line=1, label="declared"),
        *(
            function(
                "helper",
                each,
                0x40,
                tail_call("last", each + 0x10),
                **LISTED,
                **{completes: Ref("declared")} if completes else {"decl_file": 1, "decl_line": each},
            )
            for each in places
        ),
        more=[Symbol("helper", each, 0x40, FUNC, LOCAL) for each in places if not completes],
    )
    assert chains_to_last(sites) == (([[0x1210]], True) if count == 1 else ([], False))


def test_a_function_without_code() -> None:
    """Of a function whose only copy the linker dropped, as one that it folded, the calls are known all the same."""
    sites = calls_of(
        function("main", 0x1100, 0x80, call("first", RETURN), **LISTED),
        function("first", 0, 0x40, tail_call("last", 0x10), label="first", **LISTED),
    )
    chains, is_whole = chains_to_last(sites)
    assert len(chains) == 1 and is_whole


FALSE = [As("flag", 0), As("data1", 0), As("implicit_const", 0)]
TRUE = [As("flag", 1), As("flag_present", True), As("implicit_const", 1)]
VOUCHING = {
    "call_all_calls": (True, True),
    "call_all_source_calls": (True, True),
    "call_all_tail_calls": (False, True),
    "GNU_all_call_sites": (True, True),
    "GNU_all_source_call_sites": (True, True),
    "GNU_all_tail_call_sites": (False, True),
}
"""Whether a function vouches for all its calls, and for all its tail calls, where it has an attribute."""


@pytest.mark.parametrize("flag", [*FALSE, *TRUE], ids=str)
@pytest.mark.parametrize("name", VOUCHING)
def test_flags_of_functions(name: str, flag: As) -> None:
    """A list of calls is complete where a flag says so, and not where the flag is there and false."""
    calls = [call("first", RETURN), call("first", RETURN + 0x20)]
    sites = calls_of(
        function("main", 0x1100, 0x80, *calls, **{name: flag}),
        function("first", 0x1200, 0x40, tail_call("last", 0x1210), label="first", **{name: flag}),
    )
    all_calls, all_tail_calls = (vouches and flag in TRUE for vouches in VOUCHING[name])
    assert sites.at(np.array([RETURN + 8], np.uint64)).is_none.tolist() == [all_calls]
    assert chains_to_last(sites) == (([[0x1210]], True) if all_tail_calls else ([], False))


@pytest.mark.parametrize("flag", [*FALSE, *TRUE], ids=str)
@pytest.mark.parametrize("is_gnu", [False, True])
def test_flags_of_calls(is_gnu: bool, flag: As) -> None:
    """A call is a tail call where a flag says so, and not where the flag is there and false: then it returns."""
    place, last = As("addr", 0x1211), Ref("last")
    site = (
        die("GNU_call_site", low_pc=place, abstract_origin=last, GNU_tail_call=flag)
        if is_gnu
        else die("call_site", call_return_pc=place, call_origin=last, call_tail_call=flag)
    )
    sites = calls_of(
        function("main", 0x1100, 0x80, call("first", RETURN), **LISTED),
        function("first", 0x1200, 0x40, site, label="first", **LISTED),
    )
    assert chains_to_last(sites) == ([[0x1210]] if flag in TRUE else [], True)


def test_calls_in_split_units(tmp_path: Path) -> None:
    """DIEs of split units are told apart by their files, in which they have the same offsets."""
    units = []
    for number, name in enumerate("ab"):
        low = 0x1100 + 0x100 * number
        site = die("call_site", call_origin=Ref("callee"), call_return_pc=As("addrx", Index(1)))
        tail = die("call_site", call_origin=Ref("last"), call_pc=As("addrx", Index(3)), call_tail_call=TRUE[0])
        split = split_unit(
            at(f"{name}_caller", 0, 0x40, site, **LISTED),
            at(f"{name}_callee", 2, 0x40, tail, label="callee", **LISTED),
            die("subprogram", name=As("strx", f"{name}_last"), declaration=True, label="last"),
            dwo_id=number + 1,
            producer="GNU C++17 12.2.0",
        )
        (tmp_path / f"{name}.dwo").write_bytes(split_file([split]))
        places = [low, low + 0x10, low + 0x40, low + 0x50]
        claim = {"low_pc": low, "high_pc": 0x80}
        units.append(skeleton(addresses=places, dwo_id=number + 1, file=f"{name}.dwo", **claim))
    sites = Binary([image_of(units)], finder_of(tmp_path / "binary")).call_sites()
    assert sites is not None
    found = sites.at(np.array([0x110F, 0x120F], np.uint64))
    assert found.is_call.all()
    for name, callee, place in zip("ab", found.callee.tolist(), (0x1150, 0x1250), strict=True):
        assert sites.key(callee) == f"{name}_callee".encode()
        chains, is_whole = TailCalls(sites).chains(
            callee, lambda each, name=name: sites.key(each) == f"{name}_last".encode()
        )  # type: ignore[misc]
        assert ([[pc for _, pc in chain] for chain in chains], is_whole) == ([[place]], True)


def test_units_that_are_walked_in_parts() -> None:
    """Calls belong to the functions that make them, in whichever part of many units these are: each function calls the
    next one, and goes over to the second next."""
    count = 2 * UNITS_AT_ONCE + 2

    def calling(number: int) -> Unit:
        low = 0x1000 + 0x20 * number
        following = (As("ref_addr", Ref(f"f{(number + step) % count}")) for step in (1, 2))
        calls = [
            die("call_site", call_origin=next(following), call_return_pc=As("addr", low + 8)),
            die("call_site", call_origin=next(following), call_pc=As("addr", low + 16), call_tail_call=TRUE[0]),
        ]
        name = f"f{number}"
        described = function(name, low, 0x20, *calls, label=name, **LISTED)
        return unit(described, low_pc=low, high_pc=0x20, producer="GNU C++17 12.2.0")

    sites = Binary([image_of([calling(number) for number in range(count)])]).call_sites()
    assert sites is not None
    found = sites.at(np.array([0x1007 + 0x20 * number for number in range(count)], np.uint64))
    assert found.is_call.all()
    for number, callee in enumerate(found.callee.tolist()):
        called = (number + 1) % count
        assert sites.key(callee) == b"f%d" % called and sites.entry(callee) == 0x1000 + 0x20 * called
        last = b"f%d" % ((number + 3) % count)
        chains, _ = TailCalls(sites).chains(callee, lambda each, last=last: sites.key(each) == last)  # type: ignore[misc]
        assert [pc for _, pc in chains[0]] == [0x1010 + 0x20 * called]


def test_without_debug_information() -> None:
    """Symbols alone say nothing of calls."""
    binary = Binary([image_of(symbols=[Symbol("f", 0x1000, 8), Symbol("g", 0x1000, 8)])])
    assert binary.call_sites() is None
    calls = binary.calls(
        F_AND_G,
        np.array([0x1000], np.uint64),
    )
    assert (len(calls.return_vaddr), calls.functions) == (0, [])


class Listed(CallSites):
    """Functions with tail calls to some others, and what their DIEs are if these are not they themselves; none has a
    name from 1000 on."""

    def __init__(self, calls: dict[int, Sequence[int]], dies: dict[int, int] | None = None) -> None:
        self._calls, self._dies = calls, dies or {}

    def definition(self, function: int) -> Definition | None:
        die = self._dies.get(function, function)
        return Definition(die, True, UNKNOWN, [TailCall(die, each) for each in self._calls.get(die, ())])

    def key(self, function: int) -> bytes:
        return b"f%d" % function if function < 1000 else b""


LAST = 999


@pytest.mark.parametrize(
    ("graph", "chains", "is_whole"),
    [
        (Listed({1: [2], 2: [1, LAST]}), [(1, 2)], True),
        (Listed({1: [2], 2: [3, LAST], 3: [2]}), [(1, 2)], True),
        (Listed({1: [2], 2: [51, 52, LAST]}, {51: 1, 52: 2}), [(1, 2)], True),  # calls name declarations
        (Listed({1: [2, LAST], 2: [1000]}), [(1,)], False),
        (Listed({1: [*[LAST] * MAX_CHAINS, 2], 2: []}), [(1,)] * MAX_CHAINS, True),
        (Listed({1: [*[LAST] * (MAX_CHAINS + 1), 2], 2: []}), [(1,)] * (MAX_CHAINS + 1), False),
    ],
    ids=["a circle", "a circle behind the first", "a circle of declarations", "no name", "many", "too many"],
)
def test_what_is_followed(graph: Listed, chains: list[tuple[int, ...]], is_whole: bool) -> None:
    """A function is on a chain once, by whichever of its DIEs it is called. What has no name leads anywhere, and with
    very many chains these are not all."""
    found, whole = TailCalls(graph).chains(1, lambda function: function == LAST)
    assert ([tuple(each for each, _ in chain) for chain in found], whole) == (chains, is_whole)


def test_calls_at_several_distances() -> None:
    """An address is inside of a call if one returns to the next byte; only else it is a return address itself."""
    calls = [call("first", RETURN), call("last", RETURN + 1)]
    first = function("first", 0x1200, 0x40, label="first", **LISTED)
    graph = calls_of(function("main", 0x1100, 0x80, *calls, **LISTED), first)
    sites = graph.at(np.arange(RETURN - 2, RETURN + 3, dtype=np.uint64))
    assert sites.is_call.tolist() == [False, True, True, True, False]
    assert [graph.key(each) for each in sites.callee[1:4].tolist()] == [b"first", b"last", b"last"]


def test_the_declaration_decides_among_namesakes() -> None:
    """Of several functions of one name that is called which is declared where the call's is."""
    places = (0x1200, 0x1300)
    graph = calls_of(
        function("main", 0x1100, 0x80, call("declared", RETURN), **LISTED),
        die("subprogram", name="helper", declaration=True, decl_line=2, label="declared"),
        *(
            function("helper", each, 0x40, tail_call("last", each + 0x10), decl_line=line, **LISTED)
            for line, each in enumerate(places, 1)
        ),
        more=[Symbol("helper", each, 0x40, FUNC, LOCAL) for each in places],
    )
    assert chains_to_last(graph) == ([[0x1310]], True)


@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("has_symbols", [False, True])
def test_very_many_namesakes(monkeypatch: pytest.MonkeyPatch, has_symbols: bool, limit: int) -> None:
    """Functions of one name are told apart if they are not very many."""
    monkeypatch.setattr("symbolize.symbols.call_sites.MAX_NAMESAKES", limit)
    places = (0x1200, 0x1300)
    graph = calls_of(
        function("main", 0x1100, 0x80, call("declared", RETURN), **LISTED),
        die("subprogram", name="helper", declaration=True, decl_line=2, label="declared"),
        *(
            die("subprogram", tail_call("last", each + 0x10), name="helper", decl_line=line, **code, **LISTED)
            for line, each in enumerate(places, 1)
            for parts in [[(each, each + 8), (each + 8, each + 64)]]
            for code in [{"low_pc": each, "high_pc": 0x40} if has_symbols else {"ranges": parts}]
        ),
        more=[Symbol("helper", each, 0x40, FUNC, LOCAL) for each in (places if has_symbols else places[:1])],
    )  # fmt: skip
    assert chains_to_last(graph) == (([[0x1310]], True) if limit == 2 else ([], False))


def test_functions_without_a_name_are_not_each_other() -> None:
    """What a call names by a DIE without a name is unknown, though a function without one is there."""
    parts = [(0x1200, 0x1208), (0x1210, 0x1218)]
    graph = calls_of(
        function("main", 0x1100, 0x80, call("nameless", RETURN), call("helper", RETURN + 8), **LISTED),
        die("subprogram", declaration=True, label="nameless"),
        die("subprogram", name="helper", declaration=True, label="helper"),
        die("subprogram", tail_call("last", 0x1204), ranges=parts, **LISTED),
        more=[Symbol("helper", 0x1300, 0x40, FUNC, LOCAL)],
    )
    graph.define(graph.at(np.array([RETURN - 1, RETURN + 7], np.uint64)).callee.tolist())
    assert chains_to_last(graph) == ([], False)


@pytest.mark.parametrize(
    ("jumps", "has_symbol", "is_whole"),
    [
        (None, True, False),
        ([], True, True),
        ([], False, True),
        ([0x1200], True, False),
        ([0x123F], True, False),
        ([0x11FF, 0x1240], True, True),
        ([0x11FF, 0x1240], False, False),
    ],
)
def test_jumps_through_tables(jumps: list[int] | None, has_symbol: bool, is_whole: bool) -> None:
    """What clang lists of the tail calls of C is complete for functions that have no jump through a table; without a
    symbol nobody knows which those are, if there are any."""
    units = [
        unit(
            function("main", 0x1100, 0x80, call("first", RETURN), **LISTED),
            function("first", 0x1200, 0x40, tail_call("last", 0x1210), label="first", **LISTED),
            function("last", 0x1400, 0x40, label="last", **LISTED),
            low_pc=0x1100, high_pc=0x400, producer="clang version 19.1.7", language=C,
        )
    ]  # fmt: skip
    symbols = [Symbol("main", 0x1100, 0x80, FUNC), *([Symbol("first", 0x1200, 0x40, FUNC)] if has_symbol else [])]
    builder = Binary([image_of(units, symbols=symbols)])._builder
    assert builder.dwarf is not None
    places = None if jumps is None else np.array(jumps, np.uint64)
    graph = CallSites(builder.dwarf, builder.symbols, places, DISTANCES[:2], believes_all=False)
    assert chains_to_last(graph) == (([[0x1210]], True) if is_whole else ([], False))


@pytest.mark.parametrize("at_once", [False, True])
def test_lists_that_are_believed(at_once: bool) -> None:
    """That one unit's lists of calls may lack some is said, whichever units were read with it and after it."""
    units = [
        unit(function("f", low, 0x40, call("f", low + 8), label="f", **LISTED), low_pc=low, high_pc=0x40, producer=by)
        for low, by in ((0x1100, "clang version 19.1.7"), (0x1200, "GNU C++17 12.2.0"))
    ]
    graph = Binary([image_of(units)]).call_sites(believes_all=True)
    assert graph is not None and not graph.may_lack_calls
    for asked in [[0x1107, 0x1207]] if at_once else [[0x1107], [0x1207]]:
        graph.at(np.array(asked, np.uint64))
        assert graph.may_lack_calls


def test_calls_by_pointers_beside_others() -> None:
    """A call by a pointer has no function, and those that return to the same place have theirs."""
    sites = [call("f", RETURN), die("call_site", call_return_pc=As("addr", RETURN))]
    units = [
        unit(
            function("main", 0x1100, 0x80, *sites, **LISTED),
            *(function(name, 0x1200, 0x40, label=name, **LISTED) for name in "fg"),
            low_pc=0x1100,
            high_pc=0x400,
        )
    ]
    calls = Binary([image_of(units)]).calls(
        F_AND_G,
        np.array([RETURN - 1], np.uint64),
    )
    assert calls.return_vaddr.tolist() == [RETURN] * 2
    called = {calls.functions[row].name if row >= 0 else None for row in calls.callee.tolist()}
    assert called == {b"f", None} and {calls.functions[row].name for row in calls.caller.tolist()} == {b"main"}

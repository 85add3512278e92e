"""Finds functions that share their code, not those that merely have several names (R119, folded locations).

Where several names are at one address, in this order:

1. Names that are spellings of one function count once (`function_key`; R114, symbol versions; R115, clone suffixes;
   R149, constructor variants; R151, thunks and stubs).
2. Two names with the types of their functions, as in C++ and Rust, are two functions (R157, names with types).
3. Other names, as in C, may be aliases. Where DWARF has the function, each name with a definition of its own is a
   function, and names without are aliases of those that have one (R155, definitions decide; R156, local functions of
   one name).
4. Elsewhere names and bindings decide (R152, internal names of C libraries; R153, weak names; R154, local names of
   exports).

Functions whose symbols are gone are looked for in DWARF (R158, functions without symbols).

Linkers fold functions whose machine code is equal (`--icf` of lld, gold and mold), and so do compilers (gcc's IPA-ICF,
LLVM's MergeFunctions, constructor aliases of clang). What is left of the functions that lost their code:

| folded by | symbols | `.debug_info` | `.debug_line` |
|---|---|---|---|
| lld, mold | all, at one address | the others' code is dead | all, at the address that stayed |
| gold | those of local functions are gone | all, at one address | all, at one address |
| gcc | all, at one address | the others are definitions without code | only the one |
| clang | all, at one address | only the one | only the one |

An alias in C, a weak name or a version leaves several symbols at one address too, but one definition: a subprogram that
is no declaration and, if it has no code, is not declared inline. The rows of this table are tried from top to bottom:

| at one address there are | the code is | by |
|---|---|---|
| names of one function: its variants, versions, clones, thunks | of one function | R114, R115, R149–R151 |
| two or more names with types (C++, Rust) | folded, unless gcc defined one only | R157, R162 |
| names of C; DWARF has two or more of them defined | folded | R155 |
| names of C; DWARF has one of them defined there | of one function | R155 |
| one name, several local functions that are declared at different lines | folded | R156 |
| names of C without DWARF that are one public name | of one function | R152 |
| a strong name of C without DWARF, others weak | of one function | R153 |
| a global name of C without DWARF, others local | of one function | R154 |
| two or more global, or only local names of C without DWARF | folded | R154 |
| no names, but several definitions or sequences | folded | R158 |
| a name, no definition and several sequences | folded | R265 |

Where DWARF is missing two strong names of one definition in C count as two functions, and functions of one name as one.
In both cases the name that is shown is right for one of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from posixpath import basename
from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import (
    Bool,
    Int64,
    UInt64,
    distinct,
    first_of_runs,
    is_among,
    layer_at,
    ranges,
    views,
)
from symbolize.core.folded_code import FoldedCode, FoldedFunction, FoldingEvidence
from symbolize.core.string_array import joined_arrays
from symbolize.core.string_table import StringTable
from symbolize.dwarf.constants import DW_LANG_Mips_Assembler
from symbolize.dwarf.decode import Decoded, Dwarf
from symbolize.dwarf.icf_evidence import (
    Definitions,
    definitions_of,
    entries_of_several,
    lists_all_definitions,
    sequence_starts,
    sequences_at,
    units_at,
)
from symbolize.elf.symbols import STB_GLOBAL, STB_LOCAL
from symbolize.names import (
    demangle,
    function_key,
    is_linker_made,
    is_mangled,
    may_be_local,
    public_name,
    same_function,
    strip_version,
    variants,
)
from symbolize.symbols.elf_symbols import SymbolLayer
from symbolize.symbols.range_table import outermost

NOWHERE = np.uint64(0xFFFFFFFFFFFFFFFF)

MAX_NAMES = 4096
"""Names at one address that are examined; whole families of empty functions may be folded into one."""


class _Group(NamedTuple):
    """Sized function symbols of one address, the better ones first."""

    begin: int
    end: int
    names: list[bytes]
    bindings: list[int]
    namesakes: bool


def find_shared(
    symbols: SymbolLayer, dwarf: Dwarf | None, decoded: Decoded, vaddrs: UInt64 | None = None
) -> list[FoldedCode]:
    """The code that several distinct functions share, by address, or with `vaddrs` (ascending) that at one of them.

    The answer for an address does not depend on the other ones, nor on which other units were decoded. Instances of a
    template are functions of their own (R157, names with types).
    """
    known = _Known(dwarf) if dwarf is not None else None
    verdicts: list[FoldedCode] = []
    undecided: list[_Group] = []
    for group in _groups(symbols, vaddrs):
        if not group.namesakes and all(same_function(group.names[0], name) for name in group.names[1:]):
            continue  # as most are: the variants of a constructor
        keys = _functions(group)
        if dwarf is None and _are_typed(keys):
            verdicts.append(_verdict(group, FoldingEvidence.NAMES, (names[0] for names in keys.values())))
        elif len(keys) > 1 or (group.namesakes and dwarf is not None):
            undecided.append(group)
    if undecided:
        verdicts += _decide(undecided, known)
    ranges = _answering(_outermost(verdicts, decoded), symbols)
    if known is not None:
        ranges += _by_entries(known, decoded, vaddrs, symbols.complete)
        decided = np.array([verdict.begin for verdict in ranges], np.uint64)
        ranges += _by_lines(known.dwarf, decoded, symbols, vaddrs, decided)
    shared = _disjoint(ranges)
    return _located(shared, known) if known is not None and shared else shared


def _located(shared: list[FoldedCode], known: "_Known") -> list[FoldedCode]:
    """`shared` with the declarations of candidates, first in each range the one that DWARF defines there."""
    which, units = units_at(known.dwarf, np.array([code.begin for code in shared], np.uint64))
    definitions, index = known.definitions(units)
    result = []
    for i, code in enumerate(shared):
        near = set(units[which == i].tolist())
        ranked: list[tuple[int, FoldedFunction]] = []
        for candidate in code.functions:
            rows = [row for row in index.rows([candidate.name]) if int(definitions.unit[row]) in near]
            declared = next((row for row in rows if definitions.line[row]), None)
            if declared is not None and not candidate.line:
                candidate = FoldedFunction(candidate.name, definitions.path[declared], definitions.line[declared])
            here = (row for row in rows if definitions.is_live[row] and definitions.begin[row] == code.begin)
            ranked.append((next(here, len(definitions.die)), candidate))
        ranked.sort(key=lambda pair: pair[0])
        result.append(code._replace(functions=[candidate for _, candidate in ranked]))
    return result


class _Index:
    """Definitions by the names that symbols may have for them."""

    def __init__(self, definitions: Definitions) -> None:
        linked = definitions.linkage.lengths() > 0
        names = joined_arrays([definitions.linkage, definitions.name])
        self._names = StringTable()
        numbers = self._names.add_all(names.only(np.arange(len(linked)) + np.where(linked, 0, len(linked))))
        self._order = np.argsort(numbers, kind="stable")
        self._numbers = numbers[self._order]

    def rows(self, names: list[bytes]) -> list[int]:
        """The definitions that one of `names` may be linked from, in order of the file."""
        spellings = {*map(function_key, names), *demangle(names), *(v for name in names for v in variants(name))}
        found = {number for name in spellings if (number := self._names.find(name)) >= 0}
        first = np.searchsorted(self._numbers, sorted(found))
        last = np.searchsorted(self._numbers, sorted(found), side="right")
        return sorted(row for i, j in zip(first, last, strict=True) for row in self._order[i:j].tolist())


class _Known:
    """The definitions that were read so far: a walk over units costs as much as decoding them."""

    def __init__(self, dwarf: Dwarf) -> None:
        self.dwarf = dwarf
        self._units: set[int] = set()
        self._definitions = definitions_of(dwarf, np.zeros(0, np.int64))
        self._index = _Index(self._definitions)

    def definitions(self, units: Int64) -> tuple[Definitions, _Index]:
        """The definitions in `units`, and perhaps in others, with their index."""
        wanted = set(units.tolist())
        if not wanted <= self._units:
            self._units |= wanted
            self._definitions = definitions_of(self.dwarf, np.array(sorted(self._units), np.int64))
            self._index = _Index(self._definitions)
        return self._definitions, self._index


def _groups(symbols: SymbolLayer, vaddrs: UInt64 | None) -> Iterator[_Group]:
    """Groups of sized function symbols of one address and size, with `vaddrs` those that answer for one of them."""
    order, starts = symbols.by_vaddr
    same = starts[1:] == starts[:-1]
    several = np.append(same, False) | np.append(False, same) if len(starts) else same
    rows = order[several]
    rows = rows[symbols.sized[rows] & symbols.is_function[rows]]
    if vaddrs is not None:
        answering = layer_at(symbols.start, symbols.symbol, vaddrs)
        asked = distinct(symbols.vaddr[answering[answering >= 0]])
        index = np.minimum(np.searchsorted(asked, symbols.vaddr[rows]), len(asked) - 1)
        rows = rows[asked[index] == symbols.vaddr[rows]] if len(asked) else rows[:0]
    rows = rows[np.lexsort((symbols.end[rows], symbols.vaddr[rows]))]
    first = np.flatnonzero(first_of_runs(symbols.vaddr[rows]) | first_of_runs(symbols.end[rows]))
    counts = np.diff(first, append=len(rows))
    rows = rows[ranges(first[counts > 1], np.minimum(counts[counts > 1], MAX_NAMES))]
    begins, ends = symbols.vaddr[rows].tolist(), symbols.end[rows].tolist()
    members = zip(begins, ends, symbols.names.take(rows), symbols.binding[rows].tolist(), rows.tolist(), strict=True)
    for (begin, end), group in groupby(members, itemgetter(0, 1)):
        yield _group(begin, end, [(name, binding, row) for _, _, name, binding, row in group], symbols)


def _group(begin: int, end: int, texts: list[tuple[bytes, int, int]], symbols: SymbolLayer) -> _Group:
    """The symbols `texts` (name, binding, row) of an address, the better ones first (R107, choice among symbols), each
    name once."""
    order = {STB_GLOBAL: 0, STB_LOCAL: 2}
    texts = [text for text in texts if not is_linker_made(text[0])]
    texts.sort(key=lambda text: (order.get(text[1], 1), len(text[0]) - len(text[0].lstrip(b"_")), len(text[0]), text))
    local = [(name, symbols.names.table_of(row)) for name, binding, row in texts if binding == STB_LOCAL]
    strongest: dict[bytes, int] = {}
    for name, binding, _ in texts:
        strongest.setdefault(name, binding)
    return _Group(begin, end, list(strongest), list(strongest.values()), len(set(local)) < len(local))


def _functions(group: _Group) -> dict[bytes, list[bytes]]:
    """The names of a group by the function that they are spellings of."""
    keys: dict[bytes, list[bytes]] = {}
    for name in group.names:
        keys.setdefault(function_key(name), []).append(strip_version(name))
    return keys


def _are_typed(keys: dict[bytes, list[bytes]]) -> bool:
    """Whether names of several functions encode their types (R157, names with types)."""
    return sum(map(_is_typed, keys.values())) > 1


def _is_typed(names: Sequence[bytes]) -> bool:
    """Whether a function's names encode its type."""
    return is_mangled(names[0])


def _verdict(group: _Group, evidence: FoldingEvidence, names: Iterable[bytes]) -> FoldedCode:
    return FoldedCode(group.begin, group.end, evidence, [FoldedFunction(name) for name in names])


def _decide(groups: list[_Group], known: _Known | None) -> Iterator[FoldedCode]:
    """Of `groups` whose names leave it open those that are several functions."""
    near: dict[int, set[int]] = {}
    thorough: set[int] = set()
    if known is not None:
        dwarf = known.dwarf
        vaddrs = distinct(np.array([group.begin for group in groups], np.uint64))
        which, units = units_at(dwarf, vaddrs)
        described = _describes_c(dwarf, units)
        which, units = which[described], units[described]
        for vaddr, unit in zip(vaddrs[which].tolist(), units.tolist(), strict=True):
            near.setdefault(vaddr, set()).add(unit)
        units = distinct(units)
        thorough = set(units[lists_all_definitions(dwarf, units)].tolist())
        definitions, index = known.definitions(units)
        # What gcc optimizes while linking is defined in other units.
        elsewhere = definitions.is_live & (definitions.home != definitions.unit) & is_among(definitions.unit, units)
        for row in np.flatnonzero(elsewhere).tolist():
            if int(definitions.begin[row]) in near and definitions.home[row] >= 0:
                near[int(definitions.begin[row])].add(int(definitions.home[row]))
        homes = distinct(np.array(sorted({unit for some in near.values() for unit in some}), np.int64))
        definitions, index = known.definitions(homes)
    for group in groups:
        verdict = None
        around = near.get(group.begin, set())
        typed = _are_typed(_functions(group))
        if around and (not typed or around <= thorough):
            verdict = _by_definitions(group, definitions, index, around)
        if verdict is None and typed:
            verdict = _verdict(group, FoldingEvidence.NAMES, (names[0] for names in _functions(group).values()))
        if verdict is None:
            verdict = _by_bindings(group)
        if len(verdict.functions) > 1:
            yield verdict


def _describes_c(dwarf: Dwarf, units: Int64) -> Bool:
    """Which units distinguish definitions from aliases: all but those of assembly, where each label has a DIE."""
    result: Bool = np.asarray(dwarf.units.language)[units] != DW_LANG_Mips_Assembler
    return result


def _by_definitions(group: _Group, definitions: Definitions, index: _Index, units: set[int]) -> FoldedCode | None:
    """The functions of a group by the definitions in `units`; None if DWARF has none at the address.

    A name with a definition is a function, one without an alias (R155, definitions decide). Local functions of one name
    are as many as their declarations (R156, local functions of one name). Units of assembly do not count: there every
    label has a DIE.
    """
    begin, size = group.begin, group.end - group.begin
    known: dict[bytes, list[FoldedFunction]] = {}
    covered = False
    unnamed: list[FoldedFunction] = []  # DWARF has no linked names of local functions
    for key, names in _functions(group).items():
        for row in index.rows(names):
            if int(definitions.unit[row]) not in units:
                continue
            here = bool(definitions.is_live[row]) and int(definitions.begin[row]) == begin
            if definitions.is_live[row] and not here:
                continue
            covered |= here
            candidate = FoldedFunction(names[0], definitions.path[row], definitions.line[row])
            # Where the names are one, only code of the same size can have been the same code.
            exact = here or int(definitions.size[row]) == size
            of_key = known.setdefault(key, [])
            if not of_key or (group.namesakes and exact and not _is_declared(candidate, of_key)):
                of_key.append(candidate)
        if key not in known and _is_typed(names) and may_be_local(names[0]):
            unnamed.append(FoldedFunction(names[0]))
    if not known or not (covered or len(known) > 1):
        return None
    if unnamed:
        known[b""] = unnamed
    candidates = [each for of_key in known.values() for each in of_key]
    return FoldedCode(begin, group.end, FoldingEvidence.DEFINITIONS, candidates)


def _is_declared(candidate: FoldedFunction, known: list[FoldedFunction]) -> bool:
    """Whether a function is declared where one of `known` is, or nobody knows where."""
    return not candidate.line or any(candidate.declared == other.declared for other in known)


def _by_bindings(group: _Group) -> FoldedCode:
    """The functions of a group by names and bindings alone (R152, internal names of C libraries; R153, weak names;
    R154, local names of exports).

    C itself has no weak functions: a weak name is a second name of a definition. A local name beside a global one is
    that which the export was made from.
    """
    binding = dict(zip(map(strip_version, reversed(group.names)), reversed(group.bindings), strict=True))
    classes: dict[bytes, list[bytes]] = {}
    for key, names in _functions(group).items():
        classes.setdefault(key if _is_typed(names) else public_name(key), []).extend(names)
    for wanted in (STB_GLOBAL, STB_LOCAL):
        strong = [names for names in classes.values() if _is_typed(names) or any(binding[n] == wanted for n in names)]
        if strong:
            break
    return _verdict(group, FoldingEvidence.NAMES, (names[0] for names in strong))


def _answering(verdicts: list[FoldedCode], symbols: SymbolLayer) -> list[FoldedCode]:
    """The ranges in which symbols of the groups answer, without symbols that begin inside of them."""
    if not verdicts:
        return []
    order = sorted(verdicts)
    begins = np.array([verdict.begin for verdict in order], np.uint64)
    starts = np.where(symbols.symbol >= 0, symbols.vaddr[symbols.symbol], np.uint64(0))
    pieces = np.flatnonzero((symbols.symbol >= 0) & is_among(starts, begins))
    result: list[FoldedCode] = []
    first = np.searchsorted(begins, starts[pieces])
    last = np.searchsorted(begins, starts[pieces], side="right")
    ends = np.append(symbols.start[1:], np.uint64(0xFFFFFFFFFFFFFFFF))
    for piece, i, j in zip(pieces.tolist(), first.tolist(), last.tolist(), strict=True):
        begin, end = int(symbols.start[piece]), int(ends[piece])
        for verdict in order[i:j]:  # of several sizes the smallest first
            if begin < min(end, verdict.end):
                result.append(verdict._replace(begin=begin, end=min(end, verdict.end)))
                begin = verdict.end
    return result


def _outermost(verdicts: list[FoldedCode], decoded: Decoded) -> list[FoldedCode]:
    """Shared code but what begins inside of a function, whose code it would not share (R160, whole shared code)."""
    begin = np.array([verdict.begin for verdict in verdicts], np.uint64)
    if not verdicts:
        return []
    here = layer_at(decoded.segment_start, decoded.segment_node, begin)
    before = layer_at(decoded.segment_start, decoded.segment_node, begin - np.minimum(begin, np.uint64(1)))
    inside = (here >= 0) & (_tops(decoded, here) == _tops(decoded, before))
    return [verdict for verdict, drop in zip(verdicts, inside.tolist(), strict=True) if not drop]


def _tops(decoded: Decoded, node: Int64) -> Int64:
    """The function that each node is inlined into, over all levels; -1 stays."""
    outer = np.empty(len(decoded.node_parent) + 1, np.int64)
    outer[-1] = -1
    outermost(*views(decoded.node_parent, outer[:-1]))
    return outer[node]


def _by_entries(known: _Known, decoded: Decoded, vaddrs: UInt64 | None, complete: bool) -> list[FoldedCode]:
    """Functions of DWARF whose symbols are gone (R158, functions without symbols): those with code at one address,
    which gold leaves without symbols if local, and, without a table of all symbols, addresses where several sequences
    begin.

    The function of a sequence is the last one that is declared at or before its first line, if its code was as large;
    else only file and line are known.
    """
    dwarf = known.dwarf
    top = np.flatnonzero(decoded.node_parent < 0)
    entries = entries_at(decoded, vaddrs)
    if not len(entries):
        return []
    of_top = decoded.node_entry[top]
    # Which other units were decoded is chance, so what they do not claim does not count.
    claims = dwarf.claims
    fair = claims.hold(of_top, decoded.node_unit[top]) | ~claims.anywhere(of_top)
    top, of_top = top[fair], of_top[fair]
    asked = entries[np.minimum(np.searchsorted(entries, of_top), len(entries) - 1)] == of_top
    chosen = entries_of_several(dwarf, decoded.node_die[top[asked]], of_top[asked])
    several = np.zeros(0, np.int64)
    if not complete:
        several, _ = sequence_starts(dwarf, entries)
        several = np.flatnonzero(np.bincount(several, minlength=len(entries)) > 1)
        chosen = distinct(np.concatenate((chosen, entries[several])))
    if not len(chosen):
        return []
    _, units = units_at(dwarf, chosen)
    units = distinct(units[_describes_c(dwarf, units)])
    definitions, _ = known.definitions(units)
    live = np.flatnonzero(definitions.is_live & is_among(definitions.unit, units))
    live = live[np.argsort(definitions.begin[live], kind="stable")]
    low = np.searchsorted(definitions.begin[live], chosen)
    high = np.searchsorted(definitions.begin[live], chosen, side="right")
    sequences: list[list[tuple[int, bytes, int]]] = [[] for _ in range(len(chosen))]
    if not complete:
        sequences = sequences_at(dwarf, units, chosen)
    found_at = []
    for i in np.flatnonzero(high > low).tolist():
        candidates: dict[bytes, FoldedFunction] = {}
        for row in live[low[i] : high[i]].tolist():
            candidate = _candidate(definitions, row)
            candidates.setdefault(_identity(definitions, row), candidate)
        evidence, size = FoldingEvidence.DEFINITIONS, int(definitions.size[live[low[i]]])
        if len(candidates) == 1 and len({(basename(path), line) for _, path, line in sequences[i]}) > 1:
            evidence = FoldingEvidence.LINES
            for unit, path, line in sequences[i]:
                found = _defined_at(definitions, unit, path, line, size)
                key = _identity(definitions, found) if found is not None else b"%s:%d" % (path, line)
                other = FoldedFunction(b"", path, line) if found is None else _candidate(definitions, found)
                candidates.setdefault(key, other)
        if len(candidates) > 1:
            begin = int(chosen[i])
            found_at.append(FoldedCode(begin, begin + size, evidence, list(candidates.values())))
    if not found_at:
        return []
    entered = np.append(decoded.node_entry, NOWHERE)[_tops(decoded, decoded.segment_node)]
    pieces = [(verdict, _where_entered(decoded, entered, verdict)) for verdict in found_at]
    return [verdict._replace(begin=begin, end=end) for verdict, parts in pieces for begin, end in parts]


def _where_entered(decoded: Decoded, entered: UInt64, verdict: FoldedCode) -> Iterator[tuple[int, int]]:
    """The parts of a range that belong to the function which is `entered` at its begin."""
    begin, end = np.uint64(verdict.begin), np.uint64(verdict.end)  # with an int numpy would search floats
    low = max(int(np.searchsorted(decoded.segment_start, begin, side="right")) - 1, 0)
    high = int(np.searchsorted(decoded.segment_start, end))
    own = np.append(entered[low:high] == begin, False)
    first = np.flatnonzero(own & ~np.append(False, own[:-1]))
    last = np.flatnonzero(~own & np.append(False, own[:-1]))
    limits = np.append(decoded.segment_start[low:high], end)
    for i, j in zip(first.tolist(), last.tolist(), strict=True):
        yield max(int(limits[i]), verdict.begin), min(int(limits[j]), verdict.end)


def _by_lines(
    dwarf: Dwarf, decoded: Decoded, symbols: SymbolLayer, vaddrs: UInt64 | None, decided: UInt64
) -> list[FoldedCode]:
    """Functions that only line tables have, but for those that begin at `decided` (R265, shared code without
    functions): with `-gmlt` clang describes only functions with inlined ones, and gold drops the symbols of local
    ones that it folds.

    Several sequences that begin at a symbol in different lines, and reach to its end, are several functions. Which of
    the lines are those of the symbol is not known.
    """
    answering = symbols.symbol if vaddrs is None else layer_at(symbols.start, symbols.symbol, vaddrs)
    rows = distinct(answering[answering >= 0])
    rows = rows[symbols.sized[rows] & symbols.is_function[rows]]
    rows = rows[dwarf.claims.anywhere(symbols.vaddr[rows])]
    rows = rows[layer_at(decoded.segment_start, decoded.segment_node, symbols.vaddr[rows]) < 0]
    rows = rows[~is_among(symbols.vaddr[rows], decided)]
    rows = rows[np.argsort(symbols.vaddr[rows], kind="stable")]
    rows = rows[first_of_runs(symbols.vaddr[rows])]
    if not len(rows):
        return []
    starts = sequence_starts(dwarf, symbols.vaddr[rows])
    several = np.bincount(starts[0], minlength=len(rows)) > 1
    if not several.any():
        return []
    which, units = units_at(dwarf, symbols.vaddr[rows], starts)
    units = distinct(units[several[which] & _describes_c(dwarf, units)])
    rows = rows[several]
    result = []
    found = sequences_at(dwarf, units, symbols.vaddr[rows], symbols.end[rows])
    for row, sequences in zip(rows.tolist(), found, strict=True):
        declared = {(basename(path), line): FoldedFunction(b"", path, line) for _, path, line in sequences}
        if len(declared) > 1:
            candidates = [FoldedFunction(strip_version(symbols.names[row])), *declared.values()]
            result.append(FoldedCode(int(symbols.vaddr[row]), int(symbols.end[row]), FoldingEvidence.LINES, candidates))
    return result


def _candidate(definitions: Definitions, row: int) -> FoldedFunction:
    name = definitions.linkage[row] or definitions.name[row]
    return FoldedFunction(name, definitions.path[row], definitions.line[row])


def _identity(definitions: Definitions, row: int) -> bytes:
    """A key of the function of a definition: its name, and of a local one its declaration (R156, local functions of one
    name).

    So copies of a function from one header are one function.
    """
    linkage = definitions.linkage[row]
    if linkage and not linkage.startswith(b"_ZL") and b"_GLOBAL__N_" not in linkage:
        return function_key(linkage)
    name = function_key(linkage or definitions.name[row])
    return b"%s %s:%d" % (name, basename(definitions.path[row]), definitions.line[row])


def entries_at(decoded: Decoded, vaddrs: UInt64 | None) -> UInt64:
    """Where the functions that are there begin, or those of them that answer for one of `vaddrs`."""
    node = decoded.segment_node
    if vaddrs is not None:
        index = np.searchsorted(decoded.segment_start, vaddrs, side="right") - 1
        node = node[index[index >= 0]]
    is_there = np.zeros(len(decoded.node_parent) + 1, np.bool_)  # the last is for gaps
    is_there[_tops(decoded, node)] = True
    return distinct(decoded.node_entry[np.flatnonzero(is_there[:-1])])


def _defined_at(definitions: Definitions, unit: int, path: bytes, line: int, size: int) -> int | None:
    """The only definition of this size that is the last declared at or before a line of `unit`; None if there is
    none."""
    rows = np.flatnonzero(definitions.unit == unit).tolist()
    rows = [row for row in rows if 0 < definitions.line[row] <= line and definitions.path[row] == path]
    best = max((definitions.line[row] for row in rows), default=0)
    rows = [row for row in rows if definitions.line[row] == best and int(definitions.size[row]) == size]
    return rows[0] if len({_identity(definitions, row) for row in rows}) == 1 else None


def _disjoint(verdicts: list[FoldedCode]) -> list[FoldedCode]:
    """Ranges by address. Of overlapping ones the first counts, of one address that with more functions."""
    kept: list[FoldedCode] = []
    for verdict in sorted(verdicts, key=lambda verdict: (verdict.begin, -len(verdict.functions), -verdict.evidence)):
        if not kept or verdict.begin >= kept[-1].end:
            kept.append(verdict)
    return kept

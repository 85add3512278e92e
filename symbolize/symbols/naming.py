"""Which name a function gets when DWARF and the symbol table both have one (R6, names from symbols; R18, both names;
R262, fuller symbol names)."""

from collections.abc import Iterable

import numpy as np

from symbolize.core.arrays import Bool, Int64, views
from symbolize.core.string_array import StringArray
from symbolize.core.string_table import equal_texts
from symbolize.names import demangle, encodes, last_component, own_name, same_function, split_suffix, strip_version
from symbolize.symbols.elf_symbols import SymbolLayer
from symbolize.symbols.functions import UNKNOWN, FunctionNames


def choose_names(
    function: Int64, symbol: Int64, functions: FunctionNames, symbols: SymbolLayer, begins: Bool | None = None
) -> FunctionNames:
    """The names of pairs of a function of `functions` (-1: none) and the symbol at the address.

    A symbol counts without DWARF, or if it agrees up to a clone suffix, which is kept: of those with one start the
    first. If none agrees and DWARF has a plain name, a symbol that encodes it is taken where both begin (R262, fuller
    symbol names), as in `begins`. Without DWARF a word is a clone suffix only if the base is a symbol too. A plain name
    is one without a linked one, or with one that is the same. The symbol that encodes it names the outermost function,
    in every mode; where there is none the system name is DW_AT_name, with its arguments.
    """
    texts, names = symbols.names.texts(symbol), StringArray.empty(len(symbol))
    linked_as, named = StringArray.of(functions.linkage), StringArray.of(functions.name)
    plain = agree_literally(function, texts, linked_as, named) & symbols.sized[symbol]
    unlinked = plain.copy()
    unlinked[plain] = linked_as.only(function[plain]).lengths() == 0
    # DWARF proves that a Go function is called `main.cold`.
    dots = np.flatnonzero(texts.data == ord("."))
    first, last = (np.searchsorted(dots, bound) for bound in texts.places())
    literal = np.flatnonzero(unlinked & (first < last))
    suffixed = [
        (row, text) for row, text in zip(literal.tolist(), texts.take(literal), strict=True) if split_suffix(text)[1]
    ]
    names = names.with_changed(np.array([row for row, _ in suffixed], np.int64), [text for _, text in suffixed])
    rows = np.flatnonzero(~plain)
    linkage: list[bytes] = []
    name: list[bytes] = []
    alone = symbols.is_alone(symbol[rows]) & symbols.sized[symbol[rows]]
    described = rows[function[rows] >= 0]
    own_names = zip(linked_as.take(function[described]), named.take(function[described]), strict=True)
    together = np.zeros(len(rows), np.bool_) if begins is None else begins[rows]
    columns = function[rows].tolist(), symbol[rows].tolist(), alone.tolist(), together.tolist(), texts.take(rows)
    for f, s, is_alone, begins_here, text in zip(*columns, strict=True):
        if f < 0:
            linked = strip_version(text)
            base, suffix = split_suffix(linked)
            linkage.append(linked)
            # What may be the suffix of a C function may also be the name of a Go function: `main.cold`. A
            # number at its end proves the suffix.
            unproven = suffix and not any(part.isdigit() for part in suffix.split(b"."))
            name.append(
                linked if unproven and not base.startswith((b"_Z", b"_R")) and not symbols.has_name(base) else b""
            )
            continue
        aliases = (text,) if is_alone else (symbols.names[alias] for alias in symbols.aliases(s))
        candidates = map(strip_version, aliases)
        linkage_name, called = next(own_names)
        if not linkage_name and not called:  # its name is in a missing file (R92, missing supplementary files)
            linked = next(candidates, b"")
            linkage.append(linked)
            name.append(b"" if linked else UNKNOWN)
            continue
        linked = agreeing(candidates, linkage_name, called)
        if not linked and begins_here and (not linkage_name or linkage_name == own_name(called)):
            linked = encoding(symbols, s, called)
        linkage.append(linked or linkage_name)
        is_own = not linkage_name and (not linked or is_numbered(split_suffix(linked)[0], called))
        name.append(called if is_own else b"")
    texts, names = texts.with_changed(rows, linkage), names.with_changed(rows, name)
    known = function >= 0
    decl_file = np.full(len(function), -1, np.int32)
    decl_line = np.zeros(len(function), np.uint32)
    decl_file[known] = functions.decl_file[function[known]]
    decl_line[known] = functions.decl_line[function[known]]
    return FunctionNames(texts, names, decl_file, decl_line)


def agree_literally(function: Int64, texts: StringArray, linkage: StringArray, name: StringArray) -> Bool:
    """Which of `texts` are the linkage name of the function beside them, or its name if it has none; none are empty."""
    result = np.zeros(len(function), np.uint8)
    linked = np.zeros(len(function), np.bool_)
    linked[function >= 0] = linkage.only(function[function >= 0]).lengths() > 0
    for rows, names in ((np.flatnonzero(linked), linkage), (np.flatnonzero((function >= 0) & ~linked), name)):
        same = np.zeros(len(rows), np.uint8)
        here, there = texts.only(rows), names.only(function[rows])
        equal_texts(*views(here.data, *here.places(), there.data, *there.places(), same))
        result[rows] = same
    return (result > 0) & (texts.lengths() > 0)


def agreeing(candidates: Iterable[bytes], linkage: bytes, name: bytes) -> bytes:
    """The first of `candidates` that is the DWARF function, else the first variant of it, as of constructors; empty if
    none."""
    variant = b""
    for candidate in candidates:
        if agrees(candidate, linkage, name):
            return candidate
        base = split_suffix(candidate)[0]
        if not variant and len(base) == len(linkage) and same_function(base, linkage):
            variant = candidate
    return variant


def agrees(linked: bytes, linkage: bytes, name: bytes) -> bool:
    """Whether the symbol `linked` is the DWARF function with the given linkage and qualified name.

    Without a linkage name, which gcc omits for local functions, the last components have to be equal. Link time
    optimization may leave a suffix in linkage names; Free Pascal calls `main` `$main`.
    """
    base = split_suffix(linked)[0]
    if linkage:
        return base == linkage or base == split_suffix(linkage)[0]
    if name in (base, b"$" + base) or is_numbered(base, name):
        return True
    if not base.startswith(b"_Z"):  # C, or extern "C" in a namespace
        return base == last_component(name)
    return last_component(demangle([base], "default")[0]) == last_component(name)


def encoding(symbols: SymbolLayer, symbol: int, name: bytes) -> bytes:
    """The one function symbol at the start of `symbol` that encodes the plain name; empty if none or several do."""
    plain = last_component(name) or name  # Crystal has functions that are called `<`
    found = {
        text
        for alias in symbols.aliases(symbol)
        if symbols.is_function[alias] and encodes(split_suffix(text := strip_version(symbols.names[alias]))[0], plain)
    }
    return found.pop() if len(found) == 1 else b""


def is_numbered(base: bytes, name: bytes) -> bool:
    """Whether `base` is `name` with a number, as gcc calls functions that are nested in others: `f.0`."""
    return base.startswith(name + b".") and base[len(name) + 1 :].isdigit()

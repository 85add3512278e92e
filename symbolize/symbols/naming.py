"""Which name a function gets when DWARF and the symbol table both have one (rules R6, R18)."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbolize.names import demangle, last_component, same_function, split_suffix, strip_version
from symbolize.symbols.elf_symbols import SymbolLayer
from symbolize.symbols.functions import UNKNOWN, FunctionNames

Int64 = NDArray[np.int64]


def choose_names(
    function: NDArray[Any], symbol: NDArray[Any], functions: FunctionNames, symbols: SymbolLayer
) -> FunctionNames:
    """The names of the pairs of a function of `functions` (-1: none) and the symbol at the address.

    The symbol's name is taken where there is no DWARF. Where there is, it is taken if it agrees with DWARF up
    to a clone suffix, so that the suffix is kept: of the sized symbols with the same start, the first that does.
    Without DWARF a word is taken for a clone suffix only where the base is a symbol too.
    """
    linkage: list[bytes] = []
    name: list[bytes] = []
    texts, sized = symbols.names.take(symbol), symbols.sized[symbol].tolist()
    for f, s, text, is_sized in zip(function.tolist(), symbol.tolist(), texts, sized, strict=True):
        if f >= 0 and is_sized and text and text == (functions.linkage[f] or functions.name[f]):
            linkage.append(text)
            # Of a Go function that is called `main.cold` DWARF says so.
            literal = not functions.linkage[f] and b"." in text and split_suffix(text)[1]
            name.append(text if literal else b"")
            continue
        if f < 0:
            linked = strip_version(text)
            base, suffix = split_suffix(linked)
            linkage.append(linked)
            # A word that looks like the suffix of a C function may be the name of a Go function: `main.cold`. A
            # number at its end proves the suffix.
            unproven = suffix and not any(part.isdigit() for part in suffix.split(b"."))
            name.append(
                linked if unproven and not base.startswith((b"_Z", b"_R")) and base not in symbols.all_names else b""
            )
            continue
        candidates = (strip_version(symbols.names[alias]) for alias in symbols.aliases(s))
        if not functions.linkage[f] and not functions.name[f]:  # its name lies in a file that is not there (rule R92)
            linked = next(iter(candidates), b"")
            linkage.append(linked)
            name.append(b"" if linked else UNKNOWN)
            continue
        linked = agreeing(candidates, functions.linkage[f], functions.name[f])
        linkage.append(linked or functions.linkage[f])
        plain = not functions.linkage[f] and (not linked or is_numbered(split_suffix(linked)[0], functions.name[f]))
        name.append(functions.name[f] if plain else b"")
    known = function >= 0
    decl_file = np.full(len(function), -1, np.int32)
    decl_line = np.zeros(len(function), np.uint32)
    decl_file[known] = functions.decl_file[function[known]]
    decl_line[known] = functions.decl_line[function[known]]
    return FunctionNames(linkage, name, decl_file, decl_line)


def agreeing(candidates: Iterable[bytes], linkage: bytes, name: bytes) -> bytes:
    """The first of `candidates` that is the DWARF function, else the first that is a variant of it; empty if none is.

    DWARF may name a constructor as such (`C4`), where symbols name its variants (`C1`, `C2`).
    """
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

    Without a linkage name, which gcc leaves out for functions that are local to a file, a symbol agrees when
    its last component is that of the DWARF name. Link time optimization may leave a linkage name with a suffix.
    """
    base = split_suffix(linked)[0]
    if linkage:
        return base == linkage or base == split_suffix(linkage)[0]
    if base == name or is_numbered(base, name):
        return True
    if not base.startswith(b"_Z"):  # C, or extern "C" in a namespace
        return base == last_component(name)
    return last_component(demangle([base], "default")[0]) == last_component(name)


def is_numbered(base: bytes, name: bytes) -> bool:
    """Whether `base` is `name` with a number, as gcc calls functions that are nested in others: `f.0`."""
    return base.startswith(name + b".") and base[len(name) + 1 :].isdigit()

"""Functions of a table: their names and declarations; calls between them."""

import threading
from collections.abc import Sequence
from dataclasses import field
from typing import Final, NamedTuple, Self

import numpy as np

from symbolize.core.arrays import Bool, Int32, Int64, UInt32, UInt64
from symbolize.core.folded_code import FoldedCode, declaration
from symbolize.core.records import record
from symbolize.core.string_array import StringArray
from symbolize.core.string_table import StringTable
from symbolize.elf.plt import MARK
from symbolize.names import Mode, demangle, function_key, shown_names, split_suffix

UNKNOWN = b"??"
"""The name of a function whose name is unknown, so that the stack keeps its depth."""

MAX_KNOWN: Final = 1 << 18
"""Names of a table's functions that are cached for further questions."""


class ShownNames(NamedTuple):
    """The names and system names of functions, and which are there without a name that could be read."""

    names: StringArray
    system_names: StringArray
    unnamed: Bool


class KnownNames:
    """The names that functions of a table were shown by, as numbers plus 1 of `strings`; 0: not yet. `lock` is for one
    thread at a time: the requests of a server share the tables of binaries."""

    def __init__(self, count: int) -> None:
        self.lock = threading.Lock()
        self.strings = StringTable()
        self.name, self.system_name = np.zeros((2, count), np.uint32)
        self.unnamed = np.zeros(count, np.bool_)

    def forget(self) -> None:
        """Begin anew, so that the names take bounded memory."""
        self.strings = StringTable()
        self.name[:] = 0


@record
class FunctionNames:
    """Functions, a row each: `linkage` and qualified `name`, of which either may be empty, `decl_file`, an index into
    the table's files (-1: unknown), and `decl_line`. `known` caches the names that were shown."""

    linkage: Sequence[bytes]
    name: Sequence[bytes]
    decl_file: Int32
    decl_line: UInt32
    known: dict[tuple[Mode, bool], KnownNames] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.linkage)

    def take(self, rows: Int64) -> "FunctionNames":
        """The functions of some rows, with their names read."""
        return FunctionNames(
            texts_of(self.linkage, rows), texts_of(self.name, rows), self.decl_file[rows], self.decl_line[rows]
        )

    def shown(self, rows: Int64, mode: Mode, of_linker: bool = False) -> ShownNames:
        """The names of some functions, as `mode` shows them; `of_linker`: they are of Android's dynamic linker."""
        known = self.known.get((mode, of_linker)) or self.known.setdefault((mode, of_linker), KnownNames(len(self)))
        with known.lock:
            missing = rows[known.name[rows] == 0]
            if len(known.strings) + 2 * len(missing) > MAX_KNOWN:
                known.forget()
                missing = rows
            if len(missing):
                found = self.take(missing)
                names, linked = shown_names(found.linkage, found.name, mode, of_linker)
                known.unnamed[missing] = [name == UNKNOWN for name in found.name]
                known.system_name[missing] = known.strings.add_all(linked) + 1
                known.name[missing] = known.strings.add_all(names) + 1  # the last: by this they are known
            strings = known.strings.array()
            return ShownNames(
                strings.only(known.name[rows] - 1), strings.only(known.system_name[rows] - 1), known.unnamed[rows]
            )


class Function(NamedTuple):
    """A function as the debug information has it: linkage name and qualified name, of which either may be empty; path
    and line of its declaration (empty and 0: unknown)."""

    linkage: bytes
    name: bytes
    path: bytes
    line: int

    @property
    def declared(self) -> tuple[bytes, int]:
        """Its `declaration`."""
        return declaration(self.path, self.line)


def name_key(function: Function) -> bytes:
    """The name of a function, however it is spelled."""
    return function_key(function.linkage) if function.linkage else function.name


def spellings_of(linked: Sequence[bytes]) -> list[set[bytes]]:
    """The names by which `name_key` may know each of the functions `linked`. gcc gives local functions of C++ no
    linkage name (R6, names from symbols). What calls a function by the linkage table calls it."""
    names = [name.removesuffix(MARK) for name in linked]
    texts = (text.removesuffix(MARK) for text in demangle(linked, "default"))
    return [{function_key(name), name, split_suffix(name)[0], text} for name, text in zip(names, texts, strict=True)]


UNDECIDED: Final = -1
"""None of the functions that share code."""
MAX_GROUPS: Final = 64
"""Folded code in which one name is looked for; so many local functions of one name are not distinguished."""


class Namesakes:
    """Finds functions among those that share code, by their names."""

    def __init__(self, folded: Sequence[FoldedCode]) -> None:
        self._folded = folded
        self._groups: dict[bytes, list[int]] = {}
        self._by_name: dict[bytes, list[tuple[int, int]]] = {}
        self._found: dict[tuple[Function, int], int] = {}
        names = [function.name for code in folded for function in code.functions]
        places = ((number, row) for number, code in enumerate(folded) for row in range(len(code.functions)))
        for spellings, place in zip(spellings_of(names), places, strict=True):
            for each in spellings:
                self._by_name.setdefault(each, []).append(place)
                groups = self._groups.setdefault(each, [])
                if place[0] not in groups[-1:] and len(groups) < MAX_GROUPS:
                    groups.append(place[0])

    def groups(self, function: Function) -> Sequence[int]:
        """The numbers of the folded code that a function may be one of, at most MAX_GROUPS."""
        return self._groups.get(name_key(function), ())

    def find(self, function: Function, number: int) -> int:
        """Which function of the folded code `number` it is: by its name, and where several are called the same, by its
        declaration; UNDECIDED if it is none of them."""
        key = function, number
        if key not in self._found:
            same = [row for code, row in self._by_name.get(name_key(function), []) if code == number]
            if len(same) > 1:
                functions = self._folded[number].functions
                same = [row for row in same if functions[row].declared == function.declared]
            self._found[key] = same[0] if len(same) == 1 else UNDECIDED
        return self._found[key]


@record
class Calls:
    """Calls, a row each, by where they return to: `return_vaddr` ascends, and several rows may have one.

    `caller` and `callee` are rows of `functions`; the callee is -1 where the function is called by a pointer.
    """

    return_vaddr: UInt64
    caller: Int64
    callee: Int64
    functions: list[Function]

    @classmethod
    def none(cls) -> Self:
        """No calls, as of a binary without debug information."""
        nothing = np.zeros(0, np.int64)
        return cls(np.zeros(0, np.uint64), nothing, nothing, [])

    def at(self, vaddrs: UInt64, machine: str) -> tuple[Int64, Int64]:
        """The first row and the one behind the last of the calls at each of the `vaddrs` of callers, by the first of
        the distances of a machine with any (R356, where calls return)."""
        first = last = np.zeros(len(vaddrs), np.int64)
        for distance in return_distances(machine):
            returns = vaddrs + np.uint64(distance)
            low, high = (np.searchsorted(self.return_vaddr, returns, side) for side in ("left", "right"))
            none = first == last
            first, last = np.where(none, low, first), np.where(none, high, last)
        return first, last


DISTANCES: Final = (1, 0, 4)
"""How far behind a caller's address its call returns to, the likeliest first: profiles have an address inside the call
instruction or, against the rules, the return address; on AArch64 also the call itself (R356, where calls return)."""


def return_distances(machine: str) -> Sequence[int]:
    """The DISTANCES that a machine has."""
    return DISTANCES if machine == "EM_AARCH64" else DISTANCES[:2]


def texts_of(names: Sequence[bytes], rows: Int64) -> list[bytes]:
    """Some texts of a table, all at once where they are columns."""
    return names.take(rows) if isinstance(names, StringArray) else [names[row] for row in rows.tolist()]

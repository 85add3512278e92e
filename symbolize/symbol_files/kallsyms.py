"""The kernel's own list of its symbols: `/proc/kallsyms`, and `System.map`, which has the same lines (R124, symbols of
the kernel)."""

import os
import re
from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import TOP, Int64, UInt64, first_of_runs
from symbolize.core.records import record
from symbolize.symbol_files.symbol_list import SymbolList

PAGE = 4096
MAX_FUNCTION = 1 << 20
"""Bytes behind its start that a symbol may answer for; parts of a kernel are megabytes apart."""

ANCHORS = (b"_text", b"_stext", b"_etext", b"_edata", b"_sinittext", b"_einittext")
DIGITS_OF_32_BITS = 8
CODE_KINDS = b"TWtw"
"""Kinds of symbols in code, the ones to prefer at one address first."""

_LINE = re.compile(rb"^([0-9a-fA-F]{8,16}) ([A-Za-z?]) (\S+)(?:[ \t]+\[(\S+)\])?[ \t]*\r?$", re.MULTILINE)


class Anchors(NamedTuple):
    """Addresses of symbols that bound the kernel, 0 where there is none."""

    text: int = 0
    stext: int = 0
    etext: int = 0
    edata: int = 0

    @property
    def core(self) -> tuple[int, int]:
        """Begin and end of the code of the kernel itself, without modules; (0, 0) if they are not listed."""
        begin = min((value for value in (self.text, self.stext) if value), default=0)
        return (begin, self.etext) if begin < self.etext else (0, 0)


@record(frozen=True)
class Kallsyms:
    """The functions and anchors of such a file, and whether its addresses have 64 bits; `restricted`: all of these were
    hidden from the reader. `modules` has the first vaddr of the code of each module, and the one behind it.

    In `/proc/kallsyms` addresses are those at run time, in `System.map` those in vmlinux.
    """

    listing: SymbolList
    anchors: Anchors
    restricted: bool
    is_64: bool = True
    modules: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def looks_like_kallsyms(head: bytes) -> bool:
    """Whether a file that begins so is such a list."""
    return _LINE.match(head) is not None


def read_kallsyms(data: bytes) -> Kallsyms:
    """Read a list of kernel symbols (R124, symbols of the kernel).

    Only `T t W w` are functions. A symbol ends where the next one of any kind begins, with its page if that is of
    another module or none, and after MAX_FUNCTION bytes. What is between `_sinittext` and `_einittext` is left out,
    because the kernel reuses that memory. Code made at run time (`bpf_prog_<tag>_name`, trampolines) is listed under
    the module `[bpf]` or `[__builtin__ftrace]` and keeps its names. A list in which all addresses are 0 was read
    without the right to see them: the reason is `restricted`.
    """
    addresses: list[int] = []
    kinds = bytearray()
    names: list[bytes] = []
    modules: list[int] = []
    numbers: dict[bytes, int] = {b"": 0}
    anchors: dict[bytes, int] = {}
    digits = 0
    for address, kind, name, module in _LINE.findall(data):
        value = int(address, 16)
        addresses.append(value)
        digits = max(digits, len(address))
        kinds += kind
        names.append(name)
        modules.append(numbers.setdefault(module, len(numbers)))
        if name in ANCHORS and not module:
            anchors[name] = value
    problems = []
    lines = data.count(b"\n") + (data[-1:] not in (b"\n", b""))
    if len(addresses) < lines:
        problems.append(f"{lines - len(addresses)} of {lines} lines are no symbols")
    address = np.array(addresses, np.uint64)
    rank = np.full(256, len(CODE_KINDS), np.uint8)
    rank[list(CODE_KINDS)] = np.arange(len(CODE_KINDS))
    preference = rank[np.frombuffer(bytes(kinds), np.uint8)]
    code = preference < len(CODE_KINDS)
    restricted = bool(len(address)) and not address[code].any()
    module = np.array(modules, np.int64)
    code &= address > 0
    initial, initialized = anchors.get(b"_sinittext", 0), anchors.get(b"_einittext", 0)
    code &= ~((module == 0) & (address >= np.uint64(initial)) & (address < np.uint64(initialized)))
    ends = symbol_ends(address, module)
    rows = np.flatnonzero(code)
    rows = rows[np.lexsort((plainness(names, address, rows), preference[rows], address[rows]))]
    rows = rows[first_of_runs(address[rows])]
    listing = SymbolList.of_functions(address[rows], ends[rows], [names[row] for row in rows.tolist()])
    listing.problems += problems
    known = Anchors(*(anchors.get(name.encode(), 0) for name in ("_text", "_stext", "_etext", "_edata")))
    first, last = np.full(len(numbers), TOP, np.uint64), np.zeros(len(numbers), np.uint64)
    np.minimum.at(first, module[rows], address[rows])
    np.maximum.at(last, module[rows], ends[rows])
    code_of = zip(map(os.fsdecode, numbers), first.tolist(), last.tolist(), strict=True)
    ranges = {name: (begin, end) for name, begin, end in code_of if name and begin < end}
    return Kallsyms(listing, known, restricted, digits != DIGITS_OF_32_BITS, ranges)


def symbol_ends(address: UInt64, module: Int64) -> UInt64:
    """Where each symbol ends, by the next one of any kind."""
    order = np.argsort(address, kind="stable")
    starts, owner = address[order], module[order]
    run = np.append(np.flatnonzero(starts[1:] != starts[:-1]), len(starts) - 1) if len(starts) else np.zeros(0, int)
    following = run[np.searchsorted(run, np.arange(len(starts)))] + 1  # the first with a higher address
    known = following < len(starts)
    following = np.minimum(following, len(starts) - 1)
    limit = starts + np.minimum(np.uint64(MAX_FUNCTION), ~starts)
    page = starts | np.uint64(PAGE - 1)  # the last byte: the page after it may be none
    same = known & (owner[following] == owner)
    end = np.minimum(np.where(known, starts[following], limit), np.where(same, limit, page + (page < ~np.uint64(0))))
    ends = np.empty(len(address), np.uint64)
    ends[order] = end
    return ends


def plainness(names: list[bytes], address: UInt64, rows: Int64) -> Int64:
    """The rank of each of `rows` among those of its address: fewer leading underscores, shorter, byte order (R107,
    choice among symbols)."""
    rank = np.zeros(len(rows), np.int64)
    order = rows[np.argsort(address[rows], kind="stable")]
    again = address[order[1:]] == address[order[:-1]]
    shared = np.zeros(len(address), np.bool_)
    shared[order[1:][again]] = shared[order[:-1][again]] = True

    def key(i: int) -> tuple[int, int, bytes]:
        name = names[rows[i]]
        return len(name) - len(name.lstrip(b"_")), len(name), name

    ordered = sorted(np.flatnonzero(shared[rows]).tolist(), key=key)
    rank[ordered] = np.arange(len(ordered))
    return rank

"""Looks up all addresses of a binary at once, in a table that may change meanwhile."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from symbolize.core.arrays import Bool, Int64, UInt64
from symbolize.core.errors import ReadFailure
from symbolize.core.mapped import CHANGED, ChangedFile
from symbolize.symbols.binary import Binary
from symbolize.symbols.functions import Calls
from symbolize.symbols.nearest import lookup_nearest
from symbolize.symbols.symbol_list_binary import SymbolListBinary
from symbolize.symbols.table import Frames, IcfGroup, SymbolTable, joined_frames

MAX_TABLES = 3
"""Tables of one binary that are tried where one after the other changes while it is read."""


class Tables(Protocol):
    """Symbol tables that were made ahead for the addresses of many profiles."""

    def find(self, binary: Binary, vaddrs: UInt64) -> SymbolTable | None:
        """The table for all of `vaddrs` (ascending), None if there is none. Raises FailedTable if it could not be
        made."""


class BulkAnswer(NamedTuple):
    """The frames at n addresses; which have an approximate line (None: none has); where a name may be missing because
    debug information is unreadable: bool[n]; code that several functions share, with the rows of the addresses there;
    the calls of these functions; what is wrong with the files; and whether they have any names. `check` raises
    ReadFailure if one has changed meanwhile."""

    frames: Frames
    approximate: Bool | None
    doubtful: Bool
    folded: list[tuple[IcfGroup, Int64]]
    calls: Calls
    problems: list[str]
    has_names: bool
    check: Callable[[], None]


def look_up(binary: Binary | SymbolListBinary, vaddrs: UInt64, nearest_line: bool, tables: Tables | None) -> BulkAnswer:
    """The frames at `vaddrs` (ascending), with `nearest_line` some with the nearest earlier line. Raises ReadFailure.

    A cached table that changed meanwhile is made anew (R280, files that change).
    """
    # With `nearest_line` one that is found is the whole one, and the binary's from now on.
    made = tables.find(binary, vaddrs) if tables is not None and isinstance(binary, Binary) else None
    if made is not None or not isinstance(binary, Binary):
        return _look_up(binary, vaddrs, nearest_line, made)
    answers = [(portion, _look_up(binary, vaddrs[portion], nearest_line, None)) for portion in binary.portions(vaddrs)]
    return answers[0][1] if len(answers) == 1 else _joined(binary, vaddrs, answers)


def _look_up(
    binary: Binary | SymbolListBinary, vaddrs: UInt64, nearest_line: bool, made: SymbolTable | None
) -> BulkAnswer:
    for _ in range(MAX_TABLES):
        table = made
        try:
            if nearest_line:
                table, frames, approximate = lookup_nearest(binary, vaddrs)
            else:
                table = table or binary.table(vaddrs)
                frames, approximate = table.lookup(vaddrs), None
            doubtful, folded = table.doubtful(vaddrs), list(table.folded(vaddrs))
        except ReadFailure:
            raise
        except Exception:
            if not _drop_changed(binary, table):
                raise
        else:
            if not _drop_changed(binary, table):
                check = _check_of(binary, table)
                return BulkAnswer(
                    frames, approximate, doubtful, folded, table.calls(), table.problems, table.has_names, check
                )
        made = None
    raise ChangedFile(binary.images[0].path, CHANGED)


def _joined(binary: Binary, vaddrs: UInt64, answers: Sequence[tuple[slice, BulkAnswer]]) -> BulkAnswer:
    """One answer, of those for portions of `vaddrs`; which calls are of shared code is known with all of them."""
    parts = [answer for _, answer in answers]
    folded: dict[tuple[int, int], tuple[IcfGroup, Int64]] = {}
    for portion, answer in answers:
        for code, rows in answer.folded:
            before = folded.get((code.begin, code.end), (code, rows[:0]))[1]
            folded[code.begin, code.end] = code, np.concatenate((before, rows + portion.start))
    approximate = [answer.approximate for answer in parts if answer.approximate is not None]
    return BulkAnswer(
        joined_frames([answer.frames for answer in parts]),
        np.concatenate(approximate) if approximate else None,
        np.concatenate([answer.doubtful for answer in parts]),
        list(folded.values()),
        binary.calls([[name for name, _, _ in code.functions] for code, _ in folded.values()], vaddrs),
        list(dict.fromkeys(problem for answer in parts for problem in answer.problems)),
        any(answer.has_names for answer in parts),
        parts[-1].check,
    )


def _drop_changed(binary: Binary | SymbolListBinary, table: SymbolTable | None) -> bool:
    """Have a table made anew if the file that it is read from has changed; whether it has."""
    is_of_binary = isinstance(binary, Binary) and binary.drop_changed()
    return is_of_binary or (table is not None and table.has_changed)


def _check_of(binary: Binary | SymbolListBinary, table: SymbolTable) -> Callable[[], None]:
    def check() -> None:
        table.check()
        if isinstance(binary, Binary):
            binary.check()

    return check

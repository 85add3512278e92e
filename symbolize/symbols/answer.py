"""What a binary answers for addresses: the frames there, and why one is missing. All doors ask for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from symbolize.core.arrays import Bool, Int64, UInt8, UInt64, distinct_inverse
from symbolize.core.errors import ChangedFile, ReadFailure
from symbolize.core.folded_code import FoldedCode
from symbolize.core.mapped import CHANGED
from symbolize.core.reasons import Reason
from symbolize.symbols.functions import Calls, ShownNames
from symbolize.symbols.nearest import lookup_nearest
from symbolize.symbols.table import Frames, SymbolTable, joined_frames

if TYPE_CHECKING:
    from symbolize.names import Mode
    from symbolize.symbols.binary import Binary
    from symbolize.symbols.symbol_list_binary import SymbolListBinary

MAX_TABLES = 3
"""Tables of one binary that are tried where one after the other changes while it is read."""


class Tables(Protocol):
    """Symbol tables that were made ahead for the addresses of many profiles."""

    def find(self, binary: Binary, vaddrs: UInt64) -> SymbolTable | None:
        """The table for all of `vaddrs` (ascending), None if there is none. Raises FailedTable if it could not be
        made."""


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer of a binary for n `vaddrs`.

    `reasons` say why each has no frame, or that it has one: uint8[n] of `Reason`. `approximate` are those with a line
    that is not their own (None: none has). `folded` is code that several functions share, with the rows of the
    addresses there, and `calls` are the calls of these functions. `problems` are sentences about the files. `check`
    raises ReadFailure if one of these has changed since. `machine` is the processor of the binary, and `of_linker`
    whether it is Android's dynamic linker.
    """

    vaddrs: UInt64
    frames: Frames
    reasons: UInt8
    approximate: Bool | None
    folded: Sequence[tuple[FoldedCode, Int64]]
    calls: Calls
    problems: Sequence[str]
    check: Callable[[], None]
    machine: str
    of_linker: bool

    def take(self, rows: Int64) -> Answer:
        """The answer for some of the addresses, in any order, also several times."""
        return replace(
            self,
            vaddrs=self.vaddrs[rows],
            frames=self.frames.take(rows),
            reasons=self.reasons[rows],
            approximate=self.approximate[rows] if self.approximate is not None else None,
            folded=[(code, np.flatnonzero(np.isin(rows, here))) for code, here in self.folded],
        )

    def shown(self, functions: Int64, mode: Mode) -> ShownNames:
        """The names of some functions, given by their rows, as `mode` shows them."""
        return self.frames.functions.shown(functions, mode, self.of_linker)


def in_order(vaddrs: ArrayLike, ask: Callable[[UInt64], Answer]) -> Answer:
    """What `ask` answers for addresses in any order; it is given them ascending. Raises as `as_vaddrs`."""
    asked = as_vaddrs(vaddrs)
    if np.all(asked[:-1] <= asked[1:]):
        return ask(asked)
    ascending, which = distinct_inverse(asked)
    return ask(ascending).take(which)


def answer_of(binary: Binary, vaddrs: UInt64, nearest_line: bool, tables: Tables | None) -> Answer:
    """The answer of a binary for `vaddrs` (ascending), see `Binary.answer`."""
    # With `nearest_line` one that is found is the whole one, and the binary's from now on.
    made = tables.find(binary, vaddrs) if tables is not None else None
    if made is not None:
        return _unchanged(binary, vaddrs, nearest_line, made)
    answers = [(portion, _unchanged(binary, vaddrs[portion], nearest_line)) for portion in binary.portions(vaddrs)]
    return answers[0][1] if len(answers) == 1 else _joined(binary, vaddrs, answers)


def _unchanged(binary: Binary, vaddrs: UInt64, nearest_line: bool, made: SymbolTable | None = None) -> Answer:
    """The answer of a table, `made` or that of the binary, that has not changed when everything is read of it: a cached
    one that did is made anew (R280, files that change)."""
    for _ in range(MAX_TABLES):
        try:
            answer = table_answer(binary, vaddrs, nearest_line, made)
        except ReadFailure:
            raise
        except Exception:
            if not _drop_changed(binary, made):
                raise
        else:
            if not _drop_changed(binary, made):
                return answer
        made = None
    raise ChangedFile(binary.images[0].path, CHANGED)


def table_answer(
    binary: Binary | SymbolListBinary, vaddrs: UInt64, nearest_line: bool, made: SymbolTable | None = None
) -> Answer:
    """The answer for `vaddrs` (ascending) of one table, `made` or that of the binary."""
    if nearest_line:
        table, frames, approximate = lookup_nearest(binary, vaddrs)
    else:
        table = made or binary.table(vaddrs)
        frames, approximate = table.lookup(vaddrs), None

    def check() -> None:
        table.check()
        binary.check()

    return Answer(
        *(vaddrs, frames, _reasons(binary, table, vaddrs, frames), approximate, list(table.folded(vaddrs))),
        *(table.calls(), table.problems, check),
        machine=binary.images[0].machine if binary.images else "",
        of_linker=binary.is_android_linker,
    )


def _reasons(binary: Binary | SymbolListBinary, table: SymbolTable, vaddrs: UInt64, frames: Frames) -> UInt8:
    """Why each of `vaddrs` has no frame, or that it has one."""
    reasons = np.full(len(vaddrs), Reason.SYMBOLIZED, np.uint8)
    rows = np.flatnonzero(np.diff(frames.offsets) == 0)
    corrupt = Reason.CORRUPT_DEBUG_INFO if table.has_names else Reason.UNREADABLE
    missing = Reason.NO_SYMBOLS if binary.is_stripped else Reason.OUTSIDE_SYMBOLS
    reasons[rows] = np.where(table.doubtful(vaddrs[rows]), corrupt, missing)
    reasons[rows[~binary.is_loaded(vaddrs[rows])]] = Reason.OUTSIDE_SEGMENTS
    return reasons


def _joined(binary: Binary, vaddrs: UInt64, answers: Sequence[tuple[slice, Answer]]) -> Answer:
    """One answer, of those for portions of `vaddrs`; which calls are of shared code is known with all of them."""
    parts = [answer for _, answer in answers]
    folded: dict[tuple[int, int], tuple[FoldedCode, Int64]] = {}
    for portion, answer in answers:
        for code, rows in answer.folded:
            before = folded.get((code.begin, code.end), (code, rows[:0]))[1]
            folded[code.begin, code.end] = code, np.concatenate((before, rows + portion.start))
    approximate = [answer.approximate for answer in parts if answer.approximate is not None]
    return replace(
        parts[-1],
        vaddrs=vaddrs,
        frames=joined_frames([answer.frames for answer in parts]),
        reasons=np.concatenate([answer.reasons for answer in parts]),
        approximate=np.concatenate(approximate) if approximate else None,
        folded=list(folded.values()),
        calls=binary.calls([code for code, _ in folded.values()], vaddrs),
        problems=list(dict.fromkeys(problem for answer in parts for problem in answer.problems)),
    )


def _drop_changed(binary: Binary, table: SymbolTable | None) -> bool:
    """Have a table made anew if the file that it is read from has changed; whether it has."""
    return binary.drop_changed() or (table is not None and table.has_changed)


def as_vaddrs(values: ArrayLike) -> UInt64:
    """Addresses as a column: uint64[n]. Raises TypeError for other than whole numbers, ValueError for other dimensions
    or more than 64 bits."""
    try:
        column = values if isinstance(values, np.ndarray) else as_column([*map(index, values)])  # type: ignore[arg-type]
    except TypeError as error:
        raise TypeError("vaddrs: expected whole numbers") from error
    except OverflowError as error:
        raise ValueError("vaddrs: an address is negative or has more than 64 bits") from error
    if column.ndim != 1:
        raise ValueError(f"vaddrs: expected one dimension, not {column.ndim}")
    if len(column) and column.dtype.kind not in "ui":
        raise TypeError(f"vaddrs: expected whole numbers, not {column.dtype}")
    if column.dtype.kind == "i" and len(column) and column.min() < 0:
        raise ValueError("vaddrs: an address is negative")
    return column.astype(np.uint64, copy=False)


def as_column(numbers: list[int]) -> UInt64:
    """Whole numbers as a column. Raises OverflowError for those that do not fit; numpy 1 takes negative ones."""
    if min(numbers, default=0) < 0:
        raise OverflowError("an address is negative")
    return np.array(numbers, np.uint64)

"""Totals, call trees and annotated sources as lines of text."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np

from symbolize.analysis.sources import Sources
from symbolize.analysis.stacks import LETTERS, Stacks
from symbolize.analysis.totals import LineTotals, call_tree, function_totals, line_totals
from symbolize.analysis.units import percent, quantity
from symbolize.core.arrays import NONE
from symbolize.core.errors import printable
from symbolize.core.expressions import Matches
from symbolize.core.terminal import fitting, shortened_function
from symbolize.profile import FunctionRow

CONTEXT: Final = 3
"""Source lines that are shown before and behind those with values."""


def total_line(stacks: Stacks) -> str:
    """What all percentages are of, and how much of it the filters left; of a difference, both totals.

    Negative values count with their size; what they sum up to with their signs is beside that.
    """
    kind, unit = stacks.types[stacks.default]
    left, totals = np.abs(stacks.values).sum(axis=0).tolist(), []
    for column in range(stacks.default, len(left), len(stacks.types)):
        shown, total = left[column], float(stacks.totals[column])
        is_all = math.isclose(shown, total)
        both = quantity(total, unit) if is_all else f"{quantity(shown, unit)} of {quantity(total, unit)}"
        totals.append(both + stacks.net(column))
    return printable(f"{kind}: {', base '.join(totals)}")


def top_lines(
    stacks: Stacks, count: int | None = None, by_total: bool = False, width: int | None = None
) -> Iterator[str]:
    """A row a function, those with the largest own value first, as `pprof -top` has them."""
    yield total_line(stacks)
    rows = function_totals(stacks).heaviest(stacks.default, count, by_total)
    yield from function_lines(rows, float(stacks.totals[stacks.default]), stacks.types[stacks.default][1], width)


def function_lines(rows: Sequence[FunctionRow], total: float, unit: str, width: int | None = None) -> Iterator[str]:
    """A heading and a row a function; names are shortened to lines of `width` cells."""
    columns = [["flat"], ["flat%"], ["cum"], ["cum%"]]
    for row in rows:
        for number, value in enumerate((row.flat, row.cumulative)):
            columns[2 * number].append(quantity(value, unit))
            columns[2 * number + 1].append(percent(value, total))
    return table_lines(columns, ["function", *(row.name for row in rows)], width)


def table_lines(columns: Sequence[Sequence[str]], names: Sequence[str], width: int | None) -> Iterator[str]:
    """Columns of figures, aligned at the right, and names behind them, in lines of at most `width` cells."""
    sizes = [max(map(len, column)) for column in columns]
    for figures, name in zip(zip(*columns, strict=True), names, strict=True):
        begin = "  ".join(f"{figure:>{size}}" for figure, size in zip(figures, sizes, strict=True)) + "  "
        shown = printable(name)
        yield begin + (shown if width is None else shortened_function(shown, width - len(begin)))


def difference_lines(stacks: Stacks, count: int | None = None, width: int | None = None) -> Iterator[str]:
    """A row a function of a `difference`, those whose own value changed most first. The change is in percent of the
    total of the base, base and new are of their own totals."""
    yield total_line(stacks)
    unit, base_column = stacks.types[stacks.default][1], stacks.default + len(stacks.types)
    new_total, total = (float(stacks.totals[column]) for column in (stacks.default, base_column))
    columns = [[each] for each in ("change", "change%", "base", "base%", "new", "new%", "cum change")]
    names = ["function"]
    for row in function_totals(stacks).most_changed(stacks.default, base_column, count):
        change = row.flat - row.base_flat
        share = f"{100 * change / total:+.2f}%" if total else "-"
        cumulative = signed(row.cumulative - row.base_cumulative, unit)
        both = (quantity(row.base_flat, unit), percent(row.base_flat, total), quantity(row.flat, unit))
        figures = (signed(change, unit), share, *both, percent(row.flat, new_total), cumulative)
        for column, figure in zip(columns, figures, strict=True):
            column.append(figure)
        names.append(row.name)
    yield from table_lines(columns, names, width)


def signed(value: float, unit: str) -> str:
    """A change, with its sign."""
    return f"{'+' if value > 0 else ''}{quantity(value, unit)}"


def tree_lines(stacks: Stacks, least: float, callers: bool = False, width: int | None = None) -> Iterator[str]:
    """The call tree with the heaviest branch first, without branches below the share `least` of the total; with
    `callers` from the leaves on.

    The branches of a node begin with ├ and └, and what follows such a line with │ in the same column is called by the
    line above it: deep stacks are not indented where they do not branch.
    """
    yield total_line(stacks)
    unit, tree = stacks.types[stacks.default][1], call_tree(stacks, inverted=callers)
    totals, widths, own = (each[:, stacks.default] for each in (tree.totals(), tree.widths(), tree.values))
    total = float(stacks.totals[stacks.default])
    children = tree.children(widths, least * total)
    shown = tree.frame[[node for nodes in children.values() for node in nodes]]
    stacks.budget(LETTERS).spend(int(tree.frames.names.lengths()[shown].sum()))
    columns, names = [["total"], ["total%"], *([] if callers else [["self"]])], ["function"]
    pending = branches(children.get(0, []), "")
    while pending:
        node, begin, below = pending.pop()
        figures = [quantity(totals[node], unit), percent(totals[node], total)]
        if not callers:
            figures.append(quantity(own[node], unit) if own[node] else "")
        for column, figure in zip(columns, figures, strict=True):
            column.append(figure)
        names.append(begin + tree.frames.names[tree.frame[node]])
        pending += branches(children.get(node, []), below)
    yield from table_lines(columns, names, width)


def branches(nodes: Sequence[int], begin: str) -> list[tuple[int, str, str]]:
    """Nodes with the same parent, the last one first: what their own lines begin with, and what those below them do."""
    if len(nodes) <= 1:
        return [(node, begin, begin) for node in nodes]
    last = len(nodes) - 1
    return [
        (nodes[row], begin + ("└ " if row == last else "├ "), begin + ("  " if row == last else "│ "))
        for row in range(last, -1, -1)
    ]


def list_lines(stacks: Stacks, matches: Matches, sources: Sources, width: int | None = None) -> Iterator[str]:
    """The source lines of each function whose name matches, the heaviest first, with their values."""
    names, name_of = stacks.names.names.distinct()
    matching: dict[str, int] = {}
    rows = np.array([matching.setdefault(name, len(matching)) if matches(name) else NONE for name in names], np.int32)
    found = [*line_totals(stacks, rows[name_of][stacks.frames]).by_file()]
    if not found:
        return
    yield total_line(stacks)
    found.sort(key=lambda lines: -float(np.abs(lines.cumulative[:, stacks.default]).max()))
    texts = [*matching]
    for lines in found:
        for line in source_lines(texts[lines.function[0]], lines, stacks, sources):
            yield line if width is None else fitting(line, width)


def source_lines(name: str, lines: LineTotals, stacks: Stacks, sources: Sources) -> Iterator[str]:
    """The lines of one function with some around them; only those with values if the file is not found."""
    unit, file = stacks.types[stacks.default][1], lines.files[lines.file[0]]
    columns = (each[:, stacks.default].tolist() for each in (lines.flat, lines.cumulative))
    values = dict(zip(lines.line.tolist(), zip(*columns, strict=True), strict=True))
    text = sources.read(file)
    source = [] if text is None else text.removesuffix("\n").split("\n")  # form feeds are no ends of lines
    yield f"{printable(name)} in {printable(file)}{'' if source else ' (source not found)'}"
    numbers: Iterable[int] = values
    if source:
        last = min(max(values) + CONTEXT, len(source))
        numbers = chain(range(max(min(values) - CONTEXT, 1), last + 1), (line for line in values if line > last))
    for number in numbers:
        flat, cumulative = (quantity(value, unit) if value else "." for value in values.get(number, (0.0, 0.0)))
        code = printable(source[number - 1].rstrip("\r").expandtabs(4)) if number <= len(source) else ""
        yield f"{flat:>10} {cumulative:>10} {number:>6}  {code}".rstrip()

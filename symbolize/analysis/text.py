"""Totals, call trees and annotated sources as lines of text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np

from symbolize.analysis.line_totals import LineTotals, line_totals
from symbolize.analysis.sources import Sources
from symbolize.analysis.stacks import Stacks
from symbolize.analysis.top import FunctionRow, function_totals
from symbolize.analysis.tree import call_tree
from symbolize.analysis.units import percent, quantity
from symbolize.core.arrays import NONE
from symbolize.core.errors import printable

CONTEXT: Final = 3
"""Source lines that are shown before and behind those with values."""


def total_line(stacks: Stacks) -> str:
    """What all percentages are of; of a difference, both totals."""
    kind, unit = stacks.types[stacks.default]
    totals = [quantity(total, unit) for total in stacks.totals()[stacks.default :: len(stacks.types)].tolist()]
    return printable(f"{kind}: {', base '.join(totals)}")


def top_lines(stacks: Stacks, count: int | None = None, by_total: bool = False) -> Iterator[str]:
    """A row a function, those with the largest own value first, as `pprof -top` has them."""
    yield total_line(stacks)
    rows = function_totals(stacks).heaviest(stacks.default, count, by_total)
    yield from function_lines(rows, float(stacks.totals()[stacks.default]), stacks.types[stacks.default][1])


def function_lines(rows: Sequence[FunctionRow], total: float, unit: str) -> Iterator[str]:
    """A heading and a row a function; `sum%` is the share of all rows so far."""
    yield f"{'flat':>10} {'flat%':>7} {'sum%':>7} {'cum':>10} {'cum%':>7}  function"
    so_far = 0.0
    for row in rows:
        so_far += row.flat
        yield (
            f"{quantity(row.flat, unit):>10} {percent(row.flat, total):>7} {percent(so_far, total):>7} "
            f"{quantity(row.cumulative, unit):>10} {percent(row.cumulative, total):>7}  {printable(row.name)}"
        )


def difference_lines(stacks: Stacks, count: int | None = None) -> Iterator[str]:
    """A row a function of a `difference`, those whose own value changed most first. Percentages are of the base."""
    yield total_line(stacks)
    unit, base_column = stacks.types[stacks.default][1], stacks.default + len(stacks.types)
    total = float(stacks.totals()[base_column])
    yield f"{'change':>11} {'change%':>8} {'base':>10} {'new':>10} {'cum change':>11}  function"
    for new, base in function_totals(stacks).most_changed(stacks.default, base_column, count):
        change = new.flat - base.flat
        yield (
            f"{signed(change, unit):>11} {f'{100 * change / total:+.2f}%' if total else '-':>8} "
            f"{quantity(base.flat, unit):>10} {quantity(new.flat, unit):>10} "
            f"{signed(new.cumulative - base.cumulative, unit):>11}  {printable(new.name)}"
        )


def signed(value: float, unit: str) -> str:
    """A change, with its sign."""
    return f"{'+' if value > 0 else ''}{quantity(value, unit)}"


def tree_lines(stacks: Stacks, least: float, callers: bool = False) -> Iterator[str]:
    """The call tree with the heaviest branch first, without branches below the share `least` of the total; with
    `callers` from the leaves on.

    What is the only callee is not indented further, so that deep stacks stay readable.
    """
    yield total_line(stacks)
    unit, tree = stacks.types[stacks.default][1], call_tree(stacks, inverted=callers)
    totals, own = (each[:, stacks.default] for each in (tree.totals(), tree.values))
    total = float(stacks.totals()[stacks.default])
    children = tree.children(np.abs(totals), least * total)
    yield f"{'total':>10} {'total%':>7} {'' if callers else 'self':>10}  function"
    pending = [(node, 0) for node in reversed(children.get(0, []))]
    while pending:
        node, depth = pending.pop()
        name = printable(tree.frames.names[tree.frame[node]])
        yield (
            f"{quantity(totals[node], unit):>10} {percent(totals[node], total):>7} "
            f"{quantity(own[node], unit) if own[node] and not callers else '':>10}  {'| ' * depth}{name}"
        )
        below = children.get(node, [])
        pending += [(child, depth + (len(below) > 1)) for child in reversed(below)]


def list_lines(stacks: Stacks, pattern: re.Pattern[str], sources: Sources) -> Iterator[str]:
    """The source lines of each function whose name matches, the heaviest first, with their values."""
    names, name_of = stacks.names.by_name()
    matching = {name: row for row, name in enumerate(filter(pattern.search, names))}
    rows = np.array([matching.get(name, NONE) for name in names], np.int32)
    if not matching:
        return
    yield total_line(stacks)
    found = [*line_totals(stacks, rows[name_of][stacks.frames]).by_file()]
    found.sort(key=lambda lines: -float(np.abs(lines.cumulative[:, stacks.default]).max()))
    texts = [*matching]
    for lines in found:
        yield from source_lines(texts[lines.function[0]], lines, stacks, sources)


def source_lines(name: str, lines: LineTotals, stacks: Stacks, sources: Sources) -> Iterator[str]:
    """The lines of one function with some around them; only those with values if the file is not found."""
    unit, file = stacks.types[stacks.default][1], lines.files[lines.file[0]]
    columns = (each[:, stacks.default].tolist() for each in (lines.flat, lines.cumulative))
    values = dict(zip(lines.line.tolist(), zip(*columns, strict=True), strict=True))
    text = sources.read(file)
    source = [] if text is None else text.splitlines()
    yield f"{printable(name)} in {printable(file)}{'' if source else ' (source not found)'}"
    numbers: Iterable[int] = values
    if source:
        last = min(max(values) + CONTEXT, len(source))
        numbers = chain(range(max(min(values) - CONTEXT, 1), last + 1), (line for line in values if line > last))
    for number in numbers:
        flat, cumulative = (quantity(value, unit) if value else "." for value in values.get(number, (0.0, 0.0)))
        code = printable(source[number - 1].expandtabs(4)) if number <= len(source) else ""
        yield f"{flat:>10} {cumulative:>10} {number:>6}  {code}".rstrip()

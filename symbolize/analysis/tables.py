"""What `top`, `tree`, `list` and `diff` show, as tables: computed once, and printed as text, JSON or Markdown."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from symbolize.analysis.sources import Sources
from symbolize.analysis.stacks import LETTERS, Stacks
from symbolize.analysis.totals import LineTotals, call_tree, changes, function_totals, line_totals
from symbolize.analysis.units import quantity
from symbolize.core.arrays import NONE
from symbolize.core.errors import printable
from symbolize.core.expressions import Matches
from symbolize.core.records import record
from symbolize.profile import FunctionRow

CONTEXT: Final = 3
"""Source lines that are shown before and behind those with values."""


class ShownColumn(NamedTuple):
    """A column: its field of JSON, its heading elsewhere (empty: it is in JSON only), and how a value of it reads."""

    field: str
    heading: str
    text: Callable[[Any], str] = str


@record(frozen=True)
class ShownTable:
    """The first of `rows_total` rows. `rows` have a value for each of `columns`, the last of which is a name; None is
    shown as the columns say.

    `kind` says what the rows are, `about` what else JSON has, `summary` is a line on what was measured and `conclusion`
    one on what was left out or found. `branches` are what names of a tree begin with.
    """

    kind: str
    summary: str
    columns: Sequence[ShownColumn]
    rows: Sequence[Sequence[Any]]
    rows_total: int
    about: dict[str, object] = field(default_factory=dict)
    conclusion: str = ""
    branches: Sequence[str] = ()

    @property
    def is_truncated(self) -> bool:
        """Whether there are more rows."""
        return len(self.rows) < self.rows_total

    def data(self) -> dict[str, object]:
        """The rows as plain data; what is a whole number is an integer."""
        fields = [column.field for column in self.columns]
        return {
            **self.about,
            "rows_total": self.rows_total,
            "truncated": self.is_truncated,
            "rows": [dict(zip(fields, map(plain, row), strict=True)) for row in self.rows],
        }


def plain(value: Any) -> Any:
    """A value as JSON has it: whole numbers are integers, and texts UTF-8."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return valid(value) if isinstance(value, str) else value


def valid(text: str) -> str:
    """A text that can be written as UTF-8: bytes of a file's name that are not come out as `\\xNN`."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "backslashreplace")


def share(value: float, total: float) -> float | None:
    """The part of a total in percent; None if there is none."""
    return 100 * value / total if total else None


def value_column(name: str, heading: str, unit: str) -> ShownColumn:
    """A column of values in a unit."""
    return ShownColumn(name, heading, lambda value: quantity(value, unit))


def share_column(name: str, heading: str) -> ShownColumn:
    """A column of shares."""
    return ShownColumn(name, heading, lambda value: "0%" if value is None else f"{value:.2f}%")


def signed(value: float, unit: str) -> str:
    """A change, with its sign."""
    return f"{'+' if value > 0 else ''}{quantity(value, unit)}"


def change_column(name: str, heading: str, unit: str) -> ShownColumn:
    """A column of changes of values in a unit."""
    return ShownColumn(name, heading, lambda value: signed(value, unit))


FUNCTION: Final = ShownColumn("function", "function", printable)


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


def measured(stacks: Stacks) -> dict[str, object]:
    """What `total_line` says as data: the sample type, and for the profile and its base the total, what filters left of
    it, and its sum with the signs of the values."""
    kind, unit = stacks.types[stacks.default]
    data: dict[str, object] = {"sample_type": valid(kind), "unit": valid(unit)}
    columns = range(stacks.default, len(stacks.totals), len(stacks.types))
    for column, begin in zip(columns, ("", "base_"), strict=False):
        values = stacks.values[:, column]
        sums = {"total": stacks.totals[column], "shown": np.abs(values).sum(), "net": values.sum()}
        data |= {begin + name: plain(float(value)) for name, value in sums.items()}
    return data


def top_table(stacks: Stacks, limit: int | None = None, by_total: bool = False) -> ShownTable:
    """A row a function, those with the largest own value first, as `pprof -top` has them."""
    column, totals = stacks.default, function_totals(stacks)
    rows = totals.heaviest(column, limit, by_total)
    columns, figures = function_rows(rows, float(stacks.totals[column]), stacks.types[column][1])
    count = int(np.count_nonzero((totals.flat[:, column] != 0) | (totals.cumulative[:, column] != 0)))
    return ShownTable("functions", total_line(stacks), columns, figures, count, measured(stacks))


def function_rows(
    rows: Sequence[FunctionRow], total: float, unit: str
) -> tuple[list[ShownColumn], list[Sequence[Any]]]:
    """The columns of a table of functions, and its rows."""
    columns = [
        value_column("flat", "flat", unit),
        share_column("flat_percent", "flat%"),
        value_column("cumulative", "cum", unit),
        share_column("cumulative_percent", "cum%"),
        FUNCTION,
    ]
    return columns, [
        (row.flat, share(row.flat, total), row.cumulative, share(row.cumulative, total), row.name) for row in rows
    ]


def difference_table(stacks: Stacks, limit: int | None = None) -> ShownTable:
    """A row a function of a `difference`, those whose own value changed most first. The change is in percent of the
    total of the base, base and new are of their own totals."""
    unit, base_column = stacks.types[stacks.default][1], stacks.default + len(stacks.types)
    new_total, total = (float(stacks.totals[column]) for column in (stacks.default, base_column))
    totals = function_totals(stacks)
    flat, cumulative = (
        changes(each[:, stacks.default], each[:, base_column]) for each in (totals.flat, totals.cumulative)
    )
    columns = [
        change_column("change", "change", unit),
        ShownColumn("change_percent", "change%", lambda value: "-" if value is None else f"{value:+.2f}%"),
        value_column("base", "base", unit),
        share_column("base_percent", "base%"),
        value_column("new", "new", unit),
        share_column("new_percent", "new%"),
        change_column("cumulative_change", "cum change", unit),
        FUNCTION,
    ]
    rows: list[Sequence[Any]] = []
    for row in totals.most_changed(stacks.default, base_column, limit):
        change = row.flat - row.base_flat
        base = row.base_flat, share(row.base_flat, total)
        new = row.flat, share(row.flat, new_total), row.cumulative - row.base_cumulative
        rows.append((change, share(change, total), *base, *new, row.name))
    count = int(np.count_nonzero((flat != 0) | (cumulative != 0)))
    return ShownTable("changes", total_line(stacks), columns, rows, count, measured(stacks))


def tree_table(stacks: Stacks, least: float, callers: bool = False, limit: int | None = None) -> ShownTable:
    """The call tree with the heaviest branch first, without branches below the share `least` of the total; with
    `callers` from the leaves on. With a `limit` it has the heaviest nodes.

    The branches of a node begin with ├ and └, and what follows such a line with │ in the same column is called by the
    line above it: deep stacks are not indented where they do not branch.
    """
    unit, tree = stacks.types[stacks.default][1], call_tree(stacks, inverted=callers)
    totals, widths, own = (each[:, stacks.default] for each in (tree.totals(), tree.widths(), tree.values))
    total = float(stacks.totals[stacks.default])
    children = tree.children(widths, least * total)
    count = sum(map(len, children.values()))
    if limit is not None and limit < count:
        children = tree.children(widths, least * total, limit)
    shown = tree.frame[[node for nodes in children.values() for node in nodes]]
    stacks.budget(LETTERS).spend(int(tree.frames.names.lengths()[shown].sum()))
    columns = [ShownColumn("depth", ""), value_column("total", "total", unit), share_column("total_percent", "total%")]
    if not callers:
        columns.append(ShownColumn("self", "self", lambda value: quantity(value, unit) if value else ""))
    rows: list[Sequence[Any]] = []
    begins: list[str] = []
    for node, depth, begin in nodes_of(children):
        figures = [depth, float(totals[node]), share(float(totals[node]), total)]
        rows.append((*figures, *([] if callers else [float(own[node])]), tree.frames.names[tree.frame[node]]))
        begins.append(begin)
    about = measured(stacks) | {"callers": callers}
    return ShownTable("calls", total_line(stacks), [*columns, FUNCTION], rows, count, about, branches=begins)


def nodes_of(children: dict[int, list[int]]) -> Iterator[tuple[int, int, str]]:
    """The nodes of a tree, parents before their children: each with its depth, and what its line begins with."""
    pending = [(0, branch) for branch in branches(children.get(0, []), "")]
    while pending:
        depth, (node, begin, below) = pending.pop()
        yield node, depth, begin
        pending += [(depth + 1, branch) for branch in branches(children.get(node, []), below)]


def branches(nodes: Sequence[int], begin: str) -> list[tuple[int, str, str]]:
    """Nodes with the same parent, the last one first: what their own lines begin with, and what those below them do."""
    if len(nodes) <= 1:
        return [(node, begin, begin) for node in nodes]
    last = len(nodes) - 1
    return [
        (nodes[row], begin + ("└ " if row == last else "├ "), begin + ("  " if row == last else "│ "))
        for row in range(last, -1, -1)
    ]


def list_table(stacks: Stacks, matches: Matches, sources: Sources, limit: int | None = None) -> ShownTable:
    """The source lines of each function whose name matches, the heaviest first, with their values; the last column is
    their text, None where the file is not found. It has no rows if no function matches."""
    names, name_of = stacks.names.names.distinct()
    matching: dict[str, int] = {}
    rows = np.array([matching.setdefault(name, len(matching)) if matches(name) else NONE for name in names], np.int32)
    found = [*line_totals(stacks, rows[name_of][stacks.frames]).by_file()]
    found.sort(key=lambda lines: -float(np.abs(lines.cumulative[:, stacks.default]).max()))
    texts, unit = [*matching], stacks.types[stacks.default][1]
    columns = [
        *(ShownColumn(name, "") for name in ("function", "file")),
        *(
            ShownColumn(name, "", lambda value: quantity(value, unit) if value else ".")
            for name in ("flat", "cumulative")
        ),
        *(ShownColumn(name, "") for name in ("line", "source")),
    ]
    lines = [row for each in found for row in source_rows(texts[each.function[0]], each, stacks.default, sources)]
    return ShownTable("lines", total_line(stacks), columns, lines[:limit], len(lines), measured(stacks))


def source_rows(name: str, lines: LineTotals, column: int, sources: Sources) -> Iterator[Sequence[Any]]:
    """The lines of one function with some around them; only those with values if the file is not found."""
    file = lines.files[lines.file[0]]
    columns = (each[:, column].tolist() for each in (lines.flat, lines.cumulative))
    values = dict(zip(lines.line.tolist(), zip(*columns, strict=True), strict=True))
    text = sources.read(file)
    source = [] if text is None else text.removesuffix("\n").split("\n")  # form feeds are no ends of lines
    numbers: Iterable[int] = values
    if source:
        last = min(max(values) + CONTEXT, len(source))
        numbers = chain(range(max(min(values) - CONTEXT, 1), last + 1), (line for line in values if line > last))
    for number in numbers:
        code = (source[number - 1].rstrip("\r") if number <= len(source) else "") if source else None
        yield name, file, *values.get(number, (0.0, 0.0)), number, code

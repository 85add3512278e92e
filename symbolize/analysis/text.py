"""Tables as lines of text."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from symbolize.analysis.tables import ShownColumn, ShownTable, function_rows
from symbolize.core.errors import printable
from symbolize.core.terminal import fitting, shortened_function
from symbolize.profile import FunctionRow


def text_lines(table: ShownTable, width: int | None = None) -> Iterator[str]:
    """What was measured, a heading, the rows, and what is to be said of them; in lines of at most `width` cells."""
    yield table.summary
    if table.kind == "lines":
        yield from source_lines(table, width)
    else:
        yield from table_lines(table.columns, table.rows, width, table.branches)
    if table.conclusion:
        yield table.conclusion


def function_lines(rows: Sequence[FunctionRow], total: float, unit: str, width: int | None = None) -> Iterator[str]:
    """A heading and a row a function; names are shortened to lines of `width` cells."""
    yield from table_lines(*function_rows(rows, total, unit), width)


def table_lines(
    columns: Sequence[ShownColumn], rows: Sequence[Sequence[Any]], width: int | None, branches: Sequence[str] = ()
) -> Iterator[str]:
    """A heading and the rows: figures, aligned at the right, and names behind them, in lines of at most `width`
    cells."""
    shown = [number for number, column in enumerate(columns) if column.heading]
    last = shown.pop()
    figures = [[columns[number].heading, *(columns[number].text(row[number]) for row in rows)] for number in shown]
    sizes = [max(map(len, column)) for column in figures]
    names = [columns[last].heading, *(columns[last].text(row[last]) for row in rows)]
    begins = ["", *(branches or [""] * len(rows))]
    for texts, begin, name in zip(zip(*figures, strict=True), begins, names, strict=True):
        line = "  ".join(f"{text:>{size}}" for text, size in zip(texts, sizes, strict=True)) + "  "
        yield line + (begin + name if width is None else shortened_function(begin + name, width - len(line)))


def source_lines(table: ShownTable, width: int | None) -> Iterator[str]:
    """The lines of each function below its name and file."""
    flat_text, cumulative_text = (column.text for column in table.columns[2:4])
    for (name, file), rows in groupby(table.rows, key=lambda row: (row[0], row[1])):
        lines = [*rows]
        missing = " (source not found)" if lines[0][5] is None else ""
        texts = [f"{printable(name)} in {printable(file)}{missing}"]
        for _, _, flat, cumulative, number, source in lines:
            code = printable((source or "").expandtabs(4))
            texts.append(f"{flat_text(flat):>10} {cumulative_text(cumulative):>10} {number:>6}  {code}".rstrip())
        yield from (line if width is None else fitting(line, width) for line in texts)

"""Totals of functions as a table for other programs: CSV and Parquet."""

import csv
import io
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from symbolize.analysis import Stacks
from symbolize.analysis.totals import totals_by_key
from symbolize.core.errors import printable

ROWS_AT_ONCE = 1 << 12
LARGEST = (1 << 63) - 1
"""Of whole numbers in Parquet; sums that are larger are floating-point numbers there."""

FORMULA: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""How texts begin that spreadsheets take for formulas, also in the wide letters that some of them read alike."""


def columns(stacks: Stacks) -> dict[str, list[Any]]:
    """A row for each function of each module, the heaviest first: its source file, and its values by sample type."""
    flat, cumulative = totals_by_key(stacks, stacks.frames, len(stacks.names))
    order = np.lexsort((-np.abs(cumulative[:, stacks.default]), -np.abs(flat[:, stacks.default])))
    texts = {"function": stacks.names.names, "module": stacks.names.modules, "file": stacks.names.files}
    found: dict[str, list[Any]] = {
        title: [printable(column[row]) for row in order.tolist()] for title, column in texts.items()
    }
    for column, (kind, unit) in enumerate(stacks.types):
        title = printable(f"{kind}/{unit}")
        if f"flat {title}" in found:
            title += f" ({column + 1})"
        found[f"flat {title}"] = whole(flat[order, column])
        found[f"cumulative {title}"] = whole(cumulative[order, column])
    return found


def whole(values: Any) -> list[int]:
    """Values as whole numbers, which they are."""
    return [round(value) for value in values.tolist()]


def no_formula(value: Any) -> Any:
    """A value of a cell; a text that a spreadsheet would run begins with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def csv_pieces(stacks: Stacks) -> Iterator[bytes]:
    """The table as CSV with a heading (RFC 4180), whose texts are no formulas."""
    table = {title: [*map(no_formula, values)] for title, values in columns(stacks).items()}
    rows = [tuple(table), *zip(*table.values(), strict=True)]
    for first in range(0, len(rows), ROWS_AT_ONCE):
        text = io.StringIO()
        csv.writer(text).writerows(rows[first : first + ROWS_AT_ONCE])
        yield text.getvalue().encode()


def parquet_pieces(stacks: Stacks) -> Iterator[bytes]:
    """The table as a Parquet file; `output_of` has seen that pyarrow is there."""
    import pyarrow as pa
    from pyarrow import parquet

    table = columns(stacks)
    for title, values in table.items():
        if any(not isinstance(value, str) and abs(value) > LARGEST for value in values):
            table[title] = [float(value) for value in values]
    file = io.BytesIO()
    parquet.write_table(pa.table(table), file)
    yield file.getvalue()

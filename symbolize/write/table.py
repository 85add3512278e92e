"""Totals of functions as a table for other programs: CSV and Parquet."""

import csv
import io
from collections.abc import Iterator
from typing import Any

import numpy as np

from symbolize.analysis import Stacks
from symbolize.analysis.top import totals_by_key

ROWS_AT_ONCE = 1 << 12


def columns(stacks: Stacks) -> dict[str, list[Any]]:
    """A row for each function of each module, the heaviest first: its source file, and its values by sample type."""
    flat, cumulative = totals_by_key(stacks, stacks.frames, len(stacks.names))
    order = np.lexsort((-np.abs(cumulative[:, stacks.default]), -np.abs(flat[:, stacks.default])))
    texts = {"function": stacks.names.names, "module": stacks.names.modules, "file": stacks.names.files}
    found: dict[str, list[Any]] = {name: [column[row] for row in order.tolist()] for name, column in texts.items()}
    for column, (kind, unit) in enumerate(stacks.types):
        found[f"flat {kind}/{unit}"] = whole(flat[order, column])
        found[f"cumulative {kind}/{unit}"] = whole(cumulative[order, column])
    return found


def whole(values: Any) -> list[int]:
    """Values as whole numbers, which they are."""
    return [round(value) for value in values.tolist()]


def csv_pieces(stacks: Stacks) -> Iterator[bytes]:
    """The table as CSV with a heading (RFC 4180)."""
    table = columns(stacks)
    rows = [tuple(table), *zip(*table.values(), strict=True)]
    for first in range(0, len(rows), ROWS_AT_ONCE):
        text = io.StringIO()
        csv.writer(text).writerows(rows[first : first + ROWS_AT_ONCE])
        yield text.getvalue().encode(errors="backslashreplace")


def parquet_pieces(stacks: Stacks) -> Iterator[bytes]:
    """The table as a Parquet file; `output_of` has seen that pyarrow is there."""
    import pyarrow as pa
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pa.table(columns(stacks)), file)
    yield file.getvalue()

"""Totals of functions as a table for other programs: CSV and Parquet."""

import csv
import io
from collections.abc import Iterator
from typing import Any

from symbolize.analysis import Stacks
from symbolize.analysis.top import totals_by_key

ROWS_AT_ONCE = 1 << 12


def columns(stacks: Stacks) -> dict[str, list[Any]]:
    """A row for each function of each module: its source file, and its values by sample type."""
    names = stacks.names
    flat, cumulative = totals_by_key(stacks, stacks.frames, len(names))
    found: dict[str, list[Any]] = {"function": names.names, "module": names.modules, "file": names.files}
    for column, (kind, unit) in enumerate(stacks.types):
        found[f"flat {kind}/{unit}"] = whole(flat[:, column])
        found[f"cumulative {kind}/{unit}"] = whole(cumulative[:, column])
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
    """The table as a Parquet file. Raises ImportError without pyarrow (`symbolize[arrow]`)."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: install symbolize[arrow]") from error
    file = io.BytesIO()
    parquet.write_table(pa.table(columns(stacks)), file)
    yield file.getvalue()

"""A profile as rows for a data warehouse: a Parquet file with the values by function, file and line.

All files have the same columns, so that queries take any number of them together (R411, columns of rows).
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

import numpy as np

from symbolize.analysis import stacks_of
from symbolize.analysis.top import code_totals
from symbolize.core.arrays import Int32, Int64, distinct, distinct_inverse, pair, unpair
from symbolize.core.errors import printable
from symbolize.profile import NONE, Profile

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_AT_ONCE: Final = 1 << 17
"""Rows of a row group."""
LARGEST: Final = 2.0**63
"""The first number that is too large for a column of values."""
MAX_NAME: Final = 4096
"""Characters of a name; longer ones are cut, and distinguished by a hash."""
MAX_LABELS: Final = 64
"""Labels of a row."""
MAX_TEXT: Final = 1024
"""Characters of a label's value."""
RESOURCE: Final = "resource: "
"""What comments begin with that are attributes of an OTLP resource: `resource: service.name=shop`."""


class WarehouseRow(NamedTuple):
    """What all rows of a profile have: its name, and the labels that all of its samples have."""

    profile: str
    labels: dict[str, str]


def write_rows(profile: Profile, row: WarehouseRow, file: BinaryIO) -> None:
    """Write the rows of a profile as Parquet. Needs pyarrow. Raises InputError for a table that is too large."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = schema_of()
    with parquet.ParquetWriter(file, schema, compression="zstd", store_schema=False) as writer:
        for columns in chunks(profile, row):
            writer.write_table(pa.table(columns, schema=schema), row_group_size=ROWS_AT_ONCE)


def schema_of() -> "pa.Schema":
    """The columns; `flat` and `cumulative` are null where they exceed 64 bits."""
    import pyarrow as pa

    text, value = pa.dictionary(pa.int32(), pa.string()), pa.int64()
    return pa.schema(
        {
            "profile": text,
            "time": pa.timestamp("us", tz="UTC"),
            "sample_type": text,
            "unit": text,
            "function": text,
            "module": text,
            "build_id": text,
            "file": text,
            "line": pa.int32(),
            "flat": value,
            "cumulative": value,
            "labels": pa.map_(pa.string(), pa.string()),
        }
    )


def chunks(profile: Profile, row: WarehouseRow) -> Iterator[dict[str, "pa.Array"]]:
    """The columns of the rows of a profile, ROWS_AT_ONCE at a time, in the order of their texts: that of the strings of
    a profile depends on how names were found."""
    import pyarrow as pa

    stacks = stacks_of(profile)
    builds, build_of = builds_of(profile)
    totals = code_totals(stacks, build_of)
    rows_of = {
        "function": (stacks.names.names, totals.name),
        "module": (stacks.names.modules, totals.name),
        "build_id": (builds, totals.build),
        "file": (stacks.files, totals.file),
    }
    texts, ranks = {}, {}
    for title, (each, of_code) in rows_of.items():
        texts[title], rank = ranked(each)
        ranks[title] = rank[of_code]
    order = np.lexsort((totals.line, *reversed(ranks.values())))
    time = profile.time_nanos // 1000 if profile.time_nanos > 0 else None
    for number, (kind, unit) in enumerate(stacks.types):
        has_value = (totals.flat[:, number] != 0) | (totals.cumulative[:, number] != 0)
        of_type = order[has_value[order]]
        for begin in range(0, len(of_type), ROWS_AT_ONCE):
            rows = of_type[begin : begin + ROWS_AT_ONCE]
            same = np.zeros(len(rows), np.int32)
            yield {
                "profile": texts_at(same, pa.array([row.profile])),
                "time": pa.array([time], pa.timestamp("us", tz="UTC")).take(pa.array(same)),
                "sample_type": texts_at(same, pa.array([cut(kind)])),
                "unit": texts_at(same, pa.array([cut(unit)])),
                **{title: texts_at(ranks[title][rows], texts[title]) for title in texts},
                "line": pa.array(totals.line[rows], mask=totals.line[rows] == 0),
                "flat": whole(totals.flat[rows, number]),
                "cumulative": whole(totals.cumulative[rows, number]),
                "labels": repeated(row.labels, len(rows)),
            }


def ranked(texts: Iterable[str]) -> tuple["pa.Array", Int32]:
    """The distinct texts in order, and which of them each is."""
    import pyarrow as pa

    given = [cut(text) for text in texts]
    distinct_texts = sorted({*given})
    number = {text: row for row, text in enumerate(distinct_texts)}
    return pa.array(distinct_texts, "string"), np.array([number[text] for text in given], np.int32)


def texts_at(rows: Int32, texts: "pa.Array") -> "pa.Array":
    """A column with those of some texts that are at `rows`, null for empty ones."""
    import pyarrow as pa
    from pyarrow import compute

    is_empty = compute.equal(texts, "").to_numpy(zero_copy_only=False)
    return pa.DictionaryArray.from_arrays(pa.array(rows, mask=is_empty[rows]), texts)


def cut(text: str) -> str:
    """A text that is printable, and not too long: one of MAX_NAME characters recurs in many rows.

    What is cut gets a hash, so that no two become one (R411, columns of rows).
    """
    if len(text) > MAX_NAME:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        text = f"{text[:MAX_NAME]}~{digest}"
    return printable(text)


def whole(values: Any) -> "pa.Array":
    """Values as whole numbers, which they are; null for those that are too large.

    Sums are exact up to 2^53 and have 53 bits above (R411, columns of rows).
    """
    import pyarrow as pa

    is_large = np.abs(values) >= LARGEST
    return pa.array(np.where(is_large, 0, values).astype(np.int64), mask=is_large)


def repeated(labels: dict[str, str], count: int) -> "pa.Array":
    """A column with the same labels in each row."""
    import pyarrow as pa

    offsets = np.arange(count + 1, dtype=np.int32) * len(labels)
    keys, values = (np.tile(np.array([*texts], object), count) for texts in (labels.keys(), labels.values()))
    return pa.MapArray.from_arrays(offsets, pa.array(keys, "string"), pa.array(values, "string"))


def builds_of(profile: Profile) -> tuple[list[str], Int32]:
    """The distinct build ids, the first of which is "", and the number of that of each location, and of samples without
    a stack: int32[n + 1]."""
    numbers, of_mapping = distinct_inverse(np.concatenate(([0], profile.mappings.build_id)))
    of_mapping = np.concatenate((of_mapping[1:], of_mapping[:1]))  # the last is that of no mapping
    texts = [profile.strings.text(number) for number in numbers.tolist()]
    return texts, of_mapping[np.append(profile.locations.mapping, NONE)].astype(np.int32)


def common_labels(profile: Profile) -> dict[str, str]:
    """The labels that all samples have with the same value, and the attributes of the resource in comments."""
    found: dict[str, str] = {}
    for number in profile.comments:
        comment = profile.strings.text(number)
        key, is_attribute, value = comment.removeprefix(RESOURCE).partition("=")
        if is_attribute and comment.startswith(RESOURCE):
            found.setdefault(key, value)
    samples, labels = profile.samples, profile.samples.labels
    counts = np.diff(samples.label_offsets)
    if not len(samples) or not counts.all():
        return found
    sample: Int64 = np.repeat(np.arange(len(samples)), counts)
    keys, key_of = distinct_inverse(labels.key)
    in_samples = np.bincount(unpair(distinct(pair(key_of, sample)))[0], minlength=len(keys))
    is_everywhere = (in_samples == len(samples)) & (np.bincount(key_of, minlength=len(keys)) == len(samples))
    for key in np.flatnonzero(is_everywhere)[:MAX_LABELS].tolist():
        own = key_of == key
        text, number, unit = labels.text[own], labels.number[own], labels.unit[own]
        if all((column == column[0]).all() for column in (text, number, unit)):
            value = profile.strings.text(int(text[0])) if text[0] else str(int(number[0]))
            found[profile.strings.text(int(keys[key]))] = value
    return found


def shown_labels(labels: dict[str, str]) -> dict[str, str]:
    """Labels for rows: printable, and neither too many nor too long."""
    return {printable(key)[:MAX_TEXT]: printable(labels[key])[:MAX_TEXT] for key in sorted(labels)[:MAX_LABELS]}

"""A profile as other libraries take it: a table with a row for each frame of each sample."""

from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.analysis.frames import Texts, shown_frames
from symbolize.analysis.label_values import MAX_KEYS, label_keys, label_texts
from symbolize.analysis.stacks import located
from symbolize.core.arrays import NONE, Bool, Int32, Int64, marked, taken
from symbolize.core.budget import Budget
from symbolize.profile import Profile

OWN_COLUMNS: Final = 10
CELLS: Final = (1 << 24, 128, "would become a table of {spent:,} cells or more, as only a bomb does")
"""The cells of the table, which has the values of a sample for each of its frames."""
UNKNOWN: Final = -1
"""Code of a text that is not known."""


class Categories(NamedTuple):
    """A column of texts that recur: `codes` are indices into `categories`, which are distinct, or -1 for none."""

    codes: NDArray[np.int32]
    categories: list[str]

    def repeated(self, rows: Int64) -> "Categories":
        """The column with its rows at `rows`."""
        return Categories(self.codes[rows], self.categories)


class NumberColumns(NamedTuple):
    """A column of whole numbers, some of which are missing."""

    values: Int64
    is_missing: Bool

    def repeated(self, rows: Int64) -> "NumberColumns":
        """The column with its rows at `rows`."""
        return NumberColumns(self.values[rows], self.is_missing[rows])


Column = NDArray[Any] | Categories | NumberColumns


def frame_columns(profile: Profile) -> dict[str, Column]:
    """The columns of the table, in their order; see `Profile.to_pandas`."""
    samples, functions, lines = profile.samples, profile.functions, profile.locations.lines
    # A location without lines is a frame too, and so is a sample without a stack.
    location_offsets, locations = located(profile)
    shown = shown_frames(profile, has_files=False, has_no_stack=len(locations) > len(samples.locations))
    frames_of = np.diff(shown.offsets)
    keys = dict(islice(label_keys(profile).items(), MAX_KEYS))
    width = OWN_COLUMNS + len(profile.sample_types) + len(keys)
    size = len(locations) + len(lines) + samples.values.size
    Budget(profile.source or "profile", size, *CELLS).spend_by_reference(width * frames_of, locations)
    counts = taken(frames_of, locations)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    location = np.repeat(locations, counts)
    within = np.arange(total) - np.repeat(ends - counts, counts)
    first_frame = np.zeros(len(counts) + 1, np.int64)
    first_frame[1:] = ends
    sample_begin = first_frame[location_offsets]
    sizes = np.diff(sample_begin)
    sample = np.repeat(np.arange(len(samples)), sizes)
    frame = taken(shown.offsets, location) + within
    line = taken(shown.lines, frame)
    function = _gather(lines.function, line, NONE)
    mapping = np.append(profile.locations.mapping, np.int32(NONE))[location]
    columns: dict[str, Column] = {
        "sample": sample,
        "depth": (np.arange(total) - np.repeat(sample_begin[:-1], sizes)).astype(np.int32),
        "name": shown_names(shown.names.names, taken(shown.frames, frame)),
        "function": _texts(profile, _gather(functions.name, function, UNKNOWN)),
        "file": _texts(profile, _gather(functions.filename, function, UNKNOWN)),
        "line": _gather(lines.line, line, 0),
        "column": _gather(lines.column, line, 0),
        "is_inlined": within + 1 < taken(frames_of, location),
        "address": np.append(profile.locations.address, np.uint64(0))[location],
        "mapping": _texts(profile, _gather(profile.mappings.filename, mapping, UNKNOWN)),
    }
    for number, kind in enumerate(profile.sample_types):
        name = f"{profile.strings.text(kind.type)}/{profile.strings.text(kind.unit)}"
        while name in columns:
            name += f" {number}"
        columns[name] = samples.values[:, number][sample]
    for name, key in keys.items():
        while name in columns:
            name = f"label {name}"
        columns[name] = label_column(profile, key).repeated(sample)
    return columns


def label_column(profile: Profile, key: int) -> Categories | NumberColumns:
    """What samples have for a key: numbers if all are numbers of one unit and no sample has two, else texts, those of
    one sample with commas between them, as pprof shows them."""
    samples, labels = profile.samples, profile.samples.labels
    rows = np.flatnonzero(labels.key == key)
    sample = np.repeat(np.arange(len(samples)), np.diff(samples.label_offsets))[rows]
    is_single = bool(np.all(sample[1:] != sample[:-1]))
    units = labels.unit[rows]
    if is_single and not labels.text[rows].any() and bool(np.all(units == units[0])):
        values, is_missing = np.zeros(len(samples), np.int64), np.ones(len(samples), np.bool_)
        values[sample], is_missing[sample] = labels.number[rows], False
        return NumberColumns(values, is_missing)
    return Categories(*label_texts(profile, key))


def shown_names(names: Texts, frames: Int32) -> Categories:
    """What frames are shown as, as a column of texts."""
    distinct, rows = names.distinct()
    return Categories(rows[frames], list(distinct))


def _gather(column: NDArray[Any], rows: NDArray[Any], default: int) -> NDArray[Any]:
    """`column[rows]`, and `default` where a row is negative."""
    if not len(column):
        return np.full(len(rows), default, column.dtype)
    found: NDArray[Any] = np.where(rows >= 0, column[np.maximum(rows, 0)], column.dtype.type(default))
    return found


def _texts(profile: Profile, strings: NDArray[np.int32]) -> Categories:
    """Strings of a profile as a column of texts; the empty one, and negative ones, are none."""
    used = marked(strings[strings > 0], len(profile.strings))
    code_of = np.full(len(used), UNKNOWN, np.int32)
    known: dict[str, int] = {}  # strings that are not UTF-8 may read as others do
    for string in np.flatnonzero(used).tolist():
        code_of[string] = known.setdefault(profile.strings.text(string), len(known))
    return Categories(code_of[np.maximum(strings, 0)], list(known))


def to_arrow(profile: Profile) -> Any:
    """See `Profile.to_arrow`."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError("Profile.to_arrow needs pyarrow: pip install pyarrow") from error
    columns = {}
    for name, column in frame_columns(profile).items():
        if isinstance(column, Categories):
            codes = pa.array(column.codes, mask=column.codes == UNKNOWN)
            columns[name] = pa.DictionaryArray.from_arrays(codes, pa.array(column.categories, pa.string()))
        elif isinstance(column, NumberColumns):
            columns[name] = pa.array(column.values, mask=column.is_missing)
        else:
            columns[name] = pa.array(column)
    return pa.table(columns)


def to_pandas(profile: Profile) -> Any:
    """See `Profile.to_pandas`."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("Profile.to_pandas needs pandas: pip install pandas") from error
    columns = {}
    for name, column in frame_columns(profile).items():
        if isinstance(column, Categories):
            columns[name] = pd.Categorical.from_codes(column.codes, column.categories)
        elif isinstance(column, NumberColumns):
            columns[name] = pd.arrays.IntegerArray(column.values, column.is_missing)
        else:
            columns[name] = column
    return pd.DataFrame(columns)

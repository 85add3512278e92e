"""A profile as other libraries take it: a table with a row for each frame of each sample, and stacks as objects."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import NONE, marked, taken
from symbolize.core.budget import Budget

if TYPE_CHECKING:
    from symbolize.profile.model import Profile

OWN_COLUMNS: Final = 9
CELLS: Final = (1 << 24, 128, "would become a table of {spent:,} cells or more, as only a bomb does")
"""The cells of the table, which has the values of a sample for each of its frames."""
UNKNOWN: Final = -1
"""Code of a text that is not known."""


class Frame(NamedTuple):
    """One frame of a stack as `Profile.stacks` gives it. Empty texts and line 0 are unknown; `is_inlined` frames have
    the address of the frame that they are inlined into; `mapping` is the file that was mapped there."""

    function: str
    file: str
    line: int
    column: int
    is_inlined: bool
    address: int
    mapping: str


class Categories(NamedTuple):
    """A column of texts that recur: `codes` are indices into `categories`, which are distinct, or -1 for none."""

    codes: NDArray[np.int32]
    categories: list[str]


def frame_columns(profile: "Profile") -> dict[str, NDArray[Any] | Categories]:
    """The columns of the table, in their order; see `Profile.to_arrow`."""
    samples, locations, functions = profile.samples, profile.locations, profile.functions
    lines, mappings = locations.lines, profile.mappings
    # A location without lines is a frame too.
    frames_of = np.maximum(np.diff(locations.line_offsets), 1)
    width = OWN_COLUMNS + len(profile.sample_types)
    size = len(samples.locations) + len(lines) + samples.values.size
    cells = Budget(profile.source or "profile", size, *CELLS)
    cells.spend_by_reference(width * frames_of, samples.locations)
    counts = taken(frames_of, samples.locations)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    location = np.repeat(samples.locations, counts)
    within = np.arange(total) - np.repeat(ends - counts, counts)
    first_frame = np.zeros(len(counts) + 1, np.int64)
    first_frame[1:] = ends
    sample_begin = first_frame[samples.location_offsets]
    sizes = np.diff(sample_begin)
    sample = np.repeat(np.arange(len(samples)), sizes)
    has_lines = locations.has_lines()[location]
    line = np.where(has_lines, locations.line_offsets[:-1][location] + within, NONE)
    function = _gather(lines.function, line, NONE)
    mapping = locations.mapping[location]
    columns: dict[str, NDArray[Any] | Categories] = {
        "sample": sample,
        "depth": (np.arange(total) - np.repeat(sample_begin[:-1], sizes)).astype(np.int32),
        "function": _texts(profile, _gather(functions.name, function, UNKNOWN)),
        "file": _texts(profile, _gather(functions.filename, function, UNKNOWN)),
        "line": _gather(lines.line, line, 0),
        "column": _gather(lines.column, line, 0),
        "is_inlined": has_lines & (within + 1 < frames_of[location]),
        "address": locations.address[location],
        "mapping": _texts(profile, _gather(mappings.filename, mapping, UNKNOWN)),
    }
    for number, kind in enumerate(profile.sample_types):
        name = f"{profile.strings.text(kind.type)}/{profile.strings.text(kind.unit)}"
        columns[name if name not in columns else f"{name} {number}"] = samples.values[:, number][sample]
    return columns


def _gather(column: NDArray[Any], rows: NDArray[Any], default: int) -> NDArray[Any]:
    """`column[rows]`, and `default` where a row is negative."""
    if not len(column):
        return np.full(len(rows), default, column.dtype)
    found: NDArray[Any] = np.where(rows >= 0, column[np.maximum(rows, 0)], column.dtype.type(default))
    return found


def _texts(profile: "Profile", strings: NDArray[np.int32]) -> Categories:
    """Strings of a profile as a column of texts; the empty one, and negative ones, are none."""
    used = marked(strings[strings > 0], len(profile.strings))
    code_of = np.full(len(used), UNKNOWN, np.int32)
    known: dict[str, int] = {}  # strings that are not UTF-8 may read as others do
    for string in np.flatnonzero(used).tolist():
        code_of[string] = known.setdefault(profile.strings.text(string), len(known))
    return Categories(code_of[np.maximum(strings, 0)], list(known))


def to_arrow(profile: "Profile") -> Any:
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
        else:
            columns[name] = pa.array(column)
    return pa.table(columns)


def to_pandas(profile: "Profile") -> Any:
    """See `Profile.to_pandas`."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("Profile.to_pandas needs pandas: pip install pandas") from error
    columns = {}
    for name, column in frame_columns(profile).items():
        if isinstance(column, Categories):
            columns[name] = pd.Categorical.from_codes(column.codes, column.categories)
        else:
            columns[name] = column
    return pd.DataFrame(columns)


def frame_stacks(profile: "Profile") -> Iterator[tuple[Frame, ...]]:
    """See `Profile.stacks`."""
    made: dict[int, tuple[Frame, ...]] = {}
    offsets, locations = profile.samples.location_offsets.tolist(), profile.samples.locations
    for begin, end in pairwise(offsets):
        stack: list[Frame] = []
        for location in locations[begin:end].tolist():
            if location not in made:
                made[location] = tuple(_frames_of(profile, location))
            stack += made[location]
        yield tuple(stack)


def _frames_of(profile: "Profile", location: int) -> Iterator[Frame]:
    """The frames of one location, innermost first."""
    locations, functions, strings = profile.locations, profile.functions, profile.strings
    address, mapping = int(locations.address[location]), int(locations.mapping[location])
    module = strings.text(profile.mappings.filename[mapping]) if mapping != NONE else ""
    begin, end = locations.line_offsets[location : location + 2].tolist()
    if begin == end:
        yield Frame("", "", 0, 0, False, address, module)
    for row in range(begin, end):
        function = locations.lines.function[row]
        line, column = int(locations.lines.line[row]), int(locations.lines.column[row])
        name, file = (strings.text(each[function]) for each in (functions.name, functions.filename))
        yield Frame(name, file, line, column, row + 1 < end, address, module)

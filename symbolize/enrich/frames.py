"""Writes the frames that a lookup found into the locations of a profile."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from symbolize.core.arrays import (
    NONE,
    Bool,
    Int32,
    Int64,
    distinct,
    distinct_inverse,
    marked,
    offsets_of,
    pair,
    ranges,
    unpair,
)
from symbolize.core.errors import ReadFailure
from symbolize.core.folded_code import FoldedFunction
from symbolize.core.interning import first_of_numbers, number_tuples
from symbolize.core.records import record
from symbolize.core.string_array import StringArray
from symbolize.names import CYTHON_PREFIX, LINKER_PREFIX, Mode, is_mangled, shown_names
from symbolize.profile import Functions, Lines, Profile, lines_per_location, named_locations
from symbolize.symbols import Answer, Frames

MANY_ROWS: Final = 16
"""How many times as many rows as are used a table may have for them to be marked in a column, without sorting."""


@record
class LookupResult:
    """The outcome of one lookup: the answer for the vaddrs of the locations `rows`, in the same order.

    `verified` is whether the binary is proven to be the one that ran, for each location. If a file that names are read
    from has changed, the locations keep their lines, and `failure` is why. `nameless` are the locations that got frames
    of which none has a name that could be read.
    """

    rows: Int64
    answer: Answer
    verified: Bool
    failure: ReadFailure | None = None
    nameless: Int64 | None = None


def expand(profile: Profile, lookups: Sequence[LookupResult], mode: Mode, *, force: bool = False) -> Bool:
    """Give locations the frames that were found for them; which locations got new lines: bool[n].

    Lines run leaf first (pprof schema). Names that came with the profile stay where nothing was found, where the
    binary is not verified or a frame's name is missing, and where they have a source line and the lookup has none. With
    `force` they stay only where nothing was found or a frame's name is missing.
    `is_folded` is that of the lookup for every location that got new lines. Locations for which nothing was found get
    the begin of their function where that is known.
    """
    locations = profile.locations
    count = len(locations)
    had = np.diff(locations.line_offsets)
    had_names = named_locations(profile)
    had_source = lines_per_location(profile, locations.lines.line > 0) > 0
    pieces = [locations.lines]
    first = locations.line_offsets[:-1].copy()
    length = had.copy()
    replaced = np.zeros(count, np.bool_)
    folded, starts = locations.is_folded.copy(), locations.function_starts().copy()
    functions = [profile.functions]
    function_count, line_count = len(profile.functions), len(locations.lines)
    for lookup in lookups:
        frames = lookup.answer.frames
        found = np.diff(frames.offsets)
        with_source = any_frame(frames, frames.line > 0)
        added, function, unnamed = frame_functions(profile, lookup.answer, mode)
        try:
            lookup.answer.check()
        except ReadFailure as error:
            lookup.failure = error
            continue
        has_all_names = ~any_frame(frames, unnamed)
        complete = lookup.verified & has_all_names
        nameless = ~had_names[lookup.rows]
        keeps_lines = with_source | ~had_source[lookup.rows] | (nameless & has_all_names)
        better = keeps_lines & (complete | nameless)
        better = (found > 0) & (better | has_all_names if force else better)
        rows = lookup.rows[better]
        lookup.nameless = lookup.rows[better & ~any_frame(frames, ~unnamed)]
        first[rows] = line_count + frames.offsets[:-1][better]
        length[rows] = found[better]
        replaced[rows] = True
        folded[rows] = frames.folded[better]
        has_start = lookup.answer.function_start > 0
        starts[lookup.rows[has_start]] = lookup.answer.function_start[has_start]
        number = (function_count + function).astype(np.int32)
        pieces.append(Lines(number, frames.line.astype(np.int64), frames.column.astype(np.int64)))
        functions.append(added)
        function_count += len(added)
        line_count += len(number)
    locations.lines = Lines.joined(pieces).take(ranges(first, length))
    locations.line_offsets = offsets_of(length)
    locations.is_folded, locations.function_start = folded, starts if starts.any() else starts[:0]
    profile.functions = Functions.joined(functions)
    return replaced


def any_frame(frames: Frames, wanted: Bool) -> Bool:
    """Which addresses have one of the frames that `wanted` selects: bool[n]."""
    total = offsets_of(wanted)
    result: Bool = total[frames.offsets[1:]] > total[frames.offsets[:-1]]
    return result


def frame_functions(profile: Profile, answer: Answer, mode: Mode) -> tuple[Functions, Int64, Bool]:
    """The profile functions of the frames of an answer, which of them each frame is in, and which frames have no name.

    A function whose code comes from several files is one profile function a file, because a line number of
    the pprof schema counts in its function's file. The line of the declaration is given where it is in that
    file, or in none that is known: Go says no file for functions that are inlined. Functions are in the order of
    their first frames, whatever else the table of the binary has.
    """
    frames, functions = answer.frames, answer.frames.functions
    used, row = used_rows(frames.function, len(functions))
    files, file_row = used_rows(frames.file, len(frames.files))
    pairs = pair(row, file_row)
    which = number_tuples(pairs.view(np.uint64).reshape(-1, 1).data)
    function, file = unpair(pairs[first_of_numbers(which)])
    add_all = profile.strings.add_all
    shown = answer.shown(used, mode)
    name = add_all(shown.names).astype(np.int32)
    system_name = add_all(shown.system_names).astype(np.int32)
    filename = np.append(add_all(StringArray.of(frames.files).only(files)).astype(np.int32), np.int32(0))
    declared_in = functions.decl_file[used][function]
    declared_here = (declared_in == np.append(files, NONE)[file]) | (declared_in == NONE)
    added = Functions(
        name[function],
        system_name[function],
        filename[file],
        np.where(declared_here & (file >= 0), functions.decl_line[used][function], 0).astype(np.int64),
    )
    return added, which, shown.unnamed[row]


def shown_functions(functions: Sequence[FoldedFunction], mode: Mode) -> Sequence[bytes]:
    """Readable names of functions that share code."""
    is_linked = [b"::" not in each.name and b"<" not in each.name for each in functions]
    names = [
        (each.name, b"") if linked else (b"", each.name) for each, linked in zip(functions, is_linked, strict=True)
    ]
    return shown_names([linkage for linkage, _ in names], [plain for _, plain in names], mode)[0]


def used_rows(rows: Int32, count: int) -> tuple[Int64, Int64]:
    """Which of `count` rows of a table occur in `rows`, and which of those each of `rows` is; -1 stays -1."""
    if count > MANY_ROWS * len(rows):  # of a large table few rows are used
        used, which = distinct_inverse(rows)
        if len(used) and used[0] < 0:
            used, which = used[1:], which - 1
        return used.astype(np.int64), which
    all_used = np.flatnonzero(marked(rows, count, rows >= 0))
    number = np.empty(count + 1, np.int64)
    number[all_used] = np.arange(len(all_used))
    number[-1] = -1
    return all_used, number[rows]


def demangle_existing(profile: Profile, mode: Mode, *, embedded: bool = False) -> None:
    """Make the mangled names that came with the profile readable.

    Names that are not mangled, or cannot be read, stay, and those of functions whose system name differs: they are
    demangled already. With `embedded` these get the readable name that `mode` asks for too. Otherwise one function
    would have two names, where it was looked up and where not (R168, rewritten names).
    """
    functions, strings = profile.functions, profile.strings
    raw = (functions.name == functions.system_name) | (functions.system_name == 0)
    functions.system_name = np.where(raw, functions.name, functions.system_name)
    asked = raw | embedded
    linked = [(i, strings[i]) for i in distinct(functions.system_name[asked]).tolist()]
    mangled = [
        (i, name)
        for i, name in linked
        if is_mangled(name.removeprefix(LINKER_PREFIX if embedded else b"")) or name.startswith(CYTHON_PREFIX)
    ]
    readable, _ = shown_names([name for _, name in mangled], [b""] * len(mangled), mode, of_linker=True)
    shown = np.zeros(len(strings), np.int32)
    for (i, name), text in zip(mangled, readable, strict=True):
        if mode == "none" or text != name:
            shown[i] = strings.add(text)
    found = np.where(asked, shown[functions.system_name], 0)
    functions.name = np.where(found > 0, found, functions.name)

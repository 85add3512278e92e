"""The frames of a profile as people see them: a function is its name, module and file, and unnamed code
`module!sub_START` where the begin of its function is known, else `[module]`."""

from collections.abc import Callable, Iterator, Sequence
from enum import IntFlag
from typing import Any, Final, Self, overload

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Bool, Int32, Int64, UInt8, distinct_inverse, offsets_of, pair, unpair
from symbolize.core.mapped_names import module_name
from symbolize.core.records import record
from symbolize.core.string_array import StringArray
from symbolize.names.stand_ins import of_function
from symbolize.profile import NONE, Profile

UNKNOWN: Final = "<unknown>"
"""Code without a name in no mapping; pprof calls it the same."""

NO_STACK: Final = "[no stack]"
"""What samples without a stack are shown as: they are value, and in no code."""

FIRST_HIGH: Final = 0x80
"""The first byte that is not ASCII."""

MAX_PATH: Final = 4096
"""Characters of a path; no system has longer ones, and a view repeats them for each of many functions."""


class FrameFlag(IntFlag):
    """How a frame was resolved."""

    CALLED = 1
    """A function that was called, not inlined."""
    INLINED = 2
    """A function that was inlined into the one around it."""
    FOLDED = 4
    """Code that identical code folding gave several functions."""
    UNSYMBOLIZED = 8
    """No name: a stand-in is shown."""


class Texts(Sequence[str]):
    """Texts by row, which are made when they are asked for: a report names a few of many functions.

    Text `i` is `read(numbers[i])`; texts with one number are the same.
    """

    def __init__(self, read: Callable[[int], str], numbers: Int64) -> None:
        self._read = read
        self.numbers = numbers

    @classmethod
    def of(cls, column: Sequence[str]) -> Self:
        """Texts that are there already."""
        known: dict[str, int] = {}
        numbers = [known.setdefault(text, len(known)) for text in column]
        return cls([*known].__getitem__, np.array(numbers, np.int64))

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> "Texts": ...
    def __getitem__(self, row: int | slice) -> "str | Texts":
        return Texts(self._read, self.numbers[row]) if isinstance(row, slice) else self._read(int(self.numbers[row]))

    def __iter__(self) -> Iterator[str]:
        known: dict[int, str] = {}  # a text that is there often is one object
        for number in self.numbers.tolist():
            if number not in known:
                known[number] = self._read(number)
            yield known[number]

    def taken(self, rows: NDArray[Any]) -> "Texts":
        """The texts at `rows`."""
        return Texts(self._read, self.numbers[rows])

    def lengths(self) -> Int64:
        """How many letters each text has."""
        numbers, rows = distinct_inverse(self.numbers)
        return np.array([len(self._read(number)) for number in numbers.tolist()], np.int64)[rows]

    def distinct(self) -> tuple["Texts", Int32]:
        """The texts by number, each once, and which of them each row is: int32[n]."""
        numbers, rows = distinct_inverse(self.numbers)
        return Texts(self._read, numbers), rows.astype(np.int32)


@record(frozen=True)
class FrameNames:
    """Frames: a function of a module and a source file, or the unnamed code of a module, each once by the numbers of
    the profile's strings; two may read alike.

    `names` are those of functions or what stands in for them; `files` their source files and `modules` the base names
    of the files they are in, both empty if unknown.
    """

    names: Texts
    files: Texts
    modules: Texts

    def __len__(self) -> int:
        return len(self.names)

    def taken(self, rows: NDArray[Any]) -> "FrameNames":
        """The frames at `rows`."""
        return FrameNames(self.names.taken(rows), self.files.taken(rows), self.modules.taken(rows))


@record(frozen=True)
class ShownFrames:
    """The frames of each location of a profile, leaf first, as CSR: at least one each.

    `frames` are rows of `names`; `lines` those of the profile's lines, NONE for unnamed code; `flags` are `FrameFlag`s.
    """

    names: FrameNames
    offsets: Int64
    frames: Int32
    lines: Int32
    flags: UInt8


def shown_frames(profile: Profile, *, has_files: bool = True, has_no_stack: bool = False) -> ShownFrames:
    """What to show for each location of `profile`; with `has_no_stack` for samples without a stack too, as if they had
    a location behind all others. Without `has_files`, functions of one name in several files are one."""
    locations, functions = profile.locations, profile.functions
    modules, module_of = module_names(profile)
    module_at, counts, is_folded = module_of[locations.mapping], np.diff(locations.line_offsets), locations.is_folded
    starts = locations.function_starts()
    if has_no_stack:
        modules, row = with_text(modules, NO_STACK)
        module_at, counts, is_folded = np.append(module_at, row), np.append(counts, 0), np.append(is_folded, False)
        starts = np.append(starts, np.uint64(0))
    sizes = np.maximum(counts, 1)
    offsets = offsets_of(sizes)
    has_lines = np.repeat(counts > 0, sizes)
    location = np.repeat(np.arange(len(counts), dtype=np.int32), sizes)
    lines = np.cumsum(has_lines, dtype=np.int32)
    lines -= 1
    lines[~has_lines] = NONE

    function = np.full(len(lines), NONE, np.int32)
    function[has_lines] = locations.lines.function
    is_function = function != NONE
    name, file = np.zeros((2, len(lines)), np.int32)
    name[is_function] = functions.name[function[is_function]]
    if has_files:
        file[is_function] = functions.filename[function[is_function]]
        file[name == 0] = 0
    unnamed = name == 0
    rows = np.flatnonzero(unnamed)
    starts, which = distinct_inverse(starts[location[rows]])
    name[rows] = np.where(starts[which] > 0, -1 - which, 0)
    codes, code = distinct_inverse(pair(module_at[location], name))
    keys, frames = distinct_inverse(pair(code, file))

    is_outermost = np.zeros(len(lines), np.bool_)
    is_outermost[offsets[1:] - 1] = True
    flags = np.where(is_outermost, FrameFlag.CALLED, FrameFlag.INLINED).astype(np.uint8)
    flags[is_folded[location]] |= np.uint8(FrameFlag.FOLDED)
    flags[unnamed] |= np.uint8(FrameFlag.UNSYMBOLIZED)

    code_rows, files = unpair(keys)
    numbers, rows = (column.astype(np.int64) for column in unpair(codes[code_rows]))
    names = FrameNames(
        _names(profile, modules, starts.tolist(), numbers, rows),
        Texts(lambda number: profile.strings.text(number)[-MAX_PATH:], files.astype(np.int64)),
        Texts(modules.__getitem__, numbers),
    )
    return ShownFrames(names, offsets, frames.astype(np.int32), lines, flags)


def _names(profile: Profile, modules: Sequence[str], starts: Sequence[int], module: Int64, name: Int64) -> Texts:
    """The names of frames: strings of the profile, 0 for the unnamed code of `module`, or below 0 for a function that
    begins at one of `starts`."""
    strings = profile.strings
    unnamed = [unnamed_frame(each) for each in modules]
    known: dict[str, int] = {}

    def number_of(text: str) -> int:
        """The string that reads like `text`, or a number of its own: those that read alike are one name."""
        same = strings.find(text.encode())
        return same if same > 0 else NONE - known.setdefault(text, len(known))

    of_unnamed = np.array([number_of(text) for text in unnamed], np.int64)
    numbers = np.where(name != 0, name, of_unnamed[module])
    for row in np.flatnonzero(name < 0).tolist():
        numbers[row] = number_of(unnamed_frame(modules[module[row]], starts[-1 - name[row]]))
    for row in np.flatnonzero((name > 0) & has_escapes(strings.array().only(np.maximum(name, 0)))).tolist():
        numbers[row] = number_of(strings.text(int(name[row])))
    others = [*known]
    return Texts(lambda number: strings.text(number) if number >= 0 else others[NONE - number], numbers)


def has_escapes(strings: StringArray) -> Bool:
    """Which strings are not UTF-8, so that escapes are shown for some of their bytes."""
    result = np.zeros(len(strings), np.bool_)
    high = np.flatnonzero(strings.data >= FIRST_HIGH)
    first, last = (np.searchsorted(high, places) for places in strings.places()) if len(high) else (result, result)
    for row in np.flatnonzero(first < last).tolist():
        try:
            strings[row].decode()
        except UnicodeDecodeError:
            result[row] = True
    return result


def module_names(profile: Profile) -> tuple[list[str], Int32]:
    """The distinct names of the mapped files, and the one of each mapping: int32[n + 1], the last for none."""
    known = {"": 0}
    numbers = [
        known.setdefault(module_name(path), len(known))
        for path in profile.strings.texts(profile.mappings.filename.tolist(), MAX_PATH)
    ]
    return list(known), np.array([*numbers, 0], np.int32)


def with_text(texts: list[str], text: str) -> tuple[list[str], int]:
    """The texts with one that may be among them, and its row."""
    return (texts, texts.index(text)) if text in texts else ([*texts, text], len(texts))


def unnamed_frame(module: str, start: int = 0) -> str:
    """What unnamed code of a module is called: as pprof has it, or by where its function begins (0: unknown)."""
    if not module:
        return UNKNOWN
    if start:
        return of_function(module.encode(), start).decode()
    return module if module.startswith("[") else f"[{module}]"

"""The frames of a profile as people see them: unnamed code is `[module]`, and a function is one frame a module."""

import posixpath
from dataclasses import dataclass
from enum import IntFlag
from typing import Final

import numpy as np

from symbolize.core.arrays import Int32, Int64, UInt8, distinct_inverse, offsets_of, pair, unpair
from symbolize.profile import NONE, Profile

UNKNOWN: Final = "<unknown>"
"""Code without a name in no mapping; pprof calls it the same."""

MAX_PATH: Final = 4096
"""Characters of a path; no system has longer ones, and a view repeats them for each of many functions."""


class FrameFlag(IntFlag):
    """How a frame was resolved."""

    CALLED = 1
    """A function that was called, not inlined."""
    INLINED = 2
    FOLDED = 4
    """Code that identical code folding gave several functions."""
    UNSYMBOLIZED = 8


@dataclass(frozen=True, eq=False)
class FrameNames:
    """Distinct frames: a function of a module, or the unnamed code of a module.

    `names` are those of functions or `[module]`; `files` their source files and `modules` the base names of the files
    they are in, both empty if unknown.
    """

    names: list[str]
    files: list[str]
    modules: list[str]

    def __len__(self) -> int:
        return len(self.names)

    def by_name(self) -> tuple[list[str], Int32]:
        """The distinct names, and for each frame which of them is its own: int32[n]."""
        known: dict[str, int] = {}
        rows = np.array([known.setdefault(name, len(known)) for name in self.names], np.int32)
        return list(known), rows


@dataclass(frozen=True, eq=False)
class ShownFrames:
    """The frames of each location of a profile, leaf first, as CSR: at least one each.

    `frames` are rows of `names`; `lines` those of the profile's lines, NONE for unnamed code; `flags` are `FrameFlag`s.
    """

    names: FrameNames
    offsets: Int64
    frames: Int32
    lines: Int32
    flags: UInt8

    def locations(self) -> Int64:
        """The location of each frame: int64[m]."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def shown_frames(profile: Profile) -> ShownFrames:
    """What to show for each location of `profile`."""
    locations, functions = profile.locations, profile.functions
    counts = np.diff(locations.line_offsets)
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
    name = np.zeros(len(lines), np.int32)
    name[is_function] = functions.name[function[is_function]]
    modules, module_of = module_names(profile)
    module = module_of[locations.mapping[location]]
    keys, frames = distinct_inverse(pair(module, name))

    unnamed = name == 0
    is_outermost = np.zeros(len(lines), np.bool_)
    is_outermost[offsets[1:] - 1] = True
    flags = np.where(is_outermost, FrameFlag.CALLED, FrameFlag.INLINED).astype(np.uint8)
    flags[locations.is_folded[location]] |= np.uint8(FrameFlag.FOLDED)
    flags[unnamed] |= np.uint8(FrameFlag.UNSYMBOLIZED)

    file_of = np.zeros(len(keys), np.int64)
    file_of[frames[is_function]] = functions.filename[function[is_function]]
    numbers, rows = unpair(keys)
    in_modules = [modules[number] for number in numbers.tolist()]
    texts = profile.strings.texts(rows.tolist())
    names = FrameNames(
        [text or unnamed_frame(module) for text, module in zip(texts, in_modules, strict=True)],
        profile.strings.texts(file_of.tolist(), MAX_PATH),
        in_modules,
    )
    return ShownFrames(names, offsets, frames.astype(np.int32), lines, flags)


def module_names(profile: Profile) -> tuple[list[str], Int32]:
    """The distinct base names of the mapped files, and the one of each mapping: int32[n + 1], the last for none."""
    known = {"": 0}
    numbers = [
        known.setdefault(posixpath.basename(path), len(known))
        for path in profile.strings.texts(profile.mappings.filename.tolist(), MAX_PATH)
    ]
    return list(known), np.array([*numbers, 0], np.int32)


def unnamed_frame(module: str) -> str:
    """What unnamed code of a module is called, as pprof has it."""
    if not module:
        return UNKNOWN
    return module if module.startswith("[") else f"[{module}]"

"""Gives Java methods of an obfuscated program the names, files and lines of its source, by ProGuard or R8 maps."""

import os
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from symbolize.arrays import distinct, distinct_inverse, pair, unpair
from symbolize.errors import UsageError
from symbolize.names.proguard import JavaName, ProguardMap, SourceFrame, classes_in, parse_name, read_map
from symbolize.profile import Functions, Lines, Profile

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Bool = NDArray[np.bool_]

MAX_LINE_NUMBER = (1 << 31) - 1
NATIVE = (".so", ".ko", "[kernel", "[vdso]")
"""What mappings of native code have in the last part of their name; no Java method is in those."""


class Deobfuscator:
    """Applies mapping files, each `FILE` or `PACKAGE=FILE`; the package is for people only.

    Of each file the classes that a profile asks for are read, when it asks for them. `problems` lists what could not be
    read, a sentence each. Raises UsageError if a file is not there.
    """

    def __init__(self, files: Sequence[str]) -> None:
        self._maps = [ProguardMap(path_of(name)) for name in files]
        self._asked: set[bytes] = set()
        self.problems: list[str] = []

    def apply(self, profile: Profile) -> Bool:
        """Rename what the files know in `profile`; which locations changed: bool[n].

        Raises InputError if a file is no map.
        """
        asked = {wanted for name in java_names(profile).values() for wanted in classes_in(name)}
        if new := asked - self._asked:
            for known in self._maps:
                more = read_map(known.source, new)
                known.classes.update(more.classes)
                known.files.update(more.files)
                known.ambiguous |= more.ambiguous
                self.problems += more.problems
            self._asked |= new
        for known in self._maps:
            if not asked & known.classes.keys():
                self.problems.append(f"{known.source}: has none of the classes in the profile")
        changed, problems = deobfuscate(profile, self._maps)
        self.problems += problems
        return changed


def path_of(name: str) -> str:
    """The file in `FILE` or `PACKAGE=FILE`."""
    package, equals, rest = name.partition("=")
    path = rest if equals and package and "/" not in package and not os.path.exists(name) else name
    if not os.path.exists(path):
        raise UsageError(f"--proguard-map {name}: no such file")
    return path


def java_names(profile: Profile) -> dict[int, JavaName]:
    """The functions of `profile` that may be Java methods, by row, with their names (rule R171)."""
    used = distinct(profile.locations.lines.function[~is_native(profile)])
    names = ((row, parse_name(profile.strings[profile.functions.name[row]])) for row in used[used >= 0].tolist())
    return {row: name for row, name in names if name is not None}


def is_native(profile: Profile) -> Bool:
    """Which lines belong to locations in mappings of native code: bool[n]."""
    names = map(profile.strings.text, profile.mappings.filename.tolist())
    native = np.array([any(mark in os.path.basename(name) for mark in NATIVE) for name in names] + [False], np.bool_)
    locations = profile.locations
    here: Bool = np.repeat(native[locations.mapping], np.diff(locations.line_offsets))  # NONE is the last
    return here


def deobfuscate(profile: Profile, maps: Sequence[ProguardMap]) -> tuple[Bool, list[str]]:
    """Rename the Java methods that `maps` know, and add the frames that were inlined into them (rules R171 to R174).

    Returns which locations changed, bool[n], and what was left out, a sentence each. Functions keep the obfuscated name
    as their system name.
    """
    locations, functions, strings = profile.locations, profile.functions, profile.strings
    names = {row: name for row, name in java_names(profile).items() if any(name.owner in m.classes for m in maps)}
    is_known = np.zeros(len(functions) + 1, np.bool_)
    is_known[list(names)] = True
    lines = locations.lines
    here = np.flatnonzero(is_known[lines.function] & ~is_native(profile))
    number = lines.line[here]
    number = np.where((number > 0) & (number <= MAX_LINE_NUMBER), number, 0)
    pairs, which = distinct_inverse(pair(lines.function[here], number))
    rows, numbers = unpair(pairs)
    added: dict[tuple[int, int, int], int] = {}
    new_function: list[int] = []
    new_line: list[int] = []
    first, length = np.zeros(len(pairs), np.int64), np.zeros(len(pairs), np.int64)
    contradictory: set[int] = set()
    for i, (row, line) in enumerate(zip(rows.tolist(), numbers.tolist(), strict=True)):
        name = names[row]
        answers = distinct_answers(known.frames(name, line) for known in maps)
        if len(answers) > 1:
            contradictory.add(row)
        if len(answers) != 1:
            continue
        (frames,) = answers
        if len(frames) == 1 and is_same(frames[0], profile, row, line, name.suffix):
            continue
        first[i], length[i] = len(new_function), len(frames)
        for depth, frame in enumerate(frames, 1):
            text = strings.add(frame.name + (name.suffix if depth == len(frames) else b""))
            file = strings.add(frame.file)
            system_name = text
            if depth == len(frames):  # the method that there is in the program
                system_name = int(functions.system_name[row]) or int(functions.name[row])
                file = file or int(functions.filename[row])
            key = text, system_name, file
            new_function.append(added.setdefault(key, len(functions) + len(added)))
            new_line.append(frame.line)
    renamed = length[which] > 0
    here, which = here[renamed], which[renamed]
    start, count = np.arange(len(lines)), np.ones(len(lines), np.int64)
    start[here], count[here] = len(lines) + first[which], length[which]
    everything = Lines(
        np.concatenate((lines.function, np.array(new_function, np.int32))),
        np.concatenate((lines.line, np.array(new_line, np.int64))),
        np.concatenate((lines.column, np.zeros(len(new_line), np.int64))),
    )
    ends = np.concatenate(([0], np.cumsum(count)))
    place = np.repeat(start - ends[:-1], count) + np.arange(ends[-1])
    changed = np.zeros(len(locations), np.bool_)
    changed[np.searchsorted(locations.line_offsets, here, side="right") - 1] = True
    locations.lines = everything.take(place)
    locations.line_offsets = ends[locations.line_offsets]
    profile.functions = with_rows(functions, list(added))
    problems = []
    if contradictory:
        problems.append(f"the ProGuard maps contradict each other on {len(contradictory)} functions, left as they are")
    return changed, problems


def is_same(frame: SourceFrame, profile: Profile, row: int, line: int, suffix: bytes) -> bool:
    """Whether function `row` at `line` is `frame` already, as in classes that keep their names."""
    functions, strings = profile.functions, profile.strings
    same_file = not frame.file or strings[functions.filename[row]] == frame.file
    return same_file and frame.line == line and strings[functions.name[row]] == frame.name + suffix


def distinct_answers(answers: Iterable[list[SourceFrame]]) -> set[tuple[SourceFrame, ...]]:
    """What the maps that know a method say of it, each answer once."""
    return {tuple(frames) for frames in answers if frames}


def with_rows(functions: Functions, rows: Sequence[tuple[int, int, int]]) -> Functions:
    """`functions` and those of `rows`: name, system name and file as string indices."""
    columns = np.array(rows, np.int32).reshape(len(rows), 3)
    return Functions(
        np.concatenate((functions.name, columns[:, 0])),
        np.concatenate((functions.system_name, columns[:, 1])),
        np.concatenate((functions.filename, columns[:, 2])),
        np.concatenate((functions.start_line, np.zeros(len(rows), np.int64))),
    )

"""Gives Java methods of an obfuscated program the names, files and lines of its source, by ProGuard or R8 maps, and
by what came with the profile."""

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from symbolize.core.arrays import Bool, Int64, distinct, distinct_inverse, offsets_of, pair, ranges, unpair
from symbolize.core.errors import UsageError
from symbolize.names.proguard import JavaName, ProguardMap, SourceFrame, classes_in, parse_name, read_map
from symbolize.profile import Functions, Lines, Profile
from symbolize.profile.attachments import JavaNames

MAX_LINE_NUMBER = (1 << 31) - 1
MAX_TRIED = 1 << 25
"""Line ranges of methods that are compared for one profile."""
MAX_NEW_LINES = 1 << 22
MAX_NEW_BYTES = 1 << 28
MAX_LINES = 1 << 25
"""Distinct lines with names of the source for one profile, bytes of new names, and all lines of the profile then."""
ABSURD = "the maps have absurdly many names and lines for the profile; methods stay as they are"
NATIVE = (".so", ".ko", "[kernel", "[vdso]")
"""What mappings of native code have in the last part of their name; no Java method is in those."""


class Deobfuscator:
    """Applies mapping files, each `FILE` or `PACKAGE=FILE`; the package is for people only. What the files do not know
    is left to the names that came with a profile (R233, names that came with the profile).

    Of each file the classes that a profile asks for are read, when it asks for them. `problems` lists what could not be
    read, a sentence each. Raises UsageError if a file is not there.
    """

    def __init__(self, files: Sequence[str]) -> None:
        self._maps = [ProguardMap(path_of(name)) for name in files]
        self._asked: set[bytes] = set()
        self._brought: list[JavaNames] = []
        self._brought_maps: list[ProguardMap] = []
        self._brought_asked: set[bytes] = set()
        self.problems: list[str] = []

    def apply(self, profile: Profile) -> Bool:
        """Rename what the files know in `profile`; which locations changed: bool[n].

        Raises InputError if a file is no map.
        """
        if profile.obfuscation is None:
            self._brought, self._brought_maps = [], []
            if not self._maps:
                return np.zeros(len(profile.locations), np.bool_)
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
        maps: list[ProguardMap] = []
        applies: Sequence[tuple[int, ...]] = ()
        if profile.obfuscation is not None:
            maps, applies = self._read_brought(profile.obfuscation.maps, asked), profile.obfuscation.applies
        changed, problems = deobfuscate(profile, self._maps, maps, applies)
        self.problems += problems
        return changed

    def _read_brought(self, brought: Sequence[JavaNames], asked: set[bytes]) -> list[ProguardMap]:
        """The names that came with a profile as maps; those of the profile before are reused if they are the same."""
        if list(map(id, brought)) != list(map(id, self._brought)):
            self._brought, self._brought_asked = list(brought), set()
            self._brought_maps = [ProguardMap(each.source) for each in brought]
        if new := asked - self._brought_asked:
            for names, known in zip(brought, self._brought_maps, strict=True):
                names.fill(new, known)
                self.problems += known.problems
                known.problems.clear()
            self._brought_asked |= new
        return self._brought_maps


def path_of(name: str) -> str:
    """The file in `FILE` or `PACKAGE=FILE`."""
    package, equals, rest = name.partition("=")
    path = rest if equals and package and "/" not in package and not os.path.exists(name) else name
    if not os.path.exists(path):
        raise UsageError(f"mapping file {name}: no such file")
    return path


def java_names(profile: Profile) -> dict[int, JavaName]:
    """The functions of `profile` that may be Java methods, by row, with their names (R171, Java methods).

    Functions in mappings of native code are none. A method that the map does not have kept its name. A name in the map
    that contains a dot gives the class that the method was inlined from, and its file is that of this class.
    """
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


class MethodLines(NamedTuple):
    """The lines of a profile in Java methods, and the distinct cases among them, which are looked up once.

    `rows` are the lines, `location` those that they belong to, `case` which case each is. A case is a function, a line
    number (0: unknown) and the scope, a number for the maps that count there.
    """

    rows: Int64
    location: Int64
    case: Int64
    cases: list[tuple[int, int, int]]


def method_lines(profile: Profile, methods: Sequence[int], scope_of: Int64) -> MethodLines:
    """The lines in functions `methods`; `scope_of` is the scope of each mapping, and at its end of none."""
    locations = profile.locations
    is_method = np.zeros(len(profile.functions) + 1, np.bool_)
    is_method[list(methods)] = True
    rows = np.flatnonzero(is_method[locations.lines.function] & ~is_native(profile))
    number = locations.lines.line[rows]
    number = np.where((number > 0) & (number <= MAX_LINE_NUMBER), number, 0)
    pairs, which = distinct_inverse(pair(locations.lines.function[rows], number))
    location = np.searchsorted(locations.line_offsets, rows, side="right") - 1
    scoped, case = distinct_inverse(pair(which, scope_of[locations.mapping[location]]))
    of_pair, scope = unpair(scoped)
    function, line = unpair(pairs[of_pair])
    return MethodLines(rows, location, case, list(zip(function.tolist(), line.tolist(), scope.tolist(), strict=True)))


class SourceLines:
    """Lines with names of the source that are to replace lines of a profile, and the functions that they need."""

    def __init__(self, profile: Profile, cases: int) -> None:
        self._profile = profile
        self._functions: dict[tuple[int, int, int], int] = {}
        self._function: list[int] = []
        self._line: list[int] = []
        self._new_bytes = 0
        self._first, self._length = np.zeros(cases, np.int64), np.zeros(cases, np.int64)

    def is_too_large(self) -> bool:
        """Whether the names and lines are out of all proportion."""
        return len(self._function) > MAX_NEW_LINES or self._new_bytes > MAX_NEW_BYTES

    def add(self, case: int, row: int, frames: Sequence[SourceFrame], suffix: bytes) -> None:
        """Let `frames`, innermost first, replace the lines of a case, which is in function `row`. The last of them, the
        method that there is in the program, keeps the `suffix` of its name, its system name and its file."""
        functions, strings = self._profile.functions, self._profile.strings
        self._first[case], self._length[case] = len(self._function), len(frames)
        for depth, frame in enumerate(frames, 1):
            before = len(strings)
            text = strings.add(frame.name + (suffix if depth == len(frames) else b""))
            self._new_bytes += len(frame.name) if len(strings) > before else 0
            file = strings.add(frame.file)
            system_name = text
            if depth == len(frames):
                system_name = int(functions.system_name[row]) or int(functions.name[row])
                file = file or int(functions.filename[row])
            key = text, system_name, file
            self._function.append(self._functions.setdefault(key, len(functions) + len(self._functions)))
            self._line.append(frame.line)

    def write(self, methods: MethodLines) -> Bool | None:
        """Write the lines into the profile; which locations changed: bool[n], None if there were too many lines."""
        profile, lines = self._profile, self._profile.locations.lines
        is_renamed = self._length[methods.case] > 0
        rows, case = methods.rows[is_renamed], methods.case[is_renamed]
        if len(lines) + int((self._length[case] - 1).sum()) > max(MAX_LINES, len(lines)):
            return None
        start, count = np.arange(len(lines)), np.ones(len(lines), np.int64)
        start[rows], count[rows] = len(lines) + self._first[case], self._length[case]
        added = Lines.zeros(len(self._line))
        added.function, added.line = np.array(self._function, np.int32), np.array(self._line, np.int64)
        changed = np.zeros(len(profile.locations), np.bool_)
        changed[methods.location[is_renamed]] = True
        profile.locations.lines = Lines.joined((lines, added)).take(ranges(start, count))
        profile.locations.line_offsets = offsets_of(count)[profile.locations.line_offsets]
        columns = np.array(list(self._functions), np.int32).reshape(-1, 3).T
        functions = Functions(columns[0], columns[1], columns[2], np.zeros(len(self._functions), np.int64))
        profile.functions = Functions.joined((profile.functions, functions))
        return changed


def deobfuscate(
    profile: Profile,
    maps: Sequence[ProguardMap],
    further: Sequence[ProguardMap] = (),
    applies: Sequence[tuple[int, ...]] = (),
) -> tuple[Bool, list[str]]:
    """Rename the Java methods that `maps` know, and add the frames that were inlined into them (rules R171 to R174).

    Classes that none of `maps` has are looked for in `further`; `applies` has the rows of those that count in each
    mapping of the profile, and at its end in none (R233, names that came with the profile).

    Returns which locations changed, bool[n], and what was left out, a sentence each. Functions keep the obfuscated name
    as their system name.
    """
    classes = {name for known in (*maps, *further) for name in known.classes}
    names = {row: name for row, name in java_names(profile).items() if name.owner in classes}
    scopes = {each: number for number, each in enumerate(dict.fromkeys(applies))} or {(): 0}
    scope_of = np.array([scopes[each] for each in applies] or [0] * (len(profile.mappings) + 1), np.int64)
    in_scope = [[further[number] for number in each] for each in scopes]
    methods = method_lines(profile, list(names), scope_of)
    source = SourceLines(profile, len(methods.cases))
    contradictory: set[int] = set()
    problems = []
    tried = 0
    for case, (row, line, scope) in enumerate(methods.cases):
        name = names[row]
        known = maps if any(name.owner in each.classes for each in maps) else in_scope[scope]
        tried -= sum(each.looked_at for each in known)
        answers = {tuple(found) for each in known if (found := each.frames(name, line))}
        tried += sum(each.looked_at for each in known)
        if tried > MAX_TRIED or source.is_too_large():
            problems.append(ABSURD)
            break
        if len(answers) > 1:
            contradictory.add(row)
        if len(answers) != 1:
            continue
        (frames,) = answers
        if len(frames) > 1 or not is_same(frames[0], profile, row, line, name.suffix):
            source.add(case, row, frames, name.suffix)
    changed = source.write(methods)
    if changed is None:
        return np.zeros(len(profile.locations), np.bool_), [ABSURD]
    if contradictory:
        problems.append(f"the ProGuard maps contradict each other on {len(contradictory)} functions, left as they are")
    return changed, problems


def is_same(frame: SourceFrame, profile: Profile, row: int, line: int, suffix: bytes) -> bool:
    """Whether function `row` at `line` is `frame` already, as in classes that keep their names."""
    functions, strings = profile.functions, profile.strings
    same_file = not frame.file or strings[functions.filename[row]] == frame.file
    return same_file and frame.line == line and strings[functions.name[row]] == frame.name + suffix

"""Annotates names of Java frames with how their code ran ([jit], [aot], [interp]) and marks frames of Android's runtime
between them, as Perfetto's tools do (R234, suffixes of Java frames)."""

import re
from dataclasses import replace
from typing import Final

import numpy as np

from symbolize.core.arrays import Bool, Int32, Int64, UInt8, offsets_of
from symbolize.profile import Functions, Lines, Locations, Profile

UNMARKED, INTERPRETED, COMPILED, AHEAD, COMMON, COMMON_INTERPRETER = range(6)
SUFFIXES: Final = (b"", b" [interp]", b" [jit]", b" [aot]", b" [common-frame]", b" [common-frame-interp]")
COUNT: Final = len(SUFFIXES)

KINDS: Final = {
    b"oat": AHEAD, b"odex": AHEAD, b"dex": INTERPRETED, b"vdex": INTERPRETED, b"jar": INTERPRETED, b"apk": INTERPRETED,
}  # fmt: skip
"""How the code in a file runs, by the ending of its name. Native code in an APK has the name of its library behind."""
JIT: Final = (b"/memfd:jit-cache", b"/memfd:jit-zygote-cache")
RUNTIME: Final = (b"libart.so", b"libartd.so")
TRAMPOLINE: Final = b"art_jni_trampoline"
INTERPRETER: Final = re.compile(rb"nterp_|Nterp|ExecuteNterp|ExecuteSwitchImpl|_ZN3art11interpreter|art::interpreter::")

BLOCK: Final = 1 << 20
"""Frames of stacks that are annotated together."""


def annotate(profile: Profile) -> tuple[Profile, Int64]:
    """The profile with a suffix on the names of functions in such frames, and for each of its locations the one it was.

    A location that some stacks call into from Java code and others do not becomes two. The given profile is not
    changed. How code ran follows from the mapping: JIT cache; `.oat` or `.odex`; `.dex`, `.vdex`, `.jar` or an APK
    itself. From the root of a stack to its leaf all frames in `libart.so` or `libartd.so` behind a frame of such code,
    next to it or not, are common ones; names that begin like those of the interpreters (`nterp_`, `Nterp`,
    `ExecuteNterp`, `ExecuteSwitchImpl`, `art::interpreter::`) distinguish them from the rest. A frame
    `art_jni_trampoline` is common everywhere and counts as Java for what follows; its callee gets no annotation (R234,
    suffixes of Java frames).
    """
    locations, samples = profile.locations, profile.samples
    everything = np.arange(len(locations))
    kind, is_runtime = _kinds(profile)
    is_interpreter, is_trampoline = _names(profile)
    is_interpreter &= is_runtime
    if not (kind.any() or is_trampoline.any()):
        return profile, everything
    edges = samples.location_offsets
    keys = np.empty(len(samples.locations), np.int64)
    begin = 0
    while begin < len(samples):
        end = max(int(np.searchsorted(edges, edges[begin] + BLOCK, side="right")) - 1, begin + 1)
        # From the root to the leaf, so that callers come first.
        frames = samples.locations[edges[begin] : edges[end]][::-1]
        starts = edges[end] - edges[begin + 1 : end + 1]
        found = _of_stacks(frames, starts, kind, is_runtime, is_interpreter, is_trampoline)
        keys[edges[begin] : edges[end]] = (COUNT * frames.astype(np.int64) + found)[::-1]
        begin = end
    used = np.zeros(COUNT * len(locations), np.bool_)
    used[keys] = True
    number = np.cumsum(used) - 1
    kept = np.flatnonzero(used)
    rows = kept // COUNT
    taken, functions, origin = _lines(profile, rows, (kept % COUNT).astype(np.uint8))
    unknown = dict(profile.unknown)
    for table, of in (("location", rows), ("function", origin)):
        if raw := unknown.get(table):
            unknown[table] = raw.taken(of)
    changed = replace(
        profile,
        samples=replace(samples, locations=number[keys].astype(np.int32)),
        locations=taken,
        functions=functions,
        unknown=unknown,
    )
    return changed, rows


def _kinds(profile: Profile) -> tuple[UInt8, Bool]:
    """How the code at each location runs, UNMARKED for native code, and which is the runtime's."""
    mappings = profile.mappings
    kinds = np.zeros(len(mappings) + 1, np.uint8)  # the last is for no mapping
    runtime = np.zeros(len(mappings) + 1, np.bool_)
    for row, number in enumerate(mappings.filename.tolist()):
        name = profile.strings[number]
        if any(mark in name for mark in JIT):
            kinds[row] = COMPILED
        elif name.rpartition(b"/")[2] in RUNTIME:
            runtime[row] = True
        else:
            kinds[row] = KINDS.get(name.rpartition(b".")[2], UNMARKED)
    mapping = profile.locations.mapping
    return kinds[mapping], runtime[mapping]


def _names(profile: Profile) -> tuple[Bool, Bool]:
    """Which locations are in a function of the interpreter, by name, and which in the trampoline to native code."""
    locations, functions, strings = profile.locations, profile.functions, profile.strings
    interpreter = np.zeros(len(functions) + 1, np.bool_)  # the last is for no function
    trampoline = np.zeros(len(functions) + 1, np.bool_)
    for row, (linked, shown) in enumerate(zip(functions.system_name.tolist(), functions.name.tolist(), strict=True)):
        name = strings[linked] or strings[shown]
        interpreter[row] = INTERPRETER.match(name) is not None
        trampoline[row] = name == TRAMPOLINE
    outermost = np.full(len(locations), -1, np.int64)
    has_lines = locations.has_lines()
    outermost[has_lines] = locations.lines.function[locations.line_offsets[1:][has_lines] - 1]
    return interpreter[outermost], trampoline[outermost]


def _of_stacks(
    frames: Int32,
    starts: Int64,
    kind: UInt8,
    is_runtime: Bool,
    is_interpreter: Bool,
    is_trampoline: Bool,
) -> UInt8:
    """The annotation of each frame of stacks, root first, of which one begins at each of `starts`."""
    count = len(frames)
    position = np.arange(count)
    is_first = np.zeros(count, np.bool_)
    is_first[starts[starts < count]] = True  # empty stacks have no first frame
    trampoline = is_trampoline[frames]
    # What a trampoline calls is kept as it is, even if it is one.
    run = trampoline.copy()
    run[1:] &= ~trampoline[:-1] | is_first[1:]
    length = position - np.maximum.accumulate(np.where(run, position, 0))
    trampoline &= length % 2 == 0
    is_kept = np.zeros(count, np.bool_)
    is_kept[1:] = trampoline[:-1] & ~is_first[1:]
    managed = kind[frames]
    total = offsets_of((managed > 0) | trampoline)
    stack = np.cumsum(is_first) - 1
    below_java = total[:-1] > total[np.flatnonzero(is_first)][stack]
    common = np.where(is_interpreter[frames], COMMON_INTERPRETER, COMMON)
    result = np.where(below_java & is_runtime[frames], common, managed)
    result[trampoline] = COMMON
    result[is_kept] = UNMARKED
    return result.astype(np.uint8)


def _lines(profile: Profile, rows: Int64, suffix: UInt8) -> tuple[Locations, Functions, Int64]:
    """The locations `rows` with a suffix on each of their functions; the functions, and which each of them was."""
    locations, functions, strings = profile.locations, profile.functions, profile.strings
    taken_locations = locations.take(rows)
    lines = taken_locations.lines
    key = COUNT * lines.function.astype(np.int64) + np.repeat(suffix, np.diff(taken_locations.line_offsets))
    named = lines.function >= 0
    used = np.zeros(COUNT * len(functions), np.bool_)
    used[key[named]] = True
    kept = np.flatnonzero(used)
    origin, what = kept // COUNT, kept % COUNT
    number = np.full(len(lines), -1, np.int32)
    number[named] = (np.cumsum(used) - 1)[key[named]]
    taken = functions.take(origin)
    name = taken.name.copy()
    for row in np.flatnonzero((what > 0) & (name > 0)).tolist():
        name[row] = strings.add(strings[name[row]] + SUFFIXES[what[row]])
    taken.name = name
    taken_locations.lines = Lines(number, lines.line, lines.column)
    return taken_locations, taken, origin

"""What outputs show of code beside names, read from the files that answer for the locations of a profile: the machine
code of those that have most value of their own, and the discriminators of lines."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import Float64, Int64, UInt32, UInt64, distinct, distinct_inverse, offsets_of, ranges
from symbolize.core.disassembly import CodeBlock, Disassembly, Instruction
from symbolize.core.errors import ReadFailure, first_names, printable
from symbolize.core.mapped_names import module_name
from symbolize.evidence.code import MAX_BODY, DecodedCode, called
from symbolize.names import Mode, shown_names
from symbolize.profile import NONE, Profile
from symbolize.resolve.name_agreement import unconfirmed
from symbolize.resolve.resolution import Resolution, Resolutions
from symbolize.symbols import Binary, Frames, SymbolListBinary
from symbolize.symbols.table import joined_frames

MAX_FUNCTIONS: Final = 50
"""Functions whose code is shown, the heaviest; a part of one that stands elsewhere counts as one."""
MAX_BYTES: Final = 1 << 17
"""Bytes of code of all of them; a function that would exceed this is left out."""
MAX_NAME: Final = 200
"""Characters of a name of a function beside an instruction."""
MAX_PATH: Final = 4096
"""Characters of the path of a source file, its last ones, as views have them."""


class SampledCode(NamedTuple):
    """The code of a binary, and locations in its functions: their rows in the profile, vaddrs in the file with the
    code, and begin and end of their functions."""

    binary: Binary
    code: DecodedCode
    rows: Int64
    vaddrs: UInt64
    begin: UInt64
    end: UInt64

    def functions(self, weights: Float64) -> Iterator[tuple[float, int, int]]:
        """Weight, begin and end of each function, of which MAX_BODY bytes are shown."""
        begins, which = distinct_inverse(self.begin)
        sums, ends = np.bincount(which, weights[self.rows], minlength=len(begins)), np.zeros_like(begins)
        ends[which] = self.end
        return zip(sums.tolist(), begins.tolist(), ends.tolist(), strict=True)


def disassembly(profile: Profile, resolutions: Resolutions, weights: Float64, mode: Mode) -> Disassembly:
    """The code of the functions of a profile that weigh most: `weights` has one number for each location, at least 0.

    Only what a mapping was resolved to is read, so that a verdict that does not allow names allows no code either. Of
    a build there may be a stripped file, which has the code, and a separate debug file, which has the names.
    """
    codes: list[SampledCode] = []
    why = {part.mapping: "no binary is known" for part in resolutions.all if part.binary is None}
    has_code = weights == 0
    for binary, parts in resolutions.by_binary():
        found = sampled_code(binary, parts)
        if isinstance(found, str):
            why.update((part.mapping, found) for part in parts)
        else:
            has_code[found.rows] = True
            codes.append(found)
    lacking: dict[str, dict[str, None]] = {}
    for mapping in distinct(profile.locations.mapping[~has_code]).tolist():
        path = profile.strings.text(int(profile.mappings.filename[mapping])) if mapping != NONE else "code in no file"
        lacking.setdefault(why.get(mapping, "in no function that is decoded"), {})[printable(module_name(path))] = None
    missing = [f"not shown ({reason}): {first_names(names)}" for reason, names in lacking.items()]

    functions = [(number, *each) for number, code in enumerate(codes) for each in code.functions(weights) if each[0]]
    chosen: dict[int, dict[int, tuple[int, int]]] = {}
    left, count = MAX_BYTES, 0
    for rank, (number, _, begin, end) in enumerate(sorted(functions, key=lambda each: (-each[1], each))):
        size = min(end - begin, MAX_BODY)
        if count < MAX_FUNCTIONS and size <= left:
            left, count = left - size, count + 1
            chosen.setdefault(number, {})[rank] = begin, end
    if count < len(functions):
        missing.append(f"not shown: {len(functions) - count:,} functions with less value")
    blocks: dict[int, CodeBlock] = {}
    for number, spans in chosen.items():
        try:
            blocks.update(zip(spans, decoded(codes[number], [*spans.values()], mode), strict=True))
        except ReadFailure as failure:
            missing.append(str(failure))
    return Disassembly([blocks[rank] for rank in sorted(blocks) if len(blocks[rank].rows)], missing)


def sampled_code(binary: Binary | SymbolListBinary, parts: Sequence[Resolution]) -> SampledCode | str:
    """The code of a binary at the locations that are in its functions, or why there is none. A location that came with
    the name of another function is left out."""
    if not isinstance(binary, Binary) or binary.code is None:
        return "no file with the code was found"
    code = DecodedCode.of(binary)
    if code is None or not code.is_readable:
        return "code of this kind is not decoded"
    rows, vaddrs = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "vaddrs"))
    order = np.argsort(vaddrs, kind="stable")
    rows, vaddrs = rows[order], vaddrs[order]
    vaddrs, differs = vaddrs - np.uint64(binary.shift), np.zeros(len(rows), np.bool_)
    names, counts = [part.names for part in parts], [len(part.rows) for part in parts]
    try:
        if any(names):
            differs, _ = unconfirmed(names, counts, order, frames_at(binary, vaddrs + np.uint64(binary.shift)))
        with binary.reading():
            begin, end = code.functions(vaddrs)
    except ReadFailure as failure:
        return str(failure)
    known = (begin < end) & (vaddrs - begin < MAX_BODY) & ~differs
    return SampledCode(binary, code, rows[known], vaddrs[known], begin[known], end[known])


def frames_at(binary: Binary, vaddrs: UInt64) -> Frames:
    """The frames at `vaddrs` (ascending), with no more of the debug information decoded than they need."""
    return joined_frames([binary.table_again(vaddrs[part]).lookup(vaddrs[part]) for part in binary.portions(vaddrs)])


def decoded(sampled: SampledCode, spans: Sequence[tuple[int, int]], mode: Mode) -> list[CodeBlock]:
    """The code from begin to end of each of `spans`, with what the debug information says of each instruction, and the
    names of the functions that calls and jumps lead to. Raises ReadFailure."""
    binary, shift = sampled.binary, np.uint64(sampled.binary.shift)
    with binary.reading():
        bodies = [sampled.code.instructions(*span) for span in spans]
    vaddrs = distinct(np.array([each.vaddr for body in bodies for each in body], np.uint64))
    frames = frames_at(binary, vaddrs + shift)
    counts = np.diff(frames.offsets)
    innermost = frames.offsets[:-1][counts > 0]
    names = frames.functions.shown(frames.function[innermost].astype(np.int64), mode, binary.is_android_linker).names
    file_of = frames.file[innermost].tolist()
    paths = {file: text_of(frames.files[file], MAX_PATH) if file >= 0 else "" for file in set(file_of)}
    files = [paths[file] for file in file_of]
    inlined = [text_of(n, MAX_NAME) if k > 1 else "" for n, k in zip(names, counts[counts > 0], strict=True)]
    told = zip(files, frames.line[innermost].tolist(), inlined, strict=True)
    lines = dict(zip(vaddrs[counts > 0].tolist(), told, strict=True))

    targets = distinct(np.array([called(each.text) for body in bodies for each in body], np.uint64))
    number, linked = binary.functions_at(targets + shift)
    shown, _ = shown_names([each[0] for each in linked], [b""] * len(linked), mode, binary.is_android_linker)
    callees = {
        target: text_of(shown[row], MAX_NAME)
        for target, row in zip(targets.tolist(), number.tolist(), strict=True)
        if row >= 0
    }

    blocks = []
    for (begin, end), body in zip(spans, bodies, strict=True):
        instructions = []
        for vaddr, size, text, *_ in body:
            target = called(text)
            if target and target in callees and not begin < target < end:
                text += f" <{callees[target]}>"
            instructions.append(Instruction(vaddr, size, text, *lines.get(vaddr, ())))
        starts = np.array([each.vaddr for each in body], np.uint64)
        stop = body[-1].vaddr + body[-1].size if body else begin
        here = np.flatnonzero((sampled.begin == begin) & (sampled.vaddrs < stop))
        places = np.searchsorted(starts, sampled.vaddrs[here], side="right") - 1
        file = printable(module_name(sampled.code.image.path))
        blocks.append(CodeBlock(file, begin, end, instructions, sampled.rows[here], places))
    return blocks


def text_of(name: bytes, most: int) -> str:
    """The end of a name or path as text, as in a profile."""
    return name.decode("utf-8", "backslashreplace")[-most:]


def symbols_of(profile: Profile, resolutions: Resolutions) -> tuple[UInt64, UInt64]:
    """How far each location of a profile is from the begin of its symbol, and the size of that: 0 where it has none, or
    its binary is not at hand."""
    distance, size = np.zeros((2, len(profile.locations)), np.uint64)
    for binary, parts in resolutions.by_binary():
        if not isinstance(binary, Binary):
            continue
        rows, vaddrs = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "vaddrs"))
        ascending, which = distinct_inverse(vaddrs)
        try:
            begin, end = binary.function_bounds(ascending)
        except ReadFailure:
            continue
        finally:
            binary.forget()
        distance[rows] = (ascending - begin)[which]
        size[rows] = np.where(end > begin, end - begin, 0)[which]
    return distance, size


def discriminators(profile: Profile, resolutions: Resolutions) -> UInt32:
    """The discriminator of each line of a profile, in the lower half how often the code was duplicated (0: not at all)
    above it; 0 where its binary is not at hand, or says otherwise of the lines of the location (R493, discriminators
    for columns)."""
    locations = profile.locations
    offsets, line = locations.line_offsets, locations.lines.line
    found = np.zeros(len(line), np.uint32)
    for binary, parts in resolutions.by_binary():
        if not isinstance(binary, Binary):
            continue
        rows, vaddrs = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "vaddrs"))
        order = np.argsort(vaddrs, kind="stable")
        rows, vaddrs = rows[order], vaddrs[order]
        own = binary.with_discriminators()
        try:
            frames = frames_at(own, vaddrs)
        except ReadFailure:
            continue
        finally:
            own.forget()
        counts = np.diff(frames.offsets)
        same = np.flatnonzero(counts == np.diff(offsets)[rows])
        at, of = ranges(offsets[:-1][rows[same]], counts[same]), ranges(frames.offsets[:-1][same], counts[same])
        differs = offsets_of(line[at] != frames.line[of])
        ends = offsets_of(counts[same])
        agrees = np.repeat(differs[ends[1:]] == differs[ends[:-1]], counts[same])
        found[at[agrees]] = frames.column[of[agrees]]
    return found

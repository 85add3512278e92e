"""Profiles for clang and rustc (`-fprofile-sample-use=`, `-Zprofile-sample-use`): LLVM's text format of samples.

A function has counts by the line from its declaration on and by the discriminator, which tells code on one line apart;
a function that was inlined is nested at its call. Of the addresses of a line the one sampled most counts: a line is as
often executed as each of its instructions, however many these are.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

import numpy as np

from symbolize.analysis.stacks import LETTERS
from symbolize.core.arrays import NONE, Float64, UInt32, distinct, distinct_inverse, marked, pair, unpair
from symbolize.core.budget import Budget
from symbolize.core.errors import printable
from symbolize.formats.compilers.values import sampled_columns
from symbolize.formats.outputs import LLVM_PROFILE
from symbolize.formats.stand_ins import KERNEL_HALF
from symbolize.profile import Profile, StackSource, caveats_of, lines_per_location
from symbolize.profile.combine import number_rows
from symbolize.profile.sample_types import LARGEST, values_of

LINKED: Final = re.compile(rb"([A-Za-z_.$\x80-\xff][\w.$\x80-\xff]*?)(?:\.(?:llvm\.|part\.|cold\b).*)?\Z", re.DOTALL)
"""Names that linkers see in C, C++ and Rust, and what optimizations append to them, which LLVM leaves out."""
MAX_DEPTH: Final = 256
"""Functions nested deeper are not written."""
MASK: Final = 0xFFFF
"""Bits of an offset, and of a discriminator."""
Place = int
"""A line and discriminator: the offset from the declaration of the function, above 16 bits of the other."""


@dataclass(slots=True)
class CodeSamples:
    """The code of a function, or of an inlined copy of one: samples in it and in what was inlined there, counts of
    places, the functions that were on the stack as called from a place, and what was inlined at a place, by name."""

    total: float = 0.0
    counts: dict[Place, float] = field(default_factory=dict)
    calls: dict[Place, dict[bytes, float]] = field(default_factory=dict)
    inlined: dict[tuple[Place, bytes], "CodeSamples"] = field(default_factory=dict)


def with_discriminators(profile: Profile, discriminators: Callable[[Profile], UInt32] | None) -> Profile:
    """The profile with the discriminators of its lines in place of columns: what is given the profile says them, and
    without it all are 0."""
    lines = profile.locations.lines
    found = np.zeros(len(lines)) if discriminators is None else discriminators(profile)
    lines = replace(lines, column=found.astype(np.int64))
    return replace(profile, locations=replace(profile.locations, lines=lines))


def llvm_profile(profile: Profile, trim: float = 0.0) -> Iterator[bytes]:
    """What compilers of LLVM read of `profile`, which is one `with_discriminators`, below its caveats as comments. With
    `trim`, functions with less than that share of all samples are left out.

    Raises UsageError for a profile of memory.
    """
    values, _ = values_of(profile, sampled_columns(profile, LLVM_PROFILE)[:1])
    counts = np.maximum(values[:, 0], 0).astype(np.float64)
    functions = SampledFunctions(profile)
    functions.add_samples(counts)
    functions.add_calls(counts)
    least = max(trim * counts.sum(), 1)
    written = [(name, body) for (_, name), body in functions.bodies.items() if body.total >= least]
    letters = Budget(profile.source or "profile", len(functions.places), *LETTERS)
    written.sort(key=lambda each: (-each[1].total, each[0]))
    comments = (f"# {printable(each)}\n".encode(errors="backslashreplace") for each in caveats_of(profile))
    return chain(comments, (text_of(name, body, letters) for name, body in written))


class SampledFunctions:
    """The functions of a profile by name, with what was sampled in them."""

    def __init__(self, profile: Profile) -> None:
        functions, locations, strings = profile.functions, profile.locations, profile.strings
        lines, mappings = locations.lines, profile.mappings
        linked = np.where(functions.system_name != 0, functions.system_name, functions.name)
        names = (LINKED.match(strings[name]) for name in linked.tolist())
        self.names = [found[1] if found is not None else b"" for found in names]
        is_named = np.array([bool(name) for name in self.names], np.bool_) & (functions.start_line > 0)
        is_known = is_named[lines.function] & (lines.line > 0)
        offset, discriminator = (lines.line - functions.start_line[lines.function]) & MASK, lines.column & MASK
        self.places = np.where(is_known, offset << 16 | discriminator, NONE).tolist()
        self.copies = np.maximum(lines.column >> 16, 1).tolist()
        self.functions = lines.function.tolist()
        self.is_named = is_named.tolist()
        sizes = np.diff(locations.line_offsets)
        self.is_whole = (lines_per_location(profile, is_known) == sizes) & (sizes > 0) & (sizes <= MAX_DEPTH)
        self.offsets = locations.line_offsets.tolist()
        self.profile = profile
        self.bodies: dict[tuple[Place, bytes], CodeSamples] = {}
        # The same code at several addresses, as processes have it.
        shift = np.append(mappings.file_offset - mappings.start, np.uint64(0))[locations.mapping]
        address = np.where(locations.address > 0, locations.address + shift, np.arange(len(shift), dtype=np.uint64))
        files = (np.append(column, NONE)[locations.mapping] for column in (mappings.filename, mappings.build_id))
        self.code = number_rows(address, locations.address > 0, *files)
        self.location = np.zeros(int(self.code.max(initial=-1)) + 1, np.int64)
        self.location[self.code] = np.arange(len(self.code))

    def add_samples(self, counts: Float64) -> None:
        """Add what was sampled: `counts` of the samples."""
        samples = self.profile.samples
        has_stack = np.diff(samples.location_offsets) > 0
        leaf = self.code[samples.locations[samples.location_offsets[:-1][has_stack]]]
        sums = np.bincount(leaf, counts[has_stack], minlength=len(self.location))
        for code in np.flatnonzero(sums).tolist():
            row, count = int(self.location[code]), float(sums[code])
            body, place = self.body_of(row, count)
            if body is not None:
                body.counts[place] = max(body.counts.get(place, 0.0), count * self.copies[self.offsets[row]])

    def add_calls(self, counts: Float64) -> None:
        """Add which functions were on the stack as called from where, once a sample. Along frame pointers the caller of
        a leaf may be missing."""
        samples, locations = self.profile.samples, self.profile.locations
        offsets = samples.location_offsets
        is_callee = ~marked(offsets[1:][np.diff(offsets) > 0] - 1, len(samples.locations))
        if self.profile.stack_source == StackSource.FRAME_POINTERS:
            is_callee[offsets[:-1][np.diff(offsets) > 0]] = False
        at = np.flatnonzero(is_callee)
        callee, caller = samples.locations[at], samples.locations[at + 1]
        is_kernel, has_lines = locations.address >= np.uint64(KERNEL_HALF), locations.has_lines()
        is_call = has_lines[callee] & self.is_whole[caller] & (is_kernel[caller] | ~is_kernel[callee])
        at, callee, caller = at[is_call], callee[is_call], caller[is_call]
        called = locations.lines.function[locations.line_offsets[1:][callee] - 1]
        calls, which = distinct_inverse(pair(self.code[caller], called))
        sample, call = unpair(distinct(pair(np.searchsorted(offsets, at, side="right") - 1, which)))
        sums = np.bincount(call, counts[sample], minlength=len(calls))
        last, body, place = NONE, None, NONE
        for code, function, count in zip(*(each.tolist() for each in (*unpair(calls), sums)), strict=True):
            name = self.names[function]
            if not name or not count:
                continue
            if code != last:  # a location may have many frames, and call many functions
                last, (body, place) = code, self.body_of(int(self.location[code]), 0.0)
            if body is not None:
                of_place = body.calls.setdefault(place, {})
                of_place[name] = of_place.get(name, 0.0) + count

    def body_of(self, location: int, count: float) -> tuple[CodeSamples | None, Place]:
        """The innermost function of a location and the place in it, after its samples were added to all functions there
        from the outermost on, up to one whose name, declaration or line is not known: then it is None."""
        first, last = self.offsets[location], self.offsets[location + 1]
        bodies, body, place = self.bodies, None, NONE
        for row in range(last - 1, first - 1, -1):
            function = self.functions[row]
            if not self.is_named[function] or last - row > MAX_DEPTH:
                return None, NONE
            body = bodies.setdefault((place, self.names[function]), CodeSamples())
            body.total += count
            bodies, place = body.inlined, self.places[row]
            if place == NONE:
                return None, NONE
        return body, place


def text_of(name: bytes, body: CodeSamples, letters: Budget) -> bytes:
    """The lines of a function. How often it was entered, the second number, is not known."""
    lines = [b"%b:%d:0\n" % (name, whole(body.total))]
    add_lines(lines, body, 1, letters)
    return b"".join(lines)


def add_lines(lines: list[bytes], body: CodeSamples, depth: int, letters: Budget) -> None:
    """Add the lines of a body: counts and calls by place, then what was inlined."""
    indent = b" " * depth
    for place in sorted({*body.counts, *body.calls}):
        calls = sorted(body.calls.get(place, {}).items(), key=lambda each: (-each[1], each[0]))
        called = b"".join(b" %b:%d" % (name, whole(count)) for name, count in calls)
        lines.append(b"%b%b: %d%b\n" % (indent, shown(place), whole(body.counts.get(place, 0.0)), called))
        letters.spend(len(lines[-1]))
    for (place, name), inner in sorted(body.inlined.items()):
        lines.append(b"%b%b: %b:%d\n" % (indent, shown(place), name, whole(inner.total)))
        letters.spend(len(lines[-1]))
        add_lines(lines, inner, depth + 1, letters)


def shown(place: Place) -> bytes:
    """A place as LLVM writes it; a discriminator of 0 is none."""
    offset, discriminator = place >> 16, place & MASK
    return b"%d.%d" % (offset, discriminator) if discriminator else b"%d" % offset


def whole(count: float) -> int:
    """A count as an integer that LLVM can read."""
    return min(int(count), LARGEST)

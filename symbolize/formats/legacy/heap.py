"""Heap profiles as text: of gperftools and its kin, of Go, and those of jemalloc."""

import re
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import Int64
from symbolize.formats.legacy.frames import ALLOCATORS, ALLOCATORS_KEPT
from symbolize.formats.legacy.go import names_in_comments
from symbolize.formats.legacy.text import Rows, Text, attach_map, inside_calls, only_fitting, read_rows
from symbolize.formats.legacy.unsampling import quotient, unsampled
from symbolize.formats.samples import fill, name_locations, number_label, value_type
from symbolize.profile.facts import set_leaves
from symbolize.profile.model import LeafKind, Profile, StackSource

HEADER: Final = re.compile(
    rb"heap profile: *(-?\d+): *(-?\d+) *\[ *(-?\d+): *(-?\d+) *\](?: *@ *([^/\s]*)(?:/(\d+))?)?"
)
SHAPE: Final = b"n:n[n:n]@a"

JEMALLOC_HEADER: Final = re.compile(rb"heap_v2/(\d+)")
JEMALLOC_SHAPE: Final = b"@a\nt*:n:n[n:n]"
JEMALLOC_THREAD: Final = b"t"
"""What the lines of totals and of single threads begin with, which are skipped (R338, rows of jemalloc)."""

UNSAMPLED: Final = re.compile(rb"heapprofile|growthz?|fragmentationz?")
POISSON: Final = (b"heap_v2", b"heapz_v2")
UNIFORM: Final = (b"heap", b"heapz")
"""Kinds whose rate is twice the mean distance of samples: old ones of gperftools, and those of Go."""

OLD_RATE: Final = 128 << 10
"""The mean distance of samples in profiles whose header has neither kind nor rate."""

INUSE: Final = ((b"objects", b"count"), (b"space", b"bytes"))
ALLOCATED_TOO: Final = (
    (b"alloc_objects", b"count"),
    (b"alloc_space", b"bytes"),
    (b"inuse_objects", b"count"),
    (b"inuse_space", b"bytes"),
)

MAX_RATE: Final = (1 << 63) - 1
MAX_DIGITS: Final = 19
MAX_SHOWN: Final = 40


class Sampling(NamedTuple):
    """How allocations were sampled: the period that the profile gets, the mean distance of samples in bytes (0: every
    allocation was counted), and whether there are columns of everything that was allocated."""

    period: int
    rate: int
    has_allocated: bool


def load(text: Text) -> Profile:
    """Read what begins with `heap profile:` (R331, sampled heaps; R332, columns of heaps)."""
    line, begin = text.line_at(text.begin)
    sampling = _sampling(text, line)
    profile = Profile(warnings=text.warnings)
    end = _fill(profile, text, read_rows(text, begin, SHAPE), sampling)
    attach_map(profile, text, end)
    if names := names_in_comments(text):
        name_locations(profile, lambda address: names.get(address, ()))
    return profile


def load_jemalloc(text: Text) -> Profile:
    """Read what jemalloc dumps: a stack, and the sum over all threads of what it allocated (R338, rows of jemalloc)."""
    line, begin = text.line_at(text.begin)
    header = JEMALLOC_HEADER.match(line)
    assert header is not None
    rate = min(int(header[1][:MAX_DIGITS]), MAX_RATE)
    rows = read_rows(text, begin, JEMALLOC_SHAPE, comment=JEMALLOC_THREAD)
    has_allocated = any(column.any() for column in rows.numbers[2:])
    profile = Profile(warnings=text.warnings)
    attach_map(profile, text, _fill(profile, text, rows, Sampling(rate, rate, has_allocated)))
    return profile


def _sampling(text: Text, line: bytes) -> Sampling:
    """What the header tells."""
    header = HEADER.search(line)
    if header is None:
        raise text.error("has a damaged header: no counts behind `heap profile:`", text.begin)
    inuse_count, inuse_size, count, size, kind, digits = header.groups()
    has_allocated = count not in (inuse_count, b"0") or size not in (inuse_size, b"0")
    rate = min(int((digits or b"0")[:MAX_DIGITS]), MAX_RATE)
    if not kind:
        is_sampled = (inuse_count, inuse_size) == (count, size)
        return Sampling(OLD_RATE if is_sampled else 1, OLD_RATE if is_sampled else 0, has_allocated)
    if UNSAMPLED.fullmatch(kind):
        return Sampling(1, 0, has_allocated and kind == b"heapprofile")
    if kind not in POISSON + UNIFORM:
        name = kind[:MAX_SHOWN].decode("utf-8", "backslashreplace")
        raise text.error(f"is a heap profile of an unknown kind, {name}", text.begin)
    if kind in UNIFORM:
        rate //= 2
    if not rate:
        text.warnings.append(
            "The header has no sampling rate: values are those of the samples, not of all allocations."
        )
    return Sampling(rate, rate, has_allocated)


def _fill(profile: Profile, text: Text, rows: Rows, sampling: Sampling) -> int:
    """Make the samples; where the text behind them begins."""
    inuse_count, inuse_size, count, size = rows.numbers
    pairs = [(count, size), (inuse_count, inuse_size)] if sampling.has_allocated else [(inuse_count, inuse_size)]
    block_size = np.zeros(rows.size, np.int64)
    fits = np.ones(rows.size, np.bool_)
    values: list[Int64] = []
    for objects, space in pairs:
        block_size = np.where(objects != 0, quotient(space, objects), block_size)
        values += unsampled(objects, space, sampling.rate, fits)
    uncounted = sum(int(((objects == 0) & (space != 0)).sum()) for objects, space in pairs)
    if uncounted:
        text.warnings.append(f"Sizes of no objects: {uncounted}; they are kept as they are.")
    rows, kept = only_fitting(text, rows, [*values, block_size], fits)
    *values, block_size = kept
    types = ALLOCATED_TOO if sampling.has_allocated else INUSE
    fill(profile, types, np.column_stack(values), rows.offsets, inside_calls(rows.addresses))
    set_leaves(profile, LeafKind.CALL_SITE, StackSource.RECORDER)
    number_label(profile, b"bytes", block_size)
    profile.period_type, profile.period = value_type(profile, b"space", b"bytes"), sampling.period
    profile.drop_frames = profile.strings.add(ALLOCATORS)
    profile.keep_frames = profile.strings.add(ALLOCATORS_KEPT)
    return rows.end

"""Profiles of the Java agent that wrote as gperftools does: ids instead of addresses, and a table of what they are
(R337, ids of Java)."""

import re
from typing import Final

import numpy as np

from symbolize.core.arrays import NONE
from symbolize.formats.legacy.text import (
    ALLOCATORS,
    ALLOCATORS_KEPT,
    LOCKS,
    Text,
    integer,
    only_fitting,
    quotient,
    read_attributes,
    read_rows,
    unsampled,
)
from symbolize.formats.samples import TextFrame, fill, name_locations, number_label, value_type
from symbolize.profile.model import Profile

HEAP_TITLE: Final = re.compile(rb"--- heapz 1 ---[ \t]*$")
SHAPE: Final = b"nn@a"

FORMAT: Final = b"format"
RESOLUTION: Final = b"resolution"
PERIOD: Final = b"sampling period"
DURATION: Final = b"ms since reset"
KNOWN: Final = {"heap": (FORMAT, RESOLUTION), "contention": (FORMAT, RESOLUTION, PERIOD, DURATION)}

MEAN_DISTANCE: Final = 512 << 10
"""Bytes between the samples of heaps."""

MILLISECOND: Final = 1_000_000
MAX_MILLISECONDS: Final = ((1 << 63) - 1) // MILLISECOND

LOCATION: Final = re.compile(rb"0x([0-9a-fA-F]{1,16})\s+(.*)\Z", re.DOTALL)
LINE: Final = re.compile(rb"-?[0-9]{1,10}")
STUB: Final = b"generated stub/JIT"


def load_heap(text: Text) -> Profile:
    """Read what begins with `--- heapz 1 ---`.

    Rows are bytes and count, sampled with a mean distance of 512 KiB. A count of zero does not end the reading.
    """
    attributes, begin = read_attributes(text)
    _check(text, attributes, "heap")
    rows = read_rows(text, begin, SHAPE, until_other=True)
    sizes, counts = rows.numbers
    fits = np.ones(rows.size, np.bool_)
    block_size = quotient(sizes, counts)
    rows, values = only_fitting(text, rows, [*unsampled(counts, sizes, MEAN_DISTANCE, fits), block_size], fits)
    profile = Profile(warnings=text.warnings)
    types = [(b"inuse_objects", b"count"), (b"inuse_space", attributes[RESOLUTION])]
    fill(profile, types, np.column_stack(values[:2]), rows.offsets, rows.addresses)
    number_label(profile, b"bytes", values[2])
    profile.drop_frames = profile.strings.add(ALLOCATORS)
    profile.keep_frames = profile.strings.add(ALLOCATORS_KEPT)
    name_ids(profile, text.data, rows.end)
    return profile


def load_contention(text: Text, attributes: dict[bytes, bytes], begin: int) -> Profile:
    """Read what begins with `--- contentionz 1 ---` and these attributes, the rows from `begin` on.

    Rows are delay and count, both times the sampling period.
    """
    _check(text, attributes, "contention")
    rows = read_rows(text, begin, SHAPE, until_other=True)
    delays, counts = rows.numbers
    profile = Profile(warnings=text.warnings)
    period = _number(text, attributes, PERIOD)
    factor = period or 1
    fits = np.maximum(np.abs(delays.astype(np.float64)), np.abs(counts)) * abs(factor) < float(1 << 63)
    scaled = [np.where(fits, each, 0) * np.int64(factor) for each in (counts, delays)]
    rows, values = only_fitting(text, rows, scaled, fits)
    types = [(b"contentions", b"count"), (b"delay", attributes[RESOLUTION])]
    fill(profile, types, np.column_stack(values), rows.offsets, rows.addresses)
    if PERIOD in attributes:
        profile.period_type, profile.period = value_type(profile, b"contentions", b"count"), period
    profile.duration_nanos = nanoseconds(_number(text, attributes, DURATION))
    profile.drop_frames = profile.strings.add(LOCKS)
    name_ids(profile, text.data, rows.end)
    return profile


def _check(text: Text, attributes: dict[bytes, bytes], kind: str) -> None:
    """Raise InputError where the attributes are not those of a profile of Java."""
    if attributes.get(FORMAT, b"java") != b"java":
        raise text.error(f"is a {kind} profile of another format than java", text.begin)
    if RESOLUTION not in attributes:
        raise text.error(f"is a {kind} profile of Java without a resolution", text.begin)
    if unknown := [key for key in attributes if key not in KNOWN[kind]]:
        text.warnings.append(f"Attributes that are not known: {len(unknown)}; they are ignored.")


def _number(text: Text, attributes: dict[bytes, bytes], key: bytes) -> int:
    """An attribute as a number, 0 if it is not there."""
    value = integer(attributes.get(key, b"0"))
    if value is None:
        raise text.error(f"has no number as {key.decode()}", text.begin)
    return value


def nanoseconds(milliseconds: int) -> int:
    """Milliseconds that a header has in nanoseconds; none is negative or exceeds 64 bits."""
    return min(max(milliseconds, 0), MAX_MILLISECONDS) * MILLISECOND


def name_ids(profile: Profile, data: bytes | memoryview, begin: int = 0) -> None:
    """Give locations, whose addresses are ids so far, what the table from `begin` on has for these.

    A location that the table names has no address, the others keep their id as one. None is in a mapping. Nothing is
    subtracted from ids; those that the table lacks differ from others. Functions of one name in two files are two
    (R337, ids of Java).
    """
    table: dict[int, TextFrame] = {}
    for line in bytes(data[begin:]).split(b"\n"):
        if found := LOCATION.match(line.strip()):
            table[int(found[1], 16)] = _frame(found[2])
    name_locations(profile, lambda each: (table[each],) if each in table else ())
    locations = profile.locations
    locations.mapping = np.full(len(locations), NONE, np.int32)
    locations.address = np.where(locations.has_lines(), np.uint64(0), locations.address)


def _frame(what: bytes) -> TextFrame:
    """What the table has for an id: a function with its file and line, or with the path of its library, or neither."""
    name, bracket, inside = what.rpartition(b" (")
    if bracket and inside.endswith(b")"):
        file, colon, line = inside[:-1].rpartition(b":")
        if colon and file and LINE.fullmatch(line):
            return TextFrame(name.rstrip(), file, max(int(line), 0))
        return TextFrame(name.rstrip(), inside[:-1].rpartition(b"/")[2])
    return TextFrame(b"STUB" if STUB in what else what)

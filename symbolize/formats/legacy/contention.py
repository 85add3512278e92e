"""Contention profiles as text, of gperftools and its kin and of Go: who waited for locks, and how long."""

import re
from typing import Final

import numpy as np

from symbolize.formats.legacy import java
from symbolize.formats.legacy.frames import LOCKS
from symbolize.formats.legacy.go import names_in_comments
from symbolize.formats.legacy.java import DURATION, PERIOD, nanoseconds
from symbolize.formats.legacy.text import (
    Text,
    attach_map,
    inside_calls,
    integer,
    only_fitting,
    read_attributes,
    read_rows,
    scaled,
)
from symbolize.formats.samples import fill, name_locations, value_type
from symbolize.profile.facts import set_leaves
from symbolize.profile.model import LeafKind, Profile, StackSource

TITLE: Final = re.compile(rb"--- *(?:contention|mutex|Stacks:)")
SHAPE: Final = b"nn@a"
TYPES: Final = ((b"contentions", b"count"), (b"delay", b"nanoseconds"))

CLOCK: Final = b"cycles/second"
ONLY_JAVA: Final = (b"format", b"resolution")


def load(text: Text) -> Profile:
    """Read what begins with `--- contention` or `--- mutex` (R334, contention)."""
    attributes, begin = read_attributes(text)
    if any(key in attributes for key in ONLY_JAVA):
        return java.load_contention(text, attributes, begin)
    numbers = {key: integer(attributes[key]) for key in (CLOCK, PERIOD, DURATION) if key in attributes}
    for key in [key for key, value in numbers.items() if value is None]:
        raise text.error(f"has no number as {key.decode()}", text.begin)
    clock, period, duration = (numbers.get(key) for key in (CLOCK, PERIOD, DURATION))
    rows = read_rows(text, begin, SHAPE)
    delays, counts = rows.numbers
    period = 1 if period is None else period
    fits = np.ones(rows.size, np.bool_)
    if period > 0:
        if clock is not None and clock > 0:
            # In this order, in which pprof rounds.
            cycles = delays.astype(np.float64) * float(period) / (clock / 1e9)
            delays = scaled(np.ones(rows.size, np.int64), cycles, fits)
        fits &= np.abs(counts.astype(np.float64)) * period < float(1 << 63)
        counts = np.where(fits, counts, 0) * np.int64(period)
    else:
        text.warnings.append(f"A sampling period of {period} is none: values are not scaled.")
    if clock is None or clock <= 0:
        text.warnings.append("The speed of the clock is not known: delays are in its cycles, not in nanoseconds.")
    rows, values = only_fitting(text, rows, [counts, delays], fits)
    profile = Profile(warnings=text.warnings)
    fill(profile, TYPES, np.column_stack(values), rows.offsets, inside_calls(rows.addresses))
    set_leaves(profile, LeafKind.CALL_SITE, StackSource.RECORDER)
    profile.period_type, profile.period = value_type(profile, b"contentions", b"count"), period
    profile.duration_nanos = nanoseconds(duration or 0)
    profile.drop_frames = profile.strings.add(LOCKS)
    attach_map(profile, text, rows.end)
    if names := names_in_comments(text):
        name_locations(profile, lambda address: names.get(address, ()))
    return profile

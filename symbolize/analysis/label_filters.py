"""Choosing samples by their labels, with the meaning that pprof gives them (R348, label filters)."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import Bool, distinct, distinct_inverse, marked, offsets_of, pair, unpair
from symbolize.core.expressions import Matches, compiled
from symbolize.profile import Profile
from symbolize.profile.sample_types import Unit, unit_of

RANGE: Final = re.compile(r"(?P<low>[+-]?[0-9]{1,999}[A-Za-z]*)?(?P<colon>:)?(?P<high>[+-]?[0-9]{1,999}[A-Za-z]*)?")
BOUND: Final = re.compile(r"([+-]?[0-9]+)([A-Za-z]*)")
IN_BYTES: Final = (b"alignment", b"request")
"""Keys of numbers that are bytes where no unit is given, as pprof has it."""


class Bound(NamedTuple):
    """An end of a range: a number with its unit (None: one that pprof does not know), and what the unit is called."""

    number: int
    unit: Unit | None
    name: str


class ValueRange(NamedTuple):
    """A range of numbers, both ends included; None: no end."""

    low: Bound | None
    high: Bound | None

    def limits(self, unit: Unit | None) -> tuple[Fraction | None, Fraction | None] | None:
        """The ends in another unit; None if that does not measure the same. Numbers in a unit that is not known are
        taken in that of the range, and a range without a unit takes numbers as they are."""
        found: list[Fraction | None] = []
        first = self.low or self.high
        assert first is not None
        if unit is not None and first.name and (first.unit is None or first.unit.kind != unit.kind):
            return None
        factor = unit.factor if unit is not None and first.name else first.unit.factor if first.unit is not None else 1
        for bound in (self.low, self.high):
            own = 1 if bound is None or bound.unit is None else bound.unit.factor
            found.append(None if bound is None else Fraction(bound.number * own, factor))
        return found[0], found[1]


def parsed_range(text: str) -> ValueRange | None:
    """The range that `text` denotes: `32kb`, `:64kb`, `4mb:` or `12kb:64mb`; None if it is none."""
    match = RANGE.fullmatch(text)
    if match is None or not (match["low"] or match["high"]) or (match["low"] and match["high"] and not match["colon"]):
        return None
    low, high = bound(match["low"]), bound(match["high"])
    if not match["colon"]:
        return ValueRange(low, low)
    if low is not None and high is not None and (low.unit or low.name) != (high.unit or high.name):
        if low.unit is None or high.unit is None or low.unit.kind != high.unit.kind:
            return None
    return ValueRange(low, high)


def bound(text: str | None) -> Bound | None:
    """One end of a range."""
    match = BOUND.fullmatch(text or "")
    return None if match is None else Bound(int(match[1]), unit_of(match[2]), match[2])


def parsed_filter(name: str, text: str) -> tuple[str, ValueRange | list[Matches]]:
    """The key that the filter `name` is for, empty for all, and the range or the expressions that it asks for. Raises
    UsageError for an expression that is none."""
    key, equals, value = text.partition("=")
    key, value = (key, value) if equals else ("", text)
    return key, parsed_range(value) or [compiled(name, each) for each in value.split(",")]


def samples_with_label(profile: Profile, name: str, text: str) -> Bool:
    """Which samples have the labels that the filter `name` asks for: bool[n]. Raises as `parsed_filter` does.

    A filter that is no range has expressions between commas, which have to match `key:text` each, or with `KEY=` one of
    them the text (R348, label filters).
    """
    key, wanted = parsed_filter(name, text)
    if isinstance(wanted, ValueRange):
        return of_samples(profile, numbers_within(profile, wanted, key))
    found = [of_samples(profile, texts_matching(profile, matches, key)) for matches in wanted]
    chosen: Bool = np.logical_or.reduce(found) if key else np.logical_and.reduce(found)
    return chosen


def note_on_range(profile: Profile, name: str, text: str) -> str:
    """That the filter `name` was read as a range of numbers where the labels it is for have texts only; else empty."""
    key, wanted = parsed_filter(name, text)
    if not isinstance(wanted, ValueRange):
        return ""
    labels = profile.samples.labels
    keys = [row for row in distinct(labels.key).tolist() if not key or profile.strings.text(row) == key]
    texts = labels.text[np.isin(labels.key, keys)]
    if not len(texts) or not texts.all():
        return ""
    value = text.removeprefix(f"{key}=")
    whose, better = (f"{key} is a text", f"{key}=^{value}$") if key else ("labels here are texts", f":{value}$")
    return f"{name} {text}: {value} was read as a number, and {whose}, which {better} matches"


def of_samples(profile: Profile, chosen: Bool) -> Bool:
    """Which samples have a label that is chosen."""
    samples = profile.samples
    owner = np.repeat(np.arange(len(samples)), np.diff(samples.label_offsets))
    return marked(owner, len(samples), chosen)


def texts_matching(profile: Profile, matches: Matches, key: str) -> Bool:
    """Which labels with a text match: the text of those with `key`, or `key:text` of any if that is empty."""
    labels, strings = profile.samples.labels, profile.strings
    pairs, which = distinct_inverse(pair(labels.key, labels.text))
    keys, texts = (rows.tolist() for rows in unpair(pairs))
    found = [
        text != 0
        and (not key or strings.text(row) == key)
        and matches(strings.text(text) if key else f"{strings.text(row)}:{strings.text(text)}")
        for row, text in zip(keys, texts, strict=True)
    ]
    return np.array(found, np.bool_)[which]


def numbers_within(profile: Profile, wanted: ValueRange, key: str) -> Bool:
    """Which labels with a number are in a range, those with `key` or any if that is empty.

    A label without a unit has the one that others with its key have, else the one that pprof takes for its key. A
    number in an unknown unit counts in the unit of the range; unlike in pprof, a range without a unit takes numbers in
    any unit as they are.
    """
    labels, strings = profile.samples.labels, profile.strings
    pairs, which = distinct_inverse(pair(labels.key, labels.unit))
    keys, units = (rows.tolist() for rows in unpair(pairs))
    of_key = {row: unit for row, unit in zip(reversed(keys), reversed(units), strict=True) if unit}
    found = np.zeros(len(labels), np.bool_)
    numbers = np.flatnonzero(labels.text == 0)
    numbers = numbers[np.argsort(which[numbers], kind="stable")]
    edges = np.searchsorted(which[numbers], np.arange(len(pairs) + 1)).tolist()
    for number, (row, unit) in enumerate(zip(keys, units, strict=True)):
        if key and strings.text(row) != key:
            continue
        name = strings.text(unit or of_key.get(row, 0)) or ("bytes" if strings[row] in IN_BYTES else strings.text(row))
        limits = wanted.limits(unit_of(name))
        if limits is None:
            continue
        rows = numbers[edges[number] : edges[number + 1]]
        values = labels.number[rows]
        inside = np.ones(len(rows), np.bool_)
        for limit, is_low in zip(limits, (True, False), strict=True):
            if limit is not None:
                inside &= within(values, limit, is_low=is_low)
        found[rows] = inside
    return found


def within(values: np.ndarray, limit: Fraction, *, is_low: bool) -> Bool:
    """Which values are not below, or not above, a limit that may be any number."""
    whole = -(-limit.numerator // limit.denominator) if is_low else limit.numerator // limit.denominator
    bounds = np.iinfo(np.int64)
    if whole > bounds.max or whole < bounds.min:
        return np.full(len(values), (whole < bounds.min) == is_low)
    found: Bool = values >= whole if is_low else values <= whole
    return found


def labels_shown(profile: Profile, show: str, hide: str) -> Profile:
    """The profile without the labels whose keys do not match `show`, or do match `hide`; an empty one does nothing."""
    samples = profile.samples
    labels, strings = samples.labels, profile.strings
    chosen = np.ones(len(strings), np.bool_)
    for name, text in (("tagshow", show), ("taghide", hide)):
        if not text:
            continue
        matches = compiled(name, text)
        keys = distinct(labels.key)
        is_shown = [matches(strings.text(row)) == (name == "tagshow") for row in keys.tolist()]
        chosen[keys] &= np.array(is_shown, np.bool_)
    kept = chosen[labels.key]
    owner = np.repeat(np.arange(len(samples)), np.diff(samples.label_offsets))
    left = offsets_of(np.bincount(owner[kept], minlength=len(samples)))
    return replace(profile, samples=replace(samples, labels=labels.take(kept), label_offsets=left))

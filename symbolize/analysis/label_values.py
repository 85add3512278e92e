"""What samples have for a key of their labels, as texts, and as frames of their stacks."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from symbolize.analysis.frames import NO_STACK
from symbolize.analysis.units import quantity
from symbolize.core.arrays import (
    NONE,
    Bool,
    Float64,
    Int32,
    Int64,
    distinct,
    distinct_inverse,
    offsets_of,
    pair,
    ranges,
    rows_by_number,
    unpair,
)
from symbolize.core.budget import Budget
from symbolize.core.errors import first_names
from symbolize.profile import Functions, Lines, Locations, Profile

MAX_KEYS: Final = 64
"""Keys of labels that are shown; a profile has a handful."""
MAX_VALUES: Final = 256
"""Values of a key of which the sum is shown."""
MAX_TEXT: Final = 4096
"""Letters of what a label has for a key, and from which on a sample has no more of its labels."""
JOINED: Final = (1 << 26, 64, "has samples with several labels whose texts would take {spent:,} letters or more")
"""The letters of such texts for the labels of a profile."""


def label_keys(profile: Profile) -> dict[str, int]:
    """The keys of labels, in the order of their texts, and the string of the profile that each one is."""
    return dict(sorted((profile.strings.text(row), row) for row in distinct(profile.samples.labels.key).tolist()))


class LabelTexts(NamedTuple):
    """The text of each sample or label for a key: `codes` are indices into `texts`, which are distinct, or -1 for
    none."""

    codes: Int32
    texts: list[str]


def labels_of(profile: Profile, key: int) -> tuple[Int64, LabelTexts]:
    """The labels with a key, a string of the profile, and the text of each one: numbers with their units, as pprof
    shows them; of long texts the beginning."""
    labels, strings = profile.samples.labels, profile.strings
    rows = np.flatnonzero(labels.key == key)
    numbers, number_of = distinct_inverse(labels.number[rows])
    words, word_of = distinct_inverse(pair(labels.text[rows], labels.unit[rows]))
    values, value_of = distinct_inverse(pair(word_of, number_of))
    word, number = unpair(values)
    text, unit = (column[word].tolist() for column in unpair(words))
    shown_of = {row: strings.text(row)[:MAX_TEXT] for row in {*text, *unit}}  # many labels may share a long one
    known: dict[str, int] = {}
    shown = [
        known.setdefault((shown_of[each] if each else quantity(value, shown_of[of]))[:MAX_TEXT], len(known))
        for each, value, of in zip(text, numbers[number].tolist(), unit, strict=True)
    ]
    return rows, LabelTexts(np.array(shown, np.int32)[value_of], list(known))


def label_texts(profile: Profile, key: int) -> LabelTexts:
    """What each sample has for a key, a string of the profile, see `labels_of`; several values have commas between
    them."""
    samples = profile.samples
    rows, (code_of, texts) = labels_of(profile, key)
    sample = np.repeat(np.arange(len(samples)), np.diff(samples.label_offsets))[rows]
    codes = np.full(len(samples), NONE, np.int32)
    codes[sample] = code_of
    edges = np.flatnonzero(np.diff(sample, prepend=NONE, append=NONE))  # the labels of a sample stand together
    budget = Budget(profile.source or "profile", len(samples.labels), *JOINED)
    known = {text: code for code, text in enumerate(texts)}
    joined: dict[bytes, int] = {}
    for at in np.flatnonzero(np.diff(edges) > 1).tolist():
        begin, end = edges[at], min(edges[at + 1], edges[at] + MAX_TEXT)
        parts = code_of[begin:end]
        if (several := parts.tobytes()) not in joined:
            text = with_commas(texts[code] for code in parts)
            budget.spend(len(text))
            joined[several] = known.setdefault(text, len(known))
        codes[sample[begin]] = joined[several]
    return LabelTexts(codes, list(known))


def with_commas(texts: Iterable[str]) -> str:
    """Texts with commas between them; behind `MAX_TEXT` letters none is added."""
    found: list[str] = []
    size = 0
    for text in texts:
        found.append(text)
        size += len(text) + 1
        if size > MAX_TEXT:
            break
    return ",".join(found)


class LabelValue(NamedTuple):
    """What labels have, and the sum of the values of their samples."""

    text: str
    total: int


class LabelTotals(NamedTuple):
    """The labels of a key: how many different ones there are, the sum of the values of their samples, the heaviest of
    them, `MAX_VALUES` at most, and the sum of the values of all samples without their signs, of which these are
    shares."""

    key: str
    values: int
    total: int
    heaviest: list[LabelValue]
    whole: int


def label_totals(profile: Profile) -> list[LabelTotals]:
    """The labels of each of the first `MAX_KEYS` keys with the values of the default sample type, as `pprof -tags` adds
    them up: a sample counts for each of its labels."""
    samples = profile.samples
    column = samples.values[:, profile.weight_column()] if profile.sample_types else np.zeros(len(samples), np.int64)
    weights = np.repeat(column.astype(np.float64), np.diff(samples.label_offsets))
    whole = round(float(np.abs(column.astype(np.float64)).sum()))
    found = []
    for name, key in islice(label_keys(profile).items(), MAX_KEYS):
        rows, (codes, texts) = labels_of(profile, key)
        sums = np.bincount(codes, weights[rows], len(texts))
        order = np.argsort(-np.abs(sums), kind="stable")[:MAX_VALUES].tolist()
        heaviest = [LabelValue(texts[code], round(sums[code])) for code in order]
        found.append(LabelTotals(name, len(texts), round(sums.sum()), heaviest, whole))
    return found


def samples_by_label(profile: Profile, key: str, weights: Float64, most: int) -> list[tuple[str, Int64]]:
    """What samples have for a key, the heaviest first, and the rows of these samples; all beyond `most` are one."""
    codes, texts = label_texts(profile, label_keys(profile).get(key, NONE))
    names = [f"no {key}", *texts]
    sums = np.bincount(codes + 1, weights, len(names))
    order = [row for row in np.argsort(-sums, kind="stable").tolist() if sums[row]]
    shown = [names[row] for row in order]
    if len(shown) > most:
        shown[most - 1 :] = [f"the {len(shown) - most + 1:,} lightest others"]
    rank = np.full(len(names), len(shown))
    rank[order] = np.minimum(np.arange(len(order)), most - 1)
    return list(zip(shown, rows_by_number(rank[codes + 1], len(shown) + 1), strict=False))


def with_label_frames(profile: Profile, root: Sequence[str], leaf: Sequence[str]) -> Profile:
    """The profile with a frame at the root of each stack for what its sample has for each key in `root`, the first key
    outermost, and at the leaf for those in `leaf`, the last key innermost. A sample without the label has no such
    frame."""
    strings, samples = profile.strings.copy(), profile.samples
    profile = replace(profile, strings=strings)
    at_root, at_leaf = ([names_of(profile, key) for key in keys] for keys in (root, leaf))
    is_bare = np.diff(samples.location_offsets) == 0
    if is_bare.any() and (at_root or at_leaf):
        at_root.append(np.where(is_bare, np.int32(strings.add(NO_STACK.encode())), np.int32(0)))
    names = np.unique(np.concatenate([np.zeros(1, np.int32), *at_root, *at_leaf]))[1:]
    row_of = len(profile.locations) + np.searchsorted(names, np.arange(len(strings)))
    sizes = np.diff(samples.location_offsets)
    leaves = sum((column != 0).astype(np.int64) for column in at_leaf) + np.zeros_like(sizes)
    roots = sum((column != 0).astype(np.int64) for column in at_root) + np.zeros_like(sizes)
    offsets = offsets_of(sizes + leaves + roots)
    stacks = np.empty(int(offsets[-1]), np.int32)
    stacks[ranges(offsets[:-1] + leaves, sizes)] = samples.locations
    for begin, columns in ((offsets[:-1], at_leaf), (offsets[:-1] + leaves + sizes, at_root)):
        at = begin.copy()
        for column in reversed(columns):
            has: Bool = column != 0
            stacks[at[has]] = row_of[column[has]]
            at += has
    return replace(
        profile,
        functions=Functions.joined([profile.functions, functions_called(names)]),
        locations=Locations.joined([profile.locations, locations_of(profile, len(names))]),
        samples=replace(samples, location_offsets=offsets, locations=stacks),
        leaf_kinds=np.zeros(0, np.uint8),
    )


def note_on_missing(profile: Profile, keys: Iterable[str]) -> str:
    """Which of some keys no sample has, as a sentence; empty if there is none."""
    known = label_keys(profile)
    missing = [key for key in keys if key not in known]
    there = f"there are {first_names(sorted(known))}" if known else "there are no labels"
    return f"no sample has the label {first_names(missing)}; {there}" if missing else ""


def names_of(profile: Profile, key: str) -> Int32:
    """The string that each sample has for a key, 0 for none; strings are added to the profile."""
    codes, texts = label_texts(profile, label_keys(profile).get(key, NONE))
    rows = [0, *(profile.strings.add(text.encode(errors="backslashreplace")) for text in texts)]
    return np.array(rows, np.int32)[codes + 1]


def functions_called(names: Int32) -> Functions:
    """Functions of these names alone."""
    functions = Functions.zeros(len(names))
    functions.name = functions.system_name = names
    return functions


def locations_of(profile: Profile, count: int) -> Locations:
    """Locations in no code for so many functions behind those of the profile."""
    lines = Lines.zeros(count)
    lines.function = np.arange(count, dtype=np.int32) + np.int32(len(profile.functions))
    old = profile.locations
    return Locations(
        address=np.zeros(count, np.uint64),
        mapping=np.full(count, NONE, np.int32),
        is_folded=np.zeros(count, np.bool_),
        line_offsets=np.arange(count + 1, dtype=np.int64),
        lines=lines,
        rel_pc=np.zeros(count if len(old.rel_pc) else 0, np.uint64),
        source_row=np.full(count if len(old.source_row) else 0, NONE, np.int64),
    )

"""Choosing samples and frames by regular expressions, and samples by labels, with the meaning that pprof gives them."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from symbolize.analysis.frames import module_names, unnamed_frame
from symbolize.core.arrays import Bool, distinct, distinct_inverse, marked, offsets_of, pair, unpair
from symbolize.core.errors import check_type
from symbolize.core.expressions import Matches, compiled
from symbolize.profile import Profile, combine, compact
from symbolize.profile.sample_types import Unit, unit_of

if TYPE_CHECKING:
    from fractions import Fraction

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
        from fractions import Fraction

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


@dataclass(frozen=True)
class Filters:
    """What is shown or written of a profile. Empty expressions do nothing.

    Regular expressions are searched in the name and source file of a function, in the path of its mapping, and in
    `module!sub_START` of one without a name: `focus` keeps the samples with a match on their stack, `ignore` drops
    them; `hide` removes the frames that match and `show` all others. A sample without frames left is dropped.

    `tagfocus` keeps the samples with a label, `tagignore` drops them: a regular expression that is searched in
    `key:value` of labels with texts, several with commas between them that all match some; or a range of numbers, such
    as `128kb:1mb`, `32kb`, `:64kb` and `4mb:`. Behind `key=` either counts for that label alone, and one of several
    expressions is enough. `tagshow` keeps the labels whose keys match, `taghide` drops them.

    `tagroot` and `tagleaf` are keys of labels, with commas between several: what a sample has for them is a frame at
    the root, or at the leaf, of its stack.

    Raises TypeError for what is no text, UsageError for an invalid expression.
    """

    focus: str = ""
    ignore: str = ""
    hide: str = ""
    show: str = ""
    tagfocus: str = ""
    tagignore: str = ""
    tagshow: str = ""
    taghide: str = ""
    tagroot: str = ""
    tagleaf: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            text = getattr(self, field.name)
            check_type(field.name, text, "text", str)
            if field.name in ("tagfocus", "tagignore"):
                parsed_filter(field.name, text)
            elif field.name not in ("tagroot", "tagleaf"):
                compiled(field.name, text)

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))


def selected(profile: Profile, filters: Filters) -> Profile:
    """What `filters` leave of a profile, which is not changed. Locations stay as they are, but for lines that are
    hidden, and frames of labels, which the other filters find, as pprof's do. Raises UsageError for an expression that
    takes too many steps."""
    if filters.tagroot or filters.tagleaf:
        from symbolize.analysis.label_values import with_label_frames

        profile = with_label_frames(profile, keys_in(filters.tagroot), keys_in(filters.tagleaf))
    locations, samples = profile.locations, profile.samples
    offsets = locations.line_offsets
    sizes = np.diff(samples.location_offsets)
    sample = np.repeat(np.arange(len(samples)), sizes)

    def has_match(found: Bool) -> Bool:
        return marked(sample, len(samples), found[samples.locations])

    kept = np.ones(len(samples), np.bool_)
    if filters.focus:
        kept &= has_match(any_of(*matching(profile, "focus", filters.focus), offsets))
    if filters.ignore:
        kept &= ~has_match(any_of(*matching(profile, "ignore", filters.ignore), offsets))
    lines, places = np.ones(len(locations.lines), np.bool_), np.ones(len(locations), np.bool_)
    counts = np.diff(offsets)
    for name in ("hide", "show"):
        if getattr(filters, name):
            by_line, by_mapping = matching(profile, name, getattr(filters, name))
            is_hide = name == "hide"
            lines &= (by_line | np.repeat(by_mapping, counts)) != is_hide
            places &= (counts > 0) | (by_mapping != is_hide)
    places &= (counts == 0) | any_of(lines, np.zeros(len(locations), np.bool_), offsets)
    if filters.focus or filters.ignore or filters.hide or filters.show:
        kept &= has_match(places)
    if filters.tagfocus:
        kept &= samples_with_label(profile, "tagfocus", filters.tagfocus)
    if filters.tagignore:
        kept &= ~samples_with_label(profile, "tagignore", filters.tagignore)
    if not lines.all():
        left = offsets_of(np.bincount(np.repeat(np.arange(len(counts)), counts)[lines], minlength=len(counts)))
        locations = replace(locations, lines=locations.lines.take(lines), line_offsets=left)
    profile = with_recorded(profile, kept, places & (not (filters.tagroot or filters.tagleaf)))
    samples, unknown = samples.taken(kept, places), dict(profile.unknown)
    if raw := unknown.get("sample"):
        unknown["sample"] = raw.taken(np.flatnonzero(kept))
    leaves = profile.leaf_kinds if places.all() else np.zeros(0, np.uint8)  # callers may be leaves then
    profile = replace(profile, locations=locations, samples=samples, unknown=unknown, leaf_kinds=leaves)
    if filters.tagshow or filters.taghide:
        return labels_shown(profile, filters.tagshow, filters.taghide)
    return profile


def with_recorded(profile: Profile, kept: Bool, places: Bool) -> Profile:
    """The profile with the times and the copies of stacks of the samples that are `kept`, by their numbers among these.

    Callers are put behind the last frame of a stack: a copy is left out if that is not in one of `places`
    (bool[locations]), which are as they were recorded.
    """
    times, dumps, warnings = profile.sample_times, profile.stack_dumps, profile.warnings
    if times is not None:
        times = times.taken(kept)
    if dumps is not None:
        warnings = [each for each in warnings if each != dumps.warning]
        last = profile.samples.location_offsets[dumps.sample + 1] - 1
        wanted = kept[dumps.sample]
        is_open = wanted & places[profile.samples.locations[last]]
        if cut := int(wanted.sum() - is_open.sum()):
            warnings.append(f"{cut:,} stacks were not unwound before frames were filtered: they lack their callers")
        dumps = dumps.taken(is_open, kept)
        warnings += [dumps.warning] if len(dumps) else []
    return replace(profile, sample_times=times, stack_dumps=dumps or None, warnings=warnings)


def filtered(profile: Profile, **expressions: str) -> Profile:
    """What `Filters` of `expressions` leave, see `Profile.filter`."""
    return compact(combine(selected(profile, Filters(**expressions))))


def keys_in(text: str) -> list[str]:
    """The keys of labels in a list with commas."""
    return [key for each in text.split(",") if (key := each.strip())]


def any_of(lines: Bool, places: Bool, offsets: np.ndarray) -> Bool:
    """Which locations are chosen, or have a line that is: bool[n]."""
    total = offsets_of(lines)
    found: Bool = places | (total[offsets[1:]] > total[offsets[:-1]])
    return found


def matching(profile: Profile, name: str, expression: str) -> tuple[Bool, Bool]:
    """Which lines match by name or source file, and which locations by their mapping, or by what is shown of a function
    without a name."""
    matches = compiled(name, expression)
    strings, functions = profile.strings, profile.functions
    texts: dict[int, bool] = {0: False}

    def match(row: int) -> bool:
        if row not in texts:
            texts[row] = matches(strings.text(row))
        return texts[row]

    by_function = [
        match(a) or match(b) for a, b in zip(functions.name.tolist(), functions.filename.tolist(), strict=True)
    ]
    by_mapping = [match(row) for row in profile.mappings.filename.tolist()]
    # The last of each is for no function and no mapping.
    locations = profile.locations
    lines = np.array([*by_function, False], np.bool_)[locations.lines.function]
    places = np.array([*by_mapping, False], np.bool_)[locations.mapping]
    rows = np.flatnonzero((locations.function_starts() > 0) & ~locations.has_lines() & ~places)
    if len(rows):
        modules, module_of = module_names(profile)
        starts, which = distinct_inverse(locations.function_start[rows])
        pairs, which = distinct_inverse(pair(module_of[locations.mapping[rows]], which))
        names = (unnamed_frame(modules[row], int(starts[at])) for row, at in zip(*unpair(pairs), strict=True))
        places[rows] = np.array([*map(matches, names)], np.bool_)[which]
    return lines, places

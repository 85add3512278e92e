"""Choosing samples and frames by regular expressions, and samples by labels, with the meaning that pprof gives them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from symbolize.core.arrays import Bool, marked, offsets_of
from symbolize.core.errors import check_type
from symbolize.core.expressions import compiled
from symbolize.profile import Profile, combine, compact


@dataclass(frozen=True)
class Filters:
    """What is shown or written of a profile. Empty expressions do nothing.

    Regular expressions are searched in the name and source file of a function and in the path of its mapping: `focus`
    keeps the samples with a match on their stack, `ignore` drops them; `hide` removes the frames that match and `show`
    all others. A sample without frames left is dropped.

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
                from symbolize.analysis.label_filters import parsed_filter

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
    if filters.tagfocus or filters.tagignore:
        from symbolize.analysis.label_filters import samples_with_label
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
        from symbolize.analysis.label_filters import labels_shown

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
    """Which lines match by name or source file, and which locations by their mapping."""
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
    lines = np.array([*by_function, False], np.bool_)[profile.locations.lines.function]
    places = np.array([*by_mapping, False], np.bool_)[profile.locations.mapping]
    return lines, places

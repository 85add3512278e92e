"""Attributes and links of samples as labels."""

from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import Bool, Int32, Int64, UInt64, distinct_inverse, offsets_of, ranges
from symbolize.formats.otlp.dictionary import BOOL, INT, STRING, STRING_INDEX, Dictionary, Value, last_of, value_text
from symbolize.profile.model import Labels, Strings
from symbolize.proto import otlp_profiles_tags as tags

TRACE_ID, SPAN_ID = b"trace_id", b"span_id"
"""Labels of the span that a sample is linked to."""


LABEL_COST: Final = 60
"""Bytes of a label while it is made."""


class StringNumbers:
    """The strings of a dictionary in a profile, each added when it is first used."""

    def __init__(self, dictionary: Dictionary, strings: Strings) -> None:
        self._dictionary = dictionary
        self.strings = strings

    def of(self, column: UInt64) -> Int32:
        """The strings of the profile for a column of string numbers of the dictionary."""
        used, which = distinct_inverse(column)
        text = self._dictionary.text
        return self.strings.add_all(map(text, used.tolist())).astype(np.int32)[which]


class Groups(NamedTuple):
    """Labels by what they are made of: group i has the rows `offsets[i]` up to `offsets[i + 1]` of `labels`."""

    offsets: Int64
    labels: Labels


def attribute_labels(dictionary: Dictionary, strings: StringNumbers, used: Int64) -> Groups:
    """The labels of some attributes of the table, a group each; an array has a label for each item."""
    attributes, values = dictionary.attributes, dictionary.values
    rows = values.rows
    kind = rows.last[used]
    key = strings.of(attributes.number(tags.KEY_VALUE_AND_UNIT_KEY_STRINDEX)[used])
    unit = strings.of(attributes.number(tags.KEY_VALUE_AND_UNIT_UNIT_STRINDEX)[used])
    text, number = np.zeros(len(used), np.int32), np.zeros(len(used), np.int64)
    here = kind == STRING_INDEX
    text[here] = strings.of(rows.number(tags.ANY_VALUE_STRING_VALUE_STRINDEX)[used[here]])
    here = kind == INT
    number[here] = rows.signed(tags.ANY_VALUE_INT_VALUE)[used[here]]
    # Without a unit pprof takes 0 for no label (R270, numbers of tasks).
    own_unit = np.where(here, np.where((number == 0) & (unit == 0), key, unit), 0)
    here = kind == BOOL
    words = strings.strings.add_all([b"false", b"true"]) if here.any() else np.zeros(2, np.uint32)
    text[here] = words[(rows.number(tags.ANY_VALUE_BOOL_VALUE)[used[here]] != 0).astype(np.int64)]
    here = kind == STRING
    spans = rows.spans(tags.ANY_VALUE_STRING_VALUE)
    at = spans.offsets[used[here] + 1] - 1
    texts = [
        bytes(dictionary.data[begin:end])
        for begin, end in zip(spans.begins[at].tolist(), spans.ends[at].tolist(), strict=True)
    ]
    text[here] = strings.strings.add_all(texts)
    counts = np.ones(len(used), np.int64)
    others = np.flatnonzero((kind != STRING_INDEX) & (kind != INT) & (kind != BOOL) & (kind != STRING))
    items: dict[int, list[tuple[int, int]]] = {}
    for row in others.tolist():
        value = values[int(used[row])]
        each = value if isinstance(value, list) else [value]
        dictionary.repeated.spend(sum(len(one) for one in each if isinstance(one, bytes)))
        items[row] = [label_of(strings.strings, one) for one in each]
        counts[row] = len(items[row])
    offsets = offsets_of(counts)
    origin = np.repeat(np.arange(len(used)), counts)
    labels = Labels(key[origin], text[origin], number[origin], own_unit[origin])
    for row, pairs in items.items():
        first = int(offsets[row])
        for at_label, (one_text, one_number) in enumerate(pairs, first):
            labels.text[at_label], labels.number[at_label] = one_text, one_number
            labels.unit[at_label] = 0 if one_text else unit[row]
    return Groups(offsets, labels)


def label_of(strings: Strings, value: Value) -> tuple[int, int]:
    """Text and number of a label with a value."""
    if isinstance(value, int) and not isinstance(value, bool):
        return 0, value
    return strings.add(value_text(value).encode("utf-8", "surrogateescape")), 0


def link_labels(dictionary: Dictionary, strings: Strings, used: Int64) -> Groups:
    """The labels of some links, a group each: the ids that are not zero, in hex digits."""
    trace, span = dictionary.links.spans(tags.LINK_TRACE_ID), dictionary.links.spans(tags.LINK_SPAN_ID)
    counts: list[int] = []
    keys: list[int] = []
    texts: list[int] = []
    names = strings.add(TRACE_ID), strings.add(SPAN_ID)
    for link in used.tolist():
        before = len(keys)
        for name, ids in zip(names, (trace, span), strict=True):
            if ids.offsets[link] < ids.offsets[link + 1]:
                begin, end = last_of(ids, link)
                if any(raw := bytes(dictionary.data[begin:end])):
                    keys.append(name)
                    texts.append(strings.add(raw.hex().encode()))
        counts.append(len(keys) - before)
    labels = Labels.zeros(len(keys))
    labels.key, labels.text = np.array(keys, np.int32), np.array(texts, np.int32)
    return Groups(offsets_of(counts), labels)


def sample_labels(
    dictionary: Dictionary, strings: StringNumbers, offsets: Int64, attributes: UInt64, links: UInt64
) -> tuple[Int64, Labels]:
    """The labels of samples, as offsets and labels: sample i has the attributes `offsets[i]` up to `offsets[i + 1]` and
    a link, 0 for none."""
    good = _good(dictionary, "attributes", attributes, len(dictionary.attributes))
    used, which = distinct_inverse(attributes[good].astype(np.int64))
    groups = attribute_labels(dictionary, strings, used)
    linked = _good(dictionary, "links", links, len(dictionary.links))
    used_links, link_which = distinct_inverse(links[linked].astype(np.int64))
    if len(used_links):
        more = link_labels(dictionary, strings.strings, used_links)
        labels = Labels.joined([groups.labels, more.labels])
        groups = Groups(np.concatenate((groups.offsets, more.offsets[1:] + groups.offsets[-1])), labels)
    total = offsets_of(good)
    counts = total[offsets[1:]] - total[offsets[:-1]]
    entries = np.empty(len(which) + len(link_which), np.int64)
    ends = np.cumsum(counts + linked)
    is_link = np.zeros(len(entries), np.bool_)
    is_link[ends[linked] - 1] = True
    entries[is_link], entries[~is_link] = len(used) + link_which, which
    sizes = np.diff(groups.offsets)[entries]
    labels_before = offsets_of(sizes)
    dictionary.repeated.spend(max(int(labels_before[-1]) - len(attributes), 0) * LABEL_COST)
    rows = ranges(groups.offsets[entries], sizes)
    return labels_before[np.concatenate(([0], ends))], groups.labels.take(rows)


def _good(dictionary: Dictionary, what: str, column: UInt64, count: int) -> Bool:
    """Which of a column of indices denote a row, other than 0, which is none."""
    outside = column >= np.uint64(max(count, 1))
    dictionary.note(what, int(outside.sum()))
    good: Bool = ~outside & (column != 0)
    return good

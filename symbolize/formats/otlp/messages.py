"""A message of OTLP profiles as columns: the tables that all its profiles share, its resources, scopes and profiles,
and the samples of all of them."""

import json
import math
import struct
from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import NONE, Bool, Int64, UInt64, distinct, distinct_inverse, is_among, offsets_of
from symbolize.core.budget import MEMORY, Budget
from symbolize.core.errors import InputError
from symbolize.core.messages import MessageLayout, Rows, Spans
from symbolize.core.protobuf import BYTES, NUMBER, VARINT, WIRE_TYPE
from symbolize.core.string_array import StringArray
from symbolize.formats.otlp import layouts
from symbolize.names.stand_ins import says_nothing, stand_ins
from symbolize.proto import otlp_profiles_tags as tags

FRAME_TYPE: Final = b"profile.frame.type"
IS_FOLDED: Final = b"pprof.location.is_folded"

MAX_DEPTH: Final = 32
MAX_NESTED: Final = 1 << 16
MAX_ITEMS: Final = 1 << 18
"""How deep attribute values nest, how many that hold others are read, and how many are in those and in lists of
attributes that are in no table."""

Value = str | bytes | int | float | bool | list[Any] | dict[str, Any] | None
"""An attribute value; bytes are those of strings, a string is hex digits of bytes."""

STRING, ARRAY, MAP, RAW = (
    tag >> NUMBER
    for tag in (
        tags.ANY_VALUE_STRING_VALUE,
        tags.ANY_VALUE_ARRAY_VALUE,
        tags.ANY_VALUE_KVLIST_VALUE,
        tags.ANY_VALUE_BYTES_VALUE,
    )
)
BOOL, INT, DOUBLE, STRING_INDEX = (
    tag >> NUMBER
    for tag in (
        tags.ANY_VALUE_BOOL_VALUE,
        tags.ANY_VALUE_INT_VALUE,
        tags.ANY_VALUE_DOUBLE_VALUE,
        tags.ANY_VALUE_STRING_VALUE_STRINDEX,
    )
)
"""Numbers of the fields of a value."""
SPANS: Final = {tag >> NUMBER: tag for tag in layouts.VALUE.spans}

MAX_PROFILES: Final = 1 << 16
"""Profiles of one message, resources and scopes; an agent has one for each container of a host."""

FRAMES: Final = (64 << 20, 64, MEMORY)
"""Bytes of stacks, which are written out for each sample, and of locations and lines, which each profile has: in any
case, and for each byte of the messages. Deep stacks that many samples share take 50 times their size."""
REPEATED: Final = (64 << 20, 24, MEMORY)
"""Bytes of labels while they are made, and of texts that each profile has, likewise (R276, size of tables)."""

MESSAGE_1_6: Final = MessageLayout(spans=(6 << NUMBER | BYTES,))
"""The strings, which the message itself had in 1.6."""
PROFILE_1_7: Final = MessageLayout(
    numbers=(tags.PROFILE_PERIOD_TYPE & ~WIRE_TYPE | VARINT,), spans=(tags.PROFILE_TIME_UNIX_NANO & ~WIRE_TYPE | BYTES,)
)
"""What profiles have only before 1.8: a duration, and a list of locations or of mappings."""

MAX_LOOKED_AT: Final = 1 << 16
"""Samples that decide which order of fields they have."""

OLD_VALUES, OLD_ATTRIBUTES, OLD_LINK = (
    tags.SAMPLE_ATTRIBUTE_INDICES,
    tags.SAMPLE_LINK_INDEX,
    tags.SAMPLE_VALUES,
)
"""The tags that fields of samples had in 1.8 and 1.9, which are those of others now."""
OLD_SAMPLE: Final = MessageLayout(
    numbers=(tags.SAMPLE_STACK_INDEX, OLD_LINK),
    lists=(OLD_VALUES, OLD_ATTRIBUTES, tags.SAMPLE_TIMESTAMPS_UNIX_NANO),
)
PACKED_SAMPLE: Final = MessageLayout(
    spans=(tags.SAMPLE_ATTRIBUTE_INDICES_PACKED, tags.SAMPLE_LINK_INDEX | BYTES, tags.SAMPLE_VALUES_PACKED)
)
EITHER_SAMPLE: Final = MessageLayout(
    lists=(
        tags.SAMPLE_ATTRIBUTE_INDICES,
        tags.SAMPLE_LINK_INDEX,
        tags.SAMPLE_VALUES,
        tags.SAMPLE_TIMESTAMPS_UNIX_NANO,
    )
)


def index_of(column: UInt64, count: int) -> Int64:
    """A column of indices of a table with `count` rows, NONE for those outside. 0 is none, and needs no table."""
    return np.where(column < np.uint64(max(count, 1)), column.astype(np.int64), NONE)


def last_of(spans: Spans, row: int) -> tuple[int, int]:
    """Begin and end of the last span of a row."""
    at = int(spans.offsets[row + 1]) - 1
    return int(spans.begins[at]), int(spans.ends[at])


class Values:
    """Attribute values of `data`; strings by number are those of `dictionary`."""

    def __init__(self, data: memoryview, spans: Spans, dictionary: "Dictionary") -> None:
        self.data = data
        self.rows = Rows(data, spans, layouts.VALUE, dictionary.budget)
        self._dictionary = dictionary
        self._spans: dict[int, Spans] = {}
        self._known: dict[int, Value] = {}

    def __getitem__(self, row: int) -> Value:
        """The value of a row, which is read once, however often it is referred to."""
        if row not in self._known:
            self._known[row] = self.value(row, 0)
        return self._known[row]

    def value(self, row: int, depth: int) -> Value:
        """The value of a row that is inside so many others."""
        kind = int(self.rows.last[row])
        if kind in SPANS:
            if kind not in self._spans:
                self._spans[kind] = self.rows.spans(SPANS[kind])
            begin, end = last_of(self._spans[kind], row)
            return self._inside(kind, begin, end, depth)
        if kind == STRING_INDEX:
            return self._dictionary.repeat(int(self.rows.number(tags.ANY_VALUE_STRING_VALUE_STRINDEX)[row]))
        if kind == BOOL:
            return bool(self.rows.number(tags.ANY_VALUE_BOOL_VALUE)[row])
        if kind == INT:
            return int(self.rows.signed(tags.ANY_VALUE_INT_VALUE)[row])
        if kind == DOUBLE:
            (number,) = struct.unpack("<d", struct.pack("<Q", int(self.rows.number(tags.ANY_VALUE_DOUBLE_VALUE)[row])))
            return float(number)
        return None

    def _inside(self, kind: int, begin: int, end: int, depth: int) -> Value:
        """What a string, array, map or run of bytes is."""
        if kind == STRING:
            return bytes(self.data[begin:end])
        if kind == RAW:
            return self.data[begin:end].hex()
        self._dictionary.count_nested(depth)
        span = Spans.of(begin, end)
        if kind == ARRAY:
            items = Rows(self.data, span, layouts.ARRAY, self._dictionary.budget).spans(tags.ARRAY_VALUE_VALUES)
            self._dictionary.count_items(len(items))
            values = Values(self.data, items, self._dictionary)
            return [values.value(row, depth + 1) for row in range(len(items))]
        pairs = Rows(self.data, span, layouts.PAIRS, self._dictionary.budget).spans(tags.KEY_VALUE_LIST_VALUES)
        return dict(self._dictionary.pairs(pairs, depth + 1))


class Dictionary:
    """The tables of a message. `problems` count what refers to rows that are not there, by what it is; `budget` is for
    columns, `repeated` for texts and labels that rows have by reference.

    The dictionary may come first, in parts, or last; lengths and numbers may have more bytes than they need, lists may
    be unpacked, zeros may be there, strings need not be UTF-8. A reference to a row that is not there is dropped, a
    sample whose stack is not there is left out; both are reported (R327, encodings of OTLP).
    """

    def __init__(self, data: memoryview, spans: Spans, budget: Budget, repeated: Budget) -> None:
        self.data = data
        self.budget = budget
        self.repeated = repeated
        self.problems: dict[str, int] = {}
        self._nested = self._items = 0
        self._texts: dict[int, bytes] = {}
        self._called: dict[bytes, Int64] = {}
        tables = Rows(data, spans, layouts.DICTIONARY, budget)
        self.strings = tables.spans(tags.PROFILES_DICTIONARY_STRING_TABLE)
        self.mappings = self._table(tables, tags.PROFILES_DICTIONARY_MAPPING_TABLE, layouts.MAPPING)
        self.locations = self._table(tables, tags.PROFILES_DICTIONARY_LOCATION_TABLE, layouts.LOCATION)
        self.functions = self._table(tables, tags.PROFILES_DICTIONARY_FUNCTION_TABLE, layouts.FUNCTION)
        self.links = self._table(tables, tags.PROFILES_DICTIONARY_LINK_TABLE, layouts.LINK)
        self.attributes = self._table(tables, tags.PROFILES_DICTIONARY_ATTRIBUTE_TABLE, layouts.ATTRIBUTE)
        self.stacks = self._table(tables, tags.PROFILES_DICTIONARY_STACK_TABLE, layouts.STACK)
        self.unknown = sum(
            each.unknown for each in (tables, self.mappings, self.locations, self.functions, self.links, self.stacks)
        )

    def _table(self, tables: Rows, tag: int, layout: MessageLayout) -> Rows:
        return Rows(self.data, tables.spans(tag), layout, self.budget)

    def note(self, what: str, count: int) -> None:
        """Count what refers to nothing."""
        if count:
            self.problems[what] = self.problems.get(what, 0) + count

    def count_nested(self, depth: int) -> None:
        """Count an attribute value that holds others, which is inside so many. Raises InputError for too many."""
        self._nested += 1
        if depth > MAX_DEPTH or self._nested > MAX_NESTED:
            raise InputError(self.budget.source, "has attribute values that nest as only a bomb's do")

    def count_items(self, count: int) -> None:
        """Count values that become objects. Raises InputError for too many."""
        self._items += count
        if self._items > MAX_ITEMS:
            raise InputError(self.budget.source, f"has more than {MAX_ITEMS} attributes that are in no table")

    def text(self, index: int) -> bytes:
        """A string, which is read once; an empty one where there is none of that number."""
        if not 0 <= index < len(self.strings):
            self.note("strings", 1)
            return b""
        if index not in self._texts:
            self._texts[index] = bytes(self.data[int(self.strings.begins[index]) : int(self.strings.ends[index])])
        return self._texts[index]

    def repeat(self, index: int) -> bytes:
        """A string for one of perhaps many that have it."""
        text = self.text(index)
        self.repeated.spend(len(text))
        return text

    @cached_property
    def lines(self) -> Rows:
        """The lines of all locations."""
        return Rows(self.data, self.locations.spans(tags.LOCATION_LINES), layouts.LINE, self.budget)

    @cached_property
    def line_functions(self) -> Int64:
        """The function of each line; NONE for those that name none."""
        found = index_of(self.lines.number(tags.LINE_FUNCTION_INDEX), len(self.functions))
        return np.where(found > 0, found, NONE)

    @cached_property
    def without_names(self) -> Bool:
        """Which locations have no lines, or only such as stand in for names (R452, stand-ins): bool[n]."""
        numbers = self.functions.number(tags.FUNCTION_NAME_STRINDEX)
        files = self.functions.number(tags.FUNCTION_FILENAME_STRINDEX)
        used, which = distinct_inverse(np.minimum(numbers, np.uint64(len(self.strings))))
        texts = [self.text(each) if each < len(self.strings) else b"" for each in used.tolist()]
        is_sure, is_any = np.zeros((2, len(used)), np.bool_)
        for row, found in stand_ins(StringArray.of(texts)):
            is_any[row], is_sure[row] = True, not found.may_be_name
        is_stand_in = np.append(is_sure[which], False)  # the last is for no function
        for row in np.flatnonzero(is_any[which] & ~is_sure[which]).tolist():
            file = self.text(int(files[row])) if files[row] < len(self.strings) else b""
            is_stand_in[row] = not file or says_nothing(file)
        total = offsets_of(~is_stand_in[self.line_functions])
        offsets = self.locations.spans(tags.LOCATION_LINES).offsets
        without: Bool = total[offsets[1:]] == total[offsets[:-1]]
        return without

    @cached_property
    def location_mappings(self) -> Int64:
        """The mapping of each location, 0 for none, NONE for one that is not there."""
        return index_of(self.locations.number(tags.LOCATION_MAPPING_INDEX), len(self.mappings))

    @cached_property
    def usable_stacks(self) -> Bool:
        """Which stacks consist of locations that are there: bool[n]."""
        offsets, items = self.stacks.list(tags.STACK_LOCATION_INDICES)
        outside = np.concatenate(([0], np.cumsum(items >= np.uint64(len(self.locations)))))
        usable: Bool = outside[offsets[1:]] == outside[offsets[:-1]]
        return usable

    @cached_property
    def values(self) -> Values:
        """The values of the attributes, a row each, without one an empty value."""
        spans = self.attributes.spans(tags.KEY_VALUE_AND_UNIT_VALUE)
        at = spans.offsets[1:] - 1
        has_value = spans.offsets[1:] > spans.offsets[:-1]
        begins, ends = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
        begins[has_value], ends[has_value] = spans.begins[at[has_value]], spans.ends[at[has_value]]
        return Values(self.data, Spans(np.array([0, len(at)]), begins, ends), self)

    @cached_property
    def frame_types(self) -> tuple[list[bytes], Int64]:
        """The types of frames, of which the first is none, and the number of the one that each attribute is, 0 for
        other attributes; the last is for those that are not there."""
        numbers: dict[bytes, int] = {b"": 0}
        number_of = np.zeros(len(self.attributes) + 1, np.int64)
        for attribute in self.called(FRAME_TYPE).tolist():
            value = self.values[attribute]
            if isinstance(value, bytes):
                number_of[attribute] = numbers.setdefault(value, len(numbers))
        return list(numbers), number_of

    @cached_property
    def folded(self) -> UInt64:
        """The attributes that say that a location has code of several functions."""
        return np.array([row for row in self.called(IS_FOLDED).tolist() if self.values[row] is True], np.uint64)

    @cached_property
    def keys(self) -> dict[int, bytes]:
        """The keys of all attributes by the numbers of their strings."""
        numbers = distinct(self.attributes.number(tags.KEY_VALUE_AND_UNIT_KEY_STRINDEX)).tolist()
        return {number: self.text(number) for number in numbers}

    def called(self, key: bytes) -> Int64:
        """The attributes with a key, which are looked for once."""
        if key not in self._called:
            numbers = np.array([number for number, text in self.keys.items() if text == key], np.uint64)
            column = self.attributes.number(tags.KEY_VALUE_AND_UNIT_KEY_STRINDEX)
            self._called[key] = np.flatnonzero(is_among(column, numbers))
        return self._called[key]

    def attributes_of(self, indices: NDArray[Any]) -> dict[bytes, Value]:
        """The attributes in a list, by their keys."""
        found: dict[bytes, Value] = {}
        key = self.attributes.number(tags.KEY_VALUE_AND_UNIT_KEY_STRINDEX)
        for index in indices.tolist():
            if 0 < index < len(self.attributes):
                found[self.keys[int(key[index])]] = self.values[index]
            else:
                self.note("attributes", index != 0)
        return found

    def pairs(self, spans: Spans, depth: int = 0) -> list[tuple[str, Value]]:
        """Keys and values that are no rows of a table."""
        self.count_items(len(spans))
        rows = Rows(self.data, spans, layouts.PAIR, self.budget)
        keys, contents = rows.spans(tags.KEY_VALUE_KEY), rows.spans(tags.KEY_VALUE_VALUE)
        numbers = rows.number(tags.KEY_VALUE_KEY_STRINDEX)
        values = Values(self.data, contents, self)
        found: list[tuple[str, Value]] = []
        for row in range(len(rows)):
            key = self.repeat(int(numbers[row])) if numbers[row] else b""
            if keys.offsets[row] < keys.offsets[row + 1]:
                begin, end = last_of(keys, row)
                key = bytes(self.data[begin:end])
            at = int(contents.offsets[row + 1]) - 1
            value = values.value(at, depth) if at >= contents.offsets[row] else None
            found.append((shown(key), value))
        return found


def shown(text: bytes) -> str:
    """Bytes as a text from which they can be made again."""
    return text.decode("utf-8", "surrogateescape")


def value_text(value: Value) -> str:
    """A value as text, as a label or comment has it."""
    if isinstance(value, bytes):
        return shown(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json.dumps(plain(value), ensure_ascii=False)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    return "" if value is None else str(value)


def plain(value: Value) -> Any:
    """A value of what JSON knows."""
    if isinstance(value, bytes):
        return shown(value)
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value


def texts_of(value: Value) -> Sequence[bytes]:
    """A string, or all strings of an array."""
    each = value if isinstance(value, list) else [value]
    return [text for text in each if isinstance(text, bytes)]


class Made:
    """What may be made of the messages of an input, which is called `source`, by the bytes that they have."""

    def __init__(self, source: str, size: int) -> None:
        self.frames = Budget(source, size, *FRAMES)
        self.repeated = Budget(source, size, *REPEATED)

    def begin(self, profile: Hashable) -> None:
        """Count what follows as that of a profile, which is made anew if it was made before."""
        self.frames.begin(profile)
        self.repeated.begin(profile)


class Message:
    """A message. Row i of `profiles` is in scope `scope_of[i]`, that in resource `resource_of[scope]`, and has the
    samples `sample_offsets[i]` up to `sample_offsets[i + 1]`. `first_location` is the number of locations in the
    messages before it; `budget` is for its columns, `made` for what is made of all messages."""

    def __init__(self, data: memoryview, budget: Budget, made: Made, first_location: int) -> None:
        self.first_location = first_location
        self.data = data
        self.budget = budget
        self.made = made
        message = Rows(data, Spans.of(0, len(data)), layouts.MESSAGE, budget)
        self.resources = self._rows(message.spans(tags.PROFILES_DATA_RESOURCE_PROFILES), layouts.RESOURCE_PROFILES)
        self.scopes = self._rows(self.resources.spans(tags.RESOURCE_PROFILES_SCOPE_PROFILES), layouts.SCOPE_PROFILES)
        profiles = self.scopes.spans(tags.SCOPE_PROFILES_PROFILES)
        dictionary = message.spans(tags.PROFILES_DATA_DICTIONARY)
        check_version(data, Spans.of(0, len(data)), profiles, len(dictionary) > 0, budget)
        self.profiles = self._rows(profiles, layouts.PROFILE)
        self.dictionary = Dictionary(data, dictionary, budget, made.repeated)
        self.resource_of = _owners(self.resources.spans(tags.RESOURCE_PROFILES_SCOPE_PROFILES))
        self.scope_of = _owners(profiles)
        samples = self.profiles.spans(tags.PROFILE_SAMPLES)
        self.sample_offsets = samples.offsets
        self.is_old = has_old_samples(data, samples, self.dictionary)
        self._layout = OLD_SAMPLE if self.is_old else layouts.SAMPLE
        self.samples = Rows(data, samples, self._layout, budget)
        self.unknown = (
            self.profiles.unknown
            + self.samples.unknown
            + message.unknown
            + self.resources.unknown
            + self.scopes.unknown
            + self.dictionary.unknown
        )

    def _rows(self, spans: Spans, layout: MessageLayout) -> Rows:
        """The rows of what a message has few of."""
        if len(spans) > MAX_PROFILES:
            raise InputError(self.budget.source, f"has more than {MAX_PROFILES} resources, scopes or profiles")
        return Rows(self.data, spans, layout, self.budget)

    @cached_property
    def value_types(self) -> dict[int, UInt64]:
        """Type and unit of the values and of the period of each profile, by the tag of the field: numbers of strings,
        uint64[n, 2], 0 where there is none."""
        found = {}
        for tag in (tags.PROFILE_SAMPLE_TYPE, tags.PROFILE_PERIOD_TYPE):
            spans = self.profiles.spans(tag)
            rows = Rows(self.data, spans, layouts.VALUE_TYPE, self.budget)
            has_type = np.diff(spans.offsets) > 0
            found[tag] = np.zeros((len(self.profiles), 2), np.uint64)
            for column, field in enumerate(layouts.VALUE_TYPE.numbers):
                found[tag][has_type, column] = rows.number(field)[spans.offsets[1:][has_type] - 1]
        return found

    @property
    def stacks(self) -> UInt64:
        """The stack of each sample."""
        return self.samples.number(tags.SAMPLE_STACK_INDEX)

    @property
    def links(self) -> UInt64:
        """The link of each sample."""
        return self.samples.number(OLD_LINK if self.is_old else tags.SAMPLE_LINK_INDEX)

    @property
    def attributes(self) -> tuple[Int64, UInt64]:
        """The attributes of each sample, as offsets and items."""
        return self.samples.list(OLD_ATTRIBUTES if self.is_old else tags.SAMPLE_ATTRIBUTE_INDICES)

    @property
    def values(self) -> tuple[Int64, Int64]:
        """The values of each sample, as offsets and items."""
        offsets, items = self.samples.list(OLD_VALUES if self.is_old else tags.SAMPLE_VALUES)
        return offsets, items.view(np.int64)

    @property
    def timestamps(self) -> tuple[Int64, UInt64]:
        """The times of the events of each sample, as offsets and items."""
        return self.samples.list(tags.SAMPLE_TIMESTAMPS_UNIX_NANO)


def _owners(spans: Spans) -> Int64:
    """The row that each span is of."""
    return np.repeat(np.arange(len(spans.offsets) - 1), np.diff(spans.offsets))


def check_version(data: memoryview, message: Spans, profiles: Spans, has_dictionary: bool, budget: Budget) -> None:
    """Raise InputError for a message of a version before 1.8, which has other tables (R318, versions of OTLP).

    Nothing in a message says its version. Until 1.6 the message or each profile has its tables, and until 1.7 profiles
    have lists, or numbers, where they have other things now.
    """
    version = ""
    if Rows(data, message, MESSAGE_1_6, budget).last.any():
        version = "1.6"
    elif Rows(data, profiles, PROFILE_1_7, budget).last.any():
        version = "1.7" if has_dictionary else "1.5 or earlier"
    if version:
        raise InputError(
            budget.source,
            f"is OTLP of opentelemetry-proto {version}, whose profiles have another structure; what is read is 1.8 and "
            "later (September 2025): update the profiler or collector that wrote it",
        )


def has_old_samples(data: memoryview, samples: Spans, dictionary: Dictionary) -> bool:
    """Whether samples have the order of fields of 1.8 and 1.9, in which values are field 2 and attributes field 3
    (R319, samples of OTLP 1.8).

    Values are 2 and attributes 3 there; now attributes are 2, and values 4. A list where there is a number now decides,
    and a sample without values or times in one of the orders. Encoders that do not pack lists leave it to the values.
    Indices beyond their tables decide where both are numbers or field 2 alone is packed, then what is packed; else the
    order is the new one.
    """
    budget = dictionary.budget
    samples = samples.take(np.arange(0, len(samples), 1 + len(samples) // MAX_LOOKED_AT))
    packed = Rows(data, samples, PACKED_SAMPLE, budget)
    second, third, fourth = (len(packed.spans(tag)) for tag in PACKED_SAMPLE.spans)
    if third or fourth:
        return not fourth
    numbers = Rows(data, samples, EITHER_SAMPLE, budget)
    has = {tag: np.diff(numbers.list(tag)[0]) > 0 for tag in EITHER_SAMPLE.lists}
    has_old, has_new = has[OLD_VALUES], has[tags.SAMPLE_VALUES]
    has_times = has[tags.SAMPLE_TIMESTAMPS_UNIX_NANO]
    if (has_old & ~has_new & ~has_times).any():
        return True
    if (~has_old & ~has_times).any() or not (has_old & has_new).all():
        return False
    # Each sample has a list as field 2 and a number as field 4: two lists, or one and a link.
    links, attributes = numbers.list(OLD_LINK)[1], numbers.list(OLD_VALUES)[1]
    if len(links) and int(links.max()) >= max(len(dictionary.links), 1):
        return False
    return second > 0 or (len(attributes) > 0 and int(attributes.max()) >= max(len(dictionary.attributes), 1))

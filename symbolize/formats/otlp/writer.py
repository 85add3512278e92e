"""Profiles out, as a message of OTLP profiles (opentelemetry-proto 1.10, R325, OTLP that is written)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core import encoder
from symbolize.core.arrays import Bool, Int32, Int64, distinct_inverse, gather_lists, offsets_of, pair
from symbolize.core.budget import Budget
from symbolize.core.interning import Lists, random_mixer
from symbolize.core.messages import Messages, Number, Numbers, Raw
from symbolize.core.protobuf import field, varint
from symbolize.profile.combine import compact
from symbolize.profile.facts import with_comment
from symbolize.profile.model import Profile, Strings, ValueType
from symbolize.proto import otlp_profiles_tags as tags

MASK64: Final = (1 << 64) - 1
TRACE_ID, SPAN_ID = b"trace_id", b"span_id"
TRACE, SPAN = re.compile(rb"(?!0*$)[0-9a-f]{32}"), re.compile(rb"(?!0*$)[0-9a-f]{16}")
NO_LINK: Final = bytes(16), bytes(8)
HEX: Final = re.compile(rb"(?:[0-9a-fA-F]{2})+")
HASH_PREFIX: Final = b"htlhash:"
BUILD_ID: Final = b"process.executable.build_id."
IS_FOLDED: Final = b"pprof.location.is_folded"
COMMENT: Final = b"pprof.profile.comment"
RESOURCE: Final = re.compile(rb"resource: ([^=]+)=(.*)", re.DOTALL)
"""How comments name the attributes of a resource."""
PID: Final = b"process.pid"
DECIMAL: Final = re.compile(rb"0|[1-9][0-9]{0,17}")
REPEATED: Final = (
    1 << 24,
    64,
    "has too many sample types and labels for OTLP, which repeats samples for each type: {spent:,} or more",
)
"""What OTLP has of samples beside their values, for each sample type."""
FLAGS: Final = ("has_functions", "has_filenames", "has_line_numbers", "has_inline_frames")

Value = bytes | bool | int | None | list["Value"]


def pieces(profile: Profile) -> Iterator[bytes]:
    """The message: one resource and one scope with a profile for each sample type, and their dictionary.

    The first row of each table is zero, that of links with 16 and 8 bytes; locations, stacks, attributes and links are
    written once; a key occurs once in a list of attributes, several labels of a key are an array; each sample has one
    value; the period type is there, also if it is empty. A profile without sample types, and so without samples, has
    one without a name (R325, OTLP that is written).

    Equal profiles give equal bytes. What is not UTF-8 comes out as `\\xNN`, because proto3 demands UTF-8. Raises
    InputError for a profile with far too many sample types and labels.
    """
    samples = profile.samples
    if not profile.sample_types:  # a message without a profile is none that can be read
        samples = replace(samples, values=np.zeros((len(samples), 1), np.int64))
        profile = replace(profile, sample_types=[ValueType()], samples=samples)
    size = len(samples) + len(samples.labels) + samples.values.size
    Budget(profile.source or "profile", size, *REPEATED).spend(
        len(profile.sample_types) * (len(samples) + len(samples.labels))
    )
    writer = Writer(with_comment(compact(profile)))
    profiles = [field(tags.SCOPE_PROFILES_SCOPE, writer.scope())]
    for column in range(len(profile.sample_types)):
        profiles += framed(tags.SCOPE_PROFILES_PROFILES, writer.profile(column))
    scopes = framed(tags.RESOURCE_PROFILES_SCOPE_PROFILES, profiles)
    resource = field(tags.RESOURCE_PROFILES_RESOURCE, pairs_of(tags.RESOURCE_ATTRIBUTES, writer.resource))
    yield from framed(tags.PROFILES_DATA_RESOURCE_PROFILES, [resource, *scopes])
    yield from framed(tags.PROFILES_DATA_DICTIONARY, writer.dictionary())


def framed(tag: int, content: Iterable[bytes]) -> list[bytes]:
    """A length-delimited field, whose content is in pieces."""
    parts = list(content)
    return [varint(tag) + varint(sum(map(len, parts))), *parts]


def utf8(text: bytes) -> bytes:
    """The same text; bytes that are not UTF-8 as `\\xNN`."""
    return text if text.isascii() else text.decode("utf-8", "backslashreplace").encode()


def any_value(value: Value) -> bytes:
    """An AnyValue."""
    if isinstance(value, bool):
        return varint(tags.ANY_VALUE_BOOL_VALUE) + varint(value)
    if isinstance(value, int):
        return varint(tags.ANY_VALUE_INT_VALUE) + varint(value & MASK64)
    if isinstance(value, list):
        items = b"".join(field(tags.ARRAY_VALUE_VALUES, any_value(each)) for each in value)
        return field(tags.ANY_VALUE_ARRAY_VALUE, items)
    return b"" if value is None else field(tags.ANY_VALUE_STRING_VALUE, utf8(value))


def pairs_of(tag: int, pairs: Iterable[tuple[bytes, Value]]) -> bytes:
    """Attributes that are in no table, as fields."""
    return b"".join(
        field(tag, field(tags.KEY_VALUE_KEY, utf8(key)) + field(tags.KEY_VALUE_VALUE, any_value(value)))
        for key, value in pairs
    )


def resource_of(comments: Sequence[bytes]) -> tuple[list[tuple[bytes, Value]], list[bytes]]:
    """The attributes of a resource that comments have, each key once, and the other comments. Of several resources,
    as merged profiles have, all remain comments.

    `process.pid` is a number, all others are text, since comments do not say what they were. A key that has several
    values remains a comment.
    """
    found = [(RESOURCE.fullmatch(each), each) for each in comments]
    keys = [utf8(match[1]) for match, _ in found if match]
    if len(set(keys)) < len(keys):
        return [], list(comments)
    pairs: list[tuple[bytes, Value]] = []
    for match, _ in found:
        if match:
            is_number = match[1] == PID and DECIMAL.fullmatch(match[2])
            pairs.append((match[1], int(match[2]) if is_number else match[2]))
    return pairs, [each for match, each in found if not match]


class Attributes:
    """The attribute table, each attribute once; row 0 is none."""

    def __init__(self, strings: Strings) -> None:
        self._strings = strings
        self._rows: dict[bytes, int] = {b"": 0}

    def add(self, key: bytes, value: Value, unit: bytes = b"") -> int:
        """The row of an attribute."""
        numbers = [(tags.KEY_VALUE_AND_UNIT_KEY_STRINDEX, self._strings.add(utf8(key)))]
        parts = [varint(tag) + varint(number) for tag, number in numbers if number]
        if value is not None:
            parts.append(field(tags.KEY_VALUE_AND_UNIT_VALUE, any_value(value)))
        if unit:
            parts.append(varint(tags.KEY_VALUE_AND_UNIT_UNIT_STRINDEX) + varint(self._strings.add(utf8(unit))))
        return self._rows.setdefault(b"".join(parts), len(self._rows))

    def pieces(self) -> Iterator[bytes]:
        """The fields of the table."""
        return (field(tags.PROFILES_DICTIONARY_ATTRIBUTE_TABLE, each) for each in self._rows)


class SampleColumns(NamedTuple):
    """What all profiles of the message have in common: stack, attributes and link of each sample."""

    stacks: Int64
    attributes: Numbers
    links: Int64


class Writer:
    """The tables of a message, which fill as its parts are made."""

    def __init__(self, profile: Profile) -> None:
        self.source = profile
        self.strings = Strings()
        self.attributes = Attributes(self.strings)
        self.links: dict[tuple[bytes, bytes], int] = {NO_LINK: 0}
        self._locations, location_rows = self._location_table()
        self._stacks, stacks = self._stack_table(location_rows)
        self._mappings = self._mapping_table()
        self._functions = self._function_table()
        attributes, links = self._sample_attributes()
        self.samples = SampleColumns(stacks, attributes, links)
        self.resource, comments = resource_of([self.text(each) for each in profile.comments])
        self._header = self._profile_attributes(comments)

    def text(self, index: int) -> bytes:
        """A string of the profile."""
        return self.source.strings[index]

    def strings_of(self, column: Int32) -> Int64:
        """The string table's numbers for a column of strings of the profile."""
        used, which = distinct_inverse(column)
        numbers = self.strings.add_all(utf8(self.text(index)) for index in used.tolist())
        return numbers.astype(np.int64)[which]

    def _location_table(self) -> tuple[list[bytes], Int64]:
        """The fields of the location table, each location once, and the row of each location of the profile."""
        locations, lines = self.source.locations, self.source.locations.lines
        _, line_of = distinct_rows(lines.function, lines.line, lines.column)
        lists = Lists(random_mixer())
        line_lists = numbered(lists, locations.line_offsets, line_of)
        firsts, which = distinct_rows(locations.address, locations.mapping, locations.is_folded, line_lists)
        firsts, which = in_order(firsts, which)
        # One without anything is the first row, which is zero.
        is_row = locations.has_lines() | locations.is_folded | (locations.mapping >= 0) | (locations.address != 0)
        numbers = np.where(is_row[firsts], np.cumsum(is_row[firsts]), 0)
        firsts = firsts[is_row[firsts]]
        all_lines = Messages(
            tags.LOCATION_LINES,
            len(lines),
            (
                Number(tags.LINE_FUNCTION_INDEX, lines.function + 1),
                Number(tags.LINE_LINE, lines.line),
                Number(tags.LINE_COLUMN, lines.column),
            ),
        ).joined()
        begins, ends = (all_lines.offsets[locations.line_offsets[firsts + end]] for end in (0, 1))
        edges = offsets_of(ends - begins)
        folded = locations.is_folded[firsts]
        is_folded = self.attributes.add(IS_FOLDED, True) if folded.any() else 0
        table = Messages(
            tags.PROFILES_DICTIONARY_LOCATION_TABLE,
            len(firsts),
            (
                Number(tags.LOCATION_MAPPING_INDEX, locations.mapping[firsts] + 1),
                Number(tags.LOCATION_ADDRESS, locations.address[firsts]),
                Raw(edges, gather_lists(all_lines.data, begins, edges)),
                Numbers(tags.LOCATION_ATTRIBUTE_INDICES, offsets_of(folded), np.full(int(folded.sum()), is_folded)),
            ),
        )
        empty = field(tags.PROFILES_DICTIONARY_LOCATION_TABLE, b"")
        return [empty, *table.pieces()], numbers[which]

    def _stack_table(self, location_rows: Int64) -> tuple[list[bytes], Int64]:
        """The fields of the stack table, each stack once, of which the first is empty, and the stack of each sample."""
        samples = self.source.samples
        lists = Lists(random_mixer())
        lists_of = np.concatenate((np.zeros(1, np.int64), samples.location_offsets))
        rows = numbered(lists, lists_of, location_rows[samples.locations].astype(np.int32))
        offsets, items = lists.arrays()
        table = Messages(
            tags.PROFILES_DICTIONARY_STACK_TABLE,
            len(offsets) - 1,
            (Numbers(tags.STACK_LOCATION_INDICES, offsets, items),),
        )
        return table.pieces(), rows[1:].astype(np.int64)

    def _mapping_table(self) -> list[bytes]:
        """The fields of the mapping table."""
        mappings, add = self.source.mappings, self.attributes.add
        flags = {
            (name, value): add(f"pprof.mapping.{name}".encode(), value) for name in FLAGS for value in (False, True)
            if bool((getattr(mappings, name) == value).any())
        }  # fmt: skip
        lists: list[int] = []
        counts: list[int] = []
        columns = [getattr(mappings, name).tolist() for name in FLAGS]
        for row, build_id in enumerate(mappings.build_id.tolist()):
            before = len(lists)
            if build_id:
                lists.append(self._build_id(self.text(build_id)))
            lists += [flags[name, column[row]] for name, column in zip(FLAGS, columns, strict=True)]
            counts.append(len(lists) - before)
        table = Messages(
            tags.PROFILES_DICTIONARY_MAPPING_TABLE,
            len(mappings),
            (
                Number(tags.MAPPING_MEMORY_START, mappings.start),
                Number(tags.MAPPING_MEMORY_LIMIT, mappings.limit),
                Number(tags.MAPPING_FILE_OFFSET, mappings.file_offset),
                Number(tags.MAPPING_FILENAME_STRINDEX, self.strings_of(mappings.filename)),
                Numbers(tags.MAPPING_ATTRIBUTE_INDICES, offsets_of(counts), np.array(lists, np.int64)),
            ),
        )
        return [field(tags.PROFILES_DICTIONARY_MAPPING_TABLE, b""), *table.pieces()]

    def _build_id(self, text: bytes) -> int:
        """The attribute of a build id: by its form that of Go, a hash of the file, or the GNU one (R321, build ids of
        OTLP)."""
        if text.startswith(HASH_PREFIX):
            return self.attributes.add(BUILD_ID + b"htlhash", text.removeprefix(HASH_PREFIX))
        is_go = b"/" in text and not HEX.fullmatch(text)
        return self.attributes.add(BUILD_ID + (b"go" if is_go else b"gnu"), text)

    def _function_table(self) -> list[bytes]:
        """The fields of the function table."""
        functions = self.source.functions
        table = Messages(
            tags.PROFILES_DICTIONARY_FUNCTION_TABLE,
            len(functions),
            (
                Number(tags.FUNCTION_NAME_STRINDEX, self.strings_of(functions.name)),
                Number(tags.FUNCTION_SYSTEM_NAME_STRINDEX, self.strings_of(functions.system_name)),
                Number(tags.FUNCTION_FILENAME_STRINDEX, self.strings_of(functions.filename)),
                Number(tags.FUNCTION_START_LINE, functions.start_line),
            ),
        )
        return [field(tags.PROFILES_DICTIONARY_FUNCTION_TABLE, b""), *table.pieces()]

    def _sample_attributes(self) -> tuple[Numbers, Int64]:
        """The attributes of each sample, a key once, and its link."""
        samples, labels = self.source.samples, self.source.samples.labels
        firsts, which = in_order(*distinct_rows(labels.key, labels.text, labels.number, labels.unit))
        sample = np.repeat(np.arange(len(samples)), np.diff(samples.label_offsets))
        links, is_link = self._sample_links(sample)
        sample, which, key = sample[~is_link], which[~is_link], labels.key[~is_link]
        wanted = np.zeros(len(firsts), np.bool_)
        wanted[which] = True
        rows = np.zeros(len(firsts), np.int64)
        for at in np.flatnonzero(wanted).tolist():
            rows[at] = self._label(int(firsts[at]))
        attributes = rows[which]
        repeated = repeated_keys(sample, key)
        kept = np.ones(len(which), np.bool_)
        groups: dict[tuple[int, ...], int] = {}
        for group in repeated:
            ids = tuple(which[group].tolist())
            if ids not in groups:
                groups[ids] = self._label(*(int(firsts[each]) for each in ids))
            attributes[group[0]] = groups[ids]
            kept[group[1:]] = False
        counts = np.bincount(sample[kept], minlength=len(samples))
        return Numbers(tags.SAMPLE_ATTRIBUTE_INDICES, offsets_of(counts), attributes[kept]), links

    def _label(self, *rows: int) -> int:
        """The attribute of labels with the same key; that of several is an array, which has one unit."""
        labels = self.source.samples.labels
        values: list[Value] = []
        unit = b""
        for row in rows:
            text, number, own = int(labels.text[row]), int(labels.number[row]), int(labels.unit[row])
            values.append(self.text(text) if text else number if number or own else None)
            unit = unit or (b"" if text else self.text(own))
        return self.attributes.add(self.text(int(labels.key[rows[0]])), values if len(values) > 1 else values[0], unit)

    def _sample_links(self, sample: Int64) -> tuple[Int64, Bool]:
        """The link of each sample, 0 for none, and which labels are in links: a trace and a span, in hex digits."""
        samples, labels = self.source.samples, self.source.samples.labels
        links = np.zeros(len(samples), np.int64)
        is_link = np.zeros(len(labels), np.bool_)
        columns = []
        for name, pattern in ((TRACE_ID, TRACE), (SPAN_ID, SPAN)):
            here = np.flatnonzero((labels.key == self.source.strings.add(name)) & (labels.text != 0))
            texts, which = distinct_inverse(labels.text[here])
            good = np.array([pattern.fullmatch(self.text(text)) is not None for text in texts.tolist()], np.bool_)
            once = np.bincount(sample[here], minlength=len(samples)) == 1
            here = here[good[which] & once[sample[here]]]
            column = np.zeros(len(samples), np.int64)
            column[sample[here]] = labels.text[here]
            is_link[here] = True
            columns.append(column)
        linked = np.flatnonzero(columns[0] | columns[1])
        pairs, which = distinct_inverse(pair(*columns)[linked])
        numbers = []
        for key in pairs.tolist():
            ids = bytes.fromhex(self.text(key >> 32).decode()), bytes.fromhex(self.text(key & 0xFFFFFFFF).decode())
            link = ids[0] or NO_LINK[0], ids[1] or NO_LINK[1]
            numbers.append(self.links.setdefault(link, len(self.links)))
        links[linked] = np.array(numbers, np.int64)[which] if numbers else 0
        return links, is_link

    def _profile_attributes(self, comments: list[bytes]) -> list[int]:
        """The attributes of each profile of the message."""
        source, add = self.source, self.attributes.add
        found = [
            add(b"pprof.profile." + name, self.text(text))
            for name, text in (
                (b"doc_url", source.doc_url),
                (b"drop_frames", source.drop_frames),
                (b"keep_frames", source.keep_frames),
            )
            if text
        ]
        if comments:
            found.append(add(COMMENT, list[Value](comments)))
        return found

    def scope(self) -> bytes:
        """The scope, which says what the order of the profiles is and which of them comes first."""
        order: list[Value] = list(range(len(self.source.sample_types)))
        pairs: list[tuple[bytes, Value]] = [(b"pprof.scope.sample_type_order", order)]
        if self.source.default_sample_type:
            pairs.append((b"pprof.scope.default_sample_type", self.text(self.source.default_sample_type)))
        return pairs_of(tags.INSTRUMENTATION_SCOPE_ATTRIBUTES, pairs)

    def profile(self, column: int) -> Iterator[bytes]:
        """The profile of a sample type."""
        source, samples = self.source, self.samples
        yield field(tags.PROFILE_SAMPLE_TYPE, self._value_type(source.sample_types[column]))
        values = np.ascontiguousarray(source.samples.values[:, column])
        yield from Messages(
            tags.PROFILE_SAMPLES,
            len(values),
            (
                Number(tags.SAMPLE_STACK_INDEX, samples.stacks),
                samples.attributes,
                Number(tags.SAMPLE_LINK_INDEX, samples.links),
                Numbers(tags.SAMPLE_VALUES, np.arange(len(values) + 1), values),
            ),
        ).pieces()
        if source.time_nanos:
            yield varint(tags.PROFILE_TIME_UNIX_NANO) + (source.time_nanos & MASK64).to_bytes(8, "little")
        yield _number(tags.PROFILE_DURATION_NANO, source.duration_nanos)
        yield field(tags.PROFILE_PERIOD_TYPE, self._value_type(source.period_type))
        yield _number(tags.PROFILE_PERIOD, source.period)
        if self._header:
            yield field(tags.PROFILE_ATTRIBUTE_INDICES_PACKED, b"".join(map(varint, self._header)))

    def _value_type(self, value: ValueType) -> bytes:
        numbers = (self.strings.add(utf8(self.text(each))) for each in value)
        both = zip((tags.VALUE_TYPE_TYPE_STRINDEX, tags.VALUE_TYPE_UNIT_STRINDEX), numbers, strict=True)
        return b"".join(_number(tag, number) for tag, number in both)

    def dictionary(self) -> Iterator[bytes]:
        """All tables, when all else was made."""
        yield from self._mappings
        yield from self._locations
        yield from self._functions
        for trace, span in self.links:
            content = field(tags.LINK_TRACE_ID, trace) + field(tags.LINK_SPAN_ID, span)
            yield field(tags.PROFILES_DICTIONARY_LINK_TABLE, content)
        yield b"".join(field(tags.PROFILES_DICTIONARY_STRING_TABLE, each) for each in self.strings)
        yield b"".join(self.attributes.pieces())
        yield from self._stacks


def _number(tag: int, number: int) -> bytes:
    """A number, unless it is 0."""
    return varint(tag) + varint(number & MASK64) if number else b""


MAX_PRODUCT: Final = 1 << 62


def distinct_rows(*columns: NDArray[Any]) -> tuple[Int64, Int64]:
    """The first of each of the distinct rows of a table, and which of them each row is."""
    which, count = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        values, other = distinct_inverse(column)
        both = which * len(values) + other if count * len(values) < MAX_PRODUCT else pair(which, other)
        rows, which = distinct_inverse(both)
        count = len(rows)
    firsts = np.zeros(count, np.int64)
    firsts[which[::-1]] = np.arange(len(which))[::-1]
    return firsts, which


def in_order(firsts: Int64, which: Int64) -> tuple[Int64, Int64]:
    """The same, with the distinct rows in the order in which they come first."""
    order = np.argsort(firsts)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return firsts[order], rank[which]


def numbered(lists: Lists, offsets: Int64, items: NDArray[Any]) -> Int32:
    """The number of each list, equal lists having one."""
    rows = np.zeros(len(offsets) - 1, np.int32)
    offsets, items = np.ascontiguousarray(offsets, np.int64), np.ascontiguousarray(items, np.int32)
    encoder.number_lists(lists, offsets.data, items.data, rows.data)
    return rows


def repeated_keys(sample: Int64, key: Int32) -> Sequence[Int64]:
    """The labels of samples that have a key several times, those of each key together, in their order."""
    _, key_of = distinct_inverse(key)
    pairs = pair(sample, key_of)
    order = np.argsort(pairs, kind="stable")
    same = pairs[order][1:] == pairs[order][:-1]
    if not same.any():
        return ()
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    return [order[begin : end + 1] for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]

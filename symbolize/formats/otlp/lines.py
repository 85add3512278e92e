"""OTLP messages as they came, with the lines that were found for their locations, which are looked up once, not once
for each process that has them."""

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import BinaryIO, Final, NamedTuple

import numpy as np

from symbolize.core.arrays import (
    NONE,
    Bool,
    Int64,
    UInt8,
    distinct,
    distinct_inverse,
    first_of_runs,
    gather_lists,
    offsets_of,
    ranges,
)
from symbolize.core.budget import Budget
from symbolize.core.errors import UsageError
from symbolize.core.message_scan import field_begins, without_fields
from symbolize.core.messages import MessageLayout, Messages, Number, Raw, Rows, Spans
from symbolize.core.protobuf import NUMBER, field, varint
from symbolize.formats.files import write_pieces
from symbolize.formats.model import LoadedProfile
from symbolize.formats.otlp import layouts
from symbolize.formats.otlp.build import (
    CPU_NANOSECONDS,
    OtlpGroup,
    StringNumbers,
    comments_of,
    frames_of,
    is_counted,
    locations_of,
    process_frames,
)
from symbolize.formats.otlp.containers import Container
from symbolize.formats.otlp.messages import Message
from symbolize.formats.otlp.writer import IS_FOLDED, any_value, utf8
from symbolize.formats.products import check_products
from symbolize.formats.stand_ins import settle_stand_ins
from symbolize.profile.facts import recorded_ids, take_comments
from symbolize.profile.model import Labels, Profile, Samples, StackSource, ValueType
from symbolize.proto import otlp_profiles_tags as tags

READ_BEFORE: Final = 1 << 62
"""Bytes that a message may take: its loader had a limit."""
TRUE: Final = any_value(True)
FALSE: Final = any_value(False)


def profiles_of_stacks(profiles: Sequence[LoadedProfile]) -> Iterator[Profile]:
    """What has to be looked up for the lines of some profiles of an OTLP input: of each message a profile of the
    stacks of all processes (R326, OTLP with lines), and behind it the profiles that need one of their own.

    A process needs one that has code without lines in the kernel, in no mapping, or in one without a build id: that
    code is known by the rest of the process.
    """
    messages: dict[int, list[tuple[LoadedProfile, OtlpGroup]]] = {}
    for each in profiles:
        assert each.group is not None
        messages.setdefault(id(each.group.message), []).append((each, each.group))
    for members in messages.values():
        message = members[0][1].message
        special = process_frames(message.dictionary)
        is_apart = needs_process(message, [group for _, group in members], special)
        shared = [group for (_, group), apart in zip(members, is_apart, strict=True) if not apart]
        if len(shared) > 1:
            yield profile_of_stacks(message, shared, special)
        for (loaded, _), apart in zip(members, is_apart, strict=True):
            if apart or len(shared) == 1:
                yield loaded.profile


def needs_process(message: Message, groups: Sequence[OtlpGroup], special: Bool) -> list[bool]:
    """Which groups have locations without names that are `special`."""
    dictionary = message.dictionary
    is_special = special & dictionary.without_names
    offsets, items = dictionary.stacks.list(tags.STACK_LOCATION_INDICES)
    items = np.minimum(items, np.uint64(len(is_special))).astype(np.int64)
    total = offsets_of(np.append(is_special, False)[items])
    has_special = np.append(total[offsets[1:]] > total[offsets[:-1]], False)  # the last is of stacks that are not there
    stacks = np.minimum(message.stacks, np.uint64(len(has_special) - 1)).astype(np.int64)
    total = offsets_of(has_special[stacks])
    first, last = samples_of(message, groups)
    return [bool(each) for each in total[last] > total[first]]


def samples_of(message: Message, groups: Sequence[OtlpGroup]) -> tuple[Int64, Int64]:
    """Where the samples of groups begin and end."""
    rows = np.array([each.profiles[0] for each in groups], np.int64)
    return message.sample_offsets[rows], message.sample_offsets[rows + 1]


def profile_of_stacks(message: Message, groups: Sequence[OtlpGroup], special: Bool) -> Profile:
    """The stacks of some groups, each once, weighed by how many samples have it in each sample type of the first group.
    Locations that are `special` have names, and no address here: in the memory of another process they would be other
    code. Raises InputError for stacks that multiply what the message has."""
    dictionary, profile = message.dictionary, Profile()
    message.made.begin(("stacks", message.first_location))
    first, last = samples_of(message, groups)
    stacks = message.stacks[ranges(first, last - first)]
    stacks = stacks[stacks < np.uint64(len(dictionary.stacks))].astype(np.int64)
    counts = np.bincount(stacks[dictionary.usable_stacks[stacks]], minlength=len(dictionary.stacks))
    rows = np.flatnonzero(counts)
    used, offsets, locations = locations_of(message, rows)
    strings = StringNumbers(dictionary, profile.strings)
    profile.locations, profile.mappings, profile.functions, profile.address_kinds = frames_of(
        dictionary, strings, used, keeps_mappings=False
    )
    profile.locations.address[special[used]] = 0
    profile.locations.mapping[special[used]] = NONE
    profile.locations.source_row = used + message.first_location
    types = groups[0].types()  # of which a caller may choose one
    if is_counted(groups[0]):
        types.append(CPU_NANOSECONDS)
    message.made.frames.spend(8 * len(rows) * len(types))
    values = np.repeat(counts[rows].reshape(-1, 1), len(types), axis=1)
    profile.sample_types = [ValueType(*map(profile.strings.add, each)) for each in types]
    profile.samples = Samples(offsets, locations, values, np.zeros(len(rows) + 1, np.int64), Labels())
    profile.id_origins, profile.stack_source = recorded_ids(profile.mappings), StackSource.RECORDER
    profile.comments = [profile.strings.add(text) for group in groups for text in comments_of(group)]
    take_comments(profile)
    profile.comments = []
    settle_stand_ins(profile)
    check_products(profile, message.budget.source)
    return profile


class LineFunction(NamedTuple):
    """A function: name, system name, file name and start line."""

    name: bytes
    system_name: bytes
    filename: bytes
    start_line: int


class LocationLines(NamedTuple):
    """What was found for some locations, by their rows: lines, of which those of location i are `offsets[i]` up to
    `offsets[i + 1]`, each of a function by its number, and which locations share their code."""

    rows: Int64
    offsets: Int64
    function: Int64
    line: Int64
    column: Int64
    folded: Bool


class Edit(NamedTuple):
    """What replaces the bytes from `begin` to `end`."""

    begin: int
    end: int
    content: bytes


class LineMessage:
    """The tables of a message that lines are in."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._dictionaries = self._rows(Spans.of(0, len(data)), layouts.MESSAGE).spans(tags.PROFILES_DATA_DICTIONARY)
        self._tables = self._rows(self._dictionaries, layouts.DICTIONARY)
        self.locations = self._rows(self._tables.spans(tags.PROFILES_DICTIONARY_LOCATION_TABLE), layouts.LOCATION)

    def _rows(self, spans: Spans, layout: MessageLayout) -> Rows:
        return Rows(self._data, spans, layout, Budget("the message", 0, READ_BEFORE, 0))

    def without_lines(self) -> Bool:
        """Which locations have no lines: bool[n]."""
        without: Bool = np.diff(self.locations.spans(tags.LOCATION_LINES).offsets) == 0
        return without

    def with_lines(self, found: LocationLines, functions: Sequence[LineFunction]) -> bytes:
        """The message with lines for some locations, whose functions are numbers in `functions`."""
        if not len(found.rows):
            return bytes(self._data)
        tables = Additions(self._data, self._tables)
        edits = [*self._mapping_edits(found, functions, tables), *self._location_edits(found, functions, tables)]
        return b"".join(self._spliced(sorted(edits), tables.fields()))

    def _begins(self, table: int) -> Int64:
        """Where the fields of a table begin."""
        begins, count = np.empty(len(self._tables.spans(table)), np.int64), 0
        for begin, end in zip(self._dictionaries.begins.tolist(), self._dictionaries.ends.tolist(), strict=True):
            count += field_begins(self._data, begin, end, table, begins[count:].data)
        return begins

    def _location_edits(
        self, found: LocationLines, functions: Sequence[LineFunction], tables: "Additions"
    ) -> Iterator[Edit]:
        """The locations with their lines behind what they had. `is_folded` becomes that of the lookup."""
        used, which = distinct_inverse(found.function)
        first = np.empty(len(used), np.int64)
        first[which[::-1]] = np.arange(len(which))[::-1]
        numbers = np.empty(len(used), np.int64)
        for each in np.argsort(first).tolist():  # as the locations have them, whatever was looked up first
            numbers[each] = tables.function(functions[used[each]])
        columns = (
            Number(tags.LINE_FUNCTION_INDEX, numbers[which]),
            Number(tags.LINE_LINE, found.line),
            Number(tags.LINE_COLUMN, found.column),
        )
        lines = Messages(tags.LOCATION_LINES, len(which), columns).joined()
        edges = lines.offsets[found.offsets]
        spans = self._tables.spans(tags.PROFILES_DICTIONARY_LOCATION_TABLE)
        begins = self._begins(tags.PROFILES_DICTIONARY_LOCATION_TABLE)
        marks = tables.called(IS_FOLDED)
        is_folded = tables.flag(IS_FOLDED) if found.folded.any() else 0
        offsets, items = self.locations.list(tags.LOCATION_ATTRIBUTE_INDICES)
        total = offsets_of(np.isin(items, [row for row, value in marks.items() if value == TRUE]))
        is_marked = (total[offsets[1:]] > total[offsets[:-1]])[found.rows]
        has_lines = ~self.without_lines()[found.rows]
        is_plain = ~has_lines & (is_marked == found.folded)
        yield from self._appended(found.rows[is_plain], lines.data, edges[:-1][is_plain], edges[1:][is_plain])
        for at in np.flatnonzero(~is_plain).tolist():
            row = int(found.rows[at])
            begin, end = int(spans.begins[row]), int(spans.ends[row])
            content = bytes(self._data[begin:end])
            if has_lines[at]:
                content = without_fields(content, tags.LOCATION_LINES >> NUMBER)
            mine = lines.data[edges[at] : edges[at + 1]].tobytes()
            if is_marked[at] != found.folded[at]:
                kept = [each for each in items[offsets[row] : offsets[row + 1]].tolist() if each not in marks]
                kept += [] if is_marked[at] else [is_folded]
                content = without_fields(content, tags.LOCATION_ATTRIBUTE_INDICES >> NUMBER)
                mine += packed(tags.LOCATION_ATTRIBUTE_INDICES_PACKED, kept)
            yield Edit(int(begins[row]), end, field(tags.PROFILES_DICTIONARY_LOCATION_TABLE, content + mine))

    def _appended(self, rows: Int64, added: UInt8, first: Int64, last: Int64) -> Iterator[Edit]:
        """The locations `rows`, each with `added[first:last]` behind it, those that follow each other as one edit."""
        if not len(rows):
            return
        table = tags.PROFILES_DICTIONARY_LOCATION_TABLE
        spans = self._tables.spans(table)
        begins, ends = spans.begins[rows], spans.ends[rows]
        source = np.concatenate([np.frombuffer(self._data, np.uint8), added])
        edges = offsets_of(np.stack([ends - begins, last - first], 1).ravel())
        content = gather_lists(source, np.stack([begins, first + len(self._data)], 1).ravel(), edges)
        fields = Messages(table, len(rows), [Raw(edges[::2], content)]).joined()
        starts = self._begins(table)[rows]
        firsts = np.flatnonzero(np.append(True, starts[1:] != ends[:-1]))
        edges = fields.offsets[np.append(firsts, len(rows))].tolist()
        lasts = np.append(firsts[1:], len(rows)) - 1
        text = fields.data.tobytes()
        for start, end, piece in zip(starts[firsts].tolist(), ends[lasts].tolist(), pairwise(edges), strict=True):
            yield Edit(start, end, text[slice(*piece)])

    def _mapping_edits(
        self, found: LocationLines, functions: Sequence[LineFunction], tables: "Additions"
    ) -> Iterator[Edit]:
        """The mappings whose flags are false and would be wrong; flags that are not there stay so."""
        owner = self.locations.signed(tags.LOCATION_MAPPING_INDEX)[found.rows]
        has_file = np.array([bool(each.filename) for each in functions], np.bool_)[found.function]
        location_of = np.repeat(np.arange(len(found.rows)), np.diff(found.offsets))
        facts = {
            b"pprof.mapping.has_functions": owner,
            b"pprof.mapping.has_filenames": owner[location_of[has_file]],
            b"pprof.mapping.has_line_numbers": owner[location_of[found.line > 0]],
            b"pprof.mapping.has_inline_frames": owner[np.diff(found.offsets) > 1],
        }
        spans = self._tables.spans(tags.PROFILES_DICTIONARY_MAPPING_TABLE)
        begins = self._begins(tags.PROFILES_DICTIONARY_MAPPING_TABLE)
        offsets, items = self._rows(spans, layouts.MAPPING).list(tags.MAPPING_ATTRIBUTE_INDICES)
        flags = {key: tables.called(key) for key in facts}
        true = {key: set(distinct(rows).tolist()) for key, rows in facts.items()}
        for row in distinct(owner).tolist():
            if not 0 < row < len(spans):
                continue
            attributes = items[offsets[row] : offsets[row + 1]].tolist()
            kept = list(attributes)
            for key, marks in flags.items():
                if row in true[key]:
                    kept = [tables.flag(key) if marks.get(each) == FALSE else each for each in kept]
            if kept != attributes:
                end = int(spans.ends[row])
                content = bytes(self._data[int(spans.begins[row]) : end])
                content = without_fields(content, tags.MAPPING_ATTRIBUTE_INDICES >> NUMBER)
                content += packed(tags.MAPPING_ATTRIBUTE_INDICES_PACKED, kept)
                yield Edit(int(begins[row]), end, field(tags.PROFILES_DICTIONARY_MAPPING_TABLE, content))

    def _spliced(self, edits: list[Edit], added: bytes) -> Iterator[bytes]:
        """The message with edits, and with fields added to the end of its last dictionary."""
        data, at = self._data, 0
        starts = np.empty(len(self._dictionaries), np.int64)
        field_begins(data, 0, len(data), tags.PROFILES_DATA_DICTIONARY, starts.data)
        left = edits[::-1]
        begins, ends = self._dictionaries.begins.tolist(), self._dictionaries.ends.tolist()
        for start, begin, end in zip(starts.tolist(), begins, ends, strict=True):
            parts: list[bytes | memoryview] = []
            position = begin
            while left and left[-1].begin < end:
                edit = left.pop()
                parts += [data[position : edit.begin], edit.content]
                position = edit.end
            parts += [data[position:end], added if end == ends[-1] else b""]
            yield bytes(data[at:start])
            yield varint(tags.PROFILES_DATA_DICTIONARY) + varint(sum(map(len, parts)))
            yield b"".join(parts)
            at = end
        yield bytes(data[at:])


class Additions:
    """What is added to the strings, functions and attributes of a message: only what they do not have."""

    def __init__(self, data: memoryview, tables: Rows) -> None:
        self._data = data
        self._strings = self._texts(tables.spans(tags.PROFILES_DICTIONARY_STRING_TABLE))
        budget = Budget("the message", 0, READ_BEFORE, 0)
        functions = Rows(data, tables.spans(tags.PROFILES_DICTIONARY_FUNCTION_TABLE), layouts.FUNCTION, budget)
        columns = [functions.signed(tag).tolist() for tag in layouts.FUNCTION.numbers]
        self._functions: dict[tuple[int, ...], int] = {}
        for row, key in enumerate(zip(*columns, strict=True)):
            self._functions.setdefault(key, row)
        self._counts = [len(tables.spans(tags.PROFILES_DICTIONARY_STRING_TABLE)), len(functions)]
        self._attributes = Rows(data, tables.spans(tags.PROFILES_DICTIONARY_ATTRIBUTE_TABLE), layouts.ATTRIBUTE, budget)
        self._flags: dict[bytes, int] = {}
        self._new_strings = list[bytes]()
        self._new_functions = list[tuple[int, ...]]()
        self._new_attributes = list[bytes]()

    def _texts(self, spans: Spans) -> dict[bytes, int]:
        """The strings of the message by their contents."""
        found: dict[bytes, int] = {}
        for row, (begin, end) in enumerate(zip(spans.begins.tolist(), spans.ends.tolist(), strict=True)):
            found.setdefault(bytes(self._data[begin:end]), row)
        return found

    def string(self, text: bytes) -> int:
        """The number of a string."""
        number = self._strings.get(text)
        if number is None:
            number = self._strings[text] = self._counts[0] + len(self._new_strings)
            self._new_strings.append(text)
        return number

    def function(self, function: LineFunction) -> int:
        """The row of a function."""
        key = *map(self.string, function[:-1]), function.start_line
        row = self._functions.get(key)
        if row is None:
            row = self._functions[key] = self._counts[1] + len(self._new_functions)
            self._new_functions.append(key)
        return row

    def called(self, key: bytes) -> dict[int, bytes]:
        """The attributes with a key, and their values as they are encoded."""
        number = self._strings.get(key, NONE)
        values = self._attributes.spans(tags.KEY_VALUE_AND_UNIT_VALUE)
        found = {}
        for row in np.flatnonzero(self._attributes.signed(tags.KEY_VALUE_AND_UNIT_KEY_STRINDEX) == number).tolist():
            at = int(values.offsets[row + 1]) - 1
            has_value = at >= values.offsets[row]
            found[row] = bytes(self._data[int(values.begins[at]) : int(values.ends[at])]) if has_value else b""
        return found

    def flag(self, key: bytes) -> int:
        """The row of the attribute that says yes."""
        if key not in self._flags:
            known = [row for row, value in self.called(key).items() if value == TRUE]
            self._flags[key] = known[0] if known else len(self._attributes) + len(self._new_attributes)
            if not known:
                content = varint(tags.KEY_VALUE_AND_UNIT_KEY_STRINDEX) + varint(self.string(key))
                content += field(tags.KEY_VALUE_AND_UNIT_VALUE, TRUE)
                self._new_attributes.append(field(tags.PROFILES_DICTIONARY_ATTRIBUTE_TABLE, content))
        return self._flags[key]

    def fields(self) -> bytes:
        """All that was added, as fields of the dictionary."""
        columns = np.array(self._new_functions, np.int64).reshape(-1, len(layouts.FUNCTION.numbers)).T
        numbers = [Number(*each) for each in zip(layouts.FUNCTION.numbers, columns, strict=True)]
        functions = Messages(tags.PROFILES_DICTIONARY_FUNCTION_TABLE, len(self._new_functions), numbers)
        texts = Raw(offsets_of([*map(len, self._new_strings)]), np.frombuffer(b"".join(self._new_strings), np.uint8))
        strings = Messages(tags.PROFILES_DICTIONARY_STRING_TABLE, len(self._new_strings), [texts])
        return b"".join((*functions.pieces(), *strings.pieces(), *self._new_attributes))


def packed(tag: int, numbers: Sequence[int]) -> bytes:
    """A list of numbers as a field, none if there are none."""
    return field(tag, b"".join(map(varint, numbers))) if numbers else b""


class OtlpLines:
    """The lines that were found for the locations of an input, each location once; `addresses` counts these. Locations
    that came with names keep their lines, unless it `replaces` them (R326, OTLP with lines).

    Functions, strings and attributes that are missing are added behind those of the message, in the order of the
    locations; `pprof.location.is_folded` becomes that of the lookup, and flags `pprof.mapping.has_*` that are there and
    false become true. All other bytes stay.
    """

    def __init__(self, container: Container, *, replaces: bool = False) -> None:
        self.addresses = 0
        self._container = container
        self._modules: set[tuple[bytes, bytes]] = set()
        self._messages = [LineMessage(data) for data in container.messages]
        self._begins = offsets_of([len(each.locations) for each in self._messages])
        self._is_open = container.without_names() | replaces
        self._functions: dict[LineFunction, int] = {}
        self._found: list[LocationLines] = []

    @property
    def modules(self) -> int:
        """How many binaries the locations are in."""
        return len(self._modules)

    def add(self, profile: Profile, resolved: Bool) -> None:
        """Take the lines of the locations `resolved` (bool[n]), which a lookup found. What was taken before stays, and
        of a location that was split by its callers the part that shows what the others share.

        Raises UsageError if the profile is not of an OTLP message.
        """
        locations, lines = profile.locations, profile.locations.lines
        if len(locations.source_row) != len(locations):
            raise UsageError("lines for an OTLP message can only be those of its profiles")
        rows = np.flatnonzero(resolved & locations.has_lines() & (locations.source_row != NONE))
        rows = rows[self._is_open[locations.source_row[rows]]]
        rows = rows[np.argsort(locations.source_row[rows], kind="stable")]
        rows = rows[first_of_runs(locations.source_row[rows])]
        self._is_open[locations.source_row[rows]] = False
        for mapping in distinct(locations.mapping[rows][locations.mapping[rows] != NONE]).tolist():
            pair = profile.mappings.filename[mapping], profile.mappings.build_id[mapping]
            self._modules.add((profile.strings[int(pair[0])], profile.strings[int(pair[1])]))
        counts = np.diff(locations.line_offsets)[rows]
        taken = ranges(locations.line_offsets[rows], counts)
        used, which = distinct_inverse(lines.function[taken])
        text, functions = profile.strings, profile.functions
        texts = (
            [utf8(text[each]) for each in column[used].tolist()]
            for column in (functions.name, functions.system_name, functions.filename)
        )
        numbers = [
            self._functions.setdefault(function, len(self._functions))
            for function in map(LineFunction, *texts, functions.start_line[used].tolist())
        ]
        self.addresses += len(rows)
        self._found.append(
            LocationLines(
                locations.source_row[rows],
                offsets_of(counts),
                np.array(numbers, np.int64)[which],
                lines.line[taken],
                lines.column[taken],
                locations.is_folded[rows],
            )
        )

    def pieces(self) -> Iterator[bytes]:
        """The input with the lines."""
        functions = list(self._functions)
        rows = np.concatenate([np.zeros(0, np.int64), *(each.rows for each in self._found)])
        counts = np.concatenate([np.zeros(0, np.int64), *(np.diff(each.offsets) for each in self._found)])
        offsets = offsets_of(counts)
        function, line, column = (
            np.concatenate([np.zeros(0, np.int64), *(getattr(each, name) for each in self._found)])
            for name in ("function", "line", "column")
        )
        folded = np.concatenate([np.zeros(0, np.bool_), *(each.folded for each in self._found)])
        order = np.argsort(rows)
        edges = np.searchsorted(rows[order], self._begins)

        def written() -> Iterator[bytes]:
            for number, message in enumerate(self._messages):
                mine = order[edges[number] : edges[number + 1]]
                taken = ranges(offsets[mine], counts[mine])
                found = LocationLines(
                    rows[mine] - self._begins[number],
                    offsets_of(counts[mine]),
                    function[taken],
                    line[taken],
                    column[taken],
                    folded[mine],
                )
                yield message.with_lines(found, functions)

        yield from self._container.framed(written())

    def write(self, destination: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the input with the lines to a path, to `-` (standard output) or to a binary file object. Raises
        OutputError."""
        write_pieces(self.pieces(), destination)

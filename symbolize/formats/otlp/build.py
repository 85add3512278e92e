"""From the tables of a message to profiles: the locations that each uses, with their mappings and functions, and its
samples with attributes and links as labels."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import (
    NONE,
    Bool,
    Int32,
    Int64,
    UInt8,
    UInt64,
    distinct,
    distinct_inverse,
    gather_lists,
    is_among,
    offsets_of,
    pair,
    ranges,
    unpair,
)
from symbolize.core.errors import InputError
from symbolize.formats.otlp.messages import (
    BOOL,
    INT,
    STRING,
    STRING_INDEX,
    Dictionary,
    Message,
    Value,
    last_of,
    shown,
    texts_of,
    value_text,
)
from symbolize.profile.facts import recorded_ids, take_comments
from symbolize.profile.model import (
    AddressKind,
    Functions,
    Labels,
    Lines,
    Locations,
    Mappings,
    Profile,
    Samples,
    StackSource,
    Strings,
    ValueType,
)
from symbolize.proto import otlp_profiles_tags as tags

TRACE_ID, SPAN_ID = b"trace_id", b"span_id"
"""Labels of the span that a sample is linked to."""


LABEL_COST: Final = 60
"""Bytes of a label while it is made."""

GNU: Final = b"process.executable.build_id.gnu"
GO: Final = b"process.executable.build_id.go"
HASHES: Final = (b"process.executable.build_id.htlhash", b"process.executable.build_id.profiling")
HASH_PREFIX: Final = b"htlhash:"
FLAGS: Final = {
    b"pprof.mapping.has_functions": "has_functions",
    b"pprof.mapping.has_filenames": "has_filenames",
    b"pprof.mapping.has_line_numbers": "has_line_numbers",
    b"pprof.mapping.has_inline_frames": "has_inline_frames",
}

KERNEL: Final = b"kernel"
NATIVE: Final = (b"native", KERNEL, b"go", b"rust")
"""Types of frames that binaries can name. Of the others an address is a position in bytecode, a line, or nothing."""

KERNEL_BEGIN: Final = 0xFFFFFFFF81000000
MODULES_BEGIN: Final = 0xFFFFFFFFC0000000
MODULE_STEP: Final = 1 << 26
MAX_MODULES: Final = 15
"""Where the kernel and its modules are put, of which messages have addresses from their first byte of code on."""
KERNEL_NAME: Final = b"[kernel.kallsyms]_text"
"""What perf calls a kernel that is mapped from `_text` on."""
LOWEST_KERNEL: Final = 1 << 30
"""No kernel has its code below this address."""

MAX_MAPPINGS: Final = 1 << 18

COMMENT: Final = b"pprof.profile.comment"
TEXTS: Final = {
    b"pprof.profile.doc_url": "doc_url",
    b"pprof.profile.drop_frames": "drop_frames",
    b"pprof.profile.keep_frames": "keep_frames",
}
"""Attributes of profiles that pprof has a field for."""
DEFAULT_TYPE: Final = b"pprof.scope.default_sample_type"
TYPE_ORDER: Final = b"pprof.scope.sample_type_order"

SAMPLES_COUNT: Final = (b"samples", b"count")
CPU_NANOSECONDS: Final = (b"cpu", b"nanoseconds")

INT64_MAX: Final = (1 << 63) - 1

TIMESTAMP: Final = b"timestamp_ns"
NANOSECONDS: Final = b"nanoseconds"

FRAME_COST: Final = 4
LOCATION_COST: Final = 32
LINE_COST: Final = 20
COMMENT_COST: Final = 64
"""Bytes of a frame on a stack, of a location and a line of it, and of a comment beside its text."""


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


class OtlpFrames(NamedTuple):
    """The locations of a profile, with mappings, functions, and the kinds of addresses of the mappings."""

    locations: Locations
    mappings: Mappings
    functions: Functions
    kinds: UInt8


def frames_of(dictionary: Dictionary, strings: StringNumbers, used: Int64, keeps_mappings: bool) -> OtlpFrames:
    """The locations `used` (rows of the dictionary, ascending), and the mappings that they are in; all mappings of the
    dictionary with `keeps_mappings`.

    Locations of the types `native`, `kernel`, `go` and `rust`, and those without a type, are looked up. The address of
    any other is a position in bytecode, a line, or nothing: such locations are in a mapping of their own in the
    profile, called `[TYPE]` where the message has none. So are locations with a type and without a mapping, since
    addresses in one message are of many processes (R320, frame types).
    """
    mapping = dictionary.location_mappings[used]
    dictionary.note("mappings", int((mapping == NONE).sum()))
    mapping = np.maximum(mapping, 0)
    names, kind, folded = _location_attributes(dictionary, used)
    is_native = _is_native(names)[kind]
    # What no binary names is in a mapping of its own, so that no address in bytecode is looked up (R320, frame types).
    own = np.where(is_native & (mapping > 0), 0, kind)
    keys = pair(own, mapping)
    has_mapping = keys != 0
    if keeps_mappings:
        keys = np.concatenate((keys, np.arange(1, len(dictionary.mappings))))
    known = distinct(keys[keys != 0])
    if len(known) > MAX_MAPPINGS:
        raise InputError(dictionary.budget.source, f"has {len(known)} mappings, more than any profile can have")
    row = np.where(has_mapping, np.searchsorted(known, keys[: len(used)]), NONE).astype(np.int32)
    address = dictionary.locations.number(tags.LOCATION_ADDRESS)[used]
    mappings, kinds = _mappings(dictionary, strings, known, names)
    address = _place_kernel(mappings, kinds, strings, row, kind == _code(names, KERNEL), address)
    offsets, lines, functions = _lines(dictionary, strings, used)
    locations = Locations(
        address=address,
        mapping=row,
        is_folded=folded,
        line_offsets=offsets,
        lines=lines,
        source_row=used,
    )
    return OtlpFrames(locations, mappings, functions, kinds if kinds.any() else np.zeros(0, np.uint8))


def _location_attributes(dictionary: Dictionary, used: Int64) -> tuple[list[bytes], Int64, Bool]:
    """The types of frames, by number, of which 0 is none; the number of each location, and which are folded."""
    offsets, items = dictionary.locations.list(tags.LOCATION_ATTRIBUTE_INDICES)
    counts = offsets[used + 1] - offsets[used]
    attributes = items[ranges(offsets[used], counts)]
    owner = np.repeat(np.arange(len(used)), counts)
    names, number_of = dictionary.frame_types
    number = number_of[np.minimum(attributes, np.uint64(len(dictionary.attributes))).astype(np.int64)]
    kind, folded = np.zeros(len(used), np.int64), np.zeros(len(used), np.bool_)
    kind[owner[number > 0]] = number[number > 0]
    folded[owner[is_among(attributes, dictionary.folded)]] = True
    return names, kind, folded


def process_frames(dictionary: Dictionary) -> Bool:
    """Which locations of the dictionary only their process, or its kernel, tells what they are: code in no mapping that
    a build id identifies. What no binary names is none of them."""
    names, kind, _ = _location_attributes(dictionary, np.arange(len(dictionary.locations)))
    offsets, items = dictionary.mappings.list(tags.MAPPING_ATTRIBUTE_INDICES)
    has_id = np.array(
        [bool(build_id(dictionary.attributes_of(items[begin:end]))) for begin, end in pairwise(offsets.tolist())]
        or [False]
    )
    has_id[0] = False  # which is no mapping, whatever the message says of it
    is_identified = has_id[np.maximum(dictionary.location_mappings, 0)] & (kind != _code(names, KERNEL))
    has_address = dictionary.locations.number(tags.LOCATION_ADDRESS) != 0
    result: Bool = _is_native(names)[kind] & has_address & ~is_identified
    return result


def _is_native(names: list[bytes]) -> Bool:
    """Which types of frames binaries can name; one that is not known they may."""
    return np.array([not name or name in NATIVE for name in names], np.bool_)


def _code(names: list[bytes], name: bytes) -> int:
    """The number of a type of frames, NONE if no frame has it."""
    return names.index(name) if name in names else NONE


def _mappings(
    dictionary: Dictionary, strings: StringNumbers, keys: Int64, names: list[bytes]
) -> tuple[Mappings, UInt8]:
    """The mappings of keys, each a type of frames (0: native) and a mapping of the dictionary (0: none)."""
    kind, row = unpair(keys)
    table, mappings, add = dictionary.mappings, Mappings.zeros(len(keys)), strings.strings.add
    mappings.start = table.number(tags.MAPPING_MEMORY_START)[row] if len(table) else mappings.start
    if len(table):
        mappings.limit = table.number(tags.MAPPING_MEMORY_LIMIT)[row]
        mappings.file_offset = table.number(tags.MAPPING_FILE_OFFSET)[row]
        mappings.filename = strings.of(table.number(tags.MAPPING_FILENAME_STRINDEX)[row])
    offsets, items = table.list(tags.MAPPING_ATTRIBUTE_INDICES)
    for at, (own, number) in enumerate(zip(kind.tolist(), row.tolist(), strict=True)):
        if number:
            attributes = dictionary.attributes_of(items[offsets[number] : offsets[number + 1]])
            mappings.build_id[at] = add(build_id(attributes))
            for key, flag in FLAGS.items():
                getattr(mappings, flag)[at] = attributes.get(key) is True
        else:
            mappings.filename[at] = add(b"[" + names[own] + b"]")
    return mappings, np.where(kind > 0, AddressKind.NO_BINARY, AddressKind.PROCESS).astype(np.uint8)


def build_id(attributes: dict[bytes, Value]) -> bytes:
    """The build id of a mapping: the GNU one, else that of Go, else the hash of the file (R321, build ids of OTLP).

    The attributes are `process.executable.build_id.gnu`, `.go`, and `.htlhash`, which was `.profiling` before; the last
    is spelled `htlhash:` here.
    """
    for key in (GNU, GO):
        if isinstance(value := attributes.get(key), bytes) and value:
            return value
    for key in HASHES:
        if isinstance(value := attributes.get(key), bytes) and value:
            return HASH_PREFIX + value
    return b""


def _place_kernel(
    mappings: Mappings, kinds: UInt8, strings: StringNumbers, row: Int32, is_kernel: Bool, address: UInt64
) -> UInt64:
    """Move the kernel and its modules, of which addresses count from their first byte of code on, to where a kernel may
    be (R322, kernel of OTLP); the addresses then.

    The kernel goes to 0xffffffff81000000 and is called `[kernel.kallsyms]_text`, modules go 64 MiB apart from
    0xffffffffc0000000 on. Addresses from 1 GiB on are those of memory and stay.
    """
    kernels = distinct(row[is_kernel & (row >= 0)])
    kernels = kernels[kinds[kernels] == AddressKind.PROCESS]
    kinds[kernels] = AddressKind.KERNEL
    is_high = np.zeros(len(mappings), np.bool_)
    is_high[row[(row >= 0) & (address >= np.uint64(LOWEST_KERNEL))]] = True
    unplaced = kernels[(mappings.start[kernels] == 0) & (mappings.limit[kernels] == 0) & ~is_high[kernels]]
    modules = 0
    for each in unplaced.tolist():
        name = strings.strings[int(mappings.filename[each])].rpartition(b"/")[2]
        if name.startswith((b"vmlinux", b"[kernel")):
            start, limit = KERNEL_BEGIN, MODULES_BEGIN
            mappings.filename[each] = strings.strings.add(KERNEL_NAME)
        else:
            start, limit = MODULES_BEGIN + modules * MODULE_STEP, MODULES_BEGIN + (modules + 1) * MODULE_STEP
            modules = (modules + 1) % MAX_MODULES
        mappings.start[each], mappings.limit[each] = start, limit
    moved = is_among(row, unplaced)
    return np.where(moved, address + mappings.start[np.where(moved, row, 0)], address) if moved.any() else address


def _lines(dictionary: Dictionary, strings: StringNumbers, used: Int64) -> tuple[Int64, Lines, Functions]:
    """The lines of locations and the functions that they name. Lines without a function are left out."""
    spans = dictionary.locations.spans(tags.LOCATION_LINES)
    counts = spans.offsets[used + 1] - spans.offsets[used]
    rows = ranges(spans.offsets[used], counts)
    named = dictionary.line_functions[rows] >= 0
    dictionary.note("functions", int((~named).sum()))
    total = offsets_of(named)
    offsets = total[offsets_of(counts)]
    rows = rows[named]
    functions, which = distinct_inverse(dictionary.line_functions[rows])
    table, lines = dictionary.functions, dictionary.lines
    found = Functions(
        strings.of(table.number(tags.FUNCTION_NAME_STRINDEX)[functions]),
        strings.of(table.number(tags.FUNCTION_SYSTEM_NAME_STRINDEX)[functions]),
        strings.of(table.number(tags.FUNCTION_FILENAME_STRINDEX)[functions]),
        table.signed(tags.FUNCTION_START_LINE)[functions],
    )
    columns = lines.signed(tags.LINE_LINE)[rows], lines.signed(tags.LINE_COLUMN)[rows]
    return offsets, Lines(which.astype(np.int32), *columns), found


@dataclass(frozen=True)
class OtlpGroup:
    """Profiles of one scope that have the same samples, and so are one, a sample type each. The first has the samples.
    `resource` and `scope` are attributes. It is the profile `number` of the input, and `is_only` says that there is no
    other."""

    message: Message
    profiles: tuple[int, ...]
    resource: Mapping[str, Value]
    scope: Mapping[str, Value]
    scope_name: str
    number: int = 0
    is_only: bool = False

    def types(self) -> list[tuple[bytes, bytes]]:
        """Type and unit of the values of each profile."""
        return [value_type(self.message, tags.PROFILE_SAMPLE_TYPE, row) for row in self.profiles]

    def period_type(self) -> tuple[bytes, bytes]:
        """Type and unit of the period."""
        return value_type(self.message, tags.PROFILE_PERIOD_TYPE, self.profiles[0])


def value_type(message: Message, tag: int, row: int) -> tuple[bytes, bytes]:
    """Type and unit of what a field of a profile denotes."""
    kind, unit = message.value_types[tag][row].tolist()
    return message.dictionary.text(kind), message.dictionary.text(unit)


def build(group: OtlpGroup, has_events: bool, resource_labels: Sequence[str] = ()) -> Profile:
    """The profile of a group; with `has_events` it has a sample for each event that has a time. Its samples get the
    attributes of the resource that `resource_labels` names as labels."""
    message, dictionary = group.message, group.message.dictionary
    message.made.begin(group.number)
    dictionary.problems.clear()
    profile = Profile()
    strings = StringNumbers(dictionary, profile.strings)
    rows, values, times, is_event = _events(group, has_events)
    stacks = message.stacks[rows]
    good = stacks < np.uint64(len(dictionary.stacks))
    good[good] = dictionary.usable_stacks[stacks[good].astype(np.int64)]
    if not good.all():
        profile.warnings.append(f"{int((~good).sum())} samples were left out because their stack is not in the message")
        rows, values, times, is_event = rows[good], values[good], times[good], is_event[good]
    used, location_offsets, locations = locations_of(message, stacks[good].astype(np.int64))
    frames = frames_of(dictionary, strings, used, group.is_only)
    profile.locations, profile.mappings, profile.functions, profile.address_kinds = frames
    profile.id_origins, profile.stack_source = recorded_ids(profile.mappings), StackSource.RECORDER
    profile.locations.source_row = used + message.first_location
    label_offsets, labels = _labels(message, strings, rows)
    if is_event.any():
        label_offsets, labels = _with_times(profile, label_offsets, labels, times, is_event)
    if resource_labels:
        label_offsets, labels = _with_resource(profile, label_offsets, labels, group.resource, resource_labels)
    profile.samples = Samples(location_offsets, locations, values, label_offsets, labels)
    _add_header(profile, group)
    message.made.repeated.spend(len(profile.strings.array().data))
    for what, count in dictionary.problems.items():
        profile.warnings.append(f"{count} references to {what} that the message does not have were left out")
    return profile


def _totals(message: Message, row: int) -> tuple[Int64, Bool]:
    """What the values of each sample of a profile sum up to, events without a value counting 1, and which samples have
    values."""
    first, last = message.sample_offsets[row : row + 2].tolist()
    offsets, items = message.values
    offsets = offsets[first : last + 1]
    total = np.concatenate((np.zeros(1, np.int64), np.cumsum(items[offsets[0] : offsets[-1]])))
    offsets = offsets - offsets[0]
    times = np.diff(message.timestamps[0][first : last + 1])
    has_values = np.diff(offsets) > 0
    return np.where(has_values, total[offsets[1:]] - total[offsets[:-1]], times), has_values


def _events(group: OtlpGroup, has_events: bool) -> tuple[Int64, Int64, UInt64, Bool]:
    """The rows of the samples, their values, a column for each type, and the time of those that are events."""
    message = group.message
    columns = [_totals(message, row) for row in group.profiles]
    values = np.column_stack([each for each, _ in columns])
    first, last = message.sample_offsets[group.profiles[0] : group.profiles[0] + 2].tolist()
    rows = np.arange(first, last)
    times, is_event = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.bool_)
    if has_events:
        offsets, items = message.timestamps
        counts = np.diff(offsets[first : last + 1])
        has_times = counts > 0
        for row in group.profiles:
            begin, end = message.sample_offsets[row : row + 2].tolist()
            sizes = np.diff(message.values[0][begin : end + 1])
            has_times &= (sizes == 0) | (sizes == counts)
        repeats = np.where(has_times, counts, 1)
        origin = np.repeat(np.arange(len(rows)), repeats)
        is_event = has_times[origin]
        number = np.arange(len(origin)) - np.repeat(offsets_of(repeats)[:-1], repeats)
        times = np.zeros(len(origin), np.uint64)
        times[is_event] = items[(offsets[first:last][origin] + number)[is_event]]
        values = values[origin]
        for column, row in enumerate(group.profiles):
            begin, end = message.sample_offsets[row : row + 2].tolist()
            value_offsets, each = message.values
            starts = value_offsets[begin:end][origin]
            has_value = (np.diff(value_offsets[begin : end + 1]) > 0)[origin]
            values[is_event & ~has_value, column] = 1
            taken = is_event & has_value
            values[taken, column] = each[(starts + number)[taken]]
        rows = rows[origin]
    period = message.profiles.signed(tags.PROFILE_PERIOD)[group.profiles[0]]
    fits = int(values[:, 0].max(initial=0)) * int(period) <= INT64_MAX
    if fits and is_counted(group) and not columns[0][1].any():
        values = np.column_stack((values[:, 0], values[:, 0] * period))
    return rows, np.ascontiguousarray(values), times, is_event


def is_counted(group: OtlpGroup) -> bool:
    """Whether the only values are counts of samples of which each is so much time of a processor (R323, counts of
    samples).

    Then the type is samples/count, the period cpu/nanoseconds, and the profile has cpu/nanoseconds too: the count times
    the period.
    """
    message = group.message
    return (
        len(group.profiles) == 1
        and message.profiles.signed(tags.PROFILE_PERIOD)[group.profiles[0]] > 0
        and group.types() == [SAMPLES_COUNT]
        and group.period_type() == CPU_NANOSECONDS
    )


def locations_of(message: Message, stacks: Int64) -> tuple[Int64, Int64, Int32]:
    """The locations that stacks use, and the stack of each sample as offsets and numbers of those locations."""
    used, which = distinct_inverse(stacks)
    offsets, items = message.dictionary.stacks.list(tags.STACK_LOCATION_INDICES)
    counts = offsets[used + 1] - offsets[used]
    edges = offsets_of(counts)
    locations, number = distinct_inverse(items[ranges(offsets[used], counts)].astype(np.int64))
    sample_offsets = offsets_of(counts[which])
    lines = message.dictionary.locations.spans(tags.LOCATION_LINES).offsets
    cost = int((lines[locations + 1] - lines[locations]).sum()) * LINE_COST
    message.made.frames.spend(int(sample_offsets[-1]) * FRAME_COST + len(locations) * LOCATION_COST + cost)
    return locations, sample_offsets, gather_lists(number.astype(np.int32), edges[:-1][which], sample_offsets)


def _labels(message: Message, strings: StringNumbers, rows: Int64) -> tuple[Int64, Labels]:
    """The labels of samples, as offsets and labels."""
    offsets, items = message.attributes
    counts = offsets[rows + 1] - offsets[rows]
    edges = offsets_of(counts)
    message.made.repeated.spend(int(edges[-1]) * LABEL_COST)
    attributes = gather_lists(items, offsets[rows], edges)
    return sample_labels(message.dictionary, strings, edges, attributes, message.links[rows])


def _with_times(
    profile: Profile, offsets: Int64, labels: Labels, times: UInt64, is_event: Bool
) -> tuple[Int64, Labels]:
    """The labels of samples with the time of those that are events."""
    key, unit = profile.strings.add_all([TIMESTAMP, NANOSECONDS])
    more = Labels.zeros(int(np.count_nonzero(is_event)))
    more.key[:], more.unit[:] = key, unit
    more.number[:] = times[is_event].view(np.int64)
    return _appended(offsets, labels, is_event.astype(np.int64), more)


def _with_resource(
    profile: Profile, offsets: Int64, labels: Labels, resource: Mapping[str, Value], names: Sequence[str]
) -> tuple[Int64, Labels]:
    """The labels of samples with those attributes of the resource that are among `names`."""
    found = [name for name in dict.fromkeys(names) if name in resource]
    for name in names:
        if name not in resource:
            profile.warnings.append(f"the resource has no attribute {name}: samples have no such label")
    count = len(offsets) - 1
    more = Labels.zeros(count * len(found))
    for i, name in enumerate(found):
        key = profile.strings.add(name.encode("utf-8", "surrogateescape"))
        text, number = label_of(profile.strings, resource[name])
        more.key[i :: len(found)], more.text[i :: len(found)], more.number[i :: len(found)] = key, text, number
        # Without a unit pprof takes 0 for no label (R270, numbers of tasks).
        more.unit[i :: len(found)] = 0 if text or number else key
    return _appended(offsets, labels, np.full(count, len(found), np.int64), more)


def _appended(offsets: Int64, labels: Labels, counts: Int64, more: Labels) -> tuple[Int64, Labels]:
    """The labels of samples with `counts` of `more` behind those of each."""
    ends = offsets[1:] + np.cumsum(counts)
    is_new = np.zeros(len(labels.key) + len(more.key), np.bool_)
    is_new[ranges(ends - counts, counts)] = True
    result = Labels.zeros(len(is_new))
    for name in ("key", "text", "number", "unit"):
        getattr(result, name)[~is_new] = getattr(labels, name)
        getattr(result, name)[is_new] = getattr(more, name)
    return np.concatenate((np.zeros(1, np.int64), ends)), result


def _add_header(profile: Profile, group: OtlpGroup) -> None:
    """Fill in what a profile has beside samples."""
    message, first, add = group.message, group.profiles[0], profile.strings.add
    types = group.types()
    message.made.repeated.spend(sum(len(kind) + len(unit) for kind, unit in types))
    if profile.samples.values.shape[1] > len(types):
        types.append(CPU_NANOSECONDS)
    profile.sample_types = [ValueType(add(kind), add(unit)) for kind, unit in types]
    profile.period_type = ValueType(*map(add, group.period_type()))
    numbers = message.profiles
    profile.period = int(numbers.signed(tags.PROFILE_PERIOD)[first])
    profile.time_nanos = int(numbers.signed(tags.PROFILE_TIME_UNIX_NANO)[first])
    profile.duration_nanos = int(numbers.signed(tags.PROFILE_DURATION_NANO)[first])
    default = group.scope.get(shown(DEFAULT_TYPE))
    profile.default_sample_type = add(default) if isinstance(default, bytes) else 0
    attributes = attributes_of(group)
    for key, field in TEXTS.items():
        if isinstance(value := attributes.get(key), bytes):
            del attributes[key]
            message.made.repeated.spend(len(value))
            setattr(profile, field, add(value))
    for text in _comments(group, attributes):
        message.made.repeated.spend(COMMENT_COST + len(text))
        profile.comments.append(add(text))
    take_comments(profile)
    if len(numbers.spans(tags.PROFILE_ORIGINAL_PAYLOAD).of_row(first)):
        profile.warnings.append("the original payload that came along was left out")


def attributes_of(group: OtlpGroup) -> dict[bytes, Value]:
    """The attributes of a profile."""
    message, first = group.message, group.profiles[0]
    offsets, items = message.profiles.list(tags.PROFILE_ATTRIBUTE_INDICES)
    return message.dictionary.attributes_of(items[offsets[first] : offsets[first + 1]])


def comments_of(group: OtlpGroup) -> Iterator[bytes]:
    """The comments of pprof that a profile came with."""
    for key, value in attributes_of(group).items():
        if is_comment(key):
            for text in texts_of(value):
                group.message.made.repeated.spend(COMMENT_COST + len(text))
                yield text


def is_comment(key: bytes) -> bool:
    """Whether an attribute is a comment of pprof, or several."""
    return key == COMMENT or key.startswith(COMMENT + b".")


def _comments(group: OtlpGroup, attributes: dict[bytes, Value]) -> Iterator[bytes]:
    """What pprof has no field for: attributes of the profile, its scope and its resource, and its id."""
    message, first = group.message, group.profiles[0]
    rest: dict[str, Value] = {}
    for key, value in attributes.items():
        if is_comment(key):
            yield from texts_of(value)
        else:
            rest[shown(key)] = value
    order = {shown(DEFAULT_TYPE), shown(TYPE_ORDER)}
    for what, pairs in (("resource", group.resource), ("scope", group.scope), ("profile", rest)):
        yield from (comment(what, key, value) for key, value in pairs.items() if what != "scope" or key not in order)
    if group.scope_name:
        yield comment("scope", "name", group.scope_name.encode("utf-8", "surrogateescape"))
    ids = message.profiles.spans(tags.PROFILE_PROFILE_ID).of_row(first)
    if len(ids) and any(raw := bytes(message.data[int(ids.begins[-1]) : int(ids.ends[-1])])):
        yield b"profile_id: " + raw.hex().encode()
    dropped = int(message.profiles.number(tags.PROFILE_DROPPED_ATTRIBUTES_COUNT)[first])
    if dropped:
        yield b"dropped attributes: %d" % dropped


def comment(what: str, key: str, value: Value) -> bytes:
    """An attribute that pprof has no field for, as a comment."""
    return f"{what}: {key}={value_text(value)}".encode("utf-8", "surrogateescape")

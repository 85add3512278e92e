"""From the tables of a message to profiles."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from symbolize.core.arrays import Bool, Int32, Int64, UInt64, distinct_inverse, gather_lists, offsets_of, ranges
from symbolize.formats.otlp.dictionary import Value, shown, texts_of, value_text
from symbolize.formats.otlp.frames import frames_of
from symbolize.formats.otlp.labels import LABEL_COST, StringNumbers, label_of, sample_labels
from symbolize.formats.otlp.messages import Message
from symbolize.profile.facts import recorded_ids, take_comments
from symbolize.profile.model import Labels, Profile, Samples, StackSource, ValueType
from symbolize.proto import otlp_profiles_tags as tags

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

"""A message of OTLP profiles as columns: its resources, scopes and profiles, and the samples of all of them."""

from collections.abc import Hashable
from functools import cached_property
from typing import Final

import numpy as np

from symbolize.core.arrays import Int64, UInt64
from symbolize.core.budget import MEMORY, Budget
from symbolize.core.errors import InputError
from symbolize.core.messages import MessageLayout, Rows, Spans
from symbolize.core.protobuf import BYTES, NUMBER, VARINT, WIRE_TYPE
from symbolize.formats.otlp import layouts
from symbolize.formats.otlp.dictionary import Dictionary
from symbolize.proto import otlp_profiles_tags as tags

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

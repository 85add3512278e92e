"""The events that CPU samples count, as PerfSampleDefaults, StackSampleDefaults and descriptors name them."""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from symbolize.formats.perfetto.constants import MAX_FOLLOWERS
from symbolize.formats.perfetto.wire import fields, message, signed
from symbolize.proto import perfetto_trace_tags as tags

COUNTERS: Final = (
    "", "cpu-clock", "page-faults", "task-clock", "context-switches", "cpu-migrations", "minor-faults", "major-faults",
    "alignment-faults", "emulation-faults", "cpu-cycles", "instructions", "cache-references", "cache-misses",
    "branch-instructions", "branch-misses", "bus-cycles", "stalled-cycles-frontend", "stalled-cycles-backend",
    "ref-cycles", "dummy",
)  # fmt: skip
"""Events by the numbers of PerfEvents.Counter."""

UNITS: Final = {
    "cpu-clock": "nanoseconds",
    "task-clock": "nanoseconds",
    "cpu-cycles": "cycles",
    "bus-cycles": "cycles",
    "ref-cycles": "cycles",
    "instructions": "instructions",
}
"""Units of events; all others are counts."""

STACK_UNITS: Final = (
    "count", "nanoseconds", "cycles", "instructions", "bytes", "faults", "cache-misses", "cache-references",
    "branch-misses", "count",
)  # fmt: skip

Event = tuple[str, str, int]
"""Name and unit of an event of StackSamples, and how many units a weight of 1 is."""
SAMPLES: Final[Event] = ("samples", "count", 1)

MAX_PERIOD: Final = (1 << 63) - 1


class EventTags(NamedTuple):
    """The tags of a message that describes an event."""

    counter: int
    tracepoint: int
    raw_event: int
    name: int
    modifiers: int
    modifiers_packed: int


TIMEBASE_TAGS: Final = EventTags(
    tags.TIMEBASE_COUNTER,
    tags.TIMEBASE_TRACEPOINT,
    tags.TIMEBASE_RAW_EVENT,
    tags.TIMEBASE_NAME,
    tags.TIMEBASE_MODIFIERS,
    tags.TIMEBASE_MODIFIERS_PACKED,
)
FOLLOWER_TAGS: Final = EventTags(
    tags.FOLLOWER_EVENT_COUNTER,
    tags.FOLLOWER_EVENT_TRACEPOINT,
    tags.FOLLOWER_EVENT_RAW_EVENT,
    tags.FOLLOWER_EVENT_NAME,
    tags.FOLLOWER_EVENT_MODIFIERS,
    tags.FOLLOWER_EVENT_MODIFIERS_PACKED,
)
RAW_EVENT: Final = tags.RAW_EVENT_TYPE, tags.RAW_EVENT_CONFIG, tags.RAW_EVENT_CONFIG1, tags.RAW_EVENT_CONFIG2
MODIFIERS: Final = "ukh"
"""Letters of perf for PerfEvents.EventModifier, from 1 on: user space, kernel, hypervisor."""


@dataclass(frozen=True)
class Session:
    """One source of CPU samples: the events that its values count."""

    kind: str
    event: str
    unit: str
    period: int = 0
    followers: tuple[tuple[str, str], ...] = ()


def read_timebase(data: bytes) -> tuple[Session, int]:
    """The session of PerfSampleDefaults, and the weight of a sample without a difference of its counter.

    That weight is the period, or 1/frequency of a clock; without defaults cpu-clock is counted (R226, running
    counters).
    """
    timebase: dict[int, Any] = {}
    event, unit = "cpu-clock", "nanoseconds"
    followers: list[tuple[str, str]] = []
    for tag, value in fields(data):
        if tag == tags.PERF_SAMPLE_DEFAULTS_TIMEBASE:
            timebase, (event, unit) = message(value), event_of(value, TIMEBASE_TAGS)
        elif tag == tags.PERF_SAMPLE_DEFAULTS_FOLLOWERS and len(followers) < MAX_FOLLOWERS:
            followers.append(event_of(value, FOLLOWER_TAGS))
    period, frequency = timebase.get(tags.TIMEBASE_PERIOD, 0), timebase.get(tags.TIMEBASE_FREQUENCY, 0)
    if not period and frequency and unit == "nanoseconds":
        period = 10**9 // frequency
    period = min(period, MAX_PERIOD)
    return Session("cpu", event, unit, period, tuple(followers)), period


def event_of(data: bytes, numbers: EventTags) -> tuple[str, str]:
    """Name and unit of an event."""
    values = message(data)
    counter, unit, event = values.get(numbers.counter, 0), "count", ""
    if 0 < counter < len(COUNTERS):
        event = COUNTERS[counter]
        unit = UNITS.get(event, "count")
    elif tracepoint := values.get(numbers.tracepoint):
        event = text_of(message(tracepoint), tags.TRACEPOINT_NAME)
    elif numbers.raw_event in values:
        raw = message(values[numbers.raw_event])
        event = "raw" + "".join(f".{raw.get(each, 0):#x}" for each in RAW_EVENT)
    event = text_of(values, numbers.name) or event or "cpu-clock"
    if not counter and event == "cpu-clock":
        unit = "nanoseconds"
    given: set[int] = set()
    for tag, value in fields(data):
        if tag == numbers.modifiers:
            given.add(value)
        elif tag == numbers.modifiers_packed:
            given.update(value)  # a byte each
    letters = "".join(letter for value, letter in enumerate(MODIFIERS, 1) if value in given)
    return (f"{event}:{letters}" if letters else event)[:256], unit


def read_stack_defaults(data: bytes) -> tuple[Event, list[Event]]:
    """The events of StackSampleDefaults: that which triggers, and those beside."""
    event = SAMPLES
    followers: list[Event] = []
    for tag, value in fields(data):
        if tag == tags.STACK_SAMPLE_DEFAULTS_PRIMARY_DESCRIPTOR:
            event = read_descriptor(value)[1]
        elif tag == tags.STACK_SAMPLE_DEFAULTS_FOLLOWER_DESCRIPTORS and len(followers) < MAX_FOLLOWERS:
            followers.append(read_descriptor(value)[1])
    return event, followers


def read_descriptor(data: bytes) -> tuple[int, Event]:
    """Id and event of a CounterDescriptor; a multiplier that is not positive is 1 (R237, multiplied weights)."""
    values = message(data)
    unit = values.get(tags.COUNTER_DESCRIPTOR_UNIT, 0)
    known = STACK_UNITS[unit] if unit < len(STACK_UNITS) else "count"
    event = (
        text_of(values, tags.COUNTER_DESCRIPTOR_NAME)[:256] or "samples",
        text_of(values, tags.COUNTER_DESCRIPTOR_UNIT_STR)[:64] or known,
        max(signed(values.get(tags.COUNTER_DESCRIPTOR_UNIT_MULTIPLIER, 0)), 1),
    )
    return values.get(tags.COUNTER_DESCRIPTOR_IID, 0), event


def text_of(values: dict[int, Any], tag: int) -> str:
    """A field of text, empty if it is not there."""
    return str(values.get(tag, b""), "utf-8", "backslashreplace")

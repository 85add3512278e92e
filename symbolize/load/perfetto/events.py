"""The events that CPU samples count, as PerfSampleDefaults, StackSampleDefaults and descriptors name them."""

from dataclasses import dataclass
from typing import Final

from symbolize.load.perfetto.wire import fields, message, number, signed, text

MAX_FOLLOWERS: Final = 64
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
"""Name and unit of what StackSamples count, and of how many units 1 stands for."""
SAMPLES: Final[Event] = ("samples", "count", 1)

MAX_PERIOD: Final = (1 << 63) - 1


@dataclass(frozen=True)
class Session:
    """One source of CPU samples: the events that its values count."""

    kind: str
    event: str
    unit: str
    period: int = 0
    followers: tuple[tuple[str, str], ...] = ()


def read_timebase(data: bytes) -> tuple[Session, int]:
    """The session of PerfSampleDefaults, and what a sample counts for where its counter does not tell."""
    timebase: dict[int, int | bytes] = {}
    event, unit = "cpu-clock", "nanoseconds"
    followers: list[tuple[str, str]] = []
    for kind, value in fields(data):
        if kind == 1 and isinstance(value, bytes):
            timebase, event, unit = message(value), *event_of(value, 4, 3, 5, 10, 12)
        elif kind == 4 and isinstance(value, bytes) and len(followers) < MAX_FOLLOWERS:
            followers.append(event_of(value, 1, 2, 3, 4, 5))
    period, frequency = number(timebase, 1), number(timebase, 2)
    if not period and frequency and unit == "nanoseconds":
        period = 10**9 // frequency
    period = min(period, MAX_PERIOD)
    return Session("cpu", event, unit, period, tuple(followers)), period


def event_of(data: bytes, counter: int, tracepoint: int, raw: int, name: int, modifiers: int) -> tuple[str, str]:
    """Name and unit of an event; the parameters are the numbers of its fields."""
    values = message(data)
    number_of, unit, event = number(values, counter), "count", ""
    if 0 < number_of < len(COUNTERS):
        event = COUNTERS[number_of]
        unit = UNITS.get(event, "count")
    elif tracepoint in values:
        event = text(message(text(values, tracepoint)), 1).decode("utf-8", "backslashreplace")
    elif raw in values:
        parts = message(text(values, raw))
        event = "raw" + "".join(f".{number(parts, each):#x}" for each in (1, 2, 3, 4))
    event = text(values, name).decode("utf-8", "backslashreplace") or event or "cpu-clock"
    if not number_of and event == "cpu-clock":
        unit = "nanoseconds"
    given: set[int] = set()
    for kind, value in fields(data):
        if kind == modifiers:
            given.update([value] if isinstance(value, int) else value)  # packed, a byte each
    letters = "".join(letter for value, letter in ((1, "u"), (2, "k"), (3, "h")) if value in given)
    return (f"{event}:{letters}" if letters else event)[:256], unit


def read_stack_defaults(data: bytes) -> tuple[Event, list[Event]]:
    """The events of StackSampleDefaults: that which triggers, and those beside."""
    event = SAMPLES
    followers: list[Event] = []
    for kind, value in fields(data):
        if kind == 2 and isinstance(value, bytes):
            event = read_descriptor(value)
        elif kind == 3 and isinstance(value, bytes) and len(followers) < MAX_FOLLOWERS:
            followers.append(read_descriptor(value))
    return event, followers


def read_descriptor(data: bytes) -> Event:
    """Name and unit of a CounterDescriptor, and of how many units 1 stands for; a number that is not positive is 1."""
    values = message(data)
    unit = number(values, 3)
    named = text(values, 4).decode("utf-8", "backslashreplace")[:64]
    known = STACK_UNITS[unit] if unit < len(STACK_UNITS) else "count"
    multiplier = max(signed(number(values, 5)), 1)
    return text(values, 2).decode("utf-8", "backslashreplace")[:256] or "samples", named or known, multiplier

"""The events of a recording: where their fields are, and what they are called."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import NONE, Int32, UInt64
from symbolize.formats.perf import numbers as n
from symbolize.formats.perf.header import Event

X86_64: Final = {
    0: 0,
    1: 3,
    2: 2,
    3: 1,
    4: 4,
    5: 5,
    6: 6,
    7: 7,
    8: 16,
    16: 8,
    17: 9,
    18: 10,
    19: 11,
    20: 12,
    21: 13,
    22: 14,
    23: 15,
}
"""DWARF numbers of the registers by the bits of perf (arch/x86/include/uapi/asm/perf_regs.h)."""
AARCH64: Final = {bit: bit for bit in range(33)}
NUMBERS: Final = {"x86-64": X86_64, "aarch64": AARCH64}
STACK_POINTER: Final = {"x86-64": 7, "aarch64": 31}
PC: Final = {"x86-64": 8, "aarch64": 32}
"""Bits of perf."""
MACHINES: Final = {b"x86_64": "x86-64", b"aarch64": "aarch64", b"arm64": "aarch64"}
X86_BITS: Final = 0xFF0FFF
ARM_BITS: Final = (1 << 33) - 1
"""The registers that perf asks for by default."""

REGISTER_BITS: Final = 64

CLOCKS: Final = re.compile(rb"(?:cpu|task)-clock(?:\Z|:)")
"""Events that count nanoseconds."""
HYBRID: Final = re.compile(rb"cpu_(?:core|atom|lowpower)/(.*)")
"""The events of one kind of the cores of a processor."""


class EventLayout(NamedTuple):
    """What a `perf.scan.Scan` is given: a row of words for each event, the DWARF number of each recorded
    register (-1: none), and where ids are."""

    table: UInt64
    register_columns: Int32
    sample_id_at: int
    trailer_id_at: int


def machine_of(arch: bytes, events: Sequence[Event]) -> str:
    """The machine whose registers were recorded, empty if it is none that is known."""
    if arch:
        return MACHINES.get(arch, "")
    masks = {event.user_registers for event in events} - {0}
    return {X86_BITS: "x86-64", ARM_BITS: "aarch64"}.get(masks.pop() if len(masks) == 1 else 0, "")


def layout_of(events: Sequence[Event], machine: str) -> EventLayout:
    """Where the fields of samples of the events are (R291, ids of events).

    With one event all records are of it. The id is the first word of a sample and the last of any other record if all
    events have `PERF_SAMPLE_IDENTIFIER`; else it is where the fields of the first event put it. A side-band record of
    no known event is read as of the first one; such a sample is left out, with a warning.
    """
    table = np.zeros((len(events), n.EVENT_WORDS), np.uint64)
    columns = np.full((len(events), REGISTER_BITS), NONE, np.int32)
    for row, event in enumerate(events):
        bits = [bit for bit in range(REGISTER_BITS) if event.user_registers >> bit & 1]
        table[row, n.SAMPLE_TYPE] = event.sample_type
        table[row, n.READ_FORMAT] = event.read_format
        table[row, n.BRANCH_TYPE] = event.branch_type
        table[row, n.USER_REGISTERS] = len(bits)
        table[row, n.INTR_REGISTERS] = event.intr_registers.bit_count()
        table[row, n.FIXED_PERIOD] = 1 if event.is_frequency else event.period or 1
        table[row, n.PER_THREAD] = event.is_inherited and bool(event.sample_type & n.HAS_TID)
        if event.sample_type & n.HAS_TIME:
            before = event.sample_type & (n.HAS_IDENTIFIER | n.HAS_IP | n.HAS_TID)
            behind = n.HAS_TIME | n.HAS_ID | n.HAS_STREAM_ID | n.HAS_CPU | n.HAS_IDENTIFIER
            table[row, n.TIME_AT] = n.RECORD_HEADER + 8 * before.bit_count()
            if event.has_sample_id:
                table[row, n.TRAILER_TIME] = 8 * (event.sample_type & behind).bit_count()
        if machine and PC[machine] in bits and STACK_POINTER[machine] in bits:
            table[row, n.IP_REGISTER] = bits.index(PC[machine]) + 1
            for i, bit in enumerate(bits):
                columns[row, i] = NUMBERS[machine].get(bit, NONE)
    return EventLayout(table, columns, *_id_positions(events))


def _id_positions(events: Sequence[Event]) -> tuple[int, int]:
    """How far behind the begin of samples, and before the end of other records, the id of the event is; 0: nowhere."""
    if not events:
        return 0, 0
    first = events[0]
    kind = first.sample_type
    if all(event.sample_type & n.HAS_IDENTIFIER for event in events):
        return n.RECORD_HEADER, 8 if first.has_sample_id else 0
    if not kind & n.HAS_ID:
        return 0, 0
    before = (kind & (n.HAS_IP | n.HAS_TID | n.HAS_TIME | n.HAS_ADDR)).bit_count()
    behind = (kind & (n.HAS_ID | n.HAS_STREAM_ID | n.HAS_CPU)).bit_count()
    return n.RECORD_HEADER + 8 * before, 8 * behind if first.has_sample_id else 0


class EventColumns(NamedTuple):
    """What samples are counted under: name and unit of each pair of values, and which of them each event has."""

    names: list[bytes]
    units: list[bytes]
    of_event: Int32


def columns_of(events: Sequence[Event], used: set[int]) -> EventColumns:
    """The sample types. Events of the same name are one, and so are those that differ in the kind of core only (R292,
    events of hybrid processors). The events that carry side-band records only have none, unless they are `used` or
    all."""
    titles = [event.title for event in events]
    plain = [match[1] if (match := HYBRID.fullmatch(title)) else b"" for title in titles]
    kinds = {each: {title for title, name in zip(titles, plain, strict=True) if name == each} for each in plain}
    names: dict[bytes, int] = {}
    of_event = np.full(len(events), NONE, np.int32)
    all_are_dummies = all(event.is_dummy for event in events)
    for row, event in enumerate(events):
        if event.is_dummy and row not in used and not all_are_dummies:
            continue
        title = titles[row]
        if plain[row] and len(kinds[plain[row]]) > 1:
            event_name, _, modifiers = plain[row].partition(b"/")
            title = event_name + (b":" + modifiers if modifiers else b"")
        of_event[row] = names.setdefault(title, len(names))
    units = [b"nanoseconds" if CLOCKS.match(name) else b"count" for name in names]
    return EventColumns(list(names), units, of_event)

"""What a trace holds: its tables, its names, and notes of what was left out."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from symbolize.core.interning import random_mixer
from symbolize.load.perfetto.clocks import Clocks
from symbolize.load.perfetto.dumps import HeapDumps
from symbolize.load.perfetto.java import Java
from symbolize.load.perfetto.packet_reader import PacketReader
from symbolize.load.perfetto.processes import Processes
from symbolize.load.perfetto.samples import Samples
from symbolize.load.perfetto.sessions import Sessions
from symbolize.profile.strings import Strings

MAX_MAPPINGS: Final = 1 << 17
MAX_PATH: Final = 1 << 12
MAX_STRING_BYTES: Final = 1 << 27
STRING_COST: Final = 128
"""Bytes of all distinct strings; each takes so many beside its content."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping as the trace has it; `exact_offset` is None where it is not there (Android 10)."""

    name: bytes
    build_id: bytes
    start_offset: int
    start: int
    limit: int
    load_bias: int
    exact_offset: int | None


@dataclass(frozen=True, slots=True)
class SymbolLine:
    """A line of a frame that the trace brings symbols for, by strings."""

    function: int
    source: int
    line: int


class Trace:
    """The content of a trace, which the scanner and `Packets` enter within its limits."""

    def __init__(self) -> None:
        mixer = random_mixer()
        self.notes: Counter[str] = Counter()
        self.warnings: list[str] = []
        self.reader = PacketReader(self, mixer)
        self.frames, self.stacks = self.reader.frames, self.reader.stacks
        self.samples = Samples(self.reader)
        self.strings = Strings()
        self._string_bytes = 0
        self._has_all_strings = True
        self.mappings: list[Mapping] = []
        self._mapping_rows: dict[Mapping, int] = {}
        self.clocks = Clocks()
        self.processes = Processes(self.notes)
        self.sessions = Sessions(self.samples, self.notes)
        self.heaps = HeapDumps(self.processes, self.clocks, self.notes, mixer)
        self.symbols: dict[tuple[bytes, bytes], dict[int, list[SymbolLine]]] = {}
        """By module (path and build id) and address."""
        self.java = Java(self.notes)

    def instance(self, machine: int, pid: int, time: int, clock: int) -> int:
        """The process instance that had a pid at the time of a sample."""
        return self.processes.at(machine, pid, self.clocks.boottime(time, clock) if clock else time)

    def string(self, value: bytes) -> int:
        """The row of a string, 0 if there are too many."""
        before = len(self.strings)
        if self._string_bytes + len(value) > MAX_STRING_BYTES:
            self.notes["strings were left out because the trace has too many"] += 1
            self._has_all_strings = False
            return 0
        row = self.strings.add(value)
        if len(self.strings) > before:
            self._string_bytes += len(value) + STRING_COST
        return row

    def mapping(self, build: int, record: tuple[Any, ...], parts: list[int]) -> int:
        """The row of a mapping; -1 if there are too many."""
        name = bytearray()
        # Without its build id, or with a part of its path, a mapping would be taken for another file.
        for part in parts if self._has_all_strings or 0 not in (build, *parts) else ():
            if len(name) > MAX_PATH:
                break
            name += b"/" + self.strings[part][:MAX_PATH]
        if name.startswith(b"//"):
            del name[0]
        start_offset, start, limit, load_bias, exact = record
        # Equal names are one object, and count with the strings.
        path = self.strings[self.string(bytes(name[:MAX_PATH]))]
        mapping = Mapping(path, self.strings[build], start_offset, start, limit, load_bias, exact)
        row = self._mapping_rows.get(mapping)
        if row is None:
            if len(self.mappings) >= MAX_MAPPINGS:
                self.notes["mappings were left out, with the frames in them, because the trace has too many"] += 1
                return -1
            row = self._mapping_rows[mapping] = len(self.mappings)
            self.mappings.append(mapping)
        return row

"""Reading a recording: records in the order of their times, side-band records into processes, samples into tables."""

import os
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from symbolize.core.arrays import Int64
from symbolize.core.errors import InputError
from symbolize.core.interning import Table
from symbolize.load.model import LoadOptions
from symbolize.load.perf import numbers as n
from symbolize.load.perf.events import layout_of, machine_of
from symbolize.load.perf.header import (
    MAX_EVENTS,
    MAX_IDS,
    MAX_TEXT,
    SIMPLEPERF_FILE,
    Bytes,
    Event,
    Facts,
    read_build_id,
    read_event,
)
from symbolize.load.perf.processes import EXECUTABLE, Processes
from symbolize.load.perf.samples import Samples
from symbolize.load.perf.scan import Scan
from symbolize.profile.stack_dumps import REGISTERS
from symbolize.profile.strings import Strings

MAX_QUEUE: Final = 1 << 21
"""Records that wait to be processed in the order of their times."""

KERNEL_PID: Final = 0xFFFFFFFF
EVENT_NAME: Final = 1
"""The kind of EVENT_UPDATE that has a name."""
BPF_SYMBOL: Final = 1
MISC_AT, SIZE_AT = 4, 6

LABELS: Final = {
    "pid": n.LABEL_PID,
    "tid": n.LABEL_TID,
    "comm": n.LABEL_COMM,
    "thread_comm": n.LABEL_THREAD_COMM,
    "cpu": n.LABEL_CPU,
    "cgroup": n.LABEL_CGROUP,
    "execution_mode": n.LABEL_MODE,
}
"""The labels that samples may have, as perf_data_converter calls them."""


class Recording:
    """What was read so far of the recording that errors call `name`."""

    def __init__(self, name: str, is_big: bool, options: LoadOptions) -> None:
        mixer = int.from_bytes(os.urandom(8), "little")
        labels = sum(LABELS[label] for label in set(options.sample_labels))
        self.name = name
        self.strings = Strings()
        self.samples: Any = Samples(labels, mixer)
        self.scan: Any = Scan(self.samples, is_big)
        self.scan.most = MAX_QUEUE
        self.processes = Processes(self.samples, self.strings, options.choice)
        self.facts = Facts(is_big)
        self.events: list[Event] = []
        self.cgroups: list[int] = []
        self._mixer = mixer
        self._is_big = is_big
        self._data = memoryview(b"")
        self._round_end = 0
        self._safe = 0
        self._registers = False
        self._is_stale = True

    def read(self, data: memoryview, begin: int, end: int) -> int:
        """Read the records in `data[begin:end]`; where the last whole one of them ends."""
        self._data = data
        self.scan.set_data(data, begin, end)
        while True:
            if self._is_stale:
                self._enter_events()
            status = self.scan.scan()
            if status == n.FULL:
                self.flush(self._safe)
            elif status == n.OTHER:
                self._user_record(self.scan.begin, self.scan.pos)
            else:
                if status == n.BAD:
                    self._damaged(self.scan.pos)
                return int(self.scan.pos)

    def finish(self) -> None:
        """Process what is queued."""
        self.flush(None)

    def flush(self, limit: int | None) -> None:
        """Process the queued records up to the time `limit`, or half of them if there are none, or all if it is None
        (R294, order of records)."""
        times, offsets = self.scan.queued()
        if not self.scan.is_sorted:
            order = np.argsort(times, kind="stable")
            times, offsets = times[order], offsets[order]
        count = len(times)
        if limit is not None:
            count = int(np.searchsorted(times, np.uint64(limit), side="right")) or (len(times) + 1) // 2
        if not count:
            return
        self._run(offsets[:count].copy())
        self.scan.set_queue(times[count:].copy(), offsets[count:].copy(), int(times[count - 1]))

    def dump_data(self) -> memoryview:
        """What the offsets of stack dumps refer to."""
        return self._data

    def add_event(self, event: Event) -> None:
        """Have one more event. Raises InputError if there are too many."""
        self.events.append(event)
        self._is_stale = True
        if len(self.events) > MAX_EVENTS or sum(len(each.ids) for each in self.events) > MAX_IDS:
            raise InputError(self.name, f"has more than {MAX_EVENTS} events or {MAX_IDS} ids of events")

    def name_events(self) -> None:
        """Give the events the names that the feature section has for them."""
        named = {each: name for event, name in self.facts.names for each in event.ids}
        for event in self.events:
            if not event.name:
                event.name = next((named[each] for each in event.ids if each in named), b"")
        if len(self.facts.names) == len(self.events):
            for event, (_, name) in zip(self.events, self.facts.names, strict=True):
                event.name = event.name or name

    def _enter_events(self) -> None:
        self._is_stale = False
        machine = machine_of(self.facts.arch, self.events)
        layout = layout_of(self.events, machine)
        ids = Table(self._mixer)
        event_of_id: list[int] = []
        for row, event in enumerate(self.events):
            for each in event.ids:
                if each and ids.find(each) < 0:
                    ids.put(each, len(event_of_id))
                    event_of_id.append(row)
        if machine and not self._registers:
            self._registers = True
            self.samples.set_registers(REGISTERS[machine])
        numbers = np.array(event_of_id, np.int32)
        self.scan.set_events(
            layout.table, ids, numbers, layout.register_columns, layout.sample_id_at, layout.trailer_id_at
        )

    def _run(self, offsets: Int64) -> None:
        """Process records at these offsets."""
        self.scan.next = 0
        while (status := self.scan.run(offsets)) != n.DONE:
            if status == n.SIDE_BAND:
                self._side_band(self.scan.begin, self.scan.stop)
            elif status == n.UNKNOWN_THREAD:
                self.processes.thread(self.scan.pid, self.scan.tid)
            elif status == n.STALE_MAPS:
                self.processes.refresh(self.samples.process)

    def _side_band(self, begin: int, end: int) -> None:
        """Process a record of the kernel that is no sample."""
        record = Bytes(self._data[begin:end], self._is_big)
        kind, misc, _ = record.number(4), record.number(2), record.number(2)
        if kind in (n.MMAP, n.MMAP2):
            self._map(record, kind, misc)
        elif kind == n.COMM:
            pid, tid = record.number(4), record.number(4)
            self.processes.comm(pid, tid, text(record), bool(misc & n.MISC_BIT13))
        elif kind in (n.FORK, n.EXIT):
            pid, parent, tid, parent_tid = (record.number(4) for _ in range(4))
            if kind == n.FORK:
                self.processes.fork(pid, parent, tid, parent_tid, bool(misc & n.MISC_BIT13))
            elif pid == tid:
                self.processes.exit(pid)
        elif kind == n.KSYMBOL:
            start, size, what, flags = record.number(8), record.number(4), record.number(2), record.number(2)
            self.processes.symbol(start, size, what == BPF_SYMBOL, text(record), bool(flags & 1))
        elif kind == n.CGROUP:
            number = record.number(8)
            if number and self.samples.cgroups.find(number) < 0:
                self.samples.cgroups.put(number, len(self.cgroups))
                self.cgroups.append(self.strings.add(text(record)))

    def _map(self, record: Bytes, kind: int, misc: int) -> None:
        pid, _ = record.number(4), record.number(4)
        start, size, offset = record.number(8), record.number(8), record.number(8)
        build_id, protection = b"", 0 if misc & n.MISC_BIT13 else EXECUTABLE
        if kind == n.MMAP2:
            inode = record.take(24)
            if misc & n.MISC_BUILD_ID:
                build_id = inode[4 : 4 + inode[0]] if inode else b""
            protection, _ = record.number(4), record.number(4)
        mode = misc & n.MODE_MASK
        if protection & EXECUTABLE and mode < n.GUEST_KERNEL_MODE:
            is_kernel = pid == KERNEL_PID
            self.processes.map(pid, start, size, offset, text(record), build_id, is_kernel)

    def _user_record(self, begin: int, end: int) -> None:
        """Process a record that perf wrote on its own account."""
        record = Bytes(self._data[begin:end], self._is_big)
        kind, misc, _ = record.number(4), record.number(2), record.number(2)
        if kind >= n.SIMPLEPERF_RECORDS:
            raise InputError(self.name, SIMPLEPERF_FILE)
        if kind == n.FINISHED_ROUND:
            self._safe, self._round_end = self._round_end, self.scan.max_time

    def _damaged(self, at: int) -> None:
        self.facts.warnings.append(f"There is no record at offset {at:#x}: the rest of the recording was left out.")


def text(record: Bytes) -> bytes:
    """The rest of a record up to a NUL."""
    return record.take(min(record.left, MAX_TEXT)).partition(b"\0")[0]

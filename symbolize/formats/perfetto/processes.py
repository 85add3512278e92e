"""The processes and threads of a trace: pids belong to a machine, and are used again."""

from collections import Counter
from typing import Final

SAME_START: Final = 1_000_000_000
"""Nanoseconds. Two sources may differ in the start of one process; no pid is used again so soon."""

MAX_MORE: Final = 1 << 12
"""Processes whose pid another one had before, in a whole trace."""
MAX_KNOWN: Final = 1 << 18
"""Pids whose first process is known by its start."""
MAX_SAME: Final = 64
"""Processes that had one pid. Those beyond the limits are one, of which nothing is known, with this number."""
MAX_RECORDS: Final = 1 << 21
"""Times that processes and threads are described."""
MAX_NAME: Final = 1 << 12
MAX_NAME_BYTES: Final = 1 << 27
NAME_COST: Final = 256
"""Bytes of a name, and of all names of processes and threads; each takes so many beside its content."""


class TraceProcesses:
    """Processes and threads with their names.

    An instance is one process of those that had a pid: the machine, and above its 32 bits how many had the pid before
    (R243, processes over time). A process whose start differs by a second or more from that of the one before under its
    pid is another; a time belongs to the last that had started by then.
    """

    def __init__(self, notes: Counter[str]) -> None:
        self.names: dict[tuple[int, int], bytes] = {}
        """By instance and pid."""
        self.threads: dict[tuple[int, int], bytes] = {}
        """By machine and tid."""
        self._notes = notes
        self._starts: dict[tuple[int, int], list[int]] = {}
        self._others: dict[tuple[int, int], tuple[int, int]] = {}
        """Where processes with a pid of `_starts` are too many, when the first and the last of these that were left out
        started."""
        self._more = self._records = self._name_bytes = 0

    def takes(self) -> bool:
        """Whether one more process or thread may be described; counts it."""
        self._records += 1
        if self._records > MAX_RECORDS:
            self._notes["times processes or threads were left out because the trace describes too many"] += 1
        return self._records <= MAX_RECORDS

    def described(self, machine: int, pid: int, start: int) -> int:
        """The instance of a process that a packet describes; `start` is in nanoseconds since boot, 0 unknown."""
        starts, others = self._starts.get((machine, pid), []), self._others.get((machine, pid))
        if start:
            for number, known in enumerate(starts):
                if abs(known - start) < SAME_START:
                    return instance_of(machine, number)
            if not starts:
                if len(self._starts) < MAX_KNOWN:
                    self._starts[machine, pid] = [start]
            elif self._more < MAX_MORE and len(starts) < MAX_SAME:
                self._more += 1
                starts.append(start)
            else:
                self._notes["times processes were left out because the trace has too many with their pid"] += 1
                first, last = others or (start, start)
                self._others[machine, pid] = min(start, first), max(start, last)
                return instance_of(machine, MAX_SAME)
        return instance_of(machine, MAX_SAME if others else max(len(starts) - 1, 0))

    def is_kept(self, instance: int) -> bool:
        """Whether what a packet says of a process is kept; of one beyond the limits nothing is."""
        return instance >> 32 < MAX_SAME

    def is_reused(self, machine: int, pid: int) -> bool:
        """Whether several processes had the pid, according to the packets read so far."""
        return len(self._starts.get((machine, pid), ())) > 1 or (machine, pid) in self._others

    def at(self, machine: int, pid: int, time: int) -> int:
        """The process instance that had the pid at a time in nanoseconds since boot; 0: the one described last."""
        starts, others = self._starts.get((machine, pid), []), self._others.get((machine, pid))
        if len(starts) < 2 and not others:
            return instance_of(machine, 0)
        if not time:
            return instance_of(machine, MAX_SAME if others else len(starts) - 1)
        began = [start for start in starts if start < time + SAME_START]
        if others and others[0] < time + SAME_START and others[1] > max(began, default=0):
            return instance_of(machine, MAX_SAME)
        return instance_of(machine, starts.index(max(began) if began else min(starts)))

    def name(self, names: dict[tuple[int, int], bytes], key: tuple[int, int], name: bytes) -> None:
        """Enter a name into `names` or `threads`, as long as all names stay within their limit."""
        known, name = names.get(key), name[:MAX_NAME]
        more = len(name) + NAME_COST if known is None else len(name) - len(known)
        if self._name_bytes + more > MAX_NAME_BYTES:
            self._notes["names of processes and threads were left out because the trace has too many"] += 1
            return
        self._name_bytes += more
        names[key] = name

    def name_of(self, instance: int, pid: int | None) -> bytes:
        """The name of a process, empty if it or the pid is unknown."""
        return b"" if pid is None else self.names.get((instance, pid), b"")


def instance_of(machine: int, number: int) -> int:
    """A process instance as one number."""
    return machine & 0xFFFFFFFF | number << 32


def machine_of(instance: int) -> int:
    """The machine of a process instance."""
    return instance & 0xFFFFFFFF

"""Which process a pid stands for: pids belong to a machine, and are used again."""

from typing import Final

SAME_START: Final = 1_000_000_000
"""Nanoseconds. Two sources may tell the start of one process a little differently; no pid is back so soon."""

MAX_MORE: Final = 1 << 12
"""Processes whose pid another one had before, in a whole trace."""
MAX_KNOWN: Final = 1 << 18
"""Pids whose first process is known by its start."""
MAX_SAME: Final = 64
"""Processes that had one pid."""


class Processes:
    """Processes by machine and pid. Each is a place: the machine, and above its 32 bits how many had the pid before
    (rule R243)."""

    def __init__(self) -> None:
        self._starts: dict[tuple[int, int], list[int]] = {}
        self._more = 0

    def described(self, machine: int, pid: int, start: int) -> int:
        """The place of a process that a packet describes; `start` is in nanoseconds since boot, 0 unknown."""
        starts = self._starts.get((machine, pid), [])
        if start:
            for number, known in enumerate(starts):
                if abs(known - start) < SAME_START:
                    return place_of(machine, number)
            if not starts:
                if len(self._starts) < MAX_KNOWN:
                    self._starts[machine, pid] = [start]
            elif self._more < MAX_MORE and len(starts) < MAX_SAME:
                self._more += 1
                starts.append(start)
        return place_of(machine, max(len(starts) - 1, 0))

    def is_reused(self, machine: int, pid: int) -> bool:
        """Whether several processes had the pid, as far as the trace said until now."""
        return len(self._starts.get((machine, pid), ())) > 1

    def at(self, machine: int, pid: int, time: int) -> int:
        """The place of the process that had the pid at a time in nanoseconds since boot; 0: the one described last."""
        starts = self._starts.get((machine, pid), [])
        if len(starts) < 2:
            return place_of(machine, 0)
        if not time:
            return place_of(machine, len(starts) - 1)
        began = [start for start in starts if start < time + SAME_START]
        return place_of(machine, starts.index(max(began) if began else min(starts)))


def place_of(machine: int, number: int) -> int:
    """A place as one number."""
    return machine & 0xFFFFFFFF | number << 32


def machine_of(place: int) -> int:
    """The machine of a place."""
    return place & 0xFFFFFFFF

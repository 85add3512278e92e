"""The clocks of a trace, as its first snapshot relates them."""

from symbolize.proto.perfetto_trace_tags import (
    BUILTIN_CLOCK_BOOTTIME,
    BUILTIN_CLOCK_MAX_ID,
    BUILTIN_CLOCK_MONOTONIC,
    BUILTIN_CLOCK_MONOTONIC_COARSE,
    BUILTIN_CLOCK_REALTIME,
)


class Clocks:
    """What clocks showed at one moment, in nanoseconds. Clocks of a single sequence are left out."""

    def __init__(self) -> None:
        self._times: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._times)

    def add(self, clock: int, time: int) -> None:
        """Take what a clock showed."""
        if 0 < clock <= BUILTIN_CLOCK_MAX_ID:
            self._times[clock] = time

    def boottime(self, time: int, clock: int) -> int:
        """A time of a clock in nanoseconds since boot; 0 if the clocks that are known yet do not relate them."""
        return max(self._converted(time, clock, BUILTIN_CLOCK_BOOTTIME), 0)

    def realtime(self, time: int, clock: int) -> int:
        """A time of a clock in nanoseconds since 1970; 0 if the clocks of the trace do not relate them."""
        result = self._converted(time, clock, BUILTIN_CLOCK_REALTIME)
        return result if 0 < result < 1 << 63 else 0

    def _converted(self, time: int, clock: int, to: int) -> int:
        base, shown = self._times.get(clock), self._times.get(to)
        if not base and clock == BUILTIN_CLOCK_MONOTONIC_COARSE:
            base = self._times.get(BUILTIN_CLOCK_MONOTONIC)
        return shown + time - base if base and shown and time else 0

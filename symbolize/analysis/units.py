"""Values with their units, for reading."""

import re
from typing import Final

from symbolize.core.errors import printable
from symbolize.profile.sample_types import unit_of

SCALES: Final = {
    "time": ((3600e9, "hrs"), (1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")),
    "size": tuple((1024.0**power, f"{'BkMGTP'[power]}{'B' * (power > 0)}") for power in range(5, -1, -1)),
    "gcu": tuple((1000.0 ** (8 - row), f"{each}*GCU".lstrip("*")) for row, each in enumerate((*"PTGMk", "", *"mun"))),
}
"""What each kind of unit is scaled to, as in pprof: how many of the smallest unit it is, and its name."""
COUNTS: Final = re.compile("(count|sample|unit)?s?", re.IGNORECASE)
"""Units that are not printed behind a number."""
MAX_UNIT: Final = 32
"""Letters of a unit that is printed: it is repeated in each row."""


def quantity(value: float, unit: str, space: str = "") -> str:
    """A value with its unit behind `space`, scaled for reading: `1.23s`, `4.5MB`, `17`, `3cycles`."""
    known = unit_of(unit)
    if known is None:
        number = f"{value:,.0f}" if space else f"{value:.0f}"
        is_bare = COUNTS.fullmatch(unit) or len(unit) > MAX_UNIT
        return number if is_bare else f"{number}{space}{printable(unit)}"
    size, scales = value * known.factor, SCALES[known.kind]
    for factor, name in scales[:-1]:
        if abs(size) >= factor:
            return f"{size / factor:.2f}{space}{name}"
    factor, name = scales[len(scales) - 1]
    return f"{size / factor:.0f}{space}{name}"


def quantity_of(value: float, kind: str, unit: str) -> str:
    """A value, its unit and its sample type as words: `1.23 s wall`, `3,000 cycles`."""
    return f"{quantity(value, unit, ' ')} {kind if kind != unit else ''}".strip()


def percent(value: float, total: float) -> str:
    """The share of a total, as pprof writes it."""
    return f"{100 * value / total:.2f}%" if total else "0%"

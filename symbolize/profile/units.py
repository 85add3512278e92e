"""Units of values, and what one is of another."""

from collections.abc import Iterator
from typing import Final, NamedTuple


class Unit(NamedTuple):
    """A unit: what it measures, and how many of the smallest unit for that it is."""

    kind: str
    factor: int


def _units() -> Iterator[tuple[str, Unit]]:
    """The units by all names that pprof knows for them, and minutes, in the singular."""
    for power, names in enumerate(("b byte", "kb kbyte kilobyte", "mb mbyte megabyte", "gb gbyte gigabyte")):
        yield from ((name, Unit("size", 1024**power)) for name in names.split())
    for power, names in enumerate(("tb tbyte terabyte", "pb pbyte petabyte"), 4):
        yield from ((name, Unit("size", 1024**power)) for name in names.split())
    for power, names in enumerate(("ns nanosecond", "us μs microsecond", "ms millisecond", "s sec second")):
        yield from ((name, Unit("time", 1000**power)) for name in names.split())
    yield from ((name, Unit("time", 60 * 10**9)) for name in ("min", "minute"))
    yield from ((name, Unit("time", 3600 * 10**9)) for name in ("hour", "hr"))
    for power, prefix in enumerate(("nano", "micro", "milli", "", "kilo", "mega", "giga", "tera", "peta")):
        yield f"{prefix}gcu", Unit("gcu", 1000**power)


UNITS: Final = dict(_units())
SHORT: Final = 2
"""Characters of a unit that has no plural."""


def unit_of(name: str) -> Unit | None:
    """The unit of a name, whatever its case and number; None if it is none of size or time."""
    name = name.lower()
    return UNITS.get(name.removesuffix("s") if len(name) > SHORT else name)

"""Values with their units, for reading."""

from typing import Final

TIME_UNITS: Final = {"nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0}
SIZE_UNITS: Final = {"bytes": 1.0, "kilobytes": 1024.0, "megabytes": 1024.0**2}


def quantity(value: float, unit: str) -> str:
    """A value with its unit, scaled for reading: `1.23s`, `4.5MB`, `17`."""
    if unit in TIME_UNITS:
        return scaled(value * TIME_UNITS[unit], ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")))
    if unit in SIZE_UNITS:
        return scaled(value * SIZE_UNITS[unit], ((1024.0**3, "GB"), (1024.0**2, "MB"), (1024.0, "kB"), (1.0, "B")))
    return f"{value:.0f}"


def scaled(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """A value in the largest unit that is not larger than it; the smallest one has no decimals."""
    factor, name = next((each for each in units if abs(value) >= each[0]), units[len(units) - 1])
    digits = 2 if (factor, name) != units[len(units) - 1] else 0
    return f"{value / factor:.{digits}f}{name}"


def percent(value: float, total: float) -> str:
    """The share of a total, as pprof writes it."""
    return f"{100 * value / total:.2f}%" if total else "0%"

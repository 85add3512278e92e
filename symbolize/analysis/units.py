"""Values with their units, for reading."""

from typing import Final

TIME_UNITS: Final = {"nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0}
SIZE_UNITS: Final = {"bytes": 1.0, "kilobytes": 1024.0, "megabytes": 1024.0**2}


def quantity(value: float, unit: str, space: str = "") -> str:
    """A value with its unit behind `space`, scaled for reading: `1.23s`, `4.5MB`, `17`."""
    if unit in TIME_UNITS:
        size, scales = value * TIME_UNITS[unit], ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
    elif unit in SIZE_UNITS:
        size, scales = value * SIZE_UNITS[unit], ((1024.0**3, "GB"), (1024.0**2, "MB"), (1024.0, "kB"), (1.0, "B"))
    else:
        return f"{value:,.0f}" if space else f"{value:.0f}"
    for factor, name in scales[:-1]:
        if abs(size) >= factor:
            return f"{size / factor:.2f}{space}{name}"
    factor, name = scales[len(scales) - 1]
    return f"{size / factor:.0f}{space}{name}"


def percent(value: float, total: float) -> str:
    """The share of a total, as pprof writes it."""
    return f"{100 * value / total:.2f}%" if total else "0%"

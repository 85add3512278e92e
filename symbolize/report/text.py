"""The report as text for a terminal."""

from collections.abc import Iterator

from symbolize.core.errors import printable
from symbolize.report.model import MappingRow, Report
from symbolize.report.reason_texts import HINTS, TEXTS, Hints, advice

NAME_WIDTH = 44
TIME_UNITS = {"nanoseconds": 1e-9, "microseconds": 1e-6, "milliseconds": 1e-3, "seconds": 1.0}
SIZE_UNITS = {"bytes": 1.0, "kilobytes": 1024.0, "megabytes": 1024.0**2}


def render(report: Report, *, verbose: bool = False, colour: bool = False, hints: Hints = HINTS) -> str:
    """The table of mappings, the summary and the heaviest functions; `verbose` adds everything that was tried."""
    lines = [*mapping_table(report, verbose, hints), "", summary(report, colour)]
    if report.top:
        lines += ["", *top_table(report)]
    lines += [f"warning: {printable(warning)}" for warning in report.warnings]
    lines += [
        f"warning: {printable(failure.sentence)}; names or lines may be missing, run again"
        for failure in report.failures
    ]
    return "\n".join(lines) + "\n"


def mapping_table(report: Report, verbose: bool, hints: Hints) -> Iterator[str]:
    """A row a mapping with samples in it, and below it the file used, and what was missed and why."""
    yield f"{'mapping':<{NAME_WIDTH}} {'build id':<12} {'locations':>11} {'symbolized':>10} {'of value':>8}"
    for row in sorted(report.mappings, key=lambda row: -row.value):
        if not row.locations and not verbose:
            continue
        share = f"{100 * row.symbolized_value / row.value:.1f} %" if row.value else "-"
        weight = f"{100 * row.value / report.value:.1f} %" if report.value else "-"
        count = f"{row.symbolized_locations}/{row.locations}"
        build_id = printable(row.build_id)[:12] or "-"
        yield f"{shorten(label(row)):<{NAME_WIDTH}} {build_id:<12} {count:>11} {share:>10} {weight:>8}"
        if row.files:
            yield f"    from {printable(', '.join(row.files))}" + how_sure(row)
        for reason, locations, value in row.misses:
            part = f"{100 * value / row.value:.1f} %" if row.value else "-"
            detail = f" ({printable(row.detail)})" if row.detail else ""
            yield f"    {locations} not, {part}: {TEXTS[reason]}{detail}{advice(reason, hints)}"
        if row.approximate_lines:
            part = f", {100 * row.approximate_value / row.value:.1f} %" if row.value else ""
            yield f"    {row.approximate_lines} with an approximate line{part}: the nearest earlier one of the function"
        for problem in row.problems:
            yield f"    problem: {printable(problem)}"
        if verbose:
            for place, outcome in row.tried:
                yield f"    tried {printable(place)}: {printable(outcome)}"


def summary(report: Report, colour: bool) -> str:
    """A line on how much of the sample value has names."""
    what = f"{printable(report.sample_type) or 'sample'} value"
    text = (
        f"{report.percent:.1f} % of {what} symbolized: {report.symbolized_locations} of {report.locations} locations, "
        f"{report.samples} samples, {quantity(report.sample_value, report.unit)}"
    )
    return f"\x1b[1m{text}\x1b[0m" if colour else text


def top_table(report: Report) -> Iterator[str]:
    """The functions with the most value of their own."""
    yield f"{'flat':>10} {'flat %':>7} {'cum':>10} {'cum %':>7}  heaviest functions"
    total = report.sample_value or 1.0
    for function in report.top:
        yield (
            f"{quantity(function.flat, report.unit):>10} {100 * function.flat / total:>6.1f}% "
            f"{quantity(function.cumulative, report.unit):>10} {100 * function.cumulative / total:>6.1f}%  "
            f"{printable(function.name)}"
        )


def label(row: MappingRow) -> str:
    """What a mapping is called."""
    return row.name or ("(no file name)" if row.build_id else "(no mapping)")


def shorten(name: str) -> str:
    """A name cut in front to fit its column."""
    name = printable(name)
    return name if len(name) <= NAME_WIDTH else "…" + name[-NAME_WIDTH + 1 :]


def quantity(value: float, unit: str) -> str:
    """A value with its unit, scaled for reading: `1.23s`, `4.5MB`, `17`."""
    if unit in TIME_UNITS:
        seconds = value * TIME_UNITS[unit]
        for factor, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
            if seconds >= factor:
                return f"{seconds / factor:.2f}{name}"
        return f"{seconds * 1e9:.0f}ns"
    if unit in SIZE_UNITS:
        size = value * SIZE_UNITS[unit]
        for factor, name in ((1024.0**3, "GB"), (1024.0**2, "MB"), (1024.0, "kB")):
            if size >= factor:
                return f"{size / factor:.2f}{name}"
        return f"{size:.0f}B"
    return f"{value:.0f}"


def how_sure(row: MappingRow) -> str:
    """The mark of files that may not be those that ran."""
    if row.verified:
        return ""
    return " (unverified)" if row.build_id else " (unverified: no build id)"

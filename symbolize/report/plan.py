"""The plan for a profile as text."""

from symbolize.core.errors import printable
from symbolize.report.model import Report
from symbolize.report.reason_texts import HINTS, TEXTS, Hints, advice
from symbolize.report.text import NAME_WIDTH, how_sure, label, shorten


def render(report: Report, *, verbose: bool = False, hints: Hints = HINTS) -> str:
    """A mapping a paragraph, the heaviest first: what would be used, what is wanted, what would be missed and why."""
    lines = []
    for row in sorted(report.mappings, key=lambda row: -row.value):
        if not row.locations and not verbose:
            continue
        weight = f"{100 * row.value / report.value:.1f} %" if report.value else "-"
        build_id = printable(row.build_id) or "no build id"
        lines.append(f"{shorten(label(row)):<{NAME_WIDTH}} {row.locations:>8} locations {weight:>8}  {build_id}")
        if row.files:
            state = f", {row.state}" if row.state else ""
            lines.append(f"    use {printable(', '.join(row.files))}{how_sure(row)}{state}")
        if row.wanted:
            lines.append(f"    wanted: {' and '.join(row.wanted)} of {printable(row.wanted_id)}")
        for reason, locations, _ in row.misses:
            detail = f" ({printable(row.detail)})" if row.detail else ""
            lines.append(f"    {locations} without names: {TEXTS[reason]}{detail}{advice(reason, hints)}")
        lines += [f"    problem: {printable(problem)}" for problem in row.problems]
        if verbose:
            lines += [f"    tried {printable(place)}: {printable(outcome)}" for place, outcome in row.tried]
    lines.append(f"for {report.percent:.1f} % of the value there is a binary or a name")
    lines += [f"warning: {printable(warning)}" for warning in report.warnings]
    return "\n".join(lines) + "\n"

"""The report as one HTML page without anything to load."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from symbolize.analysis.units import quantity
from symbolize.core.errors import printable
from symbolize.core.terminal import Style
from symbolize.report.advice import HINTS, Advice, Hints
from symbolize.report.model import Report
from symbolize.report.text import ReportRow, label, mapping_details, named, share, shares, summary

STYLE: Final = """
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%;margin:1rem 0}
th,td{text-align:left;padding:.25rem .75rem .25rem 0;border-bottom:1px solid #8884;vertical-align:top}
th.n,td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td{overflow-wrap:anywhere}small{display:block;opacity:.7}.warning{color:#a60}
"""
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
UNWRAPPED: Final = 1 << 20


def page(sections: Iterable[str], rows: Sequence[ReportRow] = ()) -> str:
    """The page with a section for each profile, and a table of all if there are several."""
    overview = ""
    if len(rows) > 1:
        body = ((f"{row.samples:,}", row.value, row.leaf_percent, row.percent, row.subject, row.kind) for row in rows)
        heads = ("stacks", "value", "named by samples", "named by frames", "profile", "kind")
        overview = f"<h1>{len(rows)} profiles</h1>{table(heads, (cells(row, 4) for row in body), 4)}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>symbolize: report</title><style>{STYLE}</style></head>\n"
        f"<body>{overview}{''.join(sections)}</body></html>\n"
    )


def section(report: Report, profile: str, output: str, hints: Hints = HINTS, *, is_kept: bool = False) -> str:
    """The report on the input `profile`, written to `output` (empty: to none) unless what was there `is_kept`."""
    advice = Advice(hints)
    advice.add(report)
    warnings = "".join(f'<p class="warning">warning: {text(each)}</p>' for each in (*advice.first, *report.cautions))
    hint_list = "".join(f"<li><b>{text(what)}</b>: {text(hint)}</li>" for what, hint in advice.sentences())
    written = f"Kept {output}: names are in it, and this run found none." if is_kept else f"Written to {output}."
    return (
        f"<section><h1>{text(profile)}</h1>{warnings}"
        f"<p><b>{text(' '.join(summary(report, Style(), UNWRAPPED)))}</b></p><p>{text(written if output else '')}</p>"
        f"<h2>Heaviest functions</h2>{table(('flat', '%', 'cum', '%', 'function'), top_rows(report), 4)}"
        f"<h2>Mappings</h2>{table(('flat', 'cum', 'named', 'mapping'), mapping_rows(report), 3)}"
        + (f"<h2>What to do</h2><ul>{hint_list}</ul>" if hint_list else "")
        + "</section>\n"
    )


def top_rows(report: Report) -> Iterator[str]:
    """The heaviest functions as rows."""
    for function in report.top:
        values = [
            column
            for value in function[1:]
            for column in (quantity(value, report.unit), share(value, report.sample_value))
        ]
        yield cells((*values, function.name), 4)


def mapping_rows(report: Report) -> Iterator[str]:
    """The mappings with samples in them as rows."""
    for row in report.by_weight():
        details = "".join(f"<small>{text(each)}</small>" for each in mapping_details(report, row, False))
        yield cells((*shares(report, row), named(row)), 3) + f"<td>{text(label(row.name, row.build_id))}{details}</td>"


def table(heads: Sequence[str], rows: Iterable[str], numbers: int) -> str:
    """A table; the first `numbers` columns have numbers."""
    head = "".join(f"<th{' class=n' * (column < numbers)}>{text(each)}</th>" for column, each in enumerate(heads))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table>"


def cells(values: Sequence[str], numbers: int) -> str:
    """The cells of a row."""
    return "".join(f"<td{' class=n' * (column < numbers)}>{text(each)}</td>" for column, each in enumerate(values))


def text(value: str) -> str:
    """A text from a file, as text and nothing else."""
    return escape(printable(value))

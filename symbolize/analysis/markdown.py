"""Tables as Markdown, for the comment on a change: names are in code, so that nothing in them is markup, a mention or a
link."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from symbolize.analysis.tables import ShownTable
from symbolize.analysis.text import text_lines
from symbolize.core.errors import printable
from symbolize.core.terminal import shortened_function

MAX_CELLS: Final = 160
"""Cells of a name, or of a line of source."""
MAX_SENTENCE: Final = 1000
MAX_NOTES: Final = 5
"""Sentences that are listed."""
PARTS: Final = re.compile(r"[`|]|[^`|]+")
FIGURE: Final = re.compile(r"(?:[-+]?[0-9][0-9A-Za-z.,]*(?: ?%)?|[-A-Za-z]*)")
"""A number, with its unit, or a word: no name of a host, which would be a link."""
TITLES: Final = {
    "functions": "Functions with the most value of their own",
    "calls": "Call tree",
    "lines": "Source lines",
    "changes": "What changed",
    "spread": "What changed",
}
"""By what the rows of a table are."""


def markdown_lines(table: ShownTable, subject: str, caveats: Sequence[str]) -> Iterator[str]:
    """A heading with what was measured, the rows, how many there are more, and the `caveats`."""
    yield f"### {TITLES[table.kind]}: {subject}"
    yield from ("", code(table.summary, MAX_SENTENCE), "")
    if table.kind in ("calls", "lines"):
        yield from fenced([*text_lines(table, MAX_CELLS)][1:])
    else:
        shown = [(number, column) for number, column in enumerate(table.columns) if column.heading]
        rows = ([column.text(row[number]) for number, column in shown] for row in table.rows)
        yield from table_rows([column.heading for _, column in shown], rows)
    for each in (table.conclusion, more(len(table.rows), table.rows_total)):
        yield from ("", each) if each else ()
    yield from noted(caveats)


def table_rows(headings: Sequence[str], rows: Iterable[Sequence[str]], width: int = MAX_CELLS) -> Iterator[str]:
    """A table with the last column at the left, of at most `width` cells, the others at the right. A cell that is no
    plain figure is code."""
    yield f"| {' | '.join(headings)} |"
    yield f"|{' ---: |' * (len(headings) - 1)} --- |"
    for row in rows:
        figures = (text if FIGURE.fullmatch(text) else code(text) for text in row[:-1])
        yield f"| {' | '.join(figures)} | {code(row[-1], width)} |"


def more(shown: int, total: int, what: str = "rows") -> str:
    """A sentence on what is not shown; empty if all is."""
    return f"{shown:,} of {total:,} {what} are shown." if shown < total else ""


def noted(texts: Sequence[str]) -> Iterator[str]:
    """Sentences that have to be read with a table, as a list."""
    yield from [""] if texts else ()
    yield from (f"- {code(text, MAX_SENTENCE)}" for text in texts[:MAX_NOTES])
    yield from [f"- and {len(texts) - MAX_NOTES:,} more"] if len(texts) > MAX_NOTES else ()


def code(text: str, width: int = MAX_CELLS) -> str:
    """A text as code in a line or cell. What ends code or a cell is a character reference between parts of it: how
    backslashes and longer delimiters are read there, renderers do not agree on."""
    parts = PARTS.findall(shortened_function(printable(text), width))
    return "".join(f"&#{ord(part)};" if part in "`|" else f"`{part}`" for part in parts)


def fenced(lines: Sequence[str]) -> Iterator[str]:
    """Lines as a block of code, whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(longest + 1, 3)
    yield from (f"{fence}text", *lines, fence)

"""Rewrites the column of code in docs/rules.md by the citations in the package: `python -m tools.rules`."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "rules.md"
PACKAGE = ROOT / "symbolize"

CITATION = re.compile(r"\bR(\d{1,3})(?:\s*[-–]\s*R?(\d{1,3}))?\b")
"""A rule, or a range of them, as code cites it."""

ROW = re.compile(r"^\| R(\d+), ([^|]+) \| ([^|]+) \|.*\|$", re.MULTILINE)
"""A row of the page: number, title, sentence."""

MOST = 4
"""So many modules of a rule are named."""


def cited_by(text: str) -> Iterator[int]:
    """The rules that a text cites."""
    for first, last in CITATION.findall(text):
        yield from range(int(first), int(last or first) + 1)


def citing_modules(package: Path = PACKAGE) -> dict[int, list[str]]:
    """The modules below a package that cite each rule, as sorted paths."""
    modules: dict[int, list[str]] = {}
    for path in sorted(package.rglob("*.py")):
        for rule in set(cited_by(path.read_text())):
            modules.setdefault(rule, []).append(path.relative_to(package).as_posix())
    return modules


def cell(modules: list[str]) -> str:
    """The cell of code of a rule."""
    further = f" and {len(modules) - MOST} more" if len(modules) > MOST else ""
    return ", ".join(f"`{module}`" for module in modules[:MOST]) + further


def with_modules(text: str, modules: dict[int, list[str]]) -> str:
    """The page with the modules that cite each rule in its last column."""

    def row(match: re.Match[str]) -> str:
        number, title, sentence = match.groups()
        return f"| R{number}, {title} | {sentence} | {cell(modules.get(int(number), []))} |"

    return ROW.sub(row, text)


def main() -> None:
    """Rewrite the page."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    PAGE.write_text(with_modules(PAGE.read_text(), citing_modules()))


if __name__ == "__main__":
    main()

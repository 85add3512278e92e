"""Rewrites the column of code in docs/rules.md by the citations in the package, and says the number of the next rule:
`python -m tools.rules`."""

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


def next_number(text: str) -> int:
    """The number for a rule that is added to the page."""
    return max(int(number) for number, _, _ in ROW.findall(text)) + 1


def main() -> None:
    """Rewrite the page, and print the next number."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    text = PAGE.read_text()
    PAGE.write_text(with_modules(text, citing_modules()))
    print(f"the next rule is R{next_number(text)}")


if __name__ == "__main__":
    main()

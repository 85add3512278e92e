"""Write the manual pages symbolize(1), symbolize-batch(1) and so on from the parsers of the commands.

    python tools/man_pages.py build/man

Generators for argparse that are known make titles of two words, which mandoc refuses, and know no short summaries.
The date is that of SOURCE_DATE_EPOCH, if it is set, so that builds are reproducible.
"""

import argparse
import os
import re
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

from symbolize import __version__
from symbolize.cli.arguments import Parser, explanation, value_name
from symbolize.cli.commands import COMMANDS, parser_of

MAX_LINE = 78


def page(name: str) -> str:
    """The source of the page of a command; without a name that of the program."""
    return "\n".join(lines(parser_of(name), COMMANDS[name].summary if name else "")) + "\n"


def lines(parser: Parser, summary: str) -> Iterator[str]:
    """The lines of a page."""
    title = parser.prog.replace(" ", "-")
    date = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    yield f'.TH {title.upper()} 1 "{date}" "symbolize {__version__}" "User Commands"'
    yield ".nh"  # names of options are not hyphenated
    yield from (".SH NAME", f"{title} \\- {escaped(summary or 'name the addresses of profiles')}")
    yield ".SH SYNOPSIS"
    for number, form in enumerate(parser.forms):
        yield from [".br"] * bool(number)
        yield f".B {parser.prog}"
        yield escaped(form)
    yield from (".SH DESCRIPTION", escaped(parser.description or ""))
    if parser.listed:
        yield ".SH COMMANDS"
        for command, what in parser.listed.items():
            yield from (".TP", f".BR symbolize\\-{command} (1)", escaped(what.capitalize() + "."))
    for section, actions in parser.sections():
        yield f'.SH "{section.upper()}"'
        for action in actions:
            yield from (".TP", invocation(action), escaped(explanation(action)))
    if parser.epilog:
        yield ".SH NOTES"
        yield "\n.PP\n".join(map(escaped, parser.epilog.split("\n")))
    others = ["symbolize", *(f"symbolize-{name}" for name in COMMANDS)]
    yield ".SH SEE ALSO"
    yield ",\n".join(f".BR {escaped(other)} (1)" for other in others if other != title).replace("(1),", "(1) ,")


def invocation(action: argparse.Action) -> str:
    """How an option is given, flags in bold and values in italics."""
    if not action.option_strings:
        return f"\\fI{escaped(value_name(action))}\\fR"
    value = "" if action.nargs == 0 else f" \\fI{escaped(value_name(action))}\\fR"
    return ", ".join(f"\\fB{escaped(flag)}\\fR" for flag in sorted(action.option_strings, key=len)) + value


def escaped(text: str) -> str:
    """Text as roff source; sentences begin on lines of their own."""
    sentences = re.split(r"(?<=[a-z)]\.) ", text.replace("\\", "\\e").replace("-", "\\-"))
    wrapped = [line for each in sentences for line in textwrap.wrap(each, MAX_LINE, break_on_hyphens=False)]
    return "\n".join("\\&" * line.startswith((".", "'")) + line for line in wrapped)


def main(folder: str) -> None:
    """Write all pages to `folder`."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    for name in ("", *COMMANDS):
        title = f"symbolize-{name}" if name else "symbolize"
        Path(folder, f"{title}.1").write_text(page(name))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    main(sys.argv[1])

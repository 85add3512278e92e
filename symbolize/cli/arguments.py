"""The parser that all commands share: help in two lengths, errors of one line, suggestions, settings."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Never

from symbolize.cli.options import EXIT_USAGE, print_error, print_output
from symbolize.core.errors import did_you_mean, printable

GROUPS: Final[tuple[str, ...]] = (
    *(
        "Arguments",
        "Binaries",
        "Output",
        "Selection",
        "Sources",
        "Names",
        "Report",
        "Server",
        "Cache",
        "Execution",
        "Limits",
    ),
    *("Watching", "Formats", "General"),
)
"""The titles of groups of options, in the order of the help."""
COLUMN: Final = 28
"""Where the explanations of options begin."""
NARROW, WIDE = 80, 100
"""Columns of the short help, and the most that the long one takes."""
NUMBER: Final = re.compile(r"-\d+|-\d*\.\d+")


class Parser(argparse.ArgumentParser):
    """The parser of one command.

    `usage` is what follows the name of the command, a line for each form. The short help has the options of `brief`,
    all if it is empty, and of each the first line of its explanation. `listed` are words with a line each that come
    first, such as the commands.
    """

    def __init__(
        self,
        prog: str,
        description: str,
        usage: Sequence[str],
        *,
        brief: Sequence[str] = (),
        epilog: str = "",
        listed: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(prog=prog, description=description, epilog=epilog, add_help=False)
        self.forms = usage
        self.brief = brief
        self.listed = listed or {}
        self.adjustments: list[Callable[[argparse.Namespace], None]] = []
        """Called with what the command line says, before settings and defaults fill the rest."""
        self.conclusions: list[Callable[[argparse.Namespace], None]] = []
        """Called when these have filled the rest."""
        self.groups: dict[str, argparse._ArgumentGroup] = {}
        general = self.group("General")
        general.add_argument("-h", action=Help, nargs=0, help="show the most used options; --help shows all")
        general.add_argument("--help", action=Help, nargs=0, help="show all options")
        general.add_argument("--version", "-V", action=Version, nargs=0, help="show the version")
        general.add_argument(
            "--no-config", action="store_true", help="ignore symbolize.toml and SYMBOLIZE_ environment variables"
        )

    def group(self, title: str) -> argparse._ArgumentGroup:
        """The group of options with this title, one of GROUPS."""
        if title not in self.groups:
            self.groups[title] = self.add_argument_group(title)
        return self.groups[title]

    def parse_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """The options, of which each comes from the command line, else from the environment, else from a file, else
        has its default. Raises UsageError for wrong settings."""
        given = list(sys.argv[1:] if args is None else args)
        self._refuse_unknown(given)
        defaults = [(action, action.default) for action in self._actions if action.option_strings]
        for action, _ in defaults:
            action.default = None  # which shows what is not given
        try:
            # Options may be among the arguments; argparse forgets a leading `--` then.
            parse = super().parse_args if "--" in given else self.parse_intermixed_args
            options = parse(given, namespace)
        finally:
            for action, default in defaults:
                action.default = default
        for adjust in self.adjustments:
            adjust(options)
        from symbolize.cli.settings import fill

        fill(self, options)
        for action, default in defaults:
            if getattr(options, action.dest) is None:
                setattr(options, action.dest, default)
        for conclude in self.conclusions:
            conclude(options)
        return options

    def _refuse_unknown(self, given: Sequence[str]) -> None:
        """Report an option that does not exist before what argparse misses because of it."""
        known = self._option_string_actions
        for word in given:
            name = word.partition("=")[0] if word.startswith("--") else word[:2]
            if word == "--":
                return
            if word[:1] != "-" or word == "-" or " " in word or NUMBER.fullmatch(word):
                continue
            if not any(each == name or (name.startswith("--") and each.startswith(name)) for each in known):
                shown = word.partition("=")[0]
                self.error(f"no such option: {shown}{did_you_mean(shown, known)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise ArgumentError for what is none of the choices."""
        if action.choices is not None and value not in action.choices:
            choices = ", ".join(map(str, action.choices))
            hint = did_you_mean(str(value), action.choices)
            raise argparse.ArgumentError(action, f"{value} is not one of {choices}{hint}")

    def error(self, message: str) -> Never:
        """Print the error and where help is, and exit."""
        text = message.removeprefix("argument ").replace("the following arguments are required:", "missing:")
        print_error(f"symbolize: {printable(text)}")
        print_error(f"try: {self.prog} -h")
        self.exit(EXIT_USAGE)

    def format_help(self) -> str:
        """The long help."""
        return "\n".join(self._help(is_brief=False)) + "\n"

    def format_brief(self) -> str:
        """The short help, one screen."""
        return "\n".join(self._help(is_brief=True)) + "\n"

    def _help(self, is_brief: bool) -> Iterator[str]:
        from symbolize.core.terminal import width_of

        width = min(width_of(sys.stdout), NARROW if is_brief else WIDE)
        yield from wrapped(self.description or "", 0, width)
        yield ""
        for number, form in enumerate(self.forms):
            yield f"{'' if number else 'Usage:':<6} {self.prog} {form}".rstrip()
        if self.listed:
            yield from ("", "Commands:")
            for name, summary in self.listed.items():
                yield from entry(f"  {name}", summary, 14, width)
        is_begun = False
        for title, actions in self.sections():
            shown = [action for action in actions if not is_brief or self._is_brief(action)]
            if shown and not (is_brief and is_begun and self.listed):  # which has to fit one screen
                yield ""
            if shown:
                is_begun = True
                yield f"{title}:"
            for action in shown:
                yield from entry(f"  {invocation(action)}", explanation(action, is_brief), COLUMN, width)
        if not is_brief and self.epilog:
            yield ""
            for paragraph in self.epilog.split("\n"):
                yield from wrapped(paragraph, 0, width)

    def sections(self) -> list[tuple[str, list[argparse.Action]]]:
        """The groups of options with their titles, arguments first."""
        own = [action for action in self._actions if not action.option_strings]
        named = [(title, self.groups[title]._group_actions) for title in GROUPS if title in self.groups]
        return [("Arguments", own), *named] if own else named

    def _is_brief(self, action: argparse.Action) -> bool:
        if not action.option_strings:
            return not self.brief
        return "--help" not in action.option_strings and (
            not self.brief or any(flag in self.brief for flag in action.option_strings) or action.dest == "h"
        )


class Help(argparse.Action):
    """Prints the short or the long help and exits."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: object, values: object, option_string: str | None = None
    ) -> None:
        """By `-h` the short one."""
        assert isinstance(parser, Parser)
        print_output(parser.format_brief() if option_string == "-h" else parser.format_help(), flush=True)
        parser.exit()


class Version(argparse.Action):
    """Prints the version, and whether the hot loops run interpreted, and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Import a compiled module only now, to see whether it is one."""
        from symbolize import __version__
        from symbolize.core.cursor import COMPILED

        how = "" if COMPILED else " (interpreted: slow; install a C compiler and reinstall)"
        print_output(f"symbolize {__version__}{how}\n", flush=True)
        parser.exit()


def invocation(action: argparse.Action) -> str:
    """How an option or argument is given: `-b, --binaries DIR`."""
    if not action.option_strings:
        return str(action.metavar or action.dest)
    flags = sorted(action.option_strings, key=len)
    value = "" if action.nargs == 0 else f" {value_name(action)}"
    return f"{'' if len(flags[0]) == 2 else '    '}{', '.join(flags)}{value}"


def value_name(action: argparse.Action) -> str:
    """What the help calls the value of an option."""
    return str(action.metavar or action.dest.upper())


def explanation(action: argparse.Action, is_brief: bool = False) -> str:
    """What the help says of an option, or the first line of it."""
    text = action.help or ""
    if is_brief:
        return text.partition("\n")[0].rstrip(".;:,")
    text = text.replace("\n", " ")
    if action.choices is not None and not all(str(choice) in text for choice in action.choices):
        text += f" ({', '.join(map(str, action.choices))})"
    return text


def entry(start: str, text: str, column: int, width: int) -> Iterator[str]:
    """A word or option and, from `column` on, its explanation."""
    lines = list(wrapped(text, column, width))
    if len(start) + 2 > column:
        yield start
    elif lines:
        yield start.ljust(column) + lines.pop(0).lstrip()
    yield from lines


def wrapped(text: str, indent: int, width: int) -> Iterator[str]:
    """A paragraph as lines, broken at spaces only."""
    import textwrap

    space = " " * indent
    yield from textwrap.wrap(
        text,
        max(width, indent + COLUMN),
        initial_indent=space,
        subsequent_indent=space,
        break_long_words=False,
        break_on_hyphens=False,
    )

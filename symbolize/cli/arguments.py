"""The parser that all commands share: help in two lengths, errors of one line, suggestions, and options from
symbolize.toml and the environment: command line over environment over file over default.

The nearest `symbolize.toml`, from the current folder upwards, comes with a checkout or an archive as likely as from the
user. So it may choose how profiles are symbolized and shown, and neither what is written where, nor what is asked over
the network, nor which files and folders outside of its own are read. The file in the user's own configuration folder
and the environment may do more.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple, Never

from symbolize.cli.commands import COMMANDS
from symbolize.cli.console import EXIT_USAGE, print_error, print_output
from symbolize.core.errors import UsageError, closest, did_you_mean, printable
from symbolize.core.files import os_error_text, read_limited

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

PROGRAM: Final = "symbolize"
"""The name of the program, and of the table for symbolizing profiles, which needs no command."""
NAME: Final = "symbolize.toml"
MAX_SIZE: Final = 1 << 20
PREFIX: Final = "SYMBOLIZE_"
NO_CONFIG: Final = "SYMBOLIZE_NO_CONFIG"

ANYWHERE: Final = (
    *("accept", "annotate", "attempts", "binaries", "check-stacks", "demangle"),
    *("fail-under", "foreground", "jobs", "memory-limit", "nearest-line", "path-map"),
    *("path-prefix", "proguard-map", "prune", "report", "sample-type"),
    *("source", "synthesize", "tail-calls", "time-limit", "trim-path"),
)
"""Options that every file may set."""
OWN: Final = ("cache", "cache-limit", "debuginfod", "local")
"""Those that only the user's own file and the environment may set: they write, remove, use the network, or read what
is elsewhere."""
CACHE: Final = "cache"
"""The one that may also be a URL."""
PATHS: Final = ("binaries", "cache", "path-map", "proguard-map", "source")
"""Those with paths, which are relative to the folder of the file."""
PAIRS: Final = ("path-map", "proguard-map")
"""Those whose path may be behind a first `=`."""
INSIDE: Final = ("binaries", "path-map", "proguard-map", "source")
"""Those whose files are searched, read, or become part of an output, so that a file found in a folder may name only
what is in it."""
WORDS: Final = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


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
        # Neither its usage nor its help is shown, and making them takes a while.
        own = partial(argparse.HelpFormatter, width=NARROW)
        super().__init__(prog, prog, description, epilog, add_help=False, formatter_class=own)
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
                # Without the dashes, which make short words alike.
                meant = closest(shown.removeprefix("--"), [each[2:] for each in known if each.startswith("--")])
                self.error(f"no such option: {shown}" + (f"; did you mean --{meant}?" if meant else ""))

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


class Setting(NamedTuple):
    """A value, what messages call its origin, and the folder that its paths are relative to."""

    value: object
    origin: str
    folder: str = ""


def fill(parser: Parser, options: argparse.Namespace) -> None:
    """Set the options of `parser` that are None from the environment and from files. Raises UsageError."""
    variables = {name: value for name, value in os.environ.items() if name.startswith(PREFIX) and value}
    if options.no_config or WORDS.get(variables.get(NO_CONFIG, "").lower(), NO_CONFIG in variables):
        return
    settings: dict[str, Setting] = {}
    for path, is_own in files():
        settings |= from_file(path, is_own, parser)
    settings |= from_environment(variables)
    used: dict[str, list[str]] = {}
    for action in parser._actions:
        name = long_name(action)
        if name in settings and getattr(options, action.dest) is None:
            setattr(options, action.dest, converted(parser, action, name, settings[name]))
            used.setdefault(settings[name].origin.partition(": ")[0], []).append(name)
    if getattr(options, "verbose", False):
        for origin, names in used.items():
            print_error(f"symbolize: settings of {printable(origin)}: {', '.join(names)}")


def long_name(action: argparse.Action) -> str:
    """The long name of an option without its dashes, which is its key in files; empty for an argument."""
    return next((flag[2:] for flag in action.option_strings if flag.startswith("--")), "")


def files() -> Iterator[tuple[str, bool]]:
    """The files that are read, the stronger one last, and whether each is the user's own."""
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    own = os.path.join(base, "symbolize", NAME)
    if os.path.isfile(own):
        yield own, True
    found = ""
    with suppress(OSError):  # the current folder was removed
        folder = os.getcwd()
        while not os.path.isfile(found := os.path.join(folder, NAME)) and folder != os.path.dirname(folder):
            folder = os.path.dirname(folder)
    if os.path.isfile(found) and not (os.path.isfile(own) and os.path.samefile(found, own)):
        if is_planted(found):
            print_error(
                f"symbolize: warning: {printable(found)}: belongs to another user, in a folder that everyone may write "
                "to: ignored"
            )
        else:
            yield found, False


def is_planted(path: str) -> bool:
    """Whether somebody else may have put a file there, as in /tmp."""
    anyone = 0o002
    owner = os.stat(path).st_uid
    return owner not in (0, os.geteuid()) and bool(os.stat(os.path.dirname(path)).st_mode & anyone)


def from_file(path: str, is_own: bool, parser: Parser) -> dict[str, Setting]:
    """The settings of a file that apply to the command of `parser`: those at the top, and over them those of its table.
    Raises UsageError for any that is wrong."""
    import tomllib

    try:
        text = read_limited(path, MAX_SIZE)
        if text is None:
            raise UsageError(f"{path}: has more than {MAX_SIZE:,} bytes")
        data = tomllib.loads(text.decode())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {os_error_text(error)}") from error
    except (ValueError, RecursionError) as error:  # RecursionError: lists in lists
        raise UsageError(f"{path}: is not TOML: {os_error_text(error)}") from error
    tables = {name: value for name, value in data.items() if isinstance(value, dict)}
    result: dict[str, Setting] = {}
    for table, values in [("", {name: data[name] for name in data.keys() - tables}), *tables.items()]:
        where = f"{path}: [{table}]" if table else path
        known = (PROGRAM, *COMMANDS)
        if table and table not in known:
            raise UsageError(f"{where}: no such command{did_you_mean(table, known)}")
        is_ours = parser.prog == (PROGRAM if table == PROGRAM else f"{PROGRAM} {table}")
        for name in values:
            check_name(name, f"{where}: {name}", is_own, parser if is_ours else None)
        if is_ours or not table:
            folder = os.path.dirname(path)
            result |= {name: Setting(value, f"{where}: {name}", folder) for name, value in values.items()}
    if not is_own:
        for name in INSIDE:
            if name in result:
                check_inside(name, result[name])
    return result


def check_name(name: str, shown: str, is_own: bool, parser: Parser | None) -> None:
    """Raise UsageError for a setting that is unknown, that the file may not have, or that the command of `parser`, in
    whose table it is, does not have."""
    allowed = (*ANYWHERE, *OWN)
    if name not in allowed:
        raise UsageError(f"{shown}: no such setting{did_you_mean(name, allowed)}")
    if name in OWN and not is_own:
        raise UsageError(
            f"{shown}: only the command line, the environment and ~/.config/symbolize/{NAME} may set this, because it "
            "writes, removes or reads files elsewhere, or uses the network"
        )
    if parser is not None and name not in map(long_name, parser._actions):
        raise UsageError(f"{shown}: {parser.prog} has no such option")


def check_inside(name: str, setting: Setting) -> None:
    """Raise UsageError if a path leads out of the folder of the file."""
    top = os.path.realpath(setting.folder)
    for text in as_list(setting.value):
        try:
            path = os.path.realpath(split(name, located(name, str(text), setting.folder))[1])
        except ValueError as error:  # a NUL
            raise UsageError(f"{setting.origin}: {text} is no path") from error
        if os.path.commonpath([top, path]) != top:
            raise UsageError(
                f"{setting.origin}: {text} leads out of {setting.folder}; name it on the command line, or "
                f"in ~/.config/symbolize/{NAME}"
            )


def from_environment(variables: Mapping[str, str]) -> dict[str, Setting]:
    """The settings of environment variables: SYMBOLIZE_CACHE_LIMIT is that of --cache-limit. A list is separated as
    PATH is, servers by spaces."""
    known = {PREFIX + name.upper().replace("-", "_"): name for name in (*ANYWHERE, *OWN)}
    result: dict[str, Setting] = {}
    for variable, text in variables.items():
        name = known.get(variable)
        if name is None:
            meant = closest(variable.removeprefix(PREFIX), (each.removeprefix(PREFIX) for each in known))
            if meant and variable != NO_CONFIG:
                print_error(f"symbolize: warning: {variable}: no such setting; did you mean {PREFIX}{meant}?")
            continue
        value: object = text
        if name in PATHS and name != CACHE:
            value = [each for each in text.split(os.pathsep) if each]
        elif name == "debuginfod":
            value = text.split()
        result[name] = Setting(value, variable)
    return result


def converted(parser: Parser, action: argparse.Action, name: str, setting: Setting) -> Any:
    """The value of an option as the command line would give it. Raises UsageError."""
    value = setting.value
    if action.nargs == 0:
        value = WORDS.get(value.lower(), value) if isinstance(value, str) else value
        if not isinstance(value, bool):
            raise UsageError(f"{setting.origin}: expected true or false, not {value}")
        return value
    is_list = isinstance(action, argparse._AppendAction)
    if isinstance(value, list) and not is_list:
        raise UsageError(f"{setting.origin}: expected one value, not a list")
    result = []
    for each in as_list(value):
        if isinstance(each, bool) or not isinstance(each, str | int | float):
            raise UsageError(f"{setting.origin}: expected text{' or a list of it' * is_list}, not {each}")
        text = located(name, str(each), setting.folder) if name in PATHS else str(each)
        try:
            result.append(parser._get_value(action, text))
            parser._check_value(action, result[-1])
        except argparse.ArgumentError as error:
            raise UsageError(f"{setting.origin}: {error.message}") from error
    return result if is_list else result[0]


def as_list(value: object) -> list[Any]:
    """A value, or the values of a list."""
    return value if isinstance(value, list) else [value]


def located(name: str, text: str, folder: str) -> str:
    """The value of a setting with a path, that with ~ as the home folder, and relative to `folder`."""
    before, path = split(name, text)
    if name == CACHE and "://" in path:
        return text
    return before + os.path.join(folder, os.path.expanduser(path)) if path else text


def split(name: str, text: str) -> tuple[str, str]:
    """What comes before the path in the value of a setting, and the path, as the commands take the value apart."""
    before, equals, path = text.partition("=") if name in PAIRS else ("", "", text)
    return (before + equals, path) if equals else ("", text)

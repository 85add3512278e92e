"""Options from symbolize.toml and the environment: command line over environment over file over default.

The nearest `symbolize.toml`, from the current folder upwards, comes with a checkout or an archive as likely as from the
user. So it may choose how profiles are symbolized and shown, and neither what is written where, nor what is asked over
the network, nor which files and folders outside of its own are read. The file in the user's own configuration folder
and the environment may do more.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from symbolize.cli.commands import COMMANDS
from symbolize.cli.options import print_error
from symbolize.core.errors import UsageError, closest, did_you_mean, printable
from symbolize.core.files import os_error_text, read_limited

if TYPE_CHECKING:
    from symbolize.cli.arguments import Parser

PROGRAM: Final = "symbolize"
"""The name of the program, and of the table for symbolizing profiles, which needs no command."""
NAME: Final = "symbolize.toml"
MAX_SIZE: Final = 1 << 20
PREFIX: Final = "SYMBOLIZE_"
NO_CONFIG: Final = "SYMBOLIZE_NO_CONFIG"

ANYWHERE: Final = (
    *(
        "annotate",
        "attempts",
        "accept",
        "binaries",
        "check-stacks",
        "demangle",
        "fail-under",
        "jobs",
        "memory-limit",
        "nearest-line",
    ),
    *(
        "path-map",
        "path-prefix",
        "proguard-map",
        "prune",
        "report",
        "sample-type",
        "tail-calls",
        "source",
        "synthesize",
        "time-limit",
    ),
    "trim-path",
)
"""Options that every file may set."""
OWN: Final = ("cache", "cache-limit", "debuginfod")
"""Those that only the user's own file and the environment may set: they write, remove, or use the network."""
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
            "writes, removes files or uses the network"
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

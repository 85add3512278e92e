"""`symbolize top`, `tree`, `list` and `diff`: profiles as tables in the terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from symbolize.cli.arguments import Parser
from symbolize.cli.console import EXIT_DONE, EXIT_FAILED, print_error, print_output
from symbolize.cli.inputs import add_profiles
from symbolize.cli.options import at_least_one, merges_all, percentage
from symbolize.cli.shown import (
    SHOW_BRIEF,
    add_normalize_option,
    add_show_options,
    add_source_options,
    all_shown,
    note,
    note_extent,
    sources_of,
    sources_of_outputs,
    stacks_to_show,
    symbolizer_of,
    the_profile,
)
from symbolize.core.errors import InputError, printable
from symbolize.core.expressions import compiled
from symbolize.core.terminal import Style, has_colour, width_of

if TYPE_CHECKING:
    from symbolize.analysis import Stacks

ROWS = 30
HEADING_LINES = 2


EXIT_CODES = "Exit codes: 0 done, 1 an input, binary or server failed, 2 usage, 130 interrupted."


def top_parser() -> Parser:
    """The arguments of `symbolize top`."""
    result = Parser(
        "symbolize top",
        "Print the functions with the most value of their own, as pprof -top does.",
        ["[OPTIONS] PROFILE..."],
        brief=("-n", "--cum", *SHOW_BRIEF),
        epilog=EXIT_CODES,
    )
    add_profiles(result)
    add_count_option(result)
    result.group("Output").add_argument("--cum", action="store_true", help="order by total value instead of own value")
    add_show_options(result)
    return result


def add_count_option(parser: Parser) -> None:
    """Add the option for the number of rows."""
    parser.group("Output").add_argument(
        "-n", "--count", metavar="N", type=at_least_one, default=ROWS, help=f"rows (default: {ROWS})"
    )


def run_top(arguments: Sequence[str]) -> int:
    """Print the functions of each profile. The exit code."""
    options = top_parser().parse_args(arguments)
    from symbolize.analysis.text import top_lines

    return print_each(options, lambda stacks: top_lines(stacks, options.count, options.cum, width()))


def tree_parser() -> Parser:
    """The arguments of `symbolize tree`."""
    result = Parser(
        "symbolize tree",
        "Print the call tree, the heaviest branch first, from the root or the leaves on.",
        ["[OPTIONS] PROFILE..."],
        brief=("--callers", "--min", *SHOW_BRIEF),
        epilog=EXIT_CODES,
    )
    add_profiles(result)
    group = result.group("Output")
    group.add_argument("--callers", action="store_true", help="begin with the leaves and show who called them")
    group.add_argument(
        "--min", metavar="PERCENT", type=percentage, default=1.0, help="leave out smaller branches (default: 1)"
    )
    add_show_options(result)
    return result


def run_tree(arguments: Sequence[str]) -> int:
    """Print the call tree of each profile. The exit code."""
    options = tree_parser().parse_args(arguments)
    from symbolize.analysis.text import tree_lines

    return print_each(options, lambda stacks: tree_lines(stacks, options.min / 100, options.callers, width()))


def list_parser() -> Parser:
    """The arguments of `symbolize list`."""
    result = Parser(
        "symbolize list",
        "Print the source lines of the functions that match REGEX with their values.",
        ["[OPTIONS] REGEX PROFILE", "[OPTIONS] --merge all REGEX PROFILE..."],
        brief=("--source", "--path-map", *SHOW_BRIEF),
        epilog=EXIT_CODES,
    )
    result.add_argument("regex", metavar="REGEX", help="regular expression that is searched in names of functions")
    add_profiles(result, 1)
    add_source_options(result)
    add_show_options(result)
    return result


def run_list(arguments: Sequence[str]) -> int:
    """Print the lines of the functions that match, the heaviest function first. The exit code."""
    options = list_parser().parse_args(arguments)
    sources = sources_of(options)
    matches = compiled("REGEX", options.regex)
    with symbolizer_of(options) as symbolizer:
        shown = the_profile(options, options.profiles, symbolizer)
    from symbolize.analysis.text import list_lines

    stacks = stacks_to_show(options, shown.profile, has_lines=True).only_default()
    if not print_lines(list_lines(stacks, matches, sources, width())):
        raise InputError(shown.title, f"has no function with source lines that matches {options.regex!r}")
    if not (options.source or options.path_map):
        note(options, "the source files themselves are looked for in the folders of --source")
    return EXIT_DONE if shown.is_complete else EXIT_FAILED


def diff_parser() -> Parser:
    """The arguments of `symbolize diff`."""
    result = Parser(
        "symbolize diff",
        "Print the functions whose value changed most between two profiles, BASE and then NEW.",
        ["[OPTIONS] BASE NEW", "[OPTIONS] --merge all BASE NEW..."],
        brief=("-n", "--normalize", *SHOW_BRIEF),
        epilog=EXIT_CODES,
    )
    add_profiles(result, 2)
    add_count_option(result)
    add_normalize_option(result)
    add_show_options(result)
    return result


def run_diff(arguments: Sequence[str]) -> int:
    """Print what changed. The exit code."""
    options = diff_parser().parse_args(arguments)
    with symbolizer_of(options) as symbolizer:
        first, *others = options.profiles
        base, new = (the_profile(options, each, symbolizer) for each in ([first], others))
    from symbolize.analysis import difference
    from symbolize.analysis.text import difference_lines

    note_extent(options, new, base.profile)
    both = (stacks_to_show(options, each.profile) for each in (new, base))
    stacks = difference(*both, normalize=options.normalize).only_default()
    if print_lines(difference_lines(stacks, options.count, width())) <= HEADING_LINES:
        note(options, "no function differs")
    return EXIT_DONE if base.is_complete and new.is_complete else EXIT_FAILED


def print_each(options: argparse.Namespace, lines: Callable[[Stacks], Iterator[str]]) -> int:
    """Print each profile; one that cannot be read does not stop the others. The exit code."""
    code = EXIT_DONE
    several = len(options.profiles) > 1 and not merges_all(options)
    with symbolizer_of(options) as symbolizer:
        for sources in sources_of_outputs(options):
            try:
                for shown in all_shown(options, sources, symbolizer):
                    if not shown.is_complete:
                        code = EXIT_FAILED
                    stacks = stacks_to_show(options, shown.profile).only_default()
                    if shown.name or several:
                        print_output(f"{printable(shown.title)}:\n")
                    print_lines(lines(stacks))
            except InputError as error:
                print_error(f"symbolize: {error}")
                code = EXIT_FAILED
    return code


def width() -> int | None:
    """The width of the lines: that of the terminal, or None for whole lines in a file or pipe."""
    return width_of(sys.stdout) if sys.stdout is not None and sys.stdout.isatty() else None


def print_lines(lines: Iterable[str]) -> int:
    """Print lines, the first ones as a heading; how many they were."""
    style, count = Style(has_colour(sys.stdout)), 0
    for count, line in enumerate(lines, start=1):
        print_output((style.bold(line) if count <= HEADING_LINES else line) + "\n")
    return count

"""`symbolize top`, `tree`, `list` and `diff`: profiles as tables in the terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from symbolize.cli.arguments import Parser
from symbolize.cli.console import EXIT_DONE, EXIT_FAILED, print_error, print_output
from symbolize.cli.inputs import add_profiles
from symbolize.cli.options import add_form_options, add_list, limit_of, merges_all, percentage
from symbolize.cli.shown import (
    FEW_NAMES,
    SHOW_BRIEF,
    Shown,
    add_normalize_option,
    add_show_options,
    add_source_options,
    all_shown,
    note,
    note_extent,
    note_few_names,
    sources_of,
    sources_of_outputs,
    stacks_to_show,
    symbolizer_of,
    the_profile,
)
from symbolize.core.errors import InputError, UsageError, printable
from symbolize.core.expressions import compiled
from symbolize.core.terminal import Style, has_colour, width_of

if TYPE_CHECKING:
    from symbolize.analysis import Stacks
    from symbolize.analysis.tables import ShownTable

ROWS = 30
HEADING_LINES = 2
FORMS = "--json", "--markdown"
UNLIMITED = "all; with --json 1000, with --markdown 100"


EXIT_CODES = "Exit codes: 0 done, 1 an input, binary or server failed, 2 usage, 130 interrupted."


def top_parser() -> Parser:
    """The arguments of `symbolize top`."""
    result = Parser(
        "symbolize top",
        "Print the functions with the most value of their own, as pprof -top does.",
        ["[OPTIONS] PROFILE..."],
        brief=("-n", "--cum", *FORMS, *SHOW_BRIEF),
        epilog=EXIT_CODES,
    )
    add_profiles(result)
    add_form_options(result, "functions", str(ROWS))
    result.group("Output").add_argument("--cum", action="store_true", help="order by total value instead of own value")
    add_show_options(result)
    return result


def run_top(arguments: Sequence[str]) -> int:
    """Print the functions of each profile. The exit code."""
    options = top_parser().parse_args(arguments)
    from symbolize.analysis.tables import top_table

    return print_each(options, lambda stacks: top_table(stacks, options.limit or ROWS, options.cum))


def tree_parser() -> Parser:
    """The arguments of `symbolize tree`."""
    result = Parser(
        "symbolize tree",
        "Print the call tree, the heaviest branch first, from the root or the leaves on.",
        ["[OPTIONS] PROFILE..."],
        brief=("--callers", "--min", *FORMS, *SHOW_BRIEF),
        epilog=EXIT_CODES,
    )
    add_profiles(result)
    group = result.group("Output")
    group.add_argument("--callers", action="store_true", help="begin with the leaves and show who called them")
    group.add_argument(
        "--min", metavar="PERCENT", type=percentage, default=1.0, help="leave out smaller branches (default: 1)"
    )
    add_form_options(result, "calls, the heaviest ones", UNLIMITED)
    add_show_options(result)
    return result


def run_tree(arguments: Sequence[str]) -> int:
    """Print the call tree of each profile. The exit code."""
    options = tree_parser().parse_args(arguments)
    from symbolize.analysis.tables import tree_table

    limit = limit_of(options)
    return print_each(options, lambda stacks: tree_table(stacks, options.min / 100, options.callers, limit))


def list_parser() -> Parser:
    """The arguments of `symbolize list`."""
    result = Parser(
        "symbolize list",
        "Print the source lines of the functions that match REGEX with their values.",
        ["[OPTIONS] REGEX PROFILE", "[OPTIONS] --merge all REGEX PROFILE..."],
        brief=("--source", "--path-map", *FORMS, *SHOW_BRIEF),
        epilog=EXIT_CODES,
    )
    result.add_argument("regex", metavar="REGEX", help="regular expression that is searched in names of functions")
    add_profiles(result, 1)
    add_source_options(result)
    add_form_options(result, "lines", UNLIMITED)
    add_show_options(result)
    return result


def run_list(arguments: Sequence[str]) -> int:
    """Print the lines of the functions that match, the heaviest function first. The exit code."""
    options = list_parser().parse_args(arguments)
    sources = sources_of(options)
    matches = compiled("REGEX", options.regex)
    with symbolizer_of(options) as symbolizer:
        shown = the_profile(options, options.profiles, symbolizer)
    from symbolize.analysis.tables import list_table

    stacks = stacks_to_show(options, shown.profile, has_lines=True).only_default()
    table = list_table(stacks, matches, sources, limit_of(options))
    if not table.rows:
        raise InputError(shown.title, f"has no function with source lines that matches {options.regex!r}")
    print_table(options, table, [TableSubject.of(shown)])
    if not (options.source or options.path_map):
        note(options, "the source files themselves are looked for in the folders of --source")
    return EXIT_DONE if shown.is_complete else EXIT_FAILED


def diff_parser() -> Parser:
    """The arguments of `symbolize diff`."""
    result = Parser(
        "symbolize diff",
        "Print the functions whose value changed most between two profiles, BASE and then NEW; or, of several "
        "recordings a side, those whose share changed by more than the recordings of a side differ.",
        ["[OPTIONS] BASE NEW", "[OPTIONS] --merge all BASE NEW...", "[OPTIONS] --base BASE [--base BASE]... NEW..."],
        brief=("-n", "--base", "--normalize", *FORMS, *SHOW_BRIEF),
        epilog=EXIT_CODES,
    )
    add_profiles(result, 2)
    add_list(
        result.group("Selection"),
        "--base",
        metavar="FILE",
        help="recording to compare with; given several times, all profiles are recordings\nof one side or the other, "
        "and a function has changed if its share differs by more than theirs do",
    )
    add_form_options(result, "functions", str(ROWS))
    add_normalize_option(result)
    add_show_options(result)
    return result


def run_diff(arguments: Sequence[str]) -> int:
    """Print what changed. The exit code."""
    options = diff_parser().parse_args(arguments)
    bases, others = (options.base, options.profiles) if options.base else (options.profiles[:1], options.profiles[1:])
    if len(bases) > 1 or (len(others) > 1 and not merges_all(options)):
        return compare_recordings(options, bases, others)
    with symbolizer_of(options) as symbolizer:
        base, new = (the_profile(options, each, symbolizer) for each in (bases, others))
    from symbolize.analysis import difference
    from symbolize.analysis.tables import difference_table

    note_extent(options, new, base.profile)
    both = (stacks_to_show(options, each.profile) for each in (new, base))
    stacks = difference(*both, normalize=options.normalize).only_default()
    table = difference_table(stacks, options.limit or ROWS)
    print_table(options, table, [TableSubject.of(new)], [TableSubject.of(base)])
    if not table.rows:
        note(options, "no function differs")
    return EXIT_DONE if base.is_complete and new.is_complete else EXIT_FAILED


def compare_recordings(options: argparse.Namespace, bases: Sequence[str], others: Sequence[str]) -> int:
    """Print what changed between several recordings a side, of which one is in memory at a time. The exit code."""
    from symbolize.analysis.spread import Recordings

    if merges_all(options):
        raise UsageError("--merge all leaves one recording of several, and with several --base their spread counts")
    if options.normalize:
        raise UsageError("--normalize has no effect on several recordings: their shares are compared")
    if len(bases) == 1:
        raise UsageError(
            f"--base names one recording, and {len(others)} are compared with it: give --base for each of the base's, "
            "as in $(printf -- '--base %s ' old*.prof); or --merge all to make one of the others"
        )
    recordings, subjects, code = Recordings(), list[TableSubject](), EXIT_DONE
    with symbolizer_of(options) as symbolizer:
        for source in (*bases, *others):
            shown = the_profile(options, [source], symbolizer, is_one_of_many=True)
            recordings.add(stacks_to_show(options, shown.profile), shown.title)
            subjects.append(TableSubject.of(shown))
            code = code if shown.is_complete else EXIT_FAILED
    note_names(options, (*bases, *others), subjects)
    table = recordings.table(len(bases), options.limit or ROWS)
    print_table(options, table, subjects[len(bases) :], subjects[: len(bases)])
    return code


def note_names(options: argparse.Namespace, sources: Sequence[str], subjects: Sequence[TableSubject]) -> None:
    """Print how complete and how sure the names of recordings are: what holds for the one with the fewest names, and
    for the first one with binaries that are not proved, and how many others are like it."""
    known = [(each.leaf_percent, row) for row, each in enumerate(subjects) if each.leaf_percent is not None]
    few = [each for each in known if each[0] < FEW_NAMES]
    if few:
        percent, row = min(few)
        which = f", with the fewest names of {len(few)} recordings" if few[1:] else ""
        note_few_names(options, sources[row], subjects[row].name + which, percent)
    doubtful = [each for each in subjects if each.caveats]
    for text in doubtful[0].caveats if doubtful else ():
        note(options, f"{doubtful[0].name}{and_more(len(doubtful) - 1)}: {text}")


def and_more(count: int) -> str:
    """What is said behind the name of a recording of others that are like it."""
    return f" and {count} more" if count else ""


def print_each(options: argparse.Namespace, table_of: Callable[[Stacks], ShownTable]) -> int:
    """Print the table of each profile; one that cannot be read does not stop the others. The exit code."""
    code = EXIT_DONE
    several = len(options.profiles) > 1 and not merges_all(options)
    with symbolizer_of(options) as symbolizer:
        for sources in sources_of_outputs(options):
            try:
                for shown in all_shown(options, sources, symbolizer):
                    if not shown.is_complete:
                        code = EXIT_FAILED
                    table = table_of(stacks_to_show(options, shown.profile).only_default())
                    if (shown.name or several) and not (options.json or options.markdown):
                        print_output(f"{printable(shown.title)}:\n")
                    print_table(options, table, [TableSubject.of(shown)])
            except InputError as error:
                print_error(f"symbolize: {error}")
                code = EXIT_FAILED
    return code


class TableSubject(NamedTuple):
    """A profile that a table is of, as its reader has to know it: its name, the percentage of its samples in named code
    if it was symbolized, and which binaries are not proved."""

    name: str
    leaf_percent: float | None
    caveats: list[str]

    @classmethod
    def of(cls, shown: Shown) -> TableSubject:
        """The profile that is shown."""
        from symbolize.profile import caveats_of

        return cls(shown.title, shown.named_percent, caveats_of(shown.profile))


def print_table(
    options: argparse.Namespace, table: ShownTable, subjects: Sequence[TableSubject], bases: Sequence[TableSubject] = ()
) -> None:
    """Print a table in the form that the options ask for. Of a difference there are `bases` too."""
    if options.json:
        from symbolize.analysis.tables import valid
        from symbolize.report.json import TABLE_VERSION, render

        data: dict[str, object] = {"schema_version": TABLE_VERSION, "kind": table.kind}
        for key, side in (("profiles", subjects), ("base", bases)):
            data |= {key: [each._asdict() | {"name": valid(each.name)} for each in side]} if side else {}
        print_output(render(data | table.data()))
        return
    if options.markdown:
        from symbolize.analysis.markdown import code, markdown_lines

        sides = [each for each in (bases, subjects) if each]
        names = [code(side[0].name) + and_more(len(side) - 1) for side in sides]
        caveats = [f"{each.name}: {text}" for each in (*bases, *subjects) for text in each.caveats]
        print_output("\n".join(markdown_lines(table, " → ".join(names), caveats)) + "\n\n")
        return
    from symbolize.analysis.text import text_lines

    style = Style(has_colour(sys.stdout))
    is_terminal = sys.stdout is not None and sys.stdout.isatty()  # lines are whole in a file or pipe
    for number, line in enumerate(text_lines(table, width_of(sys.stdout) if is_terminal else None)):
        print_output((style.bold(line) if number < HEADING_LINES else line) + "\n")
    if table.is_truncated and table.kind in ("calls", "lines"):  # which are whole unless a limit is asked for
        note(options, f"{len(table.rows):,} of {table.rows_total:,} {table.kind} are shown")

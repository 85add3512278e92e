"""The options that choose samples, frames and names: what of a profile is shown or written."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from symbolize.cli.options import add_list
from symbolize.core.errors import UsageError

if TYPE_CHECKING:
    from symbolize.analysis import Filters
    from symbolize.cli.arguments import Parser
    from symbolize.enrich.edits import Edits

SELECTION_BRIEF: Final = ("--sample-type", "--focus", "--ignore", "--hide", "--show")
"""The options that the short help of commands that show profiles has."""
FILTERS: Final = {
    "focus": "only samples with a matching frame on the stack",
    "ignore": "no samples with a matching frame on the stack",
    "hide": "leave out matching frames",
    "show": "show matching frames only",
    "tagfocus": "only samples with a matching label;\nas REGEX, KEY=REGEX, or a range such as KEY=128kb:1mb",
    "tagignore": "no samples with a matching label",
    "tagshow": "keep only labels with matching keys",
    "taghide": "leave out labels with matching keys",
    "tagroot": "add a frame at the root of each stack;\nfor what its sample has as label KEY, such as comm",
    "tagleaf": "add such a frame at the leaf",
}
"""What each filter does, by its option and parameter."""


def add_selection_options(parser: Parser) -> None:
    """Add the options for samples and frames."""
    group = parser.group("Selection")
    group.add_argument(
        "--sample-type",
        "--sample-index",
        metavar="NAME",
        default="",
        help="sample type to show, such as alloc_space;\na name, or a number from 0 on; the default of pprof files",
    )
    for name, text in FILTERS.items():
        metavar = "KEY" if name in ("tagroot", "tagleaf") else "REGEX"
        group.add_argument(f"--{name}", metavar=metavar, default="", help=text)
    parser.group("Names").add_argument(
        "--force",
        action="store_true",
        help="replace names that came with the profile;\nwherever a lookup answers, otherwise only by better ones",
    )
    add_edit_options(parser)


def add_edit_options(parser: Parser) -> None:
    """Add the options that change frames and their names."""
    group = parser.group("Selection")
    group.add_argument(
        "--prune",
        action="store_true",
        help="drop the frames that the profile asks to drop;\nsuch as those of allocators, with all that they call",
    )
    group.add_argument("--drop", metavar="REGEX", default="", help="drop matching functions and all that they call")
    group.add_argument("--keep", metavar="REGEX", default="", help="functions that --drop and --prune leave")
    group.add_argument(
        "--prune-from", metavar="REGEX", default="", help="drop all that matching functions call, but not these"
    )
    names = parser.group("Names")
    add_list(
        names,
        "--path-prefix",
        metavar="OLD=NEW",
        help="write source files of the folder OLD as of the folder NEW.\nMay be given several times, the longest that "
        "matches counts",
    )
    add_list(
        names,
        "--trim-path",
        metavar="DIR",
        help="remove the folder DIR from paths of source files.\nMay be given several times",
    )
    names.add_argument(
        "--synthesize", action="store_true", help="name code without names: module!sub_START, module+0xoffset"
    )


def filters_of(options: argparse.Namespace) -> Filters | None:
    """The filters that the options give; None without any."""
    from symbolize.analysis import Filters

    return Filters(**{name: getattr(options, name) for name in FILTERS}) or None


def edits_of(options: argparse.Namespace) -> Edits | None:
    """The changes to profiles that the options give; None without any. Raises UsageError for those that have no
    effect."""
    from symbolize.enrich.edits import Edits, pairs_of

    if options.keep and not (options.prune or options.drop):
        raise UsageError("--keep has an effect only with --drop or --prune")
    prefixes = pairs_of("--path-prefix", options.path_prefix)
    return (
        Edits(
            prefixes,
            options.trim_path,
            options.prune,
            options.drop,
            options.keep,
            options.prune_from,
            options.synthesize,
        )
        or None
    )

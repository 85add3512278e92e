"""What the commands that show profiles share: their options, loading, and symbolizing on the way."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from symbolize.cli.console import print_error
from symbolize.cli.options import (
    add_cache_options,
    add_input_options,
    add_list,
    add_naming_options,
    add_volume_options,
    binary_roots,
    load_options,
    merges_all,
)
from symbolize.cli.selection import FILTERS, SELECTION_BRIEF, add_selection_options, edits_of, filters_of
from symbolize.cli.symbolizing import looks_here, open_symbolizer, symbolized
from symbolize.core.errors import InputError, UsageError, printable

if TYPE_CHECKING:
    from symbolize.analysis import Sources, Stacks
    from symbolize.cli.arguments import Parser
    from symbolize.formats.model import LoadedProfile
    from symbolize.pipeline import Symbolizer
    from symbolize.profile import Profile
    from symbolize.report import Report


MANY_EARLY: Final = 0.25
"""The share of stacks that end early above which a table or picture of them misleads."""
FEW_NAMES: Final = 75.0
"""Percent of the samples in named code below which a table alone misleads."""


class Shown(NamedTuple):
    """A profile to show: what a person calls it, its `name` in a trace (empty: the only one of its input), whether
    nothing failed that may have more names, and how much of it is in named code (None: it was not symbolized)."""

    title: str
    name: str
    profile: Profile
    is_complete: bool
    named_percent: float | None = None


EVIDENCE: Final = re.compile(r"(?<=supported|nverified): [^()]*\)")
"""What a verdict is known by, in a sentence on binaries."""
NAMELESS: Final = "has no names: give the folders with its binaries with -b"
SHOW_BRIEF: Final = ("-b", "--local", *SELECTION_BRIEF, "-v", "-q")
"""The options of `add_show_options` that the short help has."""


def add_show_options(parser: Parser) -> None:
    """Add the options of the commands that show profiles."""
    add_input_options(parser, may_merge=True, may_look_here=True)
    add_selection_options(parser)
    add_naming_options(parser)
    add_cache_options(parser, may_put_off=True)
    add_volume_options(parser, "also report skipped binaries")


def add_normalize_option(parser: Parser) -> None:
    """Add the option of the commands that compare two profiles."""
    parser.group("Selection").add_argument(
        "--normalize",
        action="store_true",
        help="scale the profile to the total of the base:\nwhat changed is the share of each function",
    )


def add_source_options(parser: Parser) -> None:
    """Add the options for finding source files."""
    group = parser.group("Sources")
    add_list(group, "--source", metavar="DIR", help="folder with source files;\nmay be given several times")
    add_list(
        group,
        "--path-map",
        metavar="OLD=NEW",
        help="take sources recorded below the folder OLD from the folder NEW;\nmay be given several times",
    )


def sources_of(options: argparse.Namespace) -> Sources:
    """Where source files are found."""
    from symbolize.analysis import Sources
    from symbolize.enrich.edits import pairs_of

    return Sources(options.source, pairs_of("--path-map", options.path_map, may_be_empty=False))


@contextmanager
def symbolizer_of(options: argparse.Namespace) -> Iterator[Symbolizer | None]:
    """What symbolizes with the binaries, servers and mapping files of the options; None if they name none."""
    binaries = binary_roots(options)
    if not (
        binaries or looks_here(options, binaries) or options.debuginfod or options.proguard_maps or options.annotate
    ):
        yield None
        return
    with open_symbolizer(options, binaries) as symbolizer:
        yield symbolizer


def loaded_profiles(options: argparse.Namespace, source: str) -> list[LoadedProfile]:
    """The profiles of an input, each made when it is asked for. Raises InputError."""
    from symbolize.formats.open import load_all

    return load_all(source, load_options(options))


def shown_profiles(
    options: argparse.Namespace,
    source: str,
    found: Sequence[LoadedProfile],
    symbolizer: Symbolizer | None,
    *,
    is_one_of_many: bool = False,
) -> Iterator[Shown]:
    """The profiles `found` in an input, symbolized where there are binaries; what a reader has to know of each is
    printed, but not of one of many how sure and how complete its names are. Raises InputError."""
    from symbolize.cli.reports import title_of

    several = len(found) > 1
    for each in found:
        title, profile = title_of(source, each, several), each.profile
        name = each.name if several else ""
        if symbolizer is None:
            profile = edited(options, profile)
            warn(options, title, profile.warnings)
            note_no_values(options, title, profile)
            if not profile.locations.has_lines().any() and len(profile.locations):
                note(options, f"{title} {NAMELESS}")
            if not is_one_of_many:
                note_caveats(options, title, profile)
            yield Shown(title, name, profile, True)
            continue
        result = symbolized(options, symbolizer, profile)
        report = result.report
        for failure in report.failures:
            print_error(f"symbolize: {printable(title)}: {printable(failure.sentence)}; run again")
        warn(options, title, report.warnings)
        is_nameless = not report.symbolized_locations and not binary_roots(options) and not options.debuginfod
        if note_no_values(options, title, result.profile):
            pass
        elif is_nameless:
            note(options, f"{title} {NAMELESS}")
        elif report.leaf_percent < FEW_NAMES and not is_one_of_many:
            note_few_names(options, source, title, report.leaf_percent)
        if not is_one_of_many:
            note_early_ends(options, title, report)
            note_caveats(options, title, result.profile)
        percent = None if is_nameless else report.leaf_percent
        yield Shown(title, name, result.profile, not report.failures, percent)


def note_no_values(options: argparse.Namespace, title: str, profile: Profile) -> bool:
    """Whether nothing is to be seen in a profile, which is said then."""
    samples, column = profile.samples, profile.weight_column()
    if len(samples) and samples.values[:, column].any():
        return False
    kind = profile.strings.text(profile.sample_types[column].type) if len(samples) else ""
    note(options, f"{title} has no samples" + (f" of {kind}: all values are 0" if kind else ""))
    return True


def note_few_names(options: argparse.Namespace, source: str, title: str, percent: float) -> None:
    """Print how little of a profile has names, and which command says why."""
    from symbolize.cli.hints import command_of

    share = f"{percent:.1f} % of the samples are in named code"
    note(options, f"{title}: {share}; {command_of(options, source)} says what is missing")


def note_early_ends(options: argparse.Namespace, title: str, report: Report) -> None:
    """Print how much is in stacks that lack callers, if it is much, and what helps."""
    from symbolize.report.advice import EARLY_ENDS

    if report.early_value > MANY_EARLY * report.sample_value:
        share = f"{100 * report.early_value / report.sample_value:.1f} % of the samples are in"
        note(options, f"{title}: {share} {EARLY_ENDS[0]}: {EARLY_ENDS[1]}")


def note_caveats(options: argparse.Namespace, title: str, profile: Profile) -> None:
    """Print which binaries are not proved to be those that ran, without what that is known by."""
    from symbolize.profile import caveats_of

    for text in caveats_of(profile):
        note(options, f"{title}: {EVIDENCE.sub(')', text)}")


def edited(options: argparse.Namespace, profile: Profile) -> Profile:
    """A profile that is shown as it is, with the sample type and the changes that the options ask for."""
    from symbolize.profile import choose_sample_type, combine

    if options.sample_type and not options.side_by_side:
        choose_sample_type(profile, options.sample_type)
    edits = edits_of(options)
    return combine(edits.apply(profile)) if edits else profile


def merged_profiles(options: argparse.Namespace, sources: Sequence[str], symbolizer: Symbolizer | None) -> Shown:
    """All profiles of all inputs as one. An input that cannot be read does not stop the others; raises InputError if
    none can be read, UsageError for unlike ones."""
    from symbolize.profile import Merger, choose_sample_type

    merger = Merger(side_by_side=options.side_by_side)
    is_complete, failed = True, list[InputError]()
    for source in sources:
        try:
            for shown in shown_profiles(options, source, loaded_profiles(options, source), symbolizer):
                is_complete = is_complete and shown.is_complete
                merger.add(shown.profile, shown.title)
        except InputError as error:
            failed.append(error)
    if not merger.count:
        raise failed[0]
    for each in failed:
        print_error(f"symbolize: {each}")
    title = sources[0] if len(sources) == 1 else f"{sources[0]} and {len(sources) - 1} more"
    profile = merger.result()
    warn(options, title, merger.warnings_of(profile))
    if options.sample_type and options.side_by_side:  # else it was chosen of each
        choose_sample_type(profile, options.sample_type)
    return Shown(title, "", profile, is_complete and not failed)


def sources_of_outputs(options: argparse.Namespace) -> list[list[str]]:
    """The inputs of each output: all of them, or each of its own."""
    return [options.profiles] if merges_all(options) else [[each] for each in options.profiles]


def all_shown(options: argparse.Namespace, sources: Sequence[str], symbolizer: Symbolizer | None) -> Iterator[Shown]:
    """The profiles of one input, or of all inputs the one that they are merged to. Raises InputError."""
    if merges_all(options):
        yield merged_profiles(options, sources, symbolizer)
        return
    for source in sources:
        yield from shown_profiles(options, source, loaded_profiles(options, source), symbolizer)


def warn(options: argparse.Namespace, title: str, warnings: Sequence[str]) -> None:
    """Print the warnings on a profile, unless --quiet is given."""
    for each in () if options.quiet else warnings:
        print_error(f"symbolize: warning: {printable(title)}: {printable(each)}")


def note(options: argparse.Namespace, text: str) -> None:
    """Print what a person may want to know, unless --quiet is given."""
    if not options.quiet:
        print_error(f"note: {printable(text)}")


def the_profile(
    options: argparse.Namespace,
    sources: Sequence[str],
    symbolizer: Symbolizer | None,
    *,
    is_one_of_many: bool = False,
) -> Shown:
    """The only profile of an input, or of all inputs merged. Raises UsageError if it has several, InputError."""
    if merges_all(options):
        return merged_profiles(options, sources, symbolizer)
    (source,) = sources
    found = loaded_profiles(options, source)
    if len(found) > 1:
        titles = ", ".join(each.title for each in found)
        raise UsageError(
            f"{source} has {len(found)} profiles ({titles}); choose one with --pid, --process, --heap, --kind or "
            "--merge"
        )
    return next(shown_profiles(options, source, found, symbolizer, is_one_of_many=is_one_of_many))


def note_extent(options: argparse.Namespace, new: Shown, base: Profile) -> None:
    """Print that two profiles are of unlike length or size, or what was done about it."""
    from symbolize.analysis.difference import note_on_extent

    if options.normalize:
        note(options, f"the values of {new.title} are scaled to the total of the base")
    elif found := note_on_extent(new.profile, base):
        note(options, f"{new.title}: {found}; --normalize compares shares")


def note_labels(options: argparse.Namespace, profile: Profile) -> None:
    """Print which filters of labels were read as numbers though the labels are texts, and which labels no sample has
    that are to be frames."""
    if options.tagroot or options.tagleaf:
        from symbolize.analysis.filters import keys_in
        from symbolize.analysis.label_values import note_on_missing

        if found := note_on_missing(profile, keys_in(f"{options.tagroot},{options.tagleaf}")):
            note(options, found)
    for name in ("tagfocus", "tagignore"):
        if text := getattr(options, name):
            from symbolize.analysis.filters import note_on_range

            if found := note_on_range(profile, name, text):
                note(options, f"--{found}")


def stacks_to_show(options: argparse.Namespace, profile: Profile, *, has_lines: bool = False) -> Stacks:
    """The stacks of a profile that the options ask for, with all sample types, and their source lines if asked for."""
    from symbolize.analysis import stacks_of

    filters = filters_of(options)
    note_labels(options, profile)
    stacks = stacks_of(profile, filters, has_lines=has_lines)
    if filters is not None and not len(stacks) and len(profile.samples):
        given = ", ".join(f"--{name}" for name in FILTERS if getattr(options, name))
        note(options, f"no sample is left by {given}")
    return stacks

"""Symbolizing profiles as the options say: what all commands that do so share."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from symbolize.cli.options import debuginfod_client, open_cache
from symbolize.cli.selection import edits_of

if TYPE_CHECKING:
    from symbolize.enrich.edits import Edits
    from symbolize.options import Options
    from symbolize.pipeline import Result, Symbolizer
    from symbolize.profile import Profile


def looks_here(options: argparse.Namespace, binaries: Sequence[str]) -> bool:
    """Whether files of this machine may be used: as --local says, else where no folders with binaries are given."""
    return not binaries if options.local is None else options.local


def asked_for(options: argparse.Namespace, edits: Edits | None = None, binaries: Sequence[str] = ()) -> Options:
    """What a command line asks for, with these edits and folders with binaries. Where a command has no such option the
    default counts."""
    from symbolize.options import Options

    given = {each.name: getattr(options, each.name) for each in fields(Options) if hasattr(options, each.name)}
    if "local" in given:
        given["local"] = looks_here(options, binaries)
    return Options(**given, edits=edits)


@contextmanager
def open_symbolizer(options: argparse.Namespace, binaries: Sequence[str]) -> Iterator[Symbolizer]:
    """What symbolizes with `binaries` as the options say. When the block ends, tables that were put off are made."""
    from symbolize.cli.background import answering_first, make_tables
    from symbolize.pipeline import Symbolizer

    asked = asked_for(options, edits_of(options), binaries)
    has_sources = bool(binaries or options.debuginfod or asked.local)
    cache = open_cache(options) if has_sources and not options.no_cache else None
    if len(options.profiles) == 1:  # others would ask the same binaries again
        cache = answering_first(options, cache)
    with ExitStack() as held:
        with debuginfod_client(options) as servers:
            # Side by side an input may lack the sample type; then it is chosen of the merged profile only.
            asked = replace(asked, sample_type="") if options.side_by_side else asked
            symbolizer = held.enter_context(Symbolizer(binaries, asked, cache=cache, servers=servers))
            yield symbolizer
        make_tables(cache)


def symbolized(options: argparse.Namespace, symbolizer: Symbolizer, profile: Profile) -> Result:
    """What `symbolizer` makes of a profile, which is changed, with progress on a terminal."""
    from symbolize.cli.console import ProgressBar

    with ProgressBar(options.quiet) as bar:  # unlike `symbolize`, `finish` makes no copy
        return symbolizer.finish(profile, symbolizer.match(profile), bar)

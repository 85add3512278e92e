"""Symbolizing profiles as the options say: what all commands that do so share."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from symbolize.cli.options import debuginfod_client, open_cache
from symbolize.cli.selection import edits_of

if TYPE_CHECKING:
    from symbolize.pipeline import Result, Symbolizer
    from symbolize.profile import Profile


@contextmanager
def open_symbolizer(options: argparse.Namespace, binaries: Sequence[str]) -> Iterator[Symbolizer]:
    """What symbolizes with `binaries` as the options say."""
    from symbolize.pipeline import Symbolizer

    has_sources = bool(binaries or options.debuginfod)
    with (
        debuginfod_client(options) as servers,
        Symbolizer(
            binaries,
            demangle=options.demangle,
            cache=open_cache(options) if has_sources and not options.no_cache else None,
            servers=servers,
            nearest_line=options.nearest_line,
            proguard_maps=options.proguard_map,
            annotate=options.annotate,
            # Side by side an input may lack the sample type; then it is chosen of the merged profile only.
            sample_type="" if options.side_by_side else options.sample_type,
            force=options.force,
            edits=edits_of(options),
            tail_calls=options.tail_calls,
            check_stacks=options.check_stacks,
            accept=options.accept,
        ) as symbolizer,
    ):
        yield symbolizer


def symbolized(options: argparse.Namespace, symbolizer: Symbolizer, profile: Profile) -> Result:
    """What `symbolizer` makes of a profile, which is changed, with progress on a terminal."""
    from symbolize.cli.progress import ProgressBar

    with ProgressBar(options.quiet) as bar:  # unlike `symbolize`, `finish` makes no copy
        return symbolizer.finish(profile, symbolizer.match(profile), bar)

"""What is given where profiles are expected: folders and binaries among them, and standard input."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from symbolize.cli.console import print_error
from symbolize.cli.options import MERGE_ALL
from symbolize.core.errors import UsageError, printable
from symbolize.core.files import open_regular

if TYPE_CHECKING:
    from symbolize.cli.arguments import Parser

ELF_MAGIC: Final = b"\x7fELF"


def add_profiles(parser: Parser, count: int = 0) -> None:
    """Add the argument for profiles, `count` of them if that is not 0. Folders and ELF files among them are taken as
    given with --binaries. With --base there may be any number."""
    parser.add_argument("profiles", metavar="PROFILE", nargs="+", help="profile to read, - for standard input")
    parser.adjustments.append(lambda options: sort_inputs(parser, options, count))


def sort_inputs(parser: Parser, options: argparse.Namespace, count: int = 0) -> None:
    """Take the folders and ELF files among the profiles as binaries, with a note, wherever they are given: pprof wants
    the binary before the profile. Exits if no profile remains, or if there are not `count`, or less where more are
    merged."""
    found = [each for each in options.profiles if is_binaries(each)]
    profiles = [each for each in options.profiles if each not in found]
    if found and not profiles:
        what = "a folder" if os.path.isdir(found[0]) else "an ELF file"
        parser.error(f"no profile given: {found[0]} is {what}; usage: {parser.prog} {parser.forms[0]} -b {found[0]}")
    base = getattr(options, "base", None)
    bases = [] if base is None else [base] if isinstance(base, str) else base
    may_be_more = MERGE_ALL in (getattr(options, "merge", None) or ())
    if count and not bases and (len(profiles) < count or (len(profiles) > count and not may_be_more)):
        parser.error(f"expected {count} profile{'s' * (count > 1)}, not {len(profiles)}: {', '.join(profiles)}")
    is_quiet = getattr(options, "quiet", False)
    for each in found:
        options.binaries = [*(options.binaries or []), each]
        if not is_quiet:
            print_error(f"note: {printable(each)} is taken as --binaries")
    options.profiles = profiles
    check_names([*profiles, *bases])
    if "-" in profiles and not is_quiet and sys.stdin is not None and sys.stdin.isatty():
        print_error("note: waiting for a profile on standard input, which is a terminal")


def check_names(profiles: Sequence[str]) -> None:
    """Raise UsageError for an empty name, or if standard input would be read twice."""
    if "" in profiles:
        raise UsageError("a profile has an empty name")
    if profiles.count("-") > 1:
        raise UsageError("standard input can be read once only")


def is_binaries(path: str) -> bool:
    """Whether a path is an ELF file or a folder, which is no profile unless perf recorded into it."""
    if os.path.isdir(path):
        from symbolize.formats.perf import recording_in

        return recording_in(path) is None
    with suppress(OSError, ValueError), open(open_regular(path), "rb", buffering=0) as file:
        return file.read(len(ELF_MAGIC)) == ELF_MAGIC
    return False

"""The options that commands share, and what is opened as they say."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from symbolize.cli.console import print_error
from symbolize.core.errors import UsageError, printable
from symbolize.core.verdict import ACCEPTABLE

if TYPE_CHECKING:
    from symbolize.cli.arguments import Parser
    from symbolize.formats.model import LoadOptions
    from symbolize.storage.servers import AnyClient
    from symbolize.symbols import TableCache

MERGE_ALL: Final = "all"
"""What --merge makes one profile of all inputs with."""
MERGED: Final = "merged"
"""What that profile is called."""
MOST_JSON: Final = 1000
MOST_MARKDOWN: Final = 100
"""Rows that these have by default, where the text has all."""
NO_SAMPLES: Final = -1.0
"""The coverage of what has no samples: below any limit."""


def add_list(group: argparse._ActionsContainer, *flags: str, help: str, **more: Any) -> None:
    """Add an option that may be given several times."""
    group.add_argument(*flags, action="append", default=[], help=help, **more)


def add_demangle(group: argparse._ActionsContainer, default: str = "default") -> None:
    """The option for how much of names is shown."""
    group.add_argument(
        "--demangle",
        metavar="MODE",
        choices=("default", "templates", "full", "none"),
        default=default,
        help="how much of C++, Rust and D names to show:\ndefault drops parameters and template arguments, templates "
        f"keeps template arguments, full keeps all, none leaves names as linked (default: {default})",
    )


def add_accept(group: argparse._ActionsContainer) -> None:
    """Add --accept."""
    group.add_argument(
        "--accept",
        metavar="VERDICT",
        choices=ACCEPTABLE,
        default="unverified",
        help="how sure a binary has to be the one that ran to name anything:\nproved by its build ID, supported by "
        "what was sampled, or unverified, which only its name and place speak for (default: unverified)",
    )


def add_naming_options(parser: Parser) -> None:
    """Add the options for names."""
    group = parser.group("Names")
    add_demangle(group)
    group.add_argument(
        "--nearest-line",
        action="store_true",
        help="give an instruction without a line the nearest earlier line of its function;\nthe report counts these "
        "lines as approximate",
    )
    add_list(
        group,
        "--proguard-map",
        dest="proguard_maps",
        metavar="FILE",
        help="mapping file of ProGuard or R8, to restore names of Java methods.\nMay be given several times, and as "
        "PACKAGE=FILE",
    )
    group.add_argument(
        "--annotate",
        action="store_true",
        help="mark Android's Java functions as interpreted or compiled:\nappend [interp], [jit] or [aot] to their "
        "names, and [common-frame] to those of the runtime functions that they call",
    )
    group.add_argument(
        "--tail-calls",
        action="store_true",
        help="put frames back that tail calls took off the stacks,\nwhere the debug information leaves no doubt; they "
        "are marked [tail call]",
    )
    group.add_argument(
        "--check-stacks",
        action="store_true",
        help="report how well stacks agree with the calls\nin the debug information: less on a wrong binary or with "
        "missing frames",
    )


def add_input_options(parser: Parser, *, may_merge: bool = False, may_look_here: bool = False) -> None:
    """Add the options for reading profiles and finding their binaries; `may_merge` says that the command can make one
    profile of all, `may_look_here` that it may use files of this machine."""
    add_merge_options(parser, may_merge)
    binaries = parser.group("Binaries")
    add_list(
        binaries,
        "--binaries",
        "-b",
        metavar="DIR",
        help="folder (or file) with binaries and debug files.\nMay be given several times; subfolders are searched. "
        "A URL (s3://, gs://) is asked by build ID. Without it "
        + ("files of this machine are used, see --local" if may_look_here else "names can come from servers only"),
    )
    if may_look_here:
        binaries.add_argument(
            "--local",
            action=argparse.BooleanOptionalAction,
            help="use files of this machine too: where they were recorded, its debug files, its kernel;\nif they are "
            "proved or supported to be what ran. The default without --binaries",
        )
    parser.conclusions.append(take_stores)
    add_list(
        binaries,
        "--debuginfod",
        metavar="URL",
        help="server to fetch missing files from, by build ID.\nMay be given several times. env: the servers of "
        "DEBUGINFOD_URLS. Without this option nothing is asked over the network",
    )
    add_accept(binaries)
    binaries.add_argument(
        "--refresh-misses", action="store_true", help="ask the servers again for what they did not have before"
    )
    add_format_options(parser)


def add_format_options(parser: Parser) -> None:
    """Add the options for reading formats."""
    group = parser.group("Formats")
    several = "May be given several times"
    add_list(
        group,
        "--sample-label",
        metavar="LABEL",
        help="a label that samples get: of perf.data pid, tid, comm (which are the default), thread_comm, cpu, cgroup\n"
        f"or execution_mode; of OTLP any attribute of the resource. {several}",
    )
    add_list(
        group, "--pid", metavar="PID", type=process_id, help=f"of a trace, perf.data, OTLP: the process.\n{several}"
    )
    add_list(
        group,
        "--process",
        metavar="NAME",
        help=f"of a trace, perf.data, OTLP: the name of the process.\nMay have wildcards. {several}",
    )
    add_list(
        group,
        "--heap",
        metavar="NAME",
        help=f"of a Perfetto trace, the heap to take, such as libc.malloc.\n{several}",
    )
    add_list(
        group,
        "--kind",
        metavar="KIND",
        help=f"of a trace, OTLP: the kind of profiles to take;\nof a trace heap, cpu, chromium. {several}",
    )
    group.add_argument(
        "--trace-offcpu",
        metavar="MODE",
        choices=("on-cpu", "off-cpu", "on-off-cpu", "mixed-on-off-cpu"),
        help="which samples of an off-CPU simpleperf recording to keep:\non-cpu, off-cpu, on-off-cpu (both as separate "
        "events) or mixed-on-off-cpu (both merged, the default)",
    )
    group.add_argument(
        "--show-art-frames",
        action="store_true",
        help="keep the frames of Android's runtime next to Java frames;\nin simpleperf reports they are hidden "
        "otherwise",
    )
    group.add_argument(
        "--timestamps",
        action="store_true",
        help="make a sample of each event whose time perf.data or an OTLP profile has, with the label timestamp_ns;\n"
        "otherwise samples have the sum of their events. Pages of files up to 32 MB do",
    )
    group.add_argument(
        "--keep-trampolines",
        action="store_true",
        help="keep the frame that signal handlers of old gperftools versions add to every stack",
    )


def add_merge_options(parser: Parser, may_merge: bool) -> None:
    """Add the option for merging, that of all inputs if the command `may_merge` them."""
    group = parser.group("Selection" if may_merge else "Formats")
    every = "make one profile of all inputs (all), " if may_merge else "make one profile "
    add_list(
        group,
        "--merge",
        metavar="WHAT",
        choices=(*([MERGE_ALL] if may_merge else []), "processes", "dumps"),
        help=f"{every}of all processes of a trace (processes) or of all dumps of a heap (dumps).\nMay be given several "
        "times",
    )
    if may_merge:
        group.add_argument(
            "--side-by-side",
            action="store_true",
            help="with --merge all, keep the sample types that not all inputs have,\nwith zeros where one has none. "
            "Without it they are left out",
        )


def add_form_options(parser: Parser, rows: str, default: str) -> None:
    """Add the options for other forms of a table than text, and for how many `rows` it has; by `default` how many in
    text."""
    group = parser.group("Output")
    forms = group.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="print JSON, for programs")
    forms.add_argument("--markdown", action="store_true", help="print Markdown, for the comment on a change")
    group.add_argument(
        "-n",
        "--limit",
        metavar="N",
        type=at_least_one,
        help=f"{rows}, at most\n(default: {default})",
    )


def limit_of(options: argparse.Namespace) -> int | None:
    """How many rows a table has that is not limited as text."""
    if options.limit is None and (options.json or options.markdown):
        return MOST_JSON if options.json else MOST_MARKDOWN
    limit: int | None = options.limit
    return limit


def add_volume_options(parser: Parser, verbose: str) -> None:
    """Add --verbose, which shows what `verbose` says, and --quiet."""
    volume = parser.group("General").add_mutually_exclusive_group()
    volume.add_argument("-v", "--verbose", action="store_true", help=verbose)
    volume.add_argument("-q", "--quiet", action="store_true", help="print errors only")


def load_options(options: argparse.Namespace) -> LoadOptions:
    """How profiles are read."""
    from symbolize.formats.model import Choice, LoadOptions

    merge = [each for each in options.merge if each != MERGE_ALL]
    choice = Choice(options.pid, options.process, options.heap, options.kind, merge)
    return LoadOptions(
        choice=choice,
        keep_trampolines=options.keep_trampolines,
        trace_offcpu=options.trace_offcpu,
        show_art_frames=options.show_art_frames,
        sample_labels=options.sample_label or None,
        timestamps=options.timestamps,
    )


def add_cache_options(parser: Parser, may_be_off: bool = True, may_put_off: bool = False) -> None:
    """Add the options for the cache of symbol tables."""
    group = parser.group("Cache")
    either = group.add_mutually_exclusive_group()
    either.add_argument(
        "--cache",
        metavar="DIR",
        help="folder for symbol tables, which later runs use\n(default: symbolize in the user's cache folder); or the "
        "URL of those that machines share, such as s3://bucket/tables",
    )
    if may_be_off:
        either.add_argument("--no-cache", action="store_true", help="do not read or write symbol tables on disk")
    group.add_argument(
        "--cache-limit",
        metavar="SIZE",
        type=byte_size,
        help="size of all stored tables, for example 500M or 8G (default: 8G);\nthe least recently used are removed",
    )
    if may_put_off:
        group.add_argument(
            "--foreground",
            action="store_true",
            help="make symbol tables for later runs before the answer,\nnot in the background after it",
        )


def number(text: str, kind: type = int) -> Any:
    """A number of a kind."""
    try:
        return kind(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a {'whole ' * (kind is int)}number") from error


def process_id(text: str) -> int:
    """The number of a process."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no process ID; use --process for the name of a process")
    return int(text)


def at_least_one(text: str) -> int:
    """A whole number above 0."""
    value: int = number(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def positive(text: str) -> float:
    """A number of seconds or days."""
    value: float = number(text, float)
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return value


def byte_size(text: str) -> int:
    """A number of bytes, perhaps with the suffix K, M, G or T, as in 8G, 8GB or 8GiB; each is a power of 1024."""
    match = re.fullmatch(r"([0-9]+) ?(?:([KMGT]?)(?:i?B)?)", text, re.ASCII | re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text} is not a size such as 500M or 8G")
    return int(match[1]) << 10 * " KMGT".index(match[2].upper() or " ")


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun, of which `plural` is the plural if that has more than an s."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def percentage(text: str) -> float:
    """A number from 0 to 100."""
    value = float(text)
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 100")
    return value


def below_text(percent: float, limit: float) -> str:
    """What is said of a coverage below --fail-under; it is rounded down, so that it is seen to be below."""
    if percent == NO_SAMPLES:
        return f"there are no samples, which is below --fail-under {limit:g}"
    return f"coverage {math.floor(10 * percent) / 10:.1f} % is below --fail-under {limit:g}"


def open_cache(options: argparse.Namespace) -> TableCache:
    """The cache that the options name."""
    from symbolize.symbols import DEFAULT_LIMIT, TableCache, default_folder

    if options.cache == "":
        raise UsageError("--cache has an empty name")
    limit = DEFAULT_LIMIT if options.cache_limit is None else options.cache_limit
    if options.cache and "://" in options.cache:
        from symbolize.storage.shared_cache import open_tables

        return open_tables(options.cache, limit)
    return TableCache(options.cache or default_folder(), limit)


def binary_roots(options: argparse.Namespace) -> list[str]:
    """The folders with binaries: those given, then those of the environment."""
    from symbolize.binaries import roots_from_environment

    further, notes = roots_from_environment()
    if options.verbose:
        for note in notes:
            print_error(f"symbolize: {printable(note)}")
    return [*options.binaries, *further]


def check_servers(urls: Sequence[str]) -> None:
    """Raise UsageError for an invalid server, without passwords in its text."""
    if any("://" in url for url in urls):
        from symbolize.storage.backend import Storage
        from symbolize.storage.urls import is_store

        for url in filter(is_store, urls):
            Storage.of(url)
        urls = [url for url in urls if not is_store(url)]
    if "env" in urls:
        if len(urls) > 1:
            raise UsageError("--debuginfod env cannot be combined with other servers; list all in DEBUGINFOD_URLS")
    elif urls:
        from symbolize.binaries.debuginfod.server import parse_servers

        for problem in parse_servers(urls)[1]:
            raise UsageError(f"--debuginfod: {problem}")


def take_stores(options: argparse.Namespace) -> None:
    """Take object stores among the folders with binaries as servers, which are asked by build id."""
    if not any("://" in root for root in options.binaries):
        return
    from symbolize.storage.urls import is_store

    options.debuginfod = [*options.debuginfod, *filter(is_store, options.binaries)]
    options.binaries = [root for root in options.binaries if not is_store(root)]


@contextmanager
def debuginfod_client(options: argparse.Namespace) -> Iterator[AnyClient | None]:
    """The client for the servers that the options name; None if they name none."""
    if not options.debuginfod:
        yield None
        return
    from symbolize.binaries.debuginfod import FetchOptions
    from symbolize.cli.console import Downloads
    from symbolize.storage.servers import open_servers

    def report(line: str) -> None:
        if not options.quiet:
            print_error(f"symbolize: {printable(line)}")

    with Downloads(options.quiet) as downloads:
        check_servers(options.debuginfod)
        how = FetchOptions(refresh_misses=options.refresh_misses, tell=report, progress=downloads)
        client = open_servers(options.debuginfod, how)
        if not client.servers:
            report("--debuginfod env: DEBUGINFOD_URLS names no valid server")
        with client:
            yield client


def merges_all(options: argparse.Namespace) -> bool:
    """Whether all inputs become one profile. Raises UsageError for what has an effect only then."""
    if MERGE_ALL not in options.merge and options.side_by_side:
        raise UsageError("--side-by-side has an effect only with --merge all")
    return MERGE_ALL in options.merge


def warn_if_interpreted(quiet: bool) -> None:
    """Warn before a long run that the compiled modules are missing."""
    from symbolize.core.cursor import uncompiled

    if not quiet and (warning := uncompiled()) is not None:
        print_error(f"symbolize: warning: {warning}")

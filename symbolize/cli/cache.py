"""`symbolize index DIR...` and `symbolize cache`: build symbol tables in advance, and manage the folder of tables,
index and decompressed files."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from symbolize.cli.arguments import Parser
from symbolize.cli.console import EXIT_DONE, EXIT_FAILED, EXIT_SOME, print_error, shows_progress
from symbolize.cli.options import add_cache_options, add_volume_options, at_least_one, counted, open_cache
from symbolize.core.errors import OutputError, printable

if TYPE_CHECKING:
    from symbolize.symbols.cache import Stats

UNIT = 1024


def run_cache(arguments: Sequence[str]) -> int:
    """Run the command with `arguments`; the exit code: 1 if `verify` found damage or `gc` cannot use the index."""
    from symbolize.binaries import collect, kept, verify

    options = cache_parser().parse_args(arguments)
    cache = open_cache(options)
    code = EXIT_DONE
    if options.action == "path":
        print(printable(cache.folder))
    elif options.action == "stats":
        stats = cache.stats()
        print(filled(stats))
        others = kept(cache.base)
        print(f"index: {counted(others.known, 'file')}, {size_text(others.index_size)}")
        print(f"decompressed: {counted(others.unpacked, 'file')}, {size_text(others.unpacked_size)}")
    elif options.action == "verify":
        sound = 0
        for path, problem in cache.verify():
            if problem:
                print(printable(f"{path}: {problem}"))
                code = EXIT_FAILED
            else:
                sound += 1
        print(f"{counted(sound, 'sound table')}")
        if problem := verify(cache.base):
            print(printable(problem))
            code = EXIT_FAILED
    else:
        unpacked, problem = collect(cache.base)
        if problem:
            print(printable(problem))
            code = EXIT_FAILED
        removed = cache.collect() + unpacked
        stats = cache.stats()
        print(f"{counted(removed, 'file')} removed; {counted(stats.tables, 'table')}, {size_text(stats.size)} remain")
    return code


def cache_parser() -> Parser:
    """The arguments of the command."""
    result = Parser(
        "symbolize cache",
        "Show, check or clean the cache of symbol tables.",
        ["[OPTIONS] stats|verify|gc|path"],
        epilog="Exit codes: 0 done, 1 damage was found or the cache cannot be used, 2 usage.",
    )
    result.add_argument(
        "action",
        metavar="ACTION",
        choices=("stats", "verify", "gc", "path"),
        help="what to do: stats, verify, gc, path.\nstats: print numbers and sizes; verify: check all tables and the "
        "index, and remove damaged ones; gc: remove what exceeds the limit or was left by killed processes; path: "
        "print the folder",
    )
    add_cache_options(result, may_be_off=False)
    return result


def filled(stats: Stats) -> str:
    """How full the folder of the tables is."""
    tables = counted(stats.tables, "table")
    return f"{printable(stats.folder)}: {tables}, {size_text(stats.size)} of {size_text(stats.limit)}"


def size_text(size: float) -> str:
    """A number of bytes as text, in the units of --cache-limit."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < UNIT:
            return f"{size:.{int(unit != 'bytes')}f} {unit}"
        size /= UNIT
    return f"{size:,.1f} GiB"


def run_index(arguments: Sequence[str]) -> int:
    """Run the command with `arguments`; the exit code: 4 if some binaries or folders failed, 1 if all did."""
    from symbolize.batch.prebuild import index_binaries, prebuild

    options = index_parser().parse_args(arguments)
    cache = open_cache(options)
    if not cache.is_writable():
        raise OutputError(cache.problems[-1])
    started = time.perf_counter()
    if shows_progress(options.quiet):
        print_error(f"symbolize: reading the headers of the files below {printable(', '.join(options.binaries))}")
    index = index_binaries(options.binaries, cache)
    count = len(index.binaries())
    damaged = len(index.damaged())
    count += damaged
    for problem in index.problems:
        print_error(f"symbolize: {printable(problem)}")
    made = present = nameless = unstored = size = 0
    failed = damaged
    bar = None
    if shows_progress(options.quiet):
        from tqdm import tqdm

        bar = tqdm(total=count - damaged, unit="binary", leave=False, file=sys.stderr)
    for built in prebuild(index, cache, options.jobs):
        made += built.is_new and built.is_stored
        unstored += not built.is_stored
        present += not built.is_new and built.has_names
        nameless += not built.has_names and not built.failure
        failed += bool(built.failure)
        size += built.size
        lines = [f"symbolize: {printable(built.failure)}"] if built.failure else []
        lines += [f"symbolize: {printable(problem)}" for problem in built.problems if not options.quiet]
        if options.verbose and not built.failure:
            state = "was there" if not built.is_new else "made" if built.is_stored else "not stored, files are missing"
            state = state if built.has_names else "no symbols in it"
            lines.append(f"{printable(built.paths[0])}: {state}, {built.seconds:.2f} s")
        if bar is not None:
            bar.clear()
        for line in lines:
            print_error(line)
        if bar is not None:
            bar.update()
    if bar is not None:
        bar.close()
    if size > cache.limit and not options.quiet:
        print_error(
            f"symbolize: the tables of these binaries take {size_text(size)}, more than the limit of "
            f"{size_text(cache.limit)}, so some were removed; use --cache-limit {-(-size // (1 << 20))}M"
        )
    if not options.quiet:
        without = f"{unstored} not stored, files are missing; " if unstored else ""
        print_error(
            f"{counted(count, 'binary', 'binaries')}: {made} tables made, {present} were there, {failed} failed; "
            f"{without}{nameless} have no symbols; {time.perf_counter() - started:.1f} s\n{filled(cache.stats())}"
        )
    if not failed and not index.unread:
        return EXIT_DONE
    return EXIT_FAILED if failed == count else EXIT_SOME


def index_parser() -> Parser:
    """The arguments of the command."""
    result = Parser(
        "symbolize index",
        "Build the symbol tables of all binaries below the given folders in advance. Existing tables are kept; an "
        "interrupted run continues where it stopped.",
        ["[OPTIONS] DIR..."],
        epilog="Exit codes: 0 done, 1 all failed, 2 usage, 4 some failed.",
    )
    result.add_argument("binaries", metavar="DIR", nargs="+", help="folder (or file) with binaries and debug files")
    add_cache_options(result, may_be_off=False)
    result.group("Execution").add_argument(
        "--jobs",
        "-j",
        metavar="N",
        type=at_least_one,
        default=len(os.sched_getaffinity(0)),
        help="binaries to read at a time (default: one for each core)",
    )
    add_volume_options(result, "print a line for every binary")
    return result

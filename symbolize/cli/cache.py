"""`symbolize cache`: manage the cache folder: symbol tables, the index, decompressed files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from symbolize.cli.arguments import Parser
from symbolize.cli.options import EXIT_DONE, EXIT_FAILED, add_cache_options, counted, open_cache
from symbolize.core.errors import printable

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

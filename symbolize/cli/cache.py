"""`symbolize cache`: manage the cache folder: symbol tables, the index, decompressed files."""

import argparse
from collections.abc import Sequence

from symbolize.binaries import collect, kept, verify
from symbolize.cli.options import EXIT_DONE, EXIT_FAILED, add_cache_options, open_cache
from symbolize.core.errors import printable


def run_cache(arguments: Sequence[str]) -> int:
    """Run the command with `arguments`; the exit code: 1 if `verify` found damage or `gc` cannot use the index."""
    parser = argparse.ArgumentParser(
        prog="symbolize cache",
        description="Manage the cache of symbol tables.",
    )
    parser.add_argument(
        "action",
        choices=("stats", "verify", "gc", "path"),
        help="stats: print numbers and sizes; verify: check all tables and the index, and remove damaged ones; gc: "
        "remove what exceeds the limit or was left by killed processes; path: print the folder",
    )
    add_cache_options(parser, may_be_off=False)
    options = parser.parse_args(arguments)
    cache = open_cache(options)
    code = EXIT_DONE
    if options.action == "path":
        print(printable(cache.folder))
    elif options.action == "stats":
        stats = cache.stats()
        print(f"{printable(stats.folder)}: {stats.tables} tables, {megabytes(stats.size)} of {megabytes(stats.limit)}")
        others = kept(cache.base)
        print(f"index: {others.known} files, {megabytes(others.index_size)}")
        print(f"decompressed: {others.unpacked} files, {megabytes(others.unpacked_size)}")
    elif options.action == "verify":
        sound = 0
        for path, problem in cache.verify():
            if problem:
                print(printable(f"{path}: {problem}"))
                code = EXIT_FAILED
            else:
                sound += 1
        print(f"{sound} sound tables")
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
        print(f"{removed} files removed; {stats.tables} tables, {megabytes(stats.size)} remain")
    return code


def megabytes(size: int) -> str:
    """A size as text."""
    return f"{size / 1e6:,.1f} MB"

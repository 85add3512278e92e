"""`symbolize export FILE... -o OUT`: the symbol table of a binary in the formats of other tools."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from symbolize.cli.arguments import Parser
from symbolize.cli.options import (
    EXIT_DONE,
    add_cache_options,
    add_list,
    add_volume_options,
    counted,
    open_cache,
    print_error,
)
from symbolize.core.errors import UsageError, printable

if TYPE_CHECKING:
    from symbolize.binaries import BinaryIndex


def run_export(arguments: Sequence[str]) -> int:
    """Run the command with `arguments`; the exit code."""
    from symbolize.binaries import BinaryIndex, Companions
    from symbolize.core.files import file_size, no_such
    from symbolize.symbols import opened
    from symbolize.symbols.export import ENDINGS, GSYM, export
    from symbolize.write.files import check_inputs, write_pieces

    options = export_parser().parse_args(arguments)
    if "" in (*options.files, options.output):
        raise UsageError("a file has an empty name")
    format = options.emit or ENDINGS.get(os.path.splitext(options.output)[1].lower())
    if format is None:
        raise UsageError(f"-o {options.output}: the ending names no format; use --emit, or {', '.join(ENDINGS)}")
    if options.merged_functions and format != GSYM:
        raise UsageError("--merged-functions has an effect only on GSYM")
    for folder in options.binaries:
        if not os.path.exists(folder):
            raise UsageError(f"{folder}: {no_such(folder, 'folder or file')}")
    cache = None if options.no_cache else open_cache(options)
    index = BinaryIndex(options.binaries, cache.base if cache is not None else None)
    paths = same_binary(options.files, index)
    check_inputs(paths, [options.output])
    with opened(paths, cache=cache, finder=Companions(index, paths)) as binary:
        write_pieces(export(binary, format, merged=options.merged_functions), options.output, format == GSYM)
        problems = [*binary.refused, *binary.table().problems, *(cache.problems if cache is not None else ())]
    if not options.quiet:
        for problem in (*index.problems, *dict.fromkeys(problems)):
            print_error(f"symbolize: {printable(problem)}")
    if options.verbose:
        size = counted(file_size(options.output), "byte")
        print_error(printable(f"{options.output}: {size} of {', '.join(paths)}"))
    return EXIT_DONE


def same_binary(files: Sequence[str], index: BinaryIndex) -> list[str]:
    """The files given, and those in the index with their build id or linked debug information."""
    from symbolize.binaries import binary_files
    from symbolize.symbols import opened

    if not index.has_sources:
        return list(files)
    with opened(files) as binary:
        build_id = next((image.build_id for image in binary.files if image.build_id), "")
    entries = index.with_build_id(build_id) if build_id else []
    known = {os.path.realpath(path) for path in files}
    more = [entry.path for entry in binary_files(index, entries) if os.path.realpath(entry.path) not in known]
    return [*files, *more]


def export_parser() -> Parser:
    """The arguments of the command."""
    result = Parser(
        "symbolize export",
        "Write the functions, lines and inlined calls of a binary as a GSYM file (LLVM) or a Breakpad symbol file.",
        ["[OPTIONS] FILE... -o OUT"],
        epilog="Exit codes: 0 done, 1 failed, 2 usage.",
    )
    result.add_argument("files", metavar="FILE", nargs="+", help="the files of one binary: it, its debug file, or both")
    output = result.group("Output")
    output.add_argument("--output", "-o", metavar="OUT", required=True, help="file to write, - for standard output")
    output.add_argument(
        "--emit",
        metavar="FORMAT",
        choices=("gsym", "breakpad"),
        help="format of the output, gsym or breakpad\n(default: by the ending: .gsym, .sym, .breakpad)",
    )
    output.add_argument(
        "--merged-functions",
        action="store_true",
        help="in GSYM, give code that several functions share the names of all of them;\nreaders before LLVM 20 look "
        "addresses up in such files, but cannot print them",
    )
    add_list(
        result.group("Binaries"),
        "--binaries",
        "-b",
        metavar="DIR",
        help="folder to search for files that belong to FILE: its debug file, split units.\nMay be given several times",
    )
    add_cache_options(result)
    add_volume_options(result, "print what was written")
    return result

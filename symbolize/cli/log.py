"""`symbolize log [FILE]`: a text with the names of the frames in its stack traces."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from symbolize.cli.arguments import Parser
from symbolize.cli.drop_in import write
from symbolize.cli.options import EXIT_DONE, add_cache_options, add_demangle, add_list, open_cache, print_error
from symbolize.core.errors import InputError, UsageError
from symbolize.core.files import no_such, open_regular, os_error_text

LONGEST: Final = 1 << 16
"""Bytes that are held of a line without an end."""


def run_log(arguments: Sequence[str]) -> int:
    """Run the command with `arguments`; the exit code."""
    options = log_parser().parse_args(arguments)
    for folder in options.binaries:
        if not os.path.exists(folder):
            raise UsageError(f"{folder}: {no_such(folder, 'folder or file')}")

    from symbolize.drop_in.binaries import Binaries, Places
    from symbolize.drop_in.input_lines import STANDARD_INPUT, batches, standard_input
    from symbolize.drop_in.log import Log

    try:
        is_file = options.file != "-"
        descriptor = open_regular(options.file) if is_file else standard_input()
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        raise InputError(options.file, no_such(options.file) if missing else os_error_text(error)) from error

    def tell(line: str) -> None:
        print_error(f"symbolize: {line}")

    cache = None if options.no_cache else open_cache(options)
    with Binaries(Places(binaries=options.binaries), cache) as binaries:
        log = Log(binaries, options.demangle, tell)
        texts = batches(descriptor, LONGEST, options.file if is_file else STANDARD_INPUT)
        write(b"".join(log.named(lines)) for lines in texts)
    return EXIT_DONE


def log_parser() -> Parser:
    """The arguments of the command."""
    result = Parser(
        "symbolize log",
        "Copy a text to standard output, with names, files and lines in the stack traces of sanitizers, glibc and the "
        "Linux kernel; everything else stays as it is.",
        ["[OPTIONS] [FILE]"],
        brief=("-b",),
        epilog="Exit codes: 0 done, 1 failed, 2 usage.",
    )
    result.add_argument("file", metavar="FILE", nargs="?", default="-", help="text to read (default: standard input)")
    add_list(
        result.group("Binaries"),
        "--binaries",
        "-b",
        metavar="DIR",
        help="folder with binaries and debug files; may be given several times",
    )
    add_demangle(result.group("Names"), "full")
    add_cache_options(result)
    return result

"""`symbolize addr BINARY [ADDRESS...]` and `symbolize log [FILE]`: the frames at addresses of one binary, and a text
with the names of the frames in its stack traces."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from symbolize.cli.arguments import Parser
from symbolize.cli.console import EXIT_DONE, EXIT_FAILED, print_error
from symbolize.cli.drop_in import write
from symbolize.cli.options import add_cache_options, add_demangle, add_list, open_cache
from symbolize.core.errors import InputError, UsageError, printable
from symbolize.core.files import no_such, open_regular, os_error_text

if TYPE_CHECKING:
    from symbolize.drop_in.addresses import Addresses

LONGEST: Final = 4096
"""Bytes of a line of input."""

LONGEST_TEXT_LINE: Final = 1 << 18
"""Bytes that are held of a line without an end."""
PATIENCE: Final = 200
"""Milliseconds without input after which lines that wait for a table of modules are written."""


def run_addr(arguments: Sequence[str]) -> int:
    """Run the command with `arguments`; the exit code: 1 if an address could not be read."""
    options = addr_parser().parse_args(arguments)
    if not options.binary:
        raise UsageError("BINARY has an empty name")
    for folder in options.binaries:
        if not os.path.exists(folder):
            raise UsageError(f"{folder}: {no_such(folder, 'folder or file')}")

    from symbolize.cli.background import answering_first, make_tables
    from symbolize.cli.drop_in import batches, standard_input
    from symbolize.drop_in.addresses import Addresses, wanted_binary
    from symbolize.drop_in.binaries import Binaries, Places

    problems: list[str] = []

    def tell(problem: str) -> None:
        problems[:] = [problem]
        print_error(f"symbolize: {problem}")

    cache = answering_first(options, None if options.no_cache else open_cache(options))
    with Binaries(Places(binaries=options.binaries), cache) as binaries:
        try:
            addresses = Addresses(binaries, wanted_binary(options.binary), options.demangle)
        except InputError as error:
            raise described(error) from error
        if doubt := addresses.doubt:
            print_error(f"symbolize: {printable(options.binary)}: {doubt}")
        given = [os.fsencode(word) for word in options.addresses]
        batched = [given] if given else batches(standard_input(), LONGEST)
        write(answer(addresses, lines, options.json, tell) for lines in batched)
        make_tables(cache)
    return EXIT_FAILED if problems else EXIT_DONE


def described(error: InputError) -> InputError:
    """An error that says of a file that is no ELF file what it looks like (R344, other recordings)."""
    from symbolize.drop_in.binaries import NOT_AN_OBJECT
    from symbolize.formats.content import Content
    from symbolize.formats.recognition import describe

    if error.problem != NOT_AN_OBJECT:
        return error
    return InputError(error.source, f"is no ELF file: it looks like {describe(Content(error.source).head)}")


def answer(addresses: Addresses, lines: Sequence[bytes], is_json: bool, tell: Callable[[str], None]) -> bytes:
    """The frames at the addresses in some lines, in their order, as they are printed; `tell` gets what is wrong with
    other lines, but empty ones."""
    from symbolize.core.reasons import TEXTS
    from symbolize.drop_in.addresses import as_data, lines_of

    asked = []
    for line in filter(bytes.strip, lines):
        try:
            asked.append(addresses.address_of(line.decode(errors="surrogateescape")))
        except UsageError as error:
            tell(str(error))
    found = addresses.places(asked)
    if is_json:
        texts = [json.dumps(as_data(place)) for place in found]
    else:
        texts = [printable(line) for place in found for line in lines_of(place, TEXTS[place.reason])]
    return "".join(f"{text}\n" for text in texts).encode(errors="backslashreplace")


def addr_parser() -> Parser:
    """The arguments of the command."""
    result = Parser(
        "symbolize addr",
        "Print function, file and line of addresses of a binary, with the functions that were inlined there, or the "
        "reason why there is no name.",
        ["[OPTIONS] BINARY [ADDRESS...]"],
        brief=("-b", "--json"),
        epilog="Exit codes: 0 done, 1 failed or an address cannot be read, 2 usage.",
    )
    result.add_argument("binary", metavar="BINARY", help="path of the file, or BUILDID: and a build id")
    result.add_argument(
        "addresses",
        metavar="ADDRESS",
        nargs="*",
        help="address in hexadecimal digits, or SYMBOL+OFFSET (default: lines of standard input)",
    )
    add_list(
        result.group("Binaries"),
        "--binaries",
        "-b",
        metavar="DIR",
        help="folder with debug files, and with the binary of a build id;\nmay be given several times",
    )
    result.group("Output").add_argument("--json", action="store_true", help="print a line of JSON for each address")
    add_demangle(result.group("Names"))
    add_cache_options(result, may_put_off=True)
    return result


def run_log(arguments: Sequence[str]) -> int:
    """Run the command with `arguments`; the exit code."""
    options = log_parser().parse_args(arguments)
    for folder in options.binaries:
        if not os.path.exists(folder):
            raise UsageError(f"{folder}: {no_such(folder, 'folder or file')}")

    from symbolize.cli.drop_in import STANDARD_INPUT, blocks, standard_input
    from symbolize.drop_in.binaries import Binaries, Places
    from symbolize.drop_in.log import Log

    try:
        is_file = options.file != "-"
        descriptor = open_regular(options.file) if is_file else standard_input()
    except (OSError, ValueError) as error:
        missing = isinstance(error, FileNotFoundError)
        raise InputError(options.file, no_such(options.file) if missing else os_error_text(error)) from error

    def tell(line: str) -> None:
        print_error(f"symbolize: {line}")

    def texts() -> Iterator[bytes]:
        return blocks(descriptor, LONGEST_TEXT_LINE, options.file if is_file else STANDARD_INPUT, PATIENCE)

    cache = None if options.no_cache else open_cache(options)
    with Binaries(Places(binaries=options.binaries), cache) as binaries:
        log = Log(binaries, options.demangle, tell, waits=not is_file)
        if is_file:  # tables behind the frames count too
            for text in texts():
                log.survey(text)
            log.begin()
            os.lseek(descriptor, 0, os.SEEK_SET)
        write(log.named(text) for text in chain(texts(), [b""]))
        if summary := log.summary():
            tell(summary)
    return EXIT_DONE


def log_parser() -> Parser:
    """The arguments of the command."""
    result = Parser(
        "symbolize log",
        "Copy a text to standard output, with names, files and lines in its stack traces, as sanitizers, glibc, the "
        "Linux kernel, Android, systemd, debuggers, the JVM and others print them; everything else stays as it is.",
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

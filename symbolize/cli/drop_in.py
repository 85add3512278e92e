"""`symbolize as TOOL`: in the place of llvm-symbolizer, llvm-addr2line or addr2line, with their options and output.

Lines of input are taken as they come: what is there is read at once, and nothing is waited for while something is.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from symbolize.cli.commands import TOOLS, tool_of
from symbolize.cli.console import EXIT_DONE, EXIT_FAILED, EXIT_USAGE, print_error, print_output
from symbolize.core.errors import InputError, OutputError, UsageError, printable
from symbolize.core.files import os_error_text

if TYPE_CHECKING:
    from symbolize.binaries.debuginfod import Debuginfod
    from symbolize.cli.arguments import Parser
    from symbolize.symbols import TableCache

STANDARD_INPUT: Final = "standard input"
AT_ONCE: Final = 1 << 20
"""Bytes that are read before the lines among them are answered."""
READ: Final = 1 << 16
CACHE, NO_CACHE = "SYMBOLIZE_CACHE", "SYMBOLIZE_NO_CACHE"


def standard_input() -> int:
    """The descriptor of standard input. Raises InputError if it is closed."""
    if sys.stdin is None:
        raise InputError(STANDARD_INPUT, "cannot be read: it is closed")
    return sys.stdin.fileno()


def blocks(descriptor: int, longest: int, source: str = STANDARD_INPUT, patience: int | None = None) -> Iterator[bytes]:
    """A stream, which errors call `source`, in blocks of whole lines that were there when the first of them came. If
    nothing more comes for `patience` milliseconds there is one empty block. Raises InputError.

    A line of more than `longest` bytes, its end included, may be cut behind each so many of them; so no line takes more
    memory. The last line may have no end.
    """
    rest = b""
    is_open = True
    may_wait = False
    while is_open:
        parts = [rest]
        size = 0
        while size < AT_ONCE:
            if not is_ready(descriptor, 0 if size else patience if may_wait else None):
                break
            try:
                data = os.read(descriptor, READ)
            except OSError as error:
                raise InputError(source, f"cannot be read: {os_error_text(error)}") from error
            if not data:
                is_open = False
                break
            parts.append(data)
            size += len(data)
        may_wait = bool(size)
        text = b"".join(parts)
        line = text.rfind(b"\n") + 1
        end = line + (len(text) - line) // longest * longest if is_open else len(text)
        rest = text[end:]
        if end or (not size and is_open):
            yield text[:end]


def batches(descriptor: int, longest: int, source: str = STANDARD_INPUT) -> Iterator[list[bytes]]:
    """The lines of a stream as `blocks` has them, with their ends; a line of more than `longest` bytes in pieces of so
    many, as C's `fgets` reads it."""
    for block in blocks(descriptor, longest, source):
        *lines, last = block.split(b"\n")
        yield [piece for line in lines for piece in pieces(line + b"\n", longest)] + pieces(last, longest)


def pieces(line: bytes, longest: int) -> list[bytes]:
    """A line in pieces of `longest` bytes."""
    return [line[first : first + longest] for first in range(0, len(line), longest)]


def is_ready(descriptor: int, timeout: float | None) -> bool:
    """Whether reading would not wait, after at most `timeout` milliseconds (None: as many as that takes)."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(timeout))


def run_as(arguments: Sequence[str]) -> int:
    """Run the tool that the first argument names with the others; the exit code."""
    first = arguments[0] if arguments else ""
    if not tool_of(first):
        as_parser().parse_args(arguments)
        raise UsageError(f"as: no such tool: {first}; the tools are {', '.join(TOOLS)}")
    return run_tool(tool_of(first), os.path.basename(first), arguments[1:])


def as_parser() -> Parser:
    """The arguments of the command; those behind the tool are its own."""
    from symbolize.cli.arguments import Parser

    result = Parser(
        "symbolize as",
        "Answer as another tool does, with its options, input and output, from kept symbol tables. A link to symbolize "
        "with the name of the tool does the same.",
        [f"{tool} [OPTIONS OF THE TOOL] [ADDRESS...]" for tool in TOOLS],
        epilog="Exit codes: 0 done, 1 failed, 2 usage.",
    )
    result.add_argument("tool", metavar="TOOL", help=f"one of {', '.join(TOOLS)}")
    return result


def run_tool(tool: str, program: str, arguments: Sequence[str]) -> int:
    """Run a tool that was started as `program`; the exit code."""
    if tool == "addr2line":
        return run_addr2line(program, arguments)
    return run_llvm(program, arguments, is_gnu=tool == "llvm-addr2line")


def run_llvm(program: str, arguments: Sequence[str], is_gnu: bool) -> int:
    """Run llvm-symbolizer or, if `is_gnu`, llvm-addr2line; the exit code."""
    from symbolize.drop_in.llvm_options import parsed

    try:
        options = parsed(
            arguments, os.environ.get("LLVM_ADDR2LINE_OPTS" if is_gnu else "LLVM_SYMBOLIZER_OPTS", ""), is_gnu
        )
        if options.build_id and options.object:
            raise UsageError("cannot specify both --build-id and --obj")
    except UsageError as error:
        print_error(f"{program}: error: {printable(str(error))}")
        return EXIT_USAGE
    if options.action:
        tool = "llvm-addr2line" if is_gnu else "llvm-symbolizer"
        about = f"{tool}\n{version()}, in the place of LLVM version 19\n"
        usage = f"USAGE: {tool} [options] addresses...\n\nThe options are those of LLVM 19.\n"
        print_output(about if options.action == "version" else usage, flush=True)
        return EXIT_DONE

    from symbolize.binaries.links import SYSTEM
    from symbolize.drop_in.binaries import Binaries, Places
    from symbolize.drop_in.llvm import LONGEST, LlvmSymbolizer

    def tell(line: str) -> None:
        print_error(f"{program}: error: {line}")

    places = Places(options.debug_folders or [SYSTEM], options.fallback, (), options.package)
    with ExitStack() as held:
        servers = held.enter_context(servers_of_environment(tell)) if options.debuginfod else None
        symbolizer = LlvmSymbolizer(options, held.enter_context(Binaries(places, open_cache(), servers)), tell)
        problem = symbolizer.check()
        if problem:
            tell(f"'{printable(options.object)}': {problem}")
            return EXIT_FAILED
        if options.inputs:
            write([b"".join(symbolizer.listed([os.fsencode(word) for word in options.inputs]))])
        else:
            write(b"".join(symbolizer.answers(lines)) for lines in batches(standard_input(), LONGEST))
    return EXIT_DONE


def servers_of_environment(tell: Callable[[str], None]) -> Debuginfod:
    """The client for the servers that DEBUGINFOD_URLS names."""
    from symbolize.binaries.debuginfod import Debuginfod, FetchOptions

    return Debuginfod.from_environment(options=FetchOptions(tell=tell))


def run_addr2line(program: str, arguments: Sequence[str]) -> int:
    """Run GNU addr2line; the exit code."""
    from symbolize.drop_in.addr2line import parsed

    try:
        options = parsed(arguments)
    except UsageError as error:
        print_error(f"{program}: {error}")
        return EXIT_USAGE
    if options.action:
        about = f"GNU addr2line\n{version()}, in the place of GNU Binutils 2.40\n"
        usage = "Usage: addr2line [option(s)] [addr(s)]\n\nThe options are those of GNU Binutils 2.40.\n"
        print_output(about if options.action == "version" else usage, flush=True)
        return EXIT_DONE

    from symbolize.drop_in.addr2line import LONGEST, Addr2line
    from symbolize.drop_in.binaries import Binaries, Places

    with Binaries(Places(), open_cache()) as binaries:
        try:
            tool = Addr2line(options, binaries)
        except InputError as error:
            print_error(f"{program}: {error}")
            return EXIT_FAILED
        if options.inputs:
            write([b"".join(tool.answers([os.fsencode(word) for word in options.inputs]))])
        else:
            write(b"".join(tool.answers(lines)) for lines in batches(standard_input(), LONGEST))
    return EXIT_DONE


def version() -> str:
    """The name and version of this program."""
    from symbolize import __version__

    return f"symbolize {__version__}"


def open_cache() -> TableCache | None:
    """The cache of symbol tables: the user's, or the one in the folder that SYMBOLIZE_CACHE names; none with
    SYMBOLIZE_NO_CACHE. The options of the tools have no place for it."""
    from symbolize.cli.arguments import WORDS
    from symbolize.symbols import TableCache, default_folder

    if WORDS.get(os.environ.get(NO_CACHE, "").lower(), False):
        return None
    return TableCache(os.environ.get(CACHE) or default_folder())


def write(answers: Iterable[bytes]) -> None:
    """Write answers to standard output, each at once, because clients wait for them. Raises OutputError, but not for a
    reader that wants no more."""
    if sys.stdout is None:
        raise OutputError("standard output: cannot be written: it is closed")
    sys.stdout.flush()
    for answer in answers:
        data = memoryview(answer)
        try:
            while data:
                data = data[os.write(sys.stdout.fileno(), data) :]
        except BrokenPipeError:
            return
        except OSError as error:
            raise OutputError(f"standard output: cannot be written: {os_error_text(error)}") from error

"""The command line: choose the command, and turn its errors into exit codes."""

import gc
import os
import re
import resource
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from symbolize.cli.commands import COMMANDS, run_of, tool_of
from symbolize.cli.options import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, print_error
from symbolize.core.errors import SymbolizeError, UsageError, closest
from symbolize.core.files import names_in


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (default: those of the process); the exit code."""
    # numpy's linear algebra starts a thread for each processor when it is imported, and nothing here uses it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A command ends before cycles of objects add up, and searching for them takes a tenth of its time.
    collecting, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.disable()
    allow_open_files()
    given: Sequence[str] = sys.argv[1:] if arguments is None else arguments
    if arguments is None and tool_of(sys.argv[0]):
        given = ["as", os.path.basename(sys.argv[0]), *given]
    try:
        run, given = chosen(given)
        return run(given)
    except UsageError as error:
        print_error(f"symbolize: {error}")
        return EXIT_USAGE
    except SymbolizeError as error:
        print_error(f"symbolize: {error}")
        return EXIT_FAILED
    except KeyboardInterrupt:
        print_error("symbolize: interrupted")
        return EXIT_INTERRUPTED
    except MemoryError:
        print_error("symbolize: out of memory")
        return EXIT_FAILED
    finally:
        if not frozen:
            gc.unfreeze()  # what `cli.profiles` froze
        if collecting:
            gc.enable()


def chosen(arguments: Sequence[str]) -> tuple[Callable[[Sequence[str]], int], Sequence[str]]:
    """The command, imported only now, and its arguments. Raises UsageError for a mistyped one."""
    first = arguments[0] if arguments else ""
    if first in COMMANDS:
        return run_of(first), arguments[1:]
    if re.fullmatch("[a-z]{1,20}", first) and not os.path.lexists(first):
        if (meant := closest(first, [*COMMANDS, *names_in(".")])) in COMMANDS:
            raise UsageError(f"no such file or command: {first}; did you mean symbolize {meant}?")
        if not meant:
            raise UsageError(f"no such file or command: {first}; the commands are {', '.join(COMMANDS)}")
    return run_of(""), arguments


def allow_open_files() -> None:
    """Raise the limit of open files as far as the system allows: each mapped binary or table is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # some systems have a limit below the one that they report
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

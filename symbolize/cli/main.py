"""The command line: choose the command, and turn its errors into exit codes."""

import gc
import importlib
import os
import resource
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from symbolize.cli.options import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, print_error
from symbolize.core.errors import SymbolizeError, UsageError

COMMANDS = ("batch", "cache", "index", "inspect", "plan")
"""Commands by their first argument, each a module with a function `run_COMMAND`; without one it is `profiles`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (default: those of the process); the exit code."""
    # numpy's linear algebra starts a thread for each processor when it is imported, and nothing here uses it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A command ends before cycles of objects add up, and searching for them takes a tenth of its time.
    collecting, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.disable()
    allow_open_files()
    given: Sequence[str] = sys.argv[1:] if arguments is None else arguments
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
    """The command, imported only now, and its arguments."""
    name, rest = "profiles", arguments
    if arguments[:1] and arguments[0] in COMMANDS:
        name, rest = arguments[0], arguments[1:]
    run: Callable[[Sequence[str]], int] = getattr(importlib.import_module(f"symbolize.cli.{name}"), f"run_{name}")
    return run, rest


def allow_open_files() -> None:
    """Raise the limit of open files as far as the system allows: each mapped binary or table is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # some systems have a limit below the one that they report
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

"""The command line: which command is meant, and what becomes of its errors."""

import gc
import importlib
import os
import resource
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from symbolize.cli.options import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, tell
from symbolize.errors import SymbolizeError, UsageError

COMMANDS = ("batch", "cache", "index", "inspect", "plan")
"""Commands by their first argument, each a module with a function `run_COMMAND`; without one it is `profiles`."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (default: those of the process); the exit code."""
    # numpy's linear algebra starts a thread per processor when it is imported, and nothing here uses it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A command is over before cycles of objects could add up, and looking for them takes a tenth of its time.
    collecting, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.disable()
    allow_open_files()
    given: Sequence[str] = sys.argv[1:] if arguments is None else arguments
    try:
        run, given = chosen(given)
        return run(given)
    except UsageError as error:
        tell(f"symbolize: {error}")
        return EXIT_USAGE
    except SymbolizeError as error:
        tell(f"symbolize: {error}")
        return EXIT_FAILED
    except KeyboardInterrupt:
        tell("symbolize: interrupted")
        return EXIT_INTERRUPTED
    except MemoryError:
        tell("symbolize: out of memory")
        return EXIT_FAILED
    finally:
        if not frozen:
            gc.unfreeze()  # what `cli.profiles` froze
        if collecting:
            gc.enable()


def chosen(arguments: Sequence[str]) -> tuple[Callable[[Sequence[str]], int], Sequence[str]]:
    """The command that is meant, imported only now, and its arguments."""
    name, rest = "profiles", arguments
    if arguments[:1] and arguments[0] in COMMANDS:
        name, rest = arguments[0], arguments[1:]
    run: Callable[[Sequence[str]], int] = getattr(importlib.import_module(f"symbolize.cli.{name}"), f"run_{name}")
    return run, rest


def allow_open_files() -> None:
    """Have as many files open as the system lets us: a mapped binary or table is one, and they stay open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # some systems have a limit below the one that they tell
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

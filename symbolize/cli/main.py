"""The command line: choose the command, and turn its errors into exit codes."""

import gc
import os
import re
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from symbolize.cli import console
from symbolize.cli.commands import COMMANDS, run_of, tool_of
from symbolize.cli.console import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, print_error
from symbolize.core.errors import SymbolizeError, UsageError, closest
from symbolize.core.files import names_in

BY_SIGNAL = 128
"""What shells add to the number of a signal for the exit code of a process that it ended."""


class EndedBySignal(KeyboardInterrupt):
    """A signal asks the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = signal.Signals(number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments` (default: those of the process); the exit code."""
    # numpy's linear algebra starts a thread for each processor when it is imported, and nothing here uses it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A command ends before cycles of objects add up, and searching for them takes a tenth of its time.
    collecting, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.disable()
    allow_open_files()
    console.is_command = arguments is None
    given: Sequence[str] = sys.argv[1:] if arguments is None else arguments
    if arguments is None and tool_of(sys.argv[0]):
        given = ["as", os.path.basename(sys.argv[0]), *given]
    try:
        with ending_in_order():
            run, given = chosen(given)
            return run(given)
    except UsageError as error:
        print_error(f"symbolize: {error}")
        return EXIT_USAGE
    except SymbolizeError as error:
        print_error(f"symbolize: {error}")
        return EXIT_FAILED
    except EndedBySignal as end:
        print_error(f"symbolize: ended by {end.number.name}")
        return BY_SIGNAL + end.number
    except KeyboardInterrupt:
        print_error("symbolize: interrupted")
        return EXIT_INTERRUPTED
    except MemoryError:
        print_error("symbolize: out of memory")
        return EXIT_FAILED
    finally:
        if arguments is None:
            gc.freeze()  # the process ends: what is left is not searched for cycles
        else:
            if not frozen:
                gc.unfreeze()  # what `cli.profiles` froze
            if collecting:
                gc.enable()


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Let SIGTERM and SIGHUP raise EndedBySignal in the block, so that no half-written file stays. A second signal ends
    the process at once; one that is ignored, as by nohup, or handled already stays so."""
    numbers: list[signal.Signals] = []
    if threading.current_thread() is threading.main_thread():
        numbers = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) == signal.SIG_DFL]

    def reset() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)

    def end(number: int, _: object) -> None:
        reset()
        raise EndedBySignal(number)

    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        reset()


A_PAGE: Final = "`symbolize view PROFILE --open` shows the flame graph"
ELSEWHERE: Final = {
    "record": "symbolize records nothing: `perf record -g -- PROGRAM`, then `symbolize view perf.data`",
    "report": "`symbolize top PROFILE` prints the functions, `symbolize PROFILE` what was found and what was not",
    "script": "`symbolize PROFILE --emit folded -o -` prints the stacks",
    "annotate": "`symbolize list FUNCTION PROFILE` prints source lines with their values",
    "flamegraph": A_PAGE,
    "graph": A_PAGE,
    "web": A_PAGE,
}
"""Commands of other tools, and what does the same here."""


def chosen(arguments: Sequence[str]) -> tuple[Callable[[Sequence[str]], int], Sequence[str]]:
    """The command, imported only now, and its arguments. Raises UsageError for a mistyped one."""
    first = arguments[0] if arguments else ""
    if first in COMMANDS:
        return run_of(first), arguments[1:]
    if re.fullmatch("[a-z]{1,20}", first) and not os.path.lexists(first):
        if first in ELSEWHERE:
            raise UsageError(f"no such file or command: {first}; {ELSEWHERE[first]}")
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

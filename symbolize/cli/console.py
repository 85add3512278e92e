"""What commands tell the person or program that runs them: exit codes, lines of output and of errors, progress."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Never

from symbolize.core.closing import Closeable
from symbolize.core.errors import OutputError, printable
from symbolize.core.files import drop_output, os_error_text

if TYPE_CHECKING:
    from tqdm import tqdm

    from symbolize.binaries.debuginfod import Progress


EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_BELOW, EXIT_SOME, EXIT_INTERRUPTED = 0, 1, 2, 3, 4, 130

is_command = False
"""Whether the process is for the command alone, and ends with it."""


def print_error(text: str) -> None:
    """Write a line to standard error; nothing if it is closed."""
    with suppress(OSError, AttributeError):
        print(text, file=sys.stderr)


def print_output(text: str, flush: bool = False) -> None:
    """Write to standard output; a reader that wants no more, as `head`, is no failure. Raises OutputError."""
    if sys.stdout is None:
        raise OutputError("standard output: cannot be written: it is closed")
    try:
        encoding = sys.stdout.encoding or "utf-8"
        print(text.encode(encoding, "backslashreplace").decode(encoding), end="", flush=flush)
    except (OSError, ValueError) as error:
        drop_output()
        if isinstance(error, BrokenPipeError):
            return
        raise OutputError(f"standard output: cannot be written: {os_error_text(error)}") from error


def shows_progress(quiet: bool) -> bool:
    """Whether a command shows a bar: on a terminal, unless it is to be quiet."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


def new_bar(**how: Any) -> tqdm[Never]:
    """A bar on standard error that is removed when it is closed. It is redrawn at each update, so that it needs no
    thread that looks after it, which would outlive it."""
    from tqdm import tqdm

    tqdm.monitor_interval = 0
    return tqdm(leave=False, file=sys.stderr, miniters=1, **how)


class ProgressBar(Closeable):
    """A tqdm bar over the mappings of a profile, on a terminal only."""

    def __init__(self, quiet: bool) -> None:
        self._is_shown = shows_progress(quiet)
        self._bar: tqdm[Never] | None = None

    def __call__(self, done: int, total: int, name: str) -> None:
        """Show that `done` of `total` mappings are done and `name` is next."""
        if not self._is_shown:
            return
        if self._bar is None:
            self._bar = new_bar(total=total, unit="mapping")
        self._bar.set_postfix_str(printable(os.path.basename(name)), refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()


class Downloads(Closeable):
    """A tqdm bar over the bytes of all files that are being fetched. Threads may call it."""

    def __init__(self, quiet: bool) -> None:
        self._is_shown = shows_progress(quiet)
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], tuple[int, int]] = {}
        self._bar: tqdm[Never] | None = None

    def __call__(self, progress: Progress) -> None:
        """Show the progress of one download."""
        if not self._is_shown:
            return
        with self._lock:
            if self._bar is None:
                self._bar = new_bar(unit="B", unit_scale=True, unit_divisor=1024)
            key = progress.build_id, progress.kind
            self._known[key] = progress.done, max(progress.total or 0, progress.done)
            self._bar.total = sum(total for _, total in self._known.values())
            self._bar.set_postfix_str(f"{progress.kind} {progress.build_id[:12]}", refresh=False)
            self._bar.update(sum(done for done, _ in self._known.values()) - self._bar.n)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()

"""The progress of one profile, and of downloads, on a terminal."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Never

from symbolize.core.closing import Closeable
from symbolize.core.errors import printable

if TYPE_CHECKING:
    from tqdm import tqdm

    from symbolize.binaries.debuginfod import Progress


def shows_progress(quiet: bool) -> bool:
    """Whether a command shows a bar: on a terminal, unless it is to be quiet."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


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
            from tqdm import tqdm

            self._bar = tqdm(total=total, unit="mapping", leave=False, file=sys.stderr)
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
                from tqdm import tqdm

                self._bar = tqdm(unit="B", unit_scale=True, unit_divisor=1024, leave=False, file=sys.stderr)
            key = progress.build_id, progress.kind
            self._known[key] = progress.done, max(progress.total or 0, progress.done)
            self._bar.total = sum(total for _, total in self._known.values())
            self._bar.set_postfix_str(f"{progress.kind} {progress.build_id[:12]}", refresh=False)
            self._bar.update(sum(done for done, _ in self._known.values()) - self._bar.n)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()

"""Progress of downloads on a terminal."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Never

if TYPE_CHECKING:
    from tqdm import tqdm

    from symbolize.binaries.debuginfod import Progress


class Downloads:
    """A tqdm bar over the bytes of all files that are being fetched; a context manager. Threads may call it."""

    def __init__(self, quiet: bool) -> None:
        self._wanted = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], tuple[int, int]] = {}
        self._bar: tqdm[Never] | None = None

    def __enter__(self) -> Downloads:
        return self

    def __call__(self, progress: Progress) -> None:
        """Show the progress of one download."""
        if not self._wanted:
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

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

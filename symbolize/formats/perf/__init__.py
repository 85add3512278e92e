"""perf.data as Linux perf writes it, in files and pipes."""

import os
from contextlib import suppress
from typing import Final

from symbolize.core.files import open_regular

LITTLE: Final = b"PERFILE2"
BIG: Final = b"2ELIFREP"
OLD: Final = b"PERFFILE"
"""How a recording begins, in both byte orders, and before perf 3.4."""


def matches(head: bytes) -> bool:
    """Whether what begins with `head` is a recording."""
    return head.startswith((LITTLE, BIG, OLD))


def recording_in(folder: str | os.PathLike[str]) -> str | None:
    """The first file of a recording of `perf record --threads`, which is a folder; None if `folder` is none."""
    path = os.path.join(os.fspath(folder), "data")
    with suppress(OSError, ValueError), open(open_regular(path), "rb", buffering=0) as file:
        return path if matches(file.read(len(LITTLE))) else None
    return None

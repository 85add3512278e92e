"""Names of Android's dynamic linker, which puts a prefix before all its symbols (simpleperf files)."""

import re
from collections.abc import Sequence
from posixpath import basename
from typing import Final

from symbolize.names.demangling import Mode, demangle

LINKER_PREFIX, LINKER_MARK = b"__dl_", b"[linker]"

FILES: Final = re.compile(r"linker(?:64|_asan|_asan64)?(?:\.debug|\.dbg)?|[0-9a-f]{40}-linker(?:64)?")
"""Names of the files of Android's dynamic linker."""


def is_android_linker(path: str) -> bool:
    """Whether a file is that of Android's dynamic linker, by its name."""
    return FILES.fullmatch(basename(path)) is not None


def demangle_android_linker(names: Sequence[bytes], mode: Mode = "default") -> list[bytes]:
    """`demangle` for symbols of a dynamic linker: those with its prefix are shown with `[linker]` instead.

    For its own symbols only: in other files the prefix is a part of the name. In mode `none` names stay as they are.
    """
    if mode == "none":
        return list(names)
    readable = demangle([name.removeprefix(LINKER_PREFIX) for name in names], mode)
    return [
        LINKER_MARK + text if name.startswith(LINKER_PREFIX) and name != LINKER_PREFIX else text
        for name, text in zip(names, readable, strict=True)
    ]

"""The names of functions as people read them, and as they are linked: the one place that makes them of what a symbol
table has."""

import re
from collections.abc import Sequence
from posixpath import basename
from typing import Final

from symbolize.names.demangling import Mode, demangle
from symbolize.names.simplify import simplify_plain
from symbolize.names.suffixes import own_name

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


def shown_names(
    linkage: Sequence[bytes], plain: Sequence[bytes], mode: Mode, of_linker: bool = False
) -> tuple[list[bytes], list[bytes]]:
    """The names of functions as `mode` shows them, and as they are linked, by their linkage names and qualified names,
    of which either may be empty.

    A qualified name is that of the function where it is given, whatever is linked: Go's `main.cold` is no copy of
    `main`. Else the linkage name is made readable, by the symbols of Android's dynamic linker if `of_linker`.
    """
    # A function without a linked name is known to the linker by its plain name at best, which is kept whole.
    linked = [link or own_name(name) for link, name in zip(linkage, plain, strict=True)]
    if mode == "none":
        return linked, linked
    readable = demangle_android_linker(linkage, mode) if of_linker else demangle(linkage, mode)
    if mode != "full":
        plain = [name and simplify_plain(name, mode == "templates") for name in plain]
    return [name or text for name, text in zip(plain, readable, strict=True)], linked

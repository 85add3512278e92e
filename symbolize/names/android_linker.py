"""Names of Android's dynamic linker, which puts a prefix before all its symbols (simpleperf files)."""

from collections.abc import Sequence

from symbolize.names.demangling import Mode, demangle

LINKER_PREFIX, LINKER_MARK = b"__dl_", b"[linker]"


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

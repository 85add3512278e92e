"""The names of functions as people read them, and as they are linked: the one place that makes them of what a symbol
table has."""

from collections.abc import Sequence

from symbolize.names.android_linker import demangle_android_linker
from symbolize.names.demangling import Mode, demangle
from symbolize.names.simplify import simplify_plain
from symbolize.names.suffixes import own_name


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

"""C++ names that our reader does not know: what the C++ runtime makes of them, by way of the package cxxfilt."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache

MAX_OUTPUT = 1 << 20

# libstdc++ itself refuses more. libc++abi recurses on the C stack without a limit of its own.
_MAX_NAME = 1024
# Names of vector functions (`_ZGVbN4v_sinf`) are not C++. On malformed unresolved names (`sr`) libstdc++ 12 loops for
# ever; one that is well-formed our reader knows.
_HOPELESS = re.compile(rb"_ZGV[a-z]|.*sr", re.DOTALL)
_REFERENCE = re.compile(rb"S([0-9A-Z]*)_|T[0-9A-Z]*_|(?:Dp|sp)(?![ORKVP]*T[0-9A-Z]*_)")
_MAX_ESTIMATE = 1 << 28

_Demangler = Callable[[bytes], "bytes | None"]


def demangle(name: bytes) -> bytes | None:
    """Return the demangled text of a name that starts with `_Z`, or None (R117).

    None is the answer to a malformed name, to a name longer than the runtime takes, to one whose text would be
    too large, and to every name when the machine has no C++ runtime.
    """
    if len(name) > _MAX_NAME or b"\0" in name or _HOPELESS.match(name) or _may_explode(name):
        return None
    text = _runtime()(name)
    return text if text is None or len(text) <= MAX_OUTPUT else None


@cache
def _runtime() -> _Demangler:
    # What another malloc than that of the C library hands out, cxxfilt would give back to the wrong one.
    if os.environ.get("LD_PRELOAD"):
        return lambda name: None
    # Imported only when it is needed: its import searches for libraries by running programs.
    try:
        import cxxfilt
    except (ImportError, OSError, AttributeError):
        return lambda name: None

    def demangler(name: bytes) -> bytes | None:
        try:
            text = cxxfilt.demangleb(name)
        except cxxfilt.Error:
            return None
        return text if isinstance(text, bytes) and text != name else None

    return demangler


def _may_explode(name: bytes) -> bool:
    """Tell whether the text of `name` may be out of all proportion to the name.

    Back references make the text grow exponentially: 230 characters can stand for a gigabyte, and the runtime has
    no limit. The estimate is an upper bound as far as it matters: the first reference to a new substitution index
    can at most copy all text so far, a later one what the index could hold at that time, a template parameter
    again all of it. The pattern of a pack expansion is repeated for each argument in the pack, of which there are
    fewer than characters in the name; the usual `Args&&...` (`DpOT_`) has no pattern that could grow. What looks like
    a reference in an identifier counts as well.
    """
    total = len(name)
    sizes: list[int] = []
    for reference in _REFERENCE.finditer(name):
        digits = reference.group(1)
        if digits is not None:
            # A name of n characters has fewer than n substitutions.
            index = min(int(digits, 36) + 1 if digits else 0, len(name)) if len(digits) < 5 else len(name)
            if index >= len(sizes):
                sizes.extend([total] * (index + 1 - len(sizes)))
            total += sizes[index]
        elif reference.group() in (b"Dp", b"sp"):
            total *= len(name)
        else:
            total *= 2
        if total > _MAX_ESTIMATE:
            return True
    return False

"""C++ names that our reader does not know: what the C++ runtime makes of them, by way of the package cxxfilt.

Names of Java that GCC compiled are such: what a function returns comes before its parameters, behind a `J`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache

MAX_OUTPUT = 1 << 20
_MAX_CODES = 1 << 18  # a code of one character is the text `unsigned long long`

# libstdc++ itself refuses more. libc++abi recurses on the C stack without a limit of its own.
MAX_RUNTIME_NAME = 1024
# Names of vector functions (`_ZGVbN4v_sinf`) are not C++.
_VECTOR_FUNCTION = re.compile(rb"_ZGV[a-z]")
# On malformed unresolved names (`sr`) libstdc++ 12 loops for ever; one that is well-formed our reader knows.
_ENDLESS = b"sr"
# What follows these codes is surely not the number of something else, so digits are the length of an identifier.
_PLAIN_CODE = re.compile(
    rb"(?P<length>[1-9][0-9]*)|[ZNIKPRVOrJE]|[abcegijlmorstuwxyz](?!S)|[dfhknpqv](?![0-9])|S[a-z]|S[0-9A-Z]*_|T[0-9]*_"
)
# Back references, template parameters, and conversions, whose arguments libstdc++ reads again.
_REPEATS = re.compile(rb"(?=S[0-9A-Z]*_|T[0-9A-Z]*_|cv)")
# The usual `Args&&...` (`DpOT_`) has no pattern that could grow.
_EXPANSION = re.compile(rb"(?:Dp|sp)(?![ORKVP]*T[0-9A-Z]*_)")

_Demangler = Callable[[bytes], "bytes | None"]


def demangle(name: bytes) -> bytes | None:
    """Return the demangled text of a name that starts with `_Z`, or None (R117, hostile names).

    None is the answer to a malformed name, to a name longer than the runtime takes, to one whose text may be
    too large, and to every name when the machine has no C++ runtime.
    """
    if len(name) > MAX_RUNTIME_NAME or b"\0" in name or _VECTOR_FUNCTION.match(name):
        return None
    codes = _without_identifiers(name)
    if _ENDLESS in codes or _most_codes(len(name), codes) > _MAX_CODES:
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


def _without_identifiers(name: bytes) -> bytes:
    """The codes of a name: each identifier is a `.`, up to the first code whose digits may be something else."""
    codes = [name[:2]]
    at = len(codes[0])
    while (match := _PLAIN_CODE.match(name, at)) is not None:
        at = match.end()
        if match["length"] is None:
            codes.append(match[0])
        else:
            codes.append(b".")
            at += min(int(match["length"]), len(name))
    return b"".join(codes) + name[at:]


def _most_codes(size: int, codes: bytes) -> int:
    """A bound of the codes that are printed for a name of `size` bytes (230 can expand to a gigabyte of text).

    A reference at most copies all of them. The pattern of a pack expansion is repeated for each argument in the pack,
    of which there are fewer than bytes in the name.
    """
    repeats, expansions = len(_REPEATS.findall(codes)), len(_EXPANSION.findall(codes))
    return (size << repeats) * int(size**expansions)

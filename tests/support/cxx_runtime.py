"""The C++ runtime of GCC as an oracle for demangled names, which symbolize itself asks for none that it can read."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

MAX_NAME = 1024
"""It refuses longer names."""


@cache
def _functions() -> tuple[Callable[..., int | None], Callable[..., None]]:
    demangler = ctypes.CDLL("libstdc++.so.6").__getattr__("__cxa_demangle")
    demangler.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    demangler.restype = ctypes.c_void_p
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free.restype = None
    return demangler, free


def demangle(name: bytes) -> bytes | None:
    """What libstdc++ makes of a linkage name; None if it refuses it."""
    demangler, free = _functions()
    result = demangler(name, None, None, None)
    if not result:
        return None
    text = ctypes.string_at(result)
    free(result)
    return text

"""Itanium C++ names, demangled by the C++ runtime's `__cxa_demangle`."""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable
from functools import cache

import cython

MAX_OUTPUT = 1 << 20

# Soname and the longest input it is given. libstdc++ itself refuses more than 1024 characters. libc++abi recurses
# on the C stack without a limit of its own, so the limit here is what fits an 8 MiB stack by a wide margin.
_RUNTIMES = (("libstdc++.so.6", 1024), ("libc++abi.so.1", 8192), ("libc++.1.dylib", 8192))

_REFERENCE = re.compile(rb"S([0-9A-Z]*)_|T[0-9A-Z]*_|(?:Dp|sp)(?![ORKVP]*T[0-9A-Z]*_)")
_UNRESOLVED = re.compile(rb"sr[0-9]")
_PATIENCE_SECONDS = 1.0
_MAX_STUCK_THREADS = 2
_MAX_ESTIMATE = 1 << 28
_MAX_DOUBLINGS = 20
_MAX_CONSTRAINT_CUTS = 64

_stuck: list[threading.Thread] = []

_Demangler = Callable[[bytes], "bytes | None"]


def demangle(name: bytes) -> bytes | None:
    """Return the demangled text of a name that starts with `_Z`, or None (R117).

    None is the answer to a malformed name, to a name longer than the runtime takes, to one whose text would be
    too large, and to every name when the machine has no C++ runtime (see `unavailable`).
    """
    if b"Q" not in name and all(len(name) > limit for limit, _ in _demanglers()):
        return None
    if b"\0" in name or _may_explode(name):
        return None
    text = _ask_runtimes(name)
    if text is None:
        text = _without_constraint(name)
    return text if text is None or len(text) <= MAX_OUTPUT else None


def _ask_runtimes(name: bytes) -> bytes | None:
    return _ask_watched(name) if _UNRESOLVED.search(name) else _ask(name)


def _ask_watched(name: bytes) -> bytes | None:
    """Ask in a thread that is left behind when it does not return.

    libstdc++ 12 loops for ever on some malformed unresolved names, `sr<identifier>...`. A C call cannot be
    stopped, so after a few such names all unresolved ones stay raw.
    """
    _stuck[:] = [thread for thread in _stuck if thread.is_alive()]
    if len(_stuck) >= _MAX_STUCK_THREADS:
        return None
    answer: list[bytes | None] = []
    thread = threading.Thread(target=lambda: answer.append(_ask(name)), daemon=True)
    thread.start()
    thread.join(_PATIENCE_SECONDS)
    if not answer:
        _stuck.append(thread)
        return None
    return answer[0]


def _ask(name: bytes) -> bytes | None:
    for limit, demangler in _demanglers():
        if len(name) <= limit:
            text = demangler(name)
            if text is not None:
                return text
    return None


def _without_constraint(name: bytes) -> bytes | None:
    """Demangle a name whose trailing requires-clause, `Q<expression>`, is too new for the runtime.

    The clause ends the name, so the shortest part before a `Q` that is a complete name is the function; a cut inside an
    identifier, a substitution or an argument list leaves an incomplete one.
    """
    cut = 2
    for _ in range(_MAX_CONSTRAINT_CUTS):
        cut = name.find(b"Q", cut + 1)
        if cut < 0:
            return None
        text = _ask_runtimes(name[:cut])
        if text is not None:
            return text
    return None


def unavailable() -> str | None:
    """Say why C++ names stay mangled on this machine, or return None when they do not."""
    if _demanglers():
        return None
    return "no C++ runtime library found (libstdc++ or libc++abi): C++ names stay mangled"


def runtimes() -> tuple[tuple[int, _Demangler], ...]:
    """The runtimes that are asked in turn, each with the longest input it is given."""
    return _demanglers()


@cache
def _demanglers() -> tuple[tuple[int, _Demangler], ...]:
    found = []
    for soname, limit in _RUNTIMES:
        try:
            found.append((limit, _bind(ctypes.CDLL(soname))))
        except (OSError, AttributeError):
            continue
    if not found:
        fallback = _cxxfilt()
        if fallback is not None:
            found.append((min(limit for _, limit in _RUNTIMES), fallback))
    return tuple(found)


def _bind(library: ctypes.CDLL) -> _Demangler:
    cxa_demangle = library.__getattr__("__cxa_demangle")
    cxa_demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    cxa_demangle.restype = ctypes.c_void_p
    # The result is from the malloc of the process, which need not be that of the C library: another may be preloaded.
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free.restype = None
    string_at = ctypes.string_at

    def demangler(name: bytes) -> bytes | None:
        result = cxa_demangle(name, None, None, None)
        if not result:
            return None
        try:
            return string_at(result)
        finally:
            free(result)

    return demangler


def _cxxfilt() -> _Demangler | None:
    # Imported only when the usual sonames are missing: its import searches for libraries by running programs.
    try:
        import cxxfilt
    except (ImportError, OSError, AttributeError):
        return None
    try:
        cxxfilt.demangleb(b"_Z1fv")
    except cxxfilt.Error:
        return None

    def demangler(name: bytes) -> bytes | None:
        try:
            text = cxxfilt.demangleb(name)
        except cxxfilt.Error:
            return None
        return text if isinstance(text, bytes) else None

    return demangler


def _may_explode(name: bytes) -> bool:
    """Tell whether the text of `name` may be out of all proportion to the name.

    Back references make the text grow exponentially: 230 characters can stand for a gigabyte, and the runtime has
    no limit. The estimate is an upper bound as far as it matters: the first reference to a new substitution index
    can at most copy all text so far, a later one what the index could hold at that time, a template parameter
    again all of it. The pattern of a pack expansion is repeated for each argument in the pack, of which there are
    fewer than characters in the name; the usual `Args&&...` (`DpOT_`) has no pattern that could grow.
    """
    if b"Dp" not in name and b"sp" not in name:
        # Without packs every reference doubles the text at most.
        references = name.count(b"_")
        if references > _MAX_DOUBLINGS:
            references = len(_REFERENCE.findall(name))
        if references <= _MAX_DOUBLINGS and len(name) << references <= _MAX_ESTIMATE:
            return False
    total = len(name)
    name = _without_identifiers(name)
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


def _without_identifiers(name: bytes) -> bytes:
    """Put a `#` in place of every identifier, whose letters mean nothing to the grammar."""
    kept = bytearray()
    i: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t
    size: cython.Py_ssize_t = len(name)
    length: cython.Py_ssize_t
    byte: cython.int
    before: cython.int = 0
    while i < size:
        byte = name[i]
        if not 0x30 <= byte <= 0x39:
            kept.append(byte)
            before = byte
            i += 1
            continue
        start = i
        length = 0
        while i < size and 0x30 <= name[i] <= 0x39:
            if i - start < 5:
                length = 10 * length + name[i] - 0x30
            i += 1
        # Behind S, T, _, L and C digits are an index, a literal or a variant.
        if i - start > 5 or before == 0x53 or before == 0x54 or before == 0x5F or before == 0x4C or before == 0x43:
            kept += name[start:i]
            before = 0x30
        else:
            kept.append(0x23)
            i += length
            before = name[i - 1] if 0 < i <= size else 0
    return bytes(kept)

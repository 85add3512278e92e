"""Rust names: the legacy scheme here, v0 by rust-demangler with its defects mended."""

from __future__ import annotations

import re

MAX_OUTPUT = 1 << 16

_LEGACY = re.compile(rb"_ZN(.+)17h[0-9a-f]{16}E\Z", re.DOTALL)
_LENGTH = re.compile(rb"[1-9][0-9]{0,4}")
_ESCAPE = re.compile(rb"\.\.|\$(?:(SP|BP|RF|LT|GT|LP|RP|C)|u([0-9a-f]{1,6}))\$")
_ESCAPED = {b"SP": b"@", b"BP": b"*", b"RF": b"&", b"LT": b"<", b"GT": b">", b"LP": b"(", b"RP": b")", b"C": b","}


def demangle_legacy(name: bytes) -> bytes | None:
    """Return the path that a legacy Rust name spells, without its hash (R116); None for other names.

    A legacy name is a nested C++ name whose last component is the hash, so C++ names are told apart by it.
    """
    if not name.endswith(b"E"):
        return None
    legacy = _LEGACY.match(name)
    if legacy is None:
        return None
    path = legacy.group(1)
    components: list[bytes] = []
    position = 0
    while position < len(path):
        length = _LENGTH.match(path, position)
        if length is None:
            return None
        start = length.end()
        position = start + int(length.group())
        if position > len(path):
            return None
        component = path[start:position]
        # An identifier cannot begin with an escape; the compiler puts an underscore in front.
        components.append(_ESCAPE.sub(_unescape, component[1:] if component.startswith(b"_$") else component))
    return b"::".join(components)


def _unescape(escape: re.Match[bytes]) -> bytes:
    word, codepoint = escape.groups()
    if word is not None:
        return _ESCAPED[word]
    if codepoint is None:
        return b"::"
    try:
        return chr(int(codepoint, 16)).encode()
    except (ValueError, UnicodeEncodeError):
        return escape.group()


def demangle_v0(name: bytes, generics: bool) -> bytes | None:
    """Return the path that a v0 Rust name spells, or None if it is not one.

    Without `generics` the generic arguments are dropped and their brackets stay, as pprof does.
    """
    # A name without underscore and dots is ASCII letters and digits; rust-demangler takes text.
    if not name.isascii() or not name[2:3].isupper():
        return None
    from symbolize.names import rust_v0

    try:
        text = rust_v0.demangle(name.decode("ascii"), generics, MAX_OUTPUT).encode()
    except Exception:
        # R117: whatever a hostile name does to the demangler, the name stays raw.
        return None
    return text if 0 < len(text) <= MAX_OUTPUT else None

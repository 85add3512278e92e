"""The names of functions that Cython compiled, as Python has them: `package.module.Class.method` (R491, Cython names).

`__pyx_pw_7package_6module_5Class_3method` is a prefix, the scopes of the function, each behind its length, how many C
names the innermost of them had before, if any, and the name. So are `__pyx_pf_`, what a `pw` calls, `__pyx_f_`, a C
function, and the accessors of attributes, of which the last two have no number.
"""

import re
from collections.abc import Iterator
from typing import Final

CYTHON_PREFIX: Final = b"__pyx_"
"""What the C names of Cython begin with."""

_KIND: Final = re.compile(
    rb"(?:__pyx_(?:fuse_[0-9_]*[0-9]|(?:specialmethod|array|memoryview|memoryviewslice|MemviewEnum)_))?"
    rb"__pyx_(?P<kind>pw|pf|f|getprop|setprop)_(?=[1-9])"
)
_INNER: Final = re.compile(
    rb"__pyx_(?:fuse_[0-9]+(?:(?:_[0-9]+)*__pyx_f_(?=[1-9])|(?=[A-Za-z]|__))|lambda_funcdef_(?=[1-9]|lambda))"
)
"""What is before the name of one of several fused functions, or of a lambda, which may have scopes of its own."""
_NUMBER: Final = re.compile(rb"[1-9][0-9]{0,3}")
_NAME: Final = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
_TAIL: Final = re.compile(rb"[A-Za-z]|(?:d|x[0-9]+)(?:_.*)?")
"""What may be the end of a function `filter_2d`, `mean_3x3` or `log_1p` rather than the name of one in `filter`."""
_SPECIAL: Final = re.compile(rb"__[a-z0-9_]+__")
_LAMBDA: Final = re.compile(rb"lambda[0-9]*")
_INTERNAL: Final = re.compile(rb"__pyx_(?!unpickle_)")
_DOT: Final = b"_dot_"
MAX_SCOPES: Final = 64
MAX_LENGTH: Final = 1 << 11
"""Names that are longer stay as linked, so that those in others are not too deep."""


def python_name(linked: bytes) -> bytes:
    """The name in Python of a function that Cython compiled, by its linked name without what the toolchain appends; the
    linked name if it is none of these, or if it may be that of several.

    A number may be the length of a scope or how many names the scope had before: `3put_all` is `all` in `put`, or
    `put_all`. A `pw` has such a number always, but of a lambda, and a C function never. A `pf` has none if it is the
    first in its scope, and is left alone where both are possible, and so is `3put_2d`.
    """
    match = _KIND.match(linked[:MAX_LENGTH])
    if match is None or len(linked) > MAX_LENGTH:
        return linked
    found = _parsed(linked[match.end() :], match["kind"])
    return b".".join(found) if found else linked


def _parsed(text: bytes, kind: bytes) -> list[bytes]:
    """The scopes and the name of a function; empty where they are not certain."""
    scopes: list[bytes] = []
    before = at = 0
    for scope, end in _scopes(text):
        scopes.append(scope)
        before, at = at, end
    is_counted = kind in (b"pw", b"pf")
    name, has_number = _name(text[at:], is_counted)
    if not name or not scopes:
        return []
    if not is_counted or len(scopes) == 1 or _SPECIAL.fullmatch(name) or _INNER.match(text, at):
        return [*scopes, name]
    if has_number:
        is_tail = _TAIL.fullmatch(name) and not scopes[-1][:1].isupper()  # that begins a class, not a function
        return [] if is_tail else [*scopes, name]
    whole, _ = _name(text[before:], True)  # where the length is a number, and the scope a part of the name
    is_certain = _SPECIAL.fullmatch(whole) or (kind == b"pw" and not _LAMBDA.fullmatch(name))
    return [*scopes[:-1], whole] if whole and is_certain else []


def _scopes(text: bytes) -> Iterator[tuple[bytes, int]]:
    """The scopes that a text begins with, and where each ends. Dots in the names of modules without a package are
    spelled `_dot_`."""
    at = 0
    for _ in range(MAX_SCOPES):
        number = _NUMBER.match(text, at)
        if number is None:
            return
        length, begin = int(number[0]), number.end()
        scope = text[begin : begin + length]
        end = begin + length
        if text[end : end + 1] != b"_":
            scope = text[begin : begin + len(_DOT) * length].replace(_DOT, b".")[:length]
            end = begin + length + (len(_DOT) - 1) * scope.count(b".")
        is_name = len(scope) == length and all(map(_NAME.fullmatch, scope.split(b".")))
        if not is_name or text[end : end + 1] != b"_" or end + 1 == len(text):
            return
        yield scope, end + 1
        at = end + 1


def _name(text: bytes, is_counted: bool) -> tuple[bytes, bool]:
    """The name of a function behind its scopes, and whether a number is before it; empty if it is none."""
    number = _NUMBER.match(text) if is_counted else None
    name = text[number.end() :] if number is not None else text
    inner = _INNER.match(name)
    if inner is not None:
        name = name[inner.end() :]
        name = (_parsed(name, b"f") or [b""])[-1] if name[:1].isdigit() else name
    is_name = _NAME.fullmatch(name) is not None and not _INTERNAL.match(name)
    return (name if is_name else b""), number is not None

"""Operators in the names of functions, as demanglers and compilers spell them."""

from __future__ import annotations

import re

OPERATOR = (
    rb"(?<![\w$\x80-\xff])operator(?:"
    rb'(?: ?new ?\[\]| ?delete ?\[\]| new\b| delete\b| co_await\b|"" ?[\w$\x80-\xff]+|\(\)|\[\]|<=>|<<=|>>=|->\*'
    rb"|->|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%^&|]=|[-+*/%^&|~!=<>,?])(?P<symbol>)|(?P<conversion> ))"
)
"""The keyword and its symbol (group `symbol`), or the space in front of the type of a conversion (`conversion`)."""

_OPERATOR_AT = re.compile(OPERATOR)
# What follows `operator<<`; anything else is the first argument of an `operator<`.
_BEHIND_SHIFT = re.compile(rb"\Z|[ <\[,)]|::|\((?!(?:anonymous|lambda|unnamed) )")


def operator_end(text: bytes, at: int, nested: bool = False) -> int:
    """Return where the symbol of the operator ends whose keyword is at a position, or -1 if none is there.

    0 means a conversion, whose type has no end of its own. Compilers spell `operator<` with template arguments
    as `operator<<int>`, which demanglers separate by a space; `operator<<>` is one without arguments unless it is
    `nested` in other brackets, which the last character then closes.
    """
    found = _OPERATOR_AT.match(text, at)
    if found is None:
        return -1
    if found.group("conversion"):
        return 0
    end = found.end()
    if text.endswith(b"operator<<", at, end) and not _BEHIND_SHIFT.match(text, end):
        return end if nested and text[end] == ord(">") else end - 1
    return end

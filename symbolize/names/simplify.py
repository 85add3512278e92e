# cython: language_level=3
"""Shortens the text of a demangled C++ name to what a profile shows.

The input is a text that a demangler made of a linkage name, or the name of a function as a compiler spells it in its
debug information. Every step is a single scan, linear in the length of the text. Text with brackets that do not match
is returned as it is.
"""

from __future__ import annotations

import re

import cython

OPERATOR = (
    rb"(?<![\w$\x80-\xff])operator(?:"
    rb'(?: ?new ?\[\]| ?delete ?\[\]| new\b| delete\b| co_await\b|"" ?[\w$\x80-\xff]+|\(\)|\[\]|<=>|<<=|>>=|->\*'
    rb"|->|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%^&|]=|[-+*/%^&|~!=<>,?])(?P<symbol>)|(?P<conversion> ))"
)
"""The keyword and its symbol (group `symbol`), or the space in front of the type of a conversion (`conversion`)."""

_OPERATOR_AT = re.compile(OPERATOR)
# What follows `operator<<`; anything else is the first argument of an `operator<`.
_BEHIND_SHIFT = re.compile(rb"\Z|[ <\[,)]|::|\((?!(?:anonymous|lambda|unnamed) )")
_LANDMARK = re.compile(OPERATOR + rb"|(?P<decltype>decltype ?(?=\())|[(<\[{ *&]")
_CLOSING = {ord(")"): ord("("), ord("]"): ord("["), ord("}"): ord("{")}
_QUALIFIERS = rb"(?: const| volatile| restrict| noexcept| transaction_safe| &&?)*"
_SCOPE = re.compile(_QUALIFIERS + rb"(?:\[abi:[^\]]*\])*::")
_ENCLOSING = re.compile(rb"\)" + _QUALIFIERS + rb"(?:\[abi:[^\]]*\])*::")
_PLAIN_FUNCTION = re.compile(rb"([\w:~$]+)\(")
_CLONE = re.compile(rb"(?: \[clone [^\]]*\]| \(\.[^()]*\))+\Z")
# A function that is declared in a class: `A::friend f`.
_FRIEND, _IN_CLASS = b"friend", b"::friend"
_SPECIAL = re.compile(
    rb"(?:vtable|VTT|construction vtable|typeinfo|typeinfo name|typeinfo fn|java Class|guard variable"
    rb"|TLS init function|TLS wrapper function|thread-local \w+ routine|reference temporary(?: #\d+)?|hidden alias"
    rb"|(?:non-)?transaction clone|template parameter object|initializer|global \w+ keyed) (?:for|to) "
    rb"|(?:non-virtual thunk|virtual thunk|covariant return thunk) to |java resource |invocation function for block in "
)


_GO_SHAPE = b"[go.shape."


class _UnbalancedError(Exception):
    """The brackets of the text do not match."""


def drop_clone_notes(text: bytes) -> bytes:
    """Remove the notes on clone suffixes, ` [clone .cold]` (libstdc++) or ` (.cold)` (libc++abi), at the end."""
    if not text.endswith((b"]", b")")) or (b" [clone " not in text and b" (." not in text):
        return text
    # Only the tail can match; without this bound the search would start at every space of a long name.
    start = len(text)
    while True:
        begin = max(text.rfind(b" [clone ", 0, start), text.rfind(b" (.", 0, start))
        if begin < 0 or not _CLONE.fullmatch(text, begin, start):
            return text[:start]
        start = begin


def simplify(text: bytes, keep_templates: bool) -> bytes:
    """Drop parameters, return type and qualifiers of a demangled function name, as pprof does.

    Enclosing functions keep empty parentheses (`f()::x`); template arguments stay with `keep_templates`, except
    for parameters of enclosing functions inside them. Thunks, vtables and the like name a whole encoding and keep its
    parameters.
    """
    plain = _PLAIN_FUNCTION.match(text)
    if plain is not None:
        head = plain.group(1)
        if not head.endswith((b"operator", b"decltype")) and _ENCLOSING.search(text, len(head)) is None:
            return head
    try:
        groups, operators = _match_brackets(text)
        special = _SPECIAL.match(text)
        start, end = (0, len(text)) if special else _name_span(text, groups, operators)
    except _UnbalancedError:
        return text
    return _edit(text, groups, operators, start, end, keep_templates) or text


def drop_template_arguments(name: bytes) -> bytes:
    """Drop the template arguments of a qualified name that a compiler wrote without parameters (`DW_AT_name`).

    `a::f<b::c>` gives `a::f`; a component that is itself in brackets, such as `<lambda(int)>`, stays. Behind an
    operator too they go: `a::operator<<b>` gives `a::operator<`, and `operator a<b><c>`, a conversion, `operator a`
    (R258).
    """
    if b"<" not in name:
        return name
    try:
        groups, operators = _match_brackets(name)
    except _UnbalancedError:
        return name
    ends = set(operators.values())
    kept: list[bytes] = []
    position = 0
    for start in sorted(groups):
        if start < position or name[start] != ord("<"):
            continue
        end = start - 1 if name[start - 1 : start] == b" " and start - 1 in ends else start
        before = name[end - 1 : end]
        # Behind the arguments of a conversion's type there are those of the operator.
        if end in ends or before.isalnum() or before in (b"_", b"]", b"*", b"&") or 0 < start == position:
            kept.append(name[position:end])
            position = groups[start] + 1
    kept.append(name[position:])
    return b"".join(kept)


def drop_type_arguments(name: bytes) -> bytes:
    """Shorten the type arguments of a generic Go function, as Go's runtime and pprof do: `main.Map[...]` (R288).

    Symbols and debug information have the shapes that the function was compiled for: `main.Map[go.shape.int]`. All from
    the first bracket to the last one is shortened; the modes `templates`, `full` and `none`, and the linked name, keep
    it.
    """
    begin = name.find(b"[")
    end = name.rfind(b"]")
    return name[:begin] + b"[...]" + name[end + 1 :] if _GO_SHAPE in name and 0 < begin < end else name


def simplify_plain(name: bytes, keep_templates: bool) -> bytes:
    """Simplify a qualified name out of DWARF, which has parameters only where it is local to a function (R264, local
    classes and lambdas)."""
    if _ENCLOSING.search(name):
        try:
            groups, operators = _match_brackets(name)
        except _UnbalancedError:
            return name
        if any(
            name[at] == ord("(") and _is_parameters(name, at) and _SCOPE.match(name, groups[at] + 1) for at in groups
        ):
            return _edit(name, groups, operators, 0, len(name), keep_templates)
    if keep_templates:
        return name
    return drop_type_arguments(name) if _GO_SHAPE in name else drop_template_arguments(name)


def own_name(name: bytes) -> bytes:
    """A qualified name without its scopes, as `DW_AT_name` has it: `a::b<c::d>` gives `b<c::d>`."""
    return name[_own_span(name)[0] :] if b"::" in name else name


def last_component(name: bytes) -> bytes:
    """A qualified name without its scopes, template arguments and ABI tags: `a::b[abi:x]<c::d>` gives `b`."""
    if b"::" not in name and b"<" not in name and b"[abi:" not in name:
        return name
    start, end = _own_span(name)
    return name[start:end]


def _own_span(name: bytes) -> tuple[int, int]:
    """Where the last component of a qualified name begins, and where its template arguments or ABI tags do."""
    depth = start = i = 0
    end = len(name)
    while i < len(name):
        byte = name[i]
        if i == start and name.startswith(b"operator", i):
            symbol = operator_end(name, i)
            if symbol == 0:  # a conversion: its type has no scopes to cut off
                return i, len(name)
            if symbol > 0:
                i = end = symbol
                continue
        if byte in b"<({[":
            # A component that is itself in brackets, such as `<lambda(int)>`, stays whole.
            if depth == 0 and i > start and (byte == ord("<") or name.startswith(b"[abi:", i)):
                end = min(end, i)
            depth += 1
        elif byte in b">)}]":
            depth -= 1
        elif depth == 0 and name.startswith(b"::", i):
            start = i = i + 2
            end = len(name)
            continue
        i += 1
    return start, end


def operator_end(text: bytes, at: int, nested: bool = False) -> int:
    """Return where the symbol of the operator ends whose keyword is at a position, or -1 if none is there.

    0 means a conversion, whose type has no end of its own. Compilers spell `operator<` with template arguments
    as `operator<<int>`, which demanglers separate by a space; `operator<<>` is one without arguments unless it is
    `nested` in other brackets, which the last character then closes.

    The symbol is the longest one behind which the name ends or template arguments, parameters or a scope follow:
    `operator<<char>` is `operator<` with an argument, `operator<<<char>` and `operator<< <char>` are `operator<<`
    (R258, names of operators).
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


def _match_brackets(text: bytes) -> tuple[dict[int, int], dict[int, int]]:
    """Map the position of every opening bracket to that of its closing one, and that of every operator to its end.

    The angle brackets in it are those of template arguments, not comparison or shift operators of expressions.
    """
    groups: dict[int, int] = {}
    operators: dict[int, int] = {}
    stack: list[int] = []
    after_operator: cython.Py_ssize_t = -1
    at: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = len(text)
    kind: cython.int
    while at < end:
        kind = text[at]
        if kind == ord("o"):
            end_of_operator: cython.Py_ssize_t = (
                operator_end(text, at, bool(stack)) if text.startswith(b"operator", at) else -1
            )
            if end_of_operator > 0:
                operators[at] = end_of_operator
                at = end_of_operator
                # A demangler puts a space in front of `<`.
                after_operator = at + 1 if text.startswith(b" <", at) else at
                continue
        elif kind == ord("-"):
            if text.startswith(b"->", at):
                at = after_operator = at + 2
                continue
        elif kind == ord("<"):
            # A runtime prints operands of an expression in parentheses, or puts spaces around the operator.
            if at == after_operator or text[at - 1 : at] not in (b")", b" ", b"<"):
                stack.append(at)
        elif kind == ord(">"):
            if stack and text[stack[-1]] == ord("<"):
                groups[stack.pop()] = at
        elif kind == ord(")") or kind == ord("]") or kind == ord("}"):
            while stack and text[stack[-1]] == ord("<"):
                stack.pop()
            if not stack or text[stack[-1]] != _CLOSING[kind]:
                raise _UnbalancedError
            groups[stack.pop()] = at
        elif kind == ord("(") or kind == ord("[") or kind == ord("{"):
            stack.append(at)
        at += 1
    if any(text[at] != ord("<") for at in stack):
        raise _UnbalancedError
    return groups, operators


def _name_span(text: bytes, groups: dict[int, int], operators: dict[int, int]) -> tuple[int, int]:
    """Find the qualified name of the function in the text of its whole declaration."""
    start = position = 0
    end = len(text)
    while True:
        landmark = _LANDMARK.search(text, position, end)
        if landmark is None:
            return start, end
        at = landmark.start()
        position = landmark.end()
        if landmark.group("conversion"):
            position = _conversion_end(text, groups, position, end)
            if position == end:
                return start, end
        elif landmark.group("symbol") is not None:
            position = operators.get(at, position)
            # The space in front of template arguments belongs to them.
            position += text.startswith(b" <", position)
        elif landmark.group("decltype"):
            position = groups[position] + 1
        elif text[at] == ord("("):
            if text.startswith(b"(anonymous namespace)", at) or text[at - 1 : at] == b"'":
                position = groups[at] + 1
            elif at == start:
                # A declarator: the function is named inside, the rest belongs to its return type.
                start, end = at + 1, groups[at]
            else:
                scope = _SCOPE.match(text, groups[at] + 1, end)
                if scope is None:
                    return start, at
                position = scope.end()
        elif text.endswith(_FRIEND, start, at) and (at - start == len(_FRIEND) or text.endswith(_IN_CLASS, start, at)):
            continue
        elif text[at] in b" *&":
            start = position
        else:
            # An unmatched `<` is an operator, which no name contains.
            position = groups.get(at, at) + 1


def _conversion_end(text: bytes, groups: dict[int, int], position: int, end: int) -> int:
    """Return where the type that a conversion operator names ends: at its parameter list."""
    after_declarator = -1
    while True:
        landmark = _LANDMARK.search(text, position, end)
        if landmark is None:
            return end
        at = landmark.start()
        position = landmark.end()
        if landmark.group("decltype"):
            position = groups[position] + 1
        elif text[at] == ord("("):
            opened_type = text[at - 1 : at] == b" " or text.startswith(b"(anonymous namespace)", at)
            if not opened_type and at != after_declarator:
                return at
            position = groups[at] + 1
            after_declarator = position if opened_type else -1
        elif text[at] in b"<[{":
            position = groups.get(at, at) + 1


def _edit(
    text: bytes, groups: dict[int, int], operators: dict[int, int], start: int, end: int, keep_templates: bool
) -> bytes:
    """Return `text[start:end]` without template arguments and without parameters of enclosing functions."""
    ends = set(operators.values())
    pieces: list[bytes] = []
    done = start
    for at in sorted(groups):
        if at < done:
            continue
        if at >= end:
            break
        close = groups[at]
        if text[at] == ord("<") and not keep_templates:
            # `operator<< <int>` has a space that belongs to the arguments.
            pieces.append(text[done:at].rstrip(b" "))
            done = close + 1
        elif text[at] == ord("(") and (at in ends or _is_parameters(text, at)) and _SCOPE.match(text, close + 1):
            pieces.append(text[done : at + 1])
            done = close
    pieces.append(text[done:end])
    return b"".join(pieces)


def _is_parameters(text: bytes, at: int) -> bool:
    """Tell whether the parenthesis at `at` follows a function name."""
    return (
        text[at - 1 : at] not in (b"", b" ", b"(", b",", b"<", b":", b"'")
        and text[at + 1 : at + 21] != b"anonymous namespace)"
    )

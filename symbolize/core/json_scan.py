# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type, untyped-decorator, no-any-return"
# ruff: noqa: SIM109
"""Values of a JSON text by where they are, and columns of numbers without an object for each: what is not asked for is
not decoded, only stepped over."""

import json

import cython
import numpy as np

BLANK = cython.declare(cython.uchar, 0x20)
LINE = cython.declare(cython.uchar, 0x0A)
RETURN = cython.declare(cython.uchar, 0x0D)
TAB = cython.declare(cython.uchar, 0x09)
QUOTE = cython.declare(cython.uchar, 0x22)
BACKSLASH = cython.declare(cython.uchar, 0x5C)
COMMA = cython.declare(cython.uchar, 0x2C)
COLON = cython.declare(cython.uchar, 0x3A)
OPEN_LIST = cython.declare(cython.uchar, 0x5B)
CLOSE_LIST = cython.declare(cython.uchar, 0x5D)
OPEN_OBJECT = cython.declare(cython.uchar, 0x7B)
CLOSE_OBJECT = cython.declare(cython.uchar, 0x7D)
MINUS = cython.declare(cython.uchar, 0x2D)
POINT = cython.declare(cython.uchar, 0x2E)
NULL = cython.declare(cython.uchar, 0x6E)
ZERO = cython.declare(cython.uchar, 0x30)
NINE = cython.declare(cython.uchar, 0x39)

MAX_DIGITS = cython.declare(cython.int, 15)
"""Digits that a double always holds, so that a quotient of it and of a power of ten up to 22 is rounded once."""


class JsonDamage(ValueError):
    """What is no JSON, or not the JSON that was expected, at the offset `at`."""

    def __init__(self, at: int, problem: str) -> None:
        super().__init__(problem)
        self.at = at


@cython.ccall
def skip_blanks(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the next token begins; the length of the text behind the last one."""
    while at < data.shape[0] and (data[at] == BLANK or data[at] == LINE or data[at] == RETURN or data[at] == TAB):
        at += 1
    return at


@cython.cfunc
def string_end(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the string ends that begins `at`; -1 if it does not end."""
    at += 1
    while at < data.shape[0]:
        if data[at] == QUOTE:
            return at + 1
        at += 2 if data[at] == BACKSLASH else 1
    return -1


@cython.ccall
def value_end(data: cython.const[cython.uchar][::1], begin: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the value ends that begins at `begin`. What stands inside of it is not checked. Raises JsonDamage for one
    that does not end."""
    at: cython.Py_ssize_t = begin
    depth: cython.Py_ssize_t = 0
    byte: cython.uchar
    while at < data.shape[0]:
        byte = data[at]
        if byte == QUOTE:
            at = string_end(data, at)
            if at < 0:
                break
        elif byte == OPEN_LIST or byte == OPEN_OBJECT:
            depth += 1
            at += 1
            continue
        elif byte == CLOSE_LIST or byte == CLOSE_OBJECT:
            depth -= 1
            at += 1
            if depth < 0:
                break
        elif depth == 0:  # a number, or one of the three words
            while at < data.shape[0] and data[at] > BLANK and not is_border(data[at]):
                at += 1
        else:
            at += 1
            continue
        if depth == 0 and at > begin:
            return at
        if depth == 0:
            break
    raise JsonDamage(begin, "a value does not end")


@cython.cfunc
@cython.inline
def is_border(byte: cython.uchar) -> cython.bint:
    """Whether no number and no word has this byte."""
    return byte == COMMA or byte == CLOSE_LIST or byte == CLOSE_OBJECT or byte == COLON or byte == QUOTE


@cython.ccall
def spans(data: cython.const[cython.uchar][::1], begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> object:
    """Where the items of the list, or the keys and values of the object, from `begin` to `end` begin and end:
    int64[n, 2]. Raises JsonDamage."""
    is_object: cython.bint = begin < end and data[begin] == OPEN_OBJECT
    if not is_object and not (begin < end and data[begin] == OPEN_LIST):
        raise JsonDamage(begin, "neither a list nor an object is there")
    last: cython.uchar = CLOSE_OBJECT if is_object else CLOSE_LIST
    capacity: cython.Py_ssize_t = 64
    count: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t = skip_blanks(data, begin + 1)
    found = np.empty((capacity, 2), np.int64)
    rows: cython.longlong[:, ::1] = found
    border: cython.uchar
    if at < end and data[at] == last:
        return found[:0]
    while at < end:
        if count == capacity:
            capacity *= 2
            grown = np.empty((capacity, 2), np.int64)
            grown[:count] = found
            found = grown
            rows = found
        rows[count, 0] = at
        at = value_end(data, at)
        rows[count, 1] = at
        count += 1
        at = skip_blanks(data, at)
        border = COLON if is_object and count % 2 else COMMA
        if at < end and data[at] == border:
            at = skip_blanks(data, at + 1)
        elif at < end and data[at] == last and border == COMMA:
            return found[:count]
        else:
            break
    raise JsonDamage(min(at, end), "a list or an object is damaged")


@cython.ccall
def numbers(data: cython.const[cython.uchar][::1], begin: cython.Py_ssize_t, end: cython.Py_ssize_t) -> object:
    """The numbers in the list from `begin` to `end`, NaN for null: float64[n]. Raises JsonDamage for other items."""
    if not (begin < end and data[begin] == OPEN_LIST):
        raise JsonDamage(begin, "no list is there")
    count: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t
    for at in range(begin, end):
        count += data[at] == COMMA
    found = np.empty(count + 1, np.float64)
    values: cython.double[::1] = found
    powers: cython.double[::1] = 10.0 ** np.arange(MAX_DIGITS + 1)
    start: cython.Py_ssize_t
    number: cython.longlong
    digits: cython.int
    behind: cython.int
    is_negative: cython.bint
    count = 0
    at = skip_blanks(data, begin + 1)
    if at < end and data[at] == CLOSE_LIST:
        return found[:0]
    while at < end:
        start = at
        is_negative = data[at] == MINUS
        at += is_negative
        number = 0
        digits = 0
        behind = -1
        while at < end and digits <= MAX_DIGITS:
            if data[at] >= ZERO and data[at] <= NINE:
                number = number * 10 + (data[at] - ZERO)
                digits += 1
                behind += behind >= 0
            elif data[at] == POINT and behind < 0 and digits:
                behind = 0
            else:
                break
            at += 1
        if 0 < digits <= MAX_DIGITS and behind != 0 and at < end and (is_border(data[at]) or data[at] <= BLANK):
            values[count] = number / powers[behind] if behind > 0 else cython.cast(cython.double, number)
            if is_negative:
                values[count] = -values[count]
        else:
            at = value_end(data, start)
            values[count] = other_number(bytes(data[start:at]), start)
        count += 1
        at = skip_blanks(data, at)
        if at < end and data[at] == COMMA:
            at = skip_blanks(data, at + 1)
        elif at < end and data[at] == CLOSE_LIST:
            return found[:count]
        else:
            break
    raise JsonDamage(min(at, end), "a list is damaged")


@cython.cfunc
def other_number(text: bytes, at: cython.Py_ssize_t) -> cython.double:
    """A number that is long or has an exponent, true as 1, false as 0, null as NaN. Raises JsonDamage."""
    if text == b"null":
        return float("nan")
    try:
        if text[:1] in b"-0123456789tf" and not text.startswith(b"-I"):
            return float(json.loads(text))
    except (ValueError, OverflowError):
        pass
    raise JsonDamage(at, "a number is expected there")

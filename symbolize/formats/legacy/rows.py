# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""The rows of samples in a text profile, read into flat arrays.

Each kind of profile has rows of one shape, written as a text in which `n` is a decimal number, `a` the addresses of
the stack, a line break the end of a line, and anything else that character itself. Blanks may be between all parts
(R330, rows of samples).
"""

import cython

NUMBER = cython.declare(cython.uchar, ord("n"))
ADDRESSES = cython.declare(cython.uchar, ord("a"))
NEWLINE = cython.declare(cython.uchar, ord("\n"))
BLANK = cython.declare(cython.uchar, ord(" "))
TAB = cython.declare(cython.uchar, ord("\t"))
RETURN = cython.declare(cython.uchar, ord("\r"))
MINUS = cython.declare(cython.uchar, ord("-"))
ZERO = cython.declare(cython.uchar, ord("0"))
NINE = cython.declare(cython.uchar, ord("9"))
LETTER_X = cython.declare(cython.uchar, ord("x"))
LOWER = cython.declare(cython.uchar, 0x20)
"""The bit that makes a letter of ASCII a small one."""

NO_DIGIT = cython.declare(cython.uchar, 0xFF)
DIGITS = cython.declare(
    cython.const[cython.uchar][::1],
    bytes(int(chr(byte), 16) if byte in b"0123456789abcdefABCDEF" else 0xFF for byte in range(256)),
)
"""The value of each byte as a hexadecimal digit. Comparisons would be mispredicted for every other digit."""

INT64_MAX = cython.declare(cython.ulonglong, 0x7FFFFFFFFFFFFFFF)
TOP_DIGIT = cython.declare(cython.int, 60)
"""How far the first of sixteen hexadecimal digits is shifted."""

MAX_DEPTH = cython.declare(cython.Py_ssize_t, 1 << 16)
"""Addresses of one row; no profiler records so many."""


@cython.cclass
class RowColumns:
    """The rows of a text: `numbers` (int64, a column of n rows for each number of the shape, one behind the other);
    where the `addresses` (uint64) of row i end, in `ends[i + 1]` (int64[n + 1]); where it begins in the text, in
    `lines` (int64[n]); whether its stack ends in something else than an address, in `is_cut` (uint8[n])."""

    def __init__(
        self,
        numbers: cython.longlong[::1],
        ends: cython.longlong[::1],
        lines: cython.longlong[::1],
        addresses: cython.ulonglong[::1],
        is_cut: cython.uchar[::1],
    ) -> None:
        self.numbers = numbers
        self.ends = ends
        self.lines = lines
        self.addresses = addresses
        self.is_cut = is_cut


@cython.cfunc
@cython.inline
@cython.nogil
@cython.boundscheck(False)  # each index is compared with the size
@cython.exceptval(check=False)
def behind_blanks(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the next byte is that is no blank; a line break is none."""
    while at < data.shape[0] and (data[at] == BLANK or data[at] == TAB or data[at] == RETURN):
        at += 1
    return at


@cython.cfunc
@cython.inline
@cython.nogil
@cython.boundscheck(False)  # each index is compared with the size
@cython.exceptval(check=False)
def next_line(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Where the next line begins."""
    while at < data.shape[0] and data[at] != NEWLINE:
        at += 1
    return at + 1 if at < data.shape[0] else at


@cython.cfunc
@cython.inline
@cython.nogil
@cython.boundscheck(False)  # there are as many digits as bytes
@cython.exceptval(check=False)
def hex_digit(byte: cython.uchar) -> cython.uchar:
    """The value of a hexadecimal digit, or NO_DIGIT."""
    return DIGITS[byte]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.boundscheck(False)  # each index is compared with the size
@cython.exceptval(check=False)
def is_address(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.bint:
    """Whether `0x` and a hexadecimal digit are at `at`."""
    if at + 2 >= data.shape[0] or data[at] != ZERO or (data[at + 1] | LOWER) != LETTER_X:
        return False
    return hex_digit(data[at + 2]) != NO_DIGIT


@cython.cfunc
@cython.nogil
@cython.boundscheck(False)  # each index is compared with the size; rows are fewer than the columns hold
@cython.exceptval(check=False)
def read_number(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, values: cython.longlong[::1], place: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Put the decimal number at `at` into `values[place]`; where it ends, -1 if there is none or it exceeds 64 bits."""
    value: cython.ulonglong = 0
    begin: cython.Py_ssize_t
    is_negative: cython.bint = at < data.shape[0] and data[at] == MINUS
    if is_negative:
        at += 1
    begin = at
    while at < data.shape[0] and ZERO <= data[at] <= NINE:
        if value > (INT64_MAX - (data[at] - ZERO)) // 10:
            return -1
        value = value * 10 + (data[at] - ZERO)
        at += 1
    values[place] = -cython.cast(cython.longlong, value) if is_negative else cython.cast(cython.longlong, value)
    return at if at > begin else -1


@cython.cfunc
@cython.nogil
@cython.boundscheck(False)  # each index is compared with the size; rows are fewer than the columns hold
@cython.exceptval(check=False)
def read_addresses(
    data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    addresses: cython.ulonglong[::1],
    used: cython.Py_ssize_t,
    ends: cython.longlong[::1],
    row: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Add the addresses from `at` on to the `used` ones, and put into `ends[row]` how many there are then; where they
    end, -1 if one exceeds 64 bits or there are too many."""
    value: cython.ulonglong
    digit: cython.uchar
    first: cython.Py_ssize_t = used
    at = behind_blanks(data, at)
    while is_address(data, at):
        at += 2
        value = 0
        while at < data.shape[0]:
            digit = hex_digit(data[at])
            if digit == NO_DIGIT:
                break
            if value >> TOP_DIGIT != 0:
                return -1
            value = value << 4 | digit
            at += 1
        if used - first == MAX_DEPTH or used == addresses.shape[0]:
            return -1
        addresses[used] = value
        used += 1
        if at < data.shape[0] and behind_blanks(data, at) == at:
            break
        at = behind_blanks(data, at)
    ends[row] = used
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def read_row(
    data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    shape: cython.const[cython.uchar][::1],
    numbers: cython.longlong[::1],
    ends: cython.longlong[::1],
    addresses: cython.ulonglong[::1],
    is_cut: cython.uchar[::1],
    row: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Read the row at `at`; where the next line begins, -1 if it has another shape.

    Blanks and tabs may be between the parts, but two numbers need something: `123 @` is not 12 and 3. Digits of
    addresses may be capital.
    """
    column: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t
    is_cut[row] = 0
    for k in range(shape.shape[0]):
        at = behind_blanks(data, at)
        if shape[k] == NUMBER:
            at = read_number(data, at, numbers, column * is_cut.shape[0] + row)
            column += 1
        elif shape[k] == ADDRESSES:
            at = read_addresses(data, at, addresses, ends[row], ends, row + 1)
            if 0 <= at < data.shape[0] and data[at] != NEWLINE:
                is_cut[row] = 1
                at = next_line(data, at) - 1
        elif at < data.shape[0] and data[at] == shape[k]:
            at += 1
        else:
            return -1
        if at < 0:
            return -1
    return next_line(data, at)


def read(
    data: cython.const[cython.uchar][::1],
    begin: cython.Py_ssize_t,
    shape: cython.const[cython.uchar][::1],
    comment: cython.uchar,
    columns: RowColumns,
    row: cython.Py_ssize_t,
) -> tuple[int, int]:
    """Read rows from `begin` on, as rows `row` and following of the columns.

    Lines that are empty or begin with `comment` are skipped. Returns the number of rows, and where the first other line
    begins.
    """
    at: cython.Py_ssize_t = begin
    first: cython.Py_ssize_t
    behind: cython.Py_ssize_t = 0
    numbers: cython.longlong[::1] = columns.numbers
    ends: cython.longlong[::1] = columns.ends
    lines: cython.longlong[::1] = columns.lines
    addresses: cython.ulonglong[::1] = columns.addresses
    is_cut: cython.uchar[::1] = columns.is_cut
    with cython.nogil:
        while at < data.shape[0]:
            first = behind_blanks(data, at)
            if first == data.shape[0] or data[first] == NEWLINE or data[first] == comment:
                at = next_line(data, first)
                continue
            if row == lines.shape[0]:
                break
            behind = read_row(data, first, shape, numbers, ends, addresses, is_cut, row)
            if behind < 0:
                break
            lines[row] = at
            row += 1
            at = behind
    return row, at

# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type, index", no-warn-unused-ignores
"""The lines of folded stacks, into tables of what is distinct (R342, folded stacks)."""

from collections.abc import Callable

import cython
import numpy as np

from symbolize.core.arrays import Int32, Int64, UInt64, extended

if not cython.compiled:
    from symbolize.core.interning import Chunks, Lists

NEWLINE = cython.declare(cython.uchar, ord("\n"))
RETURN = cython.declare(cython.uchar, ord("\r"))
BLANK = cython.declare(cython.uchar, ord(" "))
TAB = cython.declare(cython.uchar, ord("\t"))
ZERO = cython.declare(cython.uchar, ord("0"))
NINE = cython.declare(cython.uchar, ord("9"))
COMMENT = cython.declare(cython.uchar, ord("#"))
SEPARATOR = cython.declare(cython.uchar, ord(";"))
POINT = cython.declare(cython.uchar, ord("."))

MAX_DIGITS = cython.declare(cython.Py_ssize_t, 18)
TOO_LARGE = cython.declare(cython.ulonglong, 1 << 63)
"""What sums that are larger become."""

MAX_FRAMES: int = 1 << 16
MAX_FRAME_BYTES: int = 8 << 20
"""How many frames, and bytes of them, are recognized by their bytes. Others are asked for every time."""


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_blank(byte: cython.uchar) -> cython.bint:
    """Whether a byte is what `bytes.strip` removes."""
    return byte == BLANK or TAB <= byte <= RETURN


@cython.cclass
class FoldedScan:
    """The stacks that were read, each once, with the sum of its counts: `sums` and, below 1, `parts`.

    `leaf_of` and `caller_of` give the number of a frame's location by its text. `mixer` comes from the caller, at
    random, so that no file can choose what collides. `skipped` counts the lines that are no stacks, as all are that
    have `longest` bytes or more, of all `lines`; the first was line `first_skipped`. `fractions` counts those whose
    count is no whole number.
    """

    def __init__(
        self,
        mixer: cython.ulonglong,
        longest: int,
        leaf_of: Callable[[bytes], int],
        caller_of: Callable[[bytes], int],
    ) -> None:
        self.stacks = Lists(mixer)
        self.sums = memoryview(np.zeros(16, np.uint64))
        self.parts = memoryview(np.zeros(16, np.float64))
        self.longest = longest
        self.leaf_of, self.caller_of = leaf_of, caller_of
        self.leaves = Chunks(MAX_FRAMES, MAX_FRAME_BYTES, mixer)
        self.callers = Chunks(MAX_FRAMES, MAX_FRAME_BYTES, mixer)
        self.lines = self.skipped = self.first_skipped = self.fractions = 0

    @cython.boundscheck(False)  # each index is compared with the size
    def read(self, data: cython.const[cython.uchar][::1]) -> int:
        """Read a text of whole lines; how many frames all stacks have so far."""
        begin: cython.Py_ssize_t = 0
        end: cython.Py_ssize_t
        while begin < data.shape[0]:
            end = begin
            while end < data.shape[0] and data[end] != NEWLINE:
                end += 1
            self.lines += 1
            self.line(data, begin, end)
            begin = end + 1
        return self.stacks.used

    @cython.boundscheck(False)  # each index is between `begin` and `end`, which `read` has from the size
    def line(
        self, data: cython.const[cython.uchar][::1], begin: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.int:
        """Read the line `data[begin:end]`: frames between semicolons, the leaf last, blanks, and a count, which may
        have a fraction. A count alone is of a sample without a stack."""
        at: cython.Py_ssize_t
        digit: cython.Py_ssize_t
        point: cython.Py_ssize_t
        last: cython.Py_ssize_t = end
        value: cython.ulonglong = 0
        part: cython.double = 0
        weight: cython.double = 1
        while last > begin and is_blank(data[last - 1]):
            last -= 1
        if last == begin or data[begin] == COMMENT:
            return 0
        digit = point = last
        while digit > begin and ZERO <= data[digit - 1] <= NINE:
            digit -= 1
        if digit > begin and data[digit - 1] == POINT:
            point = digit - 1
            digit = point
            while digit > begin and ZERO <= data[digit - 1] <= NINE:
                digit -= 1
        at = digit
        while at > begin and (data[at - 1] == BLANK or data[at - 1] == TAB):
            at -= 1
        is_alone: cython.bint = at == begin
        has_count: cython.bint = 0 < point - digit <= MAX_DIGITS
        has_stack: cython.bint = is_alone or not (at == digit or is_blank(data[at - 1]))
        if not has_count or not has_stack or end - begin >= self.longest:
            self.first_skipped = self.first_skipped or self.lines
            self.skipped += 1
            return 0
        while digit < point:
            value = value * 10 + (data[digit] - ZERO)
            digit += 1
        digit += 1
        while digit < last:
            weight /= 10
            part += weight * (data[digit] - ZERO)
            digit += 1
        self.stacks.size = 0
        last = at
        while not is_alone:
            while at > begin and data[at - 1] != SEPARATOR:
                at -= 1
            self.frame(data, at, last)
            if at == begin:
                break
            at -= 1
            last = at
        return self.count(self.stacks.add(), value, part)

    def frame(
        self, data: cython.const[cython.uchar][::1], begin: cython.Py_ssize_t, end: cython.Py_ssize_t
    ) -> cython.int:
        """Add the frame `data[begin:end]` to the stack that is built, of which the first is the leaf."""
        is_caller: cython.bint = self.stacks.size > 0
        known: Chunks = self.callers if is_caller else self.leaves
        row: cython.Py_ssize_t = known.find(data, begin, end)
        if row < 0:
            row = (self.caller_of if is_caller else self.leaf_of)(bytes(data[begin:end]))
            known.put(data, begin, end, row)
        return self.stacks.append(cython.cast(cython.int, row))

    def count(self, stack: cython.Py_ssize_t, value: cython.ulonglong, part: cython.double) -> cython.int:
        """Add to the sum of a stack."""
        if stack >= self.sums.shape[0]:
            self.sums = extended(self.sums, stack + 1)
            self.parts = extended(self.parts, stack + 1)
        self.sums[stack] = min(self.sums[stack] + value, TOO_LARGE)
        if part > 0:
            self.parts[stack] += part
            self.fractions += 1
        return 0

    def total(self) -> float:
        """The sum of all counts, with their fractions."""
        return float(np.asarray(self.sums).sum(dtype=np.float64) + np.asarray(self.parts).sum())

    def arrays(self) -> tuple[Int64, Int32, UInt64]:
        """The stacks as offsets and locations, leaf first, and their sums, rounded; those of 2^63 and more are 2^63."""
        offsets, locations = self.stacks.arrays()
        sums, parts = np.asarray(self.sums)[: self.stacks.count], np.asarray(self.parts)[: self.stacks.count]
        return offsets, locations, np.minimum(sums + np.floor(parts + 0.5).astype(np.uint64), np.uint64(TOO_LARGE))

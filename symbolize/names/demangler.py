# cython: boundscheck=True, wraparound=False, initializedcheck=False, infer_types=True
"""What the demanglers of C++ and Rust share: a linkage name that is read, a text that is printed, and their limits."""

from __future__ import annotations

import cython

MAX_NAME = 1 << 16
"""A name that is longer is kept as it is (R117, hostile names). Of a C++ name only the part that the mode shows counts:
it may be too long in `full` and readable in `default`."""
MAX_DEPTH = 320
MAX_STEPS = 1 << 17
_MAX_OUTPUT = cython.declare(cython.int, 1 << 20)
_PADDING = cython.declare(cython.int, 8)


@cython.cclass
class Demangler:
    """Demangles a name at a time; its buffers serve all names. Not for two threads at once.

    The name is 0-terminated. A method that finds something wrong sets `bad`, and every loop ends on it; `refused` tells
    names that cost too much from malformed ones. Back references can ask for text without end, so there are limits of
    depth, steps and text (R117, hostile names).
    """

    def __init__(self) -> None:
        # All attributes have values here for the uncompiled class.
        self.text = memoryview(bytearray(256))
        self.printed = bytearray(4096)
        self.out = memoryview(self.printed)
        self.at = self.size = self.used = self.depth = self.steps = 0
        self.bad = self.refused = False

    def load(self, name: bytes) -> cython.int:
        """Start with a name of at most MAX_NAME bytes."""
        size = len(name)
        if size + _PADDING > len(self.text):
            self.text = memoryview(bytearray(2 * size + _PADDING))
        for i in range(size):
            self.text[i] = name[i]
        for i in range(size, size + _PADDING):
            self.text[i] = 0
        self.size = size
        self.at = self.used = self.depth = self.steps = 0
        self.bad = self.refused = False
        return 0

    def fail(self) -> cython.int:
        """The name is not one of the grammar."""
        self.bad = True
        return 0

    def refuse(self) -> cython.int:
        """The name costs too much."""
        self.bad = self.refused = True
        return 0

    def enter(self) -> cython.int:
        """Count a level of nesting and a step; 0 if there is nothing more to do."""
        self.depth += 1
        self.steps += 1
        if self.depth > MAX_DEPTH or self.steps > MAX_STEPS:
            self.refuse()
        return not self.bad

    def count_steps(self, count: cython.int) -> cython.int:
        """Give up where a small name expands to too much."""
        self.steps += count
        if self.steps > MAX_STEPS:
            self.refuse()
        return 0

    def eat(self, byte: cython.uchar) -> cython.bint:
        """Pass a character if it is there."""
        if self.text[self.at] != byte:
            return False
        self.at += 1
        return True

    def length(self) -> cython.int:
        """The length in front of an identifier: decimal digits without leading zeros."""
        byte = self.text[self.at]
        value: cython.int = byte - ord("0")
        if not 0 <= value <= ord("9") - ord("0"):
            return self.fail()
        self.at += 1
        byte = self.text[self.at]
        while value and ord("0") <= byte <= ord("9"):
            value = value * 10 + byte - ord("0")
            if value > MAX_NAME:
                return self.fail()
            self.at += 1
            byte = self.text[self.at]
        return value

    def reserve(self, size: cython.Py_ssize_t) -> cython.int:
        """Make the output large enough for so many bytes more."""
        wanted = self.used + size
        if wanted > len(self.out):
            if wanted > _MAX_OUTPUT:
                return self.refuse()
            self.printed = self.printed + bytearray(max(wanted, len(self.out)))
            self.out = memoryview(self.printed)
        return 0

    def put(self, byte: cython.uchar) -> cython.int:
        """Print a character."""
        if self.used >= len(self.out):
            self.reserve(1)
            if self.bad:
                return 0
        self.out[self.used] = byte
        self.used += 1
        return 0

    def put_word(self, text: bytes) -> cython.int:
        """Print a word of the language."""
        at = self.used
        size = len(text)
        if at + size > len(self.out):
            self.reserve(size)
            if self.bad:
                return 0
        for i in range(size):
            self.out[at + i] = text[i]
        self.used = at + size
        return 0

    def put_slice(self, start: cython.int, end: cython.int) -> cython.int:
        """Print a part of the linkage name."""
        at = self.used
        if at + end - start > len(self.out):
            self.reserve(end - start)
            if self.bad:
                return 0
        for i in range(start, end):
            self.out[at] = self.text[i]
            at += 1
        self.used = at
        return 0

# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type, untyped-decorator, no-any-return"
"""The lines of a text that have one of a few markers, in one pass over the text."""

from collections.abc import Sequence

import cython
import numpy as np

LINE_BREAK = cython.declare(cython.uchar, 0x0A)
PAIRS = cython.declare(cython.int, 1 << 16)


@cython.cclass
class LineMarkers:
    """Up to 255 markers of at least two bytes, none with a line break. Each is looked for by two bytes of it that are
    rare in text: neither blanks nor small letters, as far as it has such."""

    _bytes: cython.const[cython.uchar][::1]
    _ends: cython.int[::1]
    _offsets: cython.uchar[::1]
    _head: cython.uchar[::1]
    _next: cython.uchar[::1]

    def __init__(self, markers: Sequence[bytes]) -> None:
        self._bytes = b"".join(markers)
        self._ends = np.cumsum([0, *map(len, markers)], dtype=np.int32)
        self._offsets = np.array([rarest_pair(marker) for marker in markers], np.uint8)
        self._head = np.zeros(PAIRS, np.uint8)
        self._next = np.zeros(len(markers) + 1, np.uint8)
        number: cython.int
        for number, (marker, offset) in enumerate(zip(markers, self._offsets, strict=True), 1):
            pair: cython.int = int.from_bytes(marker[offset : offset + 2], "little")
            self._next[number] = self._head[pair]
            self._head[pair] = number

    def lines(self, text: cython.const[cython.uchar][::1]) -> list[int]:
        """Where the lines begin that have a marker, in order."""
        found: list[int] = []
        head: cython.uchar[::1] = self._head
        size: cython.Py_ssize_t = text.shape[0]
        at: cython.Py_ssize_t = 0
        done: cython.Py_ssize_t = 0
        begin: cython.Py_ssize_t
        number: cython.int
        while at + 1 < size:
            number = head[text[at] | text[at + 1] << 8]
            while number and not self.is_there(number - 1, text, at):
                number = self._next[number]
            if number:
                begin = at
                while begin > done and text[begin - 1] != LINE_BREAK:
                    begin -= 1
                found.append(begin)
                while at < size and text[at] != LINE_BREAK:
                    at += 1
                done = at + 1
            at += 1
        return found

    @cython.cfunc
    def is_there(self, number: cython.int, text: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.bint:
        """Whether a text has a marker whose pair is `at`."""
        i: cython.int = self._ends[number]
        end: cython.int = self._ends[number + 1]
        at -= self._offsets[number]
        if at < 0 or at + end - i > text.shape[0]:
            return False
        while i < end and text[at] == self._bytes[i]:
            i += 1
            at += 1
        return i == end


def rarest_pair(marker: bytes) -> int:
    """Where the two neighbouring bytes of a marker are that text has least."""
    is_common = [byte == ord(" ") or chr(byte).islower() for byte in marker]
    return min(range(len(marker) - 1), key=lambda i: is_common[i] + is_common[i + 1])

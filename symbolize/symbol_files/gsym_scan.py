# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type, index", no-warn-unused-ignores
"""Reads the function records of a GSYM file: sizes, names, lines, inlined calls, shared code."""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.core.cursor import Cursor

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
MAX_LINE = cython.declare(cython.longlong, 0x7FFFFFFF)

END_OF_LIST = cython.declare(cython.ulonglong, 0)
LINE_TABLE = cython.declare(cython.ulonglong, 1)
INLINED = cython.declare(cython.ulonglong, 2)
MERGED = cython.declare(cython.ulonglong, 3)
"""The types of what follows a function's size and name; others, such as call sites, are skipped."""

END_SEQUENCE = cython.declare(cython.ulonglong, 0)
SET_FILE = cython.declare(cython.ulonglong, 1)
ADVANCE_PC = cython.declare(cython.ulonglong, 2)
ADVANCE_LINE = cython.declare(cython.ulonglong, 3)
FIRST_SPECIAL = cython.declare(cython.longlong, 4)

MAX_DEPTH = cython.declare(cython.Py_ssize_t, 256)
"""Functions inlined into each other; a function with deeper ones has none."""
FIRST_ROWS = 1 << 10


@cython.cclass
class GsymScan:
    """The records at `places` of functions that begin at `begins`, in `data`; `name_size` bytes hold a name.

    Columns, with their rows in `counts`: `lines` are function, begin, end, file and line; `calls` function, depth,
    name, file and line; `ranges` call, begin and end; `merged` function and name. `sizes`, `names` and `bad` are of the
    functions. All records together may have as many bytes as the file: more means that some share theirs.
    """

    def __init__(self, data, big: cython.bint, name_size: cython.int, count: cython.Py_ssize_t) -> None:  # type: ignore[no-untyped-def]
        self.c = Cursor(data, 0, -1, big)
        self.name_size = name_size
        self.budget = len(data)
        self.sizes = memoryview(np.zeros(count, np.uint64))
        self.names = memoryview(np.zeros(count, np.uint64))
        self.bad = memoryview(np.zeros(count, np.uint8))
        self.lines = memoryview(np.zeros((5, FIRST_ROWS), np.uint64))
        self.calls = memoryview(np.zeros((5, FIRST_ROWS), np.uint64))
        self.ranges = memoryview(np.zeros((3, FIRST_ROWS), np.uint64))
        self.merged = memoryview(np.zeros((2, FIRST_ROWS), np.uint64))
        self.line_count = self.call_count = self.range_count = self.merged_count = 0
        self.bases = memoryview(np.zeros(MAX_DEPTH + 1, np.uint64))

    def grow(self, name: str):  # type: ignore[no-untyped-def]
        """Make columns twice as long."""
        old = np.asarray(getattr(self, name))
        new = np.zeros((len(old), 2 * old.shape[1]), np.uint64)
        new[:, : old.shape[1]] = old
        setattr(self, name, memoryview(new))

    def read(  # type: ignore[no-untyped-def]
        self, begins: cython.const[cython.ulonglong][::1], places: cython.const[cython.ulonglong][::1]
    ):
        """Read all records; one that is damaged keeps what was read before the damage."""
        i: cython.Py_ssize_t
        with cython.nogil:
            for i in range(len(begins)):
                self.c.end = len(self.c.data)
                self.c.seek(places[i])
                self.sizes[i] = self.c.uint(4)
                self.names[i] = self.c.uint(self.name_size)
                if self.c.bad or self.sizes[i] > (MASK64 - begins[i]):
                    self.sizes[i] = 0
                    self.names[i] = 0
                    self.bad[i] = 1
                    continue
                self.record(i, begins[i], begins[i] + self.sizes[i])

    def record(self, i: cython.Py_ssize_t, begin: cython.ulonglong, end: cython.ulonglong) -> cython.void:
        """Read what follows size and name of a function."""
        kind: cython.ulonglong
        length: cython.ulonglong
        after: cython.Py_ssize_t
        first: cython.Py_ssize_t
        whole: cython.Py_ssize_t = len(self.c.data)
        while True:
            self.c.end = whole
            kind = self.c.uint(4)
            length = self.c.uint(4)
            if self.c.bad or not self.c.need(length):
                self.bad[i] = 1
                return
            if kind == END_OF_LIST:
                return
            self.budget -= cython.cast(cython.longlong, length) + 8
            if self.budget < 0:
                self.bad[i] = 1
                return
            after = self.c.pos + cython.cast(cython.Py_ssize_t, length)
            self.c.end = after
            if kind == LINE_TABLE:
                self.line_table(i, begin, end)
            elif kind == INLINED:
                first = self.call_count
                if not self.inlined(i, begin):
                    self.bad[i] = 1
                    while self.range_count > 0 and self.ranges[0, self.range_count - 1] >= first:
                        self.range_count -= 1
                    self.call_count = first
            elif kind == MERGED:
                self.merged_names(i)
            if self.c.bad:
                self.bad[i] = 1
            self.c.end = whole
            self.c.seek(cython.cast(cython.ulonglong, after))

    def line_table(self, i: cython.Py_ssize_t, begin: cython.ulonglong, end: cython.ulonglong) -> cython.void:
        """Read the lines of a function; of several at one address the last counts."""
        low: cython.longlong = self.c.sleb()
        high: cython.longlong = self.c.sleb()
        line: cython.longlong = cython.cast(cython.longlong, self.c.uleb() & MASK32)
        file: cython.ulonglong = 1
        address: cython.ulonglong = begin
        distance: cython.ulonglong
        delta: cython.longlong
        span: cython.longlong
        opcode: cython.ulonglong
        special: cython.longlong
        k: cython.Py_ssize_t
        if not -MAX_LINE <= low <= high <= MAX_LINE:
            self.c.bad = True
        span = high - low + 1
        first: cython.Py_ssize_t = self.line_count
        while not self.c.bad:
            opcode = self.c.uint(1)
            if opcode == END_SEQUENCE:
                break
            if opcode == SET_FILE:
                file = self.c.uleb()
                continue
            delta = 0
            if opcode == ADVANCE_LINE:
                delta = self.c.sleb()
            elif opcode >= cython.cast(cython.ulonglong, FIRST_SPECIAL):
                special = cython.cast(cython.longlong, opcode) - FIRST_SPECIAL
                delta = low + special % span
                distance = cython.cast(cython.ulonglong, special // span)
            else:
                distance = self.c.uleb()
            if not -MAX_LINE <= delta <= MAX_LINE or not 0 <= line + delta <= 2 * MAX_LINE:
                self.c.bad = True
                break
            line += delta
            if opcode == ADVANCE_LINE:
                continue
            if self.c.bad or distance > MASK64 - address:
                self.c.bad = True
                break
            address += distance
            if address >= end and address > begin:
                continue
            k = self.line_count
            if k > first and self.lines[1, k - 1] == address:
                k -= 1
            elif k > first:
                self.lines[2, k - 1] = address
            if k >= self.lines.shape[1]:
                with cython.gil:
                    self.grow("lines")
            self.lines[0, k] = i
            self.lines[1, k] = address
            self.lines[2, k] = end
            self.lines[3, k] = file
            self.lines[4, k] = line
            self.line_count = k + 1

    def inlined(self, i: cython.Py_ssize_t, begin: cython.ulonglong) -> cython.bint:
        """Read the tree of inlined calls, whose root is the function itself; whether it is sound."""
        depth: cython.Py_ssize_t = 0
        count: cython.ulonglong
        n: cython.ulonglong
        low: cython.ulonglong
        size: cython.ulonglong
        has_children: cython.ulonglong
        k: cython.Py_ssize_t
        self.bases[0] = begin
        while True:
            count = self.c.uleb()
            if self.c.bad:
                return False
            if count == 0:  # the end of a list of siblings
                depth -= 1
                if depth <= 0:
                    return True
                continue
            k = self.call_count
            if k >= self.calls.shape[1]:
                with cython.gil:
                    self.grow("calls")
            n = 0
            while n < count:
                low = self.c.uleb()
                size = self.c.uleb()
                if self.c.bad or low > MASK64 - self.bases[depth] or size > MASK64 - self.bases[depth] - low:
                    return False
                low += self.bases[depth]
                if n == 0:
                    self.bases[depth + 1] = low
                if depth > 0:
                    if self.range_count >= self.ranges.shape[1]:
                        with cython.gil:
                            self.grow("ranges")
                    self.ranges[0, self.range_count] = k
                    self.ranges[1, self.range_count] = low
                    self.ranges[2, self.range_count] = low + size
                    self.range_count += 1
                n += 1
            has_children = self.c.uint(1)
            if depth > 0:
                self.calls[0, k] = i
                self.calls[1, k] = depth - 1
                self.calls[2, k] = self.c.uint(self.name_size)
                self.calls[3, k] = self.c.uleb()
                self.calls[4, k] = self.c.uleb()
                self.call_count = k + 1
            else:
                self.c.skip(self.name_size)
                self.c.uleb()
                self.c.uleb()
            if self.c.bad:
                return False
            if has_children != 0:
                depth += 1
                if depth >= MAX_DEPTH:
                    return False
            elif depth == 0:
                return True

    def merged_names(self, i: cython.Py_ssize_t) -> cython.void:
        """Read the names of further functions with the same code; their own lines are not used."""
        left: cython.ulonglong = self.c.uint(4)
        size: cython.ulonglong
        after: cython.Py_ssize_t
        while left > 0 and not self.c.bad:
            left -= 1
            size = self.c.uint(4)
            if self.c.bad or not self.c.need(size):
                return
            after = self.c.pos + cython.cast(cython.Py_ssize_t, size)
            self.c.skip(4)
            if self.merged_count >= self.merged.shape[1]:
                with cython.gil:
                    self.grow("merged")
            self.merged[0, self.merged_count] = i
            self.merged[1, self.merged_count] = self.c.uint(self.name_size)
            if self.c.bad or self.c.pos > after:
                self.c.bad = True
                return
            self.merged_count += 1
            self.c.pos = after

# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""The tables of Go by program counter: file, line and inlined call of each address (R121, Go line table).

A table of values is a run of pairs of LEB128 numbers: the change of the value, with its sign in the lowest bit, and for
how many units of code it holds. It begins with -1 at the entry of its function; a change of 0 ends it.
"""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.core.cursor import Cursor

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
MAX_INDEX = cython.declare(cython.int, 1 << 20)
"""How many inlined calls a function may have; so many the runtime of Go believes too."""
MAX_DEPTH = cython.declare(cython.int, 1 << 10)
CALL_SIZE = cython.declare(cython.int, 16)
OLD_CALL_SIZE = cython.declare(cython.int, 20)
"""Bytes of an inlined call since Go 1.20 and before."""
FIRST_NEGATIVE = cython.declare(cython.ulonglong, 0x8000)
"""Parents of inlined calls before Go 1.20 are signed numbers of 16 bits; negative ones are none."""


@cython.cclass
class PcValues:
    """One table of values: `value` holds up to `until`, as long as the table is `live`."""

    def __init__(self, data, unit: cython.ulonglong) -> None:  # type: ignore[no-untyped-def]
        self.c = Cursor(data)
        self.unit = unit
        self.until = 0
        self.value = -1
        self.live = False
        self.first = False

    def open(self, offset: cython.Py_ssize_t, entry: cython.ulonglong) -> None:
        """Go to the table at `offset` (0: there is none) of the function at `entry`, and to its first value."""
        self.value = -1
        self.until = entry
        self.live = offset > 0
        self.first = True
        self.c.bad = False
        if self.live:
            self.c.seek(cython.cast(cython.ulonglong, offset))
            self.step()

    def step(self) -> None:
        """Go to the next value."""
        change: cython.ulonglong = self.c.uleb() & MASK32
        size: cython.ulonglong
        if self.c.bad or (change == 0 and not self.first):
            self.live = False
            return
        self.first = False
        size = (self.c.uleb() & MASK32) * self.unit
        if self.c.bad or size > MASK64 - self.until:
            self.live = False
            return
        if change & 1:
            self.value -= cython.cast(cython.longlong, (change >> 1) + 1)
        else:
            self.value += cython.cast(cython.longlong, change >> 1)
        self.until += size


@cython.cclass
class PcValueWalk:
    """Fills the columns of a `SymbolList`, with offsets for files and names, function by function.

    `data` is the table, `memory` the file with the trees of inlined calls. The current function has the rows and
    segments from `first_row` and `first_segment` on.
    """

    def __init__(  # type: ignore[no-untyped-def]
        self,
        data,
        units,
        memory,
        unit: cython.ulonglong,
        old_trees: cython.bint,
        big: cython.bint,
        budget: cython.longlong,
    ) -> None:
        self.files = PcValues(data, unit)
        self.lines = PcValues(data, unit)
        self.inlines = PcValues(data, unit)
        self.units = Cursor(units, 0, -1, big)
        self.trees = Cursor(memory, 0, -1, big)
        self.memory = memory
        self.old_trees = old_trees
        self.budget = budget
        self.row_count = 0
        self.segment_count = 0
        self.node_count = 0
        self.bad_trees = 0
        self.first_row = 0
        self.first_segment = 0
        self.tree = 0
        self.tree_end = 0
        self.unit_files = -1
        self.entry = 0
        self.end = 0

    def open(self, files: cython.Py_ssize_t, lines: cython.Py_ssize_t, inlines: cython.Py_ssize_t) -> None:
        """Begin with the function at `entry`, whose tables of values are at these offsets."""
        self.files.open(files, self.entry)
        self.lines.open(lines, self.entry)
        self.inlines.open(inlines, self.entry)

    def advance(self, pc: cython.ulonglong) -> None:
        """Go to the values at `pc`, which is not before the last one."""
        while self.files.live and self.files.until <= pc:
            self.files.step()
            self.budget -= 1
        while self.lines.live and self.lines.until <= pc:
            self.lines.step()
            self.budget -= 1
        while self.inlines.live and self.inlines.until <= pc:
            self.inlines.step()
            self.budget -= 1

    def next_change(self, bound: cython.ulonglong) -> cython.ulonglong:
        """Up to where the values hold, `bound` at most."""
        if self.files.live and self.files.until < bound:
            bound = self.files.until
        if self.lines.live and self.lines.until < bound:
            bound = self.lines.until
        if self.inlines.live and self.inlines.until < bound:
            bound = self.inlines.until
        return bound

    def fill(self, bound: cython.ulonglong) -> None:
        """Add the rows and segments of the function from `entry` on; it ends with its lines, at `bound` at most."""
        pc: cython.ulonglong = self.entry
        file: cython.longlong
        line: cython.longlong
        index: cython.int
        last_file: cython.longlong = -2
        last_line: cython.longlong = -2
        last_index: cython.int = -2
        number: cython.longlong = -2
        while pc < bound and self.budget > 0:
            self.advance(pc)
            if not self.files.live and not self.lines.live:
                break
            line = self.lines.value if self.lines.live and self.lines.value > 0 else 0
            if self.files.live:
                if self.files.value != number:
                    number = self.files.value
                    file = self.file_of(number)
                else:
                    file = last_file
            else:
                number = -2
                file = -1
            index = -1
            if self.inlines.live and 0 <= self.inlines.value < MAX_INDEX:
                index = cython.cast(cython.int, self.inlines.value)
            if file != last_file or line != last_line:
                self.row_start[self.row_count] = pc
                self.row_file[self.row_count] = file
                self.row_line[self.row_count] = line & MASK32
                self.row_count += 1
                last_file = file
                last_line = line
            if index != last_index:
                self.start[self.segment_count] = pc
                self.index[self.segment_count] = index
                self.segment_count += 1
                last_index = index
            pc = self.next_change(bound)
        self.end = pc

    def settle(self, function: cython.int) -> None:
        """Give the segments of the function their nodes; node `function` is that of the function itself."""
        i: cython.Py_ssize_t
        row: cython.Py_ssize_t = self.first_row
        node: cython.int
        for i in range(self.first_segment, self.segment_count):
            node = self.node_of(self.index[i], function)
            self.node[i] = node
            while row + 1 < self.row_count and self.row_start[row + 1] <= self.start[i]:
                row += 1
            if self.decl_file[node] < 0:
                self.decl_file[node] = self.row_file[row]

    def file_of(self, number: cython.longlong) -> cython.longlong:
        """The offset of the name of a file, by its number among those of the unit; -1 if there is none."""
        offset: cython.longlong
        if number < 0 or self.unit_files < 0:
            return -1
        self.units.bad = False
        self.units.seek(cython.cast(cython.ulonglong, self.unit_files + number) * 4)
        offset = self.units.uint(4)
        if self.units.bad or offset == cython.cast(cython.longlong, MASK32):
            return -1
        return offset

    def entry_at(
        self,
        starts: cython.ulonglong[::1],
        first: cython.Py_ssize_t,
        count: cython.Py_ssize_t,
        pc: cython.ulonglong,
    ) -> cython.Py_ssize_t:
        """The entry of the function, in `starts[first:count]`, that holds `pc`, -1 if none does."""
        low: cython.Py_ssize_t = first
        middle: cython.Py_ssize_t
        if pc < self.entry or pc >= self.end:
            return -1
        while low < count:
            middle = (low + count) >> 1
            if starts[middle] <= pc:
                low = middle + 1
            else:
                count = middle
        return low - 1 if low > first else -1

    def parent_of(self, index: cython.int) -> cython.int:
        """The inlined call around one, -1 if there is none: stated before Go 1.20, since then that of an instruction at
        the call."""
        position: cython.ulonglong = cython.cast(cython.ulonglong, self.tree) + index * (
            OLD_CALL_SIZE if self.old_trees else CALL_SIZE
        )
        row: cython.Py_ssize_t
        value: cython.ulonglong
        self.trees.bad = False
        self.trees.end = self.tree_end
        if self.old_trees:
            self.trees.seek(position)
            value = self.trees.uint(2)
            if not self.trees.need(OLD_CALL_SIZE - 2):
                return -1
            return cython.cast(cython.int, value) if value < FIRST_NEGATIVE else -1
        self.trees.seek(position + 8)
        value = self.trees.uint(4)
        if not self.trees.need(4):
            return -1
        row = self.entry_at(self.start, self.first_segment, self.segment_count, (self.entry + value) & MASK64)
        return self.index[row] if row >= 0 else -1

    def node_of(self, index: cython.int, function: cython.int) -> cython.int:
        """The node of an inlined call of the function, made with those around it; `function` for -1 and for corrupt
        trees."""
        depth: cython.Py_ssize_t = 0
        node: cython.int
        while index >= 0:
            if self.stamp[index] == function + 1:
                break
            if depth == MAX_DEPTH or self.budget <= 0 or self.tree < 0:
                self.bad_trees += 1
                return function
            self.stack[depth] = index
            depth += 1
            self.budget -= 1
            index = self.parent_of(index)
            if self.trees.bad or index >= MAX_INDEX:
                self.bad_trees += 1
                return function
        node = self.known[index] if index >= 0 else function
        if self.node_count + depth > len(self.parent):
            self.bad_trees += 1
            return function
        while depth > 0:
            depth -= 1
            index = self.stack[depth]
            self.add_node(index, node)
            node = cython.cast(cython.int, self.node_count - 1)
            self.known[index] = node
            self.stamp[index] = function + 1
        return node

    def add_node(self, index: cython.int, parent: cython.int) -> None:
        """Add the node of an inlined call."""
        node: cython.Py_ssize_t = self.node_count
        file: cython.longlong = -1
        line: cython.ulonglong = 0
        row: cython.Py_ssize_t
        value: cython.ulonglong
        self.trees.bad = False
        self.decl_line[node] = 0
        if self.old_trees:
            self.trees.seek(cython.cast(cython.ulonglong, self.tree) + index * OLD_CALL_SIZE + 4)
            value = self.trees.uint(4)
            if value >> 31 == 0:
                file = self.file_of(cython.cast(cython.longlong, value))
            line = self.trees.uint(4)
            self.name[node] = cython.cast(cython.longlong, self.trees.uint(4))
        else:
            self.trees.seek(cython.cast(cython.ulonglong, self.tree) + index * CALL_SIZE + 4)
            self.name[node] = cython.cast(cython.longlong, self.trees.uint(4))
            value = self.trees.uint(4)
            self.decl_line[node] = self.trees.uint(4) & MASK32
            row = self.entry_at(self.row_start, self.first_row, self.row_count, (self.entry + value) & MASK64)
            if row >= 0:
                file = self.row_file[row]
                line = self.row_line[row]
        self.parent[node] = parent
        self.call_file[node] = file
        self.call_line[node] = line if line >> 31 == 0 else 0
        self.decl_file[node] = -1
        if self.decl_file[parent] < 0:
            self.decl_file[parent] = file  # the call is in the body of the parent
        self.node_count += 1


def count_changes(walk: PcValueWalk, entry, bound, files, lines, inlines):  # type: ignore[no-untyped-def]
    """How many rows and segments the functions have at most."""
    i: cython.Py_ssize_t
    pc: cython.ulonglong
    changes: cython.longlong = 0
    entries: cython.const[cython.ulonglong][::1] = entry
    bounds: cython.const[cython.ulonglong][::1] = bound
    file_tables: cython.const[cython.longlong][::1] = files
    line_tables: cython.const[cython.longlong][::1] = lines
    inline_tables: cython.const[cython.longlong][::1] = inlines
    budget: cython.longlong = walk.budget
    with cython.nogil:
        for i in range(len(entries)):
            walk.entry = entries[i]
            walk.open(file_tables[i], line_tables[i], inline_tables[i])
            pc = entries[i]
            changes += 1
            while pc < bounds[i] and walk.budget > 0 and (walk.files.live or walk.lines.live):
                walk.advance(pc)
                changes += 1
                pc = walk.next_change(bounds[i])
    walk.budget = budget
    return changes


def read_functions(walk: PcValueWalk, columns, changes: cython.Py_ssize_t, function_columns):  # type: ignore[no-untyped-def]
    """The layers and nodes of all functions.

    `columns` are entry, bound, offsets of the tables of values of file, line and inlined call, offset and end of the
    tree of inlined calls in the file, and the first file of the unit. `function_columns` are name and line of
    declaration. Returns the end of each function; start, file and line of rows; start and node of segments; parent,
    name, file and line of the call, file and line of the declaration of nodes; bad trees; whether the budget was
    exceeded.
    """
    i: cython.Py_ssize_t
    entries: cython.const[cython.ulonglong][::1] = columns[0]
    bounds: cython.const[cython.ulonglong][::1] = columns[1]
    file_tables: cython.const[cython.longlong][::1] = columns[2]
    line_tables: cython.const[cython.longlong][::1] = columns[3]
    inline_tables: cython.const[cython.longlong][::1] = columns[4]
    trees: cython.const[cython.longlong][::1] = columns[5]
    tree_ends: cython.const[cython.longlong][::1] = columns[6]
    unit_files: cython.const[cython.longlong][::1] = columns[7]
    count: cython.Py_ssize_t = len(entries)
    rows = [np.empty(changes, kind) for kind in (np.uint64, np.int64, np.uint32)]
    segments = [np.empty(changes, kind) for kind in (np.uint64, np.int32, np.int32)]
    kinds = (np.int32, np.int64, np.int64, np.uint32, np.int64, np.uint32)
    nodes = [np.empty(count + 2 * changes, kind) for kind in kinds]
    nodes[0][:count], nodes[2][:count], nodes[3][:count], nodes[4][:count] = -1, -1, 0, -1
    nodes[1][:count], nodes[5][:count] = function_columns
    marks = [np.zeros(MAX_INDEX, np.int32), np.zeros(MAX_INDEX, np.int32), np.zeros(MAX_DEPTH, np.int32)]
    end = np.empty(count, np.uint64)
    ends: cython.ulonglong[::1] = end.data
    walk.row_start, walk.row_file, walk.row_line = (column.data for column in rows)
    walk.start, walk.index, walk.node = (column.data for column in segments)
    walk.parent, walk.name, walk.call_file = (column.data for column in nodes[:3])
    walk.call_line, walk.decl_file, walk.decl_line = (column.data for column in nodes[3:])
    walk.known, walk.stamp, walk.stack = (column.data for column in marks)
    walk.node_count = count
    with cython.nogil:
        for i in range(count):
            walk.entry = entries[i]
            walk.first_row = walk.row_count
            walk.first_segment = walk.segment_count
            walk.tree = trees[i]
            walk.tree_end = tree_ends[i]
            walk.unit_files = unit_files[i]
            walk.open(file_tables[i], line_tables[i], inline_tables[i])
            walk.fill(bounds[i])
            walk.settle(cython.cast(cython.int, i))
            ends[i] = walk.end
    return (
        end,
        [column[: walk.row_count].copy() for column in rows],
        [segments[0][: walk.segment_count].copy(), segments[2][: walk.segment_count].copy()],
        [column[: walk.node_count].copy() for column in nodes],
        walk.bad_trees,
        walk.budget <= 0,
    )

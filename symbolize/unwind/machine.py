# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""Registers and the copy of a stack, and what the rules of call frame information find in them.

Nothing is executed: expressions (DWARF 5 §2.5) are read by a small interpreter whose stack and operations are bounded.
"""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.core.cursor import Cursor
    from symbolize.unwind.constants import *

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
TOP_BIT = cython.declare(cython.ulonglong, 0x8000000000000000)


@cython.cclass
class Machine:
    """The state of one dump: `values` of `count` registers, which of them are `known` (a bit each), and memory.

    `data[offset:offset + size]` is the memory from address `base` on. Where a value cannot be had `failure` is set to
    the reason and 0 returned. `operations` is how many of expressions may still be carried out.

    The CFA is on the stack of an expression at first, except when it is to be found. Comparisons are signed. Division
    and whatever needs more than registers and the copy of the stack does not occur, and is refused (R314, expressions
    of frames).
    """

    def __init__(self, data, count: cython.Py_ssize_t) -> None:
        self.data = data
        self.count = count
        self.values = memoryview(np.zeros(count, np.uint64))
        self.stack = memoryview(np.zeros(MAX_OPERANDS, np.uint64))
        self.expressions = Cursor(b"")

    def load(
        self, offset: cython.Py_ssize_t, size: cython.Py_ssize_t, is_full: cython.bint, base: cython.ulonglong
    ) -> cython.void:
        """Let the memory from `base` on be a part of the data."""
        if offset < 0 or size < 0 or offset > len(self.data) or size > len(self.data) - offset:
            offset = size = 0
        self.offset = offset
        self.size = size
        self.is_full = is_full
        self.base = base

    def register(self, number: cython.ulonglong) -> cython.ulonglong:
        """The value of a register."""
        if number >= cython.cast(cython.ulonglong, self.count) or not (self.known >> number) & 1:
            self.failure = UNKNOWN_REGISTER
            return 0
        return self.values[cython.cast(cython.Py_ssize_t, number)]

    def read(self, address: cython.ulonglong, size: cython.int) -> cython.ulonglong:
        """A number of up to 8 bytes in memory, little endian."""
        distance: cython.ulonglong = (address - self.base) & MASK64
        value: cython.ulonglong = 0
        at: cython.Py_ssize_t
        i: cython.int
        if self.size < size or distance > cython.cast(cython.ulonglong, self.size - size):
            # Far above the copy there may be no stack any more.
            self.failure = TRUNCATED if self.is_full and distance >> 32 == 0 else OUTSIDE_DUMP
            return 0
        at = self.offset + cython.cast(cython.Py_ssize_t, distance)
        for i in range(size):
            value |= cython.cast(cython.ulonglong, self.data[at + i]) << (8 * i)
        return value

    def value_of(
        self,
        register: cython.Py_ssize_t,
        rule: cython.ulonglong,
        value: cython.ulonglong,
        cfa: cython.ulonglong,
    ) -> cython.ulonglong:
        """The value that a register has in the caller, by its rule (DWARF 5 §6.4.1)."""
        if rule == OFFSET:
            return self.read((cfa + value) & MASK64, 8)
        if rule == VAL_OFFSET:
            return (cfa + value) & MASK64
        if rule == REGISTER:
            return self.register(value)
        if rule in (EXPRESSION, VAL_EXPRESSION):
            self.depth = 0
            self.push(cfa)
            value = self.evaluate(value)
            return self.read(value, 8) if rule == EXPRESSION and self.failure == 0 else value
        return self.register(register)

    def evaluate(self, expression: cython.ulonglong) -> cython.ulonglong:
        """The value of an expression, given by position and size, on what the stack holds already (R314, expressions of
        frames)."""
        size: cython.Py_ssize_t = expression & EXPRESSION_SIZE
        operation: cython.int
        self.expressions.seek(expression >> EXPRESSION_SIZE_BITS)
        if self.expressions.bad or not self.expressions.need(size):
            self.failure = BAD_FRAME_INFO
            return 0
        begin: cython.Py_ssize_t = self.expressions.pos
        whole: cython.Py_ssize_t = self.expressions.end
        self.expressions.end = begin + size
        while self.expressions.pos < self.expressions.end and self.failure == 0:
            self.operations -= 1
            operation = self.expressions.uint(1)
            if self.operations < 0 or not (
                self.push_operand(operation) or self.move(operation) or self.change(operation)
            ):
                self.failure = BAD_FRAME_INFO
            if self.expressions.pos < begin or self.expressions.bad:
                self.failure = BAD_FRAME_INFO
        self.expressions.end = whole
        return self.pop()

    def push(self, value: cython.ulonglong) -> cython.void:
        """Put a value on the stack of the expression."""
        if self.depth == MAX_OPERANDS:
            self.failure = BAD_FRAME_INFO
            return
        self.stack[self.depth] = value & MASK64
        self.depth += 1

    def pop(self) -> cython.ulonglong:
        """Take a value from the stack of the expression."""
        if self.depth == 0:
            self.failure = self.failure or BAD_FRAME_INFO
            return 0
        self.depth -= 1
        return self.stack[self.depth]

    def peek(self, depth: cython.ulonglong) -> cython.ulonglong:
        """A value in the stack of the expression, the top one at depth 0."""
        if depth >= cython.cast(cython.ulonglong, self.depth):
            self.failure = BAD_FRAME_INFO
            return 0
        return self.stack[self.depth - 1 - cython.cast(cython.Py_ssize_t, depth)]

    def push_operand(self, operation: cython.int) -> cython.bint:
        """Carry out an operation that pushes a literal or a register; False if it is none."""
        register: cython.ulonglong
        if DW_OP_lit0 <= operation <= DW_OP_lit31:
            self.push(operation - DW_OP_lit0)
        elif DW_OP_breg0 <= operation <= DW_OP_breg31:
            register = operation - DW_OP_breg0
            self.push(self.register(register) + cython.cast(cython.ulonglong, self.expressions.sleb()))
        elif operation == DW_OP_bregx:
            register = self.expressions.uleb()
            self.push(self.register(register) + cython.cast(cython.ulonglong, self.expressions.sleb()))
        elif DW_OP_const1u <= operation <= DW_OP_const8s:
            self.constant(operation - DW_OP_const1u)
        elif operation == DW_OP_constu:
            self.push(self.expressions.uleb())
        elif operation == DW_OP_consts:
            self.push(cython.cast(cython.ulonglong, self.expressions.sleb()))
        else:
            return False
        return True

    def constant(self, kind: cython.int) -> cython.void:
        """Push a constant of 1, 2, 4 or 8 bytes; of two kinds of a size the second one is signed."""
        size: cython.int = 1 << (kind >> 1)
        value: cython.ulonglong = self.expressions.uint(size)
        if kind & 1 and size < 8 and value >> (8 * size - 1):
            value |= (MASK64 << (8 * size)) & MASK64
        self.push(value)

    def move(self, operation: cython.int) -> cython.bint:
        """Carry out an operation on the stack, or one that goes on elsewhere; False if it is none."""
        first: cython.ulonglong
        second: cython.ulonglong
        third: cython.ulonglong
        if operation == DW_OP_dup:
            self.push(self.peek(0))
        elif operation == DW_OP_drop:
            self.pop()
        elif operation == DW_OP_over:
            self.push(self.peek(1))
        elif operation == DW_OP_pick:
            self.push(self.peek(self.expressions.uint(1)))
        elif operation in (DW_OP_swap, DW_OP_rot):
            first = self.pop()
            second = self.pop()
            third = self.pop() if operation == DW_OP_rot else 0
            self.push(first)
            if operation == DW_OP_rot:
                self.push(third)
            self.push(second)
        elif operation == DW_OP_skip:
            self.jump(True)
        elif operation == DW_OP_bra:
            self.jump(self.pop() != 0)
        elif operation != DW_OP_nop:
            return False
        return True

    def jump(self, taken: cython.bint) -> cython.void:
        """Go on so many bytes further as the two bytes at the cursor say, if the jump is taken."""
        distance: cython.longlong = self.expressions.uint(2)
        if distance >> 15:
            distance -= 1 << 16
        if taken:
            distance += self.expressions.pos
            if distance < 0 or distance > self.expressions.end:
                self.expressions.bad = True
            else:
                self.expressions.pos = distance

    def change(self, operation: cython.int) -> cython.bint:
        """Carry out an operation that reads memory or calculates; False if it is none."""
        left: cython.ulonglong
        right: cython.ulonglong
        size: cython.int
        if operation == DW_OP_deref:
            self.push(self.read(self.pop(), 8))
        elif operation == DW_OP_deref_size:
            size = self.expressions.uint(1)
            if not 1 <= size <= 8:
                return False
            self.push(self.read(self.pop(), size))
        elif operation == DW_OP_plus_uconst:
            self.push(self.pop() + self.expressions.uleb())
        elif operation == DW_OP_not:
            self.push(self.pop() ^ MASK64)
        elif operation == DW_OP_neg:
            self.push(0 - self.pop())
        elif operation == DW_OP_abs:
            left = self.pop()
            self.push(0 - left if left & TOP_BIT else left)
        elif DW_OP_and <= operation <= DW_OP_ne:
            right = self.pop()
            left = self.pop()
            self.push(self.combined(operation, left, right))
        else:
            return False
        return True

    def combined(self, operation: cython.int, left: cython.ulonglong, right: cython.ulonglong) -> cython.ulonglong:
        """Two values combined by an operation; comparisons are signed."""
        first: cython.ulonglong = left ^ TOP_BIT
        second: cython.ulonglong = right ^ TOP_BIT
        if operation == DW_OP_and:
            return left & right
        if operation == DW_OP_or:
            return left | right
        if operation == DW_OP_xor:
            return left ^ right
        if operation == DW_OP_plus:
            return (left + right) & MASK64
        if operation == DW_OP_minus:
            return (left - right) & MASK64
        if operation == DW_OP_mul:
            return (left * right) & MASK64
        if operation == DW_OP_shl:
            return (left << right) & MASK64 if right < 64 else 0
        if operation == DW_OP_shr:
            return left >> right if right < 64 else 0
        if operation == DW_OP_shra:
            right = min(right, 63)
            first = left >> right
            return first | ((MASK64 << (63 - right)) & MASK64) if left & TOP_BIT else first
        if operation == DW_OP_eq:
            return left == right
        if operation == DW_OP_ne:
            return left != right
        if operation == DW_OP_ge:
            return first >= second
        if operation == DW_OP_gt:
            return first > second
        if operation == DW_OP_le:
            return first <= second
        if operation == DW_OP_lt:
            return first < second
        self.failure = BAD_FRAME_INFO  # division occurs in no call frame information
        return 0

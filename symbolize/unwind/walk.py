# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""Walks up stacks, dump by dump, as far as rows of rules are known.

A site is a mapping with an address in it, inside the call of a caller, each once, and 0, or the time of the stack where
the rules depend on it. A walk that comes to a site whose row is not known yet waits there; the caller finds the rows of
all new sites at once, and lets the walks go on. Nothing of a profile or binary is executed: expressions (DWARF 5 §2.5)
are read by a small interpreter whose stack and operations are bounded.
"""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.core.cursor import Cursor
    from symbolize.core.interning import Tuples
    from symbolize.unwind.constants import *

TOP_BIT = cython.declare(cython.ulonglong, 0x8000000000000000)
MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
ONE = cython.declare(cython.ulonglong, 1)
WORD = cython.declare(cython.ulonglong, 8)


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


@cython.cclass
class Walker:
    """Walks up the stacks of a block of dumps at a time; `sites` are those of all blocks.

    `starts` and `limits` are the bounds of all mappings. Register columns: `sp`, `pc`, `fp`. Addresses of code are cut
    to `code_mask`, which removes what pointer authentication puts into them (R312, authenticated addresses).

    A register without a rule keeps its value, the stack pointer is the CFA. A register that cannot be had ends the
    stack only when it is needed: as return address, for a CFA, in an expression. The pc of a caller is the value of the
    return address column; its rule is looked up, and its location reported, at one byte less. Where the return address
    has no rule it is in its register in code that was interrupted, unknown in a caller, whose call has overwritten it,
    and always unknown if that register is the pc. Compilers say nothing of registers that are restored at the end of a
    function: one that is saved below the stack pointer of interrupted code has its value again, unless it is the pc
    (R307, rules of frames).

    A short stack is better than a wrong one, so nothing is searched for on the stack (R309, ends of stacks). Where a
    binary has no rules for a pc, and in code without a file, the frame pointer is followed, as perf does. It has to
    lead higher up in the copy of the stack, and the return address to be in a call of a binary, or in code without a
    file; then the site is no evidence for the binary. In a file that was not found no frame pointer is followed (R310,
    frame pointers). The caller of a signal frame may have pushed nothing yet (R313, signal frames).
    """

    def __init__(self, machine, mixer, starts, limits, space_offsets, space_mappings, columns, code_mask) -> None:
        self.machine = machine
        self.sites = Tuples(3, mixer)
        self.starts = starts
        self.limits = limits
        self.space_offsets = space_offsets
        self.space_mappings = space_mappings
        self.sp, self.pc, self.fp = columns
        self.code_mask = code_mask
        self.wants_calls = False
        self.next = memoryview(np.zeros(machine_size(machine), np.uint64))

    def know(self, rows, rules, is_call, expressions) -> None:
        """Let the sites have these rules: a row of `rows`, or minus the reason why there is none; and whether they are
        in calls, as far as walks wanted to know that."""
        self.rows = rows
        self.rules = rules
        self.is_call = is_call
        self.machine.expressions = expressions

    def take(self, values, offset, size, is_full, space, time) -> None:
        """Begin with a block of dumps, whose registers are changed; `time` is 0 where it is not known."""
        count: cython.Py_ssize_t = len(offset)
        i: cython.Py_ssize_t
        everything: cython.ulonglong = (ONE << self.machine.count) - 1
        self.values = values
        self.offset = offset
        self.size = size
        self.is_full = is_full
        self.space = space
        self.time = time
        self.known = memoryview(np.full(count, everything, np.uint64))
        self.base = memoryview(np.zeros(count, np.uint64))
        self.lowest = memoryview(np.zeros(count, np.uint64))
        self.state = memoryview(np.full(count, INTERRUPTED, np.uint8))
        self.end = memoryview(np.zeros(count, np.uint8))
        self.depth = memoryview(np.zeros(count, np.int32))
        self.frames = memoryview(np.zeros((count, MAX_FRAMES), np.int32))
        for i in range(count):
            self.base[i] = self.lowest[i] = self.values[i, self.sp]
            self.end[i] = NO_DUMP if size[i] <= 0 else self.push(i, self.values[i, self.pc], 0)

    def results(self):
        """The frames of each dump as rows of sites (int32[n, MAX_FRAMES]), -1 - row if code above the leaf was
        interrupted there; how many they are, and why they end."""
        return np.asarray(self.frames), np.asarray(self.depth), np.asarray(self.end)

    def run(self) -> int:
        """Walk on; how many dumps wait for rows of new sites."""
        i: cython.Py_ssize_t
        waiting: cython.Py_ssize_t = 0
        with cython.nogil:
            for i in range(len(self.end)):
                if self.end[i] == WAITING:
                    self.end[i] = self.walk(i)
                    waiting += self.end[i] == WAITING
        return waiting

    def walk(self, i: cython.Py_ssize_t) -> cython.int:
        """Walk up one stack, until it ends or has to wait; why it ends."""
        k: cython.Py_ssize_t
        site: cython.Py_ssize_t
        rule: cython.int
        reason: cython.int = WAITING
        for k in range(self.machine.count):
            self.machine.values[k] = self.values[i, k]
        self.machine.known = self.known[i]
        self.machine.load(self.offset[i], self.size[i], self.is_full[i], self.base[i])
        while reason == WAITING:
            site = self.frames[i, self.depth[i] - 1]
            site = site if site >= 0 else -1 - site
            if site >= len(self.rules):
                break
            rule = self.rules[site]
            if rule == -BY_TIME and self.time[i] != 0:
                self.depth[i] -= 1
                reason = self.push(i, self.machine.values[self.pc], self.time[i])
                continue
            if self.state[i] == BY_POINTER and not self.is_trampoline(rule):
                if site >= len(self.is_call):
                    self.wants_calls = True
                    break
                if not self.is_call[site]:
                    # What a frame pointer led to is no caller (R310, frame pointers).
                    self.depth[i] -= 1
                    reason = NO_CALL
                    break
            self.machine.failure = 0
            self.machine.operations = MAX_OPERATIONS
            if rule >= 0:
                reason = self.step(i, rule)
            elif rule in (-NO_FRAME_INFO, -NO_FILE, -BY_TIME):
                reason = self.step_by_pointer(i)
                if reason not in (WAITING, COMPLETE):
                    reason = NO_FILE if rule == -BY_TIME else -rule
            else:
                reason = -rule
            if reason == WAITING:
                reason = self.push(i, self.machine.values[self.pc], 0)
        for k in range(self.machine.count):
            self.values[i, k] = self.machine.values[k]
        self.known[i] = self.machine.known
        return reason

    def is_trampoline(self, rule: cython.int) -> cython.bint:
        """Whether signal handlers return to the site that has this rule, which is in no call."""
        return rule >= 0 and self.rows[rule, FLAGS] & IS_SIGNAL != 0

    def push(self, i: cython.Py_ssize_t, address: cython.ulonglong, time: cython.ulonglong) -> cython.int:
        """Enter the frame of a pc, whose address is inside the call unless code was interrupted there; why not. `time`
        is that of the site."""
        mapping: cython.Py_ssize_t
        site: cython.int
        if self.state[i] != INTERRUPTED:
            address = (address - 1) & MASK64
        mapping = self.mapping_of(i, address)
        if mapping < 0:
            return NO_MAPPING
        if self.depth[i] == MAX_FRAMES:
            return TOO_DEEP
        self.sites.key[0] = cython.cast(cython.ulonglong, mapping)
        self.sites.key[1] = address
        self.sites.key[2] = time
        site = cython.cast(cython.int, self.sites.add())
        self.frames[i, self.depth[i]] = -1 - site if self.state[i] == INTERRUPTED and self.depth[i] > 0 else site
        self.depth[i] += 1
        return WAITING

    def mapping_of(self, i: cython.Py_ssize_t, address: cython.ulonglong) -> cython.Py_ssize_t:
        """The executable mapping at an address in the address space of a dump, or -1."""
        space: cython.Py_ssize_t = self.space[i]
        low: cython.Py_ssize_t
        high: cython.Py_ssize_t
        first: cython.Py_ssize_t
        middle: cython.Py_ssize_t
        mapping: cython.Py_ssize_t
        if space < 0 or space >= len(self.space_offsets) - 1:
            return -1
        first = low = self.space_offsets[space]
        high = self.space_offsets[space + 1]
        while low < high:  # the first one that begins behind the address
            middle = (low + high) >> 1
            mapping = self.space_mappings[middle]
            if self.starts[mapping] <= address:
                low = middle + 1
            else:
                high = middle
        if low == first:
            return -1
        mapping = self.space_mappings[low - 1]
        return mapping if address < self.limits[mapping] else -1

    def step(self, i: cython.Py_ssize_t, row: cython.Py_ssize_t) -> cython.int:
        """Go to the caller by a row of rules; why that cannot be (R307, rules of frames; R309, ends of stacks)."""
        cfa: cython.ulonglong
        at: cython.Py_ssize_t
        k: cython.Py_ssize_t
        rule: cython.ulonglong
        column: cython.Py_ssize_t = self.rows[row, RETURN_COLUMN]
        is_signal: cython.bint = self.rows[row, FLAGS] & IS_SIGNAL != 0
        known: cython.ulonglong = 0
        rule = self.rows[row, FIRST_RULE + 2 * column]
        if rule == UNDEFINED:
            return COMPLETE
        # The pc never has the return address; another register has it until the next call.
        if rule in (UNSPECIFIED, SAME_VALUE) and (column == self.pc or self.state[i] != INTERRUPTED):
            return UNKNOWN_REGISTER
        if self.rows[row, CFA_RULE] == EXPRESSION:
            self.machine.depth = 0
            cfa = self.machine.evaluate(self.rows[row, CFA_REGISTER])
        else:
            cfa = (self.machine.register(self.rows[row, CFA_REGISTER]) + self.rows[row, CFA_VALUE]) & MASK64
        if self.machine.failure != 0:
            return self.machine.failure
        # A function that pushed nothing has its return address in a register: only one that was interrupted can.
        if not is_signal and (cfa < self.lowest[i] or (cfa == self.lowest[i] and self.state[i] != INTERRUPTED)):
            return NO_PROGRESS
        for k in range(self.machine.count):
            at = FIRST_RULE + 2 * k
            rule = self.rows[row, at]
            self.next[k] = 0
            if k == self.sp and rule == UNSPECIFIED:
                self.next[k] = cfa
            elif rule == UNDEFINED or (rule <= SAME_VALUE and not (self.machine.known >> k) & 1):
                continue
            else:
                if rule == OFFSET and self.is_popped(i, (cfa + self.rows[row, at + 1]) & MASK64):
                    if k == self.pc:
                        return NO_PROGRESS
                    rule = SAME_VALUE
                self.next[k] = self.machine.value_of(k, rule, self.rows[row, at + 1], cfa)
            known |= ONE << k
            if self.machine.failure != 0:
                if k == column or k == self.sp:
                    return self.machine.failure
                known ^= ONE << k  # of no importance unless a caller needs it
                self.machine.failure = 0
        if not (known >> column) & 1:
            return UNKNOWN_REGISTER
        if column != self.pc:
            self.next[self.pc] = self.next[column]
            known |= ONE << self.pc
        self.next[self.pc] &= self.code_mask
        if self.next[self.pc] == 0:
            return COMPLETE
        for k in range(self.machine.count):
            self.machine.values[k] = self.next[k]
        self.machine.known = known
        self.state[i] = INTERRUPTED if is_signal else CALLER
        self.lowest[i] = self.next[self.sp] if is_signal else cfa
        return WAITING

    def is_popped(self, i: cython.Py_ssize_t, address: cython.ulonglong) -> cython.bint:
        """Whether a saved register is below the stack pointer of code that was interrupted: it has its value again."""
        return self.state[i] == INTERRUPTED and address < self.machine.values[self.sp]

    def step_by_pointer(self, i: cython.Py_ssize_t) -> cython.int:
        """Go to the caller by the frame pointer, which points to that of the caller, and behind it the return address
        (R310, frame pointers)."""
        saved: cython.ulonglong
        address: cython.ulonglong
        pointer: cython.ulonglong = self.machine.register(self.fp)
        if pointer == 0 and self.machine.failure == 0:
            return COMPLETE
        saved = self.machine.read(pointer, 8)
        address = self.machine.read((pointer + WORD) & MASK64, 8) & self.code_mask
        if self.machine.failure != 0 or pointer % WORD != 0 or pointer < self.lowest[i]:
            return NO_PROGRESS
        if address == 0:
            return COMPLETE
        self.machine.values[self.fp] = saved
        self.machine.values[self.pc] = address
        self.machine.values[self.sp] = (pointer + 2 * WORD) & MASK64
        self.machine.known = ONE << self.fp | ONE << self.pc
        if self.fp < self.sp and self.sp - self.fp == 1:  # on x86-64 the stack pointer is right above them
            self.machine.known |= ONE << self.sp
        self.lowest[i] = self.machine.values[self.sp]
        # The outermost frame has none above it, and may have been called by nobody.
        self.state[i] = BY_POINTER if saved != 0 else CALLER
        return WAITING


def machine_size(machine: Machine) -> int:
    """How many registers a machine has."""
    return machine.count

# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""Walks up stacks, dump by dump, as far as rows of rules are known.

A site is a mapping with an address in it, inside the call of a caller, each once, and 0, or the time of the stack where
the rules depend on it. A walk that comes to a site whose row
is not known yet waits there; the caller finds the rows of all new sites at once, and lets the walks go on.
"""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.core.interning import Tuples
    from symbolize.unwind.constants import *
    from symbolize.unwind.machine import Machine

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
ONE = cython.declare(cython.ulonglong, 1)
WORD = cython.declare(cython.ulonglong, 8)


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

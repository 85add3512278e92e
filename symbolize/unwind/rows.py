# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, assignment, attr-defined, index, no-any-return, no-untyped-call"
# mypy: disable-error-code="no-untyped-def, return-value, untyped-decorator, valid-type, var-annotated"
"""Runs call frame programs (DWARF 5 §6.4.2): the rules by which the registers of a caller are found.

A row has the rule of the CFA (the stack pointer before the call) and, in columns from FIRST_RULE on, rule and value of
each register. Values are modulo 2⁶⁴; that of an expression is its position in the section and its size.
"""

import cython
import numpy as np

if not cython.compiled:
    from symbolize.elf.call_frames import FrameReader
    from symbolize.unwind.constants import *

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
NOWHERE = cython.declare(cython.Py_ssize_t, -1)


@cython.cclass
class RowReader:
    """Finds the rows of a section for a machine that has so many registers (R308, programs of frames). `budget` is how
    many instructions it may carry out at once, beside those that each address gives.

    Pauses in a program where the next row begins, and goes on from there if an address of the same FDE is asked next.
    `restore_state` restores the CFA too, as compilers have it. An instruction that is unknown, or leaves the program,
    makes the rest unreadable; so does one beyond a million, of which each address gives back 4,096, and functions of a
    jitdump have these only. Rules of vector registers are skipped: a register that is kept in one is unknown.
    """

    def __init__(self, section, registers: cython.Py_ssize_t, budget: cython.Py_ssize_t = MAX_INSTRUCTIONS) -> None:
        self.frames = FrameReader(
            section.data, section.base, section.address_size, section.big_endian, section.is_debug
        )
        self.registers = registers
        self.width = FIRST_RULE + 2 * registers
        self.section_end = self.frames.c.end
        self.row = memoryview(np.zeros(self.width, np.uint64))
        self.initial = memoryview(np.zeros(self.width, np.uint64))
        self.states = memoryview(np.zeros((MAX_STATES, self.width), np.uint64))
        self.position = NOWHERE
        self.budget = budget

    def find(self, position: cython.Py_ssize_t, vaddr: cython.ulonglong) -> cython.bint:
        """Let `row` be the rules at a vaddr that the FDE at `position` covers; whether the program could be read."""
        self.budget = min(self.budget + MORE_INSTRUCTIONS, MAX_INSTRUCTIONS)
        if position != self.position or vaddr < self.location:
            self.position = position
            self.is_sound = self.start(position)
        if self.is_sound:
            self.is_sound = self.run(self.paused, self.frames.program_end, vaddr)
        return self.is_sound and self.row[CFA_RULE] != UNSPECIFIED

    def start(self, position: cython.Py_ssize_t) -> cython.bint:
        """Run the program of the CIE that the FDE at `position` has; False if it cannot be."""
        i: cython.Py_ssize_t
        for i in range(self.width):
            self.row[i] = 0
            self.initial[i] = 0
        self.depth = 0
        self.frames.c.end = self.section_end
        if not self.frames.enter(position):
            return False
        if self.frames.return_register >= cython.cast(cython.ulonglong, self.registers):
            return False
        self.row[RETURN_COLUMN] = self.frames.return_register
        self.row[FLAGS] = IS_SIGNAL if self.frames.is_signal else 0
        self.location = self.frames.begin
        if not self.run(self.frames.initial, self.frames.initial_end, MASK64) or self.location != self.frames.begin:
            return False
        for i in range(self.width):
            self.initial[i] = self.row[i]
        self.paused = self.frames.program
        return True

    def run(self, begin: cython.Py_ssize_t, end: cython.Py_ssize_t, vaddr: cython.ulonglong) -> cython.bint:
        """Run the instructions from `begin` to `end`, up to the row behind that of `vaddr`; False if they are bad."""
        operation: cython.int
        self.frames.c.pos = begin
        self.frames.c.end = end
        self.frames.c.bad = begin > end
        while self.frames.c.pos < end and not self.frames.c.bad:
            self.paused = self.frames.c.pos
            self.budget -= 1
            if self.budget < 0:
                return False
            operation = self.frames.c.uint(1)
            if not self.step(operation, vaddr):
                # The next row begins behind the address, or the instruction is unknown.
                return self.paused != NOWHERE and not self.frames.c.bad
        self.paused = self.frames.c.pos
        return not self.frames.c.bad

    def step(self, operation: cython.int, vaddr: cython.ulonglong) -> cython.bint:
        """Carry out one instruction; False if that of `vaddr` is complete before, or it is bad (`paused`: NOWHERE)."""
        high: cython.int = operation & CFA_OPERATION
        low: cython.ulonglong = operation & CFA_OPERAND
        i: cython.Py_ssize_t
        if high == DW_CFA_advance_loc:
            return self.advance(low, vaddr)
        if high == DW_CFA_offset:
            self.rule(low, OFFSET, self.scaled(self.frames.c.uleb()))
        elif high == DW_CFA_restore:
            self.restore(low)
        elif operation in (DW_CFA_nop, DW_CFA_AARCH64_negate_ra_state, DW_CFA_AARCH64_negate_ra_state_with_pc):
            pass
        elif operation == DW_CFA_set_loc:
            return self.advance((self.frames.address() - self.location) & MASK64, vaddr)
        elif operation == DW_CFA_advance_loc1:
            return self.advance(self.frames.c.uint(1), vaddr)
        elif operation == DW_CFA_advance_loc2:
            return self.advance(self.frames.c.uint(2), vaddr)
        elif operation == DW_CFA_advance_loc4:
            return self.advance(self.frames.c.uint(4), vaddr)
        elif operation == DW_CFA_MIPS_advance_loc8:
            return self.advance(self.frames.c.uint(8), vaddr)
        elif operation == DW_CFA_GNU_args_size:
            self.frames.c.uleb()
        elif operation == DW_CFA_remember_state:
            if self.depth == MAX_STATES:
                self.paused = NOWHERE
                return False
            for i in range(self.width):
                self.states[self.depth, i] = self.row[i]
            self.depth += 1
        elif operation == DW_CFA_restore_state:
            if self.depth == 0:
                self.paused = NOWHERE
                return False
            self.depth -= 1
            for i in range(self.width):
                self.row[i] = self.states[self.depth, i]
        elif not self.define_cfa(operation) and not self.define_register(operation):
            self.paused = NOWHERE
            return False
        return True

    def advance(self, distance: cython.ulonglong, vaddr: cython.ulonglong) -> cython.bint:
        """Begin a row so many units of code further on, unless it is behind `vaddr`."""
        if self.frames.c.data[self.paused] != DW_CFA_set_loc:
            distance = (distance * self.frames.code_factor) & MASK64
        if distance > vaddr - self.location:
            return False
        self.location += distance
        return True

    def define_cfa(self, operation: cython.int) -> cython.bint:
        """Carry out an instruction that defines the CFA; False if it is none."""
        if operation in (DW_CFA_def_cfa, DW_CFA_def_cfa_sf):
            self.row[CFA_REGISTER] = self.frames.c.uleb()
            self.row[CFA_VALUE] = self.frames.c.uleb() if operation == DW_CFA_def_cfa else self.signed_scaled()
        elif operation == DW_CFA_def_cfa_register:
            self.row[CFA_REGISTER] = self.frames.c.uleb()
        elif operation == DW_CFA_def_cfa_offset:
            self.row[CFA_VALUE] = self.frames.c.uleb()
            return True
        elif operation == DW_CFA_def_cfa_offset_sf:
            self.row[CFA_VALUE] = self.signed_scaled()
            return True
        elif operation == DW_CFA_def_cfa_expression:
            self.row[CFA_REGISTER] = self.expression()
            self.row[CFA_RULE] = EXPRESSION
            return True
        else:
            return False
        self.row[CFA_RULE] = REGISTER
        if self.row[CFA_REGISTER] >= cython.cast(cython.ulonglong, self.registers):
            self.row[CFA_RULE] = UNSPECIFIED
        return True

    def define_register(self, operation: cython.int) -> cython.bint:
        """Carry out an instruction that gives a register a rule; False if it is none."""
        register: cython.ulonglong
        if not DW_CFA_offset_extended <= operation <= DW_CFA_GNU_negative_offset_extended:
            return False
        register = self.frames.c.uleb()
        if operation == DW_CFA_offset_extended:
            self.rule(register, OFFSET, self.scaled(self.frames.c.uleb()))
        elif operation == DW_CFA_offset_extended_sf:
            self.rule(register, OFFSET, self.signed_scaled())
        elif operation == DW_CFA_GNU_negative_offset_extended:
            self.rule(register, OFFSET, (0 - self.scaled(self.frames.c.uleb())) & MASK64)
        elif operation == DW_CFA_val_offset:
            self.rule(register, VAL_OFFSET, self.scaled(self.frames.c.uleb()))
        elif operation == DW_CFA_val_offset_sf:
            self.rule(register, VAL_OFFSET, self.signed_scaled())
        elif operation == DW_CFA_restore_extended:
            self.restore(register)
        elif operation == DW_CFA_undefined:
            self.rule(register, UNDEFINED, 0)
        elif operation == DW_CFA_same_value:
            self.rule(register, SAME_VALUE, 0)
        elif operation == DW_CFA_register:
            self.rule(register, REGISTER, self.frames.c.uleb())
        elif operation == DW_CFA_expression:
            self.rule(register, EXPRESSION, self.expression())
        elif operation == DW_CFA_val_expression:
            self.rule(register, VAL_EXPRESSION, self.expression())
        else:
            return False
        return True

    def rule(self, register: cython.ulonglong, kind: cython.ulonglong, value: cython.ulonglong) -> cython.void:
        """Give a register a rule; vector registers and the like have none here."""
        at: cython.Py_ssize_t
        if register >= cython.cast(cython.ulonglong, self.registers):
            return
        at = FIRST_RULE + 2 * cython.cast(cython.Py_ssize_t, register)
        self.row[at] = kind
        self.row[at + 1] = value

    def restore(self, register: cython.ulonglong) -> cython.void:
        """Give a register the rule that the CIE has for it."""
        at: cython.Py_ssize_t
        if register < cython.cast(cython.ulonglong, self.registers):
            at = FIRST_RULE + 2 * cython.cast(cython.Py_ssize_t, register)
            self.row[at] = self.initial[at]
            self.row[at + 1] = self.initial[at + 1]

    def expression(self) -> cython.ulonglong:
        """Position and size of the expression at the cursor, which moves behind it."""
        size: cython.ulonglong = self.frames.c.uleb()
        begin: cython.Py_ssize_t = self.frames.c.pos
        self.frames.c.bad |= size > MAX_EXPRESSION
        self.frames.c.skip(size)
        return (cython.cast(cython.ulonglong, begin) << EXPRESSION_SIZE_BITS | (size & EXPRESSION_SIZE)) & MASK64

    def scaled(self, value: cython.ulonglong) -> cython.ulonglong:
        """An offset in units of the CIE's data alignment."""
        return (value * (cython.cast(cython.ulonglong, self.frames.data_factor) & MASK64)) & MASK64

    def signed_scaled(self) -> cython.ulonglong:
        """The signed offset at the cursor, in units of the CIE's data alignment."""
        return self.scaled(cython.cast(cython.ulonglong, self.frames.c.sleb()) & MASK64)


def find_rows(
    reader: RowReader,
    positions: cython.const[cython.longlong][::1],
    vaddrs: cython.const[cython.ulonglong][::1],
    rows: cython.ulonglong[:, ::1],
    found: cython.uchar[::1],
) -> None:
    """Write the row of each vaddr, which the FDE at the position beside it covers, and whether there is one.

    Vaddrs of one FDE are best given in ascending order.
    """
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(positions)):
            found[i] = reader.find(positions[i], vaddrs[i])
            if found[i]:
                for k in range(reader.width):
                    rows[i, k] = reader.row[k]

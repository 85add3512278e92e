"""Whether addresses are in call instructions, as call sites of a profile are in its binary (R148, the score of
evidence).

In another build of the same program few of the addresses happen to be in a call.
"""

import numpy as np

from symbolize.core.arrays import Bool, Int64, UInt64
from symbolize.elf.image import ElfImage

LONGEST_CALL = 7
"""Bytes of `call *disp32(base,index)` without a prefix."""
MISSING = -1
"""A byte outside of the segment."""

# Intel SDM, CALL and the ModR/M byte: its mode, operand and register fields.
CALL_REL32, GROUP_5, NEAR_INDIRECT_CALL = 0xE8, 0xFF, 2
MODE_DISP8, MODE_DISP32, MODE_REGISTER = 1, 2, 3
REGISTER_SIB, REGISTER_DISP32 = 4, 5
JUMP_SIB, JUMP_DISP32 = 0x24, 0x25
"""ModR/M bytes of JMP through memory, whose address is in a SIB byte, or is the displacement."""

# Arm ARM C6.2: masks and values of BL, and of BLR of any register, with and without pointer authentication.
BL_MASK, BL = 0xFC000000, 0x94000000
BLR_MASK, BLR = 0xFEFFF000, 0xD63F0000


def inside_calls(image: ElfImage, vaddrs: UInt64) -> Bool | None:
    """Which of `vaddrs` are in a call instruction or right behind one; None if that is unknown.

    It is for machines other than x86 and AArch64, and for files that are not linked or lack the bytes of their code.
    Producers record the first byte of a call, the last one or the return address, so all of them count.
    """
    code_segments = [segment for segment in image.segments if segment.executable]
    if not image.has_code or not code_segments:
        return None
    code = code_around(image, vaddrs, LONGEST_CALL, LONGEST_CALL + 1)
    is_cut = any(segment.file_offset + segment.file_size > len(image.data) for segment in code_segments)
    if is_cut and (code[:, LONGEST_CALL] == MISSING).all():
        return None
    if image.machine in ("EM_X86_64", "EM_386"):
        return x86_calls(code)
    if image.machine == "EM_AARCH64" and not image.big_endian:
        return aarch64_calls(code, (vaddrs & np.uint64(3)).astype(np.int64))
    return None


def code_around(image: ElfImage, vaddrs: UInt64, before: int, behind: int) -> Int64:
    """The `before` bytes in front of each of `vaddrs` and the `behind` ones from it on, MISSING outside of the segment
    with the vaddr, if it is one with code that the file has: int64[n, before + behind]."""
    code = np.full((len(vaddrs), before + behind), MISSING, np.int64)
    text = np.frombuffer(image.data, np.uint8)
    for segment in image.segments:
        size = min(segment.file_size, len(text) - segment.file_offset)
        end = min(segment.vaddr + max(size, 0), (1 << 64) - 1)
        here = (vaddrs >= np.uint64(segment.vaddr)) & (vaddrs < np.uint64(end))
        if segment.executable and here.any():
            offset = (vaddrs[here] - np.uint64(segment.vaddr)).astype(np.int64)
            at = offset[:, None] + np.arange(-before, behind)
            inside = (at >= 0) & (at < size)
            found = text[segment.file_offset + np.where(inside, at, 0)].astype(np.int64)
            code[here] = np.where(inside, found, MISSING)
    return code


def jumps_through_tables(image: ElfImage) -> UInt64 | None:
    """The vaddrs of what may be jumps of an x86 program through tables at fixed addresses, `jmp *table(,register,8)`:
    a superset, ascending. None if that is unknown: without the code, and for machines other than x86 and AArch64.

    Code that may be loaded anywhere has none, nor has AArch64.
    """
    is_x86 = image.machine in ("EM_X86_64", "EM_386")
    if image.machine == "EM_AARCH64" or (is_x86 and image.kind == "ET_DYN"):
        return np.zeros(0, np.uint64)
    segments = [segment for segment in image.segments if segment.executable]
    text = np.frombuffer(image.data, np.uint8)
    is_linked = image.kind == "ET_EXEC" and image.has_code
    if not is_x86 or not is_linked or sum(segment.file_size for segment in segments) > len(text):
        return None
    found = [np.zeros(0, np.uint64)]
    for segment in segments:
        code = text[segment.file_offset : segment.file_offset + segment.file_size]
        at = np.flatnonzero(code[:-2] == GROUP_5)
        is_jump = (code[at + 1] == JUMP_SIB) & (code[at + 2] & 7 == REGISTER_DISP32)
        if image.machine == "EM_386":
            is_jump |= code[at + 1] == JUMP_DISP32
        found.append(at[is_jump].astype(np.uint64) + np.uint64(segment.vaddr))
    return np.sort(np.concatenate(found))


def x86_calls(code: Int64) -> Bool:
    """Whether a call starts at the middle column of `code`, ends with it, or ends before it (Intel SDM, CALL)."""
    middle = LONGEST_CALL
    result = call_length(code, middle) > 0
    for length in range(2, LONGEST_CALL + 1):
        for end in (middle, middle + 1):  # one past the last byte of the call
            if end - length >= 0:
                result |= call_length(code, end - length) == length
    return result


def call_length(code: Int64, column: int) -> Int64:
    """The length of the near call that starts at `column` of each row; 0 if there is none or it has MISSING bytes."""
    first, second, third = code[:, column], code[:, column + 1], code[:, column + 2]
    mode, operand, register = second >> 6, second >> 3 & 7, second & 7
    has_sib = (mode != MODE_REGISTER) & (register == REGISTER_SIB)
    base = np.where(has_sib, third & 7, register)
    has_disp32 = (mode == MODE_DISP32) | (mode == 0) & (base == REGISTER_DISP32)
    displacement = np.select([mode == MODE_DISP8, has_disp32], [1, 4], 0)
    indirect = np.where((first == GROUP_5) & (operand == NEAR_INDIRECT_CALL), 2 + has_sib + displacement, 0)
    length = np.where(first == CALL_REL32, 5, indirect)
    last = code[np.arange(len(code)), column + np.maximum(length, 1) - 1]
    return np.where(last != MISSING, length, 0)


def aarch64_calls(code: Int64, misalignment: Int64) -> Bool:
    """Whether BL or BLR is at the middle column of `code`, which is `misalignment` bytes behind its begin, or before
    it."""
    rows = np.arange(len(code))
    result = np.zeros(len(code), np.bool_)
    for back in (0, 4):
        start = LONGEST_CALL - misalignment - back
        parts = [code[rows, np.maximum(start, 0) + i] for i in range(4)]
        sound = (start >= 0) & (np.minimum.reduce(parts) != MISSING)
        word = sum(part << (8 * i) for i, part in enumerate(parts))
        result |= sound & ((word & BL_MASK == BL) | (word & BLR_MASK == BLR))
    return result

"""Made stacks: what rules, frame pointers, expressions and signals lead to, and where they do not count."""

import struct
from pathlib import Path

import numpy as np
import pytest

from symbolize import Symbolizer
from symbolize.elf import ElfImage
from symbolize.profile import StackSource
from symbolize.unwind import End, MappedCode, unwind
from symbolize.unwind import constants as c
from symbolize.unwind.call_frames import X86_64, CallFrames, Expressions
from tests.support.elf_writer import AARCH64
from tests.support.frame_writer import ARM_START, CODE, Cie, Fde, block, breg, framed_file
from tests.support.made_stacks import (
    ARM_CALL,
    BARE,
    BASE,
    CALLER,
    FILE,
    FRAME,
    LEAF,
    ROOT,
    ROOT_RULES,
    SOUND,
    STACK,
    code_of,
    only,
    program_file,
    registers,
    returns,
    unwound,
    words,
)
from tests.support.stack_dumps import PC, SP, Dump, Mapped, profile_of, stacks

JIT = Mapped("//anon", 0x7E0000000000, 0x7E0000001000)
X86_TRAMPOLINE = bytes.fromhex("48c7c00f0000000f05")
ARM_TRAMPOLINE = struct.pack("<II", 0xD2801168, 0xD4000001)


def test_which_section_counts() -> None:
    """Rules are those of .eh_frame in any file, else of .debug_frame, at the vaddrs of the file (R305, call frame
    information that counts)."""
    rules = [bytes([c.DW_CFA_def_cfa_offset, size]) for size in (24, 40)]
    debug = framed_file([Cie([Fde(CODE + 0x800, 0x200, rules[0])])], section=".debug_frame")
    code = framed_file([Cie([Fde(CODE, 0x100, rules[1])])])
    images = [(ElfImage.parse(memoryview(data), "test"), shift) for data, shift in ((debug, 0x800), (code, 0))]
    frames = CallFrames(images, X86_64, Expressions())
    rows, reasons = frames.rows(np.array([CODE, CODE + 0x100, CODE + 0x200], np.uint64))
    assert rows[:, c.CFA_VALUE].tolist() == [40, 24, 0]
    assert reasons.tolist() == [0, 0, c.NO_FRAME_INFO]


def test_values_that_nobody_needs(tmp_path: Path) -> None:
    """A register that cannot be had does not end a stack (R307, rules of frames)."""
    data = program_file(bytes([c.DW_CFA_offset_extended_sf, 3, 0x40]))  # beyond the copy
    assert only(unwound(tmp_path, data, [Dump(registers(), SOUND)])) == ([LEAF, CALLER, ROOT], "")


def test_return_address_of_zero(tmp_path: Path) -> None:
    """A stack ends at a return address of 0 (R309, ends of stacks)."""
    dump = Dump(registers(), words(returns(CALLER), 1, 2, 0, 0))
    assert only(unwound(tmp_path, program_file(), [dump])) == ([LEAF, CALLER], "")


def test_frame_of_the_same_size(tmp_path: Path) -> None:
    """The CFA of a caller is above that of what it called (R309, ends of stacks)."""
    data = program_file(caller=bytes([c.DW_CFA_def_cfa, 3, 0]))
    found, warning = only(unwound(tmp_path, data, [Dump(registers(x3=STACK + 8), SOUND)]))
    assert (found, "would not be above the last one" in warning) == ([LEAF, CALLER], True)


@pytest.mark.parametrize(
    ("pointer", "stack"),
    [
        (STACK, words(returns(BARE), returns(CALLER), 1, 2, 3)),  # below the last frame
        (STACK + 12, words(returns(BARE), 0, 0) + bytes(4) + words(returns(CALLER), 1, 2)),
    ],
)
def test_frame_pointers_that_lead_nowhere(pointer: int, stack: bytes, tmp_path: Path) -> None:
    """A frame pointer is a multiple of 8 above the last frame (R310, frame pointers)."""
    found, warning = only(unwound(tmp_path, program_file(), [Dump(registers(x6=pointer), stack)]))
    assert (found, "without call frame information" in warning) == ([LEAF, BARE], True)


def test_code_made_at_run_time(tmp_path: Path) -> None:
    """Code without a file is left by frame pointers, and may be where they lead (R310, frame pointers)."""
    stack = words(STACK + 24, JIT.start + 0x101, 7, 0, returns(ROOT), 0)
    (tmp_path / "prog").write_bytes(program_file())
    profile = profile_of("x86-64", [Dump(registers(pc=JIT.start + 0x10, x6=STACK), stack)], [JIT, FILE])
    with Symbolizer(tmp_path) as symbolizer:
        symbolizer.match(profile)
    assert stacks(profile) == [[JIT.start + 0x10, JIT.start + 0x100, returns(ROOT) - 1]]
    assert profile.warnings == []


def test_far_above_the_copy(tmp_path: Path) -> None:
    """4 GiB above a copy that was cut there is no stack any more (R311, cut stacks)."""
    for distance, text in ((1 << 31, "at the end of the copy"), (5 << 32, "memory beside the copy")):
        data = program_file(caller=bytes([c.DW_CFA_def_cfa, 3, 0]))
        profile = unwound(tmp_path, data, [Dump(registers(x3=STACK + distance), SOUND, True)])
        assert text in only(profile)[1]


def test_authenticated_addresses_by_pointer(tmp_path: Path) -> None:
    """Frame pointers lead to signed addresses too (R312, authenticated addresses)."""
    root = Fde(ROOT, 0x100, bytes([c.DW_CFA_undefined, 30]))
    data = framed_file([Cie([root], ARM_START, return_register=30)], code_of(ARM_CALL), machine=AARCH64)
    dump = Dump(registers("aarch64", BASE + BARE + 4, x29=STACK), words(STACK + 16, returns(ROOT) | 0x3E << 48, 0, 0))
    assert only(unwound(tmp_path, data, [dump], "aarch64")) == ([BARE, ROOT], "")


def with_trampoline(code: bytes, instructions: bytes) -> bytes:
    """Code whose function CALLER is what signal handlers return to."""
    at = CALLER + 0x80 - CODE
    return code[: at - 8] + b"\x90" * 8 + instructions + code[at + len(instructions) :]


def saved(machine: str, sp: int) -> bytes:
    """What the kernel has on the stack of a handler, where its stack pointer is `sp`: registers of the first byte of
    LEAF, whose stack pointer is right behind them."""
    order, first = ((13, 12, 14, 11, 9, 8, 10, 15, *range(8), 16), 40) if machine == "x86-64" else (range(33), 312)
    values = dict(zip((PC[machine], SP[machine]), (BASE + LEAF, sp + first + 8 * len(order)), strict=True))
    frame = [0] * len(order)
    for register, place in enumerate(order):
        frame[place] = values.get(register, returns(ROOT) if register == 30 else 0)
    return bytes(first) + words(*frame)


@pytest.mark.parametrize("has_rules", [False, True])
def test_trampolines(has_rules: bool, tmp_path: Path) -> None:
    """Code that only makes the system call `rt_sigreturn` leads to what was interrupted; on x86-64 its rules come first
    (R313, signal frames)."""
    rules = [Fde(CALLER, 0x100, FRAME)] if has_rules else []
    cie = Cie([Fde(LEAF, 0x100), *rules, Fde(ROOT, 0x100, ROOT_RULES)])
    data = framed_file([cie], with_trampoline(code_of(), X86_TRAMPOLINE))
    stack = words(returns(CALLER)) + saved("x86-64", STACK + 8) + words(returns(ROOT), 0)
    if has_rules:
        stack = SOUND
    profile = unwound(tmp_path, data, [Dump(registers(), stack)])
    between = [] if has_rules else [BASE + LEAF]
    assert stacks(profile) == [[BASE + LEAF + 4, returns(CALLER) - 1, *between, returns(ROOT) - 1]]
    functions = [Fde(LEAF, 0x100), *rules, Fde(ROOT, 0x100, bytes([c.DW_CFA_undefined, 30]))]
    code = with_trampoline(code_of(ARM_CALL), ARM_TRAMPOLINE)
    data = framed_file([Cie(functions, ARM_START, return_register=30)], code, machine=AARCH64)
    dump = Dump(registers("aarch64", x30=returns(CALLER)), saved("aarch64", STACK) + words(0))
    profile = unwound(tmp_path, data, [dump], "aarch64")
    assert stacks(profile) == [[BASE + LEAF + 4, returns(CALLER) - 1, BASE + LEAF, returns(ROOT) - 1]]


def test_handler_without_rules(tmp_path: Path) -> None:
    """A frame pointer may lead to what handlers return to, though that is in no call (R310, frame pointers)."""
    cie = Cie([Fde(LEAF, 0x100), Fde(ROOT, 0x100, ROOT_RULES)])
    data = framed_file([cie], with_trampoline(code_of(), X86_TRAMPOLINE))
    stack = words(STACK + 8, returns(CALLER)) + saved("x86-64", STACK + 16) + words(returns(ROOT), 0)
    dump = Dump(registers(pc=BASE + BARE + 4, x6=STACK), stack)
    profile = unwound(tmp_path, data, [dump])
    assert stacks(profile) == [[BASE + BARE + 4, returns(CALLER) - 1, BASE + LEAF, returns(ROOT) - 1]]


def test_stack_of_interrupted_code(tmp_path: Path) -> None:
    """What was interrupted has its frames above its own stack pointer, not above that of the handler (R313, signal
    frames)."""
    signal = FRAME + bytes([c.DW_CFA_val_offset_sf, 7, 0x7A])  # its stack pointer is 48 higher
    interrupted = bytes([c.DW_CFA_def_cfa, 3, 0, c.DW_CFA_register, 16, 12])
    cies = [
        Cie([Fde(LEAF, 0x100), Fde(ROOT, 0x100, interrupted)]),
        Cie([Fde(CALLER, 0x100, signal)], augmentation=b"zRS"),
    ]
    stack = words(returns(CALLER), 1, 2, BASE + ROOT, *range(9))
    for cfa, count in ((STACK + 48, 3), (STACK + 80, 4)):
        dump = Dump(registers(x3=cfa, x12=returns(ROOT)), stack)
        profile = unwound(tmp_path, framed_file(cies, code_of()), [dump])
        expected = [BASE + LEAF + 4, returns(CALLER) - 1, BASE + ROOT, returns(ROOT) - 1]
        assert stacks(profile) == [expected[:count]]
        assert "would not be above the last one" in profile.warnings[0]


def test_interrupted_code_is_exact() -> None:
    """Where code was interrupted, and where handlers return to, is told (R315, interrupted code)."""
    cies = [
        Cie([Fde(LEAF, 0x100), Fde(ROOT, 0x100, ROOT_RULES)]),
        Cie([Fde(CALLER, 0x100, FRAME)], augmentation=b"zRS"),
    ]
    stack = words(returns(CALLER), 1, 2, BASE + LEAF, returns(ROOT), 0)
    image = ElfImage.parse(memoryview(framed_file(cies, code_of())), "test")
    shift = np.uint64(BASE)
    code = MappedCode([(image, 0)], lambda addresses: (addresses - shift, addresses >= shift))
    found = unwind(profile_of("x86-64", [Dump(registers(), stack)], [FILE]), lambda mapping: code)
    addresses = found.profile.locations.address[found.no_evidence]
    assert sorted(addresses.tolist()) == [BASE + LEAF, returns(CALLER) - 1]


def test_what_frame_pointers_led_to_is_no_evidence() -> None:
    """They are followed to calls of the binary only, which then speak for it, whatever it is (R310, frame pointers)."""
    stack = words(1, 2, STACK + 48, returns(CALLER), 4, 5, 0, returns(ROOT), 0)
    data = program_file(caller=bytes([c.DW_CFA_def_cfa, 6, 16]))
    shift = np.uint64(BASE)
    code = MappedCode([(ElfImage.parse(memoryview(data), "test"), 0)], lambda at: (at - shift, at >= shift))
    dump = Dump(registers(pc=BASE + BARE + 4, x6=STACK + 16), stack)
    found = unwind(profile_of("x86-64", [dump], [FILE]), lambda mapping: code)
    assert found.profile.locations.address.tolist()[-2:] == [returns(CALLER) - 1, returns(ROOT) - 1]
    assert found.profile.locations.address[found.no_evidence].tolist() == [returns(CALLER) - 1]


@pytest.mark.parametrize("source", StackSource)
def test_who_found_the_callers(source: StackSource) -> None:
    """Callers are our own, unless some came with the profile, which say how these were found."""
    profile = profile_of("x86-64", [Dump(registers(), words(0))], [FILE])
    profile.stack_source = source
    with Symbolizer([]) as symbolizer:
        symbolizer.match(profile)
    assert profile.stack_source == (source or StackSource.OWN_UNWINDING)


LESS = bytes([c.DW_OP_lit0 + 1, c.DW_OP_neg, c.DW_OP_lit0, c.DW_OP_lt])
EXPRESSIONS = {
    "comparison": (breg(7, 0) + LESS + bytes([c.DW_OP_lit0 + 3, c.DW_OP_shl, c.DW_OP_plus]), True),
    "stack": (
        bytes([c.DW_OP_lit0 + 5, c.DW_OP_lit0 + 3, c.DW_OP_lit0 + 2, c.DW_OP_swap, c.DW_OP_minus])  # 5 -1
        + bytes([c.DW_OP_pick, 1, c.DW_OP_plus_uconst, 2, c.DW_OP_over, c.DW_OP_drop])  # 5 -1 7
        + bytes([c.DW_OP_rot, c.DW_OP_minus, c.DW_OP_minus])  # 7 5 -1, and what is left is 1
        + bytes([c.DW_OP_bregx, 7, 7, c.DW_OP_plus]),
        True,
    ),
    "numbers": (
        bytes([c.DW_OP_bregx, 7, 0, c.DW_OP_constu, 0x90, 1, c.DW_OP_plus, c.DW_OP_consts, 0x80, 0x7F, c.DW_OP_plus])
        + bytes([c.DW_OP_const1u + 1, 0xF8, c.DW_OP_plus]),  # 144 - 128 - 8
        True,
    ),
    "memory": (
        breg(7, 8)
        + bytes([c.DW_OP_dup, c.DW_OP_deref, c.DW_OP_plus])  # of the words 1 and 2
        + breg(7, 16)
        + bytes([c.DW_OP_deref_size, 1, c.DW_OP_plus, c.DW_OP_lit0 + 3, c.DW_OP_minus]),
        True,
    ),
    "too many bytes": (breg(7, 8) + breg(7, 8) + bytes([c.DW_OP_deref_size, 9, c.DW_OP_drop]), False),
    "too deep": (breg(7, 8) + bytes([c.DW_OP_pick, 1, c.DW_OP_drop]), False),
    "jump": (breg(7, 8) + bytes([c.DW_OP_skip, 1, 0, 0xFF, c.DW_OP_nop]), True),
    "too little": (breg(7, 8) + bytes([c.DW_OP_plus]), False),
    "endless": (breg(7, 8) + bytes([c.DW_OP_skip, 0xFD, 0xFF]), False),
    "too much": (breg(7, 8) * (c.MAX_OPERANDS + 1), False),
    "before its begin": (breg(7, 8) + bytes([c.DW_OP_skip, 0xF0, 0xFF]), False),
    "division": (breg(7, 8) + bytes([c.DW_OP_lit0 + 1, 0x1B]), False),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions(name: str, tmp_path: Path) -> None:
    """Expressions find a CFA on an empty stack, within limits (R314, expressions of frames)."""
    expression, is_sound = EXPRESSIONS[name]
    data = program_file(block(c.DW_CFA_def_cfa_expression, expression))
    found, warning = only(unwound(tmp_path, data, [Dump(registers(), SOUND)]))
    assert found == ([LEAF, CALLER, ROOT] if is_sound else [LEAF])
    assert ("damaged or unknown" in warning) is not is_sound


WORDS = 3, 0, 7, (1 << 64) - 5, 1 << 63
BINARY = {
    "and": lambda a, b: a & b, "minus": lambda a, b: a - b, "mul": lambda a, b: a * b, "or": lambda a, b: a | b,
    "plus": lambda a, b: a + b, "shl": lambda a, b: a << b if b < 64 else 0, "shr": lambda a, b: a >> min(b, 64),
    "shra": lambda a, b: signed(a) >> min(b, 64), "xor": lambda a, b: a ^ b,
    "eq": lambda a, b: signed(a) == signed(b), "ge": lambda a, b: signed(a) >= signed(b),
    "gt": lambda a, b: signed(a) > signed(b), "le": lambda a, b: signed(a) <= signed(b),
    "lt": lambda a, b: signed(a) < signed(b), "ne": lambda a, b: signed(a) != signed(b),
}  # fmt: skip
UNARY = {"abs": lambda a: abs(signed(a)), "neg": lambda a: -a, "not": lambda a: ~a}


def signed(word: int) -> int:
    """A word as a signed number."""
    return word - (1 << 64) if word >> 63 else word


@pytest.mark.parametrize("name", [*BINARY, *UNARY])
def test_operations(name: str, tmp_path: Path) -> None:
    """Operations calculate with words of 64 bits, of which comparisons and `shra` take the signs (R314)."""
    if name in UNARY:
        cases = [([a], UNARY[name](a)) for a in WORDS]
    else:
        cases = [([a, b], BINARY[name](a, b)) for a in WORDS for b in WORDS]
    operation, wrong = getattr(c, f"DW_OP_{name}"), bytes([c.DW_OP_minus, c.DW_OP_plus])
    for some in (cases[i : i + 8] for i in range(0, len(cases), 8)):
        expression = breg(7, 8)
        for operands, result in some:  # a wrong one moves the CFA
            pushed = [b"\x0e" + struct.pack("<Q", each % (1 << 64)) for each in (*operands, result)]
            expression += b"".join(pushed[:-1]) + bytes([operation]) + pushed[-1] + wrong
        data = program_file(block(c.DW_CFA_def_cfa_expression, expression))
        assert only(unwound(tmp_path, data, [Dump(registers(), SOUND)]))[0] == [LEAF, CALLER, ROOT]


def test_registers_of_a_trampoline() -> None:
    """The registers of x86-64 are where `struct sigcontext` of the kernel has them: r8 to r15, di, si, bp, bx, dx, ax,
    cx, sp and ip, here by their numbers in DWARF."""
    saved = [*range(8, 16), 5, 4, 6, 3, 1, 0, 2, 7, 16]
    row = X86_64.trampoline_row
    assert row[c.FIRST_RULE :: 2].tolist() == [c.OFFSET] * 17
    assert row[c.FIRST_RULE + 1 :: 2].tolist() == [40 + 8 * saved.index(number) for number in range(17)]


def test_code_without_binaries() -> None:
    """In a file that was not found no frame pointer is followed (R310, frame pointers)."""
    profile = profile_of("x86-64", [Dump(registers(x6=STACK), words(STACK + 32, returns(CALLER), 0, 0))], [FILE])
    assert stacks(unwind(profile, lambda mapping: End.NO_BINARY).profile) == [[BASE + LEAF + 4]]

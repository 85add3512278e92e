"""X86Function of x86-64 as our tables know them, against capstone."""

from itertools import product
from typing import Any

import capstone
import numpy as np
import pytest

from symbolize.elf import ElfImage
from symbolize.elf.call_frames import frame_ranges
from symbolize.evidence import x86_code
from symbolize.evidence.code import FILLING, PADDING, body_of, is_jump, jump_target
from symbolize.evidence.x86_code import TABLES, X86Function, decoded
from tests.support.fixture_files import BINARIES
from tests.support.interpreted import load_source

PROGRAMS = [
    *("gcc-pie/ledger", "gcc-o0/ledger", "clang-pie/libresonance.so", "gcc-nopie-dwarf4/spectra"),
    *("tails/gcc-tails/tails", "tails/clang-tails/tails"),
]
DECODER = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
PREFIXES = b"", b"\x66", b"\xf2", b"\xf3", b"\xf0", b"\x2e", b"\x3e", b"\x64"
SEVERAL = b"\x66\x2e", b"\x66\xf3", b"\x66\xf0", b"\xf3\x64", b"\x64\xf3", b"\xf0\x64", b"\x66\x2e\x66"
REX = (b"", b"\x40", b"\x41", b"\x48", b"\x4f")
MODRM = (0x00, 0x05, 0x0C, 0x44, 0x84, 0xC0, 0xC8, 0xD3, 0xDC, 0xE5, 0xEE, 0xFA)
BEHIND = bytes((0x25, *range(1, 12)))
"""What follows a ModR/M byte: a SIB byte without a base first."""


def functions(program: str) -> list[tuple[int, bytes]]:
    """The functions of a program with call frame information: begin and bytes."""
    image = ElfImage.open(BINARIES / program)
    found = []
    for begin, end in zip(*(column.tolist() for column in frame_ranges(image)), strict=True):
        segment = next(s for s in image.segments if s.vaddr <= begin < s.vaddr + s.file_size)
        at = begin - segment.vaddr + segment.file_offset
        found.append((begin, bytes(image.data[at : at + end - begin])))
    return found


def by_capstone(code: bytes, begin: int) -> tuple[set[int], int, set[int], bool]:
    """Where instructions begin and the last ends, where they jump to beyond the function, and whether one jumps
    elsewhere."""
    found = list(DECODER.disasm_lite(code, begin))
    jumps = [jump_target(operands) for _, _, name, operands in found if is_jump(name)]
    outside = {jump for jump in jumps if jump is not None and not begin <= jump < begin + len(code)}
    locked = {vaddr + 1 for vaddr, *_ in found if code[vaddr - begin] == 0xF0}
    return {vaddr for vaddr, *_ in found} | locked, found[-1][0] + found[-1][1], outside, None in jumps


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program: str) -> None:
    """Functions that are decoded have the instructions and jumps that capstone finds, and nearly all are."""
    all_of = functions(program)
    count = 0
    for begin, code in all_of:
        found = decoded(code, len(code))
        if found is not None:
            count += 1
            body = body_of(found, code, begin, begin + len(code))
            expected = by_capstone(code, begin)
            assert (set(body.starts.tolist()), body.end, set(body.jumps), body.is_open) == expected, hex(begin)
    assert count > 0.98 * len(all_of)


def length_of(code: bytes) -> int:
    """Bytes of the first instruction, 0 if it is not in the tables."""
    found = X86Function(np.empty(len(code), np.int64), np.empty(len(code), np.int64), len(code))
    found.decode(code, TABLES)
    return int(found.starts[1]) if found.count > 1 else found.end


@pytest.mark.parametrize("prefix", [*PREFIXES, *SEVERAL], ids=lambda prefix: prefix.hex() or "none")
def test_instructions(prefix: bytes) -> None:
    """An instruction that is in the tables has the length that capstone gives it, and is one for that."""
    known = 0
    for rex, escape, opcode, modrm in product(REX, (b"", b"\x0f"), range(256), MODRM):
        code = prefix + rex + escape + bytes((opcode, modrm)) + BEHIND
        if length := length_of(code):
            known += 1
            assert length == next((size for _, size, *_ in DECODER.disasm_lite(code, 0x10000)), 0), code.hex()
    assert known > 500


@pytest.mark.parametrize(
    "code", ["6689d8", "0faf05ffffffff", "488b042511111111", "4883ec08", "e800000000", "0f8400000000", "81c011111111"]
)
def test_cut_off(code: str) -> None:
    """An instruction that ends behind its function is none."""
    whole = bytes.fromhex(code)
    for size in range(1, len(whole)):
        assert decoded(whole[:size], len(whole)) is None
        assert decoded(b"\x90" + whole[:size], len(whole) + 1) is None
    found = decoded(whole, len(whole))
    assert found is not None
    assert (found.count, found.end) == (1, len(whole))


@pytest.mark.parametrize("mode", [capstone.CS_MODE_64, capstone.CS_MODE_32])
def test_filling(mode: int) -> None:
    """Each piece of what fills space between functions is one NOP or INT3; a piece that is cut off is none."""
    long = (b"\0", b"\x40\0", b"\x44\0\0", b"\x80\0\0\0\0", b"\x84\0\0\0\0\0")
    pieces = [b"\x90", *(segment + b"\x0f\x1f" + each for segment in (b"", b"\x2e") for each in long)]
    for piece in [b"\xcc", *(b"\x66" * count + piece for count in range(7) for piece in pieces)]:
        ((_, size, mnemonic, _),) = capstone.Cs(capstone.CS_ARCH_X86, mode).disasm_lite(piece, 0)
        assert (size, mnemonic in PADDING) == (len(piece), True), piece.hex()
        assert FILLING.fullmatch(piece + piece)
        assert not FILLING.fullmatch(piece + piece[:-1]) or len(piece) == 1


def test_interpreted() -> None:
    """The source gives what the compiled module does."""
    source: Any = load_source("evidence/x86_code")
    assert source.__file__ != x86_code.__file__ or not x86_code.__file__.endswith(".so")
    for _, code in functions("gcc-pie/ledger"):
        compiled, interpreted = decoded(code, len(code)), source.decoded(code, len(code))
        assert (compiled is None) == (interpreted is None)
        if compiled is not None:
            for name in ("count", "jump_count", "end", "is_open"):
                assert getattr(compiled, name) == getattr(interpreted, name)
            assert list(compiled.starts[: compiled.count]) == list(interpreted.starts[: compiled.count])

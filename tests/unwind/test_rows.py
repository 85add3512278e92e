"""Rows of rules, as they are in the files of compilers and in made programs."""

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolize.elf import ElfImage
from symbolize.elf.call_frames import frame_section
from symbolize.unwind import constants as c
from tests.support.frame_rows import X86, Row, differences, our_rows
from tests.support.frame_writer import CODE, X86_START, Cie, Fde, advance, block, breg, framed_file, offset
from tests.support.line_writer import sleb, uleb

BINARIES = Path(__file__).parents[2] / "fixtures" / "bin"
RA = {"ra": "c-8"}


def rows_of(program: bytes, /, *vaddrs: int, section: str = ".eh_frame", **options: object) -> list[Row | None]:
    """What a program says of vaddrs in a function at CODE."""
    data = framed_file([Cie([Fde(CODE, 0x100, program)], **options)], section=section)  # type: ignore[arg-type]
    found = frame_section(ElfImage.parse(memoryview(data), "test"), section)
    assert found is not None
    return our_rows(found, X86, list(vaddrs))


@pytest.mark.needs("readelf")
@pytest.mark.parametrize("path", ["gcc-pie/spectra", "clang-nopie-dwarf4-lld/ledger", "aarch64/libresonance.so"])
def test_real_files(path: str) -> None:
    """Every row of a file is the one that readelf prints."""
    count, different = differences(BINARIES / path)
    assert different == []
    assert count > 50


@pytest.mark.parametrize("factor", [1, 4])
def test_rows_begin_where_code_advances(factor: int) -> None:
    """Each form of advance_loc begins a row so many units of code further on, set_loc at an address; the rows before
    are those of the addresses before."""
    steps = [
        advance(3),
        bytes([c.DW_CFA_advance_loc1, 3]),
        bytes([c.DW_CFA_advance_loc2, 3, 0]),
        bytes([c.DW_CFA_advance_loc4, 3, 0, 0, 0]),
        bytes([c.DW_CFA_MIPS_advance_loc8, 3, 0, 0, 0, 0, 0, 0, 0]),
        bytes([c.DW_CFA_set_loc]) + (CODE + 18 * factor).to_bytes(8, "little"),
    ]
    program = b"".join(step + bytes([c.DW_CFA_def_cfa_offset, 16 + i]) for i, step in enumerate(steps))
    rows = rows_of(program, *(CODE + i for i in range(20 * factor)), code_factor=factor)
    assert [row.cfa if row else None for row in rows] == ["rsp+8"] * 3 * factor + [
        f"rsp+{16 + i}" for i in range(6) for _ in range(3 * factor)
    ][: 17 * factor]


INSTRUCTIONS = [
    (bytes([c.DW_CFA_def_cfa, 6, 24]), "rbp+24", {}),
    (bytes([c.DW_CFA_def_cfa_sf, 6]) + sleb(-3), "rbp+24", {}),
    (bytes([c.DW_CFA_def_cfa_register, 6]), "rbp+8", {}),
    (bytes([c.DW_CFA_def_cfa_offset, 40]), "rsp+40", {}),
    (bytes([c.DW_CFA_def_cfa_offset_sf]) + sleb(-5), "rsp+40", {}),
    (block(c.DW_CFA_def_cfa_expression, breg(7, 8)), "exp", {}),
    (offset(3, 2), "rsp+8", {"rbx": "c-16"}),
    (bytes([c.DW_CFA_offset_extended, 3, 2]), "rsp+8", {"rbx": "c-16"}),
    (bytes([c.DW_CFA_offset_extended_sf, 3]) + sleb(-2), "rsp+8", {"rbx": "c+16"}),
    (bytes([c.DW_CFA_GNU_negative_offset_extended, 3, 2]), "rsp+8", {"rbx": "c+16"}),
    (bytes([c.DW_CFA_val_offset, 3, 2]), "rsp+8", {"rbx": "v-16"}),
    (bytes([c.DW_CFA_val_offset_sf, 3]) + sleb(-2), "rsp+8", {"rbx": "v+16"}),
    (bytes([c.DW_CFA_register, 3, 12]), "rsp+8", {"rbx": "r12"}),
    (bytes([c.DW_CFA_same_value, 3]), "rsp+8", {"rbx": "s"}),
    (bytes([c.DW_CFA_undefined, 3]), "rsp+8", {}),
    (block(c.DW_CFA_expression, breg(7, 8), 3), "rsp+8", {"rbx": "exp"}),
    (block(c.DW_CFA_val_expression, breg(7, 8), 3), "rsp+8", {"rbx": "vexp"}),
    (offset(3, 2) + bytes([c.DW_CFA_restore | 3]), "rsp+8", {}),
    (offset(3, 2) + bytes([c.DW_CFA_restore_extended, 3]), "rsp+8", {}),
    (offset(16, 5) + bytes([c.DW_CFA_restore | 16]), "rsp+8", {}),
    (bytes([c.DW_CFA_GNU_args_size]) + uleb(300), "rsp+8", {}),
    (bytes([c.DW_CFA_AARCH64_negate_ra_state, c.DW_CFA_AARCH64_negate_ra_state_with_pc]), "rsp+8", {}),
    (offset(17, 2) + offset(60, 1), "rsp+8", {}),  # vector registers
]


@pytest.mark.parametrize(("program", "cfa", "rules"), INSTRUCTIONS)
def test_instructions(program: bytes, cfa: str, rules: dict[str, str]) -> None:
    """Each instruction changes its rule, and remember_state and restore_state bring all back, the CFA too (R308,
    programs of frames)."""
    states = advance(1) + bytes([c.DW_CFA_remember_state]), advance(1) + bytes([c.DW_CFA_restore_state])
    rows = rows_of(states[0] + program + states[1], CODE, CODE + 1, CODE + 2)
    assert rows == [Row(CODE, "rsp+8", RA), Row(CODE + 1, cfa, RA | rules), Row(CODE + 2, "rsp+8", RA)]


@pytest.mark.parametrize(
    "program",
    [
        b"\x1c\x03",  # no such instruction
        bytes([c.DW_CFA_restore_state]),
        bytes([c.DW_CFA_remember_state]) * (c.MAX_STATES + 1),
        bytes([c.DW_CFA_def_cfa, 99, 8]),
        bytes([c.DW_CFA_def_cfa_expression]) + uleb(1 << 40),
        bytes([c.DW_CFA_expression, 3]) + uleb(c.MAX_EXPRESSION + 1) + bytes(c.MAX_EXPRESSION + 1),
    ],
)
def test_programs_that_cannot_be_read(program: bytes) -> None:
    """What comes before damage is read, and nothing behind it."""
    rows = rows_of(advance(4) + program + bytes([c.DW_CFA_def_cfa_offset, 64]), CODE + 3, CODE + 4)
    assert rows == [Row(CODE + 3, "rsp+8", RA), None]


@pytest.mark.parametrize("version", [1, 3, 4])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("section", [".eh_frame", ".debug_frame"])
@pytest.mark.parametrize("augmentation", [b"", b"zR", b"zRS", b"zRB", b"zG"])
def test_forms_of_entries(version: int, wide: bool, section: str, augmentation: bytes) -> None:
    """Versions, both widths and both sections give the same rows (R306, entries of call frame information)."""
    program = advance(2) + offset(6, 2)
    options = {"version": version, "wide": wide, "augmentation": augmentation}
    rows = rows_of(program, CODE + 1, CODE + 2, section=section, **options)
    assert rows == [Row(CODE + 1, "rsp+8", RA), Row(CODE + 2, "rsp+8", RA | {"rbp": "c-16"})]


def test_return_register_that_there_is_none_of() -> None:
    """A return address in an unknown register cannot be followed."""
    assert rows_of(b"", CODE, return_register=40) == [None]


def test_program_of_a_cie_does_not_advance() -> None:
    """The program that FDEs share has one row."""
    assert rows_of(b"", CODE, program=X86_START + advance(1)) == [None]


@settings(deadline=None)
@given(st.lists(st.integers(0, 0x11F), min_size=1, max_size=30), st.integers(0, 1 << 32))
def test_any_order(distances: list[int], seed: int) -> None:
    """The row of an address does not depend on what was asked before."""
    dice = random.Random(seed)
    program = b"".join(advance(dice.randrange(1, 9)) + bytes([c.DW_CFA_def_cfa_offset, i]) for i in range(40))
    vaddrs = [CODE + distance for distance in distances]
    rows = rows_of(program, *vaddrs)
    assert rows == [rows_of(program, vaddr)[0] for vaddr in vaddrs]


@settings(deadline=None)
@given(st.binary(max_size=120), st.binary(max_size=40))
def test_any_program(program: bytes, initial: bytes) -> None:
    """Any bytes are read to some end."""
    rows_of(program, *range(CODE, CODE + 0x100, 7), program=initial)


def test_long_programs() -> None:
    """A program may be long, but not for every address that is asked: what may be carried out is used up (R308,
    programs of frames)."""
    count = 600_000
    data = framed_file([Cie([Fde(CODE + 8 * i, 8) for i in range(8)], X86_START + bytes(count))])
    found = frame_section(ElfImage.parse(memoryview(data), "test"))
    assert found is not None
    rows = our_rows(found, X86, [CODE + 8 * i for i in range(8)])
    assert [row is not None for row in rows] == [True] + [False] * 7


def test_instructions_that_leave_their_program() -> None:
    """An operand is not taken from the entry behind (R308, programs of frames)."""
    program = bytes(6) + bytes([c.DW_CFA_def_cfa_offset])  # fills the entry, so that no padding follows
    data = framed_file([Cie([Fde(CODE, 8, program), Fde(CODE + 8, 8)])])
    found = frame_section(ElfImage.parse(memoryview(data), "test"))
    assert found is not None
    assert [row is not None for row in our_rows(found, X86, [CODE, CODE + 8])] == [False, True]

"""Whether addresses lie in call instructions, which tells builds of one name apart (rule R148)."""

from pathlib import Path

import numpy as np
import pytest

from symbolize.elf import ElfImage, Segment, inside_calls, jumps_through_tables
from symbolize.elf.call_sites import LONGEST_CALL, aarch64_calls, x86_calls

FIXTURES = Path(__file__).parents[2] / "fixtures" / "bin"


def window(before: bytes, after: bytes) -> np.ndarray:  # type: ignore[type-arg]
    """The bytes around an address, `before` it and from it on, as the readers want them."""
    row = [-1] * (LONGEST_CALL - len(before)) + list(before) + list(after) + [-1] * (LONGEST_CALL + 1 - len(after))
    return np.array([row], np.int64)


@pytest.mark.parametrize(
    "call",
    [
        bytes.fromhex("e810000000"),  # call rel32
        bytes.fromhex("ffd0"),  # call *%rax
        bytes.fromhex("ff5008"),  # call *8(%rax)
        bytes.fromhex("ff9000010000"),  # call *256(%rax)
        bytes.fromhex("ff542408"),  # call *8(%rsp)
        bytes.fromhex("ff94c800010000"),  # call *256(%rax,%rcx,8)
        bytes.fromhex("ff1510000000"),  # call *16(%rip)
        bytes.fromhex("ff14c500010000"),  # call *256(,%rax,8)
    ],
    ids=lambda call: call.hex(),
)
def test_x86_calls_of_every_length(call: bytes) -> None:
    """The first byte of a call, its last byte and its return address count, whatever its length."""
    assert x86_calls(window(b"", call))[0]
    assert x86_calls(window(call[:-1], call[-1:]))[0]
    assert x86_calls(window(call, b""))[0]


@pytest.mark.parametrize("code", ["90909090", "ffe0ffe0", "ff30ff30", "c3c3c3c3", "4889e54889e5"])
def test_x86_code_without_calls(code: str) -> None:
    """Jumps, pushes and plain instructions are no calls."""
    assert not x86_calls(window(bytes.fromhex(code), bytes.fromhex(code)))[0]


BLR = [0xD63F0000 | register << 5 for register in range(31)]
AUTHENTICATED = [0xD63F083F, 0xD63F0D1F, 0xD73F0902, 0xD73F0FC3]
"""blraaz x1, blrabz x8, blraa x8, x2, blrab x30, x3."""


@pytest.mark.parametrize("word", [0x94000010, 0x97FFFFF0, *BLR, *AUTHENTICATED], ids=hex)
def test_aarch64_calls(word: int) -> None:
    """BL and BLR count at each of their bytes and at the return address."""
    call = word.to_bytes(4, "little")
    for inside in range(4):
        assert aarch64_calls(window(call[:inside], call[inside:]), np.array([inside]))[0]
    assert aarch64_calls(window(call, b""), np.array([0]))[0]


@pytest.mark.parametrize("word", [0xD503201F, 0xD61F0100, 0xD65F03C0, 0x14000010], ids=["nop", "br", "ret", "b"])
def test_other_branches_of_aarch64(word: int) -> None:
    """Branches and returns are no calls."""
    other = word.to_bytes(4, "little")
    assert not aarch64_calls(window(other, other), np.array([0]))[0]


@pytest.mark.parametrize(("machine", "jumps"), [("EM_386", [0x1003, 0x100A]), ("EM_X86_64", [0x1003])])
def test_jumps_through_tables_of_x86(machine: str, jumps: list[int]) -> None:
    """`jmp *table(,%eax,4)` is one; that through a table whose address is in a register is none, and that through a
    single place is one where its address is fixed."""
    code = bytes.fromhex("ff6040 ff248500100000 ff2500100000").ljust(16, b"\x90")  # jmp *0x40(%eax) first
    segment = Segment(0, 0x1000, 16, 16, 0x1000, True)
    image = ElfImage("test", memoryview(code), True, False, machine, "ET_EXEC", [segment], [], None)
    assert np.array_equal(jumps_through_tables(image), jumps)


def test_unknown_where_there_is_no_code() -> None:
    """A debug file has no instructions to look at."""
    with ElfImage.open(FIXTURES / "gcc-split" / "debug" / "ledger.debug") as image:
        assert inside_calls(image, np.array([image.find(".text").vaddr], np.uint64)) is None  # type: ignore[union-attr]


@pytest.mark.parametrize("vaddr", [1 << 63, (1 << 64) - 0x1000])
def test_segments_at_the_top_of_the_address_space(vaddr: int) -> None:
    """Kernel addresses, and a segment that ends where addresses end, are looked at like any other."""
    call = bytes.fromhex("e810000000") + bytes(11)
    segment = Segment(0, vaddr, 16, 16, 0x1000, True)
    image = ElfImage("test", memoryview(call), True, False, "EM_X86_64", "ET_EXEC", [segment], [], None)
    found = inside_calls(image, np.array([vaddr, vaddr + 4, vaddr + 12], np.uint64))
    assert found is not None
    assert found.tolist() == [True, True, False]


def image_of(code: bytes, machine: str, vaddr: int = 0x1000) -> ElfImage:
    """A file that is one executable segment."""
    segment = Segment(0, vaddr, len(code), len(code), 0x1000, True)
    return ElfImage("test", memoryview(code), True, False, machine, "ET_EXEC", [segment], [], None)


@pytest.mark.parametrize(
    ("code", "where"),
    [
        ("d0909090", 0x1000),  # FF D0 is call *%rax
        ("d0909090", 0x1001),
        ("10909090", 0x1001),  # FF 10 is call *(%rax)
        ("15909090909090", 0x1005),  # FF 15 is call *disp32(%rip)
        ("909090e8", 0x1003),  # call rel32 without its operand
        ("90ff15000000", 0x1001),
    ],
)
def test_x86_calls_need_all_their_bytes(code: str, where: int) -> None:
    """Before the first byte of a section and behind its last there is nothing, which is no opcode and no operand."""
    found = inside_calls(image_of(bytes.fromhex(code), "EM_X86_64"), np.array([where], np.uint64))
    assert found is not None
    assert not found[0]


def test_aarch64_calls_need_all_their_bytes() -> None:
    """A word of which the segment holds a part is no instruction."""
    for number, call in enumerate([0x94000010, 0x97FFFFF0, 0xD63F0100]):
        whole = call.to_bytes(4, "little")
        for cut in range(1, 4):
            image = image_of(whole[cut:], "EM_AARCH64", 0x1000 + cut)
            found = inside_calls(image, np.array([0x1000 + cut], np.uint64))
            assert found is not None
            assert not found[0], (number, cut)
    # A byte that is missing, taken for a number, would make an opcode of these.
    assert not aarch64_calls(np.array([[0] * LONGEST_CALL + [-1, 1, 0, 0x94] + [0] * 4]), np.array([0]))[0]

"""What evidence reads of code: instructions, places, targets of calls, and tail jumps."""

import re
import struct
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from symbolize.elf import ElfImage, read_symbols
from symbolize.evidence import code as reader
from symbolize.evidence.code import MAX_JUMPS, MAX_PADDING, CodePlace, DecodedCode
from symbolize.symbols import Binary
from tests.support.eh_frame import Frames, eh_frame
from tests.support.elf_writer import (
    AARCH64,
    ALLOC,
    EXEC,
    I386,
    NOBITS,
    RISCV,
    X86_64,
    Section,
    Segment,
    Symbol,
    elf_file,
)
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.needs import find

PROGRAMS = ["gcc-pie/ledger", "gcc-nopie-dwarf4/spectra", "gcc-split/stripped/ledger", "clang-pie/libresonance.so"]
TAILS = ["tails/gcc-tails/tails", "tails/clang-tails/tails", "tails/gcc-calls/tails"]
BEGIN = 0x1000
OPEN: list[Binary] = []
"""Binaries whose code is asked for: it does not keep them."""


class Listed(NamedTuple):
    """An instruction as objdump lists it; `target` is what it calls or jumps to directly, `is_indirect` whether it
    jumps to where a register or memory says."""

    vaddr: int
    size: int
    mnemonic: str
    target: int | None
    is_indirect: bool


@cache
def listing(path: Path) -> list[Listed]:
    """The code of a file as objdump reads it, which puts lone prefixes on lines of their own."""
    command = [find("objdump"), "-d", "-w", "--insn-width=15", path]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = []
    for vaddr, code, words in re.findall(r"^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*\t(.*)$", text, re.M):
        mnemonic, _, operands = re.sub(r"^(bnd|notrack|addr32|data16|cs|ds) ", "", words).partition(" ")
        is_branch = mnemonic.startswith(("j", "call"))
        target = re.match(r"\s*([0-9a-f]+)\b", operands) if is_branch else None
        size = len(code.split())
        found.append(
            Listed(int(vaddr, 16), size, mnemonic, int(target[1], 16) if target else None, is_branch and not target)
        )
    return found


def code_of(path: Path) -> DecodedCode:
    """The code of a file."""
    return made(path.read_bytes(), str(path))


def made(data: bytes, path: str = "made") -> DecodedCode:
    """The code of a file with these bytes."""
    OPEN.append(Binary([ElfImage.parse(memoryview(data), path)]))
    code = DecodedCode.of(OPEN[-1])
    assert code is not None
    return code


@pytest.fixture(params=[*PROGRAMS, *TAILS, pytest.param("i386", marks=pytest.mark.needs("gcc"))])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A program of the fixtures, or one for i386 that is compiled here."""
    if request.param != "i386":
        return BINARIES / request.param
    options = ["-m32", "-O2", "-fPIC", "-shared", "-nostdlib", "-fcf-protection=none"]
    subprocess.run(
        [find("gcc"), *options, "-o", tmp_path / "tails.so", FIXTURES / "src" / "tails" / "tails.c"], check=True
    )
    return tmp_path / "tails.so"


def column(values: Sequence[int]) -> np.ndarray:
    """Vaddrs."""
    return np.array(values, np.uint64)


@pytest.mark.needs("objdump")
def test_instructions_begin_where_objdump_says(program: Path) -> None:
    """Each byte of each function begins an instruction or does not."""
    code = code_of(program)
    starts = {each.vaddr for each in listing(program)}
    starts |= {each.vaddr + 1 for each in listing(program) if each.mnemonic == "lock"}
    asked = column(range(min(starts), max(starts)))
    places, found = code.places(asked), code.begins_instruction(asked)
    here = places == CodePlace.FUNCTION
    assert here.sum() > 200
    expected = [vaddr in starts for vaddr in asked[here].tolist()]
    differing = asked[here][found[here] != expected].tolist()
    assert [*map(hex, differing)] == []


@pytest.mark.needs("llvm-objdump-19")
@pytest.mark.parametrize("name", [*PROGRAMS, *TAILS, "aarch64/ledger", "aarch64/libresonance.so"])
def test_texts_are_those_of_llvm_objdump(name: str) -> None:
    """Each function is decoded without a gap, each instruction with vaddr, size and name that llvm-objdump gives it."""
    code = code_of(BINARIES / name)
    command = [find("llvm-objdump-19"), "-d", "-M", "intel", BINARIES / name]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^ *([0-9a-f]+): ((?:[0-9a-f]{2} ?)+|[0-9a-f]{8} ) *\t(.*)$", text, re.M)
    listed = {int(vaddr, 16): (len(data.replace(" ", "")) // 2, words.split()) for vaddr, data, words in lines}
    starts = [vaddr for vaddr in listed if code.places(column([vaddr]))[0] == CodePlace.FUNCTION]
    begins, ends = code.functions(column(starts))
    found = [
        each
        for begin, end in sorted({*zip(begins.tolist(), ends.tolist(), strict=True)})
        if begin < end
        for each in code.instructions(begin, end)
    ]
    assert len(found) > 200
    assert {each.vaddr for each in found} == {vaddr for vaddr, end in zip(starts, ends.tolist(), strict=True) if end}
    for each in found:
        size, words = listed[each.vaddr]
        assert each.size == size and each.text.split()[0] in words, (each, words)


@pytest.mark.needs("objdump")
def test_places_between_functions(program: Path) -> None:
    """What is in a linkage table is there; between functions are instructions that do nothing."""
    code = code_of(program)
    lines = listing(program)
    places = code.places(column([each.vaddr for each in lines]))
    for line, place in zip(lines, places.tolist(), strict=True):
        is_stub = any(s.vaddr <= line.vaddr < s.vaddr + s.size for s in code.image.sections if ".plt" in s.name)
        assert (place == CodePlace.STUB) == is_stub
        if place == CodePlace.PADDING:
            assert line.mnemonic in ("nop", "nopw", "nopl", "xchg", "cs", "data16", "int3", "lea", "hlt"), line


@pytest.mark.needs("objdump")
def test_targets_are_those_of_objdump(program: Path) -> None:
    """A call is found by its first byte, its last one, and the address that it returns to."""
    code = code_of(program)
    calls = [each for each in listing(program) if each.mnemonic.startswith("call") and each.target is not None]
    assert len(calls) >= 10
    for offset in (4, 5, 0):
        if not offset:  # where a call begins that another one returns to, that one is meant
            returns = {each.vaddr + each.size for each in calls}
            calls = [each for each in calls if each.vaddr not in returns]
        found = code.targets(column([each.vaddr + offset for each in calls])).tolist()
        assert found == [each.target for each in calls]
    others = [each for each in listing(program) if each.mnemonic.startswith("call") and each.target is None]
    found = code.targets(column([each.vaddr + each.size - 1 for each in others]))
    assert not found.any()


@pytest.mark.needs("objdump")
def test_tail_jumps_are_those_of_objdump(program: Path) -> None:
    """From the function that is called a few direct jumps may lead to others; where one goes by a pointer or into a
    linkage table, or jumps on further, it is not known where."""
    code = code_of(program)
    lines = listing(program)
    begins = sorted({int(each) for each in code.functions(column([line.vaddr for line in lines]))[0]} - {0})
    begin, end = code.functions(column(begins))
    bounds = dict(zip(begin.tolist(), end.tolist(), strict=True))
    stubs = [(s.vaddr, s.vaddr + s.size) for s in code.image.sections if ".plt" in s.name]
    functions = {each: [line for line in lines if each <= line.vaddr < bounds[each]] for each in bounds}
    owner = {line.vaddr: each for each, inside in functions.items() for line in inside}

    def leads(begin: int, wanted: int) -> bool | None:
        reached, waiting, is_open = {begin}, {begin}, False
        for _ in range(MAX_JUMPS + 1):
            if wanted in waiting:
                return True
            jumps = [line for each in waiting for line in functions[each] if line.mnemonic.startswith("j")]
            is_open |= any(line.is_indirect for line in jumps)
            targets = {line.target for line in jumps if line.target is not None}
            is_open |= any(low <= target < high for target in targets for low, high in stubs)
            waiting = {owner[target] for target in targets if target in owner} - reached
            reached |= waiting
        return None if is_open or waiting else False

    inside = [each for each in bounds if not any(low <= each < high for low, high in stubs)][:40]
    expected = {(one, other): leads(one, other) for one in inside for other in inside}
    assert {pair: code.leads_to(*pair) for pair in expected} == expected
    if program.parent.name.endswith("-tails"):
        assert sum(each is True for pair, each in expected.items() if pair[0] != pair[1]) > 10


class Made:
    """An x86 program of functions with symbols, and gaps."""

    @staticmethod
    def file(
        code: bytes,
        symbols: Sequence[tuple[int, int]],
        frames: Sequence[tuple[int, int]] = (),
        machine: int = X86_64,
        more: Sequence[Section] = (),
    ) -> bytes:
        """A file with `code` at BEGIN; begin and size of functions by symbols, and by call frame information."""
        sections = [Section(".text", code, flags=ALLOC | EXEC, address=BEGIN, alignment=16), *more]
        if frames:
            sections.append(Section(".eh_frame", eh_frame([Frames(frames)], 0x8000), flags=ALLOC, address=0x8000))
        known = [Symbol(f"f{at:x}", at, size) for at, size in symbols]
        is_64 = machine != I386
        found = elf_file(sections, [Segment(BEGIN, len(code), 5, 0x4000)], known, machine=machine, is_64=is_64)
        return found.ljust(0x4000, b"\0") + code


NOP, RET, JMP = b"\x90", b"\xc3", 0xE9


class TestPlaces:
    """Where addresses are in a file."""

    def test_gaps(self) -> None:
        """What fills the space between two functions is padding; else there may be code that nothing describes, as
        before the first and behind the last function."""
        low, high, far = BEGIN + 0x40, BEGIN + 0x50, BEGIN + 0x80
        text = bytearray(NOP * 0x200)
        text[0x70] = RET[0]
        code = made(Made.file(bytes(text), [(low, 8), (high, 16), (far, 16)]))
        asked = {
            BEGIN: CodePlace.UNKNOWN, low - 1: CodePlace.UNKNOWN,
            low: CodePlace.FUNCTION, low + 7: CodePlace.FUNCTION,
            low + 8: CodePlace.PADDING, high - 1: CodePlace.PADDING,
            high + 15: CodePlace.FUNCTION, high + 16: CodePlace.UNKNOWN, far - 1: CodePlace.UNKNOWN,
            far: CodePlace.FUNCTION, far + 16: CodePlace.UNKNOWN, BEGIN + 0x1FF: CodePlace.UNKNOWN,
            BEGIN + 0x200: CodePlace.OUTSIDE, BEGIN - 1: CodePlace.OUTSIDE,
            0: CodePlace.OUTSIDE, (1 << 64) - 1: CodePlace.OUTSIDE,
        }  # fmt: skip
        assert [CodePlace(each) for each in code.places(column([*asked]))] == [*asked.values()]
        begins = dict(zip(asked, code.begins_instruction(column([*asked])).tolist(), strict=True))
        answers = {CodePlace.UNKNOWN: -1, CodePlace.FUNCTION: 1, CodePlace.PADDING: 0, CodePlace.OUTSIDE: 0}
        assert begins == {vaddr: answers[place] for vaddr, place in asked.items()}

    @pytest.mark.parametrize(
        ("filling", "place"),
        [
            (NOP * 32, CodePlace.PADDING),
            (b"\xcc" * 32, CodePlace.PADDING),
            (bytes(32), CodePlace.PADDING),
            (bytes.fromhex("66662e0f1f840000000000") + NOP * 21, CodePlace.PADDING),  # a nop of 11 bytes
            (NOP * 31 + RET, CodePlace.UNKNOWN),
            (bytes(31) + RET, CodePlace.UNKNOWN),
            (NOP * (MAX_PADDING + 1), CodePlace.UNKNOWN),
        ],
    )
    def test_what_is_padding(self, filling: bytes, place: CodePlace) -> None:
        """Instructions that do nothing, traps and zeros; what has anything else, or is long, may be code."""
        code = made(Made.file(NOP * 16 + filling + NOP * 16, [(BEGIN, 16), (BEGIN + 16 + len(filling), 16)]))
        asked = column([BEGIN + 15, BEGIN + 16, BEGIN + 15 + len(filling), BEGIN + 16 + len(filling)])
        assert code.places(asked).tolist() == [CodePlace.FUNCTION, place, place, CodePlace.FUNCTION]

    def test_no_more_is_decoded_than_a_mapping_is_worth(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of what is behind nothing is known, neither functions nor padding, until the next mapping is judged."""
        monkeypatch.setattr(reader, "MAX_DECODED", 40)
        functions = [(BEGIN, 16), (BEGIN + 16, 16), (BEGIN + 32 + MAX_PADDING + 8, 16)]
        code = made(Made.file(NOP * 32 + NOP * (MAX_PADDING + 8) + NOP * 16, functions))
        asked = column([at for at, _ in functions])
        assert code.begins_instruction(asked).tolist() == [1, 1, -1]
        assert code.places(column([BEGIN + 40])).tolist() == [CodePlace.UNKNOWN]
        assert code.begins_instruction(asked).tolist() == [1, 1, -1]
        code.renew()
        assert code.begins_instruction(asked).tolist() == [1, 1, 1]
        assert code.places(column([BEGIN + 40])).tolist() == [CodePlace.UNKNOWN]

    def test_padding_is_looked_at_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What was too much for one mapping is not for the next."""
        monkeypatch.setattr(reader, "MAX_DECODED", 40)
        code = made(Made.file(NOP * 80, [(BEGIN, 32), (BEGIN + 64, 16)]))
        assert code.begins_instruction(column([BEGIN + 1])).tolist() == [1]
        for place in (CodePlace.UNKNOWN, CodePlace.PADDING):
            assert code.places(column([BEGIN + 40])).tolist() == [place]
            code.renew()

    def test_bytes_that_are_no_instruction(self) -> None:
        """They are shown as bytes, and what is behind them is decoded."""
        code = made(Made.file(b"\x06" + NOP + RET, [(BEGIN, 3)]))
        assert [each.text for each in code.instructions(BEGIN, BEGIN + 3)] == [".byte 0x06", "nop", "ret"]
        assert [each.vaddr for each in code.instructions(BEGIN, 1 << 63)][:3] == [BEGIN, BEGIN + 1, BEGIN + 2]

    def test_a_file_without_functions(self) -> None:
        """Of code without symbols and call frame information nothing is known."""
        code = made(Made.file(NOP * 0x40, []))
        assert code.begins_instruction(column([BEGIN, BEGIN + 0x3F, BEGIN + 0x40])).tolist() == [-1, -1, 0]
        assert code.functions(column([BEGIN]))[0].tolist() == [0]

    def test_call_frame_information_comes_first(self) -> None:
        """A function ends where call frame information says, and one that only that knows is one."""
        code = made(Made.file(NOP * 0x100, [(BEGIN, 0x20)], [(BEGIN, 0x30), (BEGIN + 0x40, 0x10)]))
        begin, end = code.functions(column([BEGIN + 0x1F, BEGIN + 0x2F, BEGIN + 0x30, BEGIN + 0x40]))
        assert begin.tolist() == [BEGIN, BEGIN, 0, BEGIN + 0x40]
        assert end.tolist() == [BEGIN + 0x30, BEGIN + 0x30, 0, BEGIN + 0x50]
        assert CodePlace(code.places(column([BEGIN + 0x38]))[0]) is CodePlace.PADDING

    def test_a_linkage_table(self) -> None:
        """Each address in a linkage table may begin an instruction: its entries are of many kinds."""
        plt = Section(".plt", NOP * 0x20, flags=ALLOC | EXEC, address=0x900)
        code = made(Made.file(NOP * 0x40, [(BEGIN, 0x40)], more=[plt]))
        assert [CodePlace(each) for each in code.places(column([0x8FF, 0x900, 0x91F, 0x920]))] == [
            CodePlace.OUTSIDE, CodePlace.STUB, CodePlace.STUB, CodePlace.OUTSIDE,
        ]  # fmt: skip
        assert code.begins_instruction(column([0x900, 0x905])).tolist() == [1, 1]
        assert code.leads_to(0x900, BEGIN) is None

    def test_behind_a_lock_prefix(self) -> None:
        """malloc of older C libraries jumps there where there is one thread (R374, instructions of a file)."""
        code = made(Made.file(bytes.fromhex("7401f00fb10f") + RET * 10, [(BEGIN, 16)]))
        assert code.begins_instruction(column(range(BEGIN, BEGIN + 7))).tolist() == [1, 0, 1, 1, 0, 0, 1]

    def test_inside_of_an_instruction(self) -> None:
        """Nothing begins in the middle of a long one, in 32 bits either; where they cannot be decoded nothing is
        known."""
        long = bytes.fromhex("b8 44332211") + RET + bytes.fromhex("06") + NOP  # mov, ret; no instruction in 64 bits
        for machine, rest in ((X86_64, [-1, -1]), (I386, [1, 1])):
            code = made(Made.file(long, [(BEGIN, 8)], machine=machine))
            assert code.begins_instruction(column(range(BEGIN, BEGIN + 8))).tolist() == [1, 0, 0, 0, 0, 1, *rest]

    def test_other_machines(self) -> None:
        """On AArch64 each address in a function may be one, and none between functions."""
        code = made(Made.file(bytes(0x40), [(BEGIN, 8), (BEGIN + 0x10, 16)], machine=AARCH64))
        assert not code.varies_in_length
        assert code.begins_instruction(column([BEGIN + 4, BEGIN + 8, BEGIN + 0x14])).tolist() == [1, 0, 1]

    @pytest.mark.parametrize("kind", ["debug file", "object file"])
    def test_no_code(self, kind: str) -> None:
        """There is none to judge by in a debug file, and in one that is not linked."""
        sections = [Section(".text", b"", NOBITS, ALLOC | EXEC, BEGIN, 0x40)]
        data = elf_file(sections, [Segment(BEGIN, 0x40, 5, 0x1000)], [Symbol("f", BEGIN, 0x40)])
        if kind == "object file":
            data = (BINARIES / "objects" / "x86_64.o").read_bytes()
        assert DecodedCode.of(Binary([ElfImage.parse(memoryview(data), "x")])) is None


def jump(at: int, target: int, opcode: int = JMP) -> bytes:
    """A jump or call at `at`."""
    return bytes([opcode]) + (target - at - 5).to_bytes(4, "little", signed=True)


class TestTailJumps:
    """Where a call may lead."""

    @pytest.mark.parametrize("length", range(7))
    def test_chains(self, length: int) -> None:
        """A chain of four jumps is followed; whether a longer one leads there is not known."""
        begins = [BEGIN + 0x20 * number for number in range(length + 1)]
        parts = [jump(each, each + 0x20) for each in begins[:-1]] + [RET]
        code = made(Made.file(b"".join(each.ljust(0x20, NOP) for each in parts), [(each, 0x20) for each in begins]))
        assert code.leads_to(BEGIN, begins[-1] + 7) is (True if length <= MAX_JUMPS else None)
        assert code.leads_to(begins[-1], BEGIN) is (length == 0)

    def test_loops(self) -> None:
        """Functions that jump to each other are looked into once."""
        code = made(
            Made.file(
                (jump(BEGIN, BEGIN + 0x20).ljust(0x20, NOP) + jump(BEGIN + 0x20, BEGIN)).ljust(0x60, NOP),
                [(BEGIN, 0x20), (BEGIN + 0x20, 0x20), (BEGIN + 0x40, 0x20)],
            )
        )
        assert code.leads_to(BEGIN, BEGIN + 0x20) is True
        assert code.leads_to(BEGIN, BEGIN + 0x40) is False

    @pytest.mark.parametrize("way", ["ffe0", "ff2500000000", "3effe0", "f2ffe0", "06"])
    def test_ways_that_are_not_decoded(self, way: str) -> None:
        """Jumps by a register or memory may lead anywhere, and so may what is no instruction."""
        functions = [(BEGIN, 0x20), (BEGIN + 0x20, 0x20)]
        code = made(Made.file(bytes.fromhex(way).ljust(0x40, NOP), functions))
        assert code.leads_to(BEGIN, BEGIN + 0x20) is None
        assert code.leads_to(BEGIN, BEGIN + 0x1F) is True

    def test_many_jumps_to_one_function(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is looked into once, however many there are."""
        count = 1000
        jumps = b"".join(b"\xe9" + struct.pack("<i", 5 * (count - 1 - each)) for each in range(count))
        end = BEGIN + 5 * count
        code = made(Made.file(jumps + RET * 16, [(BEGIN, 5 * count), (end, 16)]))
        asked: list[int] = []
        located = code._located
        monkeypatch.setattr(code, "_located", lambda vaddrs: asked.extend(vaddrs.tolist()) or located(vaddrs))
        assert code.leads_to(BEGIN, end + 20) is False
        assert code.leads_to(BEGIN, end) is True
        assert asked == [BEGIN, end] * 2

    def test_conditional_jumps(self) -> None:
        """They lead on too, and those within the function nowhere else."""
        body = bytes.fromhex("7402") + NOP * 2 + b"\x0f\x84" + (0x20 - 10).to_bytes(4, "little") + RET
        code = made(Made.file(body.ljust(0x60, NOP), [(BEGIN + each, 0x20) for each in (0, 0x20, 0x40)]))
        assert [code.leads_to(BEGIN, BEGIN + each) for each in (0, 0x20, 0x40)] == [True, True, False]

    def test_aarch64(self) -> None:
        """Direct branches lead on, `br` anywhere, `bl` and `ret` nowhere."""
        words = {
            0x14000008: [True, True, False],  # b
            0x54000100: [True, True, False],  # b.eq
            0xB4000100: [True, True, False],  # cbz x0
            0x36000100: [True, True, False],  # tbz w0, #0
            0xD61F0200: [True, None, None],  # br x16
            0x94000008: [True, False, False],  # bl
            0xD65F03C0: [True, False, False],  # ret
        }
        for word, expected in words.items():
            data = word.to_bytes(4, "little") + bytes.fromhex("1f2003d5") * 23
            code = made(Made.file(data, [(BEGIN + each, 0x20) for each in (0, 0x20, 0x40)], machine=AARCH64))
            assert [code.leads_to(BEGIN, BEGIN + each) for each in (0, 0x20, 0x40)] == expected, hex(word)


def test_what_looks_like_a_call() -> None:
    """The opcode may be a byte of another instruction: what leads to no code is no call."""
    code = made(Made.file(bytes.fromhex("89e8 4889c7 90 90").ljust(0x40, NOP), [(BEGIN, 0x40)]))
    assert code.targets(column([BEGIN + 1, BEGIN + 5, BEGIN + 6])).tolist() == [0, 0, 0]
    both = made(Made.file(NOP * 0x20 + bytes.fromhex("e8e8ffffffff").ljust(0x20, NOP), [(BEGIN, 0x40)]))
    assert both.targets(column([BEGIN + 0x25])).tolist() == [BEGIN + 0x25]  # its last byte, not where one returns to


def test_targets_of_aarch64() -> None:
    """A `bl` is found by each of its bytes and the address that it returns to, forwards and backwards."""
    words = [0xD503201F, 0x94000002, 0xD503201F, 0x97FFFFFE, 0xD63F0000, 0xD503201F]
    data = b"".join(word.to_bytes(4, "little") for word in words)
    code = made(Made.file(data, [(BEGIN, len(data))], machine=AARCH64))
    for offset in (0, 3, 4):
        found = code.targets(column([BEGIN + 4 + offset, BEGIN + 12 + offset])).tolist()
        assert found == [BEGIN + 12, BEGIN + 4]
    assert code.targets(column([BEGIN, BEGIN + 23])).tolist() == [0, 0]
    other = made(Made.file(data, [(BEGIN, len(data))], machine=RISCV))
    assert other.targets(column([BEGIN + 4, BEGIN + 12])).tolist() == [0, 0]


def test_the_fixtures_of_aarch64_call_functions() -> None:
    """Nearly all direct calls of a real program lead to where a function or an entry of the linkage table begins."""
    path = BINARIES / "aarch64" / "ledger"
    code = code_of(path)
    begin, end = code.image.code_ranges
    vaddrs = np.concatenate([np.arange(*each, 4, dtype=np.uint64) for each in zip(begin, end, strict=True)])
    targets = code.targets(vaddrs)
    calls = targets[targets != 0]
    symbols = read_symbols(code.image, ".symtab")
    assert symbols is not None and len(calls) > 100
    places = code.places(calls)
    assert (np.isin(calls, symbols.vaddr) | (places == CodePlace.STUB)).all()

"""What kind of address goes where, from the records of a profile to the frames of a binary."""

import ast
import io
from pathlib import Path

import pytest

import symbolize
from symbolize import Reason, Symbolizer
from symbolize.formats import encode
from tests.support import gperftools_writer
from tests.support.dwarf_writer import function
from tests.support.elf_writer import AARCH64, ALLOC, EXEC, RISCV, X86_64, Section, Segment, Symbol, elf_file, text
from tests.support.line_writer import Lines, sequence
from tests.support.lookup import frames_at, image_of, names_at
from tests.support.messages import profile_pb2
from tests.support.programs import unit

PACKAGE = Path(symbolize.__file__).parent


HEADERS = 64 + 56
"""Bytes of the file's header and one program header."""
CALLS = {X86_64: b"\xe8\0\0\0\0", AARCH64: b"\0\0\0\x94"}
"""A call, where the machine's are known."""


def code(machine: int, *returns: int) -> bytes:
    """Code with a call before each of some offsets."""
    data = bytearray(0x20)
    for end in returns:
        call = CALLS.get(machine, b"")
        if end <= len(data):
            for at, byte in enumerate(call, end - len(call)):
                data[at] |= byte
    return bytes(data)


def callers(path: Path, machine: int, *stack: int) -> list[list[str]]:
    """The names of the frames of a gperftools stack in a program of four functions of eight bytes."""
    text = code(machine, *(address - 0x400000 for address in stack[1:]))
    padding = Section(".padding", bytes(0x1000 - HEADERS))
    sections = [padding, Section(".text", text, flags=ALLOC | EXEC, address=0x1000)]
    symbols = [Symbol(name, 0x1000 + 8 * i, 8) for i, name in enumerate(("leaf", "caller", "next", "main"))]
    (path / "program").write_bytes(elf_file(sections, [Segment(0x1000, 0x20, 5, 0x1000)], symbols, machine=machine))
    maps = b"00400000-00401000 r-xp 00001000 08:01 11 /opt/program\n"
    data = gperftools_writer.profile([(1, list(stack))], maps)
    with Symbolizer([path]) as symbolizer:
        result = symbolizer.symbolize(symbolize.load(io.BytesIO(data)))
    message = profile_pb2.Profile.FromString(encode(result.profile))
    functions = {f.id: message.string_table[f.name].decode() for f in message.function}
    locations = {place.id: place for place in message.location}
    (sample,) = message.sample
    return [[functions[line.function_id] for line in locations[i].line] for i in sample.location_id]


@pytest.mark.parametrize("machine", [X86_64, AARCH64, RISCV])
def test_call_at_the_end_of_a_function(machine: int, tmp_path: Path) -> None:
    """A return address behind the last instruction of a function names that function, the address of the leaf is
    taken as it is, and one byte back lies in the call on every processor (rules R129–R132)."""
    assert callers(tmp_path, machine, 0x400000, 0x400010, 0x40001C) == [["leaf"], ["caller"], ["main"]]
    assert callers(tmp_path, machine, 0x400010, 0x400018, 0x40001C) == [["next"], ["next"], ["main"]]


LOW, FAR, KERNEL = 0x1000, 0x7F12_3456_7000, 0xFFFF_FFFF_8000_0000


@pytest.mark.parametrize("base", [LOW, FAR, KERNEL, (1 << 64) - 0x2000])
def test_any_64_bits(base: int) -> None:
    """Addresses keep all their bits, wherever the code lies (rule R135)."""
    f = function("f", base, 0x10)
    lines = Lines(sequence((base, 7), (base + 8, 8), end=base + 0x10))
    image = image_of([unit(f, lines=lines)], [text(base)], [Symbol("g", base + 0x20, 8)])
    frames = frames_at(image, base, base + 8, base + 0x20)
    assert [(frame[0].name, frame[0].line) for frame in frames] == [("f", 7), ("f", 8), ("g", 0)]
    assert names_at(image, *sorted((base ^ 1 << 33, base ^ 1 << 40))) == [[], []]


def test_the_last_address_of_all() -> None:
    """Nothing covers 2⁶⁴-1, which is asked for like any other address."""
    image = image_of([unit(function("f", LOW, 0x10))])
    assert names_at(image, LOW, (1 << 64) - 1) == [["f"], []]


def test_spans_beyond_32_bits() -> None:
    """Code that lies more than 4 GiB apart in one file, unit, function and sequence of rows (rule R135)."""
    places = [LOW, LOW + (1 << 32), FAR, KERNEL]
    children = [function(f"f{i}", place, 0x10) for i, place in enumerate(places)]
    rows = [row for i, place in enumerate(places) for row in sequence((place, i + 1), end=place + 0x10)]
    image = image_of([unit(*children, lines=Lines(rows))], [text(place, name=f".text.{place}") for place in places])
    frames = frames_at(image, *places)
    assert [(frame[0].name, frame[0].line) for frame in frames] == [(f"f{i}", i + 1) for i in range(4)]
    wide = image_of([unit(function("wide", LOW, 0x2_0000_0000))], [text(LOW, 0x2_0000_0000)])
    assert names_at(wide, LOW - 1, LOW + 0x1_0000_0001, LOW + 0x1_FFFF_FFFF) == [[], ["wide"], ["wide"]]


@pytest.mark.parametrize("room", ["symbols", "elf", "match.py"])
def test_the_kind_of_an_address_is_in_its_name(room: str) -> None:
    """Where vaddrs, file offsets and runtime addresses could meet, none is called just an address (rule R136).

    `match.py` is where runtime addresses, `addresses`, become vaddrs; behind it there are none.
    """
    path = PACKAGE / room
    found = []
    for file in [path] if path.is_file() else path.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                names = {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
                vague = {"addr", "addrs", "pc", "ip"} | (set() if path.is_file() else {"address", "addresses"})
                found += [f"{file.name}: {node.name}({name})" for name in names & vague]
    assert found == []


def test_every_miss_has_a_reason(tmp_path: Path) -> None:
    """A location without names keeps its address and has a reason, each its own (rule R137)."""
    assert callers(tmp_path, X86_64, 0x400000, 0x400081) == [["leaf"], []]
    data = gperftools_writer.profile(
        [(1, [0x400000]), (1, [0x400081]), (1, [0x900000])],
        b"00400000-00401000 r-xp 00001000 08:01 11 /opt/program\n00900000-00901000 r-xp 0 08:01 1 /opt/gone\n",
    )
    with Symbolizer([tmp_path]) as symbolizer:
        result = symbolizer.symbolize(symbolize.load(io.BytesIO(data)))
    assert result.profile.locations.address.tolist() == [0x400000, 0x400081, 0x900000]
    missed = {reason: count for row in result.report.mappings for reason, count, _ in row.misses}
    assert missed == {Reason.OUTSIDE_SEGMENTS: 1, Reason.NOT_FOUND: 1}

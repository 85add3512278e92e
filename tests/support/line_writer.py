"""Builds line programs (DWARF 5 §6.2) with their tables, operation by operation or row by row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from elftools.dwarf.enums import ENUM_DW_FORM

from tests.support.elf_writer import Strings

FIXED = {
    "data1": 1,
    "flag": 1,
    "ref1": 1,
    "strx1": 1,
    "addrx1": 1,
    "data2": 2,
    "ref2": 2,
    "strx2": 2,
    "addrx2": 2,
    "strx3": 3,
    "addrx3": 3,
    "data4": 4,
    "ref4": 4,
    "strx4": 4,
    "addrx4": 4,
    "ref_sup4": 4,
    "data8": 8,
    "ref8": 8,
    "ref_sig8": 8,
    "ref_sup8": 8,
}


@dataclass(frozen=True)
class Format:
    """How a unit is written."""

    version: int = 5
    big_endian: bool = False
    address_size: int = 8
    dwarf64: bool = False
    indirect: bool = False
    """Write every attribute through the indirect form (rule R68)."""

    @property
    def offset_size(self) -> int:
        """The size of offsets into sections."""
        return 8 if self.dwarf64 else 4

    def uint(self, value: int, size: int) -> bytes:
        """An integer of a fixed size; what does not fit is cut off."""
        return (value % (1 << 8 * size)).to_bytes(size, "big" if self.big_endian else "little")

    def length(self, size: int) -> bytes:
        """The length field of a unit of `size` bytes."""
        return b"\xff" * 4 + self.uint(size, 8) if self.dwarf64 else self.uint(size, 4)


def uleb(value: int, width: int = 0) -> bytes:
    """An unsigned LEB128 number, padded to `width` bytes."""
    result = bytearray()
    while value >= 0x80 or len(result) + 1 < width:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])


def sleb(value: int) -> bytes:
    """A signed LEB128 number."""
    result = bytearray()
    while not -64 <= value < 64:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value & 0x7F])


def number(names: dict[str, int], prefix: str, name: str | int) -> int:
    """The number of a tag, attribute or form."""
    return name if isinstance(name, int) else names[prefix + name]


@dataclass
class Lines:
    """A line program. `operations` are made by the functions below; `files` are (name, directory, ...).

    `directory_format` and `file_format` are the DWARF 5 pairs of content type and form.
    """

    operations: Sequence[bytes | Callable[["Lines"], bytes]] = ()
    files: Sequence[tuple[Any, ...]] = (("a.c", 0), ("a.c", 0))
    directories: Sequence[str] = ("/src",)
    version: int | None = None
    min_inst_length: int = 1
    max_ops: int = 1
    line_base: int = -5
    line_range: int = 14
    opcode_base: int = 13
    lengths: Sequence[int] = (0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1)
    directory_format: Sequence[tuple[int, str]] = ((1, "string"),)
    file_format: Sequence[tuple[int, str]] = ((1, "string"), (2, "udata"))
    format: Format = field(default_factory=Format)


# Operations of line programs.


def extended(code: int, operand: bytes = b"", length: int | None = None) -> bytes:
    """An extended opcode; `length` contradicts its operand."""
    return b"\0" + uleb(len(operand) + 1 if length is None else length) + bytes([code]) + operand


def set_address(address: int) -> Callable[[Lines], bytes]:
    """DW_LNE_set_address."""
    return lambda lines: extended(2, lines.format.uint(address, lines.format.address_size))


def special(advance: int, line: int) -> Callable[[Lines], bytes]:
    """A special opcode that advances the operation by `advance` and the line by `line`."""
    return lambda lines: bytes([lines.opcode_base + advance * lines.line_range + line - lines.line_base])


def fixed_advance_pc(advance: int) -> Callable[[Lines], bytes]:
    """DW_LNS_fixed_advance_pc."""
    return lambda lines: b"\x09" + lines.format.uint(advance, 2)


copy, const_add_pc, negate_stmt = b"\x01", b"\x08", b"\x06"
end_sequence = extended(1)


def advance_pc(advance: int) -> bytes:
    """DW_LNS_advance_pc."""
    return b"\x02" + uleb(advance)


def advance_line(advance: int) -> bytes:
    """DW_LNS_advance_line."""
    return b"\x03" + sleb(advance)


def set_file(file: int) -> bytes:
    """DW_LNS_set_file."""
    return b"\x04" + uleb(file)


def set_column(column: int) -> bytes:
    """DW_LNS_set_column."""
    return b"\x05" + uleb(column)


def sequence(*rows: tuple[int, ...], end: int) -> list[bytes | Callable[[Lines], bytes]]:
    """A sequence of rows (address, line, file, column), the last two 1 and 0 if left out, up to `end`."""
    operations: list[bytes | Callable[[Lines], bytes]] = []
    address, line = -1, 1
    for row in rows:
        step = row[0] - address
        operations.append(set_address(row[0]) if address < 0 or step < 0 else advance_pc(step))
        operations += [advance_line(row[1] - line), set_file(row[2] if len(row) > 2 else 1)]
        operations += [set_column(row[3] if len(row) > 3 else 0), copy]
        address, line = row[:2]
    return [*operations, set_address(end) if end < address else advance_pc(end - address), end_sequence]


def line_program(lines: Lines, unit_format: Format, strings: dict[str, Strings]) -> bytes:
    """A whole line program; `strings` are the tables by the names of the forms that point into them."""
    fmt = lines.format = unit_format
    version = fmt.version if lines.version is None else lines.version
    tail = bytes([lines.min_inst_length]) + (bytes([lines.max_ops]) if version >= 4 else b"")
    tail += bytes([1, lines.line_base & 0xFF, lines.line_range, lines.opcode_base, *lines.lengths])
    if version >= 5:
        tail += entry_table(strings, fmt, lines.directory_format, [(name,) for name in lines.directories])
        tail += entry_table(strings, fmt, lines.file_format, lines.files)
    else:
        tail += b"".join(name.encode() + b"\0" for name in lines.directories) + b"\0"
        tail += b"".join(name.encode() + b"\0" + uleb(directory) + b"\0\0" for name, directory in lines.files) + b"\0"
    program = b"".join(op if isinstance(op, bytes) else op(lines) for op in lines.operations)
    head = fmt.uint(version, 2) + (bytes([fmt.address_size, 0]) if version >= 5 else b"")
    head += fmt.uint(len(tail), fmt.offset_size)
    return fmt.length(len(head) + len(tail) + len(program)) + head + tail + program


def entry_table(
    strings: dict[str, Strings], fmt: Format, formats: Sequence[tuple[int, str]], entries: Sequence[tuple[Any, ...]]
) -> bytes:
    """A DWARF 5 table of directories or files; strings are bytes of their own or offsets."""
    result = bytes([len(formats)]) + b"".join(
        uleb(kind) + uleb(number(ENUM_DW_FORM, "DW_FORM_", form)) for kind, form in formats
    )
    result += uleb(len(entries))
    for entry in entries:
        for (_, form), value in zip(formats, entry, strict=True):
            if isinstance(value, bytes):
                result += value
            elif form == "string":
                result += value.encode() + b"\0"
            elif form in strings:
                result += fmt.uint(strings[form].add(value), fmt.offset_size)
            else:
                result += fmt.uint(value, FIXED[form]) if form in FIXED else uleb(value)
    return result

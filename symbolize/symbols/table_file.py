"""The file of a symbol table: a header, then the table's columns as aligned little-endian arrays, to be mapped.

bytes 0-7     magic
bytes 8-11    FORMAT
bytes 12-15   size of the header
bytes 16-23   size of the file
bytes 24-27   CRC-32 of everything behind byte 31
from byte 32  header, JSON: facts about the table, and the position of each column
then          the columns, each at a multiple of 64
"""

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core.errors import ChangedFile
from symbolize.core.folded_code import FoldingEvidence
from symbolize.core.mapped import MappedFile
from symbolize.symbols.table import SymbolTable

FORMAT = 5
"""Part of the name of the cache's folder: raised when the layout changes, or what is decoded for the same file."""

MAGIC = b"\x89symtab\n"
PREFIX = struct.Struct("<8sIIQI4x")
ALIGNMENT = 64
MAX_HEADER = 1 << 24

NO_COLUMNS = ("has_names", "problems", "file_size", "file")
COLUMNS = [column.name for column in fields(SymbolTable) if column.name not in NO_COLUMNS]
TYPES = {
    "|u1": "ranges text folded_evidence",
    "<u2": "node_call_column",
    "<i4": "node_parent node_function node_call_file function_decl_file call_caller call_callee",
    "<u4": "node_call_line function_linkage function_name function_decl_line file_path folded_name folded_path "
    "folded_line call_linkage call_name call_path call_line text_offset",
    "<u8": "block_start block_offset folded_begin folded_end folded_offset call_return doubtful_begin doubtful_end "
    "text_offset",
}
"""The columns of each type; `text_offset` is of either size."""


class DamagedTable(Exception):
    """A file is no symbol table, or not the one that was written."""


class TableFacts(NamedTuple):
    """The build id of a binary and the identities of the files of its table; `companions` are path, size and time of
    modification of further files, `content` is a hash of the files themselves, of a table that machines share."""

    build_id: str
    sources: list[dict[str, Any]]
    companions: Sequence[tuple[str, int, int]] = ()
    content: str = ""


def write_table(file: BinaryIO, table: SymbolTable, facts: TableFacts) -> int:
    """Write `table` to an empty file; its size in bytes. Raises OSError."""
    arrays = {name: np.ascontiguousarray(getattr(table, name)) for name in COLUMNS}
    columns: dict[str, tuple[str, int, int]] = {}
    header = b""
    for _ in range(2):  # offsets of columns depend on the size of the header, which is final in the second round
        offset = aligned(PREFIX.size + len(header))
        for name, array in arrays.items():
            columns[name] = array.dtype.newbyteorder("<").str, offset, len(array)
            offset = aligned(offset + array.nbytes)
        text = json.dumps(
            facts._asdict() | {"has_names": table.has_names, "problems": table.problems, "columns": columns}
        )
        header = text.encode().ljust(len(header) or len(text) + 16 * len(arrays))
    file.write(bytes(PREFIX.size))
    file.write(header)
    check = crc32(header)
    position = PREFIX.size + len(header)
    for name, array in arrays.items():
        padding = bytes(columns[name][1] - position)
        column = array.astype(array.dtype.newbyteorder("<"), copy=False).data.cast("B") if len(array) else b""
        for part in (padding, column):
            file.write(part)
            check = crc32(part, check)
        position = columns[name][1] + array.nbytes
    file.seek(0)
    file.write(PREFIX.pack(MAGIC, FORMAT, len(header), position, check))
    file.flush()
    return position


def read_table(path: str) -> tuple[SymbolTable, TableFacts]:
    """Map the table file `path`. Raises DamagedTable, with what is wrong, or OSError."""
    try:
        file = MappedFile(path)
        try:
            table, facts = parse_table(file.data)
        finally:
            file.check()
    except ChangedFile as error:
        raise DamagedTable(error.problem) from error
    table.file = file
    return table, facts


def parse_table(data: memoryview) -> tuple[SymbolTable, TableFacts]:
    """The table in the bytes of a table file. Raises DamagedTable."""
    if len(data) < PREFIX.size:
        raise DamagedTable("is cut off")
    magic, version, header_size, size, check = PREFIX.unpack(data[: PREFIX.size])
    if magic != MAGIC or version != FORMAT:
        raise DamagedTable("is no symbol table of this version")
    if size != len(data) or header_size > min(MAX_HEADER, size - PREFIX.size):
        raise DamagedTable(f"has {len(data)} bytes, not the {size} that were written")
    if crc32(data[PREFIX.size :]) != check:
        raise DamagedTable("does not agree with its checksum")
    try:
        header = json.loads(bytes(data[PREFIX.size : PREFIX.size + header_size]))
        columns: dict[str, Any] = {name: column(data, header["columns"], name) for name in COLUMNS}
        facts = TableFacts(str(header["build_id"]), [source_of(source) for source in header["sources"]])
        companions = [(str(p), int(s), int(t)) for p, s, t in header["companions"]]
        facts = facts._replace(companions=companions, content=str(header.get("content", "")))
        problems = [str(problem) for problem in header["problems"]]
        table = SymbolTable(**columns, has_names=bool(header["has_names"]), problems=problems, file_size=size)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise DamagedTable(f"has an unreadable header ({error})") from error
    if not is_sound(table):
        raise DamagedTable("has columns that do not agree with one another")
    return table, facts


def source_of(source: Mapping[str, Any]) -> dict[str, Any]:
    """The identity of a file, out of a header. Raises one of several exceptions if it is none."""
    return {"path": str(source["path"])} | {name: int(source[name]) for name in ("size", "modified_ns", "check")}


def is_sound(table: SymbolTable) -> bool:
    """Whether rows and offsets of each column are within the others, so that no lookup leaves a forged table."""
    nodes, functions, files = len(table.node_parent), len(table.function_name), len(table.file_path)
    strings = len(table.text_offset) - 1
    lengths = (
        {len(table.block_start), len(table.block_offset) - 1},
        {nodes, len(table.node_function), len(table.node_call_file), len(table.node_call_line)},
        {nodes, len(table.node_call_column)},
        {functions, len(table.function_linkage), len(table.function_decl_file), len(table.function_decl_line)},
        {len(table.folded_begin), len(table.folded_end), len(table.folded_offset) - 1, len(table.folded_evidence)},
        {len(table.folded_name), len(table.folded_path), len(table.folded_line)},
        {len(table.call_return), len(table.call_caller), len(table.call_callee)},
        {len(table.call_linkage), len(table.call_name), len(table.call_path), len(table.call_line)},
        {len(table.doubtful_begin), len(table.doubtful_end)},
    )
    texts = [table.function_linkage, table.function_name, table.file_path, table.folded_name, table.folded_path]
    texts += [table.call_linkage, table.call_name, table.call_path]
    return (
        all(len(equal) == 1 for equal in lengths)
        and ascends(table.block_start)
        and strings > 0
        and divides(table.block_offset, len(table.ranges))
        and divides(table.text_offset, len(table.text))
        and divides(table.folded_offset, len(table.folded_name))
        and bool((table.node_parent < np.arange(nodes, dtype=np.int32)).all())
        and all(int(column.max(initial=0)) < strings for column in texts)
        and rows_within(table.node_parent, -1, nodes)
        and rows_within(table.node_function, 0, functions)
        and rows_within(table.node_call_file, -1, files)
        and rows_within(table.function_decl_file, -1, files)
        and rows_within(table.folded_evidence, FoldingEvidence.NAMES, FoldingEvidence.LINES + 1)
        and ascends(table.call_return)
        and rows_within(table.call_caller, 0, len(table.call_name))
        and rows_within(table.call_callee, -1, len(table.call_name))
    )


def ascends(column: NDArray[Any]) -> bool:
    """Whether no value is less than the one before it."""
    return bool((column[1:] >= column[:-1]).all())


def divides(offsets: NDArray[Any], size: int) -> bool:
    """Whether `offsets` cut `size` elements into runs."""
    return ascends(offsets) and (int(offsets[0]), int(offsets[-1])) == (0, size)


def rows_within(rows: NDArray[Any], first: int, count: int) -> bool:
    """Whether all `rows` are at least `first` and less than `count`."""
    return not len(rows) or (int(rows.min()) >= first and int(rows.max()) < count)


def column(data: memoryview, columns: Mapping[str, tuple[str, int, int]], name: str) -> NDArray[Any]:
    """One column of a mapped table."""
    kind, offset, count = columns[name]
    if name not in TYPES.get(kind, "").split():
        raise ValueError(f"column {name} is of type {kind}")
    if offset % ALIGNMENT:
        raise ValueError(f"column {name} is not aligned")
    return np.frombuffer(data, np.dtype(kind), count, offset) if count else np.zeros(0, kind)


def aligned(offset: int) -> int:
    """The next multiple of ALIGNMENT."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def crc32(data: bytes | memoryview, value: int = 0) -> int:
    """The CRC-32 of `data`, continued from `value`, by the fastest library there is."""
    try:
        from isal.isal_zlib import crc32 as fast
    except ImportError:
        return zlib.crc32(data, value)
    return int(fast(data, value))

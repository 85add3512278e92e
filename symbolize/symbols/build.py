"""Builds the symbol table of a binary from the files that share its build id."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from symbolize.arrays import distinct, distinct_inverse, pair, unpair
from symbolize.dwarf.decode import Decoded, Dwarf
from symbolize.dwarf.qualify import resolve_functions
from symbolize.dwarf.sections import DebugSections
from symbolize.elf import ElfImage, Symbols, read_symbols
from symbolize.parallel import together
from symbolize.symbols.elf_symbols import SymbolLayer, symbol_layer
from symbolize.symbols.naming import FunctionNames
from symbolize.symbols.table import SymbolTable, layer_at

UInt64 = NDArray[np.uint64]
Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]

SECTIONS = ("info", "abbrev", "str", "line", "line_str", "ranges", "rnglists", "addr", "str_offsets")


class Binary:
    """A binary, opened: the files that share its build id, what was decoded of them, and their symbol tables.

    The first image with DWARF gives functions and lines; the symbol tables of all are united (rules R113,
    R142). Units and symbols are read once, however many tables are built.
    """

    def __init__(self, images: Sequence[ElfImage]) -> None:
        self.images = sorted(images, key=source_rank)
        self._symbols: SymbolLayer | None = None
        self._dwarf: Dwarf | None = None

    def table(self, vaddrs: UInt64 | None = None) -> SymbolTable:
        """The symbol table.

        With `vaddrs` (ascending) only the units that may hold one of them are decoded, and the table answers
        for these addresses alone.
        """
        if self._symbols is None:
            debug = next((image for image in self.images if has_dwarf(image)), None)
            if debug is not None:
                self._dwarf = Dwarf(debug_sections(debug), debug.code_ranges)
            self._symbols = symbol_layer([table for image in self.images for table in symbol_tables(image)])
        decoded = Decoded.nothing()
        if self._dwarf is not None:
            decoded = decode_for(self._dwarf, vaddrs)
        table = assemble(self._dwarf, decoded, self._symbols, vaddrs)
        table.problems = [f"{image.path}: {problem}" for image in self.images for problem in image.problems]
        if self._dwarf is not None:
            table.problems += self._dwarf.problems
        return table

    def doubtful(self, vaddrs: UInt64) -> NDArray[np.bool_]:
        """Which of `vaddrs` (ascending) may lack a name because debug information could not be read."""
        if any(image.problems for image in self.images):
            return np.ones(len(vaddrs), np.bool_)
        return self._dwarf.doubtful(vaddrs) if self._dwarf is not None else np.zeros(len(vaddrs), np.bool_)

    @property
    def is_stripped(self) -> bool:
        """Whether the files have neither DWARF nor .symtab: exported symbols at most."""
        return source_rank(self.images[0]) > 1

    def close(self) -> None:
        """Close the files."""
        self._dwarf = self._symbols = None
        for image in self.images:
            image.close()


def decode_for(dwarf: Dwarf, vaddrs: UInt64 | None) -> Decoded:
    """Decode the units that may hold one of `vaddrs` (ascending), or all.

    Where no unit that claims an address has a function there, the claim may be wrong, and the units that claim
    nothing are decoded too (rule R61).
    """
    if vaddrs is None:
        return dwarf.decode()
    units = dwarf.units_for(vaddrs)
    decoded = dwarf.decode(units)
    if (layer_at(decoded.segment_start, decoded.segment_node, vaddrs) < 0).any():
        unclaiming = dwarf.unclaiming_units()
        others = dwarf.decode(unclaiming)
        if len(others.segment_start) or len(others.row_start):
            decoded = dwarf.decode(distinct(np.concatenate((units, unclaiming))))
    return decoded


def build_table(images: Sequence[ElfImage], vaddrs: UInt64 | None = None) -> SymbolTable:
    """The symbol table of the binary whose files are `images`; see `Binary.table`."""
    return Binary(images).table(vaddrs)


def symbol_tables(image: ElfImage) -> Iterator[Symbols]:
    """The symbol tables of a file; of .dynsym what .symtab has no symbol at the address of (rule R113)."""
    full = read_symbols(image, ".symtab")
    if full is not None and len(full):
        yield full
    dynamic = read_symbols(image, ".dynsym")
    if dynamic is not None and full is not None and len(full):
        known = np.sort(full.vaddr)
        place = np.minimum(np.searchsorted(known, dynamic.vaddr), len(known) - 1)
        dynamic = dynamic.take(known[place] != dynamic.vaddr)
    if dynamic is not None and len(dynamic):
        yield dynamic


def source_rank(image: ElfImage) -> int:
    """DWARF beats .symtab beats .dynsym: 0 to 3, the lower the better."""
    if has_dwarf(image):
        return 0
    names = {section.name for section in image.sections if section.type != "SHT_NOBITS"}
    return 1 if ".symtab" in names else 2 if ".dynsym" in names else 3


def has_dwarf(image: ElfImage) -> bool:
    """Whether a file has debug information that can describe code."""
    return any(
        section.name in (".debug_info", ".zdebug_info") and section.type != "SHT_NOBITS" for section in image.sections
    )


def debug_sections(image: ElfImage) -> DebugSections:
    """The debug sections that lookups need, decompressed (rule R100)."""

    def contents(names: Sequence[str]) -> dict[str, bytes | memoryview]:
        return {name: image.contents(f".debug_{name}") or b"" for name in names}

    # .debug_info is about as large as all others together.
    largest, others = together(lambda: contents(SECTIONS[:1]), lambda: contents(SECTIONS[1:]))
    return DebugSections(**largest, **others, big_endian=image.big_endian)


class Files:
    """Paths by index, each once."""

    def __init__(self) -> None:
        self.paths: list[bytes] = []
        self._indices: dict[bytes, int] = {}

    def attribute(self, dwarf: Dwarf, unit: Int64, index: NDArray[np.uint32]) -> Int32:
        """Path indices of the values `index` of file attributes of DIEs in `unit`; -1 for no file (rule R23)."""
        return self._resolve(dwarf, unit, index.astype(np.int64), False)

    def of_rows(self, dwarf: Dwarf, decoded: Decoded, rows: Int64) -> Int32:
        """Path indices of the files of line rows."""
        return self._resolve(dwarf, decoded.row_unit[rows], decoded.row_file[rows].astype(np.int64), True)

    def of_symbols(self, paths: list[bytes]) -> Int32:
        """Path indices of `paths`."""
        return np.array([self._add(path) for path in paths], np.int32)

    def _resolve(self, dwarf: Dwarf, unit: Int64, index: Int64, is_row: bool) -> Int32:
        keys, inverse = distinct_inverse(pair(unit, index))
        resolved = [
            self._add(dwarf.files.path(u, i & 0xFFFFFFFF, is_row)) if u >= 0 else -1
            for u, i in zip(*(column.tolist() for column in unpair(keys)), strict=True)
        ]
        return np.array(resolved, np.int32)[inverse]

    def _add(self, path: bytes) -> int:
        if not path:
            return -1
        if path not in self._indices:
            self._indices[path] = len(self.paths)
            self.paths.append(path)
        return self._indices[path]


def assemble(dwarf: Dwarf | None, decoded: Decoded, symbols: SymbolLayer, vaddrs: UInt64 | None) -> SymbolTable:
    """Put the three layers together and name the functions that can be asked for."""
    files = Files()
    functions = FunctionNames([], [], np.zeros(0, np.int32), np.zeros(0, np.uint32))
    node_function = np.full(len(decoded.node_die), -1, np.int64)
    call_file = np.full(len(decoded.node_die), -1, np.int32)
    row_file = np.full(len(decoded.row_file), -1, np.int32)
    if dwarf is not None:
        nodes, rows = wanted(decoded, vaddrs)
        functions, node_function[nodes] = name_functions(dwarf, decoded, nodes, files)
        call_file[nodes] = files.attribute(dwarf, decoded.node_unit[nodes], decoded.node_call_file[nodes])
        row_file[rows] = files.of_rows(dwarf, decoded, rows)
    return SymbolTable(
        segment_start=decoded.segment_start,
        segment_node=decoded.segment_node,
        node_parent=decoded.node_parent,
        node_function=node_function,
        node_entry=decoded.node_entry,
        node_call_file=call_file,
        node_call_line=decoded.node_call_line,
        node_call_column=decoded.node_call_column,
        row_start=decoded.row_start,
        row=decoded.row,
        row_file=row_file,
        row_line=decoded.row_line,
        row_column=decoded.row_column,
        symbol_start=symbols.start,
        symbol=symbols.symbol,
        symbol_vaddr=symbols.vaddr,
        symbol_sized=symbols.sized,
        symbol_names=symbols.names,
        symbol_file=files.of_symbols(symbols.files)[symbols.file],
        functions=functions,
        files=files.paths,
        has_names=dwarf is not None or len(symbols.vaddr) > 0,
    )


def wanted(decoded: Decoded, vaddrs: UInt64 | None) -> tuple[Int64, Int64]:
    """The nodes (with all they are inlined into) and rows that lookups of `vaddrs` can meet; all if None."""
    if vaddrs is None:
        return np.arange(len(decoded.node_die)), np.arange(len(decoded.row_file))
    rows = distinct(layer_at(decoded.row_start, decoded.row, vaddrs))
    nodes = distinct(layer_at(decoded.segment_start, decoded.segment_node, vaddrs))
    level = nodes = nodes[nodes >= 0]
    while len(level):
        level = distinct(decoded.node_parent[level])
        level = level[level >= 0]
        nodes = distinct(np.concatenate((nodes, level)))
    return nodes, rows[rows >= 0]


def name_functions(dwarf: Dwarf, decoded: Decoded, nodes: Int64, files: Files) -> tuple[FunctionNames, Int64]:
    """The functions that `nodes` are instances of, and for each of the nodes its function.

    All inlined instances of a function share one row.
    """
    origin = decoded.node_origin[nodes]
    inlined = (decoded.node_parent[nodes] >= 0) & (origin != np.uint64(0xFFFFFFFFFFFFFFFF))
    dies, function = distinct_inverse(np.where(inlined, origin, decoded.node_die[nodes]))
    resolved = resolve_functions(dwarf, dies)
    decl_file = files.attribute(dwarf, resolved.decl_unit, resolved.decl_file)
    return FunctionNames(resolved.linkage, resolved.name, decl_file, resolved.decl_line), function

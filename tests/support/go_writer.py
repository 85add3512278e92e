"""Builds Go programs as far as symbolizing needs them: the line table of each layout, trees of inlined calls, the
record of the module, relocations."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from symbolize.elf import ElfImage
from tests.support import elf_writer
from tests.support.elf_writer import ALLOC, EXEC, WRITE, Section, Segment, Strings, Symbol, elf_file
from tests.support.line_writer import uleb

LAYOUTS = {102: 0xFFFFFFFB, 116: 0xFFFFFFFA, 118: 0xFFFFFFF0, 120: 0xFFFFFFF1}
TEXT, TABLE, TREES, MODULE, DYNAMIC = 0x1000, 0x2000000, 0x2800000, 0x3000000, 0x4000000
NONE = 0xFFFFFFFF


class Call(NamedTuple):
    """An inlined call: the function, the offset of an instruction at the site, the site, and the call around it."""

    name: str
    at: int
    file: str
    line: int
    start_line: int = 0
    parent: int = -1


class Row(NamedTuple):
    """From an offset into the function on: the file, the line, and the innermost inlined call."""

    offset: int
    file: str
    line: int
    call: int = -1


class Function(NamedTuple):
    """A function at an offset from the beginning of the code."""

    name: str
    offset: int
    size: int
    rows: Sequence[Row] = ()
    calls: Sequence[Call] = ()
    start_line: int = 0


class Go(NamedTuple):
    """How a program is written.

    `release` is that of the record of the module, as 127. With `stated` the table tells where the code begins; with
    `position_independent` all pointers are relocations, and the places hold nothing.
    """

    layout: int = 120
    big_endian: bool = False
    word: int = 8
    unit: int = 1
    release: int = 0
    stated: bool = True
    position_independent: bool = False
    machine: int = elf_writer.X86_64

    def uint(self, value: int, size: int = 4) -> bytes:
        """An integer of a fixed size."""
        return (value % (1 << 8 * size)).to_bytes(size, "big" if self.big_endian else "little")

    @property
    def tree_number(self) -> int:
        """The place of the tree of inlined calls among the data of a function."""
        return 4 if self.layout == 102 or self.release == 116 else 3


PLAIN = Go()


def values(go: Go, size: int, changes: Sequence[tuple[int, int]]) -> bytes:
    """A table of values: from each offset on, up to the next or `size`, the value."""
    out, last = bytearray(), -1
    changes = [changes[i] for i in range(len(changes)) if i == 0 or changes[i][1] != changes[i - 1][1]]
    ends = [offset for offset, _ in changes[1:]] + [size]
    for (begin, value), end in zip(changes, ends, strict=True):
        change = value - last
        out += uleb(change * 2 if change >= 0 else -change * 2 - 1) + uleb((end - begin) // go.unit)
        last = value
    return bytes(out) + b"\0"


class Table:
    """The line table of some functions; `trees` are those of inlined calls, `pointers` where addresses stand in it."""

    def __init__(self, functions: Sequence[Function], go: Go) -> None:
        self.go = go
        self.trees = bytearray(16)
        self.pointers: dict[int, int] = {}
        self._names, self._files = Strings(b"\0"), Strings(b"\0")
        self._values = bytearray(b"\0")
        self._list: list[str] = []
        self._known: dict[bytes, int] = {}
        self._tables: dict[tuple[int, int], list[int]] = {}
        functions = sorted(functions, key=lambda f: f.offset)
        # Sizes do not depend on what is written, so the second time everything is in its place.
        self._places = dict.fromkeys(("names", "units", "files", "values", "data"), 0)
        for _ in range(2):
            self.data = self._write(functions)

    def _write(self, functions: Sequence[Function]) -> bytes:
        go = self.go
        word = go.word if go.layout < 118 else 4
        self.trees, self.pointers = bytearray(16), {}
        self._names, self._files, self._values = Strings(b"\0"), Strings(b"\0"), bytearray(b"\0")
        self._list, self._known, self._tables = [], {}, {}
        header = go.uint(LAYOUTS[go.layout]) + bytes([0, 0, go.unit, go.word]) + go.uint(len(functions), go.word)
        size = (2 * len(functions) + 1) * word
        places = self._places
        if go.layout == 102:
            listed, begin = len(header), 0
            records_at = listed + size + 4
        else:
            header += go.uint(1, go.word)
            if go.layout >= 118:
                header += go.uint(TEXT if go.stated else 0, go.word)
            header += b"".join(go.uint(place, go.word) for place in places.values())
            listed = begin = places["data"]
            records_at = begin + size
        records_at += -records_at % 8
        entries, records = bytearray(), bytearray()
        for function in functions:
            place = records_at + len(records)
            entries += self._address(listed + len(entries), TEXT + function.offset, function.offset)
            entries += go.uint(place - begin, word)
            records += self._record(function, place)
            records += bytes(-len(records) % 8)
        end = functions[-1].offset + functions[-1].size
        entries += self._address(listed + len(entries), TEXT + end, end)
        if go.layout == 102:
            out = bytearray(header + entries + go.uint(places["units"]))
        else:
            out = bytearray(header)
            self._part(out, "names", self._names.data)
            self._part(out, "units", b"".join(go.uint(self._files.add(name)) for name in self._list))
            self._part(out, "files", self._files.data)
            self._part(out, "values", self._values)
            self._part(out, "data", entries)
        out += bytes(max(records_at - len(out), 0)) + records
        if go.layout == 102:
            offsets = [self._files.add(name) + places["files"] for name in self._list]
            self._part(out, "units", b"".join(map(go.uint, [len(offsets) + 1, *offsets])))
            self._part(out, "files", self._files.data)
            self._part(out, "values", self._values)
            self._part(out, "names", self._names.data)
        return bytes(out)

    def _part(self, out: bytearray, name: str, data: bytes | bytearray) -> None:
        """Append a part of the table and remember its place."""
        out += bytes(-len(out) % 8)
        self._places[name] = len(out)
        out += data

    def _address(self, place: int, vaddr: int, offset: int) -> bytes:
        """The entry of a function: an address, or since Go 1.18 an offset."""
        if self.go.layout >= 118:
            return self.go.uint(offset)
        self.pointers[place] = vaddr
        return self.go.uint(vaddr, self.go.word)

    def _file(self, name: str) -> int:
        """The number of a file; before Go 1.16 they count from 1."""
        if name not in self._list:
            self._list.append(name)
        return self._list.index(name) + (self.go.layout == 102)

    def _name(self, name: str) -> int:
        return self._names.add(name) + (self._places["names"] if self.go.layout == 102 else 0)

    def _table(self, data: bytes) -> int:
        """The offset of a table of values; equal ones are one, as linkers have it."""
        if data not in self._known:
            self._known[data] = len(self._values)
            self._values += data
        return self._known[data] + (self._places["values"] if self.go.layout == 102 else 0)

    def _record(self, function: Function, place: int) -> bytes:
        """The record of a function, with the offsets of its tables of values and its data."""
        go, size = self.go, function.size
        key = id(function.rows), size
        if not function.rows:
            self._tables[key] = [0, 0, 0]
        elif key not in self._tables:
            changes: list[Callable[[Row], int]] = [lambda r: self._file(r.file), lambda r: r.line, lambda r: r.call]
            made = [values(go, size, [(r.offset, f(r)) for r in function.rows]) for f in changes]
            self._tables[key] = [self._table(data) for data in made]
        tables = self._tables[key]
        numbers = [self._name(function.name), 0, 0, 0, tables[0], tables[1], 3]
        numbers += [0] if go.layout >= 116 else []
        numbers += [function.start_line] if go.layout >= 120 else []
        out = bytearray(self._address(place, TEXT + function.offset, function.offset))
        out += b"".join(map(go.uint, numbers)) + bytes([0, 0, 0, go.tree_number + 1])
        out += go.uint(0) + go.uint(0) + go.uint(tables[2])
        tree = self._tree(function.calls) if function.calls else None
        if go.layout >= 118:
            return bytes(out) + go.uint(NONE) * go.tree_number + go.uint(tree if tree is not None else NONE)
        out += bytes(-(place + len(out)) % go.word) + bytes(go.word * go.tree_number)
        if tree is not None:
            self.pointers[place + len(out)] = TREES + tree
        return bytes(out) + go.uint(TREES + tree if tree is not None else 0, go.word)

    def _tree(self, calls: Sequence[Call]) -> int:
        go, place = self.go, len(self.trees)
        for call in calls:
            name = self._name(call.name)
            if go.layout >= 120:
                numbers = (0, name, call.at, call.start_line)
                self.trees += b"".join(map(go.uint, numbers))
            else:
                self.trees += go.uint(call.parent, 2) + bytes(2)
                self.trees += b"".join(map(go.uint, (self._file(call.file), call.line, name, call.at)))
        return place


def module_record(go: Go, functions: int, end: int) -> list[int]:
    """The words of the record of the module; the parts of the code stand right behind it."""
    words = [0] * 60
    words[0], words[17], words[20], words[21], words[22] = TABLE, functions + 1, TEXT, TEXT + end, TEXT
    at = {118: 38, 127: 43}.get(go.release or go.layout, 40)
    words[at] = TREES
    parts = at + 1
    if go.release >= 126:  # the data lie before the end of the table, in it
        words[parts] = TREES + 0x8000
        parts += 1
    words[parts : parts + 3] = MODULE + 60 * go.word, 1, 1
    return [*words, 0, end, TEXT]


def go_file(
    functions: Sequence[Function],
    go: Go = PLAIN,
    *,
    table: bytes | None = None,
    name: str = ".gopclntab",
    symbols: Sequence[Symbol] = (),
    section_headers: bool = True,
    code: int = TEXT,
    lead: bytes = b"",
) -> bytes:
    """A Go program without DWARF; `table` replaces its line table, `lead` stands before it in its section.

    `code` is where the section of the code begins, which may be before that of Go.
    """
    made = Table(functions, go)
    end = max(f.offset + f.size for f in functions)
    vaddr = TABLE - len(lead)
    record = module_record(go, len(functions), end)
    pointers = {TABLE + place: value for place, value in made.pointers.items()}
    parts = 60 + 2
    pointers |= {MODULE + i * go.word: value for i, value in enumerate(record) if value >= TEXT and i not in (17, 61)}
    data = bytearray(made.data if table is None else table)
    words = bytearray(b"".join(go.uint(word, go.word) for word in record))
    dynamic, rela = b"", b""
    assert record[parts] == TEXT
    if go.position_independent:
        for place in pointers:
            if place >= MODULE:
                words[place - MODULE : place - MODULE + go.word] = bytes(go.word)
            else:
                data[place - TABLE : place - TABLE + go.word] = bytes(go.word)
        rela = b"".join(
            go.uint(place, 8) + go.uint(8, 8) + go.uint(value, 8) for place, value in sorted(pointers.items())
        )
        dynamic = b"".join(go.uint(n, 8) for n in (7, DYNAMIC + 0x100, 8, len(rela), 0, 0)).ljust(0x100, b"\0") + rela
    sections = [
        Section(".text", bytes(TEXT + end - code + 0x10), flags=ALLOC | EXEC, address=code),
        Section(".rodata", bytes(made.trees), flags=ALLOC, address=TREES),
        Section(name, lead + bytes(data), flags=ALLOC, address=vaddr),
        Section(".noptrdata", bytes(words), flags=ALLOC | WRITE, address=MODULE),
        Section(".dynamic", dynamic, flags=ALLOC | WRITE, address=DYNAMIC),
    ]
    segments = [Segment(s.address, len(s.data), 5 if s.flags & EXEC else 6) for s in sections]
    segments.append(Segment(DYNAMIC, 0x100, 6, type=2))
    for _ in range(2):  # offsets are known once it was written
        written = elf_file(
            sections,
            segments,
            symbols,
            is_64=go.word == 8,
            big_endian=go.big_endian,
            machine=go.machine,
            section_headers=section_headers or segments[0].offset == 0,
        )
        if segments[0].offset:
            break
        found = {s.name: s.file_offset for s in ElfImage.parse(memoryview(written), "made").sections}
        offsets = [found[s.name] for s in sections]
        segments = [
            segment._replace(offset=offset) for segment, offset in zip(segments, [*offsets, offsets[-1]], strict=True)
        ]
    return written


def go_extract(
    functions: Sequence[Function], go: Go = PLAIN, kind: int = elf_writer.ET_EXEC, *, cut_segment: bool = True
) -> bytes:
    """The line table of a Go program alone, as profilers upload it: without any section of code, and of the segment of
    the code the first bytes, or with `cut_segment` False nothing."""
    data = Table(functions, go).data
    table = Section(".gopclntab", data, flags=ALLOC, address=TABLE)
    written, offset = b"", 0
    for _ in range(2):  # the offset is known once it was written
        segments = [Segment(0, 0x100, 5)] if cut_segment else []
        segments.append(Segment(TABLE, len(data), 4, offset))
        written = elf_file(
            [table], segments, is_64=go.word == 8, big_endian=go.big_endian, machine=go.machine, kind=kind
        )
        offset = ElfImage.parse(memoryview(written), "made").sections[1].file_offset
    return written

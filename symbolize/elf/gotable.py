"""Finds the line table of Go, `.gopclntab`, and the bases of its offsets (R121, Go line table).

The Go runtime unwinds with it, so stripped programs have it too. The linker leaves a record of the module,
`runtime.firstmoduledata`, which begins with a pointer to the table.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from symbolize.elf.dynamic import Loaded, bounded
from symbolize.elf.go_header import GO_1_2, GO_1_16, GO_SECTIONS, is_header, number
from symbolize.elf.headers import SHF_ALLOC, SHT_NOTE
from symbolize.elf.image import Buffer, ElfImage
from symbolize.elf.symbols import read_symbols

MARKS = frozenset({".go.buildinfo", ".note.go.buildid", ".gosymtab", ".noptrdata", ".go.module"})
"""Sections that only Go programs have."""

MAX_CANDIDATES = 64
"""Candidates for a table, or for a pointer to it, that are examined."""

FUNCTION_COUNT, TEXT = 17, 22
"""Words of the record of the module: one more than the functions, and where the code begins."""
RECORD_SIZE = 56
FIRST_SLICE = 39
MAX_PARTS = 1 << 12
"""Words of the record that are read, the first that may be a pointer to the parts of the code, and how many parts."""


Part = tuple[int, int, int]
"""A part of the code: the first of the offsets that lead into it, the end of them, and the vaddr of the first."""


class GoTable(NamedTuple):
    """The table with relocations applied, and its vaddr; since Go 1.18 also the bases of functions and of their data,
    and the parts of the code, usually one."""

    data: Buffer
    vaddr: int
    text: int = 0
    function_data: int = 0
    parts: tuple[Part, ...] = ()


def go_table(image: ElfImage) -> GoTable | None:
    """The table of a file; None if there is none or the address of its code is unknown.

    Since Go 1.18 entries count from the begin of Go's code, which is not that of `.text` where C code was linked in. It
    is the symbol `runtime.text`, else the 23rd word of the module's record, else what the table states, which is 0
    since Go 1.26: the first of them that is in code (R122, start of Go code).
    """
    loaded = Loaded(image)
    for vaddr, size in islice(table_spans(image), MAX_CANDIDATES):
        data = loaded.contents(vaddr, size)
        if not begins_table(image, data):
            continue
        magic = number(data, 0, 4, image.big_endian)
        if magic in (GO_1_2, GO_1_16):
            return GoTable(data, vaddr)
        record = module_record(image, loaded, vaddr, number(data, 8, loaded.word_size, image.big_endian))
        known = text_symbol(image)
        stated = number(data, 8 + 2 * loaded.word_size, loaded.word_size, image.big_endian)
        text = next((text for text in (known, record[TEXT] if record else None, stated) if is_code(image, text)), None)
        if text is None:
            image.note("the line table of Go is left out, the begin of the code is unknown")
            return None
        base, parts = function_data(loaded, record, vaddr) if record else (0, ())
        return GoTable(data, vaddr, text, base, parts)
    return None


def table_spans(image: ElfImage) -> Iterator[tuple[int, int]]:
    """Vaddr and size of candidates for the table: sections, or data with its header (R123, search for the Go table).

    The header counts, whatever the section is called, because llvm-strip damages the names that Go up to 1.21 wrote; in
    position-independent programs before Go 1.26 the table is somewhere in `.data.rel.ro`. Without section headers all
    loaded bytes are searched; with them no other files than Go programs.
    """
    if image.is_relocatable:
        return
    loaded = [section for section in image.sections if section.flags & SHF_ALLOC and section.has_bytes]
    # Some tools garble the names of sections, so one counts that begins as the table does.
    tables = [
        section
        for section in loaded
        if section.name in GO_SECTIONS
        or (not section.is_code and begins_table(image, image.data[section.file_offset :][: section.size]))
    ]
    yield from ((section.vaddr, section.size) for section in tables)
    if tables or (image.sections and not is_marked(image)):
        return
    spans = [(s.vaddr, s.file_offset, s.size) for s in loaded if s.name == ".data.rel.ro"] or [
        (s.vaddr, s.file_offset, s.file_size) for s in sorted(image.segments, key=lambda s: s.executable)
    ]
    for vaddr, data in bounded(image, spans):
        for start in candidates(image, data):
            yield vaddr + start, len(data) - start


def is_marked(image: ElfImage) -> bool:
    """Whether sections or a note mark a Go program."""
    return any(
        section.name in MARKS
        or (section.type == SHT_NOTE and bytes(image.data[section.file_offset + 12 :][:4]) == b"Go\0\0")
        for section in image.sections
    )


def candidates(image: ElfImage, data: memoryview) -> Iterator[int]:
    """Offsets in `data` at which a header may begin: magic, two zeros, unit of code, size of a pointer."""
    rest = rb"\x00\x00[\x01\x02\x04]" + (b"\x08" if image.is_64 else b"\x04")
    if image.big_endian:
        pattern, back = rb"\xff\xff\xff[\xfb\xfa\xf0\xf1]" + rest, 0
    else:
        pattern, back = rb"\xff\xff\xff" + rest, 1
    for match in re.finditer(pattern, data):
        start = match.start() - back
        if start >= 0 and begins_table(image, data[start:]):
            yield start


def begins_table(image: ElfImage, data: Buffer) -> bool:
    """Whether a table with functions may begin here."""
    return is_header(data, image.is_64, image.big_endian)


def module_record(image: ElfImage, loaded: Loaded, table: int, functions: int) -> list[int] | None:
    """The words of the record of the module whose table is at vaddr `table` and has so many functions.

    In position-independent programs its pointers are relocations.
    """
    for vaddr in loaded.pointers_to(table, MAX_CANDIDATES):
        words = loaded.words(vaddr, RECORD_SIZE)
        if len(words) > FIRST_SLICE and words[FUNCTION_COUNT] == functions + 1 and is_code(image, words[TEXT]):
            return words
    return None


def function_data(loaded: Loaded, record: list[int], table: int) -> tuple[int, tuple[Part, ...]]:
    """The base of the data of functions, and the parts of the code.

    The layout of the record depends on the release, which it does not contain. The base precedes the list of the parts
    of the code, whose first begins where the code does; since Go 1.26, when the data moved into the table, the end of
    the table is between the two.
    """
    for at in range(FIRST_SLICE, len(record) - 2):
        count = record[at + 1]
        if count == record[at + 2] and 0 < count <= MAX_PARTS:
            words = loaded.words(record[at], 3 * count)
            if len(words) == 3 * count and words[0] == 0 and words[2] == record[TEXT]:
                parts = tuple(zip(words[::3], words[1::3], words[2::3], strict=True))
                inside = table <= record[at - 2] < record[at - 1]
                return record[at - 2 if inside else at - 1], parts
    return 0, ()


def text_symbol(image: ElfImage) -> int | None:
    """The vaddr of the symbol `runtime.text`."""
    symbols = read_symbols(image, ".symtab")
    if symbols is None:
        return None
    name = symbols.strings.find(b"\0runtime.text\0") + 1
    found: list[int] = symbols.vaddr[symbols.name == name].tolist() if name else []
    return found[0] if found else None


def is_code(image: ElfImage, vaddr: int | None) -> bool:
    """Whether `vaddr` is in code."""
    begins, ends = image.code_ranges
    return vaddr is not None and any(
        begin <= vaddr < end for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
    )

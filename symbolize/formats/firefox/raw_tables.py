"""Tables of a processed profile as texts: cells are changed and rows added, and all other bytes stay."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from symbolize.formats.firefox.document import MAX_INTEGER, Members, Span
from symbolize.formats.firefox.tables import SHARED_TEXTS, SOURCES, Document

NULL: Final = b"null"
Edit = tuple[Span, bytes]
"""A place in the text, and what it is replaced by."""


class RawTable:
    """A table whose cells are JSON texts, changed in place; rows may be added."""

    def __init__(self, document: Document, owner: Members, name: str, count: int) -> None:
        self._document, self.count, self._old = document, count, count
        self.members = document.table(owner, name)
        self._cells: dict[str, list[bytes]] = {}
        self._changed: set[str] = set()

    def cells(self, name: str) -> list[bytes]:
        """The cells of a column."""
        if name not in self._cells:
            text, span = self._document.text, self.members[name]
            if text.has(self.members, name):
                found = [bytes(text.data[begin:end]) for begin, end in text.spans(span).tolist()]
            else:
                found = [NULL] * self._old
            if len(found) != self._old:
                raise text.problem(span.begin, f"the column {name} has {len(found)} rows, and not {self._old}")
            self._cells[name] = found
        return self._cells[name]

    def put(self, name: str, row: int, cell: bytes | int) -> None:
        """Change a cell, if the table has the column."""
        if name in self.members:
            self.cells(name)[row] = cell if isinstance(cell, bytes) else b"%d" % cell
            self._changed.add(name)

    def number(self, name: str, row: int) -> int:
        """The number in a cell, 0 if it has none."""
        cell = self.cells(name)[row] if name in self.members else NULL
        with suppress(ValueError):
            value = float(cell)
            return int(value) if abs(value) < MAX_INTEGER else 0
        return 0

    def add(self, like: int | None = None) -> int:
        """The row of an added one, with the cells of another row or with nothing."""
        for name in self.columns():
            cells = self.cells(name)
            cells.append(cells[like] if like is not None else NULL)
            self._changed.add(name)
        self.count += 1
        return self.count - 1

    def columns(self) -> list[str]:
        """The names of the columns."""
        data = self._document.text.data
        return [name for name, span in self.members.items() if data[span.begin] in b"[n" and name != "length"]

    def replace(self, name: str, cells: Sequence[bytes]) -> None:
        """Put other cells into a column, which may be more."""
        self._cells[name] = list(cells)
        self._changed.add(name)
        self.count = len(cells)

    def edits(self) -> Iterator[Edit]:
        """What replaces which texts."""
        for name in self._changed:
            yield self.members[name], b"[" + b",".join(self._cells[name]) + b"]"
        if self.count != self._old and "length" in self.members:
            yield self.members["length"], b"%d" % self.count


class RawTexts:
    """The list of texts, to which missing ones are added."""

    def __init__(self, document: Document, owner: Members) -> None:
        self._span = document.member(owner, "stringArray")
        data = document.text.data
        spans = document.text.spans(self._span).tolist()
        self._end = spans[-1][1] if spans else self._span.begin + 1
        self._rows = {bytes(data[begin:end]): row for row, (begin, end) in enumerate(spans)}
        self._count = len(spans)
        self._added: list[bytes] = []

    def row(self, text: str) -> int:
        """The row of a text."""
        cell = json.dumps(text, ensure_ascii=False).encode(errors="replace")
        if cell not in self._rows:
            self._rows[cell] = self._count + len(self._added)
            self._added.append(cell)
        return self._rows[cell]

    def edits(self) -> Iterator[Edit]:
        """What is added."""
        if self._added:
            yield Span(self._end, self._end), (b"," if self._count else b"") + b",".join(self._added)


class SharedTables:
    """The texts and sources that all threads have together, in versions in which they do."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.texts = RawTexts(document, document.shared) if document.version >= SHARED_TEXTS else None
        self.sources: RawTable | None = None
        self._source_of: dict[int, int] = {}
        if document.version >= SOURCES:
            table = document.table(document.shared, "sources")
            self.sources = RawTable(document, document.shared, "sources", document.count(table, "filename"))
            ids = "id" if "id" in self.sources.members else "uuid"
            for row in range(self.sources.count):
                if ids not in self.sources.members or self.sources.cells(ids)[row] == NULL:
                    self._source_of[self.sources.number("filename", row)] = row

    def source(self, file: int) -> int:
        """The row of the source whose name is in a row of the texts."""
        assert self.sources is not None
        if file not in self._source_of:
            row = self._source_of[file] = self.sources.add()
            self.sources.put("filename", row, file)
            self.sources.put("startLine", row, 1)
            self.sources.put("startColumn", row, 1)
        return self._source_of[file]

    def edits(self) -> Iterator[Edit]:
        """What replaces which texts."""
        if self.sources is not None:
            yield from self.sources.edits()
        if self.texts is not None:
            yield from self.texts.edits()

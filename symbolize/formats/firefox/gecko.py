"""What a browser saves by itself: the raw form, whose frames are texts, with a profile for each process."""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from symbolize.core.arrays import NONE, TOP, Float64, Int64
from symbolize.core.errors import InputError
from symbolize.formats.firefox.document import DocumentTexts, JsonText, Members, Span
from symbolize.formats.firefox.tables import MappedLibrary, StackTables, Thread, names_of, number_of

OLDEST: Final = 5
NEWEST: Final = 36
"""Versions; the first has processes in a list, and columns."""
AT_ONCE: Final = 1 << 14
"""Rows that are decoded at once."""
MAX_PROCESSES: Final = 1 << 10
ADDRESS: Final = re.compile(r"0x([0-9a-fA-F]{1,16})")
IN_SCRIPT: Final = re.compile(r"(.{0,4096}) \((.{1,4096}?):(\d{1,9})(?::(\d{1,9}))?\)(?:\[\d+\])?", re.DOTALL)
IN_LIBRARY: Final = re.compile(r"(.{1,4096}) \(in ([^)]{1,1024})\)(?: \+ \d{1,20}| \(.{1,4096}\))?", re.DOTALL)
"""A frame of JavaScript, and one of a library that has its name already."""
LARGEST: Final = 1 << 63
Locate = Callable[[int], tuple[int, int]]
"""What gives the row of the library that an address is in, and the address there."""


class RawColumns:
    """The columns of a table whose rows are lists, in the order of its schema; what is missing is null."""

    def __init__(self, text: JsonText, span: Span) -> None:
        members = text.members(span)
        if "schema" not in members or "data" not in members:
            raise text.problem(span.begin, "a table has no schema and no data")
        schema = text.value(members["schema"])
        self.places = {name: at for name, at in schema.items() if type(at) is int} if isinstance(schema, dict) else {}
        self._text, self._spans = text, text.spans(members["data"])

    def __len__(self) -> int:
        return len(self._spans)

    def read(self, *names: str) -> list[Float64]:
        """Columns of numbers, with NaN for null and for what is none: float64[n] each."""
        found = [np.full(len(self), np.nan) for _ in names]
        places = [self.places.get(name, -1) for name in names]
        for first in range(0, len(self), AT_ONCE):
            for row, items in enumerate(self._rows(first), first):
                for column, at in zip(found, places, strict=True):
                    if 0 <= at < len(items) and isinstance(items[at], int | float) and abs(items[at]) < LARGEST:
                        column[row] = items[at]
        return found

    def _rows(self, first: int) -> Iterator[list[Any]]:
        begin, end = int(self._spans[first, 0]), int(self._spans[min(first + AT_ONCE, len(self)) - 1, 1])
        rows = self._text.value(Span(begin, end), is_open=True)
        if not all(isinstance(each, list) for each in rows):
            raise self._text.problem(begin, "a row of a table is no list")
        yield from rows

    def rows(self, name: str, of: int) -> Int64:
        """A column of rows of another table that has so many, NONE for null: int64[n]."""
        (column,) = self.read(name)
        column[np.isnan(column)] = NONE
        if len(column) and not (column.min() >= NONE and column.max() < of and (column == np.floor(column)).all()):
            raise self._text.problem(int(self._spans[0, 0]), f"the column {name} has rows that are not there")
        return column.astype(np.int64)


class GeckoRecording:
    """The profile of a browser and those of its other processes, as `Document` is one that was processed. Raises
    InputError."""

    def __init__(self, text: JsonText) -> None:
        self.text = text
        self.libraries: list[MappedLibrary] = []
        self.threads: list[Thread] = []
        self._known: dict[tuple[str, str, str], int] = {}
        self._later: dict[int, float] = {}
        self.meta: dict[str, Any] = {}
        pending = [text.root()]
        for count, span in enumerate(pending):
            if count == MAX_PROCESSES:
                raise InputError(text.source, f"has more than {MAX_PROCESSES} processes")
            members = text.members(span)
            if "meta" in members and "threads" in members:
                pending += text.items(members["processes"]) if "processes" in members else []
                self._add(members)
            elif not count:
                raise InputError(text.source, "is no whole profile of Gecko: meta or threads are missing")
        self.tables = [each.tables for each in self.threads]
        self.categories = names_of(self.meta.get("categories"))

    def _add(self, members: Members) -> None:
        """Take the threads of a process."""
        meta = self.text.value(members["meta"])
        version = meta.get("version") if isinstance(meta, dict) else None
        if not isinstance(version, int) or not OLDEST <= version <= NEWEST:
            problem = f"is a profile of Gecko of version {version!r}; {OLDEST} to {NEWEST} are read"
            raise InputError(self.text.source, problem)
        self.meta = self.meta or meta
        found = [MappedLibrary.of(self.text.value(each)) for each in self._items(members, "libs")]
        whole = (each for each in found if 0 <= each.offset <= each.start < each.end <= TOP)
        libraries = sorted(whole, key=lambda each: each.start)
        starts = np.array([each.start for each in libraries], np.uint64)
        rows = []
        for each in libraries:
            key = each.path, each.build_id, each.debug_name
            rows.append(self._known.setdefault(key, len(self._known)))
            if rows[-1] == len(self.libraries):
                self.libraries.append(each)

        def locate(address: int) -> tuple[int, int]:
            at = int(np.searchsorted(starts, np.uint64(address), side="right")) - 1
            if at < 0 or address >= libraries[at].end or address - libraries[at].base >= LARGEST:
                return NONE, NONE
            return rows[at], address - libraries[at].base

        later = number_of(meta.get("startTime")) - number_of(self.meta.get("startTime"))
        for span in self._items(members, "threads"):
            thread = self.text.members(span)
            tables = self._stack_tables(thread, locate)
            self._later[id(tables)] = later
            self.threads.append(Thread(thread, tables))

    def _items(self, members: Members, key: str) -> list[Span]:
        return self.text.items(members[key]) if key in members else []

    def _stack_tables(self, thread: Members, locate: Locate) -> StackTables:
        if any(name not in thread for name in ("stackTable", "frameTable", "stringTable", "samples")):
            raise InputError(self.text.source, "is no whole profile of the Firefox Profiler: a thread has no tables")
        texts = DocumentTexts(self.text, thread["stringTable"])
        stacks, frames = RawColumns(self.text, thread["stackTable"]), RawColumns(self.text, thread["frameTable"])
        location = frames.rows("location", len(texts))
        prefix, frame = stacks.rows("prefix", len(stacks)), stacks.rows("frame", len(frames))
        if (prefix >= np.arange(len(prefix))).any() or (frame < 0).any() or (location < 0).any():
            raise self.text.problem(thread["stackTable"].begin, "a stack or a frame is not whole")
        line, column, category = (np.nan_to_num(each, nan=-1) for each in frames.read("line", "column", "category"))
        used = np.unique(location)
        parts = [named(texts[row].decode(), locate) for row in used.tolist()]
        which = np.searchsorted(used, location)
        names = LocationTexts([text for name, file, *_ in parts for text in (name, file)])
        columns = np.array([rest for _, _, *rest in parts], np.int64).reshape(len(parts), 4)
        library, address, of_line, of_column = columns.T
        own = np.where(line >= 0, line, of_line[which]), np.where(column >= 0, column, of_column[which])
        return StackTables(
            texts=names,
            prefix=prefix,
            frame=frame,
            address=address[which],
            library=library[which],
            function=which,
            line=own[0].astype(np.int64),
            column=own[1].astype(np.int64),
            is_inlined=np.zeros(len(frames), np.bool_),
            category=category.astype(np.int64),
            name=2 * np.arange(len(parts)),
            file=2 * np.arange(len(parts)) + 1,
            is_js=np.zeros(len(parts), np.bool_),
            function_line=of_line,
            node_category=np.full(len(prefix), NONE),
        )

    def samples(self, thread: Thread) -> tuple[Int64, Float64, Float64]:
        """The nodes of the samples of a thread, their times in milliseconds, and their CPU times as the profile has
        them."""
        table = RawColumns(self.text, thread.members["samples"])
        time, cpu = (np.nan_to_num(each) for each in table.read("time", "threadCPUDelta"))
        return table.rows("stack", len(thread.tables.frame)), time + self._later[id(thread.tables)], cpu


class LocationTexts:
    """DocumentTexts that are at hand."""

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, row: int) -> bytes:
        return self._texts[row].encode(errors="backslashreplace") if row >= 0 else b""


def named(location: str, locate: Locate) -> tuple[str, str, int, int, int, int]:
    """What the text of a frame says: the name of its function, its file, the row of its library and the address there,
    NONE for none, its line and column."""
    if address := ADDRESS.fullmatch(location):
        return location, "", *locate(int(address[1], 16)), 0, 0
    if script := IN_SCRIPT.fullmatch(location):
        return script[1] or f"(root scope) {script[2]}", script[2], NONE, NONE, int(script[3]), int(script[4] or 0)
    if native := IN_LIBRARY.fullmatch(location):
        return native[1], "", NONE, NONE, 0, 0
    return location, "", NONE, NONE, 0, 0

"""A processed profile as it came, with the functions, files, lines and inlined frames that were found for its
addresses, as the front end's own symbolication writes them, and else unchanged (R496, names in Firefox' profiles)."""

import os
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

import numpy as np

from symbolize.core.arrays import NONE, Int64
from symbolize.formats.files import packed, write_pieces
from symbolize.formats.firefox import tables as n
from symbolize.formats.firefox.document import Members, Span
from symbolize.formats.firefox.found import Found, FoundSites, SiteFrame, SiteNames, SymbolsOf
from symbolize.formats.firefox.raw_tables import NULL, Edit, RawTable, RawTexts, SharedTables
from symbolize.formats.firefox.reader import forest_of
from symbolize.formats.firefox.tables import Document, StackTables

STACKS_OF: Final = ("samples", "jsAllocations", "nativeAllocations")
CAUSE: Final = b'"cause"'

FrameSites = tuple[Int64, Int64]
"""The sites of frames, as leaves and as callers."""


class FirefoxLines(FoundSites):
    """A document with the names that were found for it. Frames that came with names keep these, unless it `replaces`
    them."""

    def __init__(self, document: Document, symbols_of: SymbolsOf, *, replaces: bool = False) -> None:
        super().__init__(document, symbols_of)
        self._replaces = replaces

    def write(self, destination: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the profile with the names to a path, compressed if that ends so, to `-` (standard output) or to a
        binary file object. Raises OutputError."""
        write_pieces(packed(self.pieces(), destination), destination)

    def pieces(self) -> Iterator[bytes]:
        """The text with the names."""
        data = self.document.text.data
        edits = sorted(self._edits())
        at = 0
        for span, content in edits:
            yield bytes(data[at : span.begin])
            yield content
            at = span.end
        yield bytes(data[at:])

    def _edits(self) -> Iterator[Edit]:
        document = self.document
        if not self.found:
            return
        forest, shared = forest_of(document), SharedTables(document)
        threads: dict[int, list[Members]] = {}
        for each in document.threads:
            threads.setdefault(id(each.tables), []).append(each.members)
        for first, tables in zip(forest.first_frame.tolist(), document.tables, strict=False):
            rows = slice(first, first + len(tables.function))
            sites, own = (forest.site[rows], forest.caller_site[rows]), threads.get(id(tables), [])
            yield from TreeNames(document, shared, tables, own, sites, self.found, self._replaces).edits()
        yield from shared.edits()
        yield from self._mark()

    def _mark(self) -> Iterator[Edit]:
        """That the profile is symbolicated, so that the front end does not ask a server for it."""
        text = self.document.text
        meta = text.members(self.document.members["meta"])
        if "symbolicated" in meta:
            yield meta["symbolicated"], b"true"
        else:
            begin = self.document.members["meta"].begin + 1
            yield Span(begin, begin), b'"symbolicated":true,'


class TreeNames:
    """One tree of stacks, with the names that were found for its sites, for the `threads` that have it."""

    def __init__(
        self,
        document: Document,
        shared: SharedTables,
        tables: StackTables,
        threads: Sequence[Members],
        sites: FrameSites,
        found: Found,
        replaces: bool,
    ) -> None:
        self._document, self._tables, self._found, self._replaces = document, tables, found, replaces
        self._version = document.version
        self._threads = threads
        self._shared = shared
        self._texts = shared.texts or RawTexts(document, tables.owner)
        self._frames = RawTable(document, tables.owner, "frameTable", len(tables.function))
        self._functions = RawTable(document, tables.owner, "funcTable", len(tables.name))
        self._symbols: RawTable | None = None
        if self._version >= n.NATIVE_SYMBOLS:
            count = document.count(document.table(tables.owner, "nativeSymbols"), "name")
            self._symbols = RawTable(document, tables.owner, "nativeSymbols", count)
        self._library_rows: dict[int, int] = {}  # as the profile counts those of this thread, before they are shared
        if self._version < n.SHARED_LIBRARIES:
            for row, library in enumerate(document.libraries_of(tables.owner).tolist()):
                self._library_rows.setdefault(library, row)
        # By frame; those of copies follow.
        self._site, self._leaf_copy = self._roles(sites)
        copied = list(self._leaf_copy)
        self._function = [*tables.function.tolist(), *tables.function[copied].tolist()]
        self._library = [*tables.library.tolist(), *tables.library[copied].tolist()]
        self._is_part = [*tables.is_inlined.tolist(), *(False for _ in copied)]
        is_open = tables.is_bare | replaces
        self._is_open = [*is_open.tolist(), *is_open[copied].tolist()]
        self._expansions: dict[int, list[int]] = {}
        self._removed: set[int] = set()

    def _roles(self, sites: FrameSites) -> tuple[list[int], dict[int, int]]:
        """The site of each frame, and of the copies that are the leaves of samples where a frame also called another
        one, before addresses were in calls; copies by their originals. Frames of causes, and of what was allocated, are
        callers: what took the stack is not on it."""
        own, caller = sites
        if self._version >= n.IN_CALLS:
            return own.tolist(), {}
        tables = self._tables
        is_leaf, is_caller = np.zeros(len(own), np.bool_), np.zeros(len(own), np.bool_)
        is_caller[tables.frame[tables.prefix[tables.prefix != NONE]]] = True
        for thread in self._threads:
            for name in STACKS_OF:
                nodes = self._stacks_of(thread, name)
                (is_leaf if name == "samples" else is_caller)[tables.frame[nodes[nodes != NONE]]] = True
        copied = np.flatnonzero(is_leaf & is_caller & (own != caller)).tolist()
        copies = {row: self._frames.add(row) for row in copied}
        return [*np.where(is_leaf & ~is_caller, own, caller).tolist(), *own[copied].tolist()], copies

    def _stacks_of(self, thread: Members, name: str) -> Int64:
        """The nodes in a table of a thread."""
        if not self._document.text.has(thread, name):
            return np.zeros(0, np.int64)
        table = self._document.table(thread, name)
        return self._document.rows(table, "stack", self._document.count(table, "stack"), len(self._tables.frame))

    def edits(self) -> Iterator[Edit]:
        """What replaces which texts of the tree and of its threads."""
        frames_of: dict[int, list[int]] = {}
        for frame, library in enumerate(self._library):
            if library != NONE and (self._replaces or (self._is_open[frame] and not self._is_part[frame])):
                frames_of.setdefault(library, []).append(frame)
        taken = {frame for frames in frames_of.values() for frame in frames}
        kept = {function for frame, function in enumerate(self._function) if frame not in taken}
        for frames in frames_of.values():
            if any(self._site[frame] in self._found for frame in frames if not self._is_part[frame]):
                self._name_library(frames, kept)
        for table in (self._frames, self._functions, *filter(None, [self._symbols])):
            yield from table.edits()
        if self._shared.texts is None:
            yield from self._texts.edits()
        if self._expansions or self._removed or self._leaf_copy:
            yield from self._stack_edits()

    def _name_library(self, frames: Sequence[int], kept: set[int]) -> None:
        """Name the frames of a library. Rows of functions and inlined frames that nothing else has are used again."""
        outer = [frame for frame in frames if not self._is_part[frame]]
        parts = [frame for frame in frames if self._is_part[frame]]
        self._removed.update(parts)
        names = {frame: self._names_of(frame) for frame in outer}
        symbols = self._native_symbols(names)
        free, free_parts = iter(sorted({self._function[frame] for frame in frames} - kept)), iter(parts)
        known: dict[tuple[int, int], int] = {}
        for frame, found in names.items():
            expansion = []
            for depth, each in enumerate(found.frames):
                key = self._texts.row(each.name), self._texts.row(each.file) if each.file else NONE
                if key not in known:
                    known[key] = self._named_function(next(free, NONE), self._function[frame], *key)
                    self._functions.put("address", known[key], found.symbol)  # versions before native symbols
                row = frame if not depth else self._inlined_frame(frame, next(free_parts, NONE))
                self._put_frame(row, known[key], each.line, depth, symbols[found.symbol])
                expansion.append(row)
            if len(expansion) > 1:
                self._expansions[frame] = expansion

    def _names_of(self, frame: int) -> SiteNames:
        """What is to be shown of a frame: what was found, else the name that it has."""
        found = self._found.get(self._site[frame])
        if found is not None:
            return found
        tables, function = self._tables, self._function[frame]
        texts = [tables.texts[int(column[function])].decode(errors="replace") for column in (tables.name, tables.file)]
        own = SiteFrame(texts[0], texts[1], self._frames.number("line", frame))
        return SiteNames((own,), self._frames.number("address", frame), 0)

    def _native_symbols(self, names: dict[int, SiteNames]) -> dict[int, int]:
        """The row of the native symbol at each address, NONE in versions without. Those of frames are used again."""
        rows: dict[int, int] = {}
        own: dict[int, int] = {}
        if self._symbols is None or "nativeSymbol" not in self._frames.members:
            return {each.symbol: NONE for each in names.values()}
        for frame in names:
            symbol = self._frames.number("nativeSymbol", frame)
            has_symbol = self._frames.cells("nativeSymbol")[frame] != NULL and self._has_flag(frame, n.HAS_SYMBOL)
            if has_symbol and 0 <= symbol < self._symbols.count:
                own[frame] = symbol
        free = dict.fromkeys(own.values())
        for frame, found in names.items():
            if found.symbol not in rows and own.get(frame, NONE) in free:
                rows[found.symbol] = own[frame]
                del free[own[frame]]
        left = iter(free)
        done: set[int] = set()
        for frame, found in names.items():
            if found.symbol in done:
                continue
            done.add(found.symbol)
            if found.symbol not in rows:
                row = next(left, NONE)
                rows[found.symbol] = self._symbols.add() if row == NONE else row
            row = rows[found.symbol]
            library = self._library[frame]
            self._symbols.put("libIndex", row, self._library_rows.get(library, library))
            self._symbols.put("address", row, found.symbol)
            self._symbols.put("name", row, self._texts.row(found.frames[0].name))
            unknown: bytes | int = -1 if self._version >= n.NO_NULL_SYMBOLS else NULL
            self._symbols.put("functionSize", row, found.size or unknown)
        return rows

    def _has_flag(self, frame: int, flag: int) -> bool:
        """Whether a frame has a flag, in versions with flags."""
        return self._version < n.FRAME_FLAGS or bool(self._frames.number("flags", frame) & flag)

    def _named_function(self, free: int, like: int, name: int, file: int) -> int:
        """The row of a function of a name and file, which is a `free` one if there is one; resource and kind are those
        of the function `like`."""
        functions = self._functions
        row = functions.add(like) if free == NONE else free
        functions.put("name", row, name)
        nothing: bytes | int = 0 if self._version >= n.FUNCTION_FLAGS else NULL
        for column in ("lineNumber", "columnNumber", "originalLocation"):
            functions.put(column, row, nothing)
        of_file = file if self._version < n.SOURCES or file == NONE else self._shared.source(file)
        functions.put("fileName" if self._version < n.SOURCES else "source", row, nothing if file == NONE else of_file)
        if self._version >= n.FUNCTION_FLAGS:
            flags = functions.number("flags", row) & (n.IS_JS | n.IS_RELEVANT | n.HAS_RESOURCE)
            functions.put("flags", row, flags | (n.HAS_SOURCE if file != NONE else 0))
        if free != NONE:
            functions.put("resource", row, functions.cells("resource")[like])
        return row

    def _inlined_frame(self, outer: int, free: int) -> int:
        """The row of a frame that is inlined into another one, which is a `free` one if there is one."""
        if free == NONE:
            return self._frames.add(outer)
        for name in self._frames.columns():
            self._frames.put(name, free, self._frames.cells(name)[outer])
        return free

    def _put_frame(self, row: int, function: int, line: int, depth: int, symbol: int) -> None:
        """Make a frame that of a function and a line."""
        frames, has_flags = self._frames, self._version >= n.FRAME_FLAGS
        nothing: bytes | int = 0 if has_flags else NULL
        frames.put("func", row, function)
        frames.put("line", row, line or nothing)
        frames.put("column", row, nothing)
        frames.put("originalLocation", row, nothing)
        if symbol != NONE:
            frames.put("nativeSymbol", row, symbol)
        if not has_flags:
            frames.put("inlineDepth", row, depth)
            return
        kept = frames.number("flags", row) & (n.HAS_ADDRESS | n.HAS_CATEGORY)
        flags = kept | n.HAS_SYMBOL | (n.HAS_LINE if line else 0) | (n.IS_INLINED if depth else 0)
        frames.put("flags", row, flags)

    def _stack_edits(self) -> Iterator[Edit]:
        """The stacks with inlined frames on them, and what refers to stacks."""
        tables, document, version = self._tables, self._document, self._version
        copied = set(self._leaf_nodes())
        cells: list[int] = []
        prefix: list[int] = []
        origin: list[int] = []
        innermost, leaf = np.full((2, len(tables.frame)), NONE, np.int64)

        def add(node: int, frame: int, before: int) -> int:
            """Add the frames of a node; the innermost one."""
            for each in self._expansions.get(frame, [frame]):
                prefix.append(before)
                cells.append(each)
                origin.append(node)
                before = len(cells) - 1
            return before

        for node, (frame, of) in enumerate(zip(tables.frame.tolist(), tables.prefix.tolist(), strict=True)):
            before = int(innermost[of]) if of != NONE else NONE
            innermost[node] = before if frame in self._removed else add(node, frame, before)
            leaf[node] = add(node, self._leaf_copy[frame], before) if node in copied else innermost[node]
        stacks = RawTable(document, tables.owner, "stackTable", len(tables.frame))
        for name in stacks.columns():
            old = stacks.cells(name)
            stacks.replace(name, [old[node] for node in origin])
        stacks.replace("frame", [b"%d" % frame for frame in cells])
        if version >= n.PREFIX_OFFSETS:
            offsets = (0 if before == NONE else row - before for row, before in enumerate(prefix))
            stacks.replace("prefixOffset", [b"%d" % each for each in offsets])
        else:
            stacks.replace("prefix", cells_of(prefix))
        yield from stacks.edits()
        for thread in self._threads:
            yield from self._thread_edits(thread, leaf, innermost)

    def _leaf_nodes(self) -> list[int]:
        """The nodes that are leaves of samples and whose frames have copies for these."""
        if not self._leaf_copy:
            return []
        found = np.unique(np.concatenate([self._stacks_of(thread, "samples") for thread in self._threads]))
        return [node for node in found[found != NONE].tolist() if int(self._tables.frame[node]) in self._leaf_copy]

    def _thread_edits(self, thread: Members, leaf: Int64, innermost: Int64) -> Iterator[Edit]:
        """What refers to stacks in a thread."""
        document, text = self._document, self._document.text
        for name in STACKS_OF:
            nodes = self._stacks_of(thread, name)
            if len(nodes):
                moved = np.append(leaf if name == "samples" else innermost, NONE)[nodes]
                yield text.members(thread[name])["stack"], b"[" + b",".join(cells_of(moved.tolist())) + b"]"
        markers = text.members(thread["markers"]) if text.has(thread, "markers") else {}
        for item in document.list_of(markers, "data"):
            if CAUSE not in bytes(text.data[item.begin : item.end]) or text.data[item.begin] != ord("{"):
                continue
            cause = text.members(item).get("cause")
            if cause is None or text.data[cause.begin] != ord("{"):
                continue
            stack = text.members(cause).get("stack")
            if stack is not None and type(node := text.value(stack)) is int:
                if not 0 <= node < len(innermost):
                    raise text.problem(stack.begin, "a marker has a stack that is not there")
                yield stack, cells_of([int(innermost[node])])[0]


def cells_of(rows: Sequence[int]) -> list[bytes]:
    """Rows as cells, NONE as null."""
    return [NULL if row == NONE else b"%d" % row for row in rows]

"""Where the stacks of a processed profile, and what their frames are, stand in each version of the format (R494,
versions of Firefox' profiles)."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from symbolize.core.arrays import NONE, Bool, Int64
from symbolize.core.errors import InputError
from symbolize.formats.firefox.document import DocumentTexts, JsonText, Members, Span

OLDEST: Final = 24
NEWEST: Final = 75
NATIVE_SYMBOLS: Final = 36
IN_CALLS: Final = 38
INLINE_DEPTHS: Final = 40
SHARED_LIBRARIES: Final = 41
FUNCTION_SIZES: Final = 42
NO_STACK_CATEGORIES: Final = 53
SHARED_TEXTS: Final = 56
SOURCES: Final = 58
SHARED_TABLES: Final = 60
PREFIX_OFFSETS: Final = 66
FRAME_LIBRARIES: Final = 70
FRAME_FLAGS: Final = 71
NO_NULL_SYMBOLS: Final = 74
FUNCTION_FLAGS: Final = 75
"""The versions with which something of it came."""

LARGEST: Final = float((1 << 63) - 1024)

IS_INLINED: Final = 1
HAS_ADDRESS: Final = 2
HAS_CATEGORY: Final = 4
HAS_SYMBOL: Final = 8
HAS_LINE: Final = 16
HAS_COLUMN: Final = 32
"""Flags of frames."""
IS_JS: Final = 1
IS_RELEVANT: Final = 2
HAS_RESOURCE: Final = 4
HAS_SOURCE: Final = 8
HAS_FUNCTION_LINE: Final = 16
"""Flags of functions."""


class MappedLibrary(NamedTuple):
    """A file that frames are of: its path, and its code id, which is the build id, else its Breakpad id."""

    path: str = ""
    build_id: str = ""
    debug_name: str = ""
    breakpad_id: str = ""
    start: int = 0
    end: int = 0
    offset: int = 0

    @classmethod
    def of(cls, value: Any) -> "MappedLibrary":
        """A library as the profile says it; what is missing or of another type is empty."""
        if not isinstance(value, dict):
            return cls()

        def said(*keys: str) -> str:
            return next((value[key] for key in keys if isinstance(value.get(key), str) and value[key]), "")

        def number(key: str) -> int:
            return value[key] if type(value.get(key)) is int else 0

        path, ids = said("path", "debugPath", "name"), (said("codeId"), said("breakpadId"))
        build_id = next((each for each in ids if each.strip("0")), "")  # zeros stand for none
        return cls(path, build_id, said("debugName"), ids[1], number("start"), number("end"), number("offset"))

    @property
    def base(self) -> int:
        """What the addresses of its frames count from in the process."""
        return self.start - self.offset


@dataclass(eq=False)
class StackTables:
    """Stacks and what they are made of, as columns, with NONE for what is not there.

    Of each node of the tree of stacks its `prefix`, which stands before it, its `frame` and, in old versions, its
    category; of each frame its address in its library, that library, its function, line and column, whether it is
    inlined into the one before it, and its category; of each function the rows of its name and file in `texts`, whether
    it is of JavaScript, and its line. `owner` are the members that have the tables, none in the raw form.
    """

    texts: Any
    prefix: Int64
    frame: Int64
    address: Int64
    library: Int64
    function: Int64
    line: Int64
    column: Int64
    is_inlined: Bool
    category: Int64
    name: Int64
    file: Int64
    is_js: Bool
    function_line: Int64
    node_category: Int64
    owner: Members = field(default_factory=dict)

    @cached_property
    def is_bare(self) -> Bool:
        """Which frames have an address in a library and no name: the front end calls their functions by the address
        until they are symbolized, and so does samply: bool[n]."""
        found: Bool = (self.address != NONE) & (self.library != NONE) & ~self.is_inlined
        rows = np.flatnonzero(found)
        functions = np.unique(self.function[rows])
        bare = [row for row in functions.tolist() if is_address(self.texts[int(self.name[row])])]
        found[rows] = np.isin(self.function[rows], np.array(bare, np.int64))
        return found


def is_address(name: bytes) -> bool:
    """Whether the name of a function is its address."""
    return not name or (name.startswith(b"0x") and not name[2:].strip(b"0123456789abcdefABCDEF"))


class Thread(NamedTuple):
    """A thread: its members, and its stacks."""

    members: Members
    tables: StackTables


class Document:
    """A processed profile. Raises InputError for what is damaged, and for versions that are not known."""

    def __init__(self, text: JsonText) -> None:
        self.text = text
        self.members = text.members(text.root())
        self.meta: dict[str, Any] = self._value("meta", dict)
        version = self.meta.get("preprocessedProfileVersion")
        if not isinstance(version, int) or not OLDEST <= version <= NEWEST:
            problem = f"is a profile of the Firefox Profiler of version {version!r}; {OLDEST} to {NEWEST} are read"
            raise InputError(text.source, problem)
        self.version = version
        self.shared = text.members(self.members["shared"]) if "shared" in self.members else {}
        self.libraries: list[MappedLibrary] = []
        self._rows: dict[MappedLibrary, int] = {}
        if version >= SHARED_LIBRARIES:
            self.libraries = [MappedLibrary.of(text.value(each)) for each in self.list_of(self.members, "libs")]
        own = self._stack_tables(self.shared) if version >= SHARED_TABLES else None
        threads = [text.members(each) for each in self.list_of(self.members, "threads")]
        self.threads = [Thread(each, own or self._stack_tables(each)) for each in threads]
        self.tables = [own] if own else [each.tables for each in self.threads]
        self.has_all_frames = False
        self.categories = names_of(self.meta.get("categories"))

    def _value(self, key: str, kind: type) -> Any:
        value = self.text.value(self.members[key]) if key in self.members else None
        if not isinstance(value, kind):
            raise InputError(self.text.source, f"is no whole profile of the Firefox Profiler: {key} is missing")
        return value

    def list_of(self, members: Members, key: str) -> list[Span]:
        """The items of a list, none if it is missing."""
        return self.text.items(members[key]) if self.text.has(members, key) else []

    def member(self, owner: Members, name: str) -> Span:
        """Where a table or a column is that every profile has."""
        if name not in owner:
            raise InputError(self.text.source, f"is no whole profile of the Firefox Profiler: {name} is missing")
        return owner[name]

    def table(self, owner: Members, name: str) -> Members:
        """The columns of a table."""
        return self.text.members(self.member(owner, name))

    def column(self, table: Members, name: str, count: int, null: int = NONE) -> Int64:
        """A column of integers of `count` rows, `null` where it is null or missing: int64[n]."""
        if not self.text.has(table, name):
            return np.full(count, null, np.int64)
        found = self.text.integers(table[name], null)
        if len(found) != count:
            raise self.text.problem(table[name].begin, f"the column {name} has {len(found)} rows, and not {count}")
        return found

    def rows(self, table: Members, name: str, count: int, of: int) -> Int64:
        """A column of rows of another table, which has so many: int64[n]."""
        found = self.column(table, name, count)
        if len(found) and not (found.min() >= NONE and found.max() < of):
            raise self.text.problem(table[name].begin, f"the column {name} has rows that are not there")
        return found

    def count(self, table: Members, name: str) -> int:
        """How many rows a table has, which has this column."""
        return len(self.text.spans(self.member(table, name)))

    def libraries_of(self, owner: Members) -> Int64:
        """The rows of the libraries of a thread among all: int64[n]."""
        if self.version >= SHARED_LIBRARIES:
            return np.arange(len(self.libraries))
        found = [
            MappedLibrary.of(self.text.value(each))._replace(start=0, end=0, offset=0)
            for each in self.list_of(owner, "libs")
        ]
        for each in found:
            if self._rows.setdefault(each, len(self._rows)) == len(self.libraries):
                self.libraries.append(each)
        return np.array([self._rows[each] for each in found], np.int64)

    def _stack_tables(self, owner: Members) -> StackTables:
        texts_of = self.shared if self.version >= SHARED_TEXTS else owner
        texts = DocumentTexts(self.text, self.member(texts_of, "stringArray"))
        libraries = self.libraries_of(owner)
        stacks, frames, functions = (self.table(owner, name) for name in ("stackTable", "frameTable", "funcTable"))
        nodes, rows, named = self.count(stacks, "frame"), self.count(frames, "func"), self.count(functions, "name")
        flags = self.column(frames, "flags", rows, 0) if self.version >= FRAME_FLAGS else None
        marks = self.column(functions, "flags", named, 0) if self.version >= FUNCTION_FLAGS else None
        function = self.rows(frames, "func", rows, named)
        if (function < 0).any():
            raise self.text.problem(frames["func"].begin, "a frame has no function")
        if flags is not None:
            is_inlined = (flags & IS_INLINED) != 0
        else:
            is_inlined = self.column(frames, "inlineDepth", rows, 0) > 0
        self.member(functions, "resource")
        resource = only(self.column(functions, "resource", named), marks, HAS_RESOURCE)
        if self.version >= FRAME_LIBRARIES:
            library = only(self.column(frames, "lib", rows), flags, HAS_ADDRESS)
        else:
            resources = self.table(owner, "resourceTable")
            of = np.append(self.column(resources, "lib", self.count(resources, "lib")), NONE)
            library = of[np.clip(resource, NONE, len(of) - 1)][function]
        if len(library) and library.max() >= len(libraries):
            raise self.text.problem(owner["frameTable"].begin, "a frame is in a library that is not there")
        return StackTables(
            texts=texts,
            prefix=self._prefixes(stacks, nodes),
            frame=self._frames(stacks, nodes, rows),
            address=only(self.column(frames, "address", rows), flags, HAS_ADDRESS),
            library=np.append(libraries, NONE)[np.maximum(library, NONE)],
            function=function,
            line=only(self.column(frames, "line", rows, 0), flags, HAS_LINE, 0),
            column=only(self.column(frames, "column", rows, 0), flags, HAS_COLUMN, 0),
            is_inlined=is_inlined,
            category=only(self.column(frames, "category", rows), flags, HAS_CATEGORY),
            name=self.rows(functions, "name", named, len(texts)),
            file=self._files(functions, named, marks, len(texts)),
            is_js=(marks & IS_JS) != 0 if marks is not None else self.column(functions, "isJS", named, 0) != 0,
            function_line=only(self.column(functions, "lineNumber", named, 0), marks, HAS_FUNCTION_LINE, 0),
            node_category=self.column(stacks, "category", nodes)
            if self.version < NO_STACK_CATEGORIES
            else np.full(nodes, NONE, np.int64),
            owner=owner,
        )

    def _prefixes(self, stacks: Members, nodes: int) -> Int64:
        """What stands before each node, which is an earlier one."""
        self.member(stacks, "prefixOffset" if self.version >= PREFIX_OFFSETS else "prefix")
        if self.version >= PREFIX_OFFSETS:
            offset = self.column(stacks, "prefixOffset", nodes, 0)
            found = np.where(offset == 0, NONE, np.arange(nodes) - np.where(offset > 0, offset, -nodes))
            found[(found == NONE) & (offset != 0)] = nodes  # nothing stands before the first
        else:
            found = self.column(stacks, "prefix", nodes)
        if ((found < NONE) | (found >= np.arange(nodes))).any():
            raise self.text.problem(stacks["frame"].begin, "a stack does not stand behind the one it goes on from")
        return found

    def _frames(self, stacks: Members, nodes: int, rows: int) -> Int64:
        found = self.rows(stacks, "frame", nodes, rows)
        if (found < 0).any():
            raise self.text.problem(stacks["frame"].begin, "a stack has no frame")
        return found

    def _files(self, functions: Members, named: int, marks: Int64 | None, texts: int) -> Int64:
        """The rows of the names of files."""
        if self.version < SOURCES:
            return self.rows(functions, "fileName", named, texts)
        sources = self.table(self.shared, "sources")
        names = self.rows(sources, "filename", count := self.count(sources, "filename"), texts)
        source = only(self.column(functions, "source", named), marks, HAS_SOURCE)
        if len(source) and not NONE <= source.min() <= source.max() < count:
            raise self.text.problem(functions["source"].begin, "a function has a source that is not there")
        return np.append(names, NONE)[source]


def only(values: Int64, flags: Int64 | None, flag: int, null: int = NONE) -> Int64:
    """The values of rows that have a flag, in versions with flags; all others are null."""
    return values if flags is None else np.where((flags & flag) != 0, values, null)


def depths(prefix: Int64, source: str, most: int) -> Int64:
    """How many nodes each stack has: int64[n]. Raises InputError for one with more than `most`."""
    found = np.ones(len(prefix), np.int64)
    before = prefix.copy()
    alive = np.flatnonzero(before != NONE)
    while len(alive):  # each step doubles the way that was gone
        found[alive] += found[before[alive]]
        if found.max() > most:
            raise InputError(source, f"has stacks of more than {most} frames")
        before[alive] = before[before[alive]]
        alive = alive[before[alive] != NONE]
    return found


def names_of(categories: Any) -> list[str]:
    """The names of categories as a profile has these, empty for what is none."""
    known = categories if isinstance(categories, list) else []
    return [str(each.get("name", "")) if isinstance(each, dict) else "" for each in known]


def number_of(value: Any) -> float:
    """A number of the profile, 0 for anything else."""
    return float(value) if type(value) in (int, float) and abs(value) < LARGEST else 0.0

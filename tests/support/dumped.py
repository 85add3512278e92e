"""DWARF as llvm-dwarfdump prints it: a second reader of functions, inlined calls and line rows.

It names nothing itself: linkage names, plain names and the tree are attributes, as they are in the file. What is made
of them here owes nothing to symbolize or to what llvm-symbolizer makes of them.
"""

import os
import re
import subprocess
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.support.needs import find

PAGE = 8
"""Functions are looked up by addresses without that many bits."""
WHOLE = 8 << 20
"""Up to this size a file is dumped at once, a larger one by units."""

FUNCTIONS = ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine", "DW_TAG_entry_point")
ANONYMOUS = {
    "DW_TAG_namespace": "(anonymous namespace)",
    "DW_TAG_class_type": "(anonymous class)",
    "DW_TAG_structure_type": "(anonymous struct)",
    "DW_TAG_union_type": "(anonymous union)",
    "DW_TAG_enumeration_type": "(anonymous enum)",
}
"""Tags of scopes, and how one without a name is written."""
ROOTS = ("DW_TAG_compile_unit", "DW_TAG_skeleton_unit", "DW_TAG_partial_unit", "DW_TAG_type_unit")
KEPT = {*FUNCTIONS, *ANONYMOUS, *ROOTS}
C_LANGUAGES = {f"DW_LANG_{name}" for name in ("C", "C89", "C99", "C11", "C17", "C23", "Mips_Assembler")}
MAX_STEPS = 16

DIE = re.compile(r"0x([0-9a-f]+):( +)(DW_TAG_\w+)")
ATTRIBUTE = re.compile(r" +(DW_AT_\w+)\t\((.*)")
RANGE = re.compile(r" +\[0x([0-9a-f]+), 0x([0-9a-f]+)\)")
UNIT = re.compile(r"0x[0-9a-f]+: (?:Compile|Type) Unit: .*version = 0x(\w+).* abbr_offset = 0x(\w+)")
ABBREVIATIONS = re.compile(r"Abbrev table for offset: 0x(\w+)")
TYPE_UNIT = re.compile(r"type_signature = 0x(\w+), type_offset = 0x(\w+)")
ESCAPE = re.compile(r"\\([0-7]{3})")
ROW = re.compile(r"0x([0-9a-f]{16}) +(\d+) +(\d+) +(\d+) ")


@dataclass(eq=False, slots=True)
class Unit:
    """A unit: its number as printed, DWARF version, its table of abbreviations, and what its root says."""

    number: int
    version: int
    space: int
    abbreviations: int
    lines: int | None = None
    folder: str = ""
    language: str = ""


@dataclass(eq=False, slots=True)
class Die:
    """A DIE of a scope or function. References are offsets in `unit.space`, which tells a split unit from the rest."""

    tag: str
    unit: Unit
    parent: "Die | None"
    texts: dict[str, str] = field(default_factory=dict)
    ranges: list[tuple[int, int]] = field(default_factory=list)

    def covers(self, vaddr: int) -> bool:
        """Whether a range of it holds an address."""
        return any(begin <= vaddr < end for begin, end in self.ranges)

    def number(self, name: str) -> int | None:
        """An attribute that is a number or a reference."""
        found = re.match(r"0x[0-9a-f]+|\d+", self.texts.get(name, ""))
        return int(found[0], 0) if found else None

    def text(self, name: str) -> str:
        """An attribute that is a string; empty if it is not there."""
        value = self.texts.get(name, "")
        if not value.startswith('"'):
            return ""
        return (
            ESCAPE.sub(lambda byte: chr(int(byte[1], 8)), value[1:-1])
            .encode("latin-1", "replace")
            .decode(errors="replace")
        )


@dataclass(frozen=True)
class Row:
    """A row of a line table."""

    file: str
    line: int
    column: int


@dataclass(frozen=True)
class Named:
    """What a function is called: linkage name or empty, plain name, the scopes around it up to a function, which is
    `local_to`, and the language."""

    linkage: str
    name: str
    scopes: tuple[str, ...]
    local_to: "Named | None"
    language: str

    @property
    def qualified(self) -> str:
        """The name with its scopes."""
        return self.name if self.language in C_LANGUAGES else "::".join([*self.scopes, self.name])


@dataclass(frozen=True)
class Step:
    """A function at an address: its names, declaration and entry, and the place in it, which is that of the row or of
    the call of the step before."""

    named: Named
    file: str
    line: int
    column: int
    decl_file: str
    decl_line: int
    entry: int


class Dumped:
    """The DWARF of a file; see the module."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._tool = find("llvm-dwarfdump-19")
        self._dies: dict[tuple[int, int], Die] = {}
        self._types: dict[int, Die] = {}
        self._functions: dict[int, list[Die]] = defaultdict(list)
        self._pages: dict[int, dict[int, list[Die]]] = {}
        self._found: dict[int, list[list[Step]]] = {}
        self._meant: dict[int, tuple[Named, tuple[str, int]]] = {}
        self._inside: dict[int, list[Die]] = defaultdict(list)
        self._loaded: set[int] = set()
        self._tables: dict[int, _Table] = {}
        self._spaces = 0
        self._is_small = self._path.stat().st_size < WHOLE

    def candidates(self, vaddr: int) -> list[list[Step]]:
        """The functions at an address, each with what is inlined there, innermost first; every possible row."""
        if vaddr not in self._found:
            self._found[vaddr] = self._candidates(vaddr)
        return self._found[vaddr]

    def _candidates(self, vaddr: int) -> list[list[Step]]:
        found = [steps for root in self._roots_at(vaddr) for steps in self._in_unit(root, vaddr)]
        if not found:
            unclaimed = [root for root in self._roots if not root.ranges and self._may_have_code(root.unit)]
            found = [steps for root in unclaimed for steps in self._in_unit(root, vaddr)]
        if not found and self._is_small:  # a unit may claim less than it has
            found = [steps for root in self._roots for steps in self._in_unit(root, vaddr)]
        return found

    def rows(self, vaddr: int) -> list[Row]:
        """The line rows at an address, of all units that claim it, else of all."""
        found = [row for root in self._roots_at(vaddr) for row in self._rows(root.unit, vaddr)]
        if not found and self._is_small:
            found = [row for root in self._roots for row in self._rows(root.unit, vaddr)]
        return found

    def definitions(self, name: str) -> set[tuple[str, int]]:
        """Where functions with a linkage or plain name are defined, also those without code."""
        if self._is_small:
            return self._definitions.get(name, set())
        found: dict[tuple[int, int], Die] = {}
        self._read(self._run(f"--name={name}"), 0, found, self._roots[0].unit)
        return self._defined(die for die in found.values() if die.tag == "DW_TAG_subprogram").get(name, set())

    @cached_property
    def _definitions(self) -> dict[str, set[tuple[str, int]]]:
        """Those of all functions of a small file."""
        return self._defined(die for functions in self._functions.values() for die in functions) if self._roots else {}

    def _defined(self, functions: Iterable[Die]) -> dict[str, set[tuple[str, int]]]:
        """Where functions are defined, by linkage and by plain name."""
        found: dict[str, set[tuple[str, int]]] = defaultdict(set)
        for die in functions:
            if "DW_AT_declaration" not in die.texts:
                for name in {die.text("DW_AT_linkage_name"), die.text("DW_AT_name")}:
                    found[name].add(self._declaration([die]))
        return found

    def _run(self, *arguments: str, path: Path | None = None) -> Iterator[str]:
        """The lines of a dump. Split units that were compiled in "." are looked for where it runs."""
        command = [self._tool, *arguments, str(path or self._path)]
        quiet = {name: value for name, value in os.environ.items() if not name.startswith("DEBUGINFOD")}
        run = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env=quiet, cwd=self._path.parent
        )
        yield from run.stdout.splitlines()

    @cached_property
    def _roots(self) -> list[Die]:
        """The roots of all units, in the order of the file."""
        roots: dict[tuple[int, int], Die] = {}
        self._read(self._run("--debug-info", "--recurse-depth=0"), 0, roots)
        if self._is_small:
            self._read(self._run("--debug-info", "--dwo"), 0, self._dies)
            self._read(self._run("--debug-types"), 1, self._dies)
            for path in sorted(self._path.parent.glob("*.dw[op]")):  # with type units of split ones
                for option in ("--debug-types", "--debug-info"):
                    self._spaces += 1
                    self._read(self._run(option, path=path), self._spaces + 1, self._dies)
            self._loaded = {root.number("offset") or 0 for root in roots.values()}
        return sorted(roots.values(), key=lambda root: root.number("offset") or 0)

    def _roots_at(self, vaddr: int) -> list[Die]:
        return [root for root in self._roots if root.covers(vaddr)]

    def _may_have_code(self, unit: Unit) -> bool:
        """Whether a DIE of a unit can have addresses. Those of which there are hundreds, made before link time
        optimization, cannot, and are not read."""
        return self._is_small or unit.abbreviations in self._with_addresses

    @cached_property
    def _with_addresses(self) -> set[int]:
        """The tables of abbreviations that have attributes for addresses."""
        found, table = set(), 0
        for line in self._run("--debug-abbrev"):
            if match := ABBREVIATIONS.match(line):
                table = int(match[1], 16)
            elif line.startswith(("\tDW_AT_low_pc\t", "\tDW_AT_ranges\t")):
                found.add(table)
        return found

    def _load(self, root: Die) -> None:
        """Read a unit."""
        offset = root.number("offset") or 0
        if offset not in self._loaded:
            self._loaded.add(offset)
            self._read(self._run(f"--debug-info={offset:#x}", "--show-children"), 0, self._dies, root.unit)

    def _read(
        self, lines: Iterator[str], space: int, dies: dict[tuple[int, int], Die], known: Unit | None = None
    ) -> None:
        """Add the DIEs of a dump to `dies`."""
        stack: list[tuple[int, Die]] = []
        unit = known
        die: Die | None = None
        signature: tuple[int, int] | None = None
        in_ranges = is_skeleton = False
        for line in lines:
            if line.startswith("0x"):
                if match := UNIT.match(line):
                    unit = None
                    version, abbreviations, is_skeleton = int(match[1], 16), int(match[2], 16), False
                    types = TYPE_UNIT.search(line)
                    signature = (int(types[1], 16), int(types[2], 16)) if types else None
                    begin = int(line[2:10], 16)
                    continue
                match = DIE.match(line)
                in_ranges, die = False, None
                depth = len(match[2]) if match else 0
                while match and stack and stack[-1][0] >= depth:
                    stack.pop()
                if not match or match[3] not in KEPT:
                    continue
                tag, offset = match[3], int(match[1], 16)
                if tag in ROOTS and known is None:
                    if is_skeleton:  # its split unit follows, in a space of its own
                        self._spaces += 1
                    parts = unit
                    where = self._spaces + 1 if is_skeleton else space
                    unit = Unit(offset, parts.version if parts else version, where, abbreviations)
                    if is_skeleton and parts:
                        unit.lines, unit.folder, unit.number = parts.lines, parts.folder, parts.number
                    is_skeleton = tag == "DW_TAG_skeleton_unit" or is_skeleton
                assert unit is not None
                die = Die(tag, unit, stack[-1][1] if stack else None, {"offset": f"{offset:#x}"})
                stack.append((depth, die))
                dies[unit.space, offset] = die
                if signature is not None and tag not in ROOTS and offset == begin + signature[1]:
                    self._types[signature[0]] = die
                self._note(die)
            elif die is None:
                continue
            elif match := ATTRIBUTE.match(line):
                name, value = match[1], match[2]
                in_ranges = name == "DW_AT_ranges"
                die.texts[name.replace("MIPS_", "")] = value.removesuffix(")")
                if in_ranges:
                    die.ranges = []
                elif name == "DW_AT_high_pc" and not die.ranges:
                    low, high = die.number("DW_AT_low_pc"), die.number(name)
                    if low is not None and high is not None:
                        die.ranges = [(low, high)]
                elif name in ("DW_AT_stmt_list", "DW_AT_comp_dir", "DW_AT_language") and die.tag in ROOTS:
                    unit = die.unit
                    unit.lines = die.number(name) if name == "DW_AT_stmt_list" else unit.lines
                    unit.folder = die.text(name) if name == "DW_AT_comp_dir" else unit.folder
                    unit.language = value.removesuffix(")") if name == "DW_AT_language" else unit.language
                elif name in ("DW_AT_GNU_dwo_name", "DW_AT_dwo_name") and die.tag in ROOTS:
                    is_skeleton = True
            elif in_ranges and (match := RANGE.match(line)):
                die.ranges.append((int(match[1], 16), int(match[2], 16)))

    def _note(self, die: Die) -> None:
        """Index a function by its unit, an inlined call by the function that it is in."""
        if die.tag == "DW_TAG_inlined_subroutine":
            around = die.parent
            while around is not None and around.tag not in FUNCTIONS:
                around = around.parent
            self._inside[id(around)].append(die)
        elif die.tag == "DW_TAG_subprogram":
            self._functions[die.unit.number].append(die)

    def _in_unit(self, root: Die, vaddr: int) -> Iterator[list[Step]]:
        """The candidates of one unit."""
        self._load(root)
        number = root.unit.number
        if number not in self._pages:
            pages = self._pages[number] = defaultdict(list)
            for function in self._functions[number]:
                for page in {p for begin, end in function.ranges for p in range(begin >> PAGE, (end >> PAGE) + 1)}:
                    pages[page].append(function)
        for function in self._pages[number].get(vaddr >> PAGE, ()):
            if not function.covers(vaddr):
                continue
            for chain in self._chains([function], vaddr):
                for row in self._row_of(chain[0], vaddr):
                    yield self._steps(chain, row)

    def _chains(self, chain: list[Die], vaddr: int) -> Iterator[list[Die]]:
        """Chains of inlined calls that go on from `chain`, which is innermost first."""
        deeper = [die for die in self._inside[id(chain[0])] if die.covers(vaddr)]
        for die in deeper:
            yield from self._chains([die, *chain], vaddr)
        if not deeper:
            yield chain

    def _row_of(self, innermost: Die, vaddr: int) -> list[Row]:
        """The rows at an address that may be those of the innermost function: of several sequences those that come next
        behind its declaration, if that tells (R161)."""
        rows = self._rows(innermost.unit, vaddr)
        if len(rows) < 2:
            return rows or [Row("", 0, 0)]
        declared = self._chain_of(innermost)
        file, line = self._declaration(declared)
        behind = [row for row in rows if row.file == file and row.line >= line]
        nearest = min((row.line for row in behind), default=0)
        return [row for row in behind if row.line == nearest] or rows

    def _steps(self, chain: list[Die], row: Row) -> list[Step]:
        """The steps of a chain of DIEs."""
        steps = []
        place = row
        for die in chain:
            low = die.number("DW_AT_low_pc")
            entry = low if low is not None and die.covers(low) else die.ranges[0][0]
            named, (decl_file, decl_line) = self._meaning(die)
            steps.append(Step(named, place.file, place.line, place.column, decl_file, decl_line, entry))
            place = Row(
                self._file(die, "DW_AT_call_file"),
                die.number("DW_AT_call_line") or 0,
                die.number("DW_AT_call_column") or 0,
            )
        return steps

    def _meaning(self, die: Die) -> tuple[Named, tuple[str, int]]:
        """What a function is called, and where it is declared."""
        if id(die) not in self._meant:
            origins = self._chain_of(die)
            linkage = next((text for each in origins if (text := each.text("DW_AT_linkage_name"))), "")
            scopes, around = self._scopes(origins[-1])
            local_to = self._meaning(around)[0] if around is not None else None
            named = Named(linkage, name_of(origins), scopes, local_to, origins[-1].unit.language)
            self._meant[id(die)] = named, self._declaration(origins)
        return self._meant[id(die)]

    def _chain_of(self, die: Die) -> list[Die]:
        """A DIE and those that it refers to by origin and specification."""
        chain = [die]
        while len(chain) < MAX_STEPS:
            last = chain[-1]
            signature = last.number("DW_AT_signature")
            if signature is not None:
                following = self._types.get(signature)
            else:
                offset = last.number("DW_AT_abstract_origin") or last.number("DW_AT_specification")
                following = self._at(last.unit.space, offset) if offset is not None else None
            if following is None:
                break
            chain.append(following)
        return chain

    def _at(self, space: int, offset: int) -> Die | None:
        """The DIE at an offset, for which its unit is read."""
        if space == 0 and (space, offset) not in self._dies:
            starts = [root.number("offset") or 0 for root in self._roots]
            index = bisect_right(starts, offset) - 1
            if index >= 0:
                self._load(self._roots[index])
        return self._dies.get((space, offset))

    def _scopes(self, die: Die) -> tuple[tuple[str, ...], Die | None]:
        """The names of the scopes around a DIE, outermost first, up to a function, and that."""
        names: list[str] = []
        around = die.parent
        while around is not None and around.tag not in ROOTS:
            if around.tag in FUNCTIONS:
                return tuple(names[::-1]), around
            if around.tag in ANONYMOUS:
                origins = self._chain_of(around)
                names.append(name_of(origins) or ANONYMOUS[around.tag])
                around = origins[-1]
            around = around.parent
        return tuple(names[::-1]), None

    def _declaration(self, origins: list[Die]) -> tuple[str, int]:
        """File and line of the declaration of the first DIE of a chain that has a line."""
        line = next((number for each in origins if (number := each.number("DW_AT_decl_line"))), 0)
        file = next((path for each in origins if (path := self._file(each, "DW_AT_decl_file"))), "")
        return file, line

    def _file(self, die: Die, attribute: str) -> str:
        """An attribute that is a file: printed as its path, of split units as its number."""
        path = die.text(attribute)
        number = die.number(attribute)
        if not path and number is not None and die.unit.lines is not None:
            path = self._table(die.unit).path(number)
        return tidy(path)

    def _table(self, unit: Unit) -> "_Table":
        """The line table of a unit."""
        assert unit.lines is not None
        if unit.lines not in self._tables:
            self._tables[unit.lines] = _Table(self._run(f"--debug-line={unit.lines:#x}"), unit.folder)
        return self._tables[unit.lines]

    def _rows(self, unit: Unit, vaddr: int) -> list[Row]:
        """The distinct rows of a unit at an address."""
        return [*dict.fromkeys(self._table(unit).at(vaddr))] if unit.lines is not None else []


def name_of(origins: list[Die]) -> str:
    """The plain name of a DIE with its origins."""
    return next((text for each in origins if (text := each.text("DW_AT_name"))), "")


def tidy(path: str) -> str:
    """A path without `/./` and `//` (R46)."""
    while "/./" in path or "//" in path[1:]:
        path = path.replace("/./", "/").replace("//", "/")
    return path


class _Table:
    """One line table: sequences of rows, ascending by address."""

    def __init__(self, lines: Iterator[str], folder: str) -> None:
        self._folder = folder
        self._folders: dict[int, str] = {}
        self._names: dict[int, str] = {}
        self._in: dict[int, int] = {}
        self._version = 0
        self._sequences: list[list[tuple[int, int, int, int]]] = []
        rows: list[tuple[int, int, int, int]] = []
        file = -1
        for line in lines:
            if match := ROW.match(line):
                rows.append((int(match[1], 16), int(match[4]), int(match[2]), int(match[3])))
                if line.endswith("end_sequence"):
                    if rows[0][0] < rows[-1][0]:  # else dropped by the linker, and begins at the highest addresses
                        self._sequences.append(sorted(rows, key=lambda row: row[0]))
                    rows = []
            elif match := re.match(r" +version: (\d+)", line):
                self._version = int(match[1])
            elif match := re.match(r'include_directories\[ *(\d+)\] = "(.*)"', line):
                self._folders[int(match[1])] = match[2]
            elif match := re.match(r"file_names\[ *(\d+)\]:", line):
                file = int(match[1])
            elif match := re.match(r' +name: "(.*)"', line):
                self._names[file] = match[1]
            elif match := re.match(r" +dir_index: (\d+)", line):
                self._in[file] = int(match[1])

    def path(self, number: int) -> str:
        """The path of a file."""
        if number not in self._names:
            return ""
        folder = self._folders.get(self._in.get(number, 0), "" if self._version >= 5 else self._folder)
        return tidy(os.path.join(self._folder, folder, self._names[number]))

    def at(self, vaddr: int) -> Iterator[Row]:
        """The row of each sequence at an address."""
        for rows in self._sequences:
            if rows[0][0] <= vaddr < rows[-1][0]:
                index = bisect_right(rows, vaddr, key=lambda row: row[0]) - 1
                _, file, line, column = rows[index]
                yield Row(self.path(file), line, column)

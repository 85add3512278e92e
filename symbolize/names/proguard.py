"""ProGuard and R8 mapping files: from obfuscated names and lines to those of the source (R171 to R174).

A `ProguardMap` is read from a file (`read_map`), or filled by a loader that has the same facts in another form.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO, NamedTuple

from symbolize.core.errors import InputError

MAX_LINE = 1 << 16
"""Longer lines are skipped: the few that R8 writes list call sites of outlined code, which are not used."""
MAX_MEMBERS = 1 << 22
"""Methods and line ranges of the wanted classes."""
MAX_INLINED = 256
"""Methods that are inlined into one another at one line; a longer chain is not believed."""
MAX_CANDIDATES = 8
"""A name that may be more methods than these is not translated."""
MAX_REPORTED = 3
"""Bad lines that are reported with their number; the others are counted."""

CLASS = re.compile(rb"(\S+) -> (\S+):")
MEMBER = re.compile(
    rb"(?:(\d{1,10}):(\d{1,10}):)?(\S+)\s+([^\s(:]+)(?:\(([^()\s]*)\))?(?::(\d{1,10})(?::(\d{1,10}))?)?\s+->\s+(\S+)"
)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SOURCE_FILE, SYNTHESIZED = b"sourceFile", b"com.android.tools.r8.synthesized"

NAME = re.compile(rb"(?:(?P<type>[^\s()]+) )?(?P<path>[^\s()]+)\.(?P<method>[^\s().]+)(?:\((?P<arguments>[^()]*)\))?")
DEDUPLICATED = b" [DEDUPED]"
"""What ART's compiler appends to the name where several methods share the code."""


class JavaName(NamedTuple):
    """The name of a Java method: class with package, method, arguments (None: unknown), and a suffix for readers."""

    owner: bytes
    method: bytes
    arguments: bytes | None = None
    suffix: bytes = b""


class MappedLines(NamedTuple):
    """A line of the map: lines `first` to `last` of an obfuscated method are these of the method `owner.name`.

    Without lines `first` is -1, and `source_first` where those of the source are unknown. `source_last` is -1 where all
    are one line of the source.
    """

    first: int
    last: int
    owner: bytes
    name: bytes
    arguments: bytes
    source_first: int = -1
    source_last: int = -1


class SourceFrame(NamedTuple):
    """A frame of the source: method with its class, file (empty: unknown) and line (0: unknown)."""

    name: bytes
    file: bytes
    line: int


@dataclass(eq=False)
class JavaClass:
    """A class: its name in the source, and the ranges of its methods by obfuscated name, in the order of the file.

    `synthesized` are the methods (owner, name, arguments) that the compiler generated; with `has_gaps`, lines of the
    class could not be read.
    """

    name: bytes
    methods: dict[bytes, list[MappedLines]] = field(default_factory=dict)
    synthesized: set[tuple[bytes, bytes, bytes]] = field(default_factory=set)
    has_gaps: bool = False

    def add(self, obfuscated: bytes, name: bytes, arguments: bytes = b"", *numbers: int) -> MappedLines:
        """Add a method or a line range of it; `numbers` are the lines as in `MappedLines`, from `first` on.

        A `name` with a dot has the class that the method was inlined from (R171, Java names).
        """
        owner, _, plain = name.rpartition(b".")
        first, last, source_first, source_last = (*numbers, *(-1, -1, -1, -1)[len(numbers) :])
        added = MappedLines(first, last, owner or self.name, plain, arguments, source_first, source_last)
        self.methods.setdefault(obfuscated, []).append(added)
        return added


@dataclass(eq=False)
class ProguardMap:
    """The classes of a program by obfuscated name, and the files of classes by their names in the source.

    `ambiguous` are obfuscated names that several classes have. `problems` lists what could not be read. `looked_at`
    counts the ranges that `frames` compared.
    """

    source: str
    classes: dict[bytes, JavaClass] = field(default_factory=dict)
    files: dict[bytes, bytes] = field(default_factory=dict)
    ambiguous: set[bytes] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    looked_at: int = 0

    def add(self, obfuscated: bytes, name: bytes) -> JavaClass:
        """Add a class; another one with the same obfuscated name makes both ambiguous (R174)."""
        if obfuscated in self.classes and obfuscated not in self.ambiguous:
            self.ambiguous.add(obfuscated)
            shown = obfuscated.decode(errors="backslashreplace")
            self.problems.append(f"{self.source}: class {shown} occurs twice, so that it is not translated")
        added = self.classes[obfuscated] = JavaClass(name)
        return added

    def frames(self, name: JavaName, line: int) -> list[SourceFrame]:
        """The frames of the source for a name and line (0: unknown), innermost first; empty if they are unknown.

        Where no line decides between methods of one obfuscated name, arguments do, translated to the source's names, if
        the profile has them. Else all are named, with ` | ` between, and no line; of more than MAX_CANDIDATES only the
        class is (R173, overloaded Java methods).
        """
        java_class = self.classes.get(name.owner)
        if java_class is None or name.owner in self.ambiguous:
            return []
        ranges = java_class.methods.get(name.method, ())
        self.looked_at += len(ranges)
        groups = self._of_overload(chains(ranges), name.arguments)
        if not groups:
            if java_class.has_gaps:  # the method may be one of those that could not be read
                return []
            return [SourceFrame(java_class.name + b"." + name.method, self.files.get(java_class.name, b""), line)]
        here = [group for group in groups if line > 0 and group[0].first <= line <= group[0].last]
        without = [group for group in groups if group[0].last <= 0]
        if len(here) == 1 or (not here and line > 0 and len(groups) == len(without) == 1):
            (chain,) = here or without
            if len(chain) > MAX_INLINED:
                return []
            written = [method for method in chain if method[2:5] not in java_class.synthesized] or chain
            return [self._frame(method, line) for method in written]
        # Which of the methods with this name it is remains unknown, and so does its line (R173).
        outer = [group[-1] for group in here or (without if line > 0 else groups) or groups]
        outer = [method for method in outer if method[2:5] not in java_class.synthesized] or outer
        methods = sorted({(method.owner, method.name) for method in outer})
        if len(methods) > MAX_CANDIDATES:
            methods = [(java_class.name, name.method)]
        names = sorted(owner + b"." + method for owner, method in methods)
        files = {self.files.get(method.owner, b"") for method in outer}
        return [SourceFrame(b" | ".join(names), files.pop() if len(files) == 1 else b"", 0)]

    def _of_overload(self, groups: list[list[MappedLines]], arguments: bytes | None) -> list[list[MappedLines]]:
        """The groups of the method with these obfuscated arguments, if any has them (R173)."""
        if arguments is None:
            return groups
        wanted = re.sub(rb"[^\s,\[\]]+", lambda found: self._type(found[0]), arguments.replace(b" ", b""))
        return [group for group in groups if group[-1].arguments == wanted] or groups

    def _type(self, obfuscated: bytes) -> bytes:
        """The name of a class in the source."""
        known = self.classes.get(obfuscated)
        return known.name if known is not None and obfuscated not in self.ambiguous else obfuscated

    def _frame(self, method: MappedLines, line: int) -> SourceFrame:
        """The frame of one method at a line of its obfuscated form (R172)."""
        if method.source_first < 0:
            source = line
        elif method.source_last < 0 or method.source_first == method.source_last:
            source = method.source_first
        elif method.last <= 0:
            source = 0  # any line of the method
        else:
            source = method.source_first + line - method.first
            source = source if source <= method.source_last else 0
        return SourceFrame(method.owner + b"." + method.name, self.files.get(method.owner, b""), source)


def chains(ranges: Iterable[MappedLines]) -> list[list[MappedLines]]:
    """The ranges of one obfuscated name, each with the methods that it was inlined into behind it (R172).

    What follows with the same lines is the caller, if it is at one line. Methods without lines are chains of their own.
    Lines `a:b` in the program are lines `c:d` in the source, counted from the first; a single `c` applies to all of
    them, without `c` lines are unchanged, and line 0 is unknown. Methods that R8 marks as synthesized are left out
    where there is another one at the same position. Outlined code (`outline`, `outlineCallsite`), `rewriteFrame` and
    `residualsignature` are not used: a frame in outlined code has the name that the map gives it.
    """
    found: list[list[MappedLines]] = []
    for method in ranges:
        is_caller = method.source_last in (-1, method.source_first)
        if found and is_caller and method.first >= 0 and found[-1][-1][:2] == method[:2]:
            found[-1].append(method)
        else:
            found.append([method])
    return found


def parse_name(name: bytes) -> JavaName | None:
    """The parts of a name as profilers of Android write it, None if it is no name of a Java method (R171).

    A result type before it is left out; arguments and the mark of code that several methods share are kept apart.
    """
    plain = name.removesuffix(DEDUPLICATED)
    found = NAME.fullmatch(plain)
    if found is None or b"::" in plain or b"/" in plain:
        return None
    return JavaName(found["path"], found["method"], found["arguments"], name[len(plain) :])


def classes_in(name: JavaName) -> Iterator[bytes]:
    """The classes in a name: its own, and those of its arguments."""
    yield name.owner
    if name.arguments:
        yield from re.findall(rb"[^\s,\[\]]+", name.arguments)


def read_map(path: str, wanted: Collection[bytes]) -> ProguardMap:
    """Read the classes with the obfuscated names `wanted` from a mapping file.

    A file with a line that is neither class, member nor comment is no map; a member that cannot be read is skipped, and
    methods that its class does not list are left as they are (R174, contradicting maps).

    Raises InputError, with the number of the line, if the file cannot be read or is none.
    """
    result = ProguardMap(path)
    try:
        with open(path, "rb") as file:
            _read_classes(file, result, wanted)
            # The file of a method is given with its class, which may precede or follow the one it was inlined into.
            owners = {method.owner for known in result.classes.values() for r in known.methods.values() for method in r}
            owners -= {known.name for known in result.classes.values()}
            if owners and file.seekable():
                file.seek(0)
                _read_files(file, result, owners)
    except OSError as error:
        raise InputError(path, error.strerror or str(error)) from error
    return result


def _read_classes(file: BinaryIO, result: ProguardMap, wanted: Collection[bytes]) -> None:
    """Add the classes `wanted` with their members."""
    current: JavaClass | None = None
    member: MappedLines | None = None
    any_class, kept, bad = False, 0, []
    for number, line in _lines(file):
        indented = line[:1] in (b" ", b"\t")
        if indented and current is None and any_class:
            continue  # a member of a class that is not wanted
        text = line.strip()
        if text.startswith(b"#"):
            if current is not None and b'"id"' in (text := text.replace(b"'", b'"')):
                _read_comment(text, result, current, member)
        elif text and not indented:
            found = CLASS.fullmatch(text.removeprefix(BYTE_ORDER_MARK))
            if found is None:
                what = "is no class, and not indented as a member is" if any_class else "is no class"
                raise InputError(result.source, f"is not a ProGuard map: line {number} {what}")
            any_class, member = True, None
            current = result.add(found[2], found[1]) if found[2] in wanted else None
        elif text and current is None:
            raise InputError(result.source, f"is not a ProGuard map: line {number} precedes any class")
        elif text and current is not None:
            member = None
            is_cut = len(line) == MAX_LINE and line[-1] != ord("\n")
            found = MEMBER.fullmatch(text) if not is_cut else None
            if found is None:
                bad.append(number)
                current.has_gaps = True
            elif found[5] is not None:  # the others are fields
                kept += 1
                if kept > MAX_MEMBERS:
                    raise InputError(result.source, f"line {number}: too many methods in the classes asked for")
                member = _add_member(current, found)
    if bad:
        more = f" and {len(bad) - MAX_REPORTED} more" if len(bad) > MAX_REPORTED else ""
        first = ", ".join(map(str, bad[:MAX_REPORTED]))
        result.problems.append(f"{result.source}: unreadable members in lines {first}{more} are left out")


def _add_member(current: JavaClass, found: re.Match[bytes]) -> MappedLines:
    """Add the method of a line."""
    first, last, _, name, arguments, source_first, source_last, obfuscated = found.groups()
    numbers = [int(digits) if digits is not None else -1 for digits in (first, last, source_first, source_last)]
    return current.add(obfuscated, name, arguments, *numbers)


def _read_comment(line: bytes, result: ProguardMap, current: JavaClass, member: MappedLines | None) -> None:
    """Take over a comment of R8 on the class or the method before it (R172)."""
    if SYNTHESIZED in line:
        if member is not None:
            current.synthesized.add(member[2:5])
    elif SOURCE_FILE in line and member is None and (name := _file_name(line)):
        result.files[current.name] = name


def _file_name(line: bytes) -> bytes:
    """The source file of a class by a comment; empty if it has none."""
    try:
        facts = json.loads(line[line.index(b"{") :])
        if facts["id"] == SOURCE_FILE.decode():
            return str(facts["fileName"]).encode(errors="replace")
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    return b""


def _read_files(file: BinaryIO, result: ProguardMap, owners: set[bytes]) -> None:
    """Find the files of the classes that are called `owners` in the source."""
    owner = b""
    for _, line in _lines(file):
        start = line[:1]
        if start in (b" ", b"\t"):
            continue
        if start != b"#":
            owner = line.partition(b" ")[0]
            owner = owner if owner in owners else b""
        elif owner and SOURCE_FILE in line and (name := _file_name(line.replace(b"'", b'"'))):
            result.files[owner] = name


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers, each cut at MAX_LINE."""
    inside = False
    number = 0
    for line in iter(partial(file.readline, MAX_LINE), b""):
        if not inside:
            number += 1
            yield number, line
        inside = line[-1] != ord("\n")

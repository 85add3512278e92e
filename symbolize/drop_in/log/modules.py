"""What a text says of its modules: where which file was in memory, and which build ids files have.

A table stands in front of the frames that need it or behind them, as in a report of the JVM: the nearest one in front
that has the address counts, else the nearest one behind (R511, tables in texts).
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from symbolize.core.mapped_names import base_name
from symbolize.drop_in.log.forms import path_text

MAX_ROWS: Final = 1 << 16
"""Modules and build ids of a text that are remembered; with one more all are forgotten, and no frame in front of it
gets what stands behind."""
MAX_TABLES: Final = 1 << 8
MAX_REACH: Final = 1 << 32
"""Bytes from the begin of a file in memory, where the text has no end of it."""
MAIN: Final = "\0main"
KERNEL: Final = "vmlinux"
RELEASE: Final = "\0release"
"""What the build ids of a program that is not named, and of the kernel, and its release are remembered by."""

ADDRESS: Final = rb"[0-9a-f]{5,16}"
TABLES: Final = {
    # /proc/PID/maps, and the tables of the JVM, Go and others, which copy it
    "file": re.compile(
        rb"(?<![\w])(?P<start>%b)-(?P<limit>%b) r-xp (?P<offset>[0-9a-f]{8,16}) [0-9a-f:]{3,17} \d{1,20}\s{1,80}"
        rb"(?P<path>/[^\n]{1,1024})" % (ADDRESS, ADDRESS)
    ),
    # gdb: info proc mappings
    "gdb": re.compile(
        rb"\s0x(?P<start>%b) {1,20}0x(?P<limit>%b) {1,20}0x[0-9a-f]{1,16} {1,20}0x(?P<offset>[0-9a-f]{1,16})  r-xp "
        rb"{1,20}(?P<path>/[^\n]{1,1024})" % (ADDRESS, ADDRESS)
    ),
    # gdb: info sharedlibrary
    "text": re.compile(
        rb"^0x(?P<start>%b) {1,20}0x(?P<limit>%b) {1,20}Yes(?: \(\*\))? {1,20}(?P<path>/[^\n]{1,1024})"
        % (ADDRESS, ADDRESS),
        re.MULTILINE,
    ),
    # lldb: image list
    "base": re.compile(
        rb"\[ {0,4}\d{1,5}\] (?P<id>[0-9A-F]{8}[0-9A-F-]{0,64}) 0x(?P<start>%b) (?P<path>/[^\n]{1,1024})" % ADDRESS
    ),
}
IDS: Final = (
    # systemd-coredump
    re.compile(rb"\bModule (?P<path>\S{1,1024}) with build-id (?P<id>[0-9a-f]{8,128})\b"),
    # MongoDB: processInfo.somap
    re.compile(
        rb'\{"b":"(?P<base>[0-9A-F]{1,16})"(?:,"path":"(?P<path>[^"\\\n]{0,1024})")?(?:,"[a-zA-Z]{1,16}":(?:"[^"\\\n]{0,80}"|\d{1,9})){0,4}?'
        rb',"buildId":"(?P<id>[0-9A-F]{8,128})"'
    ),
    # the kernel: dump_stack_print_info, also of a task that hangs
    re.compile(
        rb"(?:\bCPU: \d{1,6} |\bTainted: |\bNot tainted )(?:.{0,400} )?(?P<release>[\w.+~-]{1,64}) #\d{1,9}\b"
        rb"(?: (?:PREEMPT\S{0,20} )? ?(?P<id>[0-9a-f]{40})\b)?"
    ),
    re.compile(rb"\bLinux version (?P<release>[\w.+~-]{1,64}) \("),
    # seastar's programs, and others that say what they are
    re.compile(rb"(?i:build[- ]?id)(?:[:=]| is)? {0,2}(?P<id>[0-9a-f]{16,128})\b"),
)
MODULE_MARKERS: Final = (
    b" r-xp ",
    b"  Yes ",
    b"[  0] ",
    b"ainted",
    b"Linux version ",
    b"uild-id",
    b"uild ID",
    b"uildId",
)


class TextModule(NamedTuple):
    """A module in memory; `kind` says what begins at `start`: the part of a file at `offset`, its section .text, or
    the file."""

    kind: Literal["file", "text", "base"]
    start: int
    limit: int
    offset: int
    file: str
    build_id: str


class ModuleTable:
    """Modules that do not overlap, of one process as far as one can tell; the first stands at `place` in the text."""

    def __init__(self, place: int) -> None:
        self.place = place
        self._starts: list[int] = []
        self._rows: list[TextModule] = []

    def at(self, address: int) -> TextModule | None:
        """The module at an address."""
        index = bisect_right(self._starts, address) - 1
        return self._rows[index] if index >= 0 and address < self._rows[index].limit else None

    def add(self, row: TextModule) -> bool:
        """Take a module, if it is in the place of no other one."""
        index = bisect_right(self._starts, row.start)
        if index and self._rows[index - 1] == row:
            return True
        is_open = row.kind == "base"  # its end is where the next one begins
        before = self._rows[index - 1] if index else None
        if before is not None and (row.start == before.start or (before.kind != "base" and row.start < before.limit)):
            return False
        if not is_open and index < len(self._rows) and self._rows[index].start < row.limit:
            return False
        self._starts.insert(index, row.start)
        self._rows.insert(index, row)
        return True


class TextModules:
    """The modules of a text, each with its place in it."""

    def __init__(self) -> None:
        self._tables: list[ModuleTable] = []
        self._ids: dict[str, list[tuple[int, str]]] = {}
        self._paths: dict[str, str] = {}
        self._count = 0
        self._listed = 0
        self._begin = 0
        self._is_cut = False

    @property
    def has_tables(self) -> bool:
        """Whether anything says where files were."""
        return bool(self._tables)

    def read(self, text: bytes, begin: int, end: int, place: int) -> None:
        """Take what the line `text[begin:end]`, at `place` of the whole text, says of modules."""
        if place < self._listed or not any(text.find(marker, begin, end) >= 0 for marker in MODULE_MARKERS):
            return
        if self._count >= MAX_ROWS:
            self._forget(place)
        for kind, pattern in TABLES.items():
            match = pattern.search(text, begin, end)
            if match is not None:
                self._add(row_of(kind, match), place)
                if kind == "base":
                    self._listed = place - begin + self._read_list(text, end + 1, place)
                return
        for pattern in IDS:
            is_one = False
            for match in pattern.finditer(text, begin, end):
                is_one = True
                for key, value in said_in(match):
                    self._note(key, value, place)
            if is_one:
                return

    def resume(self, text: bytes, begin: int, place: int) -> None:
        """Take the rest of a list in which the text before ended; it goes on at `text[begin]`, which is at `place`."""
        if self._is_cut:
            self._listed = place - begin + self._read_list(text, begin, place)

    def _forget(self, place: int) -> None:
        """Forget all that stands in front of `place`."""
        self._tables.clear()
        self._ids.clear()
        self._paths.clear()
        self._count, self._begin = 0, place

    def _read_list(self, text: bytes, begin: int, place: int) -> int:
        """Take the rest of a list whose first line was read; lines with the debug file of a module are in between.
        Where the list ends."""
        pattern = TABLES["base"]
        self._is_cut = False
        while begin < len(text) and self._count < MAX_ROWS:
            end = text.find(b"\n", begin)
            end = len(text) if end < 0 else end
            match = pattern.search(text, begin, end)
            if match is not None:
                self._add(row_of("base", match), place)
            elif not text.startswith((b"      /", b"["), begin):
                return begin
            begin = end + 1
        self._is_cut = self._count < MAX_ROWS
        return begin

    def _add(self, row: TextModule, place: int) -> None:
        if not row.start < row.limit:
            return
        self._count += 1
        name = base_name(row.file)
        self._paths[name] = row.file if self._paths.get(name, row.file) == row.file else name
        if not self._tables or not self._tables[-1].add(row):
            self._tables.append(ModuleTable(place))
            self._tables[-1].add(row)
            if len(self._tables) > MAX_TABLES:
                del self._tables[0]
                self._begin = self._tables[0].place

    def _note(self, key: str, value: str, place: int) -> None:
        known = self._ids.setdefault(key, [])
        if not known or known[-1][1] != value:
            known.append((place, value))
            self._count += 1

    def at(self, address: int, place: int) -> TextModule | None:
        """What was at an address, as a frame at `place` has it; nothing if what is around is forgotten."""
        if place < self._begin:
            return None
        found = None
        for table in self._tables:
            row = table.at(address)
            if row is None:
                continue
            if table.place > place:
                return found or row
            found = row
        return found

    def path(self, file: str) -> str:
        """The path of a file as the tables have it, if they have one of its name; else the file."""
        return file if "/" in file else self._paths.get(file, file)

    def build_id(self, key: str, place: int) -> str:
        """The build id of a file by its base name, or what is remembered by another key; empty if the text has none, or
        if it may be forgotten."""
        known = self._ids.get(key)
        if not known or place < self._begin:
            return ""
        index = bisect_right(known, place, key=lambda each: each[0])
        return known[max(index - 1, 0)][1]


def row_of(kind: str, match: re.Match[bytes]) -> TextModule:
    """The module in a line of a table."""
    groups = match.groupdict()
    start, file = int(groups["start"], 16), path_text(groups["path"].strip().removesuffix(b" (deleted)"))
    if kind == "base":
        return TextModule("base", start, start + MAX_REACH, 0, file, groups["id"].replace(b"-", b"").decode().lower())
    limit, offset = int(groups["limit"], 16), int(groups.get("offset") or b"0", 16)
    return TextModule("text" if kind == "text" else "file", start, limit, offset, file, "")


def said_in(match: re.Match[bytes]) -> Iterator[tuple[str, str]]:
    """What a line says of build ids, and of the kernel's release: each with what it is remembered by."""
    groups = match.groupdict()
    build_id = (groups.get("id") or b"").decode().lower()
    if groups.get("base"):
        yield base_key(int(groups["base"], 16)), build_id
    if groups.get("path"):
        yield base_name(path_text(groups["path"])), build_id
    if "release" in groups:
        yield RELEASE, groups["release"].decode()
        if build_id:
            yield KERNEL, build_id
    if len(groups) == 1 and build_id:
        yield MAIN, build_id


def base_key(address: int) -> str:
    """What the build id of a file that begins at an address is remembered by."""
    return f"\0{address:x}"

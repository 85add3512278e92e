"""The files below the given roots, by build id, name and path, from a walk that reads headers and notes only.

What a walk learns is kept in a database (`store.py`), so that the next one reads only the files that changed.
"""

import os
import re
import sqlite3
import stat
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from symbolize.binaries import store
from symbolize.binaries.build_id import build_id_key, is_build_id, module_prefix, same_build_id
from symbolize.binaries.layouts import LIST_NAME, MAX_LIST_BYTES, SPECIAL_NAME, listed, vouched_key
from symbolize.binaries.remote import Servers
from symbolize.binaries.unpack import Unpacked, is_packed
from symbolize.binaries.walk import File, Folder, Walk
from symbolize.core.errors import InputError
from symbolize.core.files import open_regular, os_error_text
from symbolize.elf import ElfError
from symbolize.elf.probe import CODE, DWARF, DYNSYM, HEADER_BYTES, MINI, SYMTAB, identify, identify_open

MAX_PROBLEMS = 50
"""Problems that are told one by one; of the others only the number is."""
MAX_UNUSABLE = 1024
"""Files that cannot be read of which the reason is remembered."""
MAX_ANSWERS = 1024
"""Files that one question is answered with. In a build tree a name may stand for thousands."""
MAX_CHECKED = 8 << 30
"""Bytes of the largest file whose checksum is computed."""
SETTLED_NS = 50_000_000
"""A file that changed less than this long ago may change again without another time of change."""
COMMIT_SECONDS = 0.5
"""How long other processes may have to wait before they can write."""

COLUMNS = "f.*, d.root, d.path, d.linked"
STATE = "size, modified, changed, inode, device"
"""The columns that are equal while a file does not change."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file: where it was met first, below which of the roots, and its build id if it has one.

    `relative` is its path below the root, `offers` a union of the bits of `elf.ident`, `link` and `link_check` name and
    CRC32 of its debug file if it names one, `go_build_id` what Go's linker wrote. `vouched` is the key of the build id
    that its path says it has. `what` is one of the constants of `store`.
    """

    path: str
    root: int
    build_id: str | None
    relative: str = field(default="", compare=False)
    offers: int = field(default=0, compare=False)
    link: str = field(default="", compare=False)
    link_check: int = field(default=0, compare=False)
    vouched: str = field(default="", compare=False)
    what: int = field(default=store.ELF, compare=False)
    number: int = field(default=0, compare=False)
    identity: tuple[int, int] = field(default=(0, 0), compare=False)
    state: tuple[int, int] = field(default=(0, 0), compare=False)
    crc: int | None = field(default=None, compare=False)
    go_build_id: str = field(default="", compare=False)

    @property
    def build(self) -> str:
        """What tells builds apart: the build id, else that of Go's linker, else the path."""
        return self.build_id or (f"go {self.go_build_id}" if self.go_build_id else self.path)

    @property
    def has_dwarf(self) -> bool:
        """Whether the file has debug information of its own."""
        return bool(self.offers & DWARF)

    @property
    def rank(self) -> int:
        """DWARF beats .symtab beats .dynsym and mini debug info beats nothing: 0 to 3, the lower the better."""
        if self.offers & DWARF:
            return 0
        return 1 if self.offers & SYMTAB else 2 if self.offers & (DYNSYM | MINI) else 3

    @property
    def has_code(self) -> bool:
        """Whether the file holds the bytes of its code."""
        return bool(self.offers & CODE)


class BinaryIndex:
    """Index of the ELF files below `roots` (folders or single files), made at the first question.

    `folder` is the cache folder in which what is known of the files is kept; without one it is known to this process
    only. `depth` may say how many folders deep to look. `servers` may have what is missing; see `find_binary`.
    `problems` lists what could not be read or was left out, a sentence each; `unread` has the paths of folders and
    files that the system did not let us read, up to a number, `unusable` those of files that cannot be read or are
    damaged, each with why. Nothing here raises OSError: a database that is locked,
    damaged or cannot be written costs time, not answers.
    """

    def __init__(
        self,
        roots: Sequence[str],
        folder: str | os.PathLike[str] | None = None,
        servers: Servers | None = None,
        depth: int | None = None,
    ) -> None:
        assert folder is None or depth is None  # what is kept is kept of all that lies below a root
        self.roots = roots
        self._depth = depth
        self.servers = servers
        self.folder = None if folder is None else os.fspath(folder)
        self.problems: list[str] = []
        self.unread: list[str] = []
        self.unusable: dict[str, str] = {}
        self._lock = threading.RLock()
        self._reset()

    @property
    def has_places(self) -> bool:
        """Whether there is any place to look at."""
        return bool(self.roots) or self.servers is not None

    def _reset(self) -> None:
        self._connection: sqlite3.Connection | None = None
        self._walked = False
        self._failures = 0
        self._in_memory = False
        self._untold = 0
        self._order: dict[int, int] = {}
        self._committed = 0.0
        self._unpacked = Unpacked(self.folder)

    def __getstate__(self) -> dict[str, Any]:
        """For worker processes, which ask the same database, or walk anew if there is none."""
        kept = {"roots": self.roots, "folder": self.folder, "walked": self._walked, "depth": self._depth}
        return kept | {"unusable": self.unusable}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.roots, self.folder, self._depth = state["roots"], state["folder"], state["depth"]
        self.servers = None
        self.problems, self.unread, self.unusable = [], [], state["unusable"]
        self._lock = threading.RLock()
        self._reset()
        self._walked = state["walked"] and self.folder is not None

    def close(self) -> None:
        """Close the database; another question opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            if self.folder is None:
                self._walked = False
            self._connection = None

    def with_build_id(self, build_id: str) -> list[Entry]:
        """The files with this build id, or with the one that a module id tells the beginning of (rule R240), in order
        of the roots."""
        where, parameters = of_build("f.key", build_id)
        return self._entries(f"f.what = 1 AND {where}", parameters)

    def vouched_for(self, build_id: str) -> list[Entry]:
        """The files that have this build id by the layout of their folder, whatever they hold, in order of the roots.

        Files that are known to have the id are left out.
        """
        found = self._entries(*of_build("f.vouched", build_id))
        where, parameters = of_build("l.key", build_id)
        for root, folder, path in self._query(
            f"SELECT d.root, d.path, l.path FROM listed l JOIN folder d ON d.id = l.folder WHERE {where}", parameters
        ):
            if root in self._order:
                found += self._at(os.fsdecode(folder + path), root)
        others = [entry for entry in found if entry.build_id is None or not same_build_id(entry.build_id, build_id)]
        return list(dict.fromkeys(others))

    def at_path(self, path: str) -> list[Entry]:
        """The files that lie at the recorded `path` below a root, in order of the roots."""
        return self._at(path.lstrip("/"), None)

    def with_name(self, name: str) -> list[Entry]:
        """The files called `name` anywhere below the roots, in order of the roots."""
        return self._first_names(self._entries("f.what = 1 AND f.name = ?", (as_bytes(name),)))

    def unusable_called(self, name: str) -> dict[str, str]:
        """The files called `name` that cannot be read or are damaged, each with why."""
        return {path: why for path, why in self.unusable.items() if os.path.basename(path) == name}

    def behind_build_id(self, name: str) -> list[Entry]:
        """The files called `ID-name` in a layout that has build ids in names, in order of the roots."""
        ending = as_bytes("-" + name)
        return self._first_names(
            self._entries("f.what = 1 AND f.vouched IS NOT NULL AND substr(f.name, -?) = ?", (len(ending), ending))
        )

    def binaries(self) -> list[list[Entry]]:
        """All ELF files, those that share a build id together, as `with_build_id` has them."""
        groups: dict[str, list[Entry]] = {}
        for entry in self._entries("f.what = 1", (), limit=-1):
            groups.setdefault(build_id_key(entry.build_id) if entry.build_id else "/" + entry.path, []).append(entry)
        return list(groups.values())

    def special(self, pattern: re.Pattern[str]) -> list[Entry]:
        """The files that have a special name and match `pattern`, as a walk meets them: those of the first root first,
        those of a folder before those of its folders, linked folders last."""
        rows = self._query(
            f"SELECT {COLUMNS} FROM file f JOIN folder d ON d.id = f.folder WHERE f.special = 1 "
            "AND d.root IN ({roots})",
            (),
        )
        rows = [row for row in rows if pattern.fullmatch(os.fsdecode(row["name"]))]
        rows.sort(key=lambda row: (self._order[row["root"]], row["linked"], in_walk(row["path"]), row["name"]))
        return self._distinct(rows)

    def checksum(self, entry: Entry) -> int | None:
        """The CRC32 of the whole file, remembered as long as the file does not change.

        None, with a problem, if it cannot be read, has changed, or is larger than files are read for this.
        """
        if entry.crc is not None:
            return entry.crc
        try:
            crc = file_checksum(entry)
        except OSError as error:
            self._tell(f"{entry.path}: {os_error_text(error)}")
            return None
        if crc is None:
            self._tell(f"{entry.path}: has changed or is too large to check against a debug link")
            return None
        with self._lock:
            try:
                connection = self._connect()
                store.update(connection, "file", entry.number, "crc", crc)
                connection.commit()
            except store.ERRORS:
                pass  # it is computed again next time
        return crc

    def look_again(self, path: str) -> bool:
        """Whether the file at `path` is not what it was when the folders were walked (R284, files that are replaced);
        then they are walked again for the next question."""
        rows = self._query(
            f"SELECT {COLUMNS} FROM file f JOIN folder d ON d.id = f.folder WHERE f.name = ? AND d.root IN ({{roots}})",
            (as_bytes(os.path.basename(path)),),
        )
        known = [entry for entry in map(self._entry, rows) if entry.path == path]
        if not known or is_same_file(known[0], path):
            return False
        with self._lock:
            self._walked = False
        return True

    def unpacked(self, entry: Entry) -> tuple[Entry | None, str]:
        """The decompressed contents of a compressed file, and why there are none."""
        try:
            path = self._unpacked.path_of(entry.path, entry.vouched)
            ident = identify(path)
        except InputError as error:
            return None, error.problem
        except OSError as error:
            return None, os_error_text(error)
        if ident is None:
            return None, "is compressed and holds no ELF file"
        build_id = ident.build_id if is_build_id(ident.build_id) else None
        link = os.fsdecode(ident.link)
        return replace(
            entry, path=path, build_id=build_id, offers=ident.offers, link=link, link_check=ident.link_check
        ), ""

    def _at(self, path: str, root: int | None) -> list[Entry]:
        folder, _, name = path.rpartition("/")
        parameters = as_bytes(name), as_bytes(folder + "/" if folder else "")
        found = self._entries("f.what = 1 AND f.name = ? AND d.path = ?", parameters)
        if root is not None:
            found = [entry for entry in found if entry.root == self._order[root]]
        return self._first_names(found)

    def _first_names(self, entries: list[Entry]) -> list[Entry]:
        """The files under the names under which they were met first, as `with_build_id` has them."""
        result = []
        for entry in entries:
            same = self._entries("f.what = 1 AND f.inode = ? AND f.device = ?", entry.identity)
            result.append(same[0] if same else entry)
        return list(dict.fromkeys(result))

    def _entries(self, where: str, parameters: Sequence[object], limit: int = MAX_ANSWERS) -> list[Entry]:
        """The files for which a condition holds: each once, those of the first root first, linked folders last."""
        rows = self._query(
            f"SELECT {COLUMNS} FROM file f JOIN folder d ON d.id = f.folder WHERE {where} "
            f"AND d.root IN ({{roots}}) LIMIT {limit}",
            parameters,
        )
        rows.sort(key=lambda row: (self._order[row["root"]], row["linked"], row["path"] + row["name"]))
        return self._distinct(rows)

    def _distinct(self, rows: Iterable[sqlite3.Row]) -> list[Entry]:
        """The files of some rows, each under the first of its names."""
        found: dict[tuple[int, int], Entry] = {}
        for row in rows:
            identity = row["inode"], row["device"]
            if identity not in found:
                found[identity] = self._entry(row)
        return list(found.values())

    def _entry(self, row: sqlite3.Row) -> Entry:
        root = self._order[row["root"]]
        relative = os.fsdecode(row["path"] + row["name"])
        return Entry(
            # A root that is a file has itself in it.
            path=self.roots[root] if row["linked"] < 0 else os.path.join(self.roots[root], relative),
            root=root,
            build_id=row["build_id"],
            relative=relative,
            offers=row["offers"] or 0,
            link=os.fsdecode(row["link"] or b""),
            link_check=row["link_check"] or 0,
            vouched=row["vouched"] or "",
            what=row["what"],
            number=row["id"],
            identity=(row["inode"], row["device"]),
            state=(row["size"], row["modified"]),
            crc=row["crc"],
            go_build_id=row["go"] or "",
        )

    def _query(self, question: str, parameters: Sequence[object]) -> list[sqlite3.Row]:
        """The rows that answer a question, in which `{roots}` are the roots, after the walk if there was none."""
        with self._lock:
            while True:
                try:
                    self._connect()
                    self._walk()
                    roots = ", ".join(map(str, self._order))
                    return self._connect().execute(question.format(roots=roots), parameters).fetchall()
                except store.ERRORS as error:
                    self._recover(error)

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = store.connect(self.folder, in_memory=self._in_memory)
            self._connection.row_factory = sqlite3.Row
            if self._walked:  # by this process before it closed the database, or by the one that started it
                order = self._number_roots(self._connection)
                self._walked, self._order = order is not None, order or {}
        return self._connection

    def _number_roots(self, connection: sqlite3.Connection) -> dict[int, int] | None:
        """The numbers that the roots have in the database; None if one is not in it, which may be a new one."""
        order: dict[int, int] = {}
        for number, root in enumerate(self.roots):
            try:
                status = os.stat(root)
            except OSError:
                continue
            known = store.known_root(connection, *root_key(root, status))
            if known is None:
                return None
            order.setdefault(known, number)
        return order

    def _recover(self, error: Exception) -> None:
        """Go on without the database, or with a new one if it was damaged."""
        self._failures += 1
        if self._failures > 3 or self._in_memory:
            raise error  # a fault of this program
        if self._connection is not None:
            self._connection.close()
        path = "" if self.folder is None else store.database_path(self.folder)
        if self.folder is None:
            said, self._in_memory = f"the index cannot use temporary files ({error}); it is kept in memory", True
        elif store.is_damage(error) and self._failures == 1:
            try:
                store.remove_database(self.folder)
                said = f"{path}: is damaged ({store.one_line(error)}); it is removed and made anew"
            except OSError:
                said, self.folder = f"{path}: is damaged ({store.one_line(error)}) and is not used", None
        else:
            said, self.folder = (
                f"{path}: cannot be used ({store.one_line(error)}); the folders are read without it",
                None,
            )
        self._connection, self._walked, self._untold = None, False, 0
        self.problems[:], self.unread[:] = [said], []
        self.unusable.clear()

    def _cannot_read(self, path: str, error: OSError) -> None:
        if len(self.unread) < MAX_PROBLEMS:
            self.unread.append(path)
        self._tell(f"{path}: {os_error_text(error)}")

    def _cannot_use(self, path: str, problem: str) -> None:
        if len(self.unusable) < MAX_UNUSABLE:
            self.unusable[path] = problem

    def _tell(self, problem: str) -> None:
        if problem in self.problems[-MAX_PROBLEMS:]:
            return
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)
        else:
            self._untold += 1
            last = f"and {self._untold} more problems with files of the given folders"
            self.problems[MAX_PROBLEMS:] = [last]

    def _walk(self) -> None:
        """Bring what is known of the files below the roots up to date."""
        if self._walked:
            return
        connection = self._connect()
        self._order.clear()
        self.unusable.clear()
        self._committed = time.monotonic()
        walk = Walk([os.path.realpath(root) for root in self.roots], self._tell, self._cannot_read, self._depth)
        for number, root in enumerate(self.roots):
            try:
                status = os.stat(root)
            except OSError as error:
                self._cannot_read(root, error)
                continue
            is_file = stat.S_ISREG(status.st_mode)
            if not is_file and not stat.S_ISDIR(status.st_mode):
                self._tell(f"{root}: is neither a folder nor a regular file")
                continue
            real = os.path.realpath(root)
            known = store.root_id(connection, *root_key(root, status))
            if known in self._order:
                continue
            self._order[known] = number
            visited = set()
            if is_file:
                only = Folder(os.path.dirname(real) or "/", "", False, [File(os.path.basename(real), status)])
                visited.add(self._update(connection, known, only, real, -1))
            else:
                for folder in walk.folders(root, status):
                    visited.add(self._update(connection, known, folder, os.path.join(real, folder.relative)))
            rows = connection.execute("SELECT id FROM folder WHERE root = ?", (known,))
            store.drop_folders(connection, [row[0] for row in rows if row[0] not in visited])
        connection.commit()
        self._walked = True

    def _update(
        self, connection: sqlite3.Connection, root: int, folder: Folder, real: str, linked: int | None = None
    ) -> int:
        """Bring what is known of the files in one folder up to date; the number of the folder.

        `real` is the path for the layouts, which goes on above the root.
        """
        relative = os.fsencode(folder.relative)
        linked = int(folder.is_linked) if linked is None else linked
        place = (root, relative)
        question = "SELECT id, linked FROM folder WHERE root = ? AND path = ?"
        row = connection.execute(question, place).fetchone()
        if row is None:
            store.insert(connection, "folder", (*place, linked), "INSERT OR IGNORE")
            number = int(connection.execute(question, place).fetchone()[0])
            known = {}
        else:
            number = int(row[0])
            if row[1] != linked:
                store.update(connection, "folder", number, "linked", linked)
            cursor = connection.cursor()
            cursor.row_factory = None  # plain tuples: the second walk reads little else
            rows = cursor.execute(f"SELECT name, id, problem, {STATE} FROM file WHERE folder = ?", (number,))
            known = {name: (file, problem, tuple(state)) for name, file, problem, *state in rows}
        for name, status in folder.files:
            key = os.fsencode(name)
            state = (
                status.st_size,
                store.signed(status.st_mtime_ns),
                store.signed(status.st_ctime_ns),
                store.signed(status.st_ino),
                store.signed(status.st_dev),
            )
            before = known.pop(key, None)
            if before is not None and before[2] == state:
                if problem := before[1]:
                    self._tell(f"{os.path.join(folder.path, name)}: {problem}")
                    self._cannot_use(os.path.join(folder.path, name), problem)
                continue
            self._look(connection, number, folder, File(name, status), state, real)
            self._commit_sometimes(connection)
        for name, (file, _, _) in known.items():
            connection.execute("DELETE FROM file WHERE id = ?", (file,))
            if name == os.fsencode(LIST_NAME):
                connection.execute("DELETE FROM listed WHERE folder = ?", (number,))
        self._commit_sometimes(connection)
        return number

    def _commit_sometimes(self, connection: sqlite3.Connection) -> None:
        if time.monotonic() - self._committed > COMMIT_SECONDS:
            connection.commit()
            self._committed = time.monotonic()

    def _look(
        self,
        connection: sqlite3.Connection,
        number: int,
        folder: Folder,
        file: File,
        state: tuple[int, ...],
        real: str,
    ) -> None:
        """Look at a file that is new or has changed."""
        path = os.path.join(folder.path, file.name)
        if time.time_ns() - file.status.st_ctime_ns < SETTLED_NS:
            state = (*state[:2], 0, *state[3:])
        vouched = vouched_key(os.path.join(real, file.name) if real[-1:] == "/" else real) or None
        what, ident, problem, entries, head = store.OTHER, None, None, None, b"?"
        try:
            descriptor = open_regular(path)
            try:
                head = os.read(descriptor, HEADER_BYTES)
                ident = identify_open(descriptor, path, head)
                if ident is None and file.name == LIST_NAME and file.status.st_size <= MAX_LIST_BYTES:
                    what, entries = store.LIST, list(listed(read_all(descriptor, head, MAX_LIST_BYTES)))
            finally:
                os.close(descriptor)
        except ElfError as error:
            problem = error.problem if error.offset is None else f"{error.problem} at offset {error.offset:#x}"
            self._tell(f"{path}: {problem}")
            self._cannot_use(path, problem)
        except OSError as error:
            self._cannot_read(path, error)
            self._cannot_use(path, os_error_text(error))
            state = (*state[:2], 0, *state[3:])  # it is tried again next time
        if ident is not None:
            what = store.ELF
        elif vouched is not None and not head:
            what = store.EMPTY
        elif vouched is not None and is_packed(head):
            what = store.PACKED
        elif what != store.LIST:
            vouched = None
        build_id = ident.build_id if ident is not None and is_build_id(ident.build_id) else None
        row: dict[str, object] = {
            "folder": number,
            "name": os.fsencode(file.name),
            **dict(zip(STATE.split(", "), state, strict=True)),
            "what": what,
            "build_id": build_id,
            "key": build_id_key(build_id) if build_id is not None else None,
            "vouched": vouched,
            "problem": problem,
            "special": int(SPECIAL_NAME.fullmatch(file.name) is not None),
        }
        if ident is not None:
            row |= {
                "offers": ident.offers,
                "link": ident.link,
                "link_check": ident.link_check,
                "go": ident.go_build_id or None,
            }
        store.insert(connection, "file", [row.get(name) for name in store.FILE], "INSERT OR REPLACE")
        if entries is not None:
            connection.execute("DELETE FROM listed WHERE folder = ?", (number,))
            for key, name in entries:
                store.insert(connection, "listed", (number, key, os.fsencode(name)))


def in_walk(path: bytes) -> tuple[bytes, ...]:
    """By what folders are sorted as a walk enters them: each before those in it."""
    return tuple(path.split(b"/"))


def of_build(column: str, build_id: str) -> tuple[str, tuple[str, ...]]:
    """The condition that a column of keys has this build id, for an index of that column, and its parameters."""
    prefix = module_prefix(build_id)
    if not prefix:
        return f"{column} = ?", (build_id_key(build_id),)
    # "g" comes behind all hex digits.
    return f"({column} = ? OR {column} >= ? AND {column} < ?)", (build_id_key(prefix), prefix, prefix + "g")


def root_key(root: str, status: os.stat_result) -> tuple[str, int, int]:
    """By what a root is known: its resolved path, device and inode. A file stays the root when it is replaced."""
    return os.path.realpath(root), status.st_dev, 0 if stat.S_ISREG(status.st_mode) else status.st_ino


def as_bytes(text: str) -> bytes:
    """A recorded name as the bytes of a file name."""
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def read_all(descriptor: int, head: bytes, limit: int) -> bytes:
    """The contents of an open file that begins with `head`, up to a limit."""
    parts, size = [head], len(head)
    while size < limit and (part := os.read(descriptor, min(1 << 20, limit - size))):
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def is_same_file(entry: Entry, path: str) -> bool:
    """Whether the file at `path` is still the one of the entry, as far as its status tells."""
    try:
        return matches(entry, os.stat(path))
    except OSError:
        return False


def matches(entry: Entry, status: os.stat_result) -> bool:
    """Whether a status is that of the file of an entry, as it was."""
    identity = store.signed(status.st_ino), store.signed(status.st_dev)
    return (identity, (status.st_size, store.signed(status.st_mtime_ns))) == (entry.identity, entry.state)


def file_checksum(entry: Entry, limit: int = MAX_CHECKED, block: int = 1 << 20) -> int | None:
    """The CRC32 of a file as `.gnu_debuglink` has it; None if it is not the file of the entry any more or too large."""
    descriptor = open_regular(entry.path)
    try:
        status = os.fstat(descriptor)
        if not matches(entry, status) or status.st_size > limit:
            return None
        update, crc, left = crc32_function(), 0, status.st_size
        while left > 0 and (data := os.read(descriptor, min(block, left))):
            crc = update(data, crc)
            left -= len(data)
        return None if left else crc
    finally:
        os.close(descriptor)


def crc32_function() -> Callable[[bytes, int], int]:
    """A CRC32, of the fastest library there is."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib.crc32
    return isal_zlib.crc32

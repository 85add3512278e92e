"""The files below the given roots, by build id, name and path, from a walk that reads headers and notes only.

What a walk learns is kept in a database (`store.py`), so that the next one reads only the files that changed.
"""

import os
import re
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate
from typing import Any

from symbolize.binaries import store
from symbolize.binaries.build_id import BuildId, IdKind, build_id_key, is_build_id, module_prefix, same_build_id
from symbolize.binaries.entries import Entry, file_checksum, file_hash, is_same_file
from symbolize.binaries.index_update import MAX_DEPTH, MAX_TARGET, NO_FOLDER, IndexUpdate, Listing, Problems, root_key
from symbolize.binaries.layouts import list_kinds
from symbolize.binaries.remote import Servers
from symbolize.binaries.unpack import Unpacked
from symbolize.core.errors import InputError
from symbolize.core.files import os_error_text
from symbolize.core.mapped_names import base_name
from symbolize.elf.probe import identify

ROOT_LISTS = ("PPROF_BINARY_PATH", "PERFETTO_BINARY_PATH")
"""Variables with a list of folders, as pprof and Perfetto read them."""
ANDROID_PRODUCT = "ANDROID_PRODUCT_OUT"
"""The variable with the output folder of an Android build; unstripped files are in `symbols` below it."""
MAX_ANSWERS = 1024
"""Files that one question is answered with. In a build tree a name may denote thousands."""
MAX_FAILURES = 3
"""Failures of the database after which it is a fault of this program."""

FILES = """
SELECT f.*, d.root, d.path, d.linked, d.seal AS folder_seal, ({where}) AS holds
FROM (SELECT f.id AS number FROM {tables} ON d.id = f.folder
      WHERE {where} AND d.root IN ({{roots}}) LIMIT {limit})
CROSS JOIN file f ON f.id = number CROSS JOIN folder d ON d.id = f.folder
"""
"""The files below the roots for which a condition holds; it is asked of the rows again that an index says it is true
of, since SQLite believes its indexes."""
BY_INDEX, BY_FOLDER = "file f CROSS JOIN folder d", "folder d CROSS JOIN file f"
"""Where the search begins: with an index of files, or with the folders below the roots where a condition has none."""
LISTED = """
SELECT d.root, d.path, d.linked, d.seal AS folder_seal, l.folder, l.key, l.path AS listed, l.seal, ({where}) AS holds
FROM (SELECT l.rowid AS number FROM listed l WHERE {where} LIMIT -1)
CROSS JOIN listed l ON l.rowid = number CROSS JOIN folder d ON d.id = l.folder
"""
"""The rows of lists for which a condition holds, likewise."""
IS_ELF = f"f.what = {store.ELF}"

_indexes: "weakref.WeakSet[BinaryIndex]" = weakref.WeakSet()
_inherited: list[sqlite3.Connection] = []
_forking = threading.RLock()
"""Held while the process forks, so that no index is made."""


class BinaryIndex:
    """Index of the ELF files below `roots` (folders or single files), made at the first question.

    `folder` is the cache folder in which what is known of the files is kept; without one it is known to this process
    only. `depth` may say how many folders deep to look. A `listing` has further files; whoever adds to it says so by
    `walk_again`. `servers` may have what is missing; see `find_binary`. Nothing
    here raises OSError: a database that is locked, damaged or cannot be written costs time, not answers.

    A file is read once: what it is stays known as long as path, size, times of change, inode and device are the same
    (R140, files read once).
    """

    def __init__(
        self,
        roots: Sequence[str],
        folder: str | os.PathLike[str] | None = None,
        servers: Servers | None = None,
        depth: int | None = None,
        listing: Listing | None = None,
    ) -> None:
        assert folder is None or depth is None  # the database holds all that is below a root
        self._given = roots
        self._listing = listing
        self._depth = depth
        self.servers = servers
        self.folder = None if folder is None else os.fspath(folder)
        self._problems = Problems()
        self.walks = 0
        self._lock = threading.RLock()
        self._reset()
        with _forking:
            _indexes.add(self)

    @property
    def problems(self) -> list[str]:
        """What could not be read or was left out, a sentence each."""
        return self._problems.sentences

    @property
    def unread(self) -> list[str]:
        """The paths of folders and files that the system did not let us read, up to a number."""
        return self._problems.unread

    @property
    def roots(self) -> Sequence[str]:
        """The given folders and files, and those below which files are listed."""
        return self._given if self._listing is None else (*self._given, *self._listing.roots)

    @property
    def is_listed(self) -> bool:
        """Whether files were found where they were recorded, so that none is looked for by its name alone."""
        return self._listing is not None

    @property
    def has_sources(self) -> bool:
        """Whether there are folders or servers at all, or files would be listed."""
        return bool(self._given) or self.is_listed or self.servers is not None

    def _reset(self) -> None:
        self._connection: sqlite3.Connection | None = None
        self._walked = False
        self._failures = 0
        self._in_memory = False
        self._order: dict[int, int] = {}
        self._unpacked = Unpacked(self.folder)

    def __getstate__(self) -> dict[str, Any]:
        """For worker processes, which ask the same database, or walk anew if there is none."""
        names = "_given", "folder", "_depth", "_walked"
        problems = {"unusable": self._problems.unusable, "links": self._problems.links}
        return {name: getattr(self, name) for name in names} | problems

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_given"], state["folder"])  # type: ignore[misc]
        self._depth = state["_depth"]
        self._problems.unusable, self._problems.links = state["unusable"], state["links"]
        self._walked = state["_walked"] and self.folder is not None

    def begin_in_child(self) -> None:
        """Go on in a process that was forked, with a database of its own: SQLite cannot share one that is open."""
        if self._connection is not None:
            _inherited.append(self._connection)  # closing it would do something to the parent's
        self._connection = None
        self._walked = self._walked and self.folder is not None

    def close(self) -> None:
        """Close the database; another question opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            if self.folder is None or self._listing is not None:
                self._walked = False
            self._connection = None

    def walk(self) -> None:
        """Walk the folders now. Other indexes with the same folder answer by what is found."""
        with self._lock:
            self.walk_again()
            self._query("SELECT 1 WHERE 0", ())

    def use_last_walk(self) -> None:
        """Answer by what others found below the folders who keep it in the same place, if they did, without a walk."""
        with self._lock:
            self._walked = self.folder is not None

    def with_build_id(self, build_id: str) -> list[Entry]:
        """The files with this build id, or with the one of which a module id has the beginning (R240, module ids of
        Chromium), in order of the roots."""
        where, parameters = of_build("f.key", build_id)
        return self._entries(f"{IS_ELF} AND {where}", parameters)

    def with_build_id_in_path(self, build_id: str) -> list[Entry]:
        """The files that have this build id in their path by the layout of their folder, whatever they hold, in order
        of the roots. Files that are known to have the id are left out.
        """
        found = self._entries(*of_build("f.path_key", build_id))
        where, parameters = of_build("l.key", build_id)
        for row in self._query(LISTED.format(where=where), [*parameters, *parameters]):
            if row["root"] in self._order:
                found += self._at(os.fsdecode(row["path"] + row["listed"]), row["root"])
        others = [entry for entry in found if entry.build_id is None or not same_build_id(entry.build_id, build_id)]
        return list(dict.fromkeys(others))

    def with_other_id(self, identity: BuildId) -> list[Entry]:
        """The files with this build id of Go, or this hash, in order of the roots. All files are hashed when the first
        hash is asked for, and then those that are new."""
        wanted = identity.raw.decode("ascii", "replace")
        if identity.kind is IdKind.GO:
            return self._entries(f"{IS_ELF} AND f.go = ?", (wanted,), BY_FOLDER)
        hashes = {
            entry: self._hash(entry) for entry in self._entries(f"{IS_ELF} AND f.hash IS NULL", (), BY_FOLDER, limit=-1)
        }
        known = self._entries(f"{IS_ELF} AND f.hash = ?", (wanted,), BY_FOLDER)
        return list(dict.fromkeys((*known, *(entry for entry, found in hashes.items() if found == wanted))))

    def _hash(self, entry: Entry) -> str | None:
        """The hash of a file, stored as long as the file does not change; None if it cannot be read or has changed."""
        try:
            found = file_hash(entry)
        except OSError as error:
            self._problems.tell(f"{entry.path}: {os_error_text(error)}")
            return None
        if found is not None:
            self._keep(entry, "hash", found)
        return found

    def _keep(self, entry: Entry, column: str, value: object) -> None:
        """Store what was computed of a file; what cannot be stored is computed again next time."""
        with self._lock, suppress(*store.ERRORS):
            connection = self._connect()
            store.update(connection, "file", entry.number, column, value)
            connection.commit()

    def at_path(self, path: str) -> list[Entry]:
        """The files that lie at the recorded `path` below a root, in order of the roots."""
        return self._at(path.lstrip("/"), None)

    def with_name(self, name: str) -> list[Entry]:
        """The files called `name` anywhere below the roots, in order of the roots."""
        return self._first_names(self._entries(f"{IS_ELF} AND f.name = ?", (as_bytes(name),)))

    def damaged(self) -> list[str]:
        """The files that are damaged; at most `MAX_UNUSABLE`."""
        return [path for path in self._problems.unusable if path not in self.unread]

    def unusable_called(self, name: str) -> dict[str, str]:
        """The files called `name` that cannot be read or are damaged, each with why."""
        return {path: why for path, why in self._problems.unusable.items() if os.path.basename(path) == name}

    def links_out(self, filename: str, build_id: str = "", kinds: Sequence[str] = ()) -> dict[str, str]:
        """The links out of the folders behind which the file of a recorded name or build id may be, or else one of
        `kinds` of lists of symbols, each with where it leads (R490, links out of the folders)."""
        links = self._problems.links
        if not links:
            return {}
        parts = filename[:MAX_TARGET].strip("/").split("/", MAX_DEPTH)
        paths = (f"/{path}" for path in accumulate(parts, "{}/{}".format))
        own = [build_id_key(build_id), *paths, base_name(filename)]
        found = dict.fromkeys(links[key] for key in own if key in links)
        found = found or dict.fromkeys(links[key] for key in map("kind {}".format, kinds) if key in links)
        return {link: link_text(link) for link in found}

    def behind_build_id(self, name: str) -> list[Entry]:
        """The files called `ID-name` in a layout that has build ids in names, in order of the roots."""
        ending = as_bytes("-" + name)
        where = f"{IS_ELF} AND f.path_key IS NOT NULL AND substr(f.name, -?) = ?"
        return self._first_names(self._entries(where, (len(ending), ending), BY_FOLDER))

    def binaries(self) -> list[list[Entry]]:
        """All ELF files, those that share a build id together, as `with_build_id` has them."""
        groups: dict[str, list[Entry]] = {}
        for entry in self._entries(IS_ELF, (), BY_FOLDER, limit=-1):
            groups.setdefault(build_id_key(entry.build_id) if entry.build_id else "/" + entry.path, []).append(entry)
        return list(groups.values())

    def special(self, pattern: re.Pattern[str]) -> list[Entry]:
        """The files that have a special name and match `pattern`, as a walk meets them: those of the first root first,
        those of a folder before those of its folders, linked folders last."""
        rows = self._files("f.special = 1", ())
        rows = [row for row in rows if pattern.fullmatch(os.fsdecode(row["name"]))]
        rows.sort(key=lambda row: (self._order[row["root"]], row["linked"], in_walk(row["path"]), row["name"]))
        return self._distinct(rows)

    def checksum(self, entry: Entry) -> int | None:
        """The CRC32 of the whole file, stored as long as the file does not change.

        None, with a problem, if it cannot be read, has changed, or is larger than files are read for this.
        """
        if entry.crc is not None:
            return entry.crc
        try:
            crc = file_checksum(entry)
        except OSError as error:
            self._problems.tell(f"{entry.path}: {os_error_text(error)}")
            return None
        if crc is None:
            self._problems.tell(f"{entry.path}: has changed or is too large to check against a debug link")
            return None
        self._keep(entry, "crc", crc)
        return crc

    def look_again(self, path: str) -> bool:
        """Whether the file at `path` is not what it was when the folders were walked (R284, files that are replaced);
        then they are walked again for the next question."""
        rows = self._files("f.name = ?", (as_bytes(os.path.basename(path)),))
        known = [entry for entry in map(self._entry, rows) if entry.path == path]
        if not known or is_same_file(known[0], path):
            return False
        self.walk_again()
        return True

    def walk_again(self) -> None:
        """Walk the folders again for the next question."""
        with self._lock:
            self._walked = False
            self.walks += 1

    def unpacked(self, entry: Entry) -> tuple[Entry | None, str]:
        """The decompressed contents of a compressed file, and why there are none."""
        try:
            path = self._unpacked.path_of(entry.path, entry.path_key)
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
        found = self._entries(f"{IS_ELF} AND f.name = ? AND d.path = ?", parameters)
        if root is not None:
            found = [entry for entry in found if entry.root == self._order[root]]
        return self._first_names(found)

    def _first_names(self, entries: list[Entry]) -> list[Entry]:
        """The files under the names under which they were met first, as `with_build_id` has them."""
        result = []
        for entry in entries:
            same = self._entries(f"{IS_ELF} AND f.inode = ? AND f.device = ?", entry.identity)
            result.append(same[0] if same else entry)
        return list(dict.fromkeys(result))

    def _entries(
        self, where: str, parameters: Sequence[object], tables: str = BY_INDEX, limit: int = MAX_ANSWERS
    ) -> list[Entry]:
        """The files for which a condition holds: each once, those of the first root first, linked folders last."""
        rows = self._files(where, parameters, tables, limit)
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
            path=self.roots[root] if row["linked"] == NO_FOLDER else os.path.join(self.roots[root], relative),
            root=root,
            build_id=row["build_id"],
            relative=relative,
            offers=row["offers"] or 0,
            link=os.fsdecode(row["link"] or b""),
            link_check=row["link_check"] or 0,
            path_key=row["path_key"] or "",
            what=row["what"],
            number=row["id"],
            identity=(row["inode"], row["device"]),
            state=(row["size"], row["modified"]),
            crc=row["crc"],
            go_build_id=row["go"] or "",
        )

    def _files(
        self, where: str, parameters: Sequence[object], tables: str = BY_INDEX, limit: int = -1
    ) -> list[sqlite3.Row]:
        """The rows of files for which a condition holds, `limit` at most."""
        return self._query(FILES.format(where=where, tables=tables, limit=limit), [*parameters, *parameters])

    def _query(self, question: str, parameters: Sequence[object]) -> list[sqlite3.Row]:
        """The rows that answer a question, in which `{roots}` are the roots, after the walk if there was none. None is
        returned that is not what was written (R281, damaged caches)."""
        with self._lock:
            while True:
                try:
                    connection = self._connect()
                    if not self._walked:
                        self._order = IndexUpdate(connection, self._problems).run(
                            self._given, self._depth, self._listing
                        )
                        self._walked = True
                    roots = ", ".join(map(str, self._order))
                    rows = connection.execute(question.format(roots=roots), parameters).fetchall()
                    for row in rows:
                        require_answer(row)
                    return rows
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
        if self._failures > MAX_FAILURES or self._in_memory:
            raise error  # a fault of this program
        if self._connection is not None:
            self._connection.close()
        path = "" if self.folder is None else store.database_path(self.folder)
        if self.folder is None:
            problem, self._in_memory = f"the index cannot use temporary files ({error}); it is kept in memory", True
        elif store.is_damage(error) and self._failures == 1:
            try:
                store.remove_database(self.folder)
                problem = f"{path}: is damaged ({store.one_line(error)}); it is removed and made anew"
            except OSError:
                problem, self.folder = f"{path}: is damaged ({store.one_line(error)}) and is not used", None
        else:
            problem, self.folder = (
                f"{path}: cannot be used ({store.one_line(error)}); the folders are read without it",
                None,
            )
        self._connection, self._walked = None, False
        self._problems.restart(problem)


def hold_all() -> None:
    """Let no thread be in a database while the process forks: locks of the index and of SQLite would stay locked in the
    child."""
    _forking.acquire()
    for index in _indexes:
        index._lock.acquire()


def release_all() -> None:
    """Let all go on behind a fork."""
    for index in _indexes:
        index._lock.release()
    _forking.release()


def begin_in_child() -> None:
    """Let all go on in the child."""
    for index in _indexes:
        index.begin_in_child()
    release_all()


os.register_at_fork(before=hold_all, after_in_parent=release_all, after_in_child=begin_in_child)


def link_text(link: str) -> str:
    """Where a link out of the folders leads, and what helps."""
    target = os.path.realpath(link)
    if not os.path.exists(target):
        return f"is a link to {target}, which does not exist: copy the file that it stands for"
    is_whole = os.path.isdir(target) or list_kinds(os.path.basename(target))
    place = target if is_whole else os.path.dirname(target)  # a library may have further names there
    return f"is a link to {target}, out of the given folders and not followed: give {place} too"


def in_walk(path: bytes) -> tuple[bytes, ...]:
    """By what folders are sorted as a walk enters them: each before those in it."""
    return tuple(path.split(b"/"))


def require_answer(row: sqlite3.Row) -> None:
    """Raise DamagedStore unless a row of FILES or LISTED and its folder are sound, and it is what was asked for."""
    if not row["holds"]:
        raise store.DamagedStore("an index does not agree with its table")
    store.require_sealed("folder", (row["root"], row["path"], row["linked"]), row["folder_seal"])
    if "listed" in row.keys():  # noqa: SIM118 - a row is searched by its values
        store.require_sealed("listed", (row["folder"], row["key"], row["listed"]), row["seal"])
    else:
        store.require_sealed("file", [row[name] for name in store.FILE], row["seal"])


def of_build(column: str, build_id: str) -> tuple[str, tuple[str, ...]]:
    """The condition that a column of keys has this build id, for an index of that column, and its parameters."""
    prefix = module_prefix(build_id)
    if not prefix:
        return f"{column} = ?", (build_id_key(build_id),)
    # "g" comes behind all hex digits.
    return f"({column} = ? OR {column} >= ? AND {column} < ?)", (build_id_key(prefix), prefix, prefix + "g")


def as_bytes(text: str) -> bytes:
    """A recorded name as the bytes of a file name."""
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def roots_from_environment(environment: Mapping[str, str] | None = None) -> tuple[list[str], list[str]]:
    """The folders (or files) that PPROF_BINARY_PATH, PERFETTO_BINARY_PATH and ANDROID_PRODUCT_OUT name, each once.

    And notes, a sentence each, on those that are not there and are left out.
    """
    environment = os.environ if environment is None else environment
    named = [
        (variable, folder)
        for variable in ROOT_LISTS
        for folder in environment.get(variable, "").split(os.pathsep)
        if folder
    ]
    if product := environment.get(ANDROID_PRODUCT, ""):
        named.append((ANDROID_PRODUCT, os.path.join(product, "symbols")))
    roots: list[str] = []
    notes: list[str] = []
    for variable, folder in named:
        path = os.path.expanduser(folder)
        if not os.path.exists(path):
            notes.append(f"{variable}: {folder}: no such folder or file, not searched")
        elif path not in roots:
            roots.append(path)
    return roots, notes

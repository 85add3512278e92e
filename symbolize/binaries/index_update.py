"""Brings the database of the files below the roots up to date: walks the folders, reads what is new or has changed, and
drops the rest."""

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from symbolize.binaries import store
from symbolize.binaries.build_id import build_id_key, is_build_id
from symbolize.binaries.layouts import LIST_NAME, MAX_LIST_BYTES, SPECIAL_NAME, list_kinds, listed, path_build_id_key
from symbolize.binaries.unpack import is_packed
from symbolize.core.file_kinds import HEAD, known_kind
from symbolize.core.files import open_regular, os_error_text
from symbolize.elf import ElfError
from symbolize.elf.probe import HEADER_BYTES, identify_open

MAX_DEPTH = 64
"""Folders nested deeper than this are not entered."""
MAX_TARGET = 4000
"""Characters of the target of a link that is resolved by its folder; the system takes 4,095 bytes."""
MAX_KNOWN = 4096
"""Resolved folders that are kept, because links of one folder lead to few others."""

VIRTUAL = ("/proc", "/sys")
"""File systems of the kernel: `/proc` has a list of its symbols, their subfolders have no binaries of their own."""
MAX_PROBLEMS = 50
"""Problems that are reported one by one; of the others only the number is."""
MAX_LOOKED_AT = 16
"""Files of a folder without binaries that are looked at for what they are."""
MAX_LINKS = 4096
"""Links out of the folders that are kept."""
MAX_UNUSABLE = 1024
"""Files that cannot be read of which the reason is kept."""
SETTLED_NS = 50_000_000
"""A file that changed less than this long ago may change again without another time of change."""
COMMIT_SECONDS = 0.5
"""How long other processes may have to wait before they can write."""

STATE = ("size", "modified", "changed", "inode", "device")
"""The columns that are equal while a file does not change."""
NAME, PROBLEM = store.FILE.index("name"), store.FILE.index("problem")
OF_STATE = slice(store.FILE.index(STATE[0]), store.FILE.index(STATE[-1]) + 1)
OF_FOLDER = f"SELECT id, seal, {', '.join(store.FILE)} FROM file WHERE folder = ?"
NO_FOLDER = -1
"""The column `linked` of the folder of a root that is a file."""


class File(NamedTuple):
    """A regular file: its name, and what `stat` says of it (of what a link leads to)."""

    name: str
    status: os.stat_result


class Folder(NamedTuple):
    """A folder: its path, its path below the root with `/` at the end, whether it was entered through a link, and
    its regular files."""

    path: str
    relative: str
    is_linked: bool
    files: list[File]


class Listing(Protocol):
    """Files that are there without a walk."""

    @property
    def roots(self) -> Sequence[str]:
        """Folders below which they are."""

    def folders(self, root: str) -> Iterator[Folder]:
        """The files below a root, folder by folder."""


class Walk:
    """Walks below folders; links are followed where they lead to something inside one of `roots` (resolved paths).

    `tell` gets a sentence for each thing that is not entered, `leave` the path of each link that leads out of the
    roots, whole and below its root, `fail` the path of what cannot be read, and why. With a `depth` folders nested
    deeper are left out on purpose.
    """

    def __init__(
        self,
        roots: Sequence[str],
        tell: Callable[[str], None],
        leave: Callable[[str, str], None],
        fail: Callable[[str, OSError], None],
        depth: int | None = None,
    ) -> None:
        self._depth = depth
        self._roots = roots
        self._tell = tell
        self._leave = leave
        self._fail = fail
        self._known: dict[str, str] = {}

    def folders(self, root: str, status: os.stat_result) -> Iterator[Folder]:
        """The folder `root` and those below it, except those of `VIRTUAL` file systems.

        Folders are entered once, linked ones last, so that a folder goes by its own name and not by that of a link to
        it.
        """
        seen = {(status.st_dev, status.st_ino)}
        stack = [(root, "", 0)]
        links: list[tuple[tuple[int, int], str, str, int]] = []
        linked = 0
        while stack or linked < len(links):
            if stack:
                folder, prefix, depth = stack.pop()
            else:
                identity, folder, prefix, depth = links[linked]
                linked += 1
                if identity in seen:
                    continue
                seen.add(identity)
            try:
                with os.scandir(folder) as scan:
                    entries = sorted(scan, key=lambda entry: entry.name)
            except OSError as error:
                self._fail(folder, error)
                continue
            files: list[File] = []
            folders = []
            for entry in entries:
                try:
                    is_link = entry.is_symlink()
                    if is_link and not self._is_inside(folder, entry):
                        self._leave(entry.path, prefix + entry.name)
                    elif entry.is_dir():
                        if folder in VIRTUAL and depth:
                            continue
                        status = entry.stat()
                        identity = status.st_dev, status.st_ino
                        if identity in seen:
                            continue
                        if depth == self._depth:
                            continue
                        if depth == MAX_DEPTH:
                            self._tell(f"{entry.path}: is nested too deep, not entered")
                        elif is_link:
                            links.append((identity, entry.path, prefix + entry.name + "/", depth + 1))
                        else:
                            seen.add(identity)
                            folders.append((entry.path, prefix + entry.name + "/", depth + 1))
                    elif entry.is_file():
                        files.append(File(entry.name, entry.stat()))
                except OSError as error:
                    self._fail(entry.path, error)
            yield Folder(folder, prefix, linked > 0, files)
            stack.extend(reversed(folders))

    def _is_inside(self, folder: str, entry: os.DirEntry[str]) -> bool:
        """Whether what a link leads to is below a root. A target that is no link itself is resolved by its folder."""
        target = os.path.join(folder, os.readlink(entry.path))
        parent, name = os.path.split(target)
        if name in ("", ".", "..") or len(target) > MAX_TARGET:
            return inside(os.path.realpath(entry.path), self._roots)
        if parent not in self._known:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[parent] = os.path.realpath(parent)
        path = os.path.join(self._known[parent], name)
        try:
            if stat.S_ISLNK(os.lstat(path).st_mode):
                path = os.path.realpath(path)
        except (FileNotFoundError, NotADirectoryError):
            pass  # leads to nothing, which is no problem
        return inside(path, self._roots)


def inside(path: str, roots: Sequence[str]) -> bool:
    """Whether the resolved `path` is one of `roots` or is below one."""
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)


class Problems:
    """What could not be read or was left out: `sentences`, paths of folders and files that the system did not let us
    read (`unread`), and files that cannot be read or are damaged, each with why (`unusable`). `links` are those that
    lead out of the given folders, by what a mapping may know them by: a name, `/` and the path below the folder, the
    key of a build id, `kind` and one of `layouts.list_kinds`; `left` is their number. All are bounded."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.unread: list[str] = []
        self.unusable: dict[str, str] = {}
        self.links: dict[str, str] = {}
        self.left = self._more = 0

    def restart(self, sentence: str) -> None:
        """Begin anew with one sentence."""
        self.sentences[:], self.unread[:], self._more = [sentence], [], 0
        self.forget_files()

    def forget_files(self) -> None:
        """Begin anew with what a walk tells of files and links."""
        self.unusable.clear()
        self.links.clear()
        self.left = 0

    def leave(self, link: str, relative: str) -> None:
        """Add a link that leads out of the given folders, which lies at `relative` below one of them."""
        self.left += 1
        if self.left <= MAX_LINKS:
            name = os.path.basename(link)
            keys = name, f"/{relative}", path_build_id_key(link), *(f"kind {kind}" for kind in list_kinds(name))
            for key in filter(None, keys):
                self.links.setdefault(key, link)

    def cannot_read(self, path: str, error: OSError) -> None:
        """Add what the system did not let us read."""
        if len(self.unread) < MAX_PROBLEMS:
            self.unread.append(path)
        self.tell(f"{path}: {os_error_text(error)}")

    def cannot_use(self, path: str, problem: str) -> None:
        """Add a file that cannot be read or is damaged."""
        if len(self.unusable) < MAX_UNUSABLE:
            self.unusable[path] = problem

    def tell(self, problem: str) -> None:
        """Add a sentence, unless it was added lately."""
        if problem in self.sentences[-MAX_PROBLEMS:]:
            return
        if len(self.sentences) < MAX_PROBLEMS:
            self.sentences.append(problem)
        else:
            self._more += 1
            self.sentences[MAX_PROBLEMS:] = [f"and {self._more} more problems with files of the given folders"]


class IndexUpdate:
    """One walk below the roots, whose results go to a database."""

    def __init__(self, connection: sqlite3.Connection, problems: Problems) -> None:
        self._connection = connection
        self._problems = problems
        self._committed = time.monotonic()

    def run(self, roots: Sequence[str], depth: int | None, listing: Listing | None = None) -> dict[int, int]:
        """Update the rows of all roots and, behind them, of those of a `listing`; the number of each root in the
        database, to its number among these."""
        order: dict[int, int] = {}
        self._problems.forget_files()
        real_roots = [os.path.realpath(root) for root in roots]
        walk = Walk(real_roots, self._problems.tell, self._problems.leave, self._problems.cannot_read, depth)
        for number, (root, real) in enumerate(zip(roots, real_roots, strict=True)):
            try:
                status = os.stat(root)
            except OSError as error:
                self._problems.cannot_read(root, error)
                continue
            is_file, left = stat.S_ISREG(status.st_mode), self._problems.left
            if not is_file and not stat.S_ISDIR(status.st_mode):
                self._problems.tell(f"{root}: is neither a folder nor a regular file")
                continue
            known = store.root_id(self._connection, *root_key(root, status))
            if known in order:
                continue
            order[known] = number
            if is_file:
                only = Folder(os.path.dirname(real) or "/", "", False, [File(os.path.basename(real), status)])
                visited = {self._update(known, only, real, NO_FOLDER)}
            else:
                visited = {
                    self._update(known, folder, os.path.join(real, folder.relative), int(folder.is_linked))
                    for folder in walk.folders(root, status)
                }
            self._drop_others(known, visited)
            self._report_nothing_usable(known, root, is_file, self._problems.left - left)
        if listing is not None:
            for number, root in enumerate(listing.roots, len(roots)):
                known = store.root_id(self._connection, root, 0, 0)
                order[known] = number
                self._drop_others(
                    known, {self._update(known, each, each.path + "/", 0) for each in listing.folders(root)}
                )
        self._connection.commit()
        return order

    def _drop_others(self, root: int, visited: set[int]) -> None:
        """Forget the folders of a root that are not there any more."""
        rows = self._connection.execute("SELECT id FROM folder WHERE root = ?", (root,))
        store.drop_folders(self._connection, [row[0] for row in rows if row[0] not in visited])

    def _report_nothing_usable(self, number: int, root: str, is_file: bool, links: int) -> None:
        """Report a root in which nothing can have names: a wrong folder was given, or `links` lead out of it."""
        below = "FROM file f JOIN folder d ON d.id = f.folder WHERE d.root = ?"
        usable = f"SELECT 1 {below} AND (f.what != {store.OTHER} OR f.special = 1 OR f.problem IS NOT NULL) LIMIT 1"
        if root in self._problems.unread or self._connection.execute(usable, (number,)).fetchone() is not None:
            return
        if is_file:
            kind = kind_of(root)
            known = f", but {kind}" if kind else ""
            self._problems.tell(f"{root}: is neither an ELF file nor a list of symbols of a known name{known}")
            return
        count = self._connection.execute(f"SELECT count(*) {below}", (number,)).fetchone()[0]
        left = f", {links:,} link{'s' * (links != 1)} out of it not followed" if links else ""
        self._problems.tell(f"no ELF files below {root} ({count:,} file{'s' * (count != 1)} looked at{left})")
        largest = f"SELECT d.path, f.name {below} ORDER BY f.size DESC, f.id LIMIT {MAX_LOOKED_AT}"
        for folder, name in self._connection.execute(largest, (number,)).fetchall():
            path = os.path.join(root, os.fsdecode(folder), os.fsdecode(name))
            if kind := kind_of(path):
                self._problems.tell(f"{path}: is {kind}")
                return

    def _update(self, root: int, folder: Folder, real: str, linked: int) -> int:
        """Bring what is known of the files in one folder up to date; the number of the folder.

        `real` is the path for the layouts, which goes on above the root.
        """
        connection, key = self._connection, (root, os.fsencode(folder.relative))
        question = "SELECT id, linked, seal FROM folder WHERE root = ? AND path = ?"
        row = connection.execute(question, key).fetchone()
        known: dict[bytes, tuple[int, str | None, tuple[int, ...]]] = {}
        if row is None:
            store.insert(connection, "folder", (*key, linked), "INSERT OR IGNORE")
            number = int(connection.execute(question, key).fetchone()[0])
        else:
            number = int(row[0])
            store.require_sealed("folder", (*key, row[1]), row[2])
            if row[1] != linked:
                store.update(connection, "folder", number, "linked", linked)
            cursor = connection.cursor()
            cursor.row_factory = None  # plain tuples: the second walk reads little else
            for row_number, checksum, *values in cursor.execute(OF_FOLDER, (number,)):
                store.require_sealed("file", values, checksum)
                known[values[NAME]] = row_number, values[PROBLEM], tuple(values[OF_STATE])
        for file in folder.files:
            state = state_of(file.status)
            before = known.pop(os.fsencode(file.name), None)
            if before is None or before[2] != state:
                self._add(number, folder, file, state, real)
                self._commit_sometimes()
            elif problem := before[1]:
                path = os.path.join(folder.path, file.name)
                self._problems.tell(f"{path}: {problem}")
                self._problems.cannot_use(path, problem)
        for name, (gone, _, _) in known.items():
            connection.execute("DELETE FROM file WHERE id = ?", (gone,))
            if name == os.fsencode(LIST_NAME):
                connection.execute("DELETE FROM listed WHERE folder = ?", (number,))
        self._commit_sometimes()
        return number

    def _commit_sometimes(self) -> None:
        if time.monotonic() - self._committed > COMMIT_SECONDS:
            self._connection.commit()
            self._committed = time.monotonic()

    def _add(self, number: int, folder: Folder, file: File, state: tuple[int, ...], real: str) -> None:
        """Read a file that is new or has changed, and write its row."""
        path = os.path.join(folder.path, file.name)
        is_settled = time.time_ns() - file.status.st_ctime_ns >= SETTLED_NS
        path_key = path_build_id_key(os.path.join(real, file.name) if real[-1:] == "/" else real) or None
        what, ident, problem, entries, head = store.OTHER, None, None, None, b"?"
        try:
            with open(open_regular(path), "rb", buffering=0) as opened:
                head = opened.read(HEADER_BYTES)
                ident = identify_open(opened.fileno(), path, head)
                if ident is None and file.name == LIST_NAME and file.status.st_size <= MAX_LIST_BYTES:
                    what = store.LIST
                    with open(os.dup(opened.fileno()), "rb") as rest:
                        entries = list(listed(head + rest.read(MAX_LIST_BYTES - len(head))))
        except ElfError as error:
            problem = error.problem if error.offset is None else f"{error.problem} at offset {error.offset:#x}"
            self._problems.tell(f"{path}: {problem}")
            self._problems.cannot_use(path, problem)
        except OSError as error:
            self._problems.cannot_read(path, error)
            self._problems.cannot_use(path, os_error_text(error))
            is_settled = False  # it is tried again next time
        if ident is not None:
            what = store.ELF
        elif path_key is not None and not head:
            what = store.EMPTY
        elif path_key is not None and is_packed(head):
            what = store.PACKED
        elif what != store.LIST:
            path_key = None
        row: dict[str, object] = {
            "folder": number,
            "name": os.fsencode(file.name),
            **dict(zip(STATE, state, strict=True)),
            "what": what,
            "path_key": path_key,
            "problem": problem,
            "special": int(SPECIAL_NAME.fullmatch(file.name) is not None),
        }
        if not is_settled:
            row["changed"] = 0
        if ident is not None:
            if is_build_id(ident.build_id):
                row |= {"build_id": ident.build_id, "key": build_id_key(ident.build_id)}
            row |= {"offers": ident.offers, "link": ident.link, "link_check": ident.link_check}
            row["go"] = ident.go_build_id or None
        store.insert(self._connection, "file", [row.get(name) for name in store.FILE], "INSERT OR REPLACE")
        if entries is not None:
            self._connection.execute("DELETE FROM listed WHERE folder = ?", (number,))
            for key, name in entries:
                store.insert(self._connection, "listed", (number, key, os.fsencode(name)))


def kind_of(path: str) -> str:
    """What a file is that is no binary, empty if that is not known."""
    try:
        with open(open_regular(path), "rb", buffering=0) as file:
            return known_kind(file.read(HEAD))
    except OSError:
        return ""


def state_of(status: os.stat_result) -> tuple[int, ...]:
    """The columns of STATE."""
    return (
        status.st_size,
        store.signed(status.st_mtime_ns),
        store.signed(status.st_ctime_ns),
        store.signed(status.st_ino),
        store.signed(status.st_dev),
    )


def root_key(root: str, status: os.stat_result) -> tuple[str, int, int]:
    """By what a root is known: its resolved path, device and inode. A file stays the root when it is replaced."""
    return os.path.realpath(root), status.st_dev, 0 if stat.S_ISREG(status.st_mode) else status.st_ino

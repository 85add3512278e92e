"""The folder of downloaded files, in the layout that elfutils' client and others share.

    ID/debuginfo  ID/executable  ID/section-HASH-NAME      files; one of size zero is a miss
    cache_miss_s  cache_clean_interval_s  max_unused_age_s   numbers that whoever owns the folder may change
    symbolize/                                              what only we know: locks, verdicts, who was asked

Files appear whole, by a rename, and never change, so that they can be mapped while others fetch. What is put into the
folder is verified before.
"""

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO, NamedTuple

from symbolize.binaries.build_id import same_build_id
from symbolize.core.errors import InputError, printable
from symbolize.core.files import (
    ABANDONED,
    atomic_file,
    file_lock,
    is_regular,
    last_used,
    mark_used,
    open_regular,
    remove,
)
from symbolize.elf import ElfImage

MISS_LIFE = 3600.0
"""Seconds for which a miss is believed, unless the folder's `cache_miss_s` says otherwise."""
CLEAN_INTERVAL = 86400
MAX_UNUSED_AGE = 604800
MAX_CONTROL_BYTES = 4096

OWN = "symbolize"
COMPOSED = "section-symbolize-composed"
"""A debug file composed of sections, beside them: other clients clean it away like a section."""

_SHARED = re.compile(r"debuginfo|executable|section-.*|source-.*|hdr-.*")
_FOLDER = re.compile(r"[0-9a-f]{4,128}")
ELF_MAGIC = b"\x7fELF"
_UNFINISHED = ".symbolize-"
_NOTE = ".json"


def section_entry(name: str) -> str:
    """The name of the file with a section: a hash (djb2) and the name with all odd characters replaced."""
    value = 5381
    for byte in name.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return f"section-{value:08x}-" + re.sub(r"[^A-Za-z0-9._-]", "#", name)[-100:]


def source_entry(path: str) -> str:
    """The name of the file with a source file: a hash that nobody finds another path for, and the end of the path."""
    digest = hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()[:32]
    return f"source-{digest}-" + re.sub(r"[^A-Za-z0-9._-]", "#", path)[-100:]


class Wrong(Exception):
    """The file that came is not the one that was asked for."""


class FileTooLarge(Exception):
    """The file is larger than allowed."""


class Miss(NamedTuple):
    """A miss on record: its age in seconds, and when it was found out."""

    age: float
    when: float


class Partial(NamedTuple):
    """The beginning of a file, and its ETag or Last-Modified at the server."""

    path: str
    size: int
    validator: str


class ClientCache:
    """The folder at `path`. Nothing is made before something is written."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def find(self, build_id: str, entry: str) -> str | None:
        """The path of a file, if it is there; it counts as used."""
        path = self.path_of(build_id, entry)
        try:
            status = os.stat(path)
            if not status.st_size or not is_regular(status):
                return None
            if not os.access(path, os.R_OK):
                return None
        except OSError:
            return None
        with suppress(OSError):  # cleaning goes by the time of the last access, which not every mount keeps
            mark_used(path, status)
        return path

    def miss(self, build_id: str, entry: str, asked: str) -> Miss | None:
        """The miss on record, if it is still believed and was found out by asking the same servers or by others.

        `asked` identifies the servers. A miss that another client left does not say whom it asked.
        """
        try:
            status = os.stat(self.path_of(build_id, entry))
        except OSError:
            return None
        age = time.time() - status.st_mtime
        if status.st_size or not is_regular(status) or age > self._number("cache_miss_s", MISS_LIFE) or age < -60:
            return None
        note = self._read(os.path.join(self._own("misses"), f"{build_id}-{entry}"))
        if note is not None and note.get("time_ns") == status.st_mtime_ns and note.get("asked") != asked:
            return None
        return Miss(max(age, 0.0), status.st_mtime)

    def write_miss(self, build_id: str, entry: str, asked: str) -> None:
        """Put a miss on record. Raises OSError."""
        with self.writing(build_id, entry):
            pass
        status = os.stat(self.path_of(build_id, entry))
        self._write(os.path.join(self._own("misses"), f"{build_id}-{entry}"), asked=asked, time_ns=status.st_mtime_ns)

    def remove(self, build_id: str, entry: str) -> None:
        """Remove a file, or the record of a miss."""
        remove(self.path_of(build_id, entry))

    @contextmanager
    def writing(self, build_id: str, entry: str) -> Iterator[BinaryIO]:
        """A file to write, which gets its name when the block ends and is nowhere when it raises. Raises OSError."""
        with self._new_file(self.path_of(build_id, entry), durable=True) as file:
            os.fchmod(file.fileno(), 0o400)
            yield file

    def partial(self, build_id: str, entry: str, server: str) -> Partial | None:
        """The beginning of a file that `server` broke off, and what identifies that; None if there is none."""
        path = self._partial(build_id, entry)
        note = self._read(path + _NOTE)
        try:
            size = os.stat(path).st_size
        except OSError:
            return None
        validator = None if note is None else note.get("validator")
        if not size or note is None or note.get("server") != server or note.get("size") != size:
            return None
        return Partial(path, size, validator) if isinstance(validator, str) and validator else None

    def keep_partial(self, unfinished: str, build_id: str, entry: str, server: str, validator: str) -> None:
        """Keep the received part of a file, at most one per file, until the download goes on or it is cleaned up."""
        path = self._partial(build_id, entry)
        with suppress(OSError):
            remove(path + _NOTE)  # first, so that no note is for another file
            os.replace(unfinished, path)
            self._write(path + _NOTE, server=server, validator=validator, size=os.stat(path).st_size)

    def drop_partial(self, build_id: str, entry: str) -> None:
        """Remove the beginning of a file, if it is there."""
        for ending in (_NOTE, ""):
            remove(self._partial(build_id, entry) + ending)

    def _partial(self, build_id: str, entry: str) -> str:
        return self.path_of(build_id, f"{_UNFINISHED}partial-{entry}")

    @contextmanager
    def only_one(self, build_id: str, entry: str, patience: float, stop: Callable[[], bool]) -> Iterator[bool]:
        """The right to fetch a file, one for all processes; False if another one has it for too long.

        Waits at most `patience` seconds, or until `stop` is true. Raises OSError if nothing can be written.
        """
        folder = self._own("locks")
        os.makedirs(folder, 0o700, exist_ok=True)
        with file_lock(os.path.join(folder, f"{build_id}-{entry}"), patience, stop) as is_mine:
            yield is_mine

    def read_verdict(self, server: str, life: float) -> dict[str, object] | None:
        """What was last found out about a server, if that is not older than `life` seconds."""
        found = self._read(self._verdict(server))
        when = None if found is None else found.get("time")
        if isinstance(when, int | float) and -60 < time.time() - when < life and isinstance(found, dict):
            return found
        return None

    def write_verdict(self, server: str, is_up: bool, text: str) -> None:
        """Let other processes know about a server."""
        with suppress(OSError):
            self._write(self._verdict(server), is_up=is_up, text=text, time=time.time())

    def clean(self) -> int:
        """Remove files that were not used for long, if that was not done lately; how many were removed.

        The same files, ages and control files as elfutils' client has, and what dead processes of ours left.
        """
        control = os.path.join(self.path, "cache_clean_interval_s")
        try:
            if time.time() - os.stat(control).st_mtime < self._number("cache_clean_interval_s", CLEAN_INTERVAL):
                return 0
            os.utime(control)  # first, so that not everybody begins
        except FileNotFoundError:
            with suppress(OSError), open(control, "x") as new:
                new.write(str(CLEAN_INTERVAL))
            return 0
        except OSError:
            return 0
        oldest = time.time() - self._number("max_unused_age_s", MAX_UNUSED_AGE)
        removed = 0
        for folder in list_folder(self.path):
            if not _FOLDER.fullmatch(folder.name) or not folder.is_dir(follow_symlinks=False):
                continue
            for file in list_folder(folder.path):
                removed += self._clean_file(file, oldest)
            with suppress(OSError):
                os.rmdir(folder.path)
        for file in [each for part in ("misses", "locks", "servers") for each in list_folder(self._own(part))]:
            removed += remove_older(file, min(oldest, time.time() - ABANDONED))
        return removed

    def _clean_file(self, file: os.DirEntry[str], oldest: float) -> int:
        if file.name.startswith(_UNFINISHED):
            return remove_older(file, time.time() - ABANDONED)
        return remove_older(file, oldest) if _SHARED.fullmatch(file.name) else 0

    def path_of(self, build_id: str, entry: str) -> str:
        """The path of a file of a build."""
        return os.path.join(self.path, build_id, entry)

    def _own(self, part: str) -> str:
        return os.path.join(self.path, OWN, part)

    def _verdict(self, server: str) -> str:
        return os.path.join(self._own("servers"), hashlib.sha256(server.encode()).hexdigest()[:32])

    def _number(self, control: str, default: float) -> float:
        """The number in a control file."""
        try:
            text = read_small(os.path.join(self.path, control)).decode("ascii", "replace").strip()
        except OSError:
            return default
        return float(text) if re.fullmatch(r"[0-9]{1,12}", text) else default

    def _read(self, path: str) -> dict[str, object] | None:
        try:
            found = json.loads(read_small(path))
        except (OSError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def _write(self, path: str, **facts: object) -> None:
        with self._new_file(path) as file:
            file.write(json.dumps(facts).encode())

    @contextmanager
    def _new_file(self, path: str, durable: bool = False) -> Iterator[BinaryIO]:
        """A file to write in a folder that is made if need be."""
        folder = os.path.dirname(path)
        with ExitStack() as stack:
            for is_last in (False, True):  # who cleans may remove the empty folder meanwhile
                os.makedirs(folder, 0o700, exist_ok=True)
                try:
                    unfinished = os.path.join(folder, _UNFINISHED + os.urandom(6).hex())
                    file = stack.enter_context(atomic_file(path, unfinished, durable))
                    break
                except FileNotFoundError:
                    if is_last:
                        raise
            yield file


def read_small(path: str) -> bytes:
    """The beginning of a small file; b"" if it is gone."""
    try:
        with open(open_regular(path), "rb") as file:
            return file.read(MAX_CONTROL_BYTES)
    except FileNotFoundError:
        return b""


def list_folder(path: str) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing if it cannot be read."""
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []


def remove_older(file: os.DirEntry[str], oldest: float) -> int:
    """Remove a regular file that was neither used nor changed since; whether it was, as a number."""
    with suppress(OSError):
        if file.is_file(follow_symlinks=False):
            status = file.stat(follow_symlinks=False)
            if last_used(status) < oldest:
                os.unlink(file.path)
                return 1
    return 0


def check_head(head: bytes) -> None:
    """Check the first bytes of an ELF file. Raises Wrong for a page of a proxy, or anything of any size."""
    if not ELF_MAGIC.startswith(head[: len(ELF_MAGIC)]):
        raise Wrong("refused: not an ELF file")


def verify_file(path: str, build_id: str) -> None:
    """Check that what came is the file with a build id, and all of it. Raises Wrong."""
    if not os.path.getsize(path):
        raise Wrong("refused: an empty file came")
    try:
        with ElfImage.open(path) as image:
            if image.build_id is None or not same_build_id(image.build_id, build_id):
                raise Wrong(f"refused: has {image.build_id or 'no build id'}, wanted {build_id}")
            cut = [
                problem for problem in image.problems if "section headers" in problem or "program headers" in problem
            ]
            if cut:
                raise Wrong(f"refused: {cut[0]}")
            for section in image.sections:
                if section.has_bytes and section.file_offset + section.size > len(image.data):
                    raise Wrong(f"refused: cut off, section {printable(section.name)} reaches past the end")
    except InputError as error:
        raise Wrong(f"refused: {error.problem}") from None

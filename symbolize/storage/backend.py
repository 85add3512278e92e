"""Storage for outputs and for files that tasks share: a folder, or a prefix in an object store, with local copies of
what is there."""

import errno
import hashlib
import os
import shutil
import stat
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, BinaryIO, Final

from symbolize.core.errors import InputError, OutputError, UsageError
from symbolize.core.files import (
    CacheFolder,
    atomic_file,
    mark_used,
    open_regular,
    os_error_text,
    output_error,
    remove,
    unfinished_path,
)
from symbolize.storage import urls
from symbolize.storage.inputs import STATE_FOLDER, local_path

LIMIT: Final = 4 << 30
"""Bytes of all copies in a folder."""

ENDING = ".copy"

IN_USE: Final = 60
"""Seconds for which a copy stays after it was found: a process may be about to open it."""


class Scratch:
    """A folder of copies, of which the least recently used are removed when they exceed LIMIT.

    Processes may share a folder that is `given`; one of its own is removed when the process ends. Raises OSError.
    """

    def __init__(self, given: str | None) -> None:
        self.given = given
        self._own = ""
        self._made_by = 0

    @property
    def folder(self) -> str:
        """The folder, which is made at the first use."""
        if self.given is not None:
            os.makedirs(self.given, mode=0o700, exist_ok=True)
            return self.given
        if self._made_by != os.getpid():
            self._own, self._made_by = tempfile.mkdtemp(prefix="symbolize-"), os.getpid()
            weakref.finalize(self, _remove_own, self._own, self._made_by)
        return self._own

    def path(self, identity: str) -> str:
        """The path of the copy of a file with this identity, which includes its version."""
        return os.path.join(self.folder, hashlib.sha256(identity.encode()).hexdigest()[:40] + ENDING)

    def find(self, identity: str) -> str | None:
        """The path of a copy, None if there is none."""
        path = self.path(identity)
        try:
            mark_used(path, os.stat(path))
        except FileNotFoundError:
            return None
        return path

    @contextmanager
    def copy(self, identity: str) -> Iterator[BinaryIO]:
        """A file to write, which becomes the copy with this identity."""
        with atomic_file(self.path(identity)) as file:
            yield file
        CacheFolder(self.folder, LIMIT, in_use=IN_USE).evict(ENDING)

    @contextmanager
    def temporary(self) -> Iterator[BinaryIO]:
        """A file to write, which is removed at the end."""
        path = unfinished_path(os.path.join(self.folder, "file"))
        try:
            with open(path, "xb") as file:
                yield file
        finally:
            remove(path)

    def sweep(self) -> int:
        """Remove what killed processes left unfinished; how many files. Never raises."""
        return 0 if self.given is None else CacheFolder(self.given).sweep()


def _remove_own(folder: str, process: int) -> None:
    """Remove the folder of a process, but not in a child that was forked."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


UNFINISHED_FOLDER: Final = f"{STATE_FOLDER}/tmp"
"""Where files below a folder are written before they get their names."""

ONE_REQUEST: Final = 16 << 20
"""Bytes up to which a file is uploaded by one request."""

PIECE: Final = 1 << 20


class Storage(ABC):
    """Files by name, below a folder or a URL. Names are relative, divided by slashes; a name that would lead out of
    the storage raises OutputError. Can be pickled."""

    url: str
    is_local: bool

    @property
    def shown(self) -> str:
        """The URL without secrets."""
        return urls.shown(self.url)

    @classmethod
    def of(cls, text: str, scratch: str | None = None) -> "Storage":
        """The storage at a path or URL; nothing is created or read yet.

        `scratch` is a local folder for copies of remote files, which processes may share; by default each storage has
        its own until the process ends. Raises UsageError for a URL that cannot be written to, or whose library is
        missing.
        """
        path = local_path(text)
        return ObjectStorage(text, scratch) if path is None else LocalStorage(path)

    @abstractmethod
    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        """The file as a stream, to be read once. Raises InputError, reading too."""

    @abstractmethod
    def read_file(self, name: str) -> str:
        """A local path at which the file can be read or mapped now. Raises InputError."""

    @abstractmethod
    def write(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A file to write, which appears as `name` when it is complete, and not at all if the block fails. Raises
        OutputError."""

    @abstractmethod
    def put(self, name: str, path: str) -> None:
        """Write a copy of the local file at `path`. Raises OutputError."""

    def exists(self, name: str) -> bool:
        """Whether there is a file of this name. Raises InputError if that is unknown."""
        return self.size(name) is not None

    @abstractmethod
    def size(self, name: str) -> int | None:
        """The bytes of a file, None if there is none. Raises InputError if that is unknown."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file, if there is one. Raises OutputError."""

    @abstractmethod
    def names(self, prefix: str = "") -> Iterator[str]:
        """The names of all files below the folder `prefix`, by default all but those of the state of batches, in no
        particular order. Raises InputError."""

    @abstractmethod
    def sweep(self) -> int:
        """Remove what killed processes left unfinished over an hour ago; how many files. Never raises."""


class LocalStorage(Storage):
    """A folder, which is created when something is written."""

    is_local = True

    def __init__(self, path: str) -> None:
        self.url = os.path.abspath(path)

    def read_file(self, name: str) -> str:
        path = self._path(name)
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise InputError(path, "is not a file")
        except OSError as error:
            raise _input_error(path, error) from error
        return path

    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        path = self.read_file(name)
        try:
            return open(open_regular(path), "rb")
        except OSError as error:
            raise _input_error(path, error) from error

    @contextmanager
    def write(self, name: str) -> Iterator[BinaryIO]:
        path = self._path(name)
        unfinished = os.path.join(self.url, UNFINISHED_FOLDER)
        try:
            os.makedirs(unfinished, exist_ok=True)
            with atomic_file(path, unfinished_path(os.path.join(unfinished, "file"))) as file:
                yield file
                self._make_folder_of(path)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise output_error(path, error) from error

    def put(self, name: str, path: str) -> None:
        with open(path, "rb") as source, self.write(name) as file:
            shutil.copyfileobj(source, file, PIECE)

    def size(self, name: str) -> int | None:
        path = self._path(name)
        try:
            status = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _input_error(path, error) from error
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def remove(self, name: str) -> None:
        path = self._path(name)
        try:
            os.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            raise OutputError(f"{path}: cannot be removed: {os_error_text(error)}") from error

    def names(self, prefix: str = "") -> Iterator[str]:
        folders = [_checked(prefix.rstrip("/"), self.url)] if prefix.rstrip("/") else [""]
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(os.path.join(self.url, folder)) as entries:
                    for entry in entries:
                        name = f"{folder}/{entry.name}" if folder else entry.name
                        if entry.is_dir(follow_symlinks=False):
                            if name != (UNFINISHED_FOLDER if prefix else STATE_FOLDER):
                                folders.append(name)
                        elif entry.is_file(follow_symlinks=False):
                            yield name
            except (FileNotFoundError, NotADirectoryError):
                pass
            except OSError as error:
                raise _input_error(os.path.join(self.url, folder), error) from error

    def sweep(self) -> int:
        return CacheFolder(os.path.join(self.url, UNFINISHED_FOLDER)).sweep()

    def _path(self, name: str) -> str:
        return os.path.join(self.url, _checked(name, self.url))

    def _make_folder_of(self, path: str) -> None:
        """Create the folder of a file. Raises OutputError if a link on the path leads out of the storage."""
        folder = os.path.dirname(path)
        existing = folder
        while not os.path.lexists(existing):
            existing = os.path.dirname(existing)
        root = os.path.realpath(self.url)
        real = os.path.realpath(existing)
        if real != root and not real.startswith(root.rstrip("/") + "/"):
            cause = OSError(errno.ELOOP, f"a link in the path leads out of {self.url}")
            raise output_error(path, cause) from cause
        os.makedirs(folder, exist_ok=True)


class ObjectStorage(Storage):
    """A prefix in an object store. A file is written locally and uploaded when it is complete; it becomes visible with
    the end of the upload."""

    is_local = False

    def __init__(self, url: str, scratch: str | None) -> None:
        self.url = url.rstrip("/")
        if urls.scheme_of(url) not in urls.STORES:
            stores = ", ".join(sorted(urls.STORES))
            raise UsageError(f"{urls.shown(url)}: cannot be written to; object stores are {stores}")
        if urls.has_password(url):
            raise UsageError(f"{urls.shown(url)}: contains a password; give credentials in the environment")
        if not self.url.partition("://")[2]:
            raise UsageError(f"{urls.shown(url)}: names no bucket")
        urls.system_of(url)  # at once: without its library each output would fail
        self._scratch = Scratch(scratch)

    def __reduce__(self) -> Any:
        return ObjectStorage, (self.url, self._scratch.given)

    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        return urls.open_url(self._at(name))

    def read_file(self, name: str) -> str:
        url = self._at(name)
        entry = urls.entry_at(urls.files_at(url))
        if entry is None or entry.is_folder:
            raise InputError(urls.shown(url), "is missing")
        identity = f"{url}\n{entry.version}"
        try:
            path = self._scratch.find(identity)
            if path is None:
                path = self._scratch.path(identity)
                with urls.open_url(url) as stream, self._scratch.copy(identity) as file:
                    if copy(stream, file, entry.size) != entry.size:
                        raise InputError(urls.shown(url), "changed while it was read")
        except OSError as error:
            raise InputError(urls.shown(url), f"cannot be copied here: {os_error_text(error)}") from error
        return path

    @contextmanager
    def write(self, name: str) -> Iterator[BinaryIO]:
        url = self._at(name)
        try:
            with self._scratch.temporary() as file:
                yield file
                file.flush()
                self._upload(url, file.name)
        except OSError as error:
            raise output_error(urls.shown(url), error) from error

    def put(self, name: str, path: str) -> None:
        self._upload(self._at(name), path)

    def size(self, name: str) -> int | None:
        entry = urls.entry_at(urls.files_at(self._at(name)))
        return None if entry is None or entry.is_folder else entry.size

    def remove(self, name: str) -> None:
        url = self._at(name)
        try:
            files = urls.files_at(url)
            urls.ask(url, lambda: files.system.rm_file(files.path), verb="removed")
        except FileNotFoundError:
            pass
        except InputError as error:
            raise OutputError(str(error)) from error

    def names(self, prefix: str = "") -> Iterator[str]:
        folder = _checked(prefix.rstrip("/"), self.url) if prefix.rstrip("/") else ""
        with suppress(FileNotFoundError):
            for entry in urls.everything(urls.files_at(self.url), folder):
                if prefix or not entry.path.startswith(STATE_FOLDER + "/"):
                    yield entry.path

    def sweep(self) -> int:
        return self._scratch.sweep()

    def _upload(self, url: str, path: str) -> None:
        """Upload a local file. A remote file opened for writing would be visible half-written when something fails."""
        try:
            files, size = urls.files_at(url), os.path.getsize(path)
            if size <= ONE_REQUEST:
                with open(path, "rb") as file:
                    data = file.read()
                urls.ask(url, lambda: files.system.pipe_file(files.path, data), size, "written")
            else:
                urls.ask(url, lambda: files.system.put_file(path, files.path), size, "written")
        except InputError as error:
            raise OutputError(str(error)) from error
        except OSError as error:  # of the local file, or the bucket is missing
            raise OutputError(f"{urls.shown(url)}: cannot be written: {urls.reason(error)}") from error

    def _at(self, name: str) -> str:
        return f"{self.url}/{_checked(name, urls.shown(self.url))}"


def _checked(name: str, url: str) -> str:
    """`name`, if it cannot lead out of a storage."""
    if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
        raise OutputError(f"{name!r} is not a valid name for a file below {url}")
    return name


def copy(source: BinaryIO, target: BinaryIO, limit: int) -> int:
    """Copy a stream, at most `limit` bytes and one piece; how many bytes were copied."""
    size = 0
    while size <= limit and (piece := source.read(PIECE)):
        target.write(piece)
        size += len(piece)
    return size


def _input_error(path: str, error: OSError) -> InputError:
    return InputError(path, f"cannot be read: {os_error_text(error)}")

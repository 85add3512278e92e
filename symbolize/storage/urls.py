"""Files at URLs, through fsspec, which is imported when it is needed; errors of its libraries become InputError.

The clock of a task stops while it waits for a store (R287, time of stores), because a slow store is no fault of its
input. Each request to a store has a time limit, and all requests of a task have one together.
"""

import io
import math
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, Final, NamedTuple, TypeVar

from symbolize.core.errors import InputError, UsageError, printable
from symbolize.core.parallel import call_within

OVERDUE: Final = signal.SIGALRM
"""The signal that ends the process of a task that is overdue."""

_left = [math.inf]
"""Seconds for which the task of this process may still wait for stores."""
URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
CREDENTIALS: Final = re.compile(r"(?<=://)[^/?#\s]*@")
QUERY: Final = re.compile(r"(https?://[^?\s]*)\?\S*")

BLOCK: Final = 8 << 20
"""Bytes in a request while a file is read."""

ANSWER_TIME: Final = 60.0
"""Seconds that a request to a store may take, with retries by its library, besides the time for the bytes."""
SLOWEST: Final = 100_000
"""Bytes a second at which a store has to send or receive."""

STORES: Final = frozenset(["s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "memory"])
"""Schemes of object stores, where files appear whole."""

ALIASES: Final = {"s3a": "s3", "gcs": "gs", "az": "abfs", "abfss": "abfs"}
"""Schemes that name the same stores as another."""

LIBRARIES: Final = {"s3": "s3fs", "gs": "gcsfs", "abfs": "adlfs"}
"""The package of a store's library, which fsspec imports."""

PAGED: Final = frozenset(["s3", "s3a"])
"""Schemes whose folders are listed page by page, so that they may be of any length."""

VERSIONS: Final = (
    *("ETag", "etag", "generation", "md5Hash", "content_md5", "checksum", "mtime", "LastModified", "last_modified"),
    *("updated", "modified", "created"),
)
"""Names of fields that change with the content of a file, the best first."""

MAX_REASON: Final = 300

Result = TypeVar("Result")


@contextmanager
def own_time(seconds: float, waiting: float) -> Iterator[None]:
    """End this process by OVERDUE when the block has taken `seconds`, without the time for which it waits for stores,
    at most `waiting` seconds. Without one of these there is no limit."""
    if not seconds or not waiting:
        yield
        return
    _left[0] = waiting
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _left[0] = math.inf


def wait_for(seconds: float, call: Callable[[], Result]) -> Result:
    """The result or exception of a request to a store, while the clock of the task stops. Raises TimeoutError after
    `seconds`, or if the task has waited for stores for too long in all.

    All requests of a task have an hour.
    """
    own, _ = signal.setitimer(signal.ITIMER_REAL, 0)
    began = time.monotonic()
    try:
        if _left[0] <= 0:
            raise TimeoutError("too slow: the task has waited for stores for too long")
        return call_within(min(seconds, _left[0]), call)
    finally:
        _left[0] -= time.monotonic() - began
        if own:
            signal.setitimer(signal.ITIMER_REAL, own)


def is_url(text: str) -> bool:
    """Whether `text` is a URL, not a path."""
    return URL.match(text) is not None


def scheme_of(url: str) -> str:
    """The scheme of a URL, in lower case."""
    match = URL.match(url)
    return match[1].lower() if match else ""


def is_store(url: str) -> bool:
    """Whether a text is the URL of an object store."""
    return scheme_of(url) in STORES


def is_inside(url: str, folder: str) -> bool:
    """Whether a URL is below that of a folder, also by another scheme of the same store."""
    return _comparable(url).startswith(_comparable(folder).rstrip("/") + "/")


def _comparable(url: str) -> str:
    scheme = scheme_of(url)
    return ALIASES.get(scheme, scheme) + url[len(scheme) :]


def shown(url: str) -> str:
    """A URL, or a text with URLs, without users, passwords and queries, which may be secrets."""
    return QUERY.sub(r"\1", CREDENTIALS.sub("", url))


def shown_uri(uri: str) -> str:
    """An input without secrets: a path as it is, a URL as `shown`."""
    return shown(uri) if is_url(uri) else uri


def has_password(url: str) -> bool:
    """Whether a URL holds a password, which would end up wherever the URL is noted."""
    return any(":" in found for found in CREDENTIALS.findall(url))


class Unreachable(InputError):
    """A URL could not be read now; the file may exist."""


class Denied(Unreachable):
    """What is at one URL cannot be read: access is denied, or it is missing. Others of the server may be readable."""


class UrlFiles(NamedTuple):
    """A file system, a path in it, and the URL of that path without a slash at the end."""

    system: Any
    path: str
    url: str


class UrlEntry(NamedTuple):
    """A file, or a folder, below a URL: its path from there, its bytes (-1: unknown), and its version."""

    path: str
    is_folder: bool
    size: int
    version: str


def system_of(url: str) -> Any:
    """The class of the file system of a URL. Raises InputError if there is none, UsageError if its library is
    missing."""
    scheme = scheme_of(url)
    library = LIBRARIES.get(ALIASES.get(scheme, scheme), "")
    try:
        import fsspec
    except ImportError as error:
        install = f"pip install fsspec {library}".rstrip()
        raise UsageError(f"{shown(url)}: URLs need fsspec: {install}") from error
    try:
        return fsspec.get_filesystem_class(scheme)
    except ValueError as error:
        raise InputError(shown(url), f"is of a kind that is not known: {scheme}://") from error
    except ImportError as error:
        install = f"pip install {library}" if library else str(error)
        raise UsageError(f"{shown(url)}: {scheme}:// needs a library that is not installed: {install}") from error


def files_at(url: str) -> UrlFiles:
    """The file system of a URL. Raises InputError if the URL cannot be used, UsageError if a library is missing."""
    scheme = scheme_of(url)
    if has_password(url):
        raise InputError(shown(url), "contains a password; give credentials in the environment")
    system = system_of(url)
    # A cached list of files would hide what other machines write.
    options = {"use_listings_cache": False} if scheme in STORES else {}

    def files() -> UrlFiles:
        path = system._strip_protocol(url)
        made = system(**system._get_kwargs_from_urls(url), **options)
        return UrlFiles(made, path, f"{scheme}{url[len(scheme) :]}".rstrip("/"))

    return ask(url, files)


def ask(url: str, call: Callable[[], Result], size: int = 0, verb: str = "read") -> Result:
    """The result of a request about `url`, which transfers `size` bytes.

    It may take ANSWER_TIME and the time for the bytes at SLOWEST (R287, time of stores). Errors of libraries become
    InputError: the file cannot be `verb`. A missing file stays FileNotFoundError. ANSWER_TIME is 60 s, SLOWEST 100,000
    bytes a second. An input that a store did not deliver, for whatever reason, is done by the next run, and the exit
    code is 1.
    """
    try:
        return wait_for(ANSWER_TIME + size / SLOWEST, call)
    except (InputError, UsageError, FileNotFoundError):
        raise
    except PermissionError as error:
        raise Denied(shown(url), f"cannot be {verb}: access is denied, or it is missing") from error
    except Exception as error:  # each library has its own classes, not all of them OSError
        raise Unreachable(shown(url), f"cannot be {verb}: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """The message of an error of a library, in one line without secrets."""
    text = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
    return printable(shown(str(text)))[:MAX_REASON]


def entry_at(files: UrlFiles) -> UrlEntry | None:
    """The file or folder at a URL, None if there is none. Raises InputError."""
    try:
        return _entry("", ask(files.url, lambda: files.system.info(files.path)))
    except FileNotFoundError:
        return None


def modified_at(url: str) -> float | None:
    """When the file at a URL was changed, in seconds since 1970; None if its kind of store does not say. Raises
    InputError."""
    files = files_at(url)

    def modified() -> float | None:
        try:
            return float(files.system.modified(files.path).timestamp())
        except NotImplementedError:
            return None

    try:
        return ask(url, modified)
    except FileNotFoundError as error:
        raise Denied(shown(url), "is missing") from error


def everything(files: UrlFiles, folder: str = "") -> Iterator[UrlEntry]:
    """All files below a folder. Raises InputError, at any time, and FileNotFoundError if there is no bucket."""
    if scheme_of(files.url) in PAGED:
        yield from _pages(files, _inside(folder), "")
        return
    folders = [folder]
    while folders:
        inner = []
        for entry in children(files, folders.pop()):
            if entry.is_folder:
                inner.append(entry.path)
            else:
                yield entry
        folders += reversed(inner)


def children(files: UrlFiles, folder: str, start: str = "") -> Iterator[UrlEntry]:
    """The files and folders in a folder, at least those whose names begin with `start`. Raises as `everything` does."""
    if scheme_of(files.url) in PAGED:
        yield from _pages(files, _inside(folder) + start, "/")
        return
    path = f"{files.path.rstrip('/')}/{folder}".rstrip("/")
    listed = ask(files.url, lambda: files.system.ls(path, detail=True))
    for info in sorted(listed, key=lambda info: str(info["name"])):
        name = str(info["name"]).rstrip("/")
        if name.strip("/") != path.strip("/"):  # some stores list a folder within itself
            yield _entry(_inside(folder) + name.rsplit("/", 1)[-1], info)


def _pages(files: UrlFiles, start: str, delimiter: str) -> Iterator[UrlEntry]:
    """The keys below an S3 prefix that begin with `start`, a page of a thousand at a time."""
    bucket, key, _ = files.system.split_path(files.path)
    prefix = _inside(key or "")
    more: dict[str, str] = {}
    while True:
        options = {"Bucket": bucket, "Prefix": prefix + start, "Delimiter": delimiter, **files.system.req_kw, **more}
        page = ask(files.url, partial(files.system.call_s3, "list_objects_v2", **options))
        for folder in page.get("CommonPrefixes", ()):
            yield UrlEntry(folder["Prefix"][len(prefix) :].rstrip("/"), True, 0, "")
        for info in page.get("Contents", ()):
            if not info["Key"].endswith("/"):  # a folder as some tools mark it
                yield _entry(info["Key"][len(prefix) :], {**info, "size": info["Size"]})
        if not page.get("IsTruncated"):
            return
        more = {"ContinuationToken": page["NextContinuationToken"]}


def _inside(folder: str) -> str:
    """The prefix of paths in `folder`."""
    return folder and folder + "/"


def _entry(path: str, info: dict[str, Any]) -> UrlEntry:
    size = info.get("size")
    size = size if isinstance(size, int) else -1
    mark = next((info[key] for key in VERSIONS if info.get(key)), "")
    return UrlEntry(path, info.get("type") == "directory", size, f"{str(mark).strip(chr(34))}-{size}")


@contextmanager
def open_url(url: str, block: int = BLOCK) -> Iterator[BinaryIO]:
    """The file at a URL as a stream, read a block at a time. Raises InputError, reading too."""
    files = files_at(url)
    try:
        file = ask(url, lambda: files.system.open(files.path, "rb", block_size=block, cache_type="readahead"))
    except FileNotFoundError as error:
        raise Denied(shown(url), "is missing") from error
    with _Stream(file, url) as stream:
        yield stream  # type: ignore[misc]


class _Stream(io.RawIOBase):
    """A file of fsspec that raises InputError and has a name without secrets; it is read only."""

    def __init__(self, file: Any, url: str) -> None:
        self.name = shown(url)
        self._url = url
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """As many bytes as there are, at most `size`; all without it."""
        try:
            most = size if size >= 0 else getattr(self._file, "size", None) or 0
            data: bytes = ask(self._url, lambda: self._file.read(size), max(most, BLOCK))
            return data
        except FileNotFoundError as error:
            raise Denied(self.name, "was removed while it was read") from error

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._file.close()

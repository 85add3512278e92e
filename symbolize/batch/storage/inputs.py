"""The inputs of a job: files, folders, patterns, lists of names and URLs, found one by one."""

import hashlib
import io
import itertools
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, Final, NamedTuple, TextIO
from urllib.parse import quote_from_bytes, unquote_to_bytes

from symbolize.batch.storage.input_names import (
    STATE_FOLDER,
    UNFINISHED,
    Input,
    Problem,
    alternatives,
    output_name,
)
from symbolize.batch.storage.patterns import Pattern, is_pattern, split_pattern
from symbolize.batch.storage.url_inputs import find_at_url
from symbolize.batch.storage.urls import is_url, open_url
from symbolize.core.errors import InputError
from symbolize.core.files import os_error_text

LISTING: Final = "-"
"""The argument that stands for a list of names on standard input."""

FILE_URL: Final = "file://"
PIECE: Final = 1 << 16
"""Characters of a list that are read at once."""


class _Missing(Exception):
    """Nothing goes by a name."""


def find_inputs(arguments: Sequence[str], name_list: TextIO | None) -> Iterator[Input | Problem]:
    """The inputs that `arguments` name, in the order of the arguments, of a folder in the order of the names.

    An argument is a file, a folder (of which every regular file is an input, however deep), a pattern if there is no
    file of that name, a URL of one of these, or `-` for names in `name_list`, divided by newlines or NULs. What is
    found twice is one input. Names of outputs may be equal: see `alternative_names`.
    """
    # Only what several arguments name can be found twice.
    seen: set[bytes] | None = set() if len(arguments) > 1 or LISTING in arguments else None
    for found in itertools.chain.from_iterable(_named(argument, name_list) for argument in arguments):
        if seen is not None and isinstance(found, Input):
            digest = hashlib.blake2b(found.uri.encode(), digest_size=16).digest()
            if digest in seen:
                continue
            seen.add(digest)
        yield found


def alternative_names(found: Input) -> Iterator[str]:
    """The names that the output of an input may have, in the order in which they are to be tried: the last is its own.

    They depend on the input alone, not on when it was found.
    """
    path = local_path(found.uri)
    whole = found.uri.split("?")[0] if path is None and found.uri.startswith("http") else path or found.uri
    return alternatives(found.name, whole.rsplit("/", 1)[-1], found.uri)


@contextmanager
def open_input(uri: str) -> Iterator[str | BinaryIO]:
    """What a loader reads: the path of a local file, or a stream that is closed at the end. Raises InputError."""
    path = local_path(uri)
    if path is not None:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe would be waited for
                raise InputError(local_uri(path), "is no file any more")
        except OSError as error:
            raise InputError(local_uri(path), f"cannot be read: {os_error_text(error)}") from error
        yield path
        return
    with open_url(uri) as stream:
        yield stream


def local_path(uri: str) -> str | None:
    """The path of a local file, None for a URL of something else."""
    if not uri.lower().startswith(FILE_URL):
        return None if is_url(uri) else uri
    path = uri[len(FILE_URL) :].removeprefix("localhost")
    return os.fsdecode(unquote_to_bytes(path.encode("utf-8", "surrogateescape")))


def local_uri(path: str) -> str:
    """The URI of an absolute path: itself, or a file URL if its bytes are no text."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return FILE_URL + quote_from_bytes(os.fsencode(path))
    return path


def _named(argument: str, name_list: TextIO | None) -> Iterator[Input | Problem]:
    """What an argument of the command names."""
    if argument == LISTING:
        if name_list is None:
            yield Problem(LISTING, "is standard input, which is closed")
            return
        try:
            for name in _names_in(name_list):
                yield from _listed(name)
        except (OSError, ValueError) as error:
            yield Problem(LISTING, f"is no list of names: {os_error_text(error)}")
        return
    path = local_path(argument)
    if path is None:
        yield from find_at_url(argument, is_listed=False)
        return
    try:
        yield from _exactly(path, mirrored=False)
    except _Missing:
        if is_pattern(path):
            yield from _matching(path)
        else:
            yield Problem(local_uri(path), "is missing")


def _listed(name: str) -> Iterator[Input | Problem]:
    """What a name in a list means: a file or folder, no pattern."""
    path = local_path(name)
    if path is None:
        yield from find_at_url(name, is_listed=True)
        return
    try:
        yield from _exactly(path, mirrored=True)
    except _Missing:
        yield Problem(local_uri(path), "is missing")


def _names_in(name_list: TextIO) -> Iterator[str]:
    """The names in a list, read piece by piece; a NUL in its beginning says that NULs divide it."""
    if isinstance(name_list, io.TextIOWrapper):
        name_list.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
    rest = name_list.read(PIECE)
    divider = "\0" if "\0" in rest else "\n"
    while piece := name_list.read(PIECE):
        *names, rest = (rest + piece).split(divider)
        yield from filter(None, (_clean(name, divider) for name in names))
        if len(rest) > 1 << 20:
            raise ValueError("a name is longer than any name can be")
    yield from filter(None, (_clean(name, divider) for name in rest.split(divider)))


def _clean(name: str, divider: str) -> str:
    return name.removesuffix("\r") if divider == "\n" else name


def _exactly(path: str, *, mirrored: bool) -> Iterator[Input | Problem]:
    """The file at `path`, or the files of the folder there. Raises _Missing before anything is found.

    `mirrored` outputs keep the folders of the path, as of many files in a list; others have the name of the file.
    """
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        if os.path.islink(path):
            yield Problem(local_uri(path), "is a link that leads nowhere")
            return
        raise _Missing from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        yield Problem(local_uri(path), f"cannot be read: {os_error_text(error)}")
        return
    prefix = [part for part in os.path.normpath(path).split("/") if part not in ("", ".", "..")] if mirrored else []
    if stat.S_ISDIR(status.st_mode):
        yield from _in_folder(_absolute(path), prefix)
    elif stat.S_ISREG(status.st_mode):
        yield _local_input(_absolute(path), prefix or [os.path.basename(path)], status)
    else:
        yield Problem(local_uri(path), "is a pipe, device or socket, not a file")


def _matching(path: str) -> Iterator[Input | Problem]:
    """The files that a pattern means."""
    root, pattern = split_pattern(path)
    empty = True
    if os.path.isdir(root or "."):
        for found in _walk(_absolute(root or "."), [], pattern):
            empty = False
            yield found
    if empty:
        yield Problem(local_uri(path), "is missing, and as a pattern matches no file")


def _in_folder(root: str, prefix: Sequence[str]) -> Iterator[Input | Problem]:
    """The files of a folder; a problem if there are none."""
    empty = True
    for found in _walk(root, prefix, None):
        empty = False
        yield found
    if empty:
        yield Problem(local_uri(root), "holds no files")


class _Folder(NamedTuple):
    """A folder that is still to be listed: its path, the names below the root, what is left of the pattern (None: all
    is wanted), and whether a link led there."""

    path: str
    below: tuple[str, ...]
    state: frozenset[int] | None
    linked: bool


def _walk(root: str, prefix: Sequence[str], pattern: Pattern | None) -> Iterator[Input | Problem]:
    """The files below `root` that the pattern means, or all; a folder's files come before those of its folders.

    Links are followed where they lead to something below `root` that is not found without them.
    """
    real_root = os.path.realpath(root)
    start = pattern.start() if pattern else None
    folders = [_Folder(root, (), None if pattern and start and pattern.is_matched(start) else start, False)]
    entered: set[tuple[int, int]] = set()
    outside = 0
    while folders:
        folder = folders.pop()
        try:
            if folder.linked and not _is_new(folder.path, entered):
                continue
            with os.scandir(folder.path) as listed:
                names = sorted(entry.name for entry in listed)  # nothing more of each: there may be millions
        except FileNotFoundError:
            if not folder.below:
                yield Problem(local_uri(root), "is missing")
            continue
        except OSError as error:
            yield Problem(local_uri(folder.path), f"cannot be read: {os_error_text(error)}")
            continue
        inner = []
        for name in names:
            path = f"{folder.path}/{name}"
            state, meant = folder.state, False
            if pattern and folder.state is not None:
                state, meant = pattern.step(folder.state, name)
                if not state:
                    continue
                if pattern.is_matched(state):
                    state = None
            elif name.startswith("."):
                continue
            if name == STATE_FOLDER or name.endswith(UNFINISHED):
                continue
            below, linked = (*folder.below, name), folder.linked
            try:
                status = os.lstat(path)
                if stat.S_ISLNK(status.st_mode):
                    target = os.path.realpath(path)
                    if not _is_below(target, real_root):
                        outside += 1
                        continue
                    if not meant and _is_found_anyway(target, real_root):
                        continue
                    linked = True
                    status = os.stat(path)
                if stat.S_ISDIR(status.st_mode):
                    inner.append(_Folder(path, below, state, linked))
                elif stat.S_ISREG(status.st_mode) and state is None:
                    yield _local_input(path, [*prefix, *below], status)
            except FileNotFoundError:
                pass  # gone since the folder was listed
            except OSError as error:
                yield Problem(local_uri(path), f"cannot be read: {os_error_text(error)}")
        folders += reversed(inner)
    if outside:
        links = "a link" if outside == 1 else f"{outside} links"
        yield Problem(local_uri(root), f"holds {links} to what is not below it, not followed; name what is wanted")


def _is_new(path: str, entered: set[tuple[int, int]]) -> bool:
    """Whether a folder is met for the first time; from now on it was."""
    status = os.stat(path)
    key = status.st_dev, status.st_ino
    if key in entered:
        return False
    entered.add(key)
    return True


def _is_below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/") or path == root


def _is_found_anyway(path: str, root: str) -> bool:
    """Whether a walk of `root` comes to `path` without links: no folder on the way there is hidden."""
    parts = path[len(root) :].strip("/").split("/")
    return not any(part.startswith(".") or part.endswith(UNFINISHED) for part in parts)


def _local_input(path: str, parts: Sequence[str], status: os.stat_result) -> Input:
    version = f"{status.st_mtime_ns}-{status.st_size}"
    return Input(local_uri(path), output_name(parts), status.st_size, version)


def _absolute(path: str) -> str:
    """The absolute path, with the last name as it is: a link there stays a link."""
    if ".." not in path.split("/"):
        return os.path.abspath(path)
    folder, name = os.path.split(path.rstrip("/"))
    return os.path.realpath(path) if name in ("", ".", "..") else os.path.join(os.path.realpath(folder), name)

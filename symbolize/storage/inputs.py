"""The inputs of a job: files, folders, patterns, lists of names and URLs, found one by one; and the names of their
outputs: relative, valid in any folder or bucket, and not too long.

Patterns are matched name by name while folders are walked, so that only what may match is visited.
"""

import hashlib
import io
import itertools
import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import BinaryIO, Final, NamedTuple, TextIO
from urllib.parse import quote_from_bytes, unquote_to_bytes

from symbolize.core.errors import InputError
from symbolize.core.files import os_error_text
from symbolize.formats.files import without_endings
from symbolize.storage import urls
from symbolize.storage.urls import is_inside, is_url, open_url

STATE_FOLDER: Final = ".symbolize"
"""The folder below the outputs for the state of a batch; it has neither inputs nor outputs."""

UNFINISHED: Final = (".tmp", ".part")
"""Endings of files that are still being written; they are inputs only if they are named."""

ENDING: Final = ".pb.gz"
"""The ending of outputs."""

MAX_COMPONENT: Final = 200
"""Bytes of a part of a name between slashes. File systems allow 255, with the ending."""

MAX_NAME: Final = 800
"""Bytes of a whole name. Object stores allow 1024, with the prefix."""

UNSAFE: Final = re.compile("[?\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that are escaped in names: control characters, bytes that are no text, and `?`, which begins a query."""

ESCAPED_BYTES: Final = range(0xDC80, 0xDD00)
"""Characters that Python has for bytes of a name that are no text (PEP 383)."""
MAGIC: Final = frozenset("*?[")
ANY_FOLDERS: Final = "**"
NO_PATTERNS = frozenset(["http", "https"])
"""Schemes in whose URLs a question mark begins the query."""
NAME_LIST: Final = "-"
"""The argument for a list of names on standard input."""

FILE_URL: Final = "file://"
PIECE: Final = 1 << 16
"""Characters of a list that are read at once."""
MAX_LISTED_NAME: Final = 1 << 20


class Input(NamedTuple):
    """A profile to be symbolized.

    `uri` is an absolute path or a URL, always valid text; `name` the name of its output without ending; `size` is in
    bytes, -1: unknown; `version` changes with the content.
    """

    uri: str
    name: str
    size: int
    version: str


class Problem(NamedTuple):
    """A name that is no input, and why: a sentence about it without the name."""

    uri: str
    sentence: str


class NotListed(Problem):
    """A name that may have inputs, but its server did not list them."""


def output_name(parts: Sequence[str]) -> str:
    """The name of the output for an input with the path `parts` below its root, without the endings of profiles. It is
    relative, cannot lead out of a folder, is UTF-8 and not too long, whatever `parts` hold."""
    folders = [_component(part) for part in parts[:-1] if part]
    return _joined(folders, _component(without_endings(parts[-1])))


def alternatives(name: str, file_name: str, identity: str) -> Iterator[str]:
    """Names for an input, to be tried until one is free: `name`, one with all of `file_name`, and those with a hash of
    its unique `identity`."""
    yield name
    folders = name.split("/")[:-1]
    full = _joined(folders, _component(file_name))
    if full != name:
        yield full
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
    for length in (12, 64):
        ending = "-" + digest[:length]
        base = posixpath.basename(full).encode()[: MAX_COMPONENT - len(ending)].decode("utf-8", "ignore")
        yield "/".join([*folders, base + ending])


def _joined(folders: Sequence[str], last: str) -> str:
    name = "/".join([*folders, last])
    if len(name.encode()) > MAX_NAME:
        return f"{_digest('/'.join(folders))}/{last}"
    return name


def _component(raw: str) -> str:
    """A part of a path, escaped and shortened."""
    text = UNSAFE.sub(_escaped, raw.replace("/", "%2f"))
    if text in ("", ".", "..", STATE_FOLDER):
        text = text.replace(".", "%2e") or "%"
    data = text.encode()
    if len(data) > MAX_COMPONENT:
        ending = "~" + _digest(raw)
        text = data[: MAX_COMPONENT - len(ending)].decode("utf-8", "ignore") + ending
    return text


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    data = bytes([code & 0xFF]) if code in ESCAPED_BYTES else match[0].encode("utf-8", "surrogatepass")
    return "".join(f"%{byte:02x}" for byte in data)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_pattern(text: str) -> bool:
    """Whether `text` has wildcards."""
    return not MAGIC.isdisjoint(text)


class Pattern(NamedTuple):
    """The parts of a pattern between slashes; `**` matches any number of folders.

    A state is the set of the parts that may match next; `len(parts)` in it means that all have matched, this file or a
    folder, of which all files match then.
    """

    parts: tuple[str, ...]

    def start(self) -> frozenset[int]:
        """The state of the root."""
        return self._closed([0])

    def is_matched(self, state: frozenset[int]) -> bool:
        """Whether the path that led to `state` matches the pattern."""
        return len(self.parts) in state

    def step(self, state: frozenset[int], name: str) -> tuple[frozenset[int], bool]:
        """The state after `name`, empty if nothing below can match, and whether a part other than `**` matched it.
        Hidden names are matched only by parts that begin with a dot."""
        hidden = name.startswith(".")
        found = [
            row + 1
            for row in state
            if row < len(self.parts)
            and self.parts[row] != ANY_FOLDERS
            and (not hidden or self.parts[row].startswith("."))
            and fnmatchcase(name, self.parts[row])
        ]
        is_named = bool(found)
        if not hidden:
            found += [row for row in state if row < len(self.parts) and self.parts[row] == ANY_FOLDERS]
        return self._closed(found), is_named

    def _closed(self, rows: Iterable[int]) -> frozenset[int]:
        """`rows`, and those after a `**`, which may match no folder."""
        found = set()
        for row in rows:
            found.add(row)
            while row < len(self.parts) and self.parts[row] == ANY_FOLDERS:
                row += 1
                found.add(row)
        return frozenset(found)


def literal_start(part: str) -> str:
    """The common start of all names that a part of a pattern matches."""
    return part[: min((part.find(each) for each in MAGIC if each in part), default=len(part))]


def split_pattern(path: str) -> tuple[str, Pattern]:
    """The folder before the first wildcard of a path, and the pattern below it."""
    parts = path.split("/")
    fixed = next(row for row, part in enumerate(parts) if is_pattern(part))
    root = "/".join(parts[:fixed])
    if fixed and not root:
        root = "/"
    return root, Pattern(tuple(part for part in parts[fixed:] if part not in ("", ".")))


def find_at_url(url: str, *, is_listed: bool) -> Iterator[Input | Problem]:
    """The files at a URL; in a list names are no patterns, and outputs keep all folders of the URL."""
    empty = True
    try:
        for found in _find_urls(url, is_listed):
            empty = False
            yield found
        if empty:
            yield Problem(urls.shown(url), "holds no files" if url.endswith("/") else "is missing, or holds no files")
    except FileNotFoundError:
        yield Problem(urls.shown(url), "is missing")
    except InputError as error:
        kind = NotListed if isinstance(error, urls.Unreachable) else Problem
        yield kind(error.source, error.problem)


def _find_urls(url: str, is_listed: bool) -> Iterator[Input]:
    files = urls.files_at(url)
    whole = files.url.split("://", 1)[1].split("/")
    prefix = whole if is_listed else []
    if is_pattern(whole[0]) and not _is_web(url):
        raise InputError(urls.shown(url), "is a pattern for buckets; name one bucket")
    entry = None if url.endswith("/") else urls.entry_at(files)
    if entry is not None and not entry.is_folder:
        yield _input(files.url, entry, prefix or [whole[-1].split("?")[0] if _is_web(url) else whole[-1]])
    elif entry is None and is_pattern(url) and not is_listed and not _is_web(url):
        root, pattern = split_pattern(url)
        yield from _matching_urls(urls.files_at(root), pattern)
    elif entry is not None or url.endswith("/"):
        if _is_web(url):
            raise InputError(urls.shown(url), "is not a file; folders of web servers cannot be listed")
        for entry in urls.everything(files):
            if _is_wanted(entry.path):
                yield _input(f"{files.url}/{entry.path}", entry, [*prefix, *entry.path.split("/")])


def _matching_urls(files: urls.UrlFiles, pattern: Pattern) -> Iterator[Input]:
    """The files below a URL that match a pattern. Folders are listed one by one until all below one may match."""
    folders: list[tuple[str, frozenset[int]]] = [("", pattern.start())]
    while folders:
        folder, state = folders.pop()
        depth = min(state)
        if pattern.is_matched(state) or ANY_FOLDERS in pattern.parts[depth:]:
            for entry in urls.everything(files, folder):
                below = entry.path[len(folder) :].strip("/").split("/")
                if _matches(pattern, state, below) and not _is_unfinished(entry.path):
                    yield _input(f"{files.url}/{entry.path}", entry, entry.path.split("/"))
            continue
        inner = []
        for entry in urls.children(files, folder, literal_start(pattern.parts[depth])):
            after, _ = pattern.step(state, entry.path.rsplit("/", 1)[-1])
            if not after or _is_unfinished(entry.path):
                continue
            if entry.is_folder:
                inner.append((entry.path, after))
            elif pattern.is_matched(after):
                yield _input(f"{files.url}/{entry.path}", entry, entry.path.split("/"))
        folders += reversed(inner)


def _matches(pattern: Pattern, state: frozenset[int], names: Sequence[str]) -> bool:
    """Whether the pattern matches the path of `names`, or one of its folders and no hidden name follows."""
    for row, name in enumerate(names):
        if pattern.is_matched(state):
            return not any(rest.startswith(".") for rest in names[row:])
        state, _ = pattern.step(state, name)
    return pattern.is_matched(state)


def _is_wanted(path: str) -> bool:
    return not any(part.startswith(".") for part in path.split("/")) and not _is_unfinished(path)


def _is_unfinished(path: str) -> bool:
    """Whether a path is of the state of a batch, or of a file that is still being written."""
    return any(part == STATE_FOLDER or part.endswith(UNFINISHED) for part in path.split("/"))


def _is_web(url: str) -> bool:
    return urls.scheme_of(url) in NO_PATTERNS


def _input(url: str, entry: urls.UrlEntry, parts: Sequence[str]) -> Input:
    return Input(url, output_name(parts), entry.size, entry.version)


class _Missing(Exception):
    """There is nothing of this name."""


def find_inputs(arguments: Sequence[str], name_list: TextIO | None) -> Iterator[Input | Problem]:
    """The inputs that `arguments` name, in the order of the arguments, and in a folder in the order of the names.

    An argument is a file, a folder (with every regular file below it), a pattern if there is no file of that name, a
    URL of one of these, or `-` for names in `name_list`, divided by newlines or NULs. Each input is found once. Inputs
    may have the same name of the output: see `alternative_names`.
    """
    # Only several arguments can find an input twice.
    known: set[bytes] | None = set() if len(arguments) > 1 or NAME_LIST in arguments else None
    for found in itertools.chain.from_iterable(_named(argument, name_list) for argument in arguments):
        if known is not None and isinstance(found, Input):
            digest = hashlib.blake2b(found.uri.encode(), digest_size=16).digest()
            if digest in known:
                continue
            known.add(digest)
        yield found


def alternative_names(found: Input) -> Iterator[str]:
    """The names that the output of an input may have, in the order in which they are tried; the last one is unique.
    They depend on the input alone."""
    path = local_path(found.uri)
    whole = found.uri.split("?")[0] if path is None and found.uri.startswith("http") else path or found.uri
    return alternatives(found.name, whole.rsplit("/", 1)[-1], found.uri)


def roots_of(arguments: Sequence[str]) -> list[str]:
    """What all inputs that `arguments` name are, or are below: absolute paths and URLs. Names in a list count for
    none."""
    return [_root_of(argument) for argument in arguments if argument != NAME_LIST]


def _root_of(argument: str) -> str:
    path = local_path(argument)
    if path is not None:
        is_fixed = not is_pattern(path) or os.path.lexists(path)
        return _absolute(path if is_fixed else split_pattern(path)[0] or ".")
    return split_pattern(argument)[0] if is_pattern(argument) else argument.rstrip("/")


def depth_below(uri: str, root: str) -> int:
    """How many of the last names of an input are below one of `roots_of`, 1 for the root itself; 0 if it is
    elsewhere."""
    path = local_path(uri)
    if (path is None) != is_url(root):
        return 0
    here = uri if path is None else path
    if here == root:
        return 1
    is_there = is_inside(uri, root) if path is None else _is_below(here, root)
    return here.count("/") - root.rstrip("/").count("/") if is_there else 0


@contextmanager
def open_input(uri: str) -> Iterator[str | BinaryIO]:
    """The path of a local file, or a stream, for a loader. Raises InputError."""
    path = local_path(uri)
    if path is not None:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):  # reading a pipe would block
                raise InputError(local_uri(path), "is not a file any more")
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
    """The URI of an absolute path: itself, or a file URL if it is not valid UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return FILE_URL + quote_from_bytes(os.fsencode(path))
    return path


def _named(argument: str, name_list: TextIO | None) -> Iterator[Input | Problem]:
    """The inputs that an argument names."""
    if argument == NAME_LIST:
        if name_list is None:
            yield Problem(NAME_LIST, "is standard input, which is closed")
            return
        try:
            for name in _names_in(name_list):
                yield from _find(name, is_listed=True)
        except (OSError, ValueError) as error:
            yield Problem(NAME_LIST, f"cannot be read as a list of names: {os_error_text(error)}")
        return
    yield from _find(argument, is_listed=False)


def _find(name: str, is_listed: bool) -> Iterator[Input | Problem]:
    """The inputs of a name; in a list names are no patterns, and outputs keep all folders of the path."""
    path = local_path(name)
    if path is None:
        yield from find_at_url(name, is_listed=is_listed)
        return
    try:
        yield from _exactly(path, mirrored=is_listed)
    except _Missing:
        if is_pattern(path) and not is_listed:
            yield from _matching(path)
        else:
            yield Problem(local_uri(path), "is missing")


def _names_in(name_list: TextIO) -> Iterator[str]:
    """The names in a list, read piece by piece; they are divided by NULs if there is one in the first piece."""
    if isinstance(name_list, io.TextIOWrapper):
        name_list.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
    rest = name_list.read(PIECE)
    divider = "\0" if "\0" in rest else "\n"
    while piece := name_list.read(PIECE):
        *names, rest = (rest + piece).split(divider)
        yield from filter(None, (_clean(name, divider) for name in names))
        if len(rest) > MAX_LISTED_NAME:
            raise ValueError("a name is too long")
    yield from filter(None, (_clean(name, divider) for name in rest.split(divider)))


def _clean(name: str, divider: str) -> str:
    return name.removesuffix("\r") if divider == "\n" else name


def _exactly(path: str, *, mirrored: bool) -> Iterator[Input | Problem]:
    """The file at `path`, or the files in the folder there; `mirrored` outputs keep the folders of the path. Raises
    _Missing."""
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
        root = _absolute(path)
        yield from _or_problem(_walk(root, prefix, None), Problem(local_uri(root), "holds no files"))
    elif stat.S_ISREG(status.st_mode):
        yield _local_input(_absolute(path), prefix or [os.path.basename(path)], status)
    else:
        yield Problem(local_uri(path), "is a pipe, device or socket, not a file")


def _matching(path: str) -> Iterator[Input | Problem]:
    """The files that match a pattern; a problem if there are none."""
    root, pattern = split_pattern(path)
    found = _walk(_absolute(root or "."), [], pattern) if os.path.isdir(root or ".") else iter(())
    return _or_problem(found, Problem(local_uri(path), "is missing, and as a pattern matches no file"))


def _or_problem(found: Iterator[Input | Problem], problem: Problem) -> Iterator[Input | Problem]:
    """What was found, `problem` if that is nothing."""
    first = next(found, problem)
    return itertools.chain([first], found)


class _Folder(NamedTuple):
    """A folder to list: its path, the names below the root, the state of the pattern (None: all files match), and
    whether it was reached by a link."""

    path: str
    below: tuple[str, ...]
    state: frozenset[int] | None
    linked: bool


def _walk(root: str, prefix: Sequence[str], pattern: Pattern | None) -> Iterator[Input | Problem]:
    """The files below `root` that match the pattern, or all; the files of a folder come before those of its folders.

    Links are followed to what is below `root` and is not found without them.
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
                names = sorted(entry.name for entry in listed)  # names only: there may be millions
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
            state, is_named = folder.state, False
            if pattern and folder.state is not None:
                state, is_named = pattern.step(folder.state, name)
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
                    if not is_named and _is_found_anyway(target, real_root):
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
        yield Problem(local_uri(root), f"holds {links} to files outside of it, not followed; name their targets")


def _is_new(path: str, entered: set[tuple[int, int]]) -> bool:
    """Whether a folder was not entered before; it is added to `entered`."""
    status = os.stat(path)
    key = status.st_dev, status.st_ino
    if key in entered:
        return False
    entered.add(key)
    return True


def _is_below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/") or path == root


def _is_found_anyway(path: str, root: str) -> bool:
    """Whether a walk of `root` finds `path` without links: no part of it is hidden."""
    parts = path[len(root) :].strip("/").split("/")
    return not any(part.startswith(".") or part.endswith(UNFINISHED) for part in parts)


def _local_input(path: str, parts: Sequence[str], status: os.stat_result) -> Input:
    version = f"{status.st_mtime_ns}-{status.st_size}"
    return Input(local_uri(path), output_name(parts), status.st_size, version)


def _absolute(path: str) -> str:
    """The absolute path; a link at its end is not resolved."""
    if ".." not in path.split("/"):
        return os.path.abspath(path)
    folder, name = os.path.split(path.rstrip("/"))
    return os.path.realpath(path) if name in ("", ".", "..") else os.path.join(os.path.realpath(folder), name)

"""Inputs at URLs: one file, all files below a prefix, or those that match a pattern."""

from collections.abc import Iterator, Sequence

from symbolize.core.errors import InputError
from symbolize.storage import urls
from symbolize.storage.input_names import STATE_FOLDER, UNFINISHED, Input, NotListed, Problem, output_name
from symbolize.storage.patterns import ANY_FOLDERS, Pattern, is_pattern, literal_start, split_pattern

NO_PATTERNS = frozenset(["http", "https"])
"""Schemes in whose URLs a question mark begins the query."""


def find_at_url(url: str, *, is_listed: bool) -> Iterator[Input | Problem]:
    """The files at a URL; in a list names are no patterns, and outputs keep all folders of the URL."""
    empty = True
    try:
        for found in _find(url, is_listed):
            empty = False
            yield found
        if empty:
            yield Problem(urls.shown(url), "holds no files" if url.endswith("/") else "is missing, or holds no files")
    except FileNotFoundError:
        yield Problem(urls.shown(url), "is missing")
    except InputError as error:
        kind = NotListed if isinstance(error, urls.Unreachable) else Problem
        yield kind(error.source, error.problem)


def _find(url: str, is_listed: bool) -> Iterator[Input]:
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
        yield from _matching(urls.files_at(root), pattern)
    elif entry is not None or url.endswith("/"):
        if _is_web(url):
            raise InputError(urls.shown(url), "is not a file; folders of web servers cannot be listed")
        for entry in urls.everything(files):
            if _is_wanted(entry.path):
                yield _input(f"{files.url}/{entry.path}", entry, [*prefix, *entry.path.split("/")])


def _matching(files: urls.Files, pattern: Pattern) -> Iterator[Input]:
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


def _input(url: str, entry: urls.Entry, parts: Sequence[str]) -> Input:
    return Input(url, output_name(parts), entry.size, entry.version)

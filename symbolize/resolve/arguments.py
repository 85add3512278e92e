"""What callers may give where binaries, a cache and servers are wanted: one or several, a path, a URL or an object."""

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from symbolize.binaries import Servers
from symbolize.core.errors import UsageError, check_type
from symbolize.core.files import no_such
from symbolize.symbols import TableCache

Path = str | os.PathLike[str]
Paths = Path | Iterable[Path]
Urls = str | Iterable[str]


def as_paths(value: Paths, name: str) -> list[str]:
    """The paths that the argument `name` holds. Raises TypeError for what is neither a path nor several."""
    if isinstance(value, str | os.PathLike):
        return [os.fspath(value)]
    if not isinstance(value, Iterable) or isinstance(value, bytes | Mapping):
        raise TypeError(f"{name}: expected a path or a sequence of paths, not {type(value).__name__}")
    paths = list(value)
    for path in paths:
        check_type(name, path, "paths in the sequence", str, os.PathLike)
    return [os.fspath(path) for path in paths]


def as_roots(value: Paths) -> list[str]:
    """Folders and files with binaries. Raises TypeError, and UsageError for one that does not exist."""
    roots = as_paths(value, "binaries")
    for root in roots:
        if not os.path.exists(root):
            raise UsageError(f"{root}: {no_such(root, 'folder or file')}")
    return roots


def as_cache(value: TableCache | Path | None) -> TableCache | None:
    """The cache, or the one in the folder or at the URL `value`. Raises TypeError, and UsageError for such a URL."""
    if isinstance(value, str | os.PathLike):
        from symbolize.storage.shared_cache import open_tables

        return open_tables(os.fspath(value))
    if value is not None:
        check_type("cache", value, "a folder, a URL or a TableCache", TableCache)
    return value


def as_servers(value: Servers | Urls | None, held: ExitStack) -> Servers | None:
    """The client, or one for the servers at the URLs `value`, which `held` closes. Raises TypeError, and UsageError for
    what is no URL of a server."""
    client: Any = value
    if value is None or (callable(getattr(client, "fetch", None)) and callable(getattr(client, "prefetch", None))):
        return client  # type: ignore[no-any-return]
    if not isinstance(value, Iterable) or isinstance(value, bytes | Mapping):
        raise TypeError(f"servers: expected a URL, a sequence of URLs or a client, not {type(value).__name__}")
    urls = [value] if isinstance(value, str) else list(value)
    for url in urls:
        check_type("servers", url, "URLs in the sequence", str)
    if not urls:
        return None
    from symbolize.binaries.debuginfod import Debuginfod

    return held.enter_context(Debuginfod(urls))

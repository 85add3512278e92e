"""Lookups without a profile: the binary is named by its path or its build id."""

import os
from contextlib import ExitStack

from numpy.typing import ArrayLike

from symbolize.binaries import BinaryIndex, Servers
from symbolize.core.errors import check_type
from symbolize.resolve.arguments import Path, Paths, Urls, as_cache, as_roots, as_servers
from symbolize.resolve.module import open_module
from symbolize.symbols import Frames, TableCache


def lookup(
    binary: Path,
    vaddrs: ArrayLike,
    binaries: Paths = (),
    *,
    cache: TableCache | Path | None = None,
    servers: Servers | Urls | None = None,
) -> Frames:
    """The frames at many addresses of one binary, which is a path, or a build id to find below `binaries`.

    `vaddrs` are n ELF virtual addresses (as `nm` prints them) in any order: uint64[n], or a list of integers. The
    answer is columns: the frames of address i are rows `[offsets[i], offsets[i + 1])`, innermost first. The debug file
    of the binary, its split units and what servers have are found as for a `Symbolizer`, whose arguments the others
    are. Raises InputError if there is no such binary or it cannot be read, TypeError and ValueError for wrong
    arguments.
    """
    check_type("binary", binary, "a path or a build id", str, os.PathLike)
    with ExitStack() as held:
        base, folders = as_cache(cache), as_roots(binaries)
        name = os.fspath(binary)
        roots = [*([name] if os.path.isfile(name) else []), *folders]
        index = BinaryIndex(roots, base.base if base is not None and folders else None, as_servers(servers, held))
        module = open_module(name, index, base, owned=[index])
        held.callback(module.close)
        return module.answer(vaddrs).frames

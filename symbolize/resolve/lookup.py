"""Lookups without a profile: the binary is named by its path or its build id."""

import os
from contextlib import ExitStack
from dataclasses import replace

from numpy.typing import ArrayLike

from symbolize.binaries import BinaryIndex, BinaryMatch, Servers, find_binary, is_build_id
from symbolize.core.errors import InputError
from symbolize.elf import read_build_id
from symbolize.resolve.arguments import Path, Paths, Urls, as_cache, as_roots, as_servers
from symbolize.resolve.opened import OpenBinaries
from symbolize.symbols import Frames, TableCache, frames_at


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
    name = os.fspath(binary)
    with ExitStack() as held:
        base = as_cache(cache)
        index = BinaryIndex(as_roots(binaries), base.base if base is not None else None, as_servers(servers, held))
        held.callback(index.close)
        opened = OpenBinaries(index, base)
        held.callback(opened.close)
        if is_build_id(name) and not os.path.exists(name):
            found = find_binary(index, name, "")
            chosen, problems = opened.one(found)
            problems = problems or [found.detail or "no binary has this build id"]
        else:
            found = _files_of(index, name)
            chosen, problems = opened.with_file(name, found), opened.open(found).unreadable
        if chosen is None:
            raise InputError(name, "; ".join(problem.removeprefix(f"{name}: ") for problem in problems))
        return frames_at(chosen, vaddrs)


def _files_of(index: BinaryIndex, path: str) -> BinaryMatch:
    """The file at `path`, and what the index has of its build."""
    try:
        build_id = read_build_id(path)
    except (InputError, OSError):
        build_id = None
    found = find_binary(index, build_id, "") if build_id and index.has_sources else BinaryMatch()
    paths = [path, *(other for other in found.paths if other != path)]
    return replace(found, paths=paths, expected={path: build_id or "", **found.expected})

"""One binary that stays open for lookups without a profile, found by its path or its build id."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from symbolize.binaries import BinaryIndex, BinaryMatch, Companions, find_binary, parse_build_id
from symbolize.core.arrays import UInt64, distinct_inverse
from symbolize.core.errors import InputError, SymbolizeError
from symbolize.core.reasons import Reason
from symbolize.elf import read_build_id
from symbolize.resolve.opened import OpenBinaries
from symbolize.symbols import Binary, Frames, TableCache, frames_at
from symbolize.symbols.retrying_lookup import look_up

PAGE: Final = 1 << 12


class Names(NamedTuple):
    """The answer for some vaddrs: `frames` at each, and where its function begins and ends (0: unknown)."""

    frames: Frames
    begin: UInt64
    end: UInt64


class Module:
    """One binary, which one request at a time uses."""

    def __init__(self, opened: OpenBinaries, binary: Binary, build_id: str) -> None:
        self._opened = opened
        self._lock = threading.Lock()
        self._is_closed = False
        self.binary = binary
        self.build_id = build_id

    @property
    def base(self) -> int:
        """The vaddr that offsets of Firefox' profiles count from: that of the page with the first loaded byte, where
        the system maps it, whatever alignment the segment asks for (R415, offsets of frames)."""
        first = min((segment.vaddr for segment in self.binary.loaded.segments), default=0)
        return first - first % PAGE

    def names(self, vaddrs: UInt64) -> Names:
        """The frames at `vaddrs` (in any order). Raises ReadFailure, also if the module was closed meanwhile."""
        ascending, which = distinct_inverse(vaddrs)
        with self.used() as binary:
            answer = look_up(binary, ascending, nearest_line=False, tables=None)
            begin, end = binary.function_bounds(ascending)
            answer.check()
        return Names(answer.frames.take(which.astype(np.int64)), begin[which], end[which])

    def frames(self, vaddrs: UInt64) -> Frames:
        """The frames at `vaddrs` (in any order), without the bounds of functions. Raises as `names`."""
        with self.used() as binary:
            return frames_at(binary, vaddrs)

    def reasons(self, vaddrs: UInt64, frames: Frames) -> list[Reason]:
        """Why each of `vaddrs` has no name in `frames`, or that it has one. Raises as `names`."""
        found = (np.diff(frames.offsets) > 0).tolist()
        if all(found):
            return [Reason.SYMBOLIZED] * len(found)
        ascending, which = distinct_inverse(vaddrs)
        with self.used() as binary:
            answer = look_up(binary, ascending, nearest_line=False, tables=None)
            missing = Reason.NO_SYMBOLS if binary.is_stripped else Reason.OUTSIDE_SYMBOLS
            segments = [(each.vaddr, each.vaddr + each.memory_size) for each in binary.loaded.segments]
        corrupt = Reason.CORRUPT_DEBUG_INFO if answer.has_names else Reason.UNREADABLE
        doubtful = answer.doubtful[which].tolist()
        result = []
        for vaddr, has_frames, is_doubtful in zip(vaddrs.tolist(), found, doubtful, strict=True):
            if has_frames:
                result.append(Reason.SYMBOLIZED)
            elif segments and not any(begin <= vaddr < end for begin, end in segments):
                result.append(Reason.OUTSIDE_SEGMENTS)
            else:
                result.append(corrupt if is_doubtful else missing)
        return result

    @contextmanager
    def used(self) -> Iterator[Binary]:
        """The binary, for this caller alone. Raises SymbolizeError if it was closed meanwhile."""
        with self._lock:
            if self._is_closed:
                raise SymbolizeError("the binary was closed, because it changed or others were asked for; ask again")
            yield self.binary

    def close(self) -> None:
        """Close the files, once nobody uses them."""
        with self._lock:
            self._is_closed = True
            self._opened.close()


def may_be_build_id(name: str) -> bool:
    """Whether a name is a build id in one of its spellings, and no path."""
    return "/" not in name and parse_build_id(name) is not None and not os.path.exists(name)


def open_module(
    name: str,
    index: BinaryIndex,
    cache: TableCache | None,
    companions: Callable[[Sequence[str]], Companions] | None = None,
    by_build_id: bool | None = None,
) -> Module:
    """The binary at the path `name`, with what `index` has of its build, or the binary of `index` with the build id
    `name`; its `companions` as `OpenBinaries` has them. Raises InputError if there is none or it cannot be read.

    Unless `by_build_id` says which of both `name` is, what could be a build id is a path if there is such a file.
    """
    opened = OpenBinaries(index, cache, companions)
    try:
        if may_be_build_id(name) if by_build_id is None else by_build_id:
            found = find_binary(index, name, "")
            chosen, problems = opened.one(found)
            problems = problems or [found.detail or "no binary has this build id"]
        else:
            found = files_of(index, name)
            chosen, problems = opened.with_file(name, found), opened.open(found).unreadable
        if chosen is None:
            raise InputError(name, "; ".join(problem.removeprefix(f"{name}: ") for problem in problems))
    except BaseException:
        opened.close()
        raise
    return Module(opened, chosen, found.build_id)


def files_of(index: BinaryIndex, path: str) -> BinaryMatch:
    """The file at `path`, and what the index has of its build."""
    try:
        build_id = read_build_id(path)
    except (InputError, OSError):
        build_id = None
    found = find_binary(index, build_id, "") if build_id and index.has_sources else BinaryMatch()
    paths = [path, *(other for other in found.paths if other != path)]
    return replace(found, paths=paths, expected={path: build_id or "", **found.expected})

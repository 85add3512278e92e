"""Lookups without a profile: one binary, found by its path or its build id, that is asked once or stays open."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np
from numpy.typing import ArrayLike

from symbolize.binaries import BinaryIndex, Companions, Servers, find_binary, find_file, parse_build_id
from symbolize.core.arrays import TOP, UInt64, distinct_inverse
from symbolize.core.errors import InputError, SymbolizeError, check_type
from symbolize.elf import loaded_base, without_tag
from symbolize.resolve.arguments import Path, Paths, Urls, as_cache, as_roots, as_servers
from symbolize.resolve.opened import OpenBinaries, Pooled
from symbolize.symbols import Answer, Binary, Frames, TableCache, as_vaddrs


class Module(Pooled):
    """One binary, which one request at a time uses."""

    def __init__(self, opened: OpenBinaries, binary: Binary, build_id: str, path: str = "", is_verified: bool = True):
        """`path` is that of the file that was asked for, if it was asked for by its path. `is_verified`: the files are
        of the build that was asked for, not only in the place for it."""
        self._opened = opened
        self._lock = threading.Lock()
        self._is_closed = False
        self.binary = binary
        self.build_id = build_id
        self.is_verified = is_verified
        # Vaddrs are those of the file that was asked for, else of the one with the code.
        self._shift = np.uint64(0 if path and path != binary.loaded.path else binary.shift)

    @property
    def is_outdated(self) -> bool:
        """Whether one of the files changed since it was opened."""
        return self.binary.has_changed

    @property
    def base(self) -> int:
        """The vaddr that offsets of Firefox' profiles count from."""
        return loaded_base(self.binary.loaded.segments)

    def answer(self, vaddrs: ArrayLike) -> Answer:
        """The answer for `vaddrs`, in any order. Raises ReadFailure, also if the module was closed meanwhile, TypeError
        and ValueError for wrong addresses."""
        column = as_vaddrs(vaddrs)
        with self.used() as binary:
            answer = binary.answer(without_tag(binary.images[0], column + self._shift))
            answer.check()
        return answer

    def function_bounds(self, vaddrs: UInt64) -> tuple[UInt64, UInt64]:
        """Where the functions at `vaddrs`, in any order, begin and end; see `Binary.function_bounds`. Raises as
        `answer`."""
        ascending, which = distinct_inverse(vaddrs + self._shift)
        with self.used() as binary:
            begin, end = binary.function_bounds(ascending)
        return (begin - self._shift)[which], np.where(end > 0, end - self._shift, end)[which]

    def symbol_bounds(self, name: bytes, is_demangled: bool = False) -> list[tuple[int, int]]:
        """Begin and end of the symbols of a name, as it is linked or demangled with all parameters, in order; the end
        is the begin where a symbol has no size. Raises as `answer`."""
        shift = int(self._shift)
        with self.used() as binary:
            return [
                ((begin - shift) & TOP, (end - shift) & TOP) for begin, end in binary.symbol_bounds(name, is_demangled)
            ]

    def next_symbol(self, vaddr: int) -> int | None:
        """Where the first symbol behind `vaddr` begins; None if there is none, in a relocatable file none in the same
        section. Raises as `answer`."""
        shift = int(self._shift)
        with self.used() as binary:
            found = binary.next_symbol((vaddr + shift) & TOP)
        return None if found is None else (found - shift) & TOP

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
    owned: Sequence[BinaryIndex] = (),
) -> Module:
    """The binary at the path `name`, which is one of the roots of `index`, with what the index has of its build and by
    its debug link, or the binary of `index` with the build id `name`; its `companions` and what is
    `owned` as `OpenBinaries` has them. Raises InputError if there is none or it cannot be read.

    Unless `by_build_id` says which of both `name` is, what could be a build id is a path if there is such a file.
    """
    opened = OpenBinaries(index, cache, companions, owned)
    if by_build_id is None:
        by_build_id = may_be_build_id(name)
    try:
        if by_build_id:
            found = find_binary(index, name, "")
            chosen, problems = opened.one(found)
            problems = problems or [found.detail or "no binary has this build id"]
        else:
            found = find_file(index, name)
            chosen, problems = opened.with_file(name, found), opened.open(found).unreadable
        if chosen is None:
            raise InputError(name, "; ".join(problem.removeprefix(f"{name}: ") for problem in problems))
    except BaseException:
        opened.close()
        raise
    path = "" if by_build_id else name
    return Module(opened, chosen, found.build_id, path, is_verified=bool(path) or found.verified)


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

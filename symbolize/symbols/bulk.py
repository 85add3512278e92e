"""Many addresses of one binary, asked at once, without a profile."""

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from numpy.typing import ArrayLike

from symbolize.core.errors import InputError, UsageError
from symbolize.core.files import os_error_text
from symbolize.elf import ElfImage
from symbolize.symbols.binary import Binary
from symbolize.symbols.builds import builds_of
from symbolize.symbols.cache import TableCache
from symbolize.symbols.split_dwarf_files import Finder
from symbolize.symbols.table import Frames


def lookup(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    vaddrs: ArrayLike,
    *,
    cache: TableCache | None = None,
    finder: Finder | None = None,
) -> Frames:
    """The frames at `vaddrs` of the binary that `files` are of: its file, its debug file, or both.

    `vaddrs` are n ELF virtual addresses (as `nm` prints them) in any order, uint64[n] or what numpy makes of it. The
    answer is columns, see `Frames`: the frames of address i are `[offsets[i], offsets[i + 1])`, innermost first. Only
    the debug information that the addresses need is decoded; with a `cache` a table that is kept there is used.
    `finder` finds split units and supplementary files. Raises InputError for a file that cannot be read, UsageError
    for files of several binaries, TypeError and ValueError for addresses that are none.
    """
    with opened(files, cache=cache, finder=finder) as binary:
        answer = binary.answer(vaddrs)
        answer.check()
        return answer.frames


@contextmanager
def opened(
    files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    cache: TableCache | None = None,
    finder: Finder | None = None,
) -> Iterator[Binary]:
    """The binary that `files` are of: its file, its debug file, or both. Raises as `lookup` does for the files."""
    paths = [files] if isinstance(files, str | os.PathLike) else list(files)
    with ExitStack() as held:
        images = []
        for path in paths:
            try:
                images.append(held.enter_context(ElfImage.open(os.fspath(path))))
            except OSError as error:
                raise InputError(os.fspath(path), os_error_text(error)) from error
        builds = builds_of(images)
        if len(builds) != 1:
            names = ", ".join(image.path for build in builds for image in build)
            raise UsageError(f"files: not the files of one binary: {names or 'none'}")
        binary = Binary(builds[0], finder, cache)
        held.callback(binary.close)
        yield binary

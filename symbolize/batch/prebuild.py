"""Builds the symbol tables of all binaries below some folders ahead of the profiles that will need them."""

import os
import pickle
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from symbolize.batch.engines.engine import Task, TaskLimits
from symbolize.batch.engines.local import LocalEngine
from symbolize.binaries import BinaryIndex, BinaryMatch, Companions, binary_files
from symbolize.core.errors import InputError, UsageError
from symbolize.core.files import file_size, no_such
from symbolize.resolve.opened import open_images
from symbolize.symbols import Binary, TableCache, builds_of

LIMITS: Final = TaskLimits(seconds=3600, attempts=1)
"""Of one binary."""


class Built(NamedTuple):
    """The result for one binary: its files, whether a table was made (else it was there or failed), and its cost.

    `failure` says why there is no table, empty if there is one; `problems` what could not be read in it. `is_stored` is
    false while further files with debug information are missing, which `problems` name. `size` is that of the stored
    table in bytes.
    """

    paths: list[str]
    is_new: bool = False
    is_stored: bool = True
    has_names: bool = False
    failure: str = ""
    problems: tuple[str, ...] = ()
    seconds: float = 0.0
    size: int = 0


def index_binaries(roots: Sequence[str], cache: TableCache | None = None) -> BinaryIndex:
    """The files below `roots`; `cache` remembers them. Raises UsageError for a root that is not there."""
    for root in roots:
        if not os.path.exists(root):
            raise UsageError(f"{root}: {no_such(root, 'folder or file')}")
    return BinaryIndex(roots, cache.base if cache is not None else None)


def prebuild(index: BinaryIndex, cache: TableCache, jobs: int) -> Iterator[Built]:
    """Make the tables that `cache` lacks of the binaries in `index`, the largest first, `jobs` at a time.

    Files that share a build id are one binary. Yields the result for each when its table is complete in the cache, so
    an interrupted run is continued where it stopped.
    """
    groups = (binary_files(index, entries) for entries in index.binaries())
    binaries = [[(entry.path, entry.build_id or "") for entry in group] for group in groups]
    binaries.sort(key=lambda files: -sum(file_size(path) for path, _ in files))
    if jobs <= 1 or len(binaries) <= 1:
        for files in binaries:
            yield build_one(files, index, cache)
        return
    shared = pickle.dumps((index, cache))
    tasks = (Task(files[0][0], build_in_worker, (shared, files)) for files in binaries)
    with LocalEngine(jobs) as engine:
        for outcome in engine.run(tasks, LIMITS):
            if outcome.failure is None:
                yield outcome.value
            else:
                paths = [path for path, _ in outcome.task.argument[1]]
                yield Built(paths, failure=f"{paths[0]}: {outcome.detail}")


@lru_cache(maxsize=1)
def open_shared(shared: bytes) -> tuple[BinaryIndex, TableCache]:
    """Index and cache of a worker process, opened for its first task."""
    index, cache = pickle.loads(shared)
    return index, cache


def build_in_worker(task: tuple[bytes, list[tuple[str, str]]]) -> Built:
    """Make the table of one binary in a worker process."""
    shared, files = task
    return build_one(files, *open_shared(shared))


def build_one(files: list[tuple[str, str]], index: BinaryIndex, cache: TableCache) -> Built:
    """Make the table of one binary, unless `cache` has it; `files` are paths with the build ids that they had.

    Each of several builds has its own table (R248, one build id, several builds). Files without code, such as split
    units, have none.
    """
    paths = [path for path, _ in files]
    cache.problems.clear()  # each is reported once, with the binary at which it occurred
    started = time.perf_counter()
    opened = open_images(BinaryMatch(paths, expected=dict(files)))
    if not opened.images:
        return Built(paths, failure="; ".join(opened.unreadable))
    try:
        if not any(len(image.code_ranges[0]) for image in opened.images):
            return Built(paths)
        for build in builds_of(opened.images):
            opened.binaries.append(Binary(build, Companions(index, [each.path for each in build]), cache))
        built = [make_table(binary, cache) for binary in opened.binaries]
    except MemoryError:
        return Built(paths, failure=f"{paths[0]}: out of memory")
    except InputError as error:
        return Built(paths, failure=str(error))
    except Exception as error:  # one binary must not stop the others
        return Built(paths, failure=f"{paths[0]}: {type(error).__name__}: {error}")
    finally:
        opened.close()
    if failed := next((each.failure for each in built if each.failure), ""):
        return Built(paths, failure=failed)
    problems = [*opened.unreadable, *(problem for each in built for problem in each.problems), *cache.problems]
    return Built(
        paths,
        any(each.is_new for each in built),
        all(each.is_stored for each in built),
        any(each.has_names for each in built),
        "",
        tuple(dict.fromkeys(problems)),
        time.perf_counter() - started,
        sum(each.size for each in built),
    )


def make_table(binary: Binary, cache: TableCache) -> Built:
    """Make the table of a binary, unless `cache` has it."""
    is_new = not binary.is_cached()
    table = binary.table()
    paths = [image.path for image in binary.files]
    if binary.is_kept is False:
        return Built(paths, failure="; ".join([f"{paths[0]}: its table could not be stored", *cache.problems]))
    known = tuple(f"{image.path}: " for image in binary.images)
    found = [text if text.startswith(known) else f"{paths[0]}: {text}" for text in table.problems]
    problems = (*binary.refused, *found)
    return Built(paths, is_new, binary.is_kept is not None, table.has_names, "", problems, size=table.file_size)

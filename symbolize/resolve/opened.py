"""The binaries that are open, each once, by their files; and the pool of what is open: it says whether files may have
changed, and closes what nobody uses."""

import errno
import threading
import time
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import field
from functools import partial
from typing import Final, Generic, TypeVar

from symbolize.binaries import BinaryIndex, BinaryMatch, Companions, has_build_id
from symbolize.core.closing import Closeable
from symbolize.core.errors import ChangedFile, ReadFailure
from symbolize.core.files import os_error_text
from symbolize.core.mapped import CHANGED
from symbolize.core.records import record
from symbolize.elf import ElfError, ElfImage
from symbolize.evidence.choice import HOW_FOUND, Candidate, ordered
from symbolize.symbols import Binary, TableCache, builds_of

MAX_UNUSED = 64
"""Candidates that were not chosen and stay open, for the next profile."""


LASTING: Final = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.EINVAL, errno.EISDIR, errno.ELOOP),
    *(errno.ENAMETOOLONG, errno.ENXIO, errno.ENODEV),
)
"""What the system says of a file that is not there or not for us; all else may pass, as an error of a disk or a lack of
memory or descriptors."""


class Pooled(Closeable):
    """A base for what a pool keeps open; `memory` are the bytes that it takes about, `looked_at` when it was opened, if
    that was before it came into the pool.

    The rest is the pool's: its key, how many use it, and when it was opened and looked at.
    """

    memory = users = 0
    opened_at = looked_at = 0.0
    pool_key: Hashable = None

    @property
    @abstractmethod
    def is_outdated(self) -> bool:
        """Whether it has to be opened anew, as when a file changed."""


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Pooled)


class BinaryPool(Generic[K, V]):
    """What openers make of keys; many threads may use it. Where two open the same at once, the later one stays.

    Of what nobody uses, the `limit` whose use ended last stay open. With `counts_used`, all that is open counts: what
    was asked for longest ago is taken out, and closed with its last use, until `limit` and `max_bytes` are kept or one
    is left. What was looked at more than `age` seconds ago is looked at again when it is asked for; if it is outdated
    it is opened anew, and closed once nobody uses it.
    """

    def __init__(
        self, limit: int, age: float = 0.0, max_bytes: float = float("inf"), *, counts_used: bool = False
    ) -> None:
        self._limit, self._age, self._max_bytes, self._counts_used = limit, age, max_bytes, counts_used
        self._lock = threading.Lock()
        self._open: OrderedDict[K, V] = OrderedDict()
        self._unused: OrderedDict[Hashable, V] = OrderedDict()
        self._retired: set[V] = set()
        self.memory = 0

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[V]:
        with self._lock:
            return iter([*self._open.values()])

    def get(self, key: K) -> V | None:
        """What is open of a key, as it is and not held; None if nothing is."""
        return self._open.get(key)

    def hold(self, key: K, opener: Callable[[], V]) -> V:
        """What is open of a key, or what `opener` makes for it; `release` has to follow. Raises as `opener`, and then
        keeps nothing."""
        return self.hold_open(key) or self.add(key, opener())

    def hold_open(self, key: K) -> V | None:
        """As `hold`; None if nothing is open of the key, or what was is outdated."""
        with self._lock:
            value = self._open.get(key)
            if value is None:
                return None
            value.users += 1
            self._open.move_to_end(key)
            self._unused.pop(key, None)
        if (now := time.monotonic()) - value.looked_at >= self._age:
            value.looked_at = now
            if value.is_outdated:
                with self._lock:
                    if self._open.get(key) is value:  # another thread may have opened it anew meanwhile
                        self._take_out(key)
                self.release(value)
                return None
        return value

    def add(self, key: K, value: V) -> V:
        """Keep `value`, which is new and held from now on, in place of what is open of a key."""
        value.users, value.pool_key, value.opened_at = 1, key, time.monotonic()
        value.looked_at = value.looked_at or value.opened_at
        with self._lock:
            self._take_out(key)
            self._open[key] = value
            self.memory += value.memory
            unused = self._surplus()
        self._close(unused)
        return value

    def drop(self, key: K) -> None:
        """Keep nothing of a key; who holds what was open still has it open."""
        with self._lock:
            self._take_out(key)
            unused = self._surplus()
        self._close(unused)

    def release(self, *values: V) -> None:
        """End a use of each. What nobody uses is closed then, if it was taken out or is too much."""
        with self._lock:
            for value in values:
                value.users -= 1
                key = value.pool_key
                if not value.users and self._open.get(key) is value:  # type: ignore[arg-type]
                    self._unused[key] = value
            unused = self._surplus()
        self._close(unused)

    def close(self) -> None:
        """Close all, used or not, also what was taken out."""
        with self._lock:
            values = [*self._open.values(), *self._retired]
            self._open.clear()
            self._unused.clear()
            self._retired.clear()
            self.memory = 0
        self._close(values)

    def _take_out(self, key: K) -> None:
        """Keep what is open of a key no more; `_surplus` gives it once nobody uses it."""
        if (value := self._open.pop(key, None)) is not None:
            self._unused.pop(key, None)
            self._retired.add(value)
            self.memory -= value.memory

    def _surplus(self) -> list[V]:
        """What has to be closed, after what is too much was taken out."""
        kept = self._open if self._counts_used else self._unused
        while len(kept) > self._limit or (self.memory > self._max_bytes and len(kept) > 1):
            self._take_out(next(iter(kept)))  # type: ignore[arg-type]
        unused = [value for value in self._retired if not value.users]
        self._retired.difference_update(unused)
        return unused

    @staticmethod
    def _close(values: Iterable[V]) -> None:
        for value in values:
            value.close()


@record
class OpenFiles(Pooled):
    """The binaries that some files make, of each build one, and which files cannot be read, and why.

    `images` are all files that could be opened, those that no binary uses too. `unusable` are the paths of the others,
    and `failures` what may pass of their reasons. `files` were asked for, with the build ids that they have to have.
    """

    binaries: list[Binary] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    images: list[ElfImage] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)
    failures: list[ReadFailure] = field(default_factory=list)
    files: Sequence[tuple[str, str]] = ()

    @property
    def changes(self) -> list[ReadFailure]:
        """The files that changed since they were opened."""
        return [ChangedFile(image.path, CHANGED) for image in self.images if image.has_changed]

    @property
    def is_outdated(self) -> bool:
        """Whether a file changed since it was opened."""
        return bool(self.changes)

    def close(self) -> None:
        """Close the files."""
        for binary in self.binaries:
            binary.close()
        for image in self.images:
            image.close()


class OpenBinaries(Closeable):
    """The binaries below the roots of `index` that are open; their tables are kept in `cache`, if there is one.

    `companions` are the split units and supplementary files of the binary with some files; by default those in `index`.
    `owned` are closed with the binaries.
    """

    def __init__(
        self,
        index: BinaryIndex,
        cache: TableCache | None,
        companions: Callable[[Sequence[str]], Companions] | None = None,
        owned: Sequence[BinaryIndex] = (),
    ) -> None:
        self._index = index
        self._cache = cache
        self._companions = companions or (lambda paths: Companions(index, paths))
        self._owned = owned
        self._pool: BinaryPool[Hashable, OpenFiles] = BinaryPool(MAX_UNUSED)
        self._asked: list[tuple[tuple[str, ...], OpenFiles]] = []
        self._used: set[tuple[str, ...]] = set()
        self._new: set[OpenFiles] = set()
        self.reopened: ReadFailure | None = None

    def __len__(self) -> int:
        return len(self._pool)

    def candidates(self, place: str, found: BinaryMatch) -> tuple[list[Candidate[BinaryMatch]], list[str]]:
        """The builds that the files of `found` are of, and which files cannot be read, and why.

        They are found as `place` says; of several builds of one id those without code come last, and first the ones
        with a file that the mapping names.
        """
        opened = self.open(found)
        if len(opened.binaries) < 2:
            return [Candidate(place, found, binary) for binary in opened.binaries], opened.unreadable
        result = []
        for binary in opened.binaries:
            named = [found.named[image.path] for image in binary.files if image.path in found.named]
            where = (
                min(named, key=HOW_FOUND.index, default=place)
                if any(image.has_code for image in binary.files)
                else "debug file"
            )
            result.append(Candidate(where, found, binary))
        return ordered(result), opened.unreadable

    def one(self, found: BinaryMatch) -> tuple[Binary | None, list[str]]:
        """The binary whose files were found, None if no file can be read; and which cannot, or are of another build."""
        candidates, problems = self.candidates("build id", found)
        self.use(found)
        if not candidates:
            return None, problems
        chosen = candidates[0].binary
        return chosen, [*problems, *(chosen.differs_from(each.binary) for each in candidates[1:])]

    def with_file(self, path: str, found: BinaryMatch) -> Binary | None:
        """The build that the file at `path` is of, among those of the files of `found`; None if it cannot be read."""
        builds = self.open(found).binaries
        return next((each for each in builds if path in (image.path for image in each.files)), None)

    def open(self, found: BinaryMatch) -> OpenFiles:
        """The binaries that the files of `found` make, opened once, and anew where a file changed since. They stay open
        until `close_unused`, or to the end with `use`."""
        key = tuple(found.paths)
        before = self._pool.get(key)
        opened = self._pool.hold(key, partial(self._opened, found))
        self._asked.append((key, opened))
        if opened is not before:
            self._new.add(opened)
            changes = before.changes if before is not None else []
            self.reopened = next(iter(changes), self.reopened)
        return opened

    def _opened(self, found: BinaryMatch) -> OpenFiles:
        opened = open_images(found)
        for build in builds_of(opened.images) if opened.images else ():
            opened.binaries.append(Binary(build, self._companions([each.path for each in build]), self._cache))
        return opened

    def part(self, key: Hashable, opener: Callable[[], OpenFiles]) -> OpenFiles:
        """What is open of a part of a file, or what `opener` makes of it, anew where a file changed since. It stays
        open to the end."""
        return self._pool.hold((None, key), opener)

    def begin(self) -> None:
        """From now on `failure` is about what will be opened, and `reopened` about what is opened anew since it changed
        between two questions."""
        self.reopened = None
        self.close_unused()

    def failure(self) -> ReadFailure | None:
        """What became of the files that were opened since `begin`: None if all could be read, and did not change since,
        nor since the folders were walked. What failed is forgotten, and opened anew when it is asked for again.

        Where the index is out of date the folders are walked again (R284, files that are replaced).
        """
        found: ReadFailure | None = None
        for key, opened in dict(self._asked).items():
            failures = [*opened.failures, *opened.changes]
            paths = [*opened.unusable, *(failure.source for failure in failures)]
            if opened in self._new:
                paths += [image.path for image in opened.images]
            failures += [ChangedFile(path, CHANGED) for path in paths if self._index.look_again(path)]
            if failures:
                found = found or failures[0]
                self._pool.drop(key)  # who uses it still has it open
        return found

    def use(self, found: BinaryMatch) -> None:
        """Keep the binaries of these files open until the end."""
        self._used.add(tuple(found.paths))

    def close_unused(self) -> None:
        """Close candidates that were not chosen, all but those that were asked for last."""
        self._pool.release(*(opened for key, opened in self._asked if key not in self._used))
        self._asked.clear()
        self._new.clear()

    def files_of(self, binary: Binary) -> Sequence[tuple[str, str]] | None:
        """The files that were opened for a binary, with the build ids that they have to have; None if none were."""
        return next((each.files for each in self._pool if binary in each.binaries), ()) or None

    def close(self) -> None:
        """Close all binaries."""
        self._pool.close()
        for each in self._owned:
            each.close()


def open_images(found: BinaryMatch) -> OpenFiles:
    """The files of `found` that can be read and have not changed, and why the others are none of them."""
    opened = OpenFiles(files=[(path, found.expects(path)) for path in found.paths])
    for path in found.paths:
        try:
            image = ElfImage.open(path)
            if has_build_id(image.build_id, found.expects(path)):
                opened.images.append(image)
                continue
            image.close()
            problem = f"{path}: has changed, its build id is now {image.build_id or 'none'}"
        except ReadFailure as error:
            problem = str(error)
            opened.failures.append(error)
        except ElfError as error:
            problem = str(error)
        except OSError as error:
            problem = f"{path}: {os_error_text(error)}"
            if error.errno not in LASTING:
                opened.failures.append(ReadFailure(path, os_error_text(error)))
        opened.unreadable.append(problem)
        opened.unusable.append(path)
    return opened

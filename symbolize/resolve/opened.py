"""The binaries that are open, each once, by their files."""

import errno
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from symbolize.binaries import BinaryIndex, BinaryMatch, Companions, has_build_id
from symbolize.core.errors import ReadFailure
from symbolize.core.files import os_error_text
from symbolize.core.mapped import CHANGED, ChangedFile
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


class Opened(NamedTuple):
    """The binaries that some files make, of each build one, and which files cannot be read, and why.

    `images` are all files that could be opened, those that no binary uses too. `unusable` are the paths of the others,
    and `failures` what may pass of their reasons.
    """

    binaries: list[Binary]
    unreadable: list[str]
    images: Sequence[ElfImage] = ()
    unusable: Sequence[str] = ()
    failures: Sequence[ReadFailure] = ()


class OpenBinaries:
    """The binaries below the roots of `index` that are open; their tables are kept in `cache`, if there is one.

    `companions` are the split units and supplementary files of the binary with some files; by default those in `index`.
    """

    def __init__(
        self,
        index: BinaryIndex,
        cache: TableCache | None,
        companions: Callable[[Sequence[str]], Companions] | None = None,
    ) -> None:
        self._index = index
        self._cache = cache
        self._companions = companions or (lambda paths: Companions(index, paths))
        self._opened: dict[tuple[str, ...], Opened] = {}
        self._expected: dict[str, str] = {}
        self._used: set[tuple[str, ...]] = set()
        self._asked: list[tuple[str, ...]] = []
        self._new: set[tuple[str, ...]] = set()
        self.reopened: ReadFailure | None = None

    def __len__(self) -> int:
        return len(self._opened)

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

    def open(self, found: BinaryMatch) -> Opened:
        """The binaries that the files of `found` make, opened once, and anew where a file changed since."""
        key = tuple(found.paths)
        self._asked.append(key)
        known = self._opened.pop(key, None)
        changed = next((image for image in known.images if image.has_changed), None) if known is not None else None
        if changed is not None:
            self.reopened = ChangedFile(changed.path, CHANGED)
        if known is None or changed is not None:
            self._expected |= {path: found.expects(path) for path in key}
            known = open_images(found)
            known.binaries.extend(self._binary(build) for build in (builds_of(known.images) if known.images else ()))
            self._new.add(key)
        self._opened[key] = known  # the last to be closed
        return known

    def begin(self) -> None:
        """From now on `failure` is about what will be opened, and `reopened` about what is opened anew since it changed
        between two questions."""
        self.reopened = None
        self._asked.clear()
        self._new.clear()

    def failure(self) -> ReadFailure | None:
        """What became of the files that were opened since `begin`: None if all could be read, and did not change since,
        nor since the folders were walked. What failed is forgotten, and opened anew when it is asked for again.

        Where the index is out of date the folders are walked again (R284, files that are replaced).
        """
        found: ReadFailure | None = None
        for key in dict.fromkeys(self._asked):
            opened = self._opened.get(key)
            if opened is None:
                continue
            failures = [*opened.failures]
            failures += [ChangedFile(image.path, CHANGED) for image in opened.images if image.has_changed]
            paths = [*opened.unusable, *(failure.source for failure in failures)]
            if key in self._new:
                paths += [image.path for image in opened.images]
            failures += [ChangedFile(path, CHANGED) for path in paths if self._index.look_again(path)]
            if failures:
                found = found or failures[0]
                del self._opened[key]  # who uses it still has it open
        return found

    def _binary(self, images: list[ElfImage]) -> Binary:
        return Binary(images, self._companions([image.path for image in images]), self._cache)

    def use(self, found: BinaryMatch) -> None:
        """Keep the binaries of these files open until the end."""
        self._used.add(tuple(found.paths))

    def close_unused(self) -> None:
        """Close candidates that were not chosen, all but those that were asked for last."""
        unused = [key for key in self._opened if key not in self._used]
        for key in unused[:-MAX_UNUSED]:
            for binary in self._opened.pop(key).binaries:
                binary.close()

    def files_of(self, binary: Binary) -> list[tuple[str, str]] | None:
        """The files that were opened for a binary, with the build ids that they have to have; None if none were."""
        for key, opened in self._opened.items():
            if any(each is binary for each in opened.binaries):
                return [(path, self._expected.get(path, "")) for path in key]
        return None

    def __iter__(self) -> Iterator[Binary]:
        for opened in self._opened.values():
            yield from opened.binaries

    def close(self) -> None:
        """Close all binaries."""
        for binary in self:
            binary.close()
        self._opened.clear()
        self._expected.clear()
        self._used.clear()


def open_images(found: BinaryMatch) -> Opened:
    """The files of `found` that can be read and have not changed, and why the others are none of them."""
    images: list[ElfImage] = []
    unreadable: list[str] = []
    unusable: list[str] = []
    failures: list[ReadFailure] = []
    for path in found.paths:
        try:
            image = ElfImage.open(path)
            if has_build_id(image.build_id, found.expects(path)):
                images.append(image)
                continue
            image.close()
            problem = f"{path}: has changed, its build id is now {image.build_id or 'none'}"
        except ReadFailure as error:
            problem = str(error)
            failures.append(error)
        except ElfError as error:
            problem = str(error)
        except OSError as error:
            problem = f"{path}: {os_error_text(error)}"
            if error.errno not in LASTING:
                failures.append(ReadFailure(path, os_error_text(error)))
        unreadable.append(problem)
        unusable.append(path)
    return Opened([], unreadable, images, unusable, failures)

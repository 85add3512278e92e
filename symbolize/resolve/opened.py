"""The binaries that are open, each once, by their files."""

from collections.abc import Iterator
from typing import NamedTuple

from symbolize.binaries import BinaryIndex, Companions, Found, has_build_id
from symbolize.elf import ElfError, ElfImage
from symbolize.resolve.choice import PLACES, Candidate, ordered
from symbolize.symbols import Binary, TableCache, builds_of

MAX_UNUSED = 64
"""Candidates that were not chosen and stay open, for the next profile."""


class Opened(NamedTuple):
    """The binaries that some files make, of each build one, and which files cannot be read, and why."""

    binaries: list[Binary]
    unreadable: list[str]


class OpenBinaries:
    """The binaries below the roots of `index` that are open; their tables are kept in `cache`, if there is one."""

    def __init__(self, index: BinaryIndex, cache: TableCache | None) -> None:
        self._index = index
        self._cache = cache
        self._opened: dict[tuple[str, ...], Opened] = {}
        self._expected: dict[str, str] = {}
        self._used: set[tuple[str, ...]] = set()

    def __len__(self) -> int:
        return len(self._opened)

    def candidates(self, place: str, found: Found) -> tuple[list[Candidate], list[str]]:
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
                min(named, key=PLACES.index, default=place)
                if any(image.has_code for image in binary.files)
                else "debug file"
            )
            result.append(Candidate(where, found, binary))
        return ordered(result), opened.unreadable

    def one(self, found: Found) -> tuple[Binary | None, list[str]]:
        """The binary whose files were found, None if no file can be read; and which cannot, or are of another build."""
        candidates, problems = self.candidates("build id", found)
        self.use(found)
        if not candidates:
            return None, problems
        chosen = candidates[0].binary
        return chosen, [*problems, *(chosen.differs_from(each.binary) for each in candidates[1:])]

    def with_file(self, path: str, found: Found) -> Binary | None:
        """The build that the file at `path` is of, among those of the files of `found`; None if it cannot be read."""
        builds = self.open(found).binaries
        return next((each for each in builds if path in (image.path for image in each.files)), None)

    def open(self, found: Found) -> Opened:
        """The binaries that the files of `found` make, opened once."""
        key = tuple(found.paths)
        if key in self._opened:
            self._opened[key] = self._opened.pop(key)  # the last to be closed
        else:
            self._expected |= {path: found.expects(path) for path in key}
            images, unreadable = open_images(found)
            binaries = [self._binary(build) for build in builds_of(images)] if images else []
            self._opened[key] = Opened(binaries, unreadable)
        return self._opened[key]

    def _binary(self, images: list[ElfImage]) -> Binary:
        return Binary(images, Companions(self._index, [image.path for image in images]), self._cache)

    def use(self, found: Found) -> None:
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


def open_images(found: Found) -> tuple[list[ElfImage], list[str]]:
    """The files of `found` that can be read and have not changed, and why the others are none of them."""
    images: list[ElfImage] = []
    unreadable: list[str] = []
    for path in found.paths:
        try:
            image = ElfImage.open(path)
            if has_build_id(image.build_id, found.expects(path)):
                images.append(image)
            else:
                image.close()
                unreadable.append(f"{path}: has changed, its build id is now {image.build_id or 'none'}")
        except ElfError as error:
            unreadable.append(str(error))
        except OSError as error:
            unreadable.append(f"{path}: {error.strerror or error}")
    return images, unreadable

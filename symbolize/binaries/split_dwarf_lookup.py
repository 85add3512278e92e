"""Where the other files with a binary's debug information may lie: packages, split units, supplementary files.

The names come out of the binary and are not trusted. They are only looked up in the index, so that no path outside
of the roots is ever opened, and the opener of the files has to check that the ids in them agree. Of servers only a
supplementary file is asked for, by its build id.
"""

import os
import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from symbolize.binaries.build_id import is_build_id
from symbolize.binaries.finder import unique
from symbolize.binaries.index import BinaryIndex
from symbolize.binaries.links import DEBUG_SUFFIXES

MAX_CANDIDATES = 16
"""So many files of one name are handed out. In build trees a name may denote hundreds."""


@dataclass(frozen=True, eq=False)
class Companions:
    """The companions of the binary whose files are `paths`, among the files of `index`."""

    index: BinaryIndex
    paths: Sequence[str]

    def packages(self) -> list[str]:
        """Packages: `<file>.dwp`, of a debug file also under the name of its binary (R88, search for split units)."""
        names = []
        for name in map(os.path.basename, self.paths):
            names += [name + ".dwp", *(name.removesuffix(s) + ".dwp" for s in DEBUG_SUFFIXES if name.endswith(s))]
        return self._ranked(unique(names), "")

    def split(self, name: str, comp_dir: str) -> list[str]:
        """Files that may be the `.dwo` file recorded as `name` in `comp_dir`, the likeliest first (R88, search for
        split units)."""
        recorded = posixpath.normpath(posixpath.join(comp_dir, name))
        return self._ranked([posixpath.basename(recorded)], recorded)

    def supplementary(self, name: str, identifier: str) -> list[str]:
        """Files that may be the supplementary file `name` with a build id or checksum, in hexadecimal (R91,
        supplementary files)."""
        same = [entry.path for entry in self.index.with_build_id(identifier)]
        if not same and self.index.servers is not None and is_build_id(identifier):
            fetched = self.index.servers.fetch(identifier, "debuginfo").path
            same = [fetched] if fetched is not None else []
        return unique([*same, *self._ranked([posixpath.basename(name)], name)])[:MAX_CANDIDATES]

    def _ranked(self, names: Iterable[str], recorded: str) -> list[str]:
        """The files called so: those that lie like the recorded path first, then those beside the binary."""
        folders = {os.path.dirname(path) for path in self.paths}
        wanted = recorded.split("/")[::-1]

        def rank(path: str) -> tuple[int, bool]:
            common = 0
            for own, other in zip(path.split("/")[::-1], wanted, strict=False):
                if own != other:
                    break
                common += 1
            return -common, os.path.dirname(path) not in folders

        found = unique([entry.path for name in names for entry in self.index.with_name(name)])
        return sorted(found, key=rank)[:MAX_CANDIDATES]

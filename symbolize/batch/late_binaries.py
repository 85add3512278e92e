"""Binaries that come after profiles were done: which files each binary that misses names had, and what has more now.

A worker notes what the folders have for the mappings of a profile before it matches them, and hands on what the profile
misses (`KnownFiles`). The driver compares that with what the folders have later, and makes the profiles new that gain
files (`LateBinaries`; R400, late binaries).
"""

import json
import os
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Self

from symbolize.batch.manifest import Manifest, State
from symbolize.binaries import BinaryIndex, Kind, find_recorded, is_build_id, plain_build_id
from symbolize.binaries.layouts import KERNEL_LISTS, SPECIAL_NAMES
from symbolize.core.arrays import distinct
from symbolize.core.closing import Closeable
from symbolize.core.mapped_names import base_name, is_no_file
from symbolize.profile import NONE, Profile
from symbolize.report import Report
from symbolize.resolve.providers.kernel import VDSO_FILES, is_kernel, is_vdso, module_files, module_name

MAX_NAME: Final = 4096
"""Characters of the name of a mapping; one with a longer name is not waited for."""
MAX_KNOWN: Final = 1 << 16
"""Mappings whose files a worker remembers."""
REST: Final = 10
"""So many times as long as a look took is no other look, so that looking takes a tenth of the time at most."""
KINDS: Final[tuple[Kind, ...]] = ("executable", "debuginfo")


class Want(NamedTuple):
    """A binary that a profile misses names of: build id and recorded name of the mapping, the kinds of files that
    servers may have, and what the folders had: a mark for each file."""

    build_id: str
    name: str
    kinds: tuple[Kind, ...]
    found: str

    @property
    def key(self) -> str:
        """What is wanted, as text."""
        return json.dumps(self[:3])

    @classmethod
    def of(cls, key: str, found: str) -> Self:
        """The binary with this key."""
        build_id, name, kinds = json.loads(key)
        return cls(build_id, name, kinds_of(kinds), found)


def kinds_of(words: Sequence[str]) -> tuple[Kind, ...]:
    """The kinds of files that are among `words`."""
    return tuple(kind for kind in KINDS if kind in words)


class KnownFiles:
    """What the folders of `index` had for mappings when these were first asked about."""

    def __init__(self, index: BinaryIndex) -> None:
        self._index = index
        self._known: dict[tuple[str, str], str] = {}

    def note(self, profile: Profile) -> None:
        """Note the files of all mappings of a profile that have locations."""
        mappings, text = profile.mappings, profile.strings.text
        for mapping in distinct(profile.locations.mapping).tolist():
            if mapping != NONE:
                self.of(text(mappings.build_id[mapping]), text(mappings.filename[mapping]))

    def of(self, build_id: str, name: str) -> str:
        """The marks of the files of a mapping."""
        found = self._known.get((build_id, name))
        if found is None:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            found = self._known[build_id, name] = joined(marks(self._index, build_id, name))
        return found

    def wants(self, report: Report) -> Iterator[Want]:
        """The binaries of a profile that another file may name more of."""
        for row in report.mappings:
            is_short = bool(row.misses) or bool(row.outcome.wanted) or not row.verified
            if row.locations and is_short and is_lasting(row.build_id, row.name):
                yield Want(row.build_id, row.name, kinds_of(row.outcome.wanted), self.of(row.build_id, row.name))


def is_lasting(build_id: str, name: str) -> bool:
    """Whether a mapping is of a file, the kernel or the vdso, and not of memory that nothing names later."""
    if len(name) > MAX_NAME:
        return False
    is_file = bool(build_id) or (name != "" and not is_no_file(name))
    return is_file or is_vdso(name) or is_kernel(name) or module_name(name) != ""


def marks(index: BinaryIndex, build_id: str, name: str) -> frozenset[str]:
    """A mark for each file that may answer for a mapping: of its name and size, and of its time of change unless its
    build id is proven. A copy of a file has the same mark."""
    if not is_lasting(build_id, name):
        return frozenset()
    match = find_recorded(index, build_id, name, fetch=False)
    paths = dict.fromkeys(
        [*match.paths, *(path for _, each in match.candidates for path in each.paths)], match.verified
    )
    for entry in special_files(index, name):
        paths.setdefault(entry, False)
    return frozenset(mark for path, verified in paths.items() if (mark := mark_of(path, verified)))


def special_files(index: BinaryIndex, name: str) -> Iterator[str]:
    """The files for a mapping that are not found by the name that it has."""
    base = base_name(name)
    names: Iterable[str] = ()
    patterns = [re.escape(base) + r"\.sym"] if base else []
    if is_kernel(name):
        patterns += [SPECIAL_NAMES[kind].pattern for kind in KERNEL_LISTS]
    elif is_vdso(name):
        names = VDSO_FILES
    elif module := module_name(name):
        names = module_files(module)
        patterns.append(re.escape(module).replace("_", "[-_]") + r"\.ko\.(xz|gz|zst)")
    if "!" in name:
        patterns.append(re.escape(name.partition("!")[0].rpartition("/")[2]))
    for file in names:
        yield from (entry.path for entry in index.with_name(file))
    for pattern in patterns:
        yield from (entry.path for entry in index.special(re.compile(pattern)))


def mark_of(path: str, verified: bool) -> str:
    """The mark of a file, empty if it is gone."""
    try:
        status = os.stat(path)
    except OSError:
        return ""
    identity = f"{os.path.basename(path)}\0{status.st_size}\0{'' if verified else status.st_mtime_ns}"
    return f"{zlib.crc32(identity.encode(errors='surrogateescape')):08x}"


def joined(found: Iterable[str]) -> str:
    """Marks as text."""
    return " ".join(sorted(found))


class LateBinaries(Closeable):
    """Makes inputs that are done new again when the folders `roots` have files for them that they had not.

    `folder` is that of the index, None for an index of its own; `problem` is called with a subject and what is wrong.

    For each mapping that misses names, lines or a proven build the files are recorded that the folders had before the
    profile was matched. A copy or a loss of a file is no gain; where a mapping has lost all of its files the profile
    stays as it is (R400, late binaries).
    """

    def __init__(
        self,
        manifest: Manifest,
        roots: Sequence[str],
        folder: str | None,
        problem: Callable[[str, str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._manifest = manifest
        self._roots = tuple(os.path.join(os.path.abspath(root), "") for root in roots)
        self._problem = problem
        self._index = BinaryIndex(roots, folder)
        self._settling: dict[Want, str] = {}
        self._left: set[tuple[Want, str]] = set()
        self._clock = clock
        self._next = clock()

    def close(self) -> None:
        """Close the index."""
        self._index.close()

    def scan(self) -> int:
        """Compare once; how many inputs are new."""
        return self._refresh(self._inputs_that_gain())

    def scan_settled(self) -> int:
        """As `scan`, for a driver that calls this again and again: not more often than it may, and only for files that
        two successive scans have found unchanged, so that none is half-written."""
        began = self._clock()
        if began < self._next:
            return 0
        gains = dict(self._inputs_that_gain())
        settled = [(want, now) for want, now in gains.items() if self._settling.get(want) == now]
        self._settling = gains
        renewed = self._refresh(settled)
        ended = self._clock()
        self._next = ended + REST * (ended - began)
        return renewed

    def server_files(self) -> dict[str, list[Kind]]:
        """The files that servers may have: by build id the kinds that are missing."""
        kinds: dict[str, dict[Kind, None]] = {}
        for want in self._wants():
            if is_build_id(build_id := plain_build_id(want.build_id)):
                kinds.setdefault(build_id, {}).update(dict.fromkeys(want.kinds))
        return {build_id: [*each] for build_id, each in sorted(kinds.items()) if each}

    def fetched(self, found: Mapping[str, Iterable[str]]) -> int:
        """Make the inputs new that miss files of these kinds, by build id; how many."""
        known = {want: found.get(plain_build_id(want.build_id), ()) for want in self._wants()}
        gained = [want for want, kinds in known.items() if set(want.kinds).intersection(kinds)]
        return self._refresh((want, "") for want in gained)

    def _wants(self) -> list[Want]:
        """What inputs that are done miss."""
        rows = self._manifest.read(
            "SELECT key, found FROM wanted WHERE EXISTS (SELECT 1 FROM wants JOIN inputs ON inputs.number = input "
            "WHERE wants.wanted = wanted.number AND state = ? AND turn = ?) ORDER BY number",
            State.DONE,
            self._manifest.generation,
        )
        return [Want.of(key, found) for key, found in rows]

    def _inputs_that_gain(self) -> Iterator[tuple[Want, str]]:
        """What the folders have more of now, with the marks of what they have."""
        wants = self._wants()
        if not wants or not self._roots:
            return
        self._index.walk_again()
        now: dict[tuple[str, str], frozenset[str]] = {}
        for want in wants:
            there = now.get(want[:2])
            if there is None:
                there = now[want[:2]] = marks(self._index, want.build_id, want.name)
            if not there.issubset(want.found.split()) and (want, joined(there)) not in self._left:
                yield want, joined(there)

    def _refresh(self, gains: Iterable[tuple[Want, str]]) -> int:
        """Make the inputs new that miss these binaries, but for those that would lose names."""
        renewed: set[int] = set()
        left: set[int] = set()
        for want, now in gains:
            numbers = self._manifest.read(
                "SELECT input FROM wants JOIN wanted ON wanted.number = wants.wanted "
                "JOIN inputs ON inputs.number = input WHERE key = ? AND found = ? AND state = ? AND turn = ?",
                *(want.key, want.found, State.DONE, self._manifest.generation),
            )
            for (number,) in numbers:
                if self._has_its_files(number):
                    renewed.add(number)
                else:
                    left.add(number)
                    self._left.add((want, now))
        self._manifest.make_new(sorted(renewed))
        if left:
            text = (
                f"{len(left)} inputs are not done again for binaries that were added, because others that they had "
                "names from are gone"
            )
            self._problem("late binaries", text)
        return len(renewed)

    def _has_its_files(self, number: int) -> bool:
        """Whether there still are files for the mappings of an input that have names from the folders."""
        named = [
            mapping
            for row in self._manifest.profiles(number)
            for mapping in row.coverage.get("mappings", ())
            if mapping["symbolized_locations"] and any(f"{path}/".startswith(self._roots) for path in mapping["files"])
        ]
        return all(
            any(map(os.path.exists, mapping["files"])) or marks(self._index, mapping["build_id"], mapping["name"])
            for mapping in named
        )

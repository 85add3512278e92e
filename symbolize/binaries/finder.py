"""Which files answer for a mapping, by the rule that a wrong name is worse than none; and the files below the roots
that are no plain ELF files and yet hold names of functions."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import NamedTuple

from symbolize.binaries import store
from symbolize.binaries.build_id import (
    BuildId,
    IdKind,
    build_id_key,
    parse_build_id,
    same_build_id,
)
from symbolize.binaries.entries import Entry
from symbolize.binaries.index import BinaryIndex
from symbolize.binaries.layouts import SPECIAL_NAMES
from symbolize.binaries.links import DEBUG_SUFFIXES, beside, linked_files, unique
from symbolize.binaries.remote import Attempt, Kind, fetch_in_turn, missing_kinds, offers
from symbolize.core.files import open_regular, os_error_text, read_limited
from symbolize.core.mapped_names import base_name, is_foreign, is_no_file
from symbolize.core.reasons import Reason
from symbolize.core.records import record
from symbolize.elf.probe import DWARF

MAX_FILES = 8
"""Files of one build that are opened. Of many copies the first few with debug information and with code do."""
MAX_CANDIDATES = 16
"""Builds of one name that are looked into."""
MAX_ATTEMPTS = 32
MAX_DETAILS = 3
"""Files and links that the detail of a miss has."""
NOTHING = "nothing there"
MAX_SHOWN, MAX_SHOWN_BUILD_ID = 400, 80
"""Characters of a recorded name and of a build id that are reported."""


MAX_NAMES = 8
"""So many forms of a name are looked for."""

_ENDINGS = (" (deleted)", "\\040(deleted)", ".dpkg-new", ".dpkg-tmp")
_REWRITES = [
    (re.compile(r"//deleted(/.+)"), r"\1"),
    (re.compile(r"(/.*[^/]);[0-9a-f]{6,16}"), r"\1"),
    (re.compile(r"(/.+)\.#prelink#\.\w{6}"), r"\1"),
    (re.compile(r"/proc/(?:\d+|self)/root(/.+)"), r"\1"),
    (re.compile(r"/newroot(/.+)"), r"\1"),
    (re.compile(r"/memfd:([^/]+)"), r"\1"),
    (re.compile(r"/dev/ashmem/(.+)"), r"\1"),
    (re.compile(r"/.*/(?:overlay2?|overlay-containers)/[^/]+/(?:diff|merged|rootfs/merge)(/.+)"), r"\1"),
    (re.compile(r"/.*/snapshots/\d+/fs(/.+)"), r"\1"),
    (re.compile(r"/run/containerd/.*/rootfs(/.+)"), r"\1"),
]
"""What is put around the name of a file that was replaced, is in memory, or has a path outside of its container."""
MAX_SPECIAL = 1 << 16
"""Files of one kind that are kept."""


@record(frozen=True)
class BinaryMatch:
    """The files of a binary, or the reason why there are none.

    `verified` means that a build id agreed; otherwise only the name or the layout of the folder did. `build_id` is that
    of the files, empty if they have none; `expected` has it for files with another one or none. `wanted` is what would
    make the files complete and was not found, if there is a build id to ask for, `wanted_id`. `named` says of the
    files that the mapping names whether by "path" or "name". Where several builds have the recorded name, `candidates`
    has each of them and how it was found; a caller that can tell which ran chooses one, and completes it by
    `fetch_missing`.
    """

    paths: Sequence[str] = field(default_factory=list)
    build_id: str = ""
    verified: bool = False
    reason: Reason = Reason.SYMBOLIZED
    detail: str = ""
    tried: Sequence[Attempt] = ()
    expected: Mapping[str, str] = field(default_factory=dict)
    has_code: bool = False
    has_dwarf: bool = False
    wanted: Sequence[Kind] = ()
    wanted_id: str = ""
    named: Mapping[str, str] = field(default_factory=dict)
    candidates: "Sequence[tuple[str, BinaryMatch]]" = ()

    def expects(self, path: str) -> str:
        """The build id that the file at `path` has to have, empty for none."""
        return self.expected.get(path, self.build_id)


def find_binary(index: BinaryIndex, build_id: str, filename: str, *, fetch: bool = True) -> BinaryMatch:
    """The files for a mapping with the given build id and recorded file name (either may be empty).

    With a build id only files with that id count, or files without any that lie where a layout by build ids has them
    (R138, build id first). Without one the full recorded path below a root counts, then the base name, then a debug
    file called after it, and the match stays unverified (R144, unverified matches). Of several builds all are
    candidates, and where they were found in the same way none of them is the answer. The recorded path itself is never
    opened. Files that share the build id of a match belong to it, and so does the debug file that it names (R139,
    search for debug information). What is missing then is fetched from the servers of the index, if it has any, unless
    `fetch` is false.
    """
    found = _by_identity(index, build_id, filename) if build_id else _by_name(index, filename)
    identity = parse_build_id(build_id)
    # Servers know whole build ids only.
    full = identity.text if identity is not None and identity.kind is IdKind.ELF else ""
    found = _completed(found, index, full or found.build_id, fetch and not found.candidates)
    if len(found.tried) > MAX_ATTEMPTS:
        left = Attempt("and others", f"{len(found.tried) - MAX_ATTEMPTS} more that did not help")
        found = replace(found, tried=(*found.tried[:MAX_ATTEMPTS], left))
    return found


def plain_names(filename: str) -> list[str]:
    """The recorded name and, behind it, what is left as its parts that name no file go, one after the other."""
    names = [filename]
    while len(names) < MAX_NAMES:
        name = names[-1]
        for ending in _ENDINGS:
            name = name.removesuffix(ending)
        for pattern, kept in _REWRITES:
            if name == names[-1] and (match := pattern.fullmatch(name)):
                name = match.expand(kept)
        if name == names[-1] or not name:
            break
        names.append(name)
    return names


def find_recorded(index: BinaryIndex, build_id: str, filename: str, *, fetch: bool = True) -> BinaryMatch:
    """`find_binary` for the recorded name, then for what it may denote; the first that is there counts.

    Of this machine only a build id proves that what was replaced, or is in a container, is what has its plain name.
    """
    names = [name for name in plain_names(filename) if build_id or not is_no_file(name)]
    names = names if build_id or not index.is_listed else [name for name in names if name == filename]
    if not names:
        return BinaryMatch(reason=Reason.NOT_A_FILE)
    tried: list[Attempt] = []
    found = BinaryMatch()
    for name in names:
        found = find_binary(index, build_id, name, fetch=fetch)
        tried += [attempt for attempt in found.tried if attempt not in tried]
        if found.paths or found.reason != Reason.NOT_FOUND:
            break
    if build_id and len(found.paths) > 1:  # found by its first name, but the files may be called by another one
        for name in names[1:]:
            found = replace(found, named=found.named or named_files(index, found.paths, name))
    is_miss = found.reason == Reason.NOT_FOUND and is_no_file(filename) and not build_id
    return replace(found, tried=tried, reason=Reason.NOT_A_FILE if is_miss else found.reason)


def find_file(index: BinaryIndex, path: str) -> BinaryMatch:
    """The file at `path`, which is a root of the index, and the files that belong to it: by its build id, as
    `find_binary` finds them, else by its debug link."""
    named = index.with_name(os.path.basename(os.path.realpath(path)))
    entry = next((entry for entry in named if entry.path == path), None)
    if entry is None:  # who opens it will say why
        return BinaryMatch(paths=[path])
    if entry.build_id:
        found = find_binary(index, entry.build_id, "")
    else:
        found = _with_files(BinaryMatch(), index, [entry], "")
    paths = unique([path, *found.paths])
    return replace(found, paths=paths, expected={path: entry.build_id or "", **found.expected})


class Candidates(NamedTuple):
    """Builds that a recorded path may denote, each with how it was found, "path", "name" or "debug file", the
    likeliest first; the places that were looked at; and files that were left out."""

    found: list[tuple[str, BinaryMatch]]
    tried: list[Attempt]
    left_out: list[Attempt]


def find_candidates(index: BinaryIndex, filename: str) -> Candidates:
    """All builds that a recorded path without a build id may denote.

    The full path below a root comes before the base name, alone or behind a build id as layouts have it, and that
    before debug files called after it (R165, candidates without a build id). What a caller chooses is completed by
    `fetch_missing`.
    """
    name = base_name(filename).rpartition("!")[2]
    return _candidates(index, filename, name, index.behind_build_id(name)) if name else Candidates([], [], [])


def fetch_missing(index: BinaryIndex, match: BinaryMatch) -> BinaryMatch:
    """A candidate that was chosen, with what servers have of it and was missing."""
    return _completed(match, index, match.build_id, fetch=True)


def _candidates(index: BinaryIndex, filename: str, name: str, others: list[Entry]) -> Candidates:
    """The builds with files at the recorded path or called `name`, `others` too, and debug files called after it.

    Files of one build are one candidate, however each was found.
    """
    builds: dict[str, list[Entry]] = {}
    where: dict[str, str] = {}
    tried: list[Attempt] = []
    too_many: set[str] = set()
    for place, how, entries in (
        (f"path {shown(filename.lstrip('/'))}", "path", index.at_path(filename)),
        (f"name {shown(name)}", "name", [*index.with_name(name), *others]),
        *((f"name {shown(name)}{suffix}", "debug file", index.with_name(name + suffix)) for suffix in DEBUG_SUFFIXES),
    )[: 1 if index.is_listed else None]:
        paths = ", ".join(dict.fromkeys(entry.path for entry in entries[:MAX_FILES]))
        tried.append(Attempt(place, f"found {paths}, unverified" if entries else NOTHING))
        for entry in entries:
            if entry.build not in builds and len(builds) == MAX_CANDIDATES:
                too_many.add(entry.build)
                continue
            where.setdefault(entry.build, how)
            builds.setdefault(entry.build, []).append(entry)
    left_out = [Attempt(path, f"cannot be used: {why}") for path, why in index.unusable_called(name).items()]
    left_out += [Attempt(*each) for each in index.links_out(filename).items()]
    if too_many:
        left_out.append(Attempt(f"name {shown(name)}", f"{len(too_many)} more builds, which are not looked into"))
    candidates: list[tuple[str, BinaryMatch]] = []
    linked: set[str] = set()
    for build, entries in builds.items():
        if linked.issuperset(entry.path for entry in entries):
            continue
        same = index.with_build_id(entries[0].build_id) if entries[0].build_id else []
        found = BinaryMatch(build_id=entries[0].build_id or "")
        found = _with_files(found, index, list(dict.fromkeys((*entries, *same))), filename)
        linked.update(found.paths)
        candidates.append((where[build], found))
    return Candidates(candidates, tried, left_out)


def _by_name(index: BinaryIndex, filename: str) -> BinaryMatch:
    if not filename:
        return BinaryMatch(reason=Reason.NO_IDENTITY)
    name = base_name(filename)
    candidates, tried, left_out = _candidates(index, filename, name, [])
    if not candidates:
        return _missing(index, filename, [*tried, *left_out])
    last = next(number for number, attempt in enumerate(tried) if attempt.outcome != NOTHING)
    likeliest = [each for how, each in candidates if how == candidates[0][0]]
    if len(likeliest) > 1:
        described = [f"{each.paths[0]} ({each.build_id or 'no build id'})" for each in likeliest]
        found = BinaryMatch(reason=Reason.AMBIGUOUS, detail=" and ".join(described[:3]))
    else:
        found = likeliest[0]
    is_choice = len(candidates) > 1
    attempts = *(tried if is_choice else tried[: last + 1]), *left_out, *found.tried
    return replace(found, tried=attempts, candidates=candidates if is_choice else ())


def _missing(index: BinaryIndex, filename: str, tried: Sequence[Attempt], build_id: str = "") -> BinaryMatch:
    """Nothing was found, or only files of that name that cannot be read, or links out of the folders."""
    unusable = index.unusable_called(base_name(filename))
    reason = Reason.UNREADABLE if unusable else Reason.NOT_ELF if is_foreign(filename) else Reason.NOT_FOUND
    details = [f"{path}: {why}" for path, why in unusable.items()]
    details += map(" ".join, index.links_out(filename, build_id).items())
    detail = "; ".join(details[:MAX_DETAILS])
    return BinaryMatch(reason=reason, detail=detail, tried=tried)


def _by_identity(index: BinaryIndex, build_id: str, filename: str) -> BinaryMatch:
    """The files with an id, whatever its kind and spelling."""
    identity = parse_build_id(build_id)
    if identity is None:
        return BinaryMatch(reason=Reason.BAD_BUILD_ID, detail=repr(build_id[:MAX_SHOWN_BUILD_ID]))
    if identity.kind is IdKind.FOREIGN:
        return BinaryMatch(reason=Reason.NOT_ELF, detail=f"module id {identity.text}")
    if identity.kind in (IdKind.GO, IdKind.HASH):
        return _by_other_id(index, identity, filename)
    return _by_build_id(index, identity, filename)


def _by_other_id(index: BinaryIndex, identity: BuildId, filename: str) -> BinaryMatch:
    """The file with a build id of Go or a hash, and with it those that share its build id (R321, build ids of OTLP)."""
    entries = index.with_other_id(identity)
    name = shown(identity.text if identity.kind is IdKind.HASH else f"Go build id {identity.text}")
    if not entries:
        return _missing(index, filename, [Attempt(name, NOTHING)])
    tried = Attempt(name, f"found {', '.join(entry.path for entry in entries[:MAX_FILES])}")
    builds = {entry.build_id or "" for entry in entries}
    if len(builds) > 1:
        detail = " and ".join(entry.described for entry in entries[:3])
        return BinaryMatch(reason=Reason.AMBIGUOUS, detail=detail, tried=[tried])
    (build_id,) = builds
    if build_id:
        found = _by_identity(index, build_id, filename)
        return replace(found, tried=(tried, *found.tried))
    return _with_files(BinaryMatch(verified=True, tried=[tried]), index, entries, filename)


def _by_build_id(index: BinaryIndex, identity: BuildId, filename: str) -> BinaryMatch:
    wanted, prefix = identity.text, identity.prefix
    entries = index.with_build_id(wanted)
    place = f"build id {prefix}… (module id {wanted})" if prefix else f"build id {wanted}"
    in_layout = index.with_build_id_in_path(wanted)
    unpacked: list[Entry] = []
    tried: list[Attempt] = []
    if not any(entry.has_dwarf for entry in entries) or not any(entry.has_code for entry in entries):
        unpacked, tried = _unpacked(index, in_layout, wanted)
        entries = [*entries, *(entry for entry in unpacked if entry.build_id is not None)]
    if prefix and len(builds := {build_id_key(entry.build_id or "") for entry in entries}) > 1:
        detail = " and ".join(entry.described for entry in entries[:3])
        return BinaryMatch(
            reason=Reason.AMBIGUOUS, detail=detail, tried=[Attempt(place, f"{len(builds)} builds"), *tried]
        )
    if entries:
        paths = ", ".join(entry.path for entry in ranked(entries, filename))
        found = BinaryMatch(
            build_id=(prefix and entries[0].build_id) or wanted,
            verified=True,
            tried=[Attempt(place, f"found {paths}"), *tried],
        )
        return _with_files(found, index, entries, filename)
    without_build_id, attempts = _by_layout(in_layout, wanted)
    tried = [Attempt(place, NOTHING), *tried, *attempts]
    if without_build_id or unpacked:
        return _with_files(BinaryMatch(tried=tried), index, [*without_build_id, *unpacked], filename)
    name = base_name(filename)
    others = [entry for entry in in_layout if entry.what == store.ELF and entry.build_id is not None]
    if name:
        named = list(dict.fromkeys([*index.at_path(filename), *index.with_name(name)]))
        tried += [Attempt(other.path, f"has {other.build_id or 'no build id'}, wanted {wanted}") for other in named]
        others += [entry for entry in named if entry not in others]
    if others:
        tried += [Attempt(*each) for each in index.links_out(filename, wanted).items()]
        detail = f"{others[0].path} has {others[0].build_id or 'no build id'}"
        return BinaryMatch(reason=Reason.BUILD_ID_DIFFERS, detail=detail, tried=tried)
    return _missing(index, filename, tried, wanted)


def _by_layout(in_layout: list[Entry], wanted: str) -> tuple[list[Entry], list[Attempt]]:
    """The files without a build id of their own to which the layout of their folder gives one.

    They stay unverified: the checks for files that have the right name only apply to them.
    """
    taken, tried = [], []
    for entry in in_layout:
        if entry.what == store.EMPTY:
            outcome = "is empty: another program looked for this build id and did not find it"
        elif entry.what != store.ELF:
            continue
        elif entry.build_id is not None and not same_build_id(entry.build_id, wanted):
            outcome = f"is where {wanted} belongs, and has {entry.build_id}"
        else:
            outcome = "has no build id; found by the layout of the folder, unverified"
            taken.append(entry)
        tried.append(Attempt(entry.path, outcome))
    return taken, tried


def _unpacked(index: BinaryIndex, in_layout: list[Entry], wanted: str) -> tuple[list[Entry], list[Attempt]]:
    """The compressed files that hold one with the wanted build id or none, decompressed."""
    taken, tried = [], []
    for entry in in_layout:
        if entry.what != store.PACKED:
            continue
        unpacked, problem = index.unpacked(entry)
        if unpacked is None:
            outcome = problem
        elif unpacked.build_id is not None and not same_build_id(unpacked.build_id, wanted):
            outcome = f"is compressed and has {unpacked.build_id}, wanted {wanted}"
        else:
            outcome = f"is compressed, decompressed as {unpacked.path}"
            taken.append(unpacked)
        tried.append(Attempt(entry.path, outcome))
    return taken, tried


def _with_files(match: BinaryMatch, index: BinaryIndex, entries: list[Entry], filename: str) -> BinaryMatch:
    """`match` with `entries` and the debug files that they name."""
    linked, tried = linked_files(index, entries, filename)
    chosen = [*ranked(entries, filename), *linked]
    paths = unique([entry.path for entry in chosen])
    build_ids = {entry.path: entry.build_id or "" for entry in chosen}
    return replace(
        match,
        paths=paths,
        tried=(*match.tried, *tried, *beside(index, entries)),
        named=named_files(index, paths, filename) if sum(entry.has_code for entry in chosen) > 1 else {},
        expected={path: own for path, own in build_ids.items() if not same_build_id(own, match.build_id)},
        has_code=any(entry.has_code for entry in chosen),
        has_dwarf=any(entry.has_dwarf for entry in chosen),
    )


def _completed(match: BinaryMatch, index: BinaryIndex, build_id: str, fetch: bool) -> BinaryMatch:
    """`match` with what is missing of the binary with this build id, and with what of that servers have.

    Fetched files replace files that matched only by the layout of their folder.
    """
    if match.reason in (Reason.BAD_BUILD_ID, Reason.NOT_ELF, Reason.AMBIGUOUS):
        return match
    is_by_layout = bool(match.paths) and match.build_id == ""
    kinds = missing_kinds(build_id, match.has_code and not is_by_layout, match.has_dwarf and not is_by_layout)
    match = replace(match, wanted=kinds, wanted_id=build_id if kinds else "")
    if index.servers is None or not fetch:
        return match
    answers = fetch_in_turn(index.servers.fetch, build_id, kinds)
    match = replace(match, tried=(*match.tried, *(each for answer in answers.values() for each in answer.attempts)))
    fetched = [answer.path for answer in answers.values() if answer.path is not None]
    if not fetched:
        return match
    # What was not asked for was not needed; an executable that was never stripped has it all.
    wanted = [kind for kind, answer in answers.items() if answer.path is None]
    if "debuginfo" in wanted and any(offers(path) & DWARF for path in fetched):
        wanted.remove("debuginfo")
    if is_by_layout or not match.paths:
        match = replace(
            match, paths=[], expected={}, build_id=build_id, verified=True, reason=Reason.SYMBOLIZED, detail=""
        )
    return replace(match, paths=unique([*match.paths, *fetched]), wanted=wanted)


def binary_files(index: BinaryIndex, entries: list[Entry]) -> list[Entry]:
    """The files of one binary that are opened, of all that share its build id; its linked debug files among them."""
    return [*ranked(entries), *linked_files(index, entries)[0]]


def ranked(entries: list[Entry], filename: str = "") -> list[Entry]:
    """The files of one build that are worth opening, in their order: of many copies those that offer most.

    Files that are called as the recorded `filename` come first, because others with the same build id may be of another
    build (R248, one build id, several builds). Debug information beats symbols, and one file with code is always kept:
    it has the segments.
    """
    if len(entries) <= MAX_FILES:
        return entries
    name = base_name(filename)

    def rank(entry: Entry) -> tuple[bool, int, str, str]:
        is_called = bool(name) and entry.relative.rpartition("/")[2].startswith(name)
        return not is_called, entry.rank, entry.relative, entry.path

    best = sorted(entries, key=rank)
    chosen = best[: MAX_FILES - 1]
    if not any(entry.has_code for entry in chosen):
        chosen += [entry for entry in best if entry.has_code][:1]
    return [entry for entry in entries if entry in (chosen or best)]


def named_files(index: BinaryIndex, paths: Iterable[str], filename: str) -> dict[str, str]:
    """Which of the files at `paths` the recorded `filename` names, by "path" or by "name"."""
    wanted = set(paths)
    called = index.with_name(base_name(filename).rpartition("!")[2])
    named = {entry.path: "name" for entry in called if entry.path in wanted}
    return named | {entry.path: "path" for entry in index.at_path(filename) if entry.path in wanted}


def shown(name: str) -> str:
    """A recorded name for a message, cut off where it is absurdly long."""
    return name if len(name) <= MAX_SHOWN else name[:MAX_SHOWN] + "…"


class SpecialFile(NamedTuple):
    """A file: where it is, below which of the roots, and its path relative to that."""

    path: str
    root: int
    relative: str

    @property
    def name(self) -> str:
        """The name without folders."""
        return self.relative.rpartition("/")[2]


class SpecialFiles:
    """The special files that an index knows. `problems` lists what could not be read."""

    def __init__(self, index: BinaryIndex) -> None:
        self._index = index
        self._by_kind: dict[str, list[SpecialFile]] = {}
        self._walks = 0
        self.problems: list[str] = []

    def of_kind(self, kind: str) -> list[SpecialFile]:
        """The files of one of the kinds of SPECIAL_NAMES, in order of roots and paths, each once."""
        if self._walks != self._index.walks:
            self._walks = self._index.walks
            self._by_kind.clear()
        if kind not in self._by_kind:
            entries = self._index.special(SPECIAL_NAMES[kind])[:MAX_SPECIAL]
            self._by_kind[kind] = [SpecialFile(entry.path, entry.root, entry.relative) for entry in entries]
        return self._by_kind[kind]

    def head(self, path: str, size: int) -> bytes:
        """The first `size` bytes of a regular file, fewer if it is shorter, none if it cannot be read."""
        return self.part(path, 0, size)

    def part(self, path: str, offset: int, size: int) -> bytes:
        """`size` bytes of a regular file from `offset` on, fewer if it ends before, none if it cannot be read."""
        try:
            with open(open_regular(path), "rb") as file:
                file.seek(offset)
                return file.read(size)
        except OSError as error:
            self.tell(f"{path}: {os_error_text(error)}")
            return b""

    def read(self, path: str, limit: int) -> bytes | None:
        """The contents of a regular file of at most `limit` bytes; None, with a problem, if it is none."""
        try:
            data = read_limited(path, limit)
        except OSError as error:
            self.tell(f"{path}: {os_error_text(error)}")
            return None
        if data is None:
            self.tell(f"{path}: is larger than the {limit} bytes that are read of such a file")
        return data

    def tell(self, problem: str) -> None:
        """Remember a problem, once."""
        if problem not in self.problems:
            self.problems.append(problem)

"""The order of the stages: match, look up, demangle, expand. The only module that knows it."""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from symbolize.arrays import distinct
from symbolize.binaries import (
    BinaryIndex,
    Found,
    Listener,
    Servers,
    complete,
    find_candidates,
    find_recorded,
    missing_kinds,
    module_prefix,
    plain_build_id,
)
from symbolize.binaries import roots_from_environment as roots_from_environment
from symbolize.cursor import uncompiled
from symbolize.elf import without_tag
from symbolize.embedded import EmbeddedNames, disagreeing, embedded_names, united
from symbolize.errors import UsageError
from symbolize.expand import Resolved, demangle_embedded, demangle_existing, expand, named_locations, set_flags
from symbolize.in_file import placing, settle
from symbolize.match import assign_mappings, covers_everything, doubt
from symbolize.names import MODES, Mode, demangle
from symbolize.profile import NONE, AddressKind, Profile, compact, used_locations
from symbolize.reasons import Reason
from symbolize.report import FoldedCode, MappingOutcome, Report, build_report
from symbolize.resolve import (
    Candidate,
    Choice,
    OpenBinaries,
    Verdict,
    calls_of,
    choose,
    judge,
    place_in_images,
)
from symbolize.special import Recorded, Source, SpecialSources
from symbolize.symbols import Binary, ListedBinary, SymbolTable, TableCache, lookup_nearest

if TYPE_CHECKING:
    from symbolize.deobfuscate import Deobfuscator

UInt8 = NDArray[np.uint8]

Progress = Callable[[int, int, str], None]
"""Told before each binary is asked: the mapping it is first needed for, of how many, and the name of that mapping."""


class Placed(NamedTuple):
    """Locations of one mapping with the vaddrs that they have in its binary.

    `embedded` are the names that they came with, if these are to be compared with what is found.
    """

    outcome: MappingOutcome
    rows: NDArray[np.int64]
    vaddrs: NDArray[np.uint64]
    embedded: EmbeddedNames | None = None


class Settled(NamedTuple):
    """What was found out of a mapping whose addresses are those in a file: their distance from vaddrs, and the build id
    of the file, empty if it is not proven."""

    mapping: int
    rows: NDArray[np.int64]
    distance: int
    build_id: str


PROCESS_LABELS = (b"pid", b"process_id", b"process.pid", b"tgid")
"""Labels of samples that name the process."""

MAX_DIFFERING = 3
"""Builds with the same build id that are reported one by one."""
MAX_SHOWN = 400
"""Characters of a recorded path that are told."""

LINKER = re.compile(r"linker(?:64|_asan|_asan64)?(?:\.debug|\.dbg)?|[0-9a-f]{40}-linker(?:64)?")
"""What files of Android's dynamic linker are called."""


@dataclass(frozen=True, eq=False)
class Result:
    """A symbolized profile and the report of what was and was not symbolized.

    `resolved` tells which locations of the profile got the lines of a lookup, and not those they came with: bool[n].
    """

    profile: Profile
    report: Report
    resolved: NDArray[np.bool_]


@dataclass(eq=False)
class Matched:
    """A profile whose mappings have their binaries: what is to be asked of each, and what came of the others.

    `rows_of` are the locations of each mapping, `reasons` a reason for each location that will not be asked for.
    `settled` tells of mappings whose addresses are yet to become vaddrs.
    """

    rows_of: list[NDArray[np.int64]]
    outcomes: list[MappingOutcome]
    asked: list[tuple[Binary | ListedBinary, list[Placed]]]
    reasons: UInt8
    settled: list[Settled]


class Question(NamedTuple):
    """What a profile asks of a binary: a name for its files by their contents, each path with the build id that it has
    to have, and the vaddrs, distinct and ascending."""

    key: str
    files: tuple[tuple[str, str], ...]
    vaddrs: NDArray[np.uint64]


class Tables(Protocol):
    """Symbol tables that were made ahead for the addresses of many profiles."""

    def find(self, binary: Binary, vaddrs: NDArray[np.uint64]) -> SymbolTable | None:
        """The table that answers for all of `vaddrs` (ascending), None if there is none."""


class Symbolizer:
    """Symbolizes profiles with the binaries below some folders, which stay open from profile to profile.

    What is missing there is fetched from `servers` by build id; see `symbolize.binaries.debuginfod.Debuginfod`. Without
    folders and servers a profile is only checked and compacted. `demangle` is "default", "templates", "full" or
    "none", as pprof understands them. Symbol tables are kept in `cache` from run to run, if there is one. With
    `nearest_line` frames without a line get the nearest earlier one of their function, which the report counts
    (rule R170). Java methods get the names of the source by `proguard_maps`, each
    "FILE" or "PACKAGE=FILE" (rules R171 to R174). `annotate` puts behind the names of Android's Java frames how their
    code ran (rule R234). What `tables` answers for is not decoded. A context manager; `close` closes the binaries.
    """

    def __init__(
        self,
        binaries: Sequence[str | os.PathLike[str]] = (),
        *,
        demangle: Mode = "default",
        cache: TableCache | None = None,
        servers: Servers | None = None,
        nearest_line: bool = False,
        proguard_maps: Sequence[str] = (),
        annotate: bool = False,
        tables: Tables | None = None,
    ) -> None:
        if demangle not in MODES:
            raise UsageError(f"unknown demangling mode {demangle!r}; the modes are {', '.join(MODES)}")
        roots = [os.fspath(folder) for folder in binaries]
        for root in roots:
            if not os.path.exists(root):
                raise UsageError(f"--binaries {root}: no such folder or file")
        self._servers = None if servers is None else Listener(servers)
        self._index = BinaryIndex(roots, cache.base if cache is not None else None, self._servers)
        self._opened = OpenBinaries(self._index, cache)
        self._special = SpecialSources(self._index, self._opened.one)
        self._cache = cache
        self._tables = tables
        self._mode: Mode = demangle
        self._nearest_line = nearest_line
        self._annotate = annotate
        self._deobfuscator = deobfuscator(proguard_maps) if proguard_maps else None
        self._told: set[str] = set()

    def symbolize(self, profile: Profile, progress: Progress | None = None) -> Result:
        """Look up every address of `profile`; the profile is changed and handed back in the result."""
        return self.finish(profile, self.match(profile), progress)

    def finish(self, profile: Profile, matched: Matched, progress: Progress | None = None) -> Result:
        """Look up what `match` found to ask; the profile is changed and handed back in the result."""
        rows_of, outcomes, reasons = matched.rows_of, matched.outcomes, matched.reasons
        write_settled(profile, matched.settled)
        lookups: list[Resolved] = []
        folded: list[FoldedCode] = []
        for binary, places in matched.asked:
            if progress is not None:
                first = places[0].outcome.mapping
                name = profile.strings.text(profile.mappings.filename[first]) if first != NONE else ""
                progress(max(first, 0), len(profile.mappings), name)
            resolved, shared = look_up(binary, places, reasons, self._mode, self._nearest_line, self._tables)
            lookups.append(resolved)
            folded += shared
        had_names = named_locations(profile)
        replaced = np.zeros(len(profile.locations), np.bool_)
        if self._index.has_places:
            demangle_existing(profile, self._mode)
            if len(profile.address_kinds):
                demangle_embedded(profile, self._mode)
            replaced = expand(profile, lookups, self._mode)
            for code in folded:
                code.rows = code.rows[replaced[code.rows]]
            folded = [code for code in folded if len(code.rows)]
            touched = np.array([len(rows) > 0 for rows in rows_of], np.bool_)
            set_flags(profile, touched)
        reasons[had_names & ~replaced] = Reason.HAD_NAMES
        for outcome in outcomes:
            if outcome.failures and outcome.mapping != NONE:
                blame_servers(outcome, rows_of[outcome.mapping], reasons)
        approximate = np.zeros(len(profile.locations), np.bool_)
        for lookup in lookups:
            if lookup.approximate is not None:
                approximate[lookup.rows] = lookup.approximate & replaced[lookup.rows]
        if self._deobfuscator is None and profile.obfuscation is not None:
            self._deobfuscator = deobfuscator(())
        if self._deobfuscator is not None:
            renamed = self._deobfuscator.apply(profile)
            changed = np.zeros(len(profile.mappings) + 1, np.bool_)  # the last is for no mapping
            changed[profile.locations.mapping[renamed]] = True
            set_flags(profile, changed[:-1])
        warnings = [*profile.warnings, *self._new_problems()]
        if not len(profile.samples):
            warnings.append("the profile has no samples")
        report = build_report(profile, reasons, outcomes, warnings, folded, approximate)
        by_lookup, profile = replaced[used_locations(profile)], compact(profile)
        if self._annotate:
            from symbolize.annotate import annotate

            profile, rows = annotate(profile)
            by_lookup = by_lookup[rows]
        return Result(profile, report, by_lookup)

    def plan(self, profile: Profile) -> Report:
        """The report on what would be used for `profile`, and what would be missed, without looking anything up.

        Locations whose binary is there count as symbolized. The mappings of `profile` are assigned.
        """
        matched = self.match(profile)
        for binary, places in matched.asked:
            for placed in places:
                matched.reasons[placed.rows] = Reason.SYMBOLIZED
                placed.outcome.state = (
                    "kept table" if isinstance(binary, Binary) and binary.is_cached() else "to decode"
                )
        matched.reasons[named_locations(profile) & (matched.reasons > Reason.HAD_NAMES)] = Reason.HAD_NAMES
        warnings = [*profile.warnings, *self._new_problems()]
        return build_report(profile, matched.reasons, matched.outcomes, warnings)

    def match(self, profile: Profile) -> Matched:
        """Find the binary of each mapping, and where the locations of the mapping lie in it."""
        assign_mappings(profile)
        rows_of = rows_by_mapping(profile)
        callers = call_sites(profile)
        reasons = np.full(len(profile.locations), Reason.NO_MAPPING, np.uint8)
        outcomes: list[MappingOutcome] = []
        # A binary that is mapped several times is asked once.
        asked: dict[int, tuple[Binary | ListedBinary, list[Placed]]] = {}
        settled: list[Settled] = []
        no_rows = np.zeros(0, np.int64)
        recorded = [record(profile, mapping, no_rows, callers) for mapping in range(len(profile.mappings))]
        self._special.prepare(recorded, processes(profile))
        self._prefetch(profile, rows_of)
        for mapping in [*range(len(profile.mappings)), NONE]:
            outcome = MappingOutcome(mapping)
            outcomes.append(outcome)
            rows = rows_of[mapping] if mapping != NONE else homeless(profile)
            source = self._source(profile, rows, callers, outcome, settled) if len(rows) else None
            if self._servers is not None:
                outcome.failures, self._servers.failures = self._servers.failures, []
            if source is not None and source.binary is not None:
                placed = place_locations(profile, rows, callers, source, outcome)
                if placed is None:  # a file that is refused settles nothing
                    settled = [each for each in settled if each.mapping != mapping]
                else:
                    if kind_of(profile, mapping) in (AddressKind.IN_FILE, AddressKind.KERNEL):
                        placed = placed._replace(embedded=embedded_names(profile, placed.rows))
                    asked.setdefault(id(source.binary), (source.binary, []))[1].append(placed)
                    reasons[rows] = Reason.OUTSIDE_SEGMENTS
            if outcome.reason.is_miss:
                reasons[rows] = outcome.reason
            self._opened.close_unused()
        return Matched(rows_of, outcomes, list(asked.values()), reasons, settled)

    def open_questions(self, matched: Matched) -> list[Question]:
        """What has to be decoded for a profile: of each binary without a table at hand, the vaddrs that are asked."""
        questions = []
        for binary, places in matched.asked:
            files = self._opened.files_of(binary) if isinstance(binary, Binary) else None
            if not isinstance(binary, Binary) or files is None or binary.is_cached():
                continue
            vaddrs = distinct(np.concatenate([placed.vaddrs for placed in places]))
            if len(vaddrs) and (self._tables is None or self._tables.find(binary, vaddrs) is None):
                questions.append(Question(binary.key, tuple(files), vaddrs))
        return questions

    def binary_of(self, question: Question) -> Binary | None:
        """The binary that a question is for, opened; None if its files are not there any more or have changed."""
        paths = [path for path, _ in question.files]
        found = Found(paths, expected=dict(question.files))
        opened = self._opened.open(found)
        self._opened.use(found)
        return next((binary for binary in opened.binaries if binary.key == question.key), None)

    @property
    def open_binaries(self) -> int:
        """How many binaries, and other files with names, are open or kept in memory."""
        return len(self._opened) + self._special.count

    def _prefetch(self, profile: Profile, rows_of: Sequence[NDArray[np.int64]]) -> None:
        """Begin to fetch what no folder has, for the heaviest mappings first."""
        if self._index.servers is None:
            return
        weights = weight_of_mappings(profile)
        wanted: dict[tuple[str, str], float] = {}
        for mapping in range(len(profile.mappings)):
            build_id = profile.strings.text(profile.mappings.build_id[mapping])
            if build_id and len(rows_of[mapping]):
                key = build_id, profile.strings.text(profile.mappings.filename[mapping])
                wanted[key] = wanted.get(key, 0.0) + float(weights[mapping])
        founds = [(find_recorded(self._index, *key, fetch=False), weight) for key, weight in wanted.items()]
        self._index.servers.prefetch(
            (found.wanted_id, found.wanted, weight) for found, weight in founds if found.wanted
        )

    def _new_problems(self) -> list[str]:
        """The problems with the installation, folders and the cache that were not reported before."""
        slow = uncompiled()
        problems = [
            *([slow] if slow is not None else ()),
            *self._index.problems,
            *self._special.problems,
            *(self._deobfuscator.problems if self._deobfuscator is not None else ()),
            *(self._cache.problems if self._cache is not None else ()),
        ]
        problems = [problem for problem in problems if problem not in self._told]
        self._told.update(problems)
        return problems

    def close(self) -> None:
        """Close all binaries."""
        self._opened.close()
        self._special.close()
        self._index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _source(
        self,
        profile: Profile,
        rows: NDArray[np.int64],
        callers: NDArray[np.bool_],
        outcome: MappingOutcome,
        settled: list[Settled],
    ) -> Source | None:
        """What answers for the locations `rows` of a mapping; None with the reason in `outcome`.

        `settled` gets what was found out of a mapping whose addresses are those in a file.
        """
        recorded = record(profile, outcome.mapping, rows, callers)
        if recorded.start == recorded.limit == 0 and not recorded.addresses.any():
            outcome.reason = Reason.NO_ADDRESS
            return None
        kind = kind_of(profile, outcome.mapping)
        if kind == AddressKind.IN_FILE and not recorded.build_id and self._index.has_places:
            embedded = embedded_names(profile, rows)
            choice = self._find_in_file(recorded, embedded, outcome)
            if choice.candidate is None or choice.verdict.reading is None:
                return None
            binary, reading = choice.candidate.binary, choice.verdict.reading
            build_id = binary.loaded.build_id or choice.candidate.found.build_id
            settled.append(Settled(outcome.mapping, rows, reading.distance, build_id if outcome.verified else ""))
            return Source(binary, placing(binary, reading))
        if kind == AddressKind.KERNEL:
            names, of_row = embedded_names(profile, rows)
            named = np.flatnonzero(of_row != NONE)
            linked = [names[i].linked or names[i].shown for i in of_row[named].tolist()]
            recorded = recorded._replace(names=list(zip(recorded.addresses[named].tolist(), linked, strict=True)))
        source = None
        if kind == AddressKind.NO_BINARY and self._index.has_places:
            source = self._special.compiled(recorded)
            if source is None:
                outcome.reason = Reason.NOT_A_FILE
                return None
        elif self._index.has_places:
            if outcome.mapping == NONE:
                source = self._special.without_mapping(recorded.addresses)
            else:
                source = self._special.find(recorded)
        if source is not None:
            take_over(outcome, source)
            if source.binary is None:
                outcome.wanted = list(missing_kinds(recorded.build_id, True, False))
                outcome.wanted_id = plain_build_id(recorded.build_id)
            return source
        if outcome.mapping == NONE:
            outcome.reason = Reason.NO_MAPPING
            return None
        found = self._find(recorded, outcome, settled)
        if self._index.has_places and (found is None or found.is_stripped):
            source = self._special.symbols_for(recorded, found.images if found is not None else ())
            if source is not None and (source.binary is not None or outcome.reason == Reason.NOT_FOUND):
                source.tried = [*outcome.tried, *source.tried]
                take_over(outcome, source)
                return source
        return Source(found) if found is not None else None

    def _find_in_file(self, recorded: Recorded, embedded: EmbeddedNames, outcome: MappingOutcome) -> Choice:
        """Which binary addresses in a file without a build id are of, and what they count from; fills `outcome`."""
        candidates: list[Candidate] = []
        special = self._special.find(recorded)
        if special is not None and isinstance(special.binary, Binary):
            found = Found(special.files, special.binary.images[0].build_id or "")
            candidates.append(Candidate("special", found, special.binary))
        known = {path for candidate in candidates for path in candidate.found.paths}
        others = find_candidates(self._index, recorded.filename)
        founds = [(place, found) for place, found in others.found if known.isdisjoint(found.paths)]
        unreadable = self._open_candidates(candidates, founds)
        unreadable += [f"{path}: {why}" for path, why in others.left_out if why.startswith("cannot be used")]
        if not candidates:
            outcome.reason = Reason.UNREADABLE if unreadable else Reason.NOT_FOUND
            outcome.detail = "; ".join(unreadable)
            path = recorded.filename[:MAX_SHOWN]
            name = path.rpartition("/")[2]
            outcome.tried = [
                (f"path {path.lstrip('/')}", "nothing there"),
                (f"name {name}", "nothing there"),
            ]
            outcome.tried = [*(special.tried if special is not None else ()), *outcome.tried]
            return Choice()

        def judge_in_file(binary: Binary) -> Verdict:
            facts = recorded.filename, recorded.addresses, recorded.is_call, embedded
            return settle(binary, *facts, is_one_of_several=len(candidates) > 1)

        choice = choose(candidates, judge_in_file)
        outcome.tried, outcome.reason, outcome.detail = [*choice.tried, *others.left_out], choice.reason, choice.detail
        if choice.candidate is None:
            if (embedded.of_location != NONE).all():  # no location is missed, but lines and inlined functions are
                outcome.problems.append(choice.detail)
            return choice
        outcome.verified = choice.verdict.agreement.is_proof
        self._take(choice, outcome, unreadable, is_fetched=outcome.verified)
        return choice

    def _open_candidates(self, candidates: list[Candidate], founds: Iterable[tuple[str, Found]]) -> list[str]:
        """Add the builds that some files are of to `candidates`; returns which files cannot be read, and why."""
        unreadable: list[str] = []
        for how, found in founds:
            builds, problems = self._opened.candidates(how, found)
            candidates += builds
            unreadable += problems
        return unreadable

    def _take(self, choice: Choice, outcome: MappingOutcome, unreadable: Sequence[str], *, is_fetched: bool) -> None:
        """Let the candidate that was chosen answer for a mapping, with what servers have of it if that `is_fetched`."""
        assert choice.candidate is not None
        found, same = choice.candidate.found, [each for each in choice.rejected if each.found is choice.candidate.found]
        if is_fetched and found.build_id:
            before = list(found.paths)
            complete(self._index, found)
            outcome.wanted, outcome.wanted_id = list(found.wanted), found.wanted_id
            if found.paths != before:
                remade = self._opened.with_file(choice.candidate.path, found)
                if remade is not None:
                    choice.candidate = choice.candidate._replace(binary=remade)
                else:
                    found.paths = before
        self._opened.use(found)
        binary = choice.candidate.binary
        differing = [binary.differs_from(each.binary) for each in same[:MAX_DIFFERING]]
        if len(same) > MAX_DIFFERING:
            differing.append(f"{len(same) - MAX_DIFFERING} more builds have the build id of {choice.candidate.path}")
        outcome.problems += [*unreadable, *differing, *binary.refused]
        outcome.files = [image.path for image in binary.files]

    def _find(self, recorded: Recorded, outcome: MappingOutcome, settled: list[Settled]) -> Binary | None:
        """The binary of a mapping, opened; None with the reason in `outcome`. `settled` gets a whole build id of which
        the profile has a part."""
        filename, build_id = recorded.filename, recorded.build_id
        if not self._index.has_places:
            outcome.reason = Reason.NOT_ASKED
            return None
        stand_in = covers_everything(np.uint64(recorded.start), np.uint64(recorded.limit))
        if stand_in and not build_id and not filename:
            outcome.reason = Reason.NO_MAPPING
            return None
        found = find_recorded(self._index, build_id, filename)
        outcome.tried, outcome.verified = found.tried, found.verified
        outcome.reason, outcome.detail = found.reason, found.detail
        outcome.wanted, outcome.wanted_id = list(found.wanted), found.wanted_id
        if not found.paths and not found.candidates:
            return None
        candidates: list[Candidate] = []
        unreadable = self._open_candidates(candidates, found.candidates or [("build id", found)])
        if not candidates:
            outcome.reason, outcome.detail = Reason.UNREADABLE, "; ".join(unreadable)
            return None
        if len(candidates) == 1:
            choice = Choice(candidates[0])
        else:
            choice = choose(candidates, lambda binary: judge(recorded, binary, verified=found.verified))
            outcome.tried = [*outcome.tried, *choice.tried]
        outcome.reason, outcome.detail = choice.reason, choice.detail
        if choice.candidate is None:
            outcome.verified = False
            return None
        self._take(choice, outcome, unreadable, is_fetched=bool(found.candidates))
        if module_prefix(build_id) and found.verified:
            settled.append(Settled(outcome.mapping, np.zeros(0, np.int64), 0, found.build_id))
        return choice.candidate.binary


def place_locations(
    profile: Profile, rows: NDArray[np.int64], callers: NDArray[np.bool_], source: Source, outcome: MappingOutcome
) -> Placed | None:
    """Where the locations `rows` of one mapping lie in `source`; None, with the reason in `outcome`, if they cannot.

    `callers` marks the locations that are call sites.
    """
    binary, recorded = source.binary, record(profile, outcome.mapping, rows, callers)
    placed = None
    if source.place is not None:
        placed = source.place(recorded.addresses)
    elif isinstance(binary, Binary):
        placed, outcome.detail = place_in_images(recorded, binary, verified=outcome.verified)
    if placed is not None and not outcome.verified and isinstance(binary, Binary):
        outcome.detail = doubt(calls_of(binary, placed, recorded.is_call))
    if placed is None or outcome.detail:
        outcome.reason = Reason.MISFIT
        outcome.detail = ", ".join(outcome.files) + (f" is {outcome.detail}" if outcome.detail else "")
        outcome.files = []
        return None
    vaddrs, inside = placed
    vaddrs = vaddrs[inside]
    if isinstance(binary, Binary):
        shift = binary.shift if source.place is None else 0
        vaddrs = without_tag(binary.images[0], vaddrs + np.uint64(shift))
    return Placed(outcome, rows[inside], vaddrs)


def look_up(
    binary: Binary | ListedBinary,
    places: Sequence[Placed],
    reasons: UInt8,
    mode: Mode,
    nearest_line: bool = False,
    tables: Tables | None = None,
) -> tuple[Resolved, list[FoldedCode]]:
    """Look up all addresses of one binary at once; fills the `reasons` of their locations.

    Returns what was found, and the code among it that several functions share.
    """
    rows = np.concatenate([placed.rows for placed in places])
    vaddrs = np.concatenate([placed.vaddrs for placed in places])
    verified = np.repeat([placed.outcome.verified for placed in places], [len(placed.rows) for placed in places])
    order = np.argsort(vaddrs, kind="stable")
    rows, vaddrs, verified = rows[order], vaddrs[order], verified[order]
    approximate = None
    table = tables.find(binary, vaddrs) if tables is not None and isinstance(binary, Binary) else None
    if nearest_line:  # a table that was found is the whole one, and the binary's from now on
        table, frames, approximate = lookup_nearest(binary, vaddrs)
    else:
        table = table or binary.table(vaddrs)
        frames = table.lookup(vaddrs)
    for placed in places:
        placed.outcome.problems += table.problems
    if any(placed.embedded is not None for placed in places):
        embedded = united([placed.embedded for placed in places], [len(placed.rows) for placed in places])
        differs = disagreeing(EmbeddedNames(embedded.names, embedded.of_location[order]), frames.outermost())
        verified &= ~differs
        if differs.any():
            number = np.repeat(np.arange(len(places)), [len(placed.rows) for placed in places])[order]
            for placed, count in zip(places, np.bincount(number[differs], minlength=len(places)).tolist(), strict=True):
                tell_differences(placed.outcome, count)
    found = np.diff(frames.offsets) > 0
    missing = Reason.NO_SYMBOLS if binary.is_stripped else Reason.OUTSIDE_SYMBOLS
    corrupt = Reason.CORRUPT_DEBUG_INFO if table.has_names else Reason.UNREADABLE
    reasons[rows] = np.where(found, Reason.SYMBOLIZED, np.where(table.doubtful(vaddrs), corrupt, missing))
    folded = []
    for code, here in table.folded(vaddrs):
        readable = demangle([name for name, _, _ in code.functions], mode)
        functions = [
            (shown.decode(errors="replace"), name.decode(errors="replace"), path.decode(errors="replace"), line)
            for shown, (name, path, line) in zip(readable, code.functions, strict=True)
        ]
        path = binary.images[0].path
        folded.append(FoldedCode(path, code.begin, code.end, code.evidence, functions, rows[here]))
    of_linker = any(LINKER.fullmatch(os.path.basename(image.path)) for image in binary.images)
    return Resolved(rows, frames, verified, of_linker, approximate), folded


def deobfuscator(maps: Sequence[str]) -> "Deobfuscator":
    """What renames Java methods; imported when it is needed, because most profiles have none."""
    from symbolize.deobfuscate import Deobfuscator

    return Deobfuscator(maps)


def kind_of(profile: Profile, mapping: int) -> AddressKind:
    """What the addresses in a mapping are, and those in none."""
    return profile.address_kind(mapping) if mapping != NONE else AddressKind.PROCESS


def tell_differences(outcome: MappingOutcome, count: int) -> None:
    """Say that at some locations of a mapping the names that came with the profile stay."""
    if count:
        outcome.problems.append(
            f"at {count} addresses the profile has a name that the debug information does not confirm; it stays"
        )


def write_settled(profile: Profile, settled: Sequence[Settled]) -> None:
    """Make the addresses in files vaddrs, and give mappings the build ids of proven files."""
    locations, mappings = profile.locations, profile.mappings
    if settled:
        locations.address, mappings.build_id = locations.address.copy(), mappings.build_id.copy()
    for mapping, rows, distance, build_id in settled:
        locations.address[rows] += np.uint64(distance)
        if build_id:
            mappings.build_id[mapping] = profile.strings.add(build_id.encode())


def call_sites(profile: Profile) -> NDArray[np.bool_]:
    """Which locations stand on some stack above the leaf: bool[n]."""
    offsets = profile.samples.location_offsets
    above = np.ones(len(profile.samples.locations), np.bool_)
    above[offsets[:-1][np.diff(offsets) > 0]] = False
    sites = np.zeros(len(profile.locations), np.bool_)
    sites[profile.samples.locations[above]] = True
    return sites


def blame_servers(outcome: MappingOutcome, rows: NDArray[np.int64], reasons: UInt8) -> None:
    """Where servers failed that may have what the locations `rows` of a mapping miss, let that be the reason (R285,
    names missed by failures).

    That an address is no code of the file that was found is so with every file of the build.
    """
    missed = reasons[rows]
    missed = rows[(missed > Reason.HAD_NAMES) & (missed != Reason.OUTSIDE_SEGMENTS) & (missed != Reason.NO_ADDRESS)]
    if len(missed):
        reasons[missed] = Reason.SERVER_FAILED
        said = "; ".join(f"{place}: {text}" for place, text in outcome.failures)
        outcome.detail = f"{said}; {outcome.detail}" if outcome.detail else said


def take_over(outcome: MappingOutcome, source: Source) -> None:
    """Let the outcome of a mapping be what a special source says."""
    outcome.tried, outcome.verified, outcome.files = source.tried, source.verified, source.files
    outcome.reason, outcome.detail = source.reason, source.detail
    outcome.problems += source.problems


def record(profile: Profile, mapping: int, rows: NDArray[np.int64], callers: NDArray[np.bool_]) -> Recorded:
    """What the profile says about a mapping, and the addresses of its locations `rows`."""
    mappings, strings = profile.mappings, profile.strings
    addresses = profile.locations.address[rows]
    if mapping == NONE:
        return Recorded("", "", 0, 0, 0, addresses, callers[rows])
    return Recorded(
        strings.text(mappings.filename[mapping]),
        strings.text(mappings.build_id[mapping]),
        int(mappings.start[mapping]),
        int(mappings.limit[mapping]),
        int(mappings.file_offset[mapping]),
        addresses,
        callers[rows],
    )


def weight_of_mappings(profile: Profile) -> NDArray[np.float64]:
    """The sample value of the frames in each mapping."""
    samples, column = profile.samples, profile.weight_column()
    values = np.abs(samples.values[:, column].astype(np.float64)) if column >= 0 else np.ones(len(samples))
    mapping = profile.locations.mapping[samples.locations]
    value = np.repeat(values, np.diff(samples.location_offsets))
    inside = mapping != NONE
    return np.bincount(mapping[inside], value[inside], len(profile.mappings)).astype(np.float64)


def homeless(profile: Profile) -> NDArray[np.int64]:
    """The locations with an address that lies in no mapping."""
    return np.flatnonzero((profile.locations.mapping == NONE) & (profile.locations.address != 0))


def processes(profile: Profile) -> set[int]:
    """The processes that the labels of the samples name."""
    labels = profile.samples.labels
    keys = [key for key in distinct(labels.key).tolist() if profile.strings[key].lower() in PROCESS_LABELS]
    here = np.isin(labels.key, keys)
    found = set(distinct(labels.number[here & (labels.text == 0)]).tolist())
    texts = map(profile.strings.text, distinct(labels.text[here]).tolist())
    return (found | {int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 20}) - {0}


def rows_by_mapping(profile: Profile) -> list[NDArray[np.int64]]:
    """The locations of each mapping."""
    order = np.argsort(profile.locations.mapping, kind="stable")
    edges = np.searchsorted(profile.locations.mapping[order], np.arange(len(profile.mappings) + 1))
    return [order[edges[i] : edges[i + 1]] for i in range(len(profile.mappings))]

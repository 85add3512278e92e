"""The order of the stages: resolve, look up, enrich, report. The only module that knows it."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, NoReturn

import numpy as np

from symbolize.binaries import BinaryIndex, Servers
from symbolize.binaries.this_machine import ThisMachine
from symbolize.core.arrays import Bool, Float64, Int64, UInt32, UInt64
from symbolize.core.closing import Closeable
from symbolize.core.cursor import uncompiled
from symbolize.core.errors import ReadFailure, UsageError, check_type
from symbolize.core.folded_code import FoldedCode
from symbolize.core.reasons import Reason
from symbolize.core.verdict import Verdict, accepted
from symbolize.enrich.frames import (
    LookupResult,
    demangle_existing,
    expand,
    shown_functions,
)
from symbolize.options import DEFAULTS, Options
from symbolize.profile import (
    NONE,
    FunctionRow,
    HasProfile,
    Profile,
    calling_locations,
    choose_sample_type,
    combine,
    compact,
    named_locations,
    set_flags,
    used_locations,
    with_caveats,
)
from symbolize.report import FoldedRow, Report, build_report
from symbolize.resolve.arguments import Path, Paths, Urls, as_cache, as_paths, as_roots, as_servers
from symbolize.resolve.name_agreement import unconfirmed
from symbolize.resolve.resolution import Resolution, Resolutions, check_stacks, reader_of
from symbolize.resolve.resolver import MappingResolver, PendingDecode
from symbolize.symbols import Binary, Namesakes, SymbolListBinary, TableCache, Tables

if TYPE_CHECKING:
    from symbolize.core.disassembly import Disassembly
    from symbolize.enrich.deobfuscate import Deobfuscator
    from symbolize.formats.outputs import View

MAX_UNWINDING = 3
"""How often stacks are unwound if binaries turn out to be others, the last time with proven ones only."""

Progress = Callable[[int, int, str], None]
"""Called before each lookup: the first mapping of the binary, the number of mappings, and the name of that mapping."""


@dataclass(frozen=True, eq=False)
class Result:
    """A symbolized profile and the report of what was and was not symbolized.

    `resolved` marks the locations of the profile that got the lines of a lookup, not those they came with: bool[n].
    """

    profile: Profile
    report: Report
    resolved: Bool

    def __repr__(self) -> str:
        return f"<Result: {self.profile!r}, {self.report!r}>"

    def write(self, destination: Path | BinaryIO, *, emit: str | None = None, view: "View | None" = None) -> None:
        """Write the profile to a path, to `-` (standard output) or to a binary file object, in the format that its
        ending or `emit` chooses. Takes and raises what `symbolize.write` does."""
        from symbolize.formats import write

        write(self.profile, destination, emit=emit, view=view)

    def top(self, count: int = 10) -> list[FunctionRow]:
        """The functions with the largest value of their own, in the default sample type: name, `flat` (the value of the
        samples it is the leaf of) and `cumulative` (of those it is on the stack of). Unnamed code is
        `module!sub_START` or `[module]`."""
        return self.profile.top(count)


class Symbolizer(Closeable):
    """Symbolizes profiles with the binaries below some folders, which stay open from profile to profile.

    `binaries` is a path or several, the first that fits wins. What is missing there is fetched by build id from
    `servers`: a URL, several, or a client such as `symbolize.binaries.debuginfod.Debuginfod`. Without folders and
    servers a profile is only checked and compacted. `options` say how. Symbol tables are stored in `cache`, a folder or
    a `TableCache`. Binaries that `tables` covers are not decoded. Raises TypeError for an argument of another type,
    UsageError for a folder or server that cannot be.
    """

    def __init__(
        self,
        binaries: Paths = (),
        options: Options = DEFAULTS,
        *,
        cache: TableCache | Path | None = None,
        servers: Servers | Urls | None = None,
        tables: Tables | None = None,
    ) -> None:
        check_type("options", options, "Options", Options)
        self._roots, cache = as_roots(binaries), as_cache(cache)
        self._deobfuscator = deobfuscator(options.proguard_maps) if options.proguard_maps else None
        with ExitStack() as held:
            accept, local = accepted(options.accept), None
            if options.local:
                local = MappingResolver((), cache, None, max(accept, Verdict.SUPPORTED), machine=ThisMachine())
            self._resolver = MappingResolver(self._roots, cache, as_servers(servers, held), accept, local=local)
            held.callback(self._resolver.close)
            self._held = held.pop_all()
        self._cache = cache
        self._tables = tables
        self._options = options
        self._reported: set[str] = set()
        self._is_closed = False
        self._process = os.getpid()
        self._has_servers = servers is not None
        self._users: list[int] = []

    def symbolize(self, profile: Profile | HasProfile, progress: Progress | None = None) -> Result:
        """Look up every address of `profile`, or of that of a `Result`; the result has a profile of its own."""
        profile = Profile.of(profile, "profile").copy()
        return self.finish(profile, self.match(profile), progress)

    def match(self, profile: Profile) -> Resolutions:
        """Resolve each mapping: find its binary, and the vaddrs of its locations. Raises UsageError once closed, and
        ReadFailure if the file that has the stacks of `profile` changed.

        Copies of stacks in `profile` are replaced by the callers that are found in them.
        """
        with self._in_use():
            if sample_type := str(self._options.sample_type):
                choose_sample_type(profile, sample_type)
            try:
                resolutions = self._resolver.resolve_all(profile)
                if profile.stack_dumps is not None:
                    resolutions = self._unwind(profile, resolutions)
            finally:
                self._resolver.forget()
            if self._options.check_stacks or self._options.tail_calls:
                self._read_stacks(profile, resolutions)
            profile.sample_times = None
            return resolutions

    @contextmanager
    def _in_use(self) -> Iterator[None]:
        """Raise UsageError if the symbolizer cannot be used, or is closed by another thread in the block, whatever was
        raised for that."""
        if self._is_closed:
            raise UsageError("the Symbolizer is closed")
        process = os.getpid()
        if process != self._process and (self._has_servers or any(user != process for user in self._users)):
            raise UsageError(
                "the Symbolizer was in use, or has connections to servers, when this process was forked: make another"
            )
        self._users.append(process)
        try:
            yield
        except Exception as error:
            if self._is_closed:
                raise UsageError("the Symbolizer was closed while it was in use") from error
            raise
        finally:
            self._users.remove(process)
        if self._is_closed:
            raise UsageError("the Symbolizer was closed while it was in use")

    def _read_stacks(self, profile: Profile, resolutions: Resolutions) -> None:
        """Check stacks against call sites, and put callers back that tail calls took off them."""
        from symbolize.enrich.callers import insert_tail_callers

        reader = reader_of(profile, resolutions)
        if self._options.check_stacks:
            check_stacks(profile, resolutions, reader)
        if self._options.tail_calls:
            pairs, count = reader.pairs, len(profile.locations)
            vaddrs = insert_tail_callers(profile, pairs.caller, pairs.which, reader.vaddrs, reader.lost_callers())
            resolutions.insert(count + np.arange(len(vaddrs)), profile.locations.mapping[count:], vaddrs)

    def _unwind(self, profile: Profile, resolutions: Resolutions) -> Resolutions:
        """Unwind the stacks of a profile, and resolve its mappings again: the callers are evidence for binaries that
        only have the right name. Where one is refused the stacks are unwound without it (R316, evidence of callers)."""
        from symbolize.unwind import End, ListedCode, MappedCode, unwind

        code = self._resolver.unwinding(profile, resolutions)

        def find(mapping: int, is_last: bool) -> MappedCode | ListedCode | End:
            found = code.code(mapping, is_last)
            if found is not None:
                return MappedCode(*found)
            frames = code.frames(mapping)
            return ListedCode(frames) if frames is not None else End.NO_BINARY

        for number in range(1, MAX_UNWINDING + 1):
            unwound, reached, no_evidence = unwind(profile, partial(find, is_last=number == MAX_UNWINDING))
            resolutions = self._resolver.resolve_all(unwound, no_evidence)
            if not code.settle(reached, resolutions):
                break
        for name in (
            "strings",
            "samples",
            "locations",
            "warnings",
            "unknown",
            "stack_dumps",
            "sample_times",
            "stack_source",
        ):
            setattr(profile, name, getattr(unwound, name))
        return resolutions

    def finish(self, profile: Profile, resolutions: Resolutions, progress: Progress | None = None) -> Result:
        """Look up what `match` resolved; the profile is changed and handed back in the result."""
        with self._in_use():
            return self._finish(profile, resolutions, progress)

    def _finish(self, profile: Profile, resolutions: Resolutions, progress: Progress | None) -> Result:
        resolutions.write(profile)
        lookups, folded = self._look_up_all(profile, resolutions, progress)
        had_names = named_locations(profile)
        replaced = self._expand(profile, resolutions, lookups)
        resolutions.reasons[had_names & ~replaced] = Reason.HAD_NAMES
        for lookup, _ in lookups:
            if lookup.nameless is not None:
                resolutions.reasons[lookup.nameless] = Reason.CORRUPT_DEBUG_INFO
        resolutions.blame_failures()
        approximate = np.zeros(len(profile.locations), np.bool_)
        for lookup, _ in lookups:
            if lookup.answer.approximate is not None:
                approximate[lookup.rows] = lookup.answer.approximate & replaced[lookup.rows]
        self._deobfuscate(profile)
        if len(resolutions.inserted):
            from symbolize.enrich.callers import mark_tail_callers

            mark_tail_callers(profile, resolutions.inserted)
        folded = [replace(row, rows=rows) for row in folded if len(rows := row.rows[replaced[row.rows]])]
        if folded:
            folded, origin = self._name_by_callers(profile, folded, [lookup for lookup, _ in lookups])
            resolutions.add_locations(origin)
            replaced, approximate = (np.concatenate((column, column[origin])) for column in (replaced, approximate))
        warnings = [*profile.warnings, *(() if len(profile.samples) else ("the profile has no samples",))]
        problems = self._problems()
        report = build_report(profile, resolutions.reasons, resolutions.all, warnings, problems, folded, approximate)
        # Names that came along stay as sure as they were.
        profile = with_caveats(profile, report.caveats, keeps_earlier=report.had_names > 0)
        by_lookup, profile = replaced[used_locations(profile)], compact(profile)
        if self._options.annotate:
            from symbolize.enrich.annotate import annotate

            profile, rows = annotate(profile)
            by_lookup = by_lookup[rows]
        if self._options.edits:
            profile = combine(self._options.edits.apply(profile))
            report.own_warnings.extend(each for each in profile.warnings if each not in warnings)
            by_lookup, profile = by_lookup[used_locations(profile)], compact(profile)
        return Result(profile, report, by_lookup)

    def disassembly(self, profile: Profile | HasProfile, weights: Float64) -> "Disassembly":
        """The machine code of the functions of a symbolized `profile` that weigh most, from the binaries that are used
        for it; `weights` has one number for each location."""
        from symbolize.resolve.disassembly import disassembly

        with self._in_use():
            return disassembly(*self._matched_again(profile), weights, self._options.demangle)

    def discriminators(self, profile: Profile | HasProfile) -> UInt32:
        """The discriminator of each line of a symbolized `profile`, from the binaries that are used for it; 0 where
        none is known."""
        from symbolize.resolve.disassembly import discriminators

        with self._in_use():
            return discriminators(*self._matched_again(profile))

    def symbols_of(self, profile: Profile | HasProfile) -> tuple[UInt64, UInt64]:
        """How far each location of a symbolized `profile` is from the begin of its symbol, and the size of that, from
        the binaries that are used for it; 0 where none is known."""
        from symbolize.resolve.disassembly import symbols_of

        with self._in_use():
            return symbols_of(*self._matched_again(profile))

    def _matched_again(self, profile: Profile | HasProfile) -> tuple[Profile, Resolutions]:
        """A copy of a symbolized profile, and what its mappings are resolved to."""
        profile = Profile.of(profile, "profile").copy()
        resolutions = self._resolver.resolve_all(profile, also_named=True)
        self._resolver.forget()
        return profile, resolutions

    def plan(self, profile: Profile | HasProfile) -> Report:
        """The report on what would be used for `profile`, and what would be missed, without looking anything up.

        Locations whose binary is there count as symbolized. `profile` is not changed.
        """
        profile = Profile.of(profile, "profile").copy()
        resolutions = self.match(profile)
        for binary, answered in resolutions.by_binary():
            is_kept = isinstance(binary, Binary) and binary.is_cached()
            for each in answered:
                resolutions.reasons[each.rows] = Reason.SYMBOLIZED
                resolutions.note(each.mapping, state="kept table" if is_kept else "to decode")
        named = named_locations(profile) & (resolutions.reasons > Reason.HAD_NAMES)
        resolutions.reasons[named] = Reason.HAD_NAMES
        return build_report(profile, resolutions.reasons, resolutions.all, profile.warnings, self._problems())

    def pending_decodes(self, resolutions: Resolutions) -> list[PendingDecode]:
        """What has to be decoded for a profile: the binaries without a table, with the vaddrs to look up."""
        return self._resolver.pending_decodes(resolutions, self._is_answered)

    def binary_of(self, pending: PendingDecode) -> Binary | None:
        """The binary of a pending decode, opened; None if its files were removed or have changed."""
        return self._resolver.open_again(pending)

    @property
    def index(self) -> BinaryIndex:
        """The files below the folders."""
        return self._resolver.index

    @property
    def open_binaries(self) -> int:
        """How many binaries and other files with names are open or in memory."""
        return self._resolver.open_count

    def close(self) -> None:
        """Close all binaries; nothing can be symbolized any more."""
        self._is_closed = True
        self._held.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Symbolizer has files open, and cannot be pickled: make one in each process")

    def __repr__(self) -> str:
        return f"<Symbolizer: binaries {self._roots}, {self._resolver.open_count} open>"

    def _is_answered(self, binary: Binary, vaddrs: UInt64) -> bool:
        """Whether a table was made ahead that answers, or could not be made."""
        try:
            return self._tables is not None and self._tables.find(binary, vaddrs) is not None
        except ReadFailure:
            return True

    def _look_up_all(
        self, profile: Profile, resolutions: Resolutions, progress: Progress | None
    ) -> tuple[list[tuple[LookupResult, list[Resolution]]], list[FoldedRow]]:
        """Ask each binary for all its addresses at once: what was found, for which mappings, and shared code."""
        lookups: list[tuple[LookupResult, list[Resolution]]] = []
        folded: list[FoldedRow] = []
        for binary, answered in resolutions.by_binary():
            if progress is not None:
                first = answered[0].mapping
                name = profile.strings.text(profile.mappings.filename[first]) if first != NONE else ""
                progress(max(first, 0), len(profile.mappings), name)
            try:
                lookup, shared = self._look_up(profile, binary, answered, resolutions)
            except ReadFailure as failure:
                resolutions.fail(answered, failure)
                continue
            lookups.append((lookup, answered))
            folded += shared
        return lookups, folded

    def _look_up(
        self,
        profile: Profile,
        binary: Binary | SymbolListBinary,
        answered: Sequence[Resolution],
        resolutions: Resolutions,
    ) -> tuple[LookupResult, list[FoldedRow]]:
        """Look up all addresses of one binary at once. Raises ReadFailure if the answer cannot be known, as when a file
        of the binary changed meanwhile."""
        counts = [len(each.rows) for each in answered]
        rows = np.concatenate([each.rows for each in answered])
        vaddrs = np.concatenate([each.vaddrs for each in answered])
        verified = np.repeat([each.verified for each in answered], counts)
        order = np.argsort(vaddrs, kind="stable")
        rows, vaddrs, verified = rows[order], vaddrs[order], verified[order]

        def callers(folded: Sequence[FoldedCode]) -> UInt64:
            is_folded = np.zeros(len(profile.locations), np.bool_)
            for code in folded:
                is_folded[rows[slice(*np.searchsorted(vaddrs, np.array([code.begin, code.end], np.uint64)))]] = True
            return vaddrs[calling_locations(profile, is_folded)[rows]] if is_folded.any() else vaddrs[:0]

        answer = binary.answer(vaddrs, nearest_line=self._options.nearest_line, tables=self._tables, callers=callers)
        for each in answered:
            resolutions.note(each.mapping, answer.problems)
        try:
            differs, differing = unconfirmed([each.names for each in answered], counts, order, answer.frames)
            for each, count in zip(answered, differing, strict=True):
                resolutions.note_name_conflicts(each.mapping, count)
            resolutions.reasons[rows] = answer.reasons
            folded = [
                FoldedRow(
                    binary.images[0].path, code, shown_functions(code.functions, self._options.demangle), rows[here]
                )
                for code, here in answer.folded
            ]
        finally:
            answer.check()
        return LookupResult(rows, answer, verified & ~differs), folded

    def _expand(
        self, profile: Profile, resolutions: Resolutions, lookups: Sequence[tuple[LookupResult, list[Resolution]]]
    ) -> Bool:
        """Write the frames that were found into the profile; which locations got new lines: bool[n]."""
        if not self._resolver.has_binaries:
            return np.zeros(len(profile.locations), np.bool_)
        demangle_existing(profile, self._options.demangle, embedded=len(profile.address_kinds) > 0)
        replaced = expand(profile, [lookup for lookup, _ in lookups], self._options.demangle, force=self._options.force)
        for lookup, answered in lookups:
            if lookup.failure is not None:
                resolutions.fail(answered, lookup.failure)
        set_flags(profile, np.array([len(each.locations) > 0 for each in resolutions.all[:-1]], np.bool_))
        return replaced

    def _name_by_callers(
        self, profile: Profile, folded: Sequence[FoldedRow], lookups: Sequence[LookupResult]
    ) -> tuple[list[FoldedRow], Int64]:
        """Name shared code by its callers; the shared code with what was decided, and which location each of those was
        that were added."""
        from symbolize.enrich.callers import name_by_callers
        from symbolize.evidence.folded_callers import functions_called

        samples, namesakes = profile.samples, Namesakes([row.code for row in folded])
        answers = [(lookup.rows, lookup.answer) for lookup in lookups]
        decide = partial(functions_called, samples.locations, samples.location_offsets, namesakes, answers)
        codes = [(row.code, row.rows) for row in folded]
        decided = name_by_callers(profile, codes, namesakes, self._options.demangle, decide)
        return [
            replace(row, rows=rows, decided=value)
            for row, rows, value in zip(folded, decided.rows, decided.value.tolist(), strict=True)
        ], decided.origin

    def _deobfuscate(self, profile: Profile) -> None:
        """Rename Java methods by maps and by what came with the profile."""
        if self._deobfuscator is None and profile.obfuscation is not None:
            self._deobfuscator = deobfuscator(())
        if self._deobfuscator is not None:
            renamed = self._deobfuscator.apply(profile)
            changed = np.zeros(len(profile.mappings) + 1, np.bool_)  # the last is for no mapping
            changed[profile.locations.mapping[renamed]] = True
            set_flags(profile, changed[:-1])

    def _problems(self) -> list[str]:
        """Problems with the installation, folders and the cache that were not reported before."""
        slow = uncompiled()
        problems = [
            *([slow] if slow is not None else ()),
            *self._resolver.problems,
            *(self._deobfuscator.problems if self._deobfuscator is not None else ()),
            *(self._cache.problems if self._cache is not None else ()),
        ]
        problems = [problem for problem in problems if problem not in self._reported]
        self._reported.update(problems)
        return problems


def deobfuscator(maps: Paths) -> "Deobfuscator":
    """What renames Java methods; imported when it is needed, because most profiles have none."""
    from symbolize.enrich.deobfuscate import Deobfuscator

    return Deobfuscator(as_paths(maps, "proguard_maps"))

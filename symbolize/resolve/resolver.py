"""Resolves the mappings of profiles: which of the binaries below some folders, and on servers, answers for each; and
finds their code while stacks are unwound."""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from symbolize.binaries import (
    BinaryIndex,
    BinaryMatch,
    Listener,
    Servers,
    fetch_missing,
    find_candidates,
    find_file,
    find_recorded,
    missing_kinds,
    module_prefix,
)
from symbolize.binaries.layouts import KERNEL_LISTS, RUN_TIME_LISTS
from symbolize.binaries.this_machine import MAX_WANTED, RecordingTimes, ThisMachine, WantedFile
from symbolize.core.arrays import Bool, UInt64, distinct
from symbolize.core.errors import ReadFailure
from symbolize.core.mapped_names import RUN_TIME, is_no_file, mapped_by
from symbolize.core.reasons import Failure, Reason
from symbolize.core.verdict import Verdict
from symbolize.elf import ElfImage
from symbolize.elf.call_frames import FramesAt
from symbolize.evidence.choice import BuildMatch, Candidate, Judged, Selection, same_names, select_build
from symbolize.evidence.judge import MAX_DOUBT, Judge, Judgement, joined
from symbolize.profile import NONE, AddressKind, Profile, assign_mappings
from symbolize.profile.model import covers_everything
from symbolize.resolve.address_maps import (
    in_file,
    infer_load_bias,
    map_addresses_of,
    map_in_images,
    map_locations,
    misfit,
)
from symbolize.resolve.addresses import MappedAddresses, differs_in_length, in_code
from symbolize.resolve.huge_pages import FileLayout, HugePages, MatchOf, is_moved_text
from symbolize.resolve.mapping_record import MappingRecord, has_map, records_of, weight_of_mappings
from symbolize.resolve.opened import OpenBinaries
from symbolize.resolve.providers import SymbolProviders
from symbolize.resolve.providers.kernel import is_kernel, module_name
from symbolize.resolve.resolution import MappingAttempt, Resolution, Resolutions, settle
from symbolize.symbols import Binary, SymbolListBinary, TableCache


class MappingCode(NamedTuple):
    """The files of the binary that a mapping is resolved to, each with what is to be added to vaddrs to get those in
    it, and the map from addresses to vaddrs."""

    images: Sequence[tuple[ElfImage, int]]
    to_vaddrs: Callable[[UInt64], MappedAddresses | None]


class CodeResolver:
    """The code of mappings whose records are given; `resolutions` are known for those with locations. `frames` finds
    the call frame information of code that no file has, at addresses and times."""

    def __init__(
        self,
        resolve: Callable[[MappingRecord], Resolution],
        records: Sequence[MappingRecord],
        resolutions: Resolutions,
        frames: Callable[[MappingRecord, UInt64, UInt64], FramesAt | None],
    ) -> None:
        self._resolve = resolve
        self._records = records
        self._frames = frames
        self._settled: set[int] = set()
        self._known = {row: resolutions.all[row] for row, record in enumerate(records[:-1]) if len(record.rows)}

    def resolution(self, mapping: int) -> Resolution:
        """What a mapping is resolved to."""
        if mapping not in self._known:
            self._known[mapping] = self._resolve(self._records[mapping])
        return self._known[mapping]

    def frames(self, mapping: int) -> Callable[[UInt64, UInt64], FramesAt | None] | None:
        """What finds the call frame information at addresses and times of a mapping that has code made at run time, and
        no binary; None if it has none."""
        found = self.resolution(mapping)
        if found.reason is Reason.NOT_A_FILE or isinstance(found.binary, SymbolListBinary):
            return partial(self._frames, self._records[mapping])
        return None

    def code(self, mapping: int, is_last: bool) -> MappingCode | None:
        """The code of a mapping; None if its binary was not found, or has no addresses of its own, or is not proven
        when stacks are unwound for the last time."""
        found = self.resolution(mapping)
        binary, record = found.binary, self._records[mapping]
        if not isinstance(binary, Binary) or (is_last and not (found.is_by_id or found.verdict >= Verdict.SUPPORTED)):
            return None
        images = [(image, 0 if image is binary.loaded else binary.shift) for image in binary.files]
        return MappingCode(images, lambda addresses: map_addresses_of(record._replace(addresses=addresses), found)[0])

    def settle(self, mappings: Iterable[int], resolutions: Resolutions) -> list[int]:
        """Let `resolutions`, which know more addresses, count for `mappings`; those for which they differ. Each changes
        once: what was refused would be taken again where the callers that it led to are gone.

        Before stacks are unwound only the leaves of a mapping are known, afterwards its call sites too. Stacks are
        unwound anew where a binary is refused, another one fits better, or there is one now; the last time, of three,
        with supported binaries only (R316, evidence of callers).
        """
        mappings = [row for row in mappings if row not in self._settled]
        changed = [row for row in mappings if resolutions.all[row].binary is not self._known[row].binary]
        self._known |= {row: resolutions.all[row] for row in changed}
        self._settled.update(changed)
        for row in self._settled.difference(changed):
            if self._known[row].binary is None and resolutions.all[row].binary is not None:
                resolutions.refuse(row, self._known[row])
        return changed


MAX_DIFFERING = 3
"""Builds with the same build id that are reported one by one."""
MAX_SHOWN = 400
"""Characters of a recorded path in a report."""
MAX_POOLED = 256
"""Mappings of one file, in one process or several, that are judged together."""
MIN_SHARE = 0.5
"""Of the addresses of a profile without a memory map so many lie in the only binary, or it is another one."""
LISTED, NOTHING = 1, 4
"""Ranks of a list of symbols, and of no answer at all."""
NOT_HERE = "not on this machine"
MAX_ATTEMPTS = 2
"""How often a mapping is resolved whose files change meanwhile."""


Found = Candidate[BinaryMatch]

Mapper = Callable[[MappingRecord, Binary], tuple[MappedAddresses | None, str]]
"""Where the addresses of a mapping are in a binary; None if they are not, and why where there is more to say."""


def times_of(profile: Profile) -> RecordingTimes:
    """The times of a recording. It began when it says, or by the time of its file and how long it took, the earlier of
    the two."""
    known = [profile.time_nanos / 1e9] if profile.time_nanos > 0 else []
    written = float("inf")
    with suppress(OSError, ValueError):
        written = os.stat(profile.source).st_mtime
        known += [written - profile.duration_nanos / 1e9] if profile.duration_nanos else []
    earliest = min([*known, written])
    return RecordingTimes(earliest if known else 0.0, earliest, written)


class PendingDecode(NamedTuple):
    """A binary that has to be decoded for a profile: a key of the contents of its files, each path with the build id
    that it has to have, the vaddrs, distinct and ascending, and the mappings."""

    key: str
    files: tuple[tuple[str, str], ...]
    vaddrs: UInt64
    mappings: tuple[int, ...] = ()


class MappingResolver:
    """Finds the binaries of mappings below `roots`, and on `servers` by build id; the binaries stay open.

    Their tables are kept in `cache`, if there is one. `accept` is the least verdict on a binary that names. What has no
    binary is looked for on `machine`, if there is one, whose files name only if they are supported at least.
    """

    def __init__(
        self,
        roots: Sequence[str],
        cache: TableCache | None,
        servers: Servers | None,
        accept: Verdict = Verdict.UNVERIFIED,
        *,
        machine: ThisMachine | None = None,
        local: "MappingResolver | None" = None,
    ) -> None:
        self._accept = accept
        self._roots = roots
        self._only_binary = ""
        self._servers = None if servers is None else Listener(servers)
        self._machine = machine
        self._local = local
        folder = cache.base if cache is not None and machine is None else None  # what is listed is soon read
        self._index = BinaryIndex(roots, folder, self._servers, listing=machine)
        self._opened = OpenBinaries(self._index, cache)
        self._providers = SymbolProviders(self._index, self._opened)
        self._judge = Judge()
        self._of_file: dict[tuple[str, str], list[MappingRecord]] = {}
        self._by_file: dict[tuple[str, str, int, Binary], Judgement | None] = {}
        self._not_here: dict[tuple[str, str, AddressKind], Resolution] = {}
        self._huge_pages = HugePages(self._judge, self._find_binary, self._layouts)

    @property
    def has_binaries(self) -> bool:
        """Whether there are folders or servers, or files of this machine may be used."""
        return self._index.has_sources or self._local is not None

    @property
    def index(self) -> BinaryIndex:
        """The files below the folders."""
        return self._index

    @property
    def problems(self) -> list[str]:
        """What is wrong with the folders and files in them, a sentence each."""
        own = [*self._index.problems, *self._providers.problems, *(self._machine.problems if self._machine else ())]
        return own if self._local is None else [*own, *self._local.problems]

    @property
    def open_count(self) -> int:
        """How many binaries, and other files with names, are open or kept in memory."""
        own = len(self._opened) + self._providers.count
        return own if self._local is None else own + self._local.open_count

    def resolve_all(
        self, profile: Profile, no_evidence: Bool | None = None, *, also_named: bool = False
    ) -> Resolutions:
        """Resolve each mapping of `profile`, and what is in none. Addresses without a mapping are assigned to one.

        `no_evidence` says which locations are no call sites that count, wherever they are on stacks. With `also_named`
        files of this machine are taken for mappings too whose locations all have names.
        """
        assign_mappings(profile)
        origin = self._providers.take_apart(profile)
        no_evidence = None if no_evidence is None else no_evidence[origin]
        records = records_of(profile, with_names=self.has_binaries, no_evidence=no_evidence)
        if self._local is not None:
            self._local._prepare(profile, self._local._look_here(profile, records[:-1], also_named))
        self._prepare(profile, records[:-1])
        return Resolutions(map(self.resolve, records), len(profile.locations))

    def _prepare(self, profile: Profile, records: Sequence[MappingRecord]) -> None:
        """Take in what the records of all mappings of a profile say, before each is resolved."""
        self._providers.prepare(profile, records)
        self._huge_pages.prepare(records)
        self._of_file, self._by_file, self._not_here = grouped(records), {}, {}
        is_alone = len(self._roots) == 1 and not has_map(profile) and os.path.isfile(self._roots[0])
        self._only_binary = self._roots[0] if is_alone else ""
        self._prefetch(profile, records)

    def _look_here(self, profile: Profile, records: Sequence[MappingRecord], also_named: bool) -> list[MappingRecord]:
        """List the files of this machine that mappings of a profile with locations without names, or all, may be of;
        the records with the paths of these files."""
        assert self._machine is not None
        has_lines = profile.locations.has_lines()
        takes_all = also_named or profile.stack_dumps is not None  # callers in copies of stacks may be in any mapping
        nameless = [each for each in records if takes_all or not has_lines[each.rows].all()]
        if len(nameless) > MAX_WANTED:
            weights = weight_of_mappings(profile)
            nameless.sort(key=lambda each: -weights[each.mapping])
        kernels = [each.build_id for each in records if is_kernel(each.filename)]
        is_in_kernel = any(is_kernel(each.filename) or module_name(each.filename) for each in nameless)
        wanted = [WantedFile(each.filename, each.build_id, each.is_claim and bool(each.build_id)) for each in nameless]
        self._machine.look_for(self._index, wanted, kernels if is_in_kernel else (), times_of(profile))
        return [self._here(each) for each in records]

    def _here(self, record: MappingRecord) -> MappingRecord:
        """A mapping with the path that its file has on this machine, all links followed."""
        assert self._machine is not None
        return record._replace(filename=self._machine.paths.get(record.filename, record.filename))

    def resolve(self, record: MappingRecord) -> Resolution:
        """What answers for the locations of a mapping, and where they are in it.

        Where a file was replaced since the folders were walked, or changed while it was read, all is done once more
        (R284, files that are replaced). If that names nothing either, the failure is the reason: of a file that was
        there a moment ago nobody knows what it would have answered. The same holds in a batch where the binary of an
        input is not the one that was scanned.
        """
        return self._resolve(record) if len(record.rows) else Resolution(mapping=record.mapping)

    def unwinding(self, profile: Profile, resolutions: Resolutions) -> CodeResolver:
        """Finds the code of mappings of a profile that was resolved, while its stacks are unwound."""
        frames = self._providers.frames(profile.sample_times)
        return CodeResolver(self._resolve, records_of(profile, with_names=False), resolutions, frames)

    def forget(self) -> None:
        """Let go of the profile that was resolved last, and of what only it needed."""
        self._of_file, self._by_file = {}, {}
        if self._local is not None:
            self._local.forget()

    def _resolve(self, record: MappingRecord) -> Resolution:
        """As `resolve`, also if no location is in the mapping. What the folders lack is looked for on this machine, and
        then on servers."""
        if self._local is None:
            return self._resolve_by(record, self._servers)
        result = self._resolve_by(record, None)
        found = self._of_machine(record, result, self._local)
        if self._servers is None or (isinstance(found.binary, Binary) and not found.wanted):
            return found
        fetched = self._resolve_by(record, self._servers)
        if fetched.binary is not None and source_rank(fetched) < source_rank(found) + (not found.is_local):
            return fetched
        tried = [*found.tried, *(each for each in fetched.tried if each not in found.tried)]
        return replace(found, failures=(*found.failures, *fetched.failures), tried=tried)

    def _of_machine(self, record: MappingRecord, result: Resolution, local: "MappingResolver") -> Resolution:
        """`result` of the folders, completed by files of this machine with its build id; or what they have where no
        folder has anything."""
        machine = local._machine
        assert machine is not None
        if result.binary is None:
            key = record.filename, record.build_id, record.kind
            found = self._not_here.get(key) or local._resolve(local._here(record))
            if found.binary is not None:
                return replace(found, is_local=True, tried=[*result.tried, *found.tried])
            if found.reason is Reason.NOT_FOUND:  # whatever was sampled of it
                found = self._not_here[key] = replace(found, detail=found.detail or NOT_HERE)
            if result.reason in (Reason.NOT_ASKED, Reason.NOT_FOUND):
                failures = *result.failures, *found.failures
                return replace(found, mapping=record.mapping, locations=record.rows, failures=failures)
        elif any(machine.fetch(result.wanted_id, kind).path for kind in result.wanted):
            found = self._resolve_by(record, machine)
            if source_rank(found) < source_rank(result) and found.verdict >= local._accept:
                return replace(found, is_local=True)
        return result

    def _resolve_by(self, record: MappingRecord, servers: Servers | None) -> Resolution:
        """As `_resolve`, by the folders and some servers."""
        self._index.servers = servers
        try:
            return self._resolve_alone(record)
        finally:
            self._index.servers = self._servers

    def _resolve_alone(self, record: MappingRecord) -> Resolution:
        """As `_resolve`, without files of this machine."""
        attempts = [self._attempt(record)]
        while attempts[-1].failure is not None and len(attempts) < MAX_ATTEMPTS:
            attempts.append(self._attempt(record))
        result = settle(attempts)
        self._opened.close_unused()
        failures = (*self._server_failures(), *result.failures)
        result = replace(result, mapping=record.mapping, locations=record.rows, failures=failures)
        if result.binary is not None and result.verdict < self._accept:
            detail = f"{', '.join(result.files)} is {result.sureness}"
            result = result.refused(Reason.UNCONFIRMED, detail=detail, files=())
        return result

    def pending_decodes(
        self, resolutions: Resolutions, is_answered: Callable[[Binary, UInt64], bool]
    ) -> list[PendingDecode]:
        """What has to be decoded: the binaries without a table in the cache, unless `is_answered` for their vaddrs."""
        pending = []
        for binary, answered in resolutions.by_binary():
            files = self._opened.files_of(binary) if isinstance(binary, Binary) else None
            if not isinstance(binary, Binary) or files is None or binary.is_cached():
                continue
            vaddrs = distinct(np.concatenate([each.vaddrs for each in answered]))
            if len(vaddrs) and not is_answered(binary, vaddrs):
                mappings = tuple(each.mapping for each in answered)
                pending.append(PendingDecode(binary.key, tuple(files), vaddrs, mappings))
        return pending

    def open_again(self, pending: PendingDecode) -> Binary | None:
        """The binary of a pending decode; None if its files are not there any more or have changed."""
        found = BinaryMatch([path for path, _ in pending.files], expected=dict(pending.files))
        opened = self._opened.open(found)
        self._opened.use(found)
        return next((binary for binary in opened.binaries if binary.key == pending.key), None)

    def close(self) -> None:
        """Close all binaries."""
        if self._local is not None:
            self._local.close()
        self._opened.close()
        self._providers.close()
        self._index.close()

    def _attempt(self, record: MappingRecord) -> MappingAttempt:
        """Resolve a mapping once, with what failed meanwhile."""
        result, failure = Resolution(), None
        self._opened.begin()
        try:
            result = self._find(record)
            if result.binary is None and not result.detail and (kinds := lists_for(record.filename)):
                links = self._index.links_out(record.filename, kinds=kinds)
                result = replace(result, detail="; ".join(map(" ".join, links.items())))
            if result.reason is Reason.NOT_A_FILE and not result.detail:
                result = replace(result, detail=self._providers.absent(record))
            result = map_locations(self._judge, record, result) if result.binary is not None else result
        except ReadFailure as error:
            result, failure = result.refused(result.reason), error
        return MappingAttempt(result, self._opened.failure() or failure, self._opened.reopened)

    def _server_failures(self) -> list[Failure]:
        """What failed of the servers since this was asked last."""
        if self._servers is None:
            return []
        failures = [Failure(Reason.SERVER_FAILED, *each) for each in self._servers.failures]
        self._servers.failures = []
        return failures

    def _prefetch(self, profile: Profile, records: Sequence[MappingRecord]) -> None:
        """Begin to fetch what no folder has, for the heaviest mappings first."""
        if self._index.servers is None:
            return
        wanted: dict[tuple[str, str], float] = {}
        for record, weight in zip(records, weight_of_mappings(profile).tolist(), strict=True):
            if record.build_id and len(record.rows):
                key = record.build_id, record.filename
                wanted[key] = wanted.get(key, 0.0) + weight
        founds = [(find_recorded(self._index, *key, fetch=False), weight) for key, weight in wanted.items()]
        if self._local is not None and (machine := self._local._machine) is not None:
            founds = [
                (found, weight)
                for found, weight in founds
                if any(machine.fetch(found.wanted_id, kind).path is None for kind in found.wanted)
            ]
        self._index.servers.prefetch(
            (found.wanted_id, found.wanted, weight) for found, weight in founds if found.wanted
        )

    def _find(self, record: MappingRecord) -> Resolution:
        """What answers for a mapping, its addresses not mapped yet: a provider, else files of its name or build id."""
        if record.start == record.limit == 0 and not record.addresses.any():
            return Resolution(reason=Reason.NO_ADDRESS)
        if not self._index.has_sources:
            return Resolution(reason=Reason.NO_MAPPING if record.mapping == NONE else Reason.NOT_ASKED)
        if record.kind in (AddressKind.IN_FILE, AddressKind.OFFSET) and not record.build_id:
            return self._find_in_file(record)
        provided = self._providers.find(record)
        if provided is not None and provided.binary is None:
            wanted = missing_kinds(record.build_id, has_code=True, has_dwarf=False)
            return replace(provided, wanted=wanted, wanted_id=record.build_id)
        if provided is not None:
            return self._judged(record, provided)
        if record.kind == AddressKind.NO_BINARY:
            return Resolution(reason=Reason.NOT_A_FILE)
        if record.mapping == NONE or is_placeholder(record):
            return self._find_only_binary(record) if self._only_binary else Resolution(reason=Reason.NO_MAPPING)
        found = self._find_binary(record)
        if found.binary is None and is_moved_text(record):
            return self._huge_pages.find(record, found)
        if found.binary is not None and not found.binary.is_stripped:
            return found
        symbols = self._providers.symbols_for(record, found.binary.images if found.binary is not None else ())
        if symbols is None or (symbols.binary is None and found.reason not in (Reason.NOT_FOUND, Reason.NOT_ELF)):
            return found
        if found.binary is not None and symbols.is_by_id:  # the binary was judged
            symbols = replace(symbols, verdict=found.verdict, evidence=found.evidence)
        elif not symbols.verified and found.reason in (Reason.MISFIT, Reason.AMBIGUOUS):
            return found  # the symbol file may be of what was refused
        return replace(
            self._judged(record, symbols),
            tried=(*found.tried, *symbols.tried),
            problems=(*found.problems, *symbols.problems),
            wanted=found.wanted,
            wanted_id=found.wanted_id,
            build_id=found.build_id,
        )

    def _judged(self, record: MappingRecord, provided: Resolution) -> Resolution:
        """What a provider found, as the judge says where no identity proves it. A kernel is not judged: it patches its
        own code when it starts, there most where it is sampled most, behind instructions that allow interrupts."""
        if provided.binary is None or provided.verdict is not Verdict.UNVERIFIED:
            return provided
        claim = int(provided.is_by_id and record.is_claim)
        evidence = provided.evidence
        mapped, _ = map_addresses_of(record, provided)
        if isinstance(provided.binary, Binary) and mapped is not None and not is_kernel(record.filename):
            match = BuildMatch(judgement=self._judge.judge(provided.binary, record.observed(mapped), claim=claim))
            if match.refusal:
                detail = f"{provided.files[0]} is refused: {match.refusal}"
                return provided.refused(Reason.MISFIT, detail=detail, files=())
            evidence = match.evidence
            provided = replace(provided, verdict=match.verdict)
        return replace(provided, evidence=with_claim(claim, evidence))

    def _find_binary(self, record: MappingRecord, match_of: MatchOf | None = None) -> Resolution:
        """The binary of a mapping by its build id or name; of several builds, and where no build id proves it, as the
        judge says. `match_of` judges instead."""
        found = find_recorded(self._index, record.build_id, record.filename)
        result = self._select(record, found, match_of)
        if result.binary is None and record.is_claim:
            is_refuted = bool(found.paths) and result.reason is Reason.MISFIT
            other = self._find_despite(record, match_of, 0 if is_refuted else -1)
            if other.binary is not None:
                evidence = with_claim(-1, other.evidence) if is_refuted else other.evidence
                return replace(other, tried=(*result.tried, *other.tried), evidence=evidence)
            if other.tried and not found.paths:
                return replace(result, tried=(*result.tried, *other.tried))
        return result

    def _find_only_binary(self, record: MappingRecord) -> Resolution:
        """The only binary there is for a profile without a memory map, if it cannot be anywhere else (R373, one binary
        without a map).

        It has to be named as a file and not be position-independent; half of the addresses have to be in its code, and
        what is known of calls has to speak for it.
        """
        path = self._only_binary
        candidates, unreadable = self._open_candidates([("path", find_file(self._index, path))])
        if not candidates:
            return Resolution(reason=Reason.UNREADABLE, detail="; ".join(unreadable))
        binary = candidates[0].binary
        if binary.loaded.kind != "ET_EXEC":
            detail = f"{path} is position-independent: without a memory map nobody knows where it was"
            return Resolution(reason=Reason.NO_MAPPING, detail=detail)

        def address_map(addresses: UInt64) -> MappedAddresses:
            return addresses, in_code(addresses, binary.loaded.segments)

        def match_of(binary: Binary) -> BuildMatch:
            vaddrs, inside = address_map(record.addresses)
            if inside.mean() < MIN_SHARE:
                return BuildMatch(f"{int((~inside).sum())} of {len(inside)} addresses lie outside of its code")
            judgement = self._judge.judge(binary, record.observed((vaddrs, inside)))
            return BuildMatch(judgement.text if judgement.support < 0 else "", judgement)

        selection = select_build(candidates, match_of, path, lambda _: True)
        if selection.candidate is None:
            return Resolution(reason=selection.reason, detail=selection.detail, tried=selection.tried)
        found = Resolution(tried=selection.tried, address_map=address_map)
        return self._answered(found, selection, unreadable, is_fetched=False)

    def _find_despite(self, record: MappingRecord, match_of: MatchOf | None, claim: int) -> Resolution:
        """The binary with the name of a mapping whose build id was read later, and is that of another file: only one
        for which much speaks, unless that file is refuted (R372, build ids that were read later)."""
        found = find_recorded(self._index, "", record.filename)
        return self._select(record, found, match_of, claim)

    def _select(
        self, record: MappingRecord, match: BinaryMatch, match_of: MatchOf | None = None, claim: int = 0
    ) -> Resolution:
        """What answers for a mapping of the files that were found."""
        is_proof = match.verified and not record.is_claim
        claim = claim or int(match.verified and record.is_claim)
        found = Resolution(
            verdict=Verdict.by_identity(is_proof),
            is_by_id=match.verified,
            reason=match.reason,
            detail=match.detail,
            tried=match.tried,
            wanted=match.wanted,
            wanted_id=match.wanted_id,
        )
        if not match.paths and not match.candidates:
            return found
        candidates, unreadable = self._open_candidates(match.candidates or [("build id", match)])
        if not candidates:
            return replace(found, reason=Reason.UNREADABLE, detail="; ".join(unreadable))
        selection = Selection(candidates[0], verdict=found.verdict)
        if len(candidates) > 1 or not is_proof or match_of is not None:
            mapper = partial(map_in_images, verified=match.verified)
            selection = select_build(
                candidates,
                match_of or partial(self._match, record, mapper, claim),
                record.filename,
                partial(self._same_names, record, mapper),
            )
        found = replace(found, tried=(*found.tried, *selection.tried))
        if selection.candidate is None:
            return replace(found, reason=selection.reason, detail=selection.detail, verdict=Verdict.UNVERIFIED)
        if is_proof and not selection.is_by_path:
            selection = replace(selection, verdict=Verdict.PROVED)
        is_found = is_proof and module_prefix(record.build_id)
        found = replace(found, build_id=match.build_id if is_found else "")
        selection = replace(selection, evidence=with_claim(claim, selection.evidence))
        return self._answered(found, selection, unreadable, is_fetched=bool(match.candidates))

    def _match(self, record: MappingRecord, mapper: Mapper, claim: int, binary: Binary) -> BuildMatch:
        """How a binary matches a mapping. Where what its locations say is not enough, those of the other mappings of
        the same file count too."""
        mapped, problem = mapper(record, binary)
        if mapped is None:
            return BuildMatch(problem or misfit(record))
        if self._differs_in_length(record, claim, binary):
            return BuildMatch("its code is not as long as what was mapped")
        judgement = self._judge.judge(binary, record.observed(mapped), claim=claim)
        if judgement.verdict is Verdict.UNVERIFIED:
            pooled = self._pooled(record, mapper, claim, binary)
            # Another process may have run another file: others do not support a file that this mapping speaks against.
            if pooled is not None and (pooled.verdict is Verdict.REFUTED or judgement.doubt < MAX_DOUBT):
                judgement = pooled
        return BuildMatch(judgement=judgement)

    def _pooled(self, record: MappingRecord, mapper: Mapper, claim: int, binary: Binary) -> Judgement | None:
        """The judgement by all mappings of the file that a mapping is of; None if it is the only one, and of a binary
        without code, whose callers are the same in each of them (R376, evidence of a file).

        All of them, in other processes too, do not support a file that the mapping itself speaks against: another
        process may have run another file. Profiles of a batch are judged one by one.
        """
        records = self._of_file.get((record.filename, record.build_id), ())
        if len(records) < 2 or binary.code is None:
            return None
        key = record.filename, record.build_id, claim, binary
        if key not in self._by_file:
            found = ((each, mapper(each, binary)[0]) for each in records)
            parts = [each.observed(mapped) for each, mapped in found if mapped is not None]
            self._by_file[key] = self._judge.judge(binary, joined(parts), claim=claim) if parts else None
        return self._by_file[key]

    def _differs_in_length(self, record: MappingRecord, claim: int, binary: Binary) -> bool:
        """Whether the code of a file of this machine, of which no build id says anything, is not as long as what was
        mapped."""
        if claim or record.is_proof or not self._index.is_listed or binary.code is None:
            return False
        return differs_in_length(binary.loaded.segments, record.start, record.limit, record.file_offset)

    def _same_names(self, record: MappingRecord, mapper: Mapper, equals: Judged[BinaryMatch]) -> bool:
        """Whether several candidates give the same names for a mapping."""
        mapped = [(each.binary, mapper(record, each.binary)[0]) for each, _ in equals]
        return same_names([(binary, each) for binary, each in mapped if each is not None])

    def _layouts(self, record: MappingRecord) -> list[FileLayout]:
        """The layouts of all builds that may be what a mapping is of."""
        match = find_recorded(self._index, record.build_id, record.filename)
        candidates, _ = self._open_candidates(match.candidates or [("build id", match)])
        return [FileLayout.of(each.binary) for each in candidates]

    def _find_in_file(self, record: MappingRecord) -> Resolution:
        """Which binary addresses in a file without a build id are of, and what they count from."""
        assert record.names is not None
        candidates: list[Found] = []
        provided = self._providers.find(record)
        if provided is not None and isinstance(provided.binary, Binary):
            found = BinaryMatch(provided.files, provided.binary.images[0].build_id or "")
            candidates.append(Candidate("special", found, provided.binary))
        known = {path for candidate in candidates for path in candidate.match.paths}
        others = find_candidates(self._index, record.filename)
        opened, unreadable = self._open_candidates(
            (how, found) for how, found in others.found if known.isdisjoint(found.paths)
        )
        candidates += opened
        unreadable += [f"{path}: {why}" for path, why in others.left_out if why.startswith("cannot be used")]
        if not candidates:
            path = record.filename[:MAX_SHOWN]
            tried = [
                (f"path {path.lstrip('/')}", "nothing there"),
                (f"name {path.rpartition('/')[2]}", "nothing there"),
            ]
            return Resolution(
                reason=Reason.UNREADABLE if unreadable else Reason.NOT_FOUND,
                detail="; ".join(unreadable or map(" ".join, others.left_out)),
                tried=[*(provided.tried if provided is not None else ()), *tried],
            )

        def match_of(binary: Binary) -> BuildMatch:
            return infer_load_bias(self._judge, record, binary, is_one_of_several=len(candidates) > 1)

        def have_same_names(equals: Judged[BinaryMatch]) -> bool:
            found = [(each.binary, match.base) for each, match in equals if match.base]
            return same_names([(binary, in_file(binary, base, record.addresses)) for binary, base in found])

        selection = select_build(candidates, match_of, record.filename, have_same_names)
        tried = [*selection.tried, *others.left_out]
        if selection.candidate is None:
            # No location is missed where all have names, but lines and inlined functions are.
            problems = [selection.detail] if (record.names.of_location != NONE).all() else []
            return Resolution(reason=selection.reason, detail=selection.detail, tried=tried, problems=problems)
        match = selection.match
        assert match.base is not None
        is_proof = match.agreement.is_proof
        result = self._answered(Resolution(tried=tried), selection, unreadable, is_fetched=is_proof)
        assert isinstance(result.binary, Binary)
        return replace(
            result,
            address_map=partial(in_file, result.binary, match.base),
            load_bias=match.base.distance,
            build_id=(result.binary.loaded.build_id or selection.candidate.match.build_id) if is_proof else "",
        )

    def _open_candidates(self, founds: Iterable[tuple[str, BinaryMatch]]) -> tuple[list[Found], list[str]]:
        """The builds that some files are of, and which of the files cannot be read, and why."""
        candidates: list[Found] = []
        unreadable: list[str] = []
        for how, found in founds:
            builds, problems = self._opened.candidates(how, found)
            candidates += builds
            unreadable += problems
        return candidates, unreadable

    def _answered(
        self, result: Resolution, selection: Selection[BinaryMatch], unreadable: Sequence[str], *, is_fetched: bool
    ) -> Resolution:
        """`result` with the binary that was selected, and with what servers have of it if that `is_fetched`."""
        candidate = selection.candidate
        assert candidate is not None
        binary, match = candidate.binary, candidate.match
        same = [each.binary for each in selection.rejected if each.match is match]
        if is_fetched and match.build_id:
            whole = fetch_missing(self._index, match)
            result = replace(result, wanted=whole.wanted, wanted_id=whole.wanted_id)
            remade = self._opened.with_file(candidate.path, whole) if whole.paths != match.paths else None
            if remade is not None:
                binary, match = remade, whole
        self._opened.use(match)
        differing = [binary.differs_from(each) for each in same[:MAX_DIFFERING]]
        if len(same) > MAX_DIFFERING:
            differing.append(f"{len(same) - MAX_DIFFERING} more builds have the build id of {binary.images[0].path}")
        return replace(
            result,
            binary=binary,
            verdict=selection.verdict,
            evidence=selection.evidence,
            files=[image.path for image in binary.files],
            reason=Reason.SYMBOLIZED,
            detail="",
            problems=[*unreadable, *differing, *binary.refused],
        )


def source_rank(found: Resolution) -> int:
    """How good what answers for a mapping is, as `Binary.rank`, which says what is best by 0."""
    return found.binary.rank if isinstance(found.binary, Binary) else LISTED if found.binary is not None else NOTHING


def lists_for(name: str) -> Sequence[str]:
    """The kinds of files with the names of a mapping that has no file of its own; none for others."""
    if is_kernel(name):
        return KERNEL_LISTS
    return RUN_TIME_LISTS if is_no_file(name) and mapped_by(name) in RUN_TIME else ()


def with_claim(claim: int, evidence: str) -> str:
    """Evidence in words, with what a build id says that was read later; `claim` is as in `verdict_of`."""
    if not claim:
        return evidence
    text = "the recorded build id, read later, " + ("is that of another file" if claim < 0 else "agrees")
    return f"{text}; {evidence}" if evidence else text


def is_placeholder(record: MappingRecord) -> bool:
    """Whether a mapping says nothing of what is mapped where, as pprof has one for profiles without a memory map."""
    return not (record.build_id or record.filename) and covers_everything(record.start, record.limit)


def grouped(records: Iterable[MappingRecord]) -> dict[tuple[str, str], list[MappingRecord]]:
    """The mappings of each file with a name, by name and build id, as far as they are looked at together."""
    groups: dict[tuple[str, str], list[MappingRecord]] = {}
    for record in records:
        if record.filename and len(record.rows) and record.kind == AddressKind.PROCESS:
            group = groups.setdefault((record.filename, record.build_id), [])
            if len(group) < MAX_POOLED:
                group.append(record)
    return groups

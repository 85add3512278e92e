"""Resolves the mappings of profiles: which of the binaries below some folders, and on servers, answers for each."""

from collections.abc import Callable, Iterable, Sequence
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
    find_recorded,
    missing_kinds,
    module_prefix,
    plain_build_id,
)
from symbolize.core.arrays import Bool, UInt64, distinct
from symbolize.core.errors import ReadFailure
from symbolize.core.failures import Failure, reason_of
from symbolize.core.mapped import ChangedFile
from symbolize.core.reasons import Reason
from symbolize.core.verdict import Verdict
from symbolize.profile import NONE, AddressKind, Profile, assign_mappings
from symbolize.profile.assignment import covers_everything
from symbolize.resolve.address_maps import judge, judge_callers, map_locations
from symbolize.resolve.build_matching import in_file_map, infer_load_bias, judge_callers_in_file
from symbolize.resolve.candidates import Candidate
from symbolize.resolve.choice import BuildMatch, Selection, select_build
from symbolize.resolve.code import CodeResolver
from symbolize.resolve.huge_pages import HugePages, Layout, is_moved_text
from symbolize.resolve.mapping_record import MappingRecord, processes, records_of, weight_of_mappings
from symbolize.resolve.opened import OpenBinaries
from symbolize.resolve.providers import SymbolProviders
from symbolize.resolve.resolution import Resolution, Resolutions
from symbolize.symbols import Binary, TableCache

MAX_DIFFERING = 3
"""Builds with the same build id that are reported one by one."""
MAX_SHOWN = 400
"""Characters of a recorded path in a report."""
MAX_ATTEMPTS = 2
"""How often a mapping is resolved whose files change meanwhile."""


class PendingDecode(NamedTuple):
    """A binary that has to be decoded for a profile: a key of the contents of its files, each path with the build id
    that it has to have, the vaddrs, distinct and ascending, and the mappings."""

    key: str
    files: tuple[tuple[str, str], ...]
    vaddrs: UInt64
    mappings: tuple[int, ...] = ()


class MappingResolver:
    """Finds the binaries of mappings below `roots`, and on `servers` by build id; the binaries stay open.

    Their tables are kept in `cache`, if there is one.
    """

    def __init__(self, roots: Sequence[str], cache: TableCache | None, servers: Servers | None) -> None:
        self._servers = None if servers is None else Listener(servers)
        self._index = BinaryIndex(roots, cache.base if cache is not None else None, self._servers)
        self._opened = OpenBinaries(self._index, cache)
        self._providers = SymbolProviders(self._index, self._opened)
        self._huge_pages = HugePages(self._find_binary, self._layouts)

    @property
    def has_binaries(self) -> bool:
        """Whether there are folders or servers at all."""
        return self._index.has_sources

    @property
    def index(self) -> BinaryIndex:
        """The files below the folders."""
        return self._index

    @property
    def problems(self) -> list[str]:
        """What is wrong with the folders and files in them, a sentence each."""
        return [*self._index.problems, *self._providers.problems]

    @property
    def open_count(self) -> int:
        """How many binaries, and other files with names, are open or kept in memory."""
        return len(self._opened) + self._providers.count

    def resolve_all(self, profile: Profile, is_exact: Bool | None = None) -> Resolutions:
        """Resolve each mapping of `profile`, and what is in none. Addresses without a mapping are assigned to one.

        `is_exact` says of which locations it is known that they are no call sites, wherever they are on stacks.
        """
        assign_mappings(profile)
        records = records_of(profile, with_names=self.has_binaries, is_exact=is_exact)
        self._providers.prepare(records[:-1], processes(profile))
        self._huge_pages.prepare(records[:-1])
        self._prefetch(profile, records[:-1])
        return Resolutions(map(self.resolve, records), len(profile.locations))

    def resolve(self, record: MappingRecord) -> Resolution:
        """What answers for the locations of a mapping, and where they are in it.

        Where a file was replaced since the folders were walked, or changed while it was read, all is done once more
        (R284, files that are replaced). If that names nothing either, the failure is the reason: of a file that was
        there a moment ago nobody knows what it would have answered.
        """
        return self._resolve(record) if len(record.rows) else Resolution(mapping=record.mapping)

    def unwinding(self, profile: Profile, resolutions: Resolutions) -> CodeResolver:
        """Finds the code of mappings of a profile that was resolved, while its stacks are unwound."""
        return CodeResolver(self._resolve, records_of(profile, with_names=False), resolutions)

    def _resolve(self, record: MappingRecord) -> Resolution:
        """As `resolve`, also if no location is in the mapping."""
        failed: list[ReadFailure] = []
        for _ in range(MAX_ATTEMPTS):
            self._opened.begin()
            result, failure = self._attempt(record)
            failure = self._opened.failure() or failure
            if failure is None:
                break
            failed.append(failure)
        result = replace(result, mapping=record.mapping, locations=record.rows, failures=self._server_failures())
        if failure is not None:
            result = result.with_failure(failure)
            if isinstance(failure, ChangedFile) or result.binary is None:
                result = result.refused(reason_of(failure))
        elif failed and result.binary is not None and (result.is_whole or failed[0].source in result.files):
            result = replace(result, suspect=Failure.of(failed[0]))
        elif failed:
            result = result.with_failure(failed[0])
            result = result if result.binary is not None else replace(result, reason=reason_of(failed[0]))
        elif self._opened.reopened is not None:
            result = replace(result, suspect=Failure.of(self._opened.reopened))
        self._opened.close_unused()
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
        self._opened.close()
        self._providers.close()
        self._index.close()

    def _attempt(self, record: MappingRecord) -> tuple[Resolution, ReadFailure | None]:
        result = Resolution()
        try:
            result = self._find(record)
            return (map_locations(record, result) if result.binary is not None else result), None
        except ReadFailure as error:
            return result.refused(result.reason), error

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
        self._index.servers.prefetch(
            (found.wanted_id, found.wanted, weight) for found, weight in founds if found.wanted
        )

    def _find(self, record: MappingRecord) -> Resolution:
        """What answers for a mapping, its addresses not mapped yet: a provider, else files of its name or build id."""
        if record.start == record.limit == 0 and not record.addresses.any():
            return Resolution(reason=Reason.NO_ADDRESS)
        if not self.has_binaries:
            return Resolution(reason=Reason.NO_MAPPING if record.mapping == NONE else Reason.NOT_ASKED)
        if record.kind == AddressKind.IN_FILE and not record.build_id:
            return self._find_in_file(record)
        provided = self._providers.find(record)
        if provided is not None and provided.binary is None:
            wanted = missing_kinds(record.build_id, has_code=True, has_dwarf=False)
            return replace(provided, wanted=wanted, wanted_id=plain_build_id(record.build_id))
        if provided is not None:
            return provided
        if record.kind == AddressKind.NO_BINARY:
            return Resolution(reason=Reason.NOT_A_FILE)
        if record.mapping == NONE:
            return Resolution(reason=Reason.NO_MAPPING)
        found = self._find_binary(record)
        if found.binary is None and is_moved_text(record):
            return self._huge_pages.find(record, found)
        if found.binary is not None and not found.binary.is_stripped:
            return found
        symbols = self._providers.symbols_for(record, found.binary.images if found.binary is not None else ())
        if symbols is None or (symbols.binary is None and found.reason != Reason.NOT_FOUND):
            return found
        return replace(
            symbols,
            tried=(*found.tried, *symbols.tried),
            problems=(*found.problems, *symbols.problems),
            wanted=found.wanted,
            wanted_id=found.wanted_id,
            build_id=found.build_id,
        )

    def _find_binary(
        self, record: MappingRecord, judge_build: Callable[[Binary], BuildMatch] | None = None
    ) -> Resolution:
        """The binary of a mapping by its build id or name; of several builds the one that passes the checks."""
        if not (record.build_id or record.filename) and covers_everything(record.start, record.limit):
            return Resolution(reason=Reason.NO_MAPPING)
        match = find_recorded(self._index, record.build_id, record.filename)
        found = Resolution(
            verdict=Verdict.by_identity(match.verified),
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
        selection = Selection(candidates[0])
        if len(candidates) > 1:
            by_callers = partial(judge_callers, record, verified=match.verified)
            checks = (judge_build,) if judge_build else (partial(judge, record, verified=match.verified), by_callers)
            selection = select_build(candidates, *checks)
        found = replace(found, tried=(*found.tried, *selection.tried))
        if selection.candidate is None:
            return replace(found, reason=selection.reason, detail=selection.detail, verdict=Verdict.UNVERIFIED)
        is_proven = match.verified and module_prefix(record.build_id)
        found = replace(found, build_id=match.build_id if is_proven else "")
        return self._answered(found, selection, unreadable, is_fetched=bool(match.candidates))

    def _layouts(self, record: MappingRecord) -> list[Layout]:
        """Those of all builds that may be what a mapping is of."""
        match = find_recorded(self._index, record.build_id, record.filename)
        candidates, _ = self._open_candidates(match.candidates or [("build id", match)])
        return [Layout.of(each.binary) for each in candidates]

    def _find_in_file(self, record: MappingRecord) -> Resolution:
        """Which binary addresses in a file without a build id are of, and what they count from."""
        assert record.names is not None
        candidates: list[Candidate] = []
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
                detail="; ".join(unreadable),
                tried=[*(provided.tried if provided is not None else ()), *tried],
            )
        facts = record.filename, record.addresses, record.is_call, record.names
        selection = select_build(
            candidates,
            lambda binary: infer_load_bias(binary, *facts, is_one_of_several=len(candidates) > 1),
            partial(judge_callers_in_file, record),
        )
        tried = [*selection.tried, *others.left_out]
        if selection.candidate is None:
            # No location is missed where all have names, but lines and inlined functions are.
            problems = [selection.detail] if (record.names.of_location != NONE).all() else []
            return Resolution(reason=selection.reason, detail=selection.detail, tried=tried, problems=problems)
        verdict = selection.verdict
        assert verdict.base is not None
        verified = verdict.agreement.is_proof
        result = self._answered(
            Resolution(tried=tried, verdict=Verdict.by_identity(verified)), selection, unreadable, is_fetched=verified
        )
        assert isinstance(result.binary, Binary)
        return replace(
            result,
            address_map=in_file_map(result.binary, verdict.base),
            load_bias=verdict.base.distance,
            build_id=(result.binary.loaded.build_id or selection.candidate.match.build_id) if verified else "",
        )

    def _open_candidates(self, founds: Iterable[tuple[str, BinaryMatch]]) -> tuple[list[Candidate], list[str]]:
        """The builds that some files are of, and which of the files cannot be read, and why."""
        candidates: list[Candidate] = []
        unreadable: list[str] = []
        for how, found in founds:
            builds, problems = self._opened.candidates(how, found)
            candidates += builds
            unreadable += problems
        return candidates, unreadable

    def _answered(
        self, result: Resolution, selection: Selection, unreadable: Sequence[str], *, is_fetched: bool
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
            files=[image.path for image in binary.files],
            reason=Reason.SYMBOLIZED,
            detail="",
            problems=[*unreadable, *differing, *binary.refused],
        )

"""The report as data."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from symbolize.core.arrays import Bool, Int64, UInt8, distinct, marked
from symbolize.core.failures import Failure
from symbolize.core.reasons import Reason
from symbolize.profile import NONE, Profile
from symbolize.report.heaviest import TopFunction, Weights, heaviest, weights_of

TOP_FUNCTIONS = 10


class MappingOutcome(Protocol):
    """The result for one mapping of the profile, or for the locations without one (NONE).

    `tried` are paths and servers with their outcome; `detail` says why no file was used. `wanted` are the files of the
    binary with the build id `wanted_id` that are missing: "executable", "debuginfo". `state` of a plan says whether the
    symbol table is there. `failures` are servers and files that may have missing names and failed.
    """

    @property
    def mapping(self) -> int: ...
    @property
    def files(self) -> Sequence[str]: ...
    @property
    def verified(self) -> bool: ...
    @property
    def detail(self) -> str: ...
    @property
    def tried(self) -> Sequence[tuple[str, str]]: ...
    @property
    def problems(self) -> Sequence[str]: ...
    @property
    def wanted(self) -> Sequence[str]: ...
    @property
    def wanted_id(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def failures(self) -> Sequence[Failure]: ...


@dataclass(eq=False, slots=True)
class MappingRow:
    """One mapping in the report. Values are sums of sample values over the frames in the mapping.

    `misses` has reason, number and value of locations without names, the heaviest first. `approximate_lines` counts the
    locations with the nearest earlier line instead of their own, `approximate_value` is their value.
    """

    name: str
    build_id: str
    files: list[str]
    verified: bool
    locations: int
    symbolized_locations: int
    value: float
    symbolized_value: float
    misses: list[tuple[Reason, int, float]]
    detail: str
    tried: Sequence[tuple[str, str]]
    problems: list[str]
    wanted: list[str]
    wanted_id: str
    state: str
    approximate_lines: int = 0
    approximate_value: float = 0.0
    failures: Sequence[Failure] = ()


@dataclass(eq=False)
class SharedCode:
    """Code of a binary, vaddrs `[begin, end)`, that several functions share: its time may belong to any of them.

    `functions` has readable name, linked name, path and line of each (empty and 0: unknown), `evidence` how that is
    known. `rows` are the locations of the profile in it, at least one, `shown` is the name of the first of them
    (empty: none), `value` their sample value.
    """

    binary: str
    begin: int
    end: int
    evidence: str
    functions: list[tuple[str, str, str, int]]
    rows: Int64
    shown: str = ""
    value: float = 0.0


@dataclass(eq=False)
class Report:
    """What a run achieved. `value` counts frames: a sample adds its value for every frame of its stack.

    `sample_type` and `unit` name the values; `sample_value` is their sum over the samples.
    """

    mappings: list[MappingRow]
    samples: int
    locations: int
    symbolized_locations: int
    value: float
    symbolized_value: float
    sample_value: float
    sample_type: str
    unit: str
    top: list[TopFunction]
    warnings: list[str]
    folded: list[SharedCode] = field(default_factory=list)

    def __repr__(self) -> str:
        return (
            f"<Report: {self.percent:.1f} % of {self.sample_type or 'sample'} value symbolized, "
            f"{self.symbolized_locations:,} of {self.locations:,} locations>"
        )

    @property
    def percent(self) -> float:
        """Percent of the frames, weighted by sample value, that have a name; 100 for a profile without frames.

        Where all values are 0, locations count.
        """
        if self.value:
            return 100.0 * self.symbolized_value / self.value
        return 100.0 * self.symbolized_locations / self.locations if self.locations else 100.0

    @property
    def failures(self) -> list[Failure]:
        """The first failure of each server or file that may have missing names or lines."""
        failures: dict[str, Failure] = {}
        for row in self.mappings:
            for failure in row.failures if row.locations else ():
                failures.setdefault(failure.place, failure)
        return list(failures.values())


def build_report(
    profile: Profile,
    reasons: UInt8,
    outcomes: Sequence[MappingOutcome],
    warnings: list[str],
    folded: Sequence[SharedCode] = (),
    approximate: Bool | None = None,
) -> Report:
    """Group the outcomes of all locations that samples use by mapping and reason, weighted by sample value.

    `approximate` marks the locations whose line is not their own.
    """
    strings, locations = profile.strings, profile.locations
    weights = weights_of(profile)
    used = marked(profile.samples.locations, len(locations))
    named = reasons <= Reason.HAD_NAMES
    if approximate is None:
        approximate = np.zeros(len(locations), np.bool_)
    folded = [with_weight(code, profile, weights) for code in folded]
    column = profile.weight_column()
    kind = profile.sample_types[column] if column >= 0 else None
    return Report(
        mapping_rows(profile, reasons, outcomes, np.flatnonzero(used), weights, approximate),
        len(profile.samples),
        int(used.sum()),
        int((used & named).sum()),
        float(weights.locations.sum()),
        float(weights.locations[named].sum()),
        float(weights.samples.sum()),
        strings.text(kind.type) if kind else "",
        strings.text(kind.unit) if kind else "",
        heaviest(profile, weights, TOP_FUNCTIONS),
        warnings,
        sorted(folded, key=lambda code: (-code.value, code.binary, code.begin)),
    )


def mapping_rows(
    profile: Profile,
    reasons: UInt8,
    outcomes: Sequence[MappingOutcome],
    counted: Int64,
    weights: Weights,
    approximate: Bool,
) -> list[MappingRow]:
    """A row for each of `outcomes`, over the locations `counted`; none for those in no mapping if there are none."""
    strings, mappings, by_location = profile.strings, profile.mappings, weights.locations
    named = reasons <= Reason.HAD_NAMES
    mapping_of = profile.locations.mapping
    counted = counted[np.argsort(mapping_of[counted], kind="stable")]
    edges = np.searchsorted(mapping_of[counted], np.arange(NONE, len(mappings) + 1))
    rows = []
    for outcome in outcomes:
        mapping = outcome.mapping
        here = counted[edges[mapping + 1] : edges[mapping + 2]]
        if mapping == NONE and not len(here):
            continue
        misses = []
        for code in distinct(reasons[here[~named[here]]]).tolist():
            missed = here[reasons[here] == code]
            misses.append((Reason(code), len(missed), float(by_location[missed].sum())))
        inexact = here[approximate[here]]
        rows.append(
            MappingRow(
                strings.text(mappings.filename[mapping]) if mapping != NONE else "",
                strings.text(mappings.build_id[mapping]) if mapping != NONE else "",
                list(outcome.files),
                outcome.verified,
                len(here),
                int(named[here].sum()),
                float(by_location[here].sum()),
                float(by_location[here[named[here]]].sum()),
                sorted(misses, key=lambda miss: -miss[2]),
                outcome.detail,
                outcome.tried,
                list(outcome.problems),
                list(outcome.wanted),
                outcome.wanted_id,
                outcome.state,
                len(inexact),
                float(by_location[inexact].sum()),
                outcome.failures,
            )
        )
    return rows


def with_weight(code: SharedCode, profile: Profile, weights: Weights) -> SharedCode:
    """Shared code with the name that its first location got, and its sample value."""
    begin, end = profile.locations.line_offsets[code.rows[0] : code.rows[0] + 2].tolist()
    shown = profile.strings.text(int(weights.names[end - 1])) if begin < end else ""
    return replace(code, shown=shown, value=float(weights.locations[code.rows].sum()))

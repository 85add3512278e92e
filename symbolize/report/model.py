"""The report as data."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from symbolize.arrays import distinct
from symbolize.profile import Profile
from symbolize.reasons import Reason
from symbolize.report.weigh import weigh

TOP_FUNCTIONS = 10


@dataclass(eq=False)
class MappingOutcome:
    """What happened to one mapping of the profile, or to what lies in none (-1), as the pipeline tells it.

    `tried` are places with what came of them; `reason` and `detail` say why no file was used. `wanted` says what of the
    binary with the build id `wanted_id` is still missing: "executable", "debuginfo". `state` tells of a binary that was
    not asked yet whether its symbol table is there. `failures` are places that may have what is missing and failed.
    """

    mapping: int
    files: list[str] = field(default_factory=list)
    verified: bool = False
    reason: Reason = Reason.SYMBOLIZED
    detail: str = ""
    tried: Sequence[tuple[str, str]] = ()
    problems: list[str] = field(default_factory=list)
    wanted: list[str] = field(default_factory=list)
    wanted_id: str = ""
    state: str = ""
    failures: Sequence[tuple[str, str]] = ()


@dataclass(eq=False)
class MappingRow:
    """One mapping in the report. Values are sums of sample values over the frames in the mapping.

    `misses` holds reason, locations and value of what stayed without names, the heaviest first. `approximate_lines` are
    the locations whose line is the nearest earlier one instead of their own, `approximate_value` their value.
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
    failures: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True)
class TopFunction:
    """A function with the value of the samples it is the leaf of, and of those it is on the stack of."""

    name: str
    flat: float
    cumulative: float


@dataclass(eq=False)
class FoldedCode:
    """Code of a binary, vaddrs `[begin, end)`, that several functions share: the time may belong to any of them.

    `functions` has readable name, linked name, path and line of each (empty and 0: unknown); `evidence` says what
    tells. `rows` are the locations of the profile in it, `shown` the name that they got and `value` their sample
    value.
    """

    binary: str
    begin: int
    end: int
    evidence: str
    functions: list[tuple[str, str, str, int]]
    rows: NDArray[np.int64]
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
    folded: list[FoldedCode] = field(default_factory=list)

    @property
    def percent(self) -> float:
        """Percent of the frames, weighted by sample value, that have a name; 100 for a profile without frames.

        Where all values are 0, locations count.
        """
        if self.value:
            return 100.0 * self.symbolized_value / self.value
        return 100.0 * self.symbolized_locations / self.locations if self.locations else 100.0

    @property
    def failures(self) -> list[tuple[str, str]]:
        """The servers that failed, each with what it said first: with them, more might have names or lines."""
        failures: dict[str, str] = {}
        for row in self.mappings:
            for place, what in row.failures if row.locations else ():
                failures.setdefault(place, what)
        return list(failures.items())


def build_report(
    profile: Profile,
    reasons: NDArray[np.uint8],
    outcomes: Sequence[MappingOutcome],
    warnings: list[str],
    folded: Sequence[FoldedCode] = (),
    approximate: NDArray[np.bool_] | None = None,
) -> Report:
    """Group the outcomes of all locations that samples use by mapping and reason, weighted by sample value.

    `approximate` tells which locations have a line that is not their own.
    """
    strings, mappings, locations = profile.strings, profile.mappings, profile.locations
    samples = profile.samples
    weight_column = profile.weight_column()
    if weight_column >= 0 and len(samples):
        values = np.abs(np.ascontiguousarray(samples.values[:, weight_column]).astype(np.float64))
    else:
        values = np.zeros(len(samples))
    names = np.ascontiguousarray(profile.functions.name[locations.lines.function])
    by_location = np.zeros(len(locations))
    flat, cumulative = np.zeros(len(strings)), np.zeros(len(strings))
    last_sample = np.full(len(strings), -1, np.int64)
    weigh(
        values.data,
        np.ascontiguousarray(samples.location_offsets).data,
        np.ascontiguousarray(samples.locations).data,
        np.ascontiguousarray(locations.line_offsets).data,
        names.data,
        by_location.data,
        flat.data,
        cumulative.data,
        last_sample.data,
    )
    used = np.zeros(len(locations), np.bool_)
    used[samples.locations] = True
    named = reasons <= Reason.HAD_NAMES
    rows = []
    counted = np.flatnonzero(used)
    counted = counted[np.argsort(locations.mapping[counted], kind="stable")]
    edges = np.searchsorted(locations.mapping[counted], np.arange(-1, len(mappings) + 1))
    if not any(outcome.mapping < 0 for outcome in outcomes):
        outcomes = [*outcomes, MappingOutcome(-1)]
    for outcome in outcomes:
        mapping = outcome.mapping
        here = counted[edges[mapping + 1] : edges[mapping + 2]]
        if mapping < 0 and not len(here):
            continue
        misses = []
        for code in distinct(reasons[here[~named[here]]]).tolist():
            missed = here[reasons[here] == code]
            misses.append((Reason(code), len(missed), float(by_location[missed].sum())))
        inexact = here[approximate[here]] if approximate is not None else here[:0]
        rows.append(
            MappingRow(
                strings.text(mappings.filename[mapping]) if mapping >= 0 else "",
                strings.text(mappings.build_id[mapping]) if mapping >= 0 else "",
                outcome.files,
                outcome.verified,
                len(here),
                int(named[here].sum()),
                float(by_location[here].sum()),
                float(by_location[here[named[here]]].sum()),
                sorted(misses, key=lambda miss: -miss[2]),
                outcome.detail,
                outcome.tried,
                outcome.problems,
                outcome.wanted,
                outcome.wanted_id,
                outcome.state,
                len(inexact),
                float(by_location[inexact].sum()),
                outcome.failures,
            )
        )
    for code in folded:
        outermost = locations.line_offsets[code.rows + 1] - 1
        code.shown = strings.text(int(names[outermost[0]])) if len(outermost) and outermost[0] >= 0 else ""
        code.value = float(by_location[code.rows].sum())
    heaviest = np.lexsort((-cumulative, -flat))[:TOP_FUNCTIONS].tolist()
    kind = profile.sample_types[weight_column] if weight_column >= 0 else None
    return Report(
        rows,
        len(samples),
        int(used.sum()),
        int((used & named).sum()),
        float(by_location.sum()),
        float(by_location[named].sum()),
        float(values.sum()),
        strings.text(kind.type) if kind else "",
        strings.text(kind.unit) if kind else "",
        [
            TopFunction(strings.text(name), float(flat[name]), float(cumulative[name]))
            for name in heaviest
            if cumulative[name] > 0 and name
        ],
        warnings,
        sorted(folded, key=lambda code: (-code.value, code.binary, code.begin)),
    )

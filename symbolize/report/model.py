"""The report as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from symbolize.core.arrays import Int64
from symbolize.core.errors import printable
from symbolize.core.folded_code import FoldedCode
from symbolize.core.mapped_names import module_name
from symbolize.core.outcome import MappingOutcome
from symbolize.core.reasons import Failure, Reason
from symbolize.core.verdict import Verdict
from symbolize.profile import NOT_PROVED, FunctionRow

MAX_CAVEATS = 5
"""Binaries that are not proved and named one by one."""


@dataclass(eq=False, slots=True)
class MappingRow:
    """One mapping in the report: its `outcome`, and how much of the profile is in it.

    `flat` is the value of the samples whose leaf is in the mapping, `symbolized_flat` of those whose leaf has a name
    too; `cumulative` that of the samples with the mapping on their stack. `value` and `symbolized_value` count frames:
    a sample adds its value for every frame in the mapping.

    `misses` has reason, number and value of locations without names, the heaviest first; `missed_flat` the value of the
    samples whose leaf is one of these, by reason. `had_names` counts the locations whose names
    came with the profile, `without_lines` those that got names, but neither file nor line, and `without_lines_value` is
    the value of their frames, `without_lines_flat` that of the samples whose leaf is one of these. `approximate_lines`
    counts the locations with the nearest earlier line instead of their own, `approximate_value` is the value of their
    frames.
    """

    name: str
    build_id: str
    outcome: MappingOutcome
    locations: int
    symbolized_locations: int
    value: float
    symbolized_value: float
    misses: list[tuple[Reason, int, float]]
    approximate_lines: int = 0
    approximate_value: float = 0.0
    flat: float = 0.0
    symbolized_flat: float = 0.0
    cumulative: float = 0.0
    missed_flat: Mapping[Reason, float] = field(default_factory=dict)
    had_names: int = 0
    without_lines: int = 0
    without_lines_value: float = 0.0
    without_lines_flat: float = 0.0

    @property
    def files(self) -> list[str]:
        """The files that answered."""
        return list(self.outcome.files)

    @property
    def verdict(self) -> Verdict:
        """Whether these are of the build that ran."""
        return self.outcome.verdict

    @property
    def verified(self) -> bool:
        """Whether they are proved to be."""
        return self.outcome.verified

    @property
    def evidence(self) -> str:
        """What the verdict is known by, in words."""
        return self.outcome.evidence

    @property
    def detail(self) -> str:
        """Why no file was used."""
        return self.outcome.detail

    @property
    def tried(self) -> Sequence[tuple[str, str]]:
        """The places that were looked at, each with its outcome."""
        return self.outcome.tried

    @property
    def problems(self) -> list[str]:
        """What is wrong with the files, a sentence each."""
        return list(self.outcome.problems)

    @property
    def weight(self) -> tuple[float, float, float]:
        """What mappings are ordered by: own value, total, value of the frames."""
        return self.flat, self.cumulative, self.value


@dataclass(eq=False)
class FoldedRow:
    """Code of a binary that several functions share: its time may belong to any of them.

    `names` are the readable names of these functions, `rows` the locations of the profile in it, at least one, `shown`
    is the name of the first of them (empty: none), `value` their sample value, and `decided` that of the frames which
    their callers name.
    """

    binary: str
    code: FoldedCode
    names: Sequence[bytes]
    rows: Int64
    shown: str = ""
    value: float = 0.0
    decided: float = 0.0


@dataclass(eq=False)
class Report:
    """What a run achieved.

    `sample_type` and `unit` name the values, `sample_value` is their sum over the samples. `leaf_value` is the part of
    it in samples that have a stack, and `symbolized_leaf_value` in those whose leaf has a name. `value` and
    `symbolized_value` count frames: a sample adds its value for every frame of its stack. Values below 0 count with
    their size, but for those of `top`, the functions and unnamed mappings with the largest value of their own.
    `early_value` is that of the samples whose stacks end early along frame pointers.
    `samples` are the distinct ones of the profile; `sample_count` is how often they were taken, None if that is not
    known. `own_warnings` are on the profile; `problems` are of the run, with the installation, folders and the cache,
    and only those that no earlier report has.
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
    top: list[FunctionRow]
    own_warnings: list[str]
    problems: list[str] = field(default_factory=list)
    folded: list[FoldedRow] = field(default_factory=list)
    leaf_value: float = 0.0
    symbolized_leaf_value: float = 0.0
    sample_count: int | None = None
    early_value: float = 0.0

    def __repr__(self) -> str:
        named = f"{self.leaf_percent:.1f} % of {self.sample_type or 'sample'} value is in named code"
        return (
            f"<Report: {named if self.sample_value else 'no samples'}, "
            f"{self.symbolized_locations:,} of {self.locations:,} locations>"
        )

    @property
    def no_samples(self) -> str:
        """A sentence for a profile without values, of which there is no percentage; empty for others."""
        if self.sample_value:
            return ""
        return f"no samples: all values of {printable(self.sample_type)} are 0" if self.samples else "no samples"

    @property
    def warnings(self) -> list[str]:
        """What is wrong with the profile, and with the run."""
        return [*self.own_warnings, *self.problems]

    @property
    def cautions(self) -> list[str]:
        """The warnings, and what failed, a sentence each, as people read them."""
        failures = (f"{failure.sentence}; names or lines may be missing, run again" for failure in self.failures)
        return [*self.warnings, *failures]

    def by_weight(self, *, unused: bool = False) -> list[MappingRow]:
        """The mappings that have locations, or all if `unused` ones count too, the heaviest first."""
        rows = (row for row in self.mappings if row.locations or unused)
        return sorted(rows, key=lambda row: (*(-each for each in row.weight), row.name))

    @property
    def percent(self) -> float:
        """Percent of the frames, weighted by sample value, that have a name; 0 where no stack has a value."""
        return 100.0 * self.symbolized_value / self.value if self.value else 0.0

    @property
    def leaf_percent(self) -> float:
        """Percent of the sample value whose leaf has a name, so that it is the value of a named function: samples
        without a stack are in none. 0 where there are no values."""
        return 100.0 * self.symbolized_leaf_value / self.sample_value if self.sample_value else 0.0

    @property
    def lower_percent(self) -> float:
        """The lower one of `percent` and `leaf_percent`, for checks."""
        return min(self.percent, self.leaf_percent)

    @property
    def shared_value(self) -> float:
        """Value of the frames in code that several functions share."""
        return sum(row.value for row in self.folded)

    @property
    def decided_value(self) -> float:
        """Value of those of them whose callers say which of the functions they are."""
        return sum(row.decided for row in self.folded)

    @property
    def caveats(self) -> list[str]:
        """A sentence on the binaries that named something and are not proved to be those that ran, the heaviest first,
        with the share of the value whose leaf they named; none if all are proved."""
        named = (row for row in self.by_weight() if row.symbolized_locations > row.had_names)
        values: dict[tuple[str, Verdict], float] = {}
        sureness: dict[tuple[str, Verdict], str] = {}
        for row in named:
            if row.files and not row.verified:  # a library is mapped by many processes
                key = module_name(row.name or row.files[0]), row.verdict
                values[key] = values.get(key, 0.0) + row.symbolized_flat
                sureness.setdefault(key, row.outcome.sureness)
        total = self.sample_value or 1.0
        keys = sorted(values, key=lambda key: -values[key])
        shown = [f"{key[0]}, {100 * values[key] / total:.1f} % ({sureness[key]})" for key in keys[:MAX_CAVEATS]]
        if more := keys[MAX_CAVEATS:]:
            shown.append(f"and {len(more)} more, {100 * sum(values[key] for key in more) / total:.1f} %")
        return [f"{NOT_PROVED}{'; '.join(shown)}"] if shown else []

    @property
    def had_names(self) -> int:
        """How many locations have names that came with the profile."""
        return sum(row.had_names for row in self.mappings)

    @property
    def failures(self) -> list[Failure]:
        """The first failure of each server or file that may have missing names or lines."""
        failures: dict[str, Failure] = {}
        for row in self.mappings:
            for failure in row.outcome.failures if row.locations else ():
                failures.setdefault(failure.place, failure)
        return list(failures.values())

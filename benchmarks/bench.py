"""What all measurements share."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import peers as p
from measure import Contender, Failed, Result, race, run_once
from page import Target, cost_cells, mib, ratio, seconds
from peers import Ours, Peers
from subjects import Subject

NAN = float("nan")
WARM = f"{p.OURS}, warm"


@dataclass
class Bench:
    """What all parts share: subjects, commands, how often and how long, a folder for files."""

    subjects: Sequence[Subject]
    peers: Peers
    ours: Ours
    folder: Path
    runs: int
    limit: int
    quick: bool
    cold_races: dict[tuple[str, int], dict[str, Result]] = field(default_factory=dict)

    def race(self, contenders: Sequence[Contender], runs: int | None = None) -> dict[str, Result]:
        """Run contenders in turn."""
        return race(contenders, runs or self.runs, self.limit)

    def measured(self, contender: Contender) -> dict[str, float]:
        """The median of each figure that a probe prints; empty if it fails."""
        result = self.race([contender], 3)[contender.name]
        answers = [json.loads(run.output) for run in result.runs]
        middle = len(answers) // 2
        return {key: sorted(answer[key] for answer in answers)[middle] for key in answers[0]} if answers else {}

    def cold(self, subject: Subject, count: int, names: Sequence[str] = (p.LLVM,)) -> dict[str, Result]:
        """symbolize without a cache and others, over the same addresses; once for each subject and count."""
        if (subject.key, count) not in self.cold_races:
            profile, addresses, _ = subject.inputs(self.folder, count)
            ours = self.ours.lookup(subject, profile, self.folder / "out.pb.gz")
            self.cold_races[subject.key, count] = self.race([ours, *self.peers.lookups(subject, addresses, names)])
        return self.cold_races[subject.key, count]

    def cache(self, subject: Subject, jobs: int = 1) -> Path:
        """Where the tables of a subject go."""
        return self.folder / f"cache-{subject.key}-{jobs}"

    def filled_cache(self, subject: Subject) -> Path | None:
        """A cache that holds the table of a subject; None if symbolize cannot make one."""
        cache = self.cache(subject)
        if self.ours.has_index and not cache.exists():
            attempt(self.ours.index(subject, cache), self.limit)
        return cache if cache.exists() else None

    def convert(self, subject: Subject) -> None:
        """Make the tables of the peers, if they are not there."""
        if not p.symcache(subject, self.folder).exists() and not p.gsym(subject, self.folder).exists():
            for contender in self.peers.conversions(subject, self.folder):
                attempt(contender, self.limit)


def attempt(contender: Contender, limit: int) -> None:
    """Run a command for what it leaves; if it fails, that will be missing."""
    try:
        run_once(contender, limit)
    except Failed as failure:
        print(f"{contender.name}: {failure}", file=sys.stderr)


def cost_rows(label: str, results: Mapping[str, Result], reference: Result | None = None) -> list[Sequence[str]]:
    """A row for each contender, with the ratios of `reference` to it."""
    rows = []
    for result in results.values():
        ratios = ["", ""]
        if reference is not None and result is not reference and result.runs:
            ratios = [ratio(reference.median(figure), result.median(figure)) for figure in ("wall", "memory")]
        rows.append([label, result.name, *cost_cells(result), *ratios])
    return rows


def against(what: str, subject: Subject, ours: Result, other: Result, figure: str, limit: float) -> Target:
    """A target for the ratio of one figure."""
    text: Callable[[float], str] = mib if figure == "memory" else seconds
    one, two = ours.median(figure), other.median(figure)
    return Target(what, subject.key, text(one), f"{text(two)} ({other.name})", one / two, limit)

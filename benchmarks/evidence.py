"""How often the judge of builds is wrong: programs in builds that differ little, each judged against recordings of all.

python benchmarks/evidence.py FOLDER [--pairs N] [--programs NAME...] [--write PAGE]

FOLDER keeps builds and recordings. FOLDER/sources may have source packages, unpacked (`apt-get source bzip2 zlib lz4`),
and FOLDER/packages versions of libssl3, libpython3.11 and libc6 (`apt-get download`). Needs perf, gcc, clang-19 and
qemu-user-static; a program whose compiler is missing is left out. Prints a page of the documentation, and each right
build that is refused on standard error.
"""

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import sqrt
from pathlib import Path
from statistics import median

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

import evidence_aarch64 as a  # noqa: E402
import evidence_builds as b  # noqa: E402
from answers import plain  # noqa: E402
from page import fill, table  # noqa: E402

import symbolize  # noqa: E402
from symbolize.core.arrays import Bool, offsets_of  # noqa: E402
from symbolize.core.verdict import Verdict  # noqa: E402
from symbolize.elf import read_build_id  # noqa: E402
from symbolize.evidence.judge import (  # noqa: E402
    CLAIM,
    MAX_DOUBT,
    REFUTED,
    SUPPORTED,
    Count,
    Evidence,
    doubt,
    support,
)
from symbolize.profile import IdOrigin, LeafKind, Lines, Profile, StackSource  # noqa: E402
from symbolize.profile.attachments import StackDumps  # noqa: E402

SIZES = (5, 20, 0)
"""Distinct leaves; 0: all."""
HARMFUL = 0.05
"""A build is harmful that gives another name to this share of the value at least."""
PAIRS = 26
OTHER_KINDS = 3
"""Of so many pairs one is judged by other evidence than leaves alone."""
SEED = 7
Z = 1.959964
"""Of a normal distribution 95 % are so many standard deviations around its mean."""


@dataclass(frozen=True)
class Kind:
    """What of a recording is evidence: its leaves, its stacks, or both."""

    text: str
    recording: str
    leaves: bool = True
    stacks: bool = True


LEAVES = Kind("leaves", "pointers", stacks=False)
X86_64, AARCH64 = "x86-64", "AArch64"
KINDS = {
    X86_64: (
        LEAVES,
        Kind("leaves, gperftools", "gperftools", stacks=False),
        Kind("leaves, pprof of Go", "go", stacks=False),
        Kind("leaves and stacks along frame pointers", "pointers"),
        Kind("leaves and copies of stacks", "copies"),
        Kind("stacks along frame pointers alone", "pointers", leaves=False),
    ),
    AARCH64: (
        Kind("leaves", "qemu", stacks=False),
        Kind("leaves and sound stacks", "qemu"),
        Kind("sound stacks alone", "qemu", leaves=False),
    ),
}
SOURCES = {
    "pointers": StackSource.FRAME_POINTERS,
    "copies": StackSource.OWN_UNWINDING,
    "qemu": StackSource.OWN_UNWINDING,
}
TITLE = "# Which build ran"
TEXT = """
`benchmarks/evidence.py` asks how often another file is taken for the build that ran. It makes several builds of a
program that differ little: by the compiler (gcc 12, clang 19, rustc, go) or its optimization, by a function that is
added at the begin or at the end, by a constant, by a function that is not inlined; of libraries there are several
versions of Debian's packages. Each build is recorded by perf (cpu-clock), the ids are taken out of the recording, and
it is symbolized with another build of the name alone, with the right one alone, and with both in the folders. There
were {right} right builds of {programs} programs and libraries ({languages}), and {pairs} pairs of a recording and
another build. In {harmful} pairs the other build is *harmful*: {harm:g} % of the value or more would get another name
by it.

The leaves are drawn by their weight, with a fixed seed. All harmful pairs are judged by leaves alone, every third one
by other evidence. Intervals are 95 %, by Wilson, and by the rule of three where all or none are counted; builds of
one program are not independent, so that true intervals are wider. *Misnamed* is the mean share of the value in all
harmful pairs, and *then misnamed* that by builds that are supported, which is what `--accept supported` leaves.
Stacks alone are what is left of a profile whose leaves may be no sampled instructions.

Before, when call sites alone were looked at, 239 of 260 harmful builds were named for recordings without stacks,
which misnamed 54.78 % of the value; with both in the folders 21 pairs were named rightly, and 239 not at all. For
stacks along frame pointers 7 of 113 right builds were refused.

On AArch64 the programs ran under qemu, which tells each block that it runs: leaves are instructions of these blocks,
and callers come from the calls and returns before, so that the stacks have no mistakes. Recordings of perf on such a
machine were not judged.

Other programs were recorded too, and judged with the files that ran: with assembler by hand (x264, x265, dav1d,
FFmpeg, libvpx, libcrypto, OpenBLAS, GMP, Nettle), stripped, static and position-independent ones of C, Go and Rust,
code for i386, compilers, node, Python and tools. Of 532 mappings none was refused, and each with 20 leaves or more
was supported. All 24,446 sampled instructions begin one; on unwound stacks 1 of 5,277 call sites lies in no call, and
all 3,777 direct calls lead to the next frame.

To judge a recording took {judging:.0f} ms of processor time in the median and {longest:.0f} ms at most, more than
where the build id proves the file. A recording of clang, with 7,131 addresses in its libraries of 200 MB, took 1.6 s.
"""
WEIGHTS = """
What an item weighs, in the right build and in others, and how many items decide alone. Weights of all kinds add up,
in powers of ten. From {refuted:g} against it on a file is refused; it is supported from {supported:g} for it on, if
less than {doubt:g} speaks against it. A build id that was read later weighs {claim:g}.
"""
WORDS = {
    Evidence.LEAVES: "sampled instructions, x86",
    Evidence.PLACES: "sampled instructions, other machines",
    Evidence.SITES: "call sites on stacks unwound by call frame information",
    Evidence.DOUBTFUL_SITES: "call sites on other stacks",
    Evidence.TARGETS: "direct calls on stacks unwound by call frame information",
    Evidence.DOUBTFUL_TARGETS: "direct calls on other stacks",
    Evidence.LISTED: "callers by the lists of calls in debug information",
}
Names = dict[int, str]
"""By address."""


@dataclass
class Tally:
    """What was counted of pairs, of one kind and size."""

    right: Counter[str] = field(default_factory=Counter)
    harmful: Counter[str] = field(default_factory=Counter)
    both: Counter[str] = field(default_factory=Counter)
    misnamed: list[float] = field(default_factory=list)
    believed: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """What was said of a mapping: the verdict, the file that named it, and names by address."""

    verdict: Verdict
    files: Sequence[str]
    names: Names
    text: str

    @property
    def is_named(self) -> bool:
        """Whether anything was."""
        return any(self.names.values())


def load(path: Path, recording: str) -> Profile:
    """A recording without its build ids and names, its leaves exact."""
    profile = symbolize.load(path)
    locations = profile.locations
    profile.locations = replace(locations, line_offsets=np.zeros_like(locations.line_offsets), lines=Lines())
    profile.mappings.has_functions = np.zeros_like(profile.mappings.has_functions)
    profile.mappings.build_id = np.zeros_like(profile.mappings.build_id)
    profile.leaf_kinds = np.full(len(profile.sample_types), LeafKind.EXACT, np.uint8)
    profile.stack_source = SOURCES.get(recording, StackSource.RECORDER)
    return profile


def own_rows(profile: Profile, name: str) -> Bool:
    """Which mappings are of a file with this name, and behind them that no mapping is: bool[n + 1]."""
    names = [profile.strings.text(int(row)).rpartition("/")[2] for row in profile.mappings.filename]
    return np.array([*(each == name for each in names), False])


def leaves_of(profile: Profile, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Of each sample the address of its user leaf, 0 if that is not in the file, and its value."""
    samples, locations = profile.samples, profile.locations
    first = samples.location_offsets[:-1]
    has_frames = np.diff(samples.location_offsets) > 0
    rows = samples.locations[np.where(has_frames, first, 0)]
    is_own = has_frames & own_rows(profile, name)[locations.mapping[rows]]
    values = samples.values[:, profile.weight_column()]
    return np.where(is_own, locations.address[rows], np.uint64(0)), values


def cut(profile: Profile, name: str, kind: Kind, size: int, seed: Sequence[int]) -> Profile:
    """The samples of so many leaves in a file, drawn by their weight, as far as they are evidence of a kind."""
    addresses, values = leaves_of(profile, name)
    distinct, which = np.unique(addresses, return_inverse=True)
    weights = np.bincount(which, values).astype(np.float64)
    weights[distinct == 0] = 0
    count = int((weights > 0).sum())
    drawn = np.random.default_rng(seed).choice(len(distinct), min(size or count, count), False, weights / weights.sum())
    kept = np.isin(which, drawn)
    result = profile.copy()
    samples = profile.samples.taken(kept)
    if not kind.stacks:
        rows = samples.locations[samples.location_offsets[:-1]]
        samples = replace(samples, location_offsets=np.arange(len(samples) + 1), locations=rows)
    elif profile.stack_dumps is not None:
        result.stack_dumps = kept_dumps(profile.stack_dumps, kept)
    used, index = np.unique(samples.locations, return_inverse=True)
    result.locations = profile.locations.take(used.astype(np.int64))
    result.samples = replace(samples, locations=index.astype(np.int32))
    if not kind.stacks:
        result.stack_dumps = None
    if not kind.leaves:
        result.leaf_kinds = np.zeros(0, np.uint8)
    return result


def kept_dumps(dumps: StackDumps, kept: Bool) -> StackDumps:
    """The copies of the stacks of samples that are kept."""
    rows = np.flatnonzero(kept[dumps.sample])
    columns = ("offset", "size", "registers", "is_32bit", "is_full", "space")
    number = offsets_of(kept)[:-1]
    return replace(dumps, sample=number[dumps.sample[rows]], **{each: getattr(dumps, each)[rows] for each in columns})


def with_id(profile: Profile, build_id: str, origin: IdOrigin) -> Profile:
    """The same with a build id for all mappings."""
    result = profile.copy()
    mappings = result.mappings
    row = result.strings.add(build_id.encode())
    result.mappings = replace(mappings, build_id=np.full_like(mappings.build_id, row))
    result.id_origins = np.full(len(mappings), origin, np.uint8)
    return result


def outcome(symbolizer: symbolize.Symbolizer, profile: Profile, name: str) -> Outcome:
    """What is said of a file, and the names of its leaves."""
    result = symbolizer.symbolize(profile)
    found, locations = result.profile, result.profile.locations
    functions, lines = found.functions, locations.lines
    names: Names = {}
    first = found.samples.locations[found.samples.location_offsets[:-1]]
    is_own = own_rows(found, name)[locations.mapping]
    for row in np.unique(first[is_own[first]]).tolist():
        begin, end = locations.line_offsets[row : row + 2].tolist()
        text = found.strings.text(int(functions.name[lines.function[begin]])) if end > begin else ""
        names[int(locations.address[row])] = plain(text) if text else ""
    rows = [row for row in result.report.mappings if row.name.rpartition("/")[2] == name and row.locations]
    verdicts = [row.verdict for row in rows] or [Verdict.UNVERIFIED]
    return Outcome(
        min(verdicts),
        [file for row in rows for file in row.files],
        names,
        "; ".join(row.evidence or row.detail for row in rows),
    )


def misnamed(names: Names, truth: Names, values: dict[int, float]) -> float:
    """The share of the value of leaves that has another name than it should."""
    wrong = sum(value for leaf, value in values.items() if names.get(leaf) and names[leaf] != truth.get(leaf))
    return wrong / (sum(values.values()) or 1)


def values_of(profile: Profile, name: str) -> dict[int, float]:
    """The value of each leaf in a file."""
    addresses, values = leaves_of(profile, name)
    result: dict[int, float] = defaultdict(float)
    for address, value in zip(addresses.tolist(), values.tolist(), strict=True):
        if address:
            result[address] += value
    return result


class Subject:
    """Builds of one program with their recordings, and what was found."""

    def __init__(self, builds: Sequence[b.Build], recordings: Sequence[dict[str, Path]]) -> None:
        self.builds = builds
        self.name = builds[0].subject.name
        self.file = builds[0].subject.file
        self.paths = recordings
        self.identities = [read_build_id(str(each.file)) or "" for each in builds]
        self.symbolizers: dict[tuple[int, ...], symbolize.Symbolizer] = {}

    def symbolizer(self, *builds: int) -> symbolize.Symbolizer:
        """One that has some of the builds."""
        if builds not in self.symbolizers:
            folders = [self.builds[each].folder for each in builds]
            self.symbolizers[builds] = symbolize.Symbolizer(folders, cache=None)
        return self.symbolizers[builds]

    def close(self) -> None:
        """Close the files."""
        for each in self.symbolizers.values():
            each.close()

    def truth(self, profile: Profile, build: int) -> Names:
        """The names of leaves that a build gives, whether it is the right one or not."""
        known = with_id(cut(profile, self.file, LEAVES, 0, (SEED,)), self.identities[build], IdOrigin.RECORDED)
        return outcome(self.symbolizer(build), known, self.file).names

    def cost(self, build: int, recording: str) -> float:
        """How many seconds longer it takes to find the build that ran if no build id proves it."""
        unknown = load(self.paths[build][recording], recording)
        seconds = []
        for profile in (with_id(unknown, self.identities[build], IdOrigin.RECORDED), unknown):
            with symbolize.Symbolizer([self.builds[build].folder], cache=None) as symbolizer:
                begin = time.process_time()
                symbolizer.plan(profile)
                seconds.append(time.process_time() - begin)
        return seconds[1] - seconds[0]


def judge(
    subject: Subject, kinds: Sequence[Kind], tallies: Mapping[tuple[Kind, int], Tally], limit: int
) -> Counter[str]:
    """Judge builds of a program by recordings of each; how many pairs there were."""
    counts: Counter[str] = Counter()
    number = sum(map(ord, subject.name))
    pairs = [(r, w) for r in range(len(subject.builds)) for w in range(len(subject.builds)) if r != w]
    chosen = {pairs[i] for i in np.random.default_rng((SEED, number)).permutation(len(pairs))[:limit]}
    for right, paths in enumerate(subject.paths):
        found = {name: load(path, name) for name, path in paths.items()}
        profiles = {name: profile for name, profile in found.items() if values_of(profile, subject.file)}
        if kinds[0].recording not in profiles:
            print(f"left out: no sample is in {subject.file} of {subject.builds[right].variant}", file=sys.stderr)
            continue
        truths = {name: subject.truth(profile, right) for name, profile in profiles.items()}
        whole, truth = profiles[kinds[0].recording], truths[kinds[0].recording]
        values = values_of(whole, subject.file)
        others = [wrong for each, wrong in pairs if each == right and (each, wrong) in chosen]
        harmful = [wrong for wrong in others if misnamed(subject.truth(whole, wrong), truth, values) >= HARMFUL]
        counts.update(right=1, pairs=len(others), harmful=len(harmful))
        for kind in kinds:
            if kind.recording not in profiles:
                continue
            for size in SIZES:
                part = cut(profiles[kind.recording], subject.file, kind, size, (SEED, number, right, size))
                if not len(part.samples):
                    continue
                tally = tallies[kind, size]
                judge_right(subject, right, part, tally, f"{kind.text}, {size or 'all'} leaves")
                for wrong in harmful if kind is kinds[0] else harmful[::OTHER_KINDS]:
                    judge_pair(subject, (right, wrong), part, truths[kind.recording], tally)
    return counts


def judge_right(subject: Subject, right: int, part: Profile, tally: Tally, what: str) -> None:
    """What is said of the build that ran."""
    found = outcome(subject.symbolizer(right), part, subject.file)
    tally.right["judged"] += 1
    tally.right["supported"] += found.verdict == Verdict.SUPPORTED
    if not found.files:
        tally.right["refused"] += 1
        build = subject.builds[right]
        print(f"REFUSED: {build.subject.name} {build.variant}, {what}: {found.text}", file=sys.stderr)


def judge_pair(subject: Subject, pair: tuple[int, int], part: Profile, truth: Names, tally: Tally) -> None:
    """What is said of a harmful build alone, and beside the one that ran, which is the first of the pair."""
    values = values_of(part, subject.file)
    alone = outcome(subject.symbolizer(pair[1]), part, subject.file)
    tally.harmful["judged"] += 1
    tally.harmful["named"] += alone.is_named
    is_supported = alone.is_named and alone.verdict == Verdict.SUPPORTED
    wrong = misnamed(alone.names, truth, values)
    tally.harmful["supported"] += is_supported
    tally.misnamed.append(wrong)
    tally.believed.append(wrong if is_supported else 0.0)
    both = outcome(subject.symbolizer(*pair), part, subject.file)
    tally.both["judged"] += 1
    tally.both["wrong" if misnamed(both.names, truth, values) else "right" if both.is_named else "nothing"] += 1


def bounds(count: int, total: int) -> tuple[float, float]:
    """The 95 % bounds of a share by Wilson; of none or all the rule of three."""
    if not total:
        return 0.0, 1.0
    if count in (0, total):
        return (0.0, min(3 / total, 1.0)) if not count else (max(1 - 3 / total, 0.0), 1.0)
    share, z2 = count / total, Z * Z / total
    middle, half = share + z2 / 2, Z * sqrt(share * (1 - share) / total + z2 / total / 4)
    return (middle - half) / (1 + z2), (middle + half) / (1 + z2)


def share(count: int, total: int) -> str:
    """So many of so many, with bounds in percent."""
    low, high = bounds(count, total)
    return f"{count} of {total} ({100 * low:.1f} to {100 * high:.1f} %)"


def subjects(folder: Path, wanted: Sequence[str]) -> Iterator[tuple[str, Subject]]:
    """The machine and the builds of each program, with their recordings; what is missing is said."""
    b.prepare(folder)
    all_of = [(X86_64, each.name, b.builds(each, folder), b.record) for each in b.programs(folder)]
    all_of += [(X86_64, each.name, b.unpacked(each, folder), b.record) for each in b.LIBRARIES]
    all_of += [(AARCH64, each.name, a.builds(each, folder), a.record) for each in a.programs(folder)]
    for machine, name, builds, record in all_of:
        if not wanted or name in wanted:
            yield from recorded(machine, builds, partial(record, folder=folder))


def recorded(
    machine: str, found: Iterable[b.Build], record: Callable[[b.Build], dict[str, Path]]
) -> Iterator[tuple[str, Subject]]:
    """Builds of a program that could be made and recorded, if there are several."""
    builds, recordings = [], []
    try:
        for build in found:
            recordings.append(record(build))
            builds.append(build)
    except b.Missing as problem:
        print(f"left out: {problem}", file=sys.stderr)
    if len(recordings) > 1:
        yield machine, Subject(builds[: len(recordings)], recordings)


def mean(values: Sequence[float]) -> str:
    """The mean share, in percent."""
    return f"{100 * sum(values) / len(values):.2f} %" if values else ""


def outcomes(tallies: Mapping[tuple[Kind, int], Tally]) -> str:
    """The table of what was said of pairs."""
    heading = (
        "evidence",
        "leaves:",
        "harmful builds named:",
        "misnamed:",
        "harmful builds supported:",
        "then misnamed:",
        "right builds refused:",
        "right builds supported:",
        "with both, named right:",
        "named wrong:",
    )
    rows = []
    for (kind, size), tally in tallies.items():
        harmful, right, both = tally.harmful, tally.right, tally.both
        if not right:
            continue
        rows.append(
            [
                kind.text,
                str(size or "all"),
                share(harmful["named"], harmful["judged"]),
                mean(tally.misnamed),
                share(harmful["supported"], harmful["judged"]),
                mean(tally.believed),
                share(right["refused"], right["judged"]),
                share(right["supported"], right["judged"]),
                share(both["right"], both["judged"]),
                share(both["wrong"], both["judged"]),
            ]
        )
    return table(heading, rows)


def thresholds() -> str:
    """The table of the kinds of evidence, with how much of each decides alone."""
    heading = ["evidence", "contradicts the right build:", "another one, little changed:", "much changed:"]
    heading += [
        "agrees with unrelated code:",
        "contradictions that refuse, of 5:",
        "of 20:",
        "of 100:",
        "supports from:",
    ]
    rows = []
    for evidence in Evidence:
        kind = evidence.value
        another = [f"{each:g}" for each in kind.in_another] if kind.in_another is not None else ["", ""]
        refusing = [least(count, partial(refuses, evidence, count)) for count in (5, 20, 100)]
        supporting = least(1000, partial(supports, evidence))
        rows.append([WORDS[evidence], f"{kind.in_right:.3g}", *another, f"{kind.by_chance:g}", *refusing, supporting])
    return table(heading, rows)


def refuses(evidence: Evidence, judged: int, contradicting: int) -> bool:
    """Whether a file is refused for so many contradictions."""
    return doubt([Count(evidence, judged, contradicting)]) >= REFUTED


def supports(evidence: Evidence, agreeing: int) -> bool:
    """Whether a file is supported by so many items that agree."""
    return support([Count(evidence, agreeing, 0)]) >= SUPPORTED


def least(limit: int, holds: Callable[[int], bool]) -> str:
    """The least number up to a limit for which something holds."""
    return next((str(number) for number in range(1, limit + 1) if holds(number)), "never")


def render(
    counts: Counter[str],
    tallies: Mapping[str, Mapping[tuple[Kind, int], Tally]],
    programs: Counter[str],
    costs: Sequence[float],
) -> str:
    """The page; `costs` are seconds."""
    figures: dict[str, float] = {"programs": sum(programs.values()), **counts}
    figures |= {"judging": 1e3 * median(costs), "longest": 1e3 * max(costs)}
    languages = ", ".join(f"{count} in {language}" for language, count in programs.items() if "library" not in language)
    texts = TEXT.strip().format(**figures, languages=languages, harm=100 * HARMFUL).split("\n\n")
    parts = [TITLE, *(f"\n{fill(text)}" for text in texts)]
    for machine, found in tallies.items():
        parts += [f"\n## {machine}\n", outcomes(found)]
    weights = WEIGHTS.format(refuted=REFUTED, supported=SUPPORTED, doubt=MAX_DOUBT, claim=CLAIM)
    parts += ["\n## Weights\n", fill(weights.strip()), "", thresholds(), ""]
    return "\n".join(parts)


def main() -> int:
    """Judge, and print or write the page; 1 if a right build was refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=int, default=PAIRS, help="pairs of a program, at most")
    parser.add_argument("--programs", nargs="*", default=())
    parser.add_argument("--write", type=Path, metavar="PAGE")
    arguments = parser.parse_args()
    tallies = {machine: {(kind, size): Tally() for kind in kinds for size in SIZES} for machine, kinds in KINDS.items()}
    counts, languages = Counter[str](), Counter[str]()
    costs: list[float] = []
    for machine, subject in subjects(arguments.folder.resolve(), arguments.programs):
        begin = time.perf_counter()
        found = judge(subject, KINDS[machine], tallies[machine], arguments.pairs)
        costs += [subject.cost(build, KINDS[machine][0].recording) for build in range(len(subject.builds))]
        subject.close()
        counts.update(found)
        if machine == X86_64:
            languages[subject.builds[0].subject.language] += 1
        print(f"{machine} {subject.name}: {dict(found)}, {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    page = render(counts, tallies, languages, costs)
    if arguments.write:
        arguments.write.write_text(page)
    else:
        print(page)
    return int(any(tally.right["refused"] for each in tallies.values() for tally in each.values()))


if __name__ == "__main__":
    sys.exit(main())

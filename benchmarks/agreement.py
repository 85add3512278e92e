"""Compares symbolize with five engines: what at least two of them say is the reference, every difference gets a class.

python benchmarks/agreement.py [--addresses N] [--slow N] [--binaries NAME...] [--file NAME=BINARY[,DEBUG]]
                               [--peers-python PYTHON] [--write PAGE]

Engines: llvm-symbolizer, GNU addr2line, gimli, symbolic and eu-addr2line (some of the addresses, it is slow). Prints
tables, which docs/correctness.md sums up, and samples of differences without a class on standard error.
"""

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

import peers as p  # noqa: E402
from answers import Answer, base, ours, plain, theirs  # noqa: E402
from page import fill, replace_section, table  # noqa: E402
from peers import Peers  # noqa: E402
from rules import CLASSES, Judge  # noqa: E402
from subjects import KNOWN, Subject, find_subjects, text_vaddrs  # noqa: E402

from symbolize.elf import ElfImage  # noqa: E402

ENGINES = (p.LLVM, p.GNU, p.NEWEST_GIMLI, p.SYMBOLIC, p.ELFUTILS)
FIELDS = ("function", "file", "line", "inline chain")


def values(answer: Answer) -> tuple[Hashable, ...]:
    """What is compared: each of FIELDS in a form that does not depend on the spelling."""
    if not answer:
        return ("", "", 0, ())
    first, *rest = answer
    chain = tuple((plain(frame.function), base(frame.file), frame.line) for frame in rest)
    return (plain(first.function), base(first.file), first.line, chain)


@dataclass
class Comparison:
    """The counts of a binary."""

    addresses: int = 0
    voted: Counter[str] = field(default_factory=Counter)
    equal: dict[str, Counter[str]] = field(default_factory=dict)
    whole: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    classes: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[str]] = field(default_factory=dict)
    troubles: dict[str, str] = field(default_factory=dict)


def reference(votes: Sequence[Hashable]) -> set[Hashable]:
    """What most engines say, at least two; several where as many say something else."""
    counts = Counter(votes)
    most = max(counts.values(), default=0)
    return {vote for vote, count in counts.items() if count == most} if most > 1 else set()


def compare(subject: Subject, peers: Peers, folder: Path, count: int, slow: int, limit: int) -> Comparison:
    """Compare at random addresses of a binary."""
    result = Comparison()
    with ElfImage.open(subject.binary) as image:
        vaddrs = text_vaddrs(image, count)
    answers: dict[str, dict[int, Answer]] = {p.OURS: dict(zip(vaddrs, ours(subject, vaddrs), strict=True))}
    for engine in ENGINES:
        some = vaddrs[:: max(1, len(vaddrs) // slow)] if engine == p.ELFUTILS else vaddrs
        try:
            found = theirs(engine, peers, subject, folder, some, limit)
        except (ValueError, subprocess.TimeoutExpired) as error:
            result.troubles[engine] = str(error)[-200:]
            continue
        told = zip(some, found, strict=True)
        # gimli reads no symbols: where no unit is it has not looked.
        answers[engine] = {vaddr: each for vaddr, each in told if each or engine != p.NEWEST_GIMLI}
        result.asked[engine] = len(answers[engine])
    judge = Judge(subject)
    for vaddr in vaddrs:
        count_address(result, judge, vaddr, {name: found[vaddr] for name, found in answers.items() if vaddr in found})
    result.addresses = len(vaddrs)
    return result


def count_address(result: Comparison, judge: Judge, vaddr: int, answers: Mapping[str, Answer]) -> None:
    """Count an address."""
    compared = {name: values(answer) for name, answer in answers.items()}
    wanted = [reference([compared[name][i] for name in answers if name != p.OURS]) for i in range(len(FIELDS))]
    result.voted.update(name for name, choice in zip(FIELDS, wanted, strict=True) if choice)
    for engine, found in compared.items():
        agreed = [not choice or value in choice for value, choice in zip(found, wanted, strict=True)]
        counter = result.equal.setdefault(engine, Counter())
        counter.update(name for name, yes, choice in zip(FIELDS, agreed, wanted, strict=True) if yes and choice)
        result.whole[engine] += all(agreed)
    voters = [
        [answers[e] for e in answers if e != p.OURS and compared[e][i] in choice] for i, choice in enumerate(wanted)
    ]
    differing = [i for i, choice in enumerate(wanted) if choice and compared[p.OURS][i] not in choice]
    if not differing:
        kind = judge.spelling(answers[p.OURS], *voters) if any(wanted) else "no majority"
    else:
        others = [answer for name, answer in answers.items() if name != p.OURS]
        kind = judge.difference(vaddr, answers[p.OURS], others, {FIELDS[i]: voters[i] for i in differing})
    result.classes[kind] += 1
    samples = result.samples.setdefault(kind, [])
    if len(samples) < 5:
        lines = "".join(f"\n    {name:16} {' < '.join(map(str, map(tuple, a)))}" for name, a in answers.items())
        samples.append(f"{vaddr:#x} ({', '.join(FIELDS[i] for i in differing)}){lines}")


def main() -> int:
    """Compare, print; 1 if there is a difference without a class."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--addresses", type=int, default=100_000, metavar="N")
    parser.add_argument("--slow", type=int, default=2000, metavar="N", help="for eu-addr2line (default: 2000)")
    parser.add_argument("--limit", type=int, default=1200, metavar="SECONDS", help="for one engine (default: 1200)")
    parser.add_argument("--binaries", nargs="+", metavar="NAME", help=f"of these only: {', '.join(KNOWN)}, or a --file")
    parser.add_argument("--file", action="append", default=[], metavar="NAME=BINARY[,DEBUG]", help="another binary")
    parser.add_argument("--llvm", default="19", metavar="VERSION")
    parser.add_argument("--peers-python", type=Path, metavar="PYTHON", help="a Python with the package symbolic")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "benchmarks", help="for programs that are built")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="page to replace the section of")
    parser.add_argument("--show", nargs="+", default=["unexplained"], metavar="CLASS", help="print samples of these")
    options = parser.parse_args()
    given = {
        name: list(map(Path, files.split(","))) for name, _, files in (text.partition("=") for text in options.file)
    }
    subjects, missing = find_subjects(options.work.resolve(), given)
    peers = Peers.find(options.llvm, options.peers_python, options.work.resolve())
    results = {}
    for subject in subjects:
        if options.binaries and subject.key not in options.binaries:
            continue
        with tempfile.TemporaryDirectory() as folder:
            results[subject.key] = compare(subject, peers, Path(folder), options.addresses, options.slow, options.limit)
        for kind in options.show:
            for sample in results[subject.key].samples.get(kind, []):
                print(f"\n{subject.key}, {kind}: {sample}", file=sys.stderr)
    for name, why in missing.items():
        print(f"{name}: {why}", file=sys.stderr)
    section = render(results, peers.versions())
    if options.write:
        options.write.write_text(replace_section(options.write.read_text(), section))
    else:
        print(section)
    return int(any(result.classes["unexplained"] for result in results.values()))


def share(count: int, total: int) -> str:
    """Percent."""
    return f"{100 * count / total:.2f} %" if total else ""


SECTION = "## Against five engines"
TEXT = (
    "`benchmarks/agreement.py` asks symbolize and {engines} for the same random addresses of `.text` (seed 1); "
    "eu-addr2line, which is slow, gets some of them. Compared are the innermost function, its file, its line, and the "
    "inline chain: function, file and line of all frames around. Of each of these four the reference is what most "
    "engines say, two at least; where two pairs of engines disagree, either answer counts. Names are compared without "
    "parameters, template arguments, clone suffixes and symbol versions, and one may lack scopes; files by the end of "
    "their path.",
    "*All* is the share of addresses at which all four are those of the reference; the columns of the engines are "
    "flattered, since each has a vote and symbolize has none.",
)


def render(results: Mapping[str, Comparison], versions: Mapping[str, str]) -> str:
    """The section of the page on correctness."""
    rows = []
    for key, result in results.items():
        equal = result.equal[p.OURS]
        fields = [share(equal[name], result.voted[name]) for name in FIELDS]
        engines = [share(result.whole[e], result.asked[e]) or result.troubles.get(e, "not there") for e in ENGINES]
        all_of_ours = share(result.whole[p.OURS], result.addresses)
        rows.append([key, f"{result.addresses:,}", *fields, all_of_ours, *engines, f"{result.asked[p.ELFUTILS]:,}"])
    figures = ("addresses", *FIELDS, "all", *ENGINES, "asked of it")
    kinds = [kind for kind in CLASSES if any(result.classes[kind] for result in results.values())]
    counts = [[k, *(f"{r.classes[kind]:,}" if r.classes[kind] else "" for kind in kinds)] for k, r in results.items()]
    engines = ", ".join(
        f"{name.partition(' and ')[0]} {version}" for name, version in versions.items() if name != p.OURS
    )
    return "\n".join(
        [
            SECTION,
            *(f"\n{fill(text.format(engines=engines))}" for text in TEXT),
            "",
            table(["binary", *(f"{name}:" for name in figures)], rows),
            "\nEach address is in one class:\n",
            table(["binary", *(f"{kind}:" for kind in kinds)], counts),
            "",
            *(f"- **{kind}**: {CLASSES[kind]}." for kind in kinds),
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())

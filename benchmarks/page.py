"""Results as a page in Markdown."""

import datetime
import os
import platform
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from measure import Result
from subjects import KNOWN, Subject

NOT_MEASURED = "—"

WHERE_THE_TIME_GOES = """
Reasons for the missed targets: Start-up takes 0.18 to 0.2 s, of which importing numpy takes 0.1 s and pyelftools'
structures 0.02 s. That is more than the work on binaries with up to 16 MB of debug information, and most of a run
with 100 addresses in vmlinux. A compressed `.debug_info` is inflated in one thread before its units can be walked, and
held whole as long as names are read from it: of the peak of ceph-mon the inflated sections are 250 MiB. Names are made
and tables laid out by one thread. Tables of Rust programs are large because their names are long. C++ and small files
have few DIEs that the walk may skip (R12, subtrees without code).
"""


@dataclass(frozen=True)
class Target:
    """A figure that is wanted: ours beside what it is measured against, and the most (or least) it may be."""

    what: str
    binary: str
    ours: str
    peer: str
    ratio: float
    limit: float
    unit: str = "×"
    at_least: bool = False

    @property
    def row(self) -> list[str]:
        """Cells of the table of targets."""
        if self.ratio != self.ratio:
            met = "not measured"
        else:
            met = "met" if (self.ratio >= self.limit if self.at_least else self.ratio <= self.limit) else "**missed**"
        sign = "≥" if self.at_least else "≤"
        unit = "" if self.unit == "×" else f" {self.unit}"
        ratio = NOT_MEASURED if self.ratio != self.ratio else f"{self.ratio:.3g}{unit}"
        return [self.what, self.binary, self.ours, self.peer, ratio, f"{sign} {self.limit:.3g}{unit}", met]


@dataclass
class Part:
    """A table of results with a sentence about it, what is wanted of them, and what could not be measured."""

    title: str
    text: str
    heading: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def markdown(self) -> str:
        """The section of the page."""
        missing = "".join(f"\n- Not measured: {sentence}" for sentence in self.missing)
        return f"## {self.title}\n\n{fill(self.text)}\n\n{table(self.heading, self.rows)}\n" + (
            missing and f"{missing}\n"
        )


def fill(text: str) -> str:
    """A paragraph in lines."""
    return textwrap.fill(text, 120, break_on_hyphens=False, break_long_words=False)


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; a heading that ends in `:` is of a column of figures."""
    lines = [
        "| " + " | ".join(cell.rstrip(":") for cell in heading) + " |",
        "| " + " | ".join("---:" if cell.endswith(":") else "---" for cell in heading) + " |",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    return "\n".join(lines)


def seconds(value: float) -> str:
    """Seconds with three figures at most."""
    return NOT_MEASURED if value != value else f"{value:.2f} s" if value < 100 else f"{value:.0f} s"


def mib(value: float) -> str:
    """MiB."""
    return NOT_MEASURED if value != value else f"{value:,.0f} MiB"


def size(value: float) -> str:
    """MB of a number of bytes."""
    return NOT_MEASURED if value != value else f"{value / 1e6:,.1f} MB"


def ratio(one: float, other: float) -> str:
    """How many times the other."""
    value = one / other if other else float("nan")
    return NOT_MEASURED if value != value else f"{value:.2f}"


def cost_cells(result: Result) -> list[str]:
    """Runs, wall, least wall, CPU, peak of a contender."""
    if not result.runs:
        return ["0", result.trouble or NOT_MEASURED, "", "", ""]
    wall, cpu, memory = (result.median(figure) for figure in ("wall", "cpu", "memory"))
    return [str(len(result.runs)), seconds(wall), seconds(result.best), seconds(cpu), mib(memory)]


COSTS = ("runs:", "wall:", "least:", "CPU:", "peak:")


def machine() -> list[Sequence[str]]:
    """What the figures were measured on."""
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    models = [line.partition(":")[2].strip() for line in info.splitlines() if line.startswith("model name")]
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "") if os.path.exists("/etc/os-release") else ""
    return [
        ("date", datetime.date.today().isoformat()),
        ("processor", models[0] if models else platform.machine()),
        ("cores", str(os.cpu_count())),
        ("system", f"{system}, {platform.system()} {platform.release()}"),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("numpy", np.__version__),
    ]


def subject_rows(subjects: Sequence[Subject], missing: Mapping[str, str]) -> list[Sequence[str]]:
    """What was measured."""
    rows = []
    for subject in subjects:
        sizes, package = subject.sizes, KNOWN.get(subject.key, ("", ""))[1]
        figures = (sizes.text, sizes.stored, sizes.needed, sizes.dwarf)
        rows.append([subject.key, subject.what, package, *map(size, figures)])
    return rows + [[key, why, "", "", "", "", ""] for key, why in missing.items()]


INTRODUCTION = """# Benchmarks

How long symbolize and other symbolizers take for the same addresses, and how much memory. The page was written by

<!-- not run: takes hours -->
```sh
{command}
```

Whole commands including start-up. All commands of a row ran in turn on one machine. Each figure is the median of the
runs after one that is not counted; `least` is the best of them; peaks are of resident memory. Commands that take
longer than 20 seconds ran once. Machines are noisy: compare ratios rather than seconds.
"""


def page(
    command: str,
    versions: Mapping[str, str],
    subjects: Sequence[Subject],
    missing: Mapping[str, str],
    parts: Sequence[Part],
) -> str:
    """The whole page."""
    targets = [target.row for part in parts for target in part.targets]
    heading = ("measure", "binary", "symbolize:", "against:", "ratio or figure:", "target:", "")
    binaries = ("name", "what", "Debian package or compiler", ".text:", "needed, in the file:", "needed:", "all DWARF:")
    return "\n".join(
        [
            INTRODUCTION.format(command=command),
            table(("", ""), [*machine(), *versions.items()]),
            "\n## Targets\n",
            table(heading, targets),
            "",
            fill(WHERE_THE_TIME_GOES.strip()),
            "\n## Binaries\n",
            "*Needed* are the debug sections that lookups of functions and lines can need, inflated; *all DWARF* are"
            "\nall `.debug_*` sections, inflated.\n",
            table(binaries, subject_rows(subjects, missing)),
            "",
            *(part.markdown for part in parts),
        ]
    )

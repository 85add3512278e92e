"""Results as a page in Markdown."""

import datetime
import os
import platform
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from subjects import KNOWN, Subject

NOT_MEASURED = "—"


@dataclass(frozen=True)
class Goal:
    """The most that a figure should be: a ratio unless it has a unit."""

    what: str
    figure: float
    most: float
    unit: str = ""

    @property
    def row(self) -> list[str]:
        """Cells of the table of goals."""
        unit = self.unit and f" {self.unit}"
        met = "" if self.figure != self.figure else "met" if self.figure <= self.most else "**missed**"
        figure = NOT_MEASURED if self.figure != self.figure else f"{self.figure:.3g}{unit}"
        return [self.what, figure, f"{self.most:g}{unit}", met]


@dataclass
class Part:
    """A table of results with a sentence about it, goals, and what could not be measured."""

    title: str
    text: str
    heading: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    goals: list[Goal] = field(default_factory=list)
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


def replace_section(text: str, section: str) -> str:
    """A page with its section of this title replaced, or with the section at its end."""
    title = section.partition("\n")[0]
    before, found, after = text.partition(title + "\n")
    rest = after.partition("\n## ")
    return before.rstrip("\n") + "\n\n" + section + (rest[1] + rest[2] if found else "")


def goals(parts: Sequence[Part]) -> str:
    """The section of all goals."""
    text = "Ratios are symbolize divided by the other; gimli is the newest one."
    rows = [goal.row for part in parts for goal in part.goals]
    return f"## Goals\n\n{text}\n\n{table(('what', 'figure:', 'at most:', ''), rows)}\n"


def page(
    command: str,
    versions: Mapping[str, str],
    subjects: Sequence[Subject],
    missing: Mapping[str, str],
    parts: Sequence[Part],
) -> str:
    """All tables."""
    binaries = [[each.key, each.what, KNOWN.get(each.key, ("", ""))[1], size(each.debug_bytes)] for each in subjects]
    binaries += [[key, why, "", ""] for key, why in missing.items()]
    return "\n\n".join(
        [
            f"`{command}`",
            table(("", ""), [*machine(), *versions.items()]),
            table(("binary", "what", "Debian packages or compiler", "debug sections, inflated:"), binaries),
            goals(parts),
            *(part.markdown for part in parts),
        ]
    )

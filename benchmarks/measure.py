"""Costs of whole processes: contenders that run in turn, medians and ratios."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import symbolize

LAUNCH = Path(__file__).with_name("launch.py")
SLOW = 20.0
"""A command that takes longer, in seconds, runs once."""


@dataclass(frozen=True)
class Run:
    """One run of a command: wall seconds until it returned and until all that it left behind had ended, CPU seconds
    (user and system, all children too), peak MiB, standard output."""

    wall: float
    ended: float
    cpu: float
    memory: float
    output: str = ""


@dataclass(frozen=True)
class Contender:
    """A command to measure. `before` runs ahead of each run and is not timed."""

    name: str
    command: Sequence[str | Path]
    stdin: Path | None = None
    before: Callable[[], None] | None = None
    keep_output: bool = False


@dataclass
class Result:
    """The runs of a contender, or the `trouble` that there are none."""

    name: str
    runs: list[Run] = field(default_factory=list)
    trouble: str = ""

    def median(self, figure: str = "wall") -> float:
        """The median of `wall`, `ended`, `cpu` or `memory`; not a number where there is no run."""
        return statistics.median(getattr(run, figure) for run in self.runs) if self.runs else float("nan")


class Failed(Exception):
    """A command failed or took too long; the text says which."""


def environment() -> dict[str, str]:
    """That of timed commands: byte code is kept, nothing is fetched, and symbolize is the one imported here."""
    unwanted = ("PYTHONDONTWRITEBYTECODE", "DEBUGINFOD_URLS")
    package = Path(symbolize.__file__).parents[1]
    return {key: value for key, value in os.environ.items() if key not in unwanted} | {"PYTHONPATH": str(package)}


def run_once(contender: Contender, limit: int) -> Run:
    """Run a command; raises Failed."""
    if contender.before:
        contender.before()
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "output")
        if not contender.keep_output:
            kept.symlink_to(os.devnull)
        launch = [sys.executable, "-I", "-S", LAUNCH, str(limit), contender.stdin or os.devnull, kept]
        done = subprocess.run(
            [*launch, *contender.command], capture_output=True, text=True, env=environment(), cwd=folder
        )
        if done.returncode:
            raise Failed(done.stderr.strip().rpartition("\n")[2])
        answer = json.loads(done.stdout)
        errors = Path(f"{kept}.errors").read_text(errors="replace").strip().rpartition("\n")[2]
        output = kept.read_text(errors="replace") if contender.keep_output else ""
    if answer["timed_out"]:
        raise Failed(f"more than {limit} s")
    if answer["code"]:
        raise Failed(f"exit code {answer['code']}: {errors}")
    return Run(**answer["cost"], output=output)


def race(contenders: Sequence[Contender], runs: int, limit: int) -> dict[str, Result]:
    """Run the contenders in turn, `runs` rounds after one that is not counted, every other round backwards.

    Who fails or exceeds `limit` seconds is out, with the reason. Who takes more than SLOW seconds runs once, and
    that run counts.
    """
    results = {contender.name: Result(contender.name) for contender in contenders}
    going = list(contenders)
    for number in range(runs + 1):
        for contender in list(going if number % 2 == 0 else reversed(going)):
            result = results[contender.name]
            try:
                run = run_once(contender, limit)
            except Failed as failure:
                result.runs, result.trouble = [], str(failure)
                going.remove(contender)
                continue
            if number or run.wall > SLOW:
                result.runs.append(run)
            if run.wall > SLOW:
                going.remove(contender)
    return results

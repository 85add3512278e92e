"""Engines and observers for tests of the batch job that need no worker processes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from symbolize.batch.engines.engine import Engine, Task, TaskFailure, TaskLimits, TaskOutcome
from symbolize.batch.job import Batch, Plan, new_run
from symbolize.batch.manifest import InputResult, Item, Manifest, State
from symbolize.batch.monitoring.observers import Observer
from symbolize.batch.tasks import DecodeResult, WorkerConfig, forget_worker
from symbolize.options import Options

Fails = Callable[[Task], TaskFailure | None]


def never(task: Task) -> TaskFailure | None:
    """No task fails."""
    return None


class DirectEngine:
    """Runs tasks in this process, one after the other; `fails` says which fail without being run. `ran` has the keys of
    the others by function, `limits` those of each run."""

    workers = 1

    def __init__(self, fails: Fails = never) -> None:
        self.fails = fails
        self.ran: list[tuple[str, str]] = []
        self.limits: list[TaskLimits] = []

    def run(self, tasks: Iterable[Task], limits: TaskLimits) -> Iterator[TaskOutcome]:
        """Run tasks."""
        self.limits.append(limits)
        for task in tasks:
            failure = self.fails(task)
            if failure is not None:
                yield TaskOutcome(task, None, failure, f"simulated {failure.value}", limits.attempts, 0.0)
                continue
            self.ran.append((task.function.__name__, task.key))
            yield TaskOutcome(task, task.function(task.argument), None, "", 1, 0.0)

    def count(self, function: str) -> int:
        """How many tasks of a function were run."""
        return sum(name == function for name, _ in self.ran)

    def close(self) -> None:
        """Close what tasks have left open."""
        forget_worker()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Recorder(Observer):
    """Remembers what it is told: of each input the state and the reason, of binaries why there is no table."""

    def __init__(self) -> None:
        self.states: dict[str, list[State]] = {}
        self.reasons: dict[str, str] = {}
        self.details: dict[str, str] = {}
        self.failures: list[str] = []
        self.problems: list[str] = []
        self.stages: list[tuple[str, int]] = []

    def problem(self, where: str, text: str) -> None:
        """A problem."""
        self.problems.append(f"{where} {text}")

    def entered(self, stage: str, total: int) -> None:
        """A pass."""
        self.stages.append((stage, total))

    def handled(self, item: Item, result: InputResult) -> None:
        """An input."""
        name = Path(item.uri).name
        self.states.setdefault(name, []).append(result.state)
        if result.reason:
            self.reasons[name], self.details[name] = result.reason, result.detail

    def decoded(self, result: DecodeResult) -> None:
        """A binary."""
        if result.failure:
            self.failures.append(result.failure)


def plan(inputs: Path | str, out: Path, binaries: Sequence[Path], **options: Any) -> Plan:
    """A plan; `options` are those of `WorkerConfig`, of `Plan`, or how profiles are symbolized."""
    asked = {each.name: options.pop(each.name) for each in fields(Options) if each.name in options}
    own = {name: options.pop(name) for name in list(options) if name in Plan.__dataclass_fields__}
    state = str(own.pop("state", out / ".symbolize"))
    config = WorkerConfig(
        tuple(map(str, binaries)), str(out), state + "/work", new_run(), options=Options(**asked), **options
    )
    return Plan(own.pop("arguments", [str(inputs)]), config, state, **own)


def run_plan(given: Plan, engine: Engine | None = None) -> tuple[dict[State, int], Recorder]:
    """Run a plan to its end; how many inputs are in each state, and what a observer saw."""
    seen = Recorder()
    with Manifest(given.state + "/manifest.sqlite") as manifest, engine or DirectEngine() as used:
        return Batch(given, used, manifest, seen).run(), seen

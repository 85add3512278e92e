"""Tasks for engines, and a dask cluster of processes of this machine."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from symbolize.batch.engines.engine import Task, TaskLimits, TaskOutcome
from tests.support.batch_runs import ROOT, wait_until

ONCE = TaskLimits(attempts=1)
PATIENCE = 120.0
"""Seconds in which workers have come, on the busiest machine."""


def is_running(process: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Cluster:
    """A dask scheduler and its workers, as processes of this machine."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        file = folder / "scheduler.json"
        options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
        self.start("distributed.cli.dask_scheduler", *options)
        for _ in range(workers):
            self.add_worker()
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))
        self.address: str = json.loads(file.read_text())["address"]

    def add_worker(self, *options: str, path: str = str(ROOT)) -> None:
        """Start one more worker."""
        always = ["--host", "127.0.0.1", "--memory-limit", "0", "--no-dashboard", "--local-directory", str(self.folder)]
        always += ["--scheduler-file", str(self.folder / "scheduler.json")]
        self.start("distributed.cli.dask_worker", *always, *(options or ("--nthreads", "1")), path=path)

    def start(self, module: str, *arguments: str, path: str = str(ROOT)) -> None:
        """Start a process of the cluster."""
        log = (self.folder / f"{len(self.processes)}.log").open("wb")
        with log:
            environment = {**os.environ, "PYTHONPATH": path}
            command = [sys.executable, "-m", module, *arguments]
            self.processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=self.folder))

    def stop(self) -> None:
        """End all of it; workers end with their nannies."""
        for process in self.processes:
            process.kill()
            process.wait()


def tasks_of(function: Callable[[Any], Any], arguments: Any) -> Iterator[Task]:
    """A task for each argument, whose text is its key."""
    return (Task(f"{function.__name__} {argument}", function, argument) for argument in arguments)


def only(outcomes: Iterator[TaskOutcome]) -> TaskOutcome:
    """The one outcome that there is."""
    (outcome,) = outcomes
    return outcome

"""Workers of a batch: what they hold open, what they hand to others, and what the driver needs."""

import gc
import gzip
import pickle
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from symbolize.batch import tasks as batch_tasks
from symbolize.batch.engines.engine import Task, TaskFailure, TaskLimits, TaskOutcome
from symbolize.batch.job import Batch
from symbolize.batch.manifest import InputResult, Manifest, ProfileRow, State
from symbolize.batch.tasks import TaskResult
from tests.support.batch_engines import DirectEngine, Recorder, plan, run_plan
from tests.support.batch_runs import (
    ALL_DONE,
    BINS,
    SPECTRA,
    copies,
    outputs,
)
from tests.support.fixture_files import BINARIES


@pytest.mark.full
@pytest.mark.parametrize("cache", ["", "{}", "file://{}"], ids=["none", "folder", "url"])
def test_tables_reach_other_machines(cache: str, some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one machine decodes the other does not decode again: it is in the shared cache, at a URL too that had no
    table before, and without a cache beside the outputs."""
    run_plan(plan(some, tmp_path / "whole", BINS))
    batch_tasks.forget_worker()
    machines: dict[str, list[batch_tasks.Worker]] = {"one": [], "other": []}

    def on_its_machine(task: Task) -> TaskFailure | None:
        name = "one" if task.function is batch_tasks.decode_binary else "other"
        monkeypatch.setattr(batch_tasks, "_worker", machines[name])
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        if name == "other" and not task.argument.spill:
            monkeypatch.setattr("symbolize.symbols.build.Builder", None)  # decoding would fail
        return None

    # Half of it is needed at once, so that it is made as a whole, and kept.
    monkeypatch.setattr("symbolize.symbols.binary.WHOLE_SHARE", 0.0)
    given = plan(some, tmp_path / "out", BINS, cache=cache.format(tmp_path / "cache"))
    try:
        counts, _ = run_plan(given, DirectEngine(on_its_machine))
    finally:
        for worker in (*machines["one"], *machines["other"]):
            worker.close()
    assert counts == {**ALL_DONE, State.DONE: 3}
    assert outputs(tmp_path / "out") == outputs(tmp_path / "whole")


class Answering:
    """An engine that has done everything at once."""

    workers = 2

    def run(self, tasks: Iterable[Task], limits: TaskLimits) -> Iterator[TaskOutcome]:
        """Answer."""
        for task in tasks:
            handled = tuple(
                InputResult(item.number, State.DONE, (ProfileRow(f"{item.name}.pb.gz", 100, {"samples": 1}),))
                for item in task.argument.items
            )
            yield TaskOutcome(task, pickle.loads(pickle.dumps(TaskResult(handled))), None, "", 1, 0.0)

    def close(self) -> None:
        """Nothing."""

    def __enter__(self) -> "Answering":
        return self

    def __exit__(self, *_: object) -> None:
        pass


def grown(count: int, folder: Path) -> int:
    """The most bytes that a batch of empty inputs has in memory at a time, beyond those before."""
    inputs = folder / f"in{count}"
    inputs.mkdir()
    for number in range(count):
        (inputs / f"{number:06}").touch()
    given = plan(inputs, folder / f"out{count}", [])
    gc.collect()
    tracemalloc.start()
    try:
        with Manifest(given.state + "/manifest.sqlite") as manifest:
            batch = Batch(given, Answering(), manifest, Recorder.__mro__[1]())
            before = tracemalloc.get_traced_memory()[0]
            assert batch.run()[State.DONE] == count
            return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.full
def test_memory_does_not_grow_with_the_inputs(tmp_path: Path) -> None:
    """The process that drives the batch has a few hundred inputs in memory, however many there are."""
    grown(100, tmp_path)
    few, many = grown(600, tmp_path), grown(1800, tmp_path)
    assert many < few * 1.5 + 200_000


def test_workers_open_a_limited_number_of_binaries(some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more they begin anew, and the outputs are the same."""
    run_plan(plan(some, tmp_path / "whole", BINS))
    monkeypatch.setattr(batch_tasks, "MAX_OPEN", 0)
    monkeypatch.setattr(batch_tasks, "MAX_REQUESTED", 0)
    opened: list[int] = []
    requested: list[int] = []
    begin, note_requested = batch_tasks.Worker.begin, batch_tasks.Worker.note_requested

    def noting(self: batch_tasks.Worker, epoch: int) -> None:
        begin(self, epoch)
        opened.append(self.symbolizer.open_binaries + len(self.tables._known))

    def requesting(self: batch_tasks.Worker, key: str, vaddrs: Any) -> None:
        note_requested(self, key, vaddrs)
        requested.append(len(self.requested))

    monkeypatch.setattr(batch_tasks.Worker, "begin", noting)
    monkeypatch.setattr(batch_tasks.Worker, "note_requested", requesting)
    run_plan(plan(some, tmp_path / "out", BINS))
    assert {*opened} == {*requested} == {0}
    assert outputs(tmp_path / "out") == outputs(tmp_path / "whole")
    assert gzip.decompress(outputs(tmp_path / "out")["a.pb.gz"])


def test_workers_leave_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever begins anew, or is no more, has no file of the binaries left."""
    copies(SPECTRA, tmp_path / "in", ["a.pb.gz", "b.pb.gz"])
    copies(BINARIES / "gcc-pie" / "spectra", tmp_path / "bin", ["spectra"])
    monkeypatch.setattr(batch_tasks, "MAX_OPEN", 0)
    begin = batch_tasks.Worker.begin
    opened: list[bool] = []

    def look(task: Task | None) -> None:
        opened.append(f"{tmp_path}/bin/spectra" in Path("/proc/self/maps").read_text())

    def begin_and_look(self: batch_tasks.Worker, epoch: int) -> None:
        begin(self, epoch)
        look(None)

    monkeypatch.setattr(batch_tasks.Worker, "begin", begin_and_look)
    run_plan(plan(tmp_path / "in", tmp_path / "out", [tmp_path / "bin"]), DirectEngine(look))
    look(None)
    before_tasks, begun = opened[:-1:2], opened[1::2]
    assert any(before_tasks)
    assert not any(begun)
    assert not opened[-1]

"""Batches in which inputs, binaries, stores or outputs fail: what that costs, and what is recorded of it."""

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from symbolize.batch import tasks as batch_tasks
from symbolize.batch.engines.engine import Task, TaskFailure, TaskLimits, TaskOutcome
from symbolize.batch.job import Batch
from symbolize.batch.manifest import UNREACHABLE, InputResult, Manifest, ProfileRow, Renewed, State
from symbolize.core.errors import OutputError
from symbolize.core.reasons import Reason
from symbolize.formats import load
from symbolize.storage.backend import LocalStorage
from symbolize.storage.inputs import Input
from tests.support.batch_engines import DirectEngine, Recorder, plan, run_plan
from tests.support.batch_runs import ALL_DONE, BINS, LEDGER, SPECTRA, copies, outputs
from tests.support.fixture_files import BINARIES
from tests.support.needs import package


def test_a_task_of_several_is_divided_to_find_the_bad_one(some: Path, tmp_path: Path) -> None:
    """It is tried once as a whole, in the time of all its inputs, then each alone as often as an input may be."""

    def fails(task: Task) -> TaskFailure | None:
        return TaskFailure.CRASH if any(item.uri.endswith("b.prof") for item in task.argument.items) else None

    engine = DirectEngine(lambda task: fails(task) if task.function is batch_tasks.symbolize_inputs else None)
    limits = TaskLimits(10, 0, 3)
    given = plan(some, tmp_path / "out", BINS, per_task=8, limits=limits)
    counts, seen = run_plan(given, engine)
    assert (counts[State.DONE], counts[State.QUARANTINED]) == (2, 1)
    assert seen.reasons == {"b.prof": "crash"}
    assert engine.limits[:2] == [TaskLimits(80, 0, 1), limits]
    with Manifest(given.state + "/manifest.sqlite") as manifest:
        assert [row[7] for row in manifest.rows() if row[5]] == [3]


def test_a_binary_that_goes_before_it_is_decoded(tmp_path: Path) -> None:
    """It is on record without a table, and its profiles are written; the next run does them again."""
    copies(SPECTRA, tmp_path / "in", ["c.pb.gz"])
    copies(BINARIES / "gcc-pie" / "spectra", tmp_path / "bin", ["spectra"])

    def remove(task: Task) -> None:
        if task.function is batch_tasks.decode_binary:
            (tmp_path / "bin" / "spectra").unlink()
            batch_tasks.forget_worker()

    given = plan(tmp_path / "in", tmp_path / "out", [tmp_path / "bin"])
    counts, seen = run_plan(given, DirectEngine(remove))
    assert counts == {**ALL_DONE, State.DONE: 1}
    assert seen.failures == [f"{tmp_path}/bin/spectra: was removed, or has changed"]
    assert seen.reasons == {"c.pb.gz": Reason.CHANGED.code}
    assert f"{tmp_path}/bin/spectra" in seen.details["c.pb.gz"]
    with Manifest(given.state + "/manifest.sqlite") as manifest:
        assert [(row[2], row[3], row[5]) for row in manifest.binaries()] == [(0, 0, seen.failures[0])]


class Again(DirectEngine):
    """Needs three attempts for what it does."""

    def run(self, tasks: Iterable[Task], limits: TaskLimits) -> Iterator[TaskOutcome]:
        """Run tasks."""
        return (outcome._replace(attempts=3) for outcome in super().run(tasks, limits))


@pytest.mark.parametrize(("engine", "attempts"), [(DirectEngine, 1), (Again, 3)])
def test_attempts_are_on_record(engine: type[DirectEngine], attempts: int, tmp_path: Path) -> None:
    """Also of inputs that were done in the end."""
    copies(LEDGER, tmp_path / "in", ["a.prof"])
    (tmp_path / "in" / "bad").touch()
    given = plan(tmp_path / "in", tmp_path / "out", [])
    run_plan(given, engine())
    with Manifest(given.state + "/manifest.sqlite") as manifest:
        assert [(row.state, row.attempts) for row in manifest.rows()] == [
            (State.DONE, attempts),
            (State.QUARANTINED, attempts),
        ]


def test_a_binary_that_cannot_be_decoded(some: Path, tmp_path: Path) -> None:
    """Its profiles are written all the same, its frames raw with the reason, and it is tried once a run: also by
    profiles that arrive later in it, and by nobody when an interrupted run goes on."""
    out = tmp_path / "out"
    tried: list[str] = []

    def fails(task: Task) -> TaskFailure | None:
        if task.function is not batch_tasks.decode_binary:
            return None
        if "ledger" in task.argument.request.files[0][0]:
            tried.append(task.key)
            return TaskFailure.CRASH
        return None

    given = plan(some, out, BINS)
    seen = Recorder()
    with Manifest(given.state + "/manifest.sqlite") as manifest, DirectEngine(fails) as engine:
        batch = Batch(given, engine, manifest, seen)
        batch.run()
        shutil.copyfile(LEDGER, some / "later.prof")
        forget = batch_tasks.forget_worker  # as a worker that is killed and made anew
        forget()
        assert batch.run()[State.DONE] == 4
    assert len(tried) == 1
    (failure,) = seen.failures
    assert "ledger" in failure
    assert "given up: simulated crash (3 attempts)" in failure
    made = outputs(out)
    assert made["a.pb.gz"] == made["b.pb.gz"] == made["later.pb.gz"]
    profile = load(out / "a.pb.gz")
    ledger = [
        row
        for row in range(len(profile.mappings))
        if profile.strings.text(profile.mappings.filename[row]).endswith("/ledger")
    ]
    of_it = [int(mapping) in ledger for mapping in profile.locations.mapping]
    named = profile.locations.has_lines()
    assert sum(of_it) > 10
    assert not named[of_it].any()

    def stop(task: Task) -> TaskFailure | None:
        if task.function is batch_tasks.symbolize_inputs and not task.argument.spill:
            raise KeyboardInterrupt
        return fails(task)

    tried.clear()
    with pytest.raises(KeyboardInterrupt):
        run_plan(plan(some, out, BINS, again=True), DirectEngine(stop))
    run_plan(plan(some, out, BINS), DirectEngine(fails))
    assert len(tried) == 1
    assert outputs(out) == made
    # The next run that needs it tries it again.
    run_plan(plan(some, out, BINS, again=True))
    assert load(out / "a.pb.gz").locations.has_lines()[of_it].any()


def test_problems_of_folders_are_of_no_input(some: Path, tmp_path: Path) -> None:
    """What is wrong with a folder is told once, as a problem of the run; the inputs have their own warnings alone."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/broken").write_bytes(b"\x7fELF")
    given = plan(some, tmp_path / "out", [*BINS, str(tmp_path / "folder")])
    _, seen = run_plan(given)
    (problem,) = seen.problems
    assert problem.startswith(f"run {tmp_path}/folder/broken: ")
    with Manifest(given.state + "/manifest.sqlite") as manifest:
        warnings = [row.coverage["warnings"] for each in manifest.rows() for row in manifest.profiles(each.number)]
    assert warnings and not any(warnings)


def test_problems_of_caches_are_told_once(some: Path, tmp_path: Path) -> None:
    """Of each kind one, by whichever worker, and not too many."""

    class Complaining(DirectEngine):
        def run(self, tasks: Iterable[Task], limits: TaskLimits) -> Iterator[TaskOutcome]:
            for number, each in enumerate(super().run(tasks, limits)):
                problems = (f"store: {each.task.key}", *(f"{kind}{number}: x" for kind in "ab"))
                pairs = tuple(("table cache", problem) for problem in problems)
                yield each._replace(value=each.value._replace(problems=pairs))

    _, seen = run_plan(plan(some, tmp_path / "out", BINS), Complaining())
    assert seen.problems == ["table cache store: 1", "table cache a0: x", "table cache b0: x", "table cache a1: x"]


def test_a_link_that_leads_out_of_the_place(some: Path, tmp_path: Path) -> None:
    """It costs the inputs whose outputs would go there, and the batch goes on."""
    copies(LEDGER, some / "deep", ["d.prof"])
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "deep").symlink_to(tmp_path / "elsewhere")
    counts, seen = run_plan(plan(some, tmp_path / "out", BINS))
    assert (counts[State.DONE], seen.reasons) == (3, {"d.prof": "unwritable"})
    assert "a link in the path leads out of" in seen.details["d.prof"]
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_a_server_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its inputs are no bad ones: the next run tries them, without being told."""
    memory = package("fsspec.implementations.memory").MemoryFileSystem()
    memory.pipe_file("/bucket-of-a-job/a.prof", LEDGER.read_bytes())
    memory.pipe_file("/bucket-of-a-job/bad", b"?")
    given = plan("memory://bucket-of-a-job/", tmp_path / "out", BINS)

    def away(*_: object, **__: object) -> None:
        raise ConnectionResetError("Connection reset by peer")

    with monkeypatch.context() as patched:
        patched.setattr(type(memory), "_open", away)
        _, seen = run_plan(given)
        assert {*seen.reasons.values()} == {"unreachable"}
        with Manifest(given.state + "/manifest.sqlite") as manifest:
            assert (manifest.count_failed(), manifest.count()[State.QUARANTINED]) == (2, 2)
            manifest.retry_failed("unreachable")  # as while watching
            assert (manifest.count_failed(), manifest.count()[State.NEW]) == (0, 2)
        run_plan(given)
    counts, seen = run_plan(given)
    assert (counts[State.DONE], seen.reasons) == (1, {"bad": "unreadable"})
    _, seen = run_plan(given)
    assert seen.states == {}
    memory.rm("/bucket-of-a-job", recursive=True)


def test_trying_again_while_watching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be reached at once, what lacks names when one of the servers answers."""
    probed = [{"a": (False, ""), "b": (False, "")}, {"a": (False, ""), "b": (True, "")}]

    class Fetcher:
        client = SimpleNamespace(probe=lambda: probed.pop(0))

        def __enter__(self) -> "Fetcher":
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(Batch, "_fetcher", lambda self: Fetcher())
    given = plan(tmp_path / "in", tmp_path / "out", [], debuginfod=("http://127.0.0.1:1",))
    with Manifest(given.state + "/manifest.sqlite") as manifest, DirectEngine() as engine:
        batch = Batch(given, engine, manifest, Recorder())
        manifest.add([Input(name, name, 1, "1") for name in "abc"], "", retry=False, again=False)
        manifest.record(
            [
                InputResult(1, State.QUARANTINED, (), UNREACHABLE),
                InputResult(2, State.DONE, (), Reason.SERVER_FAILED.code),
            ]
        )
        manifest.record([InputResult(3, State.QUARANTINED, (), "unreadable")])
        states = []
        for _ in range(3):
            batch.retry_failed()
            states.append([row.state for row in manifest.rows()])
        assert probed == []
        assert batch._renewed == {Renewed.FAILED: 2}
    new, done, bad = State.NEW, State.DONE, State.QUARANTINED
    assert states == [[new, done, bad], [new, new, bad], [new, new, bad]]


def test_one_name_that_cannot_be_written(some: Path, tmp_path: Path) -> None:
    """A file in the way of one output is no reason to end the batch."""
    out = tmp_path / "out"
    (out / "b.pb.gz").mkdir(parents=True)
    (out / "b.pb.gz" / "kept").touch()
    copies(SPECTRA, some / "a.pb.gz", ["x.pb"])  # below what is the output of a.prof
    counts, seen = run_plan(plan(some, out, BINS))
    assert (counts[State.DONE], counts[State.QUARANTINED]) == (2, 2)
    assert sorted(seen.reasons.values()) == ["unwritable"] * 2
    assert (out / "a.pb.gz").is_file() != (out / "a.pb.gz" / "x.pb.gz").is_file()


def test_nothing_can_be_written(some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What concerns all outputs ends the batch, which goes on later."""

    def no_space(self: Any, name: str) -> Any:
        raise OutputError(f"{name}: cannot be written: No space left on device") from OSError(28, "No space")

    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr("symbolize.storage.backend.LocalStorage.write", no_space)
        with pytest.raises(OutputError, match="No space left"):
            run_plan(plan(some, out, BINS))
    assert run_plan(plan(some, out, BINS))[0] == {**ALL_DONE, State.DONE: 3}


@pytest.mark.parametrize("folder", [batch_tasks.SPILLS, "tables"])
def test_nothing_can_be_left_for_others(
    folder: str, some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where workers cannot write what the others need the batch ends, and goes on later."""
    whole = LocalStorage.write

    def write(self: LocalStorage, name: str) -> Any:
        if name.startswith(folder + "/"):
            raise OutputError(f"{name}: cannot be written: No space left on device") from OSError(28, "No space")
        return whole(self, name)

    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "write", write)
        with pytest.raises(OutputError, match=f"{folder}/.*No space left"):
            run_plan(plan(some, out, BINS))
    assert not outputs(out)
    assert run_plan(plan(some, out, BINS))[0] == {**ALL_DONE, State.DONE: 3}


def test_what_all_inputs_need_is_missing(some: Path, tmp_path: Path) -> None:
    """That is no fault of theirs: the batch ends, and they wait."""
    given = plan(some, tmp_path / "out", BINS, proguard_maps=("nowhere.txt",))
    with pytest.raises(OutputError, match=r"nowhere\.txt"):
        run_plan(given)
    with Manifest(given.state + "/manifest.sqlite") as manifest:
        assert manifest.count()[State.NEW] == 3


def test_faults_of_ours(some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They cost one input, with the line of the program; too little memory is for the engine to tell."""
    whole = batch_tasks.write_profile
    errors: list[Exception] = [ZeroDivisionError("ours"), MemoryError()]

    def write(worker: Any, item: Any, *rest: Any) -> ProfileRow:
        if item.name == "b":
            raise errors[0]
        return whole(worker, item, *rest)

    monkeypatch.setattr(batch_tasks, "write_profile", write)
    counts, seen = run_plan(plan(some, tmp_path / "out", BINS))
    assert (counts[State.DONE], seen.reasons) == (2, {"b.prof": "error"})
    assert "ZeroDivisionError: ours" in seen.details["b.prof"]
    assert "test_job_failures.py" in seen.details["b.prof"]
    del errors[0]
    with pytest.raises(MemoryError):
        run_plan(plan(some, tmp_path / "out", BINS, retry_quarantined=True))


def test_inputs_that_are_gone_or_no_files_any_more(some: Path, tmp_path: Path) -> None:
    """What happens to a file between two passes costs that input alone."""

    def change(task: Task) -> TaskFailure | None:
        if task.function is batch_tasks.decode_binary and (some / "a.prof").is_file():
            (some / "a.prof").unlink()
            (some / "b.prof").unlink()
            os.mkfifo(some / "b.prof")
        return None

    copies(LEDGER, some, ["d.prof"])
    counts, seen = run_plan(plan(some, tmp_path / "out", BINS), DirectEngine(change))
    assert (counts[State.DONE], counts[State.QUARANTINED]) == (2, 2)
    assert seen.reasons == dict.fromkeys(["a.prof", "b.prof"], "unreadable")
    assert "No such file" in seen.details["a.prof"]
    assert "is not a file any more" in seen.details["b.prof"]

"""Batches that are run again: what is done again, and how an interrupted or stopped run is continued."""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from symbolize.batch import job
from symbolize.batch import tasks as batch_tasks
from symbolize.batch.engines.engine import Task, TaskFailure
from symbolize.batch.job import Batch
from symbolize.batch.manifest import Manifest, State
from symbolize.batch.monitoring.observers import Tally
from symbolize.batch.monitoring.summary import Summary
from symbolize.core.errors import OutputError
from symbolize.enrich.edits import Edits
from symbolize.formats import load
from symbolize.storage.backend import LocalStorage
from tests.support.batch_engines import DirectEngine, Recorder, plan, run_plan
from tests.support.batch_runs import ALL_DONE, BINS, GPERFTOOLS, LEDGER, SPECTRA, copies, files_below, outputs, trace


def mtimes(folder: Path) -> dict[str, int]:
    """When each output was written."""
    return {name: (folder / name).stat().st_mtime_ns for name in outputs(folder)}


def test_a_second_run_does_nothing(some: Path, tmp_path: Path) -> None:
    """Outputs keep their times, and no task is run."""
    out = tmp_path / "out"
    run_plan(plan(some, out, BINS))
    before = mtimes(out)
    engine = DirectEngine()
    counts, seen = run_plan(plan(some, out, BINS), engine)
    assert counts[State.DONE] == 3
    assert (engine.ran, seen.stages) == ([], [])
    assert mtimes(out) == before


def test_outputs_of_what_an_input_was_before_go(tmp_path: Path) -> None:
    """A trace that has fewer processes than it had leaves no profile of the others; a bad one leaves all."""
    source, out = tmp_path / "in" / "t.pftrace", tmp_path / "out"
    source.parent.mkdir()
    source.write_bytes(trace(7, 8))
    run_plan(plan(source.parent, out, BINS))
    both = outputs(out)
    assert len(both) == 2
    source.write_bytes(b"?")
    assert run_plan(plan(source.parent, out, BINS))[0][State.QUARANTINED] == 1
    assert outputs(out) == both
    source.write_bytes(trace(7))
    run_plan(plan(source.parent, out, BINS))
    assert len(outputs(out)) == 1
    assert outputs(out).items() <= both.items()
    # What somebody else has put in place of one is theirs.
    (gone,) = both.keys() - outputs(out)
    source.write_bytes(trace(7, 8))
    run_plan(plan(source.parent, out, BINS))
    (out / gone).write_bytes(b"other data")
    source.write_bytes(trace(7))
    run_plan(plan(source.parent, out, BINS))
    assert outputs(out)[gone] == b"other data"


@pytest.mark.full
def test_just_what_is_needed_is_done_again(some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An input that has changed, one that is new, one whose output is gone or cut off; all with other options or
    another version of results, and when told so."""
    out = tmp_path / "out"
    run_plan(plan(some, out, BINS))

    def redone(**options: Any) -> list[str]:
        engine = DirectEngine()
        counts, seen = run_plan(plan(some, out, BINS, **options), engine)
        assert counts == {**ALL_DONE, State.DONE: len(os.listdir(some))}
        return sorted(seen.states)

    shutil.copyfile(SPECTRA, some / "a.prof")
    assert redone() == ["a.prof"]
    assert outputs(out)["a.pb.gz"] == outputs(out)["c.pb.gz"]
    os.utime(some / "b.prof", (1, 1))
    assert redone() == ["b.prof"]
    shutil.copyfile(SPECTRA, some / "d.pb")
    assert redone() == ["d.pb"]
    whole = outputs(out)
    (out / "c.pb.gz").unlink()
    (out / "d.pb.gz").write_bytes(b"")
    assert redone() == ["c.pb.gz", "d.pb"]
    assert outputs(out) == whole
    assert len(redone(demangle="full")) == 4
    monkeypatch.setattr(job, "RESULTS", job.RESULTS + 1)
    assert len(redone(demangle="full")) == 4
    assert redone(demangle="full") == []
    assert redone(demangle="full", cache=str(tmp_path / "cache")) == []
    assert len(redone(demangle="full", again=True)) == 4
    edits = {"demangle": "full", "edits": Edits(prune=True)}
    assert (len(redone(**edits)), redone(**edits)) == (4, [])
    assert len(redone(demangle="full")) == 4
    assert redone(demangle="full") == []


def test_quarantined_inputs_wait_for_being_told(some: Path, tmp_path: Path) -> None:
    """What is in quarantine is not tried again, until it has changed or that is asked for."""
    out = tmp_path / "out"
    (some / "bad.prof").write_bytes(b"nothing of that kind")
    counts, seen = run_plan(plan(some, out, BINS))
    assert (counts[State.DONE], counts[State.QUARANTINED]) == (3, 1)
    assert seen.reasons == {"bad.prof": "unreadable"}
    assert "bad.prof" in seen.details["bad.prof"]
    counts, seen = run_plan(plan(some, out, BINS))
    assert (counts[State.QUARANTINED], seen.states) == (1, {})
    _, seen = run_plan(plan(some, out, BINS, retry_quarantined=True))
    assert seen.states == {"bad.prof": [State.QUARANTINED]}
    shutil.copyfile(LEDGER, some / "bad.prof")
    counts, seen = run_plan(plan(some, out, BINS))
    assert (counts[State.DONE], counts[State.QUARANTINED]) == (4, 0)
    assert outputs(out)["bad.pb.gz"] == outputs(out)["a.pb.gz"]


@pytest.mark.parametrize("before", [1, 4, 7])
@pytest.mark.full
def test_told_to_stop(before: int, some: Path, tmp_path: Path) -> None:
    """What is under way in any pass is brought to its end, and nothing more is begun; the next run does the rest."""
    given = plan(some, tmp_path / "out", BINS)
    with Manifest(given.state + "/manifest.sqlite") as manifest, DirectEngine() as engine:
        counts = Batch(given, engine, manifest, Recorder(), lambda: len(engine.ran) >= before).run()
        assert len(engine.ran) == before
        assert counts[State.DONE] < 3
    assert run_plan(given)[0] == {**ALL_DONE, State.DONE: 3}
    run_plan(plan(some, tmp_path / "whole", BINS))
    assert outputs(tmp_path / "out") == outputs(tmp_path / "whole")


@pytest.mark.parametrize("stage", ["symbolize_inputs", "decode_binary", "rewrite"])
@pytest.mark.full
def test_going_on_after_an_interruption(stage: str, some: Path, tmp_path: Path) -> None:
    """Wherever a run ends, the next one goes on, and the outputs are the same."""
    run_plan(plan(some, tmp_path / "whole", BINS))
    for number in range(3):
        out = tmp_path / f"out{number}"
        passed = []

        def stop(task: Task, passed: list[str] = passed, number: int = number) -> None:
            name = task.function.__name__
            if name == "symbolize_inputs" and not task.argument.spill:
                name = "rewrite"
            if name == stage:
                passed.append(task.key)
                if len(passed) > number:
                    raise KeyboardInterrupt

        try:
            run_plan(plan(some, out, BINS), DirectEngine(stop))  # type: ignore[arg-type]
        except KeyboardInterrupt:
            assert len(outputs(out)) < 3
        assert passed
        engine = DirectEngine()
        assert run_plan(plan(some, out, BINS), engine)[0] == {**ALL_DONE, State.DONE: 3}
        assert outputs(out) == outputs(tmp_path / "whole")
        assert files_below(out / ".symbolize") == ["manifest.sqlite"]
        if stage == "rewrite":
            assert engine.count("decode_binary") == 0


@pytest.mark.needs("s3fs")
def test_a_store_named_anew_gets_all(tmp_path: Path) -> None:
    """What is at a URL is on record only, so that another URL is another batch; a folder can be moved."""
    of_stores = [plan("in", Path("out"), []), plan("in", Path("other"), [])]
    assert of_stores[0].options == of_stores[1].options
    of_stores = [replace(each, config=replace(each.config, out=f"s3://b/{row}")) for row, each in enumerate(of_stores)]
    assert of_stores[0].options != of_stores[1].options


def test_other_inputs_between_an_interruption_and_going_on(some: Path, tmp_path: Path) -> None:
    """What the inputs of the first command waited for is asked again, and not decoded by each worker for itself."""
    out = tmp_path / "out"

    def stop(task: Task) -> TaskFailure | None:
        if task.function is batch_tasks.symbolize_inputs and not task.argument.spill:
            raise KeyboardInterrupt
        return None

    with pytest.raises(KeyboardInterrupt):
        run_plan(plan(some, out, BINS), DirectEngine(stop))
    copies(SPECTRA, tmp_path / "others", ["d.pb"])
    run_plan(plan(tmp_path / "others", out, BINS))
    _, seen = run_plan(plan(some, out, BINS))
    assert [stage for stage, _ in seen.stages] == ["scan", "decode", "rewrite"]


def test_other_addresses_after_an_interruption(tmp_path: Path) -> None:
    """A table that an interrupted run has left answers for the addresses that it was made for, and for no others."""
    inputs, out = tmp_path / "in", tmp_path / "out"
    inputs.mkdir()
    (inputs / "a.pftrace").write_bytes(trace(7))

    def stop(task: Task) -> TaskFailure | None:
        if task.function is batch_tasks.symbolize_inputs and not task.argument.spill:
            raise KeyboardInterrupt
        return None

    with pytest.raises(KeyboardInterrupt):
        run_plan(plan(inputs, out, BINS), DirectEngine(stop))
    copies(GPERFTOOLS / "ledger-gcc-pie.prof", inputs, ["b.prof"])
    run_plan(plan(inputs, out, BINS))
    run_plan(plan(inputs, tmp_path / "whole", BINS))
    assert outputs(out) == outputs(tmp_path / "whole")


def test_an_output_that_cannot_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told, and the input is done."""
    source, out = tmp_path / "in" / "t.pftrace", tmp_path / "out"
    source.parent.mkdir()
    source.write_bytes(trace(7, 8))
    run_plan(plan(source.parent, out, []))
    source.write_bytes(trace(7))
    remove = LocalStorage.remove

    def fail(self: LocalStorage, name: str) -> None:
        if name.endswith(".pb.gz"):
            raise OutputError(f"{name}: cannot be removed: Read-only file system")
        remove(self, name)

    monkeypatch.setattr(LocalStorage, "remove", fail)
    counts, seen = run_plan(plan(source.parent, out, []))
    assert counts == {**ALL_DONE, State.DONE: 1}
    (problem,) = seen.problems
    assert "is of an earlier version of its input, and cannot be removed: " in problem
    assert len(outputs(out)) == 2


def test_a_run_that_names_nothing_keeps_what_is_better(some: Path, tmp_path: Path) -> None:
    """R279: outputs with names outlast a run with the wrong binaries, which says so; and nothing else than that."""
    out, empty = tmp_path / "out", tmp_path / "empty"
    empty.mkdir()
    run_plan(plan(some, out, BINS))
    before, written = outputs(out), mtimes(out)
    wrong = plan(some, out, [empty])
    with Manifest(wrong.state + "/manifest.sqlite") as manifest, DirectEngine() as engine:
        batch = Batch(wrong, engine, manifest, Recorder())
        assert batch.run() == {**ALL_DONE, State.DONE: 3}
        with Summary(manifest, Tally()) as summary:
            summary.read()
            assert "kept: 3 outputs of earlier runs" in summary.text()
            assert summary.figures()["outputs"]["kept"] == 3
    assert mtimes(out) == written
    # With the right binaries it is done again, and is what it was.
    run_plan(plan(some, out, BINS))
    assert outputs(out) == before
    # An input that changed, an output that is gone, and a batch that is to do all again: the result counts.
    shutil.copy2(LEDGER, some / "a.prof.new")
    os.utime(some / "a.prof.new", (1, 1))
    os.replace(some / "a.prof.new", some / "a.prof")
    (out / "b.pb.gz").unlink()
    run_plan(wrong)
    assert [name for name, data in outputs(out).items() if data == before[name]] == ["c.pb.gz"]
    run_plan(replace(wrong, again=True))
    assert not any(data == before[name] for name, data in outputs(out).items())
    with (
        Manifest(wrong.state + "/manifest.sqlite") as manifest,
        Summary(manifest, Tally()) as summary,
    ):
        summary.read()
        assert "warning: NOTHING WAS SYMBOLIZED in 3 of 3 profiles" in summary.text()


def test_an_output_that_is_cut_off_while_a_run_names_nothing(tmp_path: Path) -> None:
    """It is none that could be kept."""
    copies(LEDGER, tmp_path / "in", ["a.prof"])
    out, written = tmp_path / "out", tmp_path / "out" / "a.pb.gz"
    run_plan(plan(tmp_path / "in", out, BINS))

    def cut(task: Task) -> None:
        written.write_bytes(written.read_bytes()[:100])

    run_plan(plan(tmp_path / "in", out, [tmp_path]), DirectEngine(cut))
    assert load(written).warnings == [] and len(load(written).samples) == len(load(LEDGER).samples)

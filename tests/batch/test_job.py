"""The driver of a batch with engines that run tasks in this process: what is done, once, and what it costs."""

import gc
import gzip
import os
import pickle
import shutil
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from symbolize.batch import tasks as batch_tasks
from symbolize.batch.engines.engine import Failure, Limits, Outcome, Task
from symbolize.batch.job import Batch, Shard, is_below
from symbolize.batch.manifest import INCOMPLETE, UNREACHABLE, InputResult, Manifest, ProfileRow, State
from symbolize.batch.monitoring.summary import Summary, Tally
from symbolize.batch.storage.backend import LocalStorage, Storage
from symbolize.batch.storage.input_names import Input
from symbolize.batch.tasks import TaskResult
from symbolize.core.errors import OutputError
from symbolize.core.reasons import Reason
from symbolize.load import load
from tests.support.batch_engines import DirectEngine, Recorder, plan, run_plan
from tests.support.batch_runs import GPERFTOOLS, PERF, copies, files_below, make_inputs, outputs, single_outputs, trace
from tests.support.fixture_files import BINARIES

LEDGER = GPERFTOOLS / "ledger-gcc-split.prof"
SPECTRA = PERF / "spectra-gcc-pie.pb.gz"
BINS = [BINARIES / "gcc-split", BINARIES / "gcc-pie"]
ALL_DONE = {State.NEW: 0, State.SCANNED: 0, State.QUARANTINED: 0}


def mtimes(folder: Path) -> dict[str, int]:
    """When each output was written."""
    return {name: (folder / name).stat().st_mtime_ns for name in outputs(folder)}


@pytest.fixture
def some(tmp_path: Path) -> Path:
    """A folder with three profiles of two programs."""
    copies(LEDGER, tmp_path / "in", ["a.prof", "b.prof"])
    copies(SPECTRA, tmp_path / "in", ["c.pb.gz"])
    return tmp_path / "in"


@pytest.mark.parametrize("options", [{}, {"nearest_line": True}, {"demangle": "full"}], ids=str)
@pytest.mark.parametrize("cache", ["", "cache"], ids=["no cache", "cache"])
def test_tasks_of_any_size_write_the_same(options: dict[str, Any], cache: str, tmp_path: Path) -> None:
    """The outputs are those of the single command, however many inputs a task has."""
    inputs = make_inputs(tmp_path / "in")
    naming = ["--nearest-line"] * ("nearest_line" in options)
    if "demangle" in options:
        naming += ["--demangle", options["demangle"]]
    results = []
    for per_task in (1, 8):
        out = tmp_path / f"out{per_task}"
        folder = str(tmp_path / f"{cache}{per_task}") if cache else ""
        given = plan(inputs, out, BINS, per_task=per_task, cache=folder, **options)
        assert run_plan(given)[0] == {**ALL_DONE, State.DONE: 12}
        results.append(outputs(out))
    assert results[0] == results[1]
    single = single_outputs(
        inputs,
        {"perf/spectra.pb.gz": "s", "ledger-gcc-split.prof": "l"},
        tmp_path / "single",
        *(each for path in BINS for each in ("-b", str(path))),
        "--no-cache",
        *naming,
    )
    assert single["s.pb.gz"] == results[0]["perf/spectra.pb.gz.pb.gz"]
    assert single["l.pb.gz"] == results[0]["ledger-gcc-split.pb.gz"]


def test_each_binary_is_decoded_once(some: Path, tmp_path: Path) -> None:
    """For all profiles of it; they wait for that, and are written then."""
    engine = DirectEngine()
    given = plan(some, tmp_path / "out", BINS)
    began = time.perf_counter()
    _, seen = run_plan(given, engine)
    took = time.perf_counter() - began
    binaries = engine.count("decode_binary")
    assert binaries == len({key for name, key in engine.ran if name == "decode_binary"}) > 0
    assert seen.states["a.prof"] == seen.states["b.prof"] == [State.SCANNED, State.DONE]
    assert seen.stages == [("scan", 3), ("decode", binaries), ("rewrite", 3)]
    assert files_below(tmp_path / "out" / ".symbolize") == ["manifest.sqlite"]
    with Manifest(given.state + "/manifest.sqlite") as manifest:
        seconds = [row.seconds for row in manifest.rows(1)] + [row[4] for row in manifest.binaries()]
    assert len(seconds) == 3 + binaries
    assert 0 < min(seconds) <= sum(seconds) < took


def test_addresses_are_put_on_record_once(some: Path, tmp_path: Path) -> None:
    """However many profiles of a binary ask for them, until a worker has too many in memory."""

    def stop(task: Task) -> Failure | None:
        if task.function is batch_tasks.decode_binary:
            raise KeyboardInterrupt
        return None

    asked = []
    for names in (["a.prof"], ["a.prof", "b.prof"], ["a.prof", "b.prof", "c.pb.gz"]):
        out = tmp_path / f"out{len(names)}"
        given = plan("", out, BINS, arguments=[str(some / name) for name in names])
        with pytest.raises(KeyboardInterrupt):
            run_plan(given, DirectEngine(stop))
        with Manifest(given.state + "/manifest.sqlite") as manifest:
            asked.append(dict(manifest.unanswered()))
            spills = [manifest.asked(key).spills for key in asked[-1]]
        assert sum(map(len, spills)) == len(asked[-1])
    assert asked[0] == asked[1]
    assert asked[1].items() < asked[2].items()


def test_tables_are_made_of_what_is_asked(some: Path, tmp_path: Path) -> None:
    """And of all of a binary only where lines near an address are wanted too."""
    sizes = []
    for nearest_line in (False, True):
        given = plan(some, tmp_path / f"out{nearest_line}", BINS, nearest_line=nearest_line)
        run_plan(given)
        with Manifest(given.state + "/manifest.sqlite") as manifest:
            sizes.append([size for _, _, _, size, _, _ in manifest.binaries()])
    assert all(0 < part < whole for part, whole in zip(*sizes, strict=True))


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


def test_just_what_is_needed_is_done_again(some: Path, tmp_path: Path) -> None:
    """An input that has changed, one that is new, one whose output is gone or cut off; all with other options or
    another version of the program, and when told so."""
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
    assert len(redone(demangle="full", version="2")) == 4
    assert redone(demangle="full", version="2") == []
    assert redone(demangle="full", version="2", cache=str(tmp_path / "cache")) == []
    assert len(redone(demangle="full", version="2", again=True)) == 4
    assert redone(demangle="full", version="2") == []


def test_what_is_told_of_a_beginning(tmp_path: Path) -> None:
    """At first what there is to do and what was done before, and later where there is more to do."""
    begun: list[tuple[int, int, int]] = []

    class Begun(Recorder):
        def began(self, waiting: int, done: int, quarantined: int) -> None:
            begun.append((waiting, done, quarantined))

    copies(LEDGER, tmp_path / "in", ["a.prof"])
    (tmp_path / "in" / "bad").touch()
    given = plan(tmp_path / "in", tmp_path / "out", [])
    run_plan(given)
    with Manifest(given.state + "/manifest.sqlite") as manifest, DirectEngine() as engine:
        batch = Batch(given, engine, manifest, Begun())
        batch.run()
        batch.run()
        copies(LEDGER, tmp_path / "in", ["b.prof"])
        assert batch.run() == {**ALL_DONE, State.DONE: 2, State.QUARANTINED: 1}
        batch.run()
    assert begun == [(0, 1, 1), (1, 1, 1)]


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


def test_a_task_of_several_is_divided_to_find_the_bad_one(some: Path, tmp_path: Path) -> None:
    """It is tried once as a whole, in the time of all its inputs, then each alone as often as an input may be."""

    def fails(task: Task) -> Failure | None:
        return Failure.CRASH if any(item.uri.endswith("b.prof") for item in task.argument.items) else None

    engine = DirectEngine(lambda task: fails(task) if task.function is batch_tasks.symbolize_inputs else None)
    limits = Limits(10, 0, 3)
    given = plan(some, tmp_path / "out", BINS, per_task=8, limits=limits)
    counts, seen = run_plan(given, engine)
    assert (counts[State.DONE], counts[State.QUARANTINED]) == (2, 1)
    assert seen.reasons == {"b.prof": "crash"}
    assert engine.limits[:2] == [Limits(80, 0, 1), limits]
    with Manifest(given.state + "/manifest.sqlite") as manifest:
        assert [row[7] for row in manifest.rows(2 - 1) if row[5]] == [3]


def test_a_binary_that_goes_before_it_is_decoded(tmp_path: Path) -> None:
    """It is on record without a table, and its profiles are written."""
    copies(SPECTRA, tmp_path / "in", ["c.pb.gz"])
    copies(BINARIES / "gcc-pie" / "spectra", tmp_path / "bin", ["spectra"])

    def remove(task: Task) -> None:
        if task.function is batch_tasks.decode_binary:
            (tmp_path / "bin" / "spectra").unlink()
            batch_tasks.forget_worker()

    given = plan(tmp_path / "in", tmp_path / "out", [tmp_path / "bin"])
    counts, seen = run_plan(given, DirectEngine(remove))
    assert counts == {**ALL_DONE, State.DONE: 1}
    assert seen.failures == [f"{tmp_path}/bin/spectra: is not there any more, or has changed"]
    with Manifest(given.state + "/manifest.sqlite") as manifest:
        assert [(row[2], row[3], row[5]) for row in manifest.binaries()] == [(0, 0, seen.failures[0])]


class Again(DirectEngine):
    """Needs three attempts for what it does."""

    def run(self, tasks: Iterable[Task], limits: Limits) -> Iterator[Outcome]:
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
        assert [(row.state, row.attempts) for row in manifest.rows(1)] == [
            (State.DONE, attempts),
            (State.QUARANTINED, attempts),
        ]


def test_a_binary_that_cannot_be_decoded(some: Path, tmp_path: Path) -> None:
    """Its profiles are written all the same, its frames raw with the reason, and it is tried once a run: also by
    profiles that arrive later in it, and by nobody when an interrupted run goes on."""
    out = tmp_path / "out"
    tried: list[str] = []

    def fails(task: Task) -> Failure | None:
        if task.function is not batch_tasks.decode_binary:
            return None
        if "ledger" in task.argument.asked.files[0][0]:
            tried.append(task.key)
            return Failure.CRASH
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

    def stop(task: Task) -> Failure | None:
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


def test_binaries_that_come_and_change_while_watching(tmp_path: Path) -> None:
    """What arrives later is symbolized with the binaries that are there then, as by a new process."""
    folder, out = tmp_path / "bin", tmp_path / "out"
    folder.mkdir()
    copies(SPECTRA, tmp_path / "in", ["a.pb.gz"])
    given = plan(tmp_path / "in", out, [folder])
    with Manifest(given.state + "/manifest.sqlite") as manifest, DirectEngine() as engine:
        batch = Batch(given, engine, manifest, Recorder())
        batch.run()
        shutil.copy2(BINARIES / "gcc-pie" / "spectra", folder)
        copies(SPECTRA, tmp_path / "in", ["b.pb.gz"])
        batch.run()
    run_plan(plan(tmp_path / "in", tmp_path / "later", [folder]))
    assert outputs(out)["b.pb.gz"] == outputs(tmp_path / "later")["b.pb.gz"] != outputs(out)["a.pb.gz"]


def test_several_outputs_of_one_input_do_not_meet_those_of_others(tmp_path: Path) -> None:
    """A trace beside a folder of its name, in which there is a file called as one of its profiles, now or later."""
    inputs, out = tmp_path / "in", tmp_path / "out"
    inputs.mkdir()
    (inputs / "run.pftrace").write_bytes(trace(7, 8))
    run_plan(plan(inputs, out, BINS))
    first, second = sorted(outputs(out))
    copies(LEDGER, inputs / "run", [Path(first).name.removesuffix(".pb.gz") + ".prof", "other.prof"])
    before = outputs(out)
    counts, _ = run_plan(plan(inputs, out, BINS))
    assert counts[State.DONE] == 3
    assert {name: outputs(out)[name] for name in before} == before
    counts, _ = run_plan(plan(inputs, out, BINS, again=True))  # where they lie depends on what else there is
    assert counts[State.DONE] == 3
    assert {f"run.pftrace/{Path(name).name}": data for name, data in before.items()}.items() <= outputs(out).items()
    assert len(outputs(out)) == 4
    counts, _ = run_plan(plan(inputs, tmp_path / "new", BINS))
    assert counts[State.DONE] == 3
    made = outputs(tmp_path / "new")
    assert sorted(Path(name).name for name in made) == sorted(
        [Path(first).name] * 2 + ["other.pb.gz", Path(second).name]
    )
    assert {made[name] for name in made if name.startswith("run.pftrace/")} == {*before.values()}


def test_what_lies_in_out_is_no_input_by_whatever_name(some: Path, tmp_path: Path) -> None:
    """Nor where a link leads to the folder above."""
    (tmp_path / "link").symlink_to(some)
    for _ in range(3):
        counts, _ = run_plan(plan(tmp_path / "link", some / "out", BINS))
        assert counts == {**ALL_DONE, State.DONE: 3}
    assert [*outputs(some / "out")] == ["a.pb.gz", "b.pb.gz", "c.pb.gz"]


def test_what_is_below_a_place(tmp_path: Path) -> None:
    """By real paths, and by names of URLs; a place is not below itself, nor is one whose name goes on."""
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out")
    out, link = Storage.of(str(tmp_path / "out")), Storage.of(str(tmp_path / "link"))
    for place in (out, link):
        for name, inside in (("out/a", True), ("link/a/b", True), ("out", False), ("outer/a", False), ("a", False)):
            assert is_below(str(tmp_path / name), place) == is_below(f"file://{tmp_path}/{name}", place) == inside
        assert not is_below("s3://b/out/a", place)
    store = Storage.of("memory://b/out")
    for name, inside in (("b/out/a", True), ("b/out/", True), ("b/out", False), ("b/outer/a", False), ("b/a", False)):
        assert is_below(f"memory://{name}", store) == inside
    assert not is_below(str(tmp_path / "out" / "a"), store)


def test_problems_of_caches_are_told_once(some: Path, tmp_path: Path) -> None:
    """Of each kind one, by whichever worker, and not too many."""

    class Complaining(DirectEngine):
        def run(self, tasks: Iterable[Task], limits: Limits) -> Iterator[Outcome]:
            for number, each in enumerate(super().run(tasks, limits)):
                problems = (f"store: {each.task.key}", *(f"{kind}{number}: x" for kind in "ab"))
                yield each._replace(value=each.value._replace(problems=problems))

    _, seen = run_plan(plan(some, tmp_path / "out", BINS), Complaining())
    assert seen.problems == ["table cache store: 1", "table cache a0: x", "table cache b0: x", "table cache a1: x"]


def test_a_store_named_anew_gets_all(tmp_path: Path) -> None:
    """What is at a URL is on record only, so that another URL is another batch; a folder can be moved."""
    of_stores = [plan("in", Path("out"), []), plan("in", Path("other"), [])]
    assert of_stores[0].options == of_stores[1].options
    of_stores = [replace(each, config=replace(each.config, out=f"s3://b/{row}")) for row, each in enumerate(of_stores)]
    assert of_stores[0].options != of_stores[1].options


def test_other_inputs_between_an_interruption_and_going_on(some: Path, tmp_path: Path) -> None:
    """What the inputs of the first command waited for is asked again, and not decoded by each worker for itself."""
    out = tmp_path / "out"

    def stop(task: Task) -> Failure | None:
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

    def stop(task: Task) -> Failure | None:
        if task.function is batch_tasks.symbolize_inputs and not task.argument.spill:
            raise KeyboardInterrupt
        return None

    with pytest.raises(KeyboardInterrupt):
        run_plan(plan(inputs, out, BINS), DirectEngine(stop))
    copies(GPERFTOOLS / "ledger-gcc-pie.prof", inputs, ["b.prof"])
    run_plan(plan(inputs, out, BINS))
    run_plan(plan(inputs, tmp_path / "whole", BINS))
    assert outputs(out) == outputs(tmp_path / "whole")


@pytest.mark.parametrize("is_kept", [True, False])
def test_tables_are_handed_to_other_workers(
    is_kept: bool, some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that no cache has, and those that one has on the machines of a cluster, each of which has its own."""
    run_plan(plan(some, tmp_path / "whole", BINS))

    def next_machine(task: Task) -> Failure | None:
        if task.function is batch_tasks.symbolize_inputs and not task.argument.spill:
            shutil.rmtree(tmp_path / "cache", ignore_errors=True)
            batch_tasks.forget_worker()
            monkeypatch.setattr("symbolize.symbols.build.Builder", None)  # decoding would fail
        return None

    # Half of it is needed at once, so that it is made as a whole, and kept.
    monkeypatch.setattr("symbolize.symbols.binary.WHOLE_SHARE", 0.0)
    options: dict[str, Any] = {"cache": str(tmp_path / "cache"), "hand_on_kept": True} if is_kept else {}
    given = plan(some, tmp_path / "out", BINS, **options)
    counts, _ = run_plan(given, DirectEngine(next_machine))
    assert counts == {**ALL_DONE, State.DONE: 3}
    assert outputs(tmp_path / "out") == outputs(tmp_path / "whole")


def test_a_link_that_leads_out_of_the_place(some: Path, tmp_path: Path) -> None:
    """It costs the inputs whose outputs would go there, and the batch goes on."""
    copies(LEDGER, some / "deep", ["d.prof"])
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "deep").symlink_to(tmp_path / "elsewhere")
    counts, seen = run_plan(plan(some, tmp_path / "out", BINS))
    assert (counts[State.DONE], seen.reasons) == (3, {"d.prof": "unwritable"})
    assert "a link on the way leads out of" in seen.details["d.prof"]
    assert not [*(tmp_path / "elsewhere").iterdir()]


def test_a_server_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its inputs are no bad ones: the next run tries them, without being told."""
    memory = pytest.importorskip("fsspec.implementations.memory").MemoryFileSystem()
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
            assert (manifest.count_failed(1), manifest.count(1)[State.QUARANTINED]) == (2, 2)
            manifest.retry_failed(1, "unreachable")  # as while watching
            assert (manifest.count_failed(1), manifest.count(1)[State.NEW]) == (0, 2)
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
        manifest.add([Input(name, name, 1, "1") for name in "abc"], "", batch.turn, retry=False, again=False)
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
            states.append([row.state for row in manifest.rows(batch.turn)])
        assert probed == []
    new, done, bad = State.NEW, State.DONE, State.QUARANTINED
    assert states == [[new, done, bad], [new, new, bad], [new, new, bad]]


def test_settling(tmp_path: Path) -> None:
    """An input is taken while watching when it is as it was at the look before, or as it is on record."""
    one, other = Input("/in/a", "a", 1, "1-1"), Input("/in/a", "a", 2, "2-2")
    with Manifest(str(tmp_path / "manifest.sqlite")) as manifest:
        assert [manifest.is_settled(each, look) for look, each in enumerate((one, other, one))] == [False] * 3
        assert manifest.is_settled(one, 3)
        manifest.end_look(4)
        assert not manifest.is_settled(one, 5)
        manifest.add([one], "", 1, retry=False, again=False)
        assert manifest.is_settled(one, 9)
        assert not manifest.is_settled(other, 9)


def test_many_inputs_are_read_by_and_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, and those of other turns never."""
    monkeypatch.setattr("symbolize.batch.manifest.ROWS_AT_ONCE", 2)
    names = [f"/in/{number}" for number in range(7)]
    with Manifest(str(tmp_path / "manifest.sqlite")) as manifest:
        for turn in (1, 2):
            inputs = [Input(f"{name}.{turn}", f"{name}.{turn}", 1, "1") for name in names]
            manifest.add(inputs, "", turn, retry=False, again=False)
        for turn in (1, 2):
            expected = [f"{name}.{turn}" for name in names]
            assert [row.uri for row in manifest.rows(turn)] == expected
            assert [item.uri for item in manifest.items(State.NEW, turn)] == expected
        # What changes its state meanwhile is not met twice.
        met = []
        for item in manifest.items(State.NEW, 2):
            met.append(item.uri)
            manifest.record([InputResult(item.number, State.SCANNED)])
        assert met == expected
        assert [*manifest.items(State.NEW, 2)] == []


ROWS_BEFORE = ProfileRow("a.pb.gz", 7, {"percent": 1}), ProfileRow("b.pb.gz", 8, {"percent": 2})
DONE_BEFORE = InputResult(1, State.DONE, ROWS_BEFORE, "", "", 2.0, 3)
QUARANTINED_BEFORE = InputResult(1, State.QUARANTINED, (), "crash", "it died", 2.0, 3)


@pytest.mark.parametrize(
    ("before", "given", "is_new", "is_replaced"),
    [
        (DONE_BEFORE, {}, False, False),
        (DONE_BEFORE, {"retry": True}, False, False),
        (DONE_BEFORE, {"version": "2"}, True, True),
        (DONE_BEFORE, {"options": "other"}, True, False),
        (DONE_BEFORE, {"again": True}, True, True),
        (DONE_BEFORE, {"is_there": lambda output, size: (output, size) != ("a.pb.gz", 7)}, True, True),
        *((DONE_BEFORE._replace(reason=reason), {}, True, False) for reason in INCOMPLETE),
        (DONE_BEFORE, {"turn": 1, "again": True, "retry": True}, False, False),
        (DONE_BEFORE, {"turn": 1, "version": "2"}, True, True),
        (QUARANTINED_BEFORE, {}, False, False),
        (QUARANTINED_BEFORE, {"retry": True}, True, False),
        (QUARANTINED_BEFORE, {"again": True}, True, False),
        (QUARANTINED_BEFORE, {"version": "2"}, True, False),
        (QUARANTINED_BEFORE, {"options": "other"}, True, False),
        (QUARANTINED_BEFORE, {"is_there": lambda output, size: False}, False, False),
        (QUARANTINED_BEFORE._replace(reason=UNREACHABLE), {}, True, False),
    ],
)
def test_which_inputs_are_done_again(
    before: InputResult, given: dict[str, Any], is_new: bool, is_replaced: bool, tmp_path: Path
) -> None:
    """What is new begins anew, and says whether outputs of an earlier run of the same bytes may stay."""
    found = Input("/in/a", "a", 5, "1")
    with Manifest(str(tmp_path / "manifest.sqlite")) as manifest:
        manifest.add([found], "options", 1, retry=False, again=False)
        manifest.record([before])
        turn = given.pop("turn", 2)
        version, options = given.pop("version", "1"), given.pop("options", "options")
        given = {"retry": False, "again": False} | given
        manifest.add([found._replace(size=6, version=version)], options, turn, **given)
        (row,) = manifest.rows(turn)
        assert row.state == (State.NEW if is_new else before.state)
        result = ("", "", 0, 0.0) if is_new else (before.reason, before.detail, 3, 2.0)
        assert (row.reason, row.detail, row.attempts, row.seconds) == result
        items = [*manifest.items(State.NEW, turn)]
        assert len(items) == is_new
        for item in items:
            assert (item.size, item.before) == (6, () if is_replaced else before.profiles)
        # The next look finds it as it is.
        manifest.record([before])
        manifest.add([found._replace(version=version)], options, turn + 1, retry=False, again=False)
        assert manifest.count(turn + 1)[State.NEW] == (before.reason in (*INCOMPLETE, UNREACHABLE))


def test_a_damaged_manifest(some: Path, tmp_path: Path) -> None:
    """A sentence says which file it is."""
    given = plan(some, tmp_path / "out", BINS)
    run_plan(given)
    path = Path(given.state) / "manifest.sqlite"
    data = path.read_bytes()
    path.write_bytes(data[:4096] + b"?" * (len(data) - 4096))
    with pytest.raises(OutputError, match=r"manifest\.sqlite: is damaged .*remove it to begin anew"):
        run_plan(given)
    path.write_bytes(b"?" * 4096)
    with pytest.raises(OutputError, match=r"manifest\.sqlite: is damaged \(file is not a database\)"):
        run_plan(given)


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

    def no_space(self: Any, name: str, durable: bool = False) -> Any:
        raise OutputError(f"{name}: cannot be written: No space left on device") from OSError(28, "No space")

    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr("symbolize.batch.storage.backend.LocalStorage.write", no_space)
        with pytest.raises(OutputError, match="No space left"):
            run_plan(plan(some, out, BINS))
    assert run_plan(plan(some, out, BINS))[0] == {**ALL_DONE, State.DONE: 3}


@pytest.mark.parametrize("folder", [batch_tasks.SPILLS, "tables"])
def test_nothing_can_be_left_for_others(
    folder: str, some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where workers cannot write what the others need the batch ends, and goes on later."""
    whole = LocalStorage.write

    def write(self: LocalStorage, name: str, durable: bool = False) -> Any:
        if name.startswith(folder + "/"):
            raise OutputError(f"{name}: cannot be written: No space left on device") from OSError(28, "No space")
        return whole(self, name, durable)

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
        assert manifest.count(1)[State.NEW] == 3


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
    assert "test_job.py" in seen.details["b.prof"]
    del errors[0]
    with pytest.raises(MemoryError):
        run_plan(plan(some, tmp_path / "out", BINS, retry_quarantined=True))


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
    assert "is of what its input was before, and cannot be removed: " in problem
    assert len(outputs(out)) == 2


def test_inputs_that_are_gone_or_no_files_any_more(some: Path, tmp_path: Path) -> None:
    """What happens to a file between two passes costs that input alone."""

    def change(task: Task) -> Failure | None:
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
    assert "is no file any more" in seen.details["b.prof"]


def test_shards(tmp_path: Path) -> None:
    """Each input is in one part, those whose outputs have the same name in the same, so that names do not clash."""
    for number in range(40):
        copies(SPECTRA, tmp_path / "in" / f"{number % 3}", [f"p{number}.pb", f"p{number}.pb.gz"])
    inputs = sorted(str(path) for path in (tmp_path / "in").rglob("*.pb*"))
    run_plan(plan(tmp_path / "in", tmp_path / "whole", []))
    taken: list[str] = []
    for number in range(5):
        shard = Shard(number, 5)
        state = tmp_path / "out" / ".symbolize" / str(number)
        given = plan(tmp_path / "in", tmp_path / "out", [], shard=shard, state=state)
        engine = DirectEngine()
        seen_items: list[str] = []
        counts, _ = run_plan(given, engine)
        with Manifest(given.state + "/manifest.sqlite") as manifest:
            seen_items = [row[1] for row in manifest.rows(1)]
        assert 0 < counts[State.DONE] == len(seen_items) < len(inputs)
        assert {name.split(".")[0] for name in seen_items}.isdisjoint(name.split(".")[0] for name in taken)
        taken += seen_items
    assert sorted(taken) == inputs
    assert outputs(tmp_path / "out") == outputs(tmp_path / "whole")


class Answering:
    """An engine that has done everything at once."""

    workers = 2

    def run(self, tasks: Iterable[Task], limits: Limits) -> Iterator[Outcome]:
        """Answer."""
        for task in tasks:
            handled = tuple(
                InputResult(item.number, State.DONE, (ProfileRow(f"{item.name}.pb.gz", 100, {"samples": 1}),))
                for item in task.argument.items
            )
            yield Outcome(task, pickle.loads(pickle.dumps(TaskResult(handled))), None, "", 1, 0.0)

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


def test_memory_does_not_grow_with_the_inputs(tmp_path: Path) -> None:
    """The process that drives the batch has a few hundred inputs in memory, however many there are."""
    grown(100, tmp_path)
    few, many = grown(600, tmp_path), grown(1800, tmp_path)
    assert many < few * 1.5 + 200_000


def test_workers_open_a_limited_number_of_binaries(some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With more they begin anew, and the outputs are the same."""
    run_plan(plan(some, tmp_path / "whole", BINS))
    monkeypatch.setattr(batch_tasks, "MAX_OPEN", 0)
    monkeypatch.setattr(batch_tasks, "MAX_NOTED", 0)
    opened: list[int] = []
    noted: list[int] = []
    begin, note = batch_tasks.Worker.begin, batch_tasks.Worker.note

    def noting(self: batch_tasks.Worker, epoch: int) -> None:
        begin(self, epoch)
        opened.append(self.symbolizer.open_binaries + len(self.tables._known))

    def remembering(self: batch_tasks.Worker, questions: list[batch_tasks.Question]) -> None:
        note(self, questions)
        noted.append(len(self.noted))

    monkeypatch.setattr(batch_tasks.Worker, "begin", noting)
    monkeypatch.setattr(batch_tasks.Worker, "note", remembering)
    run_plan(plan(some, tmp_path / "out", BINS))
    assert {*opened} == {*noted} == {0}
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


@pytest.mark.parametrize("nearest_line", [False, True])
def test_object_store(some: Path, tmp_path: Path, bucket: Any, nearest_line: bool) -> None:
    """Inputs from a bucket, outputs, what tasks leave for one another and the cache in it: the same outputs."""
    make = {"nearest_line": nearest_line, "cache": str(tmp_path / "cache")}
    run_plan(plan(some, tmp_path / "out", BINS, **make))
    for path in some.iterdir():
        bucket.put(f"in/{path.name}", data=path.read_bytes())
    config = plan(f"{bucket.url}/in", tmp_path / "state", BINS, nearest_line=nearest_line, cache=f"{bucket.url}/cache")
    url = bucket.url
    given = replace(config, config=replace(config.config, out=f"{url}/out", exchange=f"{url}/out/.symbolize/work"))
    for _ in range(2):
        counts, _ = run_plan(given)
        assert counts == {**ALL_DONE, State.DONE: 3}
    keys = [key for key in sorted(bucket.keys()) if key.startswith("out/")]
    made = {key.removeprefix("out/"): bucket.system.cat_file(f"{url}/{key}") for key in keys}
    assert made == outputs(tmp_path / "out")


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
        with Summary(manifest, batch.turn, Tally()) as summary:
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
        Summary(manifest, manifest.next_turn() - 1, Tally()) as summary,
    ):
        summary.read()
        assert "warning: NOTHING WAS SYMBOLIZED in 3 of 3 profiles" in summary.text()

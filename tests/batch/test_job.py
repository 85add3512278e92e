"""The driver of a batch with engines that run tasks in this process: what is done, once, and what it costs."""

import gc
import gzip
import os
import pickle
import shutil
import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from symbolize.batch import Batch, Input, Limits, Manifest, Shard, State
from symbolize.batch import tasks as batch_tasks
from symbolize.batch.engines.engine import Failure, Outcome, Task
from symbolize.batch.manifest import Handled, ProfileRow
from symbolize.batch.seen.summary import Summary, Tally
from symbolize.batch.tasks import Done
from symbolize.errors import OutputError
from symbolize.load import load
from tests.support.batch_engines import DirectEngine, Seen, plan, run_plan
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
    _, seen = run_plan(plan(some, tmp_path / "out", BINS), engine)
    binaries = engine.count("decode_binary")
    assert binaries == len({key for name, key in engine.ran if name == "decode_binary"}) > 0
    assert seen.states["a.prof"] == seen.states["b.prof"] == [State.SCANNED, State.DONE]
    assert seen.stages == [("scan", 3), ("decode", binaries), ("rewrite", 3)]
    assert files_below(tmp_path / "out" / ".symbolize") == ["manifest.sqlite"]


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
        counts = Batch(given, engine, manifest, Seen(), lambda: len(engine.ran) >= before).run()
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
    seen = Seen()
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
        batch = Batch(given, engine, manifest, Seen())
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


def test_a_store_named_anew_gets_all(tmp_path: Path) -> None:
    """What is at a URL is on record only, so that another URL is another batch; a folder can be moved."""
    of_stores = [plan("in", Path("out"), []), plan("in", Path("other"), [])]
    assert of_stores[0].options == of_stores[1].options
    of_stores = [replace(each, setup=replace(each.setup, out=f"s3://b/{row}")) for row, each in enumerate(of_stores)]
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


def test_kept_tables_are_handed_to_workers_with_another_cache(
    some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on the machines of a cluster, each of which has a folder of its own."""
    run_plan(plan(some, tmp_path / "whole", BINS))

    def next_machine(task: Task) -> Failure | None:
        if task.function is batch_tasks.symbolize_inputs and not task.argument.spill:
            shutil.rmtree(tmp_path / "cache", ignore_errors=True)
            batch_tasks.forget_worker()
            monkeypatch.setattr("symbolize.symbols.build.Builder", None)  # decoding would fail
        return None

    # Half of it is needed at once, so that it is made as a whole, and kept.
    monkeypatch.setattr("symbolize.symbols.binary.WHOLE_SHARE", 0.0)
    given = plan(some, tmp_path / "out", BINS, cache=str(tmp_path / "cache"), hand_on_kept=True)
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
        patched.setattr("symbolize.batch.storage.places.LocalPlace.write", no_space)
        with pytest.raises(OutputError, match="No space left"):
            run_plan(plan(some, out, BINS))
    assert run_plan(plan(some, out, BINS))[0] == {**ALL_DONE, State.DONE: 3}


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
                Handled(item.number, State.DONE, (ProfileRow(f"{item.name}.pb.gz", 100, {"samples": 1}),))
                for item in task.argument.items
            )
            yield Outcome(task, pickle.loads(pickle.dumps(Done(handled))), None, "", 1, 0.0)

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
            batch = Batch(given, Answering(), manifest, Seen.__mro__[1]())  # type: ignore[arg-type]
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
    begin = batch_tasks.Worker.begin

    def noting(self: batch_tasks.Worker, epoch: int) -> None:
        begin(self, epoch)
        opened.append(self.symbolizer.open_binaries + len(self.tables._known))

    monkeypatch.setattr(batch_tasks.Worker, "begin", noting)
    run_plan(plan(some, tmp_path / "out", BINS))
    assert {*opened} == {0}
    assert outputs(tmp_path / "out") == outputs(tmp_path / "whole")
    assert gzip.decompress(outputs(tmp_path / "out")["a.pb.gz"])


@pytest.mark.parametrize("nearest_line", [False, True])
def test_object_store(some: Path, tmp_path: Path, bucket: Any, nearest_line: bool) -> None:
    """Inputs from a bucket, outputs, what tasks leave for one another and the cache in it: the same outputs."""
    make = {"nearest_line": nearest_line, "cache": str(tmp_path / "cache")}
    run_plan(plan(some, tmp_path / "out", BINS, **make))
    for path in some.iterdir():
        bucket.put(f"in/{path.name}", data=path.read_bytes())
    setup = plan(f"{bucket.url}/in", tmp_path / "state", BINS, nearest_line=nearest_line, cache=f"{bucket.url}/cache")
    url = bucket.url
    given = replace(setup, setup=replace(setup.setup, out=f"{url}/out", exchange=f"{url}/out/.symbolize/work"))
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
        batch = Batch(wrong, engine, manifest, Seen())
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

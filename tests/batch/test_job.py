"""The driver of a batch with engines that run tasks in this process: what is done, once, and what it costs."""

import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from symbolize.batch import tasks as batch_tasks
from symbolize.batch.engines.engine import Task, TaskFailure
from symbolize.batch.job import Batch, Shard, is_below
from symbolize.batch.manifest import Manifest, State
from symbolize.cli import main
from symbolize.enrich.edits import Edits
from symbolize.storage.backend import Storage
from symbolize.storage.urls import is_inside
from tests.support.batch_engines import DirectEngine, Recorder, plan, run_plan
from tests.support.batch_runs import (
    ALL_DONE,
    BINS,
    LEDGER,
    SPECTRA,
    copies,
    files_below,
    make_inputs,
    outputs,
    single_outputs,
    trace,
)
from tests.support.fixture_files import BINARIES

EDITS = Edits([("/src", "src")], drop=".*::.*", synthesize=True)


@pytest.mark.parametrize("options", [{}, {"nearest_line": True}, {"demangle": "full"}, {"edits": EDITS}], ids=str)
@pytest.mark.parametrize("cache", ["", "cache"], ids=["no cache", "cache"])
@pytest.mark.full
def test_tasks_of_any_size_write_the_same(options: dict[str, Any], cache: str, tmp_path: Path) -> None:
    """The outputs are those of the single command, however many inputs a task has."""
    inputs = make_inputs(tmp_path / "in")
    naming = ["--nearest-line"] * ("nearest_line" in options)
    if "demangle" in options:
        naming += ["--demangle", options["demangle"]]
    if "edits" in options:
        naming += ["--drop", EDITS.drop, "--synthesize", "--path-prefix", "/src=src"]
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
        seconds = [row.seconds for row in manifest.rows()] + [row[4] for row in manifest.binaries()]
    assert len(seconds) == 3 + binaries
    assert 0 < min(seconds) <= sum(seconds) < took


def test_addresses_are_put_on_record_once(some: Path, tmp_path: Path) -> None:
    """However many profiles of a binary ask for them, until a worker has too many in memory."""

    def stop(task: Task) -> TaskFailure | None:
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
            asked.append(dict(manifest.pending_decodes()))
            spills = [manifest.decode_request(key).spills for key in asked[-1]]
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


def test_what_is_told_of_a_beginning(tmp_path: Path) -> None:
    """At first what there is to do and what was done before, and later where there is more to do."""
    begun: list[tuple[int, int, int, dict[str, int]]] = []

    class Begun(Recorder):
        def began(self, waiting: int, done: int, quarantined: int, renewed: Mapping[str, int]) -> None:
            begun.append((waiting, done, quarantined, dict(renewed)))

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
    given = replace(given, again=True)
    with Manifest(given.state + "/manifest.sqlite") as manifest, DirectEngine() as engine:
        Batch(given, engine, manifest, Begun()).run()
    assert begun == [(0, 1, 1, {}), (1, 1, 1, {}), (3, 0, 0, {"asked": 3})]


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


def test_schemes_of_one_store() -> None:
    """A bucket is below the outputs by each of its schemes: else an output could replace the input that it is of."""
    for one, other in (("s3", "s3a"), ("gs", "gcs"), ("abfs", "az")):
        assert is_inside(f"{one}://b/out/a", f"{other}://b/out") and is_inside(f"{other}://b/out/a", f"{one}://b/out/")
        assert not is_inside(f"{one}://b/out/a", f"{other}://b/ou")
    assert not is_inside("s3://b/out/a", "gs://b/out")


def test_urls_of_outputs_are_no_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As for folders, that is reported, and not taken as a batch without inputs."""
    for argument in ("memory://b/out", "memory://b/out/", "memory://b/out/a.prof", "memory://b/out/*.prof"):
        assert main(["batch", argument, "--out", "memory://b/out", "--state", str(tmp_path / "state")]) == 2
        assert f"{argument}: is inside --out memory://b/out" in capsys.readouterr().err


@pytest.mark.full
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
            seen_items = [row[1] for row in manifest.rows()]
        assert 0 < counts[State.DONE] == len(seen_items) < len(inputs)
        assert {name.split(".")[0] for name in seen_items}.isdisjoint(name.split(".")[0] for name in taken)
        taken += seen_items
    assert sorted(taken) == inputs
    assert outputs(tmp_path / "out") == outputs(tmp_path / "whole")


@pytest.mark.parametrize("nearest_line", [False, True])
@pytest.mark.full
def test_object_store(some: Path, tmp_path: Path, bucket: Any, nearest_line: bool) -> None:
    """Inputs from a bucket, outputs, what tasks leave for one another and the cache in it: the same outputs."""
    make = {"nearest_line": nearest_line, "cache": str(tmp_path / "cache")}
    run_plan(plan(some, tmp_path / "out", BINS, **make))
    for path in some.iterdir():
        bucket.put(f"in/{path.name}", data=path.read_bytes())
    config = plan(f"{bucket.url}/in", tmp_path / "state", BINS, nearest_line=nearest_line, cache=f"{bucket.url}/cache")
    url = bucket.url
    given = replace(config, config=replace(config.config, out=f"{url}/out", shared=f"{url}/out/.symbolize/work"))
    for _ in range(2):
        counts, _ = run_plan(given)
        assert counts == {**ALL_DONE, State.DONE: 3}
    keys = [key for key in sorted(bucket.keys()) if key.startswith("out/")]
    made = {key.removeprefix("out/"): bucket.system.cat_file(f"{url}/{key}") for key in keys}
    assert made == outputs(tmp_path / "out")

"""R400: binaries that come after profiles are done."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from symbolize.batch.job import Batch, Plan
from symbolize.batch.late_binaries import LateBinaries, is_lasting, marks
from symbolize.batch.manifest import Manifest, Renewed, State
from symbolize.binaries import BinaryIndex
from symbolize.elf import read_build_id
from tests.support.batch_engines import DirectEngine, Recorder, plan, run_plan
from tests.support.batch_runs import ALL_DONE, LEDGER, SPECTRA, copies, make_inputs, outputs
from tests.support.fixture_files import BINARIES
from tests.support.http_server import HttpServer, Request

SPLIT = BINARIES / "gcc-split"


@pytest.fixture
def binaries(tmp_path: Path) -> Path:
    """An empty folder for binaries."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def retried(inputs: Path, out: Path, binaries: Path, **options: Any) -> list[str]:
    """The inputs that a run with `retry_missing` does."""
    counts, seen = run_plan(plan(inputs, out, [binaries], retry_missing=True, **options))
    assert counts[State.DONE] == sum(1 for path in inputs.rglob("*") if path.is_file())
    return sorted(seen.states)


@pytest.mark.parametrize("cache", ["", "cache"], ids=["no cache", "cache"])
@pytest.mark.full
def test_three_waves(cache: str, binaries: Path, tmp_path: Path) -> None:
    """At the end all outputs have the bytes of a run that had all binaries from the start; a run without new files
    does nothing."""
    inputs, out = make_inputs(tmp_path / "in"), tmp_path / "out"
    options: dict[str, Any] = {"cache": str(tmp_path / cache) if cache else ""}
    folders = sorted(path for path in BINARIES.iterdir() if path.is_dir())
    assert len(retried(inputs, out, binaries, **options)) == 12
    done = []
    for wave in range(3):
        for folder in folders[wave::3]:
            shutil.copytree(folder, binaries / folder.name)
        done.append(retried(inputs, out, binaries, **options))
        assert retried(inputs, out, binaries, **options) == []
    assert all(done)
    assert max(map(len, done)) < 12
    run_plan(plan(inputs, tmp_path / "whole", [binaries], **options))
    assert outputs(out) == outputs(tmp_path / "whole")


def test_a_debug_file_that_comes_later(binaries: Path, tmp_path: Path) -> None:
    """Names that come from symbols get lines when the debug file is there, and other profiles are left alone. A file
    that is gone is no news."""
    copies(LEDGER, tmp_path / "in", ["a.prof"])
    copies(SPECTRA, tmp_path / "in", ["b.pb.gz"])
    out = tmp_path / "out"
    shutil.copyfile(SPLIT / "stripped" / "ledger", binaries / "ledger")
    run_plan(plan(tmp_path / "in", out, [binaries]))
    before = outputs(out)
    (binaries / "ledger").rename(tmp_path / "ledger")
    _, seen = run_plan(plan(tmp_path / "in", out, [binaries], retry_missing=True))
    assert (seen.states, seen.problems) == ({}, [])
    (tmp_path / "ledger").rename(binaries / "ledger")
    shutil.copyfile(SPLIT / "debug" / "ledger.debug", binaries / "ledger.debug")
    assert retried(tmp_path / "in", out, binaries) == ["a.prof"]
    assert outputs(out)["b.pb.gz"] == before["b.pb.gz"]
    assert outputs(out)["a.pb.gz"] != before["a.pb.gz"]
    assert retried(tmp_path / "in", out, binaries) == []


def test_no_gain(binaries: Path, tmp_path: Path) -> None:
    """Files of other names and builds, a copy of what is there and one that goes make nothing new."""
    copies(SPECTRA, tmp_path / "in", ["a.pb.gz"])
    out = tmp_path / "out"
    shutil.copytree(BINARIES / "gcc-pie", binaries / "one")
    run_plan(plan(tmp_path / "in", out, [binaries]))
    shutil.copytree(BINARIES / "clang-pie", binaries / "other")
    shutil.copytree(BINARIES / "gcc-pie", binaries / "copy")
    assert retried(tmp_path / "in", out, binaries) == []
    shutil.rmtree(binaries / "one")
    assert retried(tmp_path / "in", out, binaries) == []


def test_names_are_not_lost(binaries: Path, tmp_path: Path) -> None:
    """A profile is not done again for a new file where one that named it is gone, which is reported; one that was moved
    is not gone."""
    copies(SPECTRA, tmp_path / "in", ["a.pb.gz"])
    out = tmp_path / "out"
    shutil.copyfile(BINARIES / "gcc-pie" / "spectra", binaries / "spectra")
    run_plan(plan(tmp_path / "in", out, [binaries]))
    before = outputs(out)
    (binaries / "spectra").rename(tmp_path / "spectra")
    shutil.copyfile(BINARIES / "gcc-pie" / "libresonance.so", binaries / "libresonance.so")
    counts, seen = run_plan(plan(tmp_path / "in", out, [binaries], retry_missing=True))
    assert (counts[State.DONE], seen.states) == (1, {})
    assert [each for each in seen.problems if "are not done again for binaries that were added" in each]
    assert outputs(out) == before
    (binaries / "elsewhere").mkdir()
    (tmp_path / "spectra").rename(binaries / "elsewhere" / "spectra")
    assert retried(tmp_path / "in", out, binaries) == ["a.pb.gz"]


def test_names_of_a_file_that_is_named_alone_are_not_lost(binaries: Path, tmp_path: Path) -> None:
    """A file that was named itself, beside folders, is one of these."""
    copies(SPECTRA, tmp_path / "in", ["a.pb.gz"])
    alone = tmp_path / "spectra"
    shutil.copyfile(BINARIES / "gcc-pie" / "spectra", alone)
    given = plan(tmp_path / "in", tmp_path / "out", [binaries, alone], retry_missing=True)
    run_plan(given)
    alone.unlink()
    shutil.copyfile(BINARIES / "gcc-pie" / "libresonance.so", binaries / "libresonance.so")
    assert run_plan(given)[1].states == {}


def test_while_watching(binaries: Path, tmp_path: Path) -> None:
    """A file has to be unchanged between two looks, so that none is half-written; nothing new is no work."""
    copies(SPECTRA, tmp_path / "in", ["a.pb.gz"])
    given: Plan = plan(tmp_path / "in", tmp_path / "out", [binaries])
    with Manifest(given.state + "/manifest.sqlite") as manifest, DirectEngine() as engine:
        batch = Batch(given, engine, manifest, Recorder())
        assert batch.run() == {**ALL_DONE, State.DONE: 1}
        late = LateBinaries(manifest, [str(binaries)], None, lambda where, text: None, lambda: 0.0)
        look = late.scan_settled

        data = (BINARIES / "gcc-pie" / "spectra").read_bytes()
        assert look() == 0
        (binaries / "spectra").write_bytes(data[: len(data) // 2])
        assert look() == 0
        (binaries / "spectra").write_bytes(data)
        assert look() == 0
        assert look() == 1
        batch.work()
        assert [look(), look()] == [0, 0]
        late.close()
        batch._late.scan_settled = lambda: 1  # type: ignore[method-assign]
        assert (batch.watch_binaries(), batch._renewed) == (1, {Renewed.WATCHED: 1})
    run_plan(plan(tmp_path / "in", tmp_path / "whole", [binaries]))
    assert outputs(tmp_path / "out") == outputs(tmp_path / "whole")


def test_looks_cost_little(binaries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next look waits ten times as long as the last one took."""
    copies(SPECTRA, tmp_path / "in", ["a.pb.gz"])
    given = plan(tmp_path / "in", tmp_path / "out", [binaries])
    walks: list[float] = []
    monkeypatch.setattr(BinaryIndex, "walk_again", lambda self: walks.append(times[-1]))
    with Manifest(given.state + "/manifest.sqlite") as manifest, DirectEngine() as engine:
        assert Batch(given, engine, manifest, Recorder()).run() == {**ALL_DONE, State.DONE: 1}
        times: list[float] = []
        seconds = iter([100.0, 100.0, 103.0, 132.0, 133.5, 134.0])

        def clock() -> float:
            times.append(next(seconds))
            return times[-1]

        with LateBinaries(manifest, [str(binaries)], None, lambda where, text: None, clock) as late:
            for _ in range(3):
                late.scan_settled()
    assert walks == [100.0, 133.5]


@pytest.mark.process
def test_files_that_servers_have_later(tmp_path: Path) -> None:
    """What no folder has is asked for again, and profiles are done again where a server has it now."""
    copies(SPECTRA, tmp_path / "in", ["a.pb.gz"])
    files = {read_build_id(str(path)): path for path in (BINARIES / "gcc-pie").iterdir()}
    are_there = False

    def behave(request: Request) -> None:
        path = files.get(request.path.split("/")[2])
        if path is None or not are_there:
            request.reply(404)
        else:
            request.reply(200, path.read_bytes())

    with HttpServer(behave) as server:
        options: dict[str, Any] = {
            "debuginfod": (server.url,),
            "downloads": str(tmp_path / "downloads"),
            "refresh_misses": True,
        }
        given = plan(tmp_path / "in", tmp_path / "out", [], retry_missing=True, **options)
        assert list(run_plan(given)[1].states) == ["a.pb.gz"]
        assert run_plan(given)[1].states == {}
        are_there = True
        counts, seen = run_plan(given)
        assert (counts[State.DONE], sorted(seen.states)) == (1, ["a.pb.gz"])
        assert run_plan(given)[1].states == {}
        run_plan(plan(tmp_path / "in", tmp_path / "whole", [], **options))
    assert outputs(tmp_path / "out") == outputs(tmp_path / "whole")


def test_names_that_no_file_may_have(binaries: Path) -> None:
    """Memory without a file is not waited for; the kernel, its modules and the vdso are."""
    assert [is_lasting("", name) for name in ("//anon", "[heap]", "[heap]x]", "", "x" * 5000)] == [False] * 5
    assert [is_lasting("", name) for name in ("[kernel.kallsyms]", "[btrfs]", "[vdso]", "/lib/libc.so.6")] == [True] * 4
    index = BinaryIndex([str(binaries)])
    before = {
        name: marks(index, "", name) for name in ("[kernel.kallsyms]", "[nf_nat]", "[vdso]", "/a/base.apk!lib/x.so")
    }
    assert set(before.values()) == {frozenset()}
    (binaries / "kallsyms").write_text("0 T x\n")
    (binaries / "nf-nat.ko.xz").write_bytes(b"\xfd7zXZ\0" + bytes(20))
    (binaries / "base.apk").write_bytes(b"PK\3\4" + bytes(30))
    shutil.copyfile(BINARIES / "gcc-pie" / "spectra", binaries / "linux-vdso64.so.1")
    index.walk_again()
    assert {name: len(marks(index, "", name)) for name in before} == dict.fromkeys(before, 1)

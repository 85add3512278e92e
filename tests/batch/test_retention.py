"""R404: what is recorded is bounded, and outputs of inputs that are gone are removed only where that is certain."""

import shutil
import time
from pathlib import Path

import pytest

from symbolize.batch import job
from symbolize.batch.job import DAY, forget_unseen, is_gone, note_unseen
from symbolize.batch.manifest import DecodeRequest, InputResult, Manifest, ProfileRow, State
from symbolize.storage.inputs import Input, NotListed, find_inputs
from tests.support.batch_engines import plan, run_plan
from tests.support.batch_runs import BINS, LEDGER, SPECTRA, copies, outputs, trace


def recorded(out: Path) -> list[str]:
    """The inputs in the manifest, found or not."""
    with Manifest(str(out / ".symbolize" / "manifest.sqlite")) as manifest:
        return [Path(uri).name for (uri,) in manifest.read("SELECT uri FROM inputs ORDER BY uri")]


def test_inputs_that_are_not_found_are_forgotten(some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many days since they were found last, with all that belongs to them; their outputs stay."""
    out = tmp_path / "out"
    now = 1e9
    monkeypatch.setattr(job.time, "time", lambda: now)
    given = plan(some, out, BINS, keep_days=10.0)
    run_plan(given)
    made = outputs(out)
    (some / "a.prof").unlink()
    run_plan(given)
    now += 9 * DAY
    run_plan(given)
    assert recorded(out) == ["a.prof", "b.prof", "c.pb.gz"]
    copies(LEDGER, some, ["a.prof"])  # it is back, so that the days begin anew
    run_plan(given)
    (some / "a.prof").unlink()
    now += 2 * DAY
    run_plan(given)
    assert len(recorded(out)) == 3
    now += 11 * DAY
    run_plan(given)
    assert recorded(out) == ["b.prof", "c.pb.gz"]
    assert outputs(out) == made
    with Manifest(given.state + "/manifest.sqlite") as manifest:
        for table in ("profiles", "wants"):
            assert {row for (row,) in manifest.read(f"SELECT DISTINCT input FROM {table}")} == {2, 3}
        assert not manifest.read("SELECT 1 FROM notes WHERE kind = 'unseen'")


def test_the_manifest_is_packed(tmp_path: Path) -> None:
    """The space of what is forgotten is given back."""
    path = tmp_path / "manifest.sqlite"
    with Manifest(str(path)) as manifest:
        manifest.generation = 1
        inputs = [Input(f"/in/{number}", str(number), 1, "v") for number in range(2000)]
        manifest.add(inputs, "", retry=False, again=False)
        done = [
            InputResult(number, State.DONE, (ProfileRow(f"{number}.pb.gz", 1, {"text": "x" * 2000}),))
            for number in range(1, 2001)
        ]
        manifest.record(done)
    before = path.stat().st_size
    with Manifest(str(path)) as manifest:
        manifest.generation += 1
        note_unseen(manifest, 0.0)
        assert forget_unseen(manifest, 1.0, 2 * DAY) == 2000
    assert path.stat().st_size < before / 10
    with Manifest(str(path)) as manifest:  # it is sound
        assert manifest.read("SELECT count(*) FROM inputs") == [(0,)]


def test_outputs_of_inputs_that_are_gone(some: Path, tmp_path: Path) -> None:
    """Only with the option, only those that are as they were made, and never where something could not be listed."""
    out = tmp_path / "out"
    run_plan(plan(some, out, BINS))
    made = outputs(out)
    (some / "a.prof").unlink()
    (some / "c.pb.gz").unlink()
    (out / "c.pb.gz").write_bytes(b"of somebody else")
    (out / "other.pb.gz").write_bytes(b"of nobody")
    run_plan(plan(some, out, BINS))
    assert outputs(out)["a.pb.gz"] == made["a.pb.gz"]
    _, seen = run_plan(plan(some, out, BINS, prune_outputs=True, arguments=[str(some), str(tmp_path / "no")]))
    assert [each for each in seen.problems if "none is removed, because not everything" in each]
    assert outputs(out)["a.pb.gz"] == made["a.pb.gz"]
    _, seen = run_plan(plan(some, out, BINS, prune_outputs=True))
    assert (seen.problems, seen.states) == ([], {})
    assert sorted(outputs(out)) == ["b.pb.gz", "c.pb.gz", "other.pb.gz"]
    assert recorded(out) == ["b.prof", "c.pb.gz"]


def test_nothing_is_removed_for_a_folder_that_is_not_named(some: Path, tmp_path: Path) -> None:
    """Inputs that exist and are not named this time keep their outputs; an empty folder may be one that is not
    mounted."""
    out, others = tmp_path / "out", tmp_path / "others"
    run_plan(plan(some, out, BINS))
    copies(LEDGER, others, ["d.prof"])
    run_plan(plan(others, out, BINS, prune_outputs=True))
    assert len(outputs(out)) == 4
    shutil.move(some, tmp_path / "away")
    run_plan(plan(others, out, BINS, prune_outputs=True))  # as where it was on a disk that is not plugged in
    assert len(outputs(out)) == 4
    some.mkdir()
    run_plan(plan("", out, BINS, prune_outputs=True, arguments=[str(some), str(others)]))
    assert len(outputs(out)) == 4


def test_folders_that_may_not_be_mounted(some: Path, tmp_path: Path) -> None:
    """A folder that is empty now, below the one that is named; one that is gone was removed."""
    out = tmp_path / "out"
    for host in ("h1", "h2/day"):
        copies(LEDGER, some / host, ["d.prof"])
    run_plan(plan(some, out, BINS))
    shutil.rmtree(some / "h1")
    (some / "h1").mkdir()
    shutil.rmtree(some / "h2" / "day")
    run_plan(plan(some, out, BINS, prune_outputs=True))
    assert len(outputs(out)) == 5
    (some / "h1").rmdir()
    run_plan(plan(some, out, BINS, prune_outputs=True, exclude=["h1"]))
    assert "h1/d.pb.gz" in outputs(out)  # it was left out
    run_plan(plan(some, out, BINS, prune_outputs=True))
    assert sorted(outputs(out)) == ["a.pb.gz", "b.pb.gz", "c.pb.gz", "h2/day/d.pb.gz"]


def test_a_listing_that_fails(some: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nobody knows what is gone: no output is removed, and no days begin."""
    out = tmp_path / "out"
    run_plan(plan(some, out, BINS))
    (some / "a.prof").unlink()

    def failing(*given: object) -> object:
        yield from find_inputs(*given)  # type: ignore[arg-type]
        yield NotListed("s3://b/in", "cannot be read")

    monkeypatch.setattr("symbolize.batch.job.find_inputs", failing)
    run_plan(plan(some, out, BINS, prune_outputs=True, keep_days=1e-9))
    assert len(outputs(out)) == len(recorded(out)) == 3


def test_what_is_certainly_gone(tmp_path: Path) -> None:
    """A file that is not there; not one that cannot be looked at, nor a link that leads nowhere."""
    (tmp_path / "link").symlink_to("nowhere")
    assert is_gone(str(tmp_path / "no" / "x"))
    assert not is_gone(str(tmp_path / "link"))
    assert not is_gone(str(tmp_path / "a\0b"))
    assert not is_gone("s3-no-such-scheme://bucket/x")
    assert not is_gone("http://127.0.0.1:9/x")  # what does not answer is missing for its library
    assert is_gone("memory://bucket-of-nothing/x")


def test_binaries_that_inputs_wait_for_are_kept(tmp_path: Path) -> None:
    """However long ago they were decoded: a batch that was killed continues with what it asked for."""
    with Manifest(str(tmp_path / "manifest.sqlite")) as manifest:
        request = DecodeRequest("key", (("/bin/x", ""),), [("spill", 0, 3)])
        for _ in range(2):
            manifest.mark_decoded("key", 3, 1, 0.1, "")
            manifest.record([], [request])
        forget_unseen(manifest, 1.0, time.time() + 2 * DAY)
        assert [manifest.decode_request(key) for key, _ in manifest.pending_decodes()] == [request]
        manifest.mark_decoded("key", 3, 1, 0.1, "")
        forget_unseen(manifest, 1.0, time.time() + 2 * DAY)
        assert manifest.binaries() == []


def test_outputs_of_forgotten_inputs_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their names stay taken, those of the profiles of a trace too; an input that comes back has its name again, and a
    trace too unless there are other outputs in its folder by now."""
    out, now = tmp_path / "out", 1e9
    monkeypatch.setattr(job.time, "time", lambda: now)
    for day, source in (("d1", LEDGER), ("d2", SPECTRA), ("d3", SPECTRA)):
        copies(source, tmp_path / day, ["cpu.pb.gz"])
    (tmp_path / "d1" / "two.pftrace").write_bytes(trace(7, 8))
    run_plan(plan(tmp_path / "d1", out, BINS))
    first = outputs(out)
    assert len(first) == 3
    for name in [name for name in first if "/" in name]:
        copies(SPECTRA, tmp_path / "d2" / "two", [name.rpartition("/")[2]])
    others = plan(tmp_path / "d3", tmp_path / "out", BINS, keep_days=10.0)
    for _ in range(2):
        run_plan(others)
        now += 11 * DAY
    assert recorded(out) == ["cpu.pb.gz"]
    run_plan(plan(tmp_path / "d2", out, BINS))
    made = outputs(out)
    assert {name: made[name] for name in first} == first
    assert len(made) == len(first) + len(list((tmp_path / "d2").rglob("*.pb.gz"))) + 1
    run_plan(plan(tmp_path / "d1", out, BINS))
    assert {name: outputs(out)[name] for name in made} == made
    assert {name.partition("/")[0] for name in outputs(out).keys() - made.keys()} == {"two.pftrace"}

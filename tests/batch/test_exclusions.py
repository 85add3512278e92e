"""R401: inputs that are left out, and unreadable ones that are ignored."""

import os
from pathlib import Path

import pytest

from symbolize.batch.job import Exclusions
from symbolize.batch.manifest import State
from symbolize.batch.tasks import UNREADABLE
from symbolize.cli.batch import kinds_of, with_all_kinds
from symbolize.core.errors import UsageError
from tests.support.batch_engines import plan, run_plan
from tests.support.batch_runs import LEDGER, copies, outputs


@pytest.mark.parametrize(
    ("pattern", "uri", "is_left_out"),
    [
        ("*.core", "/data/in/h1/x.core", True),
        ("*.core", "/data/in/h1/x.cores", False),
        ("h1", "/data/in/h1/x.prof", True),
        ("h1/", "/data/in/h1/x.prof", True),
        ("**/h1/*.prof", "/data/in/h1/x.prof", True),
        ("**/h1/*.prof", "/data/in/h1/deep/x.prof", False),
        ("in/h1", "/data/in/h1/x.prof", True),
        ("in/h1", "/data/other/in/h1/x.prof", False),
        ("./in/*/x.prof", "/data/in/h1/x.prof", True),
        ("/data/in/**/x.prof", "/data/in/a/b/x.prof", True),
        ("/data/in/x[0-9].prof", "/data/in/x7.prof", True),
        ("*", "/data/in/.hidden", False),
        ("in", "/data/in/h1/x.prof", False),
        ("data", "/data/in/h1/x.prof", False),
        ("*.core", "s3://bucket/in/h1/x.core", True),
        ("s3://bucket/in/h*", "s3://bucket/in/h1/x.prof", True),
        ("S3://bucket/in/h*", "s3://bucket/in/h1/x.prof", True),
        ("s3://bucket/in/h*", "s3://other/in/h1/x.prof", False),
        ("/data/in/%41", "file:///data/in/%2541", True),
    ],
)
def test_patterns(pattern: str, uri: str, is_left_out: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name matches anywhere, a path where it is; folders match with all that is in them."""
    monkeypatch.setattr(os, "getcwd", lambda: "/data")
    assert Exclusions([pattern]).leave_out(uri, uri.partition("/in/")[2].count("/") + 1) == is_left_out
    assert Exclusions(["nothing", pattern]).leave_out(uri, uri.partition("/in/")[2].count("/") + 1) == is_left_out


def test_excluded_inputs(tmp_path: Path) -> None:
    """They are not read and not reported; what an earlier run made of them stays."""
    copies(LEDGER, tmp_path / "in", ["a.prof", "b.prof"])
    copies(LEDGER, tmp_path / "in" / "old", ["c.prof"])
    (tmp_path / "in" / "old" / "bad").write_bytes(b"?")
    out = tmp_path / "out"
    counts, seen = run_plan(plan(tmp_path / "in", out, [], exclude=["old", "b*"]))
    assert (counts[State.DONE], counts[State.QUARANTINED], seen.problems) == (1, 0, [])
    run_plan(plan(tmp_path / "in", out, []))
    assert len(outputs(out)) == 3
    counts, _ = run_plan(plan(tmp_path / "in", out, [], exclude=["old"], prune_outputs=True))
    assert counts[State.DONE] == 2
    assert len(outputs(out)) == 3


def test_unreadable_inputs_by_kind(tmp_path: Path) -> None:
    """Those of the named kinds are in quarantine as ignored, and as unreadable again when nothing is to be ignored."""
    folder = tmp_path / "in"
    copies(LEDGER, folder, ["good.prof"])
    (folder / "empty.prof").touch()
    (folder / "text.prof").write_text("no profile")
    (folder / "damaged.pb.gz").write_bytes(b"\x1f\x8b\x08" + bytes(20))
    out = tmp_path / "out"

    def reasons(*kinds: str) -> dict[str, str]:
        given = plan(folder, out, [], ignored=kinds, retry_quarantined=bool(kinds))
        return run_plan(given)[1].reasons

    bad = {"empty.prof", "text.prof", "damaged.pb.gz"}
    assert reasons() == dict.fromkeys(bad, "unreadable")
    assert reasons("empty", "no-profile") == {
        "empty.prof": "ignored",
        "text.prof": "ignored",
        "damaged.pb.gz": "unreadable",
    }
    assert reasons() == {"empty.prof": "unreadable", "text.prof": "unreadable"}
    assert reasons(*UNREADABLE) == dict.fromkeys(bad, "ignored")


def test_kinds_on_the_command_line() -> None:
    """All without a value, which is no input that follows; unknown ones are refused."""
    assert with_all_kinds(["--ignore-unreadable", "in", "--out", "o"]) == [
        "--ignore-unreadable=all",
        "in",
        "--out",
        "o",
    ]
    assert kinds_of("all") == UNREADABLE
    assert kinds_of("empty,gone") == ("empty", "gone")
    assert kinds_of("") == ()
    with pytest.raises(UsageError, match=r"emty: is not one of empty, .*did you mean empty"):
        kinds_of("emty")

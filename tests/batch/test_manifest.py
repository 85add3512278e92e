"""The manifest of a batch: which inputs are to be done, and what is recorded of them."""

from pathlib import Path
from typing import Any

import pytest

from symbolize.batch.manifest import IGNORED, INCOMPLETE, UNREACHABLE, InputResult, Manifest, ProfileRow, Renewed, State
from symbolize.storage.inputs import Input


def test_settling(tmp_path: Path) -> None:
    """An input is taken while watching when it is as it was at the look before, or as it is on record."""
    one, other = Input("/in/a", "a", 1, "1-1"), Input("/in/a", "a", 2, "2-2")
    with Manifest(str(tmp_path / "manifest.sqlite")) as manifest:
        assert [manifest.is_settled(each, look) for look, each in enumerate((one, other, one))] == [False] * 3
        assert manifest.is_settled(one, 3)
        manifest.end_scan(4)
        assert not manifest.is_settled(one, 5)
        manifest.add([one], "", retry=False, again=False)
        assert manifest.is_settled(one, 9)
        assert not manifest.is_settled(other, 9)


def test_many_inputs_are_read_by_and_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, and those of other turns never."""
    monkeypatch.setattr("symbolize.batch.manifest.ROWS_AT_ONCE", 2)
    names = [f"/in/{number}" for number in range(7)]
    with Manifest(str(tmp_path / "manifest.sqlite")) as manifest:
        for turn in (1, 2):
            inputs = [Input(f"{name}.{turn}", f"{name}.{turn}", 1, "1") for name in names]
            manifest.generation = turn
            manifest.add(inputs, "", retry=False, again=False)
        for turn in (1, 2):
            manifest.generation = turn
            expected = [f"{name}.{turn}" for name in names]
            assert [row.uri for row in manifest.rows()] == expected
            assert [item.uri for item in manifest.items(State.NEW)] == expected
        # What changes its state meanwhile is not met twice.
        met = []
        for item in manifest.items(State.NEW):
            met.append(item.uri)
            manifest.record([InputResult(item.number, State.SCANNED)])
        assert met == expected
        assert [*manifest.items(State.NEW)] == []


ROWS_BEFORE = ProfileRow("a.pb.gz", 7, {"percent": 1}), ProfileRow("b.pb.gz", 8, {"percent": 2})


DONE_BEFORE = InputResult(1, State.DONE, ROWS_BEFORE, "", "", 2.0, 3)


QUARANTINED_BEFORE = InputResult(1, State.QUARANTINED, (), "crash", "it died", 2.0, 3)


@pytest.mark.parametrize(
    ("before", "given", "why", "is_replaced"),
    [
        (DONE_BEFORE, {}, None, False),
        (DONE_BEFORE, {"retry": True}, None, False),
        (DONE_BEFORE, {"version": "2"}, Renewed.CHANGED, True),
        (DONE_BEFORE, {"options": "1 other"}, Renewed.OPTIONS, False),
        (DONE_BEFORE, {"options": "2 options"}, Renewed.RESULTS, False),
        (DONE_BEFORE, {"again": True}, Renewed.ASKED, True),
        (DONE_BEFORE, {"is_there": lambda output, size: (output, size) != ("a.pb.gz", 7)}, Renewed.OUTPUT, True),
        *((DONE_BEFORE._replace(reason=reason), {}, Renewed.FAILED, False) for reason in INCOMPLETE),
        (DONE_BEFORE, {"generation": 0, "again": True, "retry": True}, None, False),
        (DONE_BEFORE, {"generation": 0, "version": "2"}, Renewed.CHANGED, True),
        (QUARANTINED_BEFORE, {}, None, False),
        (QUARANTINED_BEFORE, {"retry": True}, Renewed.RETRIED, False),
        (QUARANTINED_BEFORE, {"again": True}, Renewed.ASKED, False),
        (QUARANTINED_BEFORE, {"version": "2"}, Renewed.CHANGED, False),
        (QUARANTINED_BEFORE, {"options": "1 other"}, Renewed.OPTIONS, False),
        (QUARANTINED_BEFORE, {"is_there": lambda output, size: False}, None, False),
        (QUARANTINED_BEFORE._replace(reason=UNREACHABLE), {}, Renewed.FAILED, False),
        (QUARANTINED_BEFORE._replace(reason=IGNORED), {"ignores": True}, None, False),
        (QUARANTINED_BEFORE._replace(reason=IGNORED), {}, Renewed.OPTIONS, False),
    ],
)
def test_which_inputs_are_done_again(
    before: InputResult, given: dict[str, Any], why: Renewed | None, is_replaced: bool, tmp_path: Path
) -> None:
    """What is new begins anew, with the reason, and says whether outputs of an earlier run of the same bytes may
    stay."""
    is_new = why is not None
    found = Input("/in/a", "a", 5, "1")
    with Manifest(str(tmp_path / "manifest.sqlite")) as manifest:
        assert manifest.add([found], "1 options", retry=False, again=False) == {}
        manifest.record([before])
        manifest.generation = given.pop("generation", 1)
        version, options = given.pop("version", "1"), given.pop("options", "1 options")
        given = {"retry": False, "again": False} | given
        renewed = manifest.add([found._replace(size=6, version=version)], options, **given)
        assert renewed == ({why: 1} if is_new else {})
        (row,) = manifest.rows()
        assert row.state == (State.NEW if is_new else before.state)
        result = ("", "", 0, 0.0) if is_new else (before.reason, before.detail, 3, 2.0)
        assert (row.reason, row.detail, row.attempts, row.seconds) == result
        items = [*manifest.items(State.NEW)]
        assert len(items) == is_new
        for item in items:
            assert (item.size, item.before) == (6, () if is_replaced else before.profiles)
        # The next look finds it as it is.
        manifest.record([before])
        manifest.generation += 1
        manifest.add([found._replace(version=version)], options, retry=False, again=False)
        assert manifest.count()[State.NEW] == (before.reason in (*INCOMPLETE, UNREACHABLE, IGNORED))


def test_numbers_of_wanted_binaries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stay the same however many there are, of which some are remembered; what nobody misses gets a new one."""
    monkeypatch.setattr("symbolize.batch.manifest.MAX_WANTED", 3)
    wanted = [(f"binary {number}", "") for number in range(5)]
    with Manifest(str(tmp_path / "manifest.sqlite")) as manifest:
        with manifest.writing() as base:
            numbers = [manifest._number(base, each) for each in wanted]
            assert [manifest._number(base, each) for each in wanted] == numbers
        assert len(set(numbers)) == 5
        assert len(manifest._wanted) <= 3
        manifest.forget_unwanted()
        with manifest.writing() as base:
            assert manifest._number(base, wanted[-1]) > 0
        assert manifest.read("SELECT key FROM wanted") == [wanted[-1][:1]]

"""What a batch achieved, as text and JSON."""

import json
import sqlite3
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from symbolize.batch.manifest import DecodeRequest, InputResult, Manifest, State
from symbolize.batch.monitoring import aggregates as totals
from symbolize.batch.monitoring.aggregates import BinaryAggregates, Percents, base_name
from symbolize.batch.monitoring.observers import Tally
from symbolize.batch.monitoring.summary import Summary, write_quarantine
from symbolize.core.errors import OutputError
from symbolize.storage.inputs import Input
from tests.support import batch_events as events


@pytest.fixture
def manifest(tmp_path: Path) -> Iterator[Manifest]:
    """An empty manifest."""
    with Manifest(str(tmp_path / "state" / "manifest.sqlite")) as manifest:
        yield manifest


def fill(manifest: Manifest, *results: InputResult, generation: int = 0) -> None:
    """Take in an input for each result, and record it."""
    inputs = [Input(f"/in/{each.number}.prof", str(each.number), 1000, "v") for each in results]
    manifest.generation = generation
    manifest.add(inputs, "options", retry=False, again=False)
    manifest.record([each for each in results if each.state != State.NEW])


def report(manifest: Manifest, tally: Tally | None = None) -> Any:
    """The report as JSON."""
    with Summary(manifest, tally or Tally()) as summary:
        return json.loads("".join(summary.json_pieces()))


def text(manifest: Manifest, tally: Tally | None = None, quarantine: str = "") -> list[str]:
    """The summary as lines."""
    with Summary(manifest, tally or Tally()) as summary:
        summary.read()
        return summary.text(quarantine).splitlines()


def test_misses_without_value(manifest: Manifest) -> None:
    """They are told though they weigh nothing."""
    light = events.mapping("/lib/light.so", misses=[("not-found", 3, 0)])
    fill(manifest, events.done(1, events.coverage(events.mapping(), light)))
    lines = text(manifest)
    assert lines[1].split() == ["light.so", "ab12", "1", "0.0", "%"]
    assert lines[2].startswith("    3 locations, 0.0 %: binary not found")


def test_report_has_every_input(manifest: Manifest) -> None:
    """Each with its state, and each output with its bytes and coverage."""
    fill(
        manifest,
        events.done(1, events.coverage(events.mapping()), events.coverage(sample_type="heap", unit="bytes")),
        events.quarantined(2, "time", "took 61 s"),
        events.put_off(3),
        InputResult(4, State.NEW),
    )
    found = report(manifest)
    assert found["schema_version"] == 1
    assert [(each["input"], each["state"]) for each in found["profiles"]] == [
        ("/in/1.prof", "done"),
        ("/in/2.prof", "quarantined"),
        ("/in/3.prof", "put-off"),
        ("/in/4.prof", "new"),
    ]
    assert found["profiles"][1] == {
        "input": "/in/2.prof",
        "bytes": 1000,
        "state": "quarantined",
        "reason": "time",
        "detail": "took 61 s",
        "attempts": 1,
        "seconds": 0.2,
        "outputs": [],
    }
    outputs = found["profiles"][0]["outputs"]
    assert [(each["path"], each["bytes"], each["sample_type"]) for each in outputs] == [
        ("1-0.pb.gz", 700, "cpu"),
        ("1-1.pb.gz", 700, "heap"),
    ]
    assert outputs[0]["mappings"][0]["symbolized_locations"] == 10
    assert found["inputs"]["done"] == 1
    assert found["inputs"]["unfinished"] == 2
    assert found["inputs"]["quarantined_by_reason"] == {"time": 1}
    assert found["outputs"] == {
        "profiles": 2,
        "bytes": 1400,
        "without_names": 0,
        "empty": 1,
        "kept": 0,
        "with_warnings": 0,
    }


def test_warnings_on_inputs(manifest: Manifest) -> None:
    """Profiles with warnings are counted in report and text, which has the first warning."""
    cut = events.coverage(events.mapping()) | {"warnings": ["The profile is cut off\nat offset 0x7548.", "more"]}
    fill(manifest, events.done(1, events.coverage(events.mapping())), events.done(2, cut), events.done(3, cut))
    assert report(manifest)["outputs"]["with_warnings"] == 2
    line = "warnings on 2 of 3 profiles, such as 2-0.pb.gz: The profile is cut off at offset 0x7548."
    assert " ".join(" ".join(text(manifest)).split()).count(line) == 1


def test_report_on_nothing(manifest: Manifest) -> None:
    """No inputs make a report all the same."""
    found = report(manifest)
    assert (found["profiles"], found["binaries"]) == ([], [])
    assert set(found["coverage"].values()) == {0}
    assert text(manifest)[0] == "inputs: 0 done"


def test_profiles_without_samples_have_no_coverage(manifest: Manifest) -> None:
    """They are counted apart, in the report, its text, and what metrics begin with."""
    half = events.coverage(events.mapping(misses=[("not-found", 5, 50.0)]))
    fill(manifest, events.done(1, half, events.coverage() | {"sample_value": 0}), events.done(2, events.coverage()))
    found = report(manifest)
    assert set(found["coverage"].values()) == {50}
    assert (found["outputs"]["profiles"], found["outputs"]["empty"], found["outputs"]["without_names"]) == (3, 2, 0)
    assert any("2 of 3 profiles" in line for line in text(manifest))
    assert manifest.sum_percents() == (50, 1)
    fill(manifest, events.done(3, events.coverage() | {"sample_value": 7}))  # samples without stacks have no names
    assert (report(manifest)["coverage"]["mean_percent"], manifest.sum_percents()) == (25, (50, 2))


def test_report_is_of_one_generation(manifest: Manifest) -> None:
    """Inputs that an earlier run had, and this one was not asked for, are not in it."""
    fill(manifest, events.done(1), generation=1)
    fill(manifest, events.done(2), generation=2)
    assert [each["input"] for each in report(manifest)["profiles"]] == ["/in/2.prof"]


def test_binaries_add_up_over_profiles(manifest: Manifest) -> None:
    """A binary is a build id and a base name, however it was mapped; values of different types stay apart."""
    missed = [("no-symbols", 4, 40.0), ("outside-symbols", 1, 10.0)]
    fill(
        manifest,
        events.done(
            1,
            events.coverage(
                events.mapping("/usr/bin/app", "aa", 10, 100.0, missed),
                events.mapping("/usr/bin/app (deleted)", "aa", 2, 50.0),
                events.mapping("/lib/libc.so", "cc", 5, 50.0),
            ),
        ),
        events.done(
            2,
            events.coverage(
                events.mapping("/opt/app", "aa", 10, 60.0, [("no-symbols", 10, 60.0)]),
                sample_type="space",
                unit="bytes",
            ),
        ),
        events.done(3, events.coverage(events.mapping("/usr/bin/app", "bb", 1, 1.0))),
    )
    manifest.record([], [DecodeRequest("app-key", (("/usr/bin/app", "aa"),), [("spill", 0, 3)])])
    manifest.mark_decoded("app-key", 3, 5000, 2.5, "")
    app, bb, libc = report(manifest)["binaries"]
    assert app == {
        "name": "app",
        "build_id": "aa",
        "files": ["/opt/app", "/usr/bin/app", "/usr/bin/app (deleted)"],
        "profiles": 2,
        "locations": 22,
        "symbolized_locations": 7,
        "share_percent": pytest.approx(100 * (150 / 200 + 1) / 3, abs=1e-4),
        "missing_percent": pytest.approx(100 * (50 / 200 + 1) / 3, abs=1e-4),
        "values": [
            {"sample_type": "cpu", "unit": "nanoseconds", "value": 150, "symbolized_value": 100},
            {"sample_type": "space", "unit": "bytes", "value": 60, "symbolized_value": 0},
        ],
        "misses": [
            {
                "reason": "no-symbols",
                "text": "binary is stripped",
                "locations": 14,
                "percent": pytest.approx(100 * (40 / 200 + 1) / 3, abs=1e-4),
            },
            {
                "reason": "outside-symbols",
                "text": "address outside every symbol",
                "locations": 1,
                "percent": pytest.approx(100 * (10 / 200) / 3, abs=1e-4),
            },
        ],
        "detail": "",
        "table": {"addresses": 3, "bytes": 5000, "seconds": 2.5, "failure": ""},
    }
    assert (bb["name"], bb["build_id"], bb["profiles"]) == ("app", "bb", 1)
    assert (libc["name"], libc["table"], libc["misses"]) == ("libc.so", None, [])


def test_locations_count_where_values_are_zero(manifest: Manifest) -> None:
    """A profile without values still says which binary is missing."""
    zero = events.coverage(
        events.mapping("a", "aa", 3, 0.0, [("not-found", 3, 0.0)]), events.mapping("b", "bb", 1, 0.0)
    )
    fill(manifest, events.done(1, zero))
    a, b = report(manifest)["binaries"]
    assert (a["share_percent"], a["missing_percent"], b["share_percent"]) == (75, 75, 25)


def test_sums_of_many_binaries_are_not_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is added up on disk, to the same sums."""
    coverages = [
        events.coverage(
            *(events.mapping(f"/lib/{(i * 7 + j) % 50}.so", "", 2, 3.0, [("not-found", 1, 1.0)]) for j in range(9))
        )
        for i in range(40)
    ]

    def sums(pending: int) -> list[totals.BinarySums]:
        monkeypatch.setattr(totals, "MAX_PENDING", pending)
        with BinaryAggregates() as binaries:
            for each in coverages:
                binaries.add(each)
                assert len(binaries._pending) < pending
            return sorted(binaries.rows(), key=lambda row: row.name)

    few, all_ = sums(10), sums(1000)
    assert len(few) == 50
    for a, b in zip(few, all_, strict=True):
        assert (a.name, a.profiles, a.locations, a.symbolized, a.files) == (
            b.name,
            b.profiles,
            b.locations,
            b.symbolized,
            b.files,
        )
        assert a.share == pytest.approx(b.share)
        assert a.misses["not-found"] == (b.misses["not-found"][0], pytest.approx(b.misses["not-found"][1]))
        assert a.amounts == b.amounts


@pytest.mark.full
def test_memory_does_not_grow_with_profiles(manifest: Manifest) -> None:
    """The report is read and written bit by bit."""

    def results() -> list[InputResult]:
        each = events.coverage(*(events.mapping(f"/lib/{j}.so" + "x" * 100, f"{j:040x}") for j in range(40)))
        return [events.done(i, each) for i in range(120)]

    fill(manifest, *results())
    size = 0
    with Summary(manifest, Tally()) as summary:
        tracemalloc.start()
        for piece in summary.json_pieces():
            size += len(piece)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert size > 1_600_000
    assert peak < 600_000


def test_hostile_names(manifest: Manifest) -> None:
    """Names from profiles may hold anything; the text steers no terminal, the JSON is ASCII, and nothing is endless."""
    name = "/x/\x1b[2J\udcff\0" + "y" * 10_000
    mapping = events.mapping(name, "\udc80" * 1000, misses=[("not-found", 10, 100.0)])
    mapping["detail"] = "\x1b]0;\n" + "z" * 10_000
    strange = events.mapping("b", "bb", misses=[("of-another-version", 1, 1.0)])
    fill(manifest, events.done(1, events.coverage(mapping, strange, sample_type="\udcff", unit="\0")))
    found = report(manifest)
    assert found["binaries"][0]["name"].startswith("\x1b[2J\udcff\0y")
    assert len(found["binaries"][0]["name"]) == totals.MAX_NAME
    assert found["binaries"][1]["misses"][0]["text"] == "of-another-version"
    lines = text(manifest)
    assert all(line.isprintable() and len(line) < 300 for line in lines)


def test_text_of_a_batch(manifest: Manifest) -> None:
    """What is missing with reasons and hints, coverage, counts, where the quarantine is, and the time."""
    clock = iter([0.0, 90.0, 90.0, 90.0, 90.0])
    tally = Tally(lambda: next(clock))
    tally.began(4, 2, 1, {})
    results = [
        events.done(1, events.coverage(events.mapping("/usr/bin/app", "ab" * 20, misses=[("not-found", 4, 30.0)]))),
        events.done(2, events.coverage(events.mapping("", "", misses=[("no-mapping", 10, 100.0)]))),
        events.quarantined(3, "time"),
        events.quarantined(4, "unreadable"),
    ]
    for each in results:
        tally.handled(events.item(each.number), each)
    tally.handled(events.item(9), events.put_off(9))
    tally.problem("/no", "is missing")
    tally.decoded(events.decoded())
    tally.began(0, 4, 3, {})
    fill(
        manifest,
        *results,
        events.done(5, events.coverage(events.mapping())),
        events.done(6, events.coverage(events.mapping())),
        events.quarantined(7, "time"),
        events.put_off(8),
    )
    assert text(manifest, tally, "/out/.symbolize/quarantine.jsonl") == [
        "heaviest binaries without names              build id     profiles  missing",
        "(no mapping)                                 -                   1   25.0 %",
        "    10 locations, 25.0 %: address in no mapping",
        "app                                          abababababab        1    7.5 %",
        "    4 locations, 7.5 %: binary not found",
        "2 inputs were done by earlier runs: if binaries were added since,",
        "    retry_missing=True does those again that these can name",
        "",
        "what to do",
        "    address in no mapping (25.0 %, 1 binary): JIT code needs its perf-PID.map or",
        "        jitdump among the binaries; stack noise has no names",
        "    binary not found (7.5 %, 1 binary): add it, or its debug file, to the",
        "        folders with binaries",
        "",
        "coverage: on average 67.5 % of the sample value of a profile has names (median",
        "    100.0 %; 90 % of the profiles have at least 0.0 %)",
        "warning: NOTHING WAS SYMBOLIZED in 1 of 4 profiles",
        "inputs: 4 done (2 of them before), 3 quarantined, 1 unfinished: run the same",
        "    command again",
        "quarantined: time 2, unreadable 1; listed in /out/.symbolize/quarantine.jsonl",
        "problems: 1, reported above",
        "time: 1:30, 4 inputs, 2.7/min, read 3.91kB, wrote 1.37kB; 1 symbol tables took",
        "    workers 1.5s",
    ]


def test_hints_once(manifest: Manifest) -> None:
    """Each hint is there once for all binaries, those that are not in the table too. Where no binary was searched, or
    all inputs were done by this run, nothing is said of searching again."""
    missing = [events.mapping(f"/lib/{i}.so", f"{i:040x}", misses=[("not-found", 1, 5.0)]) for i in range(20)]
    fill(manifest, events.done(1, events.coverage(*missing)))
    lines = text(manifest)
    whole = " ".join(map(str.strip, lines))
    assert "binary not found (5.0 %, 20 binaries): add it" in whole
    assert whole.count("add it") == 1
    assert max(map(len, lines)) <= 80
    assert not any("retry_missing=True" in line for line in lines)
    tally = Tally()
    tally.began(0, 1, 0, {})
    assert any("retry_missing=True" in line for line in text(manifest, tally))
    fill(manifest, events.done(1, events.coverage(events.mapping(misses=[("outside-symbols", 1, 5.0)]))))
    assert not any("again=True" in line or "what to do" in line for line in text(manifest, tally))


def test_hints_for_lists_of_symbols(manifest: Manifest) -> None:
    """What helps against missing names of the kernel is its list, as in the report on one profile."""
    for number, reason in enumerate(("not-found", "not-a-file"), 1):
        kernel = events.mapping("[kernel.kallsyms]_text", "", misses=[(reason, 1, 5.0)])
        fill(manifest, events.done(number, events.coverage(kernel)))
        whole = " ".join(map(str.strip, text(manifest)))
        assert whole.count("): add /proc/kallsyms of the recording machine") == 1
        assert "vdso" not in whole


def test_no_binaries_given(manifest: Manifest) -> None:
    """It is said once, and nothing else helps; other options are another batch."""
    fill(manifest, *(events.done(i, events.coverage(events.mapping(misses=[("not-asked", 1, 5.0)]))) for i in (1, 2)))
    tally = Tally()
    tally.began(0, 1, 0, {})
    lines = text(manifest, tally)
    assert sum("warning: no binaries were given: give folders with binaries" in line for line in lines) == 1
    assert not any("again=True" in line for line in lines)


def test_heaviest_are_few(manifest: Manifest) -> None:
    """The text names the ten that miss the most."""
    fill(
        manifest,
        events.done(
            1,
            events.coverage(
                *(events.mapping(f"{i:02}.so", "", 1, float(i), [("not-found", 1, float(i))]) for i in range(1, 31))
            ),
        ),
    )
    named = [line.split()[0] for line in text(manifest) if ".so" in line]
    assert named == [f"{i:02}.so" for i in range(30, 20, -1)]


def test_quarantine_is_listed(manifest: Manifest, tmp_path: Path) -> None:
    """A line an input, written anew each time, empty if there is none; no line has the rest of an older list."""
    path = tmp_path / "quarantine.jsonl"
    assert write_quarantine(manifest, str(path)) == 0
    assert path.read_bytes() == b""
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    fill(manifest, events.done(1), events.quarantined(2, "error", "Traceback\nValueError: x"), events.quarantined(3))
    assert write_quarantine(manifest, str(path)) == 2
    entries = [json.loads(line) for line in path.read_text("ascii").splitlines()]
    assert all(before <= datetime.fromisoformat(entry.pop("time")) <= datetime.now(UTC) for entry in entries)
    assert entries == [
        {
            "input": "/in/2.prof",
            "bytes": 1000,
            "reason": "error",
            "detail": "Traceback\nValueError: x",
            "attempts": 1,
            "seconds": 0.2,
        },
        {
            "input": "/in/3.prof",
            "bytes": 1000,
            "reason": "unreadable",
            "detail": "/in/3.prof: is empty",
            "attempts": 1,
            "seconds": 0.2,
        },
    ]
    with pytest.raises(OutputError):
        write_quarantine(manifest, str(tmp_path / "no" / "list"))


def test_full_temporary_disk_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums that cannot be kept are said in a line, not with a traceback."""

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with BinaryAggregates() as binaries:
        binaries.add(events.coverage(events.mapping()))
        monkeypatch.setattr(binaries, "_base", SimpleNamespace(execute=fail, close=binaries._base.close))
        with pytest.raises(OutputError, match="temporary database for sums over binaries: database or disk is full"):
            next(binaries.rows())


def test_percents() -> None:
    """Medians to a hundredth, without keeping what was added."""
    percents = Percents()
    assert (percents.mean, percents.reached_by(0.5)) == (0, 0)
    for value in (0.0, 50.0, 99.99, 99.991, 100.0):
        percents.add(value)
    assert percents.reached_by(0.5) == 99.99
    assert percents.reached_by(0.9) == 0.0
    assert percents.reached_by(0.8) == 50.0
    assert percents.mean == pytest.approx(69.9962)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/usr/bin/app", "app"),
        ("/usr/bin/app (deleted)", "app"),
        ("[vdso]", "[vdso]"),
        ("", ""),
        ("/x/" + "y" * 999, "y" * 255),
    ],
)
def test_base_name(path: str, name: str) -> None:
    """The same file has the same name wherever it lies."""
    assert base_name(path) == name

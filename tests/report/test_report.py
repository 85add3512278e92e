"""The report: data, text and JSON."""

import json
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from symbolize.core.reasons import Reason
from symbolize.load import pprof as loader
from symbolize.report import HINTS, TEXTS, Report, SharedCode, build_report
from symbolize.report.json import render as render_json
from symbolize.report.missing import Missing
from symbolize.report.text import quantity, render
from symbolize.resolve import Resolution
from tests.support.pprof_writer import Line, Mapping, Place, profile

MAPPINGS = [Mapping(0x1000, 0x9000, 0, "/bin/app", "ab" * 20), Mapping(0x10000, 0x20000, 0, "/lib/libc.so")]
LEAF = Place(0x1000, 1, (Line("inner", "a.c", 1), Line("outer", "a.c", 2)))
ROOT = Place(0x2000, 1, (Line("main", "a.c", 3),))
RAW = Place(0x10010, 2)
LOST = Place(0x999999)
UNUSED = Place(0x3000, 1)


def report(
    stacks: Sequence[tuple[Sequence[Place], Sequence[int]]],
    reasons: dict[Place, Reason],
    outcomes: Sequence[Resolution] = (),
    warnings: Sequence[str] = (),
    **options: Any,
) -> Report:
    """The report on a profile of these stacks in which the locations fared as `reasons` says."""
    made = loader.load(memoryview(profile(MAPPINGS, stacks, **options)), "test")
    addresses = made.locations.address.tolist()
    codes = {place.address: reason for place, reason in reasons.items()}
    column = np.array([codes.get(address, Reason.SYMBOLIZED) for address in addresses], np.uint8)
    outcomes = outcomes or [Resolution(mapping=0), Resolution(mapping=1)]
    return build_report(made, column, [*outcomes, Resolution()], list(warnings))


STACKS = [([LEAF, ROOT], [10]), ([RAW, LEAF, ROOT], [5]), ([LOST, ROOT], [1])]
REASONS = {RAW: Reason.NOT_FOUND, LOST: Reason.NO_MAPPING}


def test_weights() -> None:
    """A sample weighs every frame of its stack; the percentage is that of the frames with a name."""
    made = report(STACKS, REASONS)
    assert (made.samples, made.sample_value) == (3, 16)
    assert (made.locations, made.symbolized_locations) == (4, 2)
    assert (made.value, made.symbolized_value) == (37, 31)
    assert made.percent == pytest.approx(100 * 31 / 37)


def test_rows() -> None:
    """A row a mapping and one for addresses in none, with the locations that samples use and why they were missed."""
    rows = report(STACKS, REASONS).mappings
    assert [(row.name, row.build_id) for row in rows] == [("/bin/app", "ab" * 20), ("/lib/libc.so", ""), ("", "")]
    assert [(row.locations, row.symbolized_locations) for row in rows] == [(2, 2), (1, 0), (1, 0)]
    assert [(row.value, row.symbolized_value) for row in rows] == [(31, 31), (5, 0), (1, 0)]
    assert [row.misses for row in rows] == [[], [(Reason.NOT_FOUND, 1, 5.0)], [(Reason.NO_MAPPING, 1, 1.0)]]


def test_misses_by_weight() -> None:
    """The reasons of a mapping come heaviest first; names that came along are no miss."""
    light, heavy, kept = Place(0x11000, 2), Place(0x12000, 2), Place(0x13000, 2, (Line("kept"),))
    made = report(
        [([light], [1]), ([heavy], [7]), ([kept], [100])],
        {light: Reason.OUTSIDE_SEGMENTS, heavy: Reason.OUTSIDE_SYMBOLS, kept: Reason.HAD_NAMES},
    )
    assert [(reason, value) for reason, _, value in made.mappings[1].misses] == [
        (Reason.OUTSIDE_SYMBOLS, 7.0),
        (Reason.OUTSIDE_SEGMENTS, 1.0),
    ]
    assert made.mappings[1].symbolized_value == 100


def test_heaviest_functions() -> None:
    """Flat is the value of the leaf alone, cumulative counts a stack once, however often a function recurs in it."""
    made = report([([LEAF, ROOT, ROOT], [10]), ([ROOT], [3])], {})
    assert [(f.name, f.flat, f.cumulative) for f in made.top] == [("inner", 10, 10), ("main", 3, 13), ("outer", 0, 10)]


def test_ten_functions() -> None:
    """The ten heaviest functions are listed, not more."""
    stacks = [([Place(0x1000 + i, 1, (Line(f"f{i}"),))], [100 - i]) for i in range(15)]
    assert [function.name for function in report(stacks, {}).top] == [f"f{i}" for i in range(10)]


@pytest.mark.parametrize(("default_type", "value"), [("", 100), ("samples", 1), ("missing", 100)])
def test_which_values_weigh(default_type: str, value: int) -> None:
    """The default sample type weighs, else the last one, as in pprof."""
    made = report(
        [([ROOT], [1, 100])], {}, types=(("samples", "count"), ("cpu", "nanoseconds")), default_type=default_type
    )
    assert made.sample_value == value


def test_negative_values() -> None:
    """In a profile of differences what went down weighs as much as what went up."""
    made = report([([LEAF], [-10]), ([RAW], [10])], REASONS)
    assert made.percent == 50


@pytest.mark.parametrize("stacks", [[], [([], [5])], [([ROOT], [0])]], ids=["no samples", "no frames", "no value"])
def test_nothing_to_weigh(stacks: list[Any]) -> None:
    """A profile without frames or value lacks nothing, and renders."""
    made = report(stacks, {})
    assert made.percent == 100
    assert "100.0 %" in render(made)
    assert json.loads(render_json(made, "in", "out"))["symbolized_percent"] == 100


def full() -> Report:
    """A report that has something of everything."""
    outcomes = [
        Resolution(
            mapping=0,
            files=["bin/app", "debug/app.debug"],
            verified=True,
            problems=["debug/app.debug: unit 3 is cut off"],
            tried=[("build id abab", "found bin/app")],
        ),
        Resolution(mapping=1, reason=Reason.NOT_FOUND, detail="looked well", tried=[("name libc.so", "nothing there")]),
    ]
    return report(STACKS, REASONS, outcomes, ["the memory map has a line that is none"])


def test_text() -> None:
    """The table says for each mapping the file used, how much has names, and for the rest why and what to do."""
    text = render(full())
    app, files, problem, libc, miss, lost, why, *rest = text.splitlines()[1:]
    assert app.split() == ["/bin/app", "abababababab", "2/2", "100.0", "%", "83.8", "%"]
    assert files == "    from bin/app, debug/app.debug"
    assert problem == "    problem: debug/app.debug: unit 3 is cut off"
    assert libc.split() == ["/lib/libc.so", "-", "0/1", "0.0", "%", "13.5", "%"]
    assert miss.strip() == (
        "1 not, 100.0 %: binary not found (looked well): add it, or its debug file, to the folders with binaries"
    )
    assert lost.startswith("(no mapping)")
    assert "address in no mapping" in why
    assert "83.8 % of samples value symbolized: 2 of 4 locations, 3 samples, 16" in rest
    assert rest[-1] == "warning: the memory map has a line that is none"
    assert "tried" not in text


def test_misses_that_nothing_helps_against() -> None:
    """They are told without a hint."""
    text = render(report(STACKS, {RAW: Reason.OUTSIDE_SYMBOLS}))
    assert f"    1 not, 100.0 %: {TEXTS[Reason.OUTSIDE_SYMBOLS]}" in text.splitlines()


def test_verbose_text() -> None:
    """With -v every place that was tried is listed, and mappings without samples are rows as well."""
    made = full()
    text = render(made, verbose=True)
    assert "    tried build id abab: found bin/app\n" in text
    assert "    tried name libc.so: nothing there\n" in text
    quiet = report([([ROOT], [1])], {})
    assert "libc.so" not in render(quiet)
    assert "libc.so" in render(quiet, verbose=True)


def test_unverified_is_marked() -> None:
    """A file that only its name speaks for is marked."""
    made = report(STACKS, REASONS, [Resolution(mapping=0, files=["bin/app"]), Resolution(mapping=1)])
    assert "from bin/app (unverified)" in render(made)
    made.mappings[0].build_id = ""
    assert "from bin/app (unverified: no build id)" in render(made)


def test_json() -> None:
    """The JSON says everything that the text says, on one line."""
    text = render_json(full(), "cpu.prof", "out.pb.gz")
    assert text.count("\n") == 1
    assert text.endswith("\n")
    data = json.loads(text)
    assert data["schema_version"] == 1
    assert (data["profile"], data["output"]) == ("cpu.prof", "out.pb.gz")
    assert (data["samples"], data["locations"], data["symbolized_locations"]) == (3, 4, 2)
    assert data["symbolized_percent"] == pytest.approx(83.7838)
    app, libc, lost = data["mappings"]
    assert app["files"] == ["bin/app", "debug/app.debug"]
    assert (app["verified"], libc["verified"]) == (True, False)
    assert app["problems"] == ["debug/app.debug: unit 3 is cut off"]
    assert libc["misses"] == [{"reason": "not-found", "text": "binary not found", "locations": 1, "value": 5.0}]
    assert libc["tried"] == [{"place": "name libc.so", "outcome": "nothing there"}]
    assert lost["misses"][0]["reason"] == "no-mapping"
    assert data["top_functions"][0] == {"name": "inner", "flat": 10.0, "cumulative": 15.0}
    assert data["warnings"] == ["the memory map has a line that is none"]


HOSTILE = "/bin/\x1b]0;owned\x07\x1b[2J\r\n\u202e\u2066\x7f\x9bfake row   100.0 %"


@pytest.mark.parametrize("form", ["text", "json"])
def test_hostile_names(form: str) -> None:
    """Control characters of names, files and messages reach no terminal, and no name makes a line of its own."""
    place = Place(0x1000, 1, (Line(HOSTILE, HOSTILE, 1),))
    mappings = [Mapping(0x1000, 0x2000, 0, HOSTILE, HOSTILE)]
    data = profile(mappings, [([place, RAW._replace(mapping=1)], [1])], [(HOSTILE, HOSTILE)])
    made = loader.load(memoryview(data), "x")
    column = np.array([Reason.SYMBOLIZED, Reason.NOT_FOUND], np.uint8)
    outcome = Resolution(mapping=0, files=[HOSTILE], detail=HOSTILE, tried=[(HOSTILE, HOSTILE)], problems=[HOSTILE])
    built = build_report(made, column, [outcome], [HOSTILE])
    text = render(built, verbose=True) if form == "text" else render_json(built, HOSTILE, HOSTILE)
    assert "owned" in text
    for character in text.replace("\n", ""):
        assert unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"), hex(ord(character))
    if form == "text":
        assert not any(line.startswith("fake row") for line in text.splitlines())


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "nanoseconds", "0ns"),
        (999, "nanoseconds", "999ns"),
        (1_500, "nanoseconds", "1.50us"),
        (2_500_000, "nanoseconds", "2.50ms"),
        (7.2e10, "nanoseconds", "72.00s"),
        (3, "milliseconds", "3.00ms"),
        (512, "bytes", "512B"),
        (2048, "bytes", "2.00kB"),
        (3 << 30, "bytes", "3.00GB"),
        (5, "kilobytes", "5.00kB"),
        (17, "count", "17"),
        (17, "", "17"),
    ],
)
def test_quantity(value: float, unit: str, text: str) -> None:
    """Values are scaled to what a person reads."""
    assert quantity(value, unit) == text


def test_reasons_are_told() -> None:
    """Every reason has a text and a code of its own, and every miss that a person can do something about a hint."""
    assert len({TEXTS[reason] for reason in Reason}) == len({reason.code for reason in Reason}) == len(Reason)
    assert [reason for reason in Reason if not reason.is_miss] == [Reason.SYMBOLIZED, Reason.HAD_NAMES]
    assert [r for r in Reason if r.is_miss and r not in HINTS] == [Reason.OUTSIDE_SEGMENTS, Reason.OUTSIDE_SYMBOLS]


def test_approximate_lines() -> None:
    """Locations with a line that is not their own are counted a mapping, in text and JSON (rule R170)."""
    made = loader.load(memoryview(profile(MAPPINGS, STACKS)), "test")
    codes = np.full(len(made.locations), Reason.SYMBOLIZED, np.uint8)
    approximate = made.locations.address == LEAF.address
    outcomes = [Resolution(mapping=0), Resolution(mapping=1), Resolution()]
    result = build_report(made, codes, outcomes, [], approximate=approximate)
    assert [(row.approximate_lines, row.approximate_value) for row in result.mappings] == [(1, 15), (0, 0), (0, 0)]
    assert render(result).count("approximate") == 1
    assert "    1 with an approximate line, 48.4 %: the nearest earlier one of the function" in render(result)
    rows = json.loads(render_json(result, "in", "out"))["mappings"]
    assert [row["approximate_lines"]["locations"] for row in rows] == [1, 0, 0]


def test_folded_code() -> None:
    """Code of several functions is shown by the outermost name of its locations, none if they have none; the heaviest
    is first."""
    made = loader.load(memoryview(profile(MAPPINGS, STACKS)), "test")
    rows = {address: np.array([row]) for row, address in enumerate(made.locations.address.tolist())}
    codes = np.full(len(made.locations), Reason.SYMBOLIZED, np.uint8)
    folded = [SharedCode("app", place.address, 1, "", [], rows[place.address]) for place in (LOST, RAW, LEAF, ROOT)]
    result = build_report(made, codes, [Resolution(mapping=0)], [], folded)
    assert [(code.begin, code.shown, code.value) for code in result.folded] == [
        (ROOT.address, "main", 16),
        (LEAF.address, "outer", 15),
        (RAW.address, "", 5),
        (LOST.address, "", 1),
    ]


def test_missing_of_several_reports() -> None:
    """Each file once, with its share of all values, the heaviest first; what has no build id is in a comment."""
    missing = Missing()
    assert missing.text() == "# Nothing is missing.\n"
    missing.add(report([([RAW], [0])], REASONS))
    assert missing.text().splitlines()[1].startswith("# /lib/libc.so: binary not found")
    for _ in range(2):
        wanted = Resolution(mapping=0, wanted=["debuginfo"], wanted_id="ab")
        missing.add(report(STACKS, REASONS, [wanted, Resolution(mapping=1, wanted=["executable"], wanted_id="cd")]))
    missing.add(report([([RAW], [6])], REASONS))
    _, *lines = missing.text().splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "debuginfod-find debuginfo ab  # 77.5 %, app",
        "debuginfod-find executable cd  # 12.5 %, libc.so",
        "# 7.5 %, /lib/libc.so",
    ]

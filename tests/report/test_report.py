"""The report: data, text and JSON."""

import argparse
import json
import re
import unicodedata
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symbolize
from symbolize.analysis.units import quantity
from symbolize.cli.shown import note_early_ends
from symbolize.core.folded_code import FoldedCode, FoldingEvidence
from symbolize.core.reasons import Reason
from symbolize.core.terminal import Style, cells, shortened, shortened_function, wrapped
from symbolize.core.verdict import Verdict
from symbolize.formats.pprof import reader as loader
from symbolize.profile import StackSource
from symbolize.report import HINTS, TEXTS, FoldedRow, Report, build_report
from symbolize.report.html import page, section
from symbolize.report.json import as_dict
from symbolize.report.json import render as render_json
from symbolize.report.text import Missing, ReportRow, profile_table, render, render_plan
from symbolize.resolve.resolution import Resolution
from tests.support.needs import package
from tests.support.pprof_writer import Line, Mapping, Place, profile

SCHEMA = json.loads((Path(symbolize.__file__).parent / "report" / "report.schema.json").read_text())
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
    stack_source: StackSource = StackSource.UNKNOWN,
    **options: Any,
) -> Report:
    """The report on a profile of these stacks in which the locations fared as `reasons` says."""
    made = loader.load(memoryview(profile(MAPPINGS, stacks, **options)), "test")
    made.stack_source = stack_source
    addresses = made.locations.address.tolist()
    codes = {place.address: reason for place, reason in reasons.items()}
    column = np.array([codes.get(address, Reason.SYMBOLIZED) for address in addresses], np.uint8)
    outcomes = outcomes or [Resolution(mapping=0), Resolution(mapping=1)]
    return build_report(made, column, [*outcomes, Resolution()], list(warnings))


STACKS = [([LEAF, ROOT], [10]), ([RAW, LEAF, ROOT], [5]), ([LOST, ROOT], [1])]
REASONS = {RAW: Reason.NOT_FOUND, LOST: Reason.NO_MAPPING}


def test_weights() -> None:
    """A sample weighs every frame of its stack, and its leaf once; either has a percentage, and checks take the
    lower."""
    made = report(STACKS, REASONS)
    assert (made.samples, made.sample_value) == (3, 16)
    assert (made.locations, made.symbolized_locations) == (4, 2)
    assert (made.value, made.symbolized_value) == (37, 31)
    assert (made.leaf_value, made.symbolized_leaf_value) == (16, 10)
    assert made.percent == pytest.approx(100 * 31 / 37)
    assert made.leaf_percent == made.lower_percent == 100 * 10 / 16


def function(name: str) -> Place:
    """Code of a function, at an address of its own."""
    return Place(0x1000 + zlib.crc32(name.encode()) % 0x8000, 1, (Line(name, "a.c", 1),))


HOT, MID, MAIN, FIBER = map(function, ("hot", "mid", "main", "fiber_entry"))
KERNEL = Place((1 << 63) + 0x1000, 0, (Line("do_idle", "", 0),))


@pytest.mark.parametrize(
    ("stacks", "early"),
    [
        ([([HOT], [6]), ([HOT, MID, MAIN], [1]), ([MID, MAIN], [1])], 6),
        ([([HOT, LOST], [6]), ([HOT, MID, MAIN, LOST], [1]), ([LOST], [2])], 8),
        ([([MID, HOT], [6]), ([HOT, MID, MAIN], [1])], 6),
        ([([RAW], [6]), ([HOT, RAW], [1]), ([HOT, RAW, LOST], [1])], 0),
        ([([KERNEL], [6]), ([KERNEL, HOT, MAIN], [1]), ([], [1])], 0),
        ([([KERNEL, HOT], [6])], 6),
        ([([HOT, MID, FIBER], [6]), ([FIBER], [1])], 0),
        *(
            ([([HOT, function(name)], [6]), ([HOT, function(name), MAIN], [1]), ([function(name)], [1])], 0)
            for name in ("_start", "__clone", "__clone3", "__GI___clone", "start_thread", "ret_from_fork", "main")
        ),
        ([([HOT, function("runtime.goexit.abi0")], [6])], 0),
    ],
)
def test_stacks_that_end_early(stacks: list[tuple[list[Place], list[int]]], early: float) -> None:
    """Stacks along frame pointers end early that begin in no function that begins a program or a thread, is called by
    nothing, or has no name (R481, stacks that end early). Noise behind a stack is no frame."""
    made = report(stacks, REASONS, stack_source=StackSource.FRAME_POINTERS)
    assert made.early_value == early
    hint = "stacks that end early, in code without frame pointers ("
    assert (hint in render(made)) == (early > 0)
    assert report(stacks, REASONS, stack_source=StackSource.RECORDER).early_value == 0


def test_few_stacks_end_early() -> None:
    """What is less than a tenth of the samples is not worth a hint; a tenth has its share."""
    for value, shares in ((11, []), (9, ["10.0"])):
        stacks = [([HOT], [1]), ([HOT, MAIN], [value])]
        text = render(report(stacks, {}, stack_source=StackSource.FRAME_POINTERS))
        assert re.findall(r"frame pointers \((.*) %\)", text) == shares


def test_tables_and_pictures_say_that_many_end_early(capsys: pytest.CaptureFixture[str]) -> None:
    """More than a quarter has a note beside a table or picture, which would be read as whole stacks."""
    for value, note in ((3, "x: 50.0 % of the samples are in stacks that end early"), (1, "")):
        stacks = [([HOT], [value]), ([HOT, MAIN], [3])]
        made = report(stacks, {}, stack_source=StackSource.FRAME_POINTERS)
        note_early_ends(argparse.Namespace(quiet=False), "x", made)
        err = capsys.readouterr().err
        assert note in err and bool(err) == bool(note)


def test_rows() -> None:
    """A row a mapping and one for addresses in none, with the locations that samples use and why they were missed."""
    rows = report(STACKS, REASONS).mappings
    assert [(row.name, row.build_id) for row in rows] == [("/bin/app", "ab" * 20), ("/lib/libc.so", ""), ("", "")]
    assert [(row.locations, row.symbolized_locations) for row in rows] == [(2, 2), (1, 0), (1, 0)]
    assert [(row.value, row.symbolized_value) for row in rows] == [(31, 31), (5, 0), (1, 0)]
    assert [row.misses for row in rows] == [[], [(Reason.NOT_FOUND, 1, 5.0)], [(Reason.NO_MAPPING, 1, 1.0)]]
    assert [row.missed_flat for row in rows] == [{}, {Reason.NOT_FOUND: 5.0}, {Reason.NO_MAPPING: 1.0}]
    assert [(row.flat, row.symbolized_flat, row.cumulative) for row in rows] == [(10, 10, 16), (5, 0, 5), (1, 0, 1)]


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
    assert (made.percent, made.leaf_percent, made.sample_value) == (50, 50, 20)
    assert [tuple(each) for each in made.top] == [("[libc.so]", 10, 10), ("inner", -10, -10), ("outer", 0, -10)]


def test_samples_without_a_stack() -> None:
    """They are value that is in no named code, have a row among the functions, and are mentioned."""
    made = report([([ROOT], [5]), ([], [3])], {})
    assert (made.sample_value, made.leaf_value, made.leaf_percent, made.percent) == (8, 5, 62.5, 100)
    assert [tuple(each) for each in made.top] == [("main", 5, 5), ("[no stack]", 3, 3)]
    assert "62.5 % of 8 " in (text := render(made))
    assert "3 is in samples without a stack." in text
    assert sum(row.flat for row in made.mappings) == 5


def test_no_sample_has_a_stack() -> None:
    """Nothing is named then, for `--fail-under` and batches too."""
    made = report([([], [3])], {})
    assert (made.percent, made.leaf_percent, made.lower_percent) == (0, 0, 0)
    assert "3 is in samples without a stack." in render(made)


@pytest.mark.parametrize("stacks", [[], [([], [0])], [([ROOT], [0])]], ids=["no samples", "no frames", "no value"])
def test_nothing_to_weigh(stacks: list[Any]) -> None:
    """Of a profile without frames or value no percentage is shown as reached, and one without value has no samples."""
    made = report(stacks, {})
    assert made.percent == made.leaf_percent == made.lower_percent == 0
    assert json.loads(render_json(as_dict(made, "in", "out")))["symbolized_percent"] == 0
    shown = [
        render(made),
        render_plan(made),
        repr(made),
        *profile_table([ReportRow.of(made, "a", "", "")], Style(), 80),
    ]
    assert not any("100" in each for each in shown)
    has_value = bool(made.sample_value)
    assert [("no samples" in each, "%" in each) for each in shown[:3]] == [(not has_value, has_value)] * 3
    assert ("%" in shown[4]) == has_value


def full() -> Report:
    """A report that has something of everything."""
    outcomes = [
        Resolution(
            mapping=0,
            files=["bin/app", "debug/app.debug"],
            verdict=Verdict.PROVED,
            problems=["debug/app.debug: unit 3 is cut off"],
            tried=[("build id abab", "found bin/app")],
        ),
        Resolution(mapping=1, reason=Reason.NOT_FOUND, detail="looked well", tried=[("name libc.so", "nothing there")]),
    ]
    return report(STACKS, REASONS, outcomes, ["the memory map has a line that is none"])


def test_text() -> None:
    """The table says for each mapping the file used, how much has names, and for the rest why and what to do."""
    text = render(full())
    warning, _, _, app, files, problem, libc, miss, lost, why, _, *rest = text.splitlines()
    assert warning == "warning: the memory map has a line that is none"
    assert app == " 62.5 % 100.0 %    2/2  /bin/app"
    assert files == "    from bin/app, debug/app.debug (build id abababababab)"
    assert problem == "    problem: debug/app.debug: unit 3 is cut off"
    assert libc == " 31.2 %  31.2 %    0/1  /lib/libc.so"
    assert miss == "    binary not found (looked well)"
    assert lost == "  6.2 %   6.2 %    0/1  (no mapping)"
    assert why == "    address in no mapping"
    assert " ".join(rest[:2]) == (
        "62.5 % of 16 samples is in named code; 83.8 % of the frames on the stacks have names."
    )
    assert "  10  62.50%   15   93.75%  inner" in rest
    assert "   5  31.25%    5   31.25%  [libc.so]" in rest
    at = rest.index("what to do")
    assert " ".join(map(str.strip, rest[at + 1 :])) == (
        "binary not found (31.2 %, 1 mapping): add it, or its debug file, to the folders with binaries "
        "address in no mapping (6.2 %, 1 mapping): JIT code needs its perf-PID.map or jitdump among the binaries; "
        "stack noise has no names"
    )
    assert "tried" not in text


def test_misses_that_nothing_helps_against() -> None:
    """They are reported without a hint."""
    text = render(report(STACKS, {RAW: Reason.OUTSIDE_SYMBOLS}))
    assert f"    {TEXTS[Reason.OUTSIDE_SYMBOLS]}" in text.splitlines()
    assert "what to do" not in text


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
    text = render(made, width=200)
    assert "from bin/app (unverified)" in text
    assert text.count("record build ids (perf record --buildid-mmap)") == 1


def test_json() -> None:
    """The JSON says everything that the text says, on one line."""
    text = render_json(as_dict(full(), "cpu.prof", "out.pb.gz"))
    assert text.count("\n") == 1
    assert text.endswith("\n")
    data = json.loads(text)
    package("jsonschema").validate(data, SCHEMA)
    assert set(data) == set(SCHEMA["properties"])
    assert set(data["mappings"][0]) == set(SCHEMA["$defs"]["mapping"]["properties"])
    assert data["schema_version"] == 2
    assert (data["profile"], data["output"]) == ("cpu.prof", "out.pb.gz")
    assert (data["samples"], data["locations"], data["symbolized_locations"]) == (3, 4, 2)
    assert (data["symbolized_percent"], data["leaf_percent"]) == (83.7838, 62.5)
    app, libc, lost = data["mappings"]
    assert app["files"] == ["bin/app", "debug/app.debug"]
    assert (app["verified"], libc["verified"]) == (True, False)
    assert (app["verdict"], libc["verdict"]) == ("proved", "unverified")
    assert app["problems"] == ["debug/app.debug: unit 3 is cut off"]
    assert libc["misses"] == [
        {"reason": "not-found", "text": "binary not found", "locations": 1, "value": 5.0, "flat": 5.0}
    ]
    assert libc["tried"] == [{"place": "name libc.so", "outcome": "nothing there"}]
    assert lost["misses"][0]["reason"] == "no-mapping"
    assert data["top_functions"][0] == {"name": "inner", "flat": 10.0, "cumulative": 15.0}
    assert data["warnings"] == ["the memory map has a line that is none"]


HOSTILE = "/bin/\x1b]0;owned\x07\x1b[2J\r\n\u202e\u2066\x7f\x9bfake row   100.0 %"


@pytest.mark.parametrize("form", ["text", "json", "html", "several"])
def test_hostile_names(form: str) -> None:
    """Control characters of names, files and messages reach no terminal, and no name makes a line of its own."""
    place = Place(0x1000, 1, (Line(HOSTILE, HOSTILE, 1),))
    mappings = [Mapping(0x1000, 0x2000, 0, HOSTILE, HOSTILE)]
    data = profile(mappings, [([place, RAW._replace(mapping=1)], [1])], [(HOSTILE, HOSTILE)])
    made = loader.load(memoryview(data), "x")
    column = np.array([Reason.SYMBOLIZED, Reason.NOT_FOUND], np.uint8)
    outcome = Resolution(mapping=0, files=[HOSTILE], detail=HOSTILE, tried=[(HOSTILE, HOSTILE)], problems=[HOSTILE])
    built = build_report(made, column, [outcome], [HOSTILE])
    row = ReportRow.of(built, HOSTILE, HOSTILE, HOSTILE)
    text = {
        "text": lambda: render(built, verbose=True, width=200),
        "json": lambda: render_json(as_dict(built, HOSTILE, HOSTILE)),
        "html": lambda: page([section(built, HOSTILE, HOSTILE)], [row, row]),
        "several": lambda: "\n".join(profile_table([row], Style(), 300)),
    }[form]()
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
        (5, "s", "5.00s"),
        (90, "minutes", "1.50hrs"),
        (5, "minutes", "300.00s"),
        (2**62, "nanoseconds", "1281023.89hrs"),
        (3, "MB", "3.00MB"),
        (2048, "kb", "2.00MB"),
        (5 << 50, "byte", "5.00PB"),
        (1500, "milliGCU", "1.50GCU"),
        (17, "count", "17"),
        (17, "samples", "17"),
        (17, "", "17"),
        (3_000_000_000, "cycles", "3000000000cycles"),
        (3, "\x1b[1m", "3\\x1b[1m"),
        (3, "x" * 33, "3"),
    ],
)
def test_quantity(value: float, unit: str, text: str) -> None:
    """Values are scaled to what a person reads."""
    assert quantity(value, unit) == text


def test_reasons_are_told() -> None:
    """Every reason has a text and a code of its own, and every miss that a person can do something about a hint."""
    assert len({TEXTS[reason] for reason in Reason}) == len({reason.code for reason in Reason}) == len(Reason)
    assert [reason for reason in Reason if not reason.is_miss] == [Reason.SYMBOLIZED, Reason.HAD_NAMES]
    assert [r for r in Reason if r.is_failure] == [Reason.SERVER_FAILED, Reason.CHANGED, Reason.READ_FAILED]
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
    assert "    1 location: approximate lines, the nearest earlier ones of their functions" in render(result)
    rows = json.loads(render_json(as_dict(result, "in", "out")))["mappings"]
    assert [row["approximate_lines"]["locations"] for row in rows] == [1, 0, 0]


def test_folded_code() -> None:
    """Code of several functions is shown by the outermost name of its locations, none if they have none; the heaviest
    is first."""
    made = loader.load(memoryview(profile(MAPPINGS, STACKS)), "test")
    rows = {address: np.array([row]) for row, address in enumerate(made.locations.address.tolist())}
    codes = np.full(len(made.locations), Reason.SYMBOLIZED, np.uint8)
    folded = [
        FoldedRow("app", FoldedCode(place.address, 1, FoldingEvidence.NAMES, []), [], rows[place.address])
        for place in (LOST, RAW, LEAF, ROOT)
    ]
    result = build_report(made, codes, [Resolution(mapping=0)], [], folded=folded)
    assert [(row.code.begin, row.shown, row.value) for row in result.folded] == [
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


def test_names_without_lines() -> None:
    """Names of a symbol table alone are counted, and what would add lines is said once; code that DWARF has without a
    line keeps its file."""
    bare, line_0 = Place(0x1100, 1, (Line("bare"),)), Place(0x1200, 1, (Line("zero", "a.c", 0),))
    kept = Place(0x11000, 2, (Line("kept"),))
    made = report([([bare, kept], [3]), ([line_0], [1])], {kept: Reason.HAD_NAMES})
    app, libc, *_ = made.mappings
    assert (app.without_lines, app.without_lines_value, app.had_names) == (1, 3, 0)
    assert (libc.without_lines, libc.had_names, made.had_names) == (0, 1, 1)
    text = render(made, width=200)
    assert "    1 location: names only, no lines\n" in text
    assert "    its location: names came with the profile\n" in text
    assert "1 of 3 names came with the profile." in " ".join(text.split())
    assert text.count("has no debug information") == 1


def test_hints_count_what_they_help_with() -> None:
    """The share of a hint on lines is that of the names without lines, of one on names that of the names."""
    bare = Place(0x1100, 1, (Line("bare"),))
    lined, unnamed = Place(0x1200, 1, (Line("f", "a.c", 1),)), Place(0x1300, 1)
    made = report([([bare], [6]), ([lined], [2]), ([unnamed], [2])], {unnamed: Reason.OUTSIDE_SYMBOLS})
    made.mappings[0].outcome, made.mappings[0].build_id = Resolution(mapping=0, files=["app"]), ""
    hints = render(made, width=200).partition("what to do\n")[2]
    assert "names only, no lines (60.0 %, 1 mapping)" in hints
    assert "unverified: too little speaks for the file (80.0 %, 1 mapping)" in hints


def test_no_memory_map() -> None:
    """A profile without any mapping was cut off, which no JIT symbols help against."""
    lost = Place(0x1000)
    made = loader.load(memoryview(profile([], [([lost], [1])])), "x")
    text = render(build_report(made, np.array([Reason.NO_MAPPING], np.uint8), [Resolution()], []), width=200)
    assert "(100.0 %, 1 mapping): the profile has no memory map" in text
    assert "JIT" not in text


def test_all_names_came_along() -> None:
    """The summary says so."""
    made = report([([ROOT, LEAF], [1])], {ROOT: Reason.HAD_NAMES, LEAF: Reason.HAD_NAMES})
    text = render(made)
    assert "all: names came with the profile" in text
    assert "All names came with the profile." in " ".join(text.split())


def test_no_binaries() -> None:
    """That none were given is said once, on top."""
    text = render(report(STACKS, dict.fromkeys((LEAF, ROOT, RAW), Reason.NOT_ASKED)))
    assert text.startswith("warning: no binaries were given: give folders with binaries\n\n")
    assert text.count("no binaries were given") == 1


def test_hints_once_and_the_most_valuable_first() -> None:
    """A reason of several mappings has one hint, with the sum of their shares."""
    mappings = [Mapping(0x1000 * i, 0x1000 * i + 0x1000, 0, f"/lib/{i}.so") for i in range(1, 4)]
    places = [Place(0x1000 * i, i) for i in range(1, 4)]
    made = loader.load(memoryview(profile(mappings, [([place], [i + 1]) for i, place in enumerate(places)])), "x")
    column = np.array([Reason.NOT_FOUND, Reason.NO_SYMBOLS, Reason.NOT_FOUND], np.uint8)
    built = build_report(made, column, [*(Resolution(mapping=i) for i in range(3)), Resolution()], [])
    hints = render(built, width=400).partition("what to do\n")[2].splitlines()
    assert [line.strip().partition(":")[0] for line in hints] == [
        "binary not found (66.7 %, 2 mappings)",
        "binary is stripped (33.3 %, 1 mapping)",
    ]


@pytest.mark.parametrize(
    ("name", "reason", "hint"),
    [
        (
            "[kernel.kallsyms]_text",
            Reason.NOT_FOUND,
            "kernel (100.0 %, 1 mapping): add /proc/kallsyms of the recording",
        ),
        (
            "[guest.kernel.kallsyms]",
            Reason.NOT_A_FILE,
            "kernel (100.0 %, 1 mapping): add /proc/kallsyms of the recording",
        ),
        ("/tmp/perf-42.map", Reason.NOT_FOUND, "code compiled at run time (100.0 %, 1 mapping): add its perf-PID.map"),
        ("/bin/app", Reason.NOT_FOUND, "binary not found (100.0 %, 1 mapping): add it"),
        ("[kernel.kallsyms]", Reason.RESTRICTED, "copy /proc/kallsyms as root"),
    ],
)
def test_hints_for_lists_of_symbols(name: str, reason: Reason, hint: str) -> None:
    """What helps against missing names of the kernel, and of compiled code, is their list and no binary, in the list of
    missing files too."""
    place = Place(0x1010, 1)
    made = loader.load(memoryview(profile([Mapping(0x1000, 0x2000, 0, name)], [([place], [1])])), "x")
    built = build_report(made, np.array([reason], np.uint8), [Resolution(mapping=0), Resolution()], [])
    assert hint in render(built, width=400).partition("what to do\n")[2]
    missing = Missing()
    missing.add(built)
    assert hint.rpartition(": ")[2] in missing.text()


@pytest.mark.parametrize("width", [50, 80, 132])
def test_the_width_is_kept(width: int) -> None:
    """Every line fits, however long or wide names are; a wide terminal shows more of them."""
    name = "/opt/" + "文件夹/" * 40 + "library.so.1"
    function = "std::vector<" + "aléph::" * 30 + "Thing>::push_back"
    place = Place(0x1000, 1, (Line(function, "a.c", 1),))
    mappings = [Mapping(0x1000, 0x2000, 0, name), Mapping(0x10000, 0x20000, 0, name)]
    made = loader.load(memoryview(profile(mappings, [([place, RAW], [1])])), "x")
    column = np.array([Reason.SYMBOLIZED, Reason.NOT_FOUND], np.uint8)
    outcomes = [Resolution(mapping=0, files=[name, name]), Resolution(mapping=1, detail=name), Resolution()]
    built = build_report(made, column, outcomes, ["word " * 60])
    row = ReportRow.of(built, name, "heap libc.malloc", name)
    lines = [*render(built, width=width).splitlines(), *profile_table([row, row], Style(), width)]
    assert max(map(cells, lines)) <= width
    assert max(map(cells, lines)) > width - 8
    assert any(line.endswith("library.so.1") for line in lines)
    assert any("::push_back" in line and "std::" in line for line in lines)


def test_colour_takes_no_room() -> None:
    """The text is the same with colours."""
    made = full()
    coloured = render(made, colour=True)
    assert "\x1b[1m" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == render(made)


@pytest.mark.parametrize(("text", "count"), [("abc", 3), ("文件", 4), ("e\u0301", 1), ("Ａ", 2), ("…", 1)])
def test_cells(text: str, count: int) -> None:
    """Characters of East Asia take two cells, combining ones none."""
    assert cells(text) == count


def test_shortened() -> None:
    """Paths lose their beginning, functions their middle; what fits stays."""
    assert shortened("/usr/lib/libc.so", 9) == "…/libc.so"
    assert shortened("文件夹/库", 6) == "…夹/库"
    assert shortened_function("namespace::Class::function", 12) == "name…unction"
    assert shortened("abc", 3) == shortened_function("abc", 3) == "abc"
    assert [*wrapped("one two three four", 9, "  ", "- ")] == ["- one two", "  three", "  four"]
    assert [*wrapped("the file (/usr/lib/x.debug)", 10)] == ["the file", "(…x.debug)"]


def test_html_is_escaped_and_alone() -> None:
    """Names are text in the page, which loads nothing."""
    place = Place(0x1000, 1, (Line("<script>alert(1)</script>", "a.c", 1),))
    made = report([([place, RAW], [1])], REASONS)
    text = page([section(made, "a&b", "<out>")])
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "a&amp;b" in text
    assert "/lib/libc.so" in text
    assert not re.search(r"(src|href)=|url\(|@import", text)
    assert "default-src 'none'" in text


def test_order_of_equals() -> None:
    """Functions with equal values are in the order of their names, not of the file."""
    stacks = [([Place(0x1000 + i, 1, (Line(name),))], [1]) for i, name in enumerate("edcba")]
    assert [row.name for row in report(stacks, {}).top] == [*"abcde"]

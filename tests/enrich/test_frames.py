"""What a lookup found, written into the locations of a profile."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from symbolize.enrich.frames import LookupResult, demangle_existing, expand
from symbolize.formats.pprof import reader as loader
from symbolize.names import Mode
from symbolize.profile import Profile, set_flags
from symbolize.symbols import Answer, Calls, Frames, FunctionNames
from tests.support.pprof_writer import Line, Mapping, Place, profile
from tests.support.profile_frames import frames_of

Found = tuple[str, str, int, int]
"""A frame of a lookup: linked name, file, line, column."""


def loaded(places: Sequence[Place]) -> Profile:
    """A profile with one mapping and these locations, in order."""
    mappings = [Mapping(0x1000, 0x9000, 0, "/bin/x"), Mapping(0x10000, 0x20000, 0, "/bin/y")]
    return loader.load(memoryview(profile(mappings, [(places, [1])])), "test")


def resolved(
    rows: Sequence[int], chains: Sequence[Sequence[Found]], folded: Sequence[bool] = (), **names: Any
) -> LookupResult:
    """A lookup that found these chains at the locations `rows`.

    `names` may give the plain names and declarations by linked name: `plain={"_Zf": "f"}`,
    `declared={"_Zf": ("a.c", 3)}`.
    """
    frames = [frame for chain in chains for frame in chain]
    linked = sorted({frame[0] for frame in frames})
    declared = names.get("declared", {})
    files = sorted({frame[1] for frame in frames if frame[1]} | {file for file, _ in declared.values() if file})
    place = {file: i for i, file in enumerate(files)} | {"": -1}
    functions = FunctionNames(
        [name.encode() if not name.startswith("?") else b"" for name in linked],
        [names.get("plain", {}).get(name, "").encode() for name in linked],
        np.array([place[declared[name][0]] if name in declared else -1 for name in linked], np.int32),
        np.array([declared[name][1] if name in declared else 0 for name in linked], np.uint32),
    )
    found = Frames(
        np.cumsum([0, *map(len, chains)], dtype=np.int64),
        np.array([linked.index(frame[0]) for frame in frames], np.int32),
        np.array([place[frame[1]] for frame in frames], np.int32),
        np.array([frame[2] for frame in frames], np.uint32),
        np.array([frame[3] for frame in frames], np.uint32),
        functions,
        [file.encode() for file in files],
        np.array(folded or [False] * len(rows), np.bool_),
    )
    reasons = np.zeros(len(rows), np.uint8)
    none = np.zeros(len(rows), np.uint64)
    columns = none, found, reasons, none, None, [], Calls.none(), []
    answer = Answer(*columns, check=lambda: None, machine="", of_linker=False)
    return LookupResult(np.array(rows, np.int64), answer, np.full(len(rows), names.get("verified", True)))


def test_chains_in_place() -> None:
    """Each location gets the frames found for it, leaf first, whatever the order of the lookup."""
    made = loaded([Place(0x1000, 1), Place(0x2000, 1), Place(0x3000, 1)])
    replaced = expand(
        made,
        [resolved([2, 0], [[("f", "a.c", 3, 7), ("main", "b.c", 9, 1)], [("g", "a.c", 5, 0)]])],
        "default",
    )
    assert replaced.tolist() == [True, False, True]
    assert frames_of(made) == [
        [("g", "g", "a.c", 5, 0)],
        [],
        [("f", "f", "a.c", 3, 7), ("main", "main", "b.c", 9, 1)],
    ]


def test_several_lookups() -> None:
    """The frames of several binaries do not get mixed."""
    made = loaded([Place(0x1000, 1), Place(0x10000, 2)])
    expand(made, [resolved([0], [[("f", "a.c", 1, 0)]]), resolved([1], [[("f", "b.c", 2, 0)]])], "default")
    assert frames_of(made) == [[("f", "f", "a.c", 1, 0)], [("f", "f", "b.c", 2, 0)]]


@pytest.mark.parametrize(
    ("desc", "old", "found", "expected"),
    [
        ("nothing found keeps what was there", [Line("old", "o.c", 1)], [], ["old"]),
        ("source found replaces source", [Line("old", "o.c", 1)], [("new", "n.c", 2, 0)], ["new"]),
        ("the first line of a file is one", [Line("old", "o.c", 1)], [("new", "n.c", 1, 0)], ["new"]),
        ("a bare name does not replace a source line", [Line("old", "o.c", 1)], [("new", "", 0, 0)], ["old"]),
        ("a bare name replaces a bare name", [Line("old")], [("new", "", 0, 0)], ["new"]),
        ("source replaces a bare name", [Line("old")], [("new", "n.c", 2, 0)], ["new"]),
        ("a file without a line is no source line", [Line("old", "o.c", 1)], [("new", "n.c", 0, 0)], ["old"]),
        (
            "one frame with a line is enough",
            [Line("old", "o.c", 1)],
            [("i", "", 0, 0), ("new", "n.c", 2, 0)],
            ["i", "new"],
        ),
        ("nothing and nothing", [], [], []),
    ],
)
def test_names_that_came_along(desc: str, old: list[Line], found: list[Found], expected: list[str]) -> None:
    """A profile that arrives half symbolized leaves better, never worse; its neighbours are not touched."""
    neighbour = Line("same", "s.c", 4)
    made = loaded([Place(0x1000, 1, (neighbour,)), Place(0x2000, 1, tuple(old)), Place(0x3000, 1, (neighbour,))])
    expand(made, [resolved([1], [found])], "default")
    first, names, last = ([frame[0] for frame in chain] for chain in frames_of(made))
    assert names == expected
    assert first == last == ["same"]


def test_empty_chains_at_the_end_of_a_lookup() -> None:
    """Locations without frames at either end of a lookup do not borrow those of their neighbours."""
    made = loaded(
        [Place(0x1000, 1, (Line("a", "a.c", 1),)), Place(0x2000, 1), Place(0x3000, 1, (Line("b", "b.c", 2),))]
    )
    expand(made, [resolved([0, 1, 2], [[], [("f", "f.c", 3, 0)], []])], "default")
    assert [[frame[0] for frame in chain] for chain in frames_of(made)] == [["a"], ["f"], ["b"]]


def test_folded_is_what_the_lookup_says() -> None:
    """`is_folded` is set and cleared with the lines, and stays where these stay."""
    made = loaded([Place(0x1000 + i, 1, is_folded=bool(i % 2)) for i in range(6)])
    frame = ("f", "f.c", 1, 0)
    expand(made, [resolved(range(4), [[frame], [frame], [], []], [True, False, True, False])], "default")
    assert made.locations.is_folded.tolist() == [True, False, False, True, False, True]


@pytest.mark.parametrize(
    ("mode", "name", "system_name"),
    [
        ("default", "ns::f", "_ZN2ns1fIiEEvT_.cold"),
        ("templates", "ns::f<int>", "_ZN2ns1fIiEEvT_.cold"),
        ("none", "_ZN2ns1fIiEEvT_.cold", "_ZN2ns1fIiEEvT_.cold"),
    ],
)
def test_demangling(mode: Mode, name: str, system_name: str) -> None:
    """Names for people follow the mode; the linked name keeps its suffix in every mode."""
    made = loaded([Place(0x1000, 1)])
    expand(made, [resolved([0], [[("_ZN2ns1fIiEEvT_.cold", "f.c", 1, 0)]])], mode)
    assert frames_of(made)[0][0][:2] == (name, system_name)


def test_plain_name_only() -> None:
    """A function known by its qualified name from DWARF alone shows that, and is linked as its last component."""
    made = loaded([Place(0x1000, 1)])
    expand(made, [resolved([0], [[("?1", "f.c", 1, 0)]], plain={"?1": "ns::(anonymous namespace)::f"})], "default")
    assert frames_of(made)[0][0][:2] == ("ns::(anonymous namespace)::f", "f")


def test_function_in_several_files() -> None:
    """A function with code from two files is two functions of the profile, declared in only one of them."""
    made = loaded([Place(0x1000, 1), Place(0x2000, 1)])
    chains = [[("f", "a.h", 5, 0)], [("f", "a.c", 6, 0)]]
    expand(made, [resolved([0, 1], chains, declared={"f": ("a.h", 3)})], "default")
    assert [chain[0][2] for chain in frames_of(made)] == ["a.h", "a.c"]
    starts = made.functions.start_line[made.locations.lines.function]
    assert starts.tolist() == [3, 0]


def test_declared_in_no_file() -> None:
    """The line of a declaration without a file, as Go has it of inlined functions, is one of the file of the code."""
    made = loaded([Place(0x1000, 1)])
    expand(made, [resolved([0], [[("f", "a.go", 5, 0)]], declared={"f": ("", 3)})], "default")
    assert made.functions.start_line[made.locations.lines.function].tolist() == [3]


def test_a_name_is_more_than_a_line() -> None:
    """A location with a source line and no name gets the name that a lookup has, though that knows no line."""
    made = loaded([Place(0x1000, 1, (Line("", "a.c", 3),)), Place(0x1010, 1, (Line("own", "a.c", 3),))])
    expand(made, [resolved([0, 1], [[("f", "", 0, 0)]] * 2)], "default")
    assert [[frame[0] for frame in chain] for chain in frames_of(made)] == [["f"], ["own"]]


@pytest.mark.parametrize(
    ("desc", "chain", "flags"),
    [
        ("name only", [("f", "", 0, 0)], (True, False, False, False)),
        ("name and file", [("f", "f.c", 0, 0)], (True, True, False, False)),
        ("line", [("f", "f.c", 3, 0)], (True, True, True, False)),
        ("inlined", [("f", "f.c", 3, 0), ("g", "f.c", 4, 0)], (True, True, True, True)),
        ("nothing", [], (False, False, False, False)),
    ],
)
def test_flags(desc: str, chain: list[Found], flags: tuple[bool, ...]) -> None:
    """The flags of a mapping that was looked at say what its locations have, those of another stay."""
    made = loaded([Place(0x1000, 1), Place(0x2000, 1), Place(0x10000, 2)])
    for flag in ("has_functions", "has_filenames", "has_line_numbers", "has_inline_frames"):
        setattr(made.mappings, flag, np.ones(2, np.bool_))
    expand(made, [resolved([1], [chain])], "default")
    set_flags(made, np.array([True, False]))
    mappings = made.mappings
    columns = (mappings.has_functions, mappings.has_filenames, mappings.has_line_numbers, mappings.has_inline_frames)
    assert tuple(bool(column[0]) for column in columns) == flags
    assert all(column[1] for column in columns)


@pytest.mark.parametrize(
    ("desc", "line", "mode", "expected"),
    [
        ("mangled", Line("_ZN2ns1fEi"), "default", ("ns::f", "_ZN2ns1fEi")),
        ("mangled, no system name", Line("_ZN2ns1fEi", system_name=""), "default", ("ns::f", "_ZN2ns1fEi")),
        ("mangled, full", Line("_ZN2ns1fEi"), "full", ("ns::f(int)", "_ZN2ns1fEi")),
        ("mangled, but not wanted", Line("_ZN2ns1fEi"), "none", ("_ZN2ns1fEi", "_ZN2ns1fEi")),
        ("demangled by somebody", Line("other", system_name="_ZN2ns1fEi"), "default", ("other", "_ZN2ns1fEi")),
        ("not mangled, with template", Line("f<int>(int)"), "default", ("f<int>(int)", "f<int>(int)")),
        ("looks mangled, is not", Line("_Zebra"), "default", ("_Zebra", "_Zebra")),
        ("C", Line("main"), "default", ("main", "main")),
        ("Cython", Line("__pyx_pw_3mod_1f"), "default", ("mod.f", "__pyx_pw_3mod_1f")),
        ("Cython as linked", Line("__pyx_pw_3mod_1f"), "none", ("__pyx_pw_3mod_1f", "__pyx_pw_3mod_1f")),
    ],
)
def test_names_from_the_profile(desc: str, line: Line, mode: Mode, expected: tuple[str, str]) -> None:
    """Mangled names that came with the profile become readable; no other name is touched."""
    made = loaded([Place(0x1000, 1, (line,)), Place(0x2000, 1, (Line("same"),))])
    demangle_existing(made, mode)
    assert [chain[0][:2] for chain in frames_of(made)] == [expected, ("same", "same")]


def test_unverified_binaries_do_not_overrule_names_that_came_along() -> None:
    """A match by name fills in raw frames and leaves those alone that have a name."""
    made = loaded([Place(0x1000, 1, (Line("true", "t.c", 7),)), Place(0x2000, 1)])
    frame = ("guess", "g.c", 1, 0)
    replaced = expand(made, [resolved([0, 1], [[frame], [frame]], verified=False)], "default")
    assert [[line[0] for line in chain] for chain in frames_of(made)] == [["true"], ["guess"]]
    assert replaced.tolist() == [False, True]


def test_a_name_that_could_not_be_read_replaces_none() -> None:
    """A frame whose name lies in a file that is not there keeps the stack's depth, and takes the place of no name."""
    made = loaded([Place(0x1000, 1, (Line("true", "t.c", 7),)), Place(0x2000, 1)])
    chain = [("?inlined", "g.c", 1, 0), ("outer", "g.c", 2, 0)]
    expand(made, [resolved([0, 1], [chain, chain], plain={"?inlined": "??"})], "default")
    assert [[line[0] for line in chain] for chain in frames_of(made)] == [["true"], ["??", "outer"]]


def test_names_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a table that many profiles ask; what was forgotten is found again."""
    monkeypatch.setattr("symbolize.symbols.functions.MAX_KNOWN", 4)
    functions = resolved([0], [[(f"f{number}", "a.c", 1, 1) for number in range(10)]]).answer.frames.functions
    for rows in ([0, 1, 2], [2, 3], [4, 5, 6], [6], [1, 9]):
        shown = functions.shown(np.array(rows, np.int64), "default")
        assert [*shown.names] == [*shown.system_names] == [f"f{row}".encode() for row in rows]
        assert len(functions.known["default", False].strings) <= 4

"""What is changed in a profile when its names are known."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import symbolize
from symbolize.core.errors import UsageError
from symbolize.enrich.edits import Edits, pairs_of, prune, prune_from, rewrite_paths, synthesize, without_arguments
from symbolize.formats import encode
from symbolize.formats.pprof.reader import load
from symbolize.profile import AddressKind, Profile
from tests.support import pprof_writer
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.pprof_oracle import pprof, summed
from tests.support.pprof_writer import Line, Mapping, Place

LEDGER = FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof"
EXE = Mapping(0x400000, 0x405000, 0x1000, "/bin/app")
NAMES = [
    "main",
    "work",
    "malloc",
    "operator new(unsigned long)",
    "(anonymous namespace)::helper(int)",
    ".dotted",
    "new",
]

Stack = Sequence[Sequence[str]]
"""Locations, leaf first, each with its functions, the innermost first."""


def made(stacks: Sequence[Stack], drop: str = "", keep: str = "") -> Profile:
    """A profile of stacks; equal locations are one. The value of a stack is a bit of its own."""
    known: dict[tuple[str, ...], int] = {}

    def place(functions: Sequence[str]) -> Place:
        row = known.setdefault(tuple(functions), len(known))
        return Place(EXE.start + row, 1, tuple(Line(name, "a.c", 7) for name in functions))

    rows = [([place(each) for each in stack], (1 << number,)) for number, stack in enumerate(stacks)]
    profile = load(pprof_writer.profile([EXE], rows), "made")
    profile.drop_frames, profile.keep_frames = profile.strings.add(drop.encode()), profile.strings.add(keep.encode())
    return profile


def names(profile: Profile) -> list[list[str]]:
    """The functions on the stack of each sample, leaf first."""
    return [[frame.function for frame in stack] for stack in profile.stacks()]


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("f(int)", "f"),
        ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
        ("A::operator()(int) const", "A::operator()"),
        (".f", "f"),
        ("operator new(unsigned long)", "operator new"),
        ("()", ""),
    ],
)
def test_arguments_do_not_count(name: str, bare: str) -> None:
    """Names lose their arguments, not parentheses that are part of them (R347, pruned frames)."""
    assert without_arguments(name) == bare


@pytest.mark.parametrize(
    ("stack", "left"),
    [
        ([["malloc"], ["work"], ["main"]], ["work", "main"]),
        ([["f"], ["malloc"], ["work"], ["malloc"], ["main"]], ["main"]),
        ([["f"], ["malloc"]], ["f", "malloc"]),
        ([["malloc"]], ["malloc"]),
        ([["f"], ["inner", "malloc", "outer"], ["main"]], ["outer", "main"]),
        ([["f"], ["outer", "malloc"], ["main"]], ["main"]),
        ([["f"], ["main"]], ["f", "main"]),
    ],
)
def test_prune(stack: Stack, left: list[str]) -> None:
    """From the root on a stack ends before what is dropped, behind its first other frame (R347, pruned frames)."""
    assert names(prune(made([stack]), "malloc")) == [left]
    assert names(prune(made([stack], drop="malloc"), own=True)) == [left]
    assert names(prune(made([stack], drop="malloc"))) == [[each for location in stack for each in location]]
    assert names(prune(made([stack]), "malloc|f", keep="malloc|f")) == names(made([stack]))


def test_lines_are_cut_for_all_stacks() -> None:
    """A location that is dropped in part is so on every stack, as in pprof."""
    stacks = [[["inner", "malloc", "outer"], ["main"]], [["inner", "malloc", "outer"]]]
    assert names(prune(made(stacks), "malloc")) == [["outer", "main"], ["outer"]]


@pytest.mark.parametrize(
    ("stack", "left"),
    [
        ([["a"], ["b"], ["c"], ["b"], ["d"]], ["b", "c", "b", "d"]),
        ([["a"], ["x", "b", "y"], ["d"]], ["b", "y", "d"]),
        ([["a"], ["d"]], ["a", "d"]),
    ],
)
def test_prune_from(stack: Stack, left: list[str]) -> None:
    """All below the innermost match goes, not the match itself."""
    assert names(prune_from(made([stack]), "^b$")) == [left]


@st.composite
def stacks(draw: st.DrawFn) -> list[Stack]:
    """Stacks of few locations, which recur."""
    places = draw(st.lists(st.lists(st.sampled_from(NAMES), max_size=3).map(tuple), min_size=1, max_size=5))
    return draw(st.lists(st.lists(st.sampled_from(places), max_size=5), max_size=5))


def pruned(stacks: Sequence[Stack], drop: str) -> list[list[str]]:
    """Stacks as pprof's documentation of Prune has them, one frame and one stack after another."""

    def is_hit(name: str) -> bool:
        return re.fullmatch(drop, without_arguments(name)) is not None

    left = []
    for stack in stacks:
        cut, user = 0, False
        for at in range(len(stack) - 1, -1, -1):
            if not any(map(is_hit, stack[at])):
                user = True
            elif user:
                cut = at + 1 if is_hit(stack[at][-1]) else at
                break
        frames: list[str] = []
        for location in stack[cut:]:
            hits = [row for row, name in enumerate(location) if is_hit(name)]
            first = hits[-1] + 1 if hits and hits[-1] < len(location) - 1 else 0
            frames += location[first:] or [""]
        left.append(frames)
    return left


@given(stacks(), st.sampled_from(["malloc", "operator new|malloc", "main", ".*", "dotted|new"]))
def test_prune_is_that_of_pprof(stacks: list[Stack], drop: str) -> None:
    """Whatever the stacks."""
    assert names(prune(made(stacks), drop)) == pruned(stacks, drop)


MIXED: list[Stack] = [
    [["malloc"], ["operator new(unsigned long)", "make"], ["work"], ["main"]],
    [["inner", "malloc", "work"], ["main"]],
    [["inner", "malloc", "work"]],
    [["(anonymous namespace)::helper(int)"], ["malloc"], ["main"]],
    [["malloc"], ["malloc"]],
    [["new"], [".dotted"], ["main"]],
]


@pytest.mark.needs("go")
@pytest.mark.parametrize(
    ("drop", "keep", "options"),
    [
        ("malloc", "", []),
        ("malloc|operator new", "", []),
        (".*", "main|work", []),
        ("[[:alpha:]]+", "", []),
        ("[[:^upper:]]*ma[[:^digit:]]+", "", []),
        (r"\(anonymous namespace\)::helper|dotted", "", []),
        ("", "", ["-prune_from=work|helper"]),
        ("malloc", "", ["-prune_from=^main$"]),
    ],
)
def test_pprof_prunes_the_same(drop: str, keep: str, options: list[str], tmp_path: Path) -> None:
    """Stacks are those that pprof writes for the same expressions in the profile."""
    profile = made(MIXED, drop, keep)
    theirs = pprof(tmp_path, [encode(profile)], *options)
    ours = prune(profile, own=True)
    for option in options:
        ours = prune_from(ours, option.partition("=")[2])
    assert summed(ours) == summed(theirs)


def test_expressions_that_are_none() -> None:
    """Those of a profile are a warning, those of the caller an error with the name of the parameter."""
    profile = prune(made(MIXED, drop="("), own=True)
    assert names(profile) == names(made(MIXED))
    assert profile.warnings == [
        "nothing is dropped as the profile asks for: drop: '(' is not a regular expression: missing )"
    ]
    for name in ("drop", "keep", "prune_from"):
        with pytest.raises(UsageError, match=rf"{name}: '\(' is not a regular expression"):
            Edits(**{"prune": True, name: "("})
    with pytest.raises(UsageError, match="keep has an effect only with drop or prune"):
        Edits(keep="x")


def test_a_profile_asks_for_no_endless_match() -> None:
    """An expression that repeats what repeats takes no longer than others (R425, regular expressions)."""
    name = "a" * 80 + "!"
    assert names(prune(made([[[name], ["main"]]], drop="(a|aa)+"), own=True)) == [[name, "main"]]
    assert names(prune(made([[[name], ["main"]]], drop="(a|aa)+!"), own=True)) == [["main"]]


def test_edits_do_not_change_the_profile() -> None:
    """The given profile stays; no edits do nothing."""
    profile = made(MIXED, "malloc")
    before = encode(profile)
    edits = Edits([("a.c", "b.c")], ["/x"], prune=True, drop="work", prune_from="main", synthesize=True)
    edits.apply(profile)
    assert encode(profile) == before
    assert not Edits()
    assert Edits().apply(profile) is profile


@pytest.mark.parametrize(
    ("path", "prefixes", "trimmed", "expected"),
    [
        ("/src/a.c", [("/src", "/home/user")], [], "/home/user/a.c"),
        ("/src/a.c", [("/src/", "/home/user/")], [], "/home/user/a.c"),
        ("/src/a.c", [("/src", "")], [], "a.c"),
        ("/src/a.c", [("/src", "/")], [], "/a.c"),
        ("/src2/a.c", [("/src", "/home/user")], [], "/src2/a.c"),
        ("/src/lib/a.c", [("/src", "/x"), ("/src/lib", "/y")], [], "/y/a.c"),
        ("/src", [("/src", "/x")], [], "/src"),
        ("/src/a.c", [("/", "root")], [], "root/src/a.c"),
        ("/src/a.c", [("/src", "/x"), ("/x", "/y")], [], "/x/a.c"),
        ("/src/a.c", [("/src", "/x/y")], ["/x"], "y/a.c"),
        ("/src/a.c", [], ["/other:/src/"], "a.c"),
        ("/srcs/a.c", [], ["/src"], "/srcs/a.c"),
        ("/proc/self/cwd/./a.c", [], ["/src"], "a.c"),
        ("/proc/self/cwd/a.c", [], [], "/proc/self/cwd/a.c"),
        ("a\\b.c", [("a", "c")], [], "a\\b.c"),
    ],
)
def test_paths(path: str, prefixes: list[tuple[str, str]], trimmed: list[str], expected: str) -> None:
    """The longest prefix is replaced, then a folder is trimmed; folders match as a whole."""
    profile = load(pprof_writer.profile([EXE], [([Place(EXE.start, 1, (Line("f", path, 1),))], (1,))]), "made")
    (stack,) = rewrite_paths(profile, prefixes, trimmed).stacks()
    assert stack[0].file == expected
    assert next(profile.stacks())[0].file == path


def test_pairs() -> None:
    """The first equals sign parts the folders; the second may be empty, unless it must not."""
    assert pairs_of("x", ["a=b=c", "d="]) == [("a", "b=c"), ("d", "")]
    for text, may_be_empty in (("a", True), ("=b", True), ("a=", False)):
        with pytest.raises(UsageError, match="has to be OLD=NEW"):
            pairs_of("x", [text], may_be_empty=may_be_empty)


def test_synthesize() -> None:
    """Code without names is called by its place, other code and the flags of mappings stay."""
    vdso, nameless = Mapping(0x7FFF0000, 0x7FFF1000, 0, "[vdso]"), Mapping(0x100000, 0x101000, 0, "")
    places = [
        Place(EXE.start + 0x10, 1),
        Place(EXE.start + 0x20, 1, (Line("f"), Line("g"))),
        Place(vdso.start + 0x30, 2),
        Place(nameless.start + 0x40, 3),
        Place(0x50, 0),
        Place(0, 0),
        Place(EXE.start - 0x10, 1),  # below the mapping that it is said to be in
    ]
    profile = load(pprof_writer.profile([EXE, vdso, nameless], [(places, (1,))]), "made")
    named = synthesize(profile)
    assert names(named) == [["[app+0x1010]", "f", "g", "[vdso]+0x30", "0x100040", "0x50", "", "[app+0x3ffff0]"]]
    assert not named.mappings.has_functions.any()
    assert synthesize(named).locations is named.locations or names(synthesize(named)) == names(named)
    profile.address_kinds = np.array([AddressKind.IN_FILE, *[AddressKind.PROCESS] * 2], np.uint8)
    assert names(synthesize(profile))[0][0] == f"[app+{EXE.start + 0x10:#x}]"


def test_results_follow_the_edits() -> None:
    """`resolved` is of the locations that are left; equal samples are one; the report is on all."""
    edits = symbolize.Edits(drop=".*Parser::.*", synthesize=True, path_prefixes=[("/src", "src")])
    plain, edited = (
        symbolize.symbolize(LEDGER, BINARIES / "gcc-pie", symbolize.Options(edits=each)) for each in (None, edits)
    )
    assert len(edited.resolved) == len(edited.profile.locations) < len(plain.profile.locations)
    assert len(edited.profile.samples) < len(plain.profile.samples)
    assert edited.profile.samples.values.sum() == plain.profile.samples.values.sum()
    assert edited.report.percent == plain.report.percent
    frames = [frame for stack in edited.profile.stacks() for frame in stack]
    assert all(frame.function and "Parser::" not in frame.function for frame in frames)
    assert any(frame.file.startswith("src/") for frame in frames)
    assert not any(frame.file.startswith("/src") for frame in frames)
    broken = symbolize.load(LEDGER)
    broken.drop_frames = broken.strings.add(b"(")
    report = symbolize.symbolize(broken, options=symbolize.Options(edits=symbolize.Edits(prune=True))).report
    assert any("nothing is dropped" in warning for warning in report.warnings)

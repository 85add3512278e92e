"""The classifier notices wrong answers: bugs put into right ones, at real addresses of real binaries."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import pytest

from symbolize.core.cursor import COMPILED
from symbolize.elf import ElfImage
from tests.support.fixture_files import BINARIES
from tests.support.lookup import Frame
from tools.llvm.compare_llvm import NEEDED, answers
from tools.llvm.judge import Judge

ADDRESSES = 200 if COMPILED else 60
NOTICED = 0.95
PLAIN = ("gcc-pie/ledger", "gcc-pie/spectra", "gcc-o0/ledger", "clang-pie/libresonance.so", "aarch64/libresonance.so")
SHARED = ("twins/gold-all/twins", "twins/lld-all/twins", "twins/lld-safe/twins", "twins/mold-all/twins")

pytestmark = pytest.mark.needs(*NEEDED)


class Case(NamedTuple):
    """An address with the right answer, and its class."""

    vaddr: int
    ours: list[Frame]
    theirs: list[Frame]
    folded: bool
    kind: str | None


@cache
def judged(name: str) -> tuple[Judge, list[Case]]:
    """The classifier of a binary, and addresses of it."""
    path = BINARIES / name
    with ElfImage.open(path) as image:
        judge = Judge(image)
    found = [(*row, judge.classify(*row)) for row in answers(path, ADDRESSES)]
    return judge, [Case(*row) for row in found]


Bug = Callable[[list[Frame]], list[Frame] | None]
"""Makes a right answer wrong; None where it has nothing to change."""


def scoped(frames: list[Frame]) -> int | None:
    """The first frame whose name has scopes."""
    return next((i for i, frame in enumerate(frames) if "::" in frame.name.partition("<")[0]), None)


def renamed(frames: list[Frame], index: int, name: str) -> list[Frame]:
    """An answer with another name in it."""
    return [*frames[:index], frames[index]._replace(name=name), *frames[index + 1 :]]


def other_scope(frames: list[Frame]) -> list[Frame] | None:
    """A function is put into another namespace."""
    index = scoped(frames)
    return None if index is None else renamed(frames, index, "wrong::" + frames[index].name.rpartition("::")[2])


def one_more_scope(frames: list[Frame]) -> list[Frame] | None:
    """A function gets a namespace around its own."""
    index = scoped(frames)
    return None if index is None else renamed(frames, index, "wrong::" + frames[index].name)


def one_scope_less(frames: list[Frame]) -> list[Frame] | None:
    """A function loses its outermost scope but not all."""
    index = scoped(frames)
    name = "" if index is None else frames[index].name.partition("::")[2]
    return None if index is None or "::" not in name.partition("<")[0] else renamed(frames, index, name)


def other_line(frames: list[Frame]) -> list[Frame] | None:
    """The innermost line is one too high."""
    return [frames[0]._replace(line=frames[0].line + 1), *frames[1:]] if frames and frames[0].line else None


def other_call(frames: list[Frame]) -> list[Frame] | None:
    """The line of a call is one too high."""
    return [*frames[:-1], frames[-1]._replace(line=frames[-1].line + 1)] if len(frames) > 1 else None


def other_file(frames: list[Frame]) -> list[Frame] | None:
    """The innermost file is another one."""
    return [frames[0]._replace(file="/wrong.cc"), *frames[1:]] if frames and frames[0].file else None


def no_chain(frames: list[Frame]) -> list[Frame] | None:
    """Inlined functions are gone, with the place of the innermost one in the function around them."""
    inner = frames[0] if frames else Frame("")
    places = {"file": inner.file, "line": inner.line, "column": inner.column}
    return [frames[-1]._replace(**places)] if len(frames) > 1 else None  # type: ignore[arg-type]


def no_innermost(frames: list[Frame]) -> list[Frame] | None:
    """The innermost inlined function is gone."""
    return frames[1:] if len(frames) > 1 else None


def nothing(frames: list[Frame]) -> list[Frame] | None:
    """There is no answer."""
    return [] if frames and frames[0].line else None


def other_declaration(frames: list[Frame]) -> list[Frame] | None:
    """The line of the declaration is one too high."""
    return [*frames[:-1], frames[-1]._replace(start_line=frames[-1].start_line + 1)] if frames else None


def other_function(frames: list[Frame]) -> list[Frame] | None:
    """Another function has the place."""
    return (
        [*frames[:-1], frames[-1]._replace(name="main")] if frames and not frames[-1].name.startswith("main") else None
    )


BUGS = (
    *(other_scope, one_more_scope, one_scope_less, other_line, other_call, other_file),
    *(no_chain, no_innermost, nothing, other_declaration, other_function),
)


def share_noticed(
    names: tuple[str, ...], bug: Bug, folded: bool | None = None, kinds: frozenset[str] = frozenset()
) -> float:
    """The share of addresses that have no class with a bug; `kinds` are the classes of right answers, if given."""
    noticed = total = 0
    for name in names:
        judge, cases = judged(name)
        for case in cases:
            wrong = bug(case.ours)
            if wrong is None or wrong == case.ours or (kinds and case.kind not in kinds):
                continue
            total += 1
            noticed += judge.classify(case.vaddr, wrong, case.theirs, case.folded if folded is None else folded) is None
    assert total >= 10, (bug.__name__, total)

    return noticed / total


@pytest.mark.parametrize("name", PLAIN + SHARED)
def test_right_answers_have_a_class(name: str) -> None:
    """What is tested with bugs below has none."""
    assert all(case.kind for case in judged(name)[1])


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
@pytest.mark.parametrize("folded", [None, True], ids=["as it is", "all folded"])
@pytest.mark.full
def test_bugs_are_noticed(bug: Bug, folded: bool | None) -> None:
    """A wrong name, scope, place or chain has no class, also where everything is called folded."""
    assert share_noticed(PLAIN, bug, folded) >= NOTICED


@pytest.mark.parametrize(
    "bug", [other_line, other_file, nothing, other_declaration, other_function], ids=lambda bug: bug.__name__
)
@pytest.mark.parametrize("folded", [None, True], ids=["as it is", "all folded"])
def test_bugs_in_shared_code_are_noticed(bug: Bug, folded: bool | None) -> None:
    """So where several functions share the code, or one has several names."""
    assert share_noticed(SHARED, bug, folded, frozenset({"folded", "alias"})) >= NOTICED


@pytest.mark.parametrize("bug", [other_line, other_call, no_chain, no_innermost], ids=lambda bug: bug.__name__)
def test_bugs_where_names_differ_are_noticed(bug: Bug) -> None:
    """So where a constructor has two names (C1 and C2), or a name scopes that llvm-symbolizer leaves out."""
    assert share_noticed(PLAIN, bug, None, frozenset({"alias", "qualified"})) >= NOTICED


@pytest.mark.full
def test_right_answers_called_folded_are_noticed() -> None:
    """Code of one function that is called folded has no class."""
    noticed = [judge.classify(*case[:3], True) is None for judge, cases in map(judged, PLAIN) for case in cases]
    assert sum(noticed) >= NOTICED * len(noticed)


@pytest.mark.needs("objdump")
def test_entries_of_linkage_tables() -> None:
    """The entry of a linkage table has the name that objdump gives it, and no place (rule R263)."""
    judge, _ = judged("gcc-pie/ledger")
    vaddr, name = next(entry for entry in judge.entries if entry[1])
    assert judge.classify(vaddr, [Frame(name)], [], False) == "entry"
    assert judge.classify(vaddr, [Frame("wrong@plt")], [], False) is None
    assert judge.classify(vaddr, [Frame(name, "/wrong.c", 1)], [], False) is None

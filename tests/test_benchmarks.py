"""What the benchmarks count on: costs of processes, answers of other engines in one form, the vote."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The scripts import each other by their bare names."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    yield
    for name in set(sys.modules) - before:
        if "benchmarks" in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def module(name: str) -> Any:
    """A script of the benchmarks."""
    return import_module(name)


def test_a_failing_contender_is_out() -> None:
    """Who fails or takes too long has a reason instead of runs, and stops nobody."""
    measure = module("measure")
    commands = {
        "good": "import sys; print('seen', sys.stdin.read())",
        "bad": "raise ValueError('no')",
        "late": "import time; time.sleep(60)",
    }
    stdin = Path(__file__)
    contenders = [
        measure.Contender(name, [sys.executable, "-I", "-S", "-c", code], stdin, keep_output=True)
        for name, code in commands.items()
    ]
    contenders.append(measure.Contender("missing", ["/nowhere/at/all"]))
    results = measure.race(contenders, 2, 1)
    assert [len(results[name].runs) for name in ("good", "bad", "late", "missing")] == [2, 0, 0, 0]
    assert results["good"].runs[0].output == f"seen {stdin.read_text()}\n"
    assert results["bad"].trouble == "exit code 1: ValueError: no"
    assert results["late"].trouble == "more than 1 s"
    assert "nowhere" in results["missing"].trouble


def test_peak_is_that_of_the_command() -> None:
    """The memory of who measures is not counted."""
    measure = module("measure")
    ballast = bytearray(200 << 20)
    run = measure.run_once(measure.Contender("small", [sys.executable, "-I", "-S", "-c", "pass"]), 60)
    assert 0 < run.memory < 100 < len(ballast) >> 20


def test_answers_of_addr2line() -> None:
    """Frames of addr2line and eu-addr2line, with what they put behind functions and lines; unknown ones are none."""
    answers = module("answers")
    text = """\
0x0000000000001000
inner inlined at /src/a.c:7:3 in outer.cold
/src/b.h:3:5
outer
/src/a.c:7 (discriminator 2)
0x0000000000001001
??
??:0
0x0000000000001002
f
/src/c.c:?
"""
    assert list(answers.of_addr2line(text.splitlines())) == [
        (("inner", "/src/b.h", 3), ("outer", "/src/a.c", 7)),
        (),
        (("f", "/src/c.c", 0),),
    ]


def test_names_and_paths_are_compared_by_what_they_mean() -> None:
    """Clone suffixes, versions, mangling and missing scopes make no difference; other scopes and folders do."""
    answers = module("answers")
    assert answers.same_function("_ZN1a1bEv.cold", "b")
    assert answers.same_function("f@@V1", "f.constprop.0")
    assert not answers.same_function("_ZN1a1bEv", "_ZN1c1bEv")
    assert answers.same_file("./obj/../src/./x.c", "/build/src/x.c")
    assert not answers.same_file("/a/x.c", "/b/x.c")
    assert not answers.same_file("", "x.c")


def test_the_vote() -> None:
    """Two engines make a reference, one does not; two pairs make two."""
    reference = module("agreement").reference
    assert reference(["a", "b", "a", "c"]) == {"a"}
    assert reference(["a", "b"]) == set()
    assert reference(["a", "b", "b", "a"]) == {"a", "b"}
    assert reference([]) == set()


def test_only_its_section_is_replaced() -> None:
    """The section of a page is replaced, or comes at the end; the others stay."""
    replace = module("agreement").replace_section
    section = "## Against four engines\n\nnew\n"
    assert replace("# Page\n\ntext\n", section) == f"# Page\n\ntext\n\n{section}"
    old = "# Page\n\n## Against four engines\n\nold\n\n## Other\n\nrest\n"
    assert replace(old, section) == f"# Page\n\n{section}\n## Other\n\nrest\n"

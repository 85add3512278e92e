"""Several recordings a side: what differs by more than recordings of one program do."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from symbolize.analysis.spread import LEVEL, MAX_SPLITS, p_values, splits
from symbolize.cli import main
from symbolize.core.arrays import Float64
from tests.support.fixture_files import BINARIES, FIXTURES
from tests.support.pprof_writer import Line, Mapping, Place, profile

SHARES = [0.3, 0.15, *[0.45 / 148] * 148, 0.1]
"""Of the functions of a program, of which the last is the root."""
MAPPING = Mapping(0x1000, 0x90000, 0, "/bin/app")


def recorded(random: np.random.Generator, count: int, shares: list[float], noise: float = 0.03) -> Float64:
    """So many recordings of 5,000 samples: what a function takes varies, and the counts do."""
    weights = np.array(shares) * np.exp(random.normal(0, noise, (count, len(shares))))
    return random.multinomial(5000, weights / weights.sum(axis=1, keepdims=True)) / 5000


def test_a_program_against_itself() -> None:
    """Of 20 recordings, however they are split, about one comparison of 100 shows any change."""
    random = np.random.default_rng(5)
    own = recorded(random, 20, SHARES, 0.1)
    changed = [(p_values(own[random.permutation(20)], 10) <= LEVEL).any() for _ in range(100)]
    assert sum(changed) <= 5
    assert not changed[0]


@pytest.mark.parametrize("row", [0, 1, 7])
def test_a_change_of_five_points(row: int) -> None:
    """Is told from the spread of five recordings a side, of a small function and of a large one."""
    random = np.random.default_rng(6)
    for _ in range(10):
        shares = [share * (0.95 - SHARES[row]) / (1 - SHARES[row]) for share in SHARES]  # all others shrink
        shares[row] = SHARES[row] + 0.05
        own = np.concatenate((recorded(random, 5, SHARES), recorded(random, 5, shares)))
        assert p_values(own, 5)[row] <= LEVEL


TABULATED = [
    ([0.201, 0.214, 0.195, 0.209, 0.22], [0.221, 0.23, 0.212, 0.236, 0.228], 8, 252),
    ([0.201, 0.214, 0.195, 0.209, 0.22], [0.221, 0.23, 0.212, 0.236], 7, 126),
    ([0.201, 0.214, 0.195, 0.209, 0.22], [0.2, 0.21, 0.19], 19, 56),
    ([0.1, 0.2, 0.3, 0.4, 0.5], [0.3, 0.31, 0.32, 0.28, 0.29, 0.9], 260, 462),
]
"""What `permutation_test` of scipy 1.16 counts for the difference of means without its sign, of all splits."""


@pytest.mark.parametrize(("base", "new", "count", "all_splits"), TABULATED)
def test_p_values_of_scipy(base: list[float], new: list[float], count: int, all_splits: int) -> None:
    """Of one function they are those of scipy's permutation test."""
    own = np.array([[*base, *new]]).T
    assert len(splits(len(own), len(base))) == all_splits
    assert p_values(own, len(base)).tolist() == pytest.approx([count / all_splits])


def test_splits() -> None:
    """All if there are few, else as many as are tried, the first of which is how the recordings are."""
    assert len(np.unique(splits(8, 3), axis=0)) == 56
    drawn = splits(20, 10)
    assert drawn.shape == (MAX_SPLITS, 20) and (drawn.sum(axis=1) == 10).all()
    assert drawn[0].tolist() == [1] * 10 + [0] * 10
    assert (splits(20, 10) == drawn).all()


def test_recordings_that_do_not_vary() -> None:
    """Any change is one then, and none where nothing differs; rounding is no difference."""
    own = np.array([[0.25, 0.5, 0.25]] * 5 + [[0.25 + 1e-15, 0.4, 0.35]] * 5)
    assert (p_values(own, 5) <= LEVEL).tolist() == [False, True, True]
    assert p_values(np.ones((10, 2)), 5).tolist() == [1, 1]
    assert (p_values(np.array([[0.5, 0.5]] * 5 + [[-0.5, 0.5]] * 5), 5) <= LEVEL).tolist() == [True, False]


@pytest.fixture
def _recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Recordings old0.pb to old9.pb of a program, and new0.pb to new4.pb in which `f1` takes more, each of another
    length."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(7)
    places = [Place(0x1000 + row, 1, (Line(f"f{row}"),)) for row in range(8)]
    for name, count, more in (("old", 10, 0), ("new", 5, 0.08)):
        for number in range(count):
            length = int(random.integers(2000, 9000))
            counts = random.multinomial(length, np.array([0.4, 0.2 + more, *[0.4 / 6] * 6]) / (1 + more))
            stacks = [
                ([place, places[0]], [int(value) * (1000 if number % 2 else 1)])
                for place, value in zip(places, counts, strict=True)
            ]
            unit = "nanoseconds" if number % 2 else "microseconds"
            Path(f"{name}{number}.pb").write_bytes(profile([MAPPING], stacks, types=[("cpu", unit)]))


def bases(*numbers: int) -> list[str]:
    """The options for so many recordings of the base."""
    return [word for number in numbers for word in ("--base", f"old{number}.pb")]


NEW = [f"new{number}.pb" for number in range(5)]


@pytest.mark.usefixtures("_recordings")
def test_diff_of_recordings(capsys: pytest.CaptureFixture[str]) -> None:
    """What changed comes first, in shares, whatever the lengths; the last line counts the rest."""
    assert main(["diff", *bases(0, 1, 2, 3, 4), *NEW, "-n", "3"]) == 0
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert re.fullmatch(r"cpu: mean [\d.]+ms of 5, base mean [\d.]+ms of 5", lines[0])
    assert lines[1].split() == ["change", "base", "±", "new", "±", "cum", "change", "judgement", "function"]
    assert lines[2].split()[6:] == ["changed", "f1"] and 4 < float(lines[2].split()[0]) < 8
    assert re.fullmatch(r"\d functions? changed, \d within the spread of the recordings; the means differ.*", lines[-1])
    assert len(lines) == 6 and output.err == ""
    assert main(["diff", *bases(0, 1, 2, 3, 4), *NEW, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [len(found[key]) for key in ("base", "profiles", "rows")] == [5, 5, 8]
    assert found["changed"] + found["within"] == 8 and found["unclear"] == 0
    row = found["rows"][0]
    assert (row["function"], row["judgement"]) == ("f1", "changed") and row["p_value"] <= found["level"]
    assert row["change_points"] == pytest.approx(row["new_percent"] - row["base_percent"])
    assert [line.split()[0] for line in lines[2:5]] == [f"{row['change_points']:+.2f}" for row in found["rows"][:3]]


@pytest.mark.usefixtures("_recordings")
def test_diff_of_one_program(capsys: pytest.CaptureFixture[str]) -> None:
    """Shows no change."""
    assert main(["diff", *bases(0, 2, 4, 6, 8), *(f"old{number}.pb" for number in (1, 3, 5, 7, 9))]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "0 functions changed, 8 within the spread of the recordings; the means differ, and only shares are compared"
    )


@pytest.mark.usefixtures("_recordings")
def test_diff_of_few_recordings(capsys: pytest.CaptureFixture[str]) -> None:
    """They are said to be too few: what does not overlap is unclear, and one recording has no deviation."""
    assert main(["diff", *bases(0, 1), NEW[0], "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["changed"], found["rows"][0]["function"], found["rows"][0]["judgement"]) == (0, "f1", "unclear")
    assert all(row["p_value"] is None and row["new_deviation"] is None for row in found["rows"])
    assert main(["diff", *bases(0), *NEW[:2]]) == 2
    assert "--base names one recording, and 2 are compared with it" in capsys.readouterr().err
    assert main(["diff", *bases(0, 1), *NEW[:2], "--markdown"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("### What changed: `old0.pb` and 1 more → `new0.pb` and 1 more\n")
    assert "\ntoo few recordings to tell a change from their spread (5 a side can): " in output
    assert main(["diff", *bases(0), "new0.pb"]) == 0
    both = capsys.readouterr().out
    assert main(["diff", "old0.pb", "new0.pb"]) == 0
    assert capsys.readouterr().out == both


def test_notes_on_recordings(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """How complete and how sure the names of all recordings are is a line each, not one for each recording."""
    monkeypatch.setattr("symbolize.cli.terminal.FEW_NAMES", 101.0)
    prof = str(FIXTURES / "profiles" / "gperftools" / "ledger-gcc-pie.prof")
    folder = str(BINARIES / "gcc-pie")
    assert main(["diff", "--base", prof, "--base", prof, prof, prof, prof, "-b", folder]) == 0
    few, sure = capsys.readouterr().err.splitlines()
    assert few.startswith(f"note: {prof}, with the fewest names of 5 recordings: ") and f"symbolize {prof} -b" in few
    assert sure.startswith(f"note: {prof} and 4 more: not proved to be what ran: ledger, ")
    assert main(["diff", "--base", prof, "--base", prof, prof, "-b", folder, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert all(each["caveats"] for each in found["base"] + found["profiles"])


@pytest.mark.usefixtures("_recordings")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([*bases(0, 1), *NEW, "--merge", "all"], 2, "--merge all leaves one recording of several"),
        ([*bases(0, 1), *NEW, "--normalize"], 2, "--normalize has no effect on several recordings"),
        ([*bases(0, 1), "empty.pb"], 1, "empty.pb: has no value, so there are no shares to compare"),
        ([*bases(0, 1), "other.pb"], 2, "sample type"),
        ([*bases(0), "--base", "", *NEW], 2, "a profile has an empty name"),
    ],
)
def test_recordings_refused(arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be compared, or would have no effect, is one line."""
    place = Place(0x1000, 1, (Line("f"),))
    Path("empty.pb").write_bytes(profile([MAPPING], [([place], [0])], types=[("cpu", "nanoseconds")]))
    Path("other.pb").write_bytes(profile([MAPPING], [([place], [5])], types=[("faults", "count")]))
    assert main(["diff", *arguments, "-q"]) == code
    output = capsys.readouterr()
    assert message in output.err and output.err.count("\n") == 1 and not output.out

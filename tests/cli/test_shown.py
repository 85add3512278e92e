"""`symbolize view`, `top`, `tree`, `list` and `diff`: what they print of profiles, and of what is wrong with these."""

from pathlib import Path

import pytest

from symbolize.cli import main
from tests.support.pprof_writer import Line, Mapping, Place, profile

MAPPING = Mapping(0x1000, 0x90000, 0, "/bin/app")
WORK = Place(0x1010, 1, (Line("work", "/src/a.c", 3),))
MAIN = Place(0x1020, 1, (Line("main", "/src/a.c", 6),))
BARE = Place(0x1030, 1, (Line("bare"),))
SOURCE = "/* a */\n\f\nint work() { return 1; }\r\n\n\n  main() {\n"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command runs in a folder with a profile and its source."""
    monkeypatch.chdir(tmp_path)
    Path("x.pb").write_bytes(profile([MAPPING], [([WORK, MAIN], [3]), ([BARE, MAIN], [1])]))
    Path("src").mkdir()
    Path("src/a.c").write_text(SOURCE)


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    """Lines are those of compilers, which end at line feeds only, with their values and some around them."""
    assert main(["list", "work", "x.pb", "--source", "src"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "samples: 4",
        "work in /src/a.c",
        "         .          .      1  /* a */",
        "         .          .      2  \\x0c",
        "         3          3      3  int work() { return 1; }",
        "         .          .      4",
        "         .          .      5",
        "         .          .      6    main() {",
    ]
    assert main(["list", "main", "x.pb"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "main in /src/a.c (source not found)",
        "         .          4      6",
    ]


@pytest.mark.parametrize("regex", ["bare", "nothing"])
def test_list_without_lines(regex: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A function without lines, or that there is not, is an error and no table."""
    assert main(["list", regex, "x.pb"]) == 1
    output = capsys.readouterr()
    assert output.err == f"symbolize: x.pb: has no function with source lines that matches '{regex}'\n"
    assert output.out == ""

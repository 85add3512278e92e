"""Options from symbolize.toml and the environment: which wins, what a file may set, and what is wrong with one."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from symbolize.cli import main
from symbolize.cli.arguments import ANYWHERE, OWN, long_name
from symbolize.cli.batch import batch_parser
from symbolize.cli.commands import COMMANDS, parser_of
from symbolize.cli.profiles import parser
from symbolize.core.errors import UsageError


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder `project/sub`, with a home folder beside it and no variables."""
    (tmp_path / "project" / "sub").mkdir(parents=True)
    (tmp_path / "home" / ".config" / "symbolize").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project" / "sub")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("SYMBOLIZE_NO_CONFIG", raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], Path]:
    """Writes the file of the project, in the folder above the current one."""

    def write(text: str) -> Path:
        path = tmp_path / "project" / "symbolize.toml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def own(tmp_path: Path) -> Callable[[str], Path]:
    """Writes the file of the user."""

    def write(text: str) -> Path:
        path = tmp_path / "home" / ".config" / "symbolize" / "symbolize.toml"
        path.write_text(text)
        return path

    return write


def given(*arguments: str) -> argparse.Namespace:
    """The options of the command with these arguments."""
    return parser().parse_args(["x.prof", *arguments])


def test_precedence(
    own: Callable[[str], Path], project: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Command line over environment over the file of the project over that of the user over the default."""
    assert given().demangle == "default"
    own('demangle = "templates"')
    assert given().demangle == "templates"
    project('demangle = "full"')
    assert given().demangle == "full"
    monkeypatch.setenv("SYMBOLIZE_DEMANGLE", "none")
    assert given().demangle == "none"
    assert given("--demangle", "default").demangle == "default"
    assert given("--no-config").demangle == "default"
    monkeypatch.setenv("SYMBOLIZE_NO_CONFIG", "1")
    assert given().demangle == "default"


def test_a_list_is_replaced(
    own: Callable[[str], Path], project: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As every other value. Paths in a file are relative to its folder, those of the environment to the current one."""
    own('binaries = ["debug", "/usr/lib", "~/bin"]')
    assert given().binaries == [f"{tmp_path}/home/.config/symbolize/debug", "/usr/lib", f"{tmp_path}/home/bin"]
    project('binaries = ["build", "other"]\nproguard-map = "com.app=map.txt"')
    options = given()
    folder = str(tmp_path / "project")
    assert options.binaries == [f"{folder}/build", f"{folder}/other"]
    assert options.proguard_maps == [f"com.app={folder}/map.txt"]
    monkeypatch.setenv("SYMBOLIZE_BINARIES", "a:b")
    assert given().binaries == ["a", "b"]
    assert given("-b", "c").binaries == ["c"]
    Path("folder").mkdir()
    assert given("folder").binaries == ["folder"]


def test_values_of_all_kinds(project: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Flags, numbers and what the environment writes for them."""
    project("nearest-line = true\nfail-under = 90.5\n")
    options = given()
    assert (options.nearest_line, options.fail_under, options.annotate) == (True, 90.5, False)
    monkeypatch.setenv("SYMBOLIZE_NEAREST_LINE", "off")
    monkeypatch.setenv("SYMBOLIZE_CACHE_LIMIT", "1G")
    monkeypatch.setenv("SYMBOLIZE_DEBUGINFOD", "https://a https://b")
    monkeypatch.setenv("SYMBOLIZE_FAIL_UNDER", "")
    options = given()
    assert (options.nearest_line, options.cache_limit, options.fail_under) == (False, 1 << 30, 90.5)
    assert options.debuginfod == ["https://a", "https://b"]


def test_tables_of_commands(project: Callable[[str], Path]) -> None:
    """What is in the table of a command holds for that command, over what is above all tables."""
    project('demangle = "full"\nreport = "json"\n[batch]\ndemangle = "none"\njobs = 3\n[plan]\nbinaries = "x"\n')
    assert (given().demangle, given().binaries, given().report) == ("full", [], "json")
    options = batch_parser().parse_args(["--out", "o", "in"])
    assert (options.demangle, options.jobs) == ("none", 3)
    project('report = "json"\n[symbolize]\nreport = "text"\ndemangle = "full"\n')
    assert (given().report, given().demangle) == ("text", "full")
    options = batch_parser().parse_args(["--out", "o", "in"])
    assert (options.report, options.demangle) == ("json", "default")


def test_defaults_are_kept() -> None:
    """Without settings each option has the default that its parser gives it."""
    for name, arguments in {"": ["x"], "batch": ["--out", "o", "in"], "cache": ["gc"], "index": ["d"]}.items():
        parsed = parser_of(name)
        options = parsed.parse_args(arguments)
        for action in parsed._actions:
            if action.option_strings and action.dest != "out" and action.default is not argparse.SUPPRESS:
                assert getattr(options, action.dest) == action.default


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('demangel = "full"', "demangel: no such setting; did you mean demangle?"),
        ('output = "x"', "output: no such setting"),
        ('missing = "x"', "missing: no such setting"),
        ('demangle = "ful"', "demangle: ful is not one of default, templates, full, none; did you mean full?"),
        ('demangle = ["full"]', "demangle: expected one value, not a list"),
        ("demangle = true", "demangle: expected text, not True"),
        ("nearest-line = 1", "nearest-line: expected true or false, not 1"),
        ("binaries = [1979-05-27]", "binaries: expected text or a list of it, not 1979-05-27"),
        ("fail-under = 101", "fail-under: 101 is not between 0 and 100"),
        ("[bach]\njobs = 1", "[bach]: no such command; did you mean batch?"),
        ("[plan]\nfail-under = 1", "[plan]: fail-under: symbolize plan has no such option"),
        ("a = ", "is not TOML: "),
        ("a = " + "[" * 100_000, "is not TOML: "),
        ("a = " + "1" * 10_000, "is not TOML: "),
        ("#" * (1 << 20) + "\n", "has more than 1,048,576 bytes"),
        ('debuginfod = "https://x"', "debuginfod: only the command line, the environment and ~/.config/symbolize"),
        ('cache = "c"', "cache: only the command line"),
        ("cache-limit = 1", "cache-limit: only the command line"),
        ("[batch]\ncache-limit = 1", "[batch]: cache-limit: only the command line"),
    ],
)
def test_what_is_wrong(
    text: str, message: str, project: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """One line with file and key, exit code 2, before anything is done."""
    path = project(text)
    Path("x.prof").touch()
    assert main(["plan" if "[plan]" in text else "--", "x.prof"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"symbolize: {path}: {message}")
    assert err.count("\n") == 1


def test_the_file_of_the_user_may_do_more(own: Callable[[str], Path], tmp_path: Path) -> None:
    """It alone may name servers and the cache; it is read once if it is the nearest file too."""
    path = own('debuginfod = "https://x"\ncache = "tables"\ncache-limit = "2G"\nsource = "/src"')
    options = given()
    assert (options.debuginfod, options.cache_limit) == (["https://x"], 2 << 30)
    assert options.cache == str(path.parent / "tables")
    os.chdir(path.parent)
    assert given().debuginfod == ["https://x"]


def shown() -> argparse.Namespace:
    """The options of `symbolize view`."""
    return parser_of("view").parse_args(["x.prof"])


@pytest.mark.parametrize("path", ["/", "~/debug", "../other", "link"])
@pytest.mark.parametrize("setting", ["binaries = '{}'", "binaries = ['build', '{}']", "proguard-map = 'com.app={}'"])
def test_a_checkout_names_no_folders_outside(path: str, setting: str, project: Callable[[str], Path]) -> None:
    """It cannot have the machine searched, or other files read."""
    file = project(setting.format(path))
    (file.parent / "link").symlink_to("/")
    with pytest.raises(UsageError, match=rf"{file}: .* leads out of {file.parent}; name it on the command line, or in"):
        given()


@pytest.mark.parametrize("path", ["/etc", "../other", "link"])
@pytest.mark.parametrize("key", ["source", "path-map"])
def test_sources_are_below_the_file(key: str, path: str, project: Callable[[str], Path], tmp_path: Path) -> None:
    """A checkout cannot have other files of the user shown in a page."""
    file = project(f'{key} = "{"/build=" * (key == "path-map")}{path}"')
    (file.parent / "link").symlink_to("/etc")
    with pytest.raises(UsageError, match=rf"{key}: .*{path} leads out of .*project; name it on the command line"):
        shown()
    file.write_text(file.read_text().replace(path, "sub"))
    options = shown()
    folder = file.parent / "sub"
    assert [*options.source, *options.path_map] == [f"{'/build=' * (key == 'path-map')}{folder}"]


@pytest.mark.parametrize("path", ["{home}/=deep/../../..", "x/../../=sub", "a\\u0000b"])
def test_no_other_reading_of_a_pair(path: str, project: Callable[[str], Path], tmp_path: Path) -> None:
    """The folder that is checked is the one that is read, whatever signs and links the value has."""
    file = project(f'path-map = "x={path.format(home=tmp_path / "home")}"')
    (file.parent / "1" / "2" / "3").mkdir(parents=True)
    (file.parent / "deep").symlink_to("1/2/3")
    try:
        new = shown().path_map[0].partition("=")[2]
    except UsageError as error:
        assert str(error).startswith(f"{file}: path-map: ")
    else:
        assert os.path.realpath(new).startswith(f"{os.path.realpath(file.parent)}/")


def test_equals_signs_in_names(project: Callable[[str], Path]) -> None:
    """Only pairs are taken apart, and at the first sign."""
    folder = project('binaries = "a=b"\nproguard-map = "com.app=c=d"').parent
    options = given()
    assert (options.binaries, options.proguard_maps) == ([f"{folder}/a=b"], [f"com.app={folder}/c=d"])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file away: run it as root")
def test_a_file_that_another_user_may_have_put_there(
    project: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in /tmp: it is ignored, with a warning."""
    path = project('demangle = "full"')
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    os.chown(path, 4712, -1)
    assert given().demangle == "full"
    path.parent.chmod(0o1777)
    assert given().demangle == "default"
    assert f"{path}: belongs to another user" in capsys.readouterr().err


def test_mistyped_variables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A variable that resembles a setting is warned of; others belong to other programs."""
    monkeypatch.setenv("SYMBOLIZE_DEMANGEL", "full")
    monkeypatch.setenv("SYMBOLIZE_X", "full")
    monkeypatch.setenv("SYMBOLIZE_FAIL_UNDER", "much")
    with pytest.raises(UsageError, match=r"^SYMBOLIZE_FAIL_UNDER: invalid percentage value: 'much'$"):
        given()
    warning = "symbolize: warning: SYMBOLIZE_DEMANGEL: no such setting; did you mean SYMBOLIZE_DEMANGLE?\n"
    assert capsys.readouterr().err == warning


def test_verbose_names_the_origins(project: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    """With -v, so that a surprising value can be traced."""
    path = project('demangle = "full"\nnearest-line = true')
    given("-v", "--demangle", "none")
    assert capsys.readouterr().err == f"symbolize: settings of {path}: nearest-line\n"


def test_settings_are_options() -> None:
    """Each that exists in some command is spelled as there."""
    options = {long_name(action) for name in ("", *COMMANDS) for action in parser_of(name)._actions}
    assert {*ANYWHERE, *OWN} <= options

"""The completion scripts, in the shells themselves."""

import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

import pytest

from symbolize.cli import main
from symbolize.cli.commands import COMMANDS, parser_of
from symbolize.cli.help import SCRIPTS

CASES = [
    ("symbolize c", {"cache", "completion", "cpu profile"}),
    ("symbolize cpu.prof --dema", {"--demangle"}),
    ("symbolize cpu.prof --demangle t", {"templates"}),
    ("symbolize cache st", {"stats"}),
    ("symbolize batch --retry-q", {"--retry-quarantined"}),
    ("symbolize --emit m", {"module-symbols"}),
    ("symbolize plan --missi", set()),
    ("symbolize help in", {"index", "inspect"}),
]
"""What is typed before the tab, and what is offered."""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one file."""
    monkeypatch.chdir(tmp_path)
    Path("cpu profile").touch()


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The path of the script for a shell."""
    assert main(["completion", shell]) == 0
    Path(".script").write_text(capsys.readouterr().out)
    subprocess.run([shell, "-n", ".script"], check=True)
    return ".script"


@pytest.mark.parametrize("shell", SCRIPTS)
def test_all_options_are_offered(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each option of each command is in each script."""
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    for name in ("", *COMMANDS):
        for action in parser_of(name)._actions:
            for flag in action.option_strings:
                assert flag.lstrip("-") in text
            for choice in action.choices or ():
                assert str(choice) in text


@pytest.mark.needs("bash")
@pytest.mark.parametrize(("line", "offered"), CASES)
def test_bash(line: str, offered: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The function that bash calls."""
    words = line.split(" ")
    code = f"source {script('bash', capsys)}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
    code += "_symbolize 2>&1; printf '%s\\n' \"${COMPREPLY[@]}\""
    run = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, check=True)
    assert set(run.stdout.splitlines()) - {""} == offered
    assert run.stderr == ""


@pytest.mark.needs("fish")
@pytest.mark.parametrize(("line", "offered"), CASES)
def test_fish(line: str, offered: set[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`complete -C` prints what fish would offer."""
    code = f"source {script('fish', capsys)}; complete -C '{line}'"
    home = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / ".config")}
    run = subprocess.run(["fish", "--no-config", "-c", code], capture_output=True, text=True, check=True, env=home)
    assert {each.partition("\t")[0] for each in run.stdout.splitlines()} == offered
    assert run.stderr == ""


def shown_after(command: list[str], typed: str, expected: str) -> str:
    """What a shell has shown on a terminal when it shows `expected`, a pattern, or after a while."""
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe(command[0], command, {**os.environ, "TERM": "dumb", "HOME": os.getcwd()})
    shown = ""
    end = time.monotonic() + 20
    try:
        os.write(terminal, typed.encode())
        while time.monotonic() < end and not re.search(expected, shown):
            if select.select([terminal], [], [], 0.5)[0]:
                shown += os.read(terminal, 1 << 16).decode(errors="replace")
                shown = re.sub("\x1b\\[[^A-Za-z]*[A-Za-z]|\x07|[^\x08]\x08", "", shown)
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
    return shown


@pytest.mark.process
@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("symbolize cpu.prof --dema\tful\t", r"symbolize cpu\.prof --demangle[ =]full"),
        ("symbolize cac\tst\t", r"symbolize cache stats"),
        ("symbolize cpu\\ \t", r"symbolize cpu\\ profile"),
        ("symbolize -b cpu\t", r"symbolize -b cpu\\ profile"),
    ],
)
@pytest.mark.parametrize("shell", [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("bash", "zsh")])
def test_on_a_terminal(shell: str, line: str, completed: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Words are completed by the tab key."""
    path = script(shell, capsys)
    if shell == "bash":
        command, start = ["bash", "--norc", "--noprofile", "-i"], f"source {path}\n"
    else:
        command, start = ["zsh", "-f", "-i"], f'autoload -U compinit; compinit -u -D; eval "$(cat {path})"\n'
    assert re.search(completed, shown_after(command, start + line, completed))

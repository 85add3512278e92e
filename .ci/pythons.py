#!/usr/bin/env python3
"""Tests with every Python that is promised and installed: the main job, the symbol core, the loaders.

Each Python runs them with the oldest dependencies that pyproject.toml admits, and then with the newest. The one that
runs this script is left to the whole suite as for the newest. Its compiled modules lie side by side with those of the
others in the checkout; they use no C interface of numpy, so one build serves for both runs.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TESTS = [
    "tests/core",
    "tests/elf",
    "tests/dwarf",
    "tests/symbols",
    "tests/names",
    "tests/load",
    "tests/write",
    "tests/integration/test_pipeline.py",
    "tests/cli/test_command.py",
]
DAMAGED = ["tests/dwarf/test_corrupt.py", "tests/symbols/test_bounds.py"]
"""A third of the time of TESTS, and where newer releases of numpy raise what older ones let pass."""
TEST_TOOLS = ["pytest", "hypothesis"]
USABLE = "import ensurepip, os, sysconfig; os.stat(sysconfig.get_path('include') + '/Python.h')"
MAIN_JOB = re.compile(r"^python3 -m venv .* && \.venv/bin/(symbolize fixtures/.*)$", re.MULTILINE)
LEAST_PERCENT = "80"
"""Of the value of the README's profile so much has names, and more."""


def interpreter(version: str) -> str | None:
    """A Python of this version that can make environments and compile: on the path, or one that pyenv installed."""
    found = [Path(folder) / f"python{version}" for folder in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    found += sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    for path in found:  # what is on the path may be a stub of pyenv that fails
        if path.exists() and subprocess.run([path, "-c", USABLE], capture_output=True).returncode == 0:
            return str(path)
    return None


def oldest(requirement: str) -> str:
    """A requirement of pyproject.toml at its lower bound."""
    return re.sub(r">=([\w.]+)[^;]*", r"==\1", requirement)


def run(*command: str | Path) -> str:
    """What a command prints; raises CalledProcessError with it."""
    out, both = subprocess.PIPE, subprocess.STDOUT
    return subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=out, stderr=both).stdout


class Environment:
    """A virtual environment of one Python, and the core compiled for it in the checkout."""

    def __init__(self, version: str, python: str) -> None:
        self.version = version
        self.folder = ROOT / "build" / "pythons" / version
        self.python = self.folder / "bin" / "python"
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        self.dependencies: list[str] = project["project"]["dependencies"]
        run(python, "-m", "venv", "--clear", self.folder)
        self.install([*project["build-system"]["requires"], *TEST_TOOLS])
        run(self.python, "setup.py", "--quiet", "build_ext", "--inplace")

    def install(self, requirements: Iterable[str]) -> None:
        """Bring packages to the newest versions that are asked for, as wheels."""
        options = ["--quiet", "--disable-pip-version-check", "--only-binary=:all:", "--upgrade"]
        run(self.python, "-m", "pip", "install", *options, *requirements)

    def test(self, without: Iterable[str] = ()) -> str:
        """Run the main job and the tests but some files; one line about that."""
        versions = "import platform, numpy; print(f'Python {platform.python_version()}, numpy {numpy.__version__}')"
        title = run(self.python, "-c", versions).strip()
        found = MAIN_JOB.search((ROOT / "README.md").read_text())
        assert found is not None, "README.md has no command for the main job"
        options = ["--fail-under", LEAST_PERCENT, "--output", str(self.folder / "result.pb.gz")]
        report = run(self.python, "-m", *shlex.split(found[1]), *options)
        assert "without the compiled core" not in report, f"{title}: the core was not compiled"
        tests = [*TESTS, *(f"--ignore={file}" for file in without)]
        printed = run(self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
        return f"{title}: {printed.splitlines()[-1]}"

    def test_both(self) -> list[str]:
        """Run all with the oldest dependencies and, where the whole suite does not do that, with the newest."""
        self.install(map(oldest, self.dependencies))
        lines = [self.test(without=DAMAGED)]
        if self.version != ".".join(map(str, sys.version_info[:2])):
            self.install(self.dependencies)
            lines.append(self.test())
        return lines


def main() -> int:
    """Compile for one Python after the other, then test side by side. The exit code."""
    try:
        found = {version: python for version in PYTHONS if (python := interpreter(version)) is not None}
        environments = [Environment(version, python) for version, python in found.items()]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for lines in pool.map(Environment.test_both, environments):
                print(*lines, sep="\n", flush=True)
    except subprocess.CalledProcessError as error:
        print(error.stdout, error, sep="\n", file=sys.stderr)
        return 1
    print("not installed:", ", ".join(version for version in PYTHONS if version not in found) or "none")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""The source distribution, wheels of it for the oldest and the newest Python that are supported and installed, and a
smoke test of each.

A wheel is installed into an environment without a compiler, names the README's profile there, as one and as a batch,
and passes the few tests of [tool.cibuildwheel]: beside the installed package, not with its sources. The oldest Python
does so with the oldest dependencies that pyproject.toml admits, the newest with the newest; where there is one Python
only, it does both.
"""

import email
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pythons import PROJECT, ROOT, SUPPORTED, installed

WORK = ROOT / "build" / "wheels"
WHEELS = PROJECT["tool"]["cibuildwheel"]
DEPENDENCIES: list[str] = [*PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"]["lz4"]]
MAIN_JOB = re.compile(r"^python3 -m venv .* && \.venv/bin/(symbolize fixtures/.*)$", re.MULTILINE)
LEAST_PERCENT = "80"
"""Of the value of the README's profile so much has names, and more."""
CHECKS = ["build", "twine", "auditwheel"]


def oldest(requirement: str) -> str:
    """A requirement of pyproject.toml at its lower bound."""
    return re.sub(r">=([\w.]+)[^;]*", r"==\1", requirement)


def run(*command: str | Path, folder: Path = ROOT, **environment: str) -> str:
    """What a command prints; raises CalledProcessError with it."""
    out, both = subprocess.PIPE, subprocess.STDOUT
    env = os.environ | environment
    return subprocess.run(command, cwd=folder, env=env, check=True, text=True, stdout=out, stderr=both).stdout


def pip(python: Path, *arguments: str | Path, **environment: str) -> None:
    """Install packages or build one."""
    command, *rest = arguments
    run(python, "-m", "pip", command, "--quiet", "--disable-pip-version-check", *rest, **environment)


def made(folder: Path, python: str) -> Path:
    """The interpreter of a new environment."""
    run(python, "-m", "venv", "--clear", folder)
    return folder / "bin" / "python"


def unpacked_sdist(python: Path) -> Path:
    """The folder of the source distribution: built of the checkout, and unpacked."""
    run(python, "-m", "build", "--sdist", "--no-isolation", "--outdir", WORK)
    (sdist,) = WORK.glob("*.tar.gz")
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB")
    with tarfile.open(sdist) as archive:
        archive.extractall(WORK, filter="data")
    return WORK / sdist.name.removesuffix(".tar.gz")


def built(version: str, python: str, sources: Path) -> Path:
    """The wheel for a Python. All are built in one folder, so only the first has to translate the modules to C."""
    environment, wheels = made(WORK / f"build-{version}", python), WORK / f"wheel-{version}"
    pip(environment, "install", "--only-binary=:all:", *PROJECT["build-system"]["requires"])
    flags = WHEELS["linux"]["environment"]
    pip(environment, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", wheels, sources, **flags)
    (wheel,) = wheels.glob("*.whl")
    return wheel


def checked(python: Path, wheel: Path) -> str:
    """What there is to say about a wheel; raises if something is wrong with it."""
    run(python, "-m", "twine", "check", "--strict", wheel)
    shown = run(python, "-m", "auditwheel", "show", wheel)
    tags = re.findall(r'platform tag:\s+"([^"]+)"', " ".join(shown.split()))
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        page = email.message_from_bytes(archive.read(name)).get_payload()
    assert not re.search(r"]\((?!\w+:|#)", page), "a link of README.md is relative in the metadata"
    return f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, fits {tags[0] if tags else 'no policy'}"


class Installed:
    """A wheel in an environment of its own, which has no compiler."""

    def __init__(self, wheel: Path, python: str, name: str) -> None:
        self.wheel = wheel
        self.python = made(WORK / name, python)
        self.bare = {"PATH": str(self.python.parent), "CC": "/bin/false"}

    def install(self, *requirements: str) -> None:
        """Bring packages to the newest versions that are asked for, as wheels."""
        pip(self.python, "install", "--only-binary=:all:", "--upgrade", *requirements, **self.bare)

    def test(self, dependencies: Iterable[str], tests: Path) -> str:
        """Install the wheel with these dependencies, run the main job, a batch and the tests; one line about that."""
        self.install(str(self.wheel), *dependencies)
        found = MAIN_JOB.search((ROOT / "README.md").read_text())
        assert found is not None, "README.md has no command for the main job"
        command, profile, *options = shlex.split(found[1])
        folder = self.python.parent
        one = [profile, *options, "--no-cache", "--fail-under", LEAST_PERCENT, "--output", str(folder / "one.pb.gz")]
        many = ["batch", profile, *options, "--no-cache", "--out", str(folder / "many")]
        for arguments in (one, many):
            printed = run(folder / command, *arguments, folder=tests, **self.bare)
            assert "without the compiled core" not in printed, f"{self.wheel.name}: the core was not compiled"
        versions = "import platform, numpy; print(f'Python {platform.python_version()}, numpy {numpy.__version__}')"
        title = run(self.python, "-c", versions).strip()
        self.install(f"{self.wheel}[{','.join(WHEELS['test-extras'])}]")
        _, *words = shlex.split(WHEELS["test-command"].replace("\\\n", ""))
        return f"{title}: {run(self.python, *words, folder=tests).splitlines()[-1]}"


def uncompiled(version: str, python: str, sources: Path) -> str:
    """Build and try what an installation without a compiler gives, which needs no Cython when it runs."""
    for folder in sources.glob("build/lib.*"):  # compiled modules of the wheels
        shutil.rmtree(folder)
    wheels = WORK / "uncompiled"
    options = ["--no-build-isolation", "--no-deps", "--wheel-dir", wheels]
    pip(WORK / f"build-{version}" / "bin" / "python", "wheel", *options, sources, CC="/bin/false")
    (wheel,) = wheels.glob("*.whl")
    installed = Installed(wheel, python, "uncompiled-env")
    installed.install(str(wheel))
    printed = run(installed.python.parent / "symbolize", "--version", folder=WORK, **installed.bare)
    assert "interpreted" in printed, printed
    modules = "import symbolize.formats.pprof.scan, symbolize.dwarf.units, symbolize.names.demangler"
    run(installed.python, "-c", modules, folder=WORK)  # not those of the checkout
    return f"without a compiler: {printed.strip()}"


def main() -> int:
    """Build one after the other, each with all processors; then test side by side. The exit code."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    try:
        found = installed()
        first, last = found[0], found[-1]
        tools = made(WORK / "tools", sys.executable)
        pip(tools, "install", "--only-binary=:all:", *CHECKS, *PROJECT["build-system"]["requires"])
        sources = unpacked_sdist(tools)
        wheels = {version: built(version, python, sources) for version, python in dict([first, last]).items()}
        for wheel in wheels.values():
            print(checked(tools, wheel), flush=True)
        print(uncompiled(*first, sources), flush=True)
        tests = WORK / "tests"
        tests.mkdir()
        for name in WHEELS["test-sources"]:
            shutil.move(sources / name, tests)
        ways = (first, "oldest", [*map(oldest, DEPENDENCIES)]), (last, "newest", DEPENDENCIES)
        with ThreadPoolExecutor(len(ways)) as pool:
            jobs = [
                pool.submit(Installed(wheels[version], python, name).test, dependencies, tests)
                for (version, python), name, dependencies in ways
            ]
        for job in jobs:
            print(job.result(), flush=True)
    except subprocess.CalledProcessError as error:
        print(error.stdout, error, sep="\n", file=sys.stderr)
        return 1
    print("not tried:", ", ".join(sorted({*SUPPORTED} - wheels.keys())) or "none")
    return 0


if __name__ == "__main__":
    sys.exit(main())

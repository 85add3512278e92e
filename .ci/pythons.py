#!/usr/bin/env python3
"""The Pythons of this machine that the package supports; as a command, the path of the newest."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WHEELS = PROJECT["tool"]["cibuildwheel"]["build"].split()
SUPPORTED = [f"3.{name.removeprefix('cp3').removesuffix('-*')}" for name in WHEELS]
"""Versions, the oldest first."""
USABLE = "import ensurepip, os, sysconfig; os.stat(sysconfig.get_path('include') + '/Python.h')"


def interpreter(version: str) -> str | None:
    """A Python of this version that can make environments and compile: on the path, or one that pyenv installed."""
    found = [Path(folder) / f"python{version}" for folder in os.get_exec_path()]
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    found += sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    for path in found:  # what is on the path may be a stub of pyenv that fails
        if path.exists() and subprocess.run([path, "-c", USABLE], capture_output=True).returncode == 0:
            return str(path)
    return None


def installed() -> list[tuple[str, str]]:
    """Version and path of each supported Python that is installed, the oldest first."""
    return [(version, path) for version in SUPPORTED if (path := interpreter(version)) is not None]


if __name__ == "__main__":
    if not (found := installed()):
        sys.exit(f"no Python {' or '.join(SUPPORTED)} has venv and headers: apt-get install python3-venv python3-dev")
    print(found[-1][1])

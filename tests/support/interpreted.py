"""The uncompiled package: the same sources, run as Python, beside the compiled modules."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import symbolize

PACKAGE = Path(symbolize.__file__).parent
ROOT = Path(__file__).parents[2]
"""Where the tools are, which is not where an installed package is."""


def load_source(name: str) -> ModuleType:
    """Load a module that imports no compiled one from its source (`symbolize/core/cursor.py` as "core/cursor")."""
    spec = importlib.util.spec_from_file_location(f"interpreted_{name}", PACKAGE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(folder: Path, script: Path, *arguments: str) -> str:
    """What `script` prints when it runs with a copy of the package that has no compiled modules."""
    shutil.copytree(PACKAGE, folder / "symbolize", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (folder, PACKAGE.parent, ROOT)))}
    command = [sys.executable, str(script), *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True).stdout

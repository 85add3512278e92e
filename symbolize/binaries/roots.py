"""Folders of binaries that the environment names, as it does for other tools."""

import os
from collections.abc import Mapping

LISTS = ("PPROF_BINARY_PATH", "PERFETTO_BINARY_PATH")
"""Variables with a list of folders, as pprof and Perfetto read them."""
PRODUCT = "ANDROID_PRODUCT_OUT"
"""The variable with the output folder of an Android build; unstripped files are in `symbols` below it."""


def roots_from_environment(environment: Mapping[str, str] | None = None) -> tuple[list[str], list[str]]:
    """The folders (or files) that PPROF_BINARY_PATH, PERFETTO_BINARY_PATH and ANDROID_PRODUCT_OUT name, each once.

    And notes, a sentence each, on those that are not there and are left out.
    """
    environment = os.environ if environment is None else environment
    named = [
        (variable, folder) for variable in LISTS for folder in environment.get(variable, "").split(os.pathsep) if folder
    ]
    if product := environment.get(PRODUCT, ""):
        named.append((PRODUCT, os.path.join(product, "symbols")))
    roots: list[str] = []
    notes: list[str] = []
    for variable, folder in named:
        path = os.path.expanduser(folder)
        if not os.path.exists(path):
            notes.append(f"{variable}: {folder}: no such folder or file, not searched")
        elif path not in roots:
            roots.append(path)
    return roots, notes

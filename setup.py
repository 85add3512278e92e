"""Compiles the hot loops where a C compiler is; without one the same modules run interpreted."""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

COMPILED = [
    "symbolize/cursor.py",
    "symbolize/load/gperftools_records.py",
    "symbolize/load/ids.py",
    "symbolize/load/pprof_scan.py",
    "symbolize/load/pprof_columns.py",
    "symbolize/write/pprof_columns.py",
    "symbolize/dwarf/abbrevs.py",
    "symbolize/dwarf/columns.py",
    "symbolize/dwarf/dies.py",
    "symbolize/dwarf/lines.py",
    "symbolize/dwarf/names.py",
    "symbolize/dwarf/reader.py",
    "symbolize/dwarf/strings.py",
    "symbolize/dwarf/sweep.py",
    "symbolize/dwarf/units.py",
    "symbolize/report/weigh.py",
    "symbolize/symbols/join.py",
]


SHARED = "symbolize._shared"
"""Holds what Cython would otherwise put into every module: a third of the time to build and of the size."""


def extension(name: str, sources: list[str]) -> Extension:
    """One compiled module; `optional` lets the installation go on without it."""
    return Extension(name, sources, extra_compile_args=["-O2", "-g0"], optional=True)


modules = [extension(".".join(Path(path).with_suffix("").parts), [path]) for path in COMPILED]
setup(
    ext_modules=cythonize(
        [extension(SHARED, []), *modules],
        build_dir="build/cython",
        compiler_directives={"language_level": 3},
        nthreads=os.cpu_count() or 1,
        shared_utility_qualified_name=SHARED,
    ),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)

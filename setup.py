"""Compiles the hot loops where a C compiler is; without one the same modules run interpreted."""

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


def extension(path: str) -> Extension:
    """One compiled module; `optional` lets the installation go on without it."""
    name = ".".join(Path(path).with_suffix("").parts)
    return Extension(name, [path], extra_compile_args=["-O3", "-g0"], optional=True)


setup(
    ext_modules=cythonize(
        [extension(path) for path in COMPILED],
        build_dir="build/cython",
        compiler_directives={"language_level": 3},
    )
)

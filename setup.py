"""Compiles the hot loops where a C compiler is; without one the same modules run interpreted."""

import os
import re
import runpy
import tomllib
from pathlib import Path

from Cython import Shadow
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError, CompileError, LinkError

COMPILED = sorted(str(path) for path in Path("symbolize").rglob("*.py") if path.read_bytes().startswith(b"# cython:"))
"""The modules to compile: those whose first line is for Cython."""


INCLUDED = re.compile(r'^include "(.+)\.pxi"$', re.MULTILINE)
"""A module of numbers that a `.pxd` includes."""


def write_numbers(module: Path) -> None:
    """Write the integers of a module, which imports nothing but the standard library, as C constants for `.pxd` files
    to include: an enumeration, and macros for what a C int does not hold."""
    numbers = {name: value for name, value in runpy.run_path(str(module)).items() if type(value) is int}
    small = {name: value for name, value in numbers.items() if -(1 << 31) <= value < 1 << 31}
    large = {name: value for name, value in numbers.items() if name not in small}
    lines = [f"# The numbers of {module.name}; made by setup.py.", "cdef enum:"]
    lines += [f"    {name} = {value}" for name, value in small.items()]
    if large:
        lines += ["", "cdef extern from *:", '    """']
        lines += [f"    #define {name} {value}ULL" for name, value in large.items()]
        lines += ['    """', *(f"    const unsigned long long {name}" for name in large)]
    made, text = module.with_suffix(".pxi"), "\n".join(lines) + "\n"
    if not made.exists() or made.read_text() != text:  # Cython looks at its time
        made.write_text(text)


SHARED = "symbolize._shared"
"""Holds what Cython would otherwise put into every module: a third of the time to build and of the size."""


def extension(name: str, sources: list[str]) -> Extension:
    """One compiled module."""
    # Sums of what a file says wrap around as numpy's do; without -fwrapv the compiler may take them not to (C11 6.5p5).
    return Extension(name, sources, extra_compile_args=["-O2", "-g0", "-fwrapv"])


class BuildCore(build_ext):
    """Compiles all modules or none: they share C types, so a compiled one cannot use an interpreted one."""

    def finalize_options(self) -> None:
        """Compile with all processors. Options of `setup` would be lost where setuptools makes an editable wheel."""
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        """Compile; without a working compiler go on with the interpreted modules."""
        try:
            super().run()
        except (BaseError, CCompilerError, CompileError, LinkError) as error:
            for built in self.get_outputs():
                Path(built).unlink(missing_ok=True)
            self.extensions = []
            if not self.inplace:  # what `import cython` gives uncompiled modules: `symbolize.core` looks for it
                self.copy_file(Shadow.__file__, Path(self.build_lib, "symbolize", "core", "cython_shadow.py"))
            self.warn(
                f"the compiled core could not be built ({error}); symbolize is installed without it and will be "
                "about ten times slower. Install a C compiler and the Python headers and install again."
            )


def readme() -> str:
    """README.md as a page of its own: links to files lead to the released version where the source is, if
    `project.urls` says where that is, and are plain text otherwise."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    source = project.get("urls", {}).get("Source")

    def absolute(link: re.Match[str]) -> str:
        image, text, path = link.groups()
        if source is None:
            return "" if image else text
        return f"{image}[{text}]({source}/{'raw' if image else 'blob'}/v{project['version']}/{path})"

    return re.sub(r"(!?)\[([^]]*)]\((?!\w+:|#)([^)]+)\)", absolute, Path("README.md").read_text())


DECLARED = [(path.parent, INCLUDED.findall(path.read_text())) for path in Path("symbolize").rglob("*.pxd")]
for module in sorted({folder / f"{name}.py" for folder, names in DECLARED for name in names}):
    write_numbers(module)
modules = [extension(".".join(Path(path).with_suffix("").parts), [path]) for path in COMPILED]
setup(
    long_description=readme(),
    long_description_content_type="text/markdown",
    cmdclass={"build_ext": BuildCore},
    ext_modules=cythonize(
        [extension(SHARED, []), *modules],
        build_dir="build/cython",
        compiler_directives={"language_level": 3},
        nthreads=os.cpu_count() or 1,
        shared_utility_qualified_name=SHARED,
    ),
)

"""The names of functions in C that Cython made, by what it writes into tracebacks; as a program, a table of those in
the files given, as `tests/names/cython/golden.tsv` has it:

    cython -3 --module-name my_pkg.sub.mod1 tests/names/cython/names.pyx -o names.c
    cython -3 --module-name a.pair tests/names/cython/pair.pyx -o pair.c
    python -m tests.support.cython_source names.c pair.c
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

DEFINITION = re.compile(
    r"^[^;{}=\n#]*?\b(?P<linked>\w*__pyx_(?:pw|pf|f)_\w+)\([^;{}]*?\) \{\n(?P<body>.*?)^\}", re.DOTALL | re.MULTILINE
)
TRACEBACK = re.compile(r'__Pyx_AddTraceback\("([^"]+)"')
FUSED = re.compile(r"__pyx_fuse_\d+(?:__pyx_f_\w*_)?")


def tracebacks(source: str) -> Iterator[tuple[str, str]]:
    """The linked names of functions with a traceback, and the names that they have there. Those that choose among fused
    functions are called nothing."""
    for match in DEFINITION.finditer(source):
        found = TRACEBACK.search(match["body"])
        if found is not None and "__pyx_fused_cpdef" not in found[1]:
            yield match["linked"], FUSED.sub("", found[1])


if __name__ == "__main__":
    for path in sys.argv[1:]:
        for row in tracebacks(Path(path).read_text()):
            print(*row, sep="\t")

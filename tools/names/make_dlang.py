"""Makes dlang.tsv: names of D with the texts of c++filt.

    nm -D --defined-only --without-symbol-versions libgphobos.so.3 | python -m tools.names.make_dlang 250

Reads `nm` output, takes a spread-out sample of the size given, adds the names of features.d as gdc compiles it, and
writes a name and the text of `c++filt -s dlang` a row; the text is empty where c++filt has none. The texts of the names
in dlang_forms.tsv, which are written by hand, are made anew.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "tests" / "names" / "modern"
TABLE = FOLDER / "dlang.tsv"
FORMS = FOLDER / "dlang_forms.tsv"
_OWN = b"1t"  # the module of features.d


def main() -> None:
    """Write the table."""
    size = int(sys.argv[1])
    words = sorted({line.split()[-1] for line in sys.stdin.buffer if line.strip()})
    names = [word for word in words if word.startswith(b"_D") and len(word) < 400]
    names = [names[len(names) * i // size] for i in range(min(size, len(names)))]
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "t.o")
        subprocess.run(["gdc", "-c", FOLDER / "features.d", "-o", target], check=True)
        lines = subprocess.run(["nm", "-P", target], check=True, capture_output=True).stdout.splitlines()
    names += [name for line in lines if (name := line.split()[0]).startswith(b"_D" + _OWN) and len(name) < 400]
    write(TABLE, list(dict.fromkeys(names)))
    write(FORMS, [line.split(b"\t")[0] for line in FORMS.read_bytes().splitlines()])


def write(path: Path, names: list[bytes]) -> None:
    """Write names with their texts."""
    result = subprocess.run(["c++filt", "-s", "dlang"], input=b"\n".join(names), check=True, capture_output=True)
    with path.open("wb") as table:
        for name, text in zip(names, result.stdout.splitlines(), strict=True):
            table.write(name + b"\t" + (text if text != name else b"") + b"\n")


if __name__ == "__main__":
    main()

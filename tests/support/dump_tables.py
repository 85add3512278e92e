"""Prints whether the package runs compiled, and a digest of everything that it decodes of each file.

python tests/support/dump_tables.py FILE...
"""

import hashlib
import os
import sys
from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from symbolize.binaries import BinaryIndex, Companions
from symbolize.core.cursor import COMPILED
from symbolize.elf import ElfImage
from symbolize.symbols import build_table
from symbolize.symbols.table import FunctionNames, SymbolTable


def digest(table: SymbolTable) -> str:
    """A digest of all columns and names of a table."""
    state = hashlib.sha256()

    def add(value: object) -> None:
        if isinstance(value, FunctionNames):
            for field in fields(value):
                add(getattr(value, field.name))
        elif isinstance(value, np.ndarray):
            state.update(f"{value.dtype} {value.shape}".encode() + value.tobytes())
        else:
            state.update(repr(list(value) if isinstance(value, Sequence) else value).encode())

    for field in fields(table):
        if field.name not in ("file_size", "file"):  # are no part of what it says
            add(getattr(table, field.name))
    return state.hexdigest()


def table_of(path: str) -> SymbolTable:
    """The whole table of a binary, with what lies below its folder of its debug information."""
    with ElfImage.open(path) as image:
        return build_table([image], None, Companions(BinaryIndex([os.path.dirname(path)]), [path]))


def main(paths: list[str]) -> None:
    """Print the digests, a line a file."""
    print(COMPILED)
    for path in paths:
        print(digest(table_of(path)), path)


if __name__ == "__main__":
    main(sys.argv[1:])

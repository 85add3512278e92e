"""Symbol tables: which frames stand at these addresses of this binary, asked in bulk."""

from symbolize.symbols.binary import Binary, build_table
from symbolize.symbols.builds import builds_of, is_same_build, misfit
from symbolize.symbols.cache import DEFAULT_LIMIT, TableCache, default_folder, was_made_of
from symbolize.symbols.functions import FunctionNames, texts_of
from symbolize.symbols.listed import ListedBinary
from symbolize.symbols.nearest import lookup_nearest
from symbolize.symbols.table import Frames, FunctionsAt, SymbolTable
from symbolize.symbols.table_file import DamagedTable, empty_table, read_table, write_table_to

__all__ = [
    "DEFAULT_LIMIT",
    "Binary",
    "DamagedTable",
    "Frames",
    "FunctionNames",
    "FunctionsAt",
    "ListedBinary",
    "SymbolTable",
    "TableCache",
    "build_table",
    "builds_of",
    "default_folder",
    "empty_table",
    "is_same_build",
    "lookup_nearest",
    "misfit",
    "read_table",
    "texts_of",
    "was_made_of",
    "write_table_to",
]

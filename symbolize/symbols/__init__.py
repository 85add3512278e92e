"""Symbol tables: which frames stand at these addresses of this binary, asked in bulk."""

from symbolize.symbols.binary import Binary, build_table, has_file_offsets
from symbolize.symbols.cache import DEFAULT_LIMIT, TableCache, default_folder
from symbolize.symbols.functions import FunctionNames
from symbolize.symbols.listed import ListedBinary
from symbolize.symbols.nearest import lookup_nearest
from symbolize.symbols.table import Frames, FunctionsAt, SymbolTable

__all__ = [
    "DEFAULT_LIMIT",
    "Binary",
    "Frames",
    "FunctionNames",
    "FunctionsAt",
    "ListedBinary",
    "SymbolTable",
    "TableCache",
    "build_table",
    "default_folder",
    "has_file_offsets",
    "lookup_nearest",
]

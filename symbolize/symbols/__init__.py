"""Symbol tables: the frames at addresses of one binary, looked up in bulk."""

from symbolize.symbols.answer import Answer, as_vaddrs, lookup_nearest
from symbolize.symbols.binary import Binary, Tables, build_table, lookup, opened
from symbolize.symbols.builds import builds_of, is_same_build, misfit
from symbolize.symbols.cache import DEFAULT_LIMIT, TableCache, default_folder, was_made_of
from symbolize.symbols.functions import (
    UNDECIDED,
    Calls,
    Function,
    FunctionNames,
    Namesakes,
    name_key,
    spellings_of,
)
from symbolize.symbols.symbol_list_binary import SymbolListBinary
from symbolize.symbols.table import FailedTable, Frames, FunctionsAt, SymbolTable
from symbolize.symbols.table_file import DamagedTable, read_table, write_table

__all__ = [
    "DEFAULT_LIMIT",
    "UNDECIDED",
    "Answer",
    "Binary",
    "Calls",
    "DamagedTable",
    "FailedTable",
    "Frames",
    "Function",
    "FunctionNames",
    "FunctionsAt",
    "Namesakes",
    "SymbolListBinary",
    "SymbolTable",
    "TableCache",
    "Tables",
    "as_vaddrs",
    "build_table",
    "builds_of",
    "default_folder",
    "is_same_build",
    "lookup",
    "lookup_nearest",
    "misfit",
    "name_key",
    "opened",
    "read_table",
    "spellings_of",
    "was_made_of",
    "write_table",
]

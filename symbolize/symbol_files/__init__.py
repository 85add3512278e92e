"""Symbols from sources that list functions themselves, as columns; functions over buffers, no files."""

from symbolize.symbol_files.breakpad import debug_id, read_breakpad, read_module
from symbolize.symbol_files.code_list import CodeList, process_of, read_jitdump, read_perf_map
from symbolize.symbol_files.gsym import read_gsym
from symbolize.symbol_files.kallsyms import Kallsyms, read_kallsyms
from symbolize.symbol_files.symbol_list import SymbolList

__all__ = [
    "CodeList",
    "Kallsyms",
    "SymbolList",
    "debug_id",
    "process_of",
    "read_breakpad",
    "read_gsym",
    "read_jitdump",
    "read_kallsyms",
    "read_module",
    "read_perf_map",
]

"""Symbol tables: which frames stand at these addresses of this binary, asked in bulk."""

from symbolize.symbols.build import Binary, build_table
from symbolize.symbols.table import Frames, FunctionNames, SymbolTable

__all__ = ["Binary", "Frames", "FunctionNames", "SymbolTable", "build_table"]

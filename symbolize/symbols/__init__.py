"""Symbol tables: which frames stand at these addresses of this binary, asked in bulk."""

from symbolize.symbols.build import Binary, build_table
from symbolize.symbols.naming import FunctionNames
from symbolize.symbols.table import Frames, SymbolTable

__all__ = ["Binary", "Frames", "FunctionNames", "SymbolTable", "build_table"]

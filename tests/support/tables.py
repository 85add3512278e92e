"""Symbol tables in files of a test's choice."""

from symbolize.symbols import SymbolTable
from symbolize.symbols.table_file import TableFacts, write_table


def write_table_at(table: SymbolTable, facts: TableFacts, path: str) -> int:
    """Write a table to the new file `path`; its size in bytes."""
    with open(path, "xb") as file:
        return write_table(file, table, facts)

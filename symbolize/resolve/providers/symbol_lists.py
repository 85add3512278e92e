"""The lists of functions that providers read, each once."""

from collections.abc import Callable
from typing import TypeVar

from symbolize.binaries import SpecialFiles
from symbolize.symbol_files import CodeList, Kallsyms, SymbolList
from symbolize.symbols import SymbolListBinary

L = TypeVar("L", SymbolList, Kallsyms, CodeList)


class SymbolLists:
    """The lists among `files` that were read. What is wrong with one goes to the problems of `files`."""

    def __init__(self, files: SpecialFiles) -> None:
        self._files = files
        self._read: dict[tuple[str, object], tuple[SymbolList | Kallsyms | CodeList, SymbolListBinary] | None] = {}

    def __len__(self) -> int:
        return len(self._read)

    def read(self, path: str, reader: Callable[[bytes], L | None], limit: int) -> tuple[L, SymbolListBinary] | None:
        """What `reader` makes of a file of at most `limit` bytes, and the binary of it; None if it is none."""
        key = path, reader
        if key not in self._read:
            self._read[key] = None
            data = self._files.read(path, limit)
            if data is not None and (contents := reader(data)) is not None:
                symbols = contents if isinstance(contents, SymbolList) else contents.listing
                for problem in symbols.problems:
                    self._files.tell(f"{path}: {problem}")
                self._read[key] = contents, SymbolListBinary(path, symbols)
        return self._read[key]  # type: ignore[return-value]

    def close(self) -> None:
        """Release what was read."""
        self._read.clear()

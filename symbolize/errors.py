"""What can go wrong for a user, as exceptions that print as one line."""


class SymbolizeError(Exception):
    """Root of the errors a person can act on; `str()` is one line."""


class InputError(SymbolizeError):
    """An input cannot be read: which one, what is wrong, and at which offset where that is known."""

    def __init__(self, source: str, problem: str, offset: int | None = None) -> None:
        self.source = source
        self.problem = problem
        self.offset = offset
        where = "" if offset is None else f" at offset {offset:#x}"
        super().__init__(f"{source}: {problem}{where}")


class OutputError(SymbolizeError):
    """An output cannot be written."""


class UsageError(SymbolizeError):
    """A call that asks for something contradictory or unknown."""

"""Interned strings of a profile."""

from collections.abc import Sequence

from symbolize.core.string_table import StringTable


class Strings(StringTable):
    """Byte strings by index, each stored once; index 0 is the empty string, as in a pprof string table.

    Strings stay bytes (R74, strings as bytes): producers write names that are not UTF-8, and only the writer decodes.
    """

    __slots__ = ()

    def text(self, index: int) -> str:
        """String `index` for a person: bytes that are not UTF-8 come out as `\\xNN`."""
        return self[index].decode("utf-8", "backslashreplace")

    def texts(self, indices: Sequence[int], longest: int | None = None) -> list[str]:
        """Strings for a person, the ends of those with more than `longest` characters; a string that is given often is
        one object."""
        begin = -longest if longest else None
        known = {index: self.text(index)[begin:] for index in set(indices)}
        return [known[index] for index in indices]

"""Interned strings of a profile."""

from collections.abc import Iterable, Iterator, Sequence


class Strings:
    """Byte strings by index, each stored once; index 0 is the empty string, as in a pprof string table.

    Strings stay bytes (R74, strings as bytes): producers write names that are not UTF-8, and only the writer decodes.
    """

    __slots__ = ("_indices", "_values")

    def __init__(self, values: Iterable[bytes] = ()) -> None:
        self._values: list[bytes] = [b""]
        self._indices: dict[bytes, int] = {b"": 0}
        for value in values:
            self.add(value)

    def copy(self) -> "Strings":
        """The same strings, to which others can be added."""
        result = Strings()
        result._values, result._indices = self._values.copy(), self._indices.copy()
        return result

    def add(self, value: bytes) -> int:
        """The index of `value`, which is added if it is new."""
        index = self._indices.get(value)
        if index is None:
            index = self._indices[value] = len(self._values)
            self._values.append(value)
        return index

    def add_all(self, values: Iterable[bytes]) -> list[int]:
        """The index of each of `values`, those that are new added."""
        indices, known = self._indices, self._values
        found = []
        for value in values:
            index = indices.get(value)
            if index is None:
                index = indices[value] = len(known)
                known.append(value)
            found.append(index)
        return found

    def text(self, index: int) -> str:
        """String `index` for a person: bytes that are not UTF-8 come out as `\\xNN`."""
        return self._values[index].decode("utf-8", "backslashreplace")

    def texts(self, indices: Sequence[int], longest: int | None = None) -> list[str]:
        """Strings for a person, the ends of those with more than `longest` characters; a string that is given often is
        one object."""
        begin = -longest if longest else None
        known = {index: self.text(index)[begin:] for index in set(indices)}
        return [known[index] for index in indices]

    def __getitem__(self, index: int) -> bytes:
        return self._values[index]

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._values)

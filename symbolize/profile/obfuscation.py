"""Names of obfuscated Java code that came with a profile, whatever form they came in."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


class ClassNames(Protocol):
    """Takes the methods of a class; `has_gaps` tells that some could not be read."""

    has_gaps: bool

    def add(self, obfuscated: bytes, name: bytes, arguments: bytes = b"", *numbers: int) -> object:
        """Add a method or a line range of it: first and last line, then those of the source, -1 where not known."""


class ClassMap(Protocol):
    """Takes classes by obfuscated name; `problems` are sentences."""

    @property
    def problems(self) -> list[str]:
        """What could not be read."""

    def add(self, obfuscated: bytes, name: bytes) -> ClassNames:
        """Add a class with its name in the source."""


class JavaNames(Protocol):
    """The names of one program. `source` says for people where they are from."""

    source: str

    def fill(self, wanted: Collection[bytes], into: ClassMap) -> None:
        """Add the classes with the obfuscated names `wanted`, as far as they are known."""


@dataclass(frozen=True)
class Obfuscation:
    """The names that came with a profile, and for what: `applies` has the rows of `maps` that speak of the code in each
    mapping, and at the end those of code in no mapping."""

    maps: Sequence[JavaNames]
    applies: Sequence[tuple[int, ...]]

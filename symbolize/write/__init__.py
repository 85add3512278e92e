"""Writing profiles, and the symbols that were found for a trace."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, BinaryIO, Protocol

if TYPE_CHECKING:
    from symbolize.core.arrays import Bool
    from symbolize.profile import Profile

__all__ = ["encode", "write", "write_module_symbols"]


class Resolved(Protocol):
    """What a `Symbolizer` gives: a profile, and which of its locations got the lines of a lookup."""

    @property
    def profile(self) -> "Profile": ...

    @property
    def resolved(self) -> "Bool": ...


def encode(profile: "Profile") -> bytes:
    """The profile as protobuf bytes, not compressed; equal profiles give equal bytes."""
    from symbolize.write import pprof

    return pprof.encode(profile)


def write(profile: "Profile", destination: str | os.PathLike[str] | BinaryIO) -> None:
    """Write the profile as gzipped pprof to a path, to `-` (standard output) or to a binary file object.

    A file appears at its path whole or not at all; equal profiles give equal bytes. Raises OutputError, and UsageError
    for a terminal and for the file that the profile was read from.
    """
    from symbolize.write import pprof
    from symbolize.write.files import check_inputs

    if profile.source and isinstance(destination, str | os.PathLike):
        check_inputs([profile.source], [os.fspath(destination)])
    pprof.write(profile, destination)


def write_module_symbols(results: Iterable[Resolved], destination: str | os.PathLike[str] | BinaryIO) -> int:
    """Write what was found for the profiles of one Perfetto trace as packets of a trace (ModuleSymbols), so that the
    trace with these bytes appended is symbolized; how many addresses have symbols.

    `results` are those of a `Symbolizer`, of which only one is needed at a time. The destination is as that of `write`.
    Raises UsageError for a profile of another format, OutputError.
    """
    from symbolize.write.module_symbols import ModuleSymbols

    symbols = ModuleSymbols()
    for result in results:
        symbols.add(result.profile, result.resolved)
    symbols.write(destination)
    return symbols.addresses

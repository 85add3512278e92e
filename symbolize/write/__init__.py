"""Writing profiles."""

import os
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from symbolize.profile import Profile

__all__ = ["encode", "write"]


def encode(profile: "Profile") -> bytes:
    """The profile as protobuf bytes, not compressed; equal profiles give equal bytes."""
    from symbolize.write import pprof

    return pprof.encode(profile)


def write(profile: "Profile", destination: str | os.PathLike[str] | BinaryIO) -> None:
    """Write the profile as gzipped pprof to a path, to `-` (standard output) or to a binary file object.

    A file appears at its path whole or not at all; equal profiles give equal bytes. Raises OutputError.
    """
    from symbolize.write import pprof

    pprof.write(profile, destination)

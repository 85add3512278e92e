"""Reading profiles: one module a format; the content decides which."""

import os
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from symbolize.profile import Profile

__all__ = ["load"]


def load(source: str | os.PathLike[str] | BinaryIO, *, keep_trampolines: bool = False) -> "Profile":
    """Read a profile from a path, from `-` (standard input) or from a binary file object.

    The content decides the format: pprof or a gperftools CPU profile, plain or in gzip, zstd or LZ4 frames.
    What was repaired or left out is said in `Profile.warnings`. `keep_trampolines` keeps the frame that the
    signal handler of an old gperftools left in every stack. Raises InputError.
    """
    from symbolize.load import sniff

    return sniff.load(source, keep_trampolines=keep_trampolines)

"""Where a binary is found: an index of directories, and answers with the reason for a miss. Knows no profiles."""

from symbolize.binaries.build_id import has_build_id, is_build_id, same_build_id
from symbolize.binaries.companions import Companions
from symbolize.binaries.finder import Found, binary_files, find_binary
from symbolize.binaries.index import BinaryIndex
from symbolize.binaries.links import Attempt
from symbolize.binaries.roots import roots_from_environment

__all__ = [
    "Attempt",
    "BinaryIndex",
    "Companions",
    "Found",
    "binary_files",
    "find_binary",
    "has_build_id",
    "is_build_id",
    "roots_from_environment",
    "same_build_id",
]

"""Where a binary is found: an index of directories, and answers with the reason for a miss. Knows no profiles."""

from symbolize.binaries.archives import Member, read_member, read_members
from symbolize.binaries.build_id import is_build_id, same_build_id
from symbolize.binaries.companions import Companions
from symbolize.binaries.finder import Attempt, Found, find_binary
from symbolize.binaries.index import BinaryIndex
from symbolize.binaries.recorded_names import find_recorded
from symbolize.binaries.special_files import SpecialFile, SpecialFiles
from symbolize.binaries.unpack import inflate, unpack

__all__ = [
    "Attempt",
    "BinaryIndex",
    "Companions",
    "Found",
    "Member",
    "SpecialFile",
    "SpecialFiles",
    "find_binary",
    "find_recorded",
    "inflate",
    "is_build_id",
    "read_member",
    "read_members",
    "same_build_id",
    "unpack",
]

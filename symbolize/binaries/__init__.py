"""Where a binary is found: an index of directories, and answers with the reason for a miss. Knows no profiles."""

from symbolize.binaries.archives import Member, inflate, read_member, read_members
from symbolize.binaries.build_id import has_build_id, is_build_id, module_prefix, plain_build_id, same_build_id
from symbolize.binaries.companions import Companions
from symbolize.binaries.finder import Found, binary_files, complete, find_binary, find_candidates, ranked
from symbolize.binaries.housekeeping import collect, kept, verify
from symbolize.binaries.index import BinaryIndex
from symbolize.binaries.recorded_names import find_recorded
from symbolize.binaries.remote import Answer, Attempt, Kind, Listener, Servers, Unasked, fetch_in_turn, missing_kinds
from symbolize.binaries.roots import roots_from_environment
from symbolize.binaries.special_files import SpecialFile, SpecialFiles
from symbolize.binaries.unpack import decompress

__all__ = [
    "Answer",
    "Attempt",
    "BinaryIndex",
    "Companions",
    "Found",
    "Kind",
    "Listener",
    "Member",
    "Servers",
    "SpecialFile",
    "SpecialFiles",
    "Unasked",
    "binary_files",
    "collect",
    "complete",
    "decompress",
    "fetch_in_turn",
    "find_binary",
    "find_candidates",
    "find_recorded",
    "has_build_id",
    "inflate",
    "is_build_id",
    "kept",
    "missing_kinds",
    "module_prefix",
    "plain_build_id",
    "ranked",
    "read_member",
    "read_members",
    "roots_from_environment",
    "same_build_id",
    "verify",
]

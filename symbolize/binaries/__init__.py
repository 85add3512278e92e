"""Where a binary is found: an index of directories, and answers with the reason for a miss. Knows no profiles."""

from symbolize.binaries.archives import Member, inflate, read_member, read_members
from symbolize.binaries.build_id import (
    IdKind,
    has_build_id,
    is_build_id,
    module_prefix,
    parse_build_id,
    plain_build_id,
    same_build_id,
)
from symbolize.binaries.finder import (
    BinaryMatch,
    SpecialFile,
    SpecialFiles,
    binary_files,
    fetch_missing,
    find_binary,
    find_candidates,
    find_file,
    find_recorded,
    ranked,
)
from symbolize.binaries.index import BinaryIndex, roots_from_environment
from symbolize.binaries.links import Companions
from symbolize.binaries.remote import (
    Attempt,
    FetchResult,
    Kind,
    Listener,
    Servers,
    Unasked,
    fetch_in_turn,
    missing_kinds,
)
from symbolize.binaries.store import collect, kept, verify
from symbolize.binaries.unpack import decompress

__all__ = [
    "Attempt",
    "BinaryIndex",
    "BinaryMatch",
    "Companions",
    "FetchResult",
    "IdKind",
    "Kind",
    "Listener",
    "Member",
    "Servers",
    "SpecialFile",
    "SpecialFiles",
    "Unasked",
    "binary_files",
    "collect",
    "decompress",
    "fetch_in_turn",
    "fetch_missing",
    "find_binary",
    "find_candidates",
    "find_file",
    "find_recorded",
    "has_build_id",
    "inflate",
    "is_build_id",
    "kept",
    "missing_kinds",
    "module_prefix",
    "parse_build_id",
    "plain_build_id",
    "ranked",
    "read_member",
    "read_members",
    "roots_from_environment",
    "same_build_id",
    "verify",
]

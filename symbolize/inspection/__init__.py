"""What a file offers to lookups: a binary, debug information, or a list of symbols; and what a profile holds."""

from symbolize.inspection.inspect import inspect
from symbolize.inspection.model import (
    Debug,
    Elf,
    Followed,
    Go,
    Inspection,
    Library,
    Listed,
    MappingMatch,
    OtherContent,
    ProfileContent,
    SampleType,
    Splits,
)
from symbolize.inspection.profiles import all_mapped_files

__all__ = [
    "Debug",
    "Elf",
    "Followed",
    "Go",
    "Inspection",
    "Library",
    "Listed",
    "MappingMatch",
    "OtherContent",
    "ProfileContent",
    "SampleType",
    "Splits",
    "all_mapped_files",
    "inspect",
]

"""The profile as columns: model, interning, compaction, merging. Knows no file format and no ELF."""

from symbolize.core.arrays import NONE
from symbolize.profile.compact import compact, used_locations
from symbolize.profile.frame_table import Frame
from symbolize.profile.merge import combine
from symbolize.profile.model import (
    AddressKind,
    Functions,
    Labels,
    Lines,
    Locations,
    Mappings,
    Profile,
    Samples,
    ValueType,
)
from symbolize.profile.stack_dumps import StackDumps
from symbolize.profile.strings import Strings

__all__ = [
    "NONE",
    "AddressKind",
    "Frame",
    "Functions",
    "Labels",
    "Lines",
    "Locations",
    "Mappings",
    "Profile",
    "Samples",
    "StackDumps",
    "Strings",
    "ValueType",
    "combine",
    "compact",
    "used_locations",
]

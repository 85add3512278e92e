"""The profile as columns: model, interning, compaction. Knows no file format and no ELF."""

from symbolize.profile.compact import compact, used_locations
from symbolize.profile.model import (
    NONE,
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
from symbolize.profile.strings import Strings

__all__ = [
    "NONE",
    "AddressKind",
    "Functions",
    "Labels",
    "Lines",
    "Locations",
    "Mappings",
    "Profile",
    "Samples",
    "Strings",
    "ValueType",
    "compact",
    "used_locations",
]

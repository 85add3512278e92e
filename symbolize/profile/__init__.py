"""The profile as columns: model, interning, compaction, merging. Knows no file format and no ELF."""

from symbolize.core.arrays import NONE
from symbolize.profile.attachments import StackDumps
from symbolize.profile.combine import calling_locations, combine, compact, used_locations
from symbolize.profile.facts import (
    NOT_PROVED,
    caveats_of,
    lines_per_location,
    named_locations,
    samples_mark,
    set_flags,
    with_caveats,
)
from symbolize.profile.merge import Merger, merged
from symbolize.profile.model import (
    AddressKind,
    Frame,
    FunctionChange,
    FunctionRow,
    Functions,
    HasProfile,
    IdOrigin,
    Labels,
    LeafKind,
    Lines,
    Locations,
    Mappings,
    Profile,
    Samples,
    StackSource,
    Strings,
    ValueType,
    assign_mappings,
)
from symbolize.profile.sample_types import choose_sample_type, with_sample_type

__all__ = [
    "NONE",
    "NOT_PROVED",
    "AddressKind",
    "Frame",
    "FunctionChange",
    "FunctionRow",
    "Functions",
    "HasProfile",
    "IdOrigin",
    "Labels",
    "LeafKind",
    "Lines",
    "Locations",
    "Mappings",
    "Merger",
    "Profile",
    "Samples",
    "StackDumps",
    "StackSource",
    "Strings",
    "ValueType",
    "assign_mappings",
    "calling_locations",
    "caveats_of",
    "choose_sample_type",
    "combine",
    "compact",
    "lines_per_location",
    "merged",
    "named_locations",
    "samples_mark",
    "set_flags",
    "used_locations",
    "with_caveats",
    "with_sample_type",
]

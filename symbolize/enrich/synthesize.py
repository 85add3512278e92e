"""Gives code without names a line that says where it is."""

from dataclasses import replace

import numpy as np

from symbolize.core.arrays import NONE, offsets_of
from symbolize.profile import AddressKind, Functions, Lines, Profile


def synthesize(profile: Profile) -> Profile:
    """A profile whose locations without lines have one in a function `[module+0xoffset]`; it is not changed.

    The offset is that in the file of the mapping, or behind the start of one without a file; code in no mapping, and in
    one without a name, is `0xaddress`. No flag of a mapping claims these names, and no reader takes them for those of
    functions (R452, stand-ins).
    """
    locations, mappings, strings = profile.locations, profile.mappings, profile.strings.copy()
    rows = np.flatnonzero(~locations.has_lines() & ((locations.mapping != NONE) | (locations.address != 0)))
    if not len(rows):
        return profile
    modules = [strings[row].rpartition(b"/")[2] or strings[row] for row in mappings.filename.tolist()]
    names = []
    for mapping, address in zip(locations.mapping[rows].tolist(), locations.address[rows].tolist(), strict=True):
        module = modules[mapping] if mapping != NONE else b""
        place = b"%s+%#x" % (module, offset_in(profile, mapping, address)) if module else b"%#x" % address
        names.append(b"[%s]" % place if module and not module.startswith(b"[") else place)
    name = strings.add_all(names).astype(np.int32)
    count = len(profile.functions)
    added = Functions.zeros(len(rows))
    added.name = added.system_name = name
    sizes = np.diff(locations.line_offsets)
    sizes[rows] = 1
    offsets = offsets_of(sizes)
    lines = Lines.zeros(int(offsets[-1]))
    is_new = np.zeros(len(lines), np.bool_)
    is_new[offsets[:-1][rows]] = True
    for column in ("function", "line", "column"):
        getattr(lines, column)[~is_new] = getattr(locations.lines, column)
    lines.function[is_new] = np.arange(count, count + len(rows))
    return replace(
        profile,
        strings=strings,
        functions=Functions.joined((profile.functions, added)),
        locations=replace(locations, lines=lines, line_offsets=offsets),
    )


def offset_in(profile: Profile, mapping: int, address: int) -> int:
    """Where an address is in what was mapped: in its file, or behind its start where it has none."""
    if profile.address_kind(mapping) in (AddressKind.IN_FILE, AddressKind.OFFSET, AddressKind.NO_BINARY):
        return address
    start, file = int(profile.mappings.start[mapping]), profile.strings[profile.mappings.filename[mapping]]
    if address < start:
        return address
    return address - start + (int(profile.mappings.file_offset[mapping]) if file.startswith(b"/") else 0)

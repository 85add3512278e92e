"""Frames with stand-ins for names: they lose these, and are located by what these say (R452, stand-ins)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import NONE, TOP, Bool, Int32, Int64, distinct_inverse, offsets_of, pair, unpair
from symbolize.core.mapped_names import Mapped, base_name, mapped_by, module_name
from symbolize.names.stand_ins import StandIn, says_nothing, stand_in, stand_ins
from symbolize.profile import AddressKind, IdOrigin, Mappings, Profile, set_flags

KERNEL_FILE: Final = b"[kernel.kallsyms]"
KERNEL_HALF: Final = 1 << 63
LAST_PAGE: Final = TOP - 0xFFF
"""Addresses from here on are errors, not code."""
KERNELS: Final = (b"[kernel", b"[guest.kernel")
PAGE: Final = 1 << 12
CHUNK: Final = 1 << 24
"""Bytes of a file that are one mapping: an offset that the file does not have spoils no others."""
FILE_BASE: Final = 1 << 56
"""Where files are placed of which bytes are counted: no process has addresses there."""


class MappingKey(NamedTuple):
    """A mapping: its bounds, file offset, file, what its addresses are, and its build id as the input has it, with
    where that was recorded."""

    start: int
    limit: int
    file_offset: int
    file: bytes
    kind: AddressKind
    build_id: bytes = b""
    id_origin: IdOrigin = IdOrigin.UNKNOWN


def in_call(found: StandIn) -> StandIn:
    """What a stand-in for a caller tells, its offset moved into the call."""
    return found._replace(offset=found.offset - 1) if found.offset else found


def place_of(found: StandIn) -> tuple[MappingKey | None, int]:
    """The mapping that a stand-in tells of, if it does, and the address in it, 0 for none."""
    file, offset = found.module, found.offset
    identity = found.build_id, IdOrigin.RECORDED if found.build_id else IdOrigin.UNKNOWN
    is_kernel = file.startswith(KERNELS)
    if offset is not None and offset >= KERNEL_HALF and (is_kernel or not (file or found.build_id)):
        mapping = MappingKey(0, TOP, 0, file or KERNEL_FILE, AddressKind.KERNEL)
        return (mapping, offset) if offset < LAST_PAGE else (None, 0)
    if not is_kernel and file[:1] == b"[" and offset is not None and mapped_by(file) is Mapped.OTHER:
        file = file[1:-1]
    if not file and not found.build_id:
        return None, offset or 0
    if offset is None:
        return MappingKey(0, 0, 0, file, AddressKind.PROCESS), 0
    if found.is_in_bytes:
        chunk = offset // CHUNK * CHUNK
        start = FILE_BASE + chunk
        mapping = MappingKey(start, start + CHUNK, chunk, file, AddressKind.PROCESS, *identity)
        return (mapping, FILE_BASE + offset) if offset < FILE_BASE else (None, 0)
    return MappingKey(0, TOP, 0, file, AddressKind.OFFSET, *identity), offset


def settle_stand_ins(profile: Profile) -> None:
    """Do what the texts of a profile say that stand in for names (R452, stand-ins).

    Functions lose them, and lines that say nothing else go. Where the location has no address, or no mapping that says
    something, its place is what the text tells of module, build and offset. Offsets that count bytes of a file are in
    one mapping of that file for each 16 MiB.
    """
    take_stand_ins(profile)
    narrow_chunks(profile)


def narrow_chunks(profile: Profile) -> None:
    """Narrow the mappings of bytes of files to the pages that locations are in: no file is mapped beyond its end."""
    mappings, locations = profile.mappings, profile.locations
    offset = mappings.start - np.uint64(FILE_BASE)
    is_chunk = (offset == mappings.file_offset) & (mappings.limit - mappings.start == CHUNK)
    rows = np.flatnonzero(np.append(is_chunk, False)[locations.mapping])  # the last is for no mapping
    if not len(rows):
        return
    first, last = mappings.limit.copy(), mappings.start.copy()
    np.minimum.at(first, locations.mapping[rows], locations.address[rows] & ~np.uint64(PAGE - 1))
    np.maximum.at(last, locations.mapping[rows], locations.address[rows] | np.uint64(PAGE - 1))
    is_used = is_chunk & (first < last)
    mappings.file_offset = np.where(is_used, first - np.uint64(FILE_BASE), mappings.file_offset)
    mappings.start = np.where(is_used, first, mappings.start)
    mappings.limit = np.where(is_used, last + np.uint64(1), mappings.limit)


def take_stand_ins(profile: Profile) -> None:
    """Take the stand-ins for names from the functions of a profile, and the lines that say nothing else.

    A location without a mapping or an address gets what its outermost stand-in tells, and one in the module that it
    tells of the begin of its function; addresses are not adjusted, as those of its format are not. Where a function may
    be called so, it is if its source file is known, and if the text tells of another module than its location has.
    """
    functions, locations = profile.functions, profile.locations
    numbers, which = distinct_inverse(functions.name)
    found = dict(stand_ins(profile.strings.array().only(numbers)))
    if not found:
        return
    is_stand_in = _nameless_functions(profile, found, which)
    lines, counts = locations.lines, np.diff(locations.line_offsets)
    owner = np.repeat(np.arange(len(counts)), counts)
    number = which[lines.function]
    marked = is_stand_in[lines.function] & ~_in_other_modules(profile, found, number, locations.mapping[owner])
    if not marked.any():
        return
    nameless = np.zeros(len(functions), np.bool_)
    nameless[lines.function[marked]] = True
    nameless[lines.function[~marked]] = False
    is_empty = marked & (functions.filename[lines.function] == 0)
    only_marked, only_empty = ((counts > 0) & (_count(owner, ~each, counts) == 0) for each in (marked, is_empty))
    rows = np.flatnonzero(only_marked)
    outermost = number[locations.line_offsets[rows + 1] - 1]
    _place(profile, found, rows, outermost)
    _take_starts(profile, found, rows, outermost)
    functions.name = np.where(nameless, 0, functions.name).astype(np.int32)
    functions.system_name = np.where(nameless, 0, functions.system_name).astype(np.int32)
    locations.lines = lines.take(~only_empty[owner])
    locations.line_offsets = offsets_of(np.where(only_empty, 0, counts))
    touched = np.zeros(len(profile.mappings) + 1, np.bool_)  # the last is for no mapping
    touched[locations.mapping[owner[marked]]] = True
    set_flags(profile, touched[:-1])


def _count(owner: Int64, wanted: Bool, counts: Int64) -> Int64:
    """How many of the lines that are wanted each location has."""
    return np.bincount(owner[wanted], minlength=len(counts))


def _nameless_functions(profile: Profile, found: dict[int, StandIn], which: Int64) -> Bool:
    """Which functions have a stand-in for a name; those with a linked name get that, and their files go where they
    are stand-ins too."""
    functions, strings = profile.functions, profile.strings
    name, filename = functions.name.copy(), functions.filename.copy()
    result = np.zeros(len(functions), np.bool_)
    for row in np.flatnonzero(np.isin(which, list(found))).tolist():
        if says_nothing(strings[filename[row]]):
            filename[row] = 0
        linked = functions.system_name[row]
        if linked and linked != name[row] and stand_in(strings[linked]) is None:
            name[row] = linked
        else:
            result[row] = not (found[int(which[row])].may_be_name and filename[row])
    functions.name, functions.filename = name, filename
    return result


def _in_other_modules(profile: Profile, found: dict[int, StandIn], number: Int64, mapping: Int32) -> Bool:
    """Which lines have a text that may be a function and an offset, since their location is in another module, or since
    nothing says that it is a module."""
    is_in_function = np.isin(number, [row for row, each in found.items() if each.is_in_function])
    result: Bool = is_in_function & (mapping == NONE)
    telling = [row for row, each in found.items() if each.may_be_name and each.module]
    here = np.flatnonzero(np.isin(number, telling) & (mapping != NONE))
    pairs, which = distinct_inverse(pair(number[here], mapping[here]))
    others = [
        base_name(file) != base_name(_text(found[text].module))
        if (file := _file_of(profile, row))
        else found[text].is_in_function
        for text, row in zip(*(each.tolist() for each in unpair(pairs)), strict=True)
    ]
    result[here] = np.array(others, np.bool_)[which]
    return result


def _take_starts(profile: Profile, found: dict[int, StandIn], rows: Int64, number: Int64) -> None:
    """Give the locations `rows` the begins of functions that their stand-ins tell, if they are in that module."""
    locations, told = profile.locations, {row: each for row, each in found.items() if each.function_start}
    if not told:
        return
    here = np.isin(number, list(told))
    rows, number = rows[here], number[here]
    pairs, which = distinct_inverse(pair(number, locations.mapping[rows]))
    begins = [
        told[text].function_start if module_name(_text(told[text].module)) == module_name(_file_of(profile, row)) else 0
        for text, row in zip(*(each.tolist() for each in unpair(pairs)), strict=True)
    ]
    starts = locations.function_starts().copy()
    starts[rows] = np.array(begins, np.uint64)[which]
    locations.function_start = starts


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _file_of(profile: Profile, mapping: int) -> str:
    return profile.strings.text(profile.mappings.filename[mapping]) if mapping != NONE else ""


def _place(profile: Profile, found: dict[int, StandIn], rows: Int64, number: Int64) -> None:
    """Give the locations `rows`, where they have no address or no mapping that says something, what their stand-ins
    tell."""
    locations, mappings = profile.locations, profile.mappings
    says_nothing = np.append((mappings.filename == 0) & (mappings.build_id == 0), True)  # the last is for no mapping
    needs = says_nothing[locations.mapping[rows]] | (locations.address[rows] == 0)
    rows, number = rows[needs], number[needs]
    mapping, address = locations.mapping.copy(), locations.address.copy()
    added: dict[MappingKey, int] = {}
    pairs, which = distinct_inverse(pair(number, mapping[rows]))
    order = np.argsort(which, kind="stable")
    edges = np.searchsorted(which[order], np.arange(len(pairs) + 1)).tolist()
    for text, row, (begin, end) in zip(*(each.tolist() for each in unpair(pairs)), pairwise(edges), strict=True):
        here = rows[order[begin:end]]
        key, told = place_of(found[text])
        if not says_nothing[row]:
            if key is None or not told or base_name(_file_of(profile, row)) != base_name(_text(key.file)):
                continue
            strings = profile.strings
            key = key._replace(file=strings[mappings.filename[row]])
            if mappings.build_id[row]:
                key = key._replace(build_id=strings[mappings.build_id[row]], id_origin=profile.id_origin(row))
        if key is not None:
            mapping[here] = len(mappings) + added.setdefault(key, len(added))
        if told:
            address[here] = told if key is not None else np.where(address[here] == 0, np.uint64(told), address[here])
    locations.mapping, locations.address = mapping, address
    _add_mappings(profile, list(added))


def _add_mappings(profile: Profile, added: Sequence[MappingKey]) -> None:
    """Add mappings behind those that are there."""
    if not added:
        return
    table, add = Mappings.zeros(len(added)), profile.strings.add
    for row, key in enumerate(added):
        table.start[row], table.limit[row], table.file_offset[row] = key.start, key.limit, key.file_offset
        table.filename[row], table.build_id[row] = add(key.file), add(key.build_id)
    kinds = profile.address_kinds if len(profile.address_kinds) else np.zeros(len(profile.mappings), np.uint8)
    profile.address_kinds = np.append(kinds, np.array([key.kind for key in added], np.uint8))
    origins = np.array([key.id_origin for key in added], np.uint8)
    if len(profile.id_origins) or origins.any():
        known = profile.id_origins if len(profile.id_origins) else np.zeros(len(profile.mappings), np.uint8)
        profile.id_origins = np.append(known, origins)
    profile.mappings = Mappings.joined((profile.mappings, table))
    if profile.modules:
        profile.modules = [*profile.modules, *((b"", b"") for _ in added)]

"""The locations that a profile uses, with their mappings and functions."""

from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import (
    NONE,
    Bool,
    Int32,
    Int64,
    UInt8,
    UInt64,
    distinct,
    distinct_inverse,
    is_among,
    offsets_of,
    pair,
    ranges,
    unpair,
)
from symbolize.core.errors import InputError
from symbolize.formats.otlp.dictionary import Dictionary, Value
from symbolize.formats.otlp.labels import StringNumbers
from symbolize.profile.model import AddressKind, Functions, Lines, Locations, Mappings
from symbolize.proto import otlp_profiles_tags as tags

GNU: Final = b"process.executable.build_id.gnu"
GO: Final = b"process.executable.build_id.go"
HASHES: Final = (b"process.executable.build_id.htlhash", b"process.executable.build_id.profiling")
HASH_PREFIX: Final = b"htlhash:"
FLAGS: Final = {
    b"pprof.mapping.has_functions": "has_functions",
    b"pprof.mapping.has_filenames": "has_filenames",
    b"pprof.mapping.has_line_numbers": "has_line_numbers",
    b"pprof.mapping.has_inline_frames": "has_inline_frames",
}

KERNEL: Final = b"kernel"
NATIVE: Final = (b"native", KERNEL, b"go", b"rust")
"""Types of frames that binaries can name. Of the others an address is a position in bytecode, a line, or nothing."""

KERNEL_BEGIN: Final = 0xFFFFFFFF81000000
MODULES_BEGIN: Final = 0xFFFFFFFFC0000000
MODULE_STEP: Final = 1 << 26
MAX_MODULES: Final = 15
"""Where the kernel and its modules are put, of which messages have addresses from their first byte of code on."""
KERNEL_NAME: Final = b"[kernel.kallsyms]_text"
"""What perf calls a kernel that is mapped from `_text` on."""
LOWEST_KERNEL: Final = 1 << 30
"""No kernel has its code below this address."""

MAX_MAPPINGS: Final = 1 << 18


class OtlpFrames(NamedTuple):
    """The locations of a profile, with mappings, functions, and the kinds of addresses of the mappings."""

    locations: Locations
    mappings: Mappings
    functions: Functions
    kinds: UInt8


def frames_of(dictionary: Dictionary, strings: StringNumbers, used: Int64, keeps_mappings: bool) -> OtlpFrames:
    """The locations `used` (rows of the dictionary, ascending), and the mappings that they are in; all mappings of the
    dictionary with `keeps_mappings`.

    Locations of the types `native`, `kernel`, `go` and `rust`, and those without a type, are looked up. The address of
    any other is a position in bytecode, a line, or nothing: such locations are in a mapping of their own in the
    profile, called `[TYPE]` where the message has none. So are locations with a type and without a mapping, since
    addresses in one message are of many processes (R320, frame types).
    """
    mapping = dictionary.location_mappings[used]
    dictionary.note("mappings", int((mapping == NONE).sum()))
    mapping = np.maximum(mapping, 0)
    names, kind, folded = _location_attributes(dictionary, used)
    is_native = _is_native(names)[kind]
    # What no binary names is in a mapping of its own, so that no address in bytecode is looked up (R320, frame types).
    own = np.where(is_native & (mapping > 0), 0, kind)
    keys = pair(own, mapping)
    has_mapping = keys != 0
    if keeps_mappings:
        keys = np.concatenate((keys, np.arange(1, len(dictionary.mappings))))
    known = distinct(keys[keys != 0])
    if len(known) > MAX_MAPPINGS:
        raise InputError(dictionary.budget.source, f"has {len(known)} mappings, more than any profile can have")
    row = np.where(has_mapping, np.searchsorted(known, keys[: len(used)]), NONE).astype(np.int32)
    address = dictionary.locations.number(tags.LOCATION_ADDRESS)[used]
    mappings, kinds = _mappings(dictionary, strings, known, names)
    address = _place_kernel(mappings, kinds, strings, row, kind == _code(names, KERNEL), address)
    offsets, lines, functions = _lines(dictionary, strings, used)
    locations = Locations(
        address=address,
        mapping=row,
        is_folded=folded,
        line_offsets=offsets,
        lines=lines,
        source_row=used,
    )
    return OtlpFrames(locations, mappings, functions, kinds if kinds.any() else np.zeros(0, np.uint8))


def _location_attributes(dictionary: Dictionary, used: Int64) -> tuple[list[bytes], Int64, Bool]:
    """The types of frames, by number, of which 0 is none; the number of each location, and which are folded."""
    offsets, items = dictionary.locations.list(tags.LOCATION_ATTRIBUTE_INDICES)
    counts = offsets[used + 1] - offsets[used]
    attributes = items[ranges(offsets[used], counts)]
    owner = np.repeat(np.arange(len(used)), counts)
    names, number_of = dictionary.frame_types
    number = number_of[np.minimum(attributes, np.uint64(len(dictionary.attributes))).astype(np.int64)]
    kind, folded = np.zeros(len(used), np.int64), np.zeros(len(used), np.bool_)
    kind[owner[number > 0]] = number[number > 0]
    folded[owner[is_among(attributes, dictionary.folded)]] = True
    return names, kind, folded


def process_frames(dictionary: Dictionary) -> Bool:
    """Which locations of the dictionary only their process, or its kernel, tells what they are: code in no mapping that
    a build id identifies. What no binary names is none of them."""
    names, kind, _ = _location_attributes(dictionary, np.arange(len(dictionary.locations)))
    offsets, items = dictionary.mappings.list(tags.MAPPING_ATTRIBUTE_INDICES)
    has_id = np.array(
        [bool(build_id(dictionary.attributes_of(items[begin:end]))) for begin, end in pairwise(offsets.tolist())]
        or [False]
    )
    has_id[0] = False  # which is no mapping, whatever the message says of it
    is_identified = has_id[np.maximum(dictionary.location_mappings, 0)] & (kind != _code(names, KERNEL))
    has_address = dictionary.locations.number(tags.LOCATION_ADDRESS) != 0
    result: Bool = _is_native(names)[kind] & has_address & ~is_identified
    return result


def _is_native(names: list[bytes]) -> Bool:
    """Which types of frames binaries can name; one that is not known they may."""
    return np.array([not name or name in NATIVE for name in names], np.bool_)


def _code(names: list[bytes], name: bytes) -> int:
    """The number of a type of frames, NONE if no frame has it."""
    return names.index(name) if name in names else NONE


def _mappings(
    dictionary: Dictionary, strings: StringNumbers, keys: Int64, names: list[bytes]
) -> tuple[Mappings, UInt8]:
    """The mappings of keys, each a type of frames (0: native) and a mapping of the dictionary (0: none)."""
    kind, row = unpair(keys)
    table, mappings, add = dictionary.mappings, Mappings.zeros(len(keys)), strings.strings.add
    mappings.start = table.number(tags.MAPPING_MEMORY_START)[row] if len(table) else mappings.start
    if len(table):
        mappings.limit = table.number(tags.MAPPING_MEMORY_LIMIT)[row]
        mappings.file_offset = table.number(tags.MAPPING_FILE_OFFSET)[row]
        mappings.filename = strings.of(table.number(tags.MAPPING_FILENAME_STRINDEX)[row])
    offsets, items = table.list(tags.MAPPING_ATTRIBUTE_INDICES)
    for at, (own, number) in enumerate(zip(kind.tolist(), row.tolist(), strict=True)):
        if number:
            attributes = dictionary.attributes_of(items[offsets[number] : offsets[number + 1]])
            mappings.build_id[at] = add(build_id(attributes))
            for key, flag in FLAGS.items():
                getattr(mappings, flag)[at] = attributes.get(key) is True
        else:
            mappings.filename[at] = add(b"[" + names[own] + b"]")
    return mappings, np.where(kind > 0, AddressKind.NO_BINARY, AddressKind.PROCESS).astype(np.uint8)


def build_id(attributes: dict[bytes, Value]) -> bytes:
    """The build id of a mapping: the GNU one, else that of Go, else the hash of the file (R321, build ids of OTLP).

    The attributes are `process.executable.build_id.gnu`, `.go`, and `.htlhash`, which was `.profiling` before; the last
    is spelled `htlhash:` here.
    """
    for key in (GNU, GO):
        if isinstance(value := attributes.get(key), bytes) and value:
            return value
    for key in HASHES:
        if isinstance(value := attributes.get(key), bytes) and value:
            return HASH_PREFIX + value
    return b""


def _place_kernel(
    mappings: Mappings, kinds: UInt8, strings: StringNumbers, row: Int32, is_kernel: Bool, address: UInt64
) -> UInt64:
    """Move the kernel and its modules, of which addresses count from their first byte of code on, to where a kernel may
    be (R322, kernel of OTLP); the addresses then.

    The kernel goes to 0xffffffff81000000 and is called `[kernel.kallsyms]_text`, modules go 64 MiB apart from
    0xffffffffc0000000 on. Addresses from 1 GiB on are those of memory and stay.
    """
    kernels = distinct(row[is_kernel & (row >= 0)])
    kernels = kernels[kinds[kernels] == AddressKind.PROCESS]
    kinds[kernels] = AddressKind.KERNEL
    is_high = np.zeros(len(mappings), np.bool_)
    is_high[row[(row >= 0) & (address >= np.uint64(LOWEST_KERNEL))]] = True
    unplaced = kernels[(mappings.start[kernels] == 0) & (mappings.limit[kernels] == 0) & ~is_high[kernels]]
    modules = 0
    for each in unplaced.tolist():
        name = strings.strings[int(mappings.filename[each])].rpartition(b"/")[2]
        if name.startswith((b"vmlinux", b"[kernel")):
            start, limit = KERNEL_BEGIN, MODULES_BEGIN
            mappings.filename[each] = strings.strings.add(KERNEL_NAME)
        else:
            start, limit = MODULES_BEGIN + modules * MODULE_STEP, MODULES_BEGIN + (modules + 1) * MODULE_STEP
            modules = (modules + 1) % MAX_MODULES
        mappings.start[each], mappings.limit[each] = start, limit
    moved = is_among(row, unplaced)
    return np.where(moved, address + mappings.start[np.where(moved, row, 0)], address) if moved.any() else address


def _lines(dictionary: Dictionary, strings: StringNumbers, used: Int64) -> tuple[Int64, Lines, Functions]:
    """The lines of locations and the functions that they name. Lines without a function are left out."""
    spans = dictionary.locations.spans(tags.LOCATION_LINES)
    counts = spans.offsets[used + 1] - spans.offsets[used]
    rows = ranges(spans.offsets[used], counts)
    named = dictionary.line_functions[rows] >= 0
    dictionary.note("functions", int((~named).sum()))
    total = offsets_of(named)
    offsets = total[offsets_of(counts)]
    rows = rows[named]
    functions, which = distinct_inverse(dictionary.line_functions[rows])
    table, lines = dictionary.functions, dictionary.lines
    found = Functions(
        strings.of(table.number(tags.FUNCTION_NAME_STRINDEX)[functions]),
        strings.of(table.number(tags.FUNCTION_SYSTEM_NAME_STRINDEX)[functions]),
        strings.of(table.number(tags.FUNCTION_FILENAME_STRINDEX)[functions]),
        table.signed(tags.FUNCTION_START_LINE)[functions],
    )
    columns = lines.signed(tags.LINE_LINE)[rows], lines.signed(tags.LINE_COLUMN)[rows]
    return offsets, Lines(which.astype(np.int32), *columns), found

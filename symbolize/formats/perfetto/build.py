"""From the tables of a trace to profiles."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from symbolize.core.arrays import (
    NONE,
    TOP,
    Bool,
    Int32,
    Int64,
    UInt64,
    distinct,
    distinct_inverse,
    gather_lists,
    offsets_of,
    ranges,
)
from symbolize.core.mapped_names import is_no_file
from symbolize.formats.perfetto.trace import Mapping, Trace
from symbolize.profile.facts import recorded_ids, set_leaves
from symbolize.profile.model import (
    Functions,
    Labels,
    LeafKind,
    Lines,
    Locations,
    Mappings,
    Profile,
    Samples,
    StackSource,
    ValueType,
)

PAGE: Final = 4096

MODES: Final = ("", "kernel", "user", "hypervisor", "guest kernel", "guest user")

UNWIND_ERRORS: Final = (
    "", "", "memory_invalid", "unwind_info", "unsupported", "invalid_map", "max_frames_exceeded", "repeated_frame",
    "invalid_elf", "system_call", "thread_timeout", "thread_does_not_exist", "bad_arch", "maps_parse",
    "invalid_parameter", "ptrace_call",
)  # fmt: skip

MODULE_ID: Final = re.compile(rb"[0-9A-Fa-f]{33}")
KERNEL: Final = b"/kernel"
ERROR: Final = b"/ERROR"

Label = tuple[str, str, int]
"""A key, and a text or, where that is empty, a number. The unit of a number is its key, as pprof assumes where there
is none; without a unit pprof takes 0 for no label (R270, numbers of tasks)."""


@dataclass(frozen=True)
class Part:
    """Samples for a profile: stacks as rows of the trace, values int64[n, k], and for each sample the number of its
    labels in `labels`."""

    stacks: Int32
    values: Int64
    contexts: Int64
    labels: Sequence[Sequence[Label]]


def build_id_text(raw: bytes) -> bytes:
    """A build id in hex. Module ids of Chromium, 33 digits of text, stay as they are (R240, module ids of Chromium)."""
    return raw if MODULE_ID.fullmatch(raw) else raw.hex().encode()


def build(
    trace: Trace, parts: Sequence[Part], sample_types: Sequence[tuple[str, str]], leaves: LeafKind, *, adjust: bool
) -> Profile:
    """A profile of samples, whose leaves are of a kind. `adjust` moves the addresses of callers into the call, which
    Chromium leaves to the reader (R131, one adjustment)."""
    profile = Profile(strings=trace.strings)
    add = trace.strings.add
    profile.sample_types = [ValueType(add(kind.encode()), add(unit.encode())) for kind, unit in sample_types]
    stacks = np.concatenate([part.stacks for part in parts]).astype(np.int64)
    values = np.concatenate([part.values for part in parts])
    offsets, items = trace.stacks.arrays()
    used, which = distinct_inverse(stacks)
    lengths = np.diff(offsets)[used]
    begins = offsets[:-1][used]
    edges = offsets_of(lengths)
    frames = gather_lists(items, begins, edges).astype(np.int64)
    callers = np.ones(len(frames), np.bool_)
    callers[edges[:-1]] = False
    table = trace.frames.array()
    keys = 2 * frames
    if adjust:
        unplaced = np.array([mapping.limit <= mapping.start for mapping in trace.mappings] + [False], np.bool_)
        row = table[frames]
        keys += callers & unplaced[row[:, 0].astype(np.int64) - 1] & (row[:, 1] != 0)
    distinct_keys, location = distinct_inverse(keys)
    _locations(profile, trace, distinct_keys)
    set_leaves(profile, leaves, StackSource.RECORDER)
    # Equal stacks share their lists in the trace; the profile has one list a sample.
    sample_edges = offsets_of(lengths[which])
    label_offsets, labels = _labels(profile, parts)
    profile.samples = Samples(
        location_offsets=sample_edges,
        locations=gather_lists(location.astype(np.int32), edges[:-1][which], sample_edges),
        values=np.ascontiguousarray(values),
        label_offsets=label_offsets,
        labels=labels,
    )
    return profile


def _labels(profile: Profile, parts: Sequence[Part]) -> tuple[Int64, Labels]:
    """The labels of all samples."""
    add = profile.strings.add
    rows: list[tuple[int, int, int, int]] = []
    edges = [0]
    which = []
    known: dict[Label, tuple[int, int, int, int]] = {}
    for part in parts:
        which.append(part.contexts + (len(edges) - 1))
        for each in part.labels:
            for label in each:
                if label not in known:
                    key, text, number = label
                    name, value = add(key.encode()), add(text.encode("utf-8", "surrogateescape"))
                    known[label] = (name, value, number, 0 if value else name)
            rows += [known[label] for label in each]
            edges.append(len(rows))
    context = np.concatenate(which)
    table = np.array(rows, np.int64).reshape(-1, 4)
    starts = np.array(edges, np.int64)
    counts = np.diff(starts)[context]
    offsets = offsets_of(counts)
    taken = table[ranges(starts[:-1][context], counts)]
    labels = Labels(
        taken[:, 0].astype(np.int32),
        taken[:, 1].astype(np.int32),
        np.ascontiguousarray(taken[:, 2]),
        taken[:, 3].astype(np.int32),
    )
    return offsets, labels


def _locations(profile: Profile, trace: Trace, keys: Int64) -> None:
    """Fill in locations, mappings and functions for frames; odd keys are callers whose address loses 1."""
    table = trace.frames.array()[keys >> 1]
    mapping = table[:, 0].astype(np.int64) - 1
    rel_pc = table[:, 1] - (keys & 1).astype(np.uint64)
    named = (table[:, 2] != 0) | (table[:, 3] != 0)
    real = [row for row in distinct(mapping).tolist() if row >= 0 and not _is_error(trace.mappings[row])]
    order = _main_first(trace.mappings, real)
    address = np.zeros(len(keys), np.uint64)
    row_of = np.full(len(trace.mappings) + 1, NONE, np.int32)
    columns = Mappings.zeros(len(order))
    by_mapping = np.argsort(mapping, kind="stable")
    edges = np.searchsorted(mapping[by_mapping], np.arange(len(trace.mappings) + 1))
    add = profile.strings.add
    for row, number in enumerate(order):
        record = trace.mappings[number]
        here = by_mapping[edges[number] : edges[number + 1]]
        start, limit, offset, address[here] = locate(record, rel_pc[here], named[here])
        columns.start[row], columns.limit[row], columns.file_offset[row] = start, limit, offset
        columns.filename[row] = add(b"[kernel]" if record.name == KERNEL and not record.build_id else record.name)
        columns.build_id[row] = add(build_id_text(record.build_id))
        row_of[number] = row
        profile.modules.append((record.name, record.build_id))
    profile.mappings, profile.id_origins = columns, recorded_ids(columns)
    line_offsets, lines, profile.functions = _lines(trace, table)
    profile.locations = Locations(
        address=address,
        mapping=row_of[mapping],
        is_folded=np.zeros(len(keys), np.bool_),
        line_offsets=line_offsets,
        lines=lines,
        rel_pc=table[:, 1].copy(),
    )


def _is_error(mapping: Mapping) -> bool:
    """Whether a mapping is that of frames which are errors of the unwinder."""
    return mapping.name in (b"", ERROR) and not mapping.build_id and mapping.limit <= mapping.start


def locate(mapping: Mapping, rel_pc: UInt64, named: Bool) -> tuple[int, int, int, UInt64]:
    """Start, limit and file offset of a mapping, and the addresses for `rel_pc`, so that what pprof computes,
    address - start + file offset, is the offset in the ELF file (R125, file offsets to vaddrs; R221, rel_pc).

    The unwinder computed rel_pc = pc - start + (exact_offset - start_offset) + load_bias, so its load bias goes out
    again, whether it was right or not. Where the trace has no offset of the mapping in the file (Android 10), it is the
    page of the lowest address. Where it has no range (Chromium), rel_pc is the vaddr, and the
    mapping is that of all addresses, which both pprof and the lookup take as they are.
    """
    if mapping.limit <= mapping.start:
        return 0, 0 if not rel_pc.any() else TOP, 0, rel_pc
    in_file = rel_pc - np.uint64(mapping.load_bias)
    # A frame with a name and without an address has no code.
    placed = ~named | (rel_pc != 0)
    if mapping.exact_offset is not None:
        offset = (mapping.exact_offset - mapping.start_offset) & TOP
    else:
        offset = int(in_file[placed].min()) // PAGE * PAGE if placed.any() else 0
    address = in_file - np.uint64(offset) + np.uint64(mapping.start)
    return mapping.start, mapping.limit, offset, np.where(placed, address, np.uint64(0))


def _main_first(mappings: Sequence[Mapping], rows: list[int]) -> list[int]:
    """The rows with that of the main binary first, judged by names (pprof schema)."""

    def score(row: int) -> int:
        mapping = mappings[row]
        name = mapping.name
        library = b".so" in name or name.startswith((b"/apex/", b"/system/")) or is_no_file(name)
        return 10 * bool(mapping.build_id) + 10 * bool(name) - 1000 * (library or mapping.limit <= mapping.start)

    if not rows:
        return rows
    main = max(rows, key=score)
    return [main, *(row for row in rows if row != main)] if score(main) > 0 else rows


def _lines(trace: Trace, table: UInt64) -> tuple[Int64, Lines, Functions]:
    """The lines that frames come with: what the trace has symbols for, else the name that the frame has."""
    named = (table[:, 2] != 0) | (table[:, 3] != 0)
    counts = named.astype(np.int64)
    function = table[:, 2].astype(np.int64)
    source = table[:, 3].astype(np.int64)
    line = table[:, 4].astype(np.int64)
    pieces: dict[int, Any] = {}
    if trace.symbols:
        for row, mapping in enumerate(table[:, 0].tolist()):
            if mapping:
                record = trace.mappings[mapping - 1]
                found = trace.symbols.get((record.name, record.build_id))
                if found and (lines := found.get(int(table[row, 1]))):
                    pieces[row] = lines
                    counts[row] = len(lines)
    offsets = offsets_of(counts)
    total = int(offsets[-1])
    columns = np.zeros((total, 3), np.int64)
    own = np.flatnonzero(named)
    columns[offsets[:-1][own]] = np.column_stack([function[own], source[own], line[own]])
    for row, lines in pieces.items():
        columns[offsets[row] : offsets[row + 1]] = [(each.function, each.source, each.line) for each in lines]
    pairs, which = distinct_inverse(columns[:, 0] << 32 | columns[:, 1])
    names = (pairs >> 32).astype(np.int32)
    functions = Functions(names, names.copy(), (pairs & 0xFFFFFFFF).astype(np.int32), np.zeros(len(pairs), np.int64))
    return offsets, Lines(which.astype(np.int32), columns[:, 2].copy(), np.zeros(total, np.int64)), functions

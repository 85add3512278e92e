"""From the bytes of a trace to its profiles.

Perfetto records frames of the kernel in a mapping `/kernel` without range and build id, and without addresses: their
names are recorded or not known at all, and address 0 in such a mapping is not looked up (R242, kernel frames of
Perfetto).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

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
from symbolize.core.compression import CutShort
from symbolize.core.errors import InputError, first_names, printable
from symbolize.core.mapped_names import is_no_file
from symbolize.formats.content import Content
from symbolize.formats.model import ALL, Choice, LoadedProfile, LoadOptions
from symbolize.formats.perfetto.constants import EMPTY, MISSING
from symbolize.formats.perfetto.packets import Packets
from symbolize.formats.perfetto.samples import TEXT_ERROR
from symbolize.formats.perfetto.scan import Scanner
from symbolize.formats.perfetto.trace import Heap, Trace, TraceMapping, machine_of
from symbolize.formats.perfetto.wire import signed
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
from symbolize.proto import perfetto_trace_tags as tags

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
MAX_PACKET: Final = 16 << 20
"""Bytes of the largest packet that is read; larger ones are passed over."""

MAX_PROFILE_FRAMES: Final = 1 << 26
FREE_FRAMES: Final = 1 << 24
MAX_DEPTH: Final = 1000
"""Frames of all samples in one profile: at most, in any case, and beyond it for each sample, since unwinders stop at so
many (R276, size of tables)."""

MAX_PROFILES: Final = 1 << 12
"""Profiles of CPU samples; each costs a pass over all samples."""

MAX_DUMP_SAMPLES: Final = 1 << 28
"""Samples of all heap dumps that are made profiles of; each dump has all callstacks of those before."""

HEAP_GRAPHS: Final = (
    "packets of Java heap graphs were left out, which have no addresses: look at them with ui.perfetto.dev"
)
TOO_LARGE: Final = "{} samples were left out because a profile of all would be too large"

ART: Final = "com.android.art"

NO_STACK: Final = {MISSING: "a part of their callstack is not in the trace", EMPTY: "their callstack is empty"}
"""Why a sample has no callstack."""


@dataclass(frozen=True)
class TracePart:
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
    trace: Trace, parts: Sequence[TracePart], sample_types: Sequence[tuple[str, str]], leaves: LeafKind, *, adjust: bool
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
    label_offsets, labels = _sample_labels(profile, parts)
    profile.samples = Samples(
        location_offsets=sample_edges,
        locations=gather_lists(location.astype(np.int32), edges[:-1][which], sample_edges),
        values=np.ascontiguousarray(values),
        label_offsets=label_offsets,
        labels=labels,
    )
    return profile


def _sample_labels(profile: Profile, parts: Sequence[TracePart]) -> tuple[Int64, Labels]:
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


def _is_error(mapping: TraceMapping) -> bool:
    """Whether a mapping is that of frames which are errors of the unwinder."""
    return mapping.name in (b"", ERROR) and not mapping.build_id and mapping.limit <= mapping.start


def locate(mapping: TraceMapping, rel_pc: UInt64, named: Bool) -> tuple[int, int, int, UInt64]:
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


def _main_first(mappings: Sequence[TraceMapping], rows: list[int]) -> list[int]:
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


def read(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    """The profiles in a trace, which comes in pieces of which only one is retained.

    A trace that is cut off keeps its whole packets. What was left out is in the warnings of the first profile. Raises
    InputError where nothing is left to show.
    """
    trace = Trace()
    scanner = Scanner(trace, Packets(trace, lambda: content.packed_size))
    _scan_all(trace, scanner, content.pieces(is_recording=True))
    scanner.heaps.finish_all()
    found = [*_heaps(trace, options.choice), *_samples(trace, options.choice)]
    warnings = [*trace.warnings, *_dropped(trace, scanner)]
    if not found:
        raise InputError(content.name, _nothing(trace, options.choice, warnings))
    found[0].warnings[:0] = warnings
    return found


def _scan_all(trace: Trace, scanner: Scanner, chunks: Iterator[bytes | memoryview]) -> None:
    """Scan all packets."""
    tail = b""
    done = 0
    to_skip = 0
    try:
        for chunk in chunks:
            piece = bytes(chunk)
            if to_skip:
                taken = min(to_skip, len(piece))
                to_skip -= taken
                done += taken
                piece = piece[taken:]
            data = tail + piece if tail else piece
            if not data:
                continue
            while len(data) < scanner.wanted <= MAX_PACKET:
                more = [data]
                size = len(data)
                while size < scanner.wanted and (further := next(chunks, None)) is not None:
                    more.append(bytes(further))
                    size += len(further)
                if len(more) == 1:
                    break
                data = b"".join(more)
            end = scanner.scan(data)
            done += end
            tail = data[end:]
            if scanner.broken:
                trace.warnings.append(f"The trace is damaged at offset {done:#x}: what follows was not read.")
                return
            if scanner.wanted > MAX_PACKET:
                trace.notes["packets were left out because they are larger than 16 MiB"] += 1
                to_skip = scanner.wanted - len(tail)
                done += len(tail)
                tail = b""
                # The packet is done with; only its end has to be found.
                scanner.forget()
    except CutShort as error:
        trace.warnings.append(f"{error.problem}: the whole packets before its end were read.")
        return
    if tail or to_skip:
        trace.warnings.append(f"The trace is cut off at offset {done:#x}: its last packet is not whole.")


def _dropped(trace: Trace, scanner: Scanner) -> list[str]:
    """What was left out and why, a sentence each."""
    reader, samples, cpu, heaps = trace.reader, trace.samples, scanner.cpu, scanner.heaps
    counts: list[tuple[int, str]] = [
        (reader.damaged, "packets are damaged and were read in part at most"),
        (scanner.nested, "compressed packets within compressed packets were left out"),
        (scanner.losses, "times packets of a sequence were lost while the trace was recorded"),
        (scanner.invalid_state, "packets were left out because what they refer to was lost or never sent"),
        (samples.rejected, f"samples were left out because {NO_STACK[MISSING]}"),
        (samples.empty, f"samples were left out because {NO_STACK[EMPTY]}"),
        (cpu.records_lost, "samples were lost in the kernel"),
        (cpu.skipped[tags.PROFILER_SKIP_READ_STAGE], "samples have no stack: skipped when they were read"),
        (cpu.skipped[tags.PROFILER_SKIP_UNWIND_STAGE], "samples have no stack: skipped when they were unwound"),
        (cpu.skipped[tags.PROFILER_SKIP_UNWIND_ENQUEUE], "samples have no stack: the unwinder could not keep up"),
        (cpu.skipped[tags.PROFILER_SKIP_NOT_IN_SCOPE], "samples are of processes that were not to be profiled"),
        (cpu.skipped[0], "samples have no stack, for a reason that is not known here"),
        (samples.counter_only, "samples count events and have no stack"),
        (scanner.track_stacks, "callstacks of track events were left out"),
        (scanner.heap_graphs, HEAP_GRAPHS),
        (cpu.guardrails, "times the profiler stopped early because of a limit"),
        (cpu.bad_streams, "samples were left out because their time is not known"),
        (heaps.index_gaps, "heap packets are missing or out of order"),
        (heaps.early_heaps, "heap dumps end before their last packet"),
        (heaps.out_of_range, "heap samples were left out because their values are impossible"),
        (samples.saturated, "sums of values were too large and are the largest number instead"),
        (reader.too_many, "entries were left out because the trace has more than any real one"),
    ]
    counts += [(count, note) for note, count in trace.notes.items()]
    return [f"{count} {what}" for count, what in counts if count]


def _nothing(trace: Trace, choice: Choice, warnings: list[str]) -> str:
    """Why there is no profile."""
    if choice != ALL:
        everything = [*_heaps(trace, ALL), *_samples(trace, ALL)]
        if everything:
            return f"the trace has no such profile; it has {first_names(map(_listed, everything))}"
    why = f" ({'; '.join(warnings)})" if warnings else ""
    return f"is a Perfetto trace without heap profiles, CPU samples or samples of Chromium{why}"


def _listed(profile: LoadedProfile) -> str:
    """A profile as errors list it."""
    return f"{profile.name} ({printable(profile.process)})" if profile.process else profile.name


def _loaded(
    trace: Trace, name: str, kind: str, instance: int, pid: int | None, merged: bool, make: Callable[[], Profile]
) -> LoadedProfile:
    """A profile of the trace: of a process, or with `merged` of all."""
    process = b"" if merged else trace.processes.name_of(instance, pid)
    return LoadedProfile(
        name,
        make,
        kind=kind,
        pid=None if merged else pid,
        process=process.decode("utf-8", "backslashreplace"),
        is_merged=merged,
    )


def _labels(trace: Trace, instance: int, pid: int | None) -> list[Label]:
    """The labels of a process; none where its pid is not known."""
    if pid is None:
        return []
    labels: list[Label] = [numbered("pid", pid)]
    if name := trace.processes.name_of(instance, pid):
        labels.append(("process", name.decode("utf-8", "surrogateescape"), 0))
    return labels


def _take_java_names(profile: Profile, trace: Trace, processes: Sequence[tuple[int, int | None]]) -> None:
    """Give a profile of some processes what the trace knows of their obfuscated Java code."""
    profile.obfuscation = trace.java.names_for([path for path, _ in profile.modules], processes)


def numbered(key: str, number: int) -> Label:
    """A label with a number of 64 bits, which pprof has signed."""
    return key, "", signed(number)


def _about(trace: Trace, instance: int, pid: int | None) -> str:
    """A process for the comments of a profile."""
    name = trace.processes.name_of(instance, pid).decode("utf-8", "backslashreplace")
    machine = f" of machine {machine_of(instance)}" if machine_of(instance) else ""
    who = "an unknown process" if pid is None else f"process {pid}"
    return f"{who}{machine}" + (f" ({printable(name)})" if name else "")


def _pid_text(pid: int | None) -> str:
    """A pid for names of files."""
    return "unknown" if pid is None else str(pid)


def file_part(text: str) -> str:
    """A text as a part of a file name."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)[:64].lstrip(".") or "_"


# Heap dumps


@dataclass(eq=False)
class HeapDump:
    """A dump of a heap: what each sequence has of it, as the heap and the number there, and which of how many it is."""

    number: int
    count: int = 0
    parts: list[tuple[Heap, int]] = field(default_factory=list)

    @property
    def heap(self) -> Heap:
        """The heap, as its first sequence has it."""
        return self.parts[0][0]

    @property
    def known(self) -> int:
        """How many callstacks have values by then."""
        return sum(heap.dumps[number].known for heap, number in self.parts)


def _dumps(trace: Trace) -> dict[tuple[int, int | None, str], dict[int, HeapDump]]:
    """The dumps of each heap (instance, pid and name) by time, in the order of the trace. Those of one time are one,
    whichever sequences they are of (R272, dumps of one time).

    In one sequence the later ones continue from the totals of the first; several sequences have totals of their own,
    which are added. Where the state was cleared in between, a callstack that both states name has the total of the last
    one.
    """
    found: dict[tuple[int, int | None, str], dict[int, HeapDump]] = {}
    for heap, dump in trace.heaps.dumps:
        if dump.number != NONE:
            times = found.setdefault((heap.instance, heap.pid, heap.name), {})
            times.setdefault(dump.timestamp, HeapDump(len(times))).parts.append((heap, dump.number))
    for times in found.values():
        for each in times.values():
            each.count = len(times)
    return found


def _heaps(trace: Trace, choice: Choice) -> list[LoadedProfile]:
    """One profile for each process, heap and dump, in the order of the trace."""
    wanted: list[HeapDump] = []
    for (instance, pid, name), times in _dumps(trace).items():
        if choice.takes("heap", pid, trace.processes.name_of(instance, pid), name or "unknown"):
            for each in times.values():
                if "dumps" in choice.merge:
                    each.parts = [(heap, number) for heap, number in each.parts if number == len(heap.dumps) - 1]
                wanted += [each] * bool(each.parts)
    order = {id(dump): row for row, (_, dump) in enumerate(trace.heaps.dumps)}
    wanted.sort(key=lambda each: order[id(each.heap.dumps[each.parts[0][1]])])
    samples = np.cumsum([each.known for each in wanted])
    kept = int(np.searchsorted(samples, MAX_DUMP_SAMPLES, side="right"))
    if kept < len(wanted):
        trace.warnings.append(
            f"{len(wanted) - kept} heap dumps were left out: choose by pid or heap, or merge the dumps"
        )
    groups: dict[Any, list[HeapDump]] = {}
    found: list[LoadedProfile] = []
    for each in wanted[:kept]:
        key: Any = (each.heap.name, each.number if "dumps" not in choice.merge else 0)
        groups.setdefault(key if "processes" in choice.merge else len(groups), []).append(each)
    for dumps in groups.values():
        dumps = [each for each in dumps if any(heap.dumps[number].has_samples for heap, number in each.parts)]
        if dumps:
            heap = dumps[0].heap
            is_merged = "processes" in choice.merge
            who = "all" if is_merged else _pid_text(heap.pid)
            name = f"heap_dump.{len(found) + 1}.{who}.{file_part(heap.name or 'unknown')}"
            make = partial(_heap_profile, trace, dumps)
            loaded = _loaded(trace, name, "heap", heap.instance, heap.pid, is_merged, make)
            number, count = dumps[0].number + 1, dumps[0].count
            loaded.detail = (heap.name or "unknown") + (f", dump {number} of {count}" if count > 1 else "")
            found.append(loaded)
    return found


def _heap_profile(trace: Trace, dumps: Sequence[HeapDump]) -> Profile:
    """The profile of dumps of one kind of heap, one of each process."""
    heap_name = dumps[0].heap.name
    parts, comments = [], []
    space, left = MAX_PROFILE_FRAMES, 0
    warnings: list[str] = []
    for each in dumps:
        heap = each.heap
        totals = [part.totals(number) for part, number in each.parts]
        stacks, values = (np.concatenate(columns) for columns in zip(*totals, strict=True))
        # Several ids may denote one stack.
        used, which = distinct_inverse(stacks)
        sums, saturated = _sums(which, len(used), values)
        count, size, frees, freed = sums.T
        columns = [count, size] if heap_name == ART else [count, size, count - frees, size - freed]
        kept, taken = _fitting(trace, used, space)
        left, space = left + len(used) - kept, space - taken
        contexts = np.zeros(kept, np.int64)
        parts.append(
            TracePart(used[:kept], np.column_stack(columns)[:kept], contexts, [_labels(trace, heap.instance, heap.pid)])
        )
        who = _about(trace, heap.instance, heap.pid)
        comments.append(f"heap {heap_name or 'unknown'} of {who}, dump {each.number + 1} of {each.count}")
        warnings += [f"{who} {what}" for what in dict.fromkeys(note for part, _ in each.parts for note in part.notes)]
        for why, text in NO_STACK.items():
            samples = sum(part.lost[why][0] for part, _ in each.parts)
            lost = sum(part.lost[why][1] for part, _ in each.parts)
            if samples:
                warnings.append(f"{samples} samples with {lost} bytes of {who} were left out because {text}")
        if saturated:
            warnings.append(f"{saturated} sums of values of {who} were too large and are the largest number instead")
    word = "malloc " if heap_name == "libc.malloc" else ""
    if heap_name == ART:
        types = [("Total allocation count", "count"), ("Total allocation size", "bytes")]
    else:
        types = [
            (f"Total {word}count", "count"),
            (f"Total {word}size", "bytes"),
            (f"Unreleased {word}count", "count"),
            (f"Unreleased {word}size", "bytes"),
        ]
    profile = build(trace, parts, types, LeafKind.CALL_SITE, adjust=True)
    _take_java_names(profile, trace, [(each.heap.instance, each.heap.pid) for each in dumps])
    profile.warnings += warnings + ([TOO_LARGE.format(left)] if left else [])
    add = profile.strings.add
    heap = dumps[0].heap
    if heap.interval:
        profile.period_type = ValueType(add(b"space"), add(b"bytes"))
        profile.period = min(heap.interval, (1 << 63) - 1)
    time = heap.dumps[dumps[0].parts[0][1]].timestamp
    profile.time_nanos = trace.clocks.realtime(time, tags.BUILTIN_CLOCK_MONOTONIC_COARSE)
    profile.comments = [add(comment.encode()) for comment in comments[:1000]]
    return profile


def _fitting(trace: Trace, stacks: NDArray[np.integer[Any]], space: int) -> tuple[int, int]:
    """How many samples with these stacks have no more than `space` frames together, and how many they have.

    Samples of one callstack share its frames in the trace, but not in a profile.
    """
    space = min(space, max(FREE_FRAMES, MAX_DEPTH * len(stacks)))
    ends = np.cumsum(np.diff(trace.stacks.arrays()[0])[stacks])
    kept = int(np.searchsorted(ends, space, side="right"))
    return kept, int(ends[kept - 1]) if kept else 0


def _sums(which: Int64, count: int, values: Int64) -> tuple[Int64, int]:
    """Sums of rows by group, and how many were beyond 64 bits."""
    sums = np.zeros((count, values.shape[1]), np.int64)
    rough = np.zeros((count, values.shape[1]), np.float64)
    np.add.at(sums, which, values)
    np.add.at(rough, which, values.astype(np.float64))
    wrong = rough >= 2.0**63
    sums[wrong] = np.iinfo(np.int64).max
    return sums, int(wrong.sum())


# Samples of the CPU


def _samples(trace: Trace, choice: Choice) -> list[LoadedProfile]:
    """One profile for each session and process, in the order of the trace."""
    contexts = trace.samples.contexts.array()
    if not len(contexts):
        return []
    # Contexts of one session and process, in the order of the first of each
    keys, firsts, which = np.unique(contexts[:, :3], axis=0, return_index=True, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    edges = offsets_of(np.bincount(which.ravel()))
    groups: dict[tuple[int, ...], list[int]] = {}
    kinds: dict[tuple[int, ...], str] = {}
    for row in np.argsort(firsts).tolist():
        session, instance, pid = keys[row].tolist()
        kind = trace.sessions.rows[session].kind
        if choice.takes(kind, _known(pid), trace.processes.name_of(instance, _known(pid))):
            key: tuple[int, ...] = (session,) if "processes" in choice.merge else (session, instance, pid)
            groups.setdefault(key, []).append(row)
            kinds[key] = kind
    found = []
    numbers: Counter[str] = Counter()
    if len(groups) > MAX_PROFILES:
        left = len(groups) - MAX_PROFILES
        trace.warnings.append(
            f"The samples of {left} processes were left out: choose by pid or process, or merge the processes"
        )
    for key, parts in islice(groups.items(), MAX_PROFILES):
        kind = kinds[key]
        rows = np.sort(np.concatenate([order[edges[part] : edges[part + 1]] for part in parts]))
        numbers[kind] += 1
        prefix = "profile" if kind == "cpu" else "chromium_profile"
        is_merged = "processes" in choice.merge
        instance, pid = (0, None) if is_merged else (key[1], _known(key[2]))
        name = f"{prefix}.{numbers[kind]}.{'all' if is_merged else f'pid.{_pid_text(pid)}'}"
        found.append(_loaded(trace, name, kind, instance, pid, is_merged, partial(_cpu_profile, trace, rows)))
    return found


def _error_text(trace: Trace, error: int) -> str:
    """An unwinding error: a text of the trace, or one of those that PerfSample numbers."""
    if error >= TEXT_ERROR:
        return trace.strings.text(error - TEXT_ERROR)
    return UNWIND_ERRORS[error] if error < len(UNWIND_ERRORS) else f"error {error}"


def _known(number: int) -> int | None:
    """A pid that a context of samples has as one more, None for 0."""
    return number - 1 if number else None


def _cpu_profile(trace: Trace, rows: Int64) -> Profile:
    """The profile of the samples with these contexts, which are of one session."""
    table = trace.samples
    contexts = table.contexts.array()
    number_of = np.full(len(contexts), -1, np.int64)
    number_of[rows] = np.arange(len(rows))
    samples = table.table.array()
    context = number_of[samples[:, 0].astype(np.int64)]
    here = np.flatnonzero(context >= 0)
    kept, _ = _fitting(trace, samples[here, 1].astype(np.int64), MAX_PROFILE_FRAMES)
    left, here = len(here) - kept, here[:kept]
    number = int(contexts[rows[0], 0])
    session = trace.sessions.rows[number]
    followers = session.followers[: table.stride - 2]
    labels: list[list[Label]] = []
    # Equal labels are one object.
    known: dict[Label, Label] = {}
    for _, instance, process, tid, cpu, mode, error, has_tid in (contexts[row].tolist() for row in rows):
        pid = _known(process)
        each = _labels(trace, instance, pid)
        if has_tid:
            each.append(numbered("tid", tid))
            # Process 0 is the idle task of each CPU.
            name = trace.processes.threads.get((machine_of(instance), tid), b"main" if tid == pid != 0 else b"")
            if name:
                each.append(("thread", name.decode("utf-8", "surrogateescape"), 0))
        if cpu:
            each.append(numbered("cpu", cpu - 1))
        if mode:
            each.append(("mode", MODES[mode] if mode < len(MODES) else f"mode {mode}", 0))
        if error > 1:
            each.append(("unwind_error", _error_text(trace, error), 0))
        labels.append([known.setdefault(label, label) for label in each])
    values = table.array()[here][:, : 2 + len(followers)]
    part = TracePart(samples[here, 1].astype(np.int32), values, context[here], labels)
    types = [("samples", "count"), (session.event, session.unit), *followers]
    profile = build(trace, [part], types, LeafKind.UNKNOWN, adjust=session.kind == "chromium")
    if left:
        profile.warnings.append(TOO_LARGE.format(left))
    add = profile.strings.add
    profile.period_type = ValueType(add(session.event.encode()), add(session.unit.encode()))
    # The event that triggers, not the last follower; old producers write no counts of it.
    profile.default_sample_type = profile.sample_types[int(values[:, 1].any())].type
    profile.period = session.period
    first, last, clock = table.session_times(number)
    if first:
        profile.time_nanos = trace.clocks.realtime(first, clock or tags.BUILTIN_CLOCK_MONOTONIC)
        profile.duration_nanos = last - first
    processes = dict.fromkeys((int(contexts[row, 1]), _known(int(contexts[row, 2]))) for row in rows)
    _take_java_names(profile, trace, list(processes))
    profile.comments = [
        add(f"samples of {session.event} of {_about(trace, *process)}".encode()) for process in list(processes)[:1000]
    ]
    return profile

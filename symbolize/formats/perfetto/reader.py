"""From the bytes of a trace to its profiles."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import NONE, Int64, distinct_inverse, offsets_of
from symbolize.core.compression import CutShort
from symbolize.core.errors import InputError, first_names, printable
from symbolize.formats.content import Content
from symbolize.formats.model import ALL, Choice, LoadedProfile, LoadOptions
from symbolize.formats.perfetto.build import MODES, UNWIND_ERRORS, Label, Part, build
from symbolize.formats.perfetto.constants import EMPTY, MISSING
from symbolize.formats.perfetto.dumps import Heap
from symbolize.formats.perfetto.packets import Packets
from symbolize.formats.perfetto.processes import machine_of
from symbolize.formats.perfetto.scan import Scanner
from symbolize.formats.perfetto.stack_samples import TEXT_ERROR
from symbolize.formats.perfetto.trace import Trace
from symbolize.formats.perfetto.wire import signed
from symbolize.profile.model import LeafKind, Profile, ValueType
from symbolize.proto import perfetto_trace_tags as tags

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

TOO_LARGE: Final = "{} samples were left out because a profile of all would be too large"

ART: Final = "com.android.art"

NO_STACK: Final = {MISSING: "a part of their callstack is not in the trace", EMPTY: "their callstack is empty"}
"""Why a sample has no callstack."""


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


HEAP_GRAPHS: Final = (
    "packets of Java heap graphs were left out, which have no addresses: look at them with ui.perfetto.dev"
)


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
    whichever sequences they are of (R272, dumps of one time)."""
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
            Part(used[:kept], np.column_stack(columns)[:kept], contexts, [_labels(trace, heap.instance, heap.pid)])
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
    part = Part(samples[here, 1].astype(np.int32), values, context[here], labels)
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

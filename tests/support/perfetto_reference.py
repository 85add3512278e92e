"""What a trace holds, worked out from Perfetto's own messages: an oracle for the loader, slow and plain.

It knows no limits, no damage and no reuse of pids, and takes the sequences, dumps and samples as docs/rules.md says.
"""

import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

Frame = tuple[str, str, int]
"""Function, mapping and offset in the file."""
Stack = tuple[Frame, ...]
Label = tuple[str, str | int]
Values = tuple[int, ...]
Contents = dict[tuple[Stack, frozenset[Label]], Values]

MASK64 = (1 << 64) - 1
MODES = {1: "kernel", 2: "user", 3: "hypervisor", 4: "guest kernel", 5: "guest user"}
STACK_MODES = {1: 2, 2: 1, 3: 3, 4: 5, 5: 4}
CLEARED, NEEDS_STATE = 1, 2


class Missing(Exception):
    """A callstack has a part that is not there."""


class Empty(Exception):
    """A callstack has no frames."""


class Tables:
    """What was interned; `shared`: all strings have one space of ids."""

    def __init__(self, shared: bool = False) -> None:
        self.functions: dict[int, bytes] = {}
        self.builds = self.functions if shared else {}
        self.paths = self.functions if shared else {}
        self.mappings: dict[int, Any] = {}
        self.cut: dict[int, str] = {}
        """Paths of mappings, up to the first part that was not there when a sample first needed it."""
        self.frames: dict[int, Any] = {}
        self.stacks: dict[int, Any] = {}
        self.tasks: dict[int, Any] = {}
        self.executions: dict[int, Any] = {}

    def add(self, table: str, entries: Any) -> None:
        """Enter what is new: of an id that is there the first definition stays."""
        for each in entries:
            getattr(self, table).setdefault(each.iid, each.str if hasattr(each, "str") else each)

    def read(self, data: Any) -> None:
        """Enter an InternedData."""
        for table, name in (
            ("functions", "function_names"), ("builds", "build_ids"), ("paths", "mapping_paths"),
            ("mappings", "mappings"), ("frames", "frames"), ("stacks", "callstacks"),
            ("tasks", "stack_sample_task_contexts"), ("executions", "stack_sample_execution_contexts"),
        ):  # fmt: skip
            self.add(table, getattr(data, name))

    def stack(self, iid: int, adjust: bool) -> Stack:
        """The frames of a callstack, leaf first."""
        if iid not in self.stacks:
            raise Missing
        frames = list(self.stacks[iid].frame_ids)[::-1]
        if not frames:
            raise Empty
        return tuple(self.frame(each, adjust and depth > 0) for depth, each in enumerate(frames))

    def frame(self, iid: int, caller: bool) -> Frame:
        """A frame; of callers in mappings without a range the address is moved back."""
        if iid not in self.frames:
            raise Missing
        frame = self.frames[iid]
        function = self.text(self.functions, frame.function_name_id)
        if not frame.mapping_id:
            return function, "", 0
        if frame.mapping_id not in self.mappings:
            raise Missing
        mapping = self.mappings[frame.mapping_id]
        build = self.text(self.builds, mapping.build_id)
        if frame.mapping_id not in self.cut:
            known = itertools.takewhile(self.paths.__contains__, mapping.path_string_ids)
            self.cut[frame.mapping_id] = "".join("/" + self.paths[part].decode() for part in known)
        path = self.cut[frame.mapping_id]
        ranged = mapping.end > mapping.start
        if not (path or build or ranged):
            return function, "", 0
        offset = frame.rel_pc - (mapping.load_bias if ranged else 0) - (caller and not ranged and frame.rel_pc != 0)
        return function, f"{path.replace('//', '/', 1)}@{build.encode().hex()}", offset & MASK64

    def text(self, table: dict[int, bytes], iid: int) -> str:
        """A string; id 0 is the empty one."""
        if iid and iid not in table:
            raise Missing
        return table[iid].decode() if iid else ""


@dataclass
class Counters:
    """The counters of one CPU when a sample was read."""

    losses: int
    total: int
    followers: list[int]


@dataclass
class Entry:
    """What a dump says of a callstack id: the state that it is of, the callstack, and its four values."""

    state: int
    iid: Any
    stack: Stack
    values: Values


@dataclass
class Sequence:
    """The state of a sequence."""

    number: int
    valid: bool = False
    tables: Tables = field(default_factory=Tables)
    inline: Tables | None = None
    state: int = 0
    defaults: Any = None
    session: Any = None
    period: int = 0
    followers: int = 0
    cpus: dict[int | None, Counters] = field(default_factory=dict)
    losses: int = 0
    waiting: list[tuple[Any, int, tuple[Stack, bool] | None, Any, Values]] = field(default_factory=list)
    dump_time: int | None = None
    thread: Any = None
    time: int | None = None

    def heap_stack(self, iid: int) -> Stack:
        """The callstack of a heap sample."""
        if self.inline is not None:
            try:
                return self.inline.stack(iid, True)
            except Missing:
                pass
        return self.tables.stack(iid, True)


class Reference:
    """Reads a trace (a `Trace` message); `profiles` then has the contents of each profile by name."""

    def __init__(self, trace: Any) -> None:
        self.sequences: dict[int, Sequence] = {}
        self.known: set[int] = set()
        self.counts: Counter[str] = Counter()
        self.heaps: dict[tuple[int, int | None, str], dict[int, list[Entry]]] = {}
        self.order: dict[tuple[int | None, str, int], None] = {}
        self.groups: dict[tuple[Any, int | None], dict[tuple[Stack, frozenset[Label]], list[int]]] = {}
        for packet in trace.packet:
            self.packet(packet)
        for seq in self.sequences.values():
            if seq.waiting:
                self.finish(seq)

    def packet(self, packet: Any) -> None:
        """Read a packet: state, defaults, interned data, content."""
        number = packet.trusted_packet_sequence_id
        seq = self.sequences.setdefault(number, Sequence(number))
        flags = packet.sequence_flags
        if packet.previous_packet_dropped and number in self.known and not packet.first_packet_on_sequence:
            self.counts["losses"] += 1
            seq.losses += 1
        self.known.add(number)
        if flags & CLEARED:
            self.settle(seq)
            seq.tables, seq.valid, seq.session, seq.time = Tables(), True, None, None
            seq.state += 1
        elif packet.previous_packet_dropped:
            seq.valid, seq.time = False, None
        if packet.HasField("trace_packet_defaults"):
            self.events(seq, packet.trace_packet_defaults.perf_sample_defaults)
        if packet.HasField("interned_data") and seq.valid:
            seq.tables.read(packet.interned_data)
        if flags & NEEDS_STATE and not seq.valid:
            self.counts["invalid"] += packet.WhichOneof("data") is not None
        elif packet.HasField("profile_packet"):
            self.heap_packet(seq, packet)
        elif packet.HasField("perf_sample"):
            self.perf_sample(seq, packet.perf_sample)
        elif packet.HasField("stack_sample"):
            self.stack_sample(seq, packet.stack_sample)
        elif packet.HasField("thread_descriptor"):
            seq.thread = packet.thread_descriptor
            seq.time = seq.thread.reference_timestamp_us
        elif packet.HasField("streaming_profile_packet"):
            self.streaming(seq, packet.streaming_profile_packet)

    # Heap dumps

    def settle(self, seq: Sequence) -> None:
        """Look up the callstacks of the samples that wait, before the state is cleared."""
        for row, (key, time, settled, iid, values) in enumerate(seq.waiting):
            if settled is None:
                stack = self.looked_up(lambda iid=iid: seq.heap_stack(iid))  # type: ignore[misc]
                seq.waiting[row] = key, time, (stack, True), iid, values

    def looked_up(self, look: Any) -> Stack:
        """A callstack; without frames where there is none, which is counted."""
        try:
            found: Stack = look()
        except Missing:
            self.counts["rejected"] += 1
            return ()
        except Empty:
            self.counts["empty"] += 1
            return ()
        return found

    def heap_packet(self, seq: Sequence, packet: Any) -> None:
        """Read a ProfilePacket."""
        content = packet.profile_packet
        if seq.dump_time is None:
            seq.dump_time = packet.timestamp
        if content.strings or content.frames or content.callstacks or content.mappings:
            seq.inline = seq.inline or Tables(True)
            for table, entries in (
                ("functions", content.strings), ("frames", content.frames), ("stacks", content.callstacks),
                ("mappings", content.mappings),
            ):  # fmt: skip
                seq.inline.add(table, entries)
        for dump in content.process_dumps:
            pid = dump.pid if dump.HasField("pid") else None
            name = dump.heap_name
            time = dump.timestamp or seq.dump_time
            self.order.setdefault((pid, name, time))
            for each in dump.samples:
                values = each.alloc_count, each.self_allocated, each.free_count, each.self_freed
                seq.waiting.append(((seq.number, pid, name), time, None, each.callstack_id, values))
        if not content.continued:
            self.finish(seq)

    def finish(self, seq: Sequence) -> None:
        """Take the samples of a dump that ended."""
        settled_any = False
        for key, time, settled, iid, values in seq.waiting:
            if settled is None:
                stack = self.looked_up(lambda iid=iid: seq.heap_stack(iid))  # type: ignore[misc]
            else:
                stack, settled_any, iid = settled[0], True, object()
            self.heaps.setdefault(key, {}).setdefault(time, []).append(Entry(seq.state, iid, stack, values))
        seq.waiting, seq.inline, seq.dump_time = [], None, None
        seq.state += settled_any

    def heap(self, pid: int | None, name: str, time: int) -> Contents:
        """The totals of a heap at a time: those of each sequence that has a dump of it."""
        found: dict[Stack, list[int]] = defaultdict(lambda: [0] * 4)
        for (_, a_pid, a_name), times in self.heaps.items():
            if (a_pid, a_name) == (pid, name) and time in times:
                for stack, values in self.totals(times, time).items():
                    found[stack] = [a + b for a, b in zip(found[stack], values, strict=True)]
        labels: frozenset[Label] = frozenset() if pid is None else frozenset({("pid", pid)})
        return {
            (stack, labels): (values[0], values[1], values[0] - values[2], values[1] - values[3])
            for stack, values in found.items()
        }

    def totals(self, times: dict[int, list[Entry]], time: int) -> dict[Stack, Values]:
        """The totals of one sequence: of each state in the dump, and a callstack of several has those of the last."""
        entries_so_far: list[Entry] = []
        for each, entries in times.items():
            entries_so_far += entries
            if each == time:
                break
        found: dict[Stack, Values] = {}
        for state in sorted({entry.state for entry in times[time]}):
            rows: list[Entry] = []
            newest: dict[Any, int] = {}
            for entry in entries_so_far:
                if entry.state != state or not entry.stack:
                    continue
                row = newest.get(entry.iid)
                if row is None or rows[row].stack != entry.stack:
                    newest[entry.iid] = len(rows)
                    rows.append(entry)
                else:
                    rows[row] = entry
            sums: dict[Stack, Values] = {}
            for entry in rows:
                before = sums.get(entry.stack, (0, 0, 0, 0))
                sums[entry.stack] = tuple(a + b for a, b in zip(before, entry.values, strict=True))
            found |= {stack: values for stack, values in sums.items() if any(values)}
        return found

    # Samples of the CPU

    def events(self, seq: Sequence, defaults: Any) -> None:
        """The events that PerfSamples count from here on."""
        content = defaults.SerializeToString()
        if seq.defaults != content:
            seq.cpus = {}
        seq.defaults, seq.session = content, ("perf", seq.number, content)
        seq.period, seq.followers = defaults.timebase.period, len(defaults.followers)

    def count(self, session: Any, pid: int | None, labels: list[Label], stack: Stack, values: list[int]) -> None:
        """Add a sample."""
        group = self.groups.setdefault((session, pid), {})
        sums = group.setdefault((stack, frozenset(labels)), [0] * len(values))
        sums[:] = [a + b for a, b in zip(sums, values, strict=True)]

    def perf_sample(self, seq: Sequence, sample: Any) -> None:
        """Read a PerfSample."""
        if sample.kernel_records_lost:
            self.counts["kernel"] += sample.kernel_records_lost
            return
        if seq.session is None:
            raise ValueError("samples without defaults are not for this oracle")
        cpu = sample.cpu if sample.HasField("cpu") else None
        before = seq.cpus.get(cpu)
        known = before is not None and before.losses == seq.losses
        weight, followers = seq.period, [0] * seq.followers
        if before is not None and known:
            if sample.timebase_count >= before.total:
                weight = sample.timebase_count - before.total
            for row, count in enumerate(sample.follower_counts):
                followers[row] = max(count - before.followers[row], 0)
        seq.cpus[cpu] = Counters(seq.losses, sample.timebase_count, list(sample.follower_counts))
        if sample.HasField("sample_skipped_reason"):
            self.counts["skipped"] += 1
            return
        if not sample.callstack_iid:
            self.counts["counter only"] += 1
            return
        if stack := self.looked_up(lambda: seq.tables.stack(sample.callstack_iid, False)):
            task = [name for name in ("pid", "tid", "cpu") if sample.HasField(name)]
            labels: list[Label] = [(name, getattr(sample, name)) for name in task]
            pid = sample.pid if "pid" in task else None
            labels += [("mode", MODES[sample.cpu_mode])] if sample.cpu_mode else []
            labels += main(pid, sample.tid if "tid" in task else None)
            self.count(seq.session, pid, labels, stack, [1, weight, *followers])

    def stack_sample(self, seq: Sequence, sample: Any) -> None:
        """Read a StackSample of the default event."""
        task, execution = sample.task_context, sample.execution_context
        if sample.task_context_iid:
            task = seq.tables.tasks.get(sample.task_context_iid)
        if sample.execution_context_iid:
            execution = seq.tables.executions.get(sample.execution_context_iid)
        if task is None or execution is None:
            self.counts["rejected"] += 1
            return
        if not sample.HasField("callstack_iid"):
            self.counts["counter only"] += 1
            return
        if stack := self.looked_up(lambda: seq.tables.stack(sample.callstack_iid, False)):
            pid = task.pid if task.HasField("pid") else None
            tid = task.tid if task.HasField("tid") else None
            labels: list[Label] = [(name, value) for name, value in (("pid", pid), ("tid", tid)) if value is not None]
            labels += [("cpu", execution.cpu)] if execution.HasField("cpu") else []
            labels += [("mode", MODES[STACK_MODES[execution.mode]])] if execution.mode else []
            weight = sample.primary_weight if sample.HasField("primary_weight") else 1
            self.count(("stack", seq.number), pid, labels + main(pid, tid), stack, [1, weight])

    def streaming(self, seq: Sequence, content: Any) -> None:
        """Read a StreamingProfilePacket."""
        if seq.time is None:
            self.counts["timeless"] += len(content.callstack_iid)
            return
        pid = seq.thread.pid if seq.thread.HasField("pid") else None
        tid = seq.thread.tid if seq.thread.HasField("tid") else None
        labels: list[Label] = [(name, value) for name, value in (("pid", pid), ("tid", tid)) if value is not None]
        for iid, delta in zip(content.callstack_iid, content.timestamp_delta_us, strict=True):
            seq.time += delta
            if stack := self.looked_up(lambda iid=iid: seq.tables.stack(iid, True)):  # type: ignore[misc]
                self.count("chromium", pid, labels + main(pid, tid), stack, [1, 1000 * max(delta, 0)])

    def profiles(self) -> dict[str, Contents]:
        """The contents of all profiles by name."""
        found: dict[str, Contents] = {}
        for pid, name, time in self.order:
            if contents := self.heap(pid, name, time):
                who = "unknown" if pid is None else pid
                found[f"heap_dump.{len(found) + 1}.{who}.{name or 'unknown'}"] = contents
        numbers: Counter[str] = Counter()
        for (session, pid), group in self.groups.items():
            kind = "chromium_profile" if session == "chromium" else "profile"
            numbers[kind] += 1
            who = "unknown" if pid is None else pid
            found[f"{kind}.{numbers[kind]}.pid.{who}"] = {key: tuple(values) for key, values in group.items()}
        return found


def main(pid: int | None, tid: int | None) -> list[Label]:
    """The label of the main thread."""
    return [("thread", "main")] if pid is not None and pid == tid and pid else []

"""Traces made of Perfetto's own messages say what those of the tests' writer say."""

import io
from typing import Any

from symbolize.formats import encode, load_all
from symbolize.formats.perfetto import KNOWN_WIRE, matches
from tests.support import perfetto_writer as w
from tests.support.needs import package

messages = package("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

BUILD_ID = b"twenty bytes of text"


def fill_names(data: Any) -> None:
    """Two frames of one mapping, and a callstack of both."""
    for table, iid, text in (
        (data.function_names, 1, b"main"),
        (data.function_names, 2, b"alloc"),
        (data.build_ids, 1, BUILD_ID),
        (data.mapping_paths, 1, b"app"),
        (data.source_paths, 1, b"a.c"),
    ):
        table.add(iid=iid, str=text)
    data.mappings.add(
        iid=1, build_id=1, exact_offset=0x1000, start_offset=0, start=0x10000, end=0x20000, load_bias=0x1000,
        path_string_ids=[1],
    )  # fmt: skip
    data.frames.add(iid=1, function_name_id=1, mapping_id=1, rel_pc=0x2100)
    data.frames.add(iid=2, function_name_id=2, mapping_id=1, rel_pc=0x2200, source_path_iid=1, line_number=9)
    data.callstacks.add(iid=1, frame_ids=[1, 2])


NAMES = w.interned(
    {1: "main", 2: "alloc"}, {1: BUILD_ID}, {1: "app"}, {1: "a.c"},
    [w.mapping(1, 1, 0x10000, 0x20000, 0x1000, 0, 0x1000, [1])],
    [w.frame(1, 1, 1, 0x2100), w.frame(2, 2, 1, 0x2200, source=1, line=9)],
    [w.callstack(1, [1, 2])],
)  # fmt: skip


def official() -> bytes:
    """A trace with all that is read, made by protobuf."""
    trace = messages.Trace()
    tree = trace.packet.add().process_tree
    tree.processes.add(pid=7, ppid=1, cmdline=["/bin/app --x"])
    tree.threads.add(tid=8, name="worker", tgid=7)
    clocks = trace.packet.add().clock_snapshot.clocks
    clocks.add(clock_id=1, timestamp=10**18)
    clocks.add(clock_id=5, timestamp=500)
    state = trace.packet.add(trusted_packet_sequence_id=1, sequence_flags=1, first_packet_on_sequence=True)
    fill_names(state.interned_data)
    defaults = state.trace_packet_defaults
    defaults.timestamp_clock_id = 5
    timebase = defaults.perf_sample_defaults.timebase
    timebase.frequency, timebase.counter = 100, messages.PerfEvents.HW_CPU_CYCLES
    defaults.perf_sample_defaults.followers.add(counter=messages.PerfEvents.HW_INSTRUCTIONS)
    packet = trace.packet.add(trusted_packet_sequence_id=1, sequence_flags=2, timestamp=1500)
    sample = packet.perf_sample
    sample.cpu, sample.pid, sample.tid, sample.callstack_iid = 3, 7, 8, 1
    sample.cpu_mode, sample.timebase_count = messages.Profiling.MODE_USER, 900
    sample.follower_counts.append(70)
    sample.unwind_error = messages.Profiling.UNWIND_ERROR_INVALID_ELF
    trace.packet.add(trusted_packet_sequence_id=1).perf_sample.sample_skipped_reason = 3
    trace.packet.add(trusted_packet_sequence_id=1).perf_sample.kernel_records_lost = 4
    trace.packet.add(trusted_packet_sequence_id=1).perf_sample.producer_event.source_stop_reason = 1
    heap = trace.packet.add(trusted_packet_sequence_id=2, sequence_flags=1)
    fill_names(heap.interned_data)
    dumps = heap.profile_packet.process_dumps
    dump = dumps.add(pid=7, timestamp=1000, heap_name="libc.malloc", sampling_interval_bytes=4096, buffer_overran=True)
    dump.samples.add(callstack_id=1, self_allocated=100, self_freed=40, alloc_count=3, free_count=1)
    top = dumps.add(pid=7, timestamp=1000, heap_name="top", orig_sampling_interval_bytes=4096)
    top.samples.add(callstack_id=1, self_allocated=100, self_max=80, self_max_count=2)
    stream = trace.packet.add(trusted_packet_sequence_id=3, sequence_flags=1)
    fill_names(stream.interned_data)
    thread = stream.thread_descriptor
    thread.pid, thread.tid, thread.reference_timestamp_us = 7, 9, 5
    packet = trace.packet.add(trusted_packet_sequence_id=3)
    packet.streaming_profile_packet.callstack_iid.extend([1, 1])
    packet.streaming_profile_packet.timestamp_delta_us.extend([20, -5])
    symbols = trace.packet.add().module_symbols
    symbols.path, symbols.build_id = "/app", BUILD_ID.decode()
    symbols.address_symbols.add(address=0x2100).lines.add(function_name="main2", source_file_name="m.c", line_number=4)
    content: bytes = trace.SerializeToString()
    return content


def own() -> bytes:
    """The same by the writer."""
    defaults = w.message({58: 5, 12: w.message({1: w.message({2: 100, 4: 10}), 4: w.message({1: 11})})})
    clocks = [w.message({1: 1, 2: 10**18}), w.message({1: 5, 2: 500})]
    heap = [
        w.heap_dump(7, [w.heap_sample(1, 100, 40, 3, 1)], f12=4096, f7=1),
        w.heap_dump(7, [w.heap_sample(1, 100, top=80, top_count=2)], heap="top", f13=4096),
    ]
    return b"".join(
        [
            w.process_tree({7: ["/bin/app --x"]}, {8: ("worker", 7)}),
            w.packet(None, rest={6: w.message({1: clocks})}),
            w.packet(1, w.CLEARED, NAMES, defaults, rest={87: 1}),
            w.perf_sample(1, 7, 8, 3, 2, 900, [70], flags=2, time=1500, f16=8),
            w.perf_sample(None, f18=3),
            w.perf_sample(None, f17=4),
            w.perf_sample(None, f19=w.message({1: 1})),
            w.packet(2, w.CLEARED, NAMES, rest={37: w.message({5: heap})}),
            w.packet(3, w.CLEARED, NAMES, rest={44: w.message({1: 7, 2: 9, 6: 5})}),
            w.packet(3, rest={54: w.message({1: [1, 1], 2: [20, -5]})}),
            w.module_symbols("/app", BUILD_ID, {0x2100: [("main2", "m.c", 4)]}),
        ]
    )


def read(trace: bytes) -> list[tuple[str, bytes, list[str]]]:
    """Names, bytes and warnings of the profiles of a trace."""
    found = [(each.name, each.profile) for each in load_all(io.BytesIO(trace))]
    return [(name, encode(profile), profile.warnings) for name, profile in found]


def test_messages_of_perfetto() -> None:
    """Both traces give the same profiles, and all that was put in."""
    found = read(official())
    assert found == read(own())
    assert [name for name, _, _ in found] == [
        "heap_dump.1.7.libc.malloc",
        "heap_dump.2.7.top",
        "profile.1.pid.7",
        "chromium_profile.1.pid.7",
    ]
    warnings = "; ".join(found[0][2])
    for part in ("could not keep up", "4 samples were lost in the kernel", "stopped early", "overran"):
        assert part in warnings


def test_what_a_trace_may_begin_with() -> None:
    """A packet with any one field that is read, or with one of those around, is a trace, if it has the schema's wire
    type (rule R220)."""
    described = messages.TracePacket.DESCRIPTOR.fields_by_number
    read_ones = {2, 6, 8, 10, 11, 12, 13, 37, 41, 42, 43, 44, 47, 50, 54, 56, 58, 59, 60, 61, 64, 66, 87, 98, 133, 135}
    assert read_ones <= KNOWN_WIRE.keys()
    lengths = {described[2].TYPE_MESSAGE, described[2].TYPE_BYTES, described[2].TYPE_STRING}
    for number in KNOWN_WIRE:
        # The package leaves out Java heap graphs.
        is_bytes = number == 56 or described[number].type in lengths
        assert matches(w.field(1, w.field(number, b"" if is_bytes else 1)))
        assert not matches(w.field(1, w.field(number, 1 if is_bytes else b"")))

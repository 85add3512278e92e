"""Packets that a trace has few of: compressed packets, clocks, names of processes and threads, symbols."""

from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from symbolize.core.compression import ZLIB_OR_GZIP, ZSTD, CompressionError, MissingCodec, first_bytes
from symbolize.formats.perfetto.trace import MAX_PATH, SymbolLine, Trace
from symbolize.formats.perfetto.wire import fields, message, signed
from symbolize.names.stand_ins import says_nothing
from symbolize.proto import perfetto_trace_tags as tags

MAX_INFLATED: Final = 16 << 20
"""Bytes in one compressed packet; Perfetto's own have less than 512 KiB before they are compressed."""

MAX_INFLATED_RATIO: Final = 100
FREE_INFLATED: Final = 32 << 20
"""Beyond so many bytes in all compressed packets, they may be only so many times as large as what they were made of:
the packets, and the input itself where that was compressed too (R277, ratio of all layers)."""

MAX_SYMBOLS: Final = 1 << 20
"""Modules and addresses that the trace brings symbols for, and lines of them."""
MAX_LINES: Final = 1000
"""Lines of one address."""

MAX_TIME: Final = 1 << 52
"""Microseconds before and after 0 that a reference time may be."""

KTHREADD: Final = 2
"""The process that starts the threads of the kernel."""


class Packets:
    """Reads rare packets into a trace. `packed` returns how many bytes of a compressed input were read so far."""

    def __init__(self, trace: Trace, packed: Callable[[], int] | None = None) -> None:
        self._trace = trace
        self._packed = packed
        self._inflated = self._deflated = 0
        self._symbol_count = 0

    def inflate(self, tag: int, data: bytes) -> bytes | None:
        """The packets in a compressed packet; None, which is noted, if they cannot be read."""
        self._deflated += len(data)
        packed = self._deflated if self._packed is None else min(self._deflated, self._packed())
        limit = min(MAX_INFLATED, max(FREE_INFLATED, MAX_INFLATED_RATIO * packed) - self._inflated)
        codec = ZLIB_OR_GZIP if tag == tags.TRACE_PACKET_COMPRESSED_PACKETS else ZSTD
        problem = " because they expand as only bombs do"
        inflated, is_cut = b"", False
        try:
            if limit > 0:
                inflated, is_cut = first_bytes(data, codec, limit + 1)
        except MissingCodec:
            problem = ": zstd needs the Python package zstandard"
            limit = 0
        except CompressionError:
            problem = " because they are damaged"
            limit = 0
        if limit <= 0 or len(inflated) > limit:
            self._trace.notes[f"compressed packets were left out{problem}"] += 1
            return None
        if is_cut:
            self._trace.notes["compressed packets end too early"] += 1
        self._inflated += len(inflated)
        return inflated

    def rare(self, tag: int, data: bytes, seq: Any, machine: int) -> None:
        """Read the field of a packet that the scanner does not read itself. `seq` is the state of its sequence, or
        None."""
        trace = self._trace
        if tag == tags.TRACE_PACKET_PROCESS_TREE:
            self._process_tree(data, machine)
        elif tag == tags.TRACE_PACKET_CLOCK_SNAPSHOT:
            self._clocks(data)
        elif tag == tags.TRACE_PACKET_PROCESS_DESCRIPTOR:
            self._process(message(data), machine)
        elif tag == tags.TRACE_PACKET_THREAD_DESCRIPTOR:
            self._thread(message(data), machine, seq)
        elif tag == tags.TRACE_PACKET_TRACK_DESCRIPTOR:
            track = message(data)
            if (process := track.get(tags.TRACK_DESCRIPTOR_PROCESS)) is not None:
                self._process(message(process), machine)
            if (thread := track.get(tags.TRACK_DESCRIPTOR_THREAD)) is not None:
                self._thread(message(thread), machine, seq)
        elif tag == tags.TRACE_PACKET_MODULE_SYMBOLS:
            self._module_symbols(data)
        elif tag == tags.TRACE_PACKET_DEOBFUSCATION_MAPPING:
            trace.java.mapping(data)
        else:
            trace.java.packages(data)

    def _clocks(self, data: bytes) -> None:
        clocks = self._trace.clocks
        if not clocks:
            for tag, value in fields(data):
                if tag == tags.CLOCK_SNAPSHOT_CLOCKS:
                    clock = message(value)
                    clocks.add(clock.get(tags.CLOCK_CLOCK_ID, 0), clock.get(tags.CLOCK_TIMESTAMP, 0))

    def _process_tree(self, data: bytes, machine: int) -> None:
        processes = self._trace.processes
        for tag, value in fields(data):
            if tag not in (tags.PROCESS_TREE_PROCESSES, tags.PROCESS_TREE_THREADS):
                continue
            if not processes.takes():
                return
            if tag == tags.PROCESS_TREE_PROCESSES:
                self._tree_process(value, machine)
                continue
            thread = message(value)
            if name := thread.get(tags.THREAD_NAME):
                processes.name(processes.threads, (machine, thread.get(tags.THREAD_TID, 0)), name)

    def _tree_process(self, data: bytes, machine: int) -> None:
        process = message(data)
        command = list(islice((value for tag, value in fields(data) if tag == tags.PROCESS_CMDLINE), 2))
        pid = process.get(tags.PROCESS_PID, 0)
        instance = self._described(machine, pid, process.get(tags.PROCESS_PROCESS_START_FROM_BOOT, 0))
        if not self._trace.processes.is_kept(instance):
            return
        if (uid := process.get(tags.PROCESS_UID)) is not None:
            self._trace.java.user(instance, pid, uid)
        if command and command[0]:
            name = command[0].partition(b" ")[0] if len(command) == 1 else command[0]
            if process.get(tags.PROCESS_PPID) == KTHREADD:
                name = name.removesuffix(b"-workqueue")
            self._trace.processes.name(self._trace.processes.names, (instance, pid), name)

    def _described(self, machine: int, pid: int, start: int) -> int:
        """The instance of a process that a packet describes."""
        trace = self._trace
        instance = trace.processes.described(machine, pid, start)
        if trace.processes.is_reused(machine, pid):
            trace.samples.reused.add(pid)
        return instance

    def _process(self, process: dict[int, Any], machine: int) -> None:
        """Read a ProcessDescriptor."""
        processes = self._trace.processes
        name = process.get(tags.PROCESS_DESCRIPTOR_PROCESS_NAME) or process.get(tags.PROCESS_DESCRIPTOR_CMDLINE)
        pid = process.get(tags.PROCESS_DESCRIPTOR_PID)
        if pid is not None and processes.takes():
            pid &= 0xFFFFFFFF
            instance = self._described(machine, pid, process.get(tags.PROCESS_DESCRIPTOR_START_TIMESTAMP_NS, 0))
            if name and (instance, pid) not in processes.names and processes.is_kept(instance):
                processes.name(processes.names, (instance, pid), name)

    def _thread(self, thread: dict[int, Any], machine: int, seq: Any) -> None:
        """Read a ThreadDescriptor: a name, and the thread and the reference time of Chromium's samples."""
        processes = self._trace.processes
        pid, tid = thread.get(tags.THREAD_DESCRIPTOR_PID), thread.get(tags.THREAD_DESCRIPTOR_TID)
        name = thread.get(tags.THREAD_DESCRIPTOR_THREAD_NAME)
        if name and tid is not None and (machine, tid) not in processes.threads and processes.takes():
            processes.name(processes.threads, (machine, tid), name)
        if seq is not None:
            seq.pid = 0 if pid is None else (pid & 0xFFFFFFFF) + 1
            seq.tid, seq.has_tid = tid or 0, tid is not None
            if (time := thread.get(tags.THREAD_DESCRIPTOR_REFERENCE_TIMESTAMP_US)) is not None:
                seq.time_us = max(min(signed(time), MAX_TIME), -MAX_TIME)
                seq.has_time = True

    def _module_symbols(self, data: bytes) -> None:
        """Read a ModuleSymbols; what comes later about an address replaces what came before."""
        values = message(data)
        path, build_id = values.get(tags.MODULE_SYMBOLS_PATH, b""), values.get(tags.MODULE_SYMBOLS_BUILD_ID, b"")
        module = path[:MAX_PATH], build_id[:MAX_PATH]
        if self._has_too_many_symbols():
            return
        self._symbol_count += module not in self._trace.symbols
        found = self._trace.symbols.setdefault(module, {})
        for tag, value in fields(data):
            if tag == tags.MODULE_SYMBOLS_ADDRESS_SYMBOLS:
                address, lines = self._address_symbols(value)
                self._symbol_count += 1 + len(lines)
                if self._has_too_many_symbols():
                    return
                # An address that the symbolizer found nothing at keeps the name that it has.
                if lines:
                    found[address] = lines

    def _has_too_many_symbols(self) -> bool:
        """Whether the limit of symbols is exceeded, which is noted."""
        is_exceeded = self._symbol_count > MAX_SYMBOLS
        if is_exceeded:
            self._trace.notes["symbols were left out because the trace has too many"] += 1
        return is_exceeded

    def _address_symbols(self, data: bytes) -> tuple[int, list[SymbolLine]]:
        """Address and lines of an AddressSymbols."""
        address = 0
        lines: list[SymbolLine] = []
        for tag, value in fields(data):
            if tag == tags.ADDRESS_SYMBOLS_ADDRESS:
                address = value
            elif tag == tags.ADDRESS_SYMBOLS_LINES and len(lines) < MAX_LINES:
                line = message(value)
                source = line.get(tags.LINE_SOURCE_FILE_NAME, b"")
                if says_nothing(source):
                    source = b""
                if name := line.get(tags.LINE_FUNCTION_NAME):
                    row = line.get(tags.LINE_LINE_NUMBER, 0) & 0xFFFFFFFF if source else 0
                    lines.append(SymbolLine(self._trace.string(name), self._trace.string(source), row))
        return address, lines

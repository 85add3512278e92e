"""Reports as simpleperf writes them, and a reader that decodes each record with the protobuf package."""

import struct
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.support.messages import report_sample_pb2 as schema

MAGIC = b"SIMPLEPERF\x01\x00"
Frame = tuple[int, int, int] | tuple[int, int, int, int]
"""Address, file, symbol, and the execution type if there is one."""


def framed(record: schema.Record | bytes) -> bytes:
    """A record with its size."""
    raw = record if isinstance(record, bytes) else record.SerializeToString()
    return struct.pack("<I", len(raw)) + raw


def report(records: Iterable[schema.Record | bytes], end: bytes = bytes(4)) -> bytes:
    """A whole file."""
    return MAGIC + b"".join(map(framed, records)) + end


def meta(*events: bytes, **fields: Any) -> schema.Record:
    """Meta information."""
    return schema.Record(meta_info=schema.MetaInfo(event_type=events or (b"cpu-clock",), **fields))


def sample(thread: int, frames: Iterable[Frame], count: int = 1, time: int = 1, **fields: Any) -> schema.Record:
    """A sample; `error` is the code of an unwinding result."""
    error = fields.pop("error", None)
    result = schema.Sample(thread_id=thread, event_count=count, time=time, **fields)
    for vaddr, file, symbol, *execution in frames:
        entry = result.callchain.add(vaddr_in_file=vaddr, file_id=file, symbol_id=symbol)
        if execution:
            entry.execution_type = execution[0]  # type: ignore[assignment]
    if error is not None:
        result.unwinding_result.error_code = error
    return schema.Record(sample=result)


def file(number: int, path: bytes, symbols: Iterable[bytes] = (), mangled: Iterable[bytes] = ()) -> schema.Record:
    """A file with its functions."""
    return schema.Record(file=schema.File(id=number, path=path, symbol=symbols, mangled_symbol=mangled))


def thread(number: int, process: int, name: bytes) -> schema.Record:
    """A thread."""
    return schema.Record(thread=schema.Thread(thread_id=number, process_id=process, thread_name=name))


def switch(number: int, time: int, on: bool) -> schema.Record:
    """A context switch."""
    return schema.Record(context_switch=schema.ContextSwitch(thread_id=number, time=time, switch_on=on))


def records(data: bytes) -> list[schema.Record]:
    """The records of a sound file."""
    at, found = len(MAGIC), []
    while size := struct.unpack_from("<I", data, at)[0]:
        found.append(schema.Record.FromString(data[at + 4 : at + 4 + size]))
        at += 4 + size
    return found


Stack = tuple[tuple[bytes, int, bytes, bytes], ...]
"""Path, address, name and linked name of each frame, leaf first."""
Model = dict[tuple[Stack, tuple[tuple[bytes, bytes], ...]], dict[bytes, int]]
"""Values by event, for each stack with its labels."""

ERRORS = schema.Sample.UnwindingResult.ErrorCode
TYPES = (b"native", b"interpreted", b"jit", b"art")


def model(found: Iterable[schema.Record]) -> Model:
    """What a report says, without samples off the processor and with all frames."""
    found = list(found)
    info = next((each.meta_info for each in found if each.HasField("meta_info")), schema.MetaInfo())
    files = {each.file.id: each.file for each in found if each.HasField("file")}
    threads = {each.thread.thread_id: each.thread for each in found if each.HasField("thread")}
    result: dict[tuple[Stack, tuple[tuple[bytes, bytes], ...]], Counter[bytes]] = {}
    for each in found:
        if not each.HasField("sample"):
            continue
        one = each.sample
        labels = labels_of(one, threads)
        stack = tuple(frame_of(entry, files) for entry in one.callchain)
        number = one.event_type_id
        name = (
            info.event_type[number] if number < len(info.event_type) else b"event %d" % number if number else b"event"
        )
        values = result.setdefault((stack, labels), Counter())
        values[name + b"_samples"] += 1
        values[name] += one.event_count
    return {key: {name: value for name, value in values.items() if value} for key, values in result.items()}


def labels_of(one: schema.Sample, threads: dict[int, schema.Thread]) -> tuple[tuple[bytes, bytes], ...]:
    """The labels of a sample."""
    known = threads.get(one.thread_id & 0xFFFFFFFF)
    labels = {b"tid": b"%d" % one.thread_id}
    if known is not None:
        labels |= {b"thread": known.thread_name, b"pid": b"%d" % known.process_id}
        if known.process_id in threads:
            labels[b"process"] = threads[known.process_id].thread_name
    if one.callchain and one.callchain[0].HasField("execution_type"):
        labels[b"execution_type"] = TYPES[one.callchain[0].execution_type]
    if one.unwinding_result.error_code:
        labels[b"unwinding_error"] = ERRORS.Name(one.unwinding_result.error_code).encode()
    return tuple(sorted((key, text) for key, text in labels.items() if text))


def frame_of(entry: schema.Sample.CallChainEntry, files: dict[int, schema.File]) -> tuple[bytes, int, bytes, bytes]:
    """A frame with its names, stand-ins too."""
    one = files.get(entry.file_id, schema.File())
    if one.path == b"unknown":
        return b"", entry.vaddr_in_file, b"", b""
    name = mangled = b""
    if 0 <= entry.symbol_id < len(one.symbol):
        name = one.symbol[entry.symbol_id]
        if len(one.mangled_symbol) == len(one.symbol):
            mangled = one.mangled_symbol[entry.symbol_id]
    name = name or mangled
    if not name:
        return one.path, entry.vaddr_in_file, b"", b""
    return one.path, entry.vaddr_in_file, name, mangled

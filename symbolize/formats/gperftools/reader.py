"""CPU profiles of gperftools: a header, binary records, and the memory map of the process as text.

The format is that of gperftools' profiledata.cc, in words of 32 or 64 bits of either byte order; how it becomes a
profile follows pprof's legacy reader, except where that damages data: see `load`.

The header is zero, the number of words that follow, a version, the period in microseconds, and padding. Records are a
count, a depth and that many addresses; the record (0, 1, 0) ends them. Each is a sample with the values count and count
× period.
"""

import struct
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import Bool, Int32, Int64, UInt64, distinct
from symbolize.core.errors import InputError
from symbolize.formats import memory_map
from symbolize.formats.content import Content
from symbolize.formats.gperftools import records as gperftools_records
from symbolize.formats.model import LoadedProfile, LoadOptions, another_profile, only
from symbolize.formats.samples import fill_samples
from symbolize.profile.facts import set_leaves
from symbolize.profile.model import LeafKind, Profile, StackSource, ValueType

PROFILER: Final = rb"ProfileData::(Add|prof_handler)|CpuProfiler::prof_handler|__pthread_sighandler|__restore"
"""What a profiler of CPU time leaves on top of stacks."""

LAYOUTS = "<I", ">I", "<Q", ">Q"
"""The words a profile may be made of, in the order in which pprof tries them."""

MIN_HEADER_WORDS = 3
MAX_HEADER_WORDS = 4096
"""Below any count read in the wrong byte order."""

MAX_CUT_DEPTH = 1 << 16
"""A record that does not fit into the file is taken for one cut off up to this depth, for nonsense beyond."""

INT32_MAX = (1 << 31) - 1
INT64_MAX = (1 << 63) - 1

TRAMPOLINE_ROUNDS = 2
TRAMPOLINE_MIN_RECORDS = 32
TRAMPOLINE_MIN_LEAVES = 2


class GperftoolsHeader(NamedTuple):
    """The header: how the words are stored, at which word the records begin, and the period in nanoseconds."""

    layout: str
    begin: int
    is_java: bool
    period: int

    @property
    def word_size(self) -> int:
        """Bytes in a word."""
        return struct.calcsize(self.layout)


class StackRecords(NamedTuple):
    """The records as CSR columns (`frames` are indices of `addresses`), and the offset of what follows them."""

    offsets: Int64
    counts: UInt64
    frames: Int32
    addresses: UInt64
    end: int = 0

    @classmethod
    def of(cls, offsets: Int64, counts: UInt64, addresses: UInt64, end: int = 0) -> "StackRecords":
        """The records with these addresses, adjusted, in the order of all stacks."""
        distinct, frames = gperftools_records.number(addresses)
        return cls(offsets, counts, frames, distinct, end)

    def without_doubled_leaves(self) -> "StackRecords":
        """Without the caller that is the leaf once more, adjusted like a return address (pprof's legacy reader)."""
        is_doubled = np.diff(self.offsets) > 1
        at = self.offsets[:-1][is_doubled]
        leaf, caller = (self.addresses[self.frames[at + depth]] for depth in (0, 1))
        is_doubled[is_doubled] = leaf == caller + np.uint64(1)
        return _without_unused(_without_second_frames(self, is_doubled))


def matches(head: bytes | memoryview) -> bool:
    """Whether what begins with `head` starts with the header of a gperftools CPU profile, native or Java.

    The first word is zero, which no gzip stream, protobuf message or text starts with.
    """
    return _read_header(memoryview(head)) is not None


def read(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    """The profile of a content. Raises InputError."""
    return only(load(content.whole(), content.name, options.keep_trampolines))


def load(data: memoryview, source: str, keep_trampolines: bool = False, *, is_raw: bool = False) -> Profile:
    """Read a CPU profile, native or Java (R337, ids of Java).

    Sample types, period, the call-site adjustment, the removal of a doubled leaf and the memory map are those of
    pprof's legacy reader. Where it differs:

    - A header may announce more than three words; the further ones are skipped.
    - A file that is cut off keeps its whole records, and one without end marker may go on with the memory map if that
      is plainly text; both are reported in `Profile.warnings`.
    - The leaf's caller is taken for the trampoline of the signal handler only if there are at least 32 records and it
      has two distinct leaves: otherwise the caller of a small program's hot spot would be lost. What is removed is
      reported in `Profile.warnings`; `keep_trampolines` removes nothing.
    - A value that does not fit into 64 bits is an error instead of a wrong number.

    `is_raw` says that the Perl pprof has written the records: without end marker, with addresses in the calls already,
    and without the sampling period (R339, symbolized profiles).
    """
    header = _read_header(data)
    if header is None:
        raise InputError(source, "not a gperftools CPU profile")
    profile = Profile()
    is_final = header.is_java or is_raw
    records = _read_records(data, header, source, profile.warnings, not is_final)
    if is_raw:
        profile.warnings[:] = ["The sampling period was not recorded: times count microseconds for samples."]
    if not is_final:
        if not keep_trampolines:
            records = _without_trampolines(records, profile.warnings)
        records = records.without_doubled_leaves()
    text = _without_others(bytes(data[records.end :]), records.end, profile.warnings)
    if text and not header.is_java and not text[-1:].isspace():
        profile.warnings.append("The memory map ends within a line: its last mapping may be incomplete.")

    nanoseconds = profile.strings.add(b"nanoseconds")
    cpu = ValueType(profile.strings.add(b"cpu"), nanoseconds)
    profile.sample_types = [ValueType(profile.strings.add(b"samples"), profile.strings.add(b"count")), cpu]
    profile.period_type = cpu
    profile.period = header.period
    profile.drop_frames = profile.strings.add(PROFILER)
    counts = records.counts.astype(np.int64)
    values = np.column_stack([counts, counts * header.period])
    set_leaves(profile, LeafKind.UNKNOWN if is_final else LeafKind.EXACT, StackSource.RECORDER)
    fill_samples(profile, records.offsets, records.frames, records.addresses, values)
    if header.is_java:
        from symbolize.formats.legacy.java import name_ids

        name_ids(profile, text)
    else:
        memory_map.attach(profile, text, source)
    return profile


def _without_others(text: bytes, begin: int, warnings: list[str]) -> bytes:
    """What is behind the records at `begin`, up to the header of another profile, which is said."""
    at = text.find(b"\0")
    if at < 0 or _read_header(memoryview(text)[at:]) is None:
        return text
    warnings.append(another_profile(begin + at))
    return text[:at]


def _read_header(data: memoryview) -> GperftoolsHeader | None:
    for layout in LAYOUTS:
        five = f"{layout[0]}5{layout[1]}"
        if len(data) < struct.calcsize(five):
            break
        zero, words, is_java, period, padding = struct.unpack_from(five, data)
        if zero == 0 and MIN_HEADER_WORDS <= words <= MAX_HEADER_WORDS and is_java <= 1 and period > 0 and padding == 0:
            return GperftoolsHeader(layout, 2 + words, is_java == 1, period * 1000)
    return None


def _read_records(
    data: memoryview, header: GperftoolsHeader, source: str, warnings: list[str], adjusts: bool
) -> StackRecords:
    words = _words(data, header.layout)
    if header.begin > len(words):
        raise InputError(source, f"the header announces {header.begin - 2} words but the file ends before", len(data))
    if header.period > INT64_MAX:
        raise InputError(source, f"a sampling period of {header.period} ns is too large", 3 * header.word_size)
    view = words.data
    count, frame_count, stop, is_ended = gperftools_records.measure(view, header.begin)
    end = stop * header.word_size
    if not is_ended:
        end = _end_without_marker(data, header, words, count, stop, source, warnings)
    if frame_count > INT32_MAX:
        raise InputError(source, f"{frame_count} stack frames are more than a profile can index")
    offsets = np.empty(count + 1, np.int64)
    counts = np.empty(count, np.uint64)
    frames = np.empty(frame_count, np.uint64)
    gperftools_records.fill(view, header.begin, offsets.data, counts.data, frames.data, adjusts)
    too_large = counts > np.uint64(INT64_MAX // header.period)
    if too_large.any():
        record = int(np.argmax(too_large))
        at = (header.begin + 2 * record + int(offsets[record])) * header.word_size
        raise InputError(source, f"a count of {counts[record]} samples of {header.period} ns is too large", at)
    return StackRecords.of(offsets, counts, frames, end)


def _words(data: memoryview, layout: str) -> UInt64:
    """The file as integers: a view where it is stored like that, a copy elsewhere."""
    size = struct.calcsize(layout)
    stored = np.frombuffer(data, f"{layout[0]}u{size}", len(data) // size)
    return np.require(stored, np.uint64, ["C", "ALIGNED"])


def _end_without_marker(
    data: memoryview, header: GperftoolsHeader, words: UInt64, count: int, stop: int, source: str, warnings: list[str]
) -> int:
    """Where the records end when the walk stopped at word `stop` without an end marker; says so or raises."""
    end = stop * header.word_size
    if end < len(data) and _is_memory_map(bytes(data[end:]), source):
        warnings.append(f"There is no end marker before the memory map at offset {end:#x}.")
        return end
    if stop + 2 <= len(words) and words[stop + 1] > MAX_CUT_DEPTH:
        raise InputError(source, f"record {count} has an impossible depth of {words[stop + 1]}", end)
    cut = "is cut off" if end < len(data) else "ends without end marker, perhaps cut off,"
    warnings.append(f"The profile {cut} at offset {end:#x}: {count} whole records were read, there is no memory map.")
    return len(data)


def _is_memory_map(text: bytes, source: str) -> bool:
    """Whether what is found instead of a record is text, and text that contains mappings."""
    is_text = not any(byte < ord(" ") and byte not in b"\t\n\r" for byte in set(text))
    return is_text and bool(memory_map.parse(text, source).rows)


def _without_trampolines(records: StackRecords, warnings: list[str]) -> StackRecords:
    """Remove the frame that the signal handler left between leaf and caller; see `load` for when it is taken for that.

    Up to two such layers are removed. A layer is one address that calls the leaf in all records but one in 32
    (pprof's legacy reader).
    """
    total = len(records.counts)
    for _ in range(TRAMPOLINE_ROUNDS):
        at = records.offsets[:-1]
        has_caller = np.diff(records.offsets) > 1
        callers = records.frames[at[has_caller] + 1]
        if total < TRAMPOLINE_MIN_RECORDS or len(callers) < total - total // 32:
            break
        # An address that holds so large a share is the median too.
        candidate = np.partition(callers, len(callers) // 2)[len(callers) // 2]
        is_called = has_caller.copy()
        is_called[has_caller] = callers == candidate
        removed = int(is_called.sum())
        leaves = distinct(records.frames[at[is_called]])
        if removed < total - total // 32 or len(leaves) < TRAMPOLINE_MIN_LEAVES:
            break
        records = _without_second_frames(records, is_called)
        warnings.append(
            f"Address {records.addresses[candidate]:#x}, the caller in {removed} of {total} records, was taken for the "
            "trampoline of the profiler's signal handler and removed."
        )
    return records


def _without_second_frames(records: StackRecords, rows: Bool) -> StackRecords:
    if not rows.any():
        return records
    keep = np.ones(len(records.frames), np.bool_)
    keep[records.offsets[:-1][rows] + 1] = False
    offsets = records.offsets.copy()
    offsets[1:] -= np.cumsum(rows)
    return records._replace(offsets=offsets, frames=records.frames[keep])


def _without_unused(records: StackRecords) -> StackRecords:
    """Drop the addresses that only removed frames used."""
    is_used = np.zeros(len(records.addresses), np.bool_)
    is_used[records.frames] = True
    if is_used.all():
        return records
    renumbered = np.cumsum(is_used, dtype=np.int32) - np.int32(1)
    return records._replace(frames=renumbered[records.frames], addresses=records.addresses[is_used])

"""What all text profiles share: rows of samples, what ends them, the memory map, and how they become a profile.

Viewers leave frames out of stacks, for each kind of profile as pprof gives them (R343, frames to leave out): heaps have
the functions that allocate and everything of Go's runtime, contention those that release locks, everything else what a
profiler of CPU time leaves on stacks.
"""

import math
import re
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Bool, Int64, UInt64, distinct_inverse, offsets_of, views
from symbolize.core.errors import InputError
from symbolize.formats import memory_map
from symbolize.formats.legacy import rows as scanning
from symbolize.formats.samples import note_names
from symbolize.profile.model import Profile

ALLOCATORS: Final = rb"|".join(
    (
        rb"(tc_)?(c|m|re|v|pv)alloc|(tc_)?c?free|(do_|tc_)?memalign|(__|tc_)?posix_memalign",
        rb"tc_(new|delete)(array)?|tc_new(array)?_nothrow|tcmalloc::.*",
        rb"malloc_zone_(malloc|calloc|valloc|realloc|memalign|free)",
        rb"runtime\..*",
        rb"BaseArena::.*|(::)?do_malloc(_no_errno|_pages)?|DoSampledAllocation|MallocedMemBlock::MallocedMemBlock",
        rb"__builtin_(vec_)?(new|delete)|operator new(\[\])?|__libc_malloc|_M_allocate|allocate|cpp_alloc",
        rb"(__gnu_cxx::new_allocator|__malloc_alloc_template|simple_alloc)::allocate",
    )
)
"""Functions that allocate for others."""

ALLOCATORS_KEPT: Final = rb"runtime\.(panic|reflectcall|call[0-9]*)"
"""Of these, what may have called the allocating code."""

LOCKS: Final = rb"|".join(
    (
        rb"(base::)?(RecordLockProfileData|Submit(Mutex|SpinLock)ProfileData).*",
        rb"((base::)?Mutex::)?(AwaitCommon|Unlock|ReaderUnlock).*|((base::)?MutexLock::)?~MutexLock.*",
        rb"(SpinLock::)?(Unlock|SlowUnlock).*|(SpinLockHolder::)?~SpinLockHolder.*",
    )
)
"""Functions that release a lock and count who waited for it."""

MAX_ROWS: Final = 1 << 26
"""Samples of one text; no profiler writes a thousandth of it."""

MAX_FRAMES: Final = (1 << 31) - 1

PIECE: Final = 1 << 20
"""Bytes that are counted at a time."""

NEWLINE: Final = re.compile(rb"\n")
MAP_TITLE: Final = re.compile(rb"(?:--- Memory map: ---|MAPPED_LIBRARIES:)[^\n]*(?:\n|\Z)")
SAMPLE_OR_MAP: Final = re.compile(rb"@[ \t]*0[xX]|" + MAP_TITLE.pattern)
MAP_LINE: Final = re.compile(rb"[ \t]*(?:0x)?[0-9a-fA-F]{4,16}-(?:0x)?[0-9a-fA-F]{4,16}:?\s")
WARNING: Final = b"%warn"
MAX_WARNINGS: Final = 16
MAX_MESSAGE: Final = 1000


class Text(NamedTuple):
    """A text profile: its bytes from `begin` on, what errors call it, and its warnings."""

    data: memoryview
    begin: int
    source: str
    warnings: list[str]

    def line_at(self, at: int) -> tuple[bytes, int]:
        """The line that begins at `at` without blanks around it, and where the next one begins."""
        found = NEWLINE.search(self.data, at)
        end = len(self.data) if found is None else found.end()
        return bytes(self.data[at:end]).strip(), end

    def error(self, problem: str, at: int | None = None) -> InputError:
        """The error that the profile cannot be read."""
        return InputError(self.source, problem, at)


class TextRows(NamedTuple):
    """Rows of samples: a column for each number, the addresses of each as CSR, unadjusted, and where it begins in the
    text. `end` is where the first line behind all rows begins."""

    numbers: list[Int64]
    offsets: Int64
    addresses: UInt64
    lines: Int64
    end: int

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.lines)

    def only(self, kept: Bool) -> "TextRows":
        """Some of the rows."""
        if kept.all():
            return self
        sizes = np.diff(self.offsets)
        addresses = self.addresses[np.repeat(kept, sizes)]
        return self._replace(
            numbers=[column[kept] for column in self.numbers],
            offsets=offsets_of(sizes[kept]),
            addresses=addresses,
            lines=self.lines[kept],
        )


def read_rows(text: Text, begin: int, shape: bytes, *, comment: bytes = b"#", until_other: bool = False) -> TextRows:
    """The rows of samples from `begin` on, up to the memory map, a line that begins with `---`, or the end.

    A line of another shape is left out with a warning, or ends the rows where `until_other` says so. A text that has
    such lines and no rows is refused. A stack ends at the first thing that is no address; if that is not the end of the
    line, a warning counts it. Lines may have any length; a stack has at most 65,536 addresses (R330, rows of samples).
    """
    data = text.data
    capacity = min(_count(data, begin, b"@"), MAX_ROWS)
    columns = shape.count(b"n")
    numbers = np.empty(columns * capacity, np.int64)
    ends = np.zeros(capacity + 1, np.int64)
    lines = np.empty(capacity, np.int64)
    is_cut = np.zeros(capacity, np.uint8)
    addresses = np.empty(_count(data, begin, b"x") + _count(data, begin, b"X"), np.uint64)
    table = scanning.RowColumns(*views(numbers, ends, lines, addresses, is_cut))
    count, at, left_out, first_left_out = 0, begin, 0, begin
    while True:
        count, at = scanning.read(data, at, memoryview(shape), comment[0], table, count)
        if at == len(data) or until_other:
            break
        if count == MAX_ROWS:
            raise text.error(f"has more than {MAX_ROWS} samples", at)
        line, behind = text.line_at(at)
        if line.startswith(b"---") or MAP_TITLE.search(line) or MAP_LINE.match(line + b" "):
            break
        if line.startswith(WARNING):
            warn(text, line)
        else:
            first_left_out = first_left_out if left_out else at
            left_out += 1
        at = behind
    if left_out and not count:
        raise text.error("has a line that is no sample", first_left_out)
    if left_out:
        where = f"the first at offset {first_left_out:#x}"
        text.warnings.append(f"Lines that are no samples: {left_out} ({where}); they are left out.")
    if cut := int(is_cut[:count].sum()):
        text.warnings.append(f"Stacks that end in something else than an address: {cut}; the rest of them is lost.")
    if int(ends[count]) > MAX_FRAMES:
        raise text.error(f"{int(ends[count])} stack frames are more than a profile can index")
    found = [numbers[i * capacity : i * capacity + count] for i in range(columns)]
    return TextRows(found, ends[: count + 1], addresses[: int(ends[count])], lines[:count], at)


def read_attributes(text: Text) -> tuple[dict[bytes, bytes], int]:
    """The lines `KEY = VALUE` below the title, or two titles, and where the first other line begins."""
    attributes: dict[bytes, bytes] = {}
    begin = text.begin
    while begin < len(text.data):
        line, behind = text.line_at(begin)
        key, equals, value = line.partition(b"=")
        if line.startswith(WARNING):
            warn(text, line)
        elif equals and not line.startswith(b"-"):
            attributes[key.strip()] = value.strip()
        elif line and not line.startswith(b"#") and (attributes or not line.startswith(b"---")):
            break
        begin = behind
    return attributes, begin


def warn(text: Text, line: bytes) -> None:
    """Pass on a line that the profiler wrote to warn of its own profile."""
    message = line.removeprefix(WARNING).strip().decode("utf-8", "backslashreplace")
    warning = f"The profiler warns: {message[:MAX_MESSAGE]}"
    if message and warning not in text.warnings and len(text.warnings) < MAX_WARNINGS:
        text.warnings.append(warning)


def _count(data: memoryview, begin: int, byte: bytes) -> int:
    """How often a byte occurs from `begin` on."""
    values = np.frombuffer(data, np.uint8)
    return sum(int(np.count_nonzero(values[at : at + PIECE] == byte[0])) for at in range(begin, len(values), PIECE))


def memory_map_of(text: Text, begin: int) -> bytes:
    """The text of the memory map, which begins behind its title, at `begin` or later, or at `begin` without one.

    The title, `--- Memory map: ---` or `MAPPED_LIBRARIES:`, may be anywhere in its line. Without one the map begins at
    the first line behind the samples that begins like one of `/proc/PID/maps` (R340, where the memory map begins).
    """
    title = MAP_TITLE.search(text.data, begin)
    if title is not None:
        return bytes(text.data[title.end() :])
    line, _ = text.line_at(begin)
    return bytes(text.data[begin:]) if MAP_LINE.match(line + b" ") else b""


def attach_map(profile: Profile, text: Text, begin: int) -> None:
    """Read the memory map behind the samples, and say which mappings have names already."""
    memory_map.attach(profile, memory_map_of(text, begin), text.source)
    note_names(profile)


def scaled(numbers: Int64, scale: NDArray[np.float64], fits: Bool) -> Int64:
    """`numbers` times `scale`, truncated; where that exceeds 64 bits, `fits` becomes false."""
    product = numbers.astype(np.float64) * scale
    fits &= np.abs(product) < float(1 << 63)
    return np.where(fits, product, 0).astype(np.int64)


def only_fitting(text: Text, rows: TextRows, values: list[Int64], fits: Bool) -> tuple[TextRows, list[Int64]]:
    """The rows with values of 64 bits; says how many others there are."""
    if left_out := int((~fits).sum()):
        text.warnings.append(f"Samples whose values exceed 64 bits: {left_out}; they are left out.")
    return rows.only(fits), [each[fits] for each in values]


def integer(text: bytes) -> int | None:
    """A number as Go's ParseInt reads it with base 0: `0x10` is 16, `010` is 8; None if it is none of 64 bits."""
    sign, digits = (-1, text[1:]) if text[:1] == b"-" else (1, text)
    try:
        value = sign * int(digits, 8 if re.fullmatch(rb"0[0-9]+", digits) else 0)
    except ValueError:
        return None
    return value if -(1 << 63) <= value < 1 << 63 else None


def inside_calls(addresses: UInt64) -> UInt64:
    """Return addresses, moved in place into the call before them, modulo 2**64: the call-site adjustment (R131, one
    adjustment)."""
    addresses -= np.uint64(1)
    return addresses


def without_leaves(offsets: Int64, addresses: UInt64) -> UInt64:
    """Stacks whose leaf is no return address and all other addresses are: the others moved into the calls."""
    moved = inside_calls(addresses)
    moved[offsets[:-1][np.diff(offsets) > 0]] += np.uint64(1)
    return moved


def quotient(sizes: Int64, counts: Int64) -> Int64:
    """Sizes by counts, truncated towards zero as Go divides, 0 where there is no count."""
    found = np.abs(sizes) // np.maximum(np.abs(counts), 1)
    return np.where(counts == 0, 0, np.where((sizes < 0) == (counts < 0), found, -found))


def unsampled(counts: Int64, sizes: Int64, rate: int, fits: Bool) -> tuple[Int64, Int64]:
    """What was allocated, by the objects of which every one was sampled with a probability that its size decides
    (R331, sampled heaps). Where a value exceeds 64 bits, `fits` becomes false.

    Sizes of no objects are kept (R333, sizes without objects). An allocation of s bytes was sampled with the
    probability 1 − exp(−s/rate), so objects and bytes are multiplied by the inverse of that for the mean size of a row,
    in floating point, and truncated towards zero, as pprof does; with a negative count the mean size is without sign.
    Heaps of mmap calls have bytes of no objects (gperftools issue 953), which pprof refuses.
    """
    is_scaled = (counts != 0) & (sizes != 0)
    if rate <= 1:
        return counts, sizes
    scale = np.ones(len(counts), np.float64)
    mean = np.abs(sizes[is_scaled].astype(np.float64) / counts[is_scaled].astype(np.float64))
    means, which = distinct_inverse(mean)
    factors = [1 - math.exp(-each / rate) for each in means.tolist()]
    scale[is_scaled] = np.array([1 / each if each else math.inf for each in factors], np.float64)[which]
    with np.errstate(over="ignore"):
        scaled_counts, scaled_sizes = scaled(counts, scale, fits), scaled(sizes, scale, fits)
    # Objects of no size are none: nothing tells how many of them there were.
    return np.where(is_scaled, scaled_counts, 0), np.where(is_scaled | (counts == 0), scaled_sizes, 0)

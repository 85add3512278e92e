"""Text profiles of gperftools, Go, jemalloc and others: which kind an input is, by its first line that is more than a
comment (R329, kinds of text profiles), and a reader for each kind but those of Java."""

import json
import re
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from symbolize.core.arrays import Int64, offsets_of
from symbolize.core.errors import InputError
from symbolize.formats.content import Content
from symbolize.formats.gperftools import reader as gperftools
from symbolize.formats.gperftools.reader import PROFILER
from symbolize.formats.legacy import java
from symbolize.formats.legacy.java import DURATION, PERIOD, nanoseconds
from symbolize.formats.legacy.text import (
    ALLOCATORS,
    ALLOCATORS_KEPT,
    LOCKS,
    MAP_TITLE,
    SAMPLE_OR_MAP,
    WARNING,
    Text,
    TextRows,
    attach_map,
    inside_calls,
    integer,
    only_fitting,
    quotient,
    read_attributes,
    read_rows,
    scaled,
    unsampled,
    warn,
    without_leaves,
)
from symbolize.formats.model import LoadedProfile, LoadOptions, another_profile, only
from symbolize.formats.samples import (
    Label,
    Names,
    TextFrame,
    fill,
    fill_samples,
    name_locations,
    note_names,
    number_label,
    set_labels,
    value_type,
)
from symbolize.profile.facts import set_leaves
from symbolize.profile.model import LeafKind, Profile, StackSource

# What the kinds share.

MAX_SHOWN: Final = 40
MAX_SKIPPED: Final = 4096
"""Bytes of comments and warnings before the first line that decides."""

# Counts of Go.

COUNTS_HEADER: Final = re.compile(rb"(\S+) profile: total \d+$")
COUNTS_SHAPE: Final = b"n@a"

COUNTS_COMMENT: Final = re.compile(
    rb"\n#\t0x([0-9a-f]{1,16})\t+([^\t\n]+)\+0x[0-9a-f]+(?:\t+([^\t\n]*):(\d{1,18}))?[ \t\r]*(?=\n|\Z)"
)
"""An address inside a call, the function that it is in, and its line, below a sample."""

COUNTS_LABELS: Final = re.compile(rb"\n# labels: (\{[^\n]*\})[ \t\r]*(?=\n|\Z)")
ESCAPE: Final = re.compile(r"\\(?:x([0-9a-f]{2})|U([0-9a-f]{8})|([^xU]))")
ESCAPED_LETTERS: Final = {"a": "\\u0007", "v": "\\u000b"}
"""Escapes of Go's strings that JSON does not have."""
MAX_RUNE: Final = 0x10FFFF
ASCII: Final = 0x7F
LONE_BYTE: Final = 0xDC00
"""What Python adds to a byte that is not UTF-8."""

# Lists of names, and the profiles behind them.

SYMBOLS_TITLE: Final = re.compile(rb"--- *symbolz?\b")
SYMBOL: Final = re.compile(rb"0x0*([0-9a-fA-F]{1,16})\s+(.+)\Z", re.DOTALL)
BINARY: Final = re.compile(rb"binary\s*=\s*(.*)\Z", re.DOTALL)
SEPARATOR: Final = b"--"
"""Between the names at an address, callers before what is inlined into them."""
SECTION: Final = re.compile(
    rb"--- *(heapz?|growthz?|fragmentationz?|contentionz?|profilez?|pmuprofile|censusprofile)\s*\Z"
)
"""The title that the Perl pprof puts before a profile behind a list of names."""

# Threads.

THREADS_TITLE: Final = re.compile(rb"--- threadz \d+ ---|--- Thread ")
NAMED_THREAD_TITLE: Final = re.compile(rb"--- Thread ([0-9a-fA-F]+) \(name: (.*)/(\d{1,18})\) stack: ---")
UNNAMED_THREAD_TITLE: Final = re.compile(rb"--- Thread ([0-9a-fA-F]+)\b")
THREAD_FRAMES: Final = re.compile(rb"(?:[\w ]{1,40}:|@)?\s*((?:0[xX][0-9a-fA-F]+(?:[\s,:]+|\Z))+)")
"""The addresses in a line, before which may be what they are of, and after the last of which may be its name."""

THREAD_ADDRESS: Final = re.compile(rb"0[xX]([0-9a-fA-F]+)")

SAME_STACK: Final = b"same as previous thread"
NO_STACK: Final = b"---- no stack trace for"
MAX_ADDRESS: Final = (1 << 64) - 1
MAX_THREAD_FRAMES: Final = 1 << 22

# Heaps of gperftools and Go, and of jemalloc.

HEAP_HEADER: Final = re.compile(
    rb"heap profile: *(-?\d+): *(-?\d+) *\[ *(-?\d+): *(-?\d+) *\](?: *@ *([^/\s]*)(?:/(\d+))?)?"
)
HEAP_SHAPE: Final = b"n:n[n:n]@a"

JEMALLOC_HEADER: Final = re.compile(rb"heap_v2/(\d+)")
JEMALLOC_SHAPE: Final = b"@a\nt*:n:n[n:n]"
JEMALLOC_THREAD: Final = b"t"
"""What the lines of totals and of single threads begin with, which are skipped (R338, rows of jemalloc)."""

UNSAMPLED: Final = re.compile(rb"heapprofile|growthz?|fragmentationz?")
POISSON: Final = (b"heap_v2", b"heapz_v2")
UNIFORM: Final = (b"heap", b"heapz")
"""Kinds whose rate is twice the mean distance of samples: old ones of gperftools, and those of Go."""

OLD_RATE: Final = 128 << 10
"""The mean distance of samples in profiles whose header has neither kind nor rate."""
MAX_RATE: Final = (1 << 63) - 1
MAX_DIGITS: Final = 19

INUSE: Final = ((b"objects", b"count"), (b"space", b"bytes"))
ALLOCATED_TOO: Final = (
    (b"alloc_objects", b"count"),
    (b"alloc_space", b"bytes"),
    (b"inuse_objects", b"count"),
    (b"inuse_space", b"bytes"),
)

# Contention.

CONTENTION_TITLE: Final = re.compile(rb"--- *(?:contention|mutex|Stacks:)")
CONTENTION_SHAPE: Final = b"nn@a"
CONTENTION_TYPES: Final = ((b"contentions", b"count"), (b"delay", b"nanoseconds"))

CLOCK: Final = b"cycles/second"
ONLY_JAVA: Final = (b"format", b"resolution")


def load_counts(text: Text) -> Profile:
    """Read what begins with `NAME profile: total N` (R335, comments of Go).

    With debug=1 Go writes below a sample its labels, and for each frame that it shows the address in the call, the
    function, file and line. Frames that Go hides (`runtime.goexit`, leaves in the runtime) keep addresses. An empty
    stack is a sample: threads of unknown origin have one.
    """
    line, begin = text.line_at(text.begin)
    header = COUNTS_HEADER.match(line)
    assert header is not None
    rows = read_rows(text, begin, COUNTS_SHAPE)
    profile = Profile(warnings=text.warnings)
    fill(profile, [(header[1], b"count")], rows.numbers[0][:, None], rows.offsets, inside_calls(rows.addresses))
    profile.period_type, profile.period = value_type(profile, header[1], b"count"), 1
    profile.drop_frames = profile.strings.add(PROFILER)
    _label_counts(profile, text, rows)
    attach_map(profile, text, rows.end)
    if names := names_in_comments(text):
        name_locations(profile, lambda address: names.get(address, ()))
    return profile


def names_in_comments(text: Text) -> Names:
    """The functions that comments below samples have for addresses, which are those in the calls already."""
    return {
        int(address, 16): [TextFrame(name, file or b"", int(line or 0))]
        for address, name, file, line in (found.groups() for found in COUNTS_COMMENT.finditer(text.data, text.begin))
    }


def _label_counts(profile: Profile, text: Text, rows: TextRows) -> None:
    """Give samples the labels in the comment below each."""
    found = [(each.start(), each[1]) for each in COUNTS_LABELS.finditer(text.data, text.begin)]
    labels: list[list[Label]] = [[] for _ in range(rows.size)]
    owners = np.searchsorted(rows.lines, [at for at, _ in found]) - 1
    unreadable = 0
    for owner, (_, written) in zip(owners.tolist(), found, strict=True):
        pairs = labels_of(written)
        unreadable += pairs is None
        if owner >= 0 and pairs:
            labels[owner] += pairs
    if unreadable:
        text.warnings.append(f"Labels that cannot be read: {unreadable}; they are left out.")
    if found:
        set_labels(profile, labels)


def labels_of(written: bytes) -> list[Label] | None:
    """The labels in `{"key":"value", ...}`, whose strings Go quotes; None if it is nothing of that kind."""

    def escaped(found: re.Match[str]) -> str:
        byte, rune, letter = found.groups()
        if letter:
            return ESCAPED_LETTERS.get(letter, found[0])
        code = int(byte or rune, 16)
        return json.dumps(chr(LONE_BYTE + code if byte and code > ASCII else min(code, MAX_RUNE)))[1:-1]

    try:
        found = json.loads(ESCAPE.sub(escaped, written.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return None
    try:
        return [
            (key.encode("utf-8", "surrogateescape"), each.encode("utf-8", "surrogateescape"))
            for key, each in found.items()
        ]
    except UnicodeEncodeError:
        return None


def load_symbols(text: Text, load_rest: Callable[[Text], Profile]) -> Profile:
    """Read the list, and what is behind it with `load_rest`.

    The Perl pprof writes `--- symbol`, the program, and names by address, callers before what is inlined into them.
    Behind that is `--- profile` with binary records, or another profile as text, whose callers are inside the calls
    already (R339, symbolized profiles).
    """
    names: dict[int, list[TextFrame]] = {}
    binary = b""
    _, at = text.line_at(text.begin)
    while at < len(text.data):
        line, behind = text.line_at(at)
        at = behind
        if line.startswith(b"---"):
            break
        if found := SYMBOL.match(line):
            names[int(found[1], 16)] = [TextFrame(each) for each in reversed(found[2].split(SEPARATOR)) if each]
        elif found := BINARY.match(line):
            binary = found[1]
    profile = load_rest(text._replace(begin=at))
    if names and not len(profile.locations.lines):
        # The list has callers by an address in the call, and leaves by the one that was recorded.
        name_locations(profile, lambda address: names.get(address) or names.get(address + 1) or ())
        note_names(profile)
    if binary and not profile.mappings.filename.any():
        profile.mappings.filename = np.full(len(profile.mappings), profile.strings.add(binary), np.int32)
    return profile


class Threads:
    """The threads that were read so far: a stack and the labels of each."""

    def __init__(self) -> None:
        self.stacks: list[list[int]] = []
        self.labels: list[list[Label]] = []
        self.size = 0

    def begin(self, line: bytes) -> bool:
        """Begin the thread of a title; False if it is none."""
        title = NAMED_THREAD_TITLE.match(line)
        if title is not None:
            self.labels.append([(b"thread", title[2]), (b"tid", int(title[3]))])
        elif UNNAMED_THREAD_TITLE.match(line):
            self.labels.append([])
        else:
            return False
        self.stacks.append([])
        return True

    def add(self, line: bytes) -> None:
        """Add the addresses of a line to the last thread."""
        if SAME_STACK in line and len(self.stacks) > 1 and not self.stacks[-1]:
            self.stacks[-1] = [*self.stacks[-2]]
            self.size += len(self.stacks[-1])
        elif found := THREAD_FRAMES.match(line):
            addresses = [
                each for each in (int(digits, 16) for digits in THREAD_ADDRESS.findall(found[1])) if each <= MAX_ADDRESS
            ]
            self.stacks[-1] += addresses
            self.size += len(addresses)


def load_threads(text: Text) -> Profile:
    """Read what begins with `--- threadz` or `--- Thread`.

    Each thread is a sample with its name and tid as labels. "same as previous thread" gives it the stack of the one
    before, unless it has its own; without addresses and that sentence its stack is empty. Of a line only the addresses
    at its beginning are taken, behind a word with a colon, not numbers in names of functions. The file may end
    anywhere. A leaf is an address that runs; callers are return addresses; a caller that repeats the leaf is removed
    (R336, threads).
    """
    threads = Threads()
    at = text.begin
    while at < len(text.data):
        line, behind = text.line_at(at)
        if MAP_TITLE.search(line) or line.startswith(NO_STACK):
            break
        if not line.startswith(b"---"):
            if threads.stacks and line:
                threads.add(line)
        elif not threads.begin(line) and threads.stacks:
            break
        if threads.size > MAX_THREAD_FRAMES:
            raise text.error(f"has more than {MAX_THREAD_FRAMES} stack frames", at)
        at = behind
    profile = Profile(warnings=text.warnings)
    offsets = offsets_of([len(each) for each in threads.stacks])
    addresses = np.array([address for stack in threads.stacks for address in stack], np.uint64)
    counts = np.ones(len(threads.stacks), np.uint64)
    found = gperftools.StackRecords.of(offsets, counts, without_leaves(offsets, addresses)).without_doubled_leaves()
    fill_samples(profile, found.offsets, found.frames, found.addresses, np.ones((len(counts), 1), np.int64))
    profile.sample_types = [value_type(profile, b"thread", b"count")]
    profile.period_type, profile.period = value_type(profile, b"thread", b"count"), 1
    profile.drop_frames = profile.strings.add(PROFILER)
    set_labels(profile, threads.labels)
    attach_map(profile, text, at)
    return profile


class Sampling(NamedTuple):
    """How allocations were sampled: the period that the profile gets, the mean distance of samples in bytes (0: every
    allocation was counted), and whether there are columns of everything that was allocated."""

    period: int
    rate: int
    has_allocated: bool


def load_heap(text: Text) -> Profile:
    """Read what begins with `heap profile:` (R331, sampled heaps; R332, columns of heaps).

    The pair in brackets is written if it differs in the header from the first one and is not zero, then before that;
    growth and fragmentation never have it. The label `bytes` is the mean size of what is in use, else of what was
    allocated, before multiplication. All addresses are return addresses, the first too.
    """
    line, begin = text.line_at(text.begin)
    sampling = _sampling(text, line)
    profile = Profile(warnings=text.warnings)
    end = _fill_heap(profile, text, read_rows(text, begin, HEAP_SHAPE), sampling)
    attach_map(profile, text, end)
    if names := names_in_comments(text):
        name_locations(profile, lambda address: names.get(address, ()))
    return profile


def load_jemalloc(text: Text) -> Profile:
    """Read what jemalloc dumps: a stack, and the sum over all threads of what it allocated (R338, rows of jemalloc).

    Behind `heap_v2/RATE` are blocks: the stack, the sum over all threads (`t*:`), and a line for each thread; the
    totals before the first stack are skipped. Every row is multiplied as R331 (sampled heaps) says, also of a jemalloc
    that estimates without bias (5.3): it writes the pair from which this multiplication makes its estimate. What was
    allocated in total is there only with `prof_accum`. All addresses are return addresses.
    """
    line, begin = text.line_at(text.begin)
    header = JEMALLOC_HEADER.match(line)
    assert header is not None
    rate = min(int(header[1][:MAX_DIGITS]), MAX_RATE)
    rows = read_rows(text, begin, JEMALLOC_SHAPE, comment=JEMALLOC_THREAD)
    has_allocated = any(column.any() for column in rows.numbers[2:])
    profile = Profile(warnings=text.warnings)
    attach_map(profile, text, _fill_heap(profile, text, rows, Sampling(rate, rate, has_allocated)))
    return profile


def _sampling(text: Text, line: bytes) -> Sampling:
    """What the header tells.

    The rate is the number in the header for `heap_v2` and `heapz_v2`, half of it for `heap`, 128 KiB where the header
    has no kind and both of its pairs are equal. Without a rate nothing is multiplied, which is a warning (R331, sampled
    heaps).
    """
    header = HEAP_HEADER.search(line)
    if header is None:
        raise text.error("has a damaged header: no counts behind `heap profile:`", text.begin)
    inuse_count, inuse_size, count, size, kind, digits = header.groups()
    has_allocated = count not in (inuse_count, b"0") or size not in (inuse_size, b"0")
    rate = min(int((digits or b"0")[:MAX_DIGITS]), MAX_RATE)
    if not kind:
        is_sampled = (inuse_count, inuse_size) == (count, size)
        return Sampling(OLD_RATE if is_sampled else 1, OLD_RATE if is_sampled else 0, has_allocated)
    if UNSAMPLED.fullmatch(kind):
        return Sampling(1, 0, has_allocated and kind == b"heapprofile")
    if kind not in POISSON + UNIFORM:
        name = kind[:MAX_SHOWN].decode("utf-8", "backslashreplace")
        raise text.error(f"is a heap profile of an unknown kind, {name}", text.begin)
    if kind in UNIFORM:
        rate //= 2
    if not rate:
        text.warnings.append(
            "The header has no sampling rate: values are those of the samples, not of all allocations."
        )
    return Sampling(rate, rate, has_allocated)


def _fill_heap(profile: Profile, text: Text, rows: TextRows, sampling: Sampling) -> int:
    """Make the samples; where the text behind them begins."""
    inuse_count, inuse_size, count, size = rows.numbers
    pairs = [(count, size), (inuse_count, inuse_size)] if sampling.has_allocated else [(inuse_count, inuse_size)]
    block_size = np.zeros(rows.size, np.int64)
    fits = np.ones(rows.size, np.bool_)
    values: list[Int64] = []
    for objects, space in pairs:
        block_size = np.where(objects != 0, quotient(space, objects), block_size)
        values += unsampled(objects, space, sampling.rate, fits)
    uncounted = sum(int(((objects == 0) & (space != 0)).sum()) for objects, space in pairs)
    if uncounted:
        text.warnings.append(f"Sizes of no objects: {uncounted}; they are kept as they are.")
    rows, kept = only_fitting(text, rows, [*values, block_size], fits)
    *values, block_size = kept
    types = ALLOCATED_TOO if sampling.has_allocated else INUSE
    fill(profile, types, np.column_stack(values), rows.offsets, inside_calls(rows.addresses))
    set_leaves(profile, LeafKind.CALL_SITE, StackSource.RECORDER)
    number_label(profile, b"bytes", block_size)
    profile.period_type, profile.period = value_type(profile, b"space", b"bytes"), sampling.period
    profile.drop_frames = profile.strings.add(ALLOCATORS)
    profile.keep_frames = profile.strings.add(ALLOCATORS_KEPT)
    return rows.end


def load_contention(text: Text) -> Profile:
    """Read what begins with `--- contention` or `--- mutex` (R334, contention).

    Rows are cycles and counts; times are made in floating point and truncated. Attributes that are not known are
    ignored, as the Perl pprof does; `format` and `resolution` are those of Java. Numbers are read as Go reads them:
    `010` is 8.
    """
    attributes, begin = read_attributes(text)
    if any(key in attributes for key in ONLY_JAVA):
        return java.load_contention(text, attributes, begin)
    numbers = {key: integer(attributes[key]) for key in (CLOCK, PERIOD, DURATION) if key in attributes}
    for key in [key for key, value in numbers.items() if value is None]:
        raise text.error(f"has no number as {key.decode()}", text.begin)
    clock, period, duration = (numbers.get(key) for key in (CLOCK, PERIOD, DURATION))
    rows = read_rows(text, begin, CONTENTION_SHAPE)
    delays, counts = rows.numbers
    period = 1 if period is None else period
    fits = np.ones(rows.size, np.bool_)
    if period > 0:
        if clock is not None and clock > 0:
            # In this order, in which pprof rounds.
            cycles = delays.astype(np.float64) * float(period) / (clock / 1e9)
            delays = scaled(np.ones(rows.size, np.int64), cycles, fits)
        fits &= np.abs(counts.astype(np.float64)) * period < float(1 << 63)
        counts = np.where(fits, counts, 0) * np.int64(period)
    else:
        text.warnings.append(f"A sampling period of {period} is none: values are not scaled.")
    if clock is None or clock <= 0:
        text.warnings.append("The speed of the clock is not known: delays are in its cycles, not in nanoseconds.")
    rows, values = only_fitting(text, rows, [counts, delays], fits)
    profile = Profile(warnings=text.warnings)
    fill(profile, CONTENTION_TYPES, np.column_stack(values), rows.offsets, inside_calls(rows.addresses))
    set_leaves(profile, LeafKind.CALL_SITE, StackSource.RECORDER)
    profile.period_type, profile.period = value_type(profile, b"contentions", b"count"), period
    profile.duration_nanos = nanoseconds(duration or 0)
    profile.drop_frames = profile.strings.add(LOCKS)
    attach_map(profile, text, rows.end)
    if names := names_in_comments(text):
        name_locations(profile, lambda address: names.get(address, ()))
    return profile


class Kind(NamedTuple):
    """A kind of text profile: how the line that decides begins, and its loader."""

    title: re.Pattern[bytes]
    load: Callable[[Text], Profile]


def _load_symbolized(text: Text) -> Profile:
    return load_symbols(text, _load_section)


KINDS: Final = (
    Kind(re.compile(rb"heap profile:"), load_heap),
    Kind(JEMALLOC_HEADER, load_jemalloc),
    Kind(CONTENTION_TITLE, load_contention),
    Kind(java.HEAP_TITLE, java.load_heap),
    Kind(COUNTS_HEADER, load_counts),
    Kind(THREADS_TITLE, load_threads),
    Kind(SYMBOLS_TITLE, _load_symbolized),
)
"""The kinds of text profiles, the first that fits (R329, kinds of text profiles). Titles need no more than their first
words, so that tools that write like gperftools (`--- contention`) are read."""


ANOTHER: Final = re.compile(rb"\n[ \t]*(?:%b)" % b"|".join(kind.title.pattern for kind in KINDS), re.MULTILINE)
"""The title of a profile behind another one."""
BEHIND: Final = {
    load_contention: SAMPLE_OR_MAP,
    java.load_heap: SAMPLE_OR_MAP,
    load_threads: MAP_TITLE,
}
"""Loaders of profiles that may have several titles, and what comes before that of another profile."""


def matches(head: bytes | memoryview) -> bool:
    """Whether what begins with `head` is a text profile."""
    return _kind(Text(memoryview(head), 0, "", [])) is not None


def read(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    """The text profile of a content.

    Sample types, values, labels, period, drop and keep expressions and the memory map are those of pprof's readers of
    old formats, except where these lose data (docs/legacy-formats.md). Raises InputError.
    """
    text = Text(content.whole(), 0, content.name, [])
    found = _kind(text)
    if found is None:
        raise text.error("is no text profile")
    return only(_load_first(text, *found))


def _load_first(text: Text, kind: Kind, begin: int) -> Profile:
    """The profile of a kind whose title is at `begin`. If another one follows, as when files are joined, this is said:
    dumps of a heap cannot be added up, and programs that ran at other addresses have other memory maps."""
    data = text.data
    _, behind = text.line_at(begin)
    if kind.load is not _load_symbolized:
        first = BEHIND[kind.load].search(data, behind) if kind.load in BEHIND else None
        at = first.end() if first is not None else behind - 1
        other = ANOTHER.search(data, at) if first is not None or kind.load not in BEHIND else None
        if other is not None:
            text.warnings.append(another_profile(other.start() + 1))
            data = data[: other.start() + 1]
    return kind.load(text._replace(data=data, begin=begin))


def _kind(text: Text) -> tuple[Kind, int] | None:
    """The kind of a text, and where its title is; what the profiler warns of before it goes to the warnings.

    Lines of `%warn`, with which gperftools warns of its own profile, may come before the title and among the samples.
    """
    at = text.begin
    while at < min(len(text.data), text.begin + MAX_SKIPPED):
        line, behind = text.line_at(at)
        for kind in KINDS:
            if kind.title.match(line):
                return kind, at
        if line.startswith(WARNING):
            warn(text, line)
        elif line and not line.startswith(b"#"):
            break
        at = behind
    return None


def _load_section(text: Text) -> Profile:
    """The profile behind a list of names: with a title of its own, as text or in the words of a CPU profile."""
    line, behind = text.line_at(text.begin)
    if SECTION.match(line):
        rest = text.data[behind:]
        if gperftools.matches(rest):
            profile = gperftools.load(rest, text.source, is_raw=True)
            profile.warnings = text.warnings + profile.warnings
            return profile
        if _kind(text._replace(begin=behind, warnings=[])) is not None:
            text = text._replace(begin=behind)
    found = _kind(text)
    if found is None or found[0].load is _load_symbolized:
        raise InputError(text.source, "has no profile of a known kind behind its list of names", text.begin)
    return _load_first(text, *found)

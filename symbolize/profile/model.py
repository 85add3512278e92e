"""The columnar profile, its strings, and its stacks as objects.

Every table is a set of parallel numpy arrays; a row is an index. Ids exist only in files: loaders turn them
into indices, the writer numbers afresh. Columns that name a string hold an index into `Profile.strings`
(0: the empty string); columns that name a row of another table hold its index or `NONE`.

Variable-length lists are CSR: list `i` of a table is `[offsets[i], offsets[i + 1])` of its items.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import NONE, TOP, Bool, Int32, Int64, UInt8, UInt64, offsets_of, ranges
from symbolize.core.string_table import StringTable
from symbolize.profile.attachments import Obfuscation, SampleTimes, StackDumps

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Strings(StringTable):
    """Byte strings by index, each stored once; index 0 is the empty string, as in a pprof string table.

    Strings stay bytes (R74, strings as bytes): producers write names that are not UTF-8, and only the writer decodes.
    """

    __slots__ = ()

    def text(self, index: int) -> str:
        """String `index` for a person: bytes that are not UTF-8 come out as `\\xNN`."""
        return self[index].decode("utf-8", "backslashreplace")

    def texts(self, indices: Sequence[int], longest: int | None = None) -> list[str]:
        """Strings for a person, the ends of those with more than `longest` characters; a string that is given often is
        one object."""
        begin = -longest if longest else None
        known = {index: self.text(index)[begin:] for index in set(indices)}
        return [known[index] for index in indices]


class AddressKind(IntEnum):
    """What the addresses in a mapping are."""

    PROCESS = 0
    """Runtime addresses: start, limit and file offset of the mapping locate them."""
    IN_FILE = 1
    """Addresses in the file, of an unknown base: vaddrs, or counted from where the file was mapped."""
    KERNEL = 2
    """Runtime addresses of the kernel, or vaddrs of its vmlinux."""
    NO_BINARY = 3
    """Code without a binary: runtime addresses of compiled code, positions in bytecode."""
    OFFSET = 4
    """Addresses in the file: vaddrs, or counted from where the file was loaded. Offsets of bytes in a file are PROCESS,
    in a mapping with the file offset."""
    LOADED = 5
    """Addresses in the file, counted from where it was loaded."""


class IdOrigin(IntEnum):
    """Where the build id of a mapping was recorded, which is what it proves."""

    UNKNOWN = 0
    """Not said: as good as recorded, because a producer that reads ids later says so."""
    RECORDED = 1
    """With the mapping, from memory or the mapped file: it proves."""
    READ_LATER = 2
    """From the file that had the path at the end: a claim, for the file may have been another one by then."""


class LeafKind(IntEnum):
    """What the address of the innermost frame of a stack is, for the values of a sample type."""

    UNKNOWN = 0
    EXACT = 1
    """The sampled program counter: an instruction begins there."""
    CALL_SITE = 2
    """Inside a call, as the addresses of all callers are."""


class StackSource(IntEnum):
    """How the callers of a profile were found."""

    UNKNOWN = 0
    RECORDER = 1
    """By the recorder, in a way of its own."""
    FRAME_POINTERS = 2
    """By the recorder, along frame pointers: code that keeps none gives frames that are none."""
    OWN_UNWINDING = 3
    """By this package, in copies of the stacks, along call frame information."""

    @classmethod
    def of_all(cls, sources: "set[StackSource]") -> "StackSource":
        """What is known of stacks together that were found in these ways: along frame pointers, if some were, because
        they lack callers, else the only way."""
        if cls.FRAME_POINTERS in sources:
            return cls.FRAME_POINTERS
        return next(iter(sources)) if len(sources) == 1 else cls.UNKNOWN


class ValueType(NamedTuple):
    """What a column of values counts: `type` ("cpu") and `unit` ("nanoseconds") as string indices."""

    type: int = 0
    unit: int = 0


def column(dtype: Any) -> Any:
    """An empty column that is filled by replacing it."""
    return field(default_factory=lambda: np.zeros(0, dtype))


def offsets() -> Any:
    """The offsets of a CSR table without rows."""
    return field(default_factory=lambda: np.zeros(1, np.int64))


@dataclass(eq=False, repr=False)
class Table:
    """Parallel columns of one length."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,} rows of {', '.join(each.name for each in fields(self))}>"

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    @classmethod
    def zeros(cls, count: int) -> Self:
        """A table of `count` rows, every column zero."""
        empty = cls()
        return cls(**{f.name: np.zeros(count, getattr(empty, f.name).dtype) for f in fields(cls)})

    @classmethod
    def joined(cls, tables: Sequence[Self]) -> Self:
        """The rows of all tables, one after another."""
        return cls(**{f.name: np.concatenate([getattr(table, f.name) for table in tables]) for f in fields(cls)})

    def take(self, rows: NDArray[Any]) -> Self:
        """The rows at `rows` (indices or a mask), in that order."""
        return type(self)(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


@dataclass(eq=False, repr=False)
class Mappings(Table):
    """Address ranges of the profiled process; row 0 is the main binary (pprof schema)."""

    start: UInt64 = column(np.uint64)
    limit: UInt64 = column(np.uint64)
    file_offset: UInt64 = column(np.uint64)
    filename: Int32 = column(np.int32)
    build_id: Int32 = column(np.int32)
    has_functions: Bool = column(np.bool_)
    has_filenames: Bool = column(np.bool_)
    has_line_numbers: Bool = column(np.bool_)
    has_inline_frames: Bool = column(np.bool_)


@dataclass(eq=False, repr=False)
class Functions(Table):
    """Functions: `name` for people, `system_name` as linked, `filename` of the lines that name it."""

    name: Int32 = column(np.int32)
    system_name: Int32 = column(np.int32)
    filename: Int32 = column(np.int32)
    start_line: Int64 = column(np.int64)


@dataclass(eq=False, repr=False)
class Lines(Table):
    """Frames of locations: a function, and line and column in its file (0: unknown)."""

    function: Int32 = column(np.int32)
    line: Int64 = column(np.int64)
    column: Int64 = column(np.int64)


@dataclass(eq=False, repr=False)
class Locations:
    """Code addresses. The lines of a location run leaf first: inlined callees before their caller.

    `address` is a runtime address that is already inside the call for every frame but the leaf (R131, one adjustment).
    `rel_pc` is the address relative to the module in a Perfetto trace, `source_row` the row of the location among those
    of all messages of an OTLP input; both are empty in other profiles, and not written. `function_start` is the vaddr
    at which the function of a location without a name begins (0: unknown), or empty; names that stand in have it.

    perf, gperftools, text profiles and Chromium record return addresses, which their readers adjust; pprof files have
    adjusted ones.
    """

    address: UInt64 = column(np.uint64)
    mapping: Int32 = column(np.int32)
    is_folded: Bool = column(np.bool_)
    line_offsets: Int64 = offsets()
    lines: Lines = field(default_factory=Lines)
    rel_pc: UInt64 = column(np.uint64)
    source_row: Int64 = column(np.int64)
    function_start: UInt64 = column(np.uint64)

    def __repr__(self) -> str:
        return f"<Locations: {len(self):,} with {len(self.lines):,} lines>"

    def __len__(self) -> int:
        return len(self.address)

    def has_lines(self) -> Bool:
        """Which locations carry at least one line: bool[n]."""
        return np.diff(self.line_offsets) > 0

    def function_starts(self) -> UInt64:
        """The column `function_start`, or zeros: uint64[n]."""
        return self.function_start if len(self.function_start) else np.zeros(len(self), np.uint64)

    @classmethod
    def joined(cls, tables: "Sequence[Locations]") -> Self:
        """The locations of all tables, one after another; optional columns are those that all have."""
        names = ("address", "mapping", "is_folded", "rel_pc", "source_row")
        columns = {name: [getattr(table, name) for table in tables] for name in names}
        columns["function_start"] = [table.function_starts() for table in tables]
        kept = {name: np.concatenate(parts) for name, parts in columns.items()}
        counts = np.concatenate([np.diff(table.line_offsets) for table in tables])
        return cls(**kept, line_offsets=offsets_of(counts), lines=Lines.joined([table.lines for table in tables]))

    def take(self, rows: Int64) -> "Locations":
        """The locations at `rows` with their lines, in that order."""
        counts = np.diff(self.line_offsets)[rows]
        return Locations(
            address=self.address[rows],
            mapping=self.mapping[rows],
            is_folded=self.is_folded[rows],
            line_offsets=offsets_of(counts),
            lines=self.lines.take(ranges(self.line_offsets[:-1][rows], counts)),
            rel_pc=self.rel_pc[rows] if len(self.rel_pc) else self.rel_pc,
            source_row=self.source_row[rows] if len(self.source_row) else self.source_row,
            function_start=self.function_start[rows] if len(self.function_start) else self.function_start,
        )


@dataclass(eq=False, repr=False)
class Labels(Table):
    """Labels of samples: `text` is a string index; where it is 0, `number` (with `unit`) is the value."""

    key: Int32 = column(np.int32)
    text: Int32 = column(np.int32)
    number: Int64 = column(np.int64)
    unit: Int32 = column(np.int32)


@dataclass(eq=False, repr=False)
class Samples:
    """Stacks with their values. `locations` of a stack run from the leaf to the root; `values` is int64[n, k]."""

    location_offsets: Int64 = offsets()
    locations: Int32 = column(np.int32)
    values: Int64 = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    label_offsets: Int64 = offsets()
    labels: Labels = field(default_factory=Labels)

    def __repr__(self) -> str:
        return (
            f"<Samples: {len(self):,} with {self.values.shape[1]} values each, {len(self.locations):,} frames and "
            f"{len(self.labels):,} labels>"
        )

    def __len__(self) -> int:
        return len(self.location_offsets) - 1

    def taken(self, kept: Bool, locations: Bool | None = None) -> "Samples":
        """The samples that are `kept`, in their order, without the locations on their stacks that are not among
        `locations`, if that is given."""
        frames, labels = np.diff(self.location_offsets), np.diff(self.label_offsets)
        items = np.repeat(kept, frames)
        if locations is None or locations.all():
            sizes = frames[kept]
        else:
            items &= locations[self.locations]
            total = offsets_of(items)
            sizes = (total[self.location_offsets[1:]] - total[self.location_offsets[:-1]])[kept]
        return Samples(
            location_offsets=offsets_of(sizes),
            locations=self.locations[items],
            values=self.values[kept],
            label_offsets=offsets_of(labels[kept]),
            labels=self.labels.take(np.repeat(kept, labels)),
        )


@dataclass(eq=False, repr=False)
class RawFields:
    """Fields of a newer schema than ours, for some rows of a table: those of row `rows[i]` (ascending) are
    `data[offsets[i]:offsets[i + 1]]`, as they were in the file."""

    rows: Int32 = column(np.int32)
    offsets: Int64 = offsets()
    data: UInt8 = column(np.uint8)

    def taken(self, origin: NDArray[Any]) -> "RawFields":
        """The fields of a table whose row i was row `origin[i]` of this one."""
        if not len(self.rows):
            return self
        entries = np.minimum(np.searchsorted(self.rows, origin), len(self.rows) - 1)
        has_fields = self.rows[entries] == origin
        rows, entries = np.flatnonzero(has_fields).astype(np.int32), entries[has_fields]
        sizes = np.diff(self.offsets)
        ends = offsets_of(sizes[entries])
        if np.all(np.diff(entries) > 0):
            kept = np.zeros(len(self.rows), np.bool_)
            kept[entries] = True
            data = self.data[np.repeat(kept, sizes)]
        else:
            data = np.frombuffer(b"".join(self[entry] for entry in entries.tolist()), np.uint8)
        return RawFields(rows, ends, data)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, entry: int) -> bytes:
        """The fields of row `rows[entry]`."""
        return self.data[self.offsets[entry] : self.offsets[entry + 1]].tobytes()


class Frame(NamedTuple):
    """One frame of a stack as `Profile.stacks` gives it. Empty texts and line 0 are unknown; `is_inlined` frames have
    the address of the frame that they are inlined into; `mapping` is the file that was mapped there."""

    function: str
    file: str
    line: int
    column: int
    is_inlined: bool
    address: int
    mapping: str


class FunctionRow(NamedTuple):
    """One function: the value of the samples it is the leaf of (`flat`, its own), and of those it is on the stack of
    (`cumulative`, the total)."""

    name: str
    flat: float
    cumulative: float


class FunctionChange(NamedTuple):
    """One function in two profiles: its values in the new one, as in `FunctionRow`, and in the base."""

    name: str
    flat: float
    cumulative: float
    base_flat: float
    base_cumulative: float


class HasProfile(Protocol):
    """What a `Symbolizer` gives, which stands for its profile."""

    @property
    def profile(self) -> "Profile": ...


def library(module: str) -> Any:
    """A module of a package above this one, for methods that make profiles handy: it is imported when one is called,
    and the model itself depends on none."""
    return import_module(f"symbolize.{module}")


@dataclass(eq=False, repr=False)
class Profile:
    """A profile. `unknown` keeps what a newer schema than ours put in, by table: "sample", "mapping", "location",
    "function", and "profile", which has one row.

    `address_kinds` is an `AddressKind` for each mapping, or empty where all addresses are those of the process.
    `id_origins` is an `IdOrigin` for each mapping and `leaf_kinds` a `LeafKind` for each sample type, each empty where
    all are unknown; these and `stack_source` are what readers know of the evidence in the profile.
    `modules` are the name and the raw build id that a Perfetto trace has for each mapping, and empty in other profiles.
    `obfuscation` are the names that came along for obfuscated Java code. `stack_dumps` are copies of the stacks of
    samples that lack their callers, until they are unwound. `sample_times` says when samples were taken, of processes
    that list the code they compiled with times. `machine` and `kernel_release` are those of the kernel that was
    recorded, in the words of uname, empty if they are not known. `source` is the path that the profile was read from,
    empty if it was none, and `inputs` are those of all profiles that it was merged from. None of these is written.
    """

    strings: Strings = field(default_factory=Strings)
    sample_types: list[ValueType] = field(default_factory=list)
    samples: Samples = field(default_factory=Samples)
    mappings: Mappings = field(default_factory=Mappings)
    locations: Locations = field(default_factory=Locations)
    functions: Functions = field(default_factory=Functions)
    drop_frames: int = 0
    keep_frames: int = 0
    time_nanos: int = 0
    duration_nanos: int = 0
    period_type: ValueType = ValueType()
    period: int = 0
    comments: list[int] = field(default_factory=list)
    default_sample_type: int = 0
    doc_url: int = 0
    unknown: dict[str, RawFields] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    address_kinds: UInt8 = column(np.uint8)
    id_origins: UInt8 = column(np.uint8)
    leaf_kinds: UInt8 = column(np.uint8)
    stack_source: StackSource = StackSource.UNKNOWN
    modules: list[tuple[bytes, bytes]] = field(default_factory=list)
    obfuscation: Obfuscation | None = None
    stack_dumps: StackDumps | None = None
    sample_times: SampleTimes | None = None
    machine: str = ""
    kernel_release: str = ""
    source: str = ""
    inputs: tuple[str, ...] = ()

    @classmethod
    def of(cls, value: object, parameter: str) -> "Profile":
        """The profile that an argument is, or that it has. Raises TypeError, which names the parameter."""
        profile = value if isinstance(value, cls) else getattr(value, "profile", None)
        if not isinstance(profile, cls):
            raise TypeError(f"{parameter}: expected a Profile or a Result, not {type(value).__name__}")
        return profile

    @classmethod
    def from_proto(cls, message: Any) -> "Profile":
        """The profile that a protobuf message of pprof's schema holds, of whatever module its class is.

        Raises TypeError for another message, InputError for one that is no valid profile.
        """
        data = library("proto.messages").serialized(message)
        return library("formats.pprof.reader").load(data, "message")  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        source = f" of {self.source!r}" if self.source else ""
        return (
            f"<Profile{source}: {len(self.samples):,} samples of {len(self.sample_types)} types, "
            f"{len(self.locations):,} locations, {len(self.mappings):,} mappings>"
        )

    def copy(self) -> "Profile":
        """A profile of its own, with the same columns: these are replaced, never changed in place."""
        return replace(
            self,
            strings=self.strings.copy(),
            sample_types=[*self.sample_types],
            samples=replace(self.samples, labels=replace(self.samples.labels)),
            mappings=replace(self.mappings),
            locations=replace(self.locations, lines=replace(self.locations.lines)),
            functions=replace(self.functions),
            comments=[*self.comments],
            unknown={**self.unknown},
            warnings=[*self.warnings],
            modules=[*self.modules],
        )

    def stacks(self) -> Iterator[tuple[Frame, ...]]:
        """The stack of each sample as objects, in the order of the samples: frames from leaf to root, inlined ones too.

        For tests, notebooks and small profiles; a million samples are better read from the columns or `to_arrow`.
        """
        return frame_stacks(self)

    def to_arrow(self) -> "pyarrow.Table":
        """A pyarrow.Table with a row for each frame of each sample; for the columns see `to_pandas`.

        Texts are dictionary arrays, null where unknown. Raises ImportError without pyarrow.
        """
        return library("analysis.frame_table").to_arrow(self)

    def to_pandas(self) -> "pandas.DataFrame":
        """A pandas.DataFrame with a row for each frame of each sample.

        Columns: `sample`, the row of the sample; `depth`, 0 for the leaf; `name`, what pictures show: the function, or
        a stand-in for unnamed code; `function`, `file` and `mapping` (categories, missing where unknown); `line` and
        `column` (0: unknown); `is_inlined`; `address`; the values of the sample, each called "type/unit", which recur
        in all of its rows; and its labels, a column for each of up to 64 keys ("label KEY" if another column is called
        like it), missing where a sample has none. A sample without a stack has one row, `[no stack]`. Raises
        ImportError without pandas.
        """
        return library("analysis.frame_table").to_pandas(self)

    def to_proto(self, message_class: Any = None) -> Any:
        """A protobuf message of pprof's schema, as `write` would write it: of `message_class`, such as
        `profile_pb2.Profile`, else of a class whose strings are bytes, since names need not be UTF-8.

        That class is in a descriptor pool of its own, where it meets no other copy of the schema. Raises TypeError for
        a class of another schema, ImportError without protobuf.
        """
        return library("proto.messages").parsed(library("formats").encode(self), message_class)

    def top(self, count: int = 10, *, sample_type: str | int = "") -> list[FunctionRow]:
        """The functions with the largest value of their own: name, `flat` (the value of the samples it is the leaf of)
        and `cumulative` (of those it is on the stack of). Unnamed code is `module!sub_START` or `[module]`.

        Values are those of `sample_type`, a name or number, else of the default one. Raises UsageError for one that is
        not there, TypeError for wrong arguments.
        """
        return library("analysis").heaviest_functions(self, count, sample_type)  # type: ignore[no-any-return]

    def diff(
        self, base: "Profile | HasProfile", count: int = 10, *, sample_type: str | int = "", normalize: bool = False
    ) -> list[FunctionChange]:
        """The functions whose values differ most from those in `base`: name, `flat` and `cumulative` as in `top`, and
        `base_flat` and `base_cumulative`. With `normalize` values are scaled to the total of the base.

        Raises UsageError if `base` does not have the sample type, TypeError for wrong arguments.
        """
        changed = library("analysis").changed_functions
        return changed(self, Profile.of(base, "base"), count, sample_type, normalize)  # type: ignore[no-any-return]

    def filter(self, **expressions: str) -> "Profile":
        """A profile of its own with the samples and frames that are left by `expressions`, which are the fields of
        `Filters`, as in `profile.filter(focus="main", tagignore="thread=idle")`.

        Raises TypeError for other names, UsageError for an invalid expression.
        """
        return library("analysis").filtered(self, **expressions)  # type: ignore[no-any-return]

    def address_kind(self, mapping: int) -> AddressKind:
        """What the addresses in a mapping are."""
        return AddressKind(self.address_kinds[mapping]) if len(self.address_kinds) else AddressKind.PROCESS

    def id_origin(self, mapping: int) -> IdOrigin:
        """Where the build id of a mapping was recorded."""
        return IdOrigin(self.id_origins[mapping]) if len(self.id_origins) else IdOrigin.UNKNOWN

    def leaf_kind(self, column: int) -> LeafKind:
        """What the leaves are that a sample type, given by its row, counts."""
        return LeafKind(self.leaf_kinds[column]) if len(self.leaf_kinds) else LeafKind.UNKNOWN

    def weight_column(self) -> int:
        """The column of values that weighs samples: the default sample type, else the last one (as pprof does) that
        has values, else the last one."""
        for index, sample_type in enumerate(self.sample_types):
            if self.default_sample_type and sample_type.type == self.default_sample_type:
                return index
        last = len(self.sample_types) - 1
        return next(
            (column for column in range(last, -1, -1) if self.samples.values[:, column : column + 1].any()), last
        )


def frame_stacks(profile: Profile) -> Iterator[tuple[Frame, ...]]:
    """See `Profile.stacks`."""
    made: dict[int, tuple[Frame, ...]] = {}
    offsets, locations = profile.samples.location_offsets.tolist(), profile.samples.locations
    for begin, end in pairwise(offsets):
        stack: list[Frame] = []
        for location in locations[begin:end].tolist():
            if location not in made:
                made[location] = tuple(_frames_of(profile, location))
            stack += made[location]
        yield tuple(stack)


def _frames_of(profile: Profile, location: int) -> Iterator[Frame]:
    """The frames of one location, innermost first."""
    locations, functions, strings = profile.locations, profile.functions, profile.strings
    address, mapping = int(locations.address[location]), int(locations.mapping[location])
    module = strings.text(profile.mappings.filename[mapping]) if mapping != NONE else ""
    begin, end = locations.line_offsets[location : location + 2].tolist()
    if begin == end:
        yield Frame("", "", 0, 0, False, address, module)
    for row in range(begin, end):
        function = locations.lines.function[row]
        line, column = int(locations.lines.line[row]), int(locations.lines.column[row])
        name, file = (strings.text(each[function]) for each in (functions.name, functions.filename))
        yield Frame(name, file, line, column, row + 1 < end, address, module)


def assign_mappings(profile: Profile) -> int:
    """Give locations without a mapping the first one that holds their address; how many got one.

    Address 0 is no address, and a mapping of everything (what a loader makes of addresses outside all others)
    takes none.
    """
    locations = profile.locations
    orphans = np.flatnonzero((locations.mapping == NONE) & (locations.address != 0))
    if not len(orphans) or not len(profile.mappings):
        return 0
    owner = owners(profile.mappings, locations.address[orphans])
    locations.mapping = locations.mapping.copy()
    locations.mapping[orphans] = owner
    return int((owner != NONE).sum())


def owners(mappings: Mappings, address: UInt64) -> Int32:
    """The first mapping that holds each address, NONE where none does."""
    owner = np.full(len(address), NONE, np.int32)
    rows = np.flatnonzero((mappings.start != 0) | ((mappings.limit != 0) & (mappings.limit != TOP)))
    order = rows[np.argsort(mappings.start[rows], kind="stable")]
    start, limit = mappings.start[order], mappings.limit[order]
    if not len(rows):
        return owner
    if (limit[:-1] <= start[1:]).all():
        place = np.searchsorted(start, address, side="right") - 1
        inside = (place >= 0) & (address < np.append(limit, np.uint64(0))[place])
        owner[inside] = order[place[inside]]
    else:
        for row in rows.tolist():
            owner[(owner == NONE) & (address >= mappings.start[row]) & (address < mappings.limit[row])] = row
    return owner


def covers_everything(start: int, limit: int) -> bool:
    """Whether a mapping is the stand-in for addresses outside all mappings: 0 up to the end, or 0 up to 0."""
    return start == 0 and limit in (0, TOP)

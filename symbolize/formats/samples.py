"""Rows of samples as the columns of a profile: sample types, stacks, labels, and names that came along; and stacks of
frames that have names already, put together one by one: what the text of other tools holds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import NONE, Int32, Int64, UInt64, offsets_of
from symbolize.core.errors import InputError
from symbolize.formats.gperftools.records import number
from symbolize.formats.stand_ins import MappingKey
from symbolize.profile.model import Functions, Labels, Lines, Locations, Mappings, Profile, Samples, ValueType

Address = int
Label = tuple[bytes, bytes | int]
"""A key, and a text or a number."""

MAX_FRAMES: Final = 1 << 28
"""Frames of all stacks together."""

INT64_MAX: Final = (1 << 63) - 1
COMMAND_SIZE: Final = 15
"""How much of a name the kernel keeps for a thread."""

MAX_LINE: Final = 1 << 20
"""Bytes of a line; a longer one is not read."""

COUNTS: Final = slice(0, 1)
BOTH: Final = slice(0, 2)
"""What the columns of an event are: how often it was counted, or that and the sum of its values."""


class TextFrame(NamedTuple):
    """A frame that a profile has a name for."""

    name: bytes
    file: bytes = b""
    line: int = 0


Names = Mapping[Address, Sequence[TextFrame]]


def fill(
    profile: Profile, types: Sequence[tuple[bytes, bytes]], values: NDArray[Any], offsets: Int64, addresses: UInt64
) -> None:
    """Give a profile its sample types, and a sample with these values for each stack of addresses."""
    distinct, indices = number(addresses)
    profile.sample_types = [value_type(profile, *each) for each in types]
    fill_samples(profile, offsets, indices, distinct, values)


def fill_samples(profile: Profile, offsets: Int64, frames: Int32, addresses: UInt64, values: NDArray[Any]) -> None:
    """Give a profile samples without labels; `frames` are indices of `addresses`, which become locations."""
    profile.samples = Samples(
        location_offsets=offsets,
        locations=frames,
        values=values,
        label_offsets=np.zeros(len(offsets), np.int64),
    )
    count = len(addresses)
    profile.locations = Locations(
        address=addresses,
        mapping=np.zeros(count, np.int32),
        is_folded=np.zeros(count, np.bool_),
        line_offsets=np.zeros(count + 1, np.int64),
    )


def value_type(profile: Profile, name: bytes, unit: bytes) -> ValueType:
    """A type of values by its texts."""
    return ValueType(profile.strings.add(name), profile.strings.add(unit))


def number_label(profile: Profile, key: bytes, numbers: Int64) -> None:
    """Give each sample, which has no label yet, one with a number."""
    count = len(numbers)
    labels = Labels.zeros(count)
    labels.key[:] = profile.strings.add(key)
    labels.number = numbers
    profile.samples.labels = labels
    profile.samples.label_offsets = np.arange(count + 1)


def set_labels(profile: Profile, labels: Sequence[Sequence[Label]]) -> None:
    """Give each sample its labels, texts or numbers by key; empty texts are left out, since pprof has none."""
    labels = [[(key, value) for key, value in each if value != b""] for each in labels]
    add = profile.strings.add
    flat = [
        (add(key), add(value) if isinstance(value, bytes) else 0, 0 if isinstance(value, bytes) else value)
        for each in labels
        for key, value in each
    ]
    table = Labels.zeros(len(flat))
    table.key[:], table.text[:], table.number[:] = np.array(flat, np.int64).reshape(len(flat), 3).T
    profile.samples.labels = table
    profile.samples.label_offsets = offsets_of([len(each) for each in labels])


def name_locations(profile: Profile, frames_of: Callable[[Address], Iterable[TextFrame]]) -> None:
    """Give locations the frames, innermost first, that the profile has for their addresses."""
    name_rows(profile, map(frames_of, profile.locations.address.tolist()))


def name_rows(profile: Profile, frames_of_each: Iterable[Iterable[TextFrame]]) -> None:
    """Give each location its frames, innermost first."""
    functions: dict[tuple[int, int], int] = {}
    rows: list[tuple[int, int]] = []
    ends = [0]
    add = profile.strings.add
    for frames in frames_of_each:
        for frame in frames:
            key = add(frame.name), add(frame.file)
            rows.append((functions.setdefault(key, len(functions)), frame.line))
        ends.append(len(rows))
    columns = np.array(rows, np.int64).reshape(len(rows), 2)
    profile.locations.line_offsets = np.array(ends, np.int64)
    profile.locations.lines = Lines(columns[:, 0].astype(np.int32), columns[:, 1].copy(), np.zeros(len(rows), np.int64))
    names = np.array(list(functions), np.int32).reshape(len(functions), 2)
    profile.functions = Functions.zeros(len(functions))
    profile.functions.name = profile.functions.system_name = names[:, 0].copy()
    profile.functions.filename = names[:, 1].copy()


def note_names(profile: Profile) -> None:
    """Set what mappings have by what their locations have."""
    locations, mappings, functions = profile.locations, profile.mappings, profile.functions
    owner = np.repeat(locations.mapping, np.diff(locations.line_offsets))
    inside = owner >= 0
    mappings.has_functions[owner[inside]] = True
    has_file = functions.filename[locations.lines.function] != 0
    mappings.has_filenames[owner[inside & has_file]] = True
    mappings.has_line_numbers[owner[inside & (locations.lines.line > 0)]] = True
    is_inlined = np.diff(locations.line_offsets) > 1
    mappings.has_inline_frames[locations.mapping[is_inlined & (locations.mapping >= 0)]] = True


class NamedStacks:
    """Equal locations, stacks and labels are kept once, and the values of equal samples are sums."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.warnings: list[str] = []
        self._mappings: dict[MappingKey, int] = {}
        self._locations: dict[tuple[int, int, tuple[TextFrame, ...], int], int] = {}
        self._stacks: dict[tuple[int, ...], int] = {}
        self._labels: dict[tuple[Label, ...], int] = {}
        self._sums: dict[tuple[int, int, int], list[int]] = {}
        self._frames = 0

    def mapping(self, key: MappingKey) -> int:
        """The row of a mapping."""
        return self._mappings.setdefault(key, len(self._mappings))

    def location(self, mapping: int, address: int, frames: Sequence[TextFrame], function_start: int = 0) -> int:
        """The row of a location with these frames, innermost first."""
        return self._locations.setdefault((mapping, address, tuple(frames), function_start), len(self._locations))

    def add(self, stack: tuple[int, ...], labels: tuple[Label, ...], event: int, value: int) -> None:
        """Count a sample of an event, and its value. Raises InputError where there are too many frames."""
        number = self._stacks.get(stack)
        if number is None:
            number = self._stacks[stack] = len(self._stacks)
            self._frames += len(stack)
            self.check(self._frames)
        key = number, self._labels.setdefault(labels, len(self._labels)), event
        sums = self._sums.get(key)
        if sums is None:
            self._sums[key] = [1, value]
        else:
            sums[0] += 1
            sums[1] += value

    def check(self, frames: int) -> None:
        """Raise InputError where all stacks have so many frames together that they cannot be read."""
        if frames > MAX_FRAMES:
            raise InputError(self.source, f"has stacks with more than {MAX_FRAMES} frames")

    def build(self, types: Sequence[tuple[bytes, bytes]], kept: slice) -> Profile:
        """The profile: of each event, what `kept` takes of how often it was counted and the sum of its values."""
        width = len(range(2)[kept])
        samples = {key: row for row, key in enumerate(dict.fromkeys(key[:2] for key in self._sums))}
        sums = np.zeros((len(samples), len(types)), np.uint64)
        for (stack, label, event), (count, value) in self._sums.items():
            both = count, min(value, INT64_MAX + 1)
            sums[samples[stack, label], event * width : (event + 1) * width] = both[kept]
        stacks, labels = list(self._stacks), list(self._labels)
        chosen = [stacks[stack] for stack, _ in samples]
        frames = np.fromiter(chain.from_iterable(chosen), np.int32)
        offsets = offsets_of([len(stack) for stack in chosen])
        return self.profile(types, offsets, frames, sums, [labels[row] for _, row in samples])

    def profile(
        self,
        types: Sequence[tuple[bytes, bytes]],
        offsets: Int64,
        frames: Int32,
        sums: UInt64,
        labels: Sequence[Sequence[Label]] = (),
    ) -> Profile:
        """The profile of stacks of locations, with the sums of their values: uint64[n, types]; sums of 2^63 and more
        are too large. `labels` are those of each stack, or none at all."""
        profile = Profile(warnings=self.warnings)
        if too_large := int((sums > INT64_MAX).sum()):
            self.warnings.append(f"Sums of values that exceed 64 bits: {too_large}; they are the largest number.")
        values = np.minimum(sums, np.uint64(INT64_MAX)).astype(np.int64)
        profile.sample_types = [value_type(profile, *each) for each in types]
        addresses = np.array([address for _, address, *_ in self._locations], np.uint64)
        fill_samples(profile, offsets, frames, addresses, values)
        order = self._mapping_order()
        row_of = np.append(np.argsort(order), NONE).astype(np.int32)  # NONE takes the last
        profile.locations.mapping = row_of[np.array([mapping for mapping, *_ in self._locations], np.int64)]
        profile.locations.function_start = np.array([start for *_, start in self._locations], np.uint64)
        if labels:
            set_labels(profile, labels)
        name_rows(profile, [frames for _, _, frames, _ in self._locations])
        table = Mappings.zeros(len(self._mappings))
        known = list(self._mappings)
        mappings = [known[row] for row in order]
        for row, each in enumerate(mappings):
            table.start[row], table.limit[row], table.file_offset[row] = each.start, each.limit, each.file_offset
            table.filename[row] = profile.strings.add(each.file)
            table.build_id[row] = profile.strings.add(each.build_id)
        profile.mappings = table
        profile.address_kinds = np.array([each.kind for each in mappings], np.uint8)
        if any(each.build_id for each in mappings):
            profile.id_origins = np.array([each.id_origin for each in mappings], np.uint8)
        note_names(profile)
        return profile

    def _mapping_order(self) -> list[int]:
        """The mappings, that of the file that a thread is called after first: it is the main binary (pprof schema)."""
        commands = {value for labels in self._labels for key, value in labels if key == b"comm"}
        files = [each.file.rpartition(b"/")[2][:COMMAND_SIZE] for each in self._mappings]
        return sorted(range(len(files)), key=lambda row: files[row] not in commands)


def whole_lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """A text in pieces that end in line breaks, but for the last one; of a line that begins in one piece and is too
    long only the beginning."""
    rest = b""
    for piece in pieces:
        first, end = piece.find(b"\n"), piece.rfind(b"\n") + 1
        rest += piece[: min(first if end else len(piece), MAX_LINE - len(rest))]
        if end:
            yield rest + piece[first:end]
            rest = piece[end : end + MAX_LINE]
    if rest:
        yield rest


def lines_of(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The lines of a text in pieces, without line breaks; of one that is too long only the beginning."""
    for text in whole_lines(pieces):
        yield from text.removesuffix(b"\n").split(b"\n")

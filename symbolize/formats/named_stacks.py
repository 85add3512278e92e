"""Stacks of frames that have names already, put together one by one: what the text of other tools holds."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import numpy as np

from symbolize.core.arrays import NONE, Int32, Int64, UInt64, offsets_of
from symbolize.core.errors import InputError
from symbolize.formats.samples import Label, TextFrame, fill_samples, name_rows, note_names, set_labels, value_type
from symbolize.formats.stand_ins import MappingKey
from symbolize.profile.model import Mappings, Profile

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


class NamedStacks:
    """Equal locations, stacks and labels are kept once, and the values of equal samples are sums."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.warnings: list[str] = []
        self._mappings: dict[MappingKey, int] = {}
        self._locations: dict[tuple[int, int, tuple[TextFrame, ...]], int] = {}
        self._stacks: dict[tuple[int, ...], int] = {}
        self._labels: dict[tuple[Label, ...], int] = {}
        self._sums: dict[tuple[int, int, int], list[int]] = {}
        self._frames = 0

    def mapping(self, key: MappingKey) -> int:
        """The row of a mapping."""
        return self._mappings.setdefault(key, len(self._mappings))

    def location(self, mapping: int, address: int, frames: Sequence[TextFrame]) -> int:
        """The row of a location with these frames, innermost first."""
        return self._locations.setdefault((mapping, address, tuple(frames)), len(self._locations))

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
        addresses = np.array([address for _, address, _ in self._locations], np.uint64)
        fill_samples(profile, offsets, frames, addresses, values)
        order = self._mapping_order()
        row_of = np.append(np.argsort(order), NONE).astype(np.int32)  # NONE takes the last
        profile.locations.mapping = row_of[np.array([mapping for mapping, _, _ in self._locations], np.int64)]
        if labels:
            set_labels(profile, labels)
        name_rows(profile, [frames for _, _, frames in self._locations])
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

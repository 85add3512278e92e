"""The code of mappings, found while stacks are unwound that lead from one to the next."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from symbolize.core.arrays import UInt64
from symbolize.core.reasons import Reason
from symbolize.core.verdict import Verdict
from symbolize.elf import ElfImage
from symbolize.elf.call_frames import FramesAt
from symbolize.resolve.address_maps import map_addresses_of
from symbolize.resolve.addresses import MappedAddresses
from symbolize.resolve.mapping_record import MappingRecord
from symbolize.resolve.resolution import Resolution, Resolutions
from symbolize.symbols import Binary, SymbolListBinary


class Code(NamedTuple):
    """The files of the binary that a mapping is resolved to, each with what is to be added to vaddrs to get those in
    it, and the map from addresses to vaddrs."""

    images: Sequence[tuple[ElfImage, int]]
    to_vaddrs: Callable[[UInt64], MappedAddresses | None]


class CodeResolver:
    """The code of mappings whose records are given; `resolutions` are known for those with locations. `frames` finds
    the call frame information of code that no file has, at addresses and times."""

    def __init__(
        self,
        resolve: Callable[[MappingRecord], Resolution],
        records: Sequence[MappingRecord],
        resolutions: Resolutions,
        frames: Callable[[MappingRecord, UInt64, UInt64], FramesAt | None],
    ) -> None:
        self._resolve = resolve
        self._records = records
        self._frames = frames
        self._settled: set[int] = set()
        self._known = {row: resolutions.all[row] for row, record in enumerate(records[:-1]) if len(record.rows)}

    def resolution(self, mapping: int) -> Resolution:
        """What a mapping is resolved to."""
        if mapping not in self._known:
            self._known[mapping] = self._resolve(self._records[mapping])
        return self._known[mapping]

    def frames(self, mapping: int) -> Callable[[UInt64, UInt64], FramesAt | None] | None:
        """What finds the call frame information at addresses and times of a mapping that has code made at run time, and
        no binary; None if it has none."""
        found = self.resolution(mapping)
        if found.reason is Reason.NOT_A_FILE or isinstance(found.binary, SymbolListBinary):
            return partial(self._frames, self._records[mapping])
        return None

    def code(self, mapping: int, is_last: bool) -> Code | None:
        """The code of a mapping; None if its binary was not found, or has no addresses of its own, or is not proven
        when stacks are unwound for the last time."""
        found = self.resolution(mapping)
        binary, record = found.binary, self._records[mapping]
        if not isinstance(binary, Binary) or (is_last and not (found.is_by_id or found.verdict >= Verdict.SUPPORTED)):
            return None
        images = [(image, 0 if image is binary.loaded else binary.shift) for image in binary.files]
        return Code(images, lambda addresses: map_addresses_of(record._replace(addresses=addresses), found)[0])

    def settle(self, mappings: Iterable[int], resolutions: Resolutions) -> list[int]:
        """Let `resolutions`, which know more addresses, count for `mappings`; those for which they differ. Each changes
        once: what was refused would be taken again where the callers that it led to are gone."""
        mappings = [row for row in mappings if row not in self._settled]
        changed = [row for row in mappings if resolutions.all[row].binary is not self._known[row].binary]
        self._known |= {row: resolutions.all[row] for row in changed}
        self._settled.update(changed)
        for row in self._settled.difference(changed):
            if self._known[row].binary is None and resolutions.all[row].binary is not None:
                resolutions.refuse(row, self._known[row])
        return changed

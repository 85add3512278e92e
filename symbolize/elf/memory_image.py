"""The memory of a file that is loaded at its own vaddrs: contents with relative relocations applied."""

from collections.abc import Iterable, Iterator

import numpy as np

from symbolize.core.arrays import UInt64
from symbolize.elf.dynamic import DT_RELA, DT_RELASZ, dynamic_tags, file_offset
from symbolize.elf.image import Buffer, ElfImage

RELATIVE = {
    "EM_X86_64": 8,
    "EM_AARCH64": 1027,
    "EM_PPC64": 22,
    "EM_S390": 12,
    "EM_RISCV": 3,
    "EM_LOONGARCH": 3,
}
"""The relocation B + A on machines whose dynamic relocations have addends (RELA). Elsewhere, as on 386, ARM and MIPS
and in packed tables (RELR), the addend is in the contents, which are right already."""


class Loaded:
    """Memory of a file that was loaded at its own vaddrs (base 0)."""

    def __init__(self, image: ElfImage) -> None:
        self._image = image
        self._order = ">" if image.big_endian else "<"
        self.word_size = 8 if image.is_64 else 4
        self._offset, self._value = relative_relocations(image)

    def contents(self, vaddr: int, size: int) -> Buffer:
        """The bytes at `vaddr`, as many of `size` as the file has; a copy where relocations change them."""
        begin = file_offset(self._image, vaddr)
        if begin is None:
            return b""
        segment = next(s for s in self._image.segments if s.vaddr <= vaddr < s.vaddr + s.file_size)
        size = min(size, segment.vaddr + segment.file_size - vaddr)
        data = self._image.data[begin : begin + max(size, 0)]
        ends = min(vaddr + len(data), (1 << 64) - 1)
        first, last = np.searchsorted(self._offset, np.array([vaddr, ends], np.uint64)).tolist()
        offsets = (self._offset[first:last] - np.uint64(vaddr)).astype(np.int64)
        inside = offsets <= len(data) - self.word_size
        if not inside.any():
            return data
        changed = np.frombuffer(data, np.uint8).copy()
        words = np.ndarray(
            (len(changed) - self.word_size + 1,), f"{self._order}u{self.word_size}", changed, strides=(1,)
        )
        words[offsets[inside]] = self._value[first:last][inside].astype(words.dtype)
        return changed.data

    def words(self, vaddr: int, count: int) -> list[int]:
        """The pointers and numbers at `vaddr`, as many of `count` as there are."""
        raw = self.contents(vaddr, count * self.word_size)
        numbers: list[int] = np.frombuffer(raw, f"{self._order}u{self.word_size}", len(raw) // self.word_size).tolist()
        return numbers

    def pointers_to(self, target: int, limit: int) -> list[int]:
        """Vaddrs of up to `limit` aligned words outside of code that hold `target`."""
        found: list[int] = self._offset[self._value == np.uint64(target)][:limit].tolist()
        spans = [(s.vaddr, s.file_offset, s.file_size) for s in self._image.segments if not s.executable]
        for vaddr, data in bounded(self._image, spans):
            start = -vaddr % self.word_size
            count = (len(data) - start) // self.word_size
            if count > 0 and len(found) < limit:
                words = np.frombuffer(data, f"{self._order}u{self.word_size}", count, start)
                hits = np.flatnonzero(words == target)[:limit]
                found += [vaddr + start + hit * self.word_size for hit in hits.tolist()]
        return found[:limit]


def bounded(image: ElfImage, spans: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, memoryview]]:
    """The bytes of `spans` (vaddr, file offset, size) with their vaddrs, at most twice the file, which headers could
    exceed."""
    left = 2 * len(image.data)
    for vaddr, offset, size in spans:
        data = image.data[offset : offset + size]
        left -= len(data)
        if left < 0:
            return
        yield vaddr, data


def relative_relocations(image: ElfImage) -> tuple[UInt64, UInt64]:
    """Vaddrs (ascending) and values of the RELATIVE relocations of the dynamic section, if it has addends."""
    none = np.zeros(0, np.uint64)
    number = RELATIVE.get(image.machine)
    if image.dynamic is None or number is None or not image.is_64:
        return none, none
    order = ">" if image.big_endian else "<"
    tags = dynamic_tags(image)
    begin = file_offset(image, tags.get(DT_RELA, 0))
    if begin is None:
        return none, none
    table = image.data[begin : begin + tags.get(DT_RELASZ, 0)]
    rows = np.frombuffer(table, f"{order}u8", len(table) // 24 * 3).reshape(-1, 3)
    rows = rows[rows[:, 1] & np.uint64(0xFFFFFFFF) == number].astype(np.uint64)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    return np.ascontiguousarray(rows[:, 0]), np.ascontiguousarray(rows[:, 2])

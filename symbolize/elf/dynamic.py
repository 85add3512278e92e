"""The dynamic section: the symbol table of a file without section headers, by PT_DYNAMIC (R102, no section headers),
and the memory of a file that is loaded at its own vaddrs.

`sstrip` removes section headers, and a file that is cut off has lost them, because they are at its end.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from symbolize.core.arrays import UInt64
from symbolize.elf.image import Buffer, ElfImage

DT_PLTGOT, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_STRSZ, DT_GNU_HASH = 3, 4, 5, 6, 7, 8, 10, 0x6FFFFEF5
GNU_HASH_HEADER = 4
"""Words of the header of DT_GNU_HASH: buckets, first hashed symbol, words of the bloom filter, its shift."""
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


def dynamic_tables(image: ElfImage) -> tuple[memoryview, memoryview] | None:
    """The bytes of the dynamic symbol table and of its strings; None if the file has none or they are cut off."""
    tags = dynamic_tags(image)
    symbols, strings = (file_offset(image, tags.get(tag, 0)) for tag in (DT_SYMTAB, DT_STRTAB))
    if symbols is None or strings is None:
        return None
    count = symbol_count(image, tags)
    entry = 24 if image.is_64 else 16
    table = image.data[symbols : symbols + count * entry]
    text = image.data[strings : strings + tags.get(DT_STRSZ, 0)]
    return (table, text) if len(table) and len(text) else None


def dynamic_tags(image: ElfImage) -> dict[int, int]:
    """The entries of PT_DYNAMIC by tag; empty if the file has none."""
    if image.dynamic is None:
        return {}
    offset, size = image.dynamic
    word = np.dtype((">" if image.big_endian else "<") + ("u8" if image.is_64 else "u4"))
    raw = image.data[offset : offset + size]
    entries = np.frombuffer(raw, word, len(raw) // word.itemsize // 2 * 2).reshape(-1, 2)
    return dict(zip(entries[:, 0].tolist(), entries[:, 1].tolist(), strict=True))


def symbol_count(image: ElfImage, tags: dict[int, int]) -> int:
    """How many dynamic symbols there are, by the hash table that finds them (gABI, "Hash Table"; GNU hash)."""
    word = np.dtype(">u4" if image.big_endian else "<u4")

    def words(offset: int, count: int) -> list[int]:
        raw = image.data[offset : offset + 4 * count]
        numbers: list[int] = np.frombuffer(raw, word, len(raw) // 4).tolist()
        return numbers

    if (table := file_offset(image, tags.get(DT_HASH, 0))) is not None:
        return words(table, 2)[1] if len(words(table, 2)) == 2 else 0
    if (table := file_offset(image, tags.get(DT_GNU_HASH, 0))) is None:
        return 0
    head = words(table, GNU_HASH_HEADER)
    if len(head) < GNU_HASH_HEADER:
        return 0
    bucket_count, first, bloom_size, _ = head
    buckets = table + 4 * GNU_HASH_HEADER + bloom_size * (8 if image.is_64 else 4)
    last = max(words(buckets, bucket_count), default=0)
    if last < first:
        return first
    # The last symbol of the last chain is marked by the low bit of its hash.
    rest = image.data[buckets + 4 * (bucket_count + last - first) :]
    ends = np.flatnonzero(np.frombuffer(rest, word, len(rest) // 4) & 1)
    return last + int(ends[0]) + 1 if len(ends) else first


def file_offset(image: ElfImage, vaddr: int) -> int | None:
    """The file offset of the byte at `vaddr`; None for 0 and for addresses in no segment."""
    for segment in image.segments:
        if vaddr and segment.vaddr <= vaddr < segment.vaddr + segment.file_size:
            return segment.file_offset + vaddr - segment.vaddr
    return None


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

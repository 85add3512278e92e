"""The dynamic symbol table of a file without section headers, by PT_DYNAMIC (R102, no section headers).

`sstrip` removes section headers, and a file that is cut off has lost them, because they are at its end.
"""

import numpy as np

from symbolize.elf.image import ElfImage

DT_PLTGOT, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_STRSZ, DT_GNU_HASH = 3, 4, 5, 6, 7, 8, 10, 0x6FFFFEF5
GNU_HASH_HEADER = 4
"""Words of the header of DT_GNU_HASH: buckets, first hashed symbol, words of the bloom filter, its shift."""


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

"""The header of the line table of Go, and the code that the table describes (R121, Go line table)."""

GO_SECTIONS = frozenset({".gopclntab", ".data.rel.ro.gopclntab"})

GO_1_2, GO_1_16, GO_1_18, GO_1_20 = 0xFFFFFFFB, 0xFFFFFFFA, 0xFFFFFFF0, 0xFFFFFFF1
"""The first word of the table, by the release that introduced the layout."""

CODE_UNITS = (1, 2, 4)
"""Bytes of the smallest instruction, by machine."""

STATED_TEXT, LISTS = 2, {GO_1_16: 6, GO_1_18: 7, GO_1_20: 7}
"""Words behind the first 8 bytes: where the code begins, since Go 1.18, and the offset of the list of functions."""

MAX_CODE = 1 << 32
"""The most bytes of code that a table alone is believed to describe."""

Buffer = bytes | memoryview


def is_header(data: Buffer, is_64: bool, big_endian: bool) -> bool:
    """Whether a table with functions may begin here."""
    word = 8 if is_64 else 4
    if len(data) < 8 + 8 * word or number(data, 0, 4, big_endian) not in (GO_1_2, GO_1_16, GO_1_18, GO_1_20):
        return False
    if data[4] or data[5] or data[6] not in CODE_UNITS or data[7] != word:
        return False
    return 0 < number(data, 8, word, big_endian) <= len(data) // 8


def number(data: Buffer, offset: int, size: int, big_endian: bool) -> int:
    """An unsigned integer in the byte order of the file."""
    return int.from_bytes(data[offset : offset + size], "big" if big_endian else "little")


def code_bounds(data: Buffer, is_64: bool, big_endian: bool) -> tuple[int, int] | None:
    """Where the first function of a table begins and the last one ends, None if it does not tell.

    The table has no relocations applied, so that it does not tell in position-independent programs before Go 1.18.
    """
    if not is_header(data, is_64, big_endian):
        return None
    word = 8 if is_64 else 4
    count, magic = number(data, 8, word, big_endian), number(data, 0, 4, big_endian)
    text, size, start = 0, word, 8 + word
    if magic != GO_1_2:
        start = number(data, 8 + word * LISTS[magic], word, big_endian)
    if magic in (GO_1_18, GO_1_20):
        text, size = number(data, 8 + word * STATED_TEXT, word, big_endian), 4
        if not text:
            return None
    begin, end = (text + number(data, start + 2 * size * i, size, big_endian) for i in (0, count))
    return (begin, end) if 0 < begin < end <= begin + MAX_CODE else None

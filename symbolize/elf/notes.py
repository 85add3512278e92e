"""ELF notes (gABI, "Note Section")."""

NT_GNU_BUILD_ID = 3
MIN_BUILD_ID_BYTES = 2
MAX_BUILD_ID_BYTES = 64
MAX_NOTES_BYTES = 1 << 20


def gnu_build_id(notes: memoryview, big_endian: bool) -> str | None:
    """The GNU build id among `notes` as lower-case hex digits; None if there is none of a sensible length."""
    notes = notes[:MAX_NOTES_BYTES]
    position = 0
    while position + 12 <= len(notes):
        words = (bytes(notes[position + i : position + i + 4]) for i in (0, 4, 8))
        name_size, size, kind = (int.from_bytes(word, "big" if big_endian else "little") for word in words)
        name = position + 12
        content = name + (name_size + 3 & ~3)
        if content + size > len(notes):
            return None
        if kind == NT_GNU_BUILD_ID and bytes(notes[name : name + name_size]) == b"GNU\0":
            if MIN_BUILD_ID_BYTES <= size <= MAX_BUILD_ID_BYTES:
                return bytes(notes[content : content + size]).hex()
        position = content + (size + 3 & ~3)
    return None

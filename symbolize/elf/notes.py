"""ELF notes (gABI, "Note Section")."""

from collections.abc import Iterator

NT_GNU_BUILD_ID = 3
NT_GO_BUILD_ID = 4
MAX_GO_BUILD_ID_BYTES = 256
MIN_BUILD_ID_BYTES = 2
MAX_BUILD_ID_BYTES = 64
MAX_NOTES_BYTES = 1 << 20


def gnu_build_id(notes: memoryview, big_endian: bool) -> str | None:
    """The GNU build id among `notes` as lower-case hex digits; None if there is none of a sensible length."""
    for owner, kind, content in read_notes(notes, big_endian):
        if (owner, kind) == (b"GNU\0", NT_GNU_BUILD_ID) and MIN_BUILD_ID_BYTES <= len(content) <= MAX_BUILD_ID_BYTES:
            return content.hex()
    return None


def go_build_id(notes: memoryview, big_endian: bool) -> str:
    """The build id that Go's linker writes, which is text, empty if there is none among `notes`.

    Files without a GNU build id that have it in common are of one binary; no profile has it (R250, Go build ids).
    """
    for owner, kind, content in read_notes(notes, big_endian):
        if (owner, kind) == (b"Go\0\0", NT_GO_BUILD_ID) and 0 < len(content) <= MAX_GO_BUILD_ID_BYTES:
            return content.decode("ascii", "replace")
    return ""


def read_notes(notes: memoryview, big_endian: bool) -> Iterator[tuple[bytes, int, bytes]]:
    """Owner, kind and contents of each note, up to one that is cut off."""
    notes = notes[:MAX_NOTES_BYTES]
    position = 0
    while position + 12 <= len(notes):
        words = (bytes(notes[position + i : position + i + 4]) for i in (0, 4, 8))
        name_size, size, kind = (int.from_bytes(word, "big" if big_endian else "little") for word in words)
        name = position + 12
        content = name + (name_size + 3 & ~3)
        if content + size > len(notes):
            return
        yield bytes(notes[name : name + name_size]), kind, bytes(notes[content : content + size])
        position = content + (size + 3 & ~3)

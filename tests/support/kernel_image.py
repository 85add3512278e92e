"""Writes an image of a kernel."""

from pathlib import Path

from tests.support.elf_writer import ALLOC, ET_EXEC, EXEC, NOTE, Section, Segment, Symbol, build_id_note, elf_file

LINKED = 0xFFFF_FFFF_8100_0000
"""The vaddr at which the image is linked."""
KERNEL_ID = "00112233445566778899aabbccddeeff00112233"
SIZE = 0x20_0000


def vmlinux(
    path: Path, build_id: str = KERNEL_ID, stext: int = 0x1000, *, etext: int = 0, symbols: bool = True
) -> Path:
    """A kernel of 512 functions, `f0` and so on, 0x1000 bytes apart; each is half as long."""
    named = [Symbol(f"f{i}", LINKED + 0x1000 * i, 0x800) for i in range(512)]
    named += [Symbol("_text", LINKED, type=0), Symbol("_stext", LINKED + stext, type=0)]
    named += [Symbol("_etext", LINKED + etext, type=0)] if etext else []
    data = elf_file(
        [
            Section(".text", bytes(SIZE), flags=ALLOC | EXEC, address=LINKED),
            Section(".notes", build_id_note(bytes.fromhex(build_id)), NOTE, ALLOC, address=LINKED + SIZE),
        ],
        [Segment(LINKED, SIZE, 5, 0x1000)],
        named if symbols else [],
        kind=ET_EXEC,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path

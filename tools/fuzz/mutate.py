"""Damages files: any bytes, or the fields of their sections, which are compressed again where they were compressed."""

import lzma
import random
import re
import struct
import zlib
from collections.abc import Callable

from symbolize.elf import ElfError, ElfImage

INTERESTING = (0, 1, 2, 3, 4, 8, 0x10, 0x7F, 0x80, 0xFF, 0x100, 0x1000, 0x7FFF, 0x8000, 0xFFFF, 0x10000)
INTERESTING += (0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
SHF_COMPRESSED, ELFCOMPRESS_ZSTD = 0x800, 2
WHAT_IS_READ = (".debug", ".zdebug", ".gnu_debug", ".eh", ".rel", ".crel", ".plt", ".opd", ".gopclntab")
"""How the names of sections begin that most of the damage is done to."""
FORMS = (*range(0x01, 0x2D), 0x1F01, 0x1F02, 0x1F20, 0x1F21)


def uleb(value: int) -> bytes:
    """An unsigned LEB128 number."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def flip(chance: random.Random, data: bytearray) -> None:
    """Flip a bit."""
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def set_byte(chance: random.Random, data: bytearray) -> None:
    """Set a byte to an extreme or to anything."""
    data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))


def set_number(chance: random.Random, data: bytearray) -> None:
    """Set an integer to an extreme, or to something near a size or a place in the file."""
    size = chance.choice((1, 2, 4, 4, 8))
    value = chance.choice((chance.choice(INTERESTING), chance.randrange(2 * len(data)), len(data), -1, -2))
    place = chance.randrange(len(data))
    raw = (value % (1 << 8 * size)).to_bytes(size, chance.choice(("little", "big")))[: len(data) - place]
    data[place : place + len(raw)] = raw


def nudge(chance: random.Random, data: bytearray) -> None:
    """Add a little to an integer."""
    size = chance.choice((1, 2, 4, 8))
    place, order = chance.randrange(len(data)), chance.choice(("little", "big"))
    field = data[place : place + size]
    value = int.from_bytes(field, order) + chance.choice((-16, -8, -4, -1, 1, 4, 8, 16))
    data[place : place + len(field)] = (value % (1 << 8 * len(field))).to_bytes(len(field), order)


def set_uleb(chance: random.Random, data: bytearray) -> None:
    """Put a LEB128 number in place of another, which may change the length."""
    place = chance.randrange(len(data))
    end = place
    while end < len(data) and end < place + 9 and data[end] >= 0x80:
        end += 1
    number = uleb(chance.choice((chance.choice(INTERESTING), chance.randrange(1 << 14))))
    data[place : end + 1] = number if chance.random() < 0.7 else number.ljust(end + 1 - place, b"\x80")


def set_form(chance: random.Random, data: bytearray) -> None:
    """Put the number of a form over a byte."""
    form = uleb(chance.choice(FORMS))
    place = chance.randrange(len(data))
    data[place : place + len(form)] = form


def splice(chance: random.Random, data: bytearray) -> None:
    """Copy a stretch over another, or move it in, or take one out."""
    size = chance.randrange(1, min(len(data), 64) + 1)
    source, place = chance.randrange(len(data)), chance.randrange(len(data))
    end = place + chance.choice((0, size))
    data[place:end] = data[source : source + size] if chance.random() < 0.75 else b""


def repeat(chance: random.Random, data: bytearray) -> None:
    """Repeat a stretch many times."""
    size, place = chance.randrange(1, min(len(data), 40) + 1), chance.randrange(len(data))
    data[place:place] = data[place : place + size] * chance.choice((2, 10, 100, 400))


def cut(chance: random.Random, data: bytearray) -> None:
    """Cut off the end."""
    del data[chance.randrange(len(data)) :]


ANY: tuple[Callable[[random.Random, bytearray], None], ...] = (flip, set_byte, set_number, nudge, splice, set_uleb)
IN_SECTION = (*ANY, set_uleb, set_uleb, set_form, repeat, cut)
HOW_MANY = (1, 1, 1, 2, 3, 8, 30)


def mutate_bytes(chance: random.Random, sound: bytes) -> bytes:
    """A file with any bytes damaged."""
    data = bytearray(sound)
    for _ in range(chance.choice(HOW_MANY)):
        if data:
            chance.choice((*ANY, cut) if chance.random() < 0.1 else ANY[:4])(chance, data)
    return bytes(data)


def mutate_headers(chance: random.Random, sound: bytes) -> bytes:
    """A file with fields of its headers damaged: ELF header, program headers, section headers."""
    data = bytearray(sound)
    is_64, order = data[4] == 2, ">" if data[5] == 2 else "<"
    (start,) = struct.unpack_from(order + ("Q" if is_64 else "I"), data, 40 if is_64 else 32)
    places = [0, start] if start < len(data) else [0]
    for _ in range(chance.choice(HOW_MANY)):
        place = chance.choice(places)
        part = data[place : place + (250 if place == 0 else len(data))]
        chance.choice((flip, set_byte, set_number, nudge))(chance, part)
        data[place : place + len(part)] = part
    return bytes(data)


def mutate_section(chance: random.Random, sound: bytes) -> bytes:
    """A file of which a section, or two, is damaged inside; the new contents stand at the end of the file."""
    data = bytearray(sound)
    try:
        with ElfImage.parse(memoryview(sound), "sound") as image:
            usable = [
                (number, section.name, section.flags)
                for number, section in enumerate(image.sections)
                if section.size and section.type != "SHT_NOBITS" and (not section.is_code or section.name[:4] == ".plt")
            ]
            debug = [entry for entry in usable if entry[1].startswith(WHAT_IS_READ)]
            is_64, order = image.is_64, ">" if image.big_endian else "<"
            for _ in range(chance.choice((1, 1, 1, 2))):
                number, name, flags = chance.choice(debug if debug and chance.random() < 0.85 else usable)
                contents = image.section_contents(image.sections[number])
                if not contents:
                    continue
                if name == ".gnu_debugdata" and chance.random() < 0.8:
                    changed = bytearray(lzma.compress(mutate_file(chance, lzma.decompress(contents)), preset=0))
                else:
                    changed = bytearray(contents)
                    for _ in range(chance.choice(HOW_MANY)):
                        if changed:
                            chance.choice(IN_SECTION)(chance, changed)
                codec = bytes(image.raw(image.sections[number]) or b"")[:4]
                replace_contents(data, number, packed(bytes(changed), name, flags, is_64, codec), is_64, order)
    except (ElfError, IndexError, lzma.LZMAError):
        return mutate_bytes(chance, sound)
    return bytes(data)


def packed(contents: bytes, name: str, flags: int, is_64: bool, codec: bytes) -> bytes:
    """The contents as they are stored in the file; a section header of compression begins with `codec`."""
    if name.startswith(".zdebug"):
        return b"ZLIB" + struct.pack(">Q", len(contents)) + zlib.compress(contents, 1)
    if flags & SHF_COMPRESSED:
        order = "<" if codec[:1] != b"\0" else ">"
        size = struct.pack(order + ("IQQ" if is_64 else "II"), *(0, len(contents), 1) if is_64 else (len(contents), 1))
        number = int.from_bytes(codec, "little" if order == "<" else "big")
        if number == ELFCOMPRESS_ZSTD:
            import zstandard

            return codec + size + zstandard.ZstdCompressor(level=1).compress(contents)
        return codec + size + zlib.compress(contents, 1)
    return contents


def replace_contents(data: bytearray, number: int, contents: bytes, is_64: bool, order: str) -> None:
    """Give section `number` other contents, in place."""
    word = "Q" if is_64 else "I"
    (start,) = struct.unpack_from(order + word, data, 40 if is_64 else 32)
    header = start + number * (64 if is_64 else 40)
    struct.pack_into(order + word * 2, data, header + (24 if is_64 else 16), len(data), len(contents))
    data += contents


def mutate_file(chance: random.Random, sound: bytes) -> bytes:
    """An ELF file, damaged somehow."""
    way = chance.random()
    if way < 0.6:
        return mutate_section(chance, sound)
    return mutate_headers(chance, sound) if way < 0.75 else mutate_bytes(chance, sound)


NAME_PARTS = (b"_Z", b"_ZN", b"_R", b"_RN", b"__Z", b"St", b"Sa", b"S_", b"S0_", b"T_", b"T0_", b"I", b"E", b"N", b"K")
NAME_PARTS += (b"Dp", b"sp", b"sr", b"L", b"X", b"J", b"Ul", b"Ut", b"C1", b"D0", b"Z", b"d0_", b"17h0123456789abcdefE")
NAME_PARTS += (
    b"99999999999",
    b"3foo",
    b"cv",
    b"ix",
    b"Dv4_i",
    b"DT",
    b".cold",
    b".part.0",
    b"@@V1",
    b"$u20$",
    b"B1_",
    b"u",
)


def mutate_name(chance: random.Random, sound: bytes) -> bytes:
    """A linkage name, damaged somehow."""
    data = bytearray(sound)
    for _ in range(chance.choice((1, 1, 2, 3, 6, 20))):
        place = chance.randrange(len(data) + 1)
        way = chance.randrange(5)
        if way == 0:
            data[place:place] = chance.choice(NAME_PARTS) * chance.choice((1, 1, 1, 2, 30))
        elif way == 1:
            del data[place : place + chance.randrange(1, 6)]
        elif way == 2 and data:
            source = chance.randrange(len(data))
            data[place:place] = data[source : source + chance.randrange(1, 30)] * chance.choice((1, 1, 2, 20))
        elif data:
            data[place % len(data)] = chance.choice((chance.randrange(256), chance.choice(b"_0123456789EINSTZLKRPabC")))
    return bytes(data)


NUMBERS = (
    b"0",
    b"1",
    b"-1",
    b"ffffffffffffffff",
    b"18446744073709551615",
    b"9223372036854775808",
    b"99999999999999999999",
)
NUMBERS += (b"", b"7fffffff", b"80000000", b"0x0", b"1e9", b"\xd9\xa3", b"0" * 5000)
BYTES_OF_TEXT = b" \t\n\r\0:-+.,;/\\()[]{}<>$@#=\"'\xff\xc3%"


def mutate_text(chance: random.Random, sound: bytes) -> bytes:
    """A text of lines with numbers, words or lines of it damaged."""
    data = bytearray(sound)
    for _ in range(chance.choice(HOW_MANY)):
        way, at = chance.randrange(7), chance.randrange(len(data) + 1)
        numbers = [found.span() for found in re.finditer(rb"[0-9a-fA-F]+", data[at : at + 400])] if way < 2 else []
        if numbers:
            first, last = chance.choice(numbers)
            data[at + first : at + last] = chance.choice(NUMBERS)
        elif way == 2:
            data[at:at] = bytes([chance.choice(BYTES_OF_TEXT)]) * chance.choice((1, 1, 1, 2, 50, 3000))
        elif way == 3 and data:
            lines = data.split(b"\n")
            lines.insert(chance.randrange(len(lines)), chance.choice(lines))
            data = bytearray(b"\n".join(lines))
        elif way == 4 and data:
            lines = data.split(b"\n")
            del lines[chance.randrange(len(lines))]
            data = bytearray(b"\n".join(lines))
        elif data:
            chance.choice((*ANY, repeat, cut))(chance, data)
    return bytes(data)

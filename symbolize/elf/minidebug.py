"""Mini debug info: a second, smaller ELF file, xz-compressed in .gnu_debugdata, that has the symbols (rule R113)."""

from symbolize.elf.image import ElfError, ElfImage

MAX_RATIO = 256
"""Symbol tables reach a few times that what they are compressed to; xz itself would allow seven thousand."""
MAX_SIZE = 1 << 28
MAX_MEMORY = 1 << 27
"""For the dictionary, which tools set to 64 MiB at most."""


def mini_image(image: ElfImage) -> ElfImage | None:
    """The ELF file in .gnu_debugdata; None if there is none, or it is corrupt or of another kind than `image`."""
    packed = image.contents(".gnu_debugdata")
    if packed is None:
        return None
    try:
        mini = ElfImage.parse(memoryview(inflate_xz(packed)), image.path)
    except ValueError as error:
        image.note(f"section .gnu_debugdata: {error}")
        return None
    except ElfError as error:
        image.note(f"section .gnu_debugdata: {error.problem}")
        return None
    if (mini.machine, mini.kind, mini.is_64, mini.big_endian) != (
        image.machine,
        image.kind,
        image.is_64,
        image.big_endian,
    ):
        image.note("section .gnu_debugdata: another kind of file than the one around it")
        return None
    return mini


def inflate_xz(data: bytes | memoryview) -> bytes:
    """Decompress an xz stream of bounded size (rule R99). Raises ValueError with a sentence."""
    from lzma import FORMAT_XZ, LZMADecompressor, LZMAError

    limit = min(len(data) * MAX_RATIO + 4096, MAX_SIZE)
    stream = LZMADecompressor(FORMAT_XZ, MAX_MEMORY)
    try:
        inflated = stream.decompress(data, limit)
    except (LZMAError, EOFError, MemoryError) as error:
        raise ValueError(f"corrupt xz stream ({error})") from error
    if not stream.eof:
        raise ValueError("xz stream is cut off" if stream.needs_input else f"expands to more than {limit} bytes")
    return inflated

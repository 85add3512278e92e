"""Mini debug info: a second, smaller ELF file, xz-compressed in .gnu_debugdata, that has the symbols (R113, united
symbol tables)."""

from symbolize.core.compression import XZ, InflateLimits, inflate
from symbolize.core.errors import InputError
from symbolize.elf.image import ElfImage

LIMITS = InflateLimits(size=1 << 28, ratio=256, free=4096)
"""Symbol tables reach a few times that what they are compressed to; xz itself would allow seven thousand."""


def mini_image(image: ElfImage) -> ElfImage | None:
    """The ELF file in .gnu_debugdata; None if there is none, or it is corrupt or of another kind than `image`."""
    packed = image.contents(".gnu_debugdata")
    if packed is None:
        return None
    try:
        contents = b"".join(inflate([packed], XZ, image.path, LIMITS, len(packed), is_single=True))
        mini = ElfImage.parse(memoryview(contents), image.path)
    except InputError as error:
        image.note(f"section .gnu_debugdata: {error.problem}")
        return None
    if any(getattr(mini, name) != getattr(image, name) for name in ("machine", "kind", "is_64", "big_endian")):
        image.note("section .gnu_debugdata: another kind of file than the one around it")
        return None
    return mini

"""Does a file hold the bytes of its code, or only say where the code is, as a debug file does?"""

from collections.abc import Iterable


def holds_code(sections: Iterable[bool], segments: Iterable[int]) -> bool:
    """Whether a file holds bytes of code (rule R103).

    `sections` tell of each section with code whether it has bytes in the file, `segments` how many bytes each
    executable segment has there. The sections decide: where the ELF headers are at the beginning of the executable
    segment, a debug file keeps these as the only bytes of it.
    """
    found = list(sections)
    return any(found) if found else any(segments)

"""Where functions begin and end according to the tables that unwinding needs."""

import numpy as np

from symbolize.core.arrays import UInt64
from symbolize.elf.eh_frame import read_frames
from symbolize.elf.image import ElfImage
from symbolize.elf.relocate import section_reader


def frame_ranges(image: ElfImage) -> tuple[UInt64, UInt64]:
    """Begin and end vaddrs of the FDEs of .eh_frame that begin in code, by begin; none if the file has none."""
    none = np.zeros(0, np.uint64)
    section = image.find(".eh_frame")
    contents = section_reader(image)(".eh_frame")
    if section is None or not contents:
        return none, none
    begin, end = read_frames(contents, section.vaddr, 8 if image.is_64 else 4, image.big_endian)
    code_begin, code_end = image.code_ranges
    if not len(code_begin) or not len(begin):
        return none, none
    place = np.searchsorted(code_begin, begin, side="right") - 1
    rows = np.flatnonzero((place >= 0) & (begin < code_end[place]))
    rows = rows[np.argsort(begin[rows], kind="stable")]
    return begin[rows], end[rows]

"""Reading profiles: one module a format; the content decides which."""

import os
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from symbolize.load.simpleperf import OffCpuMode
    from symbolize.profile import Profile

__all__ = ["load"]


def load(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    keep_trampolines: bool = False,
    trace_offcpu: "OffCpuMode | None" = None,
    show_art_frames: bool = False,
) -> "Profile":
    """Read a profile from a path, from `-` (standard input) or from a binary file object.

    The content decides the format: pprof, a gperftools CPU profile or a simpleperf report, plain or in gzip, zstd or
    LZ4 frames. What was repaired or left out is said in `Profile.warnings`. Raises InputError.

    `keep_trampolines` keeps the frame that the signal handler of an old gperftools left in every stack. Of a simpleperf
    recording with the time off the processor, `trace_offcpu` chooses the samples ("on-cpu", "off-cpu", "on-off-cpu" or
    "mixed-on-off-cpu", the default), and `show_art_frames` keeps the frames of Android's runtime next to Java frames.
    """
    from symbolize.load import sniff

    return sniff.load(source, sniff.Options(keep_trampolines, trace_offcpu, show_art_frames))

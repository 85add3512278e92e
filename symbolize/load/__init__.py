"""Reading profiles: one module a format; the content decides which."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from symbolize.load.model import Choice, LoadedProfile
    from symbolize.load.simpleperf import OffCpuMode
    from symbolize.profile import Profile

__all__ = ["load", "load_all"]


def load(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    keep_trampolines: bool = False,
    trace_offcpu: "OffCpuMode | None" = None,
    show_art_frames: bool = False,
    timestamps: bool = False,
    sample_labels: "Sequence[str] | None" = None,
) -> "Profile":
    """Read a profile from a path, from `-` (standard input) or from a binary file object.

    The content decides the format: pprof, a gperftools CPU profile, a simpleperf report, perf.data or a Perfetto trace
    with one profile, plain or in gzip, zstd or LZ4 frames. `Profile.warnings` reports what was repaired or left out.
    What stands in for a name, as `[unknown]`, is none. Raises InputError.

    `keep_trampolines` keeps the frame that the signal handler of an old gperftools left in every stack. Of a simpleperf
    recording with the time off the processor, `trace_offcpu` chooses the samples ("on-cpu", "off-cpu", "on-off-cpu" or
    "mixed-on-off-cpu", the default), and `show_art_frames` keeps the frames of Android's runtime next to Java frames.
    `timestamps` makes a sample of each event whose time an OTLP message has, with the label `timestamp_ns`.
    `sample_labels` are the labels that samples of perf.data get: "pid", "tid" and "comm", which are the default,
    "thread_comm", "cpu", "cgroup", "execution_mode", and the attributes of the resource that those of OTLP get.
    """
    from symbolize.load.model import LoadOptions
    from symbolize.load.open import load_one

    options = LoadOptions(
        keep_trampolines=keep_trampolines,
        trace_offcpu=trace_offcpu,
        show_art_frames=show_art_frames,
        sample_labels=sample_labels,
        timestamps=timestamps,
    )
    return load_one(source, options)


def load_all(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    choice: "Choice | None" = None,
    keep_trampolines: bool = False,
    trace_offcpu: "OffCpuMode | None" = None,
    show_art_frames: bool = False,
    timestamps: bool = False,
    sample_labels: "Sequence[str] | None" = None,
) -> "list[LoadedProfile]":
    """Read all profiles of an input; a Perfetto trace has several, any other input has one, without a name.

    `choice` says which profiles of a trace are wanted; the other options are those of `load`. Profiles are made when
    they are asked for. Raises InputError.
    """
    from symbolize.core.errors import check_type
    from symbolize.load.model import ALL, Choice, LoadOptions
    from symbolize.load.open import load_all

    check_type("choice", choice, "a Choice", Choice, type(None))
    options = LoadOptions(
        choice=choice or ALL,
        keep_trampolines=keep_trampolines,
        trace_offcpu=trace_offcpu,
        show_art_frames=show_art_frames,
        sample_labels=sample_labels,
        timestamps=timestamps,
    )
    return load_all(source, options)

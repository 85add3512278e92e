"""Formats of profiles: `open.py` chooses the reader of an input by its content, `outputs.py` the writer of a file by
the ending of its name, and each format has a module or package with everything that knows it."""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, BinaryIO, Protocol, runtime_checkable

if TYPE_CHECKING:
    from symbolize.core.arrays import Bool, UInt64
    from symbolize.formats.model import Choice, LoadedProfile, OffCpuMode
    from symbolize.formats.outputs import View
    from symbolize.profile import Profile

__all__ = ["encode", "load", "load_all", "write", "write_firefox", "write_module_symbols", "write_otlp"]


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
    from symbolize.formats.model import LoadOptions
    from symbolize.formats.open import load_one

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
    from symbolize.formats.model import ALL, Choice, LoadOptions
    from symbolize.formats.open import load_all

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


@runtime_checkable
class SymbolizedProfile(Protocol):
    """What a `Symbolizer` gives: a profile, and which of its locations got the lines of a lookup."""

    @property
    def profile(self) -> "Profile": ...

    @property
    def resolved(self) -> "Bool": ...


@runtime_checkable
class Symbolizes(Protocol):
    """What a `Symbolizer` does."""

    def symbolize(self, profile: "Profile", /) -> SymbolizedProfile: ...


class FindsSymbols(Symbolizes, Protocol):
    """A `Symbolizer` that says where symbols begin."""

    def symbols_of(self, profile: "Profile", /) -> "tuple[UInt64, UInt64]": ...


def encode(profile: "Profile") -> bytes:
    """The profile as protobuf bytes, not compressed; equal profiles give equal bytes."""
    from symbolize.formats.pprof import writer as pprof

    return pprof.encode(profile)


def write(
    profile: "Profile | SymbolizedProfile",
    destination: str | os.PathLike[str] | BinaryIO,
    *,
    emit: str | None = None,
    view: "View | None" = None,
) -> None:
    """Write a profile, or that of a `Result`, to a path, to `-` (standard output) or to a binary file object.

    The ending of the path decides what is written: gzipped pprof without one, or a view of the profile as for
    `cpu.otlp`, `cpu.html`, `cpu.svg`, `cpu.folded`, `cpu.speedscope.json`, `cpu.firefox.json`, `cpu.txt`,
    `cpu.csv`, `cpu.parquet`, `default.pgo` and `program.afdo`; `emit` ("pprof", "otlp", "html", "svg", "folded",
    "speedscope", "firefox", "text", "csv", "parquet", "go-pgo", "llvm-profile") overrides it. `view` says what is
    shown, and what of the profile a pprof or OTLP file has. A file appears at its path whole or not at all; equal
    profiles give equal bytes. Raises OutputError, and UsageError for another ending, for a terminal that would get a
    binary file, and for the file that the profile was read from.
    """
    from symbolize.core.errors import check_type
    from symbolize.formats.files import check_inputs, packed, write_pieces
    from symbolize.formats.outputs import (
        GO_PGO,
        LLVM_PROFILE,
        OTLP,
        PPROF,
        PROFILES,
        View,
        output_of,
        view_pieces,
        written,
    )
    from symbolize.profile import Profile

    profile = Profile.of(profile, "profile")
    check_type("view", view, "a View", View, type(None))
    path = os.fspath(destination) if isinstance(destination, str | os.PathLike) else ""
    if path:
        check_inputs([*filter(None, [profile.source]), *profile.inputs], [path])
    output = output_of(path, emit, PPROF)
    if output.name == LLVM_PROFILE:
        from symbolize.formats.compilers.llvm import with_discriminators

        profile = with_discriminators(profile, view.discriminators if view is not None else None)
    if output.name in PROFILES and view is not None:
        profile = written(output, profile, view)
    if output.name == GO_PGO:
        from symbolize.formats.compilers.go import go_pgo

        profile = go_pgo(profile, view.trim if view is not None else 0.0)
    if output.name in (PPROF, GO_PGO):
        from symbolize.formats.pprof import writer as pprof

        pprof.write(profile, destination)
    elif output.name == OTLP:
        from symbolize.formats.otlp import writer as otlp

        write_pieces(otlp.pieces(profile), destination)
    elif output.name == LLVM_PROFILE:
        from symbolize.formats.compilers.llvm import llvm_profile

        write_pieces(llvm_profile(profile, view.trim if view is not None else 0.0), destination, output.is_binary)
    else:
        write_pieces(packed(view_pieces(output, profile, view or View()), destination), destination, output.is_binary)


def write_module_symbols(results: Iterable[SymbolizedProfile], destination: str | os.PathLike[str] | BinaryIO) -> int:
    """Write what was found for the profiles of one Perfetto trace as packets of a trace (ModuleSymbols), so that the
    trace with these bytes appended is symbolized; how many addresses have symbols.

    `results` are those of a `Symbolizer`, of which only one is needed at a time. The destination is as that of `write`.
    Raises UsageError for a profile of another format, OutputError.
    """
    from symbolize.core.errors import check_type
    from symbolize.formats.perfetto.module_symbols import ModuleSymbols

    check_type("results", results, "Results", Iterable)
    symbols = ModuleSymbols()
    for result in results:
        check_type("results", result, "Results", SymbolizedProfile)
        symbols.add(result.profile, result.resolved)
    symbols.write(destination)
    return symbols.addresses


def write_otlp(
    profiles: "Sequence[LoadedProfile]", symbolizer: Symbolizes, destination: str | os.PathLike[str] | BinaryIO
) -> int:
    """Write the messages that all `profiles` of an OTLP input are of as they came, with the lines that `symbolizer`, a
    `Symbolizer`, finds; how many addresses got lines.

    What processes share is looked up once. The destination is as that of `write`. Raises UsageError for profiles of
    another format, OutputError, and what the symbolizer does.
    """
    from symbolize.core.errors import UsageError, check_type
    from symbolize.formats.model import LoadedProfile
    from symbolize.formats.otlp.lines import OtlpLines, profiles_of_stacks

    check_type("profiles", profiles, "a sequence of LoadedProfiles", Sequence)
    for loaded in profiles:
        check_type("profiles", loaded, "LoadedProfiles", LoadedProfile)
    check_type("symbolizer", symbolizer, "a Symbolizer", Symbolizes)
    container = profiles[0].container if profiles else None
    if container is None or any(each.container is not container for each in profiles):
        raise UsageError("an OTLP message can only be written for the profiles of one input")
    lines = OtlpLines(container)
    for profile in profiles_of_stacks(profiles):
        result = symbolizer.symbolize(profile)
        lines.add(result.profile, result.resolved)
    lines.write(destination)
    return lines.addresses


def write_firefox(
    profile: "LoadedProfile", symbolizer: FindsSymbols, destination: str | os.PathLike[str] | BinaryIO
) -> int:
    """Write a processed profile of the Firefox Profiler, of samply too, as it came, with the functions, files, lines
    and inlined frames that `symbolizer` finds; how many addresses got names.

    The destination is as that of `write`, and compressed if its name ends so. Raises UsageError for a profile of
    another format and for the raw form of a browser, OutputError, and what the symbolizer does.
    """
    from symbolize.core.errors import UsageError, check_type
    from symbolize.formats.firefox.lines import FirefoxLines
    from symbolize.formats.model import LoadedProfile

    check_type("profile", profile, "a LoadedProfile", LoadedProfile)
    if profile.document is None:
        raise UsageError("only a processed profile of the Firefox Profiler is written as it came")
    lines = FirefoxLines(profile.document, symbolizer.symbols_of)
    result = symbolizer.symbolize(profile.profile)
    lines.add(result.profile, result.resolved)
    lines.write(destination)
    return lines.addresses

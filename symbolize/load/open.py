"""From a path, standard input or an open file to profiles: the content decides which loader reads it."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import BinaryIO, Final, NamedTuple

from symbolize.core.errors import InputError, NoProfile, first_names
from symbolize.load.content import Content
from symbolize.load.detect import is_trace
from symbolize.load.model import DEFAULTS, LoadedProfile, LoadOptions
from symbolize.load.products import check_products
from symbolize.load.stand_ins import settle_stand_ins
from symbolize.load.streams import PERF_DATA, STANDARD_INPUT, source_name
from symbolize.profile.model import Profile

SIMPLEPERF: Final = b"SIMPLEPERF"
"""How a simpleperf report begins."""


def load_all(source: str | os.PathLike[str] | BinaryIO, options: LoadOptions = DEFAULTS) -> list[LoadedProfile]:
    """The profiles of an input, as `symbolize.load.load_all` says."""
    content = Content(source)
    form = next((each for each in FORMATS if each.matches(content)), None)
    if form is None:
        from symbolize.load.recognition import describe

        looks = describe(content.head or content.whole())  # which raises the error of an empty one
        formats = ", ".join(each.short or each.name for each in FORMATS)
        others = "" if ": " in looks else f"; formats read: {formats}"  # behind a colon is what to do
        raise NoProfile(content.name, f"is not a profile: it looks like {looks}{others}")
    found = form.load(content, options)
    path = os.path.abspath(source) if isinstance(source, str | os.PathLike) and source != STANDARD_INPUT else ""
    for each in found:
        each.source = path
        each.format = form.name
        each.make = partial(bounded, each.make, content.name)
    found[0].warnings += _without_effect(options, form)
    return found


def bounded(make: Callable[[], Profile], source: str) -> Profile:
    """The profile that `make` returns, without stand-ins for names. Raises InputError for one that multiplies what the
    input has."""
    profile = make()
    settle_stand_ins(profile)
    check_products(profile, source)
    return profile


def _without_effect(options: LoadOptions, form: "Format") -> Iterator[str]:
    """The options that have no effect on an input of a format, a sentence each."""
    for option, what in OPTIONS.items():
        if attrgetter(option)(options) and option not in form.options:
            formats = " or ".join(each.name for each in FORMATS if option in each.options)
            yield f"{what} applies to {formats} only: it had no effect."


def load_one(source: str | os.PathLike[str] | BinaryIO, options: LoadOptions) -> Profile:
    """The profile of an input that has only one."""
    found = load_all(source, options)
    if len(found) > 1:
        names = first_names(each.name for each in found)
        raise InputError(source_name(source), f"holds {len(found)} profiles: {names}")
    return found[0].profile


class Format(NamedTuple):
    """A format: what people call it, whether a content is of it, its loader, the `LoadOptions` that the loader follows,
    and a shorter name where all are listed. A loader is imported when a content may be of its format."""

    name: str
    matches: Callable[[Content], bool]
    load: Callable[[Content, LoadOptions], list[LoadedProfile]]
    options: tuple[str, ...] = ()
    short: str = ""


def single(profile: Profile) -> list[LoadedProfile]:
    """The only profile of an input, which has no name of its own."""
    return [LoadedProfile("", lambda: profile)]


def _is_pprof(content: Content) -> bool:
    from symbolize.load import pprof

    return pprof.matches(content.head)


def _load_pprof(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    from symbolize.load import pprof

    return single(pprof.load(content.whole(), content.name))


def _is_gperftools(content: Content) -> bool:
    from symbolize.load import gperftools

    return gperftools.matches(memoryview(content.head))


def _load_gperftools(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    from symbolize.load import gperftools

    return single(gperftools.load(content.whole(), content.name, keep_trampolines=options.keep_trampolines))


def _is_simpleperf(content: Content) -> bool:
    return content.head.startswith(SIMPLEPERF)


def _load_simpleperf(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    from symbolize.load import simpleperf

    pieces, mode, art = content.pieces(), options.trace_offcpu, options.show_art_frames
    return single(simpleperf.load(pieces, content.name, trace_offcpu=mode, show_art_frames=art))


def _is_legacy(content: Content) -> bool:
    from symbolize.load.legacy import load

    return load.matches(content.head)


def _load_legacy(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    from symbolize.load.legacy import load

    return single(load.load(content.whole(), content.name))


def _is_perf_script(content: Content) -> bool:
    from symbolize.load.legacy import perf_script

    return perf_script.matches(content.head)


def _load_perf_script(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    from symbolize.load.legacy import perf_script

    return single(perf_script.load(content.pieces(), content.name))


def _is_folded(content: Content) -> bool:
    from symbolize.load.legacy import folded

    return folded.matches(content.head)


def _load_folded(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    from symbolize.load.legacy import folded

    return single(folded.load(content.pieces(), content.name))


def _is_perfetto(content: Content) -> bool:
    return is_trace(content.head)


def _load_perfetto(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    from symbolize.load.perfetto.load import load

    return load(content.pieces(is_recording=True), content.name, options.choice, lambda: content.packed_size)


def _is_perf(content: Content) -> bool:
    return content.head.startswith(PERF_DATA)


def _load_perf(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    from symbolize.load.perf.load import load

    return single(load(content, options))


def _is_otlp(content: Content) -> bool:
    from symbolize.load.otlp.containers import framing_of

    return framing_of(content.head) is not None


def _load_otlp(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    from symbolize.load.otlp.load import load

    return load(content, options)


FORMATS: Final = (
    Format("perf.data", _is_perf, _load_perf, ("choice.selects", "sample_labels")),
    Format("OTLP profiles", _is_otlp, _load_otlp, ("choice.selects", "timestamps", "sample_labels"), "OTLP"),
    Format("Perfetto trace", _is_perfetto, _load_perfetto, ("choice.selects", "choice.merge"), "Perfetto"),
    Format(
        "simpleperf report_sample", _is_simpleperf, _load_simpleperf, ("trace_offcpu", "show_art_frames"), "simpleperf"
    ),
    Format("pprof", _is_pprof, _load_pprof),
    Format("gperftools CPU profile", _is_gperftools, _load_gperftools, ("keep_trampolines",), "gperftools"),
    Format("text profile of gperftools, jemalloc, Go or Java", _is_legacy, _load_legacy, (), "text profiles"),
    Format("output of perf script", _is_perf_script, _load_perf_script, (), "perf script"),
    Format("folded stacks", _is_folded, _load_folded, (), "folded"),
)
"""The first that matches decides (R220, trace or pprof)."""

OPTIONS: Final = {
    "choice.selects": "Choosing processes, heaps or kinds",
    "choice.merge": "Merging processes or dumps",
    "keep_trampolines": "Keeping trampolines",
    "trace_offcpu": "The choice of on-CPU or off-CPU samples",
    "timestamps": "Keeping the time of each event",
    "show_art_frames": "Showing the frames of Android's runtime",
    "sample_labels": "The choice of labels",
}
"""What the options of formats do, for the warning that one had no effect."""

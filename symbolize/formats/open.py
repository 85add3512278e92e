"""From a path, standard input or an open file to profiles: the content decides which loader reads it."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from operator import attrgetter
from types import ModuleType
from typing import BinaryIO, Final, NamedTuple

from symbolize.core.errors import InputError, NoProfile, first_names
from symbolize.formats.content import STANDARD_INPUT, Content, source_name
from symbolize.formats.model import DEFAULTS, LoadedProfile, LoadOptions
from symbolize.formats.products import check_products
from symbolize.formats.stand_ins import settle_stand_ins
from symbolize.profile.model import Profile

MAX_TIMED: Final = 32 << 20
"""Bytes of an input whose times are kept without being asked for: a sample a time takes memory."""


def load_all(source: str | os.PathLike[str] | BinaryIO, options: LoadOptions = DEFAULTS) -> list[LoadedProfile]:
    """The profiles of an input, as `symbolize.formats.load_all` says."""
    content = Content(source)
    form = next((each for each in FORMATS if each.matches(content)), None)
    if form is None:
        from symbolize.formats.recognition import describe

        looks = describe(content.head or content.whole())  # which raises the error of an empty one
        formats = ", ".join(each.short or each.name for each in FORMATS)
        others = "" if ": " in looks else f"; formats read: {formats}"  # behind a colon is what to do
        raise NoProfile(content.name, f"is not a profile: it looks like {looks}{others}")
    if options.timestamps is None:
        is_small = os.path.isfile(content.path) and os.path.getsize(content.path) <= MAX_TIMED
        options = replace(options, timestamps="timestamps" in form.options and is_small)
    found = form.read(content, options)
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
    """A format: what people call it, the module of `formats` whose `matches(head)` detects it by its first bytes, the
    one whose `read(content, options)` gives its profiles, the `LoadOptions` that the reader follows, and a shorter name
    where all are listed. A detector is imported when an input may be of its format, a reader when it is."""

    name: str
    detector: str
    reader: str
    options: tuple[str, ...] = ()
    short: str = ""

    def matches(self, content: Content) -> bool:
        """Whether the content is of this format."""
        is_match: bool = _module(self.detector).matches(content.head)
        return is_match

    def read(self, content: Content, options: LoadOptions) -> list[LoadedProfile]:
        """The profiles of a content of this format. Raises InputError."""
        profiles: list[LoadedProfile] = _module(self.reader).read(content, options)
        return profiles


def _module(name: str) -> ModuleType:
    return import_module(f"symbolize.formats.{name}")


FORMATS: Final = (
    Format("perf.data", "perf", "perf.reader", ("choice.selects", "timestamps", "sample_labels")),
    Format(
        "OTLP profiles", "otlp.containers", "otlp.reader", ("choice.selects", "timestamps", "sample_labels"), "OTLP"
    ),
    Format("Perfetto trace", "perfetto", "perfetto.reader", ("choice.selects", "choice.merge"), "Perfetto"),
    Format(
        "simpleperf report_sample",
        "simpleperf",
        "simpleperf.reader",
        ("trace_offcpu", "show_art_frames"),
        "simpleperf",
    ),
    Format("pprof", "pprof.reader", "pprof.reader"),
    Format("gperftools CPU profile", "gperftools.reader", "gperftools.reader", ("keep_trampolines",), "gperftools"),
    Format("text profile of gperftools, jemalloc, Go or Java", "legacy.reader", "legacy.reader", (), "text profiles"),
    Format("output of perf script", "perf_script", "perf_script", (), "perf script"),
    Format("profile of the Firefox Profiler", "firefox", "firefox.reader", ("timestamps",), "Firefox Profiler"),
    Format("folded stacks", "folded.reader", "folded.reader", (), "folded"),
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

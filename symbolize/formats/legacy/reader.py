"""Which kind of text profile an input is, by its first line that is more than a comment (R329, kinds of text
profiles)."""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from symbolize.core.errors import InputError
from symbolize.formats.content import Content
from symbolize.formats.gperftools import reader as gperftools
from symbolize.formats.legacy import contention, go, heap, java, symbols, threads
from symbolize.formats.legacy.text import MAP_TITLE, SAMPLE_OR_MAP, WARNING, Text, warn
from symbolize.formats.model import LoadedProfile, LoadOptions, another_profile, only
from symbolize.profile.model import Profile

MAX_SKIPPED: Final = 4096
"""Bytes of comments and warnings before the first line that decides."""

SECTION: Final = re.compile(
    rb"--- *(heapz?|growthz?|fragmentationz?|contentionz?|profilez?|pmuprofile|censusprofile)\s*\Z"
)
"""The title that the Perl pprof puts before a profile behind a list of names."""


class Kind(NamedTuple):
    """A kind of text profile: how the line that decides begins, and its loader."""

    title: re.Pattern[bytes]
    load: Callable[[Text], Profile]


def _load_symbolized(text: Text) -> Profile:
    return symbols.load(text, _load_section)


KINDS: Final = (
    Kind(re.compile(rb"heap profile:"), heap.load),
    Kind(heap.JEMALLOC_HEADER, heap.load_jemalloc),
    Kind(contention.TITLE, contention.load),
    Kind(java.HEAP_TITLE, java.load_heap),
    Kind(go.HEADER, go.load_counts),
    Kind(threads.TITLE, threads.load),
    Kind(symbols.TITLE, _load_symbolized),
)


ANOTHER: Final = re.compile(rb"\n[ \t]*(?:%b)" % b"|".join(kind.title.pattern for kind in KINDS), re.MULTILINE)
"""The title of a profile behind another one."""
BEHIND: Final = {
    contention.load: SAMPLE_OR_MAP,
    java.load_heap: SAMPLE_OR_MAP,
    threads.load: MAP_TITLE,
}
"""Loaders of profiles that may have several titles, and what comes before that of another profile."""


def matches(head: bytes | memoryview) -> bool:
    """Whether what begins with `head` is a text profile."""
    return _kind(Text(memoryview(head), 0, "", [])) is not None


def read(content: Content, options: LoadOptions) -> list[LoadedProfile]:
    """The text profile of a content.

    Sample types, values, labels, period, drop and keep expressions and the memory map are those of pprof's readers of
    old formats, except where these lose data (docs/legacy-formats.md). Raises InputError.
    """
    text = Text(content.whole(), 0, content.name, [])
    found = _kind(text)
    if found is None:
        raise text.error("is no text profile")
    return only(_load_first(text, *found))


def _load_first(text: Text, kind: Kind, begin: int) -> Profile:
    """The profile of a kind whose title is at `begin`. If another one follows, as when files are joined, this is said:
    dumps of a heap cannot be added up, and programs that ran at other addresses have other memory maps."""
    data = text.data
    _, behind = text.line_at(begin)
    if kind.load is not _load_symbolized:
        first = BEHIND[kind.load].search(data, behind) if kind.load in BEHIND else None
        at = first.end() if first is not None else behind - 1
        other = ANOTHER.search(data, at) if first is not None or kind.load not in BEHIND else None
        if other is not None:
            text.warnings.append(another_profile(other.start() + 1))
            data = data[: other.start() + 1]
    return kind.load(text._replace(data=data, begin=begin))


def _kind(text: Text) -> tuple[Kind, int] | None:
    """The kind of a text, and where its title is; what the profiler warns of before it goes to the warnings."""
    at = text.begin
    while at < min(len(text.data), text.begin + MAX_SKIPPED):
        line, behind = text.line_at(at)
        for kind in KINDS:
            if kind.title.match(line):
                return kind, at
        if line.startswith(WARNING):
            warn(text, line)
        elif line and not line.startswith(b"#"):
            break
        at = behind
    return None


def _load_section(text: Text) -> Profile:
    """The profile behind a list of names: with a title of its own, as text or in the words of a CPU profile."""
    line, behind = text.line_at(text.begin)
    if SECTION.match(line):
        rest = text.data[behind:]
        if gperftools.matches(rest):
            profile = gperftools.load(rest, text.source, is_raw=True)
            profile.warnings = text.warnings + profile.warnings
            return profile
        if _kind(text._replace(begin=behind, warnings=[])) is not None:
            text = text._replace(begin=behind)
    found = _kind(text)
    if found is None or found[0].load is _load_symbolized:
        raise InputError(text.source, "has no profile of a known kind behind its list of names", text.begin)
    return _load_first(text, *found)

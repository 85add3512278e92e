"""The kinds of files that a profile can be written as, by the ending of their names."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from symbolize.core.errors import UsageError, check_flags, check_type, printable
from symbolize.formats.files import GZIP

if TYPE_CHECKING:
    from symbolize.analysis import Filters, Sources
    from symbolize.core.arrays import UInt32
    from symbolize.core.disassembly import Disassembler
    from symbolize.profile import Profile

PPROF: Final = "pprof"
OTLP: Final = "otlp"
FIREFOX: Final = "firefox"
GO_PGO: Final = "go-pgo"
LLVM_PROFILE: Final = "llvm-profile"
OTHERS: Final = "[others]"
"""The function in a profile for a compiler that stands for code without a name and for functions with small values."""
COMPILERS: Final = (GO_PGO, LLVM_PROFILE)
"""The kinds that compilers read."""
PROFILES: Final = (PPROF, OTLP, *COMPILERS)
"""The kinds that are profiles, the first two of which keep all of one. The others are views of it."""


class Output(NamedTuple):
    """A kind of output: its name, the endings of its files (the first is that of default names), whether it is no text,
    whether it shows the difference from a base, whether it shows one sample type only, and whether source files."""

    name: str
    endings: tuple[str, ...]
    is_binary: bool = False
    has_base: bool = False
    has_one_type: bool = False
    has_files: bool = True


OUTPUTS: Final = (
    Output(PPROF, (".pb.gz", ".pb", ".pprof", ".proto", ".prof", ".profile", GZIP), True),
    Output(OTLP, (".otlp",), True),
    Output("html", (".html", ".htm"), has_base=True),
    Output("svg", (".svg",), has_one_type=True, has_files=False),
    Output("folded", (".folded", ".collapsed"), has_one_type=True, has_files=False),
    Output("speedscope", (".speedscope.json",)),
    Output(FIREFOX, (".firefox.json", ".firefox.json.gz", ".json", ".json.gz"), has_one_type=True),
    Output("text", (".txt",), has_base=True, has_one_type=True, has_files=False),
    Output("csv", (".csv",)),
    Output("parquet", (".parquet",), True),
    Output(GO_PGO, (".pgo",), True),
    Output(LLVM_PROFILE, (".afdo",)),
)


@dataclass(frozen=True)
class View:
    """What a view shows of a profile: its `title` (empty: the name of its file), the sample type that comes first, by
    name or number (empty: the profile's own), the samples and frames that `filters` leave, the `base` that it is
    compared with, with `normalize` scaled to its totals, where `sources` are found, and what gives the `disassembly` of
    the profile, which a page has. A pprof file has what the filters leave, and that sample type as its default. In a
    profile for a compiler functions on the stacks of less than the share `trim` of all samples are `OTHERS`; from one
    for LLVM they are left out, and it has what `discriminators` gives for the lines of the profile. `caveats`, and
    `named_samples`, the mark of samples that have names, are set when it is written."""

    title: str = ""
    sample_type: str = ""
    filters: "Filters | None" = None
    base: "Profile | None" = None
    base_title: str = ""
    sources: "Sources | None" = None
    caveats: tuple[str, ...] = ()
    normalize: bool = False
    named_samples: str = ""
    disassembly: "Disassembler | None" = None
    trim: float = 0.0
    discriminators: "Callable[[Profile], UInt32] | None" = None

    def __post_init__(self) -> None:
        for name in ("title", "sample_type", "base_title"):
            check_type(name, getattr(self, name), "text", str)
        check_type("trim", self.trim, "a number", int, float)
        if not 0 <= self.trim <= 1:
            raise UsageError(f"trim: {self.trim} is not between 0 and 1")
        check_flags(normalize=self.normalize)
        if self.filters is not None or self.base is not None or self.sources is not None:
            from symbolize.analysis import Filters, Sources
            from symbolize.profile import Profile

            check_type("filters", self.filters, "Filters", Filters, type(None))
            if self.base is not None:
                object.__setattr__(self, "base", Profile.of(self.base, "base"))
            check_type("sources", self.sources, "Sources", Sources, type(None))


def output_of(path: str, emit: str | None, default: str) -> Output:
    """The kind of the file at `path`: `emit` if it is given, else by its ending, `default` for a name without one.

    Raises UsageError for an ending that no kind has, and for a kind that needs a package which is not installed.
    """
    by_name = {output.name: output for output in OUTPUTS}
    if emit is not None:
        if emit not in by_name:
            raise UsageError(f"emit: {emit!r} is none of {', '.join(by_name)}")
        return available(by_name[emit])
    name = os.path.basename(path).lower()
    found, plain = longest_ending(name), longest_ending(name.removesuffix(GZIP))
    if name.endswith(GZIP) and plain not in (None, found):
        assert plain is not None
        raise UsageError(f"{path}: {plain.name} is not written compressed; leave out {GZIP}")
    if found is not None:
        return available(found)
    ending = os.path.splitext(name)[1]
    if ending:
        known = ", ".join(output.endings[0] for output in OUTPUTS)
        raise UsageError(f"{path}: no format has the ending {ending}; the endings are {known}")
    return by_name[default]


def longest_ending(name: str) -> Output | None:
    """The kind with the longest of the endings that a name ends with; None if it has none."""
    known = [(len(ending), output) for output in OUTPUTS for ending in output.endings if name.endswith(ending)]
    return max(known, key=lambda each: each[0])[1] if known else None


def available(output: Output) -> Output:
    """The output, if what it needs is installed."""
    if output.name == "parquet":
        check_parquet()
    return output


def check_parquet() -> None:
    """Raise UsageError if what writes Parquet is not installed."""
    if find_spec("pyarrow") is None:
        raise UsageError("Parquet needs pyarrow: pip install pyarrow")


def check_capstone() -> None:
    """Raise UsageError if what decodes instructions is not installed."""
    if find_spec("capstone") is None:
        raise UsageError("disassembly needs capstone: pip install capstone")


def written(output: Output, profile: "Profile", view: View) -> "Profile":
    """What a file that keeps all of a profile has of one where `view` chooses. Raises UsageError for a base."""
    from symbolize.analysis.filters import selected
    from symbolize.profile import combine, compact, with_sample_type

    if view.base is not None:
        raise UsageError(f"{output.name} shows one profile; a difference can be shown as {kinds_with_base()}")
    profile = with_sample_type(profile, view.sample_type)
    return compact(combine(selected(profile, view.filters))) if view.filters else profile


def kinds_with_base() -> str:
    """The kinds that show the difference from a base."""
    return ", ".join(each.name for each in OUTPUTS if each.has_base)


def view_pieces(output: Output, profile: "Profile", view: View) -> Iterator[bytes]:
    """The bytes of a view of `profile`. Raises UsageError for a base or sample type that cannot be shown."""
    from symbolize import analysis
    from symbolize.profile import caveats_of, named_locations, samples_mark, with_sample_type

    view = view if view.title else replace(view, title=os.path.basename(profile.source) or "profile")
    both = (profile, view.base) if view.base is not None else (profile,)
    caveats = [text for each in both for text in caveats_of(each)]
    if view.base is not None and view.normalize:
        caveats.append("values are scaled to the total of the base")
    is_named = view.base is None and bool(named_locations(profile).any())
    view = replace(view, caveats=tuple(caveats), named_samples=samples_mark(profile) if is_named else "")
    profile = with_sample_type(profile, view.sample_type)
    stacks = analysis.stacks_of(profile, view.filters, has_lines=output.has_files)
    if view.base is not None:
        if not output.has_base:
            raise UsageError(f"{output.name} shows one profile; a difference can be shown as {kinds_with_base()}")
        base = analysis.stacks_of(view.base, view.filters, has_lines=output.has_files)
        stacks = analysis.difference(stacks, base, normalize=view.normalize)
    if output.has_one_type:
        stacks = stacks.only_default()
    stacks.check_names()
    if output.name == "html":
        from symbolize.page import page_pieces, picture_of

        picture = picture_of(
            stacks,
            view.title,
            base_title=view.base_title if view.base is not None else None,
            sources=view.sources,
            caveats=view.caveats,
            named_samples=view.named_samples,
            disassembly=view.disassembly,
        )
        return page_pieces(picture)
    if output.name == "svg":
        from symbolize.formats import svg

        return svg.pieces(stacks, view.title, view.caveats)
    if output.name == "folded":
        from symbolize.formats.folded import writer as folded

        return folded.pieces(stacks)
    if output.name == "speedscope":
        from symbolize.analysis.filters import keys_in
        from symbolize.formats import speedscope

        keys = keys_in(view.filters.tagroot) if view.filters is not None else []
        return speedscope.pieces(stacks, view.title, view.caveats, *keys[:1])
    if output.name == FIREFOX:
        from symbolize.formats.firefox import writer as firefox

        return firefox.pieces(stacks, view.title, view.caveats)
    if output.name == "text":
        from symbolize.analysis.tables import difference_table, top_table
        from symbolize.analysis.text import text_lines

        shown = top_table(stacks) if view.base is None else difference_table(stacks)
        lines = chain((f"# {printable(each)}" for each in view.caveats), text_lines(shown))
        return (f"{line}\n".encode(errors="backslashreplace") for line in lines)
    from symbolize.formats import table

    return table.csv_pieces(stacks) if output.name == "csv" else table.parquet_pieces(stacks)

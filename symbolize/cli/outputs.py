"""Where the commands write: the path of each output, and what it must not overwrite."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from symbolize.core.errors import OutputError, SymbolizeError, UsageError, first_names, printable
from symbolize.core.files import os_error_text
from symbolize.formats.files import STANDARD_OUTPUT
from symbolize.formats.outputs import FIREFOX, OTLP, PPROF, Output, output_of

if TYPE_CHECKING:
    from symbolize.formats.model import LoadOptions
    from symbolize.profile import Profile

HTML: Final = "html"
HEAD: Final = 1 << 12
"""Bytes of a page that have its marks."""


def inputs_of(options: argparse.Namespace) -> list[str]:
    """All files that the options of a command name as inputs, `-` for standard input."""
    maps = options.proguard_maps
    base = getattr(options, "base", None)
    others = [*maps, *(each.partition("=")[2] for each in maps), *([] if base is None else [base])]
    return [*options.profiles, *options.binaries, *others]


def output_paths(profiles: Sequence[str], output: str | None, suffix: str) -> list[str]:
    """The output path of each input, by default its name with `suffix` in the current folder; raises UsageError if two
    would be the same."""
    if output == "":
        raise UsageError("an output has an empty name")
    if output is not None and not is_folder(output):
        if len(profiles) > 1:
            raise UsageError(f"-o {output} is one file for {len(profiles)} profiles; name a folder")
        return [output]
    folder = output or "."
    if not os.path.isdir(folder):
        raise UsageError(f"-o {output}: no such folder")
    paths = [os.path.normpath(os.path.join(folder, stem(profile) + suffix)) for profile in profiles]
    known: set[str] = set()
    for path in paths:
        if path in known:
            raise UsageError(f"several profiles would be written to {path}; rename one or name different folders")
        known.add(path)
    return paths


def chosen_output(path: str | None, emit: str | None, default: str) -> Output:
    """The kind of output that `-o path` and `--emit` choose; `default` for a folder and for a name without an ending.

    Raises UsageError for an ending that no kind has."""
    return output_of("" if path is None or is_folder(path) else path, emit, default)


def paths_of_all(
    names: Sequence[str], titles: Sequence[str], path: str, output: str | None, is_alone: bool, ending: str
) -> list[str]:
    """The output paths of the profiles of one input, which have `names`, and `titles` for people; `path` is that of a
    single one.

    Several are written to a folder, which is created: the one of `-o output` for an input that `is_alone`, else one
    beside `path`. Their names end with `ending`.
    """
    into = output is not None and is_folder(output)
    if names == [""] or (len(names) == 1 and not (into and is_alone)):
        return [path]
    if output is not None and not into:
        raise UsageError(
            f"-o {output} is one file for {len(names)} profiles ({first_names(titles)}); name a folder, or "
            "choose with --pid, --process, --heap, --kind or --merge"
        )
    folder = output if output is not None and is_alone else path.removesuffix(ending)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be created: {os_error_text(error)}") from error
    return [os.path.join(folder, name + ending) for name in names]


def is_folder(output: str) -> bool:
    """Whether `-o output` means a folder."""
    return output.endswith("/") or os.path.isdir(output)


def is_same_file(a: str, b: str) -> bool:
    """Whether writing `a` would overwrite what was written to `b`; devices and pipes take both."""
    path = os.path.realpath(a)
    return b != "-" and path == os.path.realpath(b) and (os.path.isfile(path) or not os.path.exists(path))


def is_kept(output: Output, path: str, results: Iterable[ResultMark], options: LoadOptions | None = None) -> bool:
    """Whether the file at a path stays, because it has names, and is of the same samples as `results`, which have none
    (R279, results of earlier runs). Profiles and pages tell; `options` are those that the input was read with, if the
    file is read as it is. Results are asked for only if there is a file."""
    from symbolize.formats.model import DEFAULTS
    from symbolize.formats.open import load_all

    if path == STANDARD_OUTPUT or not os.path.isfile(path):
        return False
    results = list(results)
    if any(each.has_names for each in results):
        return False
    try:
        if output.name == HTML:
            from symbolize.page import mark_of

            with open(path, "rb") as file:
                head = file.read(HEAD)
            return all(mark_of(each.samples).encode() in head for each in results)
        before = load_all(path, options or DEFAULTS) if output.name in (PPROF, OTLP, FIREFOX) else []
        marks = [result_mark(each.profile) for each in before]
    except (SymbolizeError, OSError):
        return False
    same = [each.samples for each in marks] == [each.samples for each in results]
    return same and any(each.has_names for each in marks)


class ResultMark(NamedTuple):
    """What tells whether a result may replace another one: the mark of its samples, and whether code in it has names,
    other than frames of labels."""

    samples: str
    has_names: bool


def result_mark(profile: Profile) -> ResultMark:
    """The mark of a profile."""
    from symbolize.profile import NONE, named_locations, samples_mark

    is_code = (profile.locations.address != 0) | (profile.locations.mapping != NONE)
    return ResultMark(samples_mark(profile), bool((named_locations(profile) & is_code).any()))


def kept_text(paths: Sequence[str]) -> str:
    """What is said of files that stay."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return (
        f"{printable(paths[0])}{more} kept: names are in it, and this run found none; delete it, or write elsewhere "
        "with -o"
    )


def stem(profile: str) -> str:
    """The base name of a profile without its extensions."""
    if profile == "-":
        return "stdin"
    from symbolize.formats.files import without_endings

    return without_endings(os.path.basename(profile))

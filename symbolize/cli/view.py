"""`symbolize view`: profiles as pictures, by default one self-contained page each."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from symbolize.cli.arguments import Parser
from symbolize.cli.console import EXIT_DONE, EXIT_FAILED, print_error
from symbolize.cli.inputs import add_profiles
from symbolize.cli.options import MERGED, merges_all
from symbolize.cli.outputs import (
    HTML,
    chosen_output,
    inputs_of,
    is_kept,
    kept_text,
    output_paths,
    paths_of_all,
    result_mark,
)
from symbolize.cli.selection import filters_of
from symbolize.cli.shown import (
    SHOW_BRIEF,
    add_normalize_option,
    add_show_options,
    add_source_options,
    loaded_profiles,
    merged_profiles,
    note_extent,
    note_labels,
    shown_profiles,
    sources_of,
    sources_of_outputs,
    symbolizer_of,
    the_profile,
)
from symbolize.core.errors import InputError, OutputError, UsageError, printable
from symbolize.formats.files import STANDARD_OUTPUT, check_inputs, check_terminal
from symbolize.formats.outputs import OUTPUTS, PPROF, View, check_capstone

if TYPE_CHECKING:
    from symbolize.formats.outputs import Output
    from symbolize.pipeline import Symbolizer


def view_parser() -> Parser:
    """The arguments of `symbolize view`."""
    endings = " ".join(output.endings[0] for output in OUTPUTS)
    result = Parser(
        "symbolize view",
        "Write a page with a flame graph, a table of functions and source lines. It needs no network.",
        ["[OPTIONS] PROFILE..."],
        brief=("-o", "--emit", "--open", "--base", "--normalize", "--source", "--path-map", *SHOW_BRIEF),
        epilog="Exit codes: 0 done, 1 an input, output, binary or server failed, 2 usage, 130 interrupted.",
    )
    add_profiles(result)
    group = result.group("Output")
    group.add_argument(
        "--output",
        "-o",
        metavar="OUT",
        help="file to write, its ending chooses the format\n(default: NAME.html in the current folder). - is standard "
        f"output, a folder may be given too. The ending chooses the format: {endings}",
    )
    group.add_argument(
        "--emit",
        metavar="FORM",
        choices=[output.name for output in OUTPUTS],
        help="format, whatever the ending of OUT",
    )
    group.add_argument("--open", action="store_true", help="open the result in the browser")
    result.group("Selection").add_argument("--base", metavar="FILE", help="profile to compare with")
    add_normalize_option(result)
    add_source_options(result)
    result.group("Sources").add_argument(
        "--disassembly",
        action="store_true",
        help="put the machine instructions of the heaviest functions into the page,\nwith their values",
    )
    add_show_options(result)
    return result


def run_view(arguments: Sequence[str]) -> int:
    """Write the picture of each profile; one that cannot be read does not stop the others. The exit code."""
    options = view_parser().parse_args(arguments)
    output = chosen_output(options.output, options.emit, HTML)
    merges = merges_all(options)
    paths = output_paths([MERGED] if merges else options.profiles, options.output, output.endings[0])
    check(options, output, paths)
    if output.name == HTML and options.base is None and not options.timestamps:
        options.timestamps = None  # the page shows them
    view = View(
        filters=filters_of(options),
        sources=sources_of(options) if options.source or options.path_map else None,
        normalize=options.normalize,
    )
    code = EXIT_DONE
    with symbolizer_of(options) as symbolizer:
        if symbolizer is not None:
            view = replace(view, discriminators=symbolizer.discriminators)
        if options.base is not None:
            base = the_profile(options, [options.base], symbolizer)
            view = replace(view, base=base.profile, base_title=page_title(options.base, base.title))
        if options.disassembly and symbolizer is None:
            raise UsageError("--disassembly needs the binaries: give their folders with -b, or --local")
        for sources, path in zip(sources_of_outputs(options), paths, strict=True):
            try:
                if not write_views(options, sources, path, output, view, symbolizer):
                    code = EXIT_FAILED
            except (InputError, OutputError) as error:
                print_error(f"symbolize: {error}")
                code = EXIT_FAILED
    return code


def check(options: argparse.Namespace, output: Output, paths: Sequence[str]) -> None:
    """Raise UsageError if an output would overwrite an input, cannot be opened, or does not show what is asked for."""
    if output.name == PPROF and options.base:
        raise UsageError("--base has no effect on a pprof file, which has one profile")
    if options.disassembly:
        check_capstone()
        if output.name != HTML:
            raise UsageError("--disassembly has an effect only on a page (.html)")
    if options.normalize and options.base is None:
        raise UsageError("--normalize has an effect only with --base")
    for path in paths if output.is_binary else ():
        check_terminal(path)
    check_inputs(inputs_of(options), paths)
    if options.open and STANDARD_OUTPUT in paths:
        raise UsageError("--open needs a file: standard output cannot be opened")


def write_views(
    options: argparse.Namespace,
    sources: list[str],
    path: str,
    output: Output,
    view: View,
    symbolizer: Symbolizer | None,
) -> bool:
    """Write the pictures of the profiles of one input, or that of all inputs merged; whether nothing failed that may
    have more names."""
    from symbolize.formats import write

    source, paths = sources[0], [path]
    if merges_all(options):
        shown = iter([merged_profiles(options, sources, symbolizer)])
    else:
        found = loaded_profiles(options, source)
        names = [each.name for each in found] if len(found) > 1 else [""]
        titles, is_alone = [each.title for each in found], len(options.profiles) == 1
        paths = paths_of_all(names, titles, path, options.output, is_alone, output.endings[0])
        shown = shown_profiles(options, source, found, symbolizer)
    check(options, output, paths)
    is_complete = True
    for each, to in zip(shown, paths, strict=True):
        exists = os.path.exists(to)
        note_labels(options, each.profile)
        if view.base is not None:
            note_extent(options, each, view.base)
        title = page_title(source, each.title)
        if title == view.base_title:  # files of one name in two folders
            view = replace(view, base_title=options.base)
            title = each.title
        if options.disassembly and symbolizer is not None:
            view = replace(view, disassembly=partial(symbolizer.disassembly, each.profile))
        stays = view.base is None and is_kept(output, to, map(result_mark, [each.profile]))
        if stays:
            print_error(f"symbolize: {kept_text([to])}")
        else:
            write(each.profile, to, emit=output.name, view=replace(view, title=title))
        if not stays and not options.quiet and to != STANDARD_OUTPUT:
            named = "" if each.named_percent is None else f": {each.named_percent:.1f} % of the samples in named code"
            print_error(f"{'replaced' if exists else 'wrote'} {printable(to)}{named}")
        if options.open:
            open_in_browser(to)
        is_complete = is_complete and each.is_complete
    return is_complete


def page_title(source: str, title: str) -> str:
    """The title of a profile without the folder of its file: pages are shared."""
    return os.path.basename(source) + title.removeprefix(source)


def open_in_browser(path: str) -> None:
    """Show a file in the user's browser."""
    import webbrowser

    if not webbrowser.open(Path(path).absolute().as_uri()):
        print_error(f"symbolize: no browser was found; open {printable(path)} in one")

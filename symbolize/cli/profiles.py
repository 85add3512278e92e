"""`symbolize PROFILE...` and `symbolize plan PROFILE...`: each profile symbolized, written and reported on, or which
binaries would be used, fetched and missed."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from symbolize.cli.arguments import Parser
from symbolize.cli.commands import COMMANDS
from symbolize.cli.console import EXIT_BELOW, EXIT_DONE, EXIT_FAILED, print_error, print_output
from symbolize.cli.inputs import add_profiles
from symbolize.cli.options import (
    MERGED,
    NO_SAMPLES,
    add_cache_options,
    add_form_options,
    add_input_options,
    add_naming_options,
    add_volume_options,
    below_text,
    binary_roots,
    limit_of,
    load_options,
    merges_all,
    open_cache,
    percentage,
)
from symbolize.cli.outputs import (
    chosen_output,
    inputs_of,
    is_kept,
    is_same_file,
    output_paths,
    paths_of_all,
    result_mark,
)
from symbolize.cli.reports import FORMS, Reports, check_report, profile_name, title_of
from symbolize.cli.selection import FILTERS, add_selection_options, filters_of
from symbolize.cli.shown import note_labels, warn
from symbolize.cli.symbolizing import asked_for, open_symbolizer, symbolized
from symbolize.core.errors import InputError, OutputError, UsageError, printable
from symbolize.core.records import record
from symbolize.core.terminal import has_colour, width_of
from symbolize.formats.files import check_inputs, check_terminal
from symbolize.formats.outputs import (
    COMPILERS,
    FIREFOX,
    GO_PGO,
    LLVM_PROFILE,
    OTHERS,
    OTLP,
    OUTPUTS,
    PPROF,
    Output,
    View,
)

if TYPE_CHECKING:
    from symbolize.core.arrays import Bool
    from symbolize.formats.model import LoadedProfile
    from symbolize.pipeline import Result, Symbolizer
    from symbolize.profile import Merger, Profile
    from symbolize.report.text import Missing

BRIEF = (
    *("-b", "--debuginfod", "-o", "--demangle", "--report", "--missing", "--fail-under"),
    *("-v", "-q", "-V"),
)
"""The options of the short help."""
SYMBOLIZED = ".symbolized"
SUFFIX = f"{SYMBOLIZED}.pb.gz"
MODULE_SYMBOLS = "module-symbols"
SAMPLY_SYMBOLS = "samply-syms"
SYMBOL_FILES = {MODULE_SYMBOLS: ".symbols.pb", SAMPLY_SYMBOLS: ".syms.json"}
"""What has the symbols of a recording and is no profile, and how default names end."""
FRAME_CHANGES = (*FILTERS, "prune", "drop", "prune_from", "synthesize", "tail_calls")
"""Options that change which samples and frames there are."""
TRACE = "Perfetto trace"
"""The format of inputs that symbols can be appended to."""


def parser() -> Parser:
    """The arguments of the command."""
    result = Parser(
        "symbolize",
        "Turn the addresses of profiles into names and write symbolized pprof files.",
        ("[OPTIONS] PROFILE...", "COMMAND [OPTIONS] ..."),
        brief=BRIEF,
        epilog="A folder or an ELF file among the profiles is taken as --binaries. Settings come from the command "
        "line, else from SYMBOLIZE_ environment variables, else from symbolize.toml.\n"
        "Exit codes: 0 done, 1 an input, output, binary or server failed, 2 usage, 3 below --fail-under, "
        "130 interrupted.",
        listed={name: command.summary for name, command in COMMANDS.items()},
    )
    add_profiles(result)
    add_input_options(result, may_merge=True, may_look_here=True)
    output = result.group("Output")
    output.add_argument(
        "--output",
        "-o",
        metavar="OUT",
        help=f"file to write, - for standard output, or a folder\n(default: NAME{SUFFIX} in the current folder). The "
        "ending chooses the format: " + " ".join(each.endings[0] for each in OUTPUTS),
    )
    output.add_argument(
        "--emit",
        metavar="FORM",
        choices=(*(each.name for each in OUTPUTS), *SYMBOL_FILES),
        help="what to write, whatever the ending of OUT;\none of " + ", ".join(each.name for each in OUTPUTS) + f", "
        f"{MODULE_SYMBOLS}, the symbols of a Perfetto trace as packets to append to it (default name: "
        f"NAME{SYMBOL_FILES[MODULE_SYMBOLS]}), or {SAMPLY_SYMBOLS}, the symbols of a profile of samply, which it "
        f"takes from beside that (default name: NAME{SYMBOL_FILES[SAMPLY_SYMBOLS]})",
    )
    output.add_argument(
        "--trim",
        metavar="PERCENT",
        type=percentage,
        default=0.0,
        help=f"of {GO_PGO}: functions on the stacks of a smaller share of\nall samples are {OTHERS}; of "
        f"{LLVM_PROFILE}: functions\nwith a smaller share are left out (default: 0)",
    )
    add_naming_options(result)
    add_selection_options(result)
    add_cache_options(result, may_put_off=True)
    report = result.group("Report")
    report.add_argument(
        "--report",
        metavar="FORM",
        choices=FORMS,
        help="form of the report: text, json, html, none;\njson is a line a profile, html a page (default: text, or "
        "what the ending of --report-file says)",
    )
    report.add_argument("--report-file", metavar="FILE", help="write the report there, not to standard output")
    report.add_argument(
        "--missing",
        metavar="FILE",
        help="write the missing files, the heaviest first;\nas commands that fetch them",
    )
    report.add_argument(
        "--folded-report",
        metavar="FILE",
        help="write as JSON which functions share code by identical code folding;\ntime of one may belong to others",
    )
    report.add_argument(
        "--fail-under",
        metavar="PERCENT",
        type=percentage,
        help="exit with 3 if less than this share has names;\nof the sample value at the leaves, or of the frames "
        "weighted by sample value",
    )
    add_volume_options(result, "list all attempts, and unused mappings")
    return result


def run_profiles(arguments: Sequence[str]) -> int:
    """Symbolize every profile; a profile that cannot be read does not stop the others. The exit code: 1 if something
    failed, before 3, below `--fail-under`."""
    options = parser().parse_args(arguments)
    from symbolize.cli.hints import OPTION_HINTS
    from symbolize.report.text import Missing

    output = None if options.emit in SYMBOL_FILES else chosen_output(options.output, options.emit, PPROF)
    merges = merges_all(options)
    outputs = output_paths([MERGED] if merges else options.profiles, options.output, suffix_of(options, output))
    check_report(options)
    check_outputs(options, output, outputs)
    if output is None:
        check_symbols(options)
    code = EXIT_DONE
    below: list[tuple[float, str]] = []
    with open_symbolizer(options, binary_roots(options)) as symbolizer:
        run = ProfileRun(options, output, symbolizer, Reports(options, output), Missing(OPTION_HINTS))
        if merges:
            from symbolize.profile import Merger, choose_sample_type

            run.merger = Merger(side_by_side=options.side_by_side)
            run.reports.will_write(outputs[0])
            outputs *= len(options.profiles)
        for profile, path in zip(options.profiles, outputs, strict=True):
            try:
                percent, is_complete = symbolize_one(run, profile, path)
                if not is_complete:
                    code = EXIT_FAILED
            except (InputError, OutputError) as error:
                print_error(f"symbolize: {error}")
                code = EXIT_FAILED
                continue
            if len(options.profiles) > 1:
                free_memory()
            if options.fail_under is not None and percent < options.fail_under:
                below.append((percent, profile))
        if run.merger is not None and run.merger.count:
            merged = run.merger.result()
            warn(options, outputs[0], run.merger.warnings_of(merged))
            if options.sample_type and options.side_by_side:  # else it was chosen of each
                choose_sample_type(merged, options.sample_type)
            write_output(run, merged, outputs[0], MERGED)
    run.reports.finish(run.profiles > 1 or len(options.profiles) > 1 or merges)
    if run.profiles:  # else the reports of earlier runs are kept
        write_lists(run)
    if below:
        report_below(below, options)
    return EXIT_BELOW if below and code == EXIT_DONE else code


def check_symbols(options: argparse.Namespace) -> None:
    """Raise UsageError for options that have no effect on the symbols of a recording."""
    recording = "trace" if options.emit == MODULE_SYMBOLS else "profile of samply"
    if options.annotate:
        raise UsageError(f"--annotate changes displayed names, and --emit {options.emit} writes the original ones")
    if merges_all(options):
        raise UsageError(
            f"--merge all makes one profile, and --emit {options.emit} writes symbols for each {recording}"
        )
    changes = (*FRAME_CHANGES, "path_prefix", "trim_path") if options.emit == MODULE_SYMBOLS else FRAME_CHANGES
    for name in changes:
        if getattr(options, name):
            raise UsageError(f"--{name.replace('_', '-')} has no effect on the symbols of a {recording}")


def report_below(below: Sequence[tuple[float, str]], options: argparse.Namespace) -> None:
    """Print which inputs are below --fail-under: their coverages and names."""
    percent, profile = min(below)
    text = below_text(percent, options.fail_under)
    if len(below) > 1:
        text += f" (the lowest of {len(below)} inputs below it)"
    elif percent != NO_SAMPLES:
        text += " (of samples and frames the lower one)"
    print_error(f"symbolize: {printable(profile)}: {text}")


def suffix_of(options: argparse.Namespace, output: Output | None) -> str:
    """What default names end with."""
    if output is None:
        return SYMBOL_FILES[options.emit]
    if output.name == OTLP:
        return SYMBOLIZED + output.endings[0]
    return SUFFIX if output.name == PPROF else output.endings[0]


@record
class ProfileRun:
    """One run of the command: what all its profiles share, and how many were read. `output` is None where the symbols
    of a trace are written; `merger` takes the profiles where all become one."""

    options: argparse.Namespace
    output: Output | None
    symbolizer: Symbolizer
    reports: Reports
    missing: Missing
    merger: Merger | None = None
    folded: list[dict[str, object]] = field(default_factory=list)
    profiles: int = 0


def write_lists(run: ProfileRun) -> None:
    """Write what is not a report: the list of missing files, and that of shared code."""
    if run.options.folded_report is not None:
        import json

        text = json.dumps({"schema_version": 1, "profiles": run.folded}, indent=1)
        write_text(text + "\n", run.options.folded_report)
    if run.options.missing is not None:
        write_text(run.missing.text(), run.options.missing)


def free_memory() -> None:
    """Collect garbage, and exclude what is in use from later collections, so that these do not become slower."""
    gc.collect()
    gc.freeze()


def check_outputs(options: argparse.Namespace, output: Output | None, outputs: Sequence[str]) -> None:
    """Raise UsageError if an output or report would overwrite an input or another one, a report has no name, or an
    output does not show what is asked for."""
    if options.trim and (output is None or output.name not in COMPILERS):
        raise UsageError(f"--trim has an effect only with --emit {' or '.join(COMPILERS)}")
    for each in outputs if output is None or output.is_binary else ():
        check_terminal(each)
    reports = filter(None, (options.folded_report, options.missing, options.report_file))
    check_inputs(inputs_of(options), (*outputs, *reports))
    named: list[str] = []
    for option in ("folded_report", "missing", "report_file"):
        name, shown = getattr(options, option), "--" + option.replace("_", "-")
        if name is None:
            continue
        if name in ("", "-"):
            raise UsageError(f"{shown} needs the name of a file")
        if any(is_same_file(name, path) for path in outputs):
            raise UsageError(f"{shown} {name} is the output of a profile too")
        if any(is_same_file(name, path) for path in named):
            raise UsageError(f"{shown} {name} is another report too")
        named.append(name)


def write_text(text: str, name: str) -> None:
    """Write `text` to the file `name`."""
    from symbolize.formats.files import output_file

    with output_file(name) as file:
        file.write(text.encode(errors="backslashreplace"))


def symbolize_one(run: ProfileRun, source: str, path: str) -> tuple[float, bool]:
    """Symbolize the profiles of one input; the lowest percentage of them that has names, and whether nothing failed
    that may have more names."""
    from symbolize.formats.open import load_all

    options = run.options
    found = load_all(source, load_options(options))
    symbols = whole_output(run, source, found)
    if symbols is not None or run.merger is not None:
        paths = [path] * len(found)
    else:
        assert run.output is not None
        names, titles = [each.name for each in found], [each.title for each in found]
        assert run.output is not None
        paths = paths_of_all(names, titles, path, options.output, len(options.profiles) == 1, run.output.endings[0])
        check_outputs(options, run.output, paths)
    several = len(options.profiles) > 1 or len(found) > 1 or run.merger is not None
    percent, is_complete = 100.0, True
    marks = []
    for each, to in zip(found, paths, strict=True):
        if symbols is None and run.merger is None:
            run.reports.will_write(to)
        result = symbolize_profile(run, each, profile_name(source, each, len(found) > 1), to, symbols)
        run.reports.add(result.report, source, each, "" if symbols is not None else to, several)
        run.profiles += 1
        percent = min(percent, NO_SAMPLES if result.report.no_samples else result.report.lower_percent)
        is_complete = is_complete and not result.report.failures
        if symbols is not None:
            marks.append(result_mark(result.profile))
        if len(found) > 1:
            free_memory()
    if symbols is None:
        return percent, is_complete
    if run.output is not None and is_kept(run.output, path, marks, load_options(options)):
        run.reports.keeps(path)
    else:
        symbols.write(path)
        run.reports.wrote_symbols(path, symbols.addresses, symbols.modules)
    return percent, is_complete


class WholeOutput(Protocol):
    """What is written once for all profiles of an input: what was found for the addresses in them."""

    @property
    def addresses(self) -> int: ...

    @property
    def modules(self) -> int: ...

    def add(self, profile: Profile, resolved: Bool) -> None: ...

    def write(self, destination: str) -> None: ...


def whole_output(run: ProfileRun, source: str, found: Sequence[LoadedProfile]) -> WholeOutput | None:
    """What is written for all profiles of an input together: symbols for a trace, an OTLP message with its lines. None
    where each profile has a file of its own, as where samples or frames are chosen, or all become one."""
    options, document = run.options, found[0].document
    if run.output is None and options.emit == SAMPLY_SYMBOLS:
        from symbolize.formats.firefox.samply_symbols import SamplySymbols

        if document is None:
            raise InputError(source, f"is no profile of samply, and --emit {SAMPLY_SYMBOLS} writes symbols for these")
        return SamplySymbols(document, run.symbolizer.symbols_of)
    if run.output is None:
        from symbolize.formats.perfetto.module_symbols import ModuleSymbols

        if found[0].format != TRACE:
            raise InputError(source, "is not a Perfetto trace, and --emit module-symbols writes symbols for traces")
        return ModuleSymbols()
    is_changed = run.merger is not None or any(getattr(options, name) for name in ("sample_type", *FRAME_CHANGES))
    if run.output.name == OTLP and found[0].container is not None and not is_changed:
        from symbolize.formats.otlp.lines import OtlpLines

        return OtlpLines(found[0].container, replaces=options.force)
    if run.output.name == FIREFOX and document is not None and not is_changed:
        from symbolize.formats.firefox.lines import FirefoxLines

        return FirefoxLines(document, run.symbolizer.symbols_of, replaces=options.force)
    return None


def symbolize_profile(
    run: ProfileRun, loaded: LoadedProfile, name: str, path: str, symbols: WholeOutput | None
) -> Result:
    """Symbolize one profile and write it to `path`, or add what was found to `symbols`. Its shared code, if wanted, and
    its missing files are added to those of the run."""
    result = symbolized(run.options, run.symbolizer, loaded.profile)
    if symbols is not None:
        symbols.add(result.profile, result.resolved)
    elif run.merger is not None:
        run.merger.add(result.profile, name)
    else:
        write_output(run, result.profile, path, name)
    if run.options.folded_report is not None:
        from symbolize.report.json import folded

        run.folded.append(folded(result.report, name))
    run.missing.add(result.report)
    return result


def write_output(run: ProfileRun, profile: Profile, path: str, name: str) -> None:
    """Write a profile, which people call `name`, as the options say, unless what is there is kept."""
    from symbolize.formats import write

    assert run.output is not None
    note_labels(run.options, profile)
    if is_kept(run.output, path, map(result_mark, [profile])):
        run.reports.keeps(path)
        return
    view = View(
        os.path.basename(name),
        filters=filters_of(run.options),
        trim=run.options.trim / 100,
        discriminators=run.symbolizer.discriminators,
    )
    write(profile, path, emit=run.output.name, view=view)


def run_plan(arguments: Sequence[str]) -> int:
    """Run the command with `arguments`; the exit code."""
    from symbolize.binaries import Unasked
    from symbolize.cli.hints import OPTION_HINTS
    from symbolize.formats.open import load_all
    from symbolize.pipeline import Symbolizer
    from symbolize.report.json import as_plan, bounded, render
    from symbolize.report.text import plan_markdown, render_plan

    options = plan_parser().parse_args(arguments)
    limit = limit_of(options)
    how: dict[str, Any] = {"verbose": options.verbose, "hints": OPTION_HINTS, "limit": limit}
    binaries = binary_roots(options)
    servers = Unasked([host(url) for url in options.debuginfod]) if options.debuginfod else None
    asked = asked_for(options, binaries=binaries)
    cache = None if options.no_cache or not (binaries or servers or asked.local) else open_cache(options)
    code = EXIT_DONE
    with Symbolizer(binaries, asked, cache=cache, servers=servers) as symbolizer:
        for source in options.profiles:
            try:
                found = load_all(source, load_options(options))
            except InputError as error:
                print_error(f"symbolize: {error}")
                code = EXIT_FAILED
                continue
            for each in found:
                report = symbolizer.plan(each.profile)
                if options.json:
                    assert limit is not None
                    if len(report.mappings) > limit:
                        report.mappings = report.by_weight(unused=True)
                    cuts: list[dict[str, object]] = []
                    data = bounded(as_plan(report, profile_name(source, each, len(found) > 1)), limit, cuts)
                    print_output(render(data | {"truncated": bool(cuts), "cuts": cuts}), flush=True)
                    continue
                several = len(options.profiles) > 1 or len(found) > 1
                if options.markdown:
                    title = title_of(source, each, several)
                    print_output("\n".join(plan_markdown(report, title, **how)) + "\n\n", flush=True)
                    continue
                heading = f"{printable(title_of(source, each, several))}:\n" if several else ""
                colour, width = has_colour(sys.stdout), width_of(sys.stdout)
                text = render_plan(report, colour=colour, width=width, **how)
                print_output(heading + text + "\n" * several, flush=True)
    return code


def plan_parser() -> Parser:
    """The arguments of the command."""
    result = Parser(
        "symbolize plan",
        "Show which binaries and debug files would be used for a profile, which would be fetched and which are "
        "missing, without symbolizing it and without the network.",
        ["[OPTIONS] PROFILE..."],
        brief=("-b", "--debuginfod", "--json", "--markdown", "-v"),
        epilog="Exit codes: 0 done, 1 a profile cannot be read, 2 usage.",
    )
    add_profiles(result)
    add_input_options(result, may_look_here=True)
    add_cache_options(result)
    add_form_options(result, "mappings, the heaviest ones", "all; with --json 1000, with --markdown 100")
    result.group("General").add_argument(
        "-v", "--verbose", action="store_true", help="also list all attempts, and unused mappings"
    )
    return result


def host(url: str) -> str:
    """The host of a server, without secrets in its URL."""
    if url == "env":
        return "servers of DEBUGINFOD_URLS"
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        return parts.hostname or "server"
    except ValueError:
        return "server"

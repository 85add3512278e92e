"""`symbolize PROFILE...`: each profile symbolized, written and reported on."""

from __future__ import annotations

import argparse
import gc
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from symbolize.cli.arguments import Parser
from symbolize.cli.commands import COMMANDS
from symbolize.cli.inputs import add_profiles
from symbolize.cli.options import (
    EXIT_BELOW,
    EXIT_DONE,
    EXIT_FAILED,
    add_cache_options,
    add_input_options,
    add_naming_options,
    add_volume_options,
    binary_roots,
    debuginfod_client,
    load_options,
    open_cache,
    percentage,
    print_error,
)
from symbolize.cli.reports import FORMS, Reports, check_report, profile_name
from symbolize.core.errors import InputError, OutputError, UsageError, first_names
from symbolize.core.files import os_error_text
from symbolize.write.files import check_inputs, check_terminal

if TYPE_CHECKING:
    from symbolize.load.model import LoadedProfile
    from symbolize.pipeline import Result, Symbolizer
    from symbolize.report.missing import Missing
    from symbolize.write.module_symbols import ModuleSymbols

BRIEF = (
    *("-b", "--debuginfod", "-o", "--demangle", "--report", "--report-file", "--missing", "--fail-under"),
    *("-v", "-q", "-V"),
)
"""The options of the short help."""
SUFFIX = ".symbolized.pb.gz"
SYMBOLS_SUFFIX = ".symbols.pb"


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
    add_input_options(result)
    output = result.group("Output")
    output.add_argument(
        "--output",
        "-o",
        metavar="OUT",
        help=f"file to write, - for standard output, or a folder\n(default: NAME{SUFFIX} in the current folder)",
    )
    output.add_argument(
        "--emit",
        metavar="FORM",
        choices=("pprof", "module-symbols"),
        default="pprof",
        help="what to write:\npprof, or module-symbols, the symbols of a Perfetto trace as packets to append to the "
        f"trace (default name: NAME{SYMBOLS_SUFFIX})",
    )
    add_naming_options(result)
    add_cache_options(result)
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
    """Symbolize every profile; a profile that cannot be read does not stop the others. The exit code."""
    options = parser().parse_args(arguments)
    from symbolize.cli.hints import OPTION_HINTS
    from symbolize.pipeline import Symbolizer
    from symbolize.report.missing import Missing

    binaries = binary_roots(options)
    cache = None if options.no_cache or not (binaries or options.debuginfod) else open_cache(options)
    outputs = output_paths(options.profiles, options.output, SUFFIX if options.emit == "pprof" else SYMBOLS_SUFFIX)
    check_report(options)
    check_outputs(options, outputs)
    if options.annotate and options.emit != "pprof":
        raise UsageError("--annotate changes displayed names, and --emit module-symbols writes the original ones")
    code = EXIT_DONE
    with (
        debuginfod_client(options) as servers,
        Symbolizer(
            binaries,
            demangle=options.demangle,
            cache=cache,
            servers=servers,
            nearest_line=options.nearest_line,
            proguard_maps=options.proguard_map,
            annotate=options.annotate,
        ) as symbolizer,
    ):
        run = Run(options, symbolizer, Reports(options), Missing(OPTION_HINTS))
        for profile, output in zip(options.profiles, outputs, strict=True):
            try:
                percent, is_complete = symbolize_one(run, profile, output)
                if not is_complete:
                    code = EXIT_FAILED
            except (InputError, OutputError) as error:
                print_error(f"symbolize: {error}")
                code = EXIT_FAILED
                continue
            if len(options.profiles) > 1:
                free_memory()
            if options.fail_under is not None and percent < options.fail_under and code == EXIT_DONE:
                code = EXIT_BELOW
    run.reports.finish(run.profiles > 1 or len(options.profiles) > 1)
    if run.profiles:  # else the reports of earlier runs are kept
        write_lists(run)
    return code


@dataclass
class Run:
    """One run of the command: what all its profiles share, and how many were read."""

    options: argparse.Namespace
    symbolizer: Symbolizer
    reports: Reports
    missing: Missing
    folded: list[dict[str, object]] = field(default_factory=list)
    profiles: int = 0


def write_lists(run: Run) -> None:
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


def check_outputs(options: argparse.Namespace, outputs: Sequence[str]) -> None:
    """Raise UsageError if an output or report would overwrite an input or another one, or a report has no name."""
    inputs = [*options.profiles, *options.binaries, *options.proguard_map]
    inputs += [each.partition("=")[2] for each in options.proguard_map]
    for each in outputs:
        check_terminal(each)
    check_inputs(inputs, (*outputs, *filter(None, (options.folded_report, options.missing, options.report_file))))
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
    from symbolize.write.files import output_file

    with output_file(name) as file:
        file.write(text.encode(errors="backslashreplace"))


def symbolize_one(run: Run, source: str, output: str) -> tuple[float, bool]:
    """Symbolize the profiles of one input; the lowest percentage of them that has names, and whether nothing failed
    that may have more names."""
    from symbolize.load.open import load_all

    options = run.options
    found = load_all(source, load_options(options))
    symbols = None
    if options.emit == "module-symbols":
        from symbolize.write.module_symbols import ModuleSymbols

        if not found[0].name:
            raise InputError(source, "is not a Perfetto trace, and --emit module-symbols writes symbols for traces")
        symbols = ModuleSymbols()
        paths = [output] * len(found)
    else:
        paths = paths_of_all([each.name for each in found], output, options)
    several = len(options.profiles) > 1 or len(found) > 1
    percent, is_complete = 100.0, True
    for each, path in zip(found, paths, strict=True):
        result = symbolize_profile(run, each, profile_name(source, each, len(found) > 1), path, symbols)
        run.reports.add(result.report, source, each, "" if symbols is not None else path, several)
        run.profiles += 1
        percent = min(percent, result.report.lower_percent)
        is_complete = is_complete and not result.report.failures
        if len(found) > 1:
            free_memory()
    if symbols is not None:
        symbols.write(output)
        run.reports.wrote_symbols(output, symbols.addresses, symbols.modules)
    return percent, is_complete


def symbolize_profile(run: Run, loaded: LoadedProfile, name: str, output: str, symbols: ModuleSymbols | None) -> Result:
    """Symbolize and write one profile. Its shared code, if wanted, and its missing files are added to those of the
    run."""
    from symbolize.cli.progress import ProgressBar

    profile = loaded.profile
    with ProgressBar(run.options.quiet) as bar:  # unlike `symbolize`, `finish` makes no copy
        result = run.symbolizer.finish(profile, run.symbolizer.match(profile), bar)
    write_result(result, output, symbols)
    if run.options.folded_report is not None:
        from symbolize.report.json import folded

        run.folded.append(folded(result.report, name))
    run.missing.add(result.report)
    return result


def write_result(result: Result, output: str, symbols: ModuleSymbols | None) -> None:
    """Write a symbolized profile to `output`. With `symbols`, what was found is added to these instead."""
    from symbolize.write import write

    if symbols is None:
        write(result.profile, output)
    else:
        symbols.add(result.profile, result.resolved)


def paths_of_all(names: Sequence[str], output: str, options: argparse.Namespace) -> list[str]:
    """The output paths of the profiles of one input, which have `names`; `output` is that of a single one.

    Several are written to a folder, which is created: the one of -o for a single input, else one beside `output`.
    """
    into = options.output is not None and (options.output.endswith("/") or os.path.isdir(options.output))
    if names == [""] or (len(names) == 1 and not (into and len(options.profiles) == 1)):
        return [output]
    if options.output is not None and not into:
        raise UsageError(
            f"-o {options.output} is one file for {len(names)} profiles ({first_names(names)}); name a folder, or "
            "choose with --pid, --process, --heap, --kind or --merge"
        )
    folder = options.output if into and len(options.profiles) == 1 else output.removesuffix(".pb.gz")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be created: {os_error_text(error)}") from error
    paths = [os.path.join(folder, name + ".pb.gz") for name in names]
    check_outputs(options, paths)
    return paths


def output_paths(profiles: Sequence[str], output: str | None, suffix: str = SUFFIX) -> list[str]:
    """The output path of each profile; raises UsageError if two would be the same."""
    if "" in profiles or output == "":
        raise UsageError("a profile or an output has an empty name")
    if profiles.count("-") > 1:
        raise UsageError("standard input can be read once only")
    if output is not None and not output.endswith("/") and not os.path.isdir(output):
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


def is_same_file(a: str, b: str) -> bool:
    """Whether writing `a` would overwrite what was written to `b`; devices and pipes take both."""
    path = os.path.realpath(a)
    return b != "-" and path == os.path.realpath(b) and (os.path.isfile(path) or not os.path.exists(path))


def stem(profile: str) -> str:
    """The base name of a profile without its extensions."""
    if profile == "-":
        return "stdin"
    from symbolize.load.extensions import without_endings

    return without_endings(os.path.basename(profile))

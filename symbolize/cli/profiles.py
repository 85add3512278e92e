"""`symbolize PROFILE...`: each profile symbolized, written and reported on."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Never

from symbolize.cli.options import (
    EXIT_BELOW,
    EXIT_DONE,
    EXIT_FAILED,
    add_cache_options,
    add_naming,
    add_places,
    all_roots,
    debuginfod_client,
    load_options,
    open_cache,
    percentage,
    tell,
)
from symbolize.errors import InputError, OutputError, UsageError, printable
from symbolize.write.files import check_inputs, check_terminal

if TYPE_CHECKING:
    from tqdm import tqdm

    from symbolize.pipeline import Symbolizer
    from symbolize.profile import Profile
    from symbolize.report import Report
    from symbolize.report.missing import Missing
    from symbolize.write.module_symbols import ModuleSymbols

SUFFIX = ".symbolized.pb.gz"
SYMBOLS_SUFFIX = ".symbols.pb"


def parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    result = argparse.ArgumentParser(
        prog="symbolize",
        description="Turn the addresses of a profile into names and write a symbolized pprof file.",
        epilog="Exit codes: 0 done, 1 input, output or server failed, 2 usage, 3 below --fail-under, 130 interrupted. "
        "Other commands: symbolize batch INPUT... does this for thousands of profiles, symbolize plan PROFILE... tells "
        "what would be used and what is missing, symbolize index DIR... builds symbol tables ahead, symbolize cache "
        "looks after them, symbolize inspect FILE... tells what a binary offers.",
    )
    result.add_argument("profiles", metavar="PROFILE", nargs="+", help="profile to read, - for standard input")
    add_places(result)
    result.add_argument(
        "--output",
        "-o",
        metavar="OUT",
        help=f"file to write, - for standard output, or a folder (default: NAME{SUFFIX} in the current folder)",
    )
    result.add_argument(
        "--emit",
        choices=("pprof", "module-symbols"),
        default="pprof",
        help="what to write: profiles, or the symbols of a Perfetto trace as packets that are put behind the trace "
        f"(default name: NAME{SYMBOLS_SUFFIX})",
    )
    add_naming(result)
    add_cache_options(result)
    result.add_argument("--report", choices=("text", "json"), default="text", help="form of the report")
    result.add_argument(
        "--missing",
        metavar="FILE",
        help="write which binaries and debug files are still wanted, the heaviest first, as commands that fetch each",
    )
    result.add_argument(
        "--folded-report",
        metavar="FILE",
        help="write as JSON which functions share code by identical code folding, so that the time shown for one may "
        "belong to another",
    )
    result.add_argument(
        "--fail-under",
        metavar="PERCENT",
        type=percentage,
        help="exit with 3 when less than this percentage of the frames, weighted by sample value, has names",
    )
    volume = result.add_mutually_exclusive_group()
    volume.add_argument("-v", "--verbose", action="store_true", help="also list every place tried and unused mappings")
    volume.add_argument("-q", "--quiet", action="store_true", help="nothing but errors")
    result.add_argument("--version", action=Version, nargs=0, help="show the version and exit")
    return result


class Version(argparse.Action):
    """Prints the version, and whether the hot loops run interpreted, and exits."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Find that out only now: it takes a compiled module to be imported."""
        from symbolize import __version__
        from symbolize.cursor import COMPILED

        how = "" if COMPILED else " (interpreted: slow; install a C compiler and reinstall)"
        print(f"symbolize {__version__}{how}")
        parser.exit()


def run_profiles(arguments: Sequence[str]) -> int:
    """Symbolize every profile; a profile that cannot be read does not stop the others. The exit code."""
    options = parser().parse_args(arguments)
    from symbolize.pipeline import Symbolizer
    from symbolize.report.missing import Missing

    binaries = all_roots(options)
    cache = None if options.no_cache or not (binaries or options.debuginfod) else open_cache(options)
    outputs = output_paths(options.profiles, options.output, SUFFIX if options.emit == "pprof" else SYMBOLS_SUFFIX)
    check_outputs(options, outputs)
    if options.annotate and options.emit != "pprof":
        raise UsageError("--annotate changes names for people, and --emit module-symbols writes those of the program")
    code = EXIT_DONE
    folded: list[dict[str, object]] = []
    missing = Missing()
    are_read = False
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
        for profile, output in zip(options.profiles, outputs, strict=True):
            try:
                percent, is_complete = symbolize_one(symbolizer, profile, output, options, folded, missing)
                are_read = True
                if not is_complete:
                    code = EXIT_FAILED
            except (InputError, OutputError) as error:
                tell(f"symbolize: {error}")
                code = EXIT_FAILED
                continue
            if len(options.profiles) > 1:
                collect()
            if options.fail_under is not None and percent < options.fail_under and code == EXIT_DONE:
                code = EXIT_BELOW
    if not are_read:
        return code  # what earlier runs wrote stays
    if options.folded_report is not None:
        write_json({"schema_version": 1, "profiles": folded}, options.folded_report)
    if options.missing is not None:
        write_text(missing.text(), options.missing)
    return code


def collect() -> None:
    """Free what a profile left. What is still in use is not looked at again, so that many profiles cost no more each
    than a few."""
    gc.collect()
    gc.freeze()


def check_outputs(options: argparse.Namespace, outputs: Sequence[str]) -> None:
    """Raise UsageError where an output or report would destroy an input, or a report has no name of its own."""
    inputs = [*options.profiles, *options.binaries, *options.proguard_map]
    inputs += [each.partition("=")[2] for each in options.proguard_map]
    for each in outputs:
        check_terminal(each)
    check_inputs(inputs, (*outputs, *filter(None, (options.folded_report, options.missing))))
    named: list[str] = []
    for option in ("folded_report", "missing"):
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


def write_json(data: object, name: str) -> None:
    """Write plain data to the file `name`."""
    import json

    from symbolize.write.files import output_file

    with output_file(name) as file:
        file.write(json.dumps(data, indent=1).encode() + b"\n")


def symbolize_one(
    symbolizer: Symbolizer,
    source: str,
    output: str,
    options: argparse.Namespace,
    folded: list[dict[str, object]],
    missing: Missing,
) -> tuple[float, bool]:
    """Load, symbolize, write and report on the profiles of one input; the least percent of sample value symbolized, and
    whether no server failed.

    What its locations share with several functions is added to `folded`, if that is asked for, and what would name more
    of it to `missing`.
    """
    from symbolize.load import load_all

    found = load_all(source, **load_options(options))
    symbols = None
    if options.emit == "module-symbols":
        from symbolize.write.module_symbols import ModuleSymbols

        if not found[0].name:
            raise InputError(source, "is not a Perfetto trace, and --emit module-symbols writes symbols for traces")
        symbols = ModuleSymbols()
        paths = [output] * len(found)
    else:
        paths = paths_of_all([each.name for each in found], output, options)
    heading = len(options.profiles) > 1 or len(found) > 1
    percent, is_complete = 100.0, True
    for each, path in zip(found, paths, strict=True):
        name = f"{source} ({each.name})" if len(found) > 1 else source
        report = symbolize_profile(symbolizer, each.profile, name, path, options, folded, missing, heading, symbols)
        percent, is_complete = min(percent, report.percent), is_complete and not report.failures
        if len(found) > 1:
            collect()
    if symbols is not None:
        symbols.write(output)
        if not options.quiet and options.report == "text":
            tell(f"wrote {printable(output)}: {symbols.addresses} addresses of {symbols.modules} binaries")
    return percent, is_complete


def symbolize_profile(
    symbolizer: Symbolizer,
    profile: Profile,
    source: str,
    output: str,
    options: argparse.Namespace,
    folded: list[dict[str, object]],
    missing: Missing,
    heading: bool,
    symbols: ModuleSymbols | None,
) -> Report:
    """Symbolize, write and report on one profile. With `symbols`, what was found is added to those instead of
    written. With `quiet` it is still told which servers failed."""
    from symbolize.write import write

    with progress_bar(options.quiet) as progress:
        result = symbolizer.symbolize(profile, progress)
    if symbols is None:
        write(result.profile, output)
    else:
        symbols.add(result.profile, result.resolved)
    if options.folded_report is not None:
        from symbolize.report.json import folded as folded_code

        folded.append(folded_code(result.report, source))
    missing.add(result.report)
    if not options.quiet:
        if options.report == "json":
            from symbolize.report.json import render as render_json

            text = render_json(result.report, source, output)
        else:
            from symbolize.report.text import render

            colour = sys.stderr is not None and sys.stderr.isatty() and "NO_COLOR" not in os.environ
            table = render(result.report, verbose=options.verbose, colour=colour)
            text = (f"{printable(source)}:\n" if heading else "") + table
            if symbols is None:
                text += f"wrote {printable(output)}\n"
            if not result.report.percent:
                hint = "" if options.binaries or options.debuginfod else "; name a folder with --binaries"
                text += (
                    f"symbolize: warning: {printable(source)}: NOTHING WAS SYMBOLIZED, the result has no names{hint}\n"
                )
        tell(text.removesuffix("\n"))
    else:
        for server, what in result.report.failures:
            tell(f"symbolize: {printable(source)}: {printable(server)} failed: {printable(what)}; run again")
    return result.report


def paths_of_all(names: Sequence[str], output: str, options: argparse.Namespace) -> list[str]:
    """Where the profiles of one input go, which have `names`; `output` is where a single one would.

    Several go to a folder: the one that is named, if there is no other input, else one beside `output`. It is made if
    it is not there.
    """
    into = options.output is not None and (options.output.endswith("/") or os.path.isdir(options.output))
    if names == [""] or (len(names) == 1 and not (into and len(options.profiles) == 1)):
        return [output]
    if options.output is not None and not into:
        some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise UsageError(
            f"-o {options.output} is one file for {len(names)} profiles ({some}); name a folder, or choose with --pid, "
            "--process, --heap, --kind or --merge"
        )
    folder = options.output if into and len(options.profiles) == 1 else output.removesuffix(".pb.gz")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made: {error.strerror or error}") from error
    paths = [os.path.join(folder, name + ".pb.gz") for name in names]
    check_outputs(options, paths)
    return paths


def output_paths(profiles: Sequence[str], output: str | None, suffix: str = SUFFIX) -> list[str]:
    """Where the result of each profile goes; raises UsageError where two would go to one file."""
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
    seen: set[str] = set()
    for path in paths:
        if path in seen:
            raise UsageError(f"several profiles would be written to {path}; rename one or name different folders")
        seen.add(path)
    return paths


def is_same_file(a: str, b: str) -> bool:
    """Whether writing `a` would overwrite what was written to `b`; devices and pipes take both."""
    path = os.path.realpath(a)
    return b != "-" and path == os.path.realpath(b) and (os.path.isfile(path) or not os.path.exists(path))


def stem(profile: str) -> str:
    """The name of a profile without the endings that profiles have."""
    if profile == "-":
        return "stdin"
    from symbolize.load.endings import without_endings

    return without_endings(os.path.basename(profile))


class progress_bar:
    """A tqdm bar over the mappings of a profile, on a terminal only; a context manager that yields the callback."""

    def __init__(self, quiet: bool) -> None:
        self._wanted = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._bar: tqdm[Never] | None = None

    def __enter__(self) -> progress_bar | None:
        return self if self._wanted else None

    def __call__(self, done: int, total: int, name: str) -> None:
        """Show that `done` of `total` mappings are done and `name` is next."""
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(total=total, unit="mapping", leave=False, file=sys.stderr)
        self._bar.set_postfix_str(printable(os.path.basename(name)), refresh=False)
        self._bar.update(done - self._bar.n)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

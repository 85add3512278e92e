"""`symbolize plan PROFILE...`: which binaries would be used, fetched and missed."""

import json
import sys
from collections.abc import Sequence
from urllib.parse import urlsplit

from symbolize.cli.arguments import Parser
from symbolize.cli.inputs import add_profiles
from symbolize.cli.options import (
    EXIT_DONE,
    EXIT_FAILED,
    add_cache_options,
    add_input_options,
    binary_roots,
    load_options,
    open_cache,
    print_error,
    print_output,
)
from symbolize.cli.reports import profile_name, title_of
from symbolize.cli.symbolizing import asked_for
from symbolize.core.errors import InputError, printable
from symbolize.core.terminal import has_colour, width_of


def run_plan(arguments: Sequence[str]) -> int:
    """Run the command with `arguments`; the exit code."""
    from symbolize.binaries import Unasked
    from symbolize.cli.hints import OPTION_HINTS
    from symbolize.formats.open import load_all
    from symbolize.pipeline import Symbolizer
    from symbolize.report.json import as_plan
    from symbolize.report.plan import render

    options = plan_parser().parse_args(arguments)
    binaries = binary_roots(options)
    servers = Unasked([host(url) for url in options.debuginfod]) if options.debuginfod else None
    cache = None if options.no_cache or not (binaries or servers) else open_cache(options)
    code = EXIT_DONE
    with Symbolizer(binaries, asked_for(options), cache=cache, servers=servers) as symbolizer:
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
                    name = profile_name(source, each, len(found) > 1)
                    print_output(json.dumps(as_plan(report, name)) + "\n", flush=True)
                    continue
                several = len(options.profiles) > 1 or len(found) > 1
                heading = f"{printable(title_of(source, each, several))}:\n" if several else ""
                colour, width = has_colour(sys.stdout), width_of(sys.stdout)
                text = render(report, verbose=options.verbose, colour=colour, hints=OPTION_HINTS, width=width)
                print_output(heading + text + "\n" * several, flush=True)
    return code


def plan_parser() -> Parser:
    """The arguments of the command."""
    result = Parser(
        "symbolize plan",
        "Show which binaries and debug files would be used for a profile, which would be fetched and which are "
        "missing, without symbolizing it and without the network.",
        ["[OPTIONS] PROFILE..."],
        brief=("-b", "--debuginfod", "--json", "-v"),
        epilog="Exit codes: 0 done, 1 a profile cannot be read, 2 usage.",
    )
    add_profiles(result)
    add_input_options(result)
    add_cache_options(result)
    result.group("Output").add_argument("--json", action="store_true", help="print a line of JSON for each profile")
    result.group("General").add_argument(
        "-v", "--verbose", action="store_true", help="also list all attempts, and unused mappings"
    )
    return result


def host(url: str) -> str:
    """The host of a server, without secrets in its URL."""
    if url == "env":
        return "servers of DEBUGINFOD_URLS"
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
        return parts.hostname or "server"
    except ValueError:
        return "server"

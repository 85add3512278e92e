"""The options of `symbolize batch`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from symbolize.cli.arguments import Parser
from symbolize.cli.options import (
    add_cache_options,
    add_input_options,
    add_list,
    add_naming_options,
    add_volume_options,
    at_least_one,
    byte_size,
    number,
    percentage,
    positive,
)
from symbolize.cli.selection import add_edit_options
from symbolize.core.errors import UsageError, did_you_mean
from symbolize.storage.input_names import STATE_FOLDER

SECONDS, DECODE_SECONDS = 600.0, 3600.0
MEMORY, DECODE_MEMORY = 4 << 30, 16 << 30
MAX_PORT = 65535
ALL_KINDS = "all"
IGNORE = "--ignore-unreadable"


def with_all_kinds(arguments: Sequence[str]) -> list[str]:
    """The arguments, with its default value behind the one option whose value may be left out."""
    return [f"{IGNORE}={ALL_KINDS}" if argument == IGNORE else argument for argument in arguments]


def kinds_of(text: str) -> tuple[str, ...]:
    """The kinds of unreadable inputs in a list. Raises UsageError."""
    from symbolize.batch.tasks import UNREADABLE

    kinds = tuple(filter(None, text.split(",")))
    for kind in kinds:
        if kind not in (*UNREADABLE, ALL_KINDS):
            raise UsageError(f"{IGNORE}={kind}: is not one of {', '.join(UNREADABLE)}{did_you_mean(kind, UNREADABLE)}")
    return UNREADABLE if ALL_KINDS in kinds else kinds


def batch_parser() -> Parser:
    """The arguments of the command."""
    result = Parser(
        "symbolize batch",
        "Symbolize many profiles: every binary is decoded once for all of them, on all cores or on a cluster. A batch "
        "that was interrupted or killed continues when the same command is run again.",
        ["[OPTIONS] --out DIR INPUT..."],
        brief=(
            *("--out", "-b", "--debuginfod", "--demangle", "--jobs", "--dask", "--watch", "--again"),
            *("--retry-quarantined", "--report", "--report-file", "--fail-under", "--log-json", "-v", "-q"),
        ),
        epilog="Exit codes: 0 done; 1 the batch, a binary or a server failed, run it again; 2 usage; 3 below "
        "--fail-under; 4 some inputs are newly missing or quarantined; 130 interrupted.",
    )
    result.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="*",
        help="file, folder, pattern, or URL of one (s3://, gs://, file://);\n- for a list of names on standard input",
    )
    selection = result.group("Selection")
    add_list(
        selection,
        "--exclude",
        metavar="PATTERN",
        help="leave out inputs that match, and all in folders that do;\na name without a slash matches anywhere",
    )
    selection.add_argument(
        IGNORE,
        metavar="KIND,...",
        default="",
        help="quarantine unreadable inputs without exit code 4 and without a line each; of all kinds without a value, "
        "or of these: empty, no-profile, damaged, denied, gone",
    )
    output = result.group("Output")
    output.add_argument(
        "--out",
        "-o",
        metavar="DIR",
        required=True,
        help="folder or URL for the outputs;\nwhich are named as the inputs",
    )
    add_row_options(output)
    add_input_options(result)
    add_naming_options(result)
    add_edit_options(result)
    add_cache_options(result)
    add_execution_options(result.group("Execution"))
    add_limit_options(result.group("Limits"))
    watch = result.group("Watching")
    add_list(
        watch,
        "--watch",
        metavar="DIR",
        help="also take this input, and scan all for new files;\nuntil interrupted. May be given several times. A file "
        "is taken when it is unchanged between two scans",
    )
    watch.add_argument(
        "--interval", metavar="SECONDS", type=positive, default=5.0, help="time between two scans (default: 5)"
    )
    add_report_options(result.group("Report"))
    add_volume_options(result, "also print notes on folders with binaries")
    return result


def add_row_options(group: argparse._ArgumentGroup) -> None:
    """The options for rows of a data warehouse."""
    group.add_argument(
        "--parquet",
        metavar="DIR",
        help="folder or URL for the values by function and line,\na Parquet file for each profile below "
        "date=DAY/service=NAME",
    )
    group.add_argument(
        "--service-label",
        metavar="KEY",
        default="service.name",
        help="label, attribute or comment with the service of a profile\n(default: service.name), else it is the first "
        "folder of the input",
    )


def add_execution_options(group: argparse._ArgumentGroup) -> None:
    """The options for where the batch runs and keeps its state."""
    engine = group.add_mutually_exclusive_group()
    engine.add_argument(
        "--jobs", "-j", metavar="N", type=at_least_one, help="worker processes (default: one for each core)"
    )
    engine.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="run on a dask.distributed cluster, for example\ntcp://scheduler:8786; needs a --cache that all reach",
    )
    group.add_argument(
        "--shard",
        metavar="I/N",
        help="process only part I of N equal parts, from 0 on; with N alone, I is taken from JOB_COMPLETION_INDEX",
    )
    group.add_argument(
        "--state",
        metavar="DIR",
        help=f"local folder for the record of what is done (default: {STATE_FOLDER} in --out, or in the user's cache "
        "folder if --out is a URL)",
    )
    group.add_argument(
        "--keep-state",
        metavar="DAYS",
        type=positive,
        default=90.0,
        help="forget inputs that were not found for so long\n(default: 90 days)",
    )
    group.add_argument(
        "--prune-outputs", action="store_true", help="remove outputs and rows of inputs that were deleted"
    )
    group.add_argument("--retry-quarantined", action="store_true", help="try quarantined inputs again")
    group.add_argument(
        "--retry-missing",
        action="store_true",
        help="symbolize inputs again that are done and miss names,\nif there are files for these now",
    )
    group.add_argument("--again", action="store_true", help="symbolize all inputs again,\nalso those that are done")


def add_limit_options(group: argparse._ArgumentGroup) -> None:
    """The options for limits; an input that exceeds one is quarantined."""
    group.add_argument(
        "--time-limit",
        metavar="SECONDS",
        type=positive,
        default=SECONDS,
        help=f"time for one input (default: {SECONDS:.0f}), which is quarantined if it takes longer; decoding a binary "
        f"may take {DECODE_SECONDS:.0f} s, or this if it is more",
    )
    group.add_argument(
        "--memory-limit",
        metavar="SIZE",
        type=byte_size,
        default=MEMORY,
        help="private memory for one input, for example 2G (default: 4G), which is quarantined if it takes more; "
        "decoding a binary may take 16G, or this if it is more",
    )
    group.add_argument(
        "--attempts",
        metavar="N",
        type=at_least_one,
        default=3,
        help="how often to try an input that kills its worker or exceeds a limit (default: 3)",
    )


def add_report_options(group: argparse._ArgumentGroup) -> None:
    """The options for what is reported of the batch, and where."""
    group.add_argument(
        "--report",
        metavar="FORM",
        choices=("text", "json"),
        default="text",
        help="format of the report at the end: text or json (default: text)",
    )
    group.add_argument(
        "--report-file",
        metavar="FILE",
        help="write the report to this file\n(default: text to standard error, json to standard output)",
    )
    group.add_argument("--metrics-file", metavar="FILE", help="write Prometheus metrics to this file every 5 seconds")
    group.add_argument(
        "--metrics-port", metavar="PORT", type=port, help="serve Prometheus metrics at this port; 0: any free one"
    )
    group.add_argument(
        "--metrics-address",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address of the metrics server (default: 127.0.0.1)",
    )
    group.add_argument(
        "--log-json",
        metavar="FILE",
        help="append events to this file as JSON lines;\n- for standard output. SIGHUP opens the file again",
    )
    group.add_argument(
        "--fail-under",
        metavar="PERCENT",
        type=percentage,
        help="exit with 3 if less than this share has names;\nof the frames of a profile, on average",
    )


def port(text: str) -> int:
    """A port to listen at."""
    value: int = number(text)
    if not 0 <= value <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text} is not a port (0 to {MAX_PORT})")
    return value

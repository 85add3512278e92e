"""Offline symbolizer for profiles.

import symbolize

result = symbolize.symbolize("cpu.prof", "build/")
result.write("cpu.symbolized.pb.gz")  # or cpu.html, cpu.svg, cpu.csv, ...
print(result.report.leaf_percent, result.top(3))
"""

import os
import sys

# `python -m symbolize` looks into the current folder first, where anybody's files may lie, unless the program does. The
# name of the module may be in a word with the option and others before it, as in `python -Bmsymbolize`.
if sys.argv[:1] == ["-m"] and f"-m{sys.orig_argv[-len(sys.argv)]}".endswith("msymbolize"):
    if not sys.flags.safe_path and sys.path[0] != os.path.dirname(__path__[0]):
        del sys.path[0]

from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO

from symbolize.core.errors import InputError, OutputError, SymbolizeError, UsageError
from symbolize.formats import load, load_all, write, write_firefox, write_module_symbols, write_otlp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from symbolize.analysis import Filters
    from symbolize.binaries import Servers
    from symbolize.core.reasons import Reason
    from symbolize.enrich.edits import Edits
    from symbolize.formats.outputs import View
    from symbolize.options import Options
    from symbolize.pipeline import Result, Symbolizer
    from symbolize.profile import Profile
    from symbolize.report import Report
    from symbolize.resolve.arguments import Path, Paths, Urls
    from symbolize.resolve.module import lookup
    from symbolize.symbols import TableCache

__version__ = "0.2.0"

__all__ = [
    "Edits",
    "Filters",
    "InputError",
    "Options",
    "OutputError",
    "Profile",
    "Reason",
    "Report",
    "Result",
    "SymbolizeError",
    "Symbolizer",
    "TableCache",
    "UsageError",
    "View",
    "load",
    "load_all",
    "lookup",
    "merge",
    "symbolize",
    "write",
    "write_firefox",
    "write_module_symbols",
    "write_otlp",
]

_LAZY_EXPORTS = {
    "Edits": "enrich.edits",
    "Filters": "analysis.filters",
    "Options": "options",
    "Profile": "profile",
    "Reason": "core.reasons",
    "Report": "report",
    "Result": "pipeline",
    "Symbolizer": "pipeline",
    "TableCache": "symbols",
    "View": "formats.outputs",
    "lookup": "resolve.module",
}


def symbolize(
    source: "Profile | Result | str | os.PathLike[str] | BinaryIO",
    binaries: "Paths" = (),
    options: "Options | None" = None,
    *,
    cache: "TableCache | Path | None" = None,
    servers: "Servers | Urls | None" = None,
) -> "Result":
    """Symbolize one profile, which is read from `source` as `load` does unless it is one, with the binaries below
    `binaries`.

    The other arguments are those of `Symbolizer`, which keeps binaries open where there are several profiles. Raises
    InputError for a profile that cannot be read, TypeError and UsageError for wrong arguments.
    """
    from symbolize.options import DEFAULTS
    from symbolize.pipeline import Result, Symbolizer
    from symbolize.profile import Profile

    with Symbolizer(binaries, DEFAULTS if options is None else options, cache=cache, servers=servers) as symbolizer:
        return symbolizer.symbolize(source if isinstance(source, Profile | Result) else load(source))


def merge(profiles: "Iterable[Profile | Result]", *, side_by_side: bool = False) -> "Profile":
    """One profile of all `profiles`, by the rules of pprof; they are taken one at a time and not changed. A `Result`
    stands for its profile.

    Equal mappings, locations and functions become one each, and equal samples one with the sums of their values. The
    time is the earliest, the duration the sum, the period the longest; comments and warnings are those of all, the rest
    that of the first. Values in other units of time or size get the finer one.

    The result has the sample types that all profiles have, and a warning that names the others; with `side_by_side`
    those of all, with zeros where a profile has none. Raises UsageError where no sample type is common, for unlike
    types of period, and without profiles.
    """
    from symbolize.profile import merged

    return merged(profiles, side_by_side=side_by_side)


def __getattr__(name: str) -> Any:
    """Import what needs numpy when it is first used, so that the command decides what start-up costs (PEP 562)."""
    if name not in _LAZY_EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"symbolize.{_LAZY_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, also those that are not imported yet."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])

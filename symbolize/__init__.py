"""Offline symbolizer for profiles.

import symbolize

profile = symbolize.load("cpu.prof")
with symbolize.Symbolizer(["binaries/"]) as symbolizer:
    result = symbolizer.symbolize(profile)
symbolize.write(result.profile, "cpu.symbolized.pb.gz")
print(result.report.percent)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from symbolize.errors import InputError, OutputError, SymbolizeError, UsageError
from symbolize.load import load, load_all
from symbolize.write import write, write_module_symbols

if TYPE_CHECKING:
    from symbolize.pipeline import Result, Symbolizer
    from symbolize.profile import Profile
    from symbolize.reasons import Reason
    from symbolize.report import Report
    from symbolize.symbols import TableCache

__version__ = "0.1.0"

__all__ = [
    "InputError",
    "OutputError",
    "Profile",
    "Reason",
    "Report",
    "Result",
    "SymbolizeError",
    "Symbolizer",
    "TableCache",
    "UsageError",
    "load",
    "load_all",
    "write",
    "write_module_symbols",
]

_HOMES = {
    "Profile": "profile",
    "Reason": "reasons",
    "Report": "report",
    "Result": "pipeline",
    "Symbolizer": "pipeline",
    "TableCache": "symbols",
}


def __getattr__(name: str) -> Any:
    """Import what needs numpy when it is first used, so that the command decides what start-up costs (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"symbolize.{_HOMES[name]}"), name)
    globals()[name] = value
    return value

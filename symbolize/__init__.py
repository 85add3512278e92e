"""Offline symbolizer for profiles.

    import symbolize

    profile = symbolize.load("cpu.prof")
    with symbolize.Symbolizer(["binaries/"]) as symbolizer:
        result = symbolizer.symbolize(profile)
    symbolize.write(result.profile, "cpu.symbolized.pb.gz")
    print(result.report.percent)
"""

from symbolize.errors import InputError, OutputError, SymbolizeError, UsageError
from symbolize.load import load
from symbolize.pipeline import Result, Symbolizer
from symbolize.profile import Profile
from symbolize.reasons import Reason
from symbolize.report import Report
from symbolize.write import write

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
    "UsageError",
    "load",
    "write",
]

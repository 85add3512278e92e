"""Reports: what was symbolized, what was not, and why."""

from symbolize.report.heaviest import TopFunction, heaviest, weights_of
from symbolize.report.model import MappingOutcome, MappingRow, Report, SharedCode, build_report
from symbolize.report.reason_texts import HINTS, TEXTS, Hints

__all__ = [
    "HINTS",
    "TEXTS",
    "Hints",
    "MappingOutcome",
    "MappingRow",
    "Report",
    "SharedCode",
    "TopFunction",
    "build_report",
    "heaviest",
    "weights_of",
]

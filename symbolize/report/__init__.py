"""Reports: what was symbolized, what was not, and why."""

from symbolize.report.build import build_report
from symbolize.report.model import FoldedRow, MappingOutcome, MappingRow, Report
from symbolize.report.reason_texts import HINTS, TEXTS, Hints

__all__ = [
    "HINTS",
    "TEXTS",
    "FoldedRow",
    "Hints",
    "MappingOutcome",
    "MappingRow",
    "Report",
    "build_report",
]

"""Reports: what was symbolized, what was not, and why."""

from symbolize.report.build import build_report
from symbolize.report.model import FoldedRow, MappingRow, Report
from symbolize.report.reason_texts import HINTS, TEXTS, Hints

__all__ = [
    "HINTS",
    "TEXTS",
    "FoldedRow",
    "Hints",
    "MappingRow",
    "Report",
    "build_report",
]

"""Reports: what was symbolized, what was not, and why."""

from symbolize.report.build import build_report
from symbolize.report.model import MappingOutcome, MappingRow, Report, SharedCode
from symbolize.report.reason_texts import HINTS, TEXTS, Hints

__all__ = [
    "HINTS",
    "TEXTS",
    "Hints",
    "MappingOutcome",
    "MappingRow",
    "Report",
    "SharedCode",
    "build_report",
]

"""Reports: what was symbolized, what was not, and why."""

from symbolize.core.reasons import TEXTS
from symbolize.report.advice import HINTS, Hints
from symbolize.report.build import build_report
from symbolize.report.model import FoldedRow, MappingRow, Report

__all__ = [
    "HINTS",
    "TEXTS",
    "FoldedRow",
    "Hints",
    "MappingRow",
    "Report",
    "build_report",
]

"""Coverage: what was symbolized, what was not, and why. Knows nothing of how it was found out."""

from symbolize.report.model import MappingOutcome, MappingRow, Report, TopFunction, build_report

__all__ = ["MappingOutcome", "MappingRow", "Report", "TopFunction", "build_report"]

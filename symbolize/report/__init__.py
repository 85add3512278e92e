"""Coverage: what was symbolized, what was not, and why. Knows nothing of how it was found out."""

from symbolize.report.model import FoldedCode, MappingOutcome, MappingRow, Report, TopFunction, build_report

__all__ = ["FoldedCode", "MappingOutcome", "MappingRow", "Report", "TopFunction", "build_report"]

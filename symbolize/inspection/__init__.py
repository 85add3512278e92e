"""What a file offers to lookups: a binary, debug information, or a list of symbols."""

from symbolize.inspection.inspect import inspect
from symbolize.inspection.model import Debug, Elf, Followed, Go, Inspection, Library, Listed, Other, Splits

__all__ = ["Debug", "Elf", "Followed", "Go", "Inspection", "Library", "Listed", "Other", "Splits", "inspect"]

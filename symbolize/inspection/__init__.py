"""What a file offers to lookups: a binary, a part of its debug information, or a list of symbols of another kind."""

from symbolize.inspection.inspect import inspect
from symbolize.inspection.model import Debug, Elf, Followed, Go, Inspection, Library, Listed, Other, Splits

__all__ = ["Debug", "Elf", "Followed", "Go", "Inspection", "Library", "Listed", "Other", "Splits", "inspect"]

"""What people look at: stacks of named frames, totals by function and by line, call trees, differences."""

from symbolize.analysis.difference import difference
from symbolize.analysis.filters import Filters
from symbolize.analysis.frames import FrameFlag, FrameNames
from symbolize.analysis.line_totals import LineTotals, line_totals
from symbolize.analysis.sources import Sources
from symbolize.analysis.stacks import Stacks, stacks_of
from symbolize.analysis.top import FunctionRow, FunctionTotals, function_totals
from symbolize.analysis.tree import CallTree, call_tree

__all__ = [
    "CallTree",
    "Filters",
    "FrameFlag",
    "FrameNames",
    "FunctionRow",
    "FunctionTotals",
    "LineTotals",
    "Sources",
    "Stacks",
    "call_tree",
    "difference",
    "function_totals",
    "line_totals",
    "stacks_of",
]

"""What people look at: stacks of named frames, totals by function and by line, call trees, differences."""

from symbolize.analysis.difference import changed_functions, difference
from symbolize.analysis.filters import Filters, filtered
from symbolize.analysis.frames import FrameFlag, FrameNames
from symbolize.analysis.sources import Sources
from symbolize.analysis.stacks import Stacks, stacks_of
from symbolize.analysis.totals import (
    CallTree,
    FunctionTotals,
    LineTotals,
    call_tree,
    function_totals,
    heaviest_functions,
    line_totals,
    totals_at,
)

__all__ = [
    "CallTree",
    "Filters",
    "FrameFlag",
    "FrameNames",
    "FunctionTotals",
    "LineTotals",
    "Sources",
    "Stacks",
    "call_tree",
    "changed_functions",
    "difference",
    "filtered",
    "function_totals",
    "heaviest_functions",
    "line_totals",
    "stacks_of",
    "totals_at",
]

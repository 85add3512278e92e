"""Unwinds copies of stacks by the call frame information of their binaries; executes no code of them."""

from symbolize.unwind.stacks import unwind
from symbolize.unwind.unwinder import CodeFinder, End, ListedCode, MappedCode

__all__ = ["CodeFinder", "End", "ListedCode", "MappedCode", "unwind"]

"""Demangling by language, simplification modes and clone suffixes (R114-R117)."""

from symbolize.names.demangling import MODES, Mode, demangle, same_function
from symbolize.names.itanium import unavailable
from symbolize.names.suffixes import split_suffix, strip_version

__all__ = ["MODES", "Mode", "demangle", "same_function", "split_suffix", "strip_version", "unavailable"]

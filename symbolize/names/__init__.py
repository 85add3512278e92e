"""Demangling by language, simplification modes and clone suffixes (R114-R117)."""

from symbolize.names.demangling import MODES, Mode, demangle, same_function
from symbolize.names.itanium import unavailable
from symbolize.names.simplify import drop_template_arguments
from symbolize.names.suffixes import last_component, split_suffix, strip_version

__all__ = [
    "MODES",
    "Mode",
    "demangle",
    "drop_template_arguments",
    "last_component",
    "same_function",
    "split_suffix",
    "strip_version",
    "unavailable",
]

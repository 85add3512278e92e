"""Demangling by language, simplification modes and clone suffixes (R114-R117)."""

from symbolize.names.demangling import MODES, Mode, demangle, same_function
from symbolize.names.identity import function_key, is_linker_made, is_mangled, may_be_local, public_name, variants
from symbolize.names.itanium import unavailable
from symbolize.names.simplify import drop_template_arguments
from symbolize.names.suffixes import last_component, split_suffix, strip_version

__all__ = [
    "MODES",
    "Mode",
    "demangle",
    "drop_template_arguments",
    "function_key",
    "is_linker_made",
    "is_mangled",
    "last_component",
    "may_be_local",
    "public_name",
    "same_function",
    "split_suffix",
    "strip_version",
    "unavailable",
    "variants",
]

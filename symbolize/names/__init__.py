"""Demangling by language, simplification modes and clone suffixes (R114-R117)."""

from symbolize.names.cython_names import CYTHON_PREFIX
from symbolize.names.demangling import (
    LINKER_MARK,
    LINKER_PREFIX,
    MODES,
    Mode,
    demangle,
    demangle_android_linker,
    is_android_linker,
    scope_text,
    shown_names,
    split_suffix,
    strip_version,
)
from symbolize.names.identity import (
    encodes,
    function_key,
    is_linker_made,
    is_mangled,
    may_be_local,
    public_name,
    same_function,
    variants,
)
from symbolize.names.simplify import (
    drop_clone_notes,
    drop_template_arguments,
    last_component,
    own_name,
    simplify,
    simplify_plain,
)

__all__ = [
    "CYTHON_PREFIX",
    "LINKER_MARK",
    "LINKER_PREFIX",
    "MODES",
    "Mode",
    "demangle",
    "demangle_android_linker",
    "drop_clone_notes",
    "drop_template_arguments",
    "encodes",
    "function_key",
    "is_android_linker",
    "is_linker_made",
    "is_mangled",
    "last_component",
    "may_be_local",
    "own_name",
    "public_name",
    "same_function",
    "scope_text",
    "shown_names",
    "simplify",
    "simplify_plain",
    "split_suffix",
    "strip_version",
    "variants",
]

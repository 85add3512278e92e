# cython: language_level=3
"""Linkage names in bulk to the names that a profile shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, get_args

import cython

from symbolize.names import cxxfilt_fallback, dlang
from symbolize.names.simplify import drop_clone_notes, drop_type_arguments, simplify
from symbolize.names.suffixes import split_suffix, strip_version

if not cython.compiled:
    from symbolize.names.demangler import MAX_NAME
    from symbolize.names.itanium_demangler import CppDemangler
    from symbolize.names.rust import RustDemangler, is_legacy

Mode = Literal["default", "templates", "full", "none"]
MODES: tuple[Mode, ...] = get_args(Mode)

_MAX_IDLE = 4
_idle: list[tuple[CppDemangler, RustDemangler]] = []  # a demangler is not for two threads at once
_LOCAL_NAME, _LOCAL_TEXT = b"1x", b"::x"

# Go (`main.(*T).f`, `a/b.f`) and Java names have dots of their own, so only behind a C identifier is a suffix a suffix.
_C_IDENTIFIER = re.compile(rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*")


def demangle(names: Sequence[bytes], mode: Mode = "default") -> list[bytes]:
    """Turn linkage names into readable ones, in the same order.

    C++, Rust and D names are read; of Go names `default` drops type arguments.
    `default` drops parameters, return types, template arguments and clone suffixes; `templates` keeps the template
    arguments; `full` drops clone suffixes only; `none` returns the names as they are. Names that are not mangled
    are returned unchanged, apart from the clone suffix of a C name (R115). A name that cannot be demangled, is
    longer than 64 KiB or expands to too much text stays as linked (R117). Nothing raises.
    """
    if mode not in MODES:
        raise ValueError(f"unknown demangling mode: {mode!r}")
    if mode == "none":
        return list(names)
    try:
        readers = _idle.pop()
    except IndexError:
        readers = CppDemangler(), RustDemangler()
    cpp: CppDemangler = readers[0]
    rust: RustDemangler = readers[1]
    generics = mode != "default"
    level = MODES.index(mode)
    readable: dict[bytes, bytes] = {}
    texts: list[bytes] = []
    for name in names:
        text = readable.get(name)
        if text is None:
            # Most names are plain C++ or Rust names, with no suffix or one that their demanglers pass over.
            text = rust.demangle(name, generics)
            if text is None:
                text = cpp.demangle(name, level)
            if text is None:
                text = _demangle_one(name, mode, cpp, rust)
            readable[name] = text
        texts.append(text)
    if len(_idle) < _MAX_IDLE:
        _idle.append(readers)
    return texts


def scope_text(name: bytes) -> bytes:
    """The full text of a C++ function as it is before names that are local to it: without what it returns.

    A name that cannot be demangled stays as it is.
    """
    base, _ = split_suffix(strip_version(name))
    if not base.startswith(b"_Z"):
        return name
    text = demangle([b"_ZZ" + base[2:] + b"E" + _LOCAL_NAME], "full")[0]
    return text.removesuffix(_LOCAL_TEXT) if text.endswith(_LOCAL_TEXT) else name


def _demangle_one(name: bytes, mode: Mode, cpp: CppDemangler, rust: RustDemangler) -> bytes:
    if len(name) > MAX_NAME:
        return name
    start = name[:3]
    if b"@" in name and start.startswith((b"_Z", b"_R", b"_D", b"__Z", b"__R", b"__D")):
        return _demangle_versioned(name, mode, cpp, rust)
    if start.startswith((b"_Z", b"_R", b"_D")):
        base, _ = split_suffix(name)
    elif start in (b"__Z", b"__R", b"__D"):
        # Darwin puts an underscore in front of every symbol.
        base, _ = split_suffix(name[1:])
    else:
        base, suffix = split_suffix(name)
        if suffix and _C_IDENTIFIER.fullmatch(base):
            return base
        return drop_type_arguments(name) if mode == "default" else name
    if base[1:2] == b"D":
        text = dlang.demangle(base, parameters=mode == "full", arguments=mode != "default")
        # What is no D name may be one of C with a suffix.
        return text or (base if _C_IDENTIFIER.fullmatch(base) and not name.startswith(b"__D") else name)
    text = rust.demangle(base, mode != "default")
    if text is not None:
        return text
    if base[1:2] == b"R":
        return name
    text = cpp.demangle(base, MODES.index(mode))
    if text is not None:
        return text
    if cpp.gave_up():
        return name
    text = cxxfilt_fallback.demangle(base)
    if text is None:
        return name
    text = drop_clone_notes(text)
    return text if mode == "full" else simplify(text, keep_templates=mode == "templates")


def _demangle_versioned(name: bytes, mode: Mode, cpp: CppDemangler, rust: RustDemangler) -> bytes:
    plt = b"@plt" if name.endswith(b"@plt") else b""
    bare = strip_version(name.removesuffix(b"@plt"))
    if b"@" in bare:
        return name
    text = _demangle_one(bare, mode, cpp, rust)
    return name if text == bare else text + plt


def same_function(a: bytes, b: bytes) -> bool:
    """Tell whether two linkage names are two spellings of one function.

    They are when they agree up to symbol version (R114) and clone suffix (R115), or are C++ names with the same full
    text, as the variants of a constructor are. Rust names are compared as they are: their text leaves out what
    distinguishes instances of one generic function.
    """
    a, _ = split_suffix(strip_version(a))
    b, _ = split_suffix(strip_version(b))
    if a == b:
        return True
    if not _is_cpp(a) or not _is_cpp(b):
        return False
    text_a, text_b = demangle([a, b], "full")
    return text_a == text_b and text_a != a


def _is_cpp(name: bytes) -> bool:
    bare = name[1:] if name.startswith(b"__Z") else name
    return bare.startswith(b"_Z") and not is_legacy(bare)

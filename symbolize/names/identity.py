"""Which names are names of one function: the rules that put aliases aside before names count as functions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from symbolize.names.demangling import demangle, split_suffix, strip_version
from symbolize.names.rust import is_legacy

THUNKS = (b"non-virtual thunk to ", b"virtual thunk to ", b"covariant return thunk to ")
"""How the text of an adjusting entry into a C++ function begins (R151, thunks and stubs)."""

_INTERNAL = re.compile(rb"(?:(?:__GI_|__libc_|__new_|__old_|_IO_new_|_IO_old_|_IO_)(?=.))*", re.DOTALL)
"""What C libraries put before names for their own use (R152, internal names of C libraries)."""

LINKER_MADE = (
    b"__AArch64ADRPThunk_",
    b"__AArch64AbsLongThunk_",
    b"__AArch64BTIThunk_",
    b"__ARMv",
    b"__Thumbv",
    b"__LongThunk_",
)
LINKER_MADE_ENDS = (b"@plt", b"$plt", b"$pltgot", b"_veneer", b".plt")

_LARGE_FILES = re.compile(rb"64(?=\Z|_)|64v(?=[0-9])")
_EXACT_TYPES = re.compile(rb"f(?:32|64|32x)\Z")
_KINDS = (b"_ifunc", b"_generic", b"_np", b"_compat")
# Numbers of base 62 are of 64 bits.
_CRATE = re.compile(rb"C(?:s[0-9a-zA-Z]{0,11}_)?u?([0-9]{1,5})_?")
_REFERENCE = re.compile(rb"B[0-9a-zA-Z]{0,11}_\Z")
_LOCAL = re.compile(rb"_GLOBAL__N_|L[0-9]|U[lt]|\A_ZZ|\.")
_IDENTIFIER = re.compile(rb"[\w.\x80-\xff]")
_CONSTRUCTOR = re.compile(rb"(?<=C)[1-5](?=[EI])")
_DESTRUCTOR = re.compile(rb"(?<=D)[0-5](?=[EI])")


def is_linker_made(name: bytes) -> bool:
    """Whether a symbol names a stub of the linker, a way to a function and no function (R151, thunks and stubs)."""
    return name.startswith(LINKER_MADE) or name.endswith(LINKER_MADE_ENDS)


def is_mangled(name: bytes) -> bool:
    """Whether a linkage name says the full type of its function: C++ and Rust."""
    return name.startswith((b"_Z", b"__Z", b"_R"))


def function_key(name: bytes) -> bytes:
    """What two linkage names of one function have in common.

    Versions and clone suffixes are dropped (R114, symbol versions; R115, clone suffixes). Of C++ names the full text
    counts, which the variants of a constructor or destructor share (R149, constructor variants) and, without its first
    words, an adjusting thunk (R151, thunks and stubs). Rust's v0 names count without the crate that made the copy
    (R150, instances in Rust crates), legacy ones as they are: their text leaves out what distinguishes instances.
    """
    base, _ = split_suffix(strip_version(name))
    if base.startswith(b"_R"):
        return _without_crate(base)
    if not base.startswith((b"_Z", b"__Z")) or is_legacy(base) or is_legacy(base[1:]):
        return base
    text = demangle([base], "full")[0]
    for words in THUNKS:
        text = text.removeprefix(words)
    return text


def encodes(symbol: bytes, name: bytes) -> bool:
    """Whether a symbol is an encoding of the plain name of a function with its scopes or types (R262, fuller symbol
    names).

    That is so where the name is a component of the symbol: as it is or in capitals, between signs that belong to no
    identifier, as Crystal (`*Box#area<Int32>:Int32`) and Pascal (`P$SHAPES$_$TBOX_$__$$_AREA$LONGINT$$LONGINT`) have
    it, or behind its length, as in D. A dot begins a suffix (`main.f.abi0`) and separates no components. Crystal calls
    every proc `->`, and its symbol after the type.
    """
    if not name or symbol == name:
        return False
    if symbol.startswith(b"_D"):
        name = name.partition(b"!")[0]  # what follows are arguments of a template
        return b"%d%s" % (len(name), name) in symbol
    if name == b"->":
        return symbol.startswith(b"~proc")
    return any(
        _is_component(symbol, spelled, at) for spelled in {name, name.upper()} for at in _occurrences(symbol, spelled)
    )


def _occurrences(text: bytes, part: bytes) -> Iterator[int]:
    """Where `part` occurs in `text`."""
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _is_component(symbol: bytes, name: bytes, at: int) -> bool:
    """Whether `name`, which is at `at`, is no part of a longer identifier; Pascal has `$_` before a name."""
    end = at + len(name)
    begins = not _IDENTIFIER.match(name, 0, 1) or not _IDENTIFIER.match(symbol, max(at - 1, 0), at)
    begins = begins or symbol[max(at - 2, 0) : at] == b"$_"
    ends = not _IDENTIFIER.match(name, len(name) - 1) or not _IDENTIFIER.match(symbol, end, end + 1)
    return begins and ends


def may_be_local(name: bytes) -> bool:
    """Whether a C++ name may be one of a function that DWARF has no linked name of: local to a file or a function."""
    return _LOCAL.search(name) is not None


def _without_crate(name: bytes) -> bytes:
    """A v0 name without the crate at its end, in which an instance of a generic function was made (R150, instances in
    Rust crates)."""
    for root in _CRATE.finditer(name):
        if len(name) - root.end() == int(root[1]):
            return name[: root.start()]
    reference = _REFERENCE.search(name)
    return name[: reference.start()] if reference is not None else name


def public_name(name: bytes) -> bytes:
    """The name of a C function as its users write it, without what marks internal names (R152, internal names of C
    libraries).

    C libraries name a definition several times for their own use. Without DWARF such names are one function.
    """
    internal = _INTERNAL.match(name)
    name = name[internal.end() :] if internal is not None else name
    name = name.lstrip(b"_") or name
    for suffix in _KINDS:
        name = name.removesuffix(suffix) or name
    name = _EXACT_TYPES.sub(b"", name) or name
    return _LARGE_FILES.sub(b"", name) or name


def variants(name: bytes) -> list[bytes]:
    """Names that the other variants of a constructor or destructor may have, and the name itself (R149, constructor
    variants).

    They have one definition in the source, one name to the reader, and the same file and lines. A linker may fold `D0`,
    which also frees the object, with `D2`; a profile shows the same.
    """
    if not name.startswith((b"_Z", b"__Z")):
        return [name]
    spelled = [_DESTRUCTOR.sub(b"0", name)]  # there is no `C0`
    spelled += (_DESTRUCTOR.sub(digit, _CONSTRUCTOR.sub(digit, name)) for digit in (b"1", b"2", b"4"))
    others = [other for other in spelled if other != name]
    if not others:
        return [name]
    key = function_key(name)
    return [name, *(other for other in others if function_key(other) == key)]  # a function may be called `C1`


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

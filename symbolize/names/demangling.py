# cython: language_level=3
"""The names that a profile shows, made of linkage names: by the demangler of each language, in bulk; and what a
toolchain appends to these: clone suffixes (R115) and symbol versions (R114).

C++ names that our reader does not know are left to the C++ runtime, by way of the package cxxfilt. Names of Java that
GCC compiled are such: what a function returns comes before its parameters, behind a `J`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import cache
from posixpath import basename
from typing import Final, Literal, get_args

import cython

from symbolize.names.cython_names import CYTHON_PREFIX, python_name
from symbolize.names.simplify import drop_clone_notes, drop_type_arguments, own_name, simplify, simplify_plain

if not cython.compiled:
    from symbolize.names.demangler import MAX_NAME
    from symbolize.names.itanium_parser import CppParser
    from symbolize.names.itanium_printer import CppPrinter
    from symbolize.names.rust import RustDemangler

Mode = Literal["default", "templates", "full", "none"]
MODES: tuple[Mode, ...] = get_args(Mode)

_MAX_IDLE = 4
_idle: list[tuple[CppDemangler, RustDemangler]] = []  # a demangler is not for two threads at once
_LOCAL_NAME, _LOCAL_TEXT = b"1x", b"::x"

# Go (`main.(*T).f`, `a/b.f`) and Java names have dots of their own, so only behind a C identifier is a suffix a suffix.
_C_IDENTIFIER = re.compile(rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*")

LINKER_PREFIX, LINKER_MARK = b"__dl_", b"[linker]"

LINKER_FILES: Final = re.compile(r"linker(?:64|_asan|_asan64)?(?:\.debug|\.dbg)?|[0-9a-f]{40}-linker(?:64)?")
"""Names of the files of Android's dynamic linker."""

MAX_OUTPUT = 1 << 20
_MAX_CODES = 1 << 18  # a code of one character is the text `unsigned long long`

# libstdc++ itself refuses more. libc++abi recurses on the C stack without a limit of its own.
MAX_RUNTIME_NAME = 1024
# Names of vector functions (`_ZGVbN4v_sinf`) are not C++.
_VECTOR_FUNCTION = re.compile(rb"_ZGV[a-z]")
# On malformed unresolved names (`sr`) libstdc++ 12 loops for ever; one that is well-formed our reader knows.
_ENDLESS = b"sr"
# What follows these codes is surely not the number of something else, so digits are the length of an identifier.
_PLAIN_CODE = re.compile(
    rb"(?P<length>[1-9][0-9]*)|[ZNIKPRVOrJE]|[abcegijlmorstuwxyz](?!S)|[dfhknpqv](?![0-9])|S[a-z]|S[0-9A-Z]*_|T[0-9]*_"
)
# Back references, template parameters, and conversions, whose arguments libstdc++ reads again.
_REPEATS = re.compile(rb"(?=S[0-9A-Z]*_|T[0-9A-Z]*_|cv)")
# The usual `Args&&...` (`DpOT_`) has no pattern that could grow.
_EXPANSION = re.compile(rb"(?:Dp|sp)(?![ORKVP]*T[0-9A-Z]*_)")


@cython.final
@cython.cclass
class CppDemangler:
    """Demangles a C++ name at a time."""

    def __init__(self) -> None:
        self.parser = CppParser()
        self.printer = CppPrinter(self.parser)

    def demangle(self, name: bytes, mode: cython.int) -> bytes | None:
        """The text of a name that starts with `_Z` in a mode; None if it is malformed, unknown or costs too much."""
        self.printer.refused = False
        if not cython.compiled:
            try:
                return self.text(name, mode)
            except RecursionError:  # nesting takes up to five calls a level, of which Python allows 1,000
                self.printer.refused = True
                return None
        return self.text(name, mode)

    def text(self, name: bytes, mode: cython.int) -> bytes | None:
        """The same, as deep as calls can nest."""
        node = self.parser.parse(name)
        return self.printer.print(node, mode) if node else None

    def gave_up(self) -> bool:
        """Whether the last name was refused for what it costs."""
        return self.parser.refused or self.printer.refused


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
        from symbolize.names import dlang

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
    text = demangle_by_runtime(base)
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


def demangle_by_runtime(name: bytes) -> bytes | None:
    """Return the demangled text of a name that starts with `_Z`, or None (R117, hostile names).

    None is the answer to a malformed name, to a name longer than the runtime takes, to one whose text may be
    too large, and to every name when the machine has no C++ runtime.
    """
    if len(name) > MAX_RUNTIME_NAME or b"\0" in name or _VECTOR_FUNCTION.match(name):
        return None
    codes = _without_identifiers(name)
    if _ENDLESS in codes or _most_codes(len(name), codes) > _MAX_CODES:
        return None
    text = _runtime()(name)
    return text if text is None or len(text) <= MAX_OUTPUT else None


@cache
def _runtime() -> Callable[[bytes], bytes | None]:
    # What another malloc than that of the C library hands out, cxxfilt would give back to the wrong one.
    if os.environ.get("LD_PRELOAD"):
        return lambda name: None
    # Imported only when it is needed: its import searches for libraries by running programs.
    try:
        import cxxfilt
    except (ImportError, OSError, AttributeError):
        return lambda name: None

    def demangler(name: bytes) -> bytes | None:
        try:
            text = cxxfilt.demangleb(name)
        except cxxfilt.Error:
            return None
        return text if isinstance(text, bytes) and text != name else None

    return demangler


def _without_identifiers(name: bytes) -> bytes:
    """The codes of a name: each identifier is a `.`, up to the first code whose digits may be something else."""
    codes = [name[:2]]
    at = len(codes[0])
    while (match := _PLAIN_CODE.match(name, at)) is not None:
        at = match.end()
        if match["length"] is None:
            codes.append(match[0])
        else:
            codes.append(b".")
            at += min(int(match["length"]), len(name))
    return b"".join(codes) + name[at:]


def _most_codes(size: int, codes: bytes) -> int:
    """A bound of the codes that are printed for a name of `size` bytes (230 can expand to a gigabyte of text).

    A reference at most copies all of them. The pattern of a pack expansion is repeated for each argument in the pack,
    of which there are fewer than bytes in the name.
    """
    repeats, expansions = len(_REPEATS.findall(codes)), len(_EXPANSION.findall(codes))
    return (size << repeats) * int(size**expansions)


def is_android_linker(path: str) -> bool:
    """Whether a file is that of Android's dynamic linker, by its name."""
    return LINKER_FILES.fullmatch(basename(path)) is not None


def demangle_android_linker(names: Sequence[bytes], mode: Mode = "default") -> list[bytes]:
    """`demangle` for symbols of a dynamic linker: those with its prefix are shown with `[linker]` instead.

    For its own symbols only: in other files the prefix is a part of the name. In mode `none` names stay as they are.
    """
    if mode == "none":
        return list(names)
    readable = demangle([name.removeprefix(LINKER_PREFIX) for name in names], mode)
    return [
        LINKER_MARK + text if name.startswith(LINKER_PREFIX) and name != LINKER_PREFIX else text
        for name, text in zip(names, readable, strict=True)
    ]


def shown_names(
    linkage: Sequence[bytes], plain: Sequence[bytes], mode: Mode, of_linker: bool = False
) -> tuple[list[bytes], list[bytes]]:
    """The names of functions as `mode` shows them, and as they are linked, by their linkage names and qualified names,
    of which either may be empty.

    A qualified name is that of the function where it is given, whatever is linked: Go's `main.cold` is no copy of
    `main`. Else the linkage name is made readable, by the symbols of Android's dynamic linker if `of_linker`. Functions
    that Cython compiled get their names in Python, but in the modes `full` and `none` (R491, Cython names).

    All outputs and commands get them here (R18, both names).
    """
    # A function without a linked name is known to the linker by its plain name at best, which is kept whole.
    linked = [link or own_name(name) for link, name in zip(linkage, plain, strict=True)]
    if mode == "none":
        return linked, linked
    readable = demangle_android_linker(linkage, mode) if of_linker else demangle(linkage, mode)
    if mode != "full":
        plain = [name and simplify_plain(name, mode == "templates") for name in plain]
    shown = [name or text for name, text in zip(plain, readable, strict=True)]
    if mode != "full":
        shown = [python_name(name) if name.startswith(CYTHON_PREFIX) else name for name in shown]
    return shown, linked


# Words that make a suffix alone (`.cold`) or with one number behind it (`.cold.3`).
_OPTIONALLY_NUMBERED = frozenset(
    {
        b"argelim", b"argprom", b"avx", b"avx2", b"avx512bw", b"avx512cd", b"avx512dq", b"avx512f", b"avx512vl",
        b"bmi", b"bmi2", b"cfi", b"cold", b"default", b"eh", b"fma", b"fma4", b"hot", b"ifunc", b"localalias",
        b"popcnt", b"resolver", b"retelim", b"simdclone", b"sse", b"sse2", b"sse3", b"sse4_1", b"sse4_2", b"sse4a",
        b"ssse3", b"unlikely", b"warm",
    }
)  # fmt: skip
# Words that are a suffix only together with a number.
_NUMBERED = frozenset(
    {b"__part", b"__uniq", b"clone", b"constprop", b"isra", b"lto_priv", b"memprof", b"part", b"specialized"}
)
_VERSION = re.compile(rb"[\w.+-]+")
_HEX_DIGITS = b"0123456789abcdefABCDEF"


def split_suffix(name: bytes) -> tuple[bytes, bytes]:
    """Split a linkage name into its base and its run of clone suffixes (R115).

    Only suffix forms that compilers are known to emit count; `base + suffix == name` always holds. A name that starts
    with a dot has no base in front of the suffix and stays whole. The suffix stays where DWARF has it in the name of
    the function itself: those of OpenMP, `._omp_fn.0`, are functions of their own. A mangled name ends where its
    encoding ends, and loses all that follows.
    """
    if b"." not in name or name.startswith(b"."):
        return name, b""
    parts = name.split(b".")
    end = len(parts)
    while end > 1:
        last = parts[end - 1]
        if last in _OPTIONALLY_NUMBERED or (last.startswith(b"arch_") and len(last) > len(b"arch_")):
            end -= 1
        elif end > 2 and _takes_number(parts[end - 2], last):
            end -= 2
        else:
            break
    base = b".".join(parts[:end])
    return base, name[len(base) :]


def _takes_number(word: bytes, number: bytes) -> bool:
    if word == b"llvm":
        # Old rustc writes this number in hexadecimal.
        return bool(number) and not number.strip(_HEX_DIGITS)
    known = word in _NUMBERED or word in _OPTIONALLY_NUMBERED or word.startswith(b"arch_")
    return known and number.isdigit()


def strip_version(name: bytes) -> bytes:
    """Drop an ELF symbol version, `@VER` or `@@VER` (R114).

    `name@plt` is kept, and so are the other uses of `@`: Microsoft names (`?f@@YAXXZ`), the argument size of
    stdcall names (`f@8`) and the names of Crystal (`*Int32@Int#to_s:String`), which have signs that no version has.
    """
    at = name.find(b"@")
    if at <= 0 or name.startswith(b"?") or name.endswith(b"@plt"):
        return name
    version = name[at:].lstrip(b"@")
    return name if version.isdigit() or not _VERSION.fullmatch(version) else name[:at]

# cython: language_level=3
"""What a toolchain appends to a linkage name: clone suffixes (R115) and symbol versions (R114)."""

from __future__ import annotations

import re

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

"""The library that the kernel maps into every process."""

import re

from symbolize.binaries import Attempt, BinaryIndex, Found, ranked
from symbolize.match import to_vaddrs
from symbolize.reasons import Reason
from symbolize.special.kernel import Opener
from symbolize.special.source import Bool, Recorded, Source, UInt64

NAME = re.compile(r"\[vdso(32|x32|64)?\]|linux-vdso(32|64)?\.so\.1|linux-gate\.so\.1")
WIDE = ("vdso64.so", "vdso.so", "vdso", "linux-vdso.so.1", "linux-vdso64.so.1")
NARROW = ("vdso32.so", "vdsox32.so", "linux-gate.so.1", "linux-vdso32.so.1", "vdso.so", "vdso")
SUFFIXES = ("", ".debug", ".dbg")


def is_vdso(filename: str) -> bool:
    """Whether a recorded name stands for the vdso."""
    return NAME.fullmatch(filename) is not None


def find_vdso(index: BinaryIndex, opener: Opener, mapping: Recorded) -> Source | None:
    """The file of the vdso, by build id, else by one of the names it has; None if there is none.

    The kernel maps the whole file, so that the mapping begins at its first byte whatever the recorded offset is.
    """
    found = Found()
    entries = index.with_build_id(mapping.build_id) if mapping.build_id else []
    if entries:
        found = Found([entry.path for entry in ranked(entries)], mapping.build_id, True)
        found.tried.append(Attempt(f"build id {mapping.build_id}", "found " + ", ".join(found.paths)))
    elif mapping.build_id:
        return None
    else:
        names = [name + suffix for name in (NARROW if mapping.start < 1 << 32 else WIDE) for suffix in SUFFIXES]
        entries = next((entries for name in names if (entries := index.with_name(name))), [])
        builds = {entry.build_id or entry.path for entry in entries}
        if not entries:
            return None
        if len(builds) > 1:
            paths = " and ".join(f"{entry.path} ({entry.build_id or 'no build id'})" for entry in entries[:3])
            return Source(reason=Reason.AMBIGUOUS, detail=paths)
        found = Found([entry.path for entry in ranked(entries)], entries[0].build_id or "")
        found.tried.append(Attempt("the names of the vdso", f"found {entries[0].path}, unverified"))
    binary, unreadable = opener(found)
    if binary is None:
        return Source(reason=Reason.UNREADABLE, detail="; ".join(unreadable), tried=list(found.tried))
    segments = binary.loaded.segments

    def place(addresses: UInt64) -> tuple[UInt64, Bool] | None:
        limit = mapping.limit or (1 << 64) - 1
        return to_vaddrs(addresses, mapping.start, limit, 0, segments, relocatable=True) if segments else None

    files = [image.path for image in binary.images]
    return Source(binary, place, files, found.verified, tried=list(found.tried), problems=unreadable)

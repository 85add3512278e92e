"""The library that the kernel maps into every process."""

from symbolize.binaries import Attempt, BinaryIndex, BinaryMatch, ranked
from symbolize.core.arrays import TOP, UInt64
from symbolize.core.mapped_names import Mapped, mapped_by
from symbolize.core.reasons import Reason
from symbolize.core.verdict import Verdict
from symbolize.resolve.addresses import MappedAddresses, to_vaddrs
from symbolize.resolve.mapping_record import MappingRecord
from symbolize.resolve.opened import OpenBinaries
from symbolize.resolve.resolution import Resolution

WIDE = ("vdso64.so", "vdso.so", "vdso", "linux-vdso.so.1", "linux-vdso64.so.1")
NARROW = ("vdso32.so", "vdsox32.so", "linux-gate.so.1", "linux-vdso32.so.1", "vdso.so", "vdso")
SUFFIXES = ("", ".debug", ".dbg")


def is_vdso(filename: str) -> bool:
    """Whether a recorded name denotes the vdso."""
    return mapped_by(filename) is Mapped.VDSO


def find_vdso(index: BinaryIndex, opened: OpenBinaries, mapping: MappingRecord) -> Resolution | None:
    """The file of the vdso, by build id, else by one of the names it has; None if there is none.

    The kernel maps the whole file, so that the mapping begins at its first byte whatever the recorded offset is.
    """
    if mapping.build_id:
        entries = index.with_build_id(mapping.build_id)
        if not entries:
            return None
        tried = Attempt(f"build id {mapping.build_id}", "found " + ", ".join(entry.path for entry in ranked(entries)))
    else:
        names = [name + suffix for name in (NARROW if mapping.start < 1 << 32 else WIDE) for suffix in SUFFIXES]
        entries = next((entries for name in names if (entries := index.with_name(name))), [])
        if not entries:
            return None
        if len({entry.build_id or entry.path for entry in entries}) > 1:
            paths = " and ".join(entry.described for entry in entries[:3])
            return Resolution(reason=Reason.AMBIGUOUS, detail=paths)
        tried = Attempt("the names of the vdso", f"found {entries[0].path}, unverified")
    build_id = mapping.build_id or entries[0].build_id or ""
    found = BinaryMatch([entry.path for entry in ranked(entries)], build_id, bool(mapping.build_id), tried=[tried])
    binary, unreadable = opened.one(found)
    if binary is None:
        return Resolution(reason=Reason.UNREADABLE, detail="; ".join(unreadable), tried=found.tried)
    segments = binary.loaded.segments

    def address_map(addresses: UInt64) -> MappedAddresses | None:
        limit = mapping.limit or TOP
        return to_vaddrs(addresses, mapping.start, limit, 0, segments, relocatable=True) if segments else None

    files = [image.path for image in binary.files]
    verdict = Verdict.by_identity(mapping.is_proof)
    return Resolution(
        binary, address_map, found.verified, files=files, verdict=verdict, tried=found.tried, problems=unreadable
    )

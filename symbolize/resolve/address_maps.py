"""Where the addresses of a mapping are in the files of a binary, or may be."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from symbolize.core.arrays import TOP, UInt64
from symbolize.core.reasons import Reason
from symbolize.core.verdict import Verdict
from symbolize.elf import Segment, loaded_base, without_tag
from symbolize.evidence.choice import AddressBase, Agreement, BuildMatch, match_bases
from symbolize.evidence.judge import REFUTED, Judge, Observed
from symbolize.profile import AddressKind
from symbolize.resolve.addresses import (
    MappedAddresses,
    candidate_bases,
    in_code,
    map_addresses,
    map_module_addresses,
    page_floor,
    true_offset,
)
from symbolize.resolve.mapping_record import MappingRecord
from symbolize.resolve.name_agreement import ExistingNames, compare_names, some_of
from symbolize.resolve.resolution import Resolution
from symbolize.symbols import Binary

WIDE = re.compile(r"lib64|arm64|x86_64|linker64|app_process64")
"""Parts of device paths that tell a library of 64 bits."""


def misfit(record: MappingRecord) -> str:
    """Why no file could be mapped as a mapping says, as far as it is known."""
    return (
        f"has no segment that is mapped at {record.start:#x}-{record.limit:#x} from file offset {record.file_offset:#x}"
    )


def map_in_images(record: MappingRecord, binary: Binary, *, verified: bool) -> tuple[MappedAddresses | None, str]:
    """Where the addresses of a mapping are; None if the files do not fit, and why where there is more to say."""
    image = binary.images[0]
    bounds = record.start, record.limit, record.file_offset
    if record.kind == AddressKind.LOADED and not image.is_relocatable:
        base = loaded_base(binary.loaded.segments)
        return in_file(binary, AddressBase(base, "counted from where the file is loaded"), record.addresses), ""
    if image.is_relocatable:
        # A module is built for one kernel, and nothing else identifies another build of it.
        text = image.module_text if verified else None
        mapped = map_module_addresses(record.addresses, *bounds, text, verified=verified)
        why = "not linked: only a kernel module is placed, found by build id and mapped from .text on"
        return mapped, "" if mapped is not None else why
    loaded = binary.loaded.segments if binary.loaded.has_file_offsets else None
    return map_addresses(record.addresses, *bounds, loaded, image.segments, kind=image.kind, verified=verified), ""


def lost_offset(judge: Judge, record: MappingRecord, binary: Binary, mapped: MappedAddresses) -> str:
    """Why the file offset of a mapping is a lost one, of which a build id says nothing: what was sampled does not fit
    so, and fits if the mapping begins with code (R147, brief memory maps). Empty if it is not."""
    if record.limit in (0, TOP) or not binary.loaded.has_file_offsets or binary.images[0].kind != "ET_DYN":
        return ""
    segments, bounds = binary.loaded.segments, (record.start, record.limit, record.file_offset)
    if true_offset(segments, *bounds, verified=False) is not None:
        return ""
    judgement = judge.judge(binary, record.observed(mapped))
    for segment in segments:
        if segment.executable:
            offset = page_floor(segment.file_offset)
            there, _ = map_in_images(record._replace(file_offset=offset), binary, verified=True)
            other = judge.judge(binary, record.observed(there)) if there is not None else judgement
            if other.verdict is Verdict.SUPPORTED and other.support >= judgement.support + REFUTED:
                return f"mapped from another offset: {judgement.text} from 0 on"
    return ""


def map_addresses_of(record: MappingRecord, resolution: Resolution) -> tuple[MappedAddresses | None, str]:
    """Where the addresses of a mapping are in what it is resolved to; None if that does not fit, and why where there is
    more to say."""
    if resolution.address_map is not None:
        return resolution.address_map(record.addresses), ""
    if isinstance(resolution.binary, Binary):
        return map_in_images(record, resolution.binary, verified=resolution.is_by_id)
    return None, ""


def map_locations(judge: Judge, record: MappingRecord, resolution: Resolution) -> Resolution:
    """The resolution with the vaddrs of the locations that lie in its binary; without it if the binary does not fit."""
    binary = resolution.binary
    mapped, problem = map_addresses_of(record, resolution)
    if mapped is not None and resolution.is_by_id and resolution.address_map is None and isinstance(binary, Binary):
        problem = lost_offset(judge, record, binary, mapped)
    if mapped is None or problem:
        detail = ", ".join(resolution.files) + (f" is {problem}" if problem else f" {misfit(record)}")
        return resolution.refused(Reason.MISFIT, detail=detail, files=())
    vaddrs, inside = mapped
    vaddrs, names = vaddrs[inside], record.names
    if isinstance(binary, Binary):
        vaddrs = without_tag(binary.images[0], vaddrs + np.uint64(binary.shift))
    if names is not None:
        names = ExistingNames(names.names, names.of_location[inside])
    return replace(resolution, rows=record.rows[inside], vaddrs=vaddrs, names=names)


def in_file(binary: Binary, base: AddressBase, addresses: UInt64) -> MappedAddresses:
    """The vaddrs in `binary.loaded` of addresses in a file that count from `base`, and which lie in its code."""
    vaddrs = addresses + np.uint64(base.distance)
    return vaddrs, in_code(vaddrs, code_of(binary))


def infer_load_bias(judge: Judge, record: MappingRecord, binary: Binary, *, is_one_of_several: bool) -> BuildMatch:
    """Infer what the addresses in one file count from, if it may be `binary`, see `match_bases`.

    A path of 64 bits rules out files of 32.
    """
    assert record.names is not None
    names = record.names

    def places() -> Iterator[tuple[AddressBase, Agreement, Observed]]:
        for base in bases_of(binary, record.kind):
            mapped = in_file(binary, base, record.addresses)
            yield base, agreement_of(binary, mapped[0], names), record.observed(mapped)

    match = match_bases(judge, binary, len(record.addresses), places(), is_one_of_several=is_one_of_several)
    is_wide = WIDE.search(record.filename) is not None
    if is_wide and not match.problem and not binary.loaded.is_64 and not match.agreement.is_proof:
        return BuildMatch("a file of 32 bits, and the path is that of one of 64")
    return match


def agreement_of(binary: Binary, vaddrs: UInt64, embedded: ExistingNames) -> Agreement:
    """How the functions of `binary` agree with the names that came with the locations, were they at `vaddrs`."""
    named = some_of(embedded)
    if not len(named):
        return Agreement()
    there = without_tag(binary.images[0], vaddrs[named] + np.uint64(binary.shift))
    order = np.argsort(there, kind="stable")
    names = ExistingNames(embedded.names, embedded.of_location[named[order]])
    return compare_names(names, vaddrs[named[order]], binary.functions_at(there[order]), silence=not binary.is_stripped)


def bases_of(binary: Binary, kind: AddressKind) -> list[AddressBase]:
    """What addresses of a kind may count from: in a file that is not linked, a kernel module, from `.text`."""
    image = binary.images[0]
    if not image.is_relocatable:
        return candidate_bases(binary.loaded.segments, is_offset=kind == AddressKind.OFFSET)
    text = image.module_text
    return [AddressBase(text.vaddr, "counted from .text")] if text is not None else []


def code_of(binary: Binary) -> Sequence[Segment]:
    """The segments with the code of a binary; of a kernel module what is loaded first."""
    image = binary.images[0]
    if not image.is_relocatable:
        return binary.loaded.segments
    text = image.module_text
    return [Segment(text.file_offset, text.vaddr, text.size, text.size, 1, True)] if text is not None else []

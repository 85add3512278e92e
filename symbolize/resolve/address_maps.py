"""Where the addresses of a mapping are in the files of a binary."""

from dataclasses import replace

import numpy as np

from symbolize.core.arrays import TOP
from symbolize.core.reasons import Reason
from symbolize.core.verdict import Verdict
from symbolize.elf import without_tag
from symbolize.evidence.judge import Judge
from symbolize.evidence.score import REFUTED
from symbolize.resolve.addresses import MappedAddresses, map_addresses, map_module_addresses, page_floor, true_offset
from symbolize.resolve.judging import judge_mapping
from symbolize.resolve.mapping_record import MappingRecord
from symbolize.resolve.name_agreement import ExistingNames
from symbolize.resolve.resolution import Resolution
from symbolize.symbols import Binary


def misfit(record: MappingRecord) -> str:
    """Why no file could be mapped as a mapping says, as far as it is known."""
    return (
        f"has no segment that is mapped at {record.start:#x}-{record.limit:#x} from file offset {record.file_offset:#x}"
    )


def map_in_images(record: MappingRecord, binary: Binary, *, verified: bool) -> tuple[MappedAddresses | None, str]:
    """Where the addresses of a mapping are; None if the files do not fit, and why where there is more to say."""
    image = binary.images[0]
    bounds = record.start, record.limit, record.file_offset
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
    judgement = judge_mapping(judge, record, binary, mapped)
    for segment in segments:
        if segment.executable:
            offset = page_floor(segment.file_offset)
            there, _ = map_in_images(record._replace(file_offset=offset), binary, verified=True)
            other = judge_mapping(judge, record, binary, there) if there is not None else judgement
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

"""Where the addresses of a mapping are in the files of a binary, and what its call sites say of that."""

from dataclasses import replace

import numpy as np

from symbolize.core.arrays import TOP, Bool
from symbolize.core.reasons import Reason
from symbolize.core.stack_check import CallerAgreement
from symbolize.elf import without_tag
from symbolize.resolve.addresses import (
    Calls,
    MappedAddresses,
    call_site_mismatch,
    calls_at,
    map_addresses,
    map_module_addresses,
    page_floor,
    true_offset,
)
from symbolize.resolve.caller_agreement import caller_mismatch, callers_of, is_confirmation
from symbolize.resolve.choice import BuildMatch
from symbolize.resolve.mapping_record import MappingRecord
from symbolize.resolve.name_agreement import ExistingNames
from symbolize.resolve.resolution import Resolution
from symbolize.symbols import Binary

MAX_SITES = 4096
"""Call sites that are looked at; of more an evenly spaced part, which is the same for all builds of a mapping."""


def judge(record: MappingRecord, binary: Binary, *, verified: bool) -> BuildMatch:
    """Whether a binary may be what was mapped, and how many of the call sites lie in calls of it."""
    mapped, problem = map_in_images(record, binary, verified=verified)
    if mapped is None:
        return BuildMatch(problem or "does not fit the mapping")
    calls = calls_of(binary, mapped, record.is_call)
    return BuildMatch(call_site_mismatch(calls), calls=calls)


def judge_callers(
    record: MappingRecord, binary: Binary, verdict: BuildMatch, *, verified: bool
) -> CallerAgreement | None:
    """How the callers of a mapping agree with a binary that may be what was mapped."""
    mapped, _ = map_in_images(record, binary, verified=verified)
    return callers_of(record, binary, mapped) if mapped is not None else None


def calls_of(binary: Binary, mapped: MappedAddresses, is_call: Bool) -> Calls | None:
    """How many of the call sites among mapped addresses lie in calls of a binary; None if that is not known."""
    vaddrs, inside = mapped
    if binary.code is None:
        return None
    sites = np.flatnonzero(is_call)
    sites = sites[:: len(sites) // MAX_SITES + 1]
    there = sites[inside[sites]]
    return calls_at(binary.code, vaddrs[there], len(sites) - len(there))


def weakness_of(binary: Binary, calls: Calls | None, is_call: Bool) -> str:
    """Why the check of call sites says little for a binary that passes it; empty if it says enough."""
    if calls is not None:
        return "" if calls.is_strong else calls.text
    if not is_call.any():
        return "not checked: no call sites"
    return "not checked: " + ("no file with the code" if binary.code is None else "its calls are not known")


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


def lost_offset(record: MappingRecord, binary: Binary, mapped: MappedAddresses) -> str:
    """Why the file offset of a mapping is a lost one, of which a build id says nothing: call sites are in no calls so,
    and in calls if the mapping begins with code (R147, brief memory maps). Empty if it is not."""
    if record.limit in (0, TOP) or not binary.loaded.has_file_offsets or binary.images[0].kind != "ET_DYN":
        return ""
    segments, bounds = binary.loaded.segments, (record.start, record.limit, record.file_offset)
    calls = calls_of(binary, mapped, record.is_call)
    if true_offset(segments, *bounds, verified=False) is not None or calls is None or not calls.is_contradiction:
        return ""
    for segment in segments:
        if segment.executable:
            offset = page_floor(segment.file_offset)
            there, _ = map_in_images(record._replace(file_offset=offset), binary, verified=True)
            found = calls_of(binary, there, record.is_call) if there is not None else None
            if found is not None and found.is_confirmation:
                return f"mapped from another offset: {calls.text} from 0 on"
    return ""


def map_addresses_of(record: MappingRecord, resolution: Resolution) -> tuple[MappedAddresses | None, str]:
    """Where the addresses of a mapping are in what it is resolved to; None if that does not fit, and why where there is
    more to say."""
    if resolution.address_map is not None:
        return resolution.address_map(record.addresses), ""
    if isinstance(resolution.binary, Binary):
        return map_in_images(record, resolution.binary, verified=resolution.verified)
    return None, ""


def map_locations(record: MappingRecord, resolution: Resolution) -> Resolution:
    """The resolution with the vaddrs of the locations that lie in its binary; without it if the binary does not fit."""
    binary, evidence, callers = resolution.binary, resolution.evidence, None
    mapped, problem = map_addresses_of(record, resolution)
    if mapped is not None and resolution.verified and isinstance(binary, Binary):
        problem = lost_offset(record, binary, mapped)
    if mapped is not None and not resolution.verified and isinstance(binary, Binary):
        calls = calls_of(binary, mapped, record.is_call)
        problem, evidence = call_site_mismatch(calls), weakness_of(binary, calls, record.is_call)
        if evidence and not problem:
            callers = callers_of(record, binary, mapped)
            problem, evidence = caller_mismatch(callers), "" if is_confirmation(callers) else evidence
            evidence = callers.text if callers is not None else evidence
    if mapped is None or problem:
        detail = ", ".join(resolution.files) + (f" is {problem}" if problem else f" {misfit(record)}")
        return resolution.refused(Reason.MISFIT, detail=detail, files=())
    vaddrs, inside = mapped
    vaddrs, names = vaddrs[inside], record.names
    if isinstance(binary, Binary):
        vaddrs = without_tag(binary.images[0], vaddrs + np.uint64(binary.shift))
    if names is not None:
        names = ExistingNames(names.names, names.of_location[inside])
    return replace(resolution, rows=record.rows[inside], vaddrs=vaddrs, names=names, evidence=evidence)

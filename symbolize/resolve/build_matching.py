"""Matches builds with profiles whose addresses are those in files: which file, and what addresses count from.

simpleperf records neither build ids nor where files were mapped. What it has is names of some functions.
"""

import re
from collections.abc import Sequence

import numpy as np

from symbolize.core.arrays import UInt64
from symbolize.core.verdict import Verdict
from symbolize.elf import Segment, without_tag
from symbolize.evidence.judge import Judge, Judgement
from symbolize.profile import AddressKind
from symbolize.resolve.addresses import AddressBase, MappedAddresses, candidate_bases, in_code
from symbolize.resolve.choice import BuildMatch
from symbolize.resolve.judging import judge_mapping
from symbolize.resolve.mapping_record import MappingRecord
from symbolize.resolve.name_agreement import Agreement, ExistingNames, compare_names, some_of
from symbolize.resolve.resolution import AddressMap
from symbolize.symbols import Binary

WIDE = re.compile(r"lib64|arm64|x86_64|linker64|app_process64")
"""Parts of device paths that tell a library of 64 bits."""


def in_file_map(binary: Binary, base: AddressBase) -> AddressMap:
    """The map from addresses in a file, counted from `base`, to vaddrs of `binary.loaded`."""

    def address_map(addresses: UInt64) -> MappedAddresses:
        vaddrs = addresses + np.uint64(base.distance)
        return vaddrs, in_code(vaddrs, code_of(binary))

    return address_map


def infer_load_bias(judge: Judge, record: MappingRecord, binary: Binary, *, is_one_of_several: bool) -> BuildMatch:
    """Infer what the addresses in one file count from, if it may be `binary`; one base for all of them (R163, base of
    file addresses).

    The base that agrees with the names decides. Where there are none, all addresses have to lie in the code, and the
    judge decides, who is asked too where `is_one_of_several` candidates is to be chosen.
    """
    assert record.names is not None
    addresses = record.addresses
    fitting: list[tuple[AddressBase, Agreement, Judgement]] = []
    problem = ""
    outside = len(addresses)
    for base in bases_of(binary, record.kind):
        vaddrs = addresses + np.uint64(base.distance)
        inside = in_code(vaddrs, code_of(binary))
        agreement = agreement_of(binary, vaddrs, record.names)
        if agreement.judged and not agreement.is_sound:
            problem = problem or (
                f"another build: {agreement.functions} of {agreement.judged} functions are where the profile has them; "
                + agreement.example
            )
            continue
        if not agreement.is_proof and not inside.all():
            outside = min(outside, int((~inside).sum()))
            continue
        judgement = Judgement(Verdict.UNVERIFIED)
        if is_one_of_several or not agreement.is_proof:
            judgement = judge_mapping(judge, record, binary, (vaddrs, inside))
        if not agreement.is_proof and judgement.verdict is Verdict.REFUTED:
            problem = problem or f"another build: {judgement.text}"
            continue
        if agreement.functions or not base.needs_proof or judgement.verdict is Verdict.SUPPORTED:
            fitting.append((base, agreement, judgement))
    if not fitting:
        default = f"{outside} of {len(addresses)} addresses lie outside of its code, whatever they count from"
        return BuildMatch(problem=problem or default)
    if WIDE.search(record.filename) and not binary.loaded.is_64 and not any(each.is_proof for _, each, _ in fitting):
        return BuildMatch(problem="a file of 32 bits, and the path is that of one of 64")
    ranks = [
        (each.is_proof, each.functions / max(each.judged, 1), each.addresses, judgement.verdict)
        for _, each, judgement in fitting
    ]
    best = ranks.index(max(ranks))
    base, agreement, judgement = fitting[best]
    others = [each for (each, _, _), rank in zip(fitting, ranks, strict=True) if rank == ranks[best] and each != base]
    return BuildMatch("", judgement, agreement, base, others)


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

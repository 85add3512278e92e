"""From runtime addresses to ELF vaddrs: which mapping, which segment."""

from collections.abc import Sequence
from mmap import PAGESIZE

import numpy as np

from symbolize.core.arrays import TOP, Bool, UInt64
from symbolize.elf import Section, Segment
from symbolize.evidence.choice import AddressBase
from symbolize.profile.model import covers_everything

MappedAddresses = tuple[UInt64, Bool]
"""Vaddrs, and which of them lie in the binary at all."""

PAGE = 4096


def map_addresses(
    address: UInt64,
    start: int,
    limit: int,
    file_offset: int,
    loaded: Sequence[Segment] | None,
    debug: Sequence[Segment],
    *,
    kind: str,
    verified: bool,
) -> MappedAddresses | None:
    """The vaddrs of the runtime addresses in a mapping, and which lie in a segment; None if the file does not fit it.

    `loaded` are the segments of the binary, None if there is only a debug file, whose segments are `debug`.
    `kind` is the ELF type; in an ET_REL file nothing has an address yet. `verified` means that the build id
    agreed.
    """
    relocatable = kind != "ET_EXEC"
    if kind == "ET_REL":  # see map_module_addresses
        return None
    if limit == 0:  # some producers know where a mapping starts and not where it ends
        limit = TOP
    if covers_everything(start, limit):
        # The addresses of a mapping of everything are vaddrs (pprof's base 0).
        return address, np.ones(len(address), np.bool_)
    if loaded is None:
        segments, offset = load_segments(debug, start, limit, file_offset), file_offset
        if segments is None and not relocatable:
            segments = list(debug)
    else:
        segments = list(loaded)
        known = true_offset(segments, start, limit, file_offset, verified=verified) if relocatable else file_offset
        if known is None:
            return None
        offset = known
    if segments is None or not (verified or fits(segments, start, limit, offset)):
        return None
    return to_vaddrs(address, start, limit, offset, segments, relocatable)


def to_vaddrs(
    address: UInt64, start: int, limit: int, file_offset: int, segments: Sequence[Segment], relocatable: bool
) -> MappedAddresses:
    """ELF vaddrs of the runtime addresses in one mapping, and which of them lie in a segment at all.

    Each address is converted on its own (R125, file offsets to vaddrs; R127, offset of each address): address - start +
    file_offset is an offset in the file; the segment that holds this offset, an executable one before others, turns it
    into a vaddr: offset - p_offset + p_vaddr. For a position-dependent file (ET_EXEC, `relocatable` false) whose
    segments hold the address as it is, it is the vaddr (R126, fixed addresses): there the mapping may have lost its
    offset. Names of parameters give the kind of address: `address` at run time, `file_offset` or `vaddr` (R136, kinds
    of addresses).
    """
    offset = address - np.uint64(start) + np.uint64(file_offset)
    vaddr = np.zeros(len(address), np.uint64)
    found = np.zeros(len(address), np.bool_)
    inside = (address >= np.uint64(start)) & (address < np.uint64(limit))
    for segment in sorted(segments, key=lambda segment: not segment.executable):
        begin, end = np.uint64(segment.file_offset), np.uint64(min(end_of(segment), TOP))
        here = inside & ~found & (offset >= begin) & (offset < end)
        vaddr[here] = offset[here] - begin + np.uint64(segment.vaddr)
        found |= here
    if not relocatable:
        for segment in segments:
            begin, end = np.uint64(segment.vaddr), np.uint64(min(segment.vaddr + segment.memory_size, TOP))
            here = segment.executable & (address >= begin) & (address < end)
            vaddr[here] = address[here]
            found |= here
    return vaddr, found


def map_module_addresses(
    address: UInt64, start: int, limit: int, file_offset: int, text: Section | None, *, verified: bool
) -> MappedAddresses | None:
    """The vaddrs of the runtime addresses in the mapping of a kernel module, and which lie in `text`.

    The kernel lays the code out from the start of the mapping on, `text` first; where it put the other sections the
    mapping does not tell, and without a known address they have no symbols (R96, sections of kernel modules). None if
    the mapping is not that of a module, or, unless it is `verified`, shorter than its code. `.init.text` is freed after
    loading, and other code may be there.
    """
    whole = file_offset == 0 and start > 0 and start % PAGE == 0
    size = limit - start if limit else TOP
    if text is None or not whole or (size < text.size and not verified):
        return None
    offset = address - np.uint64(start)
    inside = (address >= np.uint64(start)) & (offset < np.uint64(max(min(size, text.size), 0)))
    return np.where(inside, offset + np.uint64(text.vaddr), np.uint64(0)), inside


def true_offset(segments: Sequence[Segment], start: int, limit: int, file_offset: int, *, verified: bool) -> int | None:
    """The file offset of a mapping whose memory map may have lost it; None if it is not known (R147, brief memory
    maps).

    Maps in the brief form leave offsets out, which then read as 0. Where code does not begin at offset 0 of the
    file, a mapping as long as exactly one executable segment, rounded to pages, is that segment; one that
    reaches behind all code does begin at offset 0; anything else would be a guess. Recorders that know build ids know
    offsets too, nearly always: if the file is `verified`, a mapping with an end begins where it is said to begin, and
    call sites may contradict.
    """
    code = [segment for segment in segments if segment.executable and segment.file_size]
    if file_offset or not code or any(page_floor(segment.file_offset) == 0 for segment in code):
        return file_offset
    if limit == TOP:
        return None
    sizes = [page_ceil(end_of(s)) - page_floor(s.file_offset) for s in code]
    if sizes.count(limit - start) == 1:
        return page_floor(code[sizes.index(limit - start)].file_offset)
    end = max(map(end_of, code))
    return 0 if verified or limit - start >= end else None


def differs_in_length(segments: Sequence[Segment], start: int, limit: int, file_offset: int) -> bool:
    """Whether a mapping of this machine is not as long as the executable segment that begins at its offset, in pages.

    Code that begins the file says nothing, which is mapped whole at first. Nor does code that is as long: a build with
    one statement more mostly is.
    """
    code = [segment for segment in segments if segment.executable and segment.file_size]
    if len(code) != 1 or not file_offset or not start < limit < TOP:
        return False
    is_at_begin = code[0].file_offset // PAGESIZE * PAGESIZE == file_offset
    return is_at_begin and -(-end_of(code[0]) // PAGESIZE) * PAGESIZE - file_offset != limit - start


def load_segments(segments: Sequence[Segment], start: int, limit: int, file_offset: int) -> list[Segment] | None:
    """The segments of a debug file as its binary has them, as far as this mapping shows; None if it does not.

    objcopy keeps vaddrs and memory sizes in a debug file and loses file offsets and sizes (R103, code of debug files).
    A mapping that is as long as exactly one executable segment, rounded to pages, is that segment. A shorter one is
    placed only if the segment begins on a page, as it does where file offsets run like vaddrs from the first segment
    on, and it lies in the segment. A build id does not say where: linkers may leave more room in memory than in the
    file, and what only overlaps the segment could be other code.
    """
    code = [segment for segment in segments if segment.executable and segment.memory_size]
    first_vaddr = min((segment.vaddr for segment in segments), default=0)
    whole = [s for s in code if page_ceil(s.vaddr + s.memory_size) - page_floor(s.vaddr) == limit - start]
    if not whole and segments and is_of_all(segments, limit - start, file_offset):
        whole = [min(segments, key=lambda segment: segment.vaddr)]
    if len(whole) == 1:
        offset = file_offset + whole[0].vaddr % PAGE
        return [restored(whole[0], offset)] if offset <= TOP else None
    for segment in code:
        offset = segment.vaddr - page_floor(first_vaddr)
        end = page_ceil(offset + segment.memory_size)
        if segment.vaddr % PAGE == 0 and offset <= file_offset and file_offset + limit - start <= end:
            return [restored(segment, offset)]
    return None


def end_of(segment: Segment) -> int:
    """The file offset behind a segment."""
    return segment.file_offset + segment.file_size


def restored(segment: Segment, file_offset: int) -> Segment:
    """A segment of a debug file with the file offset and size that its binary has."""
    return segment._replace(file_offset=file_offset, file_size=segment.memory_size)


def fits(segments: Sequence[Segment], start: int, limit: int, file_offset: int) -> bool:
    """Whether a file with these segments can be what is mapped: no mapping reaches past the file's segments, unless it
    is of all of them in memory.

    The kernel and the dynamic linker map the first segment with room for the others, and where it has the code no other
    mapping is recorded.
    """
    if limit == TOP or not segments:
        return True
    end = max(
        -(-end_of(segment) // max(segment.alignment, PAGE)) * max(segment.alignment, PAGE) for segment in segments
    )
    return file_offset + limit - start <= end or is_of_all(segments, limit - start, file_offset)


def is_of_all(segments: Sequence[Segment], size: int, file_offset: int) -> bool:
    """Whether a mapping is that of the first segment with room for all of them behind it, as the kernel and the dynamic
    linker reserve it first. Recorders that note mappings of code see only this one if the first segment has the code.
    """
    first = min(segments, key=lambda segment: segment.vaddr)
    end = page_ceil(max(segment.vaddr + segment.memory_size for segment in segments))
    is_first = first.executable and file_offset == page_floor(first.file_offset)
    return is_first and size == end - page_floor(first.vaddr)


def page_floor(value: int) -> int:
    """`value` rounded down to a page."""
    return value // PAGE * PAGE


def page_ceil(value: int) -> int:
    """`value` rounded up to a page."""
    return -(-value // PAGE) * PAGE


def candidate_bases(segments: Sequence[Segment], *, is_offset: bool) -> list[AddressBase]:
    """What addresses in a file may count from, where that is not known (R163, base of file addresses).

    The likeliest first, each distance once. What decides is the executable segment with the lowest vaddr. Its vaddr
    alone counts, not its file offset, which a debug file does not have; within a page the two are the same. An address
    that `is_offset` counts from where the file was loaded, and only with proof from its code. Addresses are vaddrs; or
    they lack the page in which the code begins, so that they count from where the code was mapped; or they exceed
    vaddrs by the offset of the code in its page. That is so of simpleperf. File offsets are not used, since a debug
    file has other ones.
    """
    lowest = min((s.vaddr for s in segments if s.executable and s.memory_size), default=None)
    if lowest is None:
        return []
    loaded = min(s.vaddr for s in segments if s.memory_size)
    known: dict[int, AddressBase] = {}
    for base in (
        AddressBase(0, "taken as vaddrs"),
        *([AddressBase(page_floor(loaded), "counted from where the file is loaded")] if is_offset else ()),
        AddressBase(page_floor(lowest), "counted from where the code is mapped", needs_proof=is_offset),
        # Only names and calls can tell this one: nearly all addresses lie in the code either way.
        AddressBase(-(lowest % PAGE) & TOP, "counted from the first byte of the code", needs_proof=True),
    ):
        known.setdefault(base.distance, base)
    return list(known.values())


def in_code(vaddrs: UInt64, segments: Sequence[Segment]) -> Bool:
    """Which of `vaddrs` lie in executable segments, by their sizes in memory, which a debug file keeps (R103, code of
    debug files)."""
    result = np.zeros(len(vaddrs), np.bool_)
    for segment in segments:
        if segment.executable:
            end = np.uint64(min(segment.vaddr + segment.memory_size, TOP))
            result |= (vaddrs >= np.uint64(segment.vaddr)) & (vaddrs < end)
    return result

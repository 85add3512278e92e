"""Groups files by build: ids are set by hand, and tools change files afterwards.

Files of one build have the same code; a debug file has the same segments and sections.
"""

from collections.abc import Sequence

from symbolize.core.arrays import TOP
from symbolize.elf import ElfImage, Section, Segment, read_symbols

MAX_COMPARED = 1 << 22
"""Bytes of the code of two files that are compared. Of more, an evenly spaced part: other builds differ all over."""
BLOCK = 1 << 12
MAX_NAMES = 1 << 10
"""Functions of two files that are compared."""


def builds_of(images: Sequence[ElfImage]) -> list[list[ElfImage]]:
    """The files that share a build id or a name, by build (R248, one build id, several builds).

    A debug file that fits several builds belongs to the one with its functions at the same addresses, if there is one.
    Those with code are of one build if they have the same code, a debug file is of the build whose sections and
    segments it has (R145, distance of a debug file). Debug information of one build is never joined with code or
    symbols of another. The build with the file that the mapping names comes first, and the others are reported.
    """
    if len(images) == 1:
        return [list(images)]
    builds: list[list[ElfImage]] = []
    for image in images:
        if image.has_code:
            same = next((build for build in builds if same_code(build[0], image)), None)
            builds.append([image]) if same is None else same.append(image)
    alone: list[list[ElfImage]] = []
    for image in images:
        if image.has_code:
            continue
        fitting = [build for build in builds if fits(build[0], image)]
        if len(fitting) > 1:
            fitting = [build for build in fitting if any(has_functions_of(each, image) for each in build)]
        if len(fitting) != 1:
            fitting = [build for build in alone if fits(build[0], image)][:1]
        fitting[0].append(image) if fitting else alone.append([image])
    return [*builds, *alone]


def is_same_build(one: Sequence[ElfImage], other: Sequence[ElfImage]) -> bool:
    """Whether unrelated files give the same names: their code or, without any, their contents are equal (R249, equal
    code)."""
    first, second = (next((image for image in images if image.has_code), None) for images in (one, other))
    if first is not None and second is not None:
        return same_code(first, second)
    if first is not None or second is not None or len(one[0].data) != len(other[0].data):
        return False
    return same_bytes([(one[0].data, other[0].data)])


def same_code(one: ElfImage, other: ElfImage) -> bool:
    """Whether two files have the same code, at one distance; of more than MAX_COMPARED bytes a part is compared."""
    if one.machine != other.machine or one.is_relocatable != other.is_relocatable:
        return False
    ranges = [code_ranges(image) for image in (one, other)]
    by_sections = [any(section.has_bytes for section in code_sections(image)) for image in (one, other)]
    if by_sections[0] == by_sections[1]:
        if [size for _, size in ranges[0]] != [size for _, size in ranges[1]]:
            return False
        if len({theirs[0] - own[0] for own, theirs in zip(*ranges, strict=True)}) > 1:
            return False
    elif by_sections[1]:  # the segments of the first begin with headers, which differ; sections do not
        ranges[0] = ranges[1]
    else:
        ranges[1] = ranges[0]
    pairs = [
        (bytes_at(one, vaddr, size), bytes_at(other, theirs, size))
        for (vaddr, size), (theirs, _) in zip(*ranges, strict=True)
    ]
    return same_bytes(pairs)


def code_ranges(image: ElfImage) -> list[tuple[int, int]]:
    """Vaddr and size of each piece of code, by the sections, without any that hold code by the segments."""
    found = [(section.vaddr, section.size) for section in code_sections(image) if section.has_bytes]
    if not found:
        found = [(segment.vaddr, segment.file_size) for segment in image.segments if segment.executable]
    return sorted(found)


def code_sections(image: ElfImage) -> list[Section]:
    """The sections with code that are not empty."""
    return [section for section in image.sections if section.is_code and section.size]


def bytes_at(image: ElfImage, vaddr: int, size: int) -> memoryview:
    """Up to `size` bytes of code at a vaddr, fewer if the file has no more."""
    for section in code_sections(image):
        if section.vaddr == vaddr and section.size == size and section.has_bytes:
            return image.data[section.file_offset : section.file_offset + size]
    for segment in image.segments:
        if segment.vaddr <= vaddr < segment.vaddr + segment.file_size:
            begin = segment.file_offset + vaddr - segment.vaddr
            return image.data[begin : begin + min(size, segment.vaddr + segment.file_size - vaddr)]
    return image.data[:0]


def same_bytes(pairs: Sequence[tuple[memoryview, memoryview]]) -> bool:
    """Whether two files have the same bytes in all pairs, and some; evenly spaced blocks of more than MAX_COMPARED."""
    if any(len(own) != len(theirs) for own, theirs in pairs):
        return False
    total = sum(len(own) for own, _ in pairs)
    if total <= MAX_COMPARED:
        return total > 0 and all(own == theirs for own, theirs in pairs)
    step = total * BLOCK // MAX_COMPARED
    return all(
        own[begin : begin + BLOCK] == theirs[begin : begin + BLOCK]
        for own, theirs in pairs
        for begin in (*range(0, len(own), step), max(len(own) - BLOCK, 0))
    )


def fits(code: ElfImage, image: ElfImage) -> bool:
    """Whether a debug file, or another file without code, can be of the build of a file."""
    if code.is_relocatable != image.is_relocatable:
        return False
    if code.is_relocatable:
        return code.loaded_sections == image.loaded_sections
    return distance_between(code, image) is not None


def has_functions_of(code: ElfImage, image: ElfImage) -> bool:
    """Whether all functions that both files name once are at the same addresses in both, and there are some."""
    distance = distance_between(code, image) or 0
    own, theirs = functions(code), functions(image)
    common = sorted(own.keys() & theirs.keys())[:MAX_NAMES]
    return bool(common) and all(theirs[name] - own[name] == distance for name in common)


def functions(image: ElfImage) -> dict[bytes, int]:
    """The vaddrs of the functions of a file by name, of those whose name no other one has."""
    found: dict[bytes, set[int]] = {}
    for table in (".symtab", ".dynsym"):
        symbols = read_symbols(image, table)
        if symbols is not None:
            for name, vaddr in zip(symbols.name.tolist(), symbols.vaddr.tolist(), strict=True):
                found.setdefault(symbols.text(name), set()).add(vaddr)
    return {name: vaddrs.pop() for name, vaddrs in found.items() if len(vaddrs) == 1}


def aligned(images: Sequence[ElfImage], refused: list[str]) -> tuple[ElfImage, list[ElfImage], int]:
    """The file that defines the segments, the files with the names, and the offset from its vaddrs to theirs.

    prelink and eu-strip may shift all segments of a binary against its debug file. A file with another layout is of
    another build: it is closed, with a sentence in `refused` (R145, distance of a debug file). Of the others the first
    in `images` gives the names.
    """
    # Of those with true offsets the file with the code comes first.
    loaded = max(images, key=lambda image: (image.has_code, image.has_file_offsets))
    distances: list[tuple[ElfImage, int]] = []
    for image in images:
        distance = 0 if image is loaded else distance_between(loaded, image)
        if distance is None:
            refused.append(misfit(loaded, image))
            image.close()
        else:
            distances.append((image, distance))
    shift = distances[0][1]
    kept = [image for image, distance in distances if distance == shift]
    for image, distance in distances:
        if distance != shift and image is not loaded:
            refused.append(f"{image.path} is at other addresses than {kept[0].path} and is not used")
            image.close()
    return loaded, kept, shift & TOP


def misfit(chosen: ElfImage, image: ElfImage) -> str:
    """Why a file with the same build id is not used beside the chosen one, in a sentence."""
    if chosen.has_code and image.has_code:
        return f"{image.path} has other code than {chosen.path} under the same build id and is not used"
    return f"{image.path} has sections or segments that do not agree with those of {chosen.path} and is not used"


def distance_between(loaded: ElfImage, image: ElfImage) -> int | None:
    """By how much `image` is above `loaded`; None if their layouts differ otherwise.

    Executable segments decide where they agree or tools changed the others. A debug file without segments is at the
    same addresses. Sections with code that both have are of one size, and shifted as the segments.
    """
    if image.is_relocatable:
        return 0
    distance = distance_of_segments(loaded, image)
    return distance if distance is not None and sections_agree(loaded, image, distance) else None


def distance_of_segments(loaded: ElfImage, image: ElfImage) -> int | None:
    """By how much the segments of `image` are above those of `loaded`; None if they differ."""
    if not loaded.segments or not image.segments:
        return 0
    code = distances([s for s in loaded.segments if s.executable], [s for s in image.segments if s.executable])
    every = distances(loaded.segments, image.segments)
    if code == {0} or every == {0}:
        return 0
    found = every if len(loaded.segments) == len(image.segments) else code
    return found.pop() if len(found) == 1 else None


def distances(own: Sequence[Segment], others: Sequence[Segment]) -> set[int]:
    """By how much each of the other segments is above its counterpart; empty if they are no counterparts."""
    if len(own) != len(others):
        return set()
    found = {other.vaddr - mine.vaddr for mine, other in zip(own, others, strict=True)}
    sizes = ([segment.memory_size for segment in each] for each in (own, others))
    return found if found == {0} or next(sizes) == next(sizes) else set()


def sections_agree(loaded: ElfImage, image: ElfImage, distance: int) -> bool:
    """Whether sections with code in both files are equal but for addresses, which are equal or `distance` higher."""
    own, theirs = by_name(loaded), by_name(image)
    common = own.keys() & theirs.keys()
    if any([size for _, size in own[name]] != [size for _, size in theirs[name]] for name in common):
        return False
    found = {there - here for name in common for (here, _), (there, _) in zip(own[name], theirs[name], strict=True)}
    return found <= {0} or found <= {distance}


def by_name(image: ElfImage) -> dict[str, list[tuple[int, int]]]:
    """Vaddr and size of the sections with code, by their name."""
    found: dict[str, list[tuple[int, int]]] = {}
    for section in code_sections(image):
        found.setdefault(section.name, []).append((section.vaddr, section.size))
    return found


def agreeing(images: Sequence[ElfImage]) -> list[ElfImage]:
    """The files that agree with the first on the layout of sections, if nothing is linked; the others are closed (R94,
    sections of object files)."""
    first = images[0]
    kept = [first]
    for image in images[1:]:
        if image.is_relocatable == first.is_relocatable and (
            not first.is_relocatable or image.loaded_sections == first.loaded_sections
        ):
            kept.append(image)
        else:
            first.note(f"{image.path} has other sections and is not used")
            image.close()
    return kept


def source_names(image: ElfImage) -> set[str]:
    """The names of the sections that have contents."""
    return {section.name for section in image.sections if section.has_bytes}

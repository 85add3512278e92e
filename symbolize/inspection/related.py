"""The other files of a binary: those that its links name, and its split units."""

import os
from collections.abc import Iterator

import numpy as np

from symbolize.binaries import Attempt, BinaryIndex, Companions
from symbolize.binaries.entries import Entry
from symbolize.binaries.links import linked_files
from symbolize.binaries.store import signed
from symbolize.core.errors import InputError
from symbolize.core.files import os_error_text
from symbolize.dwarf.sections import Link, PackageError, read_altlink, read_index, read_sup
from symbolize.dwarf.sources import DwarfSources
from symbolize.dwarf.units import read_units
from symbolize.elf import ElfImage, Section
from symbolize.elf.probe import (
    CODE,
    DWARF,
    DYNSYM,
    GOPCLNTAB,
    LINK,
    MAX_LINK_BYTES,
    MINI,
    PACKAGE,
    SPLIT,
    SYMTAB,
    read_link,
)
from symbolize.inspection.model import Elf, Followed, Splits
from symbolize.symbols.split_dwarf_files import identity, split_sections

MAX_SPLIT = 1 << 16
"""Split units that are searched for."""
MAX_MISSING = 16
"""Missing split units that are listed."""

UNASKED = "is compressed as a whole or damaged, so the link is not followed"

SPLIT_UNITS = (1, 5)
DEBUG_LINK = LINK.decode()
HAS_DWARF, CODE_HERE = "DWARF", "code"
OFFERS = {
    DWARF: HAS_DWARF,
    SYMTAB: ".symtab",
    DYNSYM: ".dynsym",
    MINI: ".gnu_debugdata",
    GOPCLNTAB: ".gopclntab",
    CODE: CODE_HERE,
    SPLIT: "split units",
    PACKAGE: "package of split units",
}


def own_entry(index: BinaryIndex, path: str) -> Entry | None:
    """The entry of the file at `path` in the index."""
    status = os.stat(path)
    identity = signed(status.st_ino), signed(status.st_dev)
    names = dict.fromkeys((os.path.basename(path), os.path.basename(os.path.realpath(path))))
    return next((entry for name in names for entry in index.with_name(name) if entry.identity == identity), None)


def offers(entry: Entry) -> list[str]:
    """What a file offers."""
    return [text for bit, text in OFFERS.items() if entry.offers & bit]


def debug_links(image: ElfImage, index: BinaryIndex | None, entry: Entry | None) -> Iterator[Followed]:
    """The link to a debug file by name and checksum (R141, debug links)."""
    section = DEBUG_LINK
    if not has_bytes(image.find(section)):
        return
    name, check = read_link(bytes((image.contents(section) or b"")[:MAX_LINK_BYTES]), image.big_endian)
    if not name:
        image.note(f"section {section} cannot be read")
        return
    found: list[Entry] = []
    tried: list[Attempt] = []
    if entry is not None and entry.has_dwarf:
        tried = [Attempt(entry.path, "has debug information itself, so the link is not followed")]
    elif index is not None and entry is not None:
        found, tried = linked_files(index, [entry])
    else:
        tried = [Attempt(image.path, UNASKED)]
    best = next((each for each in found if each.has_dwarf), found[0] if found else None)
    led = (best.path, tried, offers(best)) if best is not None else ("", tried)
    yield Followed(section, os.fsdecode(name), f"{check:08x}", *led)


def supplementary_links(image: ElfImage, companions: Companions | None, elf: Elf) -> Iterator[Followed]:
    """The link to a supplementary file by build id or checksum (R91, supplementary files)."""
    section, link = ".gnu_debugaltlink", read_altlink(image.contents(".gnu_debugaltlink") or b"")
    if link is None:
        sup = read_sup(image.contents(".debug_sup") or b"", image.big_endian)
        if sup is None:
            return
        elf.is_supplementary, link = sup
        section = ".debug_sup"
    if elf.is_supplementary:
        return
    name, identifier = os.fsdecode(link.name), link.identifier.hex()
    tried: list[Attempt] = []
    for path in companions.supplementary(name, identifier) if companions is not None else ():
        refusal = why_not_supplementary(path, link)
        tried.append(Attempt(path, refusal or "found, its id agrees"))
        if not refusal:
            yield Followed(section, name, identifier, path, tried)
            return
    if companions is None:
        tried = [Attempt(image.path, UNASKED)]
    elif not tried:
        tried = [Attempt(os.path.basename(name), "no file of that name or with that build id")]
    yield Followed(section, name, identifier, "", tried)


def why_not_supplementary(path: str, link: Link) -> str:
    """Why a file is not the one that a link names, empty if it is."""
    try:
        with ElfImage.open(path) as image:
            own = identity(image, link)
    except (InputError, OSError) as error:
        return getattr(error, "problem", None) or os_error_text(error)
    kind = "checksum" if link.is_checksum else "build id"
    return "" if own == link.identifier else f"has the {kind} {own.hex() or 'of none'}, wanted {link.identifier.hex()}"


def packages(companions: Companions, image: ElfImage, problems: list[str]) -> Iterator[tuple[str, int]]:
    """The packages named after a file, and the number of their units."""
    for path in companions.packages():
        signatures = package_units(path, image.big_endian, problems)
        if signatures is not None:
            yield path, len(signatures)


def package_units(path: str, big_endian: bool, problems: list[str]) -> set[int] | None:
    """The dwo ids in the index of a package; None, with a problem, if it cannot be read."""
    try:
        with ElfImage.open(path) as package:
            index = read_index(package.contents(".debug_cu_index") or b"", big_endian)
            return set(index.signature.tolist())
    except (InputError, PackageError, OSError) as error:
        problems.append(f"{path}: {getattr(error, 'problem', None) or os_error_text(error)}")
        return None


def find_splits(sources: DwarfSources, image: ElfImage, companions: Companions | None, problems: list[str]) -> Splits:
    """Find split units by dwo id in packages and in the named files (R81, matching dwo ids; R88, search for split
    units)."""
    units = sources.main.reader.units
    rows = np.flatnonzero(sources.is_skeleton)
    signature = np.asarray(units.signature)
    packed: set[int] = set()
    for path in companions.packages() if companions is not None else ():
        packed |= package_units(path, image.big_endian, []) or set()
    known: dict[str, set[int]] = {}
    if len(rows) > MAX_SPLIT:
        problems.append(f"of {len(rows)} split units only {MAX_SPLIT} are searched for")
    found, missing, used = 0, list[str](), set[str]()
    for row in rows[:MAX_SPLIT].tolist():
        dwo_id = int(signature[row])
        if dwo_id in packed:
            found += 1
            continue
        name, comp_dir = (os.fsdecode(sources.string(each[row])) for each in (units.dwo_name, units.comp_dir))
        for path in companions.split(name, comp_dir) if companions is not None else ():
            if path not in known:
                known[path] = split_ids(path, image.big_endian)
            if dwo_id in known[path]:
                found += 1
                used.add(path)
                break
        else:
            if len(missing) < MAX_MISSING:
                missing.append(name)
    return Splits(len(rows), found, missing, len(used))


def split_ids(path: str, big_endian: bool) -> set[int]:
    """The dwo ids of the units in a `.dwo` file, none if it cannot be read."""
    try:
        with ElfImage.open(path) as image:
            if image.big_endian != big_endian:
                return set()
            units = read_units(split_sections(image, b"".join))[0].units
    except (InputError, OSError):
        return set()
    right = np.isin(np.asarray(units.kind), SPLIT_UNITS) & (np.asarray(units.bad) == 0)
    return set(np.asarray(units.signature)[right].tolist())


def has_bytes(section: Section | None) -> bool:
    """Whether there is such a section, with contents."""
    return section is not None and section.has_bytes and section.size > 0

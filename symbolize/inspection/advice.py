"""A sentence on what symbolize gets from a binary, and how to get what is missing."""

import os

from symbolize.inspection.model import Elf
from symbolize.inspection.related import CODE_HERE, DEBUG_LINK, HAS_DWARF

MOST = 0.5
"""A smaller share of described code is reported. Parts of each program have no debug information."""
ALL = "functions, lines and inlined calls"


def conclude(elf: Elf) -> str:
    """One sentence: what symbolize gets from the file, with what was found for it, and how to get what is missing."""
    debug, splits = elf.debug, elf.splits
    if debug is not None and debug.section.endswith(".dwo"):
        return "holds split units: symbolize reads it beside the binary that names them, in the same folders"
    if elf.is_supplementary or (debug is not None and debug.units == debug.partial > 0):
        return "is a supplementary file: symbolize reads it beside the files that name it, in the same folders"
    if debug is not None and debug.units > debug.unreadable:
        text = f"symbolize gets {ALL} from it"
        if debug.described is not None and debug.described < MOST:
            text += f", but only of {100 * debug.described:.0f} % of the code; other parts were built without -g"
        if splits is not None and splits.found < splits.needed:
            text = (
                f"symbolize gets functions and lines from it, but inlined calls only of those split units that are "
                f"there: {splits.needed - splits.found} of {splits.needed} are missing; add their .dwo files or the "
                ".dwp to the folders with binaries"
            )
        lost = [link for link in elf.links if link.section != DEBUG_LINK and not link.resolved]
        if lost:
            text += f"; names in the supplementary file {os.path.basename(lost[0].name)} are missing"
            text += f": {fetch('debuginfo', lost[0].identifier)}" if lost[0].section == ".gnu_debugaltlink" else ""
        if elf.code == "elsewhere" and not any(CODE_HERE in other.offers for other in elf.same_build):
            wanted = f": {fetch('executable', elf.build_id)}" if elf.build_id else ""
            text += f"; add the binary itself if addresses cannot be placed without it{wanted}"
        return text
    better = next((other.path for other in elf.same_build if HAS_DWARF in other.offers), "")
    if better:
        return f"symbolize gets {ALL} from {better}, which has the same build id"
    linked = next((link.resolved for link in elf.links if HAS_DWARF in link.offers), "")
    if linked:
        return f"symbolize gets {ALL} from {linked}, its debug file"
    if elf.go is not None:
        # The trees of inlined calls are beside the table.
        what = ALL if elf.code == "here" else "functions and lines"
        return f"symbolize gets {what} from the line table of Go in it"
    return f"symbolize gets {poor(elf)}; {how_to_get(elf)}"


def poor(elf: Elf) -> str:
    """What there is without debug information."""
    others = {offer for each in elf.same_build for offer in each.offers}
    others |= {offer for link in elf.links for offer in link.offers}
    tables = {name for name, count in elf.functions.items() if count} | others
    if tables & {".symtab", ".gnu_debugdata"}:
        return "functions, but no lines and no inlined calls"
    return "exported functions only" if ".dynsym" in tables else "no names from it"


def how_to_get(elf: Elf) -> str:
    """How to get the debug information."""
    link = next((link for link in elf.links if link.section == DEBUG_LINK), None)
    named = f" {link.name}" if link is not None else ""
    if elf.build_id:
        return f"add its debug file{named}: {fetch('debuginfo', elf.build_id)}"
    return f"add its debug file{named} to the folders with binaries, or build it with -g"


def fetch(kind: str, build_id: str) -> str:
    """The command that fetches a file by its build id."""
    return f"debuginfod-find {kind} {build_id}"

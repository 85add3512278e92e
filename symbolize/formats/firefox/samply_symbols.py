"""The names that were found for a profile as samply's file of symbols beside it, which `samply load` takes (R497,
symbols for samply)."""

import json
import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from symbolize.core.arrays import NONE
from symbolize.formats.files import write_pieces
from symbolize.formats.firefox.forest import encoded
from symbolize.formats.firefox.found import FoundSites, SiteNames
from symbolize.formats.firefox.reader import forest_of

BREAKPAD_ID: Final = re.compile("([0-9a-f]{32})([0-9a-f]{0,8})")
"""The digits of a UUID, and of an age."""
MOST: Final = (1 << 32) - 1
"""Of addresses, sizes and lines: samply ends if it cannot read an entry."""
PARTS: Final = 8, 12, 16, 20, 32
UNKNOWN: Final = "UNKNOWN"
"""The first of the texts."""


class SamplySymbols(FoundSites):
    """Symbols for samply. Each address has an entry of its own, because samply shows the frames of the entry for it."""

    def write(self, destination: str | os.PathLike[str] | BinaryIO) -> None:
        """Write the symbols to a path, to `-` (standard output) or to a binary file object. Raises OutputError."""
        write_pieces(self.pieces(), destination, is_binary=False)

    def pieces(self) -> Iterator[bytes]:
        """The file."""
        texts: dict[str, int] = {UNKNOWN: 0}
        sites: dict[int, list[tuple[int, SiteNames]]] = {}
        places = forest_of(self.document).places()
        for site, names in self.found.items():
            library, address = places[site]
            if library != NONE and max(address, names.symbol) <= MOST:
                sites.setdefault(library, []).append((address, names))
        data = []
        for library, found in sorted(sites.items()):
            own = self.document.libraries[library]
            if not (own_id := debug_id(own.breakpad_id)):
                continue
            found.sort(key=lambda each: each[0])
            data.append(
                {
                    "debug_name": encoded(own.debug_name).decode(),
                    "debug_id": own_id,
                    "code_id": encoded(own.build_id).decode(),
                    "symbol_table": [entry(names, texts) for _, names in found],
                    "known_addresses": [[address, row] for row, (address, _) in enumerate(found)],
                }
            )
        yield json.dumps({"string_table": list(texts), "data": data}, separators=(",", ":")).encode() + b"\n"


def entry(names: SiteNames, texts: dict[str, int]) -> dict[str, Any]:
    """A symbol with the frames at an address, innermost first, whose texts are added."""

    def row(text: str) -> int:
        return texts.setdefault(text, len(texts))

    frames = [
        {
            "function": row(each.name),
            "file": row(each.file) if each.file else None,
            "line": each.line if 0 < each.line <= MOST else None,
        }
        for each in reversed(names.frames)
    ]
    size = {"size": names.size} if 0 < names.size <= MOST else {}
    return {"rva": names.symbol} | size | {"symbol": row(names.frames[0].name), "frames": frames}


def debug_id(breakpad_id: str) -> str:
    """A Breakpad id as the crate debugid writes it, empty for what is none."""
    parts = BREAKPAD_ID.fullmatch(breakpad_id.lower())
    if parts is None:
        return ""
    digits, age = parts.groups()
    uuid = "-".join(digits[begin:end] for begin, end in zip((0, *PARTS[:-1]), PARTS, strict=True))
    return uuid + (f"-{age.lstrip('0')}" if age.strip("0") else "")

"""What the Perl pprof writes with `--raw`: a list of names, and behind it a profile of any kind (R339, symbolized
profiles)."""

import re
from collections.abc import Callable
from typing import Final

import numpy as np

from symbolize.formats.legacy.text import Text
from symbolize.formats.samples import Frame, name_locations, note_names
from symbolize.profile.model import Profile

TITLE: Final = re.compile(rb"--- *symbolz?\b")
SYMBOL: Final = re.compile(rb"0x0*([0-9a-fA-F]{1,16})\s+(.+)\Z", re.DOTALL)
BINARY: Final = re.compile(rb"binary\s*=\s*(.*)\Z", re.DOTALL)
SEPARATOR: Final = b"--"
"""Between the names at an address, callers before what is inlined into them."""


def load(text: Text, load_rest: Callable[[Text], Profile]) -> Profile:
    """Read the list, and what is behind it with `load_rest`."""
    names: dict[int, list[Frame]] = {}
    binary = b""
    _, at = text.line_at(text.begin)
    while at < len(text.data):
        line, behind = text.line_at(at)
        at = behind
        if line.startswith(b"---"):
            break
        if found := SYMBOL.match(line):
            names[int(found[1], 16)] = [Frame(each) for each in reversed(found[2].split(SEPARATOR)) if each]
        elif found := BINARY.match(line):
            binary = found[1]
    profile = load_rest(text._replace(begin=at))
    if names and not len(profile.locations.lines):
        # The list has callers by an address in the call, and leaves by the one that was recorded.
        name_locations(profile, lambda address: names.get(address) or names.get(address + 1) or ())
        note_names(profile)
    if binary and not profile.mappings.filename.any():
        profile.mappings.filename = np.full(len(profile.mappings), profile.strings.add(binary), np.int32)
    return profile

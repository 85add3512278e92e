"""Profiles of the Firefox Profiler, of samply too.

`slabs` make a container one text, `document` is the text with its values, found when they are asked for; `tables` says
where stacks and their frames are in each version, `gecko` in what a browser saves. `reader` makes a profile of them,
with the locations of a `forest`; `lines` puts names into the text, whose `raw_tables` are changed; and `writer` writes
any profile's stacks.
"""

from typing import Final

KEYS: Final = (
    b'"markerSchema"',
    b'"breakpadId"',
    b'"debugName"',
    b'"stackwalk"',
    b'"shutdownTime"',
    b'"pausedRanges"',
)
"""Of which a profile has two, and no other JSON has."""
SLABS: Final = b"\xdc\xdfJSLB\x01\x00"
PROCESSED: Final = b'"preprocessedProfileVersion"'


def matches(head: bytes) -> bool:
    """Whether what begins with `head` is a profile of the Firefox Profiler: JSON with keys that only these have, or a
    container of slabs."""
    if head.startswith(SLABS):
        return True
    return head.lstrip().startswith(b"{") and (PROCESSED in head or sum(key in head for key in KEYS) > 1)

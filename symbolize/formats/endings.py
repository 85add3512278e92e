"""What the names of profiles end in."""

from typing import Final

ENDINGS: Final = (
    *(".gz", ".zst", ".lz4", ".proto", ".heap", ".data", ".trace"),
    *(".folded", ".collapsed", ".txt"),
    *(".pb", ".symbolized", ".prof", ".pprof", ".perfetto-trace", ".pftrace", ".otlp", ".json"),
)
"""In the order in which they are taken off: what a profile was packed with, then what it is. `.heap` in `x.heap.pb.gz`
tells it from `x.cpu.pb.gz` and stays."""


def without_endings(name: str) -> str:
    """The base name of a profile without the endings that profiles have; never empty unless `name` is."""
    for ending in ENDINGS:
        name = name.removesuffix(ending) or name
    return name

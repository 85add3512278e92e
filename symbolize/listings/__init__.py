"""Symbols from sources that list functions themselves, as columns; functions over buffers, no files."""

from symbolize.listings.breakpad import debug_id, read_breakpad, read_module
from symbolize.listings.jitdump import process_of, read_jitdump
from symbolize.listings.kallsyms import Kallsyms, read_kallsyms
from symbolize.listings.listing import Listing
from symbolize.listings.perf_map import read_perf_map

__all__ = [
    "Kallsyms",
    "Listing",
    "debug_id",
    "process_of",
    "read_breakpad",
    "read_jitdump",
    "read_kallsyms",
    "read_module",
    "read_perf_map",
]

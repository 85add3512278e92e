"""Short ways from a table to names and places, innermost frame only."""

from collections.abc import Iterable, Sequence

import numpy as np

from symbolize.profile.attachments import SampleTimes
from symbolize.resolve.mapping_record import LocationTimes
from symbolize.resolve.providers.jit import look_up
from symbolize.symbol_files import CodeList
from symbolize.symbols import SymbolListBinary
from symbolize.symbols.table import SymbolTable
from tests.support.lookup import frames_of


def names_at(table: SymbolTable, addresses: Iterable[int]) -> list[bytes]:
    """The name at each of the ascending addresses, empty where there is none."""
    return [name for name, _, _ in places_at(table, addresses)]


def places_at(table: SymbolTable, addresses: Iterable[int]) -> list[tuple[bytes, bytes, int]]:
    """Name, file and line at each of the ascending addresses."""
    found = [frames[0] if frames else None for frames in frames_of(table, addresses)]
    return [(f.name.encode(), f.file.encode(), f.line) if f else (b"", b"", 0) for f in found]


def code_at(
    code: CodeList, addresses: Sequence[int], at: Sequence[int] | None = None
) -> list[tuple[bytes, bytes, int]]:
    """Name, file and line of compiled code at each of some addresses, `at` times of CLOCK_MONOTONIC (0: unknown)."""
    clock = SampleTimes(is_monotonic=True)
    times = LocationTimes(np.array(at, np.uint64), clock) if at is not None else None
    found = look_up(code, np.array(addresses, np.uint64), times)
    table = SymbolListBinary("", code.listing).table()
    return [places_at(table, [place])[0] for place in found.places.tolist()]

"""Which mapping the addresses without one belong to."""

import numpy as np

from symbolize.core.arrays import NONE, TOP, Int32, UInt64
from symbolize.profile.model import Mappings, Profile


def assign_mappings(profile: Profile) -> int:
    """Give locations without a mapping the first one that holds their address; how many got one.

    Address 0 is no address, and a mapping of everything (what a loader makes of addresses outside all others)
    takes none.
    """
    locations = profile.locations
    orphans = np.flatnonzero((locations.mapping == NONE) & (locations.address != 0))
    if not len(orphans) or not len(profile.mappings):
        return 0
    owner = owners(profile.mappings, locations.address[orphans])
    locations.mapping = locations.mapping.copy()
    locations.mapping[orphans] = owner
    return int((owner != NONE).sum())


def owners(mappings: Mappings, address: UInt64) -> Int32:
    """The first mapping that holds each address, NONE where none does."""
    owner = np.full(len(address), NONE, np.int32)
    rows = np.flatnonzero((mappings.start != 0) | ((mappings.limit != 0) & (mappings.limit != TOP)))
    order = rows[np.argsort(mappings.start[rows], kind="stable")]
    start, limit = mappings.start[order], mappings.limit[order]
    if not len(rows):
        return owner
    if (limit[:-1] <= start[1:]).all():
        place = np.searchsorted(start, address, side="right") - 1
        inside = (place >= 0) & (address < np.append(limit, np.uint64(0))[place])
        owner[inside] = order[place[inside]]
    else:
        for row in rows.tolist():
            owner[(owner == NONE) & (address >= mappings.start[row]) & (address < mappings.limit[row])] = row
    return owner


def covers_everything(start: int, limit: int) -> bool:
    """Whether a mapping is the stand-in for addresses outside all mappings: 0 up to the end, or 0 up to 0."""
    return start == 0 and limit in (0, TOP)

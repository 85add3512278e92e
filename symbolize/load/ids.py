# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="valid-type"
"""Rows by the 64-bit ids that files give them."""

import cython

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@cython.cclass
class Ids:
    """Rows by id: ids 1, 2, 3, ... by arithmetic, any others by open addressing (`keys` 0: a free slot).

    The multiplier comes from the caller, at random, so that no file can choose ids that collide.
    """

    def __init__(
        self, dense: cython.ulonglong, keys: cython.ulonglong[::1], rows: cython.int[::1], mixer: cython.ulonglong
    ) -> None:
        bits: cython.int = 0
        while (1 << bits) < len(keys):
            bits += 1
        self.dense = dense
        self.keys = keys
        self.rows = rows
        self.mixer = mixer | 1
        self.shift = 64 - bits

    def insert(self, ids: cython.const[cython.ulonglong][::1]) -> cython.Py_ssize_t:
        """Enter every id with its row; the row of the first id that is there already, or -1."""
        row: cython.Py_ssize_t
        place: cython.Py_ssize_t
        repeated: cython.Py_ssize_t = -1
        with cython.nogil:
            for row in range(ids.shape[0]):
                place = slot(self, ids[row])
                if self.keys[place] != 0:
                    repeated = row
                    break
                self.keys[place] = ids[row]
                self.rows[place] = row
        return repeated


def slot(ids: Ids, value: cython.ulonglong) -> cython.Py_ssize_t:
    """Where `value` stands in the table, or the free slot where it would."""
    mixed: cython.ulonglong = (value * ids.mixer) & MASK64
    mixed = ((mixed ^ (mixed >> 32)) * ids.mixer) & MASK64
    place: cython.Py_ssize_t = mixed >> ids.shift
    while ids.keys[place] != 0 and ids.keys[place] != value:
        place += 1
        if place == ids.keys.shape[0]:
            place = 0
    return place


def row_of(ids: Ids, value: cython.ulonglong) -> cython.int:
    """The row with id `value`, or -1."""
    place: cython.Py_ssize_t
    if 1 <= value <= ids.dense:
        return cython.cast(cython.int, value - 1)
    if value == 0 or ids.keys.shape[0] == 0:
        return -1
    place = slot(ids, value)
    return ids.rows[place] if ids.keys[place] != 0 else -1

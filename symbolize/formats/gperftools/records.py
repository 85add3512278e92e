# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""The records of a gperftools CPU profile, walked into flat arrays.

A record is a count, a depth and `depth` addresses, leaf first; the record (0, 1, 0) ends them (gperftools
profiledata.cc). Both passes see the file as an array of 64-bit integers: word size and byte order are no concern here.
"""

from typing import Any

import cython
import numpy as np

from symbolize.core.arrays import Int32, UInt64
from symbolize.core.interning import random_mixer

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)

FIRST_BITS = 14
"""A new table of addresses has 2**FIRST_BITS slots; it grows fourfold whenever half of them are taken."""


def measure(
    words: cython.const[cython.ulonglong][::1],  # type: ignore[valid-type]
    begin: cython.Py_ssize_t,
) -> tuple[int, int, int, bool]:
    """Count the whole records from word `begin` on.

    Returns the number of records, the number of their addresses, the word at which the walk stopped, and whether it
    stopped behind an end marker. Otherwise it stopped at the end, or at the first record that does not fit before it.
    """
    at: cython.Py_ssize_t = begin
    size: cython.Py_ssize_t = words.shape[0]
    left: cython.ulonglong
    depth: cython.ulonglong
    records: cython.Py_ssize_t = 0
    addresses: cython.Py_ssize_t = 0
    ended: cython.bint = False
    with cython.nogil:
        while not ended and size - at >= 2:
            left = size - at - 2
            depth = words[at + 1]
            if depth > left:
                break
            ended = words[at] == 0 and depth == 1 and words[at + 2] == 0
            if not ended:
                records += 1
                addresses += depth
            at += 2 + depth
    return records, addresses, at, bool(ended)


def fill(
    words: cython.const[cython.ulonglong][::1],  # type: ignore[valid-type]
    begin: cython.Py_ssize_t,
    offsets: cython.longlong[::1],
    counts: cython.ulonglong[::1],
    addresses: cython.ulonglong[::1],
    adjusts: cython.bint,
) -> None:
    """Write the records from word `begin` on, as many as `counts` holds, into the columns that `measure` sized.

    Where `adjusts` says so every address but the leaf is a return address and loses 1, modulo 2**64, so that it is
    inside the call (R131, one adjustment). So a call at the end of a function belongs to that function (R129, return
    addresses); one byte is enough on all processors (R132, one byte back). The leaf was executed, and is used as it is
    (R130, exact addresses).
    """
    at: cython.Py_ssize_t = begin
    records: cython.Py_ssize_t = counts.shape[0]
    record: cython.Py_ssize_t
    filled: cython.Py_ssize_t = 0
    depth: cython.Py_ssize_t
    i: cython.Py_ssize_t
    offsets[0] = 0
    with cython.nogil:
        for record in range(records):
            counts[record] = words[at]
            depth = words[at + 1]
            at += 2
            for i in range(depth):
                addresses[filled + i] = (words[at + i] - (adjusts and i > 0)) & MASK64
            at += depth
            filled += depth
            offsets[record + 1] = filled


def intern(
    addresses: cython.const[cython.ulonglong][::1],  # type: ignore[valid-type]
    begin: cython.Py_ssize_t,
    indices: cython.int[::1],
    slots: cython.int[::1],
    distinct: cython.ulonglong[::1],
    known: cython.Py_ssize_t,
    multiplier: cython.ulonglong,
    bits: cython.int,
) -> tuple[int, int]:
    """Write the index in `distinct` of each address from `begin` on, and add new ones after the first `known`.

    `slots` is an open hash table of 2**`bits` indices plus 1 (0: free). Returns how far it came, which is short of the
    end when `distinct` is full, and how many addresses are known then.
    """
    at: cython.Py_ssize_t = begin
    size: cython.Py_ssize_t = addresses.shape[0]
    capacity: cython.Py_ssize_t = distinct.shape[0]
    mask: cython.Py_ssize_t = slots.shape[0] - 1
    slot: cython.Py_ssize_t
    address: cython.ulonglong
    with cython.nogil:
        while at < size:
            address = addresses[at]
            slot = ((address * multiplier) & MASK64) >> (64 - bits)
            while slots[slot] != 0 and distinct[slots[slot] - 1] != address:
                slot = (slot + 1) & mask
            if slots[slot] == 0:
                if known == capacity:
                    break
                distinct[known] = address
                known += 1
                slots[slot] = known
            indices[at] = slots[slot] - 1
            at += 1
    return at, known


def number(addresses: UInt64) -> tuple[UInt64, Int32]:
    """The distinct addresses in order of first use, and the index among them of every address."""
    # A multiplier that no file can foresee: none can choose addresses that all fall into one slot.
    multiplier = random_mixer() | 1
    bits: Any = FIRST_BITS
    indices = np.empty(len(addresses), np.int32)
    distinct = np.empty(0, np.uint64)
    done: Any = 0
    while True:
        known: Any = len(distinct)
        slots = np.zeros(1 << bits, np.int32)
        larger = np.empty(1 << (bits - 1), np.uint64)
        table = slots.data, larger.data
        if known:
            intern(distinct.data, 0, np.empty(known, np.int32).data, *table, 0, multiplier, bits)
        done, known = intern(addresses.data, done, indices.data, *table, known, multiplier, bits)
        distinct = larger[:known].copy()
        if done == len(addresses):
            return distinct, indices
        bits += 2

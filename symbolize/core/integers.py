"""Integers of fixed size: as they are in buffers, and hashed. Compiled modules have these from `integers.pxd`."""

from collections.abc import Sequence


def unsigned_at(data: Sequence[int], at: int, size: int, big: bool) -> int:
    """The integer of `size` bytes, at most 8, at `at`, big-endian if `big`. Callers have checked the bounds."""
    return int.from_bytes(bytes(data[at : at + size]), "big" if big else "little")


def folded_product(a: int, b: int) -> int:
    """The upper half of the product of two numbers of 64 bits, xor the lower half: all bits depend on all bits of both
    numbers."""
    product = int(a) * int(b)  # numbers of numpy would overflow
    return (product ^ product >> 64) & 0xFFFFFFFFFFFFFFFF

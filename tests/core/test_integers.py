"""Integers in buffers, and the product that hashes are made of. Compiled modules are compared with interpreted ones
elsewhere."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from symbolize.core.integers import folded_product, unsigned_at

WORDS = st.integers(0, (1 << 64) - 1)


@given(st.binary(min_size=8, max_size=32), st.integers(0, 24), st.integers(1, 8), st.booleans())
def test_unsigned_at(data: bytes, at: int, size: int, big: bool) -> None:
    """The bytes at a position in either order."""
    at = min(at, len(data) - size)
    expected = sum(byte << 8 * i for i, byte in enumerate(data[at : at + size][:: -1 if big else 1]))
    assert unsigned_at(data, at, size, big) == expected


@given(WORDS, WORDS)
def test_folded_product_is_of_64_bits(a: int, b: int) -> None:
    """Both halves count, whichever number comes first."""
    assert folded_product(a, b) == folded_product(b, a) == (a * b >> 64) ^ (a * b % (1 << 64))


def test_numbers_of_numpy() -> None:
    """Interpreted, positions that come out of arrays do not overflow."""
    a, b = 0x2C06_2DA1_4F5B_8C1A, 0x64B6_5C64_6B39_9C39
    assert folded_product(np.int64(a), b) == folded_product(a, b)


def test_nobody_knows_what_a_bit_changes() -> None:
    """The same change of a word changes the product by something else for each multiplier, also that of its top bit,
    which in the lower half of a product is always the top bit."""
    for bit in (1, 1 << 63):
        changes = {folded_product(7, m) ^ folded_product(7 ^ bit, m) for m in range(1 << 62 | 1, 1 << 63, 1 << 52)}
        assert len(changes) > 1000

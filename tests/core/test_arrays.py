"""Arithmetic on arrays in CSR form."""

import numpy as np
import pytest

from symbolize.core.arrays import offsets_of, ranges


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.bool_])
def test_offsets(dtype: type) -> None:
    """Offsets are 64 bits wide, whatever the lengths are."""
    offsets = offsets_of(np.array([1, 0, 1, 1], dtype))
    assert offsets.dtype == np.int64
    assert offsets.tolist() == [0, 1, 1, 2, 3]
    assert offsets_of(np.zeros(0, dtype)).tolist() == [0]


def test_ranges() -> None:
    """Ranges may be empty, overlap and come in any order."""
    assert ranges(np.array([7, 100, 3, 8]), np.array([2, 0, 3, 1])).tolist() == [7, 8, 3, 4, 5, 8]
    assert ranges(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []

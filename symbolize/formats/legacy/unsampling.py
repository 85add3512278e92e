"""What was allocated, estimated from the allocations that were sampled."""

import math

import numpy as np

from symbolize.core.arrays import Bool, Int64, distinct_inverse
from symbolize.formats.legacy.text import scaled


def quotient(sizes: Int64, counts: Int64) -> Int64:
    """Sizes by counts, truncated towards zero as Go divides, 0 where there is no count."""
    found = np.abs(sizes) // np.maximum(np.abs(counts), 1)
    return np.where(counts == 0, 0, np.where((sizes < 0) == (counts < 0), found, -found))


def unsampled(counts: Int64, sizes: Int64, rate: int, fits: Bool) -> tuple[Int64, Int64]:
    """What was allocated, by the objects of which every one was sampled with a probability that its size decides
    (R331, sampled heaps). Where a value exceeds 64 bits, `fits` becomes false.

    Sizes of no objects are kept (R333, sizes without objects). An allocation of s bytes was sampled with the
    probability 1 − exp(−s/rate), so objects and bytes are multiplied by the inverse of that for the mean size of a row,
    in floating point, and truncated towards zero, as pprof does; with a negative count the mean size is without sign.
    Heaps of mmap calls have bytes of no objects (gperftools issue 953), which pprof refuses.
    """
    is_scaled = (counts != 0) & (sizes != 0)
    if rate <= 1:
        return counts, sizes
    scale = np.ones(len(counts), np.float64)
    mean = np.abs(sizes[is_scaled].astype(np.float64) / counts[is_scaled].astype(np.float64))
    means, which = distinct_inverse(mean)
    factors = [1 - math.exp(-each / rate) for each in means.tolist()]
    scale[is_scaled] = np.array([1 / each if each else math.inf for each in factors], np.float64)[which]
    with np.errstate(over="ignore"):
        scaled_counts, scaled_sizes = scaled(counts, scale, fits), scaled(sizes, scale, fits)
    # Objects of no size are none: nothing tells how many of them there were.
    return np.where(is_scaled, scaled_counts, 0), np.where(is_scaled | (counts == 0), scaled_sizes, 0)

cimport cython

include "numbers.pxi"
from symbolize.core.integers cimport unsigned_at

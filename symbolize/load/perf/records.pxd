cimport cython

include "numbers.pxi"

# The numbers of constants.py as C constants, which tests/formats/test_perfetto_tags.py checks.
cdef enum:
    MISSING = -0x1
    EMPTY = -0x2
    MAX_FOLLOWERS = 0x40
    MAX_DEPTH = 0x1000
    MAX_KEPT = 0x400

cdef extern from *:
    """
    #define MASK32 0xffffffffULL
    #define MAX_INT64 0x7fffffffffffffffULL
    """
    const unsigned long long MASK32
    const unsigned long long MAX_INT64

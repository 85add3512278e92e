include "../../proto/profile_tags.pxi"
from symbolize.core.encoder cimport Encoder
from symbolize.formats.pprof.columns cimport (
    PprofFunctions,
    PprofLabels,
    PprofLines,
    PprofLocations,
    PprofMappings,
    PprofSamples,
)


cdef class Extra:
    cdef const long long[::1] offsets
    cdef const unsigned char[::1] raw
    cdef void put(self, Encoder out, Py_ssize_t row) noexcept nogil

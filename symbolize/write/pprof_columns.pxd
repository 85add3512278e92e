cdef class Sink:
    cdef unsigned char[::1] out
    cdef Py_ssize_t pos


cdef class Extra:
    cdef const long long[::1] offsets
    cdef const unsigned char[::1] raw


cdef class Samples:
    cdef const long long[::1] offsets
    cdef const int[::1] stack
    cdef const long long[::1] values
    cdef Py_ssize_t width
    cdef const long long[::1] label_offsets
    cdef const int[::1] keys
    cdef const int[::1] texts
    cdef const long long[::1] numbers
    cdef const int[::1] units
    cdef Extra extra
    cdef Py_ssize_t stack_size(self, Py_ssize_t row) noexcept nogil
    cdef Py_ssize_t values_size(self, Py_ssize_t row) noexcept nogil
    cdef Py_ssize_t label_size(self, Py_ssize_t label) noexcept nogil


cdef class Locations:
    cdef const unsigned long long[::1] addresses
    cdef const int[::1] mappings
    cdef const unsigned char[::1] folded
    cdef const long long[::1] offsets
    cdef const int[::1] functions
    cdef const long long[::1] lines
    cdef const long long[::1] columns
    cdef Extra extra
    cdef Py_ssize_t line_size(self, Py_ssize_t line) noexcept nogil


cdef class Mappings:
    cdef const unsigned long long[:, ::1] numbers
    cdef const int[:, ::1] texts
    cdef const unsigned char[:, ::1] flags
    cdef Extra extra


cdef class Functions:
    cdef const int[::1] names
    cdef const int[::1] system_names
    cdef const int[::1] filenames
    cdef const long long[::1] start_lines
    cdef Extra extra


cdef unsigned long long as_unsigned(long long value) noexcept nogil
cdef Py_ssize_t size_of(unsigned long long value) noexcept nogil
cdef Py_ssize_t field_size(unsigned long long value) noexcept nogil
cdef Py_ssize_t message_size(Py_ssize_t size) noexcept nogil
cdef void put(Sink sink, unsigned long long value) noexcept nogil
cdef void put_field(Sink sink, int tag, unsigned long long value) noexcept nogil
cdef Py_ssize_t extra_size(Extra extra, Py_ssize_t row) noexcept nogil
cdef void put_extra(Sink sink, Extra extra, Py_ssize_t row) noexcept nogil

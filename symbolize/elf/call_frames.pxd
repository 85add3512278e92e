from symbolize.core.cursor cimport Cursor

cdef class FrameReader:
    cdef Cursor c
    cdef unsigned long long base
    cdef int address_size
    cdef bint is_debug
    cdef Py_ssize_t next
    cdef Py_ssize_t field
    cdef Py_ssize_t owner
    cdef Py_ssize_t cie
    cdef int encoding
    cdef int size
    cdef unsigned long long code_factor
    cdef long long data_factor
    cdef unsigned long long return_register
    cdef bint is_signal
    cdef bint has_data
    cdef Py_ssize_t initial
    cdef Py_ssize_t initial_end
    cdef unsigned long long begin
    cdef unsigned long long end
    cdef Py_ssize_t program
    cdef Py_ssize_t program_end

    cdef bint header(self, Py_ssize_t position) noexcept nogil
    cdef bint enter(self, Py_ssize_t position) noexcept nogil
    cdef bint enter_cie(self, Py_ssize_t position) noexcept nogil
    cdef bint description(self) noexcept nogil
    cdef bint augmentation(self, Py_ssize_t first, int letters) noexcept nogil
    cdef bint choose(self, int encoding) noexcept nogil
    cdef unsigned long long pointer(self, int encoding) noexcept nogil
    cdef unsigned long long address(self) noexcept nogil

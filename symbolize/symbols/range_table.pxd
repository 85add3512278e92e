cdef class InlineTree:
    cdef int[::1] slots
    cdef public int[::1] parent
    cdef public int[::1] function
    cdef public int[::1] file
    cdef public unsigned int[::1] line
    cdef public unsigned int[::1] column
    cdef public Py_ssize_t count
    cdef Py_ssize_t limit
    cdef public bint cut_off
    cdef unsigned long long mixer

    cdef grow(self)
    cdef long long row(self, long long parent, long long function, long long file, unsigned long long line, unsigned long long column) noexcept nogil


cdef class LayerColumns:
    cdef const unsigned long long[::1] starts
    cdef const long long[::1] numbers


cdef class DecodedNodes:
    cdef const long long[::1] parents
    cdef const int[::1] functions
    cdef const int[::1] files
    cdef const unsigned int[::1] lines
    cdef const unsigned int[::1] columns


cdef class TableNodes:
    cdef const int[::1] parents
    cdef const int[::1] functions
    cdef const int[::1] files
    cdef const unsigned int[::1] lines
    cdef const unsigned short[::1] columns


cdef class TableRanges:
    cdef const unsigned long long[::1] starts
    cdef const unsigned long long[::1] offsets
    cdef const unsigned char[::1] data
    cdef long long node_count
    cdef long long file_count


cdef class LeafColumns:
    cdef int[::1] nodes
    cdef int[::1] files
    cdef unsigned int[::1] lines
    cdef unsigned int[::1] columns

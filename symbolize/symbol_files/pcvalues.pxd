from symbolize.core.cursor cimport Cursor

cdef class PcValues:
    cdef Cursor c
    cdef unsigned long long unit
    cdef unsigned long long until
    cdef long long value
    cdef bint live
    cdef bint first

    cdef void open(self, Py_ssize_t offset, unsigned long long entry) noexcept nogil
    cdef void step(self) noexcept nogil

cdef class PcValueWalk:
    cdef PcValues files
    cdef PcValues lines
    cdef PcValues inlines
    cdef Cursor units
    cdef Cursor trees
    cdef bint old_trees
    cdef long long budget
    cdef Py_ssize_t row_count
    cdef Py_ssize_t segment_count
    cdef Py_ssize_t node_count
    cdef Py_ssize_t bad_trees
    cdef Py_ssize_t first_row
    cdef Py_ssize_t first_segment
    cdef Py_ssize_t tree
    cdef Py_ssize_t tree_end
    cdef long long unit_files
    cdef unsigned long long entry
    cdef unsigned long long end
    cdef const unsigned char[::1] memory
    cdef unsigned long long[::1] row_start
    cdef long long[::1] row_file
    cdef unsigned int[::1] row_line
    cdef unsigned long long[::1] start
    cdef int[::1] index
    cdef int[::1] node
    cdef int[::1] parent
    cdef long long[::1] name
    cdef long long[::1] call_file
    cdef unsigned int[::1] call_line
    cdef long long[::1] decl_file
    cdef unsigned int[::1] decl_line
    cdef int[::1] known
    cdef int[::1] stamp
    cdef int[::1] stack

    cdef void open(self, Py_ssize_t files, Py_ssize_t lines, Py_ssize_t inlines) noexcept nogil
    cdef void advance(self, unsigned long long pc) noexcept nogil
    cdef unsigned long long next_change(self, unsigned long long bound) noexcept nogil
    cdef void fill(self, unsigned long long bound) noexcept nogil
    cdef void settle(self, int function) noexcept nogil
    cdef long long file_of(self, long long number) noexcept nogil
    cdef Py_ssize_t entry_at(self, unsigned long long[::1] starts, Py_ssize_t first, Py_ssize_t count, unsigned long long pc) noexcept nogil
    cdef int parent_of(self, int index) noexcept nogil
    cdef int node_of(self, int index, int function) noexcept nogil
    cdef void add_node(self, int index, int parent) noexcept nogil

from symbolize.core.interning cimport Lists, Tuples


cdef class Common:
    cdef object trace
    cdef unsigned long long mixer
    cdef bytes data
    cdef const unsigned char[::1] view
    cdef Py_ssize_t pos
    cdef Py_ssize_t end
    cdef bint bad
    cdef unsigned long long tag
    cdef unsigned long long value
    cdef Py_ssize_t begin
    cdef unsigned long long[::1] numbers
    cdef Py_ssize_t numbers_count
    cdef unsigned long long machine
    cdef unsigned long long timestamp
    cdef unsigned long long clock
    cdef bint has_time
    cdef readonly Tuples frames
    cdef readonly Lists stacks
    cdef Py_ssize_t max_frames
    cdef Py_ssize_t max_stacks
    cdef Py_ssize_t max_items
    cdef Py_ssize_t room
    cdef Py_ssize_t id_room
    cdef Py_ssize_t counter_room
    cdef readonly Py_ssize_t damaged
    cdef readonly Py_ssize_t too_many

    cdef start(self, bytes data)
    cdef unsigned long long varint(self) noexcept
    cdef bint field(self) noexcept
    cdef Py_ssize_t enter(self) noexcept
    cdef void leave(self, Py_ssize_t outer) noexcept
    cdef bint forgive(self) noexcept
    cdef bytes content(self)
    cdef bytes text(self, Py_ssize_t begin, Py_ssize_t end)
    cdef take_numbers(self, Py_ssize_t limit)
    cdef take_run(self, unsigned long long tag, Py_ssize_t limit)
    cdef add_number(self, unsigned long long value)

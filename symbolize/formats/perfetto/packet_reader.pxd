from symbolize.core.interning cimport Lists, Tuples
from symbolize.formats.perfetto.wire cimport SMALL_FIELDS, MessageReader


cdef class PacketReader(MessageReader):
    cdef object trace
    cdef unsigned long long mixer
    cdef unsigned long long machine
    cdef unsigned long long timestamp
    cdef unsigned long long clock
    cdef bint has_time
    cdef readonly Tuples frames
    cdef readonly Lists stacks
    cdef Py_ssize_t max_frames
    cdef Py_ssize_t max_stacks
    cdef Py_ssize_t max_items
    cdef Py_ssize_t entries_left
    cdef Py_ssize_t ids_left
    cdef Py_ssize_t counters_left
    cdef readonly Py_ssize_t damaged
    cdef readonly Py_ssize_t too_many

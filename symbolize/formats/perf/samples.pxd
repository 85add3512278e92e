cimport cython

include "numbers.pxi"
from symbolize.core.interning cimport Lists, InternTable, Tuples


@cython.final
cdef class PerfSamples:
    cdef unsigned long long labels
    cdef readonly unsigned long long mixer
    cdef InternTable threads
    cdef int[::1] thread_process
    cdef int[::1] thread_comm
    cdef long long[:, ::1] processes
    cdef Py_ssize_t pool_used
    cdef unsigned long long versions
    cdef unsigned long long[::1] pool_start
    cdef unsigned long long[::1] pool_limit
    cdef int[::1] pool_mapping
    cdef unsigned long long[::1] cache
    cdef readonly Tuples frames
    cdef readonly Lists stacks
    cdef readonly Lists spaces
    cdef readonly Tuples contexts
    cdef readonly Tuples rows
    cdef readonly InternTable cgroups
    cdef unsigned long long[::1] dumps
    cdef readonly Py_ssize_t dump_count
    cdef Py_ssize_t dump_stride
    cdef unsigned long long[::1] times
    cdef readonly Py_ssize_t time_count
    cdef readonly Py_ssize_t untimed
    cdef public unsigned long long time
    cdef readonly Py_ssize_t saturated
    cdef public Py_ssize_t process
    cdef public Py_ssize_t context

    cpdef int locate_thread(self, unsigned long long pid, unsigned long long tid) noexcept nogil
    cpdef bint is_stale(self, Py_ssize_t process) noexcept nogil
    cdef unsigned long long version(self, Py_ssize_t process) noexcept nogil
    cdef bint is_wanted(self) noexcept nogil
    cpdef void begin_stack(self) noexcept nogil
    cpdef int append_frames(self, Py_ssize_t stack) except -1 nogil
    cdef bint is_built_of(self, unsigned long long address) noexcept nogil
    cdef int frame(self, int mode, unsigned long long address) except -1 nogil
    cdef int frame_row(self, unsigned long long address, int mapping) except -1 nogil
    cdef int mapping_at(self, Py_ssize_t process, unsigned long long address) noexcept nogil
    cdef int set_context(
        self, Py_ssize_t thread, unsigned long long pid, unsigned long long tid, unsigned long long cpu,
        unsigned long long cgroup, unsigned long long mode
    ) except -1 nogil
    cpdef int count(self, unsigned long long event, Py_ssize_t stack, unsigned long long value) except -1 nogil
    cdef int add_value(self, Py_ssize_t row, unsigned long long value) except -1 nogil
    cdef int extend_times(self) except -1 with gil
    cdef Py_ssize_t add_dump(self) except -2 nogil
    cdef int append_to_dump(
        self, Py_ssize_t at, unsigned long long event, Py_ssize_t stack, unsigned long long value
    ) except -1 nogil
    cdef int extend_dumps(self, Py_ssize_t size) except -1 with gil
    cdef Py_ssize_t space(self) except -2 nogil

cdef unsigned long long thread_key(unsigned long long pid, unsigned long long tid) noexcept nogil

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.exc cimport PyErr_SetFromErrno
from libc.signal cimport SIG_DFL, SIGBUS, raise_
from posix.mman cimport (
    MADV_DONTNEED, MAP_ANONYMOUS, MAP_FAILED, MAP_FIXED, MAP_PRIVATE, MAP_SHARED, PROT_READ, madvise, mmap, munmap,
)
from posix.signal cimport SA_ONSTACK, SA_SIGINFO, sigaction, sigaction_t, sigemptyset, siginfo_t
from posix.unistd cimport close

cdef enum:
    MAX_RANGES = 4096

cdef size_t[MAX_RANGES] begins
cdef size_t[MAX_RANGES] ends
cdef int[MAX_RANGES] faults
cdef sigaction_t previous
cdef bint has_passed_on

cdef void on_fault(int number, siginfo_t* info, void* context) noexcept nogil
cdef void pass_on(int code) noexcept nogil
cdef void install() noexcept

@cython.final
cdef class GuardedMapping:
    cdef void* address
    cdef readonly Py_ssize_t size
    cdef readonly int descriptor
    cdef int number

# cython: boundscheck=True, wraparound=False, initializedcheck=False
# ruff: noqa: F821
"""Files mapped into memory such that reading on does no harm when they are truncated meanwhile (R280).

Reading a page that a file does not have any more, or that its device cannot deliver, is SIGBUS, which ends the process.
Here the handler of that signal puts zeros where the mapping was, and remembers that it did, so that whoever reads can
ask afterwards whether what was read is worth anything. All else that raises SIGBUS goes to the handler that was there
before.

This is the one module with raw addresses: a signal handler gets the address of the fault and nothing else, and there is
no other defence inside a process. None of them leaves it: what others get is a buffer with bounds, which keeps the
mapping as long as there is any view of it. The names of C are in the .pxd file; where the module is not compiled, none
of it can be used.
"""

from __future__ import annotations

import cython

COMPILED: bool = cython.compiled
"""Whether files can be mapped at all."""


class NoRange(Exception):
    """As many files are mapped as the handler can know of."""


def on_fault(number, info, context):  # type: ignore[no-untyped-def]
    """Handle SIGBUS: put zeros where a mapping of ours has no page, or pass it on.

    All of the mapping is replaced, so that there is one fault a file, not one a page. Nothing here locks: who adds or
    removes a range has the GIL, and makes it empty before anything else of it changes.
    """
    i: cython.int
    address: cython.size_t = cython.cast(cython.size_t, info.si_addr)
    is_ours: cython.bint = False
    if info.si_code > 0:  # by the processor; whoever sends the signal gives no address
        for i in range(MAX_RANGES):
            if begins[i] <= address and address < ends[i]:
                if (
                    mmap(
                        cython.cast(cython.p_void, begins[i]),
                        ends[i] - begins[i],
                        PROT_READ,
                        MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS,
                        -1,
                        0,
                    )
                    != MAP_FAILED
                ):
                    faults[i] = 1
                    is_ours = True
    if not is_ours:
        pass_on(info.si_code)


def pass_on(code):  # type: ignore[no-untyped-def]
    """Give the signal to whoever handled it before: what faulted does so again, and what was sent is sent again.

    A handler that was installed after this one may call it in turn; then the process ends as by default.
    """
    global has_passed_on
    action: sigaction_t
    if has_passed_on:
        sigemptyset(cython.address(action.sa_mask))
        action.sa_flags = 0
        action.sa_handler = SIG_DFL
        sigaction(SIGBUS, cython.address(action), cython.NULL)
    else:
        has_passed_on = True
        sigaction(SIGBUS, cython.address(previous), cython.NULL)
    if code <= 0:
        raise_(SIGBUS)


def install():  # type: ignore[no-untyped-def]
    """Make `on_fault` the handler of SIGBUS, unless it is already."""
    global previous, has_passed_on
    action: sigaction_t
    sigaction(SIGBUS, cython.NULL, cython.address(action))
    if cython.cast(cython.p_void, action.sa_sigaction) == cython.cast(cython.p_void, on_fault):
        return
    previous = action
    has_passed_on = False
    sigemptyset(cython.address(action.sa_mask))
    action.sa_flags = SA_SIGINFO | SA_ONSTACK
    action.sa_sigaction = on_fault
    sigaction(SIGBUS, cython.address(action), cython.NULL)


@cython.cclass
class GuardedMapping:
    """The first `size` bytes of an open file, at least 1, mapped for reading: a buffer.

    The descriptor is closed and the memory unmapped when the last view has gone. Raises NoRange, which leaves the
    descriptor open, and OSError, which does not.
    """

    def __cinit__(self, descriptor: cython.int, size: cython.Py_ssize_t):  # type: ignore[no-untyped-def]
        i: cython.int
        self.number = -1
        self.descriptor = -1
        self.address = cython.NULL
        for i in range(MAX_RANGES):
            if begins[i] == 0:
                break
        else:
            raise NoRange
        self.descriptor = descriptor
        self.address = mmap(cython.NULL, size, PROT_READ, MAP_SHARED, descriptor, 0)
        if self.address == MAP_FAILED:
            self.address = cython.NULL
            PyErr_SetFromErrno(OSError)
        self.size = size
        self.number = i
        install()
        faults[i] = 0
        begins[i] = cython.cast(cython.size_t, self.address)
        ends[i] = begins[i] + size

    def __dealloc__(self):  # type: ignore[no-untyped-def]
        if self.number >= 0:
            ends[self.number] = 0  # before the memory may become another's
        if self.address != cython.NULL:
            munmap(self.address, self.size)
        if self.number >= 0:
            begins[self.number] = 0
        if self.descriptor >= 0:
            close(self.descriptor)

    def __getbuffer__(self, buffer: cython.pointer(Py_buffer), flags: cython.int):  # type: ignore[no-untyped-def]
        PyBuffer_FillInfo(buffer, self, self.address, self.size, 1, flags)

    @property
    def has_faulted(self) -> bool:
        """Whether a page could not be read, so that there are zeros in place of all."""
        return faults[self.number] != 0

    def forget(self, begin: cython.Py_ssize_t, size: cython.Py_ssize_t) -> None:
        """Tell the system that whole pages, from a page's begin on, are not needed in memory now."""
        if begin >= 0 and size > 0 and begin + size <= self.size:
            madvise(cython.cast(cython.p_uchar, self.address) + begin, size, MADV_DONTNEED)

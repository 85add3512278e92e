"""The heap of this process."""

import ctypes


def give_back() -> None:
    """Give memory that was freed back to the system, which the C library of GNU does not do by itself with what lies
    between memory in use; of other libraries nothing is asked."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

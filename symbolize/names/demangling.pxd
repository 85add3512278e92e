from symbolize.names.demangler cimport MAX_NAME
from symbolize.names.itanium_parser cimport CppParser
from symbolize.names.itanium_printer cimport CppPrinter
from symbolize.names.rust cimport RustDemangler


cdef class CppDemangler:
    cdef CppParser parser
    cdef CppPrinter printer

    cpdef object demangle(self, bytes name, int mode)
    cdef bytes text(self, bytes name, int mode)

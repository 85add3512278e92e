include "itanium_nodes.pxi"

from symbolize.names.itanium_types cimport TypeParser
from symbolize.names.itanium_tree cimport MAX_LOOKUPS


cdef class NameParser(TypeParser):
    cdef int parse(self) except -1
    cdef int parse_whole(self) except -1
    cdef int suffix(self) except -1
    cdef int encoding(self, bint top) except -1
    cdef int function(self, int name, bint top) except -1
    cdef int enable_if(self, int name) except -1
    cdef int special_name(self) except -1
    cdef int construction(self) except -1
    cdef int reference_temporary(self) except -1
    cdef int offset(self) except -1
    cdef int signed(self) except -1
    cdef int resolve_forwards(self) except -1
    cdef int module(self, int module) except -1
    cdef int structor(self, bint state) except -1
    cdef int binding(self) except -1
    cdef int operator_name(self, bint state) except -1
    cdef int unnamed(self, bint state) except -1
    cdef int closure(self) except -1
    cdef int nested(self, bint state) except -1
    cdef bint repeats(self, int node) except -1
    cdef int local(self, bint state) except -1
    cdef int discriminator(self) except -1

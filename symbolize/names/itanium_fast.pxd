cdef class Walker:
    cdef unsigned char[::1] text
    cdef Py_ssize_t size
    cdef Py_ssize_t at
    cdef bytearray printed
    cdef unsigned char[::1] out
    cdef int used
    cdef int begin
    cdef bint bad
    cdef int depth
    cdef int steps
    cdef long long weight
    cdef int last_start
    cdef int last_end
    cdef int substitutions
    cdef bint uncounted
    cdef int[::1] sub_start
    cdef int[::1] sub_end
    cdef int[::1] sub_flags
    cdef int[::1] sub_context
    cdef long long[::1] sub_weight
    cdef bint templated
    cdef bint special
    cdef int quals
    cdef bint closure
    cdef int args_count
    cdef unsigned long long args_packs
    cdef int args_length
    cdef int args_flags
    cdef long long args_weight
    cdef int contexts
    cdef int context
    cdef int params
    cdef unsigned long long params_packs
    cdef int params_length
    cdef int params_flags
    cdef long long params_weight
    cdef bint expanding
    cdef int expanded
    cdef bint args_even
    cdef bint params_even
    cdef bint silent
    cdef bint keeping
    cdef bint missed
    cdef unsigned long long args_values
    cdef unsigned long long params_values
    cdef Py_ssize_t structor
    cdef Py_ssize_t variant
    cdef int last_operator
    cdef bint anonymous
    cdef int conditions

    cdef bint load(self, bytes name) except -1
    cdef int parse(self) except -1
    cdef int special_name(self) except -1
    cdef int offset(self) except -1
    cdef int whole_encoding(self) except -1
    cdef int expression(self) except -1
    cdef int unresolved_name(self) except -1
    cdef int plain_name(self) except -1
    cdef int inherited_from(self, int start) except -1
    cdef int fail(self) except -1
    cdef int put(self, unsigned char byte) except -1
    cdef int put_word(self, bytes word) except -1
    cdef int copy(self, int start, int end) except -1
    cdef int step(self, int count, long long weight) except -1
    cdef int add(self, int start, int flags, long long weight) except -1
    cdef int number(self) except -1
    cdef int encoding(self, int start, bint top) except -1
    cdef int signature(self, bint top) except -1
    cdef int a_name(self, int start, bint in_type) except -1
    cdef int nested(self, int start, bint in_type) except -1
    cdef int local(self, int start, bint in_type) except -1
    cdef int unqualified(self, int start) except -1
    cdef int source_name(self) except -1
    cdef int tags(self) except -1
    cdef int operator_name(self) except -1
    cdef int closure_name(self, int start) except -1
    cdef int abbreviation(self, bint nested) except -1
    cdef int reference(self) except -1
    cdef int parameter(self) except -1
    cdef int arguments(self, int start) except -1
    cdef int argument_list(self, bint top) except -1
    cdef int literal(self) except -1
    cdef int a_type(self, int start) except -1
    cdef int function_type(self) except -1

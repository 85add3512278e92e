# The numbers of simpleperf_numbers.py for compiled modules.
cdef enum:
    MORE = 0
    OTHER = 1
    BAD = 2
    TOO_LARGE = 3
    ENDED = 4
    SIZE_BYTES = 4
    MAX_RECORD = 134217728
    NATIVE = 0
    JAVA = 1
    ART = 2
    TRAMPOLINE = 3
    NO_EXECUTION = 255
    MAX_ERROR = 255

# The numbers of protobuf.py for compiled modules.
cdef enum:
    VARINT = 0
    FIXED64 = 1
    BYTES = 2
    FIXED32 = 5
    WIRE_TYPE = 7
    NUMBER = 3
    LAST_BYTE = 0x80
    MAX_TAG = 5
    MAX_VARINT = 10

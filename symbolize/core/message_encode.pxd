include "protobuf.pxi"
from symbolize.core.encoder cimport Encoder
from symbolize.core.interning cimport Lists

from symbolize.core.interning cimport Tuples

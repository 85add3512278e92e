from symbolize.core.interning cimport Lists, Tuples

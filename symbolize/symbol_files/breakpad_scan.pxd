from symbolize.core.kernels cimport RangeColumns

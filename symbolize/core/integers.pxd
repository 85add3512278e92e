cimport cython

cdef extern from *:
    """
    /* With a `size` that is known the compiler makes one load of each branch, which it does not of indices that it has
       to add up. */
    static CYTHON_INLINE unsigned long long symbolize_unsigned_at(const unsigned char *at, int size, int big) {
        unsigned long long value = 0;
        int i;
        if (!big) {
            if (size == 1) return at[0];
            if (size == 2) return at[0] | (unsigned long long)at[1] << 8;
            if (size == 4) return at[0] | (unsigned long long)at[1] << 8 | (unsigned long long)at[2] << 16
                | (unsigned long long)at[3] << 24;
            if (size == 8) return at[0] | (unsigned long long)at[1] << 8 | (unsigned long long)at[2] << 16
                | (unsigned long long)at[3] << 24 | (unsigned long long)at[4] << 32 | (unsigned long long)at[5] << 40
                | (unsigned long long)at[6] << 48 | (unsigned long long)at[7] << 56;
            for (i = 0; i < size; i++) value |= (unsigned long long)at[i] << 8 * i;
            return value;
        }
        for (i = 0; i < size; i++) value = value << 8 | at[i];
        return value;
    }

    static CYTHON_INLINE unsigned long long symbolize_folded_product(unsigned long long a, unsigned long long b) {
        __uint128_t product = (__uint128_t)a * b;
        return (unsigned long long)(product >> 64) ^ (unsigned long long)product;
    }
    """
    unsigned long long symbolize_unsigned_at(const unsigned char *at, int size, bint big) noexcept nogil
    unsigned long long folded_product "symbolize_folded_product"(unsigned long long a, unsigned long long b) noexcept nogil


@cython.boundscheck(False)
@cython.wraparound(False)
@cython.initializedcheck(False)
cdef inline unsigned long long unsigned_at(const unsigned char[::1] data, Py_ssize_t at, int size, bint big) noexcept nogil:
    return symbolize_unsigned_at(&data[at], size, big)

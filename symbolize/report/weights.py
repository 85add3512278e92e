# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""Sums of sample values over locations and functions, in one pass over the stacks."""

import cython


@cython.ccall
def weigh(  # type: ignore[no-untyped-def]
    values: cython.const[cython.double][::1],
    location_offsets: cython.const[cython.longlong][::1],
    locations: cython.const[cython.int][::1],
    line_offsets: cython.const[cython.longlong][::1],
    names: cython.const[cython.int][::1],
    by_location: cython.double[::1],
    flat: cython.double[::1],
    cumulative: cython.double[::1],
    last_sample: cython.longlong[::1],
):
    """Add each sample's value to its locations and to the functions on its stack.

    `names` is the name of each line's function. A location counts as often as it is on a stack, a function
    once a stack in `cumulative`, and in `flat` when it is the leaf. `last_sample` (a row a name, filled with
    -1) remembers where a name was counted last.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.Py_ssize_t
    first: cython.Py_ssize_t
    value: cython.double
    with cython.nogil:
        for i in range(len(values)):
            value = values[i]
            first = location_offsets[i]
            for j in range(first, location_offsets[i + 1]):
                by_location[locations[j]] += value
                for k in range(line_offsets[locations[j]], line_offsets[locations[j] + 1]):
                    if j == first and k == line_offsets[locations[j]]:
                        flat[names[k]] += value
                    if last_sample[names[k]] != i:
                        last_sample[names[k]] = i
                        cumulative[names[k]] += value

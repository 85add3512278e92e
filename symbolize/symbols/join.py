# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""From addresses to frames: the chain of inlined functions behind each address."""

import cython


@cython.ccall
def count_frames(  # type: ignore[no-untyped-def]
    node: cython.const[cython.longlong][::1],
    symbol: cython.const[cython.longlong][::1],
    parent: cython.const[cython.longlong][::1],
    offsets: cython.longlong[::1],
):
    """Fill `offsets` (int64[n + 1]) with where the frames of each address begin.

    An address in a node has a frame for it and one for each function around it; an address that only a
    symbol covers has one.
    """
    i: cython.Py_ssize_t
    k: cython.longlong
    total: cython.longlong = 0
    with cython.nogil:
        for i in range(len(node)):
            offsets[i] = total
            k = node[i]
            if k < 0 and symbol[i] >= 0:
                total += 1
            while k >= 0:
                total += 1
                k = parent[k]
        offsets[len(node)] = total


@cython.ccall
def fill_frames(  # type: ignore[no-untyped-def]
    node: cython.const[cython.longlong][::1],
    symbol: cython.const[cython.longlong][::1],
    row: cython.const[cython.longlong][::1],
    parent: cython.const[cython.longlong][::1],
    function: cython.const[cython.longlong][::1],
    call_file: cython.const[cython.int][::1],
    call_line: cython.const[cython.uint][::1],
    call_column: cython.const[cython.uint][::1],
    row_file: cython.const[cython.int][::1],
    row_line: cython.const[cython.uint][::1],
    row_column: cython.const[cython.uint][::1],
    symbol_file: cython.const[cython.int][::1],
    offsets: cython.const[cython.longlong][::1],
    keys: cython.ulonglong[::1],
    files: cython.int[::1],
    lines: cython.uint[::1],
    columns: cython.uint[::1],
):
    """Fill the frames that count_frames has measured, innermost first.

    The first frame has file, line and column of its line row (rules R19, R29), each further one those at which
    the frame before it was inlined (rule R20). A key is the function + 1 in the upper half; that of the
    outermost frame has the symbol + 1 in the lower half, so that its linked name can be taken from there.
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.longlong
    r: cython.longlong
    with cython.nogil:
        for i in range(len(node)):
            j = offsets[i]
            if j == offsets[i + 1]:
                continue
            r = row[i]
            if r >= 0 and row_file[r] < 0:  # a line of no file says nothing
                r = -1
            files[j] = row_file[r] if r >= 0 else -1
            lines[j] = row_line[r] if r >= 0 else 0
            columns[j] = row_column[r] if r >= 0 else 0
            k = node[i]
            if k < 0:
                if r < 0:  # without DWARF the FILE symbol is all there is (rule R120)
                    files[j] = symbol_file[symbol[i]]
                keys[j] = symbol[i] + 1
                continue
            while parent[k] >= 0:
                keys[j] = cython.cast(cython.ulonglong, function[k] + 1) << 32
                j += 1
                files[j] = call_file[k]
                lines[j] = call_line[k]
                columns[j] = call_column[k]
                k = parent[k]
            keys[j] = (cython.cast(cython.ulonglong, function[k] + 1) << 32) | cython.cast(
                cython.ulonglong, symbol[i] + 1
            )

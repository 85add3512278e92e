# cython: boundscheck=True, wraparound=False, initializedcheck=False
"""From addresses to frames: unpacks the ranges of a table (see `lay`) and follows the inlined functions outwards."""

import cython

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)
MASK32 = cython.declare(cython.ulonglong, 0xFFFFFFFF)
LINE_BIAS = cython.declare(cython.longlong, 10)
LINE_ESCAPE = cython.declare(cython.longlong, 31)

MAX_FRAMES = cython.declare(cython.int, 4096)
"""Frames of an address; the decoder follows 256 inlined functions (rule R30)."""


@cython.ccall
def seek(  # type: ignore[no-untyped-def]
    block_starts: cython.const[cython.ulonglong][::1],
    block_offsets: cython.const[cython.ulonglong][::1],
    data: cython.const[cython.uchar][::1],
    vaddrs: cython.const[cython.ulonglong][::1],
    nodes: cython.int[::1],
    files: cython.int[::1],
    lines: cython.uint[::1],
    columns: cython.uint[::1],
    node_count: cython.longlong,
    file_count: cython.longlong,
):
    """Fill node (-1: nothing there), file (-1: none), line and column at `vaddrs` (ascending), in one pass.

    Nodes and files beyond their counts, which a table that was made up could name, are none.
    """
    blocks: cython.Py_ssize_t = len(block_starts)
    block: cython.Py_ssize_t = -1
    low: cython.Py_ssize_t
    high: cython.Py_ssize_t
    step: cython.Py_ssize_t
    position: cython.Py_ssize_t = 0
    end: cython.Py_ssize_t = 0
    vaddr: cython.ulonglong
    address: cython.ulonglong = 0
    following: cython.ulonglong = 0
    value: cython.ulonglong
    byte: cython.ulonglong
    shift: cython.int
    field: cython.int
    flags: cython.int
    delta: cython.longlong
    node: cython.longlong = 0
    file: cython.longlong = 0
    line: cython.longlong = 0
    column: cython.ulonglong = 0
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(vaddrs)):
            vaddr = vaddrs[i]
            nodes[i] = files[i] = -1
            lines[i] = columns[i] = 0
            if blocks == 0 or vaddr < block_starts[0]:
                continue
            if block < 0 or vaddr < address or (block + 1 < blocks and vaddr >= block_starts[block + 1]):
                # Another block: it lies close behind the present one as a rule.
                low = block if block >= 0 and vaddr >= block_starts[block] else 0
                step = 1
                while low + step < blocks and block_starts[low + step] <= vaddr:
                    low += step
                    step *= 2
                high = low + step if low + step < blocks else blocks
                while low + 1 < high:
                    step = (low + high) // 2
                    if block_starts[step] <= vaddr:
                        low = step
                    else:
                        high = step
                block = low
                position = block_offsets[block]
                end = block_offsets[block + 1]
                following = block_starts[block]
                node = file = line = 0
                column = 0
            while following <= vaddr and position < end:
                address = following
                flags = data[position]
                position += 1
                for field in range(4):
                    if field < 3 and not flags >> field & 1:
                        continue
                    if field == 3 and flags >> 3 != LINE_ESCAPE:
                        line += (flags >> 3) - LINE_BIAS
                        continue
                    value = 0
                    shift = 0
                    byte = 0
                    while position < end:
                        byte = data[position]
                        position += 1
                        value |= (byte & 0x7F) << shift
                        shift += 7
                        if byte < 0x80 or shift > 49:
                            break
                    if field == 2:
                        column = value
                        continue
                    delta = value
                    if byte & 0x40:
                        delta -= cython.cast(cython.longlong, 1) << shift
                    if field == 0:
                        node += delta
                    elif field == 1:
                        file += delta
                    else:
                        line += delta
                if position < end:
                    value = 0
                    shift = 0
                    while position < end:
                        byte = data[position]
                        position += 1
                        if shift < 64:
                            value |= ((byte & 0x7F) << shift) & MASK64
                            shift += 7
                        if byte < 0x80:
                            break
                    following = (following + value) & MASK64
                else:
                    following = MASK64
            if 0 < node <= node_count:
                nodes[i] = cython.cast(cython.int, node - 1)
                if 0 < file <= file_count:
                    files[i] = cython.cast(cython.int, file - 1)
                lines[i] = cython.cast(cython.uint, line & MASK32)
                columns[i] = cython.cast(cython.uint, column & MASK32)


@cython.ccall
def count_frames(  # type: ignore[no-untyped-def]
    nodes: cython.const[cython.int][::1], parents: cython.const[cython.int][::1], offsets: cython.longlong[::1]
):
    """Fill `offsets` (int64[n + 1]) with where the frames of each address begin: one for its node and each parent.

    No address has more than MAX_FRAMES.
    """
    i: cython.Py_ssize_t
    k: cython.int
    depth: cython.int
    total: cython.longlong = 0
    with cython.nogil:
        for i in range(len(nodes)):
            offsets[i] = total
            k = nodes[i]
            depth = 0
            while k >= 0 and depth < MAX_FRAMES:
                depth += 1
                k = parents[k] if parents[k] < k else -1
            total += depth
        offsets[len(nodes)] = total


@cython.ccall
def fill_frames(  # type: ignore[no-untyped-def]
    nodes: cython.const[cython.int][::1],
    leaf_files: cython.const[cython.int][::1],
    leaf_lines: cython.const[cython.uint][::1],
    leaf_columns: cython.const[cython.uint][::1],
    parents: cython.const[cython.int][::1],
    node_functions: cython.const[cython.int][::1],
    call_files: cython.const[cython.int][::1],
    call_lines: cython.const[cython.uint][::1],
    call_columns: cython.const[cython.ushort][::1],
    offsets: cython.const[cython.longlong][::1],
    functions: cython.int[::1],
    files: cython.int[::1],
    lines: cython.uint[::1],
    columns: cython.uint[::1],
):
    """Fill the frames that count_frames has measured, innermost first.

    The first frame has file, line and column of its line row (rules R19, R29), each further one those at which
    the frame before it was inlined (rule R20).
    """
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.int
    with cython.nogil:
        for i in range(len(nodes)):
            j = offsets[i]
            if j == offsets[i + 1]:
                continue
            k = nodes[i]
            functions[j] = node_functions[k]
            files[j] = leaf_files[i]
            lines[j] = leaf_lines[i]
            columns[j] = leaf_columns[i]
            j += 1
            while j < offsets[i + 1]:
                files[j] = call_files[k]
                lines[j] = call_lines[k]
                columns[j] = call_columns[k]
                k = parents[k]
                functions[j] = node_functions[k]
                j += 1

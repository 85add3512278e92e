# cython: boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="arg-type, attr-defined, no-any-return, no-untyped-call, untyped-decorator"
# mypy: disable-error-code="valid-type", no-warn-unused-ignores
"""The compiled loops under `arrays` and `ranges`: rows marked; ranges of addresses clipped, joined, cut at the borders
of others, laid out, made disjoint."""

import cython
import numpy as np

MASK64 = cython.declare(cython.ulonglong, 0xFFFFFFFFFFFFFFFF)


@cython.ccall
def mark(  # type: ignore[no-untyped-def]
    rows: cython.const[cython.int][::1], found: cython.uchar[::1]
):
    """Set `found` at each of `rows`."""
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(rows)):
            found[rows[i]] = 1


@cython.ccall
def mark_chosen(  # type: ignore[no-untyped-def]
    rows: cython.const[cython.int][::1], chosen: cython.const[cython.uchar][::1], found: cython.uchar[::1]
):
    """Set `found` at those of `rows` that are `chosen`."""
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(rows)):
            if chosen[i]:
                found[rows[i]] = 1


@cython.cclass
class RangeColumns:
    """Ranges `[begins[i], ends[i])` (uint64[n]), and what each belongs to: `owners` (int64[n]), numbers from 0 on, -1:
    nobody. The arrays are writable."""

    def __init__(
        self, begins: cython.ulonglong[::1], ends: cython.ulonglong[::1], owners: cython.longlong[::1]
    ) -> None:
        self.begins = begins
        self.ends = ends
        self.owners = owners


@cython.cclass
class CoverColumns:
    """What owners have, ranges that ascend and are disjoint: those of owner j are the rows from `first[j]` up to
    `first[j + 1]` (int64[owners + 1]) of `begins` and `ends` (uint64[n])."""

    def __init__(
        self,
        begins: cython.const[cython.ulonglong][::1],
        ends: cython.const[cython.ulonglong][::1],
        first: cython.const[cython.longlong][::1],
    ) -> None:
        self.begins = begins
        self.ends = ends
        self.first = first


@cython.cclass
class PieceColumns:
    """Pieces of ranges: the row of the range in `sources` (int64[n]), begin and end (uint64[n]), and whether each is
    `inside` of a cover (uint8[n])."""

    def __init__(
        self,
        sources: cython.longlong[::1],
        begins: cython.ulonglong[::1],
        ends: cython.ulonglong[::1],
        inside: cython.uchar[::1],
    ) -> None:
        self.sources = sources
        self.begins = begins
        self.ends = ends
        self.inside = inside


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def first_above(
    begins: cython.const[cython.ulonglong][::1],
    low: cython.Py_ssize_t,
    high: cython.Py_ssize_t,
    value: cython.ulonglong,
) -> cython.Py_ssize_t:
    """The first index in `[low, high)` whose begin is above `value`, or `high`."""
    middle: cython.Py_ssize_t
    while low < high:
        middle = (low + high) // 2
        if begins[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


def first_from(
    values: cython.const[cython.ulonglong][::1], guess: cython.Py_ssize_t, least: cython.ulonglong
) -> cython.Py_ssize_t:
    """The first index of `values` (ascending) with `least` or more, or their count; it is often `guess`."""
    n: cython.Py_ssize_t = len(values)
    if (guess == n or values[guess] >= least) and (guess == 0 or values[guess - 1] < least):
        return guess
    return first_above(values, 0, n, least - 1) if least > 0 else 0


MAX_ACTIVE = cython.declare(cython.Py_ssize_t, 1024)
"""Ranges that may answer for one address at a time, hidden ones not counted; more is corrupt data (R30 caps inlining
at 256)."""


@cython.ccall
def clip(
    begins: cython.const[cython.ulonglong][::1],
    ends: cython.const[cython.ulonglong][::1],
    code_begins: cython.const[cython.ulonglong][::1],
    code_ends: cython.const[cython.ulonglong][::1],
    kept: cython.longlong[::1],
    out_begins: cython.ulonglong[::1],
    out_ends: cython.ulonglong[::1],
) -> cython.Py_ssize_t:
    """Keep the ranges that begin in one of the code ranges (ascending) and cut them at its end (R54, discarded code).

    The last three, as long as the ranges, receive their indices, begins and ends. Returns how many there are.
    """
    count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t = len(code_begins)
    begin: cython.ulonglong
    with cython.nogil:
        for i in range(len(begins)):
            begin = begins[i]
            if k >= n or begin < code_begins[k] or begin >= code_ends[k]:
                k = first_above(code_begins, 0, n, begin)
                if k == 0:
                    continue
                k -= 1
                if begin >= code_ends[k]:
                    continue
            kept[count] = i
            out_begins[count] = begin
            out_ends[count] = ends[i] if ends[i] < code_ends[k] else code_ends[k]
            count += 1
    return count


@cython.ccall
def mark_owners(  # type: ignore[no-untyped-def]
    ranges: RangeColumns, vaddrs: cython.const[cython.ulonglong][::1], chosen: cython.uchar[::1]
):
    """Set `chosen` of the owners of ranges that hold one of `vaddrs` (ascending), or are empty and at one."""
    begins: cython.ulonglong[::1] = ranges.begins
    ends: cython.ulonglong[::1] = ranges.ends
    owners: cython.longlong[::1] = ranges.owners
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t = 0
    n: cython.Py_ssize_t = len(vaddrs)
    begin: cython.ulonglong
    with cython.nogil:
        for i in range(len(begins)):
            begin = begins[i]
            k = first_from(vaddrs, k, begin)  # most ranges have the same one as the range before
            if k < n and (vaddrs[k] < ends[i] or (vaddrs[k] == begin and begin == ends[i])):
                chosen[owners[i]] = 1


@cython.ccall
def sort_runs(ranges: RangeColumns) -> cython.bint:
    """Sort the ranges of each owner by begin, in place; owners come in ascending order.

    False if that is not so, or if it is more work than another way of sorting: the ranges are then in any order
    within their owner.
    """
    begins: cython.ulonglong[::1] = ranges.begins
    ends: cython.ulonglong[::1] = ranges.ends
    owners: cython.longlong[::1] = ranges.owners
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(begins)
    moves: cython.Py_ssize_t = 0
    begin: cython.ulonglong
    end: cython.ulonglong
    with cython.nogil:
        for i in range(1, n):
            if owners[i] < owners[i - 1]:
                return False
            if owners[i] != owners[i - 1] or begins[i] >= begins[i - 1]:
                continue
            begin = begins[i]
            end = ends[i]
            k = i
            while k > 0 and owners[k - 1] == owners[i] and begins[k - 1] > begin:
                begins[k] = begins[k - 1]
                ends[k] = ends[k - 1]
                k -= 1
            begins[k] = begin
            ends[k] = end
            moves += i - k
            if moves > 8 * n:
                return False
    return True


@cython.ccall
def merge_runs(ranges: RangeColumns) -> cython.Py_ssize_t:
    """Join ranges of one owner that touch or overlap, in place; they come sorted by owner, then begin.

    Returns how many are left, at the front of the columns.
    """
    begins: cython.ulonglong[::1] = ranges.begins
    ends: cython.ulonglong[::1] = ranges.ends
    owners: cython.longlong[::1] = ranges.owners
    count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(begins)):
            if count > 0 and owners[count - 1] == owners[i] and begins[i] <= ends[count - 1]:
                if ends[i] > ends[count - 1]:
                    ends[count - 1] = ends[i]
                continue
            begins[count] = begins[i]
            ends[count] = ends[i]
            owners[count] = owners[i]
            count += 1
    return count


@cython.ccall
def hold(  # type: ignore[no-untyped-def]
    vaddrs: cython.const[cython.ulonglong][::1],
    owners: cython.const[cython.longlong][::1],
    cover: CoverColumns,
    held: cython.uchar[::1],
):
    """Set `held` (zeroed) where the cover of the owner beside an address (-1: nobody) holds it."""
    first: cython.const[cython.longlong][::1] = cover.first
    cover_begins: cython.const[cython.ulonglong][::1] = cover.begins
    cover_ends: cython.const[cython.ulonglong][::1] = cover.ends
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    with cython.nogil:
        for i in range(len(vaddrs)):
            if owners[i] >= 0:
                k = first_above(cover_begins, first[owners[i]], first[owners[i] + 1], vaddrs[i])
                if k > first[owners[i]] and vaddrs[i] < cover_ends[k - 1]:
                    held[i] = 1


@cython.ccall
def cut(  # type: ignore[no-untyped-def]
    ranges: RangeColumns,
    cover: CoverColumns,
    pieces: PieceColumns,
    counts: cython.longlong[::1],
    limit: cython.Py_ssize_t,
    fill: cython.bint,
):
    """Cut ranges at the borders of the cover of their owners; those of owner -1 stay whole and inside.

    `counts` receives how many pieces there are, and how many of these are outside; once there are more than `limit`, no
    more are looked for. If `fill`, they are written to `pieces`.
    """
    begins: cython.ulonglong[::1] = ranges.begins
    ends: cython.ulonglong[::1] = ranges.ends
    owners: cython.longlong[::1] = ranges.owners
    first: cython.const[cython.longlong][::1] = cover.first
    cover_begins: cython.const[cython.ulonglong][::1] = cover.begins
    cover_ends: cython.const[cython.ulonglong][::1] = cover.ends
    sources: cython.longlong[::1] = pieces.sources
    out_begins: cython.ulonglong[::1] = pieces.begins
    out_ends: cython.ulonglong[::1] = pieces.ends
    inside: cython.uchar[::1] = pieces.inside
    count: cython.Py_ssize_t = 0
    outside: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    last: cython.Py_ssize_t
    begin: cython.ulonglong
    end: cython.ulonglong
    stop: cython.ulonglong
    above: cython.Py_ssize_t
    is_inside: cython.bint
    more: cython.bint
    with cython.nogil:
        for i in range(len(begins)):
            begin = begins[i]
            end = ends[i]
            k = last = 0
            if owners[i] >= 0:
                k = first[owners[i]]
                last = first[owners[i] + 1]
                above = first_above(cover_begins, k, last, begin)
                if above > k and cover_ends[above - 1] > begin:
                    above -= 1
                k = above
            more = True
            while more:
                stop = end
                is_inside = owners[i] < 0
                if k < last and cover_begins[k] <= begin:
                    is_inside = True
                    if cover_ends[k] < end:
                        stop = cover_ends[k]
                    k += 1
                elif k < last and cover_begins[k] < end:
                    stop = cover_begins[k]
                if fill:
                    sources[count] = i
                    out_begins[count] = begin
                    out_ends[count] = stop
                    inside[count] = is_inside
                count += 1
                if not is_inside:
                    outside += 1
                begin = stop
                more = begin < end
                if count > limit:
                    more = False
            if count > limit:
                break
    counts[0] = count
    counts[1] = outside


@cython.ccall
def inline_depths(parents: cython.const[cython.longlong][::1], depths: cython.longlong[::1]) -> cython.longlong:
    """Fill `depths` with how many functions each node is inlined into; the largest of them.

    Parents come before their children.
    """
    i: cython.Py_ssize_t
    deepest: cython.longlong = 0
    with cython.nogil:
        for i in range(len(parents)):
            if parents[i] >= 0:
                depths[i] = depths[parents[i]] + 1
                if depths[i] > deepest:
                    deepest = depths[i]
    return deepest


@cython.ccall
def clip_to_parents(
    ranges: RangeColumns,
    parents: cython.const[cython.longlong][::1],
    first: cython.longlong[::1],
    last: cython.longlong[::1],
    clipped: RangeColumns,
) -> cython.Py_ssize_t:
    """Cut the ranges of inlined functions to those of the function around them (R26, ranges cut to their parents).

    Ranges come sorted by owner, then begin, and disjoint within an owner; parents come before their children.
    `first` and `last` (a row a node, zeroed) receive where the ranges of each node are in `clipped`.
    Returns how many ranges there are, or -1 if `clipped` is too short for them.
    """
    begins: cython.ulonglong[::1] = ranges.begins
    ends: cython.ulonglong[::1] = ranges.ends
    owners: cython.longlong[::1] = ranges.owners
    out_begins: cython.ulonglong[::1] = clipped.begins
    out_ends: cython.ulonglong[::1] = clipped.ends
    out_owners: cython.longlong[::1] = clipped.owners
    count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t = 0
    k: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(begins)
    limit: cython.Py_ssize_t = len(out_begins)
    node: cython.Py_ssize_t
    parent: cython.Py_ssize_t
    begin: cython.ulonglong
    end: cython.ulonglong
    with cython.nogil:
        while i < n:
            node = owners[i]
            parent = parents[node]
            first[node] = count
            while i < n and owners[i] == node:
                if parent < 0:
                    if count >= limit:
                        return -1
                    out_begins[count] = begins[i]
                    out_ends[count] = ends[i]
                    out_owners[count] = node
                    count += 1
                else:
                    k = first_above(out_begins, first[parent], last[parent], begins[i])
                    if k > first[parent]:
                        k -= 1
                    while k < last[parent] and out_begins[k] < ends[i]:
                        begin = begins[i] if begins[i] > out_begins[k] else out_begins[k]
                        end = ends[i] if ends[i] < out_ends[k] else out_ends[k]
                        k += 1
                        if begin >= end:
                            continue
                        if count >= limit:
                            return -1
                        out_begins[count] = begin
                        out_ends[count] = end
                        out_owners[count] = node
                        count += 1
                i += 1
            last[node] = count
    return count


@cython.ccall
def sweep(
    begins: cython.const[cython.ulonglong][::1],
    ends: cython.const[cython.ulonglong][::1],
    owners: cython.const[cython.longlong][::1],
    ranks: cython.const[cython.longlong][::1],
    parents: cython.const[cython.longlong][::1],
    starts: cython.ulonglong[::1],
    winners: cython.longlong[::1],
    lost: cython.uchar[::1],
) -> cython.Py_ssize_t:
    """Lay nested and overlapping ranges out as disjoint segments.

    Ranges come sorted by begin, then owner. Inside a range of its parent a range wins; among ranges of one
    parent (or of none, `parents[owner]` = -1) the lower rank wins, of equal ones the lower
    owner. A range that a better one of the same parent hides up to its end is passed over, so that equal ranges,
    such as those of the copies of a function that many units have, count once (R254, hidden ranges). `starts` and
    `winners` (twice as long as the ranges, plus one) receive the segments: segment `i` reaches from `starts[i]` to
    `starts[i + 1]` and belongs to the owner `winners[i]`, or to nobody (-1). `lost` (as long as the ranges, zeroed)
    is set for those that are left out because MAX_ACTIVE others are open: what is inside them is not known.
    Returns how many segments there are; the last is nobody's. The columns come one by one: taken from a class they cost
    a sixth more instructions.
    """
    stack: cython.longlong[::1] = memoryview(np.zeros(MAX_ACTIVE, np.int64))
    levels: cython.longlong[::1] = memoryview(np.zeros(MAX_ACTIVE, np.int64))
    depth: cython.Py_ssize_t = 0
    count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    base: cython.Py_ssize_t
    position: cython.Py_ssize_t
    kept: cython.Py_ssize_t
    head: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(begins)
    begin: cython.ulonglong
    end: cython.ulonglong
    parent: cython.longlong
    winner: cython.longlong
    level: cython.longlong
    hidden: cython.bint
    with cython.nogil:
        for i in range(n + 1):
            begin = begins[i] if i < n else MASK64
            while depth > 0 and ends[stack[depth - 1]] <= begin:
                end = ends[stack[depth - 1]]
                while depth > 0 and ends[stack[depth - 1]] <= end:
                    depth -= 1
                winner = owners[stack[depth - 1]] if depth > 0 else -1
                if count > 0 and starts[count - 1] == end:
                    count -= 1
                if count == 0 or winners[count - 1] != winner:
                    starts[count] = end
                    winners[count] = winner
                    count += 1
            if i == n:
                break
            parent = parents[owners[i]]
            base = depth
            level = 0
            if parent < 0:
                base = 0
            else:
                while base > 0 and (owners[stack[base - 1]] != parent or ends[stack[base - 1]] <= begin):
                    base -= 1
                if base == 0:
                    continue
                level = levels[base - 1] + 1
            # Groups of siblings with their descendants are above the parent, better ones on top; what is
            # better than the parent is above them all.
            position = -1
            hidden = False
            k = base
            while k < depth and levels[k] >= level:
                head = stack[k]
                if ends[head] > begin and (
                    ranks[head] < ranks[i] or (ranks[head] == ranks[i] and owners[head] < owners[i])
                ):
                    if position < 0:
                        position = k
                    if ends[head] >= ends[i]:
                        hidden = True
                        break
                k += 1
                while k < depth and levels[k] > level:
                    k += 1
            if hidden:
                continue
            base = position if position >= 0 else k
            if depth >= MAX_ACTIVE:  # drop what has ended below ranges that have not
                kept = 0
                for k in range(depth):
                    if k == base:
                        position = kept
                    if ends[stack[k]] > begin:
                        stack[kept] = stack[k]
                        levels[kept] = levels[k]
                        kept += 1
                base = position if base < depth else kept
                depth = kept
                if depth >= MAX_ACTIVE:
                    lost[i] = 1
                    continue
            k = depth
            while k > base:
                stack[k] = stack[k - 1]
                levels[k] = levels[k - 1]
                k -= 1
            stack[base] = i
            levels[base] = level
            depth += 1
            if base == depth - 1:
                if count > 0 and starts[count - 1] == begin:
                    count -= 1
                if count == 0 or winners[count - 1] != owners[i]:
                    starts[count] = begin
                    winners[count] = owners[i]
                    count += 1
    return count


@cython.ccall
def lay_rows(
    begins: cython.const[cython.ulonglong][::1],
    ends: cython.const[cython.ulonglong][::1],
    first_rows: cython.const[cython.longlong][::1],
    last_rows: cython.const[cython.longlong][::1],
    addresses: cython.const[cython.ulonglong][::1],
    starts: cython.ulonglong[::1],
    rows: cython.longlong[::1],
    asked: cython.const[cython.ulonglong][::1] = None,
) -> cython.Py_ssize_t:
    """The line rows of disjoint pieces of sequences, in order of address.

    Piece `i` is `[begins[i], ends[i])` of the sequence with the rows `[first_rows[i], last_rows[i])`. Entry `j`
    reaches from `starts[j]` to `starts[j + 1]`: it is row `rows[j]`, or a gap (-1: R38, no line between
    sequences). With `asked` (ascending; None: all) there are only those that hold one of these addresses, each with the
    one behind it. Returns how many entries there are; writes them unless `starts` is empty.
    """
    count: cython.Py_ssize_t = 0
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    n: cython.Py_ssize_t = len(begins)
    next_asked: cython.Py_ssize_t = 0
    start: cython.ulonglong
    stop: cython.ulonglong
    is_row: cython.bint
    wanted: cython.bint = True
    before: cython.bint = False
    with cython.nogil:
        for i in range(n):
            k = first_above(addresses, first_rows[i], last_rows[i], begins[i])
            if k > first_rows[i]:
                k -= 1
            while True:
                if asked is not None and not before and k < last_rows[i]:  # on to the next row of interest
                    start = addresses[k] if addresses[k] > begins[i] else begins[i]
                    next_asked = first_from(asked, next_asked, start)
                    if next_asked == len(asked) or asked[next_asked] >= ends[i]:
                        k = last_rows[i]
                    else:
                        k = first_above(addresses, k, last_rows[i], asked[next_asked]) - 1
                is_row = k < last_rows[i] and addresses[k] < ends[i]
                if is_row:
                    start = addresses[k] if addresses[k] > begins[i] else begins[i]
                    stop = addresses[k + 1] if k + 1 < last_rows[i] and addresses[k + 1] < ends[i] else ends[i]
                elif i + 1 == n or begins[i + 1] != ends[i]:
                    start = ends[i]
                    stop = begins[i + 1] if i + 1 < n else 0  # 2⁶⁴
                else:
                    break
                if asked is not None:
                    next_asked = first_from(asked, next_asked, start)
                    wanted = next_asked < len(asked) and asked[next_asked] <= (stop - 1) & MASK64
                if wanted or before:
                    if len(starts):
                        starts[count] = start
                        rows[count] = k if is_row else -1
                    count += 1
                before = wanted
                if not is_row:
                    break
                k += 1
    return count

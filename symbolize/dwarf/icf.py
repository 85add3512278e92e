"""Line rows of functions that were folded with a function of the same unit (R161, sequence of the shown function)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbolize.core.arrays import Int64, UInt64, distinct, first_of_runs
from symbolize.dwarf.files import Lines
from symbolize.dwarf.names import Resolved, resolve
from symbolize.dwarf.reader import Reader
from symbolize.dwarf.unit_ranges import Claims


def prefer_declared(
    reader: Reader,
    lines: Lines,
    claims: Claims,
    nodes: dict[str, NDArray[Any]],
    segments: tuple[UInt64, Int64],
    rows: tuple[UInt64, Int64],
) -> tuple[UInt64, Int64]:
    """The line entries `rows`, where several sequences of a program begin at one address with those of the function
    there: of the sequence with the row nearest behind its declaration."""
    several = _several(lines)
    if not len(several) or not len(segments[0]):
        return rows
    begin, program = lines.begin[several], lines.program[several]
    first = np.flatnonzero(first_of_runs(begin) | first_of_runs(program))
    last = np.append(first[1:], len(several))
    first, last = first[last - first > 1], last[last - first > 1]
    node = segments[1][np.searchsorted(segments[0], begin[first], side="right") - 1]
    node[begin[first] < segments[0][0]] = -1
    parent, unit = nodes["parent"], nodes["unit"]
    while (inlined := (node >= 0) & (parent[node] >= 0)).any():
        node[inlined] = parent[node[inlined]]
    own = (node >= 0) & (lines.program_of_unit[unit[node]] == program[first])
    own[own] = claims.hold(begin[first][own], unit[node[own]]) == lines.claimed[several[first[own]]]
    first, last, node = first[own], last[own], node[own]
    decl_file, decl_line = _declarations(reader, nodes["die"][node])
    file, line = np.asarray(lines.tables.file), np.asarray(lines.tables.line)
    start, row = rows
    pieces: list[tuple[UInt64, Int64]] = []
    done = 0
    for i, j, declared_file, declared in zip(first.tolist(), last.tolist(), decl_file, decl_line, strict=True):
        sequences = several[i:j].tolist()
        best, nearest = sequences[0], None
        for sequence in sequences:
            run = slice(int(lines.first_row[sequence]), int(lines.last_row[sequence]))
            behind = line[run][(file[run] == declared_file) & (line[run] >= declared)]
            if declared and len(behind) and (nearest is None or int(behind.min()) < nearest):
                best, nearest = sequence, int(behind.min())
        low = int(np.searchsorted(start, lines.begin[best]))
        high = int(np.searchsorted(start, lines.end[best]))
        present = int(row[low]) if low < len(row) and start[low] == lines.begin[best] else -1
        shown = [s for s in sequences if lines.first_row[s] <= present < lines.last_row[s]]
        if nearest is None or not shown or shown[0] == best or low < done or lines.end[shown[0]] != lines.end[best]:
            continue
        run = slice(int(lines.first_row[best]), int(lines.last_row[best]))
        # A sequence that was cut has rows before and behind it.
        low_row = int(np.searchsorted(lines.address[run], lines.begin[best], side="right")) - 1
        high_row = int(np.searchsorted(lines.address[run], lines.end[best]))
        run = slice(run.start + max(low_row, 0), run.start + high_row)
        address = np.maximum(lines.address[run], lines.begin[best])
        # Other functions may be inside, with lines of their own.
        cuts = distinct(np.concatenate((start[low:high], address)))
        present_rows = row[low:high][np.searchsorted(start[low:high], cuts, side="right") - 1]
        rows_of_best = np.searchsorted(address, cuts, side="right") - 1 + run.start
        replaced = (present_rows >= lines.first_row[shown[0]]) & (present_rows < lines.last_row[shown[0]])
        chosen = np.where(replaced, rows_of_best, present_rows)
        new_row = first_of_runs(chosen)
        pieces += [(start[done:low], row[done:low]), (cuts[new_row], chosen[new_row])]
        done = high
    if not pieces:
        return rows
    pieces.append((start[done:], row[done:]))
    return np.concatenate([piece[0] for piece in pieces]), np.concatenate([piece[1] for piece in pieces])


def begins_of_several(lines: Lines, vaddrs: UInt64) -> UInt64:
    """Begins shared by several sequences of one program that hold any of `vaddrs` (ascending), for
    `prefer_declared`."""
    several = _several(lines)
    first, last = (np.searchsorted(vaddrs, column[several]) for column in (lines.begin, lines.end))
    begins: UInt64 = lines.begin[several[first < last]]
    return begins


def _several(lines: Lines) -> Int64:
    """The sequences that begin where others of their program begin, in order of address, then program."""
    order = np.lexsort((lines.program, lines.begin))
    new = first_of_runs(lines.begin[order]) | first_of_runs(lines.program[order])
    several: Int64 = order[~(new & np.append(new[1:], True))]
    return several


def _declarations(reader: Reader, dies: UInt64) -> tuple[list[int], list[int]]:
    """File number and line of the declaration of each DIE; 0 of those of other files."""
    found = Resolved(dies)
    resolve(reader, found)
    return np.asarray(found.decl_file).tolist(), np.asarray(found.decl_line).tolist()

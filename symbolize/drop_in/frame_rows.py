"""Frames of many addresses as rows to print."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from symbolize.drop_in.naming import UNKNOWN, Clones, Kind, base_name, function_names, paths_of
from symbolize.symbols import Answer

LLVM_FRAME: Final = b"%b\n%b:%d:%d\n"
"""How llvm-symbolizer prints name, path, line and column by default."""


class Row(NamedTuple):
    """One frame to print: name, path, line and column, path and line of the declaration, and where the function begins
    (None: unknown). What is unknown of the others is `??`, empty and 0."""

    name: bytes = UNKNOWN
    path: bytes = UNKNOWN
    line: int = 0
    column: int = 0
    start_path: bytes = b""
    start_line: int = 0
    start: int | None = None


NOTHING: Final = Row()


def whole_path(path: bytes) -> bytes:
    """A path as it is."""
    return path


def rows(
    answer: Answer,
    begins: Sequence[int],
    kind: Kind,
    demangled: bool,
    clones: Clones,
    basenames: bool,
    drops_suffixes: bool,
) -> Iterator[list[Row]]:
    """The frames at each address, innermost first; the outermost has the begin of its function if `begins`
    has it for each address."""
    frames = answer.frames
    texts = function_names(answer, kind, demangled, clones, drops_suffixes)
    paths = paths_of(frames, base_name if basenames else whole_path)
    offsets = frames.offsets.tolist()
    columns = zip(
        frames.function.tolist(),
        frames.file.tolist(),
        frames.line.tolist(),
        frames.column.tolist(),
        frames.functions.decl_file[frames.function].tolist(),
        frames.functions.decl_line[frames.function].tolist(),
        strict=True,
    )
    every = [
        Row(texts[function], paths[file], line, column, paths[start] if start >= 0 else b"", start_line)
        for function, file, line, column, start, start_line in columns
    ]
    for number in range(len(frames)):
        found = every[offsets[number] : offsets[number + 1]]
        if found and begins:
            found[-1] = found[-1]._replace(start=begins[number])
        yield found


def llvm_answers(answer: Answer, demangled: bool, drops_suffixes: bool) -> list[bytes]:
    """What llvm-symbolizer prints by default of the frames at each address; as of `rows`, in half the time."""
    frames = answer.frames
    texts = function_names(answer, "linkage", demangled, "llvm", drops_suffixes)
    paths = paths_of(frames, whole_path)
    columns = zip(
        frames.function.tolist(), frames.file.tolist(), frames.line.tolist(), frames.column.tolist(), strict=True
    )
    every = [LLVM_FRAME % (texts[function], paths[file], line, column) for function, file, line, column in columns]
    nothing = LLVM_FRAME % (UNKNOWN, UNKNOWN, 0, 0)
    return [b"".join(every[first:last]) or nothing for first, last in pairwise(frames.offsets.tolist())]

"""Frames of many addresses as rows to print, with the names of functions as LLVM's and GNU's tools print them."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple

import numpy as np

from symbolize.core.arrays import distinct
from symbolize.names import demangle, is_mangled, own_name, split_suffix
from symbolize.symbols import Answer, Frames

Kind = Literal["none", "short", "linkage"]
Clones = Literal["llvm", "gnu"]

UNKNOWN: Final = b"??"
BETWEEN_BRACKETS: Final = re.compile(rb"(?<=>) (?=>)|(?<=operator<) (?=<)|(?<=operator<<) (?=<)")
"""What GNU's demangler writes between brackets of templates, and LLVM's does not."""
LAMBDA: Final = re.compile(rb"\{lambda\(([^{}]*)\)#(\d{1,9})\}")
UNNAMED: Final = re.compile(rb"\{unnamed type#(\d{1,9})\}")
LATE_SUFFIX: Final = re.compile(rb"(?:\.(?:cold|lto_priv)(?:\.\d+)?)+$")
"""What gcc adds to a symbol and not to the name in the debug information."""
ONE_SUFFIX: Final = re.compile(rb"\.[^.\d][^.]*(?:\.\d+)*")
LLVM_FRAME: Final = b"%b\n%b:%d:%d\n"
"""How llvm-symbolizer prints name, path, line and column by default."""


def function_names(
    answer: Answer, kind: Kind, demangled: bool, clones: Clones, drops_suffixes: bool
) -> dict[int, bytes]:
    """The names of the functions in an answer, by their rows; those without a name are `??` (R381, names of drop-ins).

    The linkage name is printed, else `DW_AT_name`; "short" is `DW_AT_name`, or the linkage name without scopes. With
    `drops_suffixes` functions of the debug information have the name in it, without what marks a copy.

    "short" cuts the linkage name where the tool prints `DW_AT_name`, because tables have one of the two:
    `function<main::$_1, void>` for `function<(lambda at main.cc:116:22), void>`. Where the file itself has no
    `.symtab`, and always for addr2line, `.cold` and `.lto_priv` are dropped, which only symbols have, unless the
    function is called so, as Go's `main.cold`. A name that a tool takes from another function is not followed: binutils
    gives an inlined function without a linkage name that of the symbol around it.
    """
    rows = distinct(answer.frames.function).astype(np.int64)
    if kind == "short":
        texts = [own_name(text) for text in answer.shown(rows, "templates").names]
    else:
        texts = list(answer.shown(rows, "none").system_names)
        if drops_suffixes:
            chosen = answer.frames.functions.take(rows)
            declared = zip(texts, chosen.name, (chosen.decl_file >= 0).tolist(), strict=True)
            # A function that the debug information calls `main.cold`, as of Go, is no part of another.
            texts = [LATE_SUFFIX.sub(b"", text) if known and text != name else text for text, name, known in declared]
        texts = readable(texts, clones) if demangled else texts
    return {row: text or UNKNOWN for row, text in zip(rows.tolist(), texts, strict=True)}


def readable(names: Sequence[bytes], clones: Clones) -> list[bytes]:
    """Linkage names as they are read by people, whole, with what marks copies of functions behind them."""
    split = [split_suffix(name) if is_mangled(name) else (name, b"") for name in names]
    texts = demangle([base for base, _ in split], "full")
    return [
        with_suffix(name, base, text, suffix, clones)
        for name, (base, suffix), text in zip(names, split, texts, strict=True)
    ]


def with_suffix(name: bytes, base: bytes, text: bytes, suffix: bytes, clones: Clones) -> bytes:
    """A readable name with its suffix; the linked name where nothing could be read, or is no mangled one.

    Whole readable names have LLVM's spelling for llvm-symbolizer: `>>`, `'lambda0'(int)`, suffixes of copies as
    `(.cold)`; for addr2line GNU's, `[clone .cold]` (R381, names of drop-ins).
    """
    if not is_mangled(name) or text == base:
        return name
    if clones == "llvm":
        text = BETWEEN_BRACKETS.sub(b"", llvm_locals(text) if b"{" in text else text)
        return text + b" (%b)" % suffix if suffix else text
    return text + b"".join(b" [clone %b]" % each for each in ONE_SUFFIX.findall(suffix))


def llvm_locals(text: bytes) -> bytes:
    """A readable name with lambdas and unnamed types as LLVM writes them: `'lambda0'(int)` for `{lambda(int)#2}`."""
    while (found := LAMBDA.search(text)) is not None:
        lambda_text = b"'lambda%b'(%b)" % (later(found[2]), found[1])
        text = text[: found.start()] + lambda_text + text[found.end() :]
    return UNNAMED.sub(lambda match: b"'unnamed%b'" % later(match[1]), text)


def later(number: bytes) -> bytes:
    """How LLVM counts: nothing for the first, 0 for the second."""
    return b"" if number == b"1" else b"%d" % (int(number) - 2)


def base_name(path: bytes) -> bytes:
    """The last part of a path."""
    return path.rpartition(b"/")[2]


def paths_of(frames: Frames, shown: Callable[[bytes], bytes]) -> dict[int, bytes]:
    """The paths of the files in `frames`, by their rows, as they are `shown`; -1 is `??`."""
    rows = sorted(set(frames.file.tolist()) | set(frames.functions.decl_file[frames.function].tolist()))
    return {row: shown(frames.files[row]) if row >= 0 else UNKNOWN for row in rows}


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

"""One HTML file with a profile in it, which any browser opens without a network or a server."""

import base64
import hashlib
import html
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TYPE_CHECKING, Final

import numpy as np

from symbolize.core.arrays import first_of_runs
from symbolize.core.compression import WBITS_GZIP
from symbolize.core.errors import printable
from symbolize.page.packing import data_pieces, source_pieces

if TYPE_CHECKING:
    from symbolize.analysis import CallTree, LineTotals, Sources, Stacks
    from symbolize.core.arrays import Float64, Int64

SCRIPTS: Final = (
    "data.js",
    "format.js",
    "tree.js",
    "functions.js",
    "branches.js",
    "layout.js",
    "colors.js",
    "search.js",
    "state.js",
    "canvas.js",
    "details.js",
    "graph.js",
    "table.js",
    "source.js",
    "keyboard.js",
    "app.js",
)
"""The parts of the page's script, in their order in it."""


@dataclass(frozen=True)
class Picture:
    """What a page shows. Where `base_values` (own values of a base profile by node of `tree`: float64[n, k]) is given,
    the page shows the difference: by how much the values of `tree` are more than these; its `sizes` are those of both.

    Percentages are of `totals` and `base_totals` (float64[k]), or of the absolute totals of the tree.
    """

    title: str
    sample_types: Sequence[tuple[str, str]]
    """Type and unit of each column of values."""
    default: int
    """The sample type that is shown first."""
    tree: "CallTree"
    base_values: "Float64 | None" = None
    base_title: str = ""
    totals: "Float64 | None" = None
    base_totals: "Float64 | None" = None
    lines: "LineTotals | None" = None
    """Values by line of the source files."""
    frame_lines: "Int64 | None" = None
    """For each frame of the tree the line of its file that the source view shows, 0 if there is none."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """Texts of the source files to embed, by their path in `lines` and in the frames."""
    caveats: Sequence[str] = ()
    """Which binaries are not proved."""
    named_samples: str = ""
    """The mark of the samples, if they have names."""


def picture_of(
    stacks: "Stacks",
    title: str,
    *,
    base_title: str | None = None,
    sources: "Sources | None" = None,
    caveats: tuple[str, ...] = (),
    named_samples: str = "",
) -> Picture:
    """What the page of `stacks` shows: their call tree, their lines, and those of their source files that `sources`
    finds. With a `base_title` their second half of columns are the values of the base."""
    from symbolize.analysis import call_tree, line_totals

    tree, lines, totals = call_tree(stacks), line_totals(stacks), stacks.totals
    picture = Picture(
        title,
        stacks.types,
        stacks.default,
        tree,
        lines=lines,
        frame_lines=heaviest_lines(stacks),
        sources=sources.read_all(lines.heaviest_files(stacks.default)) if sources is not None else {},
        caveats=caveats,
        named_samples=named_samples,
    )
    if base_title is None:
        return replace(picture, totals=totals)
    count = len(stacks.types)
    return replace(
        picture,
        tree=replace(tree, values=tree.values[:, :count], sizes=tree.sizes[:, :count] + tree.sizes[:, count:]),
        base_values=tree.values[:, count:],
        base_title=base_title,
        totals=totals[:count],
        base_totals=totals[count:],
    )


def heaviest_lines(stacks: "Stacks") -> "Int64":
    """For each frame the line with the largest cumulative value of those in the frame's file, 0 if there is none."""
    from symbolize.analysis import line_totals

    lines = line_totals(stacks, stacks.frames)
    rows = {file: row for row, file in enumerate(lines.files)}
    file_of = np.array([rows.get(file, -1) for file in stacks.names.files], np.int64)
    own = np.flatnonzero(lines.file == file_of[lines.function]) if len(lines) else np.zeros(0, np.int64)
    own = own[np.lexsort((-np.abs(lines.cumulative[own, stacks.default]), lines.function[own]))]
    first = own[first_of_runs(lines.function[own])]
    result = np.zeros(len(stacks.names), np.int64)
    result[lines.function[first]] = lines.line[first]
    return result


def mark_of(named_samples: str) -> str:
    """The element in the head of a page that says which samples it has with names."""
    return f'<meta name="named-samples" content="{named_samples}">'


def page_pieces(picture: Picture) -> Iterator[bytes]:
    """The page, piece by piece. Equal pictures give equal bytes.

    The page allows its own script and style and nothing else, no request included. Names and texts are in it as
    base64, so that nothing in them is markup.
    """
    script = "(() => {\n" + "\n".join(_part(name) for name in SCRIPTS) + "})();\n"
    style = _part("page.css")
    texts: dict[str, str] = {
        "TITLE": html.escape(printable(picture.title)),
        "CAVEATS": "".join(f'<p class="caveat">{html.escape(printable(each))}</p>' for each in picture.caveats),
        "NAMED": mark_of(picture.named_samples),
        "SCRIPT-HASH": _hash(script),
        "STYLE-HASH": _hash(style),
        "STYLE": style,
        "SCRIPT": script,
    }
    data: dict[str, Callable[[Picture], Iterator[bytes]]] = {"DATA": data_pieces, "SOURCES": source_pieces}
    for number, part in enumerate(_part("page.html").split("%%")):
        if number % 2 == 0:
            yield part.encode()
        elif part in texts:
            yield texts[part].encode()
        else:
            yield from _base64(_gzipped(data[part](picture)))


def _part(name: str) -> str:
    """A file of this package."""
    return (resources.files(__package__) / name).read_text("utf-8")


def _hash(text: str) -> str:
    """The source expression by which a Content-Security-Policy allows an inline element with this text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _gzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """zlib's packing, not the faster one of profiles: a page is written once, and mailed and opened many times."""
    compressor = zlib.compressobj(6, zlib.DEFLATED, WBITS_GZIP)
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()


def _base64(pieces: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for piece in pieces:
        piece = rest + piece
        whole = len(piece) - len(piece) % 3
        yield base64.b64encode(piece[:whole])
        rest = piece[whole:]
    yield base64.b64encode(rest)

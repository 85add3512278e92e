"""One HTML file with a profile in it, which any browser opens without a network or a server."""

import base64
import hashlib
import html
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from symbolize.analysis.kernels import number_nodes
from symbolize.core.arrays import NONE, Int32, Int64, first_of_runs, views
from symbolize.core.compression import WBITS_GZIP
from symbolize.core.errors import printable
from symbolize.core.records import record
from symbolize.profile.sample_types import unit_of

if TYPE_CHECKING:
    from symbolize.analysis import CallTree, LineTotals, Sources, Stacks
    from symbolize.core.arrays import Float64
    from symbolize.core.disassembly import Disassembler, Disassembly
    from symbolize.page.slices import Slices

EXACT: Final = 1 << 53
"""Numbers above this are rounded where they are stored as 64-bit floating-point numbers, as JavaScript does."""
WORD: Final = 8
"""Columns begin at multiples of this many bytes."""
UNSIGNED: Final = (("u1", 1 << 8), ("u2", 1 << 16), ("u4", 1 << 32))
SCRIPTS: Final = (
    "data.js",
    "format.js",
    "tree.js",
    "functions.js",
    "branches.js",
    "layout.js",
    "colors.js",
    "search.js",
    "filters.js",
    "slices.js",
    "state.js",
    "canvas.js",
    "details.js",
    "graph.js",
    "table.js",
    "peek.js",
    "tracks.js",
    "source.js",
    "instructions.js",
    "keyboard.js",
    "app.js",
)
"""The parts of the page's script, in their order in it."""
CAVEAT: Final = '<details class="caveat"><summary>{}</summary></details>'
"""A sentence of which the first line is shown until it is opened: it may name very many files."""


class PackedColumns:
    """Named columns behind one another."""

    def __init__(self) -> None:
        self.index: list[tuple[str, str, int, int]] = []
        self._columns: list[NDArray[Any]] = []

    def add(self, name: str, numbers: NDArray[Any], dtype: str, factor: int = 1) -> None:
        """Append a column, to be multiplied by `factor`; `dtype` is one of u1, u2, u4, i4, f8."""
        self.index.append((name, dtype, len(numbers), factor))
        self._columns.append(np.ascontiguousarray(numbers, dtype="<" + dtype))

    def add_counts(self, name: str, numbers: NDArray[Any]) -> None:
        """Append a column of numbers from 0 on in the smallest type that has them."""
        most = int(numbers.max(initial=0))
        self.add(name, numbers, next(dtype for dtype, limit in UNSIGNED if most < limit))

    def add_values(self, name: str, values: NDArray[Any]) -> None:
        """Append a column of sample values; whole numbers are multiples of the interval between samples, if that is
        constant."""
        is_whole = bool(np.all((np.abs(values) <= EXACT) & (values == np.rint(values))))
        factor = max(int(np.gcd.reduce(values.astype(np.int64), initial=0)), 1) if is_whole else 1
        small = np.iinfo(np.int32)
        fits = is_whole and bool(np.all((values >= small.min * factor) & (values <= small.max * factor)))
        self.add(name, values / factor, "i4", factor) if fits else self.add(name, values, "f8")

    def pieces(self) -> Iterator[bytes]:
        """The bytes of the columns, each in planes and padded to whole words."""
        for column in self._columns:
            planes = column.view(np.uint8).reshape(len(column), column.itemsize).T
            yield planes.tobytes()
            yield bytes(-column.nbytes % WORD)


def data_pieces(picture: "Picture") -> Iterator[bytes]:
    """The profile: the size of the header, the header, the columns."""
    columns = PackedColumns()
    header = _header(picture, columns)
    header["columns"] = columns.index
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + WORD) % WORD)
    yield len(text).to_bytes(WORD, "little")
    yield text
    yield from columns.pieces()


def source_pieces(picture: "Picture") -> Iterator[bytes]:
    """The embedded source files: a JSON object of texts by path."""
    yield json.dumps(dict(picture.sources), separators=(",", ":")).encode()


def _header(picture: "Picture", columns: PackedColumns) -> dict[str, Any]:
    """What is text or one number; the numbers by node, frame and line go to `columns`."""
    frames = picture.tree.frames
    header: dict[str, Any] = {
        "baseTitle": picture.base_title,
        "types": [[*each, *(unit_of(each[1]) or ("", 1))] for each in picture.sample_types],
        "selected": picture.default,
        "difference": picture.base_values is not None,
        "sources": sorted(picture.sources),
        "names": list(frames.names),
        "lineFiles": [],
        "totals": [None if each is None else each.tolist() for each in (picture.totals, picture.base_totals)],
    }
    for name, texts in (("files", frames.files), ("modules", frames.modules)):
        table = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        header[name] = list(table)
        columns.add_counts(f"frame.{name}", np.array([table[text] for text in texts], np.int64))
    if picture.frame_lines is not None:
        columns.add_counts("frame.line", picture.frame_lines)
    header["depth"], header["rounded"] = _add_nodes(picture, columns)
    if (slices := picture.slices) is not None:
        header["slices"] = {
            "keys": slices.keys,
            "hasThreads": slices.has_threads,
            "bins": slices.bins,
            "width": slices.width,
            "notes": slices.notes,
        }
    if picture.lines is not None:
        header["lineFiles"] = list(picture.lines.files)
        columns.add_counts("line.file", picture.lines.file)
        columns.add_counts("line.number", np.maximum(picture.lines.line, 0))
        for kind in range(len(picture.sample_types)):
            columns.add_values(f"line.flat.{kind}", picture.lines.flat[:, kind])
            columns.add_values(f"line.cumulative.{kind}", picture.lines.cumulative[:, kind])
    if picture.instructions is not None:
        header["code"] = _add_instructions(picture.instructions, columns)
    return header


def _add_instructions(found: "Instructions", columns: PackedColumns) -> dict[str, Any]:
    """Add the instructions; their texts, each once, and what is said of their functions."""
    blocks, missing = found.code
    rows = [(each, each.vaddr - block.begin) for block in blocks for each in block.instructions]
    header: dict[str, Any] = {
        "blocks": [
            [block.file, f"{block.begin:x}", f"{block.end:x}", frame, len(block.instructions)]
            for block, frame in zip(blocks, found.frames, strict=True)
        ],
        "missing": list(missing),
    }
    columns.add_counts("code.distance", np.array([distance for _, distance in rows], np.int64))
    columns.add_counts("code.line", np.array([each.line for each, _ in rows], np.int64))
    for name in ("text", "file", "inlined"):
        texts = [getattr(each, name) for each, _ in rows]
        table = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        header[name] = list(table)
        columns.add_counts(f"code.{name}", np.array([table[text] for text in texts], np.int64))
    for kind in range(found.flat.shape[1]):
        columns.add_values(f"code.flat.{kind}", found.flat[:, kind])
        columns.add_values(f"code.cumulative.{kind}", found.cumulative[:, kind])
    return header


def _add_nodes(picture: "Picture", columns: PackedColumns) -> tuple[int, bool]:
    """Add the tree; how deep it is, and whether totals are too large to be exact."""
    tree = picture.tree
    order, depth = preorder(np.asarray(tree.parent))
    columns.add_counts("node.pops", depth[:-1] + 1 - depth[1:])
    columns.add_counts("node.frame", np.maximum(tree.frame[order], 0))
    columns.add("node.flags", tree.flags[order], "u1")
    values = {"own": tree.values[order]}
    if picture.base_values is not None:
        values["base"] = picture.base_values[order]
    sizes, nodes = tree.sizes[order], np.arange(len(tree))
    if (slices := picture.slices) is not None:  # several rows of values by node
        place = np.empty(len(tree), np.int64)
        place[order] = nodes
        nodes, by = place[slices.node], np.lexsort((slices.bin, slices.set, place[slices.node]))
        nodes, values, sizes = nodes[by], {"own": slices.values[by]}, slices.sizes[by]
    rows = np.flatnonzero(sizes.any(axis=1))
    columns.add_counts("value.step", np.diff(nodes[rows], prepend=0))
    if slices is not None:
        columns.add_counts("slice.set", slices.set[by[rows]])
        columns.add_counts("slice.bin", slices.bin[by[rows]])
        for key, column in enumerate(slices.sets.T):
            columns.add_counts(f"label.{key}", column)
    rounded = False
    for name, matrix in values.items():
        for kind in range(len(picture.sample_types)):
            column = matrix[rows, kind]
            rounded |= float(np.abs(column).sum()) > EXACT
            columns.add_values(f"value.{name}.{kind}", column)
    differs = (sizes != sum(values.values())).any(axis=0)  # where values are negative
    for kind in np.flatnonzero(differs).tolist():
        columns.add_values(f"value.size.{kind}", sizes[rows, kind])
    return int(depth.max(initial=0)), rounded


def preorder(parent: Int32) -> tuple[Int64, Int64]:
    """The nodes of a tree with every subtree behind its root, siblings in ascending order, and their depths there.

    Node 0 is the root (its parent is -1), and parents precede their children.
    """
    size, free = np.ones((2, len(parent)), np.int64)
    order, depth = np.zeros((2, len(parent)), np.int64)
    number_nodes(*views(parent, size, free, order, depth))
    return order, depth[order]


@record(frozen=True)
class Instructions:
    """Machine code with the values of each instruction, float64[n, k], and for each block the row of the frame that its
    heaviest location is in."""

    code: "Disassembly"
    flat: "Float64"
    cumulative: "Float64"
    frames: Sequence[int]


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
    instructions: Instructions | None = None
    caveats: Sequence[str] = ()
    """Which binaries are not proved."""
    named_samples: str = ""
    """The mark of the samples, if they have names."""
    slices: "Slices | None" = None
    """The values of `tree` apart by labels and times, if there are any. A difference has none."""


def picture_of(
    stacks: "Stacks",
    title: str,
    *,
    base_title: str | None = None,
    sources: "Sources | None" = None,
    caveats: tuple[str, ...] = (),
    named_samples: str = "",
    disassembly: "Disassembler | None" = None,
) -> Picture:
    """What the page of `stacks` shows: their call tree, their lines, those of their source files that `sources` finds,
    and the code that `disassembly` gives. With a `base_title` their second half of columns are the values of the
    base."""
    from symbolize.analysis import call_tree, line_totals
    from symbolize.page.slices import slices_of

    tree, lines, totals = call_tree(stacks), line_totals(stacks), stacks.totals
    picture = Picture(
        title,
        stacks.types,
        stacks.default,
        tree,
        lines=lines,
        frame_lines=heaviest_lines(stacks),
        sources=sources.read_all(lines.heaviest_files(stacks.default)) if sources is not None else {},
        instructions=instructions_of(stacks, disassembly) if disassembly is not None else None,
        caveats=caveats,
        named_samples=named_samples,
    )
    if base_title is None:
        return replace(picture, totals=totals, slices=slices_of(stacks, tree))
    count = len(stacks.types)
    return replace(
        picture,
        tree=replace(tree, values=tree.values[:, :count], sizes=tree.sizes[:, :count] + tree.sizes[:, count:]),
        base_values=tree.values[:, count:],
        base_title=base_title,
        totals=totals[:count],
        base_totals=totals[count:],
    )


def instructions_of(stacks: "Stacks", disassembly: "Disassembler") -> Instructions:
    """The instructions of the functions with most value of their own, each with its values."""
    from symbolize.analysis import totals_at

    at, count = np.arange(len(stacks.profile.locations), dtype=np.int32), 0
    weights = np.abs(totals_at(stacks.only_default(), at, len(at))[0][:, 0])
    code = disassembly(weights)
    at[:] = NONE
    frames = []
    for block in code.blocks:
        at[block.rows] = count + block.places
        count += len(block.instructions)
        heaviest = block.rows[np.argmax(weights[block.rows])]
        frames.append(int(stacks.frames[stacks.frame_offsets[heaviest + 1] - 1]))
    flat, cumulative = (each[:, : len(stacks.types)] for each in totals_at(stacks, at, count))
    return Instructions(code, flat, cumulative, frames)


def heaviest_lines(stacks: "Stacks") -> "Int64":
    """For each frame the line with the largest cumulative value of those in the frame's file, 0 if there is none."""
    from symbolize.analysis import line_totals

    lines = line_totals(stacks, stacks.frames)
    rows = {file: row for row, file in enumerate(lines.files)}
    file_of = np.array([rows.get(file, -1) for file in stacks.names.files], np.int64)
    own = np.flatnonzero(lines.file == file_of[lines.function])
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
        "CAVEATS": "".join(CAVEAT.format(html.escape(printable(each))) for each in picture.caveats),
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

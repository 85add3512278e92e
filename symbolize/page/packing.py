"""The data of a page: a JSON header and typed columns, as the page's `data.js` reads them.

Nodes are written in preorder, which stores the shape of the tree as one small number a node, and gives the page every
subtree as a range. The bytes of a column are stored in planes (all lowest bytes first), which gzip packs several times
smaller than the numbers themselves.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from symbolize.analysis.kernels import number_nodes
from symbolize.core.arrays import Int32, Int64, views
from symbolize.profile.units import unit_of

if TYPE_CHECKING:
    from symbolize.page.page import Picture

EXACT: Final = 1 << 53
"""Numbers above this are rounded where they are stored as 64-bit floating-point numbers, as JavaScript does."""
WORD: Final = 8
"""Columns begin at multiples of this many bytes."""
UNSIGNED: Final = (("u1", 1 << 8), ("u2", 1 << 16), ("u4", 1 << 32))


class Columns:
    """Named columns behind one another."""

    def __init__(self) -> None:
        self.index: list[tuple[str, str, int]] = []
        self._columns: list[NDArray[Any]] = []

    def add(self, name: str, numbers: NDArray[Any], dtype: str) -> None:
        """Append a column; `dtype` is one of u1, u2, u4, i4, f8."""
        self.index.append((name, dtype, len(numbers)))
        self._columns.append(np.ascontiguousarray(numbers, dtype="<" + dtype))

    def add_counts(self, name: str, numbers: NDArray[Any]) -> None:
        """Append a column of numbers from 0 on in the smallest type that has them."""
        most = int(numbers.max(initial=0))
        self.add(name, numbers, next(dtype for dtype, limit in UNSIGNED if most < limit))

    def add_values(self, name: str, values: NDArray[Any]) -> None:
        """Append a column of sample values."""
        small = np.iinfo(np.int32)
        fits = bool(np.all((values >= small.min) & (values <= small.max) & (values == np.rint(values))))
        self.add(name, values, "i4" if fits else "f8")

    def pieces(self) -> Iterator[bytes]:
        """The bytes of the columns, each in planes and padded to whole words."""
        for column in self._columns:
            planes = column.view(np.uint8).reshape(len(column), column.itemsize).T
            yield planes.tobytes()
            yield bytes(-column.nbytes % WORD)


def data_pieces(picture: "Picture") -> Iterator[bytes]:
    """The profile: the size of the header, the header, the columns."""
    columns = Columns()
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


def _header(picture: "Picture", columns: Columns) -> dict[str, Any]:
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
    if picture.lines is not None:
        header["lineFiles"] = list(picture.lines.files)
        columns.add_counts("line.file", picture.lines.file)
        columns.add_counts("line.number", np.maximum(picture.lines.line, 0))
        for kind in range(len(picture.sample_types)):
            columns.add_values(f"line.flat.{kind}", picture.lines.flat[:, kind])
            columns.add_values(f"line.cumulative.{kind}", picture.lines.cumulative[:, kind])
    return header


def _add_nodes(picture: "Picture", columns: Columns) -> tuple[int, bool]:
    """Add the tree; how deep it is, and whether totals are too large to be exact."""
    tree = picture.tree
    order, depth = preorder(np.asarray(tree.parent))
    columns.add_counts("node.pops", depth[:-1] + 1 - depth[1:])
    columns.add_counts("node.frame", np.maximum(tree.frame[order], 0))
    columns.add("node.flags", tree.flags[order], "u1")
    values = {"own": tree.values[order]}
    if picture.base_values is not None:
        values["base"] = picture.base_values[order]
    sizes = tree.sizes[order]
    holders = np.flatnonzero(sizes.any(axis=1))
    columns.add_counts("value.step", np.diff(holders, prepend=0))
    rounded = False
    for name, matrix in values.items():
        for kind in range(len(picture.sample_types)):
            column = matrix[holders, kind]
            rounded |= float(np.abs(column).sum()) > EXACT
            columns.add_values(f"value.{name}.{kind}", column)
    differs = (sizes != sum(values.values())).any(axis=0)  # where values are negative
    for kind in np.flatnonzero(differs).tolist():
        columns.add_values(f"value.size.{kind}", sizes[holders, kind])
    return int(depth.max(initial=0)), rounded


def preorder(parent: Int32) -> tuple[Int64, Int64]:
    """The nodes of a tree with every subtree behind its root, siblings in ascending order, and their depths there.

    Node 0 is the root (its parent is -1), and parents precede their children.
    """
    size, free = np.ones((2, len(parent)), np.int64)
    order, depth = np.zeros((2, len(parent)), np.int64)
    number_nodes(*views(parent, size, free, order, depth))
    return order, depth[order]

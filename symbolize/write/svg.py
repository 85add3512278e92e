"""A flame graph as a picture: SVG without scripts, for documents and chats."""

import zlib
from collections.abc import Iterator
from html import escape
from typing import Final

import numpy as np

from symbolize.analysis import CallTree, FrameFlag, Stacks, call_tree
from symbolize.analysis.units import percent, quantity
from symbolize.core.arrays import Float64
from symbolize.core.errors import printable
from symbolize.core.terminal import shortened_function

WIDTH: Final = 1200
MARGIN: Final = 10
ROW: Final = 17
FONT: Final = 12
LETTER: Final = 7.2
"""Width of a letter of that font."""
LEAST: Final = 0.5
"""Pixels of the narrowest frame that is drawn."""
LEAST_LETTERS: Final = 4
HEADING: Final = 34
UNNAMED: Final = "hsl(0 0% 78%)"
STYLE: Final = (
    f"text{{font:{FONT}px ui-monospace,Menlo,Consolas,monospace;fill:#1b1b1b}}"
    "rect{stroke:#fff;stroke-width:.5}.title{font-weight:bold}"
)


def pieces(stacks: Stacks, title: str) -> Iterator[bytes]:
    """The picture of the default sample type, the root at the bottom and the heaviest callee on the left."""
    kind, unit = stacks.types[stacks.default]
    tree = call_tree(stacks)
    totals = np.abs(tree.totals()[:, stacks.default])
    boxes = layout(tree, totals)
    rows = 1 + max((depth for _, _, depth in boxes), default=0)
    height = HEADING + rows * ROW + MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">\n'
        f'<style>{STYLE}</style>\n<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n'
        f'<text class="title" x="{MARGIN}" y="{MARGIN + FONT}">{text(title)}: {text(kind)}, '
        f"{text(quantity(totals[0], unit))}</text>\n"
    ).encode()
    scale = (WIDTH - 2 * MARGIN) / totals[0] if totals[0] else 0.0
    for node, begin, depth in boxes:
        name = tree.frames.names[tree.frame[node]] if node else "all"
        x, y, width = MARGIN + begin * scale, height - MARGIN - (depth + 1) * ROW, totals[node] * scale
        label = f"{name} ({quantity(totals[node], unit)}, {percent(totals[node], totals[0])})"
        yield (
            f'<g><title>{text(label)}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW}" '
            f'fill="{colour(tree, node)}"/>'
        ).encode()
        if (letters := int((width - 6) / LETTER)) >= LEAST_LETTERS:
            yield f'<text x="{x + 3:.1f}" y="{y + FONT + 1}">{text(shortened_function(name, letters))}</text>'.encode()
        yield b"</g>\n"
    yield b"</svg>\n"


def layout(tree: CallTree, totals: Float64) -> list[tuple[int, float, int]]:
    """The nodes that are wide enough to be seen, with the value at which each begins and its depth; the root first."""
    children = tree.children(totals, LEAST / (WIDTH - 2 * MARGIN) * float(totals[0]))
    found: list[tuple[int, float, int]] = []
    pending = [(0, 0.0, 0)]
    while pending:
        node, begin, depth = pending.pop()
        found.append((node, begin, depth))
        for child in children.get(node, ()):
            pending.append((child, begin, depth + 1))
            begin += float(totals[child])
    return found


def colour(tree: CallTree, node: int) -> str:
    """A warm colour for each module, grey for unnamed code."""
    if node == 0 or tree.flags[node] & FrameFlag.UNSYMBOLIZED:
        return UNNAMED
    name, module = tree.frames.names[tree.frame[node]], tree.frames.modules[tree.frame[node]]
    hue = zlib.crc32(module.encode(errors="replace")) % 360
    return f"hsl({hue} 70% {72 + zlib.crc32(name.encode(errors='replace')) % 12}%)"


def text(value: str) -> str:
    """Text for XML, which cannot have all characters, and may be shown in a terminal."""
    return escape(printable(value))

"""A flame graph as a picture: SVG without scripts, for documents and chats."""

import zlib
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

import numpy as np

from symbolize.analysis import CallTree, FrameFlag, Stacks, call_tree
from symbolize.analysis.stacks import LETTERS
from symbolize.analysis.units import percent, quantity
from symbolize.core.arrays import NONE, Float64
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
MAX_TITLE: Final = 1 << 12
"""Letters of the name in the title of a frame, which appears where the mouse is."""
HEADING: Final = 34
UNNAMED: Final = "hsl(0 0% 78%)"
STYLE: Final = (
    f"text{{font:{FONT}px ui-monospace,Menlo,Consolas,monospace;fill:#1b1b1b}}"
    "rect{stroke:#fff;stroke-width:.5}.title{font-weight:bold}"
)


def pieces(stacks: Stacks, title: str, caveats: Sequence[str] = ()) -> Iterator[bytes]:
    """The picture of the default sample type, the root at the bottom and the heaviest callee on the left."""
    kind, unit = stacks.types[stacks.default]
    tree = call_tree(stacks)
    totals, widths = (each[:, stacks.default] for each in (tree.totals(), tree.widths()))
    boxes = layout(tree, widths)
    lengths = np.minimum(stacks.names.names.lengths(), MAX_TITLE)
    stacks.budget(LETTERS).spend(int(lengths[tree.frame[[node for node, _, _ in boxes if node]]].sum()))
    rows = 1 + max((depth for _, _, depth in boxes), default=0)
    height = HEADING + rows * ROW + MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">\n'
        f'<style>{STYLE}</style>\n<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n'
        f'<text class="title" x="{MARGIN}" y="{MARGIN + FONT}">{text(title)}: {text(kind)}, '
        f"{text(quantity(widths[0], unit) + stacks.net(stacks.default))}</text>\n"
        + "".join(f"<desc>{text(each)}</desc>\n" for each in caveats)
    ).encode()
    scale = (WIDTH - 2 * MARGIN) / widths[0] if widths[0] else 0.0
    is_unnamed = ((tree.flags & np.uint8(FrameFlag.UNSYMBOLIZED)) != 0).tolist()
    labels: dict[tuple[int, int], str] = {}
    known = {NONE: ("all", "all", UNNAMED)}
    for node, begin, depth in boxes:
        if (frame := int(tree.frame[node])) not in known:
            known[frame] = name_of(tree, frame)
        name, title, colour = known[frame]
        x, y, width = MARGIN + begin * scale, height - MARGIN - (depth + 1) * ROW, widths[node] * scale
        share = text(f"({quantity(totals[node], unit)}, {percent(totals[node], widths[0])})")
        fill = UNNAMED if is_unnamed[node] else colour
        yield (
            f'<g><title>{title} {share}</title><rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW}" '
            f'fill="{fill}"/>'
        ).encode()
        if (letters := int((width - 6) / LETTER)) >= LEAST_LETTERS:
            if (frame, letters) not in labels:
                labels[frame, letters] = text(shortened_function(name, letters))
            yield f'<text x="{x + 3:.1f}" y="{y + FONT + 1}">{labels[frame, letters]}</text>'.encode()
        yield b"</g>\n"
    yield b"</svg>\n"


def layout(tree: CallTree, widths: Float64) -> list[tuple[int, float, int]]:
    """The nodes that are wide enough to be seen, with where each begins and its depth; the root first."""
    children = tree.children(widths, LEAST / (WIDTH - 2 * MARGIN) * float(widths[0]))
    found: list[tuple[int, float, int]] = []
    pending = [(0, 0.0, 0)]
    while pending:
        node, begin, depth = pending.pop()
        found.append((node, begin, depth))
        for child in children.get(node, ()):
            pending.append((child, begin, depth + 1))
            begin += float(widths[child])
    return found


def name_of(tree: CallTree, frame: int) -> tuple[str, str, str]:
    """The name of a frame, the same in a title, and a warm colour for its module."""
    name, module = tree.frames.names[frame], tree.frames.modules[frame]
    hue = zlib.crc32(module.encode(errors="replace")) % 360
    title = text(name if len(name) <= MAX_TITLE else name[: MAX_TITLE - 1] + "…")
    return name, title, f"hsl({hue} 70% {72 + zlib.crc32(name.encode(errors='replace')) % 12}%)"


def text(value: str) -> str:
    """Text for XML, which cannot have all characters, and may be shown in a terminal."""
    return escape(printable(value))

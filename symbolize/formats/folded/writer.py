"""Folded stacks: `main;work;step 42`, a line a stack, as flame graph scripts read them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from symbolize.analysis import CallTree, Stacks, call_tree
from symbolize.analysis.stacks import LETTERS
from symbolize.core.errors import printable

AT_ONCE: Final = 1 << 12
"""Names of a line that are written at a time: stacks may be deep, and names long."""
NEGATIVE: Final = "[negative]"
"""The frame above the stacks of values below 0."""


def pieces(stacks: Stacks) -> Iterator[bytes]:
    """The lines, from the root to the leaf, with the values of the default sample type. Values below 0, whose lines
    flamegraph.pl drops, have no sign and are below a frame of their own. Raises InputError if there are too many
    letters in them."""
    tree = call_tree(stacks)
    stacks.budget(LETTERS).spend(letters(tree))
    names = [clean(name) for name in tree.frames.names]
    values = tree.values[:, stacks.default].tolist()
    for node, frames in leaf_paths(tree):
        if value := round(values[node]):
            if value < 0:
                yield f"{NEGATIVE};".encode()
            for first in range(0, len(frames), AT_ONCE):
                end = ";" if first + AT_ONCE < len(frames) else f" {abs(value)}\n"
                yield (";".join(names[frame] for frame in frames[first : first + AT_ONCE]) + end).encode()


def letters(tree: CallTree) -> int:
    """How many letters the names in all lines have."""
    lines = np.zeros((len(tree), 1))
    lines[tree.leaves()] = 1
    below = replace(tree, values=lines).totals()[1:, 0]
    return int(below @ (tree.frames.names.lengths() + 1)[tree.frame[1:]])


def leaf_paths(tree: CallTree) -> Iterator[tuple[int, list[int]]]:
    """Each node where stacks end, with the frames that lead to it, from the root on."""
    parents, frames = tree.parent.tolist(), tree.frame.tolist()
    for node in tree.leaves().tolist():
        path, at = [], node
        while at > 0:
            path.append(frames[at])
            at = parents[at]
        yield node, path[::-1]


def clean(name: str) -> str:
    """A name without what separates frames and lines, or would steer a terminal."""
    return printable(" ".join(name.replace(";", ":").split()))

"""Folded stacks: `main;work;step 42`, a line a stack, as flame graph scripts read them."""

from collections.abc import Iterator

from symbolize.analysis import CallTree, Stacks, call_tree
from symbolize.core.errors import printable


def pieces(stacks: Stacks) -> Iterator[bytes]:
    """The lines, from the root to the leaf, with the values of the default sample type."""
    tree = call_tree(stacks)
    names = [clean(name) for name in tree.frames.names]
    values = tree.values[:, stacks.default].tolist()
    for node, frames in leaf_paths(tree):
        if value := round(values[node]):
            yield f"{';'.join(names[frame] for frame in frames)} {value}\n".encode()


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

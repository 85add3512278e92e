"""The call tree: stacks with the same callers merged."""

from dataclasses import dataclass

import numpy as np

from symbolize.analysis.frames import FrameNames
from symbolize.analysis.kernels import StackColumns, add_to_parents, grow_tree
from symbolize.analysis.stacks import Stacks
from symbolize.core.arrays import Float64, Int32, Int64, UInt8, views
from symbolize.profile import NONE


@dataclass(frozen=True, eq=False)
class CallTree:
    """A tree of frames: node 0 is the root, which is no frame; parents come before their children.

    By node: `parent` and `frame`, a row of `frames` (NONE for the root); `flags`, the `FrameFlag`s that its calls have
    together; `values`, those of the stacks that end there, and `sizes`, the same without their signs: float64[n, k].
    `ends` is the node at which each stack ends.
    """

    frames: FrameNames
    parent: Int32
    frame: Int32
    flags: UInt8
    values: Float64
    sizes: Float64
    ends: Int64

    def __len__(self) -> int:
        return len(self.parent)

    def totals(self) -> Float64:
        """The values of each node and all below it: float64[n, k]."""
        return self._summed(self.values)

    def widths(self) -> Float64:
        """How wide each node is drawn, float64[n, k]: negative values below it do not cancel others."""
        return self._summed(self.sizes)

    def _summed(self, values: Float64) -> Float64:
        totals = values.copy()
        add_to_parents(self.parent.data, totals.data)
        return totals

    def children(self, weights: Float64, least: float) -> dict[int, list[int]]:
        """The children of each node, the heaviest first, without those whose weight is below `least` or 0."""
        shown = np.flatnonzero(weights >= max(least, np.finfo(np.float64).tiny))
        children: dict[int, list[int]] = {}
        for node in shown[np.argsort(-weights[shown], kind="stable")].tolist():
            if node:
                children.setdefault(int(self.parent[node]), []).append(node)
        return children

    def leaves(self) -> Int64:
        """The nodes at which stacks with values end, in their order."""
        return np.flatnonzero(self.values.any(axis=1) & (self.parent != NONE))


def call_tree(stacks: Stacks, keys: Int32 | None = None, inverted: bool = False) -> CallTree:
    """The tree of all stacks, from the roots on, or from the leaves on if it is `inverted`.

    With `keys`, a number for each frame of `stacks`, frames are the same where these are; `frame` of a node is then
    such a number. Raises InputError for a tree that is too large.
    """
    leaves = np.zeros(len(stacks), np.int64)
    keys = stacks.frames if keys is None else keys
    columns = StackColumns(*views(stacks.location_offsets, stacks.locations, stacks.frame_offsets, keys))
    flags, ends = views(stacks.flags, leaves)
    nodes = grow_tree(columns, flags, ends, inverted, stacks.most_rows())
    stacks.check_size(len(nodes))
    parent, frame = nodes[:, 0].astype(np.int32), nodes[:, 1].astype(np.int32)
    parent[0] = frame[0] = NONE
    values = by_node(leaves, stacks.values, len(nodes))
    sizes = by_node(leaves, np.abs(stacks.values), len(nodes)) if stacks.has_negative() else values
    return CallTree(stacks.names, parent, frame, nodes[:, 2].astype(np.uint8), values, sizes, leaves)


def by_node(leaves: Int64, values: Float64, count: int) -> Float64:
    """The values of stacks summed by the nodes at which they end: float64[count, k]."""
    own = [np.bincount(leaves, column, minlength=count) for column in values.T]
    return np.ascontiguousarray(np.array(own, np.float64).reshape(len(own), count).T)

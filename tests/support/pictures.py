"""Made pictures for tests of the page."""

import random
from dataclasses import replace
from typing import Any

import numpy as np

from symbolize.analysis import CallTree, FrameFlag, FrameNames, LineTotals
from symbolize.page import Picture
from symbolize.page.slices import SliceKey, Slices
from symbolize.profile import NONE

HOSTILE = [
    "</script><script>window.attacked = 1</script>",
    "<img src=x onerror='window.attacked = 1'>",
    "%%SCRIPT%%",
    'operator<<("${window.attacked = 1}")',
    "tab\there\nline\u202eright to left\x00\x1b[31m",
    "__proto__",
    "constructor",
    "\ud800 lone surrogate",
    "",
]

Calls = dict[str, Any]
"""Functions with what they call, or the value of the stacks that end in them."""


def tree_of(
    calls: Calls,
    *,
    title: str = "made",
    base: Calls | None = None,
    flags: dict[str, int] | None = None,
    unit: str = "nanoseconds",
    lines: LineTotals | None = None,
    sources: dict[str, str] | None = None,
    files: dict[str, str] | None = None,
    frame_lines: dict[str, int] | None = None,
) -> Picture:
    """A picture of one sample type; `base` is a tree of the base profile; `flags`, `files`, `frame_lines` are by name.

    The module of a function is what precedes its first `!`: `lib!f` is the function `f` of `lib`.
    """
    rows: dict[str, int] = {}
    nodes: dict[tuple[int, int], int] = {}
    parent, frame = [NONE], [NONE]
    own: list[dict[int, float]] = [{}, {}]

    def add(calls: Calls, above: int, column: int) -> None:
        for name, below in calls.items():
            row = rows.setdefault(name, len(rows))
            node = nodes.setdefault((above, row), len(parent))
            if node == len(parent):
                parent.append(above)
                frame.append(row)
            if isinstance(below, dict):
                add(below, node, column)
            else:
                own[column][node] = own[column].get(node, 0) + below

    add(calls, 0, 0)
    add(base or {}, 0, 1)
    values = np.zeros((2, len(parent), 1))
    for column, each in enumerate(own):
        for node, value in each.items():
            values[column, node, 0] = value
    names = [name.rpartition("!")[2] for name in rows]
    modules = [name.rpartition("!")[0] or "program" for name in rows]
    of_name = np.array([NONE] + [(flags or {}).get(name, FrameFlag.CALLED) for name in names])
    tree = CallTree(
        FrameNames(names, [(files or {}).get(name, "") for name in names], modules),
        np.array(parent, np.int32),
        np.array(frame, np.int32),
        np.where(np.array(frame) < 0, 0, of_name[np.array(frame) + 1]).astype(np.uint8),
        values[0],
        np.abs(values).sum(axis=0),
        np.zeros(0, np.int64),
    )
    return Picture(
        title,
        [("cpu", unit)],
        0,
        tree,
        base_values=values[1] if base is not None else None,
        base_title="before" if base is not None else "",
        lines=lines,
        frame_lines=np.array([(frame_lines or {}).get(name, 0) for name in names], np.int64),
        sources=sources or {},
    )


def large_picture(stacks: int = 100_000, depth: int = 30, functions: int = 6000) -> Picture:
    """Distinct stacks about `depth` frames deep, which share callers as those of programs do."""
    rng = random.Random(1)
    parent, frame, leaves = [NONE], [NONE], []
    known: dict[tuple[int, int], int] = {}
    paths: list[list[int]] = []
    while len(leaves) < stacks:
        length = depth + rng.randrange(-5, 6)
        like = paths[rng.randrange(max(0, len(paths) - 2000), len(paths))] if paths else [0]
        path = like[: max(4, length - 1 - int(rng.expovariate(0.12))) + 1]
        while len(path) <= length:
            row = rng.randrange(functions if rng.random() < 0.7 else 200)
            node = known.setdefault((path[-1], row), len(parent))
            if node == len(parent):
                parent.append(path[-1])
                frame.append(row)
            path = [*path, node]
        paths.append(path)
        if not leaves or path[-1] != leaves[-1]:
            leaves.append(path[-1])
    values = np.zeros((len(parent), 2))
    weights = np.array([1 + int(rng.paretovariate(1.2)) for _ in leaves], np.float64)
    np.add.at(values, np.array(leaves), np.column_stack((weights, weights * 1e7)))
    modules = ["server", "libcore.so.2", "libstdc++.so.6", "libc.so.6", "libssl.so.3", "libz.so.1"]
    names = FrameNames(
        [
            f"service::layer{row % 23}::(anonymous namespace)::Component{row % 97}::operation_{row}"
            for row in range(functions)
        ],
        [f"/src/layer{row % 23}/part{row % 97}.cc" for row in range(functions)],
        [modules[row % len(modules)] for row in range(functions)],
    )
    flags = np.where(np.array(frame) % 3, FrameFlag.CALLED, FrameFlag.INLINED).astype(np.uint8)
    tree = CallTree(
        names, np.array(parent, np.int32), np.array(frame, np.int32), flags, values, values, np.zeros(0, np.int64)
    )
    return Picture("large", [("samples", "count"), ("cpu", "nanoseconds")], 1, tree)


def with_slices(picture: Picture, threads: int = 24, bins: int = 512) -> Picture:
    """A picture whose stacks are spread over threads, the first of which have most of them, and over time."""
    rng = np.random.default_rng(1)
    tree = picture.tree
    ends = np.flatnonzero(tree.values.any(axis=1))
    node = np.concatenate([ends, ends[::3]])  # some in two slices
    of_thread = np.minimum(rng.geometric(0.15, len(node)) - 1, threads - 1)
    of_bin = rng.integers(0, bins, len(node))
    values = tree.values[node]
    values[: len(ends) : 3] //= 2
    values[len(ends) :] -= values[: len(ends) : 3]
    texts = ["", *(f"server 4711 / worker-{i} {4711 + i}" for i in range(threads))]
    pool = np.arange(threads) % 3 + 1
    return replace(
        picture,
        slices=Slices(
            keys=[SliceKey("thread", texts), SliceKey("pool", ["", "small", "large", "idle"])],
            has_threads=True,
            sets=np.column_stack([np.arange(1, threads + 1), pool]),
            bins=bins,
            width=20_000_000,
            node=node,
            set=of_thread,
            bin=of_bin,
            values=values,
            sizes=values,
            notes=[],
        ),
    )

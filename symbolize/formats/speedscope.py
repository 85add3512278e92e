"""Stacks as speedscope's own file format, with inlined frames and unnamed modules."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from symbolize.analysis import CallTree, Stacks, call_tree
from symbolize.analysis.label_values import samples_by_label
from symbolize.formats.folded.writer import leaf_paths
from symbolize.profile.sample_types import unit_of

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
UNITS: Final = {
    ("time", 10**9): "seconds",
    ("time", 10**6): "milliseconds",
    ("time", 10**3): "microseconds",
    ("time", 1): "nanoseconds",
    ("size", 1): "bytes",
}
"""Units that speedscope knows, by what they measure and how many of the smallest unit they are."""

MAX_VALUES: Final = 1000
"""Values of a label that have a profile of their own."""


def pieces(stacks: Stacks, title: str, caveats: Sequence[str] = (), key: str = "") -> Iterator[bytes]:
    """The file: a profile for each sample type, with a sample for each distinct stack. With `key`, one of the default
    type for each value of that label is behind them, the heaviest first. Values below 0, which speedscope refuses, are
    in a profile of their own, without their signs."""
    stacks.check_steps(len(stacks.types) + bool(key))
    tree = call_tree(stacks)
    frames = [
        {"name": name, **({"file": file} if file else {})}
        for name, file in zip(tree.frames.names, tree.frames.files, strict=True)
    ]
    has_negative = np.any(tree.values < 0, axis=0)
    is_below = has_negative & ~np.any(tree.values > 0, axis=0)
    head = {
        "$schema": SCHEMA,
        "exporter": "; ".join(["symbolize", *caveats]),
        "name": title,
        "activeProfileIndex": stacks.default + int(has_negative[: stacks.default].sum() + is_below[stacks.default]),
        "shared": {"frames": frames},
    }
    yield (json.dumps(head).removesuffix("}") + ', "profiles": [').encode()
    separator = b""
    for column, (kind, unit) in enumerate(stacks.types):
        yield separator
        yield from profile_pieces(tree, column, kind, unit)
        separator = b","
    if key:
        only = stacks.only_default()
        values = samples_by_label(stacks.profile, key, np.abs(only.values[:, 0]), MAX_VALUES)
        for value, rows in values:
            yield separator
            yield from profile_pieces(call_tree(only.taken(rows)[0]), 0, value, only.types[0][1])
    yield b"]}\n"


def profile_pieces(tree: CallTree, column: int, title: str, unit: str) -> Iterator[bytes]:
    """The profile of a column of values, and that of the values below 0 if there are any."""
    name, factor = unit_and_factor(unit)
    values = tree.values[tree.leaves(), column] * factor
    signs = ((1, title), (-1, f"{title} below 0")) if (values < 0).any() else ((1, title),)
    for sign, called in signs:
        weights = np.maximum(sign * values, 0)
        about = {
            "type": "sampled",
            "name": called,
            "unit": name,
            "startValue": 0,
            "endValue": float(weights.sum()),
            "weights": weights.tolist(),
        }
        yield (("," if sign < 0 else "") + json.dumps(about).removesuffix("}") + ', "samples": [').encode()
        for row, (_, path) in enumerate(leaf_paths(tree)):
            yield (("," if row else "") + json.dumps(path)).encode()
        yield b"]}"


def unit_and_factor(name: str) -> tuple[str, int]:
    """The unit of speedscope for values in the unit `name`, and what they are multiplied with; "none" for a count."""
    unit = unit_of(name)
    if unit is None or (unit.kind, 1) not in UNITS:
        return "none", 1
    return (UNITS[unit], 1) if unit in UNITS else (UNITS[unit.kind, 1], unit.factor)

"""Stacks as speedscope's own file format, with inlined frames and unnamed modules."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from symbolize.analysis import Stacks, call_tree
from symbolize.profile.units import unit_of
from symbolize.write.folded import leaf_paths

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
UNITS: Final = {
    ("time", 10**9): "seconds",
    ("time", 10**6): "milliseconds",
    ("time", 10**3): "microseconds",
    ("time", 1): "nanoseconds",
    ("size", 1): "bytes",
}
"""Units that speedscope knows, by what they measure and how many of the smallest unit they are."""


def pieces(stacks: Stacks, title: str, caveats: Sequence[str] = ()) -> Iterator[bytes]:
    """The file: a profile for each sample type, with a sample for each distinct stack. Values below 0, which speedscope
    refuses, are in a profile of their own, without their signs."""
    stacks.check_steps(len(stacks.types))
    tree = call_tree(stacks)
    names = tree.frames
    frames = [
        {"name": name, **({"file": file} if file else {})} for name, file in zip(names.names, names.files, strict=True)
    ]
    leaves = tree.leaves()
    has_sign = {sign: np.any(sign * tree.values[leaves] > 0, axis=0).tolist() for sign in (1, -1)}
    profiles = [
        (column, sign)
        for column in range(len(stacks.types))
        for sign in (1, -1)
        if has_sign[sign][column] or (sign > 0 and not has_sign[-1][column])
    ]
    head = {
        "$schema": SCHEMA,
        "exporter": "; ".join(["symbolize", *caveats]),
        "name": title,
        "activeProfileIndex": next(row for row, (column, _) in enumerate(profiles) if column == stacks.default),
        "shared": {"frames": frames},
    }
    yield (json.dumps(head).removesuffix("}") + ', "profiles": [').encode()
    for number, (column, sign) in enumerate(profiles):
        kind, unit = stacks.types[column]
        name, factor = unit_and_factor(unit)
        weights = np.maximum(sign * tree.values[leaves, column] * factor, 0)
        about = {
            "type": "sampled",
            "name": kind if sign > 0 else f"{kind} below 0",
            "unit": name,
            "startValue": 0,
            "endValue": float(weights.sum()),
            "weights": weights.tolist(),
        }
        yield (("," if number else "") + json.dumps(about).removesuffix("}") + ', "samples": [').encode()
        for row, (_, path) in enumerate(leaf_paths(tree)):
            yield (("," if row else "") + json.dumps(path)).encode()
        yield b"]}"
    yield b"]}\n"


def unit_and_factor(name: str) -> tuple[str, int]:
    """The unit of speedscope for values in the unit `name`, and what they are multiplied with; "none" for a count."""
    unit = unit_of(name)
    if unit is None or (unit.kind, 1) not in UNITS:
        return "none", 1
    return (UNITS[unit], 1) if unit in UNITS else (UNITS[unit.kind, 1], unit.factor)

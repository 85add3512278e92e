"""Stacks as speedscope's own file format, with inlined frames and unnamed modules."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

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
    """The file: a profile for each sample type, with a sample for each distinct stack."""
    stacks.check_steps(len(stacks.types))
    tree = call_tree(stacks)
    names = tree.frames
    frames = [
        {"name": name, **({"file": file} if file else {})} for name, file in zip(names.names, names.files, strict=True)
    ]
    head = {
        "$schema": SCHEMA,
        "exporter": "; ".join(["symbolize", *caveats]),
        "name": title,
        "activeProfileIndex": stacks.default,
        "shared": {"frames": frames},
    }
    yield (json.dumps(head).removesuffix("}") + ', "profiles": [').encode()
    for column, (kind, unit) in enumerate(stacks.types):
        name, factor = unit_and_factor(unit)
        weights = tree.values[:, column] * factor
        about = {
            "type": "sampled",
            "name": kind,
            "unit": name,
            "startValue": 0,
            "endValue": float(weights.sum()),
            "weights": weights[tree.leaves()].tolist(),
        }
        yield (("," if column else "") + json.dumps(about).removesuffix("}") + ', "samples": [').encode()
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

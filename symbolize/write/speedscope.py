"""Stacks as speedscope's own file format, with inlined frames and unnamed modules."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from symbolize.analysis import Stacks, call_tree
from symbolize.write.folded import leaf_paths

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
UNITS: Final = frozenset({"bytes", "microseconds", "milliseconds", "nanoseconds", "seconds"})
"""Units that speedscope knows; all others are "none"."""


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
        weights = tree.values[:, column]
        about = {
            "type": "sampled",
            "name": kind,
            "unit": unit if unit in UNITS else "none",
            "startValue": 0,
            "endValue": float(weights.sum()),
            "weights": weights[tree.leaves()].tolist(),
        }
        yield (("," if column else "") + json.dumps(about).removesuffix("}") + ', "samples": [').encode()
        for row, (_, path) in enumerate(leaf_paths(tree)):
            yield (("," if row else "") + json.dumps(path)).encode()
        yield b"]}"
    yield b"]}\n"

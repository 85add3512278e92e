"""Profiles of single frames through all stages."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import symbolize
from symbolize import Symbolizer
from symbolize.formats import encode
from tests.support.messages import profile_pb2
from tests.support.pprof_writer import Mapping, Place, profile


def run(mappings: Sequence[Mapping], places: Sequence[Place], *roots: Path) -> tuple[list[str], symbolize.Report]:
    """The name at each place, empty where there is none, and the report."""
    made = symbolize.load(io.BytesIO(profile(mappings, [([place], [1]) for place in places])))
    with Symbolizer(roots) as symbolizer:
        result = symbolizer.symbolize(made)
    message: Any = profile_pb2.Profile.FromString(encode(result.profile))
    names = {function.id: message.string_table[function.name].decode() for function in message.function}
    by_id = {location.id: location for location in message.location}
    stacks = [by_id[sample.location_id[0]] for sample in message.sample]
    return [names[location.line[-1].function_id] if location.line else "" for location in stacks], result.report

"""What the profiles of a Perfetto trace hold, in a form that tests compare."""

import io
import itertools
from typing import Any

import pytest

from symbolize.core.errors import InputError
from symbolize.formats import encode, load_all
from symbolize.formats.model import Choice
from symbolize.profile import Profile


def read(trace: bytes, **choice: Any) -> dict[str, Profile]:
    """The profiles of a trace by name; each can be written."""
    found = {each.name: each.profile for each in load_all(io.BytesIO(trace), choice=Choice(**choice))}
    for profile in found.values():
        encode(profile)
    return found


def only(trace: bytes, **choice: Any) -> Profile:
    """The one profile of a trace."""
    (profile,) = read(trace, **choice).values()
    return profile


def stack_names(profile: Profile) -> list[tuple[str, ...]]:
    """The names of the frames of each sample, leaf first; the address where there is none."""
    locations, samples = profile.locations, profile.samples
    names = []
    for row in range(len(locations)):
        lines = locations.lines.function[locations.line_offsets[row] : locations.line_offsets[row + 1]].tolist()
        text = "/".join(profile.strings.text(profile.functions.name[line]) for line in lines)
        names.append(text or hex(locations.address[row]))
    edges = samples.location_offsets.tolist()
    return [tuple(names[i] for i in samples.locations[a:b].tolist()) for a, b in itertools.pairwise(edges)]


def stacks(profile: Profile) -> dict[tuple[str, ...], list[int]]:
    """The values of each stack; equal stacks with other labels are added up."""
    found: dict[tuple[str, ...], list[int]] = {}
    for names, values in zip(stack_names(profile), profile.samples.values.tolist(), strict=True):
        known = found.setdefault(names, [0] * len(values))
        found[names] = [a + b for a, b in zip(known, values, strict=True)]
    return found


def labels(profile: Profile) -> list[dict[str, str | int]]:
    """The labels of each sample."""
    table, text = profile.samples.labels, profile.strings.text
    each = [
        (text(key), text(value) if value else number)
        for key, value, number in zip(table.key, table.text, table.number.tolist(), strict=True)
    ]
    return [dict(each[a:b]) for a, b in itertools.pairwise(profile.samples.label_offsets.tolist())]


def types(profile: Profile) -> list[str]:
    """The sample types."""
    return [f"{profile.strings.text(a)}/{profile.strings.text(b)}" for a, b in profile.sample_types]


def refused(trace: bytes, **choice: Any) -> str:
    """The error of a trace without profiles."""
    with pytest.raises(InputError) as caught:
        load_all(io.BytesIO(trace), choice=Choice(**choice))
    return str(caught.value)

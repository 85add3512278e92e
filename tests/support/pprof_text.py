"""What `go tool pprof -raw` prints of a profile, and the same of ours, to be compared."""

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from symbolize.profile.model import Profile

Mapping = tuple[int, int, int, str, str]
Location = tuple[int, Mapping | None, str]
"""An address, its mapping, and the function that the profile has for it."""
Labels = tuple[tuple[str, str], ...]
Key = tuple[tuple[Location, ...], Labels]

SECTIONS = re.compile(
    r"(?s)(?P<head>.*)\nSamples:\n(?P<samples>.*)Locations\n(?P<locations>.*)Mappings\n?(?P<mappings>.*)"
)


class Raw(NamedTuple):
    """A profile: types with units, type and number of the period, and the sums of values by stack and labels."""

    types: list[str]
    period_type: str
    period: int
    weights: dict[Key, list[int]]


def run_pprof(path: Path) -> str:
    """What `go tool pprof -raw` prints of a file."""
    command = ["go", "tool", "pprof", "-raw", "-symbolize=none", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def add(weights: dict[Key, list[int]], key: Key, values: list[int]) -> None:
    """Add values to those of equal stack and labels."""
    known = weights.setdefault(key, [0] * len(values))
    known[:] = [a + b for a, b in zip(known, values, strict=True)]


def parse(text: str) -> Raw:
    """The profile that pprof printed."""
    parts = SECTIONS.fullmatch(text)
    assert parts is not None, text
    mappings: dict[int, Mapping | None] = {0: None}
    for number, start, limit, offset, file, build_id in re.findall(
        r"^(\d+): 0x(\w+)/0x(\w+)/0x(\w+) (\S*) (\S*)", parts["mappings"], re.MULTILINE
    ):
        mappings[int(number)] = int(start, 16), int(limit, 16), int(offset, 16), file, build_id
    locations = {
        int(number): (int(address, 16), mappings[int(mapping or 0)], name)
        for number, address, mapping, name in re.findall(
            r"^ *(\d+): 0x(\w+) (?:M=(\d+) )?(?:(\S.*?) \S*:\d+(?: s=\d+)?)?$", parts["locations"], re.MULTILINE
        )
    }
    types, *lines = parts["samples"].splitlines()
    weights: dict[Key, list[int]] = {}
    pending: tuple[tuple[Location, ...], list[int]] | None = None
    labels: list[tuple[str, str]] = []

    def finish() -> None:
        if pending is not None:
            add(weights, (pending[0], tuple(sorted(labels))), pending[1])

    for line in lines:
        if sample := re.fullmatch(r" +((?:-?\d+ +)*-?\d+): ([\d ]*)", line):
            finish()
            stack = tuple(locations[int(number)] for number in sample[2].split())
            pending, labels = (stack, [int(value) for value in sample[1].split()]), []
        else:
            labels += re.findall(r"(\S+):\[([^\]]*)\]", line)
    finish()
    period_type = re.search(r"^PeriodType: (.*)$", parts["head"], re.MULTILINE)
    period = re.search(r"^Period: (.*)$", parts["head"], re.MULTILINE)
    return Raw(
        [each.split("[")[0] for each in types.split()],
        period_type[1].strip() if period_type else "",
        int(period[1]) if period else 0,
        weights,
    )


def of_profile(profile: Profile, keys: tuple[str, ...] = ("bytes",), *, with_names: bool = False) -> Raw:
    """The same of a profile of ours, with labels of these keys; pprof leaves out samples without values or
    stacks, and labels that are 0."""
    text, mappings, samples = profile.strings.text, profile.mappings, profile.samples
    columns = mappings.start, mappings.limit, mappings.file_offset
    ranges: list[Mapping | None] = [
        (*bounds, text(file), text(build_id))
        for *bounds, file, build_id in zip(
            *(column.tolist() for column in (*columns, mappings.filename, mappings.build_id)), strict=True
        )
    ]
    ranges.append(None)
    stacks = list(profile.stacks())
    weights: dict[Key, list[int]] = {}
    addresses, owners = profile.locations.address.tolist(), profile.locations.mapping.tolist()
    bounds, at = samples.location_offsets.tolist(), samples.label_offsets.tolist()
    table = samples.labels
    for row, values in enumerate(samples.values.tolist()):
        names = [frame.function for frame in stacks[row]] if with_names else []
        frames = samples.locations[bounds[row] : bounds[row + 1]].tolist()
        stack = tuple(
            (addresses[frame], ranges[owners[frame]], names[depth] if with_names else "")
            for depth, frame in enumerate(frames)
        )
        labels = sorted(
            (text(int(table.key[i])), text(int(table.text[i])) if table.text[i] else str(table.number[i]))
            for i in range(at[row], at[row + 1])
            if text(int(table.key[i])) in keys and (table.text[i] or table.number[i])
        )
        if stack and any(values):
            add(weights, (stack, tuple(labels)), values)
    kinds = [f"{text(each.type)}/{text(each.unit)}" for each in profile.sample_types]
    period = f"{text(profile.period_type.type)} {text(profile.period_type.unit)}"
    return Raw(kinds, period.strip(), profile.period, weights)


def totals(raw: Raw) -> list[int]:
    """The sums of all columns."""
    sums: Counter[int] = Counter()
    for values in raw.weights.values():
        sums.update(dict(enumerate(values)))
    return [sums[i] for i in range(len(raw.types))]

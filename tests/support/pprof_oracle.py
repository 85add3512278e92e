"""What `go tool pprof` makes of a profile."""

import gzip
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import symbolize
from symbolize.profile import Profile


def pprof(folder: Path, files: Sequence[bytes], *options: str) -> Profile:
    """The profile that pprof writes for some profiles. These are compressed, so that it takes none for a binary."""
    paths = []
    for number, data in enumerate(files):
        paths.append(folder / f"{number}.gz")
        paths[-1].write_bytes(data if data.startswith(b"\x1f\x8b") else gzip.compress(data))
    output = folder / "pprof.pb.gz"
    command = ["go", "tool", "pprof", "-proto", "-symbolize=none", *options, f"-output={output}", *map(str, paths)]
    subprocess.run(command, capture_output=True, check=True)
    return symbolize.load(output)


def summed(profile: Profile) -> dict[Any, list[int]]:
    """The summed values of the distinct samples of a profile that are not all 0: stack and labels.

    A frame is the file and build ID of its mapping, the offset in it, and the lines: name, linked name (the name, where
    it is left out), file, line.
    """
    samples, labels, text = profile.samples, profile.samples.labels, profile.strings.text
    frames = [frame(profile, row) for row in range(len(profile.locations))]
    found: dict[Any, list[int]] = {}
    for row, values in enumerate(samples.values.tolist()):
        stack = samples.locations[samples.location_offsets[row] : samples.location_offsets[row + 1]].tolist()
        own = range(samples.label_offsets[row], samples.label_offsets[row + 1])
        columns = labels.key, labels.text, labels.number, labels.unit
        told = [tuple(int(column[each]) for column in columns) for each in own]
        shown = sorted((text(key), text(value), number, text(unit)) for key, value, number, unit in told)
        sums = found.setdefault((tuple(frames[each] for each in stack), tuple(shown)), [0] * len(values))
        sums[:] = [a + b for a, b in zip(sums, values, strict=True)]
    return {key: sums for key, sums in found.items() if any(sums)}


def frame(profile: Profile, row: int) -> Any:
    """A location as `summed` has it."""
    locations, mappings, text = profile.locations, profile.mappings, profile.strings.text
    functions, lines, mapping = profile.functions, locations.lines, int(locations.mapping[row])
    names = []
    for n in range(locations.line_offsets[row], locations.line_offsets[row + 1]):
        columns = functions.name, functions.system_name, functions.filename
        name, linked, file = (text(column[lines.function[n]]) for column in columns)
        names.append((name, linked or name, file, int(lines.line[n])))
    address = int(locations.address[row])
    if mapping < 0:
        return "", "", address, tuple(names)
    offset = address - int(mappings.start[mapping]) + int(mappings.file_offset[mapping])
    return text(mappings.filename[mapping]), text(mappings.build_id[mapping]), offset, tuple(names)

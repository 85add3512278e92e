"""What a profile or trace holds: its profiles, their mappings, and what has names already."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from symbolize.analysis.label_values import label_totals
from symbolize.core.errors import InputError
from symbolize.formats.content import HEAD, MAX_STREAM, chunks, decompressed, peeked
from symbolize.formats.model import LoadedProfile
from symbolize.formats.open import load_all
from symbolize.inspection.model import Inspection, MappingMatch, ProfileContent, SampleType
from symbolize.profile import NONE, Profile, lines_per_location, named_locations


def content_head(path: str) -> bytes:
    """The first bytes of what a file holds, decompressed; empty if it is compressed as no profile is."""
    try:
        return peeked(decompressed(chunks(path, path), path, MAX_STREAM), HEAD)[0]
    except InputError:
        return b""


def inspect_profile(path: str) -> Inspection:
    """Inspect a profile, or all profiles of a trace, of which one is in memory at a time. Raises InputError."""
    found = load_all(path)
    profiles = [content_of(each) for each in found]
    if os.path.isdir(path):  # of a recording, whose size is that of the files in it, not of what links lead to
        files = [file for file in os.scandir(path) if not file.is_dir(follow_symlinks=False)]
        size = sum(file.stat(follow_symlinks=False).st_size for file in files)
    else:
        size = os.stat(path).st_size
    return Inspection(path, found[0].format, size, profiles=profiles, conclusion=conclude(profiles))


def content_of(loaded: LoadedProfile) -> ProfileContent:
    """What one profile holds."""
    profile = loaded.profile
    strings, samples, locations = profile.strings, profile.samples, profile.locations
    named = named_locations(profile)
    with_lines = lines_per_location(profile, locations.lines.line != 0) > 0
    return ProfileContent(
        loaded.name,
        loaded.title,
        loaded.kind,
        loaded.detail,
        loaded.pid,
        loaded.process,
        len(samples),
        [
            SampleType(strings.text(kind.type), strings.text(kind.unit), sum(samples.values[:, column].tolist()))
            for column, kind in enumerate(profile.sample_types)
        ],
        profile.weight_column(),
        time_text(profile.time_nanos),
        max(profile.duration_nanos, 0) / 1e9,
        len(locations),
        int(named.sum()),
        int((named & with_lines).sum()),
        mapped_files(profile, named),
        label_totals(profile),
        profile.warnings,
    )


def mapped_files(profile: Profile, named: np.ndarray) -> list[MappingMatch]:
    """The mappings with locations in them, by name and build id, those with the most locations first."""
    strings, mappings, mapping_of = profile.strings, profile.mappings, profile.locations.mapping
    count = len(mappings)
    inside = mapping_of != NONE
    totals = np.bincount(mapping_of[inside], minlength=count).tolist()
    with_names = np.bincount(mapping_of[inside & named], minlength=count).tolist()
    files: dict[tuple[str, str], tuple[int, int]] = {}
    for row in range(count):
        if totals[row]:
            key = strings.text(int(mappings.filename[row])), strings.text(int(mappings.build_id[row]))
            before = files.get(key, (0, 0))
            files[key] = before[0] + totals[row], before[1] + with_names[row]
    rows = [MappingMatch(*key, *counts) for key, counts in files.items()]
    return sorted(rows, key=lambda row: (-row.locations, row.name, row.build_id))


def all_mapped_files(profiles: Sequence[ProfileContent]) -> list[MappingMatch]:
    """The mapped files of several profiles, each once; locations of each profile count."""
    files: dict[tuple[str, str], tuple[int, int]] = {}
    for each in profiles:
        for row in each.mappings:
            before = files.get((row.name, row.build_id), (0, 0))
            files[row.name, row.build_id] = before[0] + row.locations, before[1] + row.named_locations
    rows = [MappingMatch(*key, *counts) for key, counts in files.items()]
    return sorted(rows, key=lambda row: (-row.locations, row.name, row.build_id))


def time_text(nanoseconds: int) -> str:
    """A time as ISO 8601 in UTC; empty if it is unknown."""
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(timespec="seconds") if nanoseconds > 0 else ""
    except (OverflowError, ValueError, OSError):
        return ""


def conclude(profiles: Sequence[ProfileContent]) -> str:
    """A sentence on the names that are there, and on how its binaries will be found."""
    locations, named = (sum(getattr(each, name) for each in profiles) for name in ("locations", "named_locations"))
    files = [row for row in all_mapped_files(profiles) if row.named_locations < row.locations]
    if not locations:
        return "has no stacks, so there is nothing to symbolize"
    if named == locations:
        return "all locations have names already"
    unnamed = f"{locations - named:,} of {locations:,} locations have no names"
    identified = sum(bool(row.build_id) for row in files)
    if not files:
        return f"{unnamed}, and none of these is in a mapping"
    if identified == len(files):
        return f"{unnamed}: symbolize finds their binaries by build id"
    which = f"{len(files) - identified} of {len(files)}" if identified else "their"
    return f"{unnamed}: {which} mappings have no build id, so symbolize goes by names, and by what was sampled"

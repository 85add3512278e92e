"""What is known of a file that was inspected, as data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from symbolize.analysis.label_values import LabelTotals
from symbolize.binaries import Attempt
from symbolize.elf import Segment


class Debug(NamedTuple):
    """The debug information in one file.

    `section` has the units, `versions` is the number of units of each version of DWARF. Of the `units` so many are
    partial, type units or skeletons of `split` units. `size` is the bytes of all debug sections in the file,
    `units_size` those of the units, decompressed; `compression` how sections are compressed. `described` is the share
    of the code in the ranges of units, 0 to 1; None if there is no code or units have no ranges.
    """

    section: str
    versions: dict[int, int]
    units: int
    partial: int
    types: int
    split: int
    unreadable: int
    compression: list[str]
    size: int
    units_size: int
    described: float | None


class Go(NamedTuple):
    """The line table of Go: the release of its layout, its functions, and the build id of Go's linker (empty: none)."""

    layout: str
    functions: int
    build_id: str = ""


class Followed(NamedTuple):
    """A link in `section` to the file `name` with the checksum or build id `identifier`. `resolved` is the path of the
    file, empty if there is none, `offers` what it offers if it is a debug file."""

    section: str
    name: str
    identifier: str
    resolved: str
    tried: list[Attempt]
    offers: Sequence[str] = ()


class Splits(NamedTuple):
    """The split units: how many are needed and found, names of missing ones, and the number of files."""

    needed: int
    found: int
    missing: list[str]
    files: int


class OtherContent(NamedTuple):
    """Another file, and what it offers."""

    path: str
    offers: list[str]


@dataclass(eq=False)
class Elf:
    """An ELF file, and the files that were found for it.

    `code` is "here", "elsewhere" (a debug file) or "none". `functions` is the number of functions in each symbol table.
    `packages` are paths of packages of split units named after the file, with the number of their units.
    """

    type: str
    machine: str
    bits: int
    byte_order: str
    build_id: str
    code: str
    segments: list[Segment]
    functions: dict[str, int] = field(default_factory=dict)
    go: Go | None = None
    debug: Debug | None = None
    links: list[Followed] = field(default_factory=list)
    splits: Splits | None = None
    packages: list[tuple[str, int]] = field(default_factory=list)
    same_build: list[OtherContent] = field(default_factory=list)
    is_supplementary: bool = False


class Listed(NamedTuple):
    """A list of functions: how many, where the first begins and the last ends."""

    functions: int
    begin: int
    end: int
    has_lines: bool
    has_inlined: bool
    about: dict[str, str]


class Library(NamedTuple):
    """A library in an archive; `problem` is why it could not be read."""

    name: str
    size: int
    is_stored: bool
    build_id: str = ""
    functions: int = 0
    has_dwarf: bool = False
    problem: str = ""


class SampleType(NamedTuple):
    """What a column of values counts, and the sum of the column."""

    type: str
    unit: str
    total: int


class MappingMatch(NamedTuple):
    """A mapping: the recorded name and build id, and how many locations are in it, with names and without."""

    name: str
    build_id: str
    locations: int
    named_locations: int


class ProfileContent(NamedTuple):
    """A profile. `name`, `kind`, `detail`, `pid`, `process` and `title` say which one of a trace it is, and are empty
    for other inputs. `default_type` is the row of `sample_types` that is shown first (-1: there are none); `began` is
    the time of the recording (ISO 8601, empty: unknown), `seconds` how long it took (0: unknown). `with_lines` counts
    the locations with names that have lines too. `labels` have the sums of the type that is shown first."""

    name: str
    title: str
    kind: str
    detail: str
    pid: int | None
    process: str
    samples: int
    sample_types: list[SampleType]
    default_type: int
    began: str
    seconds: float
    locations: int
    named_locations: int
    with_lines: int
    mappings: list[MappingMatch]
    labels: list[LabelTotals]
    warnings: list[str]


@dataclass(eq=False)
class Inspection:
    """What the file at `path` offers; depending on `kind`, one of `elf`, `listed`, `libraries` and `profiles` is set.
    `conclusion` is a sentence on what symbolize uses of it and what is missing, `problems` are what could not be
    read."""

    path: str
    kind: str
    size: int
    elf: Elf | None = None
    listed: Listed | None = None
    libraries: list[Library] | None = None
    profiles: list[ProfileContent] | None = None
    conclusion: str = ""
    problems: list[str] = field(default_factory=list)

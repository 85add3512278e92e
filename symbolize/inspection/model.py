"""What is known of a file that was inspected, as data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from symbolize.binaries import Attempt
from symbolize.elf import Segment


class Debug(NamedTuple):
    """The debug information in one file.

    `section` is where its units stand, `versions` how many of them there are of each version of DWARF. Of the `units`
    so many are partial, type units or skeletons of `split` units. `size` are the bytes of all debug sections in the
    file, `units_size` those of the units, decompressed; `compression` how sections are compressed, empty if none is.
    `described` is the share of the code that units claim, 0 to 1; None where that cannot be told, because there is no
    code or some units claim none.
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
    """The line table of Go: its layout is that of which release, and how many functions it has; and the build id of
    Go's linker, empty if there is none."""

    layout: str
    functions: int
    build_id: str = ""


class Followed(NamedTuple):
    """A link in `section` to the file `name`, whose checksum or build id is `identifier`: where it led, or did not.

    `resolved` is the path of the file, empty if there is none, `offers` what it offers if it is a debug file.
    """

    section: str
    name: str
    identifier: str
    resolved: str
    tried: list[Attempt]
    offers: Sequence[str] = ()


class Splits(NamedTuple):
    """How many of the split units there are, of which names some are missing, and which files gave them."""

    needed: int
    found: int
    missing: list[str]
    files: int


class Other(NamedTuple):
    """Another file, and what it offers."""

    path: str
    offers: list[str]


@dataclass(eq=False)
class Elf:
    """What an ELF file says of itself, and what was found for it.

    `code` is "here", "elsewhere" (a debug file) or "none". `functions` has the number of functions in each symbol
    table. `packages` are packages of split units called after the file, and how many units each has.
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
    same_build: list[Other] = field(default_factory=list)
    is_supplementary: bool = False


class Listed(NamedTuple):
    """Functions of a source that lists them itself: how many, where the first begins and the last ends."""

    functions: int
    begin: int
    end: int
    has_lines: bool
    has_inlined: bool
    about: dict[str, str]


class Library(NamedTuple):
    """A library in an archive; `problem` says why nothing is known of it."""

    name: str
    size: int
    is_stored: bool
    build_id: str = ""
    functions: int = 0
    has_dwarf: bool = False
    problem: str = ""


@dataclass(eq=False)
class Inspection:
    """What the file at `path` offers. One of `elf`, `listed` and `libraries` says what is in it, as `kind` tells.

    `conclusion` says in a sentence what symbolize gets from it and what is missing, `problems` what could not be read.
    """

    path: str
    kind: str
    size: int
    elf: Elf | None = None
    listed: Listed | None = None
    libraries: list[Library] | None = None
    conclusion: str = ""
    problems: list[str] = field(default_factory=list)

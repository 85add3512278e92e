"""Why a location has no names, as a closed set, and what failed, so that another run may find names or lines that this
one misses (R285, names missed by failures)."""

import enum
from collections.abc import Mapping
from typing import Final, NamedTuple, Self

from symbolize.core.errors import ChangedFile, ReadFailure


class Reason(enum.IntEnum):
    """The outcome of one location. Values above HAD_NAMES are misses; each has a text in TEXTS.

    A location without names keeps its address and has one reason (R137, one reason each).
    """

    SYMBOLIZED = 0
    HAD_NAMES = 1
    NOT_ASKED = 2
    NO_MAPPING = 3
    NO_IDENTITY = 4
    NOT_A_FILE = 5
    BAD_BUILD_ID = 6
    NOT_FOUND = 7
    BUILD_ID_DIFFERS = 8
    AMBIGUOUS = 9
    MISFIT = 10
    UNREADABLE = 11
    NO_SYMBOLS = 12
    OUTSIDE_SEGMENTS = 13
    OUTSIDE_SYMBOLS = 14
    CORRUPT_DEBUG_INFO = 15
    RESTRICTED = 16
    NO_ADDRESS = 17
    SERVER_FAILED = 18
    CHANGED = 19
    READ_FAILED = 20
    UNCONFIRMED = 21
    REUSED_ADDRESS = 22
    NOT_ELF = 23

    @property
    def is_failure(self) -> bool:
        """Whether a location misses its names because something failed, so that another run may find them (R285, names
        missed by failures).

        Such are a server (`server-failed`), a binary that changed (`changed`), and one that could not be read or
        decoded for lack of memory, descriptors or time or by an error of a disk (`read-failed`). The exit code is 1,
        and a batch does the profile again in its next run.
        """
        return self in (Reason.SERVER_FAILED, Reason.CHANGED, Reason.READ_FAILED)

    @property
    def is_miss(self) -> bool:
        """Whether a location with this outcome stays without names."""
        return self > Reason.HAD_NAMES

    @property
    def code(self) -> str:
        """The name of the reason in machine-readable reports."""
        return self.name.lower().replace("_", "-")


TEXTS: Final[Mapping[Reason, str]] = {
    Reason.SYMBOLIZED: "symbolized",
    Reason.HAD_NAMES: "names came with the profile",
    Reason.NOT_ASKED: "no binaries were given",
    Reason.NO_MAPPING: "address in no mapping",
    Reason.NO_IDENTITY: "mapping has neither build id nor file name",
    Reason.NOT_A_FILE: "mapping is no file on disk",
    Reason.BAD_BUILD_ID: "build id of the mapping is malformed",
    Reason.NOT_FOUND: "binary not found",
    Reason.BUILD_ID_DIFFERS: "only another build was found",
    Reason.AMBIGUOUS: "several builds have this name",
    Reason.MISFIT: "file does not fit the mapping",
    Reason.UNREADABLE: "binary is unreadable",
    Reason.NO_SYMBOLS: "binary is stripped",
    Reason.OUTSIDE_SEGMENTS: "address outside the code of the binary",
    Reason.OUTSIDE_SYMBOLS: "address outside every symbol",
    Reason.CORRUPT_DEBUG_INFO: "debug information cannot be read there",
    Reason.RESTRICTED: "addresses of the kernel are hidden",
    Reason.NO_ADDRESS: "recorded without an address",
    Reason.SERVER_FAILED: "a server that may have it failed",
    Reason.CHANGED: "binary changed while it was read",
    Reason.READ_FAILED: "reading the binary failed",
    Reason.UNCONFIRMED: "too little confirms the file",
    Reason.REUSED_ADDRESS: "several functions had this address, one after another",
    Reason.NOT_ELF: "program of Windows or macOS, not an ELF file",
}
"""What each means, for a table."""


def reason_of(failure: ReadFailure) -> Reason:
    """The reason of what is missed because something could not be read."""
    return Reason.CHANGED if isinstance(failure, ChangedFile) else Reason.READ_FAILED


class Failure(NamedTuple):
    """Why names or lines may be missing (a reason that is a failure), the server or file, and what happened there."""

    reason: Reason
    place: str
    text: str

    @classmethod
    def of(cls, failure: ReadFailure) -> Self:
        """That of a file."""
        return cls(reason_of(failure), failure.source, failure.problem)

    @property
    def sentence(self) -> str:
        """What a person reads."""
        verb = " failed" if self.reason is Reason.SERVER_FAILED else ""
        return f"{self.place}{verb}: {self.text}"

"""Why a location has no names, as a closed set."""

import enum


class Reason(enum.IntEnum):
    """The outcome of one location. Values above HAD_NAMES are misses; `text` says why, `hint` what to do."""

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

    @property
    def is_miss(self) -> bool:
        """Whether a location with this outcome stays without names."""
        return self > Reason.HAD_NAMES

    @property
    def code(self) -> str:
        """The name of the reason in machine-readable reports."""
        return self.name.lower().replace("_", "-")

    @property
    def text(self) -> str:
        """What happened, for a table."""
        return _TEXTS[self][0]

    @property
    def hint(self) -> str:
        """What a person can do about it, empty if nothing."""
        return _TEXTS[self][1]


_TEXTS = {
    Reason.SYMBOLIZED: ("symbolized", ""),
    Reason.HAD_NAMES: ("names came with the profile", ""),
    Reason.NOT_ASKED: ("no binaries were given", "name a folder with --binaries"),
    Reason.NO_MAPPING: (
        "address in no mapping",
        "JIT code needs its perf-PID.map or jitdump in a --binaries folder; stack noise has no names",
    ),
    Reason.NO_IDENTITY: ("mapping has neither build id nor file name", "record the profile with its memory map"),
    Reason.NOT_A_FILE: (
        "mapping is no file on disk",
        "add kallsyms or vmlinux (kernel), vdso.so, perf-PID.map or a jitdump (JIT) to a --binaries folder",
    ),
    Reason.BAD_BUILD_ID: (
        "build id of the mapping is malformed",
        "a build id is an even number of hex digits, 4 to 128",
    ),
    Reason.NOT_FOUND: ("binary not found", "add it, or its debug file, to a --binaries folder"),
    Reason.BUILD_ID_DIFFERS: ("only another build was found", "get the binary with the mapping's build id"),
    Reason.AMBIGUOUS: ("several builds have this name", "leave the right one in the --binaries folders"),
    Reason.MISFIT: ("file does not fit the mapping", "get the file that ran; a debug file may need its binary too"),
    Reason.UNREADABLE: ("binary is unreadable", "let it be read, or copy it again if it is damaged"),
    Reason.NO_SYMBOLS: ("binary is stripped", "add its debug file to a --binaries folder"),
    Reason.OUTSIDE_SEGMENTS: ("address outside the code of the binary", ""),
    Reason.OUTSIDE_SYMBOLS: ("address outside every symbol", ""),
    Reason.CORRUPT_DEBUG_INFO: ("debug information is corrupt there", "rebuild or copy the debug file again"),
    Reason.RESTRICTED: (
        "addresses of the kernel are hidden",
        "copy /proc/kallsyms as root (kernel.kptr_restrict below 2), or add vmlinux",
    ),
    Reason.NO_ADDRESS: (
        "recorded without an address",
        "nothing can be looked up; names of the kernel need kallsyms while recording (kernel.kptr_restrict below 2)",
    ),
    Reason.SERVER_FAILED: (
        "a server that may have it failed",
        "run again when the server answers; --refresh-misses tries it out at once",
    ),
}

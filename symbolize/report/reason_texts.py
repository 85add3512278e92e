"""The texts of the reasons: what happened, and what helps."""

from collections.abc import Mapping
from typing import Final

from symbolize.core.reasons import Reason

Hints = Mapping[Reason | str, str]
"""What to do about each reason that something helps against, and about kinds of mappings."""

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
"""What happened, for a table."""

KERNEL: Final = "kernel"
COMPILED: Final = "code compiled at run time"
"""Kinds of mappings whose names are in lists, which other hints are for."""

HINTS: Final[Hints] = {
    Reason.NOT_ASKED: "give folders with binaries",
    Reason.NO_MAPPING: "JIT code needs its perf-PID.map or jitdump among the binaries; stack noise has no names",
    Reason.NO_IDENTITY: "record the profile with its memory map",
    Reason.NOT_A_FILE: (
        "add kallsyms or vmlinux (kernel), vdso.so, perf-PID.map or a jitdump (JIT) to the folders with binaries"
    ),
    Reason.BAD_BUILD_ID: "a build id is an even number of hex digits, 4 to 128",
    Reason.NOT_FOUND: "add it, or its debug file, to the folders with binaries",
    Reason.BUILD_ID_DIFFERS: "get the binary with the mapping's build id",
    Reason.AMBIGUOUS: "leave the right one in the folders with binaries",
    Reason.MISFIT: "get the file that ran; a debug file may need its binary too",
    Reason.UNREADABLE: "let it be read, or copy it again if it is damaged",
    Reason.NO_SYMBOLS: "add its debug file to the folders with binaries",
    Reason.CORRUPT_DEBUG_INFO: "rebuild or copy the debug file again",
    Reason.RESTRICTED: "copy /proc/kallsyms as root (kernel.kptr_restrict below 2), or add vmlinux",
    Reason.NO_ADDRESS: (
        "nothing can be looked up; names of the kernel need kallsyms while recording (kernel.kptr_restrict below 2)"
    ),
    Reason.SERVER_FAILED: "run again when the server answers",
    Reason.CHANGED: "run again when nothing writes to it",
    Reason.READ_FAILED: "run again; the detail says what failed",
    Reason.UNCONFIRMED: "record build ids, or more samples with call stacks; `accept` says how sure a file has to be",
    Reason.REUSED_ADDRESS: "have a jitdump written, which has times, and record with perf record -k CLOCK_MONOTONIC",
    Reason.NOT_ELF: "add its Breakpad symbol file (dump_syms): only ELF files are read",
    KERNEL: "add /proc/kallsyms of the recording machine, as root reads it, or vmlinux to the folders with binaries",
    COMPILED: ("add its perf-PID.map or jitdump, which the program writes on request, to the folders with binaries"),
}
"""The hints of the library. The command has its own, with names of options."""


NAMES_ONLY: Final = (
    "names only, no lines",
    "the binary has no debug information: add its debug file, or build with -g, for lines and inlined functions",
)
UNVERIFIED: Final = (
    "unverified: too little speaks for the file",
    "record build ids (perf record --buildid-mmap), or keep the build that ran, and no other, in the folders",
)
"""What is said of mappings whose frames have names, and what helps."""

EARLY_ENDS: Final = (
    "stacks that end early, in code without frame pointers",
    "record with --call-graph dwarf, or build with -fno-omit-frame-pointer",
)
"""What is said of stacks that lack callers, and what helps."""

NO_MEMORY_MAP: Final = (
    "the profile has no memory map: give the one binary that it is of as a file, if that is not position-independent"
)
"""What helps where no address is in a mapping, because the profile has none."""

"""What the command advises a person to do about each reason, with the names of its options."""

import argparse
import shlex
from typing import Final

from symbolize.core.reasons import Reason
from symbolize.report.advice import COMPILED, HINTS, KERNEL, Hints

SOUGHT: Final = ("binaries", "debuginfod", "proguard_maps", "pid", "process", "heap", "kind")
"""Options for what is symbolized, and with what."""


def command_of(options: argparse.Namespace, source: str) -> str:
    """The command that symbolizes an input with what the options of another one name."""
    words = ["symbolize", source]
    if getattr(options, "local", None) is not None:
        words.append("--local" if options.local else "--no-local")
    for name in SOUGHT:
        flag = "-b" if name == "binaries" else "--" + name.replace("_", "-")
        words += (word for value in getattr(options, name) for word in (flag, str(value)))
    return shlex.join(words)


OPTION_HINTS: Final[Hints] = {
    **HINTS,
    Reason.NOT_ASKED: "name a folder with --binaries",
    Reason.NO_MAPPING: "JIT code needs its perf-PID.map or jitdump in a --binaries folder; stack noise has no names",
    Reason.NOT_A_FILE: (
        "add kallsyms or vmlinux (kernel), vdso.so, perf-PID.map or a jitdump (JIT) to a --binaries folder"
    ),
    KERNEL: (
        "on the recording machine run this as root (beside -b with --local; after a recording without the build id of "
        "the kernel, as with --buildid-mmap, with --local -b /proc/kallsyms); else add its /proc/kallsyms, or vmlinux"
    ),
    COMPILED: "add the perf-PID.map or jitdump, which the program writes on request, to a --binaries folder",
    Reason.NOT_FOUND: (
        "add it, or its debug file, to a --binaries folder (beside which --local takes those of this machine), "
        "or fetch it by build id with --debuginfod"
    ),
    Reason.AMBIGUOUS: "leave the right one in the --binaries folders",
    Reason.NO_SYMBOLS: (
        "add its debug file to a --binaries folder (of a library of the system: install its -dbg or -debuginfo "
        "package, and beside -b add --local), or fetch it with --debuginfod"
    ),
    Reason.UNCONFIRMED: (
        "record build ids, or more samples with call stacks; --accept says how sure a file has to be, "
        "of this machine at least supported"
    ),
    Reason.SERVER_FAILED: (
        "run again when the server answers; --refresh-misses tries it out at once, "
        "--debuginfod URL asks one that demands signatures"
    ),
}

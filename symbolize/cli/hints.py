"""What the command advises a person to do about each reason, with the names of its options."""

from typing import Final

from symbolize.core.reasons import Reason
from symbolize.report.reason_texts import HINTS, Hints

OPTION_HINTS: Final[Hints] = {
    **HINTS,
    Reason.NOT_ASKED: "name a folder with --binaries",
    Reason.NO_MAPPING: "JIT code needs its perf-PID.map or jitdump in a --binaries folder; stack noise has no names",
    Reason.NOT_A_FILE: (
        "add kallsyms or vmlinux (kernel), vdso.so, perf-PID.map or a jitdump (JIT) to a --binaries folder"
    ),
    Reason.NOT_FOUND: (
        "add it, or its debug file, to a --binaries folder (libraries of this machine: -b /usr/lib), or fetch it by "
        "build id with --debuginfod"
    ),
    Reason.AMBIGUOUS: "leave the right one in the --binaries folders",
    Reason.NO_SYMBOLS: "add its debug file to a --binaries folder",
    Reason.SERVER_FAILED: "run again when the server answers; --refresh-misses tries it out at once",
}

"""Why stacks end where they do, and what is said of that."""

from enum import IntEnum

from symbolize.unwind import constants


class End(IntEnum):
    """Why unwinding a stack ended (R309, ends of stacks).

    The limit of 127 frames is perf's default.
    """

    COMPLETE = constants.COMPLETE
    TRUNCATED = constants.TRUNCATED
    NO_BINARY = constants.NO_BINARY
    NO_FRAME_INFO = constants.NO_FRAME_INFO
    BAD_FRAME_INFO = constants.BAD_FRAME_INFO
    NO_MAPPING = constants.NO_MAPPING
    OUTSIDE_DUMP = constants.OUTSIDE_DUMP
    NO_PROGRESS = constants.NO_PROGRESS
    TOO_DEEP = constants.TOO_DEEP
    UNKNOWN_REGISTER = constants.UNKNOWN_REGISTER
    NO_CALL = constants.NO_CALL
    NO_FILE = constants.NO_FILE
    NO_DUMP = constants.NO_DUMP
    IS_32BIT = constants.IS_32BIT
    OTHER_MACHINE = constants.OTHER_MACHINE


TEXTS = {
    End.TRUNCATED: "at the end of the copy of the stack (a larger one can be recorded)",
    End.NO_BINARY: "in files that were not found",
    End.NO_FRAME_INFO: "in code without call frame information",
    End.BAD_FRAME_INFO: "in code whose call frame information is damaged or unknown",
    End.NO_MAPPING: "at an address outside of all executable mappings",
    End.OUTSIDE_DUMP: "because memory beside the copy of the stack would be needed",
    End.NO_PROGRESS: "because the next frame would not be above the last one",
    End.TOO_DEEP: f"after {constants.MAX_FRAMES} frames",
    End.UNKNOWN_REGISTER: "because the value of a register is not known",
    End.NO_CALL: "where a frame pointer leads to no call",
    End.NO_FILE: "in code without a file",
    End.NO_DUMP: "at the first frame, because no stack was recorded",
    End.IS_32BIT: "at the first frame, because 32-bit code is not unwound",
    End.OTHER_MACHINE: "in files of another machine",
}
"""Where a stack ends early, by the reason."""

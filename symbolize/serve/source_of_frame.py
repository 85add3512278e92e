"""The source file of a frame, as samply's API has it."""

from typing import Any, NamedTuple

from symbolize.core.errors import UsageError
from symbolize.serve.symbolication import DEBUG_NAME, MAX_OFFSET, Job, Request, SymbolicationAnswer, parsed

FIELDS = ("debugName", "debugId", "moduleOffset", "file")
MAX_DIGITS = 18
"""Characters of an offset of 64 bits, `0x` too."""


class SourceRequest(NamedTuple):
    """Which file is wanted, and the frame that has to be in it."""

    file: str
    build_id: str
    frames: Request

    @classmethod
    def read(cls, request: Any) -> "SourceRequest":
        """A request, as JSON values. Raises UsageError for one that is none."""
        if not isinstance(request, dict) or any(not isinstance(request.get(each), str) for each in FIELDS):
            raise UsageError(f"the request lacks one of {', '.join(FIELDS)}")
        name, debug_id, where, file = (request[each] for each in FIELDS)
        try:
            offset = int(where, 16) if len(where) <= MAX_DIGITS else -1
        except ValueError:
            offset = -1
        if not DEBUG_NAME.fullmatch(name):
            raise UsageError("debugName has characters that no name of a module has")
        if not 0 <= offset < MAX_OFFSET:
            raise UsageError("moduleOffset is no hexadecimal number of an offset")
        key = name, debug_id
        return cls(file, debug_id.lower(), Request([Job([key], [[(0, offset)]])], {key: {offset: None}}))

    def is_named_in(self, answer: SymbolicationAnswer) -> bool:
        """Whether a frame at the offset is of the file."""
        (result,) = parsed(answer.json())["results"]
        ((frame,),) = result["stacks"]
        return any(each.get("file") == self.file for each in (frame, *frame.get("inlines", [])))

"""What files of OTLP profiles put around the messages: nothing, lengths, or JSON."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import numpy as np

from symbolize.core.arrays import Bool
from symbolize.core.cursor import varint_at
from symbolize.core.errors import InputError
from symbolize.core.protobuf import varint
from symbolize.formats.otlp.shape import JSON, is_message

if TYPE_CHECKING:
    from symbolize.formats.model import LoadedProfile
    from symbolize.formats.otlp.dictionary import Dictionary
    from symbolize.profile.model import Profile

MAGIC: Final = b"OTLP"
HEADER: Final = struct.Struct("<4sI")
LENGTH: Final = struct.Struct(">I")
"""In front of each message of the collector's file exporter."""
MAX_MESSAGES: Final = 1 << 16


class Framing(Enum):
    """What is around the messages."""

    BARE = auto()
    """One message."""
    MAGIC = auto()
    """`OTLP`, a version, and messages with their lengths as varints."""
    LENGTHS = auto()
    """Messages with their lengths before them, as the collector's file exporter writes them."""
    JSON = auto()
    """A JSON object a line."""


def matches(head: bytes) -> bool:
    """Whether what begins with `head` has OTLP profiles."""
    return framing_of(head) is not None


def framing_of(head: bytes) -> Framing | None:
    """What is around the messages of an input that begins with `head`; None if it is of another format."""
    if head.startswith(MAGIC):
        size, start = varint_at(head, HEADER.size) or (0, len(head))
        return Framing.MAGIC if is_message(head[start : start + size]) else None
    if is_message(head):
        return Framing.BARE
    if JSON.match(head):
        return Framing.JSON
    if len(head) > LENGTH.size:
        (size,) = LENGTH.unpack_from(head)
        return Framing.LENGTHS if is_message(head[LENGTH.size : LENGTH.size + size]) else None
    return None


@dataclass(eq=False)
class Container:
    """The messages of an input, and what is around them."""

    framing: Framing
    messages: Sequence[memoryview]
    version: int = 0
    is_cut: bool = False
    dictionaries: "list[Dictionary]" = field(default_factory=list)
    """Those of the messages that were read."""

    def without_names(self) -> Bool:
        """Which locations of all messages have no lines, or only such as stand in for names: bool[n]."""
        return np.concatenate([np.zeros(0, np.bool_), *(each.without_names for each in self.dictionaries)])

    def stacks(self, profiles: Sequence["LoadedProfile"]) -> Iterator["Profile"]:
        """The profiles that have to be symbolized for the lines of some profiles of the input: all their locations,
        most of them once."""
        from symbolize.formats.otlp.stacks import profiles_of_stacks

        return profiles_of_stacks(profiles)

    def framed(self, messages: Iterable[bytes]) -> Iterator[bytes]:
        """Other messages in the same container. That of JSON is none for one message, and lengths for several."""
        framing = self.framing
        if framing == Framing.JSON:
            framing = Framing.BARE if len(self.messages) == 1 else Framing.LENGTHS
        if framing == Framing.MAGIC:
            yield HEADER.pack(MAGIC, self.version)
        for message in messages:
            if framing == Framing.MAGIC:
                yield varint(len(message))
            elif framing == Framing.LENGTHS:
                yield LENGTH.pack(len(message))
            yield message


def opened(data: memoryview, framing: Framing, source: str) -> Container:
    """The messages in `data`. What is cut off at the end is left out, unless it is the only one."""
    if framing == Framing.BARE:
        return Container(framing, [data])
    if framing == Framing.JSON:
        from symbolize.formats.otlp.json_message import JsonError, encode_lines

        try:
            return Container(framing, [memoryview(each) for each in encode_lines(data, source)])
        except JsonError as error:
            raise InputError(source, f"is OTLP as JSON, and {error}") from error
    at = HEADER.size if framing == Framing.MAGIC else 0
    version = HEADER.unpack_from(data)[1] if framing == Framing.MAGIC else 0
    messages: list[memoryview] = []
    while at < len(data):
        if framing == Framing.MAGIC:
            size, end = varint_at(data, at) or (len(data), at)
        else:
            end = at + LENGTH.size
            size = LENGTH.unpack_from(data, at)[0] if end <= len(data) else len(data)
        if size > len(data) - end:
            if not messages:
                raise InputError(source, "is cut short: its first message runs past the end", at)
            return Container(framing, messages, version, is_cut=True)
        messages.append(data[end : end + size])
        at = end + size
        if len(messages) > MAX_MESSAGES:
            raise InputError(source, f"has more than {MAX_MESSAGES} messages")
    return Container(framing, messages, version)

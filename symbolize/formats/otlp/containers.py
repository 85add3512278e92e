"""What files of OTLP profiles put around the messages (nothing, lengths, or JSON), and how they are told from
other inputs."""

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from symbolize.core.arrays import Bool
from symbolize.core.cursor import varint_at
from symbolize.core.errors import InputError
from symbolize.core.protobuf import BYTES, FIXED32, FIXED64, MAX_VARINT, NUMBER, VARINT, WIRE_TYPE, varint

if TYPE_CHECKING:
    from symbolize.formats.otlp.messages import Dictionary

JSON: Final = re.compile(rb'\s*\{\s*"(?:resourceProfiles|resource_profiles|dictionary)"\s*:\s*[\[{]', re.ASCII)

MAX_FIELDS: Final = 256
"""Fields that decide at most, and prove by their number alone."""
MAX_NUMBER: Final = 1 << 29
ENDLESS: Final = 1 << 62

ANY_NUMBER: Final = (VARINT,)
A_LIST: Final = (VARINT, BYTES)
TEXT: Final = (BYTES,)
MAGIC: Final = b"OTLP"
HEADER: Final = struct.Struct("<4sI")
LENGTH: Final = struct.Struct(">I")
"""In front of each message of the collector's file exporter."""
MAX_MESSAGES: Final = 1 << 16


class Shape(NamedTuple):
    """A kind of message: the wire types of its fields, by number, and what those are that are messages. Others are not
    in it, unless it `is_open`. `proof` are the fields of which no other format has one there."""

    fields: dict[int, tuple[int, ...]]
    inner: "Mapping[int, Shape]" = MappingProxyType({})
    proof: tuple[int, ...] = ()
    is_open: bool = False


VALUE: Final = Shape({1: TEXT, 2: (VARINT,), 3: (VARINT,), 4: (FIXED64,), 5: TEXT, 6: TEXT, 7: TEXT, 8: (VARINT,)})
PAIR: Final = Shape({1: TEXT, 2: TEXT, 3: (VARINT,)}, {2: VALUE}, (2,))
RESOURCE: Final = Shape({1: TEXT, 2: (VARINT,), 3: TEXT}, {1: PAIR})
SCOPE: Final = Shape({1: TEXT, 2: TEXT, 3: TEXT, 4: (VARINT,)}, {3: PAIR})
VALUE_TYPE: Final = Shape({1: ANY_NUMBER, 2: ANY_NUMBER, 3: ANY_NUMBER})
SAMPLE: Final = Shape(dict.fromkeys(range(1, 5), A_LIST), is_open=True)
PROFILE: Final = Shape({1: TEXT, 2: TEXT}, {1: VALUE_TYPE, 2: SAMPLE}, (1, 2), is_open=True)
"""In all versions: types of values, and samples."""
SCOPES: Final = Shape({1: TEXT, 2: TEXT, 3: TEXT}, {1: SCOPE, 2: PROFILE})
RESOURCES: Final = Shape({1: TEXT, 2: TEXT, 3: TEXT, 1000: TEXT}, {1: RESOURCE, 2: SCOPES})

MAPPING: Final = Shape({**dict.fromkeys(range(1, 10), ANY_NUMBER), 5: A_LIST})
LOCATION: Final = Shape({1: ANY_NUMBER, 2: ANY_NUMBER, 3: TEXT, 4: A_LIST, 5: A_LIST})
FUNCTION: Final = Shape(dict.fromkeys(range(1, 5), ANY_NUMBER))
LINK: Final = Shape({1: TEXT, 2: TEXT})
ATTRIBUTE: Final = Shape({1: A_LIST, 2: TEXT, 3: ANY_NUMBER}, {2: VALUE}, (2,))
STACK: Final = Shape({1: A_LIST, 2: ANY_NUMBER}, {}, (1,))
DICTIONARY: Final = Shape(
    dict.fromkeys(range(1, 8), TEXT),
    {1: MAPPING, 2: LOCATION, 3: FUNCTION, 4: LINK, 6: ATTRIBUTE, 7: STACK},
    (5,),
    is_open=True,
)
MESSAGE: Final = Shape({1: TEXT, 2: TEXT}, {1: RESOURCES, 2: DICTIONARY})
OLD_MESSAGE: Final = Shape(dict.fromkeys(range(1, 9), TEXT), {1: RESOURCES})
"""Until 1.6 the message has the tables itself."""


class OtherMessages(Exception):
    """The bytes are not those of the shape."""


class Cut(Exception):
    """The bytes end."""


class Sniffer:
    """Compares the beginning of a message with shapes. `proofs` counts the fields that prove it, `left` those that may
    still be looked at."""

    def __init__(self, head: bytes) -> None:
        self.head = head
        self.proofs = 0
        self.left = MAX_FIELDS

    def compare(self, shape: Shape, at: int, end: int) -> None:
        """Compare the message from `at` to `end`. Raises OtherMessages, and Cut where it is not all there."""
        while at < end and self.left:
            self.left -= 1
            tag, at = self._varint(at, end)
            number, wire = tag >> NUMBER, tag & WIRE_TYPE
            known = shape.fields.get(number)
            if not 0 < number < MAX_NUMBER or (known is None and not shape.is_open) or (known and wire not in known):
                raise OtherMessages
            size = {FIXED64: 8, FIXED32: 4}.get(wire, 0)
            if wire == BYTES:
                size, at = self._varint(at, end)
            elif wire == VARINT:
                _, at = self._varint(at, end)
            elif not size:
                raise OtherMessages
            if at + size > end:
                raise OtherMessages
            self.proofs += size > 0 and number in shape.proof
            if wire == BYTES and number in shape.inner:
                self.compare(shape.inner[number], at, at + size)
            at += size

    def _varint(self, at: int, end: int) -> tuple[int, int]:
        """A number and where it ends."""
        found = varint_at(self.head, at)
        if found is None and end > len(self.head) < at + MAX_VARINT:
            raise Cut
        if found is None or found[1] > end:
            raise OtherMessages
        return found


@lru_cache(1)  # whoever looks for the format asks, and then its reader
def is_message(head: bytes) -> bool:
    """Whether a message that begins with `head` is of OTLP profiles (R317, OTLP by structure).

    The other formats of protobuf messages have other wire types where this one has messages. An empty message is of any
    format, so something has to be there that only this one has: a profile, an attribute, a string table; or so many
    fields of a dictionary that chance is no explanation.
    """
    for shape in (MESSAGE, OLD_MESSAGE):
        sniffer = Sniffer(head)
        try:
            sniffer.compare(shape, 0, ENDLESS)
        except OtherMessages:
            continue
        except Cut:
            pass
        if sniffer.proofs or not sniffer.left:
            return True
    return False


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
    """What is around the messages of an input that begins with `head`; None if it is of another format.

    Messages are alone; behind `OTLP`, a version of four bytes and a length as a varint each; behind a length of four
    bytes each, big end first, as the collector writes them; or JSON objects, one a line. Each has its own dictionary
    (R328, containers of OTLP).
    """
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

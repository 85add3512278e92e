"""OTLP as JSON, encoded as the protobuf message that it is of."""

import base64
import json
import re
import struct
from collections.abc import Iterator
from typing import Any, Final

from symbolize.core.budget import MEMORY, Budget, json_cost
from symbolize.core.files import os_error_text
from symbolize.core.protobuf import BYTES, FIXED64, WIRE_TYPE, field, varint
from symbolize.proto import otlp_profiles_tags as tags

MAX_DEPTH: Final = 64
MAX_OBJECT: Final = 128 << 20
"""Bytes of the text of a message."""
OBJECTS: Final = (64 << 20, 16, MEMORY)
"""Bytes of its objects, of which those of collectors take ten for each byte of text (R276, size of tables)."""
MASK64: Final = (1 << 64) - 1
FLOAT: Final = "ANY_VALUE_DOUBLE_VALUE"
IDS: Final = {"PROFILE_PROFILE_ID": 16, "LINK_TRACE_ID": 16, "LINK_SPAN_ID": 8}
BYTES_FIELDS: Final = frozenset({"ANY_VALUE_BYTES_VALUE", "PROFILE_ORIGINAL_PAYLOAD"})
"""Fields whose texts are no texts, of ids with their length."""
HEX: Final = re.compile("[0-9A-Fa-f]*")

URL_SAFE: Final = str.maketrans("-_", "+/")

MESSAGES: Final = {
    "PROFILES_DATA": {"resource_profiles": "RESOURCE_PROFILES", "dictionary": "PROFILES_DICTIONARY"},
    "PROFILES_DICTIONARY": {
        "mapping_table": "MAPPING",
        "location_table": "LOCATION",
        "function_table": "FUNCTION",
        "link_table": "LINK",
        "string_table": "",
        "attribute_table": "KEY_VALUE_AND_UNIT",
        "stack_table": "STACK",
    },
    "RESOURCE_PROFILES": {"resource": "RESOURCE", "scope_profiles": "SCOPE_PROFILES"},
    "SCOPE_PROFILES": {"scope": "INSTRUMENTATION_SCOPE", "profiles": "PROFILE"},
    "PROFILE": {"sample_type": "VALUE_TYPE", "samples": "SAMPLE", "period_type": "VALUE_TYPE"},
    "LOCATION": {"lines": "LINE"},
    "KEY_VALUE_AND_UNIT": {"value": "ANY_VALUE"},
    "ANY_VALUE": {"array_value": "ARRAY_VALUE", "kvlist_value": "KEY_VALUE_LIST"},
    "ARRAY_VALUE": {"values": "ANY_VALUE"},
    "KEY_VALUE_LIST": {"values": "KEY_VALUE"},
    "KEY_VALUE": {"value": "ANY_VALUE"},
    "INSTRUMENTATION_SCOPE": {"attributes": "KEY_VALUE"},
    "RESOURCE": {"attributes": "KEY_VALUE", "entity_refs": "ENTITY_REF"},
}
"""The messages that fields are of. A field that is none is a number or a string by its tag."""


class JsonError(ValueError):
    """The text is no message; why."""


def encode_lines(text: memoryview, source: str) -> Iterator[bytes]:
    """The messages of a text that has an object, or one a line. Raises JsonError, and InputError for objects that take
    far more memory than their text."""
    whole = bytes(text)
    lines = [line for line in whole.splitlines() if line.strip()]
    try:
        first = parsed(lines[0], source)
    except JsonError:
        lines, first = [whole], parsed(whole, source)  # one object on several lines
    yield encode("PROFILES_DATA", first)
    del first
    for line in lines[1:]:
        yield encode("PROFILES_DATA", parsed(line, source))


def parsed(text: bytes, source: str) -> Any:
    """The object of a text. Raises JsonError and InputError."""
    if len(text) > MAX_OBJECT:
        raise JsonError(f"has a message of more than {MAX_OBJECT >> 20} MiB")
    Budget(source, len(text), *OBJECTS).spend(json_cost(text))
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise JsonError(f"is damaged from character {error.pos} on") from error
    except (ValueError, RecursionError) as error:
        raise JsonError(f"is damaged ({os_error_text(error)})") from error


def encode(message: str, value: Any, depth: int = 0) -> bytes:
    """A message of a kind as protobuf. Keys that the format does not know are left out."""
    if not isinstance(value, dict):
        raise JsonError(f"has a {type(value).__name__} where an object belongs")
    if depth > MAX_DEPTH:
        raise JsonError("is nested too deep")
    encoded = bytearray()  # parts of it would take many times as much
    for key, content in value.items():
        name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).lower()
        constant = f"{message}_{name.upper()}"
        inner = MESSAGES.get(message, {}).get(name, "")
        if content is None or not hasattr(tags, constant) or constant.endswith("_PACKED"):
            continue
        for each in content if isinstance(content, list) else [content]:
            encoded += _field(constant, inner, each, depth)
    return bytes(encoded)


def _field(constant: str, inner: str, value: Any, depth: int) -> bytes:
    """One field, zeros too."""
    tag: int = getattr(tags, constant)
    try:
        if tag & WIRE_TYPE == BYTES:
            return field(tag, encode(inner, value, depth + 1) if inner else _text(constant, value))
        if constant == FLOAT:
            return varint(tag) + struct.pack("<d", float(value))
        number = int(value) & MASK64
    except JsonError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise JsonError(f"has {str(value)[:40]!r} where a number or a text of another kind belongs") from error
    return varint(tag) + (struct.pack("<Q", number) if tag & WIRE_TYPE == FIXED64 else varint(number))


def _text(constant: str, value: Any) -> bytes:
    """A string, or bytes: those of ids as hex digits, as OTLP has them, or as base64, as protobuf has all bytes (R328,
    containers of OTLP)."""
    if not isinstance(value, str):
        raise TypeError
    if constant in IDS:
        if HEX.fullmatch(value):
            return bytes.fromhex(value)
        data = from_base64(value)
        if len(data) != IDS[constant]:
            raise ValueError
        return data
    if constant in BYTES_FIELDS:
        return from_base64(value)
    return value.encode("utf-8", "surrogatepass")


def from_base64(text: str) -> bytes:
    """The bytes of base64, also of the form for URLs, and without padding. Raises ValueError."""
    digits = text.translate(URL_SAFE).rstrip("=")
    return base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)

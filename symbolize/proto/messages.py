"""Protobuf's own messages of pprof's schema, for those who work with them (needs the package protobuf)."""

from functools import cache
from pathlib import Path
from typing import Any

SCHEMA = Path(__file__).parent / "profile.binpb"
"""The descriptor of `protos/profile.proto`, which `protos/generate.py` makes."""


@cache
def profile_class() -> Any:
    """The class of a profile's message, from a pool of its own: the default pool may hold another copy of the schema.

    Raises ImportError without protobuf.
    """
    try:
        from google.protobuf import message_factory
        from google.protobuf.descriptor_pool import DescriptorPool
    except ImportError as error:
        raise ImportError("Profile.to_proto needs protobuf: pip install protobuf") from error
    pool = DescriptorPool()
    pool.AddSerializedFile(SCHEMA.read_bytes())
    message = pool.FindFileByName("profile.proto").message_types_by_name["Profile"]
    if hasattr(message_factory, "GetMessageClass"):  # protobuf 4.22
        return message_factory.GetMessageClass(message)
    return message_factory.MessageFactory(pool).GetPrototype(message)


def parsed(data: bytes, message_class: Any = None) -> Any:
    """The message that `data` is, of `message_class` or of `profile_class`. Raises TypeError for another class."""
    if message_class is None:
        message_class = profile_class()
    elif not is_profile(message_class):
        raise TypeError("message_class: expected a class of protobuf messages with pprof's schema")
    return message_class.FromString(data)


def serialized(message: Any) -> bytes:
    """The bytes of a message of pprof's schema. Raises TypeError for anything else."""
    if isinstance(message, type) or not is_profile(message):
        raise TypeError(f"message: expected a protobuf message of pprof's schema, not {type(message).__name__}")
    data: bytes = message.SerializeToString()
    return data


def is_profile(message: Any) -> bool:
    """Whether a message, or a class of messages, has pprof's schema, in whatever package."""
    descriptor = getattr(message, "DESCRIPTOR", None)
    fields = getattr(descriptor, "fields_by_name", {})
    return getattr(descriptor, "name", "") == "Profile" and "sample_type" in fields and "string_table" in fields

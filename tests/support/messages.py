"""Protobuf's own classes of the messages in `protos/`: the oracle of our readers and writers.

They are made of descriptors when they are imported, which every protobuf since 4.21 can do; modules by protoc run with
two major versions of it.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor_pool import DescriptorPool

import symbolize

SCHEMAS = Path(__file__).resolve().parents[2] / "protos"
IN_PACKAGE = Path(symbolize.__file__).parent / "proto"


def classes(schema: str) -> Any:
    """The classes of a schema's messages, by their names."""
    pool = DescriptorPool()
    (descriptor,) = (path for folder in (SCHEMAS, IN_PACKAGE) if (path := folder / f"{schema}.binpb").exists())
    pool.AddSerializedFile(descriptor.read_bytes())
    if hasattr(message_factory, "GetMessageClass"):  # protobuf 4.22
        make = message_factory.GetMessageClass
    else:
        make = message_factory.MessageFactory(pool).GetPrototype
    messages = pool.FindFileByName(f"{schema}.proto").message_types_by_name
    return SimpleNamespace(**{name: make(message) for name, message in messages.items()})


profile_pb2 = classes("profile")
report_sample_pb2 = classes("report_sample")

"""Regenerate what is committed of the schemas: `python protos/generate.py [OUTPUT_DIRECTORY]` (needs grpcio-tools).

Each schema gives `NAME_tags.py`, constants that compiled modules get from it too:
`SAMPLE_VALUE` is the tag of the field `value` of the message `Sample`, `SAMPLE_VALUE_PACKED` that of a packed list of
integers, and `LAST_SAMPLE` the highest field number of the message. Values of enumerations have their own names.
`NAME.binpb` is the schema as a descriptor, from which the tests have protobuf's own classes; that of profiles is with
the constants, because `Profile.to_proto` needs it.
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

HERE = Path(__file__).resolve().parent
MODULES = HERE.parent / "symbolize" / "proto"

TAGS_ONLY = "perfetto_trace.proto"
"""Tests have the classes of traces from the package perfetto."""
IN_PACKAGE = "profile.proto"
"""The package itself makes classes of its descriptor."""
VARINT, FIXED64, BYTES = 0, 1, 2
FIXED64_TYPES = FieldDescriptorProto.TYPE_FIXED64, FieldDescriptorProto.TYPE_DOUBLE
BYTES_TYPES = FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_BYTES, FieldDescriptorProto.TYPE_MESSAGE


def generate(modules: Path, descriptors: Path) -> None:
    """Write the constants and the descriptors of every `.proto` file beside this script."""
    for source in sorted(HERE.glob("*.proto")):
        schema = read_schema(source)
        if source.name != TAGS_ONLY:
            folder = modules if source.name == IN_PACKAGE else descriptors
            (folder / f"{source.stem}.binpb").write_bytes(schema.SerializeToString(deterministic=True))
        names = {message.name for message in schema.message_type}
        constants = [(value.name, value.number) for enum in schema.enum_type for value in enum.value if value.number]
        for message in schema.message_type:
            constants += constants_of(message, message.name, names, source.name != TAGS_ONLY)
        module = modules / f"{source.stem}_tags.py"
        head = f"Constants of {source.name}; made by protos/generate.py."
        lines = [f"{name} = {value:#x}" for name, value in constants]
        module.write_text("\n".join((f'"""{head}"""', "", *lines)) + "\n")


def read_schema(source: Path) -> FileDescriptorProto:
    """The descriptors of a schema."""
    with tempfile.NamedTemporaryFile() as compiled:
        if protoc.main(["protoc", f"-I{HERE}", f"--descriptor_set_out={compiled.name}", str(source)]) != 0:
            raise SystemExit(f"protoc failed for {source.name}")
        return FileDescriptorSet.FromString(Path(compiled.name).read_bytes()).file[0]


def constants_of(message: DescriptorProto, name: str, names: set[str], last: bool) -> Iterator[tuple[str, int]]:
    """The constants of a message and of those in it, with the highest field numbers if `last`.

    A message inside another has the name of that in front only if its own is one of `names`.
    """
    yield from ((value.name, value.number) for enum in message.enum_type for value in enum.value if value.number)
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
    for field in message.field:
        tag = f"{prefix}_{field.name.upper()}"
        if field.type in BYTES_TYPES:
            yield tag, field.number << 3 | BYTES
            continue
        yield tag, field.number << 3 | (FIXED64 if field.type in FIXED64_TYPES else VARINT)
        if field.label == FieldDescriptorProto.LABEL_REPEATED:
            yield f"{tag}_PACKED", field.number << 3 | BYTES
    if last:
        yield f"LAST_{prefix}", max(field.number for field in message.field)
    for inner in message.nested_type:
        yield from constants_of(inner, f"{name}_{inner.name}" if inner.name in names else inner.name, names, last)


if __name__ == "__main__":
    generate(*[Path(sys.argv[1])] * 2 if len(sys.argv) > 1 else (MODULES, HERE))

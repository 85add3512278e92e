"""Regenerate the committed protobuf modules: `python protos/generate.py [OUTPUT_DIRECTORY]` (needs grpcio-tools).

Besides protoc's modules each schema gives `NAME_tags.py` and `NAME_tags.pxi`, the tags of its fields for interpreted
and for compiled modules: `SAMPLE_VALUE` is the tag of the field `value` of the message `Sample`, `SAMPLE_VALUE_PACKED`
that of a packed list of integers, and `LAST_SAMPLE` the highest field number of the message.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorSet
from grpc_tools import protoc

HERE = Path(__file__).resolve().parent
COMMITTED = HERE.parent / "symbolize" / "proto"

VARINT, BYTES = 0, 2
BYTES_TYPES = FieldDescriptorProto.TYPE_STRING, FieldDescriptorProto.TYPE_BYTES, FieldDescriptorProto.TYPE_MESSAGE


def generate(output: Path) -> None:
    """Write the modules of every `.proto` file beside this script into `output`."""
    for source in sorted(HERE.glob("*.proto")):
        described = output / "descriptors"
        arguments = ["protoc", f"-I{HERE}", f"--python_out={output}", f"--pyi_out={output}", str(source)]
        if protoc.main([*arguments, f"--descriptor_set_out={described}"]) != 0:
            raise SystemExit(f"protoc failed for {source.name}")
        messages = FileDescriptorSet.FromString(described.read_bytes()).file[0].message_type
        described.unlink()
        tags = [each for message in messages for each in tags_of(message)]
        module = output / f"{source.stem}_tags.py"
        head = f"Tags of the fields of {source.name} and the highest field numbers; made by protos/generate.py."
        lines = [f"{name} = {tag:#x}" for name, tag in tags]
        module.write_text("\n".join((f'"""{head}"""', "", *lines)) + "\n")
        lines = [f"# {head}", "cdef enum:", *(f"    {line}" for line in lines)]
        module.with_suffix(".pxi").write_text("\n".join(lines) + "\n")


def tags_of(message: DescriptorProto) -> Iterator[tuple[str, int]]:
    """The tags of a message and of those inside it."""
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", message.name).upper()
    for field in message.field:
        name = f"{prefix}_{field.name.upper()}"
        if field.type in BYTES_TYPES:
            yield name, field.number << 3 | BYTES
            continue
        yield name, field.number << 3 | VARINT
        if field.label == FieldDescriptorProto.LABEL_REPEATED:
            yield f"{name}_PACKED", field.number << 3 | BYTES
    yield f"LAST_{prefix}", max(field.number for field in message.field)
    for inner in message.nested_type:
        yield from tags_of(inner)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else COMMITTED)

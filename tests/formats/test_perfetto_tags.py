"""The schema of Perfetto and the constants made of it, which the loader uses."""

import re
import runpy
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

import symbolize
from symbolize.proto import perfetto_trace_tags
from tests.support.needs import package

ROOT = Path(__file__).resolve().parents[2]
VARINTS = {
    FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_INT32,
    FieldDescriptor.TYPE_BOOL, FieldDescriptor.TYPE_ENUM,
}  # fmt: skip
HEAP_GRAPHS = "heap_graph"
"""Not in Perfetto's Python package, which leaves out Java heap graphs."""


def compare(own: Any, published: Any) -> int:
    """Compare a message of the schema, and those in it, with Perfetto's own; how many fields were compared."""
    lengths = {FieldDescriptor.TYPE_MESSAGE, FieldDescriptor.TYPE_BYTES, FieldDescriptor.TYPE_STRING}
    count = 0
    for field in own.field:
        if field.name != HEAP_GRAPHS:
            known = published.fields_by_name[field.name]
            assert (field.name, field.number) == (known.name, known.number)
            assert (field.type in lengths) == (known.type in lengths)
            assert (field.label == field.LABEL_REPEATED) == known.is_repeated
            assert known.type in lengths | VARINTS
            count += 1
    for enum in own.enum_type:
        known = published.enum_types_by_name[enum.name]
        assert {each.name: each.number for each in enum.value}.items() <= {
            each.name: each.number for each in known.values
        }.items()
    return count + sum(
        compare(inner, published.nested_types_by_name[inner.name]) for inner in own.nested_type if inner.field
    )


def test_schema_of_perfetto() -> None:
    """Numbers and types are those of Perfetto's own messages, which are independent of the schema here."""
    messages = package("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    package("grpc_tools")
    schema = runpy.run_path(str(ROOT / "protos" / "generate.py"))["read_schema"](
        ROOT / "protos" / "perfetto_trace.proto"
    )
    published = messages.DESCRIPTOR.message_types_by_name
    assert sum(compare(message, published[message.name]) for message in schema.message_type) > 150
    for enum in schema.enum_type:
        values = messages.DESCRIPTOR.enum_types_by_name[enum.name].values_by_name
        assert all(values[each.name].number == each.number for each in enum.value)


def test_none_is_unused() -> None:
    """Each constant is used by the loader."""
    numbers = {name for name, value in vars(perfetto_trace_tags).items() if isinstance(value, int)}
    folder = Path(symbolize.__file__).parent / "formats"
    words = set(re.findall(r"\w+", "\n".join(path.read_text() for path in folder.rglob("*.py"))))
    assert len(numbers) > 150
    assert numbers <= words

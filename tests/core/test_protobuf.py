"""The wire format of protobuf, with the protobuf package as the oracle."""

from google.protobuf.internal import encoder, wire_format
from hypothesis import given
from hypothesis import strategies as st

from symbolize.core import protobuf


def test_wire_types() -> None:
    """Wire types and the layout of a tag are those of the protobuf package."""
    assert protobuf.VARINT == wire_format.WIRETYPE_VARINT
    assert protobuf.FIXED64 == wire_format.WIRETYPE_FIXED64
    assert protobuf.BYTES == wire_format.WIRETYPE_LENGTH_DELIMITED
    assert protobuf.FIXED32 == wire_format.WIRETYPE_FIXED32
    assert (protobuf.NUMBER, protobuf.WIRE_TYPE) == (wire_format.TAG_TYPE_BITS, wire_format.TAG_TYPE_MASK)


@given(st.integers(0, (1 << 64) - 1), st.integers(1, (1 << 29) - 1), st.binary(max_size=300))
def test_fields(value: int, number: int, content: bytes) -> None:
    """Varints and fields are encoded as by the protobuf package."""
    assert protobuf.varint(value) == encoder._VarintBytes(value)  # type: ignore[attr-defined]
    out = bytearray()
    encoder.BytesEncoder(number, False, False)(out.extend, content, False)
    assert protobuf.field(number << protobuf.NUMBER | protobuf.BYTES, content) == bytes(out)

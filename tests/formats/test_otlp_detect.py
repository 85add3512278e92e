"""R317: OTLP profiles, pprof profiles and Perfetto traces are told apart by their structure."""

import io
from typing import Any

from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from symbolize.formats.content import Content
from symbolize.formats.open import FORMATS
from symbolize.formats.otlp.containers import is_message
from tests.support.bombs import BASE
from tests.support.messages import classes, profile_pb2
from tests.support.needs import package
from tests.support.perfetto_traces import STATE
from tests.support.seeds import examples

otlp_pb2 = classes("otlp_profiles")
NUMBERS = st.one_of(st.integers(0, 3), st.integers(0, 300), st.integers(0, (1 << 63) - 1))
TEXTS = st.one_of(st.just(b""), st.binary(max_size=6), st.sampled_from([b"main", b"a.c", b"samples"]))


def format_of(data: bytes) -> str:
    """What an input is taken for."""
    content = Content(io.BytesIO(data))
    return next((each.name for each in FORMATS if each.matches(content)), "")


def fill(draw: Any, message: Message, depth: int = 0) -> Message:
    """Give some fields of a message values."""
    for field in message.DESCRIPTOR.fields:
        if field.type == field.TYPE_ENUM or not draw(st.booleans()):
            continue
        limit = {field.TYPE_INT32: (1 << 31) - 1, field.TYPE_UINT32: (1 << 32) - 1}.get(field.type, (1 << 63) - 1)
        is_repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
        for _ in range(draw(st.integers(1, 3)) if is_repeated else 1):
            if field.type == field.TYPE_MESSAGE:
                if depth < 4:
                    inner = getattr(message, field.name)
                    fill(draw, inner.add() if is_repeated else inner, depth + 1)
                continue
            value: Any = min(draw(NUMBERS), limit)
            if field.type in (field.TYPE_BYTES, field.TYPE_STRING):
                value = draw(TEXTS)
                value = value.decode("latin-1") if field.type == field.TYPE_STRING else value
            elif field.type == field.TYPE_BOOL:
                value = bool(value)
            if is_repeated:
                getattr(message, field.name).append(value)
            else:
                setattr(message, field.name, value)
    return message


@st.composite
def pprof(draw: Any) -> bytes:
    """A pprof profile, which has a string table and a sample type."""
    message = fill(draw, profile_pb2.Profile())
    message.string_table.insert(0, type(message.string_table[0])() if message.string_table else b"")
    return message.SerializeToString()


@st.composite
def otlp(draw: Any) -> bytes:
    """OTLP profiles, of which one has a sample type, in either order of their parts."""
    message = fill(draw, otlp_pb2.ProfilesData())
    profile = message.resource_profiles.add().scope_profiles.add().profiles.add()
    profile.sample_type.type_strindex = 1
    message.dictionary.string_table.append(b"")
    data = message.SerializeToString()
    if draw(st.booleans()):
        dictionary = otlp_pb2.ProfilesData()
        dictionary.dictionary.CopyFrom(message.dictionary)
        message.ClearField("dictionary")
        data = dictionary.SerializeToString() + message.SerializeToString()
    return data


@examples(50)
@given(otlp())
def test_otlp(data: bytes) -> None:
    """A message of profiles is one, whatever its fields say."""
    assert format_of(data) == "OTLP profiles"


@examples(50)
@given(pprof())
def test_pprof(data: bytes) -> None:
    """A pprof profile is never taken for OTLP."""
    assert not is_message(data)


@examples(50)
@given(st.data())
def test_perfetto(data: Any) -> None:
    """A trace is never taken for OTLP."""
    perfetto = package("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = perfetto.Trace()
    for _ in range(data.draw(st.integers(1, 4))):
        packet = trace.packet.add()
        kind = data.draw(
            st.sampled_from(["process_tree", "process_stats", "interned_data", "perf_sample", "clock_snapshot"])
        )
        fill(data.draw, getattr(packet, kind), 3)
        if data.draw(st.booleans()):
            packet.trusted_packet_sequence_id = 1
        if data.draw(st.booleans()):
            packet.timestamp = data.draw(st.integers(1, 1 << 60))
    assert not is_message(trace.SerializeToString())


def test_made_inputs() -> None:
    """Small inputs of the other formats, an empty message, and parts of OTLP."""
    for data in (
        BASE,
        b"\x0a" + bytes([len(STATE) & 0x7F]) + STATE,
        b"",
        b"\x0a\x00",
        b"\x12\x00",
        b"\x0a\x02\x12\x00",
    ):
        assert not is_message(data)
    assert not is_message(b"\x0a\x04\x08\x01\x10\x02" * 1000)


def test_large_dictionary_first() -> None:
    """A dictionary whose strings are behind the first 64 KiB is known by its other tables."""
    message = otlp_pb2.ProfilesData()
    for number in range(20_000):
        message.dictionary.location_table.add(mapping_index=1, address=number)
    message.dictionary.string_table.append(b"")
    data = message.SerializeToString()
    assert is_message(data[: 1 << 16])


def test_cut_off() -> None:
    """What is cut off is known as soon as it has a profile."""
    message = otlp_pb2.ProfilesData()
    profile = message.resource_profiles.add().scope_profiles.add().profiles.add()
    profile.sample_type.type_strindex = 1
    profile.samples.add(stack_index=1, values=[5])
    message.dictionary.string_table.extend([b"", b"samples"])
    data = message.SerializeToString()
    assert all(is_message(data[:size]) for size in range(10, len(data)))

"""The pprof loader: what it accepts, saves, refuses, and says. The round trip is tested with the writer."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize.core.errors import InputError
from symbolize.formats import encode
from symbolize.formats.pprof import reader as pprof
from symbolize.profile import NONE
from tests.support.messages import profile_pb2
from tests.support.perfetto_writer import varint


def small() -> profile_pb2.Profile:
    """A small valid profile with every table."""
    message = profile_pb2.Profile(
        string_table=[b"", b"cpu", b"ns", b"main", b"main.c", b"/bin/main", b"abcd", b"thread"]
    )
    message.sample_type.add(type=1, unit=2)
    for stack in ([1, 2], [2]):
        sample = message.sample.add(location_id=stack, value=[10_000_000])
        sample.label.add(key=7, num=3)
    message.mapping.add(id=1, memory_start=0x1000, memory_limit=0x2000, filename=5, build_id=6)
    for row in (1, 2):
        location = message.location.add(id=row, mapping_id=1, address=0x1000 + row * 300)
        location.line.add(function_id=1, line=row)
    message.function.add(id=1, name=3, system_name=3, filename=4, start_line=1)
    message.time_nanos = 1_700_000_000_000_000_000
    message.period_type.type = 1
    message.comment.append(3)
    return message


def refused(raw: bytes) -> InputError:
    """The error that loading gives, which is one line."""
    with pytest.raises(InputError) as caught:
        pprof.load(raw, "x.pb")
    assert str(caught.value).startswith("x.pb: ")
    assert "\n" not in str(caught.value)
    return caught.value


def test_bytes_and_memoryview_load_alike() -> None:
    """Either kind of buffer will do."""
    raw = small().SerializeToString()
    assert encode(pprof.load(raw, "x")) == encode(pprof.load(memoryview(bytearray(raw)), "x"))


def test_empty_input() -> None:
    """No bytes are no profile."""
    assert refused(b"").problem == "is empty"


def test_repeated_strings_are_one() -> None:
    """Entries of the string table that are equal become one string."""
    message = small()
    message.string_table.append(b"main")
    message.function.add(id=2, name=len(message.string_table) - 1)
    functions = pprof.load(message.SerializeToString(), "x").functions
    assert functions.name[0] == functions.name[1]


@pytest.mark.parametrize("ids", [[1, 2, 3, 4], [1, 3, 2, 4], [2, 3, 4, 5], [1, 2, 3, 5], [4, 3, 2, 1]])
def test_rows_are_found_by_their_ids(ids: list[int]) -> None:
    """Whatever ids the rows of tables have, in whatever order, a reference is to the row with the id."""
    message = profile_pb2.Profile(
        string_table=[b"", b"x", b"/1", b"/2", b"/3", b"/4"], sample_type=[profile_pb2.ValueType(type=1)]
    )
    for row, each in enumerate(ids):
        message.mapping.add(id=each, memory_limit=0x100, filename=2 + row)
        message.function.add(id=each, name=2 + row)
        message.location.add(id=each, mapping_id=each, address=row).line.add(function_id=each)
    message.sample.add(location_id=[ids[2], ids[0], ids[3], ids[1]], value=[1])
    profile = pprof.load(message.SerializeToString(), "x")
    assert profile.samples.locations.tolist() == [2, 0, 3, 1]
    assert profile.locations.mapping.tolist() == profile.locations.lines.function.tolist() == [0, 1, 2, 3]
    # An id between or beside those that are there is none of them.
    for other in {*range(7)} - {*ids}:
        message.location[0].mapping_id = other
        assert pprof.load(message.SerializeToString(), "x").locations.mapping.tolist() == [NONE, 1, 2, 3]


def alter(change: Callable[[profile_pb2.Profile], Any]) -> bytes:
    """The small profile after a change."""
    message = small()
    change(message)
    return message.SerializeToString()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda m: m.sample[1].location_id.append(3), "location that does not exist"),
        (lambda m: m.sample[1].location_id.append(0), "location that does not exist"),
        (lambda m: m.sample[1].location_id.append(1 << 63), "location that does not exist"),
        (lambda m: m.sample[1].value.append(1), "more or fewer values"),
        (lambda m: m.sample[0].ClearField("value"), "more or fewer values"),
        (lambda m: (m.sample[0].ClearField("value"), m.sample[1].value.append(1)), "more or fewer values"),
        (lambda m: m.ClearField("sample_type"), "no sample types"),
        (lambda m: m.location.add(), "location with id 0"),
        (lambda m: m.location.add(id=2), "two locations with id 2"),
        (lambda m: m.function.add(), "function with id 0"),
        (lambda m: m.function.add(id=1), "two functions with id 1"),
        (lambda m: m.mapping.add(), "mapping with id 0"),
        (lambda m: m.mapping.add(id=1), "two mappings with id 1"),
        (lambda m: setattr(m.function[0], "name", 8), "string outside the string table"),
        (lambda m: setattr(m.function[0], "name", -1), "string outside the string table"),
        (lambda m: setattr(m.sample[0].label[0], "key", 8), "string outside the string table"),
        (lambda m: setattr(m.mapping[0], "filename", 8), "string outside the string table"),
        (lambda m: setattr(m, "doc_url", -1), "names string -1 of 8"),
        (lambda m: m.comment.append(1 << 40), "string outside the string table"),
        (lambda m: m.string_table.__setitem__(0, b"x"), "first entry is not empty"),
    ],
)
def test_what_is_not_valid(change: Callable[[profile_pb2.Profile], Any], problem: str) -> None:
    """pprof's CheckValid, and indices outside the string table."""
    assert problem in refused(alter(change)).problem


def test_lists_that_are_not_packed() -> None:
    """Writers may give each number of a list a field of its own (protobuf encoding); what is checked is the same."""
    packed = small()
    packed.comment.append(4)
    packed.sample_type.add(type=3)
    for each in packed.sample:
        each.value.append(-5)
    raw = packed.SerializeToString()
    plain = raw
    minus = b"\xfb" + b"\xff" * 8 + b"\x01"
    for stack, short in ((b"\x0a\x02\x01\x02", b"\x08\x01\x08\x02"), (b"\x0a\x01\x02", b"\x08\x02")):
        old = stack + b"\x12\x0e\x80\xad\xe2\x04" + minus
        new = short + b"\x10\x80\xad\xe2\x04\x10" + minus
        assert old in plain
        at = plain.index(old) - 1
        plain = plain[:at] + bytes([plain[at] + len(new) - len(old)]) + new + plain[at + 1 + len(old) :]
    plain = plain.replace(b"\x6a\x02\x03\x04", b"\x68\x03\x68\x04")
    assert profile_pb2.Profile.FromString(plain) == packed
    assert plain != raw
    assert encode(pprof.load(plain, "x")) == encode(pprof.load(raw, "x"))
    found = pprof.load(plain, "x").samples
    assert found.locations.tolist() == [0, 1, 1]
    assert found.values.tolist() == [[10_000_000, -5]] * 2
    short = plain.index(b"\x08\x01\x08\x02")
    error = refused(plain[: short + 3] + b"\x07" + plain[short + 4 :])
    assert (error.problem, error.offset) == ("has a sample with a location that does not exist", short + 2)
    for size, more in ((-11, b""), (2, b"\x10\x01")):
        end = short + 4 + 5 + 11
        kept = end if more else end - 11
        changed = plain[: short - 1] + bytes([plain[short - 1] + size]) + plain[short:kept] + more + plain[end:]
        assert "more or fewer values" in refused(changed).problem


def test_problems_say_where() -> None:
    """An error about a field gives the offset of the field."""
    raw = alter(lambda m: m.sample[1].location_id.append(3))
    error = refused(raw)
    assert error.offset is not None
    assert raw[error.offset] == 3


def test_ids_collide_in_sparse_tables_too() -> None:
    """A repeated id is found whatever the ids are."""
    source = random.Random(1)
    ids = [source.getrandbits(64) for _ in range(1000)]
    message = small()
    for each in ids:
        message.location.add(id=each)
    message.sample[0].location_id.append(ids[700])
    assert pprof.load(message.SerializeToString(), "x").samples.locations.tolist() == [0, 1, 702, 1]
    message.location.add(id=ids[10])
    assert refused(message.SerializeToString()).problem.startswith(f"has two locations with id {ids[10]};")


def test_lines_without_function_are_dropped() -> None:
    """A line with no function, or one that does not exist, costs the line only."""
    message = small()
    message.location[0].line.add(line=5)
    message.location[0].line.add(function_id=77)
    message.location[0].line.add(function_id=1, line=9)
    profile = pprof.load(message.SerializeToString(), "x")
    assert profile.locations.line_offsets.tolist() == [0, 2, 3]
    assert profile.locations.lines.line.tolist() == [1, 9, 2]
    assert profile.warnings == ["2 lines without a function were dropped"]


def test_an_unknown_mapping_is_none() -> None:
    """A location whose mapping does not exist stays, without one."""
    profile = pprof.load(alter(lambda m: setattr(m.location[1], "mapping_id", 9)), "x")
    assert profile.locations.mapping.tolist() == [0, -1]
    assert "1 locations name a mapping" in profile.warnings[0]


def test_unknown_fields_in_lines_are_told() -> None:
    """Unknown fields where none are kept give a warning."""
    message = small()
    message.location[0].line[0].MergeFromString(b"\x78\x01")
    message.sample_type[0].MergeFromString(b"\x78\x01")
    assert pprof.load(message.SerializeToString(), "x").warnings == [
        "2 unknown fields of lines, labels and value types were dropped"
    ]


def test_concatenated_profiles() -> None:
    """A second time_nanos betrays two profiles in one file, as pprof says; ids that are there twice do without it."""
    message = small()
    assert "concatenated" in refused(message.SerializeToString() * 2).problem
    message.ClearField("time_nanos")
    assert "two concatenated profiles" in refused(message.SerializeToString() * 2).problem


def test_the_last_of_repeated_scalars_counts() -> None:
    """A scalar field given twice has its last value (protobuf encoding)."""
    raw = small().SerializeToString() + b"\x22\x04\x08\x07\x08\x09"
    assert pprof.load(raw + b"\x12\x06\x08\x09\x12\x02\x80\x01", "x").samples.locations[-1] == 2


def test_every_truncation() -> None:
    """A profile that is cut at any byte loads (at a field's end), or the error says that it is cut short."""
    raw = small().SerializeToString()
    problems = []
    for end in range(1, len(raw)):
        try:
            pprof.load(raw[:end], "x")
        except InputError as error:
            problems.append((end, error))
    # Cut between two fields, what is missing may be a table that others refer to.
    cut = [(end, error) for end, error in problems if not error.problem.startswith(("has ", "names "))]
    assert len(cut) > len(raw) * 3 // 4
    assert all("cut short" in error.problem and 0 <= (error.offset or 0) <= end for end, error in cut)


@given(st.data())
def test_damage_is_an_input_error(data: st.DataObject) -> None:
    """Flipped bytes give an error or another profile, which can be written; nothing else ever."""
    raw = bytearray(small().SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        profile = pprof.load(bytes(raw), "x")
    except InputError:
        return
    encode(profile)


@given(st.binary(min_size=1, max_size=200))
def test_any_bytes(raw: bytes) -> None:
    """Bytes that are no profile never give anything but an input error."""
    try:
        pprof.load(raw, "x")
    except InputError:
        pass


@pytest.mark.parametrize(
    "raw",
    [
        b"\x12\x03\x0a\x01\x80",  # a packed list that ends inside a number
        b"\x0b\x0c",  # a group
        b"\x00\x01",  # field number 0
        b"\x48" + b"\xff" * 10 + b"\x01",  # a number of eleven bytes
        b"\x12\x02\x0a\x05abcde",  # a list that leaves its message
        b"\x1a\x02\x38\xff\x32\x00",  # a mapping that ends inside a number
    ],
)
def test_bad_encoding(raw: bytes) -> None:
    """Broken protobuf is told as such, with the offset."""
    error = refused(raw)
    assert "damaged" in error.problem or "cut short" in error.problem
    assert error.offset is not None


def test_more_mappings_than_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that become objects are bounded."""
    monkeypatch.setattr(pprof, "MAX_MAPPINGS", 0)
    assert "has 1 mappings" in refused(small().SerializeToString()).problem


def test_matches_profiles() -> None:
    """A profile is known by its fields, in any order, also when its end is missing."""
    raw = small().SerializeToString()
    assert pprof.matches(raw)
    assert pprof.matches(memoryview(raw))
    assert pprof.matches(raw[:40])
    assert pprof.matches(b"\x32\x00" + raw)
    assert pprof.matches(profile_pb2.Profile(string_table=[b""]).SerializeToString())
    assert pprof.matches(b"\xc0\x3e\x01" + raw) is False  # unknown fields come first in no profile


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\n",
        b"heap profile: 1: 2 [3: 4] @ heapprofile\n",
        b"--- contention:\ncycles/second=1\n",
        b"xxxxxxxxxxxxxxxx",
        b"2024-01-01 a text\n" * 100,
        b'{"a": 1}',
        b"\x7fELF\x02\x01\x01" + bytes(60),
        b"PERFILE2" + bytes(100),
        b"SIMPLEPERF" + bytes(100),
        bytes(8) + b"\x03" + bytes(7) + bytes(8) + b"\x10\x27" + bytes(14),  # gperftools
        bytes(100),
        b"\x0a\x06\x40\x01\x1a\x02hi" * 50,  # packets of a trace: field 1, over and over
        b"\x4a\x04\x00\x01\x02\x03" * 9,  # time_nanos as bytes
        b"\x39" + bytes(8) + b"\x3d" + bytes(4),  # drop_frames of fixed size
        b"\x58\x01" * 9,  # period_type as a number
    ],
)
def test_matches_nothing_else(raw: bytes) -> None:
    """Other formats and text are not taken for profiles."""
    assert not pprof.matches(raw)


def test_matches_hardly_any_random_bytes() -> None:
    """Random bytes are not taken for profiles."""
    source = random.Random(7)
    assert sum(pprof.matches(source.randbytes(4096)) for _ in range(3000)) < 10


LISTS = {"": (1, 2, 3, 4, 5, 6, 13), "sample": (1, 2, 3), "location": (4,)}
"""Repeated fields by message: where one has another wire type, rows would be missing."""
FIELDS = {"": 15, "sample": 3, "mapping": 10, "location": 5, "function": 5, "label": 4, "line": 3, "sample_type": 2}
"""The last field of each message."""
BYTES_FIELDS = {"": (1, 2, 3, 4, 5, 6, 11), "sample": (3,), "location": (4,)}


def with_field(message: str, raw: bytes) -> bytes:
    """The small profile with a field more in a message of a kind."""
    whole = small()
    if not message:
        return whole.SerializeToString() + raw
    path = {"label": ["sample", "label"], "line": ["location", "line"]}.get(message, [message])
    messages = [whole]
    for name in path:
        messages.append(getattr(messages[len(messages) - 1], name)[0])
    old = [each.SerializeToString() for each in messages]
    new = old.pop() + raw
    last = messages[len(messages) - 1].SerializeToString()
    for outer in reversed(old):
        # A message in another is its length and its bytes.
        changed = outer.replace(bytes([len(last)]) + last, bytes([len(new)]) + new, 1)
        assert changed != outer
        last, new = outer, changed
    return new


def unknown_anywhere(message: Any) -> int:
    """Unknown fields in a message and all in it, as protobuf reads it."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    count = len(UnknownFieldSet(message))
    for descriptor, value in message.ListFields():
        if descriptor.message_type:
            try:
                each = list(value)
            except TypeError:
                each = [value]
            count += sum(map(unknown_anywhere, each))
    return count


@pytest.mark.parametrize("message", FIELDS)
@pytest.mark.parametrize("wire", [0, 1, 2, 5])
def test_fields_of_another_wire_type(message: str, wire: int) -> None:
    """R275: an entry of a list or table is damage, another field is dropped with a warning, and none is written."""
    content = {0: b"\x01", 1: bytes(8), 2: b"\x00", 5: bytes(4)}[wire]
    for number in range(1, FIELDS[message] + 1):
        fits = wire == (2 if number in BYTES_FIELDS.get(message, ()) else 0)
        packed = wire == 2 and (message, number) in (("", 13), ("sample", 1), ("sample", 2))
        if fits or packed:
            continue
        raw = with_field(message, bytes([number << 3 | wire]) + content)
        if number in LISTS.get(message, ()):
            assert "another wire type" in refused(raw).problem
            continue
        profile = pprof.load(raw, "x")
        what = "unknown fields of lines" if message in ("label", "line", "sample_type") else "of another wire type"
        assert any(what in each for each in profile.warnings)
        assert unknown_anywhere(profile_pb2.Profile.FromString(encode(profile))) == 0
    # A newer schema's field stays.
    for number in (FIELDS[message] + 1, 1000):
        raw = with_field(message, varint(number << 3 | wire) + content)
        kept = unknown_anywhere(profile_pb2.Profile.FromString(encode(pprof.load(raw, "x"))))
        assert kept == (message not in ("label", "line", "sample_type"))


def test_tags_that_protobuf_does_not_read() -> None:
    """R275: a tag of more than five bytes, in a field that would be written again."""
    assert "is damaged" in refused(with_field("location", b"\xc0\xbe\x80\x80\x80\x00\x01")).problem
    assert "cut short" in refused(with_field("", b"\xc0\xbe\x80\x80\x80\x00\x01")).problem
    for message in ("label", "line"):
        for tag in (b"\xc0\xbe\x80\x80\x80\x00", b"\x88\x80\x80\x80\x80\x00"):
            refused(with_field(message, tag + b"\x01"))

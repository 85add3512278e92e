"""OTLP profiles that are written: what opentelemetry-proto parses back, and what comes back as pprof."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize import Profile, UsageError, load, load_all, write
from symbolize.cli import main
from symbolize.formats import encode
from symbolize.formats.pprof import reader as pprof
from symbolize.profile import compact
from tests.support import profcheck
from tests.support.fixture_files import FIXTURES
from tests.support.messages import profile_pb2
from tests.support.otlp_messages import parse
from tests.support.seeds import examples

PROFILES = [
    *sorted((FIXTURES / "profiles").glob("*/*.gz")),
    *sorted((FIXTURES / "profiles").glob("*/*.prof")),
    *sorted((FIXTURES / "simpleperf").glob("*.proto")),
]


def written(profile: Profile) -> bytes:
    """The profile as OTLP."""
    out = io.BytesIO()
    write(profile, out, emit="otlp")
    return out.getvalue()


def made(**fields: Any) -> Any:
    """A pprof profile with one sample type."""
    message = profile_pb2.Profile(string_table=[b"", b"cpu", b"nanoseconds"], **fields)
    message.sample_type.add(type=1, unit=2)
    return message


def of(message: Any) -> Profile:
    """The profile of a pprof message."""
    return pprof.load(message.SerializeToString(), "made")


def value_of(value: Any) -> Any:
    """An AnyValue as Python has it."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [value_of(each) for each in value.array_value.values]
    return None if kind is None else getattr(value, kind)


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.name)
class TestFixtures:
    """R325: every profile of the fixtures."""

    def test_parsed_back(self, path: Path) -> None:
        """What protobuf parses is the profile, field by field, and what it would write are the same bytes."""
        profile = compact(load(path))
        data = written(profile)
        message = parse(data)
        assert message.SerializeToString(deterministic=True) == data
        assert profcheck.problems(message) == []
        tables = message.dictionary
        text = tables.string_table
        (scope,) = message.resource_profiles[0].scope_profiles
        types = [
            (text[each.sample_type.type_strindex], text[each.sample_type.unit_strindex]) for each in scope.profiles
        ]
        strings = profile.strings.text
        assert types == [(strings(each.type), strings(each.unit)) for each in profile.sample_types]
        stacks = [[self.frame(tables, index) for index in stack.location_indices] for stack in tables.stack_table]
        expected = list(profile.stacks())
        for column, each in enumerate(scope.profiles):
            assert [sample.values[:] for sample in each.samples] == profile.samples.values[:, [column]].tolist()
            assert each.time_unix_nano == profile.time_nanos
            assert each.duration_nano == profile.duration_nanos
            assert each.period == profile.period
            for sample, frames in zip(each.samples, expected, strict=True):
                found = [line for frame in stacks[sample.stack_index] for line in frame]
                assert found == [(f.address, f.mapping, f.function, f.file, f.line, f.column) for f in frames]
        for mapping, start, limit, offset in zip(
            tables.mapping_table[1:],
            profile.mappings.start.tolist(),
            profile.mappings.limit.tolist(),
            profile.mappings.file_offset.tolist(),
            strict=True,
        ):
            assert (mapping.memory_start, mapping.memory_limit, mapping.file_offset) == (start, limit, offset)

    def frame(self, tables: Any, index: int) -> list[tuple[Any, ...]]:
        """The frames of a location."""
        location, text = tables.location_table[index], tables.string_table
        mapping = text[tables.mapping_table[location.mapping_index].filename_strindex]
        functions = [(tables.function_table[line.function_index], line) for line in location.lines]
        frames = [(text[f.name_strindex], text[f.filename_strindex], line.line, line.column) for f, line in functions]
        return [(location.address, mapping, *frame) for frame in frames or [("", "", 0, 0)]]

    def test_round_trip(self, path: Path) -> None:
        """What comes back are the same bytes of pprof, but for the order of a location without anything."""
        profile = load(path)
        back, expected = encode(load(io.BytesIO(written(profile)))), encode(compact(profile))
        parsed = profile_pb2.Profile.FromString(expected)
        assert back == expected or not all(each.address or each.line or each.mapping_id for each in parsed.location)
        assert canonical(profile_pb2.Profile.FromString(back)) == canonical(parsed)


class TestLabels:
    """Labels as attributes and links."""

    def attributes(self, message: Any) -> list[dict[str, Any]]:
        """The attributes of each sample."""
        tables = message.dictionary
        assert profcheck.problems(message) == []
        return [
            {
                tables.string_table[row.key_strindex]: (value_of(row.value), tables.string_table[row.unit_strindex])
                for row in (tables.attribute_table[index] for index in sample.attribute_indices)
            }
            for sample in message.resource_profiles[0].scope_profiles[0].profiles[0].samples
        ]

    def profile(self, *labels: list[tuple[Any, ...]]) -> Profile:
        """A profile with a sample for each list of labels: key, text or number, and unit."""
        message = made()

        def text(value: str) -> int:
            if value.encode() not in message.string_table:
                message.string_table.append(value.encode())
            return list(message.string_table).index(value.encode())

        for each in labels:
            sample = message.sample.add(value=[1])
            for key, value, *unit in each:
                label = sample.label.add(key=text(key), num_unit=text(unit[0]) if unit else 0)
                if isinstance(value, str):
                    label.str = text(value)
                else:
                    label.num = value
        return of(message)

    def test_values(self) -> None:
        """Texts and numbers with units; several of one key are an array; a label without a value stays."""
        profile = self.profile(
            [("a", "x"), ("b", 5, "bytes"), ("zero", 0, "count"), ("minus", -3)],
            [("a", "x"), ("b", 5, "bytes"), ("b", 6, "bytes"), ("a", "y"), ("a", "y")],
            [("none", 0)],
            [],
        )
        assert self.attributes(parse(written(profile))) == [
            {"a": ("x", ""), "b": (5, "bytes"), "zero": (0, "count"), "minus": (-3, "")},
            {"a": (["x", "y", "y"], ""), "b": ([5, 6], "bytes")},
            {"none": (None, "")},
            {},
        ]

    def test_links(self) -> None:
        """Ids of traces and spans are links; what is no such id, or there twice, stays a label."""
        trace, span = "0123456789abcdef" * 2, "00000000000000ff"
        profile = self.profile(
            [("trace_id", trace), ("x", 1), ("span_id", span)],
            [("trace_id", trace)],
            [("trace_id", "short"), ("span_id", span.upper())],
            [("trace_id", trace), ("trace_id", trace)],
            [("trace_id", "0" * 32)],
        )
        message = parse(written(profile))
        samples = message.resource_profiles[0].scope_profiles[0].profiles[0].samples
        links = [(link.trace_id.hex(), link.span_id.hex()) for link in message.dictionary.link_table]
        assert links == [("0" * 32, "0" * 16), (trace, "0" * 16), (trace, span)]
        assert [sample.link_index for sample in samples] == [2, 1, 0, 0, 0]
        assert [sorted(each) for each in self.attributes(message)] == [
            ["x"],
            [],
            ["span_id", "trace_id"],
            ["trace_id"],
            ["trace_id"],
        ]


class TestMappings:
    """Build ids and flags."""

    @pytest.mark.parametrize(
        ("build_id", "key"),
        [("abcd", "gnu"), ("AB", "gnu"), ("a/b/c", "go"), ("htlhash:00ff", "htlhash"), ("odd", "gnu")],
    )
    def test_build_ids(self, build_id: str, key: str) -> None:
        """R321: the key of a build id is that of its form, and it comes back as it was."""
        message = made()
        message.string_table.append(build_id.encode())
        message.mapping.add(id=1, memory_limit=4096, build_id=3, has_functions=True)
        profile = of(message)
        tables = parse(written(profile)).dictionary
        attributes = {
            tables.string_table[row.key_strindex]: value_of(row.value)
            for row in (tables.attribute_table[index] for index in tables.mapping_table[1].attribute_indices)
        }
        assert attributes == {
            f"process.executable.build_id.{key}": build_id.removeprefix("htlhash:"),
            "pprof.mapping.has_functions": True,
            "pprof.mapping.has_filenames": False,
            "pprof.mapping.has_line_numbers": False,
            "pprof.mapping.has_inline_frames": False,
        }
        assert encode(load(io.BytesIO(written(profile)))) == encode(profile)


def test_what_is_lost() -> None:
    """Fields of a newer schema, text beside a number of one label, and units within an array have no place in OTLP."""
    message = made()
    message.string_table.extend([b"k", b"v", b"a", b"b"])
    message.sample.add(value=[1]).label.add(key=3, str=4, num=7)
    message.sample.add(value=[1]).label.extend(
        [profile_pb2.Label(key=3, num=1, num_unit=5), profile_pb2.Label(key=3, num=2, num_unit=6)]
    )
    profile = pprof.load(message.SerializeToString() + b"\xa2\x06\x01x", "made")
    back = load(io.BytesIO(written(profile)))
    labels, text = back.samples.labels, back.strings.text
    assert [
        (text(t), n, text(u)) for t, n, u in zip(labels.text, labels.number.tolist(), labels.unit, strict=True)
    ] == [
        ("v", 0, ""),
        ("", 1, "a"),
        ("", 2, "a"),
    ]
    assert (profile.unknown, back.unknown) != ({}, {})


def test_without_sample_types() -> None:
    """R325: a recording without samples, which has no types of them, becomes a profile that can be read."""
    profile = Profile()
    profile.comments = [profile.strings.add(b"idle")]
    back = load(io.BytesIO(written(profile)))
    assert (len(back.samples), [back.strings.text(each) for each in back.comments]) == (0, ["idle"])
    assert profcheck.problems(parse(written(profile))) == []
    assert written(back) == written(profile)
    message = made()
    message.location.add(id=1, address=5)
    message.sample.add(location_id=[1], value=[3])
    profile = of(message)
    profile.sample_types, profile.samples.values = [], np.zeros((1, 0), np.int64)
    back = load(io.BytesIO(written(profile)))
    assert (back.samples.values.tolist(), len(back.sample_types)) == ([[0]], 1)


def test_locations_and_stacks_once() -> None:
    """R325: equal locations and stacks are one row."""
    message = made()
    for number in (1, 2):
        message.location.add(id=number, address=5)
    message.sample.add(location_id=[1], value=[1])
    message.sample.add(location_id=[2], value=[2])
    message.sample.add(value=[3])
    parsed = parse(written(of(message)))
    samples = parsed.resource_profiles[0].scope_profiles[0].profiles[0].samples
    assert [sample.stack_index for sample in samples] == [1, 1, 0]
    assert profcheck.problems(parsed) == []


@examples(60)
@given(st.data())
def test_any_profile_comes_back(data: Any) -> None:
    """Samples, their labels but for the order, stacks and header of any profile without repeated keys come back."""
    message = made(
        time_nanos=data.draw(st.integers(-5, 1 << 62)), duration_nanos=7, period=data.draw(st.integers(-3, 9))
    )
    message.string_table.extend([b"x", b"main", b"trace_id", b"0123456789abcdef" * 2, b"unit"])
    texts = len(message.string_table) - 1
    number = st.integers(0, texts)
    for row in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, 1 << 63))
        message.mapping.add(id=row + 1, memory_start=start, memory_limit=start + 1, filename=data.draw(number))
    for row in range(data.draw(st.integers(1, 3))):
        message.function.add(id=row + 1, name=data.draw(number), start_line=data.draw(st.integers(-(1 << 62), 1 << 62)))
    for row in range(data.draw(st.integers(1, 4))):
        location = message.location.add(id=row + 1, address=data.draw(st.integers(0, (1 << 64) - 1)))
        location.mapping_id = data.draw(st.integers(0, len(message.mapping)))
        location.is_folded = data.draw(st.booleans())
        for _ in range(data.draw(st.integers(0, 2))):
            function = data.draw(st.integers(1, len(message.function)))
            location.line.add(function_id=function, line=data.draw(st.integers(-5, 1 << 40)), column=row)
    for _ in range(data.draw(st.integers(0, 5))):
        stack = data.draw(st.lists(st.integers(1, len(message.location)), max_size=5))
        sample = message.sample.add(location_id=stack, value=[data.draw(st.integers(-(1 << 63), (1 << 63) - 1))])
        for key in data.draw(st.sets(st.integers(3, 5))):
            if data.draw(st.booleans()):
                sample.label.add(key=key, str=data.draw(st.integers(1, texts)))
            else:
                sample.label.add(key=key, num=data.draw(st.integers(1, 1 << 62)), num_unit=data.draw(number))
    message.comment.extend(data.draw(st.lists(number, max_size=3)))
    message.default_sample_type = data.draw(st.integers(0, 1))
    profile = of(message)
    back = profile_pb2.Profile.FromString(encode(load(io.BytesIO(written(profile)))))
    expected = profile_pb2.Profile.FromString(encode(compact(profile)))
    assert canonical(back) == canonical(expected)


def canonical(message: Any) -> Any:
    """What a profile says, whatever the order of its locations, functions, labels and strings."""
    text = message.string_table
    functions = {
        each.id: (text[each.name], text[each.system_name], text[each.filename], each.start_line)
        for each in message.function
    }
    mappings = [
        (
            each.memory_start,
            each.memory_limit,
            each.file_offset,
            text[each.filename],
            text[each.build_id],
            each.has_functions,
        )
        for each in message.mapping
    ]
    locations = {
        each.id: (
            each.mapping_id,
            each.address,
            each.is_folded,
            [(functions[line.function_id], line.line, line.column) for line in each.line],
        )
        for each in message.location
    }
    samples = [
        (
            [locations[each] for each in sample.location_id],
            list(sample.value),
            sorted((text[each.key], text[each.str], each.num, text[each.num_unit]) for each in sample.label),
        )
        for sample in message.sample
    ]
    header = message.time_nanos, message.duration_nanos, message.period, [text[each] for each in message.comment]
    return mappings, samples, header, text[message.default_sample_type]


def test_resource() -> None:
    """R325: comments that name attributes of a resource become these again, unless they are of several resources."""
    texts = [b"resource: process.pid=812", b"resource: service.name=a=b", b"mine", b"resource: x=", b"resource: none"]
    message = made(comment=[3, 4, 5, 6, 7])
    message.string_table.extend(texts)
    data = written(of(message))
    parsed = parse(data)
    assert profcheck.problems(parsed) == []
    attributes = parsed.resource_profiles[0].resource.attributes
    expected = {"process.pid": 812, "service.name": "a=b", "x": ""}
    assert {each.key: value_of(each.value) for each in attributes} == expected
    (back,) = load_all(io.BytesIO(data))
    assert (back.pid, back.process) == (812, "a=b")
    comments = [back.profile.strings[each] for each in back.profile.comments]
    assert comments == [texts[2], texts[4], texts[0], texts[1], texts[3]]
    message.string_table.append(b"resource: process.pid=7")
    message.comment.append(8)
    data = written(of(message))
    assert not parse(data).resource_profiles[0].resource.attributes
    back_profile = load(io.BytesIO(data))
    assert [back_profile.strings[each] for each in back_profile.comments] == [*texts, b"resource: process.pid=7"]


def test_command(tmp_path: Path) -> None:
    """The ending `.otlp` and `--emit otlp` write OTLP; it is not written compressed, and never over its input."""
    source = FIXTURES / "profiles" / "perf" / "spectra-gcc-pie.pb.gz"
    for arguments in (["-o", str(tmp_path / "a.otlp")], ["--emit", "otlp", "-o", str(tmp_path / "b")]):
        assert main([str(source), *arguments, "-q", "--no-cache"]) == 0
    first, second = (tmp_path / "a.otlp").read_bytes(), (tmp_path / "b").read_bytes()
    assert first == second
    assert load_all(tmp_path / "a.otlp")[0].format == "OTLP profiles"
    with pytest.raises(UsageError, match="otlp is not written compressed"):
        write(load(source), tmp_path / "a.otlp.gz")

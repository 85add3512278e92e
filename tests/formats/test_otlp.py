"""OTLP profiles as opentelemetry-proto says them: samples, frames, labels, and what has no place in pprof."""

import base64
import gzip
import io
import json
import struct
import time
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.json_format import MessageToDict

from symbolize import InputError, Profile, load, load_all
from symbolize.core.protobuf import field, varint
from symbolize.profile import AddressKind
from tests.support.otlp_messages import GNU, GO, Maker, common_pb2, profiles_pb2

CPU = ("cpu", "nanoseconds", 50_000_000)
COUNT = ("samples", "count")


def read(data: bytes, **options: Any) -> Profile:
    """The only profile of a message."""
    return load(io.BytesIO(data), **options)


def labels_of(profile: Profile, sample: int = 0) -> list[tuple[str, str | int, str]]:
    """The labels of a sample: key, text or number, and unit."""
    labels, text = profile.samples.labels, profile.strings.text
    first, last = profile.samples.label_offsets[sample : sample + 2].tolist()
    return [
        (text(labels.key[i]), text(labels.text[i]) if labels.text[i] else int(labels.number[i]), text(labels.unit[i]))
        for i in range(first, last)
    ]


def types_of(profile: Profile) -> list[tuple[str, str]]:
    """The sample types."""
    return [(profile.strings.text(each.type), profile.strings.text(each.unit)) for each in profile.sample_types]


def comments_of(profile: Profile) -> list[str]:
    """The comments."""
    return [profile.strings.text(each) for each in profile.comments]


def small(**sample: Any) -> Maker:
    """A message with one sample of one native frame; `sample` are its further fields."""
    maker = Maker()
    mapping = maker.mapping("lib.so", 0x1000, 0x9000, 0x1000)
    profile = maker.profile(maker.resource(), COUNT, CPU, time_unix_nano=10, duration_nano=20)
    frame = maker.frame("native", mapping, 0x1234)
    profile.samples.add(stack_index=maker.stack(frame), **(sample or {"values": [1]}))
    return maker


class TestValues:
    """R323: what a sample counts."""

    def test_values_are_summed(self) -> None:
        """A sample has the sum of its values, whatever times it has."""
        profile = read(small(values=[3, 4], timestamps_unix_nano=[11, 12]).encode())
        assert types_of(profile) == [COUNT]
        assert profile.samples.values.tolist() == [[7]]
        assert profile.warnings == ["The times of single events were left out: samples have the sum of their events."]

    def test_times_count_one_each(self) -> None:
        """R323: samples with times only are counts, and with the period they are processor time too."""
        profile = read(small(timestamps_unix_nano=[11, 12, 13]).encode())
        assert types_of(profile) == [COUNT, ("cpu", "nanoseconds")]
        assert profile.samples.values.tolist() == [[3, 150_000_000]]
        assert (profile.time_nanos, profile.duration_nanos, profile.period) == (10, 20, 50_000_000)

    def test_a_sample_for_each_event(self) -> None:
        """With `timestamps` each event is a sample with its time."""
        data = small(values=[3, 4], timestamps_unix_nano=[11, 12], attribute_indices=[0]).encode()
        profile = read(data, timestamps=True)
        assert profile.samples.values.tolist() == [[3], [4]]
        assert [labels_of(profile, row) for row in (0, 1)] == [
            [("timestamp_ns", 11, "nanoseconds")],
            [("timestamp_ns", 12, "nanoseconds")],
        ]
        assert profile.warnings == []
        counted = read(small(timestamps_unix_nano=[11, 12]).encode(), timestamps=True)
        assert counted.samples.values.tolist() == [[1, 50_000_000], [1, 50_000_000]]

    def test_times_that_do_not_fit_the_values(self) -> None:
        """A sample with another number of times than values stays one."""
        profile = read(small(values=[3, 4], timestamps_unix_nano=[11]).encode(), timestamps=True)
        assert profile.samples.values.tolist() == [[7]]
        assert labels_of(profile) == []


class TestLabels:
    """Attributes and links of samples as labels."""

    @pytest.mark.parametrize(
        ("value", "labels"),
        [
            ("text", [("k", "text", "")]),
            (7, [("k", 7, "bytes")]),
            (-1, [("k", -1, "bytes")]),
            (0, [("k", 0, "bytes")]),
            (True, [("k", "true", "")]),
            (False, [("k", "false", "")]),
            (1.5, [("k", "1.5", "")]),
            (b"\x01\xff", [("k", "01ff", "")]),
            (["a", 5], [("k", "a", ""), ("k", 5, "bytes")]),
            ([], []),
            ({"a": [1, "b"]}, [("k", '{"a": [1, "b"]}', "")]),
        ],
    )
    def test_values(self, value: Any, labels: list[Any]) -> None:
        """Each kind of value is a label; the items of an array are labels of their own."""
        maker = small()
        maker.message.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].attribute_indices.append(
            maker.attribute("k", value, "bytes")
        )
        assert labels_of(read(maker.encode())) == labels

    def test_strings_of_the_table(self) -> None:
        """A value may be a string of the table."""
        maker = small()
        row = maker.add(
            "attribute",
            key_strindex=maker.text("k"),
            value=common_pb2.AnyValue(string_value_strindex=maker.text("v")),
        )
        maker.message.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].attribute_indices.append(row)
        assert labels_of(read(maker.encode())) == [("k", "v", "")]

    def test_zero_without_unit(self) -> None:
        """R270: 0 needs a unit to be a label for pprof."""
        maker = small()
        maker.message.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].attribute_indices.append(
            maker.attribute("k", 0)
        )
        assert labels_of(read(maker.encode())) == [("k", 0, "k")]

    def test_links(self) -> None:
        """A link is two labels; ids that are zero are none."""
        maker = small()
        tables = maker.tables
        tables.link_table.add(trace_id=bytes(range(16)), span_id=bytes(range(8)))
        tables.link_table.add(trace_id=bytes(range(16)), span_id=bytes(8))
        samples = maker.message.resource_profiles[0].scope_profiles[0].profiles[0].samples
        samples[0].link_index = 1
        for link in (2, 0):
            samples.add(stack_index=1, link_index=link, values=[1])
        profile = read(maker.encode())
        trace = ("trace_id", bytes(range(16)).hex(), "")
        assert [labels_of(profile, row) for row in range(3)] == [
            [trace, ("span_id", bytes(range(8)).hex(), "")],
            [trace],
            [],
        ]


class TestFrames:
    """Locations, mappings and functions."""

    def test_interpreted_frames(self) -> None:
        """R320: what no binary names is in a mapping of its own, though its address may lie in one of a file."""
        maker = small()
        mapping = maker.mapping("libpython.so", 0x5000, 0x6000, 0)
        samples = maker.message.resource_profiles[0].scope_profiles[0].profiles[0].samples
        frames = [
            maker.frame("cpython", 0, 0x1500, [("f", "a.py", 7)]),
            maker.frame("cpython", mapping, 3, [("g", "a.py", 9)]),
            maker.frame("native", mapping, 0x5100),
            maker.frame("", 0, 0, [("h", "", 0)]),
            maker.frame("abort-marker", 0, 0x1234),
            maker.frame("native", 0, 0x1234),
        ]
        samples.add(stack_index=maker.stack(*frames), values=[1])
        profile = read(maker.encode())
        text, mappings = profile.strings.text, profile.mappings
        rows = profile.locations.mapping[profile.samples.locations[1:]].tolist()
        names = [text(mappings.filename[row]) if row >= 0 else "" for row in rows]
        kinds = [profile.address_kind(row) if row >= 0 else None for row in rows]
        none = AddressKind.NO_BINARY
        assert names == ["[cpython]", "libpython.so", "libpython.so", "", "[abort-marker]", "[native]"]
        assert kinds == [none, none, AddressKind.PROCESS, None, none, none]
        assert [frame.line for frame in list(profile.stacks())[1]] == [7, 9, 0, 0, 0, 0]

    def test_build_ids(self) -> None:
        """R321: the GNU id, else that of Go, else the hash; flags of pprof are those of the mapping."""
        maker = small()
        key = "process.executable.build_id"
        ids = [{GNU: "abcd", GO: "a/b"}, {GO: "a/b", f"{key}.htlhash": "00ff"}, {f"{key}.htlhash": "00ff"}]
        ids += [{f"{key}.profiling": "11ff"}, {"pprof.mapping.has_functions": True}]
        frames = []
        for number, attributes in enumerate(ids, 1):
            rows = maker.attributes(attributes)
            start = number << 20
            mapping = maker.add("mapping", memory_start=start, memory_limit=start + 4096, attribute_indices=rows)
            frames.append(maker.frame("", mapping, start))
        samples = maker.message.resource_profiles[0].scope_profiles[0].profiles[0].samples
        samples.add(stack_index=maker.stack(*frames), values=[1])
        profile = read(maker.encode())
        found = [profile.strings.text(each) for each in profile.mappings.build_id.tolist()]
        assert found == ["", "abcd", "a/b", "htlhash:00ff", "htlhash:11ff", ""]
        assert profile.mappings.has_functions.tolist() == [False] * 5 + [True]

    def test_folded(self) -> None:
        """A location may be marked as code that several functions share."""
        maker = small()
        frame = maker.frame("native", 1, 0x2000, pprof__location__is_folded=True)
        samples = maker.message.resource_profiles[0].scope_profiles[0].profiles[0].samples
        samples.add(stack_index=maker.stack(frame), values=[1])
        assert read(maker.encode()).locations.is_folded.tolist() == [False, True]

    def test_kernel(self) -> None:
        """R322: addresses from the first byte of the kernel's code on become addresses of a kernel."""
        maker = small()
        kernel, module = maker.mapping("vmlinux", 0, 0, 0), maker.mapping("nf_net", 0, 0, 0)
        absolute = maker.mapping("[kernel.kallsyms]", 0, 0, 0)
        frames = [
            maker.frame("kernel", kernel, 0x1010, [("f", "", 0)]),
            maker.frame("kernel", module, 0x20),
            maker.frame("kernel", absolute, 0xFFFFFFFF90001000),
        ]
        samples = maker.message.resource_profiles[0].scope_profiles[0].profiles[0].samples
        samples.add(stack_index=maker.stack(*frames), values=[1])
        profile = read(maker.encode())
        assert [hex(frame.address) for frame in list(profile.stacks())[1]] == [
            "0xffffffff81001010",
            "0xffffffffc0000020",
            "0xffffffff90001000",
        ]
        assert [profile.address_kind(row) for row in (1, 2, 3)] == [AddressKind.KERNEL] * 3


class TestSeveral:
    """Several profiles of an input."""

    def make(self) -> Maker:
        """Two processes, the first with two types of the same samples and one of others."""
        maker = Maker()
        stack = maker.stack(maker.frame("", 0, 0, [("f", "a.c", 1)]))
        for pid in (7, 8):
            scope = maker.resource(process_pid=pid, process_executable_path=f"/bin/app{pid}")
            for kind in (COUNT, ("cpu", "nanoseconds"), ("off_cpu", "nanoseconds")):
                profile = maker.profile(scope, kind, time_unix_nano=5)
                profile.samples.add(stack_index=stack, values=[pid])
                if kind[0] == "off_cpu":
                    profile.samples.add(stack_index=stack, values=[1])
        return maker

    def test_profiles_of_a_scope(self) -> None:
        """R324: profiles with the same samples are the sample types of one, others are profiles of their own."""
        found = load_all(io.BytesIO(self.make().encode()))
        assert [each.name for each in found] == [
            "profile.1.7.samples",
            "profile.2.7.off_cpu",
            "profile.3.8.samples",
            "profile.4.8.off_cpu",
        ]
        assert [(each.pid, each.process, each.title) for each in found[2:]] == [
            (8, "app8", "app8 (pid 8) samples"),
            (8, "app8", "app8 (pid 8) off_cpu"),
        ]
        profile = found[0].profile
        assert types_of(profile) == [COUNT, ("cpu", "nanoseconds")]
        assert profile.samples.values.tolist() == [[7, 7]]
        assert comments_of(profile) == ["resource: process.pid=7", "resource: process.executable.path=/bin/app7"]

    def test_attributes_of_the_resource_as_labels(self) -> None:
        """`sample_labels` names those that every sample gets, behind its own labels; missing ones are a warning."""
        maker = Maker()
        scope = maker.resource(service_name="shop", process_pid=0, host_id="h")
        profile = maker.profile(scope, COUNT)
        profile.samples.add(values=[1], attribute_indices=[maker.attribute("k", "v")])
        profile.samples.add(values=[1], attribute_indices=[maker.attribute("k", "w")])
        read_here = read(maker.encode(), sample_labels=["process.pid", "service.name", "cluster"])
        added = [("process.pid", 0, "process.pid"), ("service.name", "shop", "")]
        assert labels_of(read_here, 0) == [("k", "v", ""), *added]
        assert labels_of(read_here, 1) == [("k", "w", ""), *added]
        assert "the resource has no attribute cluster: samples have no such label" in read_here.warnings

    def test_chosen(self) -> None:
        """A process can be chosen by number or name; another one is an error that lists those there are."""
        from symbolize.formats.model import Choice

        data = self.make().encode()
        for choice in (Choice(pids=[8]), Choice(processes=["app8"])):
            assert {each.pid for each in load_all(io.BytesIO(data), choice=choice)} == {8}
        with pytest.raises(InputError, match="no such profile; they have app7, app7, app8, app8"):
            load_all(io.BytesIO(data), choice=Choice(pids=[9]))

    def test_many_types(self) -> None:
        """The time to put thousands of profiles together grows with their number, not with its square."""
        maker = Maker()
        maker.tables.string_table.extend(map(str, range(3000)))
        scope = maker.resource()
        for kind in range(3000):
            profile = scope.profiles.add()
            profile.sample_type.type_strindex = kind + 1
            profile.samples.add(values=[kind])
        begin = time.process_time()
        profile = read(maker.encode())
        assert time.process_time() - begin < 10
        assert profile.samples.values.tolist() == [list(range(3000))]

    def test_merged(self) -> None:
        """The profiles of processes are not merged while they are read, and a warning says so."""
        from symbolize.formats.model import Choice

        found = load_all(io.BytesIO(self.make().encode()), choice=Choice(merge=["processes"]))
        assert len(found) == 4
        assert found[0].warnings == ["Merging processes or dumps applies to Perfetto trace only: it had no effect."]

    def test_kinds_are_any(self, tmp_path: Path) -> None:
        """The command chooses by what profiles are of, which may be anything."""
        from symbolize.cli import main

        source, output = tmp_path / "two.otlp", tmp_path / "one.pb.gz"
        source.write_bytes(self.make().encode())
        assert main([str(source), "--pid", "7", "--kind", "off_cpu", "-q", "-o", str(output)]) == 0
        assert types_of(load(output)) == [("off_cpu", "nanoseconds")]

    def test_order_of_types(self) -> None:
        """The scope may say which order the types had, and which is the default one."""
        maker = self.make()
        scope = maker.message.resource_profiles[0].scope_profiles[0]
        del maker.message.resource_profiles[1:]
        del scope.profiles[2]
        for key, value in (("pprof.scope.sample_type_order", [1, 0]), ("pprof.scope.default_sample_type", "samples")):
            from tests.support.otlp_messages import any_value

            scope.scope.attributes.add(key=key, value=any_value(value))
        profile = read(maker.encode())
        assert types_of(profile) == [("cpu", "nanoseconds"), COUNT]
        assert profile.strings.text(profile.default_sample_type) == "samples"

    def test_other_times_are_not_merged(self) -> None:
        """R324: the same samples at another time are another profile."""
        maker = self.make()
        maker.message.resource_profiles[0].scope_profiles[0].profiles[1].time_unix_nano = 6
        assert len(load_all(io.BytesIO(maker.encode()))) == 5

    @pytest.mark.parametrize("second", [("wall", "nanoseconds", 1), ("cpu", "count", 1), ("cpu", "nanoseconds", 2)])
    def test_other_periods_are_not_merged(self, second: tuple[str, str, int]) -> None:
        """R324: neither are those that were sampled by something else."""
        maker = Maker()
        stack = maker.stack(maker.frame("", 0, 0, [("f", "a.c", 1)]))
        scope = maker.resource(process_pid=7)
        for kind, period in ((COUNT, ("cpu", "nanoseconds", 1)), (("time", "nanoseconds"), second)):
            maker.profile(scope, kind, period).samples.add(stack_index=stack, values=[7])
        first, other = (each.profile for each in load_all(io.BytesIO(maker.encode())))
        text = [tuple(map(each.strings.text, each.period_type)) for each in (first, other)]
        assert text == [("cpu", "nanoseconds"), second[:2]]


def test_header() -> None:
    """What pprof has fields for goes there, the rest is comments."""
    maker = small(values=[1])
    scope = maker.message.resource_profiles[0].scope_profiles[0]
    scope.scope.name, scope.scope.version = "agent", "1.2"
    profile = scope.profiles[0]
    profile.profile_id = bytes(range(16))
    profile.dropped_attributes_count = 3
    profile.original_payload, profile.original_payload_format = b"raw", "jfr"
    profile.attribute_indices.extend(
        maker.attributes(
            {
                "pprof.profile.comment": ["one", "two"],
                "pprof.profile.comment.7": "three",
                "pprof.profile.doc_url": "http://doc",
                "pprof.profile.drop_frames": "d.*",
                "pprof.profile.keep_frames": "k.*",
                "host.name": "here",
            }
        )
    )
    read_back = read(maker.encode())
    text = read_back.strings.text
    assert comments_of(read_back) == [
        *("one", "two", "three", "profile: host.name=here", "scope: name=agent 1.2"),
        *("profile_id: 000102030405060708090a0b0c0d0e0f", "dropped attributes: 3"),
    ]
    assert [text(each) for each in (read_back.doc_url, read_back.drop_frames, read_back.keep_frames)] == [
        *("http://doc", "d.*", "k.*")
    ]
    assert read_back.warnings == ["the original payload that came along was left out"]


def test_rows_that_are_not_there() -> None:
    """Samples of missing stacks are left out, other references to nothing are dropped; all is reported."""
    maker = small(values=[1])
    tables = maker.tables
    samples = maker.message.resource_profiles[0].scope_profiles[0].profiles[0].samples
    samples.add(stack_index=99, values=[1])
    samples.add(stack_index=-1, values=[1])
    tables.stack_table.add(location_indices=[1, 77])
    samples.add(stack_index=len(tables.stack_table) - 1, values=[1])
    samples.add(stack_index=1, values=[5], attribute_indices=[88], link_index=9)
    tables.location_table[1].mapping_index = 55
    tables.location_table[1].lines.add(function_index=66, line=1)
    profile = read(maker.encode())
    assert profile.samples.values.tolist() == [[1], [5]]
    assert profile.strings.text(profile.mappings.filename[profile.locations.mapping[0]]) == "[native]"
    assert profile.warnings == [
        "3 samples were left out because their stack is not in the message",
        "1 references to mappings that the message does not have were left out",
        "1 references to functions that the message does not have were left out",
        "1 references to attributes that the message does not have were left out",
        "1 references to links that the message does not have were left out",
    ]


class TestWire:
    """R327: what encoders may do with the same message."""

    def same(self, data: bytes) -> None:
        """The message is still the one that `small` makes."""
        profile = read(data)
        assert profile.samples.values.tolist() == [[7]]
        assert [frame.address for frame in next(profile.stacks())] == [0x1234]
        assert labels_of(profile) == [("k", "v", "")]

    def parts(self) -> tuple[Maker, bytes, bytes]:
        """A message, its resources, and its dictionary."""
        maker = small(values=[3, 4])
        sample = maker.message.resource_profiles[0].scope_profiles[0].profiles[0].samples[0]
        sample.attribute_indices.append(maker.attribute("k", "v"))
        (resource,) = maker.message.resource_profiles
        return maker, resource.SerializeToString(), maker.tables.SerializeToString()

    def test_dictionary_first(self) -> None:
        """The dictionary may come before the profiles."""
        _, resource, dictionary = self.parts()
        self.same(field(0x12, dictionary) + field(0x0A, resource))

    def test_split_messages(self) -> None:
        """A message that comes in parts is one: tables go on."""
        maker, resource, _ = self.parts()
        first, second = profiles_pb2.ProfilesDictionary(), profiles_pb2.ProfilesDictionary()
        first.CopyFrom(maker.tables)
        second.string_table.extend(first.string_table[3:])
        del first.string_table[3:]
        second.location_table.extend(first.location_table[1:])
        del first.location_table[1:]
        parts = field(0x12, first.SerializeToString()) + field(0x0A, resource) + field(0x12, second.SerializeToString())
        self.same(parts)

    def test_long_lengths(self) -> None:
        """Numbers may have more bytes than they need."""
        _, resource, dictionary = self.parts()

        def padded(tag: int, content: bytes) -> bytes:
            size = len(content)
            return bytes((tag, *(size >> 7 * each & 0x7F | 0x80 for each in range(4)), 0)) + content

        self.same(padded(0x12, dictionary) + padded(0x0A, resource))

    def test_unpacked_lists(self) -> None:
        """Lists may come unpacked, and numbers that are zero may be there."""
        maker, _, dictionary = self.parts()
        profile = maker.message.resource_profiles[0].scope_profiles[0].profiles[0]
        (sample,) = profile.samples
        (attribute,) = sample.attribute_indices
        raw = b"\x08" + varint(sample.stack_index) + b"\x10" + varint(attribute) + b"\x18\x00\x20\x03\x20\x04"
        profile.ClearField("samples")
        resource = field(0x12, field(0x12, profile.SerializeToString() + field(0x12, raw)))
        self.same(field(0x0A, resource) + field(0x12, dictionary))

    def test_strings_that_are_not_utf_8(self) -> None:
        """Strings are bytes."""
        maker, resource, dictionary = self.parts()
        dictionary = dictionary.replace(b"lib.so", b"lib\xffso")
        profile = read(field(0x0A, resource) + field(0x12, dictionary))
        assert profile.strings[int(profile.mappings.filename[0])] == b"lib\xffso"
        assert maker.message.dictionary.string_table

    def test_unknown_fields(self) -> None:
        """Fields that are not known are left out, with a warning."""
        _, resource, dictionary = self.parts()
        (scope,) = profiles_pb2.ResourceProfiles.FromString(resource).scope_profiles
        profile = scope.profiles[0].SerializeToString() + field(100 << 3 | 2, b"x")
        data = field(0x0A, field(0x12, field(0x12, profile))) + field(0x12, dictionary + b"\x78\x01")
        profile = read(data)
        assert profile.warnings == ["2 fields that are not known here, or have another wire type, were left out"]


class TestVersions:
    """R318, R319: older versions of the format."""

    def old(self, *samples: bytes, attributes: int = 3, links: int = 1) -> bytes:
        """A message with samples as bytes."""
        maker = small()
        for number in range(attributes - 1):
            maker.attribute("k", f"v{number}")
        for _ in range(links - 1):
            maker.tables.link_table.add(trace_id=bytes(range(16)), span_id=bytes(range(8)))
        profile = maker.message.resource_profiles[0].scope_profiles[0].profiles[0]
        profile.ClearField("samples")
        raw = profile.SerializeToString() + b"".join(field(0x12, b"\x08\x01" + each) for each in samples)
        return field(0x0A, field(0x12, field(0x12, raw))) + field(0x12, maker.tables.SerializeToString())

    @pytest.mark.parametrize(
        ("samples", "value", "labels"),
        [
            ([b"\x12\x01\x07\x1a\x01\x01"], 7, 1),  # a packed list as field 3
            ([b"\x12\x01\x07"], 7, 0),  # values or times are needed
            ([b"\x10\x07\x18\x01"], 7, 1),  # the same unpacked
            ([b"\x12\x01\x07\x20\x01"], 7, 2),  # packed values and a link
            ([b"\x10\x07\x20\x01"], 7, 2),  # unpacked, and there is no attribute 7
        ],
    )
    def test_1_9(self, samples: list[bytes], value: int, labels: int) -> None:
        """R319: the order of fields of 1.8 and 1.9."""
        profile = read(self.old(*samples, links=2))
        assert profile.samples.values.tolist() == [[value]]
        assert len(labels_of(profile)) == labels
        assert profile.warnings == ["The samples have the order of fields of opentelemetry-proto 1.8 and 1.9."]

    @pytest.mark.parametrize(
        "sample", [b"\x12\x01\x01\x22\x01\x07", b"\x10\x01\x20\x07", b"\x20\x07", b"\x22\x01\x07\x18\x00"]
    )
    def test_now(self, sample: bytes) -> None:
        """R319: values are field 4 now."""
        profile = read(self.old(sample))
        assert profile.samples.values.tolist() == [[7]]
        assert profile.warnings == []

    @pytest.mark.parametrize(
        ("version", "profile", "message"),
        [
            ("1.7", b"\x0a\x04\x08\x01\x10\x02\x1a\x01\x01\x20\x05", field(0x12, field(0x2A, b""))),
            (
                "1.6",
                b"\x0a\x04\x08\x01\x10\x02\x12\x02\x08\x00",
                field(0x12, b"") + field(0x32, b"") + field(0x32, b"x"),
            ),
            ("1.5 or earlier", b"\x0a\x04\x08\x01\x10\x02\x1a\x02\x08\x01\x52\x00", b""),
        ],
    )
    def test_refused(self, version: str, profile: bytes, message: bytes) -> None:
        """R318: older versions are refused by name."""
        data = field(0x0A, field(0x12, field(0x12, profile))) + message
        with pytest.raises(InputError, match=f"opentelemetry-proto {version}, whose .* update the profiler"):
            read(data)


class TestContainers:
    """What files put around messages."""

    def values(self, data: bytes) -> list[Any]:
        """The values of all profiles."""
        return [each.profile.samples.values.tolist() for each in load_all(io.BytesIO(data))]

    def test_bare_and_compressed(self) -> None:
        """A message may be alone, or compressed."""
        data = small(values=[5]).encode()
        assert self.values(data) == self.values(gzip.compress(data)) == [[[5]]]

    def test_lengths(self) -> None:
        """Messages with big-endian lengths, as the collector writes them; a last one that is cut off is left out."""
        parts = [small(values=[number]).encode() for number in (1, 2)]
        data = b"".join(struct.pack(">I", len(each)) + each for each in parts)
        assert self.values(data) == [[[1]], [[2]]]
        assert [each.name for each in load_all(io.BytesIO(data))] == ["profile.1.cpu", "profile.2.cpu"]
        (cut,) = load_all(io.BytesIO(data[:-3]))
        assert cut.profile.samples.values.tolist() == [[1]]
        assert cut.warnings == ["The input is cut short: its last message was left out."]

    def test_magic(self) -> None:
        """A magic number, a version, and messages with lengths as varints."""
        parts = [small(values=[number]).encode() for number in (1, 2)]
        data = b"OTLP" + struct.pack("<I", 1) + b"".join(varint(len(each)) + each for each in parts)
        assert self.values(data) == [[[1]], [[2]]]

    def test_json(self) -> None:
        """A JSON object, or one a line; ids are hex digits, numbers may be strings."""
        maker = small(values=[5])
        maker.tables.link_table.add(trace_id=bytes(range(16)), span_id=bytes(range(8)))
        profile = maker.message.resource_profiles[0].scope_profiles[0].profiles[0]
        profile.samples[0].link_index = 1
        profile.profile_id = bytes(range(16))
        profile.samples[0].attribute_indices.extend(maker.attributes({"k": -3, "b": b"\x01", "f": 1.5, "t": True}))
        value = MessageToDict(maker.message)
        for link in value["dictionary"]["linkTable"]:
            for key in link:
                link[key] = maker.tables.link_table[value["dictionary"]["linkTable"].index(link)].trace_id.hex()
        value["dictionary"]["linkTable"][1] = {"traceId": bytes(range(16)).hex(), "spanId": bytes(range(8)).hex()}
        value["dictionary"]["linkTable"][0] = {}
        value["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]["profileId"] = bytes(range(16)).hex()
        value["notKnown"] = [{"a": None}]
        text = json.dumps(value)
        expected, found = read(maker.encode()), read(text.encode())
        assert comments_of(found) == comments_of(expected)
        assert labels_of(found) == labels_of(expected) != []
        assert read(json.dumps(value, indent=1).encode()).samples.values.tolist() == [[5]]
        assert self.values(f"{text}\n{text}\n".encode()) == [[[5]], [[5]]]

    @pytest.mark.parametrize("form", ["hex", "base64", "unpadded", "for URLs"])
    def test_ids_in_json(self, form: str) -> None:
        """R328: hex digits, as OTLP has them, or base64, as the JSON of protobuf has all bytes."""
        shown = {
            "hex": bytes.hex,
            "base64": lambda data: base64.b64encode(data).decode(),
            "unpadded": lambda data: base64.b64encode(data).decode().rstrip("="),
            "for URLs": lambda data: base64.urlsafe_b64encode(data).decode(),
        }[form]
        trace, span = bytes(range(240, 256)), bytes(range(248, 256))
        maker = small(values=[5])
        maker.tables.link_table.add(trace_id=trace, span_id=span)
        profile = maker.message.resource_profiles[0].scope_profiles[0].profiles[0]
        profile.samples[0].link_index, profile.profile_id = 1, trace
        value = MessageToDict(maker.message)
        value["dictionary"]["linkTable"][1] = {"traceId": shown(trace), "spanId": shown(span)}
        value["resourceProfiles"][0]["scopeProfiles"][0]["profiles"][0]["profileId"] = shown(trace)
        expected, found = read(maker.encode()), read(json.dumps(value).encode())
        assert comments_of(found) == comments_of(expected)
        assert labels_of(found) == labels_of(expected) != []

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ('{"resourceProfiles": [', "is damaged"),
            ('{"resourceProfiles": [3]}', "has a int where an object belongs"),
            ('{"resourceProfiles": [{"schemaUrl": 3}]}', "has '3' where a number or a text of another kind belongs"),
            ('{"dictionary": {"stringTable": [""], "linkTable": [{"traceId": "xyz"}]}}', "has 'xyz' where"),
            ('{"resourceProfiles": ' + "[" * 100_000, "is nested too deep|is damaged"),
        ],
    )
    def test_bad_json(self, text: str, problem: str) -> None:
        """What is no message says why."""
        with pytest.raises(InputError, match=problem):
            read(text.encode())


def test_samples_are_no_objects() -> None:
    """Columns hold what a million samples need, here some thousands: stacks are shared in the message."""
    maker = small()
    profile = maker.message.resource_profiles[0].scope_profiles[0].profiles[0]
    profile.ClearField("samples")
    frames = [maker.frame("native", 1, 0x1000 + each) for each in range(100)]
    stacks = [maker.stack(*frames[each:]) for each in range(100)]
    rows = np.random.default_rng(1).integers(0, 100, 5000)
    for row in rows.tolist():
        profile.samples.add(stack_index=stacks[row], values=[row])
    read_back = read(maker.encode())
    assert read_back.samples.values[:, 0].tolist() == rows.tolist()
    assert np.diff(read_back.samples.location_offsets).tolist() == (100 - rows).tolist()


def test_bombs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R276: short samples with long stacks, and values that nest, are refused before they take memory."""
    from symbolize.formats.otlp import messages

    maker = small()
    profile = maker.message.resource_profiles[0].scope_profiles[0].profiles[0]
    stack = maker.stack(*[1] * 10_000)
    for _ in range(1000):
        profile.samples.add(stack_index=stack, values=[1])
    monkeypatch.setattr(messages, "FRAMES", (1 << 20, 64, messages.MEMORY))
    with pytest.raises(InputError, match="in memory, as only a bomb does"):
        _ = load_all(io.BytesIO(maker.encode()))[0].profile
    nested: Any = "x"
    for _ in range(45):
        nested = [nested]
    maker = small(values=[1])
    sample = maker.message.resource_profiles[0].scope_profiles[0].profiles[0].samples[0]
    sample.attribute_indices.append(maker.attribute("k", nested))
    with pytest.raises(InputError, match="nest as only a bomb's do"):
        read(maker.encode())


def test_many_types_of_frames() -> None:
    """As many types of frames and mappings of the kernel as a message has rows for take time that grows with its
    size."""
    maker, count = small(values=[1]), 20_000
    maker.tables.string_table.extend(["profile.frame.type", *(f"type {each}" for each in range(count))])
    first_string = len(maker.tables.string_table) - count - 1
    first_attribute, first_mapping = len(maker.tables.attribute_table), len(maker.tables.mapping_table)
    first_location = len(maker.tables.location_table)
    kernel = maker.attribute("profile.frame.type", "kernel")
    for each in range(count):
        value = common_pb2.AnyValue(string_value_strindex=first_string + 1 + each)
        maker.tables.attribute_table.add(key_strindex=first_string, value=value)
        maker.tables.mapping_table.add()
        attribute = kernel if each % 2 else first_attribute + 1 + each
        maker.tables.location_table.add(mapping_index=first_mapping + each, address=16, attribute_indices=[attribute])
    stack = maker.stack(*range(first_location, first_location + count))
    maker.message.resource_profiles[0].scope_profiles[0].profiles[0].samples.add(stack_index=stack, values=[1])
    start = time.process_time()
    profile = read(maker.encode())
    assert time.process_time() - start < 2
    assert len(profile.mappings) == count + count // 2 + 1  # that many types are in mappings of their own


def test_large_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message of JSON has a limit, since its objects take far more memory; several are read one by one."""
    from symbolize.formats.otlp import json_message

    text = b'{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{}]}]}]}'
    monkeypatch.setattr(json_message, "MAX_OBJECT", len(text))
    assert len(load_all(io.BytesIO(text + b"\n" + text))) == 2
    with pytest.raises(InputError, match="is OTLP as JSON, and has a message of more than 0 MiB"):
        read(text.replace(b'"resourceProfiles":', b'"resourceProfiles": '))


def test_count_times_period_that_exceeds_64_bits() -> None:
    """R323: no column of time where it would not fit."""
    maker = small(timestamps_unix_nano=[1, 2])
    profile = maker.message.resource_profiles[0].scope_profiles[0].profiles[0]
    for period, types in ((1 << 61, 2), (1 << 62, 1)):
        profile.period = period
        assert read(maker.encode()).samples.values.shape == (1, types)


def test_every_truncation() -> None:
    """A message that is cut off anywhere is an error of one line, or says nothing less than it has."""
    data = small(values=[5]).encode()
    for size in range(1, len(data)):
        try:
            read(data[:size])
        except InputError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("maps", [0, 1, 2])
def test_how_deep_values_nest(maps: int) -> None:
    """R276: values nest 33 deep at most, of either kind."""
    for depth, is_bomb in ((33, False), (34, True)):
        nested: Any = "x"
        for number in range(depth):
            nested = {"k": nested} if number % 3 < maps else [nested]
        maker = small(values=[1])
        sample = maker.message.resource_profiles[0].scope_profiles[0].profiles[0].samples[0]
        sample.attribute_indices.append(maker.attribute("k", nested))
        with pytest.raises(InputError, match="nest as only a bomb's do") if is_bomb else nullcontext():
            read(maker.encode())


@pytest.mark.parametrize(
    ("module", "name", "count"),
    [
        ("messages", "MAX_NESTED", 3),
        ("messages", "MAX_ITEMS", 5),
        ("messages", "MAX_PROFILES", 2),
        ("containers", "MAX_MESSAGES", 2),
    ],
)
def test_how_much_a_file_may_have(monkeypatch: pytest.MonkeyPatch, module: str, name: str, count: int) -> None:
    """So much of it, and not one more (R276)."""
    maker = small(values=[1])
    profile = maker.profile(maker.resource(), COUNT)
    profile.samples.add(
        stack_index=1, values=[1], attribute_indices=[maker.attribute("k", {"a": ["x", "y"], "b": [1]})]
    )
    message = maker.encode()
    data = message if name != "MAX_MESSAGES" else b"".join(struct.pack(">I", len(message)) + message for _ in range(2))
    limits = import_module(f"symbolize.formats.otlp.{module}")
    monkeypatch.setattr(limits, name, count)
    assert sum(len(each.profile.samples) for each in load_all(io.BytesIO(data)))
    monkeypatch.setattr(limits, name, count - 1)
    with pytest.raises(InputError, match=r"has more than|as only a bomb's do"):
        sum(len(each.profile.samples) for each in load_all(io.BytesIO(data)))

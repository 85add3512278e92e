"""OTLP in, OTLP out: the message that came, with the lines that were found and nothing else."""

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symbolize import Options, Profile, Result, Symbolizer, UsageError, load, load_all, lookup, write_otlp
from symbolize.cli import main
from symbolize.core.protobuf import field, varint
from symbolize.elf import ElfImage, read_symbols
from symbolize.formats.otlp.lines import OtlpLines
from symbolize.profile.model import Locations
from tests.support import profcheck
from tests.support.fixture_files import BINARIES, llvm_frames
from tests.support.kernel_image import KERNEL_ID, vmlinux
from tests.support.kernel_modules import MODULE_ID, write_module
from tests.support.otlp_messages import GNU, HASH, Maker, parse

LEDGER = BINARIES / "gcc-pie" / "ledger"
CPU = ("cpu", "nanoseconds", 50_000_000)
COUNT = ("samples", "count")


def addresses(path: Path, count: int = 12) -> list[int]:
    """Addresses of functions of a file."""
    with ElfImage.open(str(path)) as image:
        table = read_symbols(image, ".symtab")
        assert table is not None
        large = np.sort(table.vaddr[table.size > 16])
        return [int(vaddr) + 4 for vaddr in large[:: max(len(large) // count, 1)][:count]]


def agent(path: Path = LEDGER, ids: tuple[str, ...] = (GNU, HASH), **native: Any) -> Maker:
    """A message as the eBPF profiler sends it: two processes, native frames by vaddrs without lines, frames of the
    kernel and of an interpreter with theirs, times of events."""
    maker = Maker()
    mapping = maker.native(path, ids=ids)
    frames = [maker.frame("native", mapping, vaddr, **native) for vaddr in addresses(path)]
    kernel = maker.mapping("vmlinux", 0, 0, 0)
    frames.append(maker.frame("kernel", kernel, 0x1010, [("entry", "", 0)]))
    frames.append(maker.frame("cpython", 0, addresses(path)[0], [("f", "a.py", 7)]))
    for pid in (7, 8):
        scope = maker.resource(process_pid=pid, process_executable_name=f"app{pid}")
        profile = maker.profile(scope, COUNT, CPU, time_unix_nano=100, duration_nano=50)
        for first in range(0, len(frames), pid - 5):
            attributes = maker.attributes({"thread.name": f"t{first}", "thread.id": first})
            stack = maker.stack(*frames[first:])
            profile.samples.add(stack_index=stack, attribute_indices=attributes, timestamps_unix_nano=[101, 102])
    return maker


def symbolized(data: bytes, *binaries: Path, **options: Any) -> bytes:
    """The input with the lines that were found."""
    loaded = load_all(io.BytesIO(data), **options)
    assert loaded[0].container is not None
    lines = OtlpLines(loaded[0].container)
    with Symbolizer([str(each) for each in binaries]) as symbolizer:
        for each in loaded:
            result = symbolizer.symbolize(each.profile)
            lines.add(result.profile, result.resolved)
    out = io.BytesIO()
    lines.write(out)
    return out.getvalue()


def frames_of(message: Any, row: int) -> list[tuple[str, str, int, int]]:
    """The lines of a location: linked name, file, line and column."""
    tables = message.dictionary
    text = tables.string_table
    functions = [(tables.function_table[line.function_index], line) for line in tables.location_table[row].lines]
    return [(text[f.system_name_strindex], text[f.filename_strindex], line.line, line.column) for f, line in functions]


def check_rest(before: bytes, after: bytes) -> None:
    """Two messages differ in lines, functions, strings and marks of folded code only, and tables have grown."""
    old, new = parse(before), parse(after)
    assert profcheck.problems(new) == profcheck.problems(old)
    for table in ("string_table", "function_table"):
        known = getattr(old.dictionary, table)
        assert list(getattr(new.dictionary, table))[: len(known)] == list(known)
        old.dictionary.ClearField(table)
        new.dictionary.ClearField(table)
    known = len(old.dictionary.attribute_table)
    added = [each.value.bool_value for each in new.dictionary.attribute_table[known:]]
    assert added in ([], [True])
    del new.dictionary.attribute_table[known:]
    for was, location in zip(old.dictionary.location_table, new.dictionary.location_table, strict=True):
        if not was.lines:
            location.ClearField("lines")
            location.attribute_indices[:] = [each for each in location.attribute_indices if each < known]
    assert new == old


@pytest.mark.parametrize("ids", [(GNU, HASH), (GNU,), (HASH,)])
def test_names_of_the_golden_binary(ids: tuple[str, ...]) -> None:
    """R326: each native frame has the frames of a lookup, and nothing else differs."""
    data = agent(ids=ids).encode()
    result = symbolized(data, BINARIES / "gcc-pie")
    check_rest(data, result)
    message = parse(result)
    vaddrs = addresses(LEDGER)
    expected = lookup(LEDGER, np.array(vaddrs, np.uint64))
    for at, row in enumerate(range(1, len(vaddrs) + 1)):
        found = frames_of(message, row)
        first, last = expected.offsets[at : at + 2].tolist()
        assert [(line, column) for _, _, line, column in found] == [
            (int(expected.line[each]), int(expected.column[each])) for each in range(first, last)
        ]
        assert found


@pytest.mark.needs("llvm-symbolizer-19")
def test_recorded_profile() -> None:
    """R326: the frames of a recorded profile as the eBPF profiler sends it are those of llvm-symbolizer."""
    data = (BINARIES.parent / "profiles" / "otlp" / "spectra-gcc-pie.otlp").read_bytes()
    result = symbolized(data, BINARIES / "gcc-pie")
    check_rest(data, result)
    message = parse(result)
    tables = message.dictionary
    wanted: dict[str, list[int]] = {}
    for row, location in enumerate(tables.location_table):
        name = tables.string_table[tables.mapping_table[location.mapping_index].filename_strindex]
        wanted.setdefault(name, []).append(row)
    del wanted[""]
    checked = 0
    for name, rows in wanted.items():
        vaddrs = {row: tables.location_table[row].address for row in rows}
        known = llvm_frames(BINARIES / "gcc-pie" / name, vaddrs.values())
        for row, vaddr in vaddrs.items():
            expected = [frame for frame in known[vaddr] if frame[0]]
            # Names of inlined functions without a linked one, and columns of line 0, differ between the two.
            assert [frame[1:3] for frame in frames_of(message, row)] == [frame[1:3] for frame in expected]
            checked += len(expected)
    assert checked > len(tables.location_table)


def test_nothing_found() -> None:
    """Without binaries the message is the same, byte for byte."""
    data = agent().encode()
    assert symbolized(data) == data


def test_unknown_fields_and_order() -> None:
    """R326: fields that nobody knows stay, in the message, its tables and locations, whatever their order."""
    maker = agent()
    dictionary = maker.tables.SerializeToString() + field(100 << 3 | 2, b"new")
    maker.message.ClearField("dictionary")
    resources = maker.message.SerializeToString()
    split = dictionary.index(b"\x12", 2)
    data = field(0x12, dictionary) + resources + field(0x12, b"")
    result = symbolized(data, BINARIES / "gcc-pie")
    check_rest(data, result)
    assert resources in result
    assert field(100 << 3 | 2, b"new") in result
    assert split


def test_lines_that_came_along_stay() -> None:
    """R326: a location with lines keeps them, although the lookup knows more."""
    maker = Maker()
    mapping = maker.native(LEDGER)
    frame = maker.frame("native", mapping, addresses(LEDGER)[0], [("own", "own.c", 3)])
    profile = maker.profile(maker.resource(), COUNT)
    profile.samples.add(stack_index=maker.stack(frame), values=[1])
    assert symbolized(maker.encode(), BINARIES / "gcc-pie") == maker.encode()


@pytest.mark.parametrize(
    ("name", "file"),
    [("??", ""), ("[unknown]", "a.c"), ("0x1234", ""), ("unknown", ""), ("unknown", "??"), ("unknown", "<unknown>")],
)
def test_stand_ins_do_not_stay(name: str, file: str) -> None:
    """R326: a line that only stands in for a name is no line, also where processes share the lookup; a function that
    may be called so stays where its file is known."""
    maker = Maker()
    mapping = maker.native(LEDGER)
    frames = [maker.frame("native", mapping, addresses(LEDGER)[0], [(name, file, 3)])]
    frames.append(maker.frame("native", mapping, addresses(LEDGER)[1], [("unknown", "own.c", 3)]))
    for pid in (7, 8):
        profile = maker.profile(maker.resource(process_pid=pid), COUNT)
        profile.samples.add(stack_index=maker.stack(*frames), values=[1])
    out = io.BytesIO()
    with Symbolizer([str(BINARIES / "gcc-pie")]) as symbolizer:
        assert write_otlp(load_all(io.BytesIO(maker.encode())), symbolizer, out) == 1
    for data in (out.getvalue(), symbolized(maker.encode(), BINARIES / "gcc-pie")):
        after = parse(data)
        assert "/src/ledger/main.cc" in {path for _, path, _, _ in frames_of(after, 1)}
        assert [path for _, path, _, _ in frames_of(after, 2)] == ["own.c"]


def test_force(tmp_path: Path) -> None:
    """R326: lines that came along are replaced where that is wanted."""
    maker = Maker()
    frame = maker.frame("native", maker.native(LEDGER), addresses(LEDGER)[0], [("own", "own.c", 3)] * 2)
    profile = maker.profile(maker.resource(), COUNT)
    profile.samples.add(stack_index=maker.stack(frame), values=[1])
    (tmp_path / "in.otlp").write_bytes(maker.encode())
    out = tmp_path / "out.otlp"
    command = [str(tmp_path / "in.otlp"), "-b", str(LEDGER), "-o", str(out), "-q", "--no-cache"]
    assert main([*command, "--force"]) == 0
    after = parse(out.read_bytes())
    assert "/src/ledger/main.cc" in {file for _, file, _, _ in frames_of(after, 1)}
    assert "own.c" not in {file for _, file, _, _ in frames_of(after, 1)}


def test_chosen_samples(tmp_path: Path) -> None:
    """Where samples are chosen there is a new message for each profile."""
    (tmp_path / "in.otlp").write_bytes(agent().encode())
    command = [str(tmp_path / "in.otlp"), "-b", str(LEDGER), "--pid", "7", "-q", "--no-cache"]
    assert main([*command, "--tagfocus", "thread.name=t0", "-o", str(tmp_path / "out.otlp")]) == 0
    (scope,) = parse((tmp_path / "out.otlp").read_bytes()).resource_profiles[0].scope_profiles
    assert [len(each.samples) for each in scope.profiles] == [1, 1]


def test_flags() -> None:
    """R326: what pprof's attributes say of mappings and locations is made true, where they are there."""
    maker = agent()
    flags = maker.attributes({f"pprof.mapping.{flag}": False for flag in ("has_functions", "has_inline_frames")})
    maker.tables.mapping_table[1].attribute_indices.extend(flags)
    marked = maker.attribute("pprof.location.is_folded", True)
    maker.tables.location_table[1].attribute_indices.append(marked)
    message = parse(symbolized(maker.encode(), BINARIES / "gcc-pie"))
    tables = message.dictionary
    assert profcheck.problems(message) == []
    found = {
        tables.string_table[row.key_strindex]: row.value.bool_value
        for row in (tables.attribute_table[index] for index in tables.mapping_table[1].attribute_indices)
        if row.value.HasField("bool_value")
    }
    assert found == {"pprof.mapping.has_functions": True, "pprof.mapping.has_inline_frames": True}
    assert marked not in tables.location_table[1].attribute_indices
    assert tables.location_table[1].lines


def test_shared_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """R326: code that several functions share is marked."""
    from symbolize import pipeline

    data = agent().encode()
    loaded = load_all(io.BytesIO(data))
    assert loaded[0].container is not None
    lines = OtlpLines(loaded[0].container)
    with Symbolizer(str(BINARIES / "gcc-pie")) as symbolizer:
        result = symbolizer.symbolize(loaded[0].profile)
    result.profile.locations.is_folded = result.resolved.copy()
    lines.add(result.profile, result.resolved)
    message = parse(b"".join(lines.pieces()))
    tables = message.dictionary
    assert profcheck.problems(message) == []
    assert pipeline
    for location in tables.location_table[1:12]:
        values = [tables.attribute_table[index] for index in location.attribute_indices]
        keys = [tables.string_table[each.key_strindex] for each in values]
        assert keys == ["profile.frame.type", "pprof.location.is_folded"]


def test_code_split_by_its_callers() -> None:
    """R326: a location whose callers called different functions gets the lines of the first, and no location twice."""
    data = agent().encode()
    loaded = load_all(io.BytesIO(data))
    assert loaded[0].container is not None
    with Symbolizer(str(BINARIES / "gcc-pie")) as symbolizer:
        result = symbolizer.symbolize(loaded[0].profile)
    expected, lines = OtlpLines(loaded[0].container), OtlpLines(loaded[0].container)
    expected.add(result.profile, result.resolved)
    locations = result.profile.locations
    inserted = locations.take(np.array([0]))
    inserted.source_row = np.array([-1])
    result.profile.locations = Locations.joined([locations, locations.take(np.array([3, 2])), inserted])
    lines.add(result.profile, np.append(result.resolved, [True] * 3))
    assert b"".join(lines.pieces()) == b"".join(expected.pieces())
    assert lines.addresses == expected.addresses


class TestProcesses:
    """R326: the locations of all processes of a message are looked up once."""

    def test_shared_code(self) -> None:
        """Many processes need one lookup; the message is that of a lookup for each. A chosen one alone gets lines."""
        maker = agent()
        for _ in range(3):
            maker.message.resource_profiles.add().CopyFrom(maker.message.resource_profiles[0])
        maker.message.resource_profiles[4].scope_profiles[0].profiles[0].samples[0].stack_index = 99
        profile = maker.profile(maker.resource(process_pid=9), COUNT)
        profile.samples.add(stack_index=maker.stack(1), values=[1])
        data = maker.encode()
        profiles, out, some = load_all(io.BytesIO(data)), io.BytesIO(), io.BytesIO()
        with Counting(str(BINARIES / "gcc-pie")) as symbolizer:
            write_otlp(profiles, symbolizer, out)
            assert symbolizer.seen == [14]
            assert out.getvalue() == symbolized(data, BINARIES / "gcc-pie")
            assert write_otlp(profiles[-1:], symbolizer, some) == 1

    @pytest.mark.parametrize("names_none", [False, True])
    def test_what_only_the_process_tells(self, names_none: bool) -> None:
        """Code in no mapping, whatever the message says of that row, or in one without a build id, is that of its own
        process; so is the kernel."""
        maker = Maker()
        if names_none:
            maker.tables.mapping_table[0].attribute_indices.append(maker.attribute(GNU, "ab" * 20))
        with ElfImage.open(str(LEDGER)) as image:
            (segment,) = [each for each in image.segments if each.executable]
            known = {GNU: image.build_id}
        start, offset = 0x7F0000000000, segment.file_offset & ~0xFFF
        base = start - (segment.vaddr & ~0xFFF)
        mapping = maker.mapping("ledger", start, start + 0x100000, offset, **known)
        shared = [maker.frame("native", mapping, base + vaddr) for vaddr in addresses(LEDGER)]
        alone = maker.frame("native", 0, base + addresses(LEDGER)[0] + 1)
        named = maker.frame("kernel", 0, base + addresses(LEDGER)[1] + 1, [("entry", "", 0)])
        for rows in (shared, [alone], [named, *shared], shared):
            profile = maker.profile(maker.resource(), COUNT)
            profile.samples.add(stack_index=maker.stack(*rows), values=[1])
        data, out = maker.encode(), io.BytesIO()
        with Counting(str(BINARIES / "gcc-pie")) as symbolizer:
            write_otlp(load_all(io.BytesIO(data)), symbolizer, out)
            assert symbolizer.seen == [len(shared) + 1, 1]
        message = parse(out.getvalue())
        check_rest(data, out.getvalue())
        assert all(frames_of(message, row) for row in shared)
        assert not frames_of(message, alone)
        assert out.getvalue() == symbolized(data, BINARIES / "gcc-pie")


class Counting(Symbolizer):
    """Notes how many locations each profile has that it is asked for."""

    def symbolize(self, profile: Profile, progress: Any = None) -> Result:
        """The result of the other."""
        self.seen = [*getattr(self, "seen", []), len(profile.locations)]
        return super().symbolize(profile, progress)


class TestKernel:
    """R322: frames of the kernel and of its modules."""

    def test_without_lines(self, tmp_path: Path) -> None:
        """Addresses from the first byte of code on are named by vmlinux and by modules, found by build id."""
        vmlinux(tmp_path / "vmlinux")
        write_module(tmp_path / "net.ko")
        maker = Maker()
        kernel = maker.mapping("vmlinux", 0, 0, 0, **{GNU: KERNEL_ID})
        module = maker.mapping("net", 0, 0, 0, **{GNU: MODULE_ID.hex()})
        frames = [maker.frame("kernel", kernel, 0x1000 * each + 0x10) for each in (3, 70, 500)]
        frames.append(maker.frame("kernel", module, 0x18))
        profile = maker.profile(maker.resource(), COUNT)
        profile.samples.add(stack_index=maker.stack(*frames), values=[1])
        data = maker.encode()
        result = symbolized(data, tmp_path)
        check_rest(data, result)
        found = [frames_of(parse(result), row)[0][0] for row in range(1, 5)]
        assert found == ["f3", "f70", "f500", "handle"]


class TestContainers:
    """The container of the input is that of the output."""

    def test_lengths(self) -> None:
        """R328: messages with lengths stay so; each has its own tables."""
        parts = [agent().encode(), agent(BINARIES / "gcc-pie" / "spectra").encode()]
        data = b"".join(struct.pack(">I", len(each)) + each for each in parts)
        result = symbolized(data, BINARIES / "gcc-pie")
        at = 0
        for part in parts:
            (size,) = struct.unpack_from(">I", result, at)
            message = result[at + 4 : at + 4 + size]
            check_rest(part, message)
            assert frames_of(parse(message), 1)
            assert message == symbolized(part, BINARIES / "gcc-pie")
            at += 4 + size
        assert at == len(result)
        head = b"OTLP" + struct.pack("<I", 1)
        data = head + b"".join(varint(len(each)) + each for each in parts)
        messages = [symbolized(part, BINARIES / "gcc-pie") for part in parts]
        assert symbolized(data, BINARIES / "gcc-pie") == head + b"".join(varint(len(each)) + each for each in messages)

    def test_json(self) -> None:
        """A JSON object becomes a message."""
        from google.protobuf.json_format import MessageToDict

        maker = agent()
        value = MessageToDict(maker.message)
        value["dictionary"]["linkTable"] = [{}]
        import json

        result = symbolized(json.dumps(value).encode(), BINARIES / "gcc-pie")
        maker.tables.link_table[0].Clear()
        check_rest(maker.encode(), result)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One file for all profiles of the message, and a report that says so; a part of them may be chosen."""
    source = tmp_path / "in.otlp"
    source.write_bytes(agent().encode())
    options = [str(source), "-b", str(BINARIES / "gcc-pie"), "--no-cache"]
    out = tmp_path / "out.otlp"
    assert main([*options, "-o", str(out)]) == 0
    assert out.read_bytes() == symbolized(source.read_bytes(), BINARIES / "gcc-pie")
    assert f"wrote {out}: 12 addresses of 1 binary" in capsys.readouterr().out.replace("\n    ", " ")
    assert main([*options, "-o", str(source), "-q"]) == 2
    assert main([*options, "-o", str(tmp_path / "one.otlp"), "--pid", "7", "-q"]) == 0
    check_rest(source.read_bytes(), (tmp_path / "one.otlp").read_bytes())
    assert main([*options, "-o", f"{tmp_path}/pprof/", "-q"]) == 2
    (tmp_path / "pprof").mkdir()
    assert main([*options, "-o", f"{tmp_path}/pprof/", "-q"]) == 0
    assert sorted(each.name for each in (tmp_path / "pprof").iterdir()) == [
        "profile.1.7.cpu.pb.gz",
        "profile.2.8.cpu.pb.gz",
    ]


def test_other_profiles() -> None:
    """Only profiles of the input have lines for it."""
    (first, _) = load_all(io.BytesIO(agent().encode()))
    assert first.container is not None
    lines = OtlpLines(first.container)
    other = load(BINARIES.parent / "profiles" / "perf" / "spectra-gcc-pie.pb.gz")
    with pytest.raises(UsageError, match="only be those of its profiles"):
        lines.add(other, np.ones(len(other.locations), np.bool_))


def test_library(tmp_path: Path) -> None:
    """`write_otlp` does the same; profiles of another format have no message."""
    data = agent().encode()
    profiles = load_all(io.BytesIO(data))
    with Symbolizer(str(BINARIES / "gcc-pie")) as symbolizer:
        count = write_otlp(profiles, symbolizer, tmp_path / "x")
    assert count == len(addresses(LEDGER))
    assert (tmp_path / "x").read_bytes() == symbolized(data, BINARIES / "gcc-pie")
    others = load_all(BINARIES.parent / "profiles" / "perf" / "spectra-gcc-pie.pb.gz")
    with pytest.raises(UsageError, match="only be written for the profiles of one"):
        write_otlp(others, Symbolizer(), tmp_path / "y")
    for more in (others, load_all(io.BytesIO(data))):
        with pytest.raises(UsageError, match="only be written for the profiles of one input"):
            write_otlp([*profiles, *more], Symbolizer(), tmp_path / "y")


@pytest.mark.parametrize("sample_type", ["cpu", "samples", "1"])
def test_sample_type(sample_type: str) -> None:
    """A symbolizer that weighs samples by a type of the profiles does so too where they are looked up at once."""
    maker = agent()
    maker.message.resource_profiles.add().CopyFrom(maker.message.resource_profiles[0])
    profiles = load_all(io.BytesIO(maker.encode()))
    assert all(len(each.profile.sample_types) == 2 for each in profiles)
    with Symbolizer(str(BINARIES / "gcc-pie"), Options(sample_type=sample_type)) as symbolizer:
        assert write_otlp(profiles, symbolizer, io.BytesIO()) == len(addresses(LEDGER))

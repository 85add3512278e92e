"""The pprof writer, and the way in and out again, with protobuf as the oracle."""

import gzip
import io
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolize.core.errors import OutputError
from symbolize.formats import encode, files, write
from symbolize.formats.pprof import reader as loader
from symbolize.formats.pprof import writer
from symbolize.profile import Functions, Labels, Lines, Locations, Mappings, Profile, Samples, Strings, ValueType
from tests.support.devices import null_device
from tests.support.messages import profile_pb2

INT64 = st.one_of(st.integers(-3, 300), st.integers(-(1 << 63), (1 << 63) - 1))
UINT64 = st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 1))
UNKNOWN = st.sampled_from([b"", b"", b"", b"\xc0\x3e\x07", b"\xc2\x3e\x03abc\xc0\x3e\x00", b"\xc5\x3e\x00\x00\x00\x01"])
"""Raw fields with number 1000."""


def varint(value: int) -> bytes:
    """A protobuf varint."""
    out = bytearray()
    value &= (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def message(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(content)) + content


@st.composite
def scalars(draw: st.DrawFn, fields: dict[int, int]) -> bytes:
    """Varint fields; those that are zero are written or left out."""
    return b"".join(varint(n << 3) + varint(v) for n, v in fields.items() if v or draw(st.booleans()))


@st.composite
def lists(draw: st.DrawFn, number: int, values: list[int]) -> bytes:
    """A repeated integer field: packed, not packed, or some of each."""
    out = b""
    while values:
        size = draw(st.integers(0, len(values)))
        if size:
            out += message(number, b"".join(map(varint, values[:size])))
        else:
            out += varint(number << 3) + varint(values[0])
        values = values[size or 1 :]
    return out


def ids(draw: st.DrawFn, count: int) -> list[int]:
    """Distinct ids: counted from 1, in another order, or any."""
    kind = draw(st.sampled_from(["dense", "shuffled", "sparse"]))
    if kind == "dense":
        return list(range(1, count + 1))
    if kind == "shuffled":
        return draw(st.permutations(range(1, count + 1)))
    return draw(st.lists(st.integers(1, (1 << 64) - 1), min_size=count, max_size=count, unique=True))


@st.composite
def profiles(draw: st.DrawFn) -> bytes:
    """A valid profile as any producer might encode it."""
    strings = [b"", *draw(st.lists(st.sampled_from([b"", b"main", b"a.c", b"\xffx", b"\xc3\xa9", b"ns", b"\n"])))]
    index = st.integers(0, len(strings) - 1)
    small = st.integers(0, 4)
    width, n_mappings, n_functions, n_locations = (draw(small) for _ in range(4))
    mapping_ids, function_ids, location_ids = ids(draw, n_mappings), ids(draw, n_functions), ids(draw, n_locations)
    fields = [message(6, each) for each in strings]
    fields += [message(1, draw(scalars({1: draw(index), 2: draw(index)}))) for _ in range(width)]
    for each in mapping_ids:
        values = {1: each} | {n: draw(UINT64) for n in (2, 3, 4)} | {n: draw(index) for n in (5, 6)}
        values |= {n: draw(st.integers(0, 1)) for n in (7, 8, 9, 10)}
        fields.append(message(3, draw(scalars(values)) + draw(UNKNOWN)))
    for each in function_ids:
        values = {1: each, 2: draw(index), 3: draw(index), 4: draw(index), 5: draw(INT64)}
        fields.append(message(5, draw(UNKNOWN) + draw(scalars(values))))
    for each in location_ids:
        values = {1: each, 2: draw(st.sampled_from([0, *mapping_ids])), 3: draw(UINT64), 5: draw(st.integers(0, 1))}
        parts = [draw(scalars(values)), draw(UNKNOWN)]
        for _ in range(draw(small) if function_ids else 0):
            line = {1: draw(st.sampled_from(function_ids)), 2: draw(INT64), 3: draw(INT64)}
            parts.append(message(4, draw(scalars(line))))
        fields.append(message(4, b"".join(draw(st.permutations(parts)))))
    for _ in range(draw(small) if width else 0):
        stack = draw(st.lists(st.sampled_from(location_ids), max_size=5)) if location_ids else []
        parts = [draw(lists(1, stack)), draw(lists(2, [draw(INT64) for _ in range(width)])), draw(UNKNOWN)]
        for _ in range(draw(small)):
            label = {1: draw(index), 2: draw(index), 3: draw(INT64), 4: draw(index)}
            parts.append(message(3, draw(scalars(label))))
        fields.append(message(2, b"".join(draw(st.permutations(parts)))))
    header = {7: draw(index), 8: draw(index), 9: draw(INT64), 10: draw(INT64), 12: draw(INT64)}
    fields.append(draw(scalars(header | {14: draw(index), 15: draw(index)})))
    fields.append(draw(lists(13, draw(st.lists(index)))))
    fields.append(message(11, draw(scalars({1: draw(index), 2: draw(index)}))))
    # Tables may stand in any order, rows of a table among those of others; their own order counts.
    keys = [draw(st.integers(0, 3)) if field[0] != 0x32 else 1 for field in fields if field]
    tagged = sorted(zip(keys, range(len(keys)), [f for f in fields if f], strict=True))
    return b"".join(field for _, _, field in tagged) + draw(UNKNOWN)


def unknown_of(each: Any) -> bytes:
    """The unknown fields of a message."""
    copy = type(each)()
    copy.CopyFrom(each)
    for field in copy.DESCRIPTOR.fields:
        copy.ClearField(field.name)
    return bytes(copy.SerializeToString())


def default_last(p: Any) -> list[int]:
    """The columns of values with that of the default sample type last, if one type alone has its name (R274)."""
    names = [p.string_table[each.type] for each in p.sample_type]
    columns = [*range(len(names))]
    default = p.string_table[p.default_sample_type] if p.string_table else b""
    if default and names.count(default) == 1:
        columns.append(columns.pop(names.index(default)))
    return columns


def meaning(raw: bytes) -> dict[str, Any]:
    """What a profile says, with ids as row numbers and string indices as text, and the default sample type last."""
    p = profile_pb2.Profile.FromString(raw)
    columns = default_last(p)

    def text(index: int) -> str:
        return p.string_table[index].decode("utf-8", "backslashreplace") if p.string_table else ""

    rows = {name: {each.id: row for row, each in enumerate(getattr(p, name))} for name in TABLES}
    return {
        "types": [(text(t.type), text(t.unit)) for t in (*(p.sample_type[each] for each in columns), p.period_type)],
        "samples": [
            (
                [rows["location"][each] for each in s.location_id],
                [s.value[each] for each in columns],
                [(text(e.key), text(e.str), e.num, text(e.num_unit)) for e in s.label],
                unknown_of(s),
            )
            for s in p.sample
        ],
        "mappings": [
            (
                *(m.memory_start, m.memory_limit, m.file_offset, text(m.filename), text(m.build_id)),
                *(m.has_functions, m.has_filenames, m.has_line_numbers, m.has_inline_frames, unknown_of(m)),
            )
            for m in p.mapping
        ],
        "locations": [
            (
                rows["mapping"].get(e.mapping_id),
                e.address,
                e.is_folded,
                [(rows["function"][n.function_id], n.line, n.column) for n in e.line],
                unknown_of(e),
            )
            for e in p.location
        ],
        "functions": [
            (text(f.name), text(f.system_name), text(f.filename), f.start_line, unknown_of(f)) for f in p.function
        ],
        "header": [text(each) for each in (p.drop_frames, p.keep_frames, p.default_sample_type, p.doc_url, *p.comment)],
        "numbers": (p.time_nanos, p.duration_nanos, p.period),
        "unknown": unknown_of(p),
    }


TABLES = ("mapping", "location", "function")


@settings(deadline=None, max_examples=300)
@given(profiles())
def test_everything_comes_out_again(raw: bytes) -> None:
    """Load and encode keep the meaning that protobuf sees, and a second time keeps the bytes."""
    profile = loader.load(raw, "x")
    assert not profile.warnings
    encoded = encode(profile)
    assert meaning(encoded) == meaning(raw)
    assert encode(loader.load(memoryview(encoded), "x")) == encoded


@settings(deadline=None, max_examples=100)
@given(profiles())
def test_blocks_do_not_show(raw: bytes) -> None:
    """The size of the blocks that rows are written in does not change the bytes."""
    profile = loader.load(raw, "x")
    with pytest.MonkeyPatch.context() as patch:
        whole = encode(profile)
        patch.setattr(writer, "BLOCK", 1)
        assert encode(profile) == whole


@pytest.fixture
def profile() -> Profile:
    """A profile with something in every column."""
    strings = Strings(
        [b"unused", b"cpu", b"ns", b"main", b"_main", b"m\xff.c", b"/bin/m", b"ab", b"key", b"B", b"note"]
    )
    s = {value: index for index, value in enumerate(strings)}

    def column(dtype: Any, *values: Any) -> Any:
        return np.array(values, dtype)

    return Profile(
        strings=strings,
        sample_types=[ValueType(s[b"cpu"], s[b"ns"])],
        samples=Samples(
            location_offsets=column(np.int64, 0, 2, 2),
            locations=column(np.int32, 1, 0),
            values=column(np.int64, -5, 0).reshape(2, 1),
            label_offsets=column(np.int64, 0, 0, 1),
            labels=Labels(
                *(column(t, v) for t, v in ((np.int32, s[b"key"]), (np.int32, 0), (np.int64, 0), (np.int32, 0)))
            ),
        ),
        mappings=Mappings(  # type: ignore[call-arg]
            *(column(np.uint64, each) for each in (0x1000, (1 << 64) - 1, 0x10)),
            column(np.int32, s[b"/bin/m"]),
            column(np.int32, s[b"ab"]),
            *(column(np.bool_, each) for each in (True, False, True, False)),
        ),
        locations=Locations(
            address=column(np.uint64, 0x1010, 1 << 63),
            mapping=column(np.int32, 0, -1),
            is_folded=column(np.bool_, True, False),
            line_offsets=column(np.int64, 0, 1, 1),
            lines=Lines(column(np.int32, 0), column(np.int64, 7), column(np.int64, 3)),
        ),
        functions=Functions(  # type: ignore[call-arg]
            *(column(np.int32, s[each]) for each in (b"main", b"_main", b"m\xff.c")), column(np.int64, 6)
        ),
        time_nanos=12,
        comments=[s[b"note"]],
        doc_url=s[b"key"],
    )


HEAP = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]


MOVED = [
    (HEAP, "alloc_space", ["alloc_objects", "inuse_objects", "inuse_space", "alloc_space"]),
    (HEAP, "alloc_objects", [*HEAP[1:], HEAP[0]]),
]
"""Sample types, the default one, and the types as they are written, where that changes their order."""


def with_types(profile: Profile, types: list[str], default: str) -> np.ndarray:
    """The values of a profile that gets these sample types."""
    add = profile.strings.add
    profile.sample_types = [ValueType(add(each.encode()), add(f"unit{row}".encode())) for row, each in enumerate(types)]
    profile.default_sample_type = add(default.encode())
    values = np.arange(1, 2 * len(types) + 1, dtype=np.int64).reshape(2, -1)
    profile.samples.values = values
    return values


@pytest.mark.parametrize(
    ("types", "default", "written"),
    [
        *MOVED,
        (HEAP, "inuse_space", HEAP),
        (HEAP, "", HEAP),
        (HEAP, "other", HEAP),
        (["cpu", "samples", "cpu"], "cpu", ["cpu", "samples", "cpu"]),
        (["", "samples"], "", ["", "samples"]),
        (["cpu"], "cpu", ["cpu"]),
    ],
)
def test_the_default_sample_type_is_the_last(
    profile: Profile, types: list[str], default: str, written: list[str]
) -> None:
    """The default type goes behind the others with its values, so that viewers that show the last one show it (R274).
    A second time nothing changes."""
    values = with_types(profile, types, default)
    raw = encode(profile)
    p = profile_pb2.Profile.FromString(raw)
    text = [each.decode() for each in p.string_table]
    assert [text[each.type] for each in p.sample_type] == written
    assert text[p.default_sample_type] == (default if default in (*types, "other") else "")
    shown = {(text[each.type], text[each.unit]): row for row, each in enumerate(p.sample_type)}
    for row, each in enumerate(types):
        assert [sample.value[shown[each, f"unit{row}"]] for sample in p.sample] == values[:, row].tolist()
    assert encode(loader.load(raw, "x")) == raw
    assert [*profile.samples.values[0]] == [*values[0]]


@pytest.mark.needs("go")
@pytest.mark.parametrize(("types", "default", "written"), MOVED)
def test_pprof_shows_the_default_sample_type(
    tmp_path: Path, profile: Profile, types: list[str], default: str, written: list[str]
) -> None:
    """Where the default type goes behind the others, pprof shows the same totals, by default and by name (R274)."""
    values = with_types(profile, types, default)
    path = tmp_path / "out.pb"
    path.write_bytes(encode(profile))
    for name, column in (("", types.index(default)), *((each, row) for row, each in enumerate(types))):
        command = ["go", "tool", "pprof", "-symbolize=none", f"-sample_index={name}", "-top", str(path)]
        run = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, "HOME": str(tmp_path)}
        )
        assert f"of {values[:, column].sum()}unit{column} total" in run.stdout


def test_strings_in_use_in_order_of_use(profile: Profile) -> None:
    """Only strings in use are written, and what is not UTF-8 is escaped."""
    table = profile_pb2.Profile.FromString(encode(profile)).string_table
    assert list(table) == [b"", b"cpu", b"ns", b"key", b"/bin/m", b"ab", b"main", b"_main", b"m\\xff.c", b"note"]


def test_a_label_with_value_zero_stays(profile: Profile) -> None:
    """A numeric label of 0 without unit comes out, which pprof loses."""
    written = profile_pb2.Profile.FromString(encode(profile))
    assert len(written.sample[1].label) == 1
    assert written.string_table[written.sample[1].label[0].key] == b"key"


def test_fields_ascend(profile: Profile) -> None:
    """Top-level fields come in ascending order, as protobuf itself writes them."""
    raw = encode(profile)
    assert profile_pb2.Profile.FromString(raw).SerializeToString(deterministic=True) == raw


def test_an_empty_profile() -> None:
    """Nothing but the empty string."""
    assert encode(Profile()) == b"2\x00"


def test_file_is_gzip_without_time_and_whole(tmp_path: Path, profile: Profile) -> None:
    """The file is deterministic gzip of the encoded bytes, with the permissions the umask gives."""
    path = tmp_path / "out.pb.gz"
    mask = os.umask(0o027)
    try:
        write(profile, path)
    finally:
        os.umask(mask)
    raw = path.read_bytes()
    assert raw[:8] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
    assert gzip.decompress(raw) == encode(profile)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["out.pb.gz"]


def test_stdlib_writes_what_isal_writes(monkeypatch: pytest.MonkeyPatch, profile: Profile) -> None:
    """Without isal the standard library compresses."""
    monkeypatch.setitem(__import__("sys").modules, "isal", None)
    buffer = io.BytesIO()
    write(profile, buffer)
    assert gzip.decompress(buffer.getvalue()) == encode(profile)


def test_a_link_stays_a_link(tmp_path: Path, profile: Profile) -> None:
    """Writing to a link replaces the file it leads to."""
    (tmp_path / "link").symlink_to("target")
    write(profile, str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
    assert gzip.decompress((tmp_path / "target").read_bytes()) == encode(profile)


def test_devices_are_written_not_replaced(tmp_path: Path, profile: Profile) -> None:
    """A device keeps being a device."""
    device = null_device(tmp_path)
    write(profile, device)
    assert stat.S_ISCHR(device.stat().st_mode)


@pytest.mark.parametrize("name", ["", "missing/out.pb.gz", "nul\0"])
def test_what_cannot_be_written(tmp_path: Path, profile: Profile, name: str) -> None:
    """A directory, a missing one and an impossible name fail in one line."""
    with pytest.raises(OutputError, match="cannot be written") as caught:
        write(profile, f"{tmp_path}/{name}")
    assert "\n" not in str(caught.value)


def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: Profile) -> None:
    """A write that fails half-way keeps the old file and removes its own."""
    path = tmp_path / "out"
    path.write_bytes(b"old")

    def full(file: Any, chunk: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "_write_all", full)
    with pytest.raises(OutputError, match="No space left on device"):
        write(profile, path)
    assert os.listdir(tmp_path) == ["out"]
    assert path.read_bytes() == b"old"


def test_standard_output_through_a_pipe(monkeypatch: pytest.MonkeyPatch, profile: Profile) -> None:
    """`-` is standard output, which need not be seekable; unbuffered files may take a part at a time."""
    reader, end = os.pipe()
    with open(reader, "rb") as got, open(end, "wb", buffering=0) as out:
        write(profile, out)
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(out))
        write(profile, "-")
        out.close()
        assert gzip.decompress(got.read()) == encode(profile) * 2


@pytest.mark.needs("go")
def test_go_pprof_reads_it(tmp_path: Path, profile: Profile) -> None:
    """`go tool pprof -raw` shows what was written."""
    path = tmp_path / "out.pb.gz"
    write(profile, path)
    command = ["go", "tool", "pprof", "-symbolize=none", "-raw", str(path)]
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "HOME": str(tmp_path)}
    )
    assert run.returncode == 0, run.stderr
    shown = " ".join(run.stdout.split())
    for expected in ("cpu/ns -5: 1 2", "0x1010 M=1 [F] main m\\xff.c:7 s=6(_main)", "/bin/m ab [FN][LN]"):
        assert expected in shown


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    """Writing over a private file leaves it private."""
    path = tmp_path / "out.pb.gz"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write(Profile(), path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert gzip.decompress(path.read_bytes()) == encode(Profile())


def test_a_default_sample_type_without_samples() -> None:
    """R274: a profile that a program makes and puts no samples into has no columns of values."""
    profile = Profile()
    first, second = (profile.strings.add(each) for each in (b"alloc", b"inuse"))
    profile.sample_types, profile.default_sample_type = [ValueType(first, 0), ValueType(second, 0)], first
    again = loader.load(encode(profile), "x")
    assert [again.strings[each.type] for each in again.sample_types] == [b"inuse", b"alloc"]


@pytest.mark.parametrize("most", [1, 7, 1 << 20])
@pytest.mark.parametrize("says", [True, False])
def test_files_that_take_a_part(profile: Profile, most: int, says: bool) -> None:
    """A file may take a part at a time and say how much; one that says nothing took all."""

    class Slow(io.BytesIO):
        def write(self, data: Any) -> int:
            taken = super().write(data[:most] if says else data)
            return taken if says else None  # type: ignore[return-value]

    out = Slow()
    write(profile, out)
    assert gzip.decompress(out.getvalue()) == encode(profile)

"""Addresses, names and symbols of frames."""

import pytest

from tests.support import perfetto_writer as w
from tests.support.perfetto_profiles import only, stack_names
from tests.support.perfetto_traces import BASE, BUILD_ID, END, NAMES, SOUND


def test_addresses() -> None:
    """address - start + file offset is the offset in the ELF file: load bias and place in an archive are out of it
    (rule R221); nothing is subtracted from callers."""
    mapping = w.mapping(1, 1, BASE, END, exact_offset=0x5000, start_offset=0x4000, load_bias=0x3000, path=[1])
    frames = [w.frame(1, 0, 1, 0x4100), w.frame(2, 0, 1, 0x4200)]
    profile = only(
        w.packet(1, w.CLEARED, w.interned(**NAMES | {"mappings": [mapping], "frames": frames})) + w.perf_sample(2)
    )
    mappings, address = profile.mappings, profile.locations.address.tolist()
    assert (int(mappings.start[0]), int(mappings.limit[0]), int(mappings.file_offset[0])) == (BASE, END, 0x1000)
    assert sorted(each - BASE + 0x1000 + 0x3000 for each in address) == [0x4100, 0x4200]


def test_padded_tags() -> None:
    """A tag may take more bytes than it needs (protobuf encoding): the field counts."""
    padded = [frame.replace(b"\x10", b"\x90\x00", 1) for frame in NAMES["frames"]]
    assert [len(frame) for frame in padded] == [len(frame) + 1 for frame in NAMES["frames"]]
    trace = w.packet(1, w.CLEARED, w.interned(**NAMES | {"frames": padded})) + w.perf_sample(2)
    assert stack_names(only(trace)) == stack_names(only(SOUND))


def test_frames_without_code() -> None:
    """Errors of the unwinder, kernel frames and frames without mapping keep names and have no address."""
    names = NAMES | {
        "functions": {1: "ERROR INVALID_MAP", 2: "schedule", 3: "synthetic"},
        "builds": {},
        "paths": {1: "kernel", 2: "ERROR"},
        "mappings": [w.mapping(1, path=[1]), w.mapping(2), w.mapping(3, path=[2])],
        "frames": [w.frame(1, 1, 2), w.frame(2, 2, 1), w.frame(3, 3, 0, 0x99), w.frame(4, 1, 3)],
        "callstacks": [w.callstack(2, [1, 4, 3, 2])],
    }
    profile = only(w.packet(1, w.CLEARED, w.interned(**names)) + w.perf_sample(2))
    assert stack_names(profile) == [("schedule", "synthetic", "ERROR INVALID_MAP", "ERROR INVALID_MAP")]
    assert profile.locations.address.tolist() == [0] * 4
    text = profile.strings.text
    assert [text(each) for each in profile.mappings.filename] == ["[kernel]"]
    assert (profile.mappings.start.tolist(), profile.mappings.limit.tolist()) == ([0], [0])


@pytest.mark.parametrize(("exact", "in_file"), [(0x1000, 0x1000), (None, 0x5000)])
def test_names_without_an_address(exact: int | None, in_file: int) -> None:
    """A frame with a name and without a relative address has no address, and says nothing of where the mapping begins
    in the file; one that has neither is at the first byte (rule R221)."""
    mapping = w.mapping(1, 1, BASE, END, exact, path=[3])
    frames = [w.frame(1, 1, 1, 0x5100), w.frame(2, 2, 1)]
    profile = only(
        w.packet(1, w.CLEARED, w.interned(**NAMES | {"mappings": [mapping], "frames": frames})) + w.perf_sample(2)
    )
    assert dict(zip(stack_names(profile)[0], profile.locations.address[profile.samples.locations], strict=True)) == {
        "alloc": 0,
        "main": 0x5100 - in_file + BASE,
    }
    assert profile.mappings.file_offset.tolist() == [in_file]
    mapping = w.mapping(1, 1, BASE, END, 0, path=[3])
    unnamed = {"mappings": [mapping], "frames": [w.frame(1, 0, 1, 0x5100), w.frame(2, 0, 1)]}
    profile = only(w.packet(1, w.CLEARED, w.interned(**NAMES | unnamed)) + w.perf_sample(2))
    assert sorted(profile.locations.address.tolist()) == [BASE, BASE + 0x5100]


def test_names_with_source() -> None:
    """Names, files and lines of frames become lines."""
    names = NAMES | {"sources": {4: "a.c"}, "frames": [w.frame(1, 1, 1, 1), w.frame(2, 2, 1, 2, source=4, line=33)]}
    profile = only(w.packet(1, w.CLEARED, w.interned(**names)) + w.perf_sample(2))
    lines, functions = profile.locations.lines, profile.functions
    found = {
        (profile.strings.text(functions.name[f]), profile.strings.text(functions.filename[f]), line)
        for f, line in zip(lines.function.tolist(), lines.line.tolist(), strict=True)
    }
    assert found == {("main", "", 0), ("alloc", "a.c", 33)}


def test_module_symbols() -> None:
    """Symbols in the trace, also behind its samples, replace names of frames where they name anything: path, raw build
    id and address must agree, and the last packet counts."""
    symbols = w.module_symbols("/usr/bin/app", BUILD_ID, {0x2200: [("old", "", 0)]})
    symbols += w.module_symbols(
        "/usr/bin/app", BUILD_ID, {0x2200: [("inlined", "a.h", 3), ("outer", "a.c", 9)], 0x2100: [("", "??", 0)]}
    )
    symbols += w.module_symbols("/usr/bin/app", b"other", {0x2100: [("wrong", "", 0)]})
    assert stack_names(only(SOUND + symbols)) == [("inlined/outer", "main")]


def test_the_main_binary_comes_first() -> None:
    """Row 0 of the mappings is the program, not a library (pprof schema)."""
    names = NAMES | {
        "paths": {1: "libc.so", 2: "app"},
        "mappings": [w.mapping(1, 1, BASE, END, path=[1]), w.mapping(2, 1, 2 * END, 3 * END, path=[2])],
        "frames": [w.frame(1, 0, 1, 1), w.frame(2, 0, 2, 1)],
    }
    profile = only(w.packet(1, w.CLEARED, w.interned(**names)) + w.perf_sample(2))
    assert [profile.strings.text(each) for each in profile.mappings.filename] == ["/app", "/libc.so"]

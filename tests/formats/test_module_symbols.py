"""Symbols for a trace: what is written, with Perfetto's own messages as the oracle, and what a reader makes of it."""

import io
import itertools
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symbolize
from symbolize import Profile, Symbolizer, UsageError, load_all, write_module_symbols
from symbolize.cli import main
from symbolize.elf import ElfImage
from symbolize.formats.perfetto import module_symbols
from symbolize.formats.perfetto.module_symbols import ModuleSymbols
from symbolize.options import DEFAULTS, Options
from symbolize.profile import Samples
from tests.support import perfetto_writer as w
from tests.support.fixture_files import BINARIES, segments
from tests.support.needs import package
from tests.support.pprof_writer import Mapping, Place, profile

LEDGER = BINARIES / "gcc-pie" / "ledger"
START = 0x7F0000000000
HOWS = ["perf", "heap", "wrong bias", "archive", "android 10", "chromium", "chromium id"]


def build_id() -> bytes:
    """The build id of the program."""
    with ElfImage.open(str(LEDGER)) as image:
        return bytes.fromhex(image.build_id or "")


def raw_id(how: str) -> bytes:
    """The build id as the producer writes it."""
    raw = build_id()
    if how != "chromium id":
        return raw
    text = raw.hex().upper()
    parts = text[6:8], text[4:6], text[2:4], text[0:2], text[10:12], text[8:10], text[14:16], text[12:14], text[16:32]
    return "".join(parts).encode() + b"0"


def trace_of(how: str, pids: tuple[int, ...] = (7,), step: int = 29) -> bytes:
    """A trace with stacks of places all over the program, as this producer writes them; every process has all."""
    ((offset, vaddr, size),) = segments(LEDGER)
    bias = vaddr - offset + (0x7000 if how == "wrong bias" else 0)
    page = offset // 4096 * 4096
    inside = 0x20000 if how == "archive" else 0
    exact = None if how == "android 10" else page + inside
    mapping = w.mapping(1, 1, START + page, START + page + 0x100000, exact, inside, bias, [1, 2])
    if "chromium" in how:
        mapping, bias, offset = w.mapping(1, 1, path=[1, 2], exact_offset=None), 0, vaddr
    rel_pcs = [offset + bias + place for place in range(1, size, step)]
    numbers = range(1, len(rel_pcs) + 1)
    state = w.interned(
        {1: "online"},
        builds={1: raw_id(how)},
        paths={1: "opt", 2: "ledger"},
        mappings=[mapping],
        frames=[w.frame(number, number % 5 == 0, 1, rel_pc) for number, rel_pc in zip(numbers, rel_pcs, strict=True)],
        # Each frame is a leaf and a caller; of Chromium, whose callers were moved, only one of them.
        callstacks=[
            w.callstack(
                number, [number - number % 2, number] if "chromium" in how else [number % len(numbers) + 1, number]
            )
            for number in numbers
            if "chromium" not in how or (number % 2 and number > 1)
        ],
    )
    trace = w.packet(1, w.CLEARED, state)
    if "chromium" in how:
        numbers = range(3, len(numbers) + 1, 2)
    for pid in pids:
        if how == "heap":
            trace += w.heap_packet([w.heap_dump(pid, [w.heap_sample(number, 8, 0, 1) for number in numbers])])
        elif "chromium" in how:
            trace += w.packet(1, rest={44: w.message({1: pid, 2: pid, 6: 5})})
            trace += w.packet(1, rest={54: w.message({1: list(numbers), 2: [1] * len(numbers)})})
        else:
            trace += b"".join(w.perf_sample(number, pid, pid) for number in numbers)
    return trace


def stacks(profile: Profile) -> Counter[Any]:
    """The names, files and lines of each stack."""
    locations, functions, text = profile.locations, profile.functions, profile.strings.text
    frames = []
    for row in range(len(locations)):
        here = range(locations.line_offsets[row], locations.line_offsets[row + 1])
        frames.append(
            tuple(
                (text(functions.name[f]), text(functions.filename[f]), int(locations.lines.line[line]))
                for line, f in ((line, locations.lines.function[line]) for line in here)
            )
        )
    edges = profile.samples.location_offsets.tolist()
    rows = profile.samples.locations.tolist()
    return Counter(tuple(frames[row] for row in rows[begin:end]) for begin, end in itertools.pairwise(edges))


def entries(symbols: bytes) -> dict[int, bytes]:
    """The lines of each place, of one module."""
    messages = package("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    packets = messages.Trace.FromString(symbols).packet
    return {
        each.address: each.SerializeToString() for packet in packets for each in packet.module_symbols.address_symbols
    }


def symbols_of(trace: bytes, *binaries: Path, options: Options = DEFAULTS) -> tuple[bytes, list[Profile]]:
    """The symbols of a trace, and its symbolized profiles."""
    out = io.BytesIO()
    with Symbolizer(list(binaries), options) as symbolizer:
        results = [symbolizer.symbolize(each.profile) for each in load_all(io.BytesIO(trace))]
    write_module_symbols(results, out)
    return out.getvalue(), [result.profile for result in results]


@pytest.mark.parametrize("how", HOWS)
def test_a_trace_with_its_symbols_behind_it(how: str) -> None:
    """Read without binaries, it has the lines that the binaries gave (rule R230)."""
    trace = trace_of(how)
    symbols, symbolized = symbols_of(trace, LEDGER)
    without = [each.profile for each in load_all(io.BytesIO(trace))]
    again = [each.profile for each in load_all(io.BytesIO(trace + symbols))]
    assert [stacks(each) for each in again] == [stacks(each) for each in symbolized]
    assert [stacks(each) for each in again] != [stacks(each) for each in without]
    assert any(len(frame) > 2 for each in again for stack in stacks(each) for frame in stack)


def test_messages_of_perfetto() -> None:
    """Perfetto's own messages read it: one module, raw build id, path with its slash, places as the trace has them,
    innermost line first; what no lookup found is not in it (rule R230)."""
    messages = package("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    for how in ("perf", "chromium", "chromium id"):
        trace = trace_of(how)
        symbols, (profile,) = symbols_of(trace, LEDGER)
        parsed = messages.Trace.FromString(symbols)
        assert parsed.SerializeToString() == symbols
        (module,) = [packet.module_symbols for packet in parsed.packet]
        recorded = module.build_id
        assert (recorded if isinstance(recorded, bytes) else recorded.encode()) == raw_id(how)
        assert module.path == "/opt/ledger"
        known = messages.Trace.FromString(trace).packet[0].interned_data.frames
        addresses = [each.address for each in module.address_symbols]
        assert addresses == sorted({*addresses} & {frame.rel_pc for frame in known})
        names = {line.function_name for each in module.address_symbols for line in each.lines}
        assert "online" not in names
        assert "online" in {profile.strings.text(name) for name in profile.functions.name}  # where nothing was found
        assert all(line.source_file_name for each in module.address_symbols for line in each.lines if line.line_number)


def test_one_file_for_all_profiles() -> None:
    """Several profiles of a trace, and several mappings of one binary, are one list of places without repetition."""
    both, profiles = symbols_of(trace_of("perf", (7, 8)), LEDGER)
    one, _ = symbols_of(trace_of("perf"), LEDGER)
    assert len(profiles) == 2
    assert both == one


def test_names_are_those_of_the_mode() -> None:
    """Function names are as `demangle` has them."""
    for mode in ("default", "full", "none"):
        symbols, (profile,) = symbols_of(trace_of("perf"), LEDGER, options=Options(demangle=mode))
        (again,) = [each.profile for each in load_all(io.BytesIO(trace_of("perf") + symbols))]
        assert stacks(again) == stacks(profile)
        assert (b"_ZN" in symbols) == (mode == "none")


def test_places_that_no_sample_uses() -> None:
    """They are not looked up and not written, and the others have their own lines."""
    (whole,) = [each.profile for each in load_all(io.BytesIO(trace_of("perf")))]
    offsets = whole.samples.location_offsets
    half = len(whole.samples) // 2
    whole.samples = Samples(
        offsets[half:] - offsets[half],
        whole.samples.locations[offsets[half] :],
        whole.samples.values[half:],
        whole.samples.label_offsets[half:] - whole.samples.label_offsets[half],
        whole.samples.labels.take(np.arange(whole.samples.label_offsets[half], len(whole.samples.labels))),
    )
    out = io.BytesIO()
    with Symbolizer([LEDGER]) as symbolizer:
        result = symbolizer.symbolize(whole)
    assert 0 < write_module_symbols([result], out) < len(result.profile.locations) < len(whole.locations)
    some, everything = entries(out.getvalue()), entries(symbols_of(trace_of("perf"), LEDGER)[0])
    assert some.items() < everything.items()
    assert max(some) == max(everything)


def test_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module with many symbols goes on in further packets, which say the same, each as long as it may be."""
    messages = package("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = trace_of("perf")
    whole, (profile,) = symbols_of(trace, LEDGER)
    monkeypatch.setattr(module_symbols, "MAX_PACKET", 500)
    parts, _ = symbols_of(trace, LEDGER)
    assert len(parts) > len(whole)
    packets = [each.module_symbols.address_symbols for each in messages.Trace.FromString(parts).packet]
    sizes = [[len(w.message({3: each.SerializeToString()})) for each in packet] for packet in packets]
    assert all(sum(here) <= 500 or len(here) == 1 for here in sizes)
    assert all(sum(here) + after[0] > 500 for here, after in itertools.pairwise(sizes))
    (again,) = [each.profile for each in load_all(io.BytesIO(trace + parts))]
    assert stacks(again) == stacks(profile)


def test_extremes() -> None:
    """Places of 64 bits, lines beyond 32, names that are not UTF-8 and lines without a name."""
    messages = package("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    rel_pcs = [0, 127, 128, (1 << 64) - 1, 1 << 63]
    state = w.interned(
        {number: f"f{number}" for number in range(1, 6)},
        {1: b"\xff\x00\n"},
        {1: "x"},
        mappings=[w.mapping(1, 1, 0x1000, 0x2000, path=[1])],
        frames=[w.frame(number, number, 1, rel_pc) for number, rel_pc in enumerate(rel_pcs, 1)],
        callstacks=[w.callstack(1, [1, 2, 3, 4, 5])],
    )
    trace = w.packet(1, w.CLEARED, state) + w.perf_sample(1)
    (profile,) = [each.profile for each in load_all(io.BytesIO(trace))]
    add, functions = profile.strings.add, profile.functions
    row = {profile.strings.text(name): number for number, name in enumerate(functions.name.tolist())}
    functions.name[row["f1"]] = add(b"not \xff utf-8")
    functions.filename[row["f1"]] = add(b"dir/\xfe.c")
    functions.name[row["f2"]] = 0
    profile.locations.lines.line[profile.locations.lines.function == row["f1"]] = 0xFFFFFFFF
    profile.locations.lines.line[profile.locations.lines.function == row["f3"]] = (1 << 32) + 5
    symbols = ModuleSymbols()
    symbols.add(profile, np.ones(len(profile.locations), np.bool_))
    symbols.add(profile, np.ones(len(profile.locations), np.bool_))
    assert symbols.addresses == 4
    (packet,) = messages.Trace.FromString(symbols.encode()).packet
    found = {
        each.address: [(line.function_name, line.source_file_name, line.line_number) for line in each.lines]
        for each in packet.module_symbols.address_symbols
    }
    assert found == {
        0: [("not \\xff utf-8", "dir/\\xfe.c", 0xFFFFFFFF)],
        128: [("f3", "", 0)],
        (1 << 64) - 1: [("f4", "", 0)],
        1 << 63: [("f5", "", 0)],
    }


def test_build_ids_stay_as_they_are() -> None:
    """Those of Chromium, text of 33 characters, and none; frames without a mapping have no place (rule R230)."""
    messages = package("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    ids = {1: b"67452301AB89EFCD0123456789ABCDEF0", 2: b"67452301ab89efcd0123456789abcdef0"}
    state = w.interned(
        {1: "f"},
        ids,
        {1: "/usr/lib/x.so"},
        mappings=[w.mapping(number, number % 3, path=[1], exact_offset=None) for number in (1, 2, 3)],
        frames=[w.frame(number, 1, number % 4, 0x100) for number in (1, 2, 3, 4)],
        callstacks=[w.callstack(1, [1, 2, 3, 4])],
    )
    (profile,) = [each.profile for each in load_all(io.BytesIO(w.packet(1, w.CLEARED, state) + w.perf_sample(1)))]
    symbols = ModuleSymbols()
    symbols.add(profile, np.ones(len(profile.locations), np.bool_))
    found = [packet.module_symbols for packet in messages.Trace.FromString(symbols.encode()).packet]
    assert sorted(each.build_id for each in found) == sorted(["", *map(bytes.decode, ids.values())])
    assert {each.path for each in found} == {"/usr/lib/x.so"}


def test_only_traces_have_places() -> None:
    """Profiles of other formats do not say what a trace would call their places."""
    other = symbolize.load(io.BytesIO(profile([Mapping(0x1000, 0x2000, 0, "/x")], [([Place(0x1500, 1, ())], [1])])))
    with Symbolizer() as symbolizer, pytest.raises(UsageError, match="Perfetto trace"):
        write_module_symbols([symbolizer.symbolize(other)], io.BytesIO())


# The command


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`--emit module-symbols` writes one file a trace, which can be put behind the trace."""
    monkeypatch.chdir(tmp_path)
    trace = trace_of("heap", (7, 8))
    Path("t.pftrace").write_bytes(trace)
    options = ["-b", str(LEDGER), "--no-cache", "--emit", "module-symbols"]
    assert main(["t.pftrace", *options]) == 0
    symbols = Path("t.symbols.pb").read_bytes()
    assert symbols == symbols_of(trace, LEDGER)[0]
    out = capsys.readouterr().out
    assert out.count("wrote ") == 1
    assert re.search(r"^wrote t.symbols.pb: \d+ addresses of 1 binary$", out, re.MULTILINE)
    assert re.search(r"pid 8 +heap libc.malloc$", out, re.MULTILINE)
    Path("out").mkdir()
    assert main(["t.pftrace", *options, "-q", "-o", "out/"]) == 0
    assert main(["t.pftrace", *options, "-q", "-o", "named.pb"]) == 0
    assert main(["t.pftrace", *options, "-q", "--pid", "7", "-o", "one.pb"]) == 0
    written = [Path(name).read_bytes() for name in ("out/t.symbols.pb", "named.pb", "one.pb")]
    assert written == [symbols] * 3
    assert capsys.readouterr().err == ""
    assert main(["t.pftrace", *options, "--report", "json"]) == 0
    assert "wrote " not in capsys.readouterr().out
    Path("both.pftrace").write_bytes(trace + symbols)
    assert main(["both.pftrace", "-q", "--merge", "processes", "-o", "both.pb.gz"]) == 0
    assert b"ledger_digest" in b"".join(symbolize.load("both.pb.gz").strings)


def test_standard_output(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """`-o -` writes the packets and nothing else to standard output."""
    (tmp_path / "t.pftrace").write_bytes(trace_of("perf"))
    options = ["-b", str(LEDGER), "--no-cache", "--emit", "module-symbols", "-o", "-"]
    assert main([str(tmp_path / "t.pftrace"), *options]) == 0
    assert capfdbinary.readouterr().out == symbols_of(trace_of("perf"), LEDGER)[0]


def test_inputs_that_are_no_traces(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They fail by name, and the others go on."""
    (tmp_path / "p.pb").write_bytes(profile([Mapping(0x1000, 0x2000, 0, "/x")], [([Place(0x1500, 1, ())], [1])]))
    (tmp_path / "t.pftrace").write_bytes(trace_of("perf"))
    inputs = [str(tmp_path / "p.pb"), str(tmp_path / "t.pftrace")]
    assert main([*inputs, "--emit", "module-symbols", "-q", "-o", f"{tmp_path}/"]) == 1
    assert "p.pb: is not a Perfetto trace" in capsys.readouterr().err
    assert (tmp_path / "t.symbols.pb").read_bytes() == b""  # without binaries there are none
    assert not (tmp_path / "p.symbols.pb").exists()

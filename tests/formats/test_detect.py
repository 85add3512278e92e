"""From sources to profiles: reading, and telling formats by content."""

import gzip
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from symbolize.core.errors import InputError
from symbolize.formats import content as front_end
from symbolize.formats import encode, load, load_all, write
from symbolize.formats.content import peeked
from symbolize.formats.open import FORMATS
from symbolize.profile import Profile, Strings, ValueType
from tests.support.perfetto_traces import SOUND
from tests.support.perfetto_writer import field

RAW = encode(Profile(strings=Strings([b"cpu"]), time_nanos=7, sample_types=[ValueType(1)]))


def refused(source: object) -> str:
    """The one line a source is refused with."""
    with pytest.raises(InputError) as caught:
        load(source)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["a.pb.gz", "profile.txt", "noname"])
def test_a_path(tmp_path: Path, name: str) -> None:
    """The content decides, not the name; strings and path objects are paths."""
    path = tmp_path / name
    path.write_bytes(RAW)
    assert load(path).time_nanos == 7
    write(load(str(path)), tmp_path / "written")
    assert load(str(tmp_path / "written")).time_nanos == 7


def test_open_files(tmp_path: Path) -> None:
    """Binary file objects are read to their end."""
    assert load(io.BytesIO(gzip.compress(RAW))).time_nanos == 7
    assert "<stream>: is empty" in refused(io.BytesIO())
    assert "open as text" in refused(io.StringIO("text"))
    path = tmp_path / "p"
    path.write_bytes(b"text")
    with path.open("rb") as file:
        assert refused(file).startswith(str(path))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` is standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(RAW)))
    assert load("-").time_nanos == 7
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    assert refused("-") == "standard input: is empty"


def test_a_fifo(tmp_path: Path) -> None:
    """A named pipe is read, as `<(command)` gives one."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    feeder = threading.Thread(target=path.write_bytes, args=(RAW,))
    feeder.start()
    assert load(path).time_nanos == 7
    feeder.join()


def test_sources_that_cannot_be_read(tmp_path: Path) -> None:
    """A directory, a missing file, a device and an impossible name are told apart."""
    assert refused(tmp_path) == f"{tmp_path}: is a directory"
    assert refused(tmp_path / "no") == f"{tmp_path}/no: no such file"
    url = "https://host/debug/pprof/profile"
    assert refused(url) == f"{url}: is a URL: download it first (curl -o profile.pb.gz URL)"
    assert refused("/dev/zero") == "/dev/zero: is a device or socket, not a file"
    assert "cannot be read" in refused("a\0b")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything: run it as another user")
def test_permission(tmp_path: Path) -> None:
    """A file that may not be read."""
    path = tmp_path / "secret"
    path.touch(mode=0)
    assert "Permission denied" in refused(path)


def test_input_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Input without end is refused, unless it is a recording, of which pieces are not retained."""
    monkeypatch.setattr(front_end, "MAX_INPUT", 3)
    assert "holds more than 3 bytes" in refused(io.BytesIO(RAW))
    monkeypatch.setattr(front_end, "MAX_INPUT", 2 << 20)
    assert load_all(io.BytesIO(SOUND + field(7, bytes(5 << 20))))[0].profile.warnings == []


def test_padding_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """So are zeros without end behind a compressed input, of which nothing comes out."""
    monkeypatch.setattr(front_end, "MAX_INPUT", 1 << 20)
    assert "holds more than 1048576 bytes" in refused(io.BytesIO(gzip.compress(RAW) + bytes(5 << 20)))


def test_many_small_pieces() -> None:
    """What decides the format is read in one pass, however small its pieces are: each of these is a gzip stream."""
    head, pieces = peeked(iter([b"x"] * 200_000), 100_000)
    assert head == b"x" * 100_000
    assert sum(map(len, pieces)) == 200_000


@pytest.mark.parametrize(
    ("content", "looks"),
    [
        (b"main;foo\n", "a text file"),
        ("größe;foo\n".encode() * 1000, "a text file"),
        (b'  {"events": []}', "JSON"),
        (b"\x7fELF\x02\x01\x01" + bytes(57), "an ELF binary"),
        (bytes(1000), "nothing but zeros"),
        (bytes(range(256))[::-1] * 4, "random data"),
        (b"text\x00\x01\x02", "random data"),
        (b"\xba\x06\x01y" * 20, "random data"),  # a message, but none of a profile
    ],
)
def test_what_is_no_profile(content: bytes, looks: str) -> None:
    """The error says what the content looks like and what could be read."""
    error = refused(io.BytesIO(content))
    assert f"it looks like {looks}" in error
    assert error.endswith("; formats read: " + ", ".join(each.short or each.name for each in FORMATS))


@pytest.mark.parametrize(
    ("content", "looks", "command"),
    [
        (b"go 1.22 trace\0\0\0\1", "an execution trace of Go", "`go tool trace`"),
        (b"\xfd7zXZ\x00" + bytes(20), "xz compressed", "`xz -d`"),
        (b"BZh91AY", "bzip2 compressed", "`bzip2 -d`"),
        (b"PK\x03\x04\x14", "a zip archive", "unpack"),
        (b"x.prof".ljust(257, b"\0") + b"ustar\0", "a tar archive", "unpack"),
        (b"FLR\0\0\2\0\0", "a Java flight recording", "`jfrconv -o pprof x.jfr x.pb.gz`"),
        (b"JAVA PROFILE 1.0.2\0", "a heap dump of Java", "Eclipse MAT"),
        (b"MDMP\x93\xa7", "a minidump", "`minidump-stackwalk"),
        (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x04\0" + bytes(40), "a core file", "`gdb"),
        (b"\x7fELF\x02\x02\x01" + bytes(9) + b"\0\x04" + bytes(40), "a core file", "`gdb"),
        (b"MZ\x90\0", "a Windows program", ""),
        (b"\xcf\xfa\xed\xfe\x07", "a Mach-O binary", "not read"),
        (b"\xca\xfe\xba\xbe\0\0\0\2", "a Mach-O binary for several machines", "not read"),
        (b"\xca\xfe\xba\xbe\0\0\0\x3d", "a Java class", ""),
        (b"# callgrind format\nversion: 1\n", "output of Callgrind", "`callgrind_annotate`"),
        (b"version: 1\ncreator: xdebug 3\n", "output of Callgrind", "`callgrind_annotate`"),
        (b"desc: --time-unit=B\ncmd: ./a\ntime_unit: B\n", "output of Massif", "`ms_print`"),
        (b"v 10300 3\nX ./a\n", "a recording of heaptrack", "`heaptrack_print --print-flamegraph"),
        (b"# To display\n#\n#\n# Samples: 1K of event 'cycles'\n", "output of `perf report`", "`perf script`"),
        (b"Attaching 1 probe...\n\n\n@[\n    f+1\n]: 3\n", "stacks of bpftrace", "`stackcollapse-bpftrace.pl"),
        (b"@stacks[\n    f+1\n]: 3\n", "stacks of bpftrace", "`stackcollapse-bpftrace.pl"),
        (b"\n              libc.so.1`malloc+0x12\n", "stacks of DTrace", "`stackcollapse.pl"),
        (b"Analysis of sampling app (pid 1) every 1 millisecond\n", "a report of `sample` on macOS", "speedscope"),
        (b'<?xml version="1.0"?>\n<trace-query-result>', "an export of Instruments", "Instruments"),
        (b'{"$schema":"https://www.speedscope.app/file-format-schema.json"}', "a file of speedscope", "speedscope"),
        (b'{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"},"hitCount":0}]}', "a CPU profile of V8", "browser"),
        (b'{"typeId":"","uid":"1","head":{"functionName":"(root)","hitCount":0}}', "a CPU profile of V8", "browser"),
        (b'{"head":{"callFrame":{"functionName":"(root)"},"selfSize":0}}', "a heap profile of V8", "developer tools"),
        (b'{"snapshot":{"meta":{"node_fields":["type"]}}}', "a heap snapshot of V8", "developer tools"),
        (b"v8-version,11,3,244,8,-node.38,0\nv8-platform,linux\n", "a log of `node --prof`", "`node --prof-process"),
        (
            b'{"version":1,"recording":{"instrumentTypes":["timeline-record-type-cpu"]}}',
            "a recording of Safari",
            "speedscope",
        ),
        (b'{"version":1.2,"mode":"cpu","gc_samples":79}', "a profile of stackprof", "`stackprof --stackcollapse"),
        (b"\x04\x08{\x0f:\x0cversionf\x081.2", "a dump of stackprof", "`stackprof --stackcollapse"),
        (b'{\n"program": "a",\n"cost_centres": []}', "a profile of GHC", "speedscope"),
        (b"\tThu Oct 25 10:51 2018 Time and Allocation Profiling Report  (Final)\n", "a report of GHC", "-pj"),
        (b'JOB "a +RTS -h"\nDATE "Thu"\nSAMPLE_UNIT "seconds"\n', "a heap profile of GHC", "`hp2ps"),
        (b"hdrbhetbetb\0", "an event log of GHC", "`eventlog2html"),
        (b'{\n\t"linux-perf-json-version": 1,\n', "perf.data as JSON", "`perf script`"),
        (b"\n0x108@perf.data [0x50]: event: 69\n.\n. ... raw event\n", "a dump of perf.data", "`perf script`"),
        (b"sample:\n  event_type: cpu-clock\n  time: 1\n", "text of `simpleperf report-sample`", "--protobuf"),
        (b"magic: SIMPLEPERF\nversion: 1\nsample 1:\n  event_type_id: 0\n", "text of `simpleperf", "--protobuf"),
        (b"Cmdline: simpleperf record\nArch: arm64\n", "output of `simpleperf report`", "--protobuf"),
        (
            b"Sampling at 49 Hertz of all threads by user + kernel stack... Hit Ctrl-C to end.\n\n    f\n",
            "stacks of a tool of bcc",
            "-f",
        ),
        (
            b"PeriodType: cpu nanoseconds\nPeriod: 10000000\nSamples:\nsamples/count cpu/nanoseconds\n"
            b"          1   10000000: 1 2 3 \n          1   10000000: 1 3 2 \nLocations\n     1: 0x1 main a.c:1\n",
            "a report of `pprof`",
            "the profile",
        ),
        (b"File: app\nType: cpu\nTime: Nov 28, 2026\n", "a report of `pprof`", "the profile"),
        (b"samples/count cpu/nanoseconds\na;b 5 50\na;c 3 30\n", "folded stacks with several counts", "the profile"),
        (b"MOJ\x03\x01mode\0wall\0", "a recording of austin", "`mojo2austin"),
        (b"Nettrace\x14\0\0\0!FastSerialization.1", "a trace of .NET", "`dotnet-trace convert"),
        (b"gmon\1\0\0\0" + bytes(12), "data of gprof", "`gprof PROGRAM gmon.out`"),
        (b"Flat profile:\n\nEach sample counts as 0.01 seconds.\n", "a report of gprof", ""),
        (b"profile duration exceeds server's WriteTimeout\n", "the error message of a server of Go", "?seconds="),
        (b"Could not enable CPU profiling: cpu profiling already in use\n", "the error message of a server", "later"),
        (b"!<arch>\ndebian-binary   14", "a Debian package", "`dpkg-deb -x"),
        (b"!<arch>\na.o/            14", "a static library", ""),
        (b"\xed\xab\xee\xdb\3\0", "an RPM package", "`rpm2cpio"),
        (b"\xdc\xdfJSLB\x02\0\x01\0\0\0", "a profile of the Firefox Profiler in slabs", "as .json.gz"),
        (b'{"traceEvents":[]}', "a trace of Chrome", "ui.perfetto.dev"),
        (b'[{"name":"a","ph":"B"}]', "a trace of Chrome", "ui.perfetto.dev"),
        (b"goroutine 1 [running]:\nmain.main()\n", "stacks of goroutines", "without debug"),
        (b"num_symbols: 1\n", "the answer of /pprof/symbol", "/pprof/profile"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a pointer of git-lfs", "`git lfs pull`"),
        (
            b"<!DOCTYPE html>\n<HTML><head><title>\n Sign in \x1b</title>",
            "an HTML page with the title 'Sign in ",
            "server",
        ),
        (b"<html>", "an HTML page: ", "server"),
        (b"404 page not found\n", "the error message of a server", "URL"),
        (b"a;b 1 2\na;c 3 4\n", "the difference of two recordings", "one of the two"),
        (b"memray\0", "a recording of memray", "`memray flamegraph`"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_another_recording(content: bytes, looks: str, command: str) -> None:
    """The error says which command makes what is read, or shows the recording (R344, other recordings). What is read is
    listed where there is no such command."""
    error = refused(io.BytesIO(content))
    assert f"it looks like {looks}" in error
    assert command in error
    assert ("formats read" in error) == (command in ("", "not read"))


def test_the_error_of_the_format_that_matches() -> None:
    """Where the beginning is a format's, that format's error is the one told."""
    assert "cut short" in refused(io.BytesIO(RAW[:-1]))


@pytest.mark.process
def test_importing_loads_nothing_heavy() -> None:
    """Decompressors, protobuf and the formats are imported when they are needed."""
    heavy = (
        "google.protobuf",
        "zstandard",
        "lz4",
        "isal",
        "symbolize.formats.pprof.reader",
        "symbolize.formats.gperftools.reader",
    )
    code = f"import sys, symbolize.formats; print([name for name in {heavy!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


@pytest.mark.parametrize(
    "extra", [b"\x22\x03abc", b"\x2a\x01x", b"\x18\x07", b"\xba\x06\x01y"], ids=lambda raw: raw.hex()
)
@pytest.mark.parametrize("message", ["sample_type", "sample", "mapping", "location", "function"])
def test_fields_of_a_newer_schema_do_not_hide_a_profile(message: str, extra: bytes) -> None:
    """Fields that the schema does not know, of any number and wire type, leave a profile a profile."""
    known = {"sample_type": 2, "sample": 3, "mapping": 10, "location": 5, "function": 5}[message]
    if extra[0] >> 3 <= known and extra[0] < 0x80:
        extra = b"\xba\x06\x01y"
    from tests.support.messages import profile_pb2

    whole = profile_pb2.Profile(string_table=[b"", b"samples", b"count"])
    whole.sample_type.add(type=1, unit=2)
    whole.mapping.add(id=1, memory_limit=1)
    whole.function.add(id=1, name=1)
    whole.location.add(id=1, mapping_id=1).line.add(function_id=1)
    whole.sample.add(location_id=[1], value=[1])
    getattr(whole, message)[0].MergeFromString(extra)
    assert len(load(io.BytesIO(whole.SerializeToString())).samples) == 1

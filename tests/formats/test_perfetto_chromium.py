"""Chromium's samples and heap dumps."""

from tests.support import perfetto_writer as w
from tests.support.perfetto_profiles import labels, only, read, refused, stacks, types
from tests.support.perfetto_traces import CHROMIUM, MODULE, THREAD, stream, warned


def test_chromium() -> None:
    """Times add up over packets, callers are moved into the call, module ids stay (rules R131, R228, R240)."""
    trace = w.packet(1, w.CLEARED, CHROMIUM) + THREAD + stream([1, 2], [20, 5]) + stream([1], [100])
    found = read(trace)
    assert [*found] == ["chromium_profile.1.pid.50"]
    profile = found["chromium_profile.1.pid.50"]
    assert types(profile) == ["samples/count", "wall/nanoseconds"]
    # 0x5000 is a caller in one stack and the leaf of the other.
    assert stacks(profile) == {("0x6000", "0x4fff"): [2, 120_000], ("0x5000", "named", "0x5fff"): [1, 5000]}
    # A frame without an address is no caller that could be moved.
    assert sorted(profile.locations.address.tolist()) == [0, 0x4FFF, 0x5000, 0x5FFF, 0x6000]
    assert profile.duration_nanos == 130_000 - 25_000
    assert labels(profile)[0] == {"pid": 50, "tid": 51, "thread": "CrBrowserMain"}
    mappings = profile.mappings
    assert (mappings.start[0], int(mappings.limit[0]), mappings.file_offset[0]) == (0, (1 << 64) - 1, 0)
    assert profile.strings.text(mappings.build_id[0]) == "67452301AB89EFCD0123456789ABCDEF0"


def test_threads_of_chromium() -> None:
    """A TrackDescriptor tells the thread and its time as a ThreadDescriptor does; pid and tid outlive a clear, the time
    does not (rule R228)."""
    thread = w.message({1: 50, 2: 52, 5: "Compositor", 6: 5})
    track = w.packet(1, rest={60: w.message({4: thread})})
    timed = w.packet(1, w.CLEARED, CHROMIUM) + w.packet(1, rest={60: w.message({4: w.message({1: 50, 2: 52, 6: 5})})})
    profile = only(w.packet(1, w.CLEARED, CHROMIUM) + track + stream([1], [20]) + timed + stream([1], [30]))
    assert labels(profile) == [{"pid": 50, "tid": 52, "thread": "Compositor"}]
    assert stacks(profile) == {("0x6000", "0x4fff"): [2, 50_000]}


def test_modules_of_chromium_keep_apart() -> None:
    """Equal addresses in two modules are two locations, each with its module."""
    names = w.interned(
        builds={1: MODULE.encode(), 2: b"8" * 32 + b"0"},
        paths={1: "a", 2: "b"},
        mappings=[w.mapping(1, 1, path=[1], exact_offset=None), w.mapping(2, 2, path=[2], exact_offset=None)],
        frames=[w.frame(1, 0, 1, 0x5000), w.frame(2, 0, 2, 0x5000)],
        callstacks=[w.callstack(1, [1]), w.callstack(2, [2])],
    )
    profile = only(w.packet(1, w.CLEARED, names) + THREAD + stream([1, 2], [20, 5]))
    assert profile.locations.address.tolist() == [0x5000, 0x5000]
    files = [profile.strings.text(profile.mappings.filename[row]) for row in profile.locations.mapping.tolist()]
    assert sorted(files) == ["/a", "/b"]


def test_times_of_chromium() -> None:
    """Missing times end a packet, times below 0 too, and after a clear the base is missing (rule R228)."""
    start = w.packet(1, w.CLEARED, CHROMIUM) + THREAD
    assert stacks(only(start + stream([1, 1, 1], [1, 1])))["0x6000", "0x4fff"] == [2, 2000]
    assert stacks(only(start + stream([1, 1], [1, -500])))["0x6000", "0x4fff"] == [1, 1000]
    assert stacks(only(start + stream([1], [1, 7]) + stream([1], [2])))["0x6000", "0x4fff"] == [2, 3000]
    # Thousands of times that only move the time on, each by as much as one may, do not wrap around.
    back = stream([1], [1] + [-(1 << 52)] * 3000) + stream([1], [3])
    assert stacks(only(start + back))["0x6000", "0x4fff"] == [2, 4000]
    cleared = start + stream([1], [1]) + w.packet(1, w.CLEARED, CHROMIUM) + stream([1], [1])
    profile = only(cleared)
    assert stacks(profile)["0x6000", "0x4fff"] == [1, 1000]
    assert any("time is not known" in warning for warning in profile.warnings)
    assert "time is not known" in refused(w.packet(1, w.CLEARED, CHROMIUM) + stream([1], [1 << 62]))
    longest = 1 << 52
    for delta, count in ((longest - 6, 3), (longest - 5, 2), (longest, 2), (longest + 1, 1), (-longest - 1, 1)):
        profile = only(start + stream([1, 1, 1], [1, delta, 1]))
        assert stacks(profile)["0x6000", "0x4fff"] == [count, 1000 * sum([1, delta, 1][:count])]
        told = [each for each in profile.warnings if "time is not known" in each]
        assert [each.split()[0] for each in told] == [str(3 - count)] * (count < 3)
    damaged = w.packet(1, rest={54: w.message({1: b"\x01\xff", 2: [7]})})
    assert stacks(warned(start + stream([1], [1]) + damaged, "1 packets are damaged"))["0x6000", "0x4fff"] == [1, 1000]
    # What is behind more callstacks than any packet has is left out.
    many = w.packet(1, rest={54: w.field(1, bytes([1]) * ((1 << 20) + 1)) + w.field(2, [1])})
    profile = warned(start + many, "1 entries were left out")
    assert stacks(profile)["0x6000", "0x4fff"] == [1, 1000]


def test_heap_dumps_of_chromium() -> None:
    """Mappings without a range are Chromium's in heap dumps too; those of other CPU samples are not touched."""
    start = w.packet(1, w.CLEARED, CHROMIUM)
    dump = w.heap_packet([w.heap_dump(7, [w.heap_sample(1, 8, 0, 1)])], True) + w.heap_packet([], index=1)
    assert [*stacks(only(start + dump))] == [("0x6000", "0x4fff")]
    assert [*stacks(only(start + w.perf_sample(1)))] == [("0x6000", "0x5000")]

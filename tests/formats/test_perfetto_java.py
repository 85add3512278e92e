"""Names for obfuscated Java code that a trace brings: what they are applied to, and what stays as it is."""

import io
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from symbolize import Options, Profile, Symbolizer, load_all
from symbolize.formats import encode
from symbolize.formats.model import Choice
from symbolize.formats.perfetto import java
from tests.support import perfetto_writer as w
from tests.support.needs import package

APP = "/data/app/~~a1==/com.acme.app-b2==/base.apk"
CODEC = w.java_class(
    "a.a.a",
    "com.acme.Codec",
    [
        ("a", "encode", (1, 3, 20, 22)),
        ("a", "com.acme.Checks.range", (4, 4, 7, 7)),
        ("a", "encode", (4, 4, 23)),
        ("b", "close", ()),
        ("c", "one", ()),
        ("c", "two", ()),
    ],
)
MAIN = w.java_class("com.acme.Main", "com.acme.Main", [("main", "main", (5, 5, 9))])
MAP = """\
com.acme.Codec -> a.a.a:
    1:3:int encode(int):20:22 -> a
    4:4:int com.acme.Checks.range(int):7:7 -> a
    4:4:int encode(int):23 -> a
    void close() -> b
    void one() -> c
    void two() -> c
com.acme.Main -> com.acme.Main:
    5:5:void main(java.lang.String[]):9 -> main
"""
FRAMES = [("a.a.a.a", 2), ("a.a.a.a", 4), ("a.a.a.b", 0), ("a.a.a.c", 0), ("a.a.a.z", 6), ("com.acme.Main.main", 5)]
SOURCE = [
    [("com.acme.Codec.encode", 21)],
    [("com.acme.Checks.range", 7), ("com.acme.Codec.encode", 23)],
    [("com.acme.Codec.close", 0)],
    [("com.acme.Codec.one | com.acme.Codec.two", 0)],
    [("com.acme.Codec.z", 6)],
    [("com.acme.Main.main", 9)],
]


def trace_of(frames: Sequence[tuple[str | bytes, int]] = FRAMES, path: str = APP, pids: Sequence[int] = (7,)) -> bytes:
    """A trace with one stack, the same in each process: frames of one mapping with these names and lines, the leaf
    first."""
    state = w.interned(
        {number: name for number, (name, _) in enumerate(frames, 1)},
        {1: b"id"},
        {1: path},
        mappings=[w.mapping(1, 1, 0x1000, 0x9000, path=[1])],
        frames=[w.frame(number, number, 1, number, line=line) for number, (_, line) in enumerate(frames, 1)],
        callstacks=[w.callstack(1, range(len(frames), 0, -1))],
    )
    return w.packet(1, w.CLEARED, state) + b"".join(w.perf_sample(1, pid, pid) for pid in pids)


def profiles(trace: bytes, *maps: str, **choice: Any) -> tuple[list[Profile], list[str]]:
    """The profiles of a trace with the names of the source, and all warnings."""
    with Symbolizer(options=Options(proguard_maps=maps)) as symbolizer:
        results = [symbolizer.symbolize(each.profile) for each in load_all(io.BytesIO(trace), choice=Choice(**choice))]
    for result in results:
        encode(result.profile)
    return [result.profile for result in results], [text for result in results for text in result.report.warnings]


def names_of(profile: Profile) -> list[list[tuple[str, int]]]:
    """Names and lines of each frame of the first stack."""
    locations, text = profile.locations, profile.strings.text
    rows = profile.samples.locations[: profile.samples.location_offsets[1]].tolist()
    ranges = [range(locations.line_offsets[row], locations.line_offsets[row + 1]) for row in rows]
    lines = locations.lines
    return [[(text(profile.functions.name[lines.function[i]]), int(lines.line[i])) for i in each] for each in ranges]


def names(trace: bytes, *maps: str) -> list[list[tuple[str, int]]]:
    """The same of the only profile of a trace."""
    ((profile,), _) = profiles(trace, *maps)
    return names_of(profile)


def first_names(trace: bytes, *maps: str, **choice: Any) -> list[str]:
    """The name of the leaf in each profile."""
    return [names_of(profile)[0][0][0] for profile in profiles(trace, *maps, **choice)[0]]


OBFUSCATED = [[each] for each in FRAMES]
NAMES = w.deobfuscation([CODEC, MAIN], "com.acme.app")


def test_names_lines_and_inlined_frames() -> None:
    """They are those of the source, wherever in the trace the packet is; without it names stay (rule R231)."""
    assert names(trace_of()) == OBFUSCATED
    assert names(trace_of() + NAMES) == SOURCE
    assert names(NAMES + trace_of()) == SOURCE
    assert names(w.compressed(trace_of() + NAMES)) == SOURCE
    ((profile,), _) = profiles(trace_of() + NAMES)
    assert "a.a.a.a" in {profile.strings.text(name) for name in profile.functions.system_name}


def test_the_same_as_by_a_file(tmp_path: Path) -> None:
    """A mapping file gives the same names and lines (rules R171 to R174, R231)."""
    path = tmp_path / "mapping.txt"
    path.write_text(MAP)
    frames = [*FRAMES, ("int a.a.a.a(int) [DEDUPED]", 4), ("a.a.a.a", 99), ("x.y", 1), ("a.a.b.a", 1), ("plain", 0)]
    assert names(trace_of(frames) + NAMES) == names(trace_of(frames), str(path))
    assert names(trace_of(frames) + NAMES) != names(trace_of(frames))


def test_messages_of_perfetto() -> None:
    """Perfetto's own messages are read like those of the writer."""
    messages = package("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = messages.Trace()
    mapping = trace.packet.add().deobfuscation_mapping
    mapping.package_name, mapping.version_code = "com.acme.app", 3
    codec = mapping.obfuscated_classes.add(obfuscated_name="a.a.a", deobfuscated_name="com.acme.Codec")
    codec.obfuscated_members.add(obfuscated_name="a", deobfuscated_name="field")
    lines = "obfuscated_line_start", "obfuscated_line_end", "source_line_start", "source_line_end"
    for short, name, numbers in (
        ("a", "encode", (1, 3, 20, 22)),
        ("a", "com.acme.Checks.range", (4, 4, 7, 7)),
        ("a", "encode", (4, 4, 23)),
        ("b", "close", ()),
    ):
        found = dict(zip(lines, numbers, strict=False))
        codec.obfuscated_methods.add(obfuscated_name=short, deobfuscated_name=name, **found)
    trace.packet.add().packages_list.packages.add(name="com.acme.app", uid=10123)
    trace.packet.add().process_tree.processes.add(pid=7, uid=10123)
    content = trace.SerializeToString()
    assert names(trace_of(FRAMES[:3]) + content) == SOURCE[:3]
    assert names(trace_of(FRAMES[:3], "/apex/x.jar") + content) == SOURCE[:3]


ACME, OTHER = w.deobfuscation([CODEC], "com.acme.app"), w.deobfuscation([w.java_class("a.a.a", "B")], "com.other")
ANY = w.deobfuscation([CODEC])
LIST = w.packages([("com.acme.app", 10007), ("com.other", 10008), ("com.third", 10009)])
ENCODE, PLAIN = "com.acme.Codec.encode", "a.a.a.a"


@pytest.mark.parametrize(
    ("path", "more", "name"),
    [
        (APP, ACME + OTHER, ENCODE),
        ("/data/app/com.acme.app-1/oat/arm64/base.odex", ACME + OTHER, ENCODE),
        ("[anon:dalvik-classes.dex extracted in memory from /data/app/com.acme.app-1/base.apk]", ACME, ENCODE),
        ("/data/app/com.other-x==/base.apk", ACME + OTHER, "B.a"),
        ("/data/app/com.third-x==/base.apk", ACME + OTHER, PLAIN),
        # The path counts, and not whose process the code is in.
        ("/data/app/com.other-x==/base.apk", ACME + LIST + w.users({7: 10007}), PLAIN),
        ("/apex/x/core.jar", ACME + OTHER, PLAIN),
        ("/apex/x/core.jar", ACME + OTHER + LIST + w.users({7: 10007}), ENCODE),
        ("/apex/x/core.jar", ACME + OTHER + LIST + w.users({7: 1010008}), "B.a"),  # the user with number 10
        ("/apex/x/core.jar", ACME + w.packages([("com.acme.app", 110007)]) + w.users({7: 10007}), ENCODE),
        ("/apex/x/core.jar", ACME + OTHER + LIST + w.users({7: 10009}), PLAIN),
        ("/apex/x/core.jar", ACME + OTHER + LIST + w.users({8: 10007}), PLAIN),
        ("/memfd:jit-cache (deleted)", ACME, ENCODE),
        ("/memfd:jit-cache (deleted)", ACME + OTHER, PLAIN),  # they differ
        ("/memfd:jit-cache (deleted)", ACME + OTHER + LIST + w.users({7: 10008}), "B.a"),
        ("/memfd:jit-cache (deleted)", ACME + LIST + w.users({7: 10009}), PLAIN),
        ("/apex/x/core.jar", ANY, ENCODE),
        ("/data/app/com.third-x==/base.apk", ANY, ENCODE),
        ("/data/app/com.other-x==/base.apk", ANY + OTHER, PLAIN),  # they differ
        ("/data/app/com.acme.app-x==/base.apk!libx.so", ACME, PLAIN),  # native code
    ],
)
def test_which_code_names_are_for(path: str, more: bytes, name: str) -> None:
    """A package has its paths, else its processes; a mapping without package is for all code (rule R232)."""
    assert first_names(trace_of(FRAMES[:1], path) + more) == [name]
    assert first_names(more + trace_of(FRAMES[:1], path)) == [name]


def test_lines_without_an_end() -> None:
    """A method with a first line only is at that line (rule R231)."""
    members = [("a", "one", (2,)), ("a", "two", (3, 3, 8, 8)), ("a", "three", (4, None, 9))]
    packet = w.deobfuscation([w.java_class("a.a.a", "C", members)])
    frames = [("a.a.a.a", 2), ("a.a.a.a", 3), ("a.a.a.a", 4)]
    assert names(trace_of(frames) + packet) == [[("C.one", 2)], [("C.two", 8)], [("C.three", 9)]]


def test_each_process_has_its_names() -> None:
    """Profiles of one trace differ where code is shared, and so do mappings of one profile (rule R232)."""
    trace = trace_of(FRAMES[:1], "/apex/core.jar", (7, 8, 9))
    trace += ACME + OTHER + LIST + w.users({7: 10007, 8: 10008, 9: 10009})
    assert first_names(trace) == [ENCODE, "B.a", PLAIN]
    assert first_names(trace, merge=["processes"]) == [PLAIN]  # nobody knows which
    trace = trace_of(FRAMES[:1], "/apex/core.jar", (7, 8)) + ACME + LIST
    assert first_names(trace + w.users({7: 10007, 8: 10007}), merge=["processes"]) == [ENCODE]
    assert first_names(trace + w.users({7: 10007}), merge=["processes"]) == [PLAIN]  # it may be code of the other one
    paths = {1: "/data/app/com.acme.app-1/base.apk", 2: "/data/app/com.other-1/base.apk", 3: "/x.jar"}
    state = w.interned(
        {1: PLAIN},
        {1: b"id"},
        paths,
        mappings=[w.mapping(number, 1, number << 16, (number << 16) + 99, path=[number]) for number in paths],
        frames=[*(w.frame(number, 1, number, 5, line=2) for number in paths), w.frame(4, 1, line=2)],
        callstacks=[w.callstack(1, [4, 3, 2, 1])],
    )
    found = names(w.packet(1, w.CLEARED, state) + w.perf_sample(1) + ACME + OTHER)
    assert found == [[(ENCODE, 21)], [("B.a", 2)], [(PLAIN, 2)], [(PLAIN, 2)]]
    heaps = w.packet(1, w.CLEARED, state) + w.heap_packet([w.heap_dump(7, [w.heap_sample(1, 8, 0, 1)])])
    assert names(heaps + ACME + OTHER + LIST + w.users({7: 10008}))[2:] == [[("B.a", 2)]] * 2


def test_a_file_of_the_command_wins(tmp_path: Path) -> None:
    """What it knows of a class counts; classes that it does not have are those of the trace (rule R233)."""
    path = tmp_path / "mapping.txt"
    path.write_text("org.mine.Codec -> a.a.a:\n    void mine() -> a\n")
    frames = [("a.a.a.a", 4), ("a.a.a.b", 1), ("a.a.d.a", 1)]
    trace = trace_of(frames) + w.deobfuscation([CODEC, w.java_class("a.a.d", "com.acme.D")], "com.acme.app")
    assert [each[0][0] for each in names(trace, str(path))] == [
        "org.mine.Codec.mine",
        "org.mine.Codec.b",
        "com.acme.D.a",
    ]


def test_what_is_said_twice() -> None:
    """The same packet twice counts once; classes that differ stay as they are, and a warning tells (rule R174)."""
    assert names(trace_of() + NAMES + NAMES) == SOURCE
    twice = trace_of() + NAMES + w.deobfuscation([w.java_class("a.a.a", "Other")], "com.acme.app")
    ((profile,), warnings) = profiles(twice)
    assert names_of(profile) == [*OBFUSCATED[:-1], *SOURCE[-1:]]
    assert any("class a.a.a occurs twice" in text for text in warnings)


def test_several_traces_with_one_symbolizer() -> None:
    """Names of one trace are not those of the next."""
    with Symbolizer() as symbolizer:
        found = []
        for more in (NAMES, b"", OTHER + w.deobfuscation([w.java_class("a.a.a", "C")], "com.acme.app")):
            (each,) = load_all(io.BytesIO(trace_of(FRAMES[:1]) + more))
            found.append(names_of(symbolizer.symbolize(each.profile).profile)[0][0][0])
    assert found == [ENCODE, PLAIN, "C.a"]


def test_a_pid_that_is_used_again() -> None:
    """Heap dumps have the names of the process that had the pid then (rules R232, R243)."""
    second = 1_000_000_000
    state = w.interned(
        {1: PLAIN},
        {1: b"id"},
        {1: "/apex/core.jar"},
        mappings=[w.mapping(1, 1, 0x1000, 0x2000, path=[1])],
        frames=[w.frame(1, 1, 1, 5, line=2)],
        callstacks=[w.callstack(1, [1])],
    )
    trees = [
        w.packet(None, rest={2: w.message({1: w.message({1: 7, 3: "app", 5: user, 7: start * second})})})
        for user, start in ((10007, 10), (10008, 100))
    ]
    dumps = [w.heap_packet([w.heap_dump(7, [w.heap_sample(1, 8, 0, 1)], time=at * second)]) for at in (20, 200)]
    clocks = w.packet(None, rest={6: w.message({1: [w.message({1: clock, 2: 1}) for clock in (1, 3, 4, 6)]})})
    trace = clocks + w.packet(1, w.CLEARED, state) + b"".join([*trees, *dumps]) + ACME + OTHER + LIST
    assert first_names(trace) == [ENCODE, "B.a"]


# Hostile packets


@pytest.mark.full
def test_a_million_classes() -> None:
    """They are looked at once, and only those that are asked for are read."""
    filler = w.field(3, w.java_class("b", "c")) * 1_000_000
    packet = w.packet(None, rest={64: w.field(1, "com.acme.app") + filler + w.field(3, CODEC)})
    began = time.process_time()
    assert names(trace_of(FRAMES[:1]) + packet) == SOURCE[:1]
    assert time.process_time() - began < 30


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """More classes, methods, bytes or packages than a limit are left out, and a warning tells."""
    for limit, value, whole in (
        ("MAX_CLASSES", 0, "were read in part"),
        ("MAX_BYTES", 10, "has too many"),
        ("MAX_PACKAGES", 0, "has too many"),
        ("MAX_METHODS", 0, "absurdly many methods"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(java, limit, value)
            ((profile,), warnings) = profiles(trace_of(FRAMES[:1]) + NAMES)
            assert names_of(profile) == OBFUSCATED[:1]
            assert any(whole in text for text in warnings)


@pytest.mark.parametrize(
    ("limit", "enough"),
    [("MAX_CLASSES", 4), ("MAX_BYTES", 202), ("MAX_PACKAGES", 1), ("MAX_METHODS", 6)],
)
def test_edges_of_limits(limit: str, enough: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many fields, bytes, packages and methods as a limit says are read, and one more is told of."""
    for value in (enough, enough - 1):
        monkeypatch.setattr(java, limit, value)
        ((profile,), warnings) = profiles(trace_of(FRAMES[:1]) + NAMES)
        assert bool(warnings) == (value < enough)
        assert value < enough or names_of(profile) == SOURCE[:1]


@pytest.mark.parametrize("limit", ["MAX_TRIED", "MAX_NEW_LINES", "MAX_NEW_BYTES", "MAX_LINES"])
def test_limits_of_what_is_made(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile does not grow without bound by names (rule R233)."""
    import symbolize.enrich.deobfuscate as module

    monkeypatch.setattr(module, limit, 0)
    methods = [("a", f"inlined{number}", (1, 9, 5)) for number in range(200)]
    classes = [w.java_class("a.a.a", "x" * 1000, [*methods, ("b", "b" * 1000, ())])]
    trace = trace_of([("a.a.a.a", 1), ("a.a.a.b", 0), ("a.a.a.b", 2)]) + w.deobfuscation(classes)
    ((profile,), warnings) = profiles(trace)
    assert any("absurdly many" in text for text in warnings)
    assert len(profile.locations.lines) < 250


def test_endless_names_and_chains() -> None:
    """Names longer than any of Java, and methods inlined without end, stand for nothing."""
    long = "x" * 70_000
    for members, name in (
        ([("a", long, ())], "com.acme.C"),
        ([(long, "b", ())], "com.acme.C"),
        ([], long),
        ([("a", f"m{number}", (1, 9, 5)) for number in range(2000)], "com.acme.C"),
        ([("", "b", ())], "com.acme.C"),
        ([("a", "", ())], "com.acme.C"),
        ([("a", "b", ())], ""),
    ):
        trace = trace_of([("a.a.a.a", 2)]) + w.deobfuscation([w.java_class("a.a.a", name, members)])
        assert names(trace) == [[(PLAIN, 2)]]


@pytest.mark.parametrize("long", [(65_535, 1, 1), (1, 65_535, 1), (1, 1, 65_535)])
def test_the_longest_names(long: tuple[int, int, int]) -> None:
    """Names of a class and of its methods have up to 65,535 bytes, as in Java; longer ones are none."""
    for more in (0, 1):
        owner, obfuscated, name = ("abc"[i] * (size + more * (size > 1)) for i, size in enumerate(long))
        given = [(f"a.a.a.{obfuscated}", 2)]
        trace = trace_of(given) + w.deobfuscation([w.java_class("a.a.a", owner, [(obfuscated, name, ())])])
        assert names(trace) == [[(f"{owner}.{name}", 2)] if not more else given]


@pytest.mark.full
def test_bad_bytes() -> None:
    """Names that are not UTF-8, lines of 64 bits, and packets that are cut off anywhere or damaged."""
    member = w.message({1: b"a", 2: b"\xff\xfe", 3: 1, 4: (1 << 64) - 1, 5: (1 << 32) + 5, 6: 1 << 63})
    odd = w.message({1: b"a.a.a", 2: b"\xc3.\x80", 4: member})
    ((profile,), _) = profiles(trace_of(FRAMES[:1]) + w.deobfuscation([odd]))
    assert b"\xc3.\x80.\xff\xfe" in profile.strings
    content = w.message({1: "com.acme.app", 3: [CODEC, MAIN]})
    for cut in range(len(content)):
        assert names(trace_of(FRAMES[:1]) + w.packet(None, rest={64: content[:cut]})) in (SOURCE[:1], OBFUSCATED[:1])
    for place in range(len(content)):
        broken = content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]
        names(trace_of(FRAMES[:1]) + w.packet(None, rest={64: broken}))


def test_damaged_classes_have_gaps() -> None:
    """A method that may be the one that could not be read stays as it is (rule R174)."""
    trace = trace_of([("a.a.a.b", 0), ("a.a.a.q", 0)])
    sound = w.java_class("a.a.a", "C", [("b", "known", ())])
    assert [each[0][0] for each in names(trace + w.deobfuscation([sound]))] == ["C.known", "C.q"]
    assert [each[0][0] for each in names(trace + w.deobfuscation([sound + b"\x22\x7f"]))] == ["C.known", "a.a.a.q"]


def test_the_order_of_fields_does_not_matter() -> None:
    """Package behind the classes, name of a class behind its methods."""
    member = w.message({2: "m", 1: "a"})
    late = w.message({4: member, 2: "C", 1: "a.a.a"})
    packet = w.packet(None, rest={64: w.field(3, late) + w.field(1, "com.acme.app")})
    assert first_names(trace_of(FRAMES[:1]) + packet) == ["C.m"]
    assert first_names(trace_of(FRAMES[:1], "/data/app/com.other-1/base.apk") + packet) == [PLAIN]


def test_modules_are_not_loaded_for_nothing() -> None:
    """A trace without such packets has no names."""
    (each,) = load_all(io.BytesIO(trace_of() + LIST + w.users({7: 10007})))
    assert each.profile.obfuscation is None

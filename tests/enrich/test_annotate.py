"""Suffixes on the names of Java frames: how their code ran, and which frames of the runtime stand between them."""

import io
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolize import Options, Profile, Symbolizer, load, load_all
from symbolize.cli import main
from symbolize.enrich import annotate
from symbolize.formats import encode
from symbolize.formats.pprof import reader as loader
from tests.support import perfetto_writer as w
from tests.support import pprof_writer
from tests.support.pprof_writer import Line, Mapping, Place

LIBART, ODEX, JAR, JIT, LIBC = (
    "/apex/com.android.art/lib64/libart.so",
    "/data/app/com.acme-1/oat/arm64/base.odex",
    "/system/framework/framework.jar",
    "/memfd:jit-cache (deleted)",
    "/system/lib64/libc.so",
)


def trace_of(*stacks: Sequence[tuple[str, str]]) -> bytes:
    """A trace with these stacks of name and mapping, root first; equal frames are one."""
    frames = list(dict.fromkeys(frame for stack in stacks for frame in stack))
    names = list(dict.fromkeys(name for name, _ in frames if name))
    paths = list(dict.fromkeys(path for _, path in frames))
    state = w.interned(
        dict(enumerate(names, 1)),
        {1: b"id"},
        dict(enumerate(paths, 1)),
        mappings=[w.mapping(row, 1, row << 20, (row << 20) + 4096, path=[row]) for row in range(1, len(paths) + 1)],
        frames=[
            w.frame(row, names.index(name) + 1 if name else 0, paths.index(path) + 1, row)
            for row, (name, path) in enumerate(frames, 1)
        ],
        callstacks=[
            w.callstack(row, [frames.index(each) + 1 for each in stack]) for row, stack in enumerate(stacks, 1)
        ],
    )
    return w.packet(1, w.CLEARED, state) + b"".join(map(w.perf_sample, range(1, len(stacks) + 1)))


def names_of(profile: Profile) -> list[list[str]]:
    """The names in each stack, root first; inlined frames behind their caller."""
    locations, text = profile.locations, profile.strings.text
    lines = locations.lines.function.tolist()
    offsets = locations.line_offsets.tolist()
    names = [[text(profile.functions.name[f]) for f in lines[a:b][::-1]] for a, b in itertools.pairwise(offsets)]
    edges = profile.samples.location_offsets.tolist()
    rows = profile.samples.locations.tolist()
    return [[name for row in rows[a:b][::-1] for name in names[row]] for a, b in itertools.pairwise(edges)]


def annotated(*stacks: Sequence[tuple[str, str]]) -> list[list[str]]:
    """The names of a trace with these stacks."""
    (each,) = load_all(io.BytesIO(trace_of(*stacks)))
    with Symbolizer(options=Options(annotate=True)) as symbolizer:
        profile = symbolizer.symbolize(each.profile).profile
    encode(profile)
    return names_of(profile)


@pytest.mark.parametrize(
    ("path", "suffix"),
    [
        (JIT, " [jit]"),
        ("/memfd:jit-zygote-cache (deleted)", " [jit]"),
        (ODEX, " [aot]"),
        ("/system/framework/arm64/boot-framework.oat", " [aot]"),
        ("/x/classes.dex", " [interp]"),
        ("/x/base.vdex", " [interp]"),
        (JAR, " [interp]"),
        ("/data/app/com.acme-1/base.apk", " [interp]"),
        ("/data/app/com.acme-1/base.apk!libx.so", ""),
        (LIBC, ""),
        ("/system/bin/app_process64", ""),
        (LIBART, ""),
        ("/kernel", ""),
    ],
)
def test_kinds_of_code(path: str, suffix: str) -> None:
    """The mapping tells how the code in it runs (rule R234)."""
    assert annotated([("f", path)]) == [["f" + suffix]]


def test_the_runtime_between_java_frames() -> None:
    """Only behind Java frames, seen from the root, and where other native code stands between too (rule R234)."""
    stack = [
        ("art_main", LIBART),
        ("java.Main.main", ODEX),
        ("invoke", LIBART),
        ("other", LIBC),
        ("_ZN3art11interpreter6DoCall", LIBART),
        ("nterp_op_iget", LIBART),
        ("ExecuteSwitchImplAsm", LIBART),
        ("java.Sub.run", JAR),
        ("nterp_helper", LIBC),
    ]
    assert annotated(stack, stack[2:5]) == [
        [
            "art_main",
            "java.Main.main [aot]",
            "invoke [common-frame]",
            "other",
            "_ZN3art11interpreter6DoCall [common-frame-interp]",
            "nterp_op_iget [common-frame-interp]",
            "ExecuteSwitchImplAsm [common-frame-interp]",
            "java.Sub.run [interp]",
            "nterp_helper",
        ],
        ["invoke", "other", "_ZN3art11interpreter6DoCall"],
    ]


def test_what_a_trampoline_calls_is_kept() -> None:
    """The frame behind art_jni_trampoline is the native method itself; further ones are the runtime's."""
    trampoline = ("art_jni_trampoline", ODEX)
    stack = [("art", LIBART), trampoline, ("Method_invoke", LIBART), ("Invoke", LIBART), trampoline, trampoline]
    assert annotated(stack, [trampoline], [("Method_invoke", LIBART)]) == [
        [
            "art",
            "art_jni_trampoline [common-frame]",
            "Method_invoke",
            "Invoke [common-frame]",
            "art_jni_trampoline [common-frame]",
            "art_jni_trampoline",
        ],
        ["art_jni_trampoline [common-frame]"],
        ["Method_invoke"],
    ]


def by_hand(stack: list[tuple[str, str]]) -> list[str]:
    """The same, frame by frame."""
    kinds = {ODEX: " [aot]", JAR: " [interp]", JIT: " [jit]"}
    names, below_java, keep = [], False, False
    for name, path in stack:
        suffix = ""
        if keep:
            keep, below_java = False, True
        elif name == "art_jni_trampoline":
            suffix, keep = " [common-frame]", True
        elif path in kinds:
            suffix, below_java = kinds[path], True
        elif path == LIBART and below_java:
            suffix = " [common-frame-interp]" if name.startswith("nterp_") else " [common-frame]"
        names.append(name + suffix)
    return names


FRAME = st.tuples(st.sampled_from(["f", "nterp_x", "art_jni_trampoline"]), st.sampled_from([LIBART, ODEX, JAR, LIBC]))


@given(st.lists(st.lists(FRAME, min_size=1, max_size=8), min_size=1, max_size=6), st.sampled_from([1, 5, 1000]))
def test_against_a_walk_by_hand(stacks: list[list[tuple[str, str]]], block: int) -> None:
    """Any stacks, in blocks of any size, are as a walk from root to leaf has them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(annotate, "BLOCK", block)
        found = annotated(*stacks)
    distinct = list(dict.fromkeys(map(tuple, stacks)))
    assert sorted(found) == sorted(by_hand(list(stack)) for stack in distinct)


def test_all_functions_of_a_frame_and_what_else_stays() -> None:
    """Inlined functions get the suffix too; linked names, frames without names, flags and unknown fields stay."""
    mappings = [Mapping(0x1000, 0x2000, 0, ODEX), Mapping(0x3000, 0x4000, 0, LIBART)]
    java = Place(0x1500, 1, (Line("inlined", "A.java", 3), Line("outer", "A.java", 9)))
    runtime, nameless = Place(0x3500, 2, (Line("art", "art.cc", 5),)), Place(0x3600, 2, ())
    stacks = [([runtime, nameless, java], [1]), ([nameless, runtime], [2]), ([], [3])]
    given_profile = loader.load(memoryview(pprof_writer.profile(mappings, stacks)), "test")
    profile, rows = annotate.annotate(given_profile)
    assert names_of(profile) == [
        ["outer [aot]", "inlined [aot]", "art [common-frame]"],
        ["art"],
        [],
    ]
    assert names_of(given_profile) == [["outer", "inlined", "art"], ["art"], []]
    assert profile.samples.values.tolist() == given_profile.samples.values.tolist()
    assert profile.locations.address.tolist() == given_profile.locations.address[rows].tolist()
    linked = {profile.strings.text(name) for name in profile.functions.system_name}
    assert not any("[" in name for name in linked)
    assert len(profile.locations) == 5  # two of libart's stand in both ways
    given_profile.unknown = {"location": pprof_writer.raw_fields({int(rows[0]): b"\x98\x06\x01"})}
    again, _ = annotate.annotate(given_profile)
    kept = list(pprof_writer.by_row(again.unknown["location"]).values())
    assert kept == [b"\x98\x06\x01"] * int((rows == rows[0]).sum())
    assert np.array_equal(again.samples.locations, profile.samples.locations)


def test_profiles_without_java() -> None:
    """They are what they were."""
    (each,) = load_all(io.BytesIO(trace_of([("f", LIBC), ("g", LIBART)])))
    profile = each.profile
    assert annotate.annotate(profile)[0] is profile


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--annotate` is off without being asked for, and not for symbols of a trace."""
    path = tmp_path / "t.pftrace"
    path.write_bytes(trace_of([("f", ODEX), ("g", LIBART)]))
    options = [str(path), "-q", "-o", f"{tmp_path}/o.pb.gz"]
    assert main(options) == 0
    assert names_of(load(tmp_path / "o.pb.gz")) == [["f", "g"]]
    assert main([*options, "--annotate"]) == 0
    assert names_of(load(tmp_path / "o.pb.gz")) == [["f [aot]", "g [common-frame]"]]
    assert main([*options, "--annotate", "--emit", "module-symbols"]) == 2
    assert "--annotate" in capsys.readouterr().err
